//! Wakers that are kept until a task is to be polled.

use std::task::Waker;

/// Keeps the waker, in place of the one that was kept before.
pub fn note(slot: &mut Option<Waker>, waker: &Waker) {
    match slot {
        Some(known) => known.clone_from(waker),
        None => *slot = Some(waker.clone()),
    }
}

/// Wakes the task, if there is one. To be called without a lock that it needs.
pub fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
