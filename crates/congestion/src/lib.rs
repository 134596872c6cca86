//! Congestion control for QUIC that composes: any startup with any avoidance, BBRv3, C4, and a pacer.
//!
//! Everything is a pure state machine. Time is an argument, and so is the seed of the little randomness; nothing is
//! allocated after construction; no input causes a panic. The crate deals with windows, rates and round trips, not with
//! packets or sockets, so any QUIC stack can use it.
//!
//! | to | see |
//! |---|---|
//! | choose a controller by name | [`Registry::parse`], [`ControllerFactory::build`] |
//! | drive one from a transport | [`controller`]: what to call, and when |
//! | pace by it | [`Pacer`] |
//! | provide the RTT it needs | [`Rtt`] |
//! | log or draw it | [`State`] |
//! | write a startup or avoidance | [`startup`], with an example; [`avoidance`] |
//! | add a whole controller | [`Registry::add_controller`], or [`ControllerFactory`] without a name |
//! | know what an algorithm does exactly | the header of its file: formulas, constants, sources, decisions |
//!
//! # Example
//!
//! A sender with unlimited data, and a path of 40 ms without loss:
//!
//! ```
//! use core::time::Duration;
//! use lastbyte_congestion::{Ack, ControllerFactory, Environment, Packet, Rtt, Sent, Spec, Time};
//!
//! let spec: Spec = "rapid-start:congestion=cubic,initial-window=30p".parse()?;
//! let mut controller = spec.build(&Environment { max_datagram_size: 1200, seed: 1 });
//! let mut rtt = Rtt::default();
//! let mut now = Time::ZERO;
//! rtt.update(now, Duration::from_millis(40), Duration::ZERO, None); // the handshake took a sample
//!
//! for round_trip in 0..3 {
//!     let mut in_flight = 0;
//!     let mut packets = Vec::new();
//!     while in_flight + 1200 <= controller.window() {
//!         in_flight += 1200;
//!         let receipt = controller.on_sent(&Sent { now, bytes: 1200, in_flight, rtt: &rtt });
//!         packets.push(Packet { bytes: 1200, sent_at: now, receipt });
//!     }
//!     now = now + Duration::from_millis(40);
//!     rtt.update(now, Duration::from_millis(40), Duration::ZERO, None);
//!     for packet in packets {
//!         in_flight -= packet.bytes;
//!         controller.on_packet_acked(now, &packet);
//!     }
//!     controller.on_ack(&Ack { now, in_flight, rtt: &rtt, has_rtt_sample: true });
//! }
//! // A jump to 60 datagrams, and three times as many in each round trip as in the one before.
//! assert_eq!(controller.window() / 1200, 60 * 3 * 3 * 3);
//! # Ok::<(), lastbyte_congestion::SpecError>(())
//! ```
//!
//! # Decisions
//!
//! - A controller is informed of packets and of ACK frames: each packet acknowledged or lost is reported, then one call
//!   closes the frame. Frames alone do not show which bytes were sent before recovery began; packets alone do not show
//!   that a loss and an acknowledgment belong together (RFC 9002, Appendix A.7).
//! - Packets are ordered by a receipt from the controller, not by time or packet number: packets of a batch have the
//!   same time, and each packet number space has its own numbers. The receipt also carries the state of the
//!   delivery-rate sampler, so no controller keeps a table of packets.
//! - The transport counts the bytes in flight, and reports when it has no data to send.
//! - Startup and avoidance are trait objects in one `WindowController`. First flight, growth and first recovery are
//!   independent choices, and a preset is a row of a table. A type for each combination would grow as a product.
//! - Each rule stores what it needs to undo a congestion event (RFC 9438 §4.9); nothing is cloned.
//! - SUSS is missing: it needs the dispersion of ACK trains and a timer.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod avoidance;
mod bandwidth;
pub mod bbr;
pub mod c4;
pub mod config;
pub mod controller;
mod history;
mod pacer;
mod rtt;
pub mod sampler;
mod saved_path;
mod spec;
pub mod startup;
pub mod state;
mod window;

pub use bandwidth::Bandwidth;
pub use bbr::Bbr;
pub use c4::C4;
pub use config::{AppLimited, Config, FirstFlight, FirstRecovery, IdlePolicy, Variant, WindowSize};
pub use controller::{
    Ack, Controller, ControllerFactory, EcnCe, Environment, IdleRestart, Loss, Pacing, Packet,
    Receipt, Sent,
};
pub use lastbyte_units::Time;
pub use pacer::Pacer;
pub use rtt::{GRANULARITY, INITIAL_RTT, Rtt};
pub use sampler::{DeliveryRateSampler, DeliverySnapshot, RateSample};
pub use saved_path::SavedPath;
pub use spec::{Key, Registry, Settings, Spec, SpecError, Value};
pub use state::{Phase, State, Statistics};
pub use window::WindowController;
