//! UDP sockets for QUIC: several datagrams per system call, ECN marks in both directions, one socket per worker.
//!
//! | module | responsibility |
//! |---|---|
//! | [`socket`] | a socket: sending with segmentation offload (GSO), receiving in batches (`recvmmsg`, GRO), ECN (RFC 9000 §13.4), the local address of received datagrams, no fragmentation (§14) |
//! | [`group`] | several sockets on one port, and the choice of the socket that receives a datagram |
//! | [`wait`] | waiting for a socket, a deadline with microsecond precision, or a wake-up from another thread |
//! | [`poller`] | the same for many sockets |
//! | [`tcp_info`] | the kernel's statistics of a TCP connection |
//!
//! Of QUIC, this crate knows only the position of the connection ID in a packet (RFC 8999 §5). It reads no clock and
//! starts no thread. Sockets never block. Features that the system lacks (GSO, GRO, ECN, steering) are not used;
//! [`Capabilities`] reports them.
//!
//! All `unsafe` code of Lastbyte's networking is in `option`: one call each of `setsockopt` and `getsockopt`.

#![deny(unsafe_code)]

pub mod group;
mod option;
#[cfg(target_os = "linux")]
pub mod poller;
pub mod socket;
#[cfg(target_os = "linux")]
pub mod tcp_info;
pub mod wait;

pub use group::{Steering, adopt_group, bind_group, shares_its_port};
#[cfg(target_os = "linux")]
pub use poller::Poller;
pub use socket::{Batch, Capabilities, Ecn, Options, Received, SendError, Socket, Transmit};
#[cfg(target_os = "linux")]
pub use tcp_info::{TcpInfo, tcp_congestion};
pub use wait::{Ready, Waiter, Waker, sharpen_timers};
