//! Recovery periods (RFC 9002 §7.3.2), and the latest congestion events, each of which can be undone (RFC 9438 §4.9).

use super::{Stage, idle::Windows};
use crate::{avoidance::Cause, history::History};

#[cfg(test)]
mod tests;

/// Which packets the latest congestion event covers, and the events that can still be undone.
#[derive(Debug)]
pub(super) struct Recovery {
    is_active: bool,
    /// Packets with a lower send index were sent before the latest congestion event, and are covered by it.
    end: u64,
    episodes: History<Episode>,
}

/// A congestion event.
#[derive(Clone, Copy, Debug)]
struct Episode {
    /// Losses of packets `since..end` belong to this event.
    since: u64,
    end: u64,
    /// Packets declared lost.
    lost: u64,
    /// Packets of these that arrived after all.
    late: u64,
    /// Whether it may be undone: all its losses are of its own packets, and none was marked.
    is_undoable: bool,
    /// Whether only CE marks were seen so far.
    is_ecn_only: bool,
    /// Whether congestion avoidance was informed of it, and so has something to undo.
    is_avoidance_informed: bool,
    before: Windows,
    stage_before: Stage,
}

/// The state needed to undo a congestion event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// The age to pass to [`Avoidance::undo`](crate::avoidance::Avoidance::undo); `None` if it was not informed.
    pub(super) avoidance_age: Option<usize>,
    /// The window and the stage to restore; `None` if another event has occurred since, which then holds them.
    pub(super) to: Option<(Windows, Stage)>,
}

impl Recovery {
    pub(super) const fn new() -> Self {
        Self {
            is_active: false,
            end: 0,
            episodes: History::new(),
        }
    }

    /// Whether a recovery period lasts.
    pub(super) const fn is_active(&self) -> bool {
        self.is_active
    }

    /// Whether the packet was sent before the latest congestion event, which therefore covers its loss.
    pub(super) const fn answers(&self, send_index: u64) -> bool {
        send_index < self.end
    }

    /// A congestion event: all packets below `next` were sent before it.
    pub(super) fn begin(&mut self, cause: Cause, next: u64, before: Windows, stage_before: Stage) {
        self.episodes.push(Episode {
            since: self.end,
            end: next,
            lost: 0,
            late: 0,
            is_undoable: cause == Cause::Loss,
            is_ecn_only: cause == Cause::EcnCe,
            is_avoidance_informed: false,
            before,
            stage_before,
        });
        self.end = next;
        self.is_active = true;
    }

    /// A packet sent since the latest congestion event was acknowledged.
    pub(super) const fn finish(&mut self) {
        self.is_active = false;
    }

    /// Persistent congestion: nothing can be undone any more.
    pub(super) fn forget(&mut self) {
        self.is_active = false;
        self.episodes = History::new();
    }

    /// Whether the latest congestion event is the one that ended startup.
    pub(super) fn is_first(&self) -> bool {
        self.episodes
            .newest()
            .is_some_and(|episode| episode.stage_before != Stage::Found)
    }

    /// Congestion avoidance was informed of the latest event.
    pub(super) fn on_avoidance_informed(&mut self) {
        if let Some(episode) = self.episodes.newest_mut() {
            episode.is_avoidance_informed = true;
        }
    }

    /// A packet was lost that an earlier event covers.
    pub(super) fn on_answered_loss(&mut self, send_index: u64) {
        if let Some(age) = self.age_of(send_index)
            && let Some(episode) = self.episodes.get_mut(age)
        {
            episode.lost = episode.lost.saturating_add(1);
        }
    }

    /// A batch of losses ends, of which the latest event covers `packets`. Returns whether that event had seen only CE
    /// marks so far.
    pub(super) fn on_losses(&mut self, packets: u64) -> bool {
        self.episodes.newest_mut().is_some_and(|episode| {
            episode.lost = episode.lost.saturating_add(packets);
            core::mem::take(&mut episode.is_ecn_only)
        })
    }

    /// A packet that the latest event covers was marked, so the event was not spurious.
    pub(super) fn on_answered_mark(&mut self) {
        if let Some(episode) = self.episodes.newest_mut() {
            episode.is_undoable = false;
        }
    }

    /// A packet declared lost arrived after all. Returns the age of its event, if all of that event's losses have.
    pub(super) fn on_late(&mut self, send_index: u64) -> Option<usize> {
        let age = self.age_of(send_index)?;
        let episode = self.episodes.get_mut(age)?;
        episode.late = episode.late.saturating_add(1);
        (episode.is_undoable && episode.late >= episode.lost).then_some(age)
    }

    /// Undoes the event of this age. If another has occurred since, undoing that one reverts both. The latest is kept
    /// if `window` has grown past its value before the event (RFC 9438 §4.9.2); then nothing changes.
    pub(super) fn undo(&mut self, age: usize, window: u64) -> Option<Undo> {
        let informed_since = self
            .episodes
            .iter()
            .take(age)
            .filter(|episode| episode.is_avoidance_informed)
            .count();
        let episode = self.episodes.remove(age)?;
        let avoidance_age = episode.is_avoidance_informed.then_some(informed_since);
        let Some(next) = age.checked_sub(1) else {
            if window >= episode.before.window {
                return None;
            }
            self.is_active = false;
            self.end = episode.since;
            return Some(Undo {
                avoidance_age,
                to: Some((episode.before, episode.stage_before)),
            });
        };
        let next = self.episodes.get_mut(next)?;
        next.before = episode.before;
        next.stage_before = episode.stage_before;
        next.is_avoidance_informed |= episode.is_avoidance_informed;
        Some(Undo {
            avoidance_age,
            to: None,
        })
    }

    /// The age of the congestion event that covers a packet, if it can still be undone.
    fn age_of(&self, send_index: u64) -> Option<usize> {
        self.episodes
            .position(|episode| (episode.since..episode.end).contains(&send_index))
    }
}
