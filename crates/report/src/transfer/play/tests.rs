use super::*;

/// Where packets are at a moment. Each packet that was sent is at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Sent so far.
    sent: u64,
    /// On the path, and not in the queue of the bottleneck.
    pipe: u64,
    /// In the queue of the bottleneck.
    queue: u64,
    /// Arrived so far.
    arrived: u64,
    /// Dropped by the path so far.
    dropped: u64,
    /// Of those that arrived: the acknowledgment is on its way.
    acks: u64,
}

/// Where packets are at a moment.
fn counts(packets: &[Packet], ms: f64) -> Counts {
    let is_past = |at: Option<f64>| at.is_some_and(|at| at <= ms);
    let mut counts = Counts::default();
    for packet in packets.iter().filter(|packet| packet.sent <= ms) {
        counts.sent += 1;
        if is_past(packet.dropped) {
            counts.dropped += 1;
        } else if is_past(packet.arrived) {
            counts.arrived += 1;
            let is_on_its_way = is_past(packet.ack_sent) && packet.acked.is_some_and(|at| at > ms);
            counts.acks += u64::from(is_on_its_way);
        } else if is_past(packet.queued) && !is_past(packet.served) {
            counts.queue += 1;
        } else {
            counts.pipe += 1;
        }
    }
    counts
}

/// A packet each millisecond; each tenth is dropped.
fn packets(count: u32) -> Vec<Packet> {
    let life = |number| {
        let sent = f64::from(number);
        let is_lost = number % 10 == 9;
        let arrives = |after: f64| (!is_lost).then_some(sent + after);
        Packet {
            sent,
            queued: Some(sent + 5.0),
            served: arrives(12.0),
            dropped: is_lost.then_some(sent + 5.0),
            arrived: arrives(32.0),
            ack_sent: arrives(34.0),
            acked: arrives(60.0),
            lost: is_lost.then_some(sent + 70.0),
        }
    };
    (0..count).map(life).collect()
}

#[test]
fn packets_are_conserved_in_groups_and_alone() {
    let packets = packets(1000);
    for windows in [usize::MAX, 300, 7, 1] {
        let groups = groups(&packets, windows);
        assert_eq!(groups.iter().map(|group| group.count).sum::<u64>(), 1000);
        let in_groups: Vec<Packet> = groups
            .iter()
            .flat_map(|group| vec![group.packet; group.count as usize])
            .collect();
        for tenth in 0..12_000 {
            let at = counts(&in_groups, f64::from(tenth) / 10.0);
            assert_eq!(
                at.sent,
                at.pipe + at.queue + at.arrived + at.dropped,
                "{at:?}"
            );
            assert!(at.acks <= at.arrived);
        }
        let end = counts(&in_groups, 2000.0);
        assert_eq!((end.sent, end.arrived, end.dropped), (1000, 900, 100));
    }
    let at = counts(&packets, 100.0);
    let expected = Counts {
        sent: 101,
        pipe: 23,
        queue: 6,
        arrived: 63,
        dropped: 9,
        acks: 24,
    };
    assert_eq!(at, expected);
}

#[test]
fn the_data_of_a_long_transfer_are_bounded() {
    // 200 MB in packets of 1252 bytes.
    let arm = Arm {
        packets: packets(160_000),
        ..Arm::new("long")
    };
    let text = json(&arm);
    assert!(text.len() < 256_000, "{}", text.len());
    let arm = Arm {
        packets: packets(1000),
        ..Arm::new("short")
    };
    assert!(json(&arm).starts_with("[1,1000,"));
}
