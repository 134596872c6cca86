//! The time of day, as an argument (RFC 8446 §4.2.11.1, §8.3).
//!
//! Owns: the trait a caller brings its clock in by, and the same clock in rustls' words. Never: reads a clock itself.
//!
//! Decision: a trait and not a value, since the TLS library asks for the time in the middle of a handshake. The clocks of
//! all servers that share ticket keys have to agree within seconds: 0-RTT is taken only if a client's claim of a ticket's
//! age is within 60 s of what its server measures.

use std::{fmt, sync::Arc};

use rustls::{pki_types::UnixTime, time_provider::TimeProvider};

use crate::WallTime;

/// The time of day.
pub trait WallClock: fmt::Debug + Send + Sync {
    /// What time it is. The clock may be set back and forth; the result is a refusal of 0-RTT, or a full handshake.
    fn now(&self) -> WallTime;
}

/// A clock as rustls wants it.
#[derive(Debug)]
pub(in crate::crypto) struct TlsTime(pub(in crate::crypto) Arc<dyn WallClock>);

impl TimeProvider for TlsTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.0.now().since_unix_epoch()))
    }
}
