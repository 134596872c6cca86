//! How other threads tell a worker that one of its requests wants attention.
//!
//! Owns: which streams do. Never: carries data; that is in the channels of the [`exchange`](crate::exchange). A stream is
//! in here as often at most as it has registered for, which is once for each of its two channels.

use std::{
    mem,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Wake, Waker},
};

use lastbyte_driver::Remote;
use lastbyte_quic::endpoint::Handle;
use lastbyte_wire::StreamId;

use super::Command;

/// A worker's.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    letters: Mutex<Vec<(Handle, StreamId)>>,
    /// Whether there may be any: looked at each turn.
    is_full: AtomicBool,
    /// Who wakes the worker: known once all workers are there.
    remote: OnceLock<Remote<Command>>,
}

impl Mailbox {
    /// From now on the worker is woken for letters, and for those that came before.
    pub(crate) fn connect(&self, remote: Remote<Command>) {
        let _ = remote.send(Command::Mail);
        let _ = self.remote.set(remote);
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
        if let Some(remote) = self.remote.get() {
            // A worker that has too much to listen to comes by here anyway.
            let _ = remote.send(Command::Mail);
        }
    }

    /// What came since.
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

/// What wakes the worker for this stream.
pub(super) fn waker(mailbox: &Arc<Mailbox>, handle: Handle, stream: StreamId) -> Waker {
    Waker::from(Arc::new(StreamWaker {
        mailbox: Arc::clone(mailbox),
        handle,
        stream,
    }))
}
