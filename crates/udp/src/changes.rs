//! Changes of the host's network: addresses, links, routes. Linux only (rtnetlink(7)).
//!
//! This module reports *that* something changed. It does not parse the kernel's messages: the routing table itself is the
//! reference, see [`source_address`](crate::source_address).

use std::{io, os::fd::OwnedFd};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SocketFlags, SocketType, bind, netlink::SocketAddrNetlink, recv,
        socket_with,
    },
};

use crate::{poller::Poller, wait::Waker};

#[cfg(test)]
mod tests;

/// The kernel's multicast groups for links, addresses and routes.
const GROUPS: i32 = libc::RTMGRP_LINK
    | libc::RTMGRP_IPV4_IFADDR
    | libc::RTMGRP_IPV4_ROUTE
    | libc::RTMGRP_IPV6_IFADDR
    | libc::RTMGRP_IPV6_ROUTE;
/// The most messages that are read as one change. The rest is the next change.
const MESSAGES: usize = 256;

/// Waits for changes of the network.
#[derive(Debug)]
pub struct NetworkChanges {
    socket: OwnedFd,
    poller: Poller,
    ready: Vec<u64>,
}

impl NetworkChanges {
    /// Subscribes to changes. Needs no privileges.
    ///
    /// # Errors
    ///
    /// Returns the system's error if there is no netlink, as in some sandboxes, or no file descriptor is available.
    pub fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, GROUPS.cast_unsigned()))?;
        let poller = Poller::new()?;
        poller.add(&socket, 0)?;
        Ok(Self {
            socket,
            poller,
            ready: Vec::new(),
        })
    }

    /// A handle with which another thread can end the wait.
    pub fn waker(&self) -> Waker {
        self.poller.waker()
    }

    /// Waits until the network changes. Returns `false` if the wait was ended by the waker. Messages that arrived together
    /// are one change.
    ///
    /// # Errors
    ///
    /// Returns the error of the system call.
    pub fn wait(&mut self) -> io::Result<bool> {
        loop {
            if self.poller.wait(None, &mut self.ready)? {
                return Ok(false);
            }
            if !self.ready.is_empty() && self.drain()? {
                return Ok(true);
            }
        }
    }

    /// Reads the pending messages. Returns whether there were any.
    fn drain(&self) -> io::Result<bool> {
        // Messages are not parsed, so the rest of a longer one is not needed.
        let mut message = [0; 16];
        for read in 0..MESSAGES {
            match recv(&self.socket, &mut message[..], RecvFlags::empty()) {
                // `NOBUFS`: so many changes that messages were lost.
                Ok(_) | Err(Errno::NOBUFS | Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(read > 0),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}
