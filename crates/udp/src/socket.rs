//! A UDP socket.
//!
//! This module sets the socket options, classifies send errors and owns the buffers of a batch. It does not keep
//! datagrams that could not be sent, and does not retry.

#![expect(clippy::disallowed_types, reason = "this module wraps sockets")]

use std::{
    fmt,
    io::{self, IoSliceMut},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
};

pub use lastbyte_units::Ecn;
use quinn_udp::{RecvMeta, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Type};

#[cfg(test)]
mod tests;

/// Socket options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The size of the receive buffer in bytes; the kernel may limit it. Default: 4 MiB, about 30 ms at 1 Gbit/s.
    pub receive_buffer: usize,
    /// The size of the send buffer in bytes; the kernel may limit it. Default: 4 MiB.
    pub send_buffer: usize,
    /// Whether a socket on `[::]` accepts IPv4 too. Default: `true`.
    pub dual_stack: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            receive_buffer: 4 << 20,
            send_buffer: 4 << 20,
            dual_stack: true,
        }
    }
}

/// The features that the system supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The maximum number of datagrams sent per system call; 1 without GSO.
    pub send_segments: usize,
    /// The maximum number of datagrams received per buffer; 1 without GRO.
    pub receive_segments: usize,
    /// Whether datagrams are sent with fragmentation disabled, which path MTU discovery requires (RFC 9000 §14).
    pub forbids_fragments: bool,
    /// The actual size of the receive buffer in bytes.
    pub receive_buffer: usize,
    /// The actual size of the send buffer in bytes.
    pub send_buffer: usize,
}

/// Datagrams to be sent to one address.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// The destination address.
    pub remote: SocketAddr,
    /// The local source address; `None` lets the system choose.
    pub local: Option<IpAddr>,
    /// The ECN codepoint.
    pub ecn: Ecn,
    /// The concatenated datagrams. All are `segment_len` bytes long, except that the last one may be shorter.
    pub bytes: &'a [u8],
    /// The length of each datagram in bytes.
    pub segment_len: usize,
}

/// Datagrams could not be sent.
///
/// | `errno` of `sendmsg` | cause | result |
/// |---|---|---|
/// | `EAGAIN` | the socket's send buffer is full | [`Full`](Self::Full): the rest waits until the socket is writable |
/// | `ENOBUFS`, `ENOMEM` | a queue of the interface is full, or the system has no memory; no event follows when that ends | [`Dropped`](Self::Dropped): lost, like datagrams that a router drops |
/// | `EMSGSIZE` | a datagram exceeds the MTU of the interface or of the route | [`TooLarge`](Self::TooLarge): lost, as path MTU discovery expects |
/// | `EIO`, `EINVAL` with several datagrams | the interface does not support GSO | no error: they are sent one by one, from then on |
/// | `EINTR` | a signal | no error: repeated |
/// | `EPERM` | a packet filter (netfilter) dropped a datagram | [`Failed`](Self::Failed) |
/// | `ENETUNREACH`, `EHOSTUNREACH`, `ENETDOWN` | no route, or the interface is down | `Failed` |
/// | `EADDRNOTAVAIL`, `EINVAL` | the source address is no longer one of this host | `Failed` |
/// | any other | | `Failed` |
///
/// None of them ends the socket: a later datagram may pass. With `Dropped`, `TooLarge` and `Failed`, datagrams after the one
/// that failed are not sent either.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The send buffer is full. Datagrams before this offset have been sent; retry from there when the socket is
    /// writable.
    #[error("the socket's send buffer is full")]
    Full {
        /// The offset in bytes.
        sent: usize,
    },
    /// The datagrams exceed the MTU of the interface, or the path MTU known to the kernel.
    #[error("the datagram is larger than the path's MTU")]
    TooLarge,
    /// The system had no room for the datagrams: they are lost.
    #[error("the system has no room for the datagram")]
    Dropped,
    /// Another error, possibly temporary: no route, a firewall, an interface that is down.
    #[error("cannot send: {0}")]
    Failed(io::Error),
}

