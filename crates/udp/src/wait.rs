//! Waits for the first of: a datagram, space in the send buffer, a deadline, a wake-up from another thread.
//!
//! This module sets the precision of timers. It reads no clock; the time to wait is an argument.
//!
//! A thread that paces packets must wake up within tens of microseconds. The kernel may delay its timers by the
//! thread's *timer slack*, which is 50 µs by default: see [`sharpen_timers`].

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

/// Makes the timers of the calling thread as precise as the kernel permits. Returns `false` if that is not possible;
/// timers are then about 50 µs later.
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

/// The reasons for which a wait ended. If all are `false`, it timed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// The socket is readable.
    pub readable: bool,
    /// The socket is writable.
    pub writable: bool,
    /// Another thread called [`Waker::wake`].
    pub woken: bool,
}

/// The events that a socket is polled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Until it is readable. `false` if another process reads the same socket.
    pub read: bool,
    /// Until it is writable.
    pub write: bool,
}

impl Wanted {
    fn flags(self) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, self.read);
        flags.set(PollFlags::OUT, self.write);
        flags
    }
}

/// Waits for a socket. Each thread needs its own waiter.
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
    /// Creates a waiter.
    ///
    /// # Errors
    ///
    /// Returns an error if no file descriptor is available.
    pub fn new() -> io::Result<Self> {
        let (bell, rope) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rope.set_nonblocking(true)?;
        Ok(Self {
            bell,
            rope: Arc::new(rope),
        })
    }

    /// A handle with which other threads can end the wait.
    pub fn waker(&self) -> Waker {
        Waker {
            rope: Arc::clone(&self.rope),
        }
    }

    /// Waits until the socket is readable, or writable if `wants_write`, until another thread calls [`Waker::wake`], a
    /// signal arrives, or `timeout` has passed (`None`: no timeout).
    ///
    /// # Errors
    ///
    /// Returns the error of the system call.
    pub fn wait(
        &mut self,
        socket: &Socket,
        wants_write: bool,
        timeout: Option<Duration>,
    ) -> io::Result<Ready> {
        let wanted = Wanted {
            read: true,
            write: wants_write,
        };
        self.wait_both((socket, wanted), None, timeout)
    }

    /// The same for up to two sockets, each with the events that it is polled for.
    ///
    /// # Errors
    ///
    /// Returns the error of the system call.
    pub fn wait_both(
        &mut self,
        (socket, wanted): (&Socket, Wanted),
        other: Option<(&Socket, Wanted)>,
        timeout: Option<Duration>,
    ) -> io::Result<Ready> {
        // Without a second socket, the first one again, without events.
        let other = other.map_or((socket, PollFlags::empty()), |(other, wanted)| {
            (other, wanted.flags())
        });
        let mut polled = [
            PollFd::new(socket, wanted.flags()),
            PollFd::new(&self.bell, PollFlags::IN),
            PollFd::new(other.0, other.1),
        ];
        // A timeout out of range is effectively infinite.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(Ready::default()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let [of_socket, of_bell, of_other] = polled.map(|polled| polled.revents());
        let woken = !of_bell.is_empty();
        if woken {
            // Several wake-ups are reported as one.
            let mut rings = [0; 64];
            while matches!(self.bell.read(&mut rings), Ok(read) if read == rings.len()) {}
        }
        // Socket errors are reported by the next receive.
        let broken = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        Ok(Ready {
            readable: (of_socket | of_other).intersects(PollFlags::IN | broken),
            writable: (of_socket | of_other).intersects(PollFlags::OUT | broken),
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

    /// Ends the current wait, or the next one if the thread is not waiting.
    pub fn wake(&self) {
        // If the pipe is full, a wake-up is already pending; if the other end is closed, no thread waits.
        let _ = (&*self.rope).write(&[1]);
    }
}
