//! What the page needs to play a transfer: the life of each packet, or of groups of packets if there are many.
//!
//! A group is of packets that follow each other and have the same fate, and has the times of the last of them. A window of
//! consecutive packets has at most one group for each fate, and the number of windows is bounded, so the size of the data does
//! not depend on that of the transfer.

use core::fmt::Write;

use super::{Arm, pack};

#[cfg(test)]
mod tests;

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