impl SendError {
    /// The meaning of an error of `sendmsg`.
    fn of(error: io::Error) -> Self {
        match error.raw_os_error() {
            _ if error.kind() == io::ErrorKind::WouldBlock => Self::Full { sent: 0 },
            Some(libc::ENOBUFS | libc::ENOMEM) => Self::Dropped,
            _ if quinn_udp::is_msg_size_err(&error) => Self::TooLarge,
            _ => Self::Failed(error),
        }
    }
}

/// A UDP socket.
#[derive(Debug)]
pub struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
}

impl Socket {
    /// Binds a socket to a local address. Port 0 selects a free port.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is in use, not assigned to this host, or not permitted.
    pub fn bind(address: SocketAddr, options: &Options) -> io::Result<Self> {
        Self::from_io(open(address, options, false)?)
    }

    pub(crate) fn from_io(io: socket2::Socket) -> io::Result<Self> {
        let io: UdpSocket = io.into();
        let state = UdpSocketState::new((&io).into())?;
        // `quinn-udp` 0.6 requests receive timestamps, but its control buffer has no space for them in addition to the
        // rest: over IPv4, the ECN mark of datagrams joined by GRO would be truncated.
        #[cfg(target_os = "linux")]
        crate::option::set(io.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &0)?;
        let local = io.local_addr()?;
        Ok(Self { io, state, local })
    }

    /// The local address of the socket.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// The features that the system supports. The number of segments can drop to 1 if the network interface turns out
    /// not to support GSO.
    pub fn capabilities(&self) -> Capabilities {
        let socket = SockRef::from(&self.io);
        Capabilities {
            send_segments: self.state.max_gso_segments(),
            receive_segments: self.state.gro_segments(),
            forbids_fragments: !self.state.may_fragment(),
            receive_buffer: socket.recv_buffer_size().unwrap_or(0),
            send_buffer: socket.send_buffer_size().unwrap_or(0),
        }
    }

    /// Sends datagrams, in one system call if possible.
    ///
    /// # Errors
    ///
    /// Returns a [`SendError`] if a datagram could not be sent. If several system calls are needed, some datagrams may
    /// have been sent before.
    pub fn send(&self, transmit: &Transmit<'_>) -> Result<(), SendError> {
        send_in_parts(
            transmit.bytes,
            transmit.segment_len.max(1),
            || self.state.max_gso_segments(),
            |bytes| self.send_at_once(bytes, transmit),
        )
    }

    fn send_at_once(&self, bytes: &[u8], transmit: &Transmit<'_>) -> Result<(), SendError> {
        let is_one = bytes.len() <= transmit.segment_len;
        let message = quinn_udp::Transmit {
            destination: self.reachable(transmit.remote),
            ecn: quinn_udp::EcnCodepoint::from_bits(transmit.ecn.bits()),
            contents: bytes,
            segment_size: (!is_one).then_some(transmit.segment_len),
            src_ip: transmit
                .local
                .filter(|local| !local.is_unspecified())
                .map(|local| self.mapped(local)),
        };
        self.state
            .try_send((&self.io).into(), &message)
            .map_err(SendError::of)
    }

    /// Converts an address to the address family of this socket.
    fn reachable(&self, address: SocketAddr) -> SocketAddr {
        SocketAddr::new(self.mapped(address.ip()), address.port())
    }

    fn mapped(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(v4) if self.local.is_ipv6() => v4.to_ipv6_mapped().into(),
            address => address,
        }
    }

    /// Receives available datagrams into a batch without waiting. Returns the number of buffers filled. If that is the
    /// capacity of the batch, more datagrams may be available.
    ///
    /// # Errors
    ///
    /// Returns the error of the system call.
    pub fn receive(&self, batch: &mut Batch) -> io::Result<usize> {
        batch.filled = 0;
        let mut slices = batch
            .buffers
            .each_mut()
            .map(|buffer| IoSliceMut::new(buffer));
        match self
            .state
            .recv((&self.io).into(), &mut slices, &mut batch.metas)
        {
            Ok(filled) => batch.filled = filled,
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(batch.filled)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

/// Whether later calls of `recvmsg` may succeed: nothing was received, the system has no memory for it now, or an ICMP error for an
/// earlier datagram was reported, which does not concern this call.
fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
    ) || matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::ENOBUFS))
}

