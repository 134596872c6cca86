//! Prague (draft-briscoe-iccrg-prague-congestion-control-04): scalable congestion control for L4S (RFC 9330, RFC 9331).
//!
//! ```text
//! alpha    += g × (F − alpha)               once a virtual round trip; F = marked / acknowledged bytes in it, g = 1/16
//! marks:      cwnd ×= 1 − alpha / 2         at most once a virtual round trip
//! first mark: cwnd ×= 0.7
//! each ACK:   cwnd += M × (acknowledged − marked) / cwnd × (srtt / rtt_virt)²
//! loss:       cwnd ×= 0.5
//! rtt_virt  = max(srtt, 25 ms) from the 500th round trip on, srtt before
//! ```
//!
//! with M the datagram size. As marks are many and small, the queue stays as short as the bottleneck marks for: about a
//! millisecond with the dual queue of RFC 9332.
//!
//! | rule | section |
//! |---|---|
//! | packets are marked ECT(1) | 2.2; RFC 9331 §4.1 |
//! | marks are counted, as QUIC's ACK frames do | 2.3.1 |
//! | alpha: the moving average of the share of marked bytes, once a round trip | 2.3.2 |
//! | loss: as Reno | 2.4.1 |
//! | one decrease a round trip, in proportion to alpha | 2.4.2 |
//! | growth by unmarked bytes, also in the round trip after a decrease | 2.4.3 |
//! | a flow with a short round trip grows no faster than one with 25 ms, once it has lasted for 500; its round trips for alpha and for decreases are 25 ms, too | 2.4.4 |
//! | the first mark ends startup | 2.4.5 |
//! | pacing at a window a round trip, in bursts of 250 µs or two datagrams, also at the start and after a pause | 2.5.1, 2.5.2 |
//!
//! Sections and rules are those of the editors' source of revision 00 (repository `prague-cc`, 2021), which was read in full. Of
//! revision 04, the abstract was available, and what quiche (pull request 1708) and a port to quinn cite of sections 2.3.2, 2.4.2
//! and 2.4.4; nothing in these differs.
//!
//! Decisions:
//! - A scalable rule may be combined with any startup: `rapid-start:congestion=prague`.
//! - The first mark reduces the window to 0.7 and not by alpha, which says nothing yet. The draft has no rule of its own for it, so
//!   that the start of alpha decides, and 1 makes it a half: a queue of a millisecond is no overflow, and where growth is a packet a
//!   round trip, half a window too little takes 20 s to return over 50 Mb/s and 100 ms. The marks after it go by alpha.
//! - Alpha starts at 1, and is updated from the first mark on, as in Linux (`tcp_prague.c` of the L4S team, `prague_alpha_mode=1`); the
//!   draft names no start. A round trip ends when the smoothed round-trip time has passed, not with the acknowledgment of a packet.
//! - The 500 round trips count from the start of the flow, as in §2.4.4; Linux counts from the end of slow start.
//! - The factor at loss is that of the draft; Apple's implementation follows CUBIC. A loss and a mark in the same round trip are two
//!   reductions, as the draft permits; Linux undoes the first.
//! - Marks are counted in packets by QUIC, and each stands for a full datagram.
//! - What a late timer does not release in time is not made up for, since the bucket holds no more than a burst. `burst=10p` has
//!   the bucket of the other rules, and ten datagrams back to back are marked on a path below 100 Mb/s or so.
//! - With `classic-ecn-fallback=on`, a bottleneck that marks ECT(1) as classic ECN does is detected, and the reduction by marks grows
//!   (RFC 9331 §4.3; `prague/classic.rs`). It is off by default, as in Linux.
//! - Not implemented: windows below two datagrams (§3.5, future work); ECT(0) instead of ECT(1) for private networks (§2.2).

use core::time::Duration;

use lastbyte_units::Time;

use self::classic::ClassicDetector;
use super::{Avoidance, AvoidanceAck, Cause, Marks, Reduction};
use crate::{config::Config, rtt::Rtt};

mod classic;

/// Prague's response to marks, and its additive increase.
#[derive(Clone, Debug)]
pub struct Prague {
    beta: f64,
    /// The moving average of the share of bytes that were marked: 0 to 1.
    alpha: f64,
    /// The present virtual round trip; `None` before the first ACK frame.
    round: Option<Round>,
    /// Virtual round trips so far.
    rounds: u32,
    /// Whether the bottleneck has marked a packet.
    has_marks: bool,
    /// When marks last reduced the window.
    reduced_at: Option<Time>,
    /// The fraction of a byte by which the window exceeds its whole bytes.
    fraction: f64,
    /// Whether the bottleneck looks like classic ECN; `None` if that makes no difference.
    classic: Option<ClassicDetector>,
}

