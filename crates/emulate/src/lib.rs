//! Emulated paths between real sockets: a UDP relay, or a network device for all protocols, that does to packets what a
//! modelled link does, when it does it.
//!
//! | module | owns |
//! |---|---|
//! | [`paths`] | which client's datagram is in which link, and until when: bytes and time in, bytes and deadlines out |
//! | [`relay`] | sockets, the clock, and the thread between them |
//! | [`packet`] | IP packets: which way they go, whose they are, the addresses at their other end |
//! | [`tunnel`] | a network device, the clock, and the thread behind it |
//! | [`running`] | such a thread, seen from outside |
//! | [`lateness`] | how much later than the model says packets left |
//!
//! The links are those of the simulator, so what holds there for a network file, holds here: rates, queues, loss, jitter,
//! marks, policers. What does not hold is the order of chance: real packets come at other times than simulated ones.
//!
//! A relay is as good as its timer. It therefore writes down how late each datagram left ([`Report::late`]), and whoever
//! measures through it asks that first: a run over a busy machine shows there.
//!
//! Anybody may start a relay, for QUIC and anything else over UDP. A device takes rights, and everything over IP goes through.
//! Linux has what it takes (`epoll`, TUN).

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
pub use paths::{Plan, Report, Sharing, WayReport};
#[cfg(target_os = "linux")]
pub use relay::{Relay, Settings, StartError};
#[cfg(target_os = "linux")]
pub use tunnel::{Tunnel, TunnelError};
