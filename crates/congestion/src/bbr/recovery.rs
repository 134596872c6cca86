//! Loss episodes, undoing spurious ones, and persistent congestion (draft-ietf-ccwg-bbr-06 §5.5.11, §5.6.4.4).
//!
//! An episode starts with the loss (or CE mark) of a packet sent after the previous one started, as a congestion event
//! of RFC 9002 §7.3.2 does, and recovery lasts until a packet sent after its start is acknowledged. The window and the
//! bounds are saved when it starts. Every packet lost in it is counted; if all of them are acknowledged later, the
//! episode is undone: the bounds are restored at least to their saved values, and a probe that the losses had ended
//! starts again. If another has started since, that one inherits the saved values, so that undoing it reverts both.

use super::{Bbr, mode::Mode, model::Bounds};
use crate::{bandwidth::Bandwidth, controller::Loss, history::History};

/// `BBR.undo_state`: the probe that an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undo {
    Startup,
    ProbeBandwidthUp,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Recovery {
    /// Whether no packet sent after the latest episode started has been acknowledged (`InLossRecovery()`).
    is_active: bool,
    /// The send index of the first packet sent after the latest episode started.
    start: u64,
    /// `BBR.prior_cwnd`: the last window that neither recovery nor `ProbeRTT` had reduced.
    prior_window: u64,
    /// The latest episodes, until they are undone.
    episodes: History<Episode>,
}

#[derive(Clone, Debug)]
struct Episode {
    /// Losses of packets `since..end` belong to this episode.
    since: u64,
    end: u64,
    /// Packets lost and not acknowledged since.
    outstanding: u64,
    /// Whether packets were marked CE: then congestion is certain, however many losses were spurious.
    is_marked: bool,
    /// The state before the episode.
    bounds: Bounds,
    undo: Option<Undo>,
}

impl Recovery {
    /// The current episode has ended a probe.
    pub(super) fn on_probe_ended(&mut self, probe: Undo) {
        if let Some(episode) = self.episodes.newest_mut() {
            episode.undo = episode.undo.or(Some(probe));
        }
    }

    /// The age of the episode that the loss of a packet belongs to, if it can still be undone.
    fn episode_of(&self, send_index: u64) -> Option<usize> {
        self.episodes
            .position(|episode| (episode.since..episode.end).contains(&send_index))
    }
}

impl Bbr {
    /// A packet was lost: starts an episode if it was sent after the latest one started.
    pub(super) fn join_episode(&mut self, send_index: u64) {
        self.begin_episode_at(send_index);
        if let Some(age) = self.recovery.episode_of(send_index)
            && let Some(episode) = self.recovery.episodes.get_mut(age)
        {
            if episode.is_marked && episode.outstanding == 0 {
                self.statistics.ecn_episodes = self.statistics.ecn_episodes.saturating_sub(1);
            }
            episode.outstanding = episode.outstanding.saturating_add(1);
        }
    }

    /// Packets were marked CE, and the newest packet acknowledged with them has this send index. Returns whether a new
    /// episode started.
    pub(super) fn mark_episode(&mut self, send_index: u64) -> bool {
        let is_new_episode = self.begin_episode_at(send_index);
        if let Some(episode) = self.recovery.episodes.newest_mut() {
            episode.is_marked = true;
        }
        if is_new_episode {
            self.statistics.ecn_episodes = self.statistics.ecn_episodes.saturating_add(1);
        }
        is_new_episode
    }

    fn begin_episode_at(&mut self, send_index: u64) -> bool {
        if send_index < self.recovery.start {
            return false;
        }
        self.save_window();
        self.statistics.loss_episodes = self.statistics.loss_episodes.saturating_add(1);
        self.recovery.is_active = true;
        self.recovery.episodes.push(Episode {
            since: self.recovery.start,
            end: self.next_send_index,
            outstanding: 0,
            is_marked: false,
            bounds: self.bounds,
            undo: None,
        });
        self.recovery.start = self.next_send_index;
        true
    }

    /// A packet was acknowledged: recovery is over if it was sent after recovery started.
    pub(super) fn check_recovery_done(&mut self, send_index: u64) {
        if self.recovery.is_active && send_index >= self.recovery.start {
            self.recovery.is_active = false;
            self.restore_window();
        }
    }

    /// Persistent congestion (RFC 9002 §7.6), in place of the draft's `OnEnterRTO()`. Recovery restarts, so that the
    /// window stays low until a packet sent from now on is acknowledged.
    pub(super) fn enter_persistent_congestion(&mut self, loss: &Loss<'_>) {
        self.statistics.persistent_congestions =
            self.statistics.persistent_congestions.saturating_add(1);
        self.save_window();
        self.recovery.is_active = true;
        self.recovery.start = self.next_send_index;
        if let Some(episode) = self.recovery.episodes.newest_mut() {
            episode.end = self.next_send_index;
        }
        let window = loss.in_flight.saturating_add(self.max_datagram_size);
        self.set_window(window.max(self.min_pipe()).min(self.window));
    }

    /// A packet was not lost after all; undoes its episode if none of its packets was.
    pub(super) fn check_spurious(&mut self, send_index: u64) {
        let recovery = &mut self.recovery;
        let Some(age) = recovery.episode_of(send_index) else {
            return;
        };
        let Some(episode) = recovery.episodes.get_mut(age) else {
            return;
        };
        episode.outstanding = episode.outstanding.saturating_sub(1);
        if episode.outstanding > 0 || episode.is_marked {
            return;
        }
        let Some(episode) = recovery.episodes.remove(age) else {
            return;
        };
        self.statistics.episodes_undone = self.statistics.episodes_undone.saturating_add(1);
        match age.checked_sub(1) {
            None => self.undo_latest(&episode),
            Some(next) => {
                if let Some(next) = recovery.episodes.get_mut(next) {
                    next.bounds.loosen(&episode.bounds);
                    next.undo = episode.undo.or(next.undo);
                }
            }
        }
    }

    /// `HandleSpuriousLossDetection()`.
    fn undo_latest(&mut self, episode: &Episode) {
        self.recovery.is_active = false;
        self.recovery.start = episode.since;
        self.restore_window();
        self.losses.clear_losses();
        self.full_pipe.restart(Bandwidth::ZERO);
        self.bounds.loosen(&episode.bounds);
        match episode.undo {
            Some(Undo::Startup) if self.mode != Mode::Startup => {
                self.statistics.episodes_undone_in_startup =
                    self.statistics.episodes_undone_in_startup.saturating_add(1);
                self.full_pipe.is_reached = false;
                if self.mode != Mode::ProbeRtt {
                    self.return_to_startup();
                }
            }
            Some(Undo::ProbeBandwidthUp)
                if !matches!(self.mode, Mode::ProbeBandwidthUp | Mode::ProbeRtt) =>
            {
                self.start_refill();
            }
            _ => {}
        }
    }

    /// `SaveCwnd()`.
    pub(super) fn save_window(&mut self) {
        self.recovery.prior_window = if self.recovery.is_active || self.mode == Mode::ProbeRtt {
            self.recovery.prior_window.max(self.window)
        } else {
            self.window
        };
    }

    /// `RestoreCwnd()`.
    pub(super) fn restore_window(&mut self) {
        self.set_window(self.window.max(self.recovery.prior_window));
    }
}
