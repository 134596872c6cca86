//! A Wi-Fi sender: it contends for the medium, and then transmits what waits as one aggregate (A-MPDU of 802.11n and later).
//!
//! ```text
//! transmission = AIFS + backoff + preamble + bytes / rate + SIFS + Block Ack
//! ```
//!
//! All packets of an aggregate arrive at its end. A lone packet pays for the contention alone, and a full queue shares it among
//! many, so that throughput and bursts grow with the queue, up to two limits: the number of packets that a Block Ack covers
//! (64 in 802.11n and ac), and the longest transmission (5.484 ms, `aPPDUMaxTime`; drivers of Linux stop at about 4 ms).
//! Høiland-Jørgensen et al., "Ending the Anomaly" (USENIX ATC 2017, arXiv:1703.00064), model throughput in the same manner, and found
//! it close to what they measured.
//!
//! | part | time | IEEE 802.11 |
//! |---|---|---|
//! | AIFS | 43 µs | SIFS of 16 µs and three slots of 9 µs: best effort, 5 GHz |
//! | backoff | 0 to 15 slots of 9 µs, uniform | `CWmin` of best effort |
//! | preamble | 40 µs | VHT, one spatial stream |
//! | SIFS, Block Ack | 16 µs + 32 µs | 32 bytes at 24 Mb/s |
//!
//! Limits: the two directions of a path and other stations do not collide with it, as links are independent; what they use of the medium is
//! [`Contention`](crate::Contention). There are no retries, no rate adaptation and no bytes for MAC headers (about 40 a packet: the
//! `overhead` of a network file).

use core::time::Duration;

use lastbyte_units::nanos;

use crate::{
    Rate,
    random::{Component, Random},
    rate::nanos_for,
};

#[cfg(test)]
mod tests;

/// A Wi-Fi sender. See the [module](self) for the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wifi {
    /// The rate at which the data of an aggregate is sent.
    pub rate: Rate,
    /// The most packets of an aggregate. 0 counts as 1.
    pub packets: u16,
    /// The longest data part of a transmission: once it lasts as long, no further packet is added.
    pub airtime: Duration,
}

/// AIFS, preamble, SIFS and Block Ack, in nanoseconds.
const OVERHEAD: u64 = 43_000 + 40_000 + 16_000 + 32_000;
/// A slot, in nanoseconds, and the most slots of backoff.
const SLOT: u64 = 9_000;
const BACKOFF_MAX: u64 = 15;

/// The state of a sender.
#[derive(Debug)]
pub(crate) struct Sender {
    wifi: Wifi,
    random: Random,
    /// Transmissions so far.
    sent: u64,
}

impl Sender {
    pub(crate) const fn new(wifi: Wifi, seed: u64) -> Self {
        Self {
            wifi,
            random: Random::new(seed, Component::Wifi, 0),
            sent: 0,
        }
    }

    /// Whether an aggregate of so many packets and so many nanobits may grow.
    pub(crate) fn takes_more(&self, packets: usize, work: u128) -> bool {
        let budget =
            u128::from(self.wifi.rate.bits_per_second()) * u128::from(nanos(self.wifi.airtime));
        packets < usize::from(self.wifi.packets) && work < budget
    }

    /// The time of the next transmission, in nanoseconds; `None` if it never ends.
    pub(crate) fn transmit(&mut self, work: u128) -> Option<u64> {
        let slots = self.random.up_to(self.sent, BACKOFF_MAX);
        self.sent += 1;
        let (data, _) = nanos_for(work, self.wifi.rate)?;
        Some(data.saturating_add(OVERHEAD + SLOT * slots))
    }
}
