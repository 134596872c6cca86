//! A thread that carries packets until it is told to end, and then says what became of them.
//!
//! Owns: the thread, and the word that ends it. Never: knows what it carries.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use lastbyte_udp::{Waker, sharpen_timers};

use crate::paths::Report;

/// Ends with its value.
#[derive(Debug)]
pub struct Running {
    is_over: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<io::Result<Report>>>,
}

impl Running {
    /// Starts a thread of that name. What it runs is made of the flag that tells it to end; the waker ends its wait.
    pub(crate) fn start<W>(
        name: &str,
        waker: Waker,
        work: impl FnOnce(Arc<AtomicBool>) -> W,
    ) -> io::Result<Self>
    where
        W: FnOnce() -> io::Result<Report> + Send + 'static,
    {
        let is_over = Arc::<AtomicBool>::default();
        let work = work(Arc::clone(&is_over));
        let thread = thread::Builder::new().name(name.to_owned()).spawn(|| {
            // What it cannot do shows in how late packets are.
            let _ = sharpen_timers();
            work()
        })?;
        Ok(Self {
            is_over,
            waker,
            thread: Some(thread),
        })
    }

    /// Whether it ended by itself, which it does when its sockets break: [`stop`](Self::stop) says why.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it, and says what became of all packets. What is on the way is dropped.
    ///
    /// # Errors
    ///
    /// A socket or the device broke.
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
        Some(result.unwrap_or_else(|_| Err(io::Error::other("the thread of the path panicked"))))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
