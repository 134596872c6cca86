//! One socket.
//!
//! Owns: what is set on it, the classification of what goes wrong when sending, and the buffers of a batch. Never: keeps a
//! datagram that could not be sent, or decides that one is worth sending again.

#![expect(clippy::disallowed_types, reason = "here is where sockets live")]

use std::{
    fmt,
    io::{self, IoSliceMut},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
};

use quinn_udp::{RecvMeta, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Type};

#[cfg(test)]
mod tests;

/// What can be set on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many bytes the kernel may hold that were not received yet; it may allow less. Default: 4 MiB, which at 1 Gbit/s
    /// is 30 ms.
    pub receive_buffer: usize,
    /// How many bytes the kernel may hold that did not leave yet. Default: 4 MiB.
    pub send_buffer: usize,
    /// Whether a socket on `[::]` takes IPv4 too. Default: yes.
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

/// What the system can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How many datagrams leave in one system call: 1 without GSO.
    pub send_segments: usize,
    /// How many datagrams come in one buffer: 1 without GRO.
    pub receive_segments: usize,
    /// Whether datagrams are never fragmented on the way, which probing for a larger size needs (RFC 9000 §14).
    pub forbids_fragments: bool,
    /// What the kernel holds before it drops what arrives, in bytes.
    pub receive_buffer: usize,
    /// What the kernel holds before it takes no more, in bytes.
    pub send_buffer: usize,
}

/// ECN marks of a datagram (RFC 3168 §5): the two bits as they are in the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// 00.
    #[default]
    NotEct,
    /// 01.
    Ect1,
    /// 10.
    Ect0,
    /// 11: a router met congestion.
    Ce,
}

/// Datagrams to be sent to one address.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// Where to.
    pub remote: SocketAddr,
    /// From which of the local addresses; `None` leaves it to the system.
    pub local: Option<IpAddr>,
    /// Their marks.
    pub ecn: Ecn,
    /// Datagrams one after the other, all of `segment_len` bytes but the last, which may be shorter.
    pub bytes: &'a [u8],
    /// The length of each.
    pub segment_len: usize,
}

/// Why datagrams did not leave.
#[derive(Debug)]
pub enum SendError {
    /// The kernel holds as many as it may. Try again when the socket is writable, from this byte on: what stands before it
    /// has left.
    Full {
        /// In bytes.
        sent: usize,
    },
    /// They are larger than the interface, or what the kernel knows of the path, lets through.
    TooLarge,
    /// Something else: no route, a firewall, an interface that is down. It may pass.
    Failed(io::Error),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { .. } => f.write_str("the socket's send buffer is full"),
            Self::TooLarge => f.write_str("the datagram is larger than the path's MTU"),
            Self::Failed(error) => write!(f, "cannot send: {error}"),
        }
    }
}

impl std::error::Error for SendError {}

/// A UDP socket.
#[derive(Debug)]
pub struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
}

impl Socket {
    /// A socket on a local address; port 0 is any that is free.
    ///
    /// # Errors
    ///
    /// The address is taken, is not of this host, or may not be used.
    pub fn bind(address: SocketAddr, options: &Options) -> io::Result<Self> {
        Self::from_io(open(address, options, false)?)
    }

    pub(crate) fn from_io(io: socket2::Socket) -> io::Result<Self> {
        let io: UdpSocket = io.into();
        let state = UdpSocketState::new((&io).into())?;
        // `quinn-udp` 0.6 asks for the time of arrival, and has no room for that beside the rest: of datagrams that the
        // kernel joined, over IPv4, the mark would be cut off.
        #[cfg(target_os = "linux")]
        crate::option::set(io.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &0)?;
        let local = io.local_addr()?;
        Ok(Self { io, state, local })
    }

    /// A socket that somebody else made, such as one handed over at the start of the process. It becomes non-blocking.
    ///
    /// # Errors
    ///
    /// It is not a UDP socket.
    pub fn from_std(io: UdpSocket) -> io::Result<Self> {
        Self::from_io(io.into())
    }

    /// The address it is bound to.
    #[must_use]
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// What the system can do. Segments to be sent can become 1 when the network interface turns out not to know GSO.
    #[must_use]
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

