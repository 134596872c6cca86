//! Reports changes of the host's addresses and routes to the client. On systems other than Linux, there are none.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use lastbyte_udp::{NetworkChanges, Waker};

use crate::mailbox::Sender;

/// A thread that waits for changes of the network, until this is dropped.
pub(crate) struct NetworkWatch {
    waker: Waker,
    thread: Option<JoinHandle<()>>,
    is_reported: Arc<AtomicBool>,
}

/// Reports changes, at most one at a time: the next one after it has been taken.
struct Reporter {
    changed: Sender<()>,
    is_reported: Arc<AtomicBool>,
}

impl Reporter {
    fn report(&self) {
        if !self.is_reported.swap(true, Ordering::AcqRel) {
            self.changed.post(());
        }
    }
}

impl NetworkWatch {
    /// Starts the thread. `None` where changes cannot be observed.
    pub(crate) fn start(report: Sender<()>) -> Option<Self> {
        let mut changes = NetworkChanges::new().ok()?;
        let waker = changes.waker();
        let is_reported = Arc::new(AtomicBool::new(false));
        let reporter = Reporter {
            changed: report,
            is_reported: Arc::clone(&is_reported),
        };
        let watch = move || {
            while matches!(changes.wait(), Ok(true)) {
                reporter.report();
            }
        };
        let thread = thread::Builder::new()
            .name("network".to_owned())
            .spawn(watch)
            .ok()?;
        Some(Self {
            waker,
            thread: Some(thread),
            is_reported,
        })
    }

    /// The next change is reported again.
    pub(crate) fn take(&self) {
        self.is_reported.store(false, Ordering::Release);
    }
}

impl Drop for NetworkWatch {
    fn drop(&mut self) {
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // It has no result.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::Mailbox;

    #[test]
    fn a_flood_of_changes_is_one_event_until_it_is_taken() {
        let mailbox = Arc::new(Mailbox::<()>::default());
        let is_reported = Arc::new(AtomicBool::new(false));
        let reporter = Reporter {
            changed: mailbox.sender(|()| ()),
            is_reported: Arc::clone(&is_reported),
        };
        (0..1000).for_each(|_| reporter.report());
        assert_eq!(mailbox.take().len(), 1);
        (0..1000).for_each(|_| reporter.report());
        assert!(mailbox.take().is_empty(), "it has not been taken");
        is_reported.store(false, Ordering::Release);
        reporter.report();
        assert_eq!(mailbox.take().len(), 1);
    }
}
