use lastbyte_units::Time;

use super::*;
use crate::tcp::segment::{Flags, Progress};

fn segment(len: u32, push: bool) -> Segment {
    Segment {
        sequence: 0,
        len,
        wire_bytes: len + 52,
        flags: Flags {
            push,
            ack: true,
            syn: false,
        },
        ack: 0,
        window: 0,
        sack: [(0, 0); Segment::SACK_BLOCKS],
        sack_count: 0,
        is_dsack: false,
        sent_at: Time::ZERO,
        echo: None,
        progress: Progress::default(),
    }
}

fn ms(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// Segments of these lengths, one each millisecond, by a receiver that is interactive or not: whether each is acknowledged at once.
fn due(acks: &mut Acks, start: u64, lens: &[u32], arrival: Arrival) -> Vec<bool> {
    let mut next = acks.acked;
    let each = lens.iter().zip(start..).map(|(len, at)| {
        next += u64::from(*len);
        let received = Received {
            arrival,
            next,
            window: 64_240,
            rto: Duration::from_millis(240),
            smoothed: None,
        };
        acks.on_segment(ms(at), &segment(*len, false), &received);
        let is_due = acks.is_due();
        if is_due {
            acks.on_sent(ms(at), next, false);
        }
        is_due
    });
    each.collect()
}

#[test]
fn the_first_sixteen_segments_are_acknowledged_at_once_and_then_each_second() {
    let mut acks = Acks::new();
    assert_eq!(due(&mut acks, 0, &[1448; 16], Arrival::InOrder), [true; 16]);
    assert_eq!(
        due(&mut acks, 16, &[1448; 4], Arrival::InOrder),
        [false, true, false, true]
    );
}

#[test]
fn an_interactive_end_delays_even_the_first_acknowledgments() {
    let mut acks = Acks::new();
    due(&mut acks, 0, &[1448], Arrival::InOrder);
    acks.on_sent(ms(1), 1448, true); // an answer within 40 ms
    assert_eq!(
        due(&mut acks, 2, &[1448; 4], Arrival::InOrder),
        [false, true, false, true]
    );
}

#[test]
fn a_single_segment_is_acknowledged_after_40_ms_on_a_tick() {
    let mut acks = Acks::new();
    due(&mut acks, 0, &[1448], Arrival::InOrder);
    acks.on_sent(ms(1), 1448, true);
    assert_eq!(due(&mut acks, 2, &[1448], Arrival::InOrder), [false]);
    // 40 ms from the tick before, and a tick.
    assert_eq!(acks.deadline(), Some(ms(44)));
    acks.on_timeout(ms(43), Duration::from_millis(240));
    assert!(!acks.is_due());
    acks.on_timeout(ms(44), Duration::from_millis(240));
    assert!(acks.is_due() && !acks.is_interactive);
}

#[test]
fn what_is_out_of_order_or_twice_is_acknowledged_at_once() {
    for arrival in [Arrival::OutOfOrder, Arrival::FilledGap, Arrival::Duplicate] {
        let mut acks = Acks::new();
        acks.is_interactive = true;
        assert_eq!(due(&mut acks, 0, &[1448], arrival), [true], "{arrival:?}");
    }
}
