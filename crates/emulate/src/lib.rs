//! Network path emulation between real endpoints: a UDP relay, or a network device for all IP protocols, that subjects
//! packets to simulated links in real time.
//!
//! | module | responsibility |
//! |---|---|
//! | [`paths`] | clients and their links, without I/O: datagrams and times in, datagrams and deadlines out |
//! | [`relay`] | the UDP relay: sockets, clock and thread |
//! | [`packet`] | IP packets: direction, flow and address translation |
//! | [`tunnel`] | the TUN device: device, clock and thread |
//! | [`running`] | the handle of a running relay or tunnel |
//! | [`lateness`] | histogram of the delay added by this machine |
//!
//! # Example
//!
//! A relay that adds 10 ms in each direction, between a client and a server that only know UDP:
//!
//! ```
//! use std::{
//!     net::UdpSocket,
//!     time::{Duration, Instant},
//! };
//!
//! use lastbyte_emulate::{Plan, Relay, Settings};
//! use lastbyte_link::Config;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = UdpSocket::bind("127.0.0.1:0")?;
//! let link = Config {
//!     delay: Duration::from_millis(10),
//!     ..Config::default()
//! };
//! let relay = Relay::start(Settings {
//!     listen: "127.0.0.1:0".parse()?,
//!     to: server.local_addr()?,
//!     plan: Plan::new(link.clone(), link),
//!     rebind: None,
//! })?;
//!
//! let client = UdpSocket::bind("127.0.0.1:0")?;
//! let start = Instant::now();
//! client.send_to(b"ping", relay.address())?;
//! let mut buffer = [0; 16];
//! let (len, from) = server.recv_from(&mut buffer)?;
//! server.send_to(&buffer[..len], from)?;
//! client.recv_from(&mut buffer)?;
//! assert!(start.elapsed() >= Duration::from_millis(20));
//!
//! let report = relay.stop()?;
//! assert_eq!((report.up.delivered.packets, report.down.delivered.packets), (1, 1));
//! # Ok(())
//! # }
//! ```
//!
//! The links are those of the simulator, so rates, queues, loss, jitter, ECN marking and policers of a network file
//! behave the same. Random events differ from the simulator's, because real packets arrive at other times than
//! simulated ones.
//!
//! The accuracy of the emulation depends on the timers of the machine. [`Report::late`] therefore records how late each
//! datagram was sent. Check it before trusting a measurement; a busy machine shows there.
//!
//! A relay needs no privileges, and carries QUIC and any other protocol over UDP. A device requires `CAP_NET_ADMIN` and
//! carries any protocol over IP. Both require Linux (`epoll`, TUN).
//!
//! # Decisions
//!
//! - Each packet's delay against the model is measured and reported, so that an overloaded machine is noticed.
//! - A network device needs privileges; a UDP relay needs none, but does not carry TCP.
//! - Client and server on one host address a third address behind the device. Both addresses of a packet are replaced
//!   such that all checksums stay valid.

#![forbid(unsafe_code)]

pub mod lateness;
pub mod packet;
pub mod paths;
#[cfg(target_os = "linux")]
pub mod relay;
#[cfg(target_os = "linux")]
pub mod running;
#[cfg(target_os = "linux")]
pub mod tunnel;

pub use lateness::Lateness;
pub use packet::Network;
pub use paths::{DirectionReport, PathModel, Plan, Report, Sharing};
#[cfg(target_os = "linux")]
pub use relay::{Relay, Settings, StartError};
#[cfg(target_os = "linux")]
pub use tunnel::{Tunnel, TunnelError};
