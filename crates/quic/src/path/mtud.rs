//! Path MTU discovery (RFC 9000 §14.3, RFC 8899: DPLPMTUD) and black hole detection.
//!
//! ```text
//!   base ──── start ────▶ searching ──── no size left to try ────▶ complete ──── 1 or 10 min ────▶ searching
//!                                                                   │    ▲
//!                full-size packets are lost, small ones arrive      ▼    │ the previous size is lost as well
//!                                                      base size, verifying ──── it arrives ────▶ searching
//! ```
//!
//! The search tries the sizes that are common on paths, largest first where one is likely, then bisects the rest. A
//! size is rejected after three lost probes (`MAX_PROBES`); the loss of a probe is not a congestion signal. One probe
//! is in flight at a time. QUIC acknowledges packets, so there is no confirmation timer, and loss detection replaces
//! the probe timer (RFC 8899 §5.1.1).
//!
//! Random loss looks like a black hole where full-size packets are few: those that a probe timeout follows, in small
//! datagrams, are lost in a row. So the previous size is probed at once, and is used again if it arrives. Until then
//! datagrams have the base size, so that a transfer through a black hole continues.
//!
//! Decision: the first probe of a search waits until there is data for a datagram of the current size. A connection that
//! sends less gains nothing from a larger size, and the probe would be a third of its datagrams.

use core::time::Duration;

use lastbyte_congestion::Time;

/// `BASE_PLPMTU` for QUIC, RFC 9000 §14: every path carries it.
const BASE: u16 = 1200;
/// `MAX_PROBES`, RFC 8899 §5.1.2.
const PROBES_MAX: u32 = 3;
/// `PMTU_RAISE_TIMER`, RFC 8899 §5.1.1.
const RAISE_AFTER: Duration = Duration::from_secs(600);
/// The search ends when less than this is left to gain, which would not pay for the probes.
const STEP_MIN: u16 = 16;
/// A black hole is detected after this many consecutive losses of packets above the base size, with none of that size
/// acknowledged in between. Packets sent before a loss was detected count with it: a queue that overflows loses many in
/// a row too.
const BLACK_HOLE_LOSSES: u32 = 2;
/// The previous size is given up after this many lost probes: one time in 16 000 at 20 % loss.
const VERIFYING_PROBES_MAX: u32 = 6;
/// When to search again after a black hole: the detection may have been wrong, or the path may have changed.
const RAISE_AFTER_BLACK_HOLE: Duration = Duration::from_secs(60);
/// Common UDP payload sizes: Ethernet with IPv4 and IPv6, and `PPPoE`; jumbo frames.
const LIKELY: [u16; 5] = [8952, 8932, 1472, 1452, 1444];

/// Configuration of the datagram size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MtuConfig {
    /// The initial datagram size, in bytes of UDP payload. 1200 is safe on any path; with more, handshakes fail on
    /// paths that do not carry it. Less than 1200 counts as 1200.
    pub initial: u16,
    /// The largest size to probe. Default: 1472, Ethernet with IPv4.
    pub maximum: u16,
}

