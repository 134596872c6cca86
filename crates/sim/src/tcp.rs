//! A model of TCP with TLS as Linux sends it: byte counts in, segments and deadlines out, in virtual time.
//!
//! An [`Endpoint`] is one end of a connection. It carries no payload: the application [writes](Endpoint::write) a number of
//! bytes, and the other end learns how many of them have [arrived](Endpoint::received) in order, in whole TLS records. The
//! caller moves each [`Segment`] to the other end, over links, and calls [`Endpoint::handle_timeout`] at the
//! [deadline](Endpoint::deadline).
//!
//! ```
//! use lastbyte_sim::tcp::{Config, Endpoint};
//! use lastbyte_units::Time;
//!
//! let (mut client, mut server) = (Endpoint::client(&Config::default()), Endpoint::server(&Config::default()));
//! client.connect(Time::ZERO);
//! client.write(500); // sent when the handshake allows it
//! let now = Time::ZERO;
//! while server.received() < 500 {
//!     while let Some(segment) = client.poll_transmit(now) {
//!         server.handle_segment(now, &segment);
//!     }
//!     while let Some(segment) = server.poll_transmit(now) {
//!         client.handle_segment(now, &segment);
//!     }
//! }
//! ```
//!
//! # What is modelled
//!
//! | module | rules | source |
//! |---|---|---|
//! | `endpoint` | the handshake | RFC 9293 §3.5 |
//! | `sender` | sending, states of recovery, timers | RFC 5681, RFC 6675; Linux `tcp_output.c`, `tcp_timer.c`, `tcp_fastretrans_alert` |
//! | `tls` | flights of TLS 1.2 and 1.3, resumption, early data, records | RFC 5246, RFC 5077, RFC 8446 |
//! | `outgoing` | written data, cut into records and segments | Linux `tcp_sendmsg` |
//! | `sent` | SACK scoreboard | RFC 2018; Linux `tcp_sacktag_write_queue` |
//! | `rack` | loss detection by time, tail loss probe | RFC 8985; Linux `tcp_recovery.c` |
//! | `prr` | the window in recovery | RFC 6937; Linux `tcp_cwnd_reduction` |
//! | `rto` | retransmission timeout of 200 ms at least | RFC 6298; Linux `tcp_rtt_estimator` |
//! | `incoming` | reassembly, SACK blocks, duplicate SACK | RFC 2018, RFC 2883; Linux `tcp_data_queue_ofo` |
//! | `acks` | quick and delayed acknowledgments | RFC 5681 §4.2; Linux `__tcp_ack_snd_check` |
//! | `window` | receive window that grows by dynamic right-sizing | Linux `tcp_rcv_space_adjust` |
//! | `cubic` | Linux's CUBIC and `HyStart` | Linux `tcp_cubic.c` |
//!
//! Linux's functions are named as the source of its rules. Rules and constants that no RFC states were not checked against the
//! kernel's source text: they are assumed, and docs/sim.md compares the model with a running kernel. Sizes of TLS flights are
//! estimates.
//!
//! Congestion control is [`LinuxCubic`] or any [`Spec`](lastbyte_congestion::Spec) of `lastbyte_congestion`.
//!
//! # What is not modelled
//!
//! - Closing a connection, TCP Fast Open, ECN, path MTU discovery.
//! - The time that an endpoint takes to compute. The application reads all that arrives at once.

mod acks;
mod config;
mod cubic;
mod endpoint;
mod incoming;
mod outgoing;
mod prr;
mod rack;
mod rto;
mod segment;
mod sender;
mod sent;
mod statistics;
mod tls;
mod window;

pub use config::Config;
pub use cubic::LinuxCubic;
pub use endpoint::Endpoint;
pub use segment::{Flags, Progress, Segment};
pub use statistics::Statistics;
pub use tls::{Flight, Tls};

#[cfg(test)]
mod tests;
