//! A single-producer, single-consumer queue with a bound in bytes, polled by both ends.
//!
//! Owns the elements in the queue and their part of the connection's [budget](crate::budget), the count of bytes taken
//! out but not acknowledged, and both wakers. It never blocks. Wakers may be those of an async runtime or of a worker,
//! and are called outside of the lock.

use std::{
    collections::VecDeque,
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use super::ExchangeAborted;
use crate::{
    budget::ConnectionBudget,
    wakers::{note, wake},
};

/// The size of an element, for the bound of a channel.
pub trait Size {
    /// The size in bytes.
    fn size(&self) -> usize;
}

/// A queue that accepts elements until their sizes reach `bound`, or the budget is used up. An empty queue always
/// accepts one.
pub fn channel<T: Size>(bound: usize, budget: Arc<ConnectionBudget>) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        bound,
        budget,
        state: Mutex::new(State {
            queue: VecDeque::new(),
            size: 0,
            held: 0,
            kept: 0,
            has_sender: true,
            has_receiver: true,
            sender: None,
            receiver: None,
            has_waited: false,
            is_awaiting_receiver: false,
        }),
    });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

struct Shared<T> {
    bound: usize,
    budget: Arc<ConnectionBudget>,
    state: Mutex<State<T>>,
}

struct State<T> {
    queue: VecDeque<T>,
    /// Bytes in the queue.
    size: usize,
    /// Bytes taken out of the queue and not acknowledged.
    held: usize,
    /// Bytes taken out of the queue that the receiver keeps. They take no room in it.
    kept: usize,
    has_sender: bool,
    has_receiver: bool,
    /// The sender waiting for room, and the receiver waiting for an element.
    sender: Option<Waker>,
    receiver: Option<Waker>,
    /// Whether the receiver has waited for an element, and the sender waits for that.
    has_waited: bool,
    is_awaiting_receiver: bool,
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self, state: &State<T>) -> bool {
        let waiting = state.size + state.held;
        waiting == 0 || (waiting < self.bound && self.budget.has_room())
    }

    /// The waker of a sender that waits for room, if there is room now.
    fn wakes(&self, state: &mut State<T>) -> Option<Waker> {
        if self.has_room(state) {
            state.sender.take()
        } else {
            None
        }
    }

    /// An element of this size was taken out.
    fn on_taken(&self, mut state: MutexGuard<'_, State<T>>, size: usize) {
        state.size -= size;
        self.budget.remove(size);
        self.wake_sender(state);
    }

    fn wake_sender(&self, mut state: MutexGuard<'_, State<T>>) {
        let waker = self.wakes(&mut state);
        drop(state);
        wake(waker);
    }
}

/// The sending end.
pub struct Sender<T: Size>(Arc<Shared<T>>);

impl<T: Size> Sender<T> {
    /// Whether there is room; if not, the waker is called when there is.
    pub fn poll_ready(&self, context: &mut Context<'_>) -> Poll<Result<(), ExchangeAborted>> {
        let mut state = self.0.state();
        if !state.has_receiver {
            Poll::Ready(Err(ExchangeAborted))
        } else if self.0.has_room(&state) {
            Poll::Ready(Ok(()))
        } else {
            note(&mut state.sender, context.waker());
            Poll::Pending
        }
    }

    /// Ready when the receiver is dropped.
    pub fn poll_aborted(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.state();
        if state.has_receiver {
            note(&mut state.sender, context.waker());
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }

    /// Ready once the receiver has waited for an element.
    pub fn poll_awaited(&self, context: &mut Context<'_>) -> Poll<Result<(), ExchangeAborted>> {
        let mut state = self.0.state();
        if !state.has_receiver {
            Poll::Ready(Err(ExchangeAborted))
        } else if state.has_waited {
            Poll::Ready(Ok(()))
        } else {
            state.is_awaiting_receiver = true;
            note(&mut state.sender, context.waker());
            Poll::Pending
        }
    }

    /// Puts an element in. A sender that did not ask for room may exceed the bound by this element.
    pub fn push(&self, piece: T) {
        self.push_all([piece]);
    }

    /// Puts several elements in at once, so that the receiver of the first sees the others.
    pub fn push_all<const N: usize>(&self, pieces: [T; N]) {
        let mut state = self.0.state();
        if !state.has_receiver {
            return;
        }
        let size = pieces.iter().map(T::size).sum();
        state.size += size;
        self.0.budget.add(size);
        state.queue.extend(pieces);
        let waker = state.receiver.take();
        drop(state);
        wake(waker);
    }
}

impl<T: Size> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.has_sender = false;
        let waker = state.receiver.take();
        drop(state);
        wake(waker);
    }
}

/// The receiving end.
pub struct Receiver<T: Size>(Arc<Shared<T>>);

impl<T: Size> Receiver<T> {
    /// Waits for an element, or the end of the sender. Returns the sizes of the next element and of all elements; 0 if there
    /// will be none.
    pub fn poll_size(&self, context: &mut Context<'_>) -> Poll<(usize, usize)> {
        let mut state = self.0.state();
        match state.queue.front() {
            Some(piece) => Poll::Ready((piece.size(), state.size)),
            None if !state.has_sender => Poll::Ready((0, 0)),
            None => {
                note(&mut state.receiver, context.waker());
                Poll::Pending
            }
        }
    }

    /// The next element, in order; `None` when there will be none.
    pub fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.0.state();
        let Some(piece) = state.queue.pop_front() else {
            if !state.has_sender {
                return Poll::Ready(None);
            }
            note(&mut state.receiver, context.waker());
            state.has_waited = true;
            if mem::take(&mut state.is_awaiting_receiver) {
                let waker = state.sender.take();
                drop(state);
                wake(waker);
            }
            return Poll::Pending;
        };
        self.0.on_taken(state, piece.size());
        Poll::Ready(Some(piece))
    }

    /// Sets the number of bytes taken out that the receiver keeps. They count against the budget only, so that an empty
    /// queue accepts an element whatever is kept.
    pub fn set_kept(&self, bytes: usize) {
        let mut state = self.0.state();
        let before = mem::replace(&mut state.kept, bytes);
        self.0.budget.add(bytes);
        self.0.budget.remove(before);
        self.0.wake_sender(state);
    }

    /// The next element, if it is there and `is_wanted`.
    pub fn next_if(&self, is_wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        let mut state = self.0.state();
        if !state.queue.front().is_some_and(is_wanted) {
            return None;
        }
        let piece = state.queue.pop_front()?;
        self.0.on_taken(state, piece.size());
        Some(piece)
    }

    /// Sets the number of bytes taken out and not acknowledged by the peer.
    pub fn set_held(&self, bytes: usize) {
        let mut state = self.0.state();
        let before = mem::replace(&mut state.held, bytes);
        self.0.budget.add(bytes);
        self.0.budget.remove(before);
        self.0.wake_sender(state);
    }
}

impl<T: Size> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.has_receiver = false;
        let waiting = mem::take(&mut state.size) + mem::take(&mut state.held);
        self.0.budget.remove(waiting + mem::take(&mut state.kept));
        let queue = mem::take(&mut state.queue);
        let waker = state.sender.take();
        drop(state);
        drop(queue);
        wake(waker);
    }
}

impl<T: Size> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T: Size> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
