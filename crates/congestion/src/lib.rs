//! Congestion control for QUIC that composes.
//!
//! (Header to be written when all rooms stand.)

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod avoidance;
mod bandwidth;
pub mod bbr;
pub mod config;
pub mod controller;
mod pacer;
mod rtt;
pub mod sampler;
mod spec;
pub mod startup;
pub mod state;
mod time;
mod window;

pub use bandwidth::Bandwidth;
pub use bbr::Bbr;
pub use config::{Config, FirstFlight, FirstRecovery, IdlePolicy, Variant, WindowSize};
pub use controller::{Ack, Controller, EcnCe, IdleRestart, Loss, Pacing, Packet, Receipt, Sent};
pub use pacer::Pacer;
pub use rtt::{GRANULARITY, INITIAL_RTT, Rtt};
pub use sampler::{DeliveryRateSampler, DeliverySnapshot, RateSample};
pub use spec::{
    AvoidanceFactory, Environment, Key, Registry, Spec, SpecError, StartupFactory, keys,
};
pub use state::{Phase, State, Statistics};
pub use time::Time;
pub use window::WindowController;
