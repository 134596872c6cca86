use lastbyte_units::Time;

use super::*;
use crate::tcp::segment::Flags;

/// A segment of a stream whose every ten bytes complete a record of nine.
fn segment(sequence: u64, len: u32) -> Segment {
    Segment {
        sequence,
        len,
        wire_bytes: len + 52,
        flags: Flags::default(),
        ack: 0,
        window: 0,
        sack: [(0, 0); Segment::SACK_BLOCKS],
        sack_count: 0,
        is_dsack: false,
        sent_at: Time::ZERO,
        echo: None,
        progress: Progress {
            flights: 0,
            application: (sequence + u64::from(len)) / 10 * 9,
        },
    }
}

fn blocks(incoming: &mut Incoming) -> (Vec<(u64, u64)>, bool) {
    let mut ack = segment(0, 0);
    incoming.report(&mut ack);
    (
        ack.sack[..usize::from(ack.sack_count)].to_vec(),
        ack.is_dsack,
    )
}

#[test]
fn data_is_complete_only_in_order() {
    let mut incoming = Incoming::default();
    assert_eq!(incoming.on_segment(&segment(0, 10)), Arrival::InOrder);
    assert_eq!(incoming.on_segment(&segment(20, 10)), Arrival::OutOfOrder);
    assert_eq!(incoming.on_segment(&segment(40, 10)), Arrival::OutOfOrder);
    assert_eq!(
        (
            incoming.next(),
            incoming.progress().application,
            incoming.waiting()
        ),
        (10, 9, 20)
    );
    assert_eq!(incoming.on_segment(&segment(10, 10)), Arrival::OutOfOrder);
    assert_eq!(
        (
            incoming.next(),
            incoming.progress().application,
            incoming.waiting()
        ),
        (30, 27, 10)
    );
    assert_eq!(incoming.on_segment(&segment(30, 10)), Arrival::FilledGap);
    assert_eq!(
        (
            incoming.next(),
            incoming.progress().application,
            incoming.waiting()
        ),
        (50, 45, 0)
    );
}

#[test]
fn rfc2018_4_the_first_block_has_the_newest_segment() {
    let mut incoming = Incoming::default();
    for sequence in [20, 40, 60, 80] {
        incoming.on_segment(&segment(sequence, 10));
    }
    assert_eq!(
        blocks(&mut incoming),
        (vec![(80, 90), (60, 70), (40, 50)], false)
    );
    incoming.on_segment(&segment(30, 10));
    assert_eq!(
        blocks(&mut incoming),
        (vec![(20, 50), (80, 90), (60, 70)], false)
    );
}

#[test]
fn rfc2883_4_a_duplicate_is_reported_once() {
    let mut incoming = Incoming::default();
    incoming.on_segment(&segment(0, 10));
    incoming.on_segment(&segment(20, 10));
    for sequence in [0, 20] {
        assert_eq!(
            incoming.on_segment(&segment(sequence, 10)),
            Arrival::Duplicate
        );
        assert_eq!(
            blocks(&mut incoming),
            (vec![(sequence, sequence + 10), (20, 30)], true)
        );
        assert_eq!(blocks(&mut incoming), (vec![(20, 30)], false));
    }
}