/// Bytes acknowledged in a virtual round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    started_at: Time,
    acked: u64,
    marked: u64,
}

impl Prague {
    /// The factor at a loss.
    pub const BETA: f64 = 0.5;
    /// The factor at the first mark: that of RFC 9438 for congestion.
    const BETA_FIRST_MARK: f64 = 0.7;
    /// The gain of the moving average.
    const GAIN: f64 = 1.0 / 16.0;
    /// The least virtual round-trip time.
    const ROUND_TRIP_MIN: Duration = Duration::from_millis(25);
    /// Round trips before it applies.
    const TRANSITION: u32 = 500;

    /// Prague with the factor of `config` at a loss, by default [`Prague::BETA`], and its key `classic-ecn-fallback`.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            beta: config.beta.unwrap_or(Self::BETA),
            alpha: 1.0,
            round: None,
            rounds: 0,
            has_marks: false,
            reduced_at: None,
            fraction: 0.0,
            classic: config
                .settings
                .switch("classic-ecn-fallback")
                .unwrap_or(false)
                .then(ClassicDetector::default),
        }
    }

    /// `rtt_virt`.
    fn virtual_round_trip(&self, rtt: &Rtt) -> Duration {
        if self.rounds < Self::TRANSITION {
            rtt.smoothed()
        } else {
            rtt.smoothed().max(Self::ROUND_TRIP_MIN)
        }
    }
}

impl Avoidance for Prague {
    fn name(&self) -> &'static str {
        "prague"
    }

    fn beta(&self, cause: Cause) -> f64 {
        match cause {
            Cause::Loss => self.beta,
            Cause::EcnCe if !self.has_marks => Self::BETA_FIRST_MARK,
            Cause::EcnCe => {
                let floor = self.classic.as_ref().map(ClassicDetector::alpha_min);
                1.0 - self.alpha.max(floor.unwrap_or(0.0)) / 2.0
            }
        }
    }

    fn on_congestion(&mut self, reduction: &Reduction<'_>) {
        self.fraction = 0.0;
        if reduction.cause == Cause::EcnCe {
            self.reduced_at = Some(reduction.now);
        }
    }

    fn on_slow_start_exit(&mut self, _: u64) {
        self.fraction = 0.0;
    }

    fn on_ack(&mut self, ack: &AvoidanceAck<'_>) -> u64 {
        let smoothed = ack.rtt.smoothed().as_secs_f64();
        let ratio = smoothed / self.virtual_round_trip(ack.rtt).as_secs_f64();
        let ratio = if ratio.is_finite() { ratio } else { 1.0 };
        let share = ack.bytes as f64 / ack.window.max(1) as f64;
        let step = ack.max_datagram_size as f64 * share.min(1.0) * ratio * ratio;
        let next = ack.window as f64 + self.fraction + step;
        let whole = next as u64;
        self.fraction = (next - whole as f64).clamp(0.0, 1.0);
        whole.max(ack.window)
    }

    fn on_app_limited(&mut self, _: Time) {}

    fn on_persistent_congestion(&mut self) {
        self.fraction = 0.0;
    }

    fn undo(&mut self, _: usize) {}

    fn pacing_gain(&self) -> f64 {
        1.0
    }

    fn is_scalable(&self) -> bool {
        true
    }

    fn responds_to_marks(&self, now: Time, rtt: &Rtt) -> bool {
        let virtual_round_trip = self.virtual_round_trip(rtt);
        self.rounds < Self::TRANSITION
            || self
                .reduced_at
                .is_none_or(|at| now.since(at) >= virtual_round_trip)
    }

    fn on_marks(&mut self, marks: &Marks<'_>) {
        if let Some(classic) = &mut self.classic {
            classic.on_ack(marks.rtt, marks.window);
        }
        self.has_marks |= marks.marked > 0;
        let length = self.virtual_round_trip(marks.rtt);
        let round = self.round.get_or_insert(Round {
            started_at: marks.now,
            acked: 0,
            marked: 0,
        });
        round.acked = round.acked.saturating_add(marks.acked);
        round.marked = round.marked.saturating_add(marks.marked);
        if marks.now.since(round.started_at) < length || round.acked == 0 {
            return;
        }
        let share = (round.marked as f64 / round.acked as f64).min(1.0);
        self.rounds = self.rounds.saturating_add(1);
        if self.has_marks {
            self.alpha += Self::GAIN * (share - self.alpha);
            if let Some(classic) = &mut self.classic {
                classic.on_round(marks.rtt.min());
            }
        }
        *round = Round {
            started_at: marks.now,
            acked: 0,
            marked: 0,
        };
    }
}

#[cfg(test)]
mod tests;
