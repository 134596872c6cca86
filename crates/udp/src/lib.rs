//! UDP sockets for QUIC: several datagrams per system call, ECN marks in both directions, one socket per worker.
//!
//! | module | responsibility |
//! |---|---|
//! | [`socket`] | a socket: sending with segmentation offload (GSO), receiving in batches (`recvmmsg`, GRO), ECN (RFC 9000 §13.4), the local address of received datagrams, no fragmentation (§14) |
//! | [`group`] | several sockets on one port, and the choice of the socket that receives a datagram |
//! | [`wait`] | waiting for a socket, a deadline with microsecond precision, or a wake-up from another thread |
//! | [`poller`] | the same for many sockets |
//! | [`changes`] | changes of the host's addresses and routes |
//! | [`source`] | the local address of packets to a peer |
//! | [`tcp_info`] | the kernel's statistics of a TCP connection |
//!
//! # Example
//!
//! Three datagrams, sent and received in one system call each where the kernel supports it:
//!
//! ```
//! use lastbyte_udp::{Batch, Ecn, Options, Socket, Transmit, Waiter};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sender = Socket::bind("127.0.0.1:0".parse()?, &Options::default())?;
//! let receiver = Socket::bind("127.0.0.1:0".parse()?, &Options::default())?;
//! sender.send(&Transmit {
//!     remote: receiver.local_address(),
//!     local: None,
//!     ecn: Ecn::Ect0,
//!     bytes: b"one two six",
//!     segment_len: 4,
//! })?;
//!
//! let mut waiter = Waiter::new()?;
//! let mut batch = Batch::new();
//! let mut datagrams = Vec::new();
//! while datagrams.len() < 3 {
//!     waiter.wait(&receiver, false, None)?;
//!     receiver.receive(&mut batch)?;
//!     for received in batch.received() {
//!         assert_eq!(received.ecn, Ecn::Ect0);
//!         datagrams.extend(received.bytes.chunks(received.segment_len).map(<[u8]>::to_vec));
//!     }
//! }
//! assert_eq!(datagrams, [&b"one "[..], b"two ", b"six"]);
//! # Ok(())
//! # }
//! ```
//!
//! Of QUIC, this crate knows only the position of the connection ID in a packet (RFC 8999 §5). It reads no clock and
//! starts no thread. Sockets never block. Features that the system lacks (GSO, GRO, ECN, steering) are not used;
//! [`Capabilities`] reports them.
//!
//! All `unsafe` code of Lastbyte's networking is in `option`: one call each of `setsockopt` and `getsockopt`.

#![deny(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod changes;
pub mod group;
mod option;
#[cfg(target_os = "linux")]
pub mod poller;
pub mod socket;
pub mod source;
#[cfg(target_os = "linux")]
pub mod tcp_info;
pub mod wait;

#[cfg(target_os = "linux")]
pub use changes::NetworkChanges;
pub use group::{Steering, adopt_group, bind_group, shares_its_port};
#[cfg(target_os = "linux")]
pub use poller::Poller;
pub use socket::{Batch, Capabilities, Ecn, Options, Received, SendError, Socket, Transmit};
pub use source::{has_address, source_address};
#[cfg(target_os = "linux")]
pub use tcp_info::{TcpInfo, limit_unsent, set_tcp_congestion, tcp_congestion};
pub use wait::{Ready, Waiter, Waker, Wanted, sharpen_timers};
