//! Whether the peer is at an address: `PATH_CHALLENGE` out, `PATH_RESPONSE` back (RFC 9000 §8.2).
//!
//! ```text
//!   idle ──── start ────▶ validating ──── a response with the data of any full challenge ──▶ validated
//!                             └────────── 3 × PTO without one ───────────────────────────▶ failed
//! ```
//!
//! Each challenge carries data of its own, and any of them may be answered. The first goes at once, further ones with
//! doubling pauses. Nothing but a response validates: an acknowledgment of the challenge proves nothing (§8.2.2). A response
//! to a challenge in a datagram of less than 1200 bytes shows that the peer is there, but not that the path carries such
//! datagrams: then the path is asked again (§8.2.1).
//!
//! The other direction, the challenges that the peer sends, is a short queue: each is answered once, on its path, and
//! what does not fit the queue is dropped, the oldest first, so that a flood costs no memory. A datagram of answers is padded
//! once a round trip; others in the meantime are as short as they can be, so that a flood costs no bandwidth either.

use core::time::Duration;
use std::collections::VecDeque;

use lastbyte_congestion::{INITIAL_RTT, Rtt, Time};

/// The data of a challenge: unpredictable bytes (RFC 9000 §8.2.1), made by the caller.
pub type ChallengeData = [u8; 8];

/// Where validation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationState {
    /// Not asked for.
    Idle,
    /// Challenges are out.
    Validating,
    /// The peer is there.
    Validated,
    /// No response came in time (RFC 9000 §8.2.4). A new start is possible.
    Failed,
}

/// What a response shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAnswer {
    /// Nothing: no such challenge is out.
    Unknown,
    /// That the peer is there; whether the path carries full datagrams has to be asked again (RFC 9000 §8.2.1).
    Address,
    /// That the path can be used.
    Path,
}

/// The validation of one path.
#[derive(Clone, Debug)]
pub struct PathValidation {
    state: ValidationState,
    /// The data of the challenges sent, of which any may come back, and whether the datagram was full.
    sent: VecDeque<(ChallengeData, bool)>,
    next_challenge_at: Option<Time>,
    pause: Duration,
    abandon_at: Option<Time>,
    /// The peer's challenges, yet to be answered.
    to_answer: VecDeque<ChallengeData>,
    /// When an answer was padded last.
    padded_at: Option<Time>,
}

impl PathValidation {
    /// Challenges sent in one validation at most.
    const CHALLENGES_MAX: usize = 5;
    /// The peer's challenges that wait for an answer at most.
    const ANSWERS_MAX: usize = 4;

    /// Nothing asked, nothing known.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: ValidationState::Idle,
            sent: VecDeque::new(),
            next_challenge_at: None,
            pause: Duration::ZERO,
            abandon_at: None,
            to_answer: VecDeque::new(),
            padded_at: None,
        }
    }

    /// Where validation stands.
    #[must_use]
    pub const fn state(&self) -> ValidationState {
        self.state
    }

    /// Starts validating, or starts again.
    pub fn start(&mut self, now: Time, rtt: &Rtt, max_ack_delay: Duration) {
        // §8.2.4: three times the larger of the PTO and that of a path of which nothing is known. (Not `rtt` alone: the
        // new path may be longer.)
        let unknown = Rtt::new(INITIAL_RTT);
        let timeout = rtt
            .probe_timeout(max_ack_delay)
            .max(unknown.probe_timeout(max_ack_delay));
        self.state = ValidationState::Validating;
        self.sent.clear();
        self.next_challenge_at = Some(now);
        self.pause = rtt.probe_timeout(Duration::ZERO);
        self.abandon_at = Some(now + timeout.saturating_mul(3));
    }

    /// Whether a challenge is to be sent now.
    #[must_use]
    pub fn wants_challenge(&self, now: Time) -> bool {
        self.state == ValidationState::Validating
            && self.next_challenge_at.is_some_and(|at| at <= now)
    }

    /// A challenge with this data leaves, in a datagram of 1200 bytes at least or in a shorter one.
    pub fn on_challenge_sent(&mut self, now: Time, data: ChallengeData, is_full: bool) {
        self.sent.push_back((data, is_full));
        self.next_challenge_at = (self.sent.len() < Self::CHALLENGES_MAX).then(|| now + self.pause);
        self.pause = self.pause.saturating_mul(2);
    }

    /// A response came, on whatever path (RFC 9000 §8.2.3). After [`PathAnswer::Address`] the path is to be asked again, by
    /// [`PathValidation::start`].
    pub fn on_response(&mut self, data: &ChallengeData) -> PathAnswer {
        let mut sent = self.sent.iter();
        match sent.find(|(known, _)| known == data) {
            None => PathAnswer::Unknown,
            Some((_, false)) => PathAnswer::Address,
            Some((_, true)) => {
                self.end(ValidationState::Validated);
                PathAnswer::Path
            }
        }
    }

    /// When a challenge is due or [`PathValidation::on_timeout`] wants to be called. `can_send` tells whether the address
    /// may get a datagram now (RFC 9000 §8.1): if not, a challenge waits for one from there, not for a time.
    #[must_use]
    pub fn deadline(&self, can_send: bool) -> Option<Time> {
        [self.next_challenge_at.filter(|_| can_send), self.abandon_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// Gives up if it is time. Returns whether it is.
    pub fn on_timeout(&mut self, now: Time) -> bool {
        let is_over = self.state == ValidationState::Validating
            && self.abandon_at.is_some_and(|at| at <= now);
        if is_over {
            self.end(ValidationState::Failed);
        }
        is_over
    }

    fn end(&mut self, state: ValidationState) {
        self.state = state;
        self.sent.clear();
        self.next_challenge_at = None;
        self.abandon_at = None;
    }

    /// The peer challenges this path.
    pub fn on_challenge(&mut self, data: ChallengeData) {
        if self.to_answer.len() >= Self::ANSWERS_MAX {
            self.to_answer.pop_front();
        }
        self.to_answer.push_back(data);
    }

    /// The next challenge to answer. Each is answered once (RFC 9000 §8.2.2).
    pub fn take_answer(&mut self) -> Option<ChallengeData> {
        self.to_answer.pop_front()
    }

    /// Whether a datagram of answers is to be padded now, on a path of this round-trip time (RFC 9000 §8.2.2).
    #[must_use]
    pub fn pads_answer(&self, now: Time, round_trip: Duration) -> bool {
        self.padded_at.is_none_or(|at| now >= at + round_trip)
    }

    /// A datagram of answers was padded.
    pub const fn on_answer_padded(&mut self, now: Time) {
        self.padded_at = Some(now);
    }

    /// Whether a challenge waits for its answer.
    #[must_use]
    pub fn has_answer(&self) -> bool {
        !self.to_answer.is_empty()
    }
}

impl Default for PathValidation {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
