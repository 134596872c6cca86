//! Congestion control for QUIC that composes.
//!
//! (Header to be written when all rooms stand.)

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod bandwidth;
pub mod controller;
mod rtt;
pub mod sampler;
pub mod state;
mod time;

pub use bandwidth::Bandwidth;
pub use controller::{Ack, Controller, EcnCe, IdleRestart, Loss, Pacing, Packet, Receipt, Sent};
pub use rtt::{GRANULARITY, INITIAL_RTT, Rtt};
pub use state::{Phase, State, Statistics};
pub use time::Time;
