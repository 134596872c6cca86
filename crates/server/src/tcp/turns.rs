//! Which response over HTTP/2 is sent next (RFC 9218).
//!
//! h2 sends frames of streams in turns, whatever their priority, as soon as it has them. So a response passes bytes to it only in its
//! own turn, and the order is that of the scheduler of HTTP/3 ([`Scheduler`]). h2 has no more than [`ROOM`] bytes at a time:
//! they are what a more urgent response waits for.
//!
//! A response with bytes *contends* for the next turn. There is a turn while there is room. The [connection](super::transport)
//! makes room when it has sent everything, and then wakes the responses for which it suffices.
//!
//! # Decisions
//!
//! - *Every wait wakes the connection*, and so does every turn that is taken or given up while others wait. So while a response
//!   waits, either the connection is about to be polled, or it waits for its socket, or a response that it woke is about to be
//!   polled. No response waits for one that cannot be sent: a response blocked by its window, or without bytes, does not
//!   contend.
//! - *A request contends before its response has bytes*, if a less urgent one is in flight, until the tasks of all requests
//!   received with it have run. Otherwise, responses of requests that are received together would be sent in the order of
//!   requests at first.
//! - *Responses do not wait if there is nothing to decide*: a connection whose responses are equally urgent, and have no more
//!   bytes than there is room for, does not use the scheduler.

use std::{
    collections::BTreeMap,
    fmt, mem,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use lastbyte_http3::Priority;
use lastbyte_quic::stream::{self, Class, Place, Scheduler};
use lastbyte_wire::{Direction, Side, StreamId};

use lastbyte_origin::wakers::{note, wake};

#[cfg(test)]
mod tests;

/// Bytes of responses that h2 may have, plus one piece.
pub(super) const ROOM: usize = 64 << 10;

/// The turns of the responses of a connection.
#[derive(Default)]
pub(super) struct Turns(Mutex<State>);

#[derive(Default)]
struct State {
    scheduler: Scheduler,
    /// The streams in the scheduler.
    contenders: BTreeMap<StreamId, Contender>,
    /// The number of contenders that wait.
    waiting: usize,
    /// Contenders without bytes: of requests received in the present turn of the connection, and in the previous one.
    announced: Vec<StreamId>,
    announced_before: Vec<StreamId>,
    /// The number of requests in flight, by urgency.
    in_flight: [u32; stream::Priority::URGENCY_MAX as usize + 1],
    /// The index of the next request.
    next: u64,
    /// Bytes that may be taken until the next turn of the connection.
    room: usize,
    connection: Option<Waker>,
}

#[derive(Default)]
struct Contender {
    place: Option<Place>,
    /// Of the task that waits.
    waker: Option<Waker>,
    /// Bytes that it will take in its turn, or more.
    len: u64,
}

/// The turns of one response.
///
/// Requests are accepted in their order, and an ID here is the index of the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    id: StreamId,
    priority: Priority,
}

impl Turn {
    pub(super) const fn priority(self) -> Priority {
        self.priority
    }
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request was accepted.
    pub(super) fn begin(&self, priority: Priority) -> Option<Turn> {
        let mut state = self.lock();
        let id = StreamId::new(Side::Client, Direction::Bidirectional, state.next)?;
        state.next += 1;
        let turn = Turn { id, priority };
        *state.count(priority) += 1;
        let less_urgent = state.in_flight.get(usize::from(priority.urgency) + 1..);
        if less_urgent.is_some_and(|counts| counts.iter().any(|count| *count > 0)) {
            state.contend(turn);
            state.announced.push(id);
        }
        Some(turn)
    }

    /// The response has a priority of its own.
    pub(super) fn prioritise(&self, turn: &mut Turn, priority: Priority) {
        if priority == turn.priority {
            return;
        }
        let mut state = self.lock();
        *state.count(turn.priority) -= 1;
        *state.count(priority) += 1;
        turn.priority = priority;
        if state.contenders.contains_key(&turn.id) {
            state.contend(*turn);
        }
    }

