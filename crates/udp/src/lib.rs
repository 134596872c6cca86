//! UDP sockets as QUIC wants them: many datagrams a system call, ECN marks both ways, one socket a worker.
//!
//! | module | owns |
//! |---|---|
//! | [`socket`] | a socket: sending with segmentation offload (GSO), receiving in batches (`recvmmsg`, GRO), ECN (RFC 9000 §13.4), which local address a datagram came to, no fragmentation (§14) |
//! | [`group`] | several sockets with one port, and which of them the kernel hands a datagram to |
//! | [`wait`] | waiting for a socket, a deadline to the microsecond, or a word from another thread |
//! | [`poller`] | the same for many sockets |
//! | [`tcp_info`] | what the kernel counts of a TCP connection, for those that run beside |
//!
//! It knows nothing of QUIC but where a connection ID stands in a packet (RFC 8999 §5), reads no clock, and starts no
//! thread. Sockets never block. What a system lacks (GSO, GRO, ECN, steering) is done without, and said by
//! [`Capabilities`].
//!
//! The `unsafe` of Lastbyte's networking is here: one call each of `setsockopt` and `getsockopt`, in `option`.

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
