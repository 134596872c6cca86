//! Waiting for any of many sockets, by one thread.
//!
//! Owns: which sockets are waited for, each under a key of the caller's. Never: reads a clock, or keeps a socket open.

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

/// Waits for many sockets; one a thread. Linux has it (`epoll`).
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    bell: UnixStream,
    rope: Arc<UnixStream>,
}

/// The key of the bell. No socket can have it.
const BELL: u64 = u64::MAX;
/// How many sockets one wait tells of at most; the others come with the next.
const EVENTS: usize = 64;

impl Poller {
    /// For one thread.
    ///
    /// # Errors
    ///
    /// There are no file descriptors left.
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

    /// For other threads, to end the wait.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker::on(&self.rope)
    }

    /// Waits for this too, a [`Socket`](crate::Socket) or whatever else the kernel polls, until it is closed or
    /// [removed](Self::remove).
    ///
    /// # Errors
    ///
    /// It is waited for already, the key is `u64::MAX`, or there is no memory.
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

    /// Waits for this no more.
    ///
    /// # Errors
    ///
    /// It was not waited for.
    pub fn remove(&self, source: &impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// Waits until a socket has something to receive, another thread rings, or the time has passed; without one, for ever. A
    /// signal ends it like the time. The keys of sockets to be received from take the place of what `ready` held. Says
    /// whether somebody rang.
    ///
    /// # Errors
    ///
    /// The system refuses to wait.
    pub fn wait(&mut self, timeout: Option<Duration>, ready: &mut Vec<u64>) -> io::Result<bool> {
        ready.clear();
        let mut events = [MaybeUninit::uninit(); EVENTS];
        // What does not fit is longer than anybody waits.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let events: &[Event] = match epoll::wait(&self.epoll, &mut events[..], timeout.as_ref()) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => &[],
            Err(error) => return Err(error.into()),
        };
        let mut woken = false;
        for event in events {
            // The structure is packed: its fields are copied out.
            let key = event.data;
            match key.u64() {
                BELL => woken = true,
                key => ready.push(key),
            }
        }
        if woken {
            // Many rings are one.
            let mut rings = [0; 64];
            while matches!(self.bell.read(&mut rings), Ok(read) if read == rings.len()) {}
        }
        Ok(woken)
    }
}