    /// Waits for a turn of a response that has `len` bytes, and takes room for `piece` of them.
    pub(super) fn poll_take(
        &self,
        context: &mut Context<'_>,
        turn: Turn,
        (piece, len): (usize, u64),
    ) -> Poll<()> {
        let mut state = self.lock();
        if state.room > 0 && state.contenders.is_empty() {
            state.room = state.room.saturating_sub(piece);
            return Poll::Ready(());
        }
        state.contend(turn);
        let taken = if state.room > 0 && state.scheduler.next(true) == Some(turn.id) {
            state.room = state.room.saturating_sub(piece);
            state.withdraw(turn.id, true);
            Poll::Ready(())
        } else {
            let len = if turn.priority.is_incremental {
                piece as u64
            } else {
                len
            };
            state.wait(turn.id, len, context.waker());
            Poll::Pending
        };
        let connection = state.connection_to_wake();
        drop(state);
        wake(connection);
        taken
    }

    /// The response is complete, or will not be sent.
    pub(super) fn end(&self, turn: Turn) {
        let mut state = self.lock();
        *state.count(turn.priority) -= 1;
        if state.contenders.contains_key(&turn.id) {
            state.withdraw(turn.id, false);
            let connection = state.connection_to_wake();
            drop(state);
            wake(connection);
        }
    }

    /// The connection was polled, by a task with this waker, and has sent everything or not.
    pub(super) fn on_polled(&self, connection: &Waker, has_sent_all: bool) {
        let mut state = self.lock();
        if has_sent_all {
            state.room = ROOM;
        }
        note(&mut state.connection, connection);
        if state.contenders.is_empty() {
            state.announced.clear();
            state.announced_before.clear();
            return;
        }
        let before = mem::take(&mut state.announced);
        for id in mem::replace(&mut state.announced_before, before) {
            let is_announced = |it: &Contender| it.waker.is_none();
            if state.contenders.get(&id).is_some_and(is_announced) {
                state.withdraw(id, false);
            }
        }
        if !has_sent_all {
            return;
        }
        let (woken, is_held_up) = state.next_turns();
        drop(state);
        for waker in woken {
            waker.wake();
        }
        if is_held_up {
            connection.wake_by_ref();
        }
    }
}

impl State {
    fn count(&mut self, priority: Priority) -> &mut u32 {
        let last = self.in_flight.len() - 1;
        &mut self.in_flight[usize::from(priority.urgency).min(last)]
    }

    fn contend(&mut self, turn: Turn) {
        let contender = self.contenders.entry(turn.id).or_default();
        let wanted = (turn.priority.for_transport(), Class::Fresh);
        self.scheduler
            .place(turn.id, &mut contender.place, Some(wanted));
    }

    /// The contender has had its turn, or does not need one.
    fn withdraw(&mut self, id: StreamId, has_sent: bool) {
        if let Some(mut contender) = self.contenders.remove(&id) {
            if has_sent {
                self.scheduler.on_sent(id, &mut contender.place);
            }
            self.scheduler.place(id, &mut contender.place, None);
            self.waiting -= usize::from(contender.waker.is_some());
        }
    }

    fn wait(&mut self, id: StreamId, len: u64, waker: &Waker) {
        if let Some(contender) = self.contenders.get_mut(&id) {
            self.waiting += usize::from(contender.waker.is_none());
            note(&mut contender.waker, waker);
            contender.len = len;
        }
    }

    fn connection_to_wake(&self) -> Option<Waker> {
        self.connection
            .as_ref()
            .filter(|_| self.waiting > 0)
            .cloned()
    }

    /// The tasks for whose bytes there is room, and whether others wait only for a response without bytes.
    fn next_turns(&self) -> (Vec<Waker>, bool) {
        let (mut woken, mut left) = (Vec::new(), self.room as u64);
        for id in self.scheduler.fresh() {
            let Some(contender) = self.contenders.get(&id) else {
                continue;
            };
            let Some(waker) = &contender.waker else {
                return (woken, self.waiting > 0);
            };
            woken.push(waker.clone());
            left = left.saturating_sub(contender.len);
            if left == 0 {
                break;
            }
        }
        (woken, false)
    }
}

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}
