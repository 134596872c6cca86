//! How other threads notify a worker of its streams.
//!
//! Owns the list of such streams; data is in the channels of the [`exchange`](crate::exchange). A stream is in the list
//! at most as often as it has registered, which is once for each of its two channels.

use std::{
    fmt, mem,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Wake, Waker},
};

use lastbyte_quic::endpoint::Handle;
use lastbyte_wire::StreamId;

#[cfg(test)]
mod tests;

/// Wakes a worker that waits.
type WakeWorker = Box<dyn Fn() + Send + Sync>;

/// The mailbox of a worker.
#[derive(Default)]
pub struct Mailbox {
    letters: Mutex<Vec<(Handle, StreamId)>>,
    /// Whether it may have entries: checked each turn.
    is_full: AtomicBool,
    /// Wakes the worker; set once all workers are running.
    wake: OnceLock<WakeWorker>,
}

impl Mailbox {
    /// Wakes the worker by this function for entries from now on, and for earlier ones.
    pub fn connect(&self, wake: impl Fn() + Send + Sync + 'static) {
        wake();
        let _ = self.wake.set(Box::new(wake));
        if self.is_full.load(Ordering::Acquire) {
            self.ring();
        }
    }

    fn post(&self, handle: Handle, stream: StreamId) {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.push((handle, stream));
        drop(letters);
        if !self.is_full.swap(true, Ordering::AcqRel) {
            self.ring();
        }
    }

    fn ring(&self) {
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    /// Whether there may be entries.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    /// Takes all entries.
    pub(super) fn take(&self) -> Vec<(Handle, StreamId)> {
        if !self.is_full.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        mem::take(&mut *letters)
    }
}

/// Wakes the worker for one of its streams.
struct StreamWaker {
    mailbox: Arc<Mailbox>,
    handle: Handle,
    stream: StreamId,
}

impl Wake for StreamWaker {
    fn wake(self: Arc<Self>) {
        self.mailbox.post(self.handle, self.stream);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.mailbox.post(self.handle, self.stream);
    }
}

/// The waker of this stream.
pub(super) fn waker(mailbox: &Arc<Mailbox>, handle: Handle, stream: StreamId) -> Waker {
    Waker::from(Arc::new(StreamWaker {
        mailbox: Arc::clone(mailbox),
        handle,
        stream,
    }))
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").finish_non_exhaustive()
    }
}
