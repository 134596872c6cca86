//! What the page needs to play a transfer: the life of each packet, or of groups of packets if there are many.
//!
//! A group is of packets that follow each other and have the same fate, and has the times of the last of them. A window of
//! consecutive packets has at most one group for each fate, and the number of windows is bounded, so the size of the data does
//! not depend on that of the transfer.

use core::fmt::Write;

use super::{Arm, pack};

/// Windows of consecutive packets.
const WINDOWS: usize = 4096;

/// The life of a packet of the sender, in milliseconds since the client's first datagram. A time that never comes is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Packet {
    /// When it was sent.
    pub sent: f64,
    /// When it entered the queue of the bottleneck.
    pub queued: Option<f64>,
    /// When it left that queue.
    pub served: Option<f64>,
    /// When the path dropped it.
    pub dropped: Option<f64>,
    /// When it arrived.
    pub arrived: Option<f64>,
    /// When the receiver sent the acknowledgment.
    pub ack_sent: Option<f64>,
    /// When that arrived.
    pub acked: Option<f64>,
    /// When it was declared lost.
    pub lost: Option<f64>,
}

/// Where packets are at a moment. Each packet that was sent is at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sent so far.
    pub sent: u64,
    /// On the path, and not in the queue of the bottleneck.
    pub pipe: u64,
    /// In the queue of the bottleneck.
    pub queue: u64,
    /// Arrived so far.
    pub arrived: u64,
    /// Dropped by the path so far.
    pub dropped: u64,
    /// Of those that arrived: the acknowledgment is on its way.
    pub acks: u64,
}

/// Where packets are at a moment.
#[must_use]
pub fn counts(packets: &[Packet], ms: f64) -> Counts {
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

/// Packets with the same fate.
#[derive(Clone, Copy, Debug)]
struct Group {
    count: u64,
    packet: Packet,
}

/// Groups of at most as many packets as leave this many windows.
fn groups(packets: &[Packet], windows: usize) -> Vec<Group> {
    let size = packets.len().div_ceil(windows).max(1);
    let mut groups: Vec<Group> = Vec::new();
    for window in packets.chunks(size) {
        let first = groups.len();
        for packet in window {
            let fate = |packet: &Packet| {
                let Packet {
                    queued,
                    served,
                    dropped,
                    arrived,
                    acked,
                    lost,
                    ..
                } = packet;
                [queued, served, dropped, arrived, acked, lost].map(Option::is_some)
            };
            let known = groups[first..]
                .iter_mut()
                .find(|group| fate(&group.packet) == fate(packet));
            if let Some(group) = known {
                *group = Group {
                    count: group.count + 1,
                    packet: *packet,
                };
            } else {
                groups.push(Group {
                    count: 1,
                    packet: *packet,
                });
            }
        }
    }
    groups
}

/// The packets of an arm for the page, as JSON: the size of the largest group, the number of groups, and the groups as varints in
/// base64. A group is its count, the time it was sent since the group before, and for each other time 0 if it never comes, else
/// one more than the time since the one that it follows, all in microseconds.
pub(super) fn json(arm: &Arm) -> String {
    let groups = groups(&arm.packets, WINDOWS);
    let mut bytes = Vec::new();
    let mut largest = 0;
    let whole = |ms: f64| pack::whole(ms / 0.001);
    let mut before = 0;
    for Group { count, packet } in &groups {
        largest = largest.max(*count);
        let sent = whole(packet.sent);
        pack::varint(&mut bytes, count.cast_signed());
        pack::varint(&mut bytes, sent - before);
        before = sent;
        let mut add = |at: Option<f64>, since: Option<f64>| {
            let since = since.map_or(sent, whole);
            pack::varint(
                &mut bytes,
                at.map_or(0, |at| 1 + (whole(at) - since).max(0)),
            );
        };
        add(packet.queued, None);
        add(packet.served, packet.queued);
        add(packet.dropped, None);
        add(packet.arrived, packet.served);
        add(packet.ack_sent, packet.arrived);
        add(packet.acked, packet.ack_sent);
        add(packet.lost, None);
    }
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = write!(
        text,
        "[{largest},{},\"{}\"]",
        groups.len(),
        pack::base64(&bytes)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