/// Sends datagrams, as many per call of `transmit` as `segments` permits at that time.
fn send_in_parts(
    bytes: &[u8],
    segment_len: usize,
    segments: impl Fn() -> usize,
    mut transmit: impl FnMut(&[u8]) -> Result<(), SendError>,
) -> Result<(), SendError> {
    let mut sent = 0;
    while sent < bytes.len() {
        let rest = &bytes[sent..];
        let permitted = segments();
        let len = rest.len().min(segment_len.saturating_mul(permitted));
        match transmit(&rest[..len]) {
            Ok(()) => sent += len,
            // The interface does not support GSO: send one by one.
            Err(SendError::Failed(_)) if permitted > segments() => {}
            Err(SendError::Full { .. }) => return Err(SendError::Full { sent }),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Creates a socket with all options that must be set before it is bound.
pub(crate) fn open(
    address: SocketAddr,
    options: &Options,
    is_shared: bool,
) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(!options.dual_stack)?;
    }
    #[cfg(unix)]
    if is_shared {
        socket.set_reuse_port(true)?;
    }
    // The kernel silently limits the sizes; [`Capabilities`] has the actual ones.
    let _ = socket.set_recv_buffer_size(options.receive_buffer);
    let _ = socket.set_send_buffer_size(options.send_buffer);
    socket.bind(&address.into())?;
    Ok(socket)
}

/// The number of buffers of a batch, all filled by one system call.
const BUFFERS: usize = 8;
/// The size of a buffer: the maximum that the kernel joins with GRO, and the maximum size of a datagram.
const BUFFER_LEN: usize = 65_536;

/// Buffers for the datagrams received in one system call.
pub struct Batch {
    buffers: Box<[Box<[u8]>; BUFFERS]>,
    metas: [RecvMeta; BUFFERS],
    filled: usize,
}

/// Datagrams received together, from one address and with the same ECN codepoint.
#[derive(Debug)]
pub struct Received<'a> {
    /// The source address.
    pub remote: SocketAddr,
    /// The local destination address, if the system provides it.
    pub local: Option<IpAddr>,
    /// The ECN codepoint.
    pub ecn: Ecn,
    /// The concatenated datagrams. All are `segment_len` bytes long, except that the last one may be shorter.
    pub bytes: &'a mut [u8],
    /// The length of each datagram in bytes. At least 1.
    pub segment_len: usize,
}

impl Batch {
    /// Creates a batch with 512 KiB of buffers.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buffers: Box::new(std::array::from_fn(|_| {
                vec![0; BUFFER_LEN].into_boxed_slice()
            })),
            metas: [RecvMeta::default(); BUFFERS],
            filled: 0,
        }
    }

    /// The number of buffers.
    pub const fn capacity(&self) -> usize {
        BUFFERS
    }

    /// The datagrams of the last receive.
    pub fn received(&mut self) -> impl Iterator<Item = Received<'_>> {
        let filled = self.buffers.iter_mut().zip(&self.metas).take(self.filled);
        filled.map(|(buffer, meta)| {
            let len = meta.len.min(buffer.len());
            Received {
                remote: canonical(meta.addr),
                local: meta.dst_ip.map(|address| address.to_canonical()),
                ecn: Ecn::from_bits(meta.ecn.map_or(0, |ecn| ecn as u8)),
                bytes: &mut buffer[..len],
                segment_len: meta.stride.max(1),
            }
        })
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("filled", &self.filled)
            .finish_non_exhaustive()
    }
}

/// Converts IPv4-mapped IPv6 addresses to IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// The address at which a socket is reachable from this host: loopback if it is bound to all addresses.
pub fn loopback(local: SocketAddr) -> SocketAddr {
    match local.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, local.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, local.port()).into(),
        _ => local,
    }
}
