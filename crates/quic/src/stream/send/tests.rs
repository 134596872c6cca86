use proptest::{collection::vec, prelude::*};

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Byte {
    Unsent,
    InFlight,
    Lost,
    Acked,
}

proptest! {
    /// The model stores the state of each byte.
    #[test]
    fn sending_part_matches_a_map_of_bytes(
        actions in vec((0..5_u8, 1..400_u64, any::<prop::sample::Index>()), 1..200),
    ) {
        const LEN: usize = 3000;
        let mut part = SendPart::new(LEN as u64);
        part.body.write(&[7; LEN]);
        part.finish();
        let mut model = vec![Byte::Unsent; LEN];
        let mut frames: Vec<(u64, u64, bool)> = Vec::new();
        for (action, len, pick) in actions {
            if action < 2 || frames.is_empty() {
                let Some(chunk) = part.next_chunk(u64::MAX) else { continue };
                let wanted = model.iter().position(|byte| *byte == Byte::Lost);
                let wanted = wanted.or_else(|| model.iter().position(|byte| *byte == Byte::Unsent));
                prop_assert_eq!(chunk.offset as usize, wanted.unwrap_or(LEN));
                let len = len.min(chunk.len);
                let fin = part.is_end(chunk.offset + len);
                part.on_sent(chunk.offset, len, fin);
                for byte in &mut model[chunk.offset as usize..(chunk.offset + len) as usize] {
                    prop_assert_eq!(*byte == Byte::Lost, chunk.repeated);
                    *byte = Byte::InFlight;
                }
                frames.push((chunk.offset, len, fin));
            } else {
                let (offset, len, fin) = frames[pick.index(frames.len())];
                let span = &mut model[offset as usize..(offset + len) as usize];
                if action == 2 {
                    part.on_lost(offset, len, fin);
                    span.iter_mut().filter(|b| **b == Byte::InFlight).for_each(|b| *b = Byte::Lost);
                } else {
                    part.on_acked(offset, len, fin);
                    span.fill(Byte::Acked);
                }
            }
            if !part.state.sends_data() {
                break;
            }
            let lost: Vec<usize> = part.lost.iter().flatten().map(|at| at as usize).collect();
            let expected: Vec<usize> =
                (0..LEN).filter(|at| model[*at] == Byte::Lost).collect();
            prop_assert_eq!(lost, expected);
            let acked_to = model.iter().position(|byte| *byte != Byte::Acked).unwrap_or(LEN);
            prop_assert_eq!(part.acked_to as usize, acked_to);
            prop_assert_eq!(part.body.written(), LEN - acked_to);
        }
        if part.state.is_terminal() {
            prop_assert!(model.iter().all(|byte| *byte == Byte::Acked));
        }
    }
}

#[test]
fn rfc9000_3_1_life_cycle_of_a_sending_part() {
    let mut part = SendPart::new(3);
    part.body.write(b"hello");
    part.finish();
    assert_eq!(part.state(), SendState::Ready);
    assert_eq!(part.next_chunk(10).map(|chunk| chunk.len), Some(3));
    assert_eq!(part.next_chunk(2).map(|chunk| chunk.len), Some(2));
    assert_eq!(part.on_sent(0, 3, false), 3);
    assert_eq!(part.state(), SendState::Send);
    assert_eq!((part.class(), part.blocked_to_send()), (None, Some(3)));
    part.credit.raise(5);
    assert_eq!(part.on_sent(3, 2, true), 2);
    assert_eq!(part.state(), SendState::DataSent);
    assert!(!part.on_lost(0, 3, false));
    assert_eq!(part.class(), Some(Class::Unmetered));
    assert_eq!(part.on_sent(0, 3, false), 0);
    assert!(!part.on_acked(3, 2, true));
    assert!(part.on_acked(0, 3, false));
    assert_eq!(part.state(), SendState::DataRecvd);
    assert!(!part.reset(VarInt::ZERO), "too late");
}

#[test]
fn a_lost_fin_is_retransmitted_without_data() {
    let mut part = SendPart::new(10);
    part.body.write(b"hello");
    part.on_sent(0, 5, false);
    part.finish();
    assert!(part.is_end(5));
    part.on_sent(5, 0, true);
    part.on_acked(0, 5, false);
    part.on_lost(5, 0, true);
    let chunk = part.next_chunk(0).expect("needs no credit");
    assert_eq!((chunk.offset, chunk.len), (5, 0));
    part.on_sent(5, 0, true);
    assert!(part.on_acked(5, 0, true));
}

#[test]
fn rfc9000_4_5_final_size_of_a_reset_is_what_was_sent() {
    let mut part = SendPart::new(3);
    part.body.write(b"hello");
    part.on_sent(0, 3, false);
    assert!(part.reset(VarInt::ZERO));
    assert_eq!(part.final_size(), 3);
    assert_eq!((part.body.written(), part.class()), (0, None));
    part.on_reset_acked();
    assert_eq!(part.state(), SendState::ResetRecvd);
}
