//! The wall clock, as an argument (RFC 8446 §4.2.11.1, §8.3).
//!
//! Owns the trait of the caller's clock, and an adapter for rustls.
//!
//! Decision: a trait and not a value, since the TLS library needs the time during a handshake. The clocks of all
//! servers that share ticket keys must agree within seconds: 0-RTT is accepted only if the ticket age that the client
//! claims is within 60 s of the age that its server measures.

use std::{fmt, sync::Arc};

use rustls::{pki_types::UnixTime, time_provider::TimeProvider};

use crate::WallTime;

/// A wall clock.
pub trait WallClock: fmt::Debug + Send + Sync {
    /// The current time. If the clock is set forwards or backwards, 0-RTT is refused, or a full handshake results.
    fn now(&self) -> WallTime;
}

/// A clock for rustls.
#[derive(Debug)]
pub(in crate::crypto) struct TlsTime(pub(in crate::crypto) Arc<dyn WallClock>);

impl TimeProvider for TlsTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.0.now().since_unix_epoch()))
    }
}
