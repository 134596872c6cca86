//! ECN validation of a path (RFC 9000 §13.4.2, Appendix A.4).
//!
//! ```text
//!   testing ──── enough marked packets sent ────▶ unknown ──── valid counts ────▶ capable
//!      └───────── valid counts ──────────────────────────────────────────────────▶ ┘
//!   any ──── invalid counts, or all marked packets lost ────▶ failed (no marks from then on)
//! ```
//!
//! Counts are per packet number space, and checked only for ACK frames that raise the largest acknowledged number,
//! since frames may arrive out of order.

use lastbyte_wire::frame::EcnCounts;

use crate::ack::Ecn;

/// Marked packets sent before validation completes.
const TESTING_PACKETS: u64 = 10;

/// The state of ECN validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnState {
    /// Marking the first packets.
    Testing,
    /// Enough were marked: no more until counts arrive.
    Unknown,
    /// Marks arrive and are reported.
    Capable,
    /// They do not, or are reported incorrectly.
    Failed,
}

/// ECN of one path.
#[derive(Clone, Debug)]
pub struct EcnValidation {
    state: EcnState,
    /// Disabled on all paths.
    is_disabled: bool,
    /// What packets are marked with: ECT(0) or ECT(1).
    mark: Ecn,
    marked_sent: u64,
    marked_lost: u64,
    marked_acked: u64,
    /// The counts last reported by the peer, for each packet number space.
    reported: [Reported; SPACES],
    /// Marked packets sent in each packet number space.
    sent: [u64; SPACES],
}

const SPACES: usize = 3;

#[derive(Clone, Copy, Debug, Default)]
struct Reported {
    marked: u64,
    ce: u64,
}

impl EcnValidation {
    /// A path on which ECN will be tested, with ECT(0).
    #[must_use]
    pub fn new() -> Self {
        Self::with_state(EcnState::Testing, false)
    }

    /// A path on which ECN will be tested, with ECT(1) if the response to marks is scalable (RFC 9331 §4.1).
    #[must_use]
    pub fn for_response(is_scalable: bool) -> Self {
        Self {
            mark: if is_scalable { Ecn::Ect1 } else { Ecn::Ect0 },
            ..Self::new()
        }
    }

    /// A path on which ECN is not used.
    #[must_use]
    pub fn disabled() -> Self {
        Self::with_state(EcnState::Failed, true)
    }

    fn with_state(state: EcnState, is_disabled: bool) -> Self {
        Self {
            state,
            is_disabled,
            mark: Ecn::Ect0,
            marked_sent: 0,
            marked_lost: 0,
            marked_acked: 0,
            reported: [Reported::default(); SPACES],
            sent: [0; SPACES],
        }
    }

    /// The connection uses another path, whose ECN support is unknown (RFC 9000 §13.4.2). Counts continue.
    pub fn on_new_path(&mut self) {
        if self.is_disabled {
            return;
        }
        self.state = EcnState::Testing;
        self.marked_sent = 0;
        self.marked_lost = 0;
        self.marked_acked = 0;
    }

    /// The state of validation.
    pub const fn state(&self) -> EcnState {
        self.state
    }

    /// The mark for the next packet.
    pub const fn codepoint(&self) -> Ecn {
        match self.state {
            EcnState::Testing | EcnState::Capable => self.mark,
            EcnState::Unknown | EcnState::Failed => Ecn::NotEct,
        }
    }

    /// Packets that the peer reported as received with ECT(0), with ECT(1) and with CE, in all spaces. Of the first two, one is
    /// never sent.
    pub fn reported(&self) -> [u64; 3] {
        let each = self.reported.iter();
        let (marked, ce) = each.fold((0, 0), |(marked, ce), one| {
            (marked + one.marked, ce + one.ce)
        });
        match self.mark {
            Ecn::Ect1 => [0, marked, ce],
            _ => [marked, 0, ce],
        }
    }

    /// A packet with this mark was sent in the space with this index.
    pub fn on_sent(&mut self, space: usize, codepoint: Ecn) {
        if codepoint != self.mark {
            return;
        }
        self.marked_sent = self.marked_sent.saturating_add(1);
        if let Some(sent) = self.sent.get_mut(space) {
            *sent = sent.saturating_add(1);
        }
        if self.state == EcnState::Testing && self.marked_sent >= TESTING_PACKETS {
            self.state = EcnState::Unknown;
        }
    }

    /// A marked packet was declared lost.
    pub fn on_marked_lost(&mut self) {
        self.marked_lost = self.marked_lost.saturating_add(1);
        let all_are_lost = self.marked_acked == 0 && self.marked_lost >= self.marked_sent;
        if self.state == EcnState::Unknown && all_are_lost {
            self.state = EcnState::Failed;
        }
    }

    /// An ACK frame raised the largest acknowledged number of the space; it newly acknowledged this many marked packets.
    /// Returns the increase of the CE count.
    pub fn on_ack(
        &mut self,
        space: usize,
        newly_acked_marked: u64,
        counts: Option<&EcnCounts>,
    ) -> u64 {
        self.marked_acked = self.marked_acked.saturating_add(newly_acked_marked);
        if self.state == EcnState::Failed {
            return 0;
        }
        let (Some(reported), Some(sent)) = (self.reported.get_mut(space), self.sent.get(space))
        else {
            return 0;
        };
        let Some(counts) = counts else {
            if newly_acked_marked > 0 {
                self.state = EcnState::Failed;
            }
            return 0;
        };
        let (marked, unsent) = match self.mark {
            Ecn::Ect1 => (counts.ect1.get(), counts.ect0.get()),
            _ => (counts.ect0.get(), counts.ect1.get()),
        };
        let ce = counts.ce.get();
        let (Some(marked_rise), Some(ce_rise)) = (
            marked.checked_sub(reported.marked),
            ce.checked_sub(reported.ce),
        ) else {
            self.state = EcnState::Failed;
            return 0;
        };
        let is_short = marked_rise.saturating_add(ce_rise) < newly_acked_marked;
        // The other mark is never sent; together the counts cannot exceed what was sent.
        let is_too_much = unsent > 0 || marked.saturating_add(ce) > *sent;
        if is_short || is_too_much {
            self.state = EcnState::Failed;
            return 0;
        }
        *reported = Reported { marked, ce };
        if newly_acked_marked > 0 {
            self.state = EcnState::Capable;
        }
        ce_rise
    }
}

impl Default for EcnValidation {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