    /// How many datagrams may be sent in one call now.
    #[must_use]
    pub fn send_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends datagrams: all of them in one system call if the system can.
    ///
    /// # Errors
    ///
    /// None, or where one system call does not take all of them, not all have left.
    pub fn send(&self, transmit: &Transmit<'_>) -> Result<(), SendError> {
        let segment_len = transmit.segment_len.max(1);
        let mut rest = transmit.bytes;
        while !rest.is_empty() {
            let segments = self.state.max_gso_segments();
            let len = rest.len().min(segment_len.saturating_mul(segments));
            match self.send_at_once(&rest[..len], transmit) {
                Ok(()) => rest = &rest[len..],
                // The interface does not know GSO after all: one by one.
                Err(SendError::Failed(_)) if segments > self.state.max_gso_segments() => {}
                Err(SendError::Full { .. }) => {
                    let sent = transmit.bytes.len() - rest.len();
                    return Err(SendError::Full { sent });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn send_at_once(&self, bytes: &[u8], transmit: &Transmit<'_>) -> Result<(), SendError> {
        let is_one = bytes.len() <= transmit.segment_len;
        let message = quinn_udp::Transmit {
            destination: self.reachable(transmit.remote),
            ecn: match transmit.ecn {
                Ecn::NotEct => None,
                Ecn::Ect1 => Some(quinn_udp::EcnCodepoint::Ect1),
                Ecn::Ect0 => Some(quinn_udp::EcnCodepoint::Ect0),
                Ecn::Ce => Some(quinn_udp::EcnCodepoint::Ce),
            },
            contents: bytes,
            segment_size: (!is_one).then_some(transmit.segment_len),
            src_ip: transmit
                .local
                .filter(|local| !local.is_unspecified())
                .map(|local| self.mapped(local)),
        };
        self.state
            .try_send((&self.io).into(), &message)
            .map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => SendError::Full { sent: 0 },
                _ if quinn_udp::is_msg_size_err(&error) => SendError::TooLarge,
                _ => SendError::Failed(error),
            })
    }

    /// An address as this socket's family has it.
    fn reachable(&self, address: SocketAddr) -> SocketAddr {
        SocketAddr::new(self.mapped(address.ip()), address.port())
    }

    fn mapped(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(v4) if self.local.is_ipv6() => v4.to_ipv6_mapped().into(),
            address => address,
        }
    }

    /// Receives what is there into a batch, at most as much as it holds, without waiting. Returns how many buffers were
    /// filled, with 0 for nothing; if all were, there may be more.
    ///
    /// # Errors
    ///
    /// The socket is broken.
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
            // What an earlier datagram of ours met (ICMP) is not about this one.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::ConnectionRefused
                        | io::ErrorKind::ConnectionReset
                        | io::ErrorKind::HostUnreachable
                        | io::ErrorKind::NetworkUnreachable
                ) => {}
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

/// A socket with all that is set before it is bound.
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
    // The kernel cuts them to its own limits without a word: [`Capabilities`] tells.
    let _ = socket.set_recv_buffer_size(options.receive_buffer);
    let _ = socket.set_send_buffer_size(options.send_buffer);
    socket.bind(&address.into())?;
    Ok(socket)
}

/// How many buffers a batch has: one system call fills them all.
const BUFFERS: usize = 8;
/// As much as the kernel joins into one (GRO), and as a datagram can have.
const BUFFER_LEN: usize = 65_536;

/// Room for what comes in one system call.
pub struct Batch {
    buffers: Box<[Box<[u8]>; BUFFERS]>,
    metas: [RecvMeta; BUFFERS],
    filled: usize,
}

/// Datagrams that came together, from one address, with one mark.
#[derive(Debug)]
pub struct Received<'a> {
    /// Where from.
    pub remote: SocketAddr,
    /// To which local address, if the system tells.
    pub local: Option<IpAddr>,
    /// Their marks.
    pub ecn: Ecn,
    /// One after the other, all of `segment_len` bytes but the last, which may be shorter.
    pub bytes: &'a mut [u8],
    /// The length of each; at least 1.
    pub segment_len: usize,
}

impl Batch {
    /// 512 KiB of buffers.
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

    /// How many buffers it has.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        BUFFERS
    }

    /// What was received last.
    pub fn received(&mut self) -> impl Iterator<Item = Received<'_>> {
        let filled = self.buffers.iter_mut().zip(&self.metas).take(self.filled);
        filled.map(|(buffer, meta)| {
            let len = meta.len.min(buffer.len());
            Received {
                remote: canonical(meta.addr),
                local: meta.dst_ip.map(|address| address.to_canonical()),
                ecn: match meta.ecn {
                    None => Ecn::NotEct,
                    Some(quinn_udp::EcnCodepoint::Ect1) => Ecn::Ect1,
                    Some(quinn_udp::EcnCodepoint::Ect0) => Ecn::Ect0,
                    Some(quinn_udp::EcnCodepoint::Ce) => Ecn::Ce,
                },
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

/// IPv4 as IPv4, also where it comes through a socket of IPv6.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// The address that reaches a socket from this host: loopback for one bound to all addresses.
#[must_use]
pub fn loopback(local: SocketAddr) -> SocketAddr {
    match local.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, local.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, local.port()).into(),
        _ => local,
    }
}
