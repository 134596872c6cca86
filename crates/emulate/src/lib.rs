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
//! The links are those of the simulator, so rates, queues, loss, jitter, ECN marking and policers of a network file
//! behave the same. Random events differ from the simulator's, because real packets arrive at other times than
//! simulated ones.
//!
//! The accuracy of the emulation depends on the timers of the machine. [`Report::late`] therefore records how late each
//! datagram was sent. Check it before trusting a measurement; a busy machine shows there.
//!
//! A relay needs no privileges, and carries QUIC and any other protocol over UDP. A device requires `CAP_NET_ADMIN` and
//! carries any protocol over IP. Both require Linux (`epoll`, TUN).

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
pub use paths::{DirectionReport, Plan, Report, Sharing};
#[cfg(target_os = "linux")]
pub use relay::{Relay, Settings, StartError};
#[cfg(target_os = "linux")]
pub use tunnel::{Tunnel, TunnelError};
