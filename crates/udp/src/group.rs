//! Several sockets on one port (`SO_REUSEPORT`), one per worker, and the rule by which the kernel selects a socket.
//!
//! # Decisions
//!
//! - *Short headers are steered by one byte of the destination connection ID*, modulo the number of sockets. The ID was
//!   issued by a worker, which encodes itself in this byte, so a client stays on its worker when its address changes.
//!   The kernel's own choice by addresses cannot do that.
//! - *Long headers are steered by both addresses*, with the kernel's keyed hash. The connection ID of the first packets is
//!   chosen by the client, so steering by it would let clients select a worker and overload it. All long headers of a
//!   connection come from one address, because a client must not migrate before the handshake is confirmed (RFC 9000 §9).
//! - *The rule is a classic BPF program*, which needs no privileges. The program receives the datagram from its first
//!   byte on. Reading beyond its end selects socket 0, and an index without a socket selects the kernel's own choice.

#![expect(clippy::disallowed_types, reason = "here is where sockets live")]

use std::{
    io,
    net::{SocketAddr, UdpSocket},
};

use socket2::SockRef;

use super::socket::{Options, Socket, open};

#[cfg(test)]
mod tests;

/// The kernel's rule to select the socket of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steering {
    /// By both addresses. After a change of its address, a client may reach another socket.
    ByAddress,
    /// Short headers by the byte of the destination connection ID at this index, modulo the number of sockets; long headers
    /// by both addresses.
    ByConnectionId {
        /// The index in the connection ID, counted from 0.
        byte: u8,
    },
}

/// Binds `count` sockets to one address. Also returns the steering in effect, which is [`Steering::ByAddress`] if the
/// system does not support the requested one.
///
/// # Errors
///
/// Returns the system's error if the address cannot be bound, for example because another group uses it.
pub fn bind_group(
    address: SocketAddr,
    count: usize,
    options: &Options,
    steering: Steering,
) -> io::Result<(Vec<Socket>, Steering)> {
    // The first socket is bound without `SO_REUSEPORT`. With it, the kernel would silently join this group with another one of
    // the same user, and each would receive a part of the datagrams. That includes a port of the kernel's choice.
    let alone = open(address, options, false)?;
    if count <= 1 {
        return into_group(vec![alone], steering);
    }
    let mut address = address;
    if let Some(bound) = alone.local_addr()?.as_socket() {
        address.set_port(bound.port());
    }
    #[cfg(target_os = "linux")]
    let first = {
        alone.set_reuse_port(true)?;
        alone
    };
    // Other systems require the option before a socket is bound.
    #[cfg(not(target_os = "linux"))]
    let first = {
        drop(alone);
        open(address, options, true)?
    };
    let mut sockets = vec![first];
    while sockets.len() < count {
        sockets.push(open(address, options, true)?);
    }
    into_group(sockets, steering)
}

/// Creates a group from sockets that another process bound to one address, such as a service manager, and binds further
/// sockets up to `count`. A group of more than one requires `SO_REUSEPORT` on all of them, which must be set before a
/// socket is bound. The options apply to the further sockets only, since the other process may be permitted larger
/// buffers.
///
/// # Errors
///
/// Returns the system's error if a further socket cannot be bound. The kernel only permits the user that bound the
/// first one.
pub fn adopt_group(
    given: Vec<UdpSocket>,
    count: usize,
    options: &Options,
    steering: Steering,
) -> io::Result<(Vec<Socket>, Steering)> {
    let mut sockets: Vec<socket2::Socket> = given.into_iter().map(Into::into).collect();
    if let Some(address) = sockets
        .first()
        .map(socket2::Socket::local_addr)
        .transpose()?
        && let Some(address) = address.as_socket()
    {
        while sockets.len() < count {
            sockets.push(open(address, options, true)?);
        }
    }
    into_group(sockets, steering)
}

/// Whether further sockets may be bound to the address of this one (`SO_REUSEPORT`).
pub fn shares_its_port(socket: &UdpSocket) -> bool {
    cfg!(unix) && SockRef::from(socket).reuse_port().unwrap_or(false)
}

fn into_group(
    sockets: Vec<socket2::Socket>,
    steering: Steering,
) -> io::Result<(Vec<Socket>, Steering)> {
    let count = sockets.len();
    let achieved = match (steering, sockets.first()) {
        (Steering::ByConnectionId { byte }, Some(first)) if count > 1 => {
            match steer(first, byte, count as u32) {
                Ok(()) => steering,
                Err(_) => Steering::ByAddress,
            }
        }
        _ => Steering::ByAddress,
    };
    let sockets: io::Result<_> = sockets.into_iter().map(Socket::from_io).collect();
    Ok((sockets?, achieved))
}

/// Instructions of classic BPF, as defined in `linux/filter.h`.
#[cfg(target_os = "linux")]
mod instruction {
    pub(super) const LOAD_BYTE: u16 = 0x30; // BPF_LD | BPF_B | BPF_ABS
    pub(super) const JUMP_IF_SET: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
    pub(super) const MODULO: u16 = 0x94; // BPF_ALU | BPF_MOD | BPF_K
    pub(super) const RETURN_A: u16 = 0x16; // BPF_RET | BPF_A
    pub(super) const RETURN_K: u16 = 0x06; // BPF_RET | BPF_K
}

/// The offset of the destination connection ID in a short header (RFC 8999 §5.2).
#[cfg(target_os = "linux")]
const SHORT_ID_AT: u32 = 1;
/// The index of no socket: the kernel selects by addresses.
#[cfg(target_os = "linux")]
const NO_SOCKET: u32 = u32::MAX;

#[cfg(target_os = "linux")]
fn program(byte: u8, count: u32) -> [libc::sock_filter; 6] {
    use instruction::{JUMP_IF_SET, LOAD_BYTE, MODULO, RETURN_A, RETURN_K};
    let step = |code, k| libc::sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    };
    [
        step(LOAD_BYTE, 0),
        // The header form. A long header (1) skips the next three instructions.
        libc::sock_filter {
            code: JUMP_IF_SET,
            jt: 3,
            jf: 0,
            k: 0x80,
        },
        step(LOAD_BYTE, SHORT_ID_AT + u32::from(byte)),
        step(MODULO, count),
        step(RETURN_A, 0),
        step(RETURN_K, NO_SOCKET),
    ]
}

/// Attaches the program to the whole group.
#[cfg(target_os = "linux")]
fn steer(socket: &socket2::Socket, byte: u8, count: u32) -> io::Result<()> {
    use std::os::fd::AsFd;

    crate::option::attach_program(socket.as_fd(), &mut program(byte, count))
}

#[cfg(not(target_os = "linux"))]
fn steer(_socket: &socket2::Socket, _byte: u8, _count: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
