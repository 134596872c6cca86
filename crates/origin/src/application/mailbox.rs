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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use lastbyte_quic::{
        Time,
        connection::{Config, NetworkPath},
        crypto::plain::PlainClient,
        endpoint::{Endpoint, EndpointConfig},
    };
    use lastbyte_wire::{Direction, Side};

    use super::*;

    #[test]
    fn a_worker_is_woken_once_for_entries_before_and_after_it_is_known() {
        let mailbox = Arc::new(Mailbox::default());
        let mut endpoint =
            Endpoint::<()>::new(EndpointConfig::client(), [1; 32]).expect("an endpoint");
        let config = Config::new("cubic".parse().expect("a spec"));
        let address = ([192, 0, 2, 1], 443).into();
        let path = NetworkPath {
            local: address,
            remote: address,
        };
        let crypto = PlainClient::new(1, vec![b"x".to_vec()]);
        let handle = endpoint
            .connect(
                Time::ZERO,
                path,
                "x",
                &Arc::new(config),
                Arc::new(crypto),
                Vec::new(),
            )
            .expect("a connection");
        let [first, second, third] = [0, 1, 2].map(|number| {
            StreamId::new(Side::Client, Direction::Bidirectional, number).expect("in range")
        });
        let woken = Arc::new(AtomicUsize::new(0));
        let of_one = |stream| waker(&mailbox, handle, stream);
        // Before the worker is known.
        of_one(first).wake();
        let count = Arc::clone(&woken);
        mailbox.connect(move || _ = count.fetch_add(1, Ordering::Relaxed));
        let woken = || woken.swap(0, Ordering::Relaxed);
        assert!(woken() > 0);
        assert_eq!(mailbox.take(), [(handle, first)]);
        assert!(!mailbox.is_full() && mailbox.take().is_empty());
        of_one(second).wake_by_ref();
        of_one(third).wake();
        assert_eq!(woken(), 1, "for both");
        assert_eq!(mailbox.take(), [(handle, second), (handle, third)]);
        of_one(first).wake();
        assert_eq!(woken(), 1);
    }
}
