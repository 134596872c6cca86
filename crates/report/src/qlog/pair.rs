//! The files of both ends of a connection, as one arm with the one-way delays of packets.
//!
//! The clocks of two files have nothing in common: [`join`] sets them so that the smallest delays of both directions are equal.
//! Each is half of the smallest sum, which no clock changes; the difference of a delay from the smallest of its direction does not
//! depend on the clocks either, as long as both run at the same speed.

use crate::transfer::{Arm, Point, bounded::Bounded};

/// Packets of a direction whose times are kept; later ones have no one-way delay.
const PACKETS_MAX: usize = 1 << 18;

/// Numbers and times of packets of the application space, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Packets(Vec<(u64, f64)>);

impl Packets {
    pub(super) fn push(&mut self, number: u64, ms: f64) {
        if self.0.len() < PACKETS_MAX {
            self.0.push((number, ms));
        }
    }
}

/// What a file has of its end of a connection, to be joined with that of the other end.
#[derive(Debug, Default)]
pub struct End {
    /// The ID of the connection, the same in both files.
    pub(super) group: Option<String>,
    pub(super) title: String,
    pub(super) is_client: Option<bool>,
    pub(super) sent: Packets,
    pub(super) received: Packets,
}

impl End {
    /// Whether this may be the other end of the same connection.
    fn is_other_end(&self, other: &Self) -> bool {
        let sides = [self.is_client, other.is_client];
        let are_both = sides.contains(&Some(true)) && sides.contains(&Some(false));
        are_both && self.group.is_some() && self.group == other.group
    }
}

/// The indices of ends that belong together, the sender of most bytes first. Simulations with one seed have the same IDs, so that of
/// several the title decides.
pub fn pairs(arms: &[Arm], ends: &[End]) -> Vec<(usize, usize)> {
    let others = |index: usize| {
        let others = ends.iter().enumerate();
        let others = others.filter(move |(_, other)| ends[index].is_other_end(other));
        others.map(|(other, _)| other).collect::<Vec<_>>()
    };
    let mut pairs = Vec::new();
    for (index, end) in ends.iter().enumerate() {
        let same_title = |other: &usize| ends[*other].title == end.title;
        let other = match &others(index)[..] {
            [other] if others(*other).len() == 1 && !are_two_simulations(end, &ends[*other]) => {
                Some(*other)
            }
            several => {
                let mut same = several.iter().copied().filter(same_title);
                same.next().filter(|_| same.next().is_none())
            }
        };
        let receives = |index: usize| arms.get(index).is_none_or(|arm| arm.sent.is_empty());
        if let Some(other) = other.filter(|other| index < *other) {
            let is_first = !receives(index) && (receives(other) || end.is_client == Some(false));
            pairs.push(if is_first {
                (index, other)
            } else {
                (other, index)
            });
        }
    }
    pairs
}

/// Whether these are ends of simulations of different arms, networks, sizes or seeds, which their titles have.
fn are_two_simulations(end: &End, other: &End) -> bool {
    let is_simulated = |end: &End| end.title.contains(", flow ");
    is_simulated(end) && is_simulated(other) && end.title != other.title
}

/// Whether ends without a pair may be of one connection, as of a file that was copied.
pub fn are_left(ends: &[End], pairs: &[(usize, usize)]) -> bool {
    let is_left = |index: usize| {
        !pairs
            .iter()
            .any(|(one, other)| [*one, *other].contains(&index))
    };
    let has_other = |end: &End| ends.iter().any(|other| end.is_other_end(other));
    (0..ends.len()).any(|index| is_left(index) && has_other(&ends[index]))
}

/// The delays of packets between two ends: the time of sending and the delay in ms, each by the clocks of the files.
fn delays(sent: &Packets, received: &Packets) -> Vec<(f64, f64)> {
    let mut sent = sent.0.clone();
    sent.sort_by_key(|(number, _)| *number);
    let found = received.0.iter().filter_map(|(number, arrived)| {
        let at = sent.binary_search_by_key(number, |(number, _)| *number);
        let (_, left) = *sent.get(at.ok()?)?;
        Some((left, arrived - left))
    });
    found.collect()
}

/// Adds to the arm of one end what the file of the other end has: one-way delays, and the bytes received. Returns the smallest delay
/// of each direction in ms; `None` if the files have no packets in common in both directions, or packets that arrive before
/// they leave, whatever the clocks.
pub fn join(arm: &mut Arm, end: &End, peer_arm: &Arm, peer: &End) -> Option<f64> {
    let to_peer = delays(&end.sent, &peer.received);
    let from_peer = delays(&peer.sent, &end.received);
    let least = |delays: &[(f64, f64)]| delays.iter().map(|(_, ms)| *ms).reduce(f64::min);
    let (least_to, least_from) = (least(&to_peer)?, least(&from_peer)?);
    let smallest = f64::midpoint(least_to, least_from);
    if smallest < 0.0 {
        return None;
    }
    // By how much the peer's clock is ahead.
    let ahead = (least_to - least_from) / 2.0;
    let mut series = [Bounded::default(), Bounded::default()];
    for (left, delay) in to_peer {
        series[0].push(left, delay - ahead);
    }
    for (left, delay) in from_peer {
        series[1].push(left - ahead, delay + ahead);
    }
    if end.is_client == Some(true) {
        series.reverse();
    }
    [arm.delay_down, arm.delay_up] = series.map(Bounded::finish);
    let arrived = peer_arm.arrived.iter();
    arm.arrived
        .extend(arrived.map(|point| Point::new(point.ms - ahead, point.value)));
    arm.note = format!("{}; {}", arm.note, peer_arm.note);
    Some(smallest)
}
