//! The handle of a thread that forwards packets until it is stopped, and then returns a report.
//!
//! This module owns the thread and its stop flag. It does not know what the thread forwards.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use lastbyte_udp::{Waker, sharpen_timers};

use crate::paths::Report;

/// A running thread. It is stopped when the handle is dropped.
#[derive(Debug)]
pub struct Running {
    is_over: Arc<AtomicBool>,
    refused: Arc<AtomicU64>,
    waker: Waker,
    thread: Option<JoinHandle<io::Result<Report>>>,
}

impl Running {
    /// Starts a thread called `name`. `work` receives the stop flag and returns the function to run. `waker` interrupts
    /// the wait of that function, and `refused` is [`Report::refused`] so far.
    pub(crate) fn start<W>(
        name: &str,
        waker: Waker,
        refused: Arc<AtomicU64>,
        work: impl FnOnce(Arc<AtomicBool>) -> W,
    ) -> io::Result<Self>
    where
        W: FnOnce() -> io::Result<Report> + Send + 'static,
    {
        let is_over = Arc::<AtomicBool>::default();
        let work = work(Arc::clone(&is_over));
        let thread = thread::Builder::new().name(name.to_owned()).spawn(|| {
            // If this fails, packets are sent later, which the report shows.
            let _ = sharpen_timers();
            work()
        })?;
        Ok(Self {
            is_over,
            refused,
            waker,
            thread: Some(thread),
        })
    }

    /// Whether the thread ended by itself because of an I/O error, which [`stop`](Self::stop) returns.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// [`Report::refused`] so far.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Stops the thread and returns its report. Packets in transit are dropped.
    ///
    /// # Errors
    ///
    /// Returns the I/O error that ended the thread.
    pub fn stop(mut self) -> io::Result<Report> {
        match self.end() {
            Some(result) => result,
            None => Ok(Report::default()),
        }
    }

    fn end(&mut self) -> Option<io::Result<Report>> {
        self.is_over.store(true, Ordering::Relaxed);
        self.waker.wake();
        let result = self.thread.take()?.join();
        Some(result.unwrap_or_else(|_| Err(io::Error::other("the emulation thread panicked"))))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
