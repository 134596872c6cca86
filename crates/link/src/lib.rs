//! Network path emulation as a pure state machine: rate, queue, delay, loss, reordering. All randomness comes from a
//! seed.
//!
//! A [`Link`] is one direction of a path; a path consists of two links, so that each direction has its own rate and
//! delay. Of a packet, the link uses only its size, ECN field and flow; it returns the payload unchanged at the far
//! end. It reads no clock: packets and times go in, packets and deadlines come out. It does not allocate per packet,
//! and it does not panic, whatever its configuration.
//!
//! | component | see |
//! |---|---|
//! | configuration, with an example | [`Config`] |
//! | several hops in series | [`Config::further`], [`Packet::through`] |
//! | silent drop of packets above an MTU | [`BlackHole`] |
//! | token bucket policer | [`Policer`] |
//! | loss: Bernoulli, Gilbert-Elliott, listed packets, bursts at points in time | [`Loss`] |
//! | duplication | [`Config::duplication`] |
//! | queue: drop-tail, `CoDel`, FQ-CoDel, PIE, `DualPI2`, CAKE, ECN marking above a threshold | [`Queue`], [`Limit`] |
//! | rate: constant, stepwise, token bucket, recorded trace | [`Capacity`], [`Schedule`], [`Shaper`], [`Trace`] |
//! | medium in use by others, wake-up of a radio | [`Contention`], [`WakeUp`] |
//! | propagation delay, jitter, path change | [`Config::delay`], [`Jitter`], [`PathChange`] |
//! | reordering | [`Reordering`] |
//! | aggregation | [`Config::release`] |
//! | events and counters | [`Observer`], [`Statistics`] |
//!
//! # Example
//!
//! ```
//! use core::time::Duration;
//! use lastbyte_link::{Capacity, Config, Link, Packet, Rate, Time};
//!
//! let config = Config {
//!     capacity: Capacity::Constant(Rate::from_bits_per_second(12_000_000)), // one 1500-byte packet per millisecond
//!     delay: Duration::from_millis(20),
//!     ..Config::default()
//! };
//! let mut link = Link::new(&config, 1)?;
//! for name in ["first", "second"] {
//!     link.send(Time::ZERO, Packet::new(1500, name), &mut ());
//! }
//! let mut arrivals = Vec::new();
//! while let Some(at) = link.deadline() {
//!     while let Some(delivery) = link.poll(at, &mut ()) {
//!         arrivals.push((delivery.at.as_nanos() / 1_000_000, delivery.packet.payload));
//!     }
//! }
//! assert_eq!(arrivals, [(21, "first"), (22, "second")]);
//! # Ok::<(), lastbyte_link::ConfigError>(())
//! ```
//!
//! # Decisions
//!
//! - A link does its work when it is called and catches up in order of time, so a simulator needs one event per packet.
//!   `next_event` allows observing the queue at exact times; both give the same result.
//! - Each component has its own random numbers, addressed by packet number, so the setting of one does not change the
//!   fate of packets in another.
//! - Hops in series belong to one link, so that each user of links has them without work of its own. A link with one hop
//!   does not pass through the code for several. What happens on the hops happens in order of time.
//! - The packet in service does not count as queued, as with a Linux qdisc, mahimahi and quicly.
//! - Work is counted in nanobits, so a train of packets ends exactly after its bits divided by the rate.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod bottleneck;
mod config;
mod hop;
mod link;
mod loss;
mod observer;
mod packet;
mod policer;
mod propagation;
mod queue;
mod random;
mod rate;
mod schedule;
mod shaper;
mod statistics;
#[cfg(test)]
mod testing;
mod trace;
mod wifi;

pub use access::{Contention, WakeUp};
pub use bottleneck::{Capacity, Departure};
pub use config::{Config, ConfigError, HOPS_MAX};
pub use lastbyte_units::{Rate, Time};
pub use link::{BlackHole, Link};
pub use loss::{Bursts, GilbertElliott, Loss, Spacing};
pub use observer::{Count, DropReason, Event, Observation, Observer};
pub use packet::{Delivery, Ecn, Packet};
pub use policer::Policer;
pub use propagation::{Jitter, PathChange, Reordering, Spread};
pub use queue::{CoDel, DropTail, DualPi2, FqCoDel, Limit, Pie, Queue};
pub use schedule::{Schedule, ScheduleError};
pub use shaper::Shaper;
pub use statistics::Statistics;
pub use trace::{OPPORTUNITY_BYTES, Trace, TraceError};
pub use wifi::Wifi;
