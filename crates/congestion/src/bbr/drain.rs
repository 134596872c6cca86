//! Drain: giving the queue that Startup built time to empty (draft-ietf-ccwg-bbr-06 §5.3.2).

use lastbyte_units::Time;

use super::{Bbr, constants::DRAIN_ROUNDS, mode::Mode};

impl Bbr {
    /// `EnterDrain()`.
    pub(super) const fn enter_drain(&mut self) {
        self.mode = Mode::Drain;
        self.drain_start_round = self.rounds.count;
    }

    /// `CheckDrainDone()`: until the bytes in flight fit the path, or for three rounds if the path was overestimated.
    pub(super) fn check_drain_done(&mut self, now: Time, in_flight: u64) {
        if self.mode == Mode::Drain
            && (in_flight <= self.in_flight_at(self.bandwidth, 1.0)
                || self.rounds.count > self.drain_start_round.saturating_add(DRAIN_ROUNDS))
        {
            self.start_down(now);
        }
    }
}
