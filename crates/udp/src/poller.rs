//! Waits for any of many sockets in one thread.
//!
//! This module tracks which sockets are polled, each with a key chosen by the caller. It reads no clock and does not
//! keep sockets open.

use std::{
    io::{self, Read},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::Arc,
    time::Duration,
};

use rustix::{
    event::{
        Timespec,
        epoll::{self, CreateFlags, Event, EventData, EventFlags},
    },
    io::Errno,
};

use crate::wait::Waker;

#[cfg(test)]
mod tests;

/// Waits for many sockets. Each thread needs its own poller. Linux only (`epoll`).
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    bell: UnixStream,
    rope: Arc<UnixStream>,
}

/// The key of the wake-up socket. No other socket can use it.
const BELL: u64 = u64::MAX;
/// The maximum number of sockets returned by one wait. The next wait returns the others.
const EVENTS: usize = 64;

impl Poller {
    /// Creates a poller.
    ///
    /// # Errors
    ///
    /// Returns an error if no file descriptor is available.
    pub fn new() -> io::Result<Self> {
        let (bell, rope) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rope.set_nonblocking(true)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Self {
            epoll,
            bell,
            rope: Arc::new(rope),
        })
    }

    /// A handle with which other threads can end the wait.
    pub fn waker(&self) -> Waker {
        Waker::on(&self.rope)
    }

    /// Adds a [`Socket`](crate::Socket), or any other source the kernel can poll, until it is closed or
    /// [removed](Self::remove).
    ///
    /// # Errors
    ///
    /// Returns an error if the source has already been added, the key is `u64::MAX`, or memory is exhausted.
    pub fn add(&self, source: &impl AsFd, key: u64) -> io::Result<()> {
        if key == BELL {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(epoll::add(
            &self.epoll,
            source,
            EventData::new_u64(key),
            EventFlags::IN,
        )?)
    }

    /// Removes a source.
    ///
    /// # Errors
    ///
    /// Returns an error if the source has not been added.
    pub fn remove(&self, source: &impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// Waits until a source is readable, another thread calls [`Waker::wake`], a signal arrives, or `timeout` has
    /// passed (`None`: no timeout). Replaces the contents of `ready` by the keys of the readable sources. Returns
    /// whether another thread woke the poller.
    ///
    /// # Errors
    ///
    /// Returns the error of the system call.
    pub fn wait(&mut self, timeout: Option<Duration>, ready: &mut Vec<u64>) -> io::Result<bool> {
        ready.clear();
        let mut events = [MaybeUninit::uninit(); EVENTS];
        // A timeout out of range is effectively infinite.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let events: &[Event] = match epoll::wait(&self.epoll, &mut events[..], timeout.as_ref()) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => &[],
            Err(error) => return Err(error.into()),
        };
        let mut woken = false;
        for event in events {
            // The structure is packed, so its fields are copied.
            let key = event.data;
            match key.u64() {
                BELL => woken = true,
                key => ready.push(key),
            }
        }
        if woken {
            // Several wake-ups are reported as one.
            let mut rings = [0; 64];
            while matches!(self.bell.read(&mut rings), Ok(read) if read == rings.len()) {}
        }
        Ok(woken)
    }
}
