//! Several sockets with one port (`SO_REUSEPORT`), one a worker.
//!
//! Owns: the rule by which the kernel picks the socket. Never: moves a datagram that went to another.
//!
//! # Decisions
//!
//! - *A byte of the destination connection ID decides in short headers*, modulo the number of sockets. They name an ID that a
//!   worker gave out, whose byte leads to it, so that a client whose address changes stays where it is; the kernel's own
//!   choice by addresses cannot do that.
//! - *Both addresses decide in long headers*, by the kernel's hash, whose key no client knows. The first of them name an ID of
//!   the client's choice, and whatever was read from that would let clients choose a worker, and fill it. All long headers of
//!   a connection come from one address: it must not change before the handshake is confirmed (RFC 9000 §9).
//! - *By classic BPF*, which needs no privilege. The program sees the datagram from its first byte on; a byte that is
//!   beyond its end reads as socket 0, and a socket that there is not leads to the kernel's own choice.

#![expect(clippy::disallowed_types, reason = "here is where sockets live")]

use std::{
    io,
    net::{SocketAddr, UdpSocket},
};

use socket2::SockRef;

use super::socket::{Options, Socket, open};

#[cfg(test)]
mod tests;

/// Who picks the socket of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steering {
    /// The kernel, by both addresses. A client whose address changes may come to another socket.
    ByAddress,
    /// In short headers the byte of the destination connection ID at this index, modulo the number of sockets. In long
    /// headers the kernel, by both addresses.
    ByConnectionId {
        /// Counted from 0.
        byte: u8,
    },
}

/// So many sockets on one address. With them comes how datagrams are steered: as asked for, or, where the system cannot,
/// by address.
///
/// # Errors
///
/// The address cannot be bound, also if another group has it.
pub fn bind_group(
    address: SocketAddr,
    count: usize,
    options: &Options,
    steering: Steering,
) -> io::Result<(Vec<Socket>, Steering)> {
    if count > 1 && address.port() != 0 {
        // A group joins any other of the same user without a word, and each gets a part of the datagrams. A socket that
        // shares with nobody can only be bound where nobody is.
        drop(open(address, options, false)?);
    }
    let mut sockets = Vec::with_capacity(count);
    let mut address = address;
    for _ in 0..count.max(1) {
        let socket = open(address, options, count > 1)?;
        // Port 0 was any for the first, and is that for the others.
        if let Some(bound) = socket.local_addr()?.as_socket() {
            address.set_port(bound.port());
        }
        sockets.push(socket);
    }
    into_group(sockets, steering)
}

/// The same of sockets that somebody else bound to one address, such as a service manager, and as many more beside them as
/// are missing. For more than one, all have to share their port (`SO_REUSEPORT`), which is set before a socket is bound. The
/// options are for those that are opened here: who bound the others may have been allowed larger buffers than we are.
///
/// # Errors
///
/// No more can be opened: the kernel lets only the user join who bound the first.
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

/// Whether other sockets may be bound to this one's address beside it.
#[must_use]
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

/// Instructions of classic BPF, as `linux/filter.h` has them.
#[cfg(target_os = "linux")]
mod instruction {
    pub(super) const LOAD_BYTE: u16 = 0x30; // BPF_LD | BPF_B | BPF_ABS
    pub(super) const JUMP_IF_SET: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
    pub(super) const MODULO: u16 = 0x94; // BPF_ALU | BPF_MOD | BPF_K
    pub(super) const RETURN_A: u16 = 0x16; // BPF_RET | BPF_A
    pub(super) const RETURN_K: u16 = 0x06; // BPF_RET | BPF_K
}

/// Where a destination connection ID begins in a short header (RFC 8999 §5.2).
#[cfg(target_os = "linux")]
const SHORT_ID_AT: u32 = 1;
/// A socket that there is not: the kernel chooses by addresses.
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
        // The header form: 1 for long, which goes over the next three.
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

/// Gives the whole group the rule.
#[cfg(target_os = "linux")]
fn steer(socket: &socket2::Socket, byte: u8, count: u32) -> io::Result<()> {
    use std::os::fd::AsFd;

    crate::option::attach_program(socket.as_fd(), &mut program(byte, count))
}

#[cfg(not(target_os = "linux"))]
fn steer(_socket: &socket2::Socket, _byte: u8, _count: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