impl Default for MtuConfig {
    fn default() -> Self {
        Self {
            initial: BASE,
            maximum: 1472,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not started: the handshake is not done.
    Base,
    Searching,
    /// The only candidate is the size that was in use before what looked like a black hole.
    Verifying,
    /// The time at which the next search starts.
    Complete(Time),
}

/// The datagram size of one path.
#[derive(Clone, Debug)]
pub struct MtuDiscovery {
    phase: Phase,
    current: u16,
    maximum: u16,
    /// The smallest size known to be too large, or one more than the maximum.
    refused: u16,
    /// The size being probed, and how often it was lost.
    probe: Option<(u16, u32)>,
    is_probe_out: bool,
    /// Whether there was data for a datagram of the current size since the search began.
    has_filled: bool,
    large_losses: u32,
    /// When the last loss was detected. Packets sent before it carry no new information.
    large_loss_at: Option<Time>,
}

impl MtuDiscovery {
    /// Starts from the configured size.
    #[must_use]
    pub fn new(config: MtuConfig) -> Self {
        let current = config.initial.max(BASE);
        Self {
            phase: Phase::Base,
            current,
            maximum: config.maximum.max(current),
            refused: config.maximum.max(current).saturating_add(1),
            probe: None,
            is_probe_out: false,
            has_filled: false,
            large_losses: 0,
            large_loss_at: None,
        }
    }

    /// The size of datagrams that must arrive, in bytes of UDP payload: every path carries it.
    pub const fn safe(&self) -> u16 {
        BASE
    }

    /// The datagram size, in bytes of UDP payload.
    pub const fn current(&self) -> u16 {
        self.current
    }

    /// The peer accepts datagrams of `max_udp_payload_size` bytes (RFC 9000 §18.2).
    pub fn limit(&mut self, max_udp_payload_size: u64) {
        let limit = u16::try_from(max_udp_payload_size)
            .unwrap_or(u16::MAX)
            .max(BASE);
        self.maximum = self.maximum.min(limit);
        self.current = self.current.min(limit);
    }

    /// The handshake is done, and the peer accepts datagrams of `max_udp_payload_size` bytes: starts the search.
    pub fn start(&mut self, max_udp_payload_size: u64) {
        self.limit(max_udp_payload_size);
        self.search();
    }

    fn search(&mut self) {
        self.phase = Phase::Searching;
        self.refused = self.maximum.saturating_add(1);
        self.probe = None;
        self.has_filled = false;
    }

    /// Whether the search waits for [`Self::on_full_datagram`].
    pub fn waits_for_data(&self) -> bool {
        self.phase == Phase::Searching && !self.has_filled
    }

    /// A datagram of the current size left, or there is data for one.
    pub const fn on_full_datagram(&mut self) {
        self.has_filled = true;
    }

    /// The size of the probe to send now, if any. It is sent in a datagram of its own, when one fits the window, and
    /// not during the first flight.
    pub fn next_probe(&mut self, now: Time) -> Option<u16> {
        if let Phase::Complete(until) = self.phase
            && until <= now
            && self.current < self.maximum
        {
            self.search();
        }
        if self.is_probe_out {
            return None;
        }
        match self.phase {
            Phase::Searching if self.has_filled => {
                if self.probe.is_none() {
                    self.probe = self.candidate().map(|size| (size, 0));
                }
                if self.probe.is_none() {
                    self.phase = Phase::Complete(now + RAISE_AFTER);
                }
            }
            Phase::Verifying if self.probe.is_none() => {
                self.phase = Phase::Complete(now + RAISE_AFTER_BLACK_HOLE);
            }
            Phase::Verifying => {}
            _ => return None,
        }
        self.probe.map(|(size, _)| size)
    }

    /// The next size to try, between what passes and what does not.
    fn candidate(&self) -> Option<u16> {
        let (above, below) = (self.current, self.refused);
        if below.saturating_sub(above) <= STEP_MIN && below <= self.maximum {
            return None;
        }
        if self.maximum > above && below > self.maximum {
            // Nothing rejected yet: the largest first, since most paths carry what their ends do.
            return Some(self.maximum);
        }
        LIKELY
            .into_iter()
            .find(|size| (above + 1..below).contains(size))
            .or_else(|| {
                let middle = above + below.saturating_sub(above) / 2;
                (middle > above && below.saturating_sub(above) > STEP_MIN).then_some(middle)
            })
    }

    /// The probe was sent.
    pub fn on_probe_sent(&mut self) {
        self.is_probe_out = true;
    }

    /// The probe was acknowledged. Returns the new size.
    pub fn on_probe_acked(&mut self) -> Option<u16> {
        self.is_probe_out = false;
        let (size, _) = self.probe.take()?;
        self.large_losses = 0;
        self.current = self.current.max(size);
        if self.phase == Phase::Verifying {
            self.phase = Phase::Searching;
        }
        Some(self.current)
    }

    /// The peer's port changed: a probe in flight is sent again, and packets sent before carry no information.
    pub const fn on_rebinding(&mut self) {
        self.is_probe_out = false;
    }

    /// The probe was lost.
    pub fn on_probe_lost(&mut self) {
        self.is_probe_out = false;
        let most = match self.phase {
            Phase::Verifying => VERIFYING_PROBES_MAX,
            _ => PROBES_MAX,
        };
        if let Some((size, losses)) = &mut self.probe {
            *losses += 1;
            if *losses >= most {
                self.refused = self.refused.min(*size);
                self.probe = None;
            }
        }
    }

    /// A packet other than a probe was acknowledged.
    pub fn on_packet_acked(&mut self, bytes: u16) {
        if bytes > BASE {
            self.large_losses = 0;
        }
    }

    /// A packet other than a probe, sent at `sent_at`, was lost. Returns the base size if that indicates a black hole: it
    /// is used until a probe of the present size arrives. If none does, the search restarts after a minute.
    pub fn on_packet_lost(&mut self, now: Time, sent_at: Time, bytes: u16) -> Option<u16> {
        if bytes <= BASE || self.current <= BASE {
            return None;
        }
        if self.large_loss_at.is_some_and(|found| sent_at <= found) {
            return None;
        }
        self.large_loss_at = Some(now);
        self.large_losses += 1;
        if self.large_losses < BLACK_HOLE_LOSSES {
            return None;
        }
        self.large_losses = 0;
        self.probe = Some((self.current, 0));
        self.current = BASE;
        self.phase = Phase::Verifying;
        Some(BASE)
    }
}

#[cfg(test)]
mod tests;
