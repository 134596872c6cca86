//! Idle timeout and keep-alive (RFC 9000 §10.1), and when an idle connection frees memory.
//!
//! The timeout is the smaller of the values that both sides advertise, but at least three probe timeouts, so that a few
//! lost packets do not end a connection. It restarts with each packet received, and with the first ack-eliciting packet
//! sent after that (§10.1), but not with further ones, so that a peer that is gone is detected.

use core::time::Duration;

use lastbyte_congestion::Time;

/// Silence of a peer from which data is expected, before the first PING is sent. A NAT that has lost its state delivers nothing of
/// the peer until it has seen a packet of ours.
pub const AWAITING_MIN: Duration = Duration::from_secs(1);

/// Silence of a peer in the middle of its data, in probe timeouts, before a PING is sent: a NAT may have changed the client's
/// address, and the peer's packets go to the previous one until it has seen a packet of ours.
pub const STALLED_TIMEOUTS: u32 = 2;

/// Longest silence between PINGs to a peer from which data is expected.
pub const AWAITING_MAX: Duration = Duration::from_secs(10);

/// The pause after which a connection frees what it can allocate again: longer than most pauses within a page load.
pub const RELEASE_AFTER: Duration = Duration::from_secs(1);

/// The idle timer of a connection.
#[derive(Clone, Debug)]
pub struct IdleTimer {
    /// `None` for no timeout.
    timeout: Option<Duration>,
    keep_alive: Option<Duration>,
    is_awaiting: bool,
    /// Whether the peer has sent something since data is expected, and no PING followed.
    is_receiving: bool,
    /// PINGs sent to a peer from which data is expected, since its last ack-eliciting packet.
    pings: u8,
    restarted_at: Time,
    /// Whether an ack-eliciting packet was sent since the last one received.
    has_sent: bool,
    /// Whether memory was freed since the last packet received.
    has_released: bool,
}

impl IdleTimer {
    /// The timer of a new connection. `local` is our `max_idle_timeout`, zero for none; `keep_alive` is the silence
    /// after which a PING is sent, which is only useful if it is shorter than the timeout.
    #[must_use]
    pub fn new(now: Time, local: Duration, keep_alive: Option<Duration>) -> Self {
        Self {
            timeout: (!local.is_zero()).then_some(local),
            keep_alive,
            is_awaiting: false,
            is_receiving: false,
            pings: 0,
            restarted_at: now,
            has_sent: false,
            has_released: false,
        }
    }

    /// The peer's `max_idle_timeout`, zero for none, is known.
    pub fn on_peer_timeout(&mut self, peer: Duration) {
        if !peer.is_zero() {
            self.timeout = Some(self.timeout.map_or(peer, |local| local.min(peer)));
        }
    }

    /// Sets whether data is expected from the peer. As long as it is, a PING is sent after [`AWAITING_MIN`] without a packet, or a
    /// probe timeout if that is longer, and then after intervals that double up to [`AWAITING_MAX`] until an ack-eliciting packet
    /// arrives; but each after at most a third of the timeout. Where an ack-eliciting packet has arrived, another PING precedes
    /// these, after [`STALLED_TIMEOUTS`]. The connection survives a slow response, a NAT that has lost its state learns where the
    /// client is, and a peer that has lost its own can answer with a stateless reset.
    pub const fn set_awaiting(&mut self, is_awaiting: bool) {
        self.is_awaiting = is_awaiting;
        if !is_awaiting {
            self.is_receiving = false;
            self.pings = 0;
        }
    }

    /// A packet was received and processed.
    pub fn on_received(&mut self, now: Time, is_ack_eliciting: bool) {
        self.restarted_at = now;
        self.has_sent = false;
        self.has_released = false;
        if is_ack_eliciting {
            self.is_receiving = self.is_awaiting;
            self.pings = 0;
        }
    }

    /// The PING that was due ([`IdleTimer::keep_alive_at`]) is being sent.
    pub const fn on_keep_alive(&mut self) {
        if self.is_receiving {
            self.is_receiving = false;
        } else {
            self.pings = self.pings.saturating_add(1);
        }
    }

    /// An ack-eliciting packet was sent.
    pub fn on_ack_eliciting_sent(&mut self, now: Time) {
        if !self.has_sent {
            self.has_sent = true;
            self.restarted_at = now;
        }
    }

    /// When the connection is silently closed (RFC 9000 §10.1); `None` for never. `probe_timeout` is the current one.
    pub fn deadline(&self, probe_timeout: Duration) -> Option<Time> {
        let timeout = self.timeout?.max(probe_timeout.saturating_mul(3));
        Some(self.restarted_at + timeout)
    }

    /// When a PING is due to keep the connection alive (RFC 9000 §10.1.2); `None` for never. `probe_timeout` is the current one.
    pub fn keep_alive_at(&self, probe_timeout: Duration) -> Option<Time> {
        // Not needed while an ack-eliciting packet is in flight.
        if self.has_sent {
            return None;
        }
        let awaiting = self.is_awaiting.then(|| {
            let timeout = self.timeout.unwrap_or(Duration::MAX);
            let pause = if self.is_receiving {
                probe_timeout.saturating_mul(STALLED_TIMEOUTS)
            } else {
                let first = AWAITING_MIN.max(probe_timeout);
                first.saturating_mul(1 << self.pings.min(8))
            };
            pause.min(AWAITING_MAX).min(timeout / 3)
        });
        let pause = [self.keep_alive, awaiting].into_iter().flatten().min()?;
        Some(self.restarted_at + pause)
    }

    /// When memory is to be freed; `None` if it was.
    pub fn release_at(&self) -> Option<Time> {
        (!self.has_released).then_some(self.restarted_at + RELEASE_AFTER)
    }

    /// Memory was freed.
    pub const fn on_released(&mut self) {
        self.has_released = true;
    }
}

#[cfg(test)]
mod tests;
