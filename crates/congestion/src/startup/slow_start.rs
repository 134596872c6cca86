//! Slow start (RFC 9002 §7.3.1): the window grows by the bytes acknowledged, so it doubles each round trip.

use super::{Growth, Startup, StartupAck};

/// Classic slow start: 2× a round trip until the first congestion.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlowStart;

impl Startup for SlowStart {
    fn name(&self) -> &'static str {
        "slow-start"
    }

    fn on_ack(&mut self, ack: &StartupAck<'_>) -> Growth {
        Growth::by(ack.bytes)
    }
}
