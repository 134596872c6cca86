//! The network between the two ends.

use core::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use lastbyte_congestion::Time;
use lastbyte_quic::{ack::Ecn, connection::NetworkPath};
use lastbyte_wire::Side;

use super::{Random, plan::PathPlan};

pub(crate) const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);
pub(crate) const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 5000);
/// The client's addresses after moves.
pub(crate) const ELSEWHERE: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 9, 9)), 6000);

/// A datagram in transit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flying {
    arrives: Time,
    order: u64,
    to_server: bool,
    from: SocketAddr,
    to: SocketAddr,
    ecn: u8,
    bytes: Vec<u8>,
}

/// A datagram that arrived.
pub(crate) struct Arrival {
    pub(crate) to: Side,
    /// The path as seen by the receiver.
    pub(crate) path: NetworkPath,
    pub(crate) ecn: Ecn,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) struct Path {
    plan: PathPlan,
    random: Random,
    flying: BinaryHeap<Reverse<Flying>>,
    sent: u64,
    /// When each direction becomes idle, and whether a loss burst is in progress.
    busy_until: [Time; 2],
    is_in_burst: [bool; 2],
    /// Dead addresses of the client.
    dead: Vec<SocketAddr>,
    /// The external address of each client address.
    mappings: BTreeMap<SocketAddr, SocketAddr>,
    remapped_at: Time,
    remappings: u16,
}

impl Path {
    pub(crate) fn new(plan: PathPlan, seed: u64) -> Self {
        Self {
            plan,
            random: Random::new(seed ^ 0x7061_7468),
            flying: BinaryHeap::new(),
            sent: 0,
            busy_until: [Time::ZERO; 2],
            is_in_burst: [false; 2],
            dead: Vec::new(),
            mappings: BTreeMap::new(),
            remapped_at: Time::ZERO,
            remappings: 0,
        }
    }

    pub(crate) fn kill(&mut self, address: SocketAddr) {
        self.dead.push(address);
    }

    pub(crate) fn next_arrival(&self) -> Option<Time> {
        self.flying.peek().map(|Reverse(flying)| flying.arrives)
    }

    /// Sends a datagram.
    pub(crate) fn send(
        &mut self,
        now: Time,
        from: Side,
        path: NetworkPath,
        ecn: Ecn,
        bytes: &[u8],
    ) {
        let to_server = from == Side::Client;
        let has_faults = now < Time::ZERO + self.plan.faults_until;
        let client = if to_server { path.local } else { path.remote };
        if self.dead.contains(&client) || (has_faults && self.drops(now, to_server, bytes.len())) {
            return;
        }
        let (from, to) = if to_server {
            (self.mapped(now, path.local), SERVER)
        } else {
            (SERVER, path.remote)
        };
        // Serialisation, after the queued datagrams.
        let index = usize::from(to_server);
        let start = self.busy_until[index].max(now);
        if start.since(now).as_secs_f64() * self.plan.rate > self.plan.queue {
            return;
        }
        let took = Duration::from_secs_f64(bytes.len() as f64 / self.plan.rate);
        self.busy_until[index] = start + took;
        let plan = self.plan.clone();
        let copies = 1 + u64::from(has_faults && self.random.happens(plan.duplication));
        for _ in 0..copies {
            let mut bytes = bytes.to_vec();
            let mut arrives = start + took + plan.delay;
            if has_faults {
                if let Some(jitter) = plan.jitter {
                    arrives = arrives + jitter.mul_f64(self.random.unit());
                }
                if self.random.happens(plan.corruption) {
                    let at = self.random.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << self.random.below(8);
                }
                if self.random.happens(plan.truncation) {
                    bytes.truncate(1 + self.random.below(bytes.len() as u64) as usize);
                }
            }
            self.sent += 1;
            self.flying.push(Reverse(Flying {
                arrives,
                order: self.sent,
                to_server,
                from,
                to,
                ecn: ecn as u8,
                bytes,
            }));
        }
    }

    fn drops(&mut self, now: Time, to_server: bool, len: usize) -> bool {
        let since = now.since(Time::ZERO);
        let plan = self.plan.clone();
        let in_burst = &mut self.is_in_burst[usize::from(to_server)];
        if let Some((begins, goes_on)) = plan.burst {
            *in_burst = self
                .random
                .happens(if *in_burst { goes_on } else { begins });
            if *in_burst {
                return true;
            }
        }
        self.random.happens(plan.loss)
            || plan
                .mtu
                .is_some_and(|(mtu, from)| since >= from && len > mtu)
            || plan
                .blackout
                .is_some_and(|(from, span)| since >= from && since < from + span)
    }

    /// The external address of a client, which changes at times.
    fn mapped(&mut self, now: Time, local: SocketAddr) -> SocketAddr {
        let Some((every, more_than_port)) = self.plan.rebinding else {
            return local;
        };
        if now >= self.remapped_at + every && now < Time::ZERO + self.plan.faults_until {
            self.remapped_at = now;
            self.remappings += 1;
            self.mappings.clear();
        }
        let host = if more_than_port {
            self.remappings as u8
        } else {
            1
        };
        let outside = SocketAddr::new(
            IpAddr::V4(Ipv4Addr::new(198, 51, 100, host)),
            20_000 + 2 * self.remappings + u16::from(local == ELSEWHERE),
        );
        *self.mappings.entry(local).or_insert(outside)
    }

    /// Returns the next datagram that arrives now.
    pub(crate) fn receive(&mut self) -> Option<Arrival> {
        let Reverse(flying) = self.flying.pop()?;
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
        let local = if flying.to_server || self.plan.rebinding.is_none() {
            flying.to
        } else {
            let inside = self.mappings.iter().find(|(_, seen)| **seen == flying.to);
            *inside?.0
        };
        if self.dead.contains(&local) {
            return None;
        }
        Some(Arrival {
            to: if flying.to_server {
                Side::Server
            } else {
                Side::Client
            },
            path: NetworkPath {
                local,
                remote: flying.from,
            },
            ecn: *ecn.iter().find(|mark| **mark as u8 == flying.ecn)?,
            bytes: flying.bytes,
        })
    }
}
