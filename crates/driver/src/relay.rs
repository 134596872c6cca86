//! Forwarding of datagrams between two processes that share a socket, while the earlier one finishes its connections.
//!
//! The later process reads the socket. It forwards the datagrams of connections that it does not know over a Unix socket to the
//! earlier one, which still sends over the shared socket. If that does not know them either, it forwards them to its own
//! predecessor.
//!
//! # Bounds
//!
//! The link holds what fits the send buffer of a Unix socket, and each worker's queue 1024 datagrams. What does not fit is
//! dropped, as on a congested path, and counted. A link is `SOCK_SEQPACKET`: datagrams keep their limits, and each end
//! learns when the other is closed.

use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6},
    os::fd::OwnedFd,
    sync::{Arc, OnceLock},
};

use lastbyte_quic::{ack::Ecn, connection::NetworkPath};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send,
        shutdown, socketpair, sockopt::set_socket_send_buffer_size,
    },
};

use super::forward::{Forwarded, Senders};

#[cfg(test)]
mod tests;

/// The wanted size of a link's send buffer in bytes; the kernel may limit it.
const LINK_BUFFER: usize = 4 << 20;
/// The largest UDP payload.
const DATAGRAM_MAX: usize = 65_535;
/// An address in a message: 16 bytes, the port, and the scope ID (RFC 4007 §11.2), which link-local addresses need.
const ADDRESS_LEN: usize = 22;
/// The length of a message before the datagram: the worker, the ECN codepoint, and two addresses.
const HEADER_LEN: usize = 2 + 2 * ADDRESS_LEN;

/// Creates a link: the end of the later process, and that of the earlier one.
///
/// # Errors
///
/// Returns the system's error if no socket can be created.
pub fn link() -> io::Result<(OwnedFd, OwnedFd)> {
    let (later, earlier) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // The kernel limits the size silently.
    let _ = set_socket_send_buffer_size(&later, LINK_BUFFER);
    Ok((later, earlier))
}

/// A worker's link to an earlier process.
#[derive(Debug)]
pub(crate) struct Predecessor {
    link: Arc<OwnedFd>,
    worker: u8,
}

/// The result of [`Predecessor::forward`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relayed {
    Sent,
    /// The link is full.
    Dropped,
    /// The earlier process has ended.
    Closed,
}

impl Predecessor {
    /// The link of the worker with this index, which is the index of its socket in both processes.
    pub(crate) const fn new(link: Arc<OwnedFd>, worker: u8) -> Self {
        Self { link, worker }
    }

    /// Whether the earlier process still has connections.
    pub(crate) fn is_open(&self) -> bool {
        let mut polled = [PollFd::new(&*self.link, PollFlags::empty())];
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // The end of the other side is always reported.
        matches!(poll(&mut polled, Some(&zero)), Ok(0) | Err(Errno::INTR))
    }

    pub(crate) fn forward(&self, path: &NetworkPath, ecn: Ecn, bytes: &[u8]) -> Relayed {
        let message = encode(self.worker, path, ecn, bytes);
        match send(
            &*self.link,
            &message,
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        ) {
            Ok(_) => Relayed::Sent,
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Relayed::Closed,
            Err(_) => Relayed::Dropped,
        }
    }
}

/// The entrance for datagrams of a later process to the workers of this one.
pub struct Inlet {
    workers: Senders,
    /// `None` if the workers ended without a link.
    link: OnceLock<Option<OwnedFd>>,
}

impl Inlet {
    pub(super) const fn new(workers: Senders) -> Self {
        Self {
            workers,
            link: OnceLock::new(),
        }
    }

    /// Passes datagrams from the link to the workers, until the later process closes its end, or all workers have ended.
    ///
    /// # Errors
    ///
    /// Returns the error of the system call, or `AlreadyExists` if there is a link already.
    pub fn run(&self, link: OwnedFd) -> io::Result<()> {
        let is_first = self.link.set(Some(link)).is_ok();
        let Some(Some(link)) = self.link.get() else {
            return Ok(());
        };
        if !is_first {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut buffer = vec![0; HEADER_LEN + DATAGRAM_MAX];
        loop {
            let len = match recv(link, &mut buffer[..], RecvFlags::empty()) {
                Ok((_, 0)) => return Ok(()),
                Ok((len, _)) => len,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let Some((worker, forwarded)) = buffer.get(..len).and_then(decode) else {
                continue;
            };
            if let Some((sender, waker)) = self.workers.get(worker)
                && sender.try_send(forwarded).is_ok()
            {
                waker.wake();
            }
        }
    }

    /// Closes the link, for both processes. There can be none from now on.
    pub(super) fn close(&self) {
        if let Some(link) = self.link.get_or_init(|| None) {
            // The other end may be closed already.
            let _ = shutdown(link, Shutdown::Both);
        }
    }
}

impl std::fmt::Debug for Inlet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inlet")
            .field("workers", &self.workers.len())
            .finish_non_exhaustive()
    }
}

fn encode(worker: u8, path: &NetworkPath, ecn: Ecn, bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER_LEN + bytes.len());
    message.extend_from_slice(&[worker, ecn.bits()]);
    for address in [path.local, path.remote] {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        message.extend_from_slice(&ip.octets());
        message.extend_from_slice(&address.port().to_be_bytes());
        let scope = match address {
            SocketAddr::V4(_) => 0,
            SocketAddr::V6(address) => address.scope_id(),
        };
        message.extend_from_slice(&scope.to_be_bytes());
    }
    message.extend_from_slice(bytes);
    message
}

/// The index of the worker, and its datagram.
fn decode(message: &[u8]) -> Option<(usize, Forwarded)> {
    let (header, bytes) = message.split_first_chunk::<HEADER_LEN>()?;
    if header[1] > 3 {
        return None;
    }
    let forwarded = Forwarded {
        path: NetworkPath {
            local: address(header.get(2..)?)?,
            remote: address(header.get(2 + ADDRESS_LEN..)?)?,
        },
        ecn: Ecn::from_bits(header[1]),
        bytes: bytes.to_vec(),
    };
    Some((usize::from(header[0]), forwarded))
}

fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let (ip, rest) = bytes.split_first_chunk::<16>()?;
    let (port, rest) = rest.split_first_chunk()?;
    let (ip, port) = (Ipv6Addr::from(*ip), u16::from_be_bytes(*port));
    let scope = u32::from_be_bytes(*rest.first_chunk()?);
    Some(match ip.to_ipv4_mapped() {
        Some(ip) => SocketAddr::new(ip.into(), port),
        None => SocketAddrV6::new(ip, port, 0, scope).into(),
    })
}
