use lastbyte_wire::{Reader, frame::Frame};

use super::*;

fn receive(space: &mut ReceivedPackets, at_ms: u64, number: u32, ecn: Ecn) {
    space.on_received(&Received {
        now: Time::from_nanos(at_ms * 1_000_000),
        number: PacketNumber::from(number),
        is_ack_eliciting: true,
        ecn,
        min_rtt: None,
    });
}

#[test]
fn rfc9000_19_3_the_frame_has_ranges_delay_and_ecn_counts() {
    let mut space = ReceivedPackets::new(AckPolicy::immediate());
    receive(&mut space, 10, 0, Ecn::Ect0);
    receive(&mut space, 20, 4, Ecn::Ce);
    receive(&mut space, 30, 1, Ecn::Ect0);
    let mut buffer = [0; 100];
    let mut writer = Writer::new(&mut buffer);
    let now = Time::from_nanos(36_000_000);
    assert_eq!(space.write_ack(now, &mut writer, 100, 3), Ok(Some(4)));
    let frame = Frame::decode(&mut Reader::new(writer.written()));
    let Ok(Frame::Ack(ack)) = frame else {
        panic!("{frame:?}");
    };
    let ranges: Vec<_> = ack
        .ranges()
        .map(|range| (range.start().get(), range.end().get()))
        .collect();
    assert_eq!(ranges, [(4, 4), (0, 1)]);
    // 16 ms since packet 4, in units of 8 µs; later, smaller numbers do not count.
    assert_eq!(ack.delay().get(), 2000);
    let ecn = ack.ecn().expect("counts");
    assert_eq!((ecn.ect0.get(), ecn.ect1.get(), ecn.ce.get()), (2, 0, 1));
    assert_eq!(space.deadline(), None);
}

#[test]
fn rfc9000_13_4_1_duplicates_are_not_counted_twice() {
    let mut space = ReceivedPackets::new(AckPolicy::immediate());
    receive(&mut space, 10, 0, Ecn::Ce);
    assert!(space.is_duplicate(PacketNumber::ZERO));
    receive(&mut space, 20, 0, Ecn::Ce);
    assert_eq!(space.ecn_counts().map(|counts| counts.ce.get()), Some(1));
}

#[test]
fn nothing_received_writes_nothing() {
    let mut space = ReceivedPackets::new(AckPolicy::immediate());
    let mut buffer = [0; 100];
    let mut writer = Writer::new(&mut buffer);
    assert_eq!(space.write_ack(Time::ZERO, &mut writer, 100, 3), Ok(None));
    assert!(writer.written().is_empty());
}
