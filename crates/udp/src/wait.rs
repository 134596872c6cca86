//! Waiting for whatever comes first: a datagram, room to send, a deadline, a word from another thread.
//!
//! Owns: the timer's precision. Never: reads a clock; how long to wait is an argument.
//!
//! A thread that paces packets has to wake up within tens of microseconds. The kernel may delay a timer by the thread's
//! *slack*, 50 µs unless asked for less: [`sharpen_timers`].

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    sync::Arc,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

#[cfg(target_os = "linux")]
use std::num::NonZeroU64;

use super::socket::Socket;

#[cfg(test)]
mod tests;

/// Makes the timers of the calling thread as precise as the kernel can. Returns whether it could; if not, they are late by
/// some 50 µs more.
#[must_use]
pub fn sharpen_timers() -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}

/// What ended a wait. All false: the time has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// There is something to receive.
    pub readable: bool,
    /// There is room to send.
    pub writable: bool,
    /// Another thread called [`Waker::wake`].
    pub woken: bool,
}

/// Waits; one a thread.
#[derive(Debug)]
pub struct Waiter {
    bell: UnixStream,
    rope: Arc<UnixStream>,
}

/// Ends the wait of another thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Waker {
    rope: Arc<UnixStream>,
}

impl Waiter {
    /// For one thread.
    ///
    /// # Errors
    ///
    /// There are no file descriptors left.
    pub fn new() -> io::Result<Self> {
        let (bell, rope) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rope.set_nonblocking(true)?;
        Ok(Self {
            bell,
            rope: Arc::new(rope),
        })
    }

    /// For other threads.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker {
            rope: Arc::clone(&self.rope),
        }
    }

    /// Waits for the socket to be readable, and writable if `wants_write`, for a word of another thread, or until the time
    /// has passed; without one, for ever. A signal ends it like the time.
    ///
    /// # Errors
    ///
    /// The socket is broken.
    pub fn wait(
        &mut self,
        socket: &Socket,
        wants_write: bool,
        timeout: Option<Duration>,
    ) -> io::Result<Ready> {
        let mut events = PollFlags::IN;
        events.set(PollFlags::OUT, wants_write);
        let mut polled = [
            PollFd::new(socket, events),
            PollFd::new(&self.bell, PollFlags::IN),
        ];
        // What does not fit is longer than anybody waits.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(Ready::default()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let [of_socket, of_bell] = polled.map(|polled| polled.revents());
        let woken = !of_bell.is_empty();
        if woken {
            // Many rings are one.
            let mut rings = [0; 64];
            while matches!(self.bell.read(&mut rings), Ok(read) if read == rings.len()) {}
        }
        // An error of the socket is found by receiving.
        let broken = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        Ok(Ready {
            readable: of_socket.intersects(PollFlags::IN | broken),
            writable: of_socket.intersects(PollFlags::OUT | broken),
            woken,
        })
    }
}

impl Waker {
    #[cfg(target_os = "linux")]
    pub(crate) fn on(rope: &Arc<UnixStream>) -> Self {
        Self {
            rope: Arc::clone(rope),
        }
    }

    /// Ends the wait, or the next one if there is none now.
    pub fn wake(&self) {
        // If it is full, there is a ring to be heard already; if the other end is gone, nobody waits.
        let _ = (&*self.rope).write(&[1]);
    }
}
