//! Tasks without threads of their own: each runs where it is woken.
//!
//! For handlers that answer piece by piece and never wait for anything but the channels of an
//! [`exchange`](crate::exchange): a thread of their own would cost more than they do, and in virtual time there is none.

use core::{
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering, fence},
    task::{Context, Waker},
};
use std::{
    sync::{Arc, Mutex},
    task::Wake,
};

#[cfg(test)]
mod tests;

struct Task {
    /// `None` once it has ended.
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    is_woken: AtomicBool,
}

/// Runs a future until it waits, and again, on the thread that wakes it, whenever it can go on.
pub fn run(future: impl Future<Output = ()> + Send + 'static) {
    let task = Arc::new(Task {
        future: Mutex::new(Some(Box::pin(future))),
        is_woken: AtomicBool::new(false),
    });
    task.wake();
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Relaxed);
        loop {
            // Either this thread gets the lock, or the one that has it sees that the task was woken once it has released it.
            fence(Ordering::SeqCst);
            if !self.is_woken.load(Ordering::Relaxed) {
                return;
            }
            // It is being run: by another thread, or by a caller of this function that it woke itself.
            let Ok(mut future) = self.future.try_lock() else {
                return;
            };
            if !self.is_woken.swap(false, Ordering::Relaxed) {
                continue;
            }
            let waker = Waker::from(Arc::clone(&self));
            if let Some(running) = &mut *future
                && running
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_ready()
            {
                *future = None;
            }
        }
    }
}
