//! The event loop: [`Endpoint`](lastbyte_quic::endpoint::Endpoint)s of QUIC on sockets, one worker a thread.
//!
//! | module | owns |
//! |---|---|
//! | [`worker`] | a turn of the loop: datagrams in, timers, the application, datagrams out |
//! | [`application`] | what runs on a worker: a server, a client, a load generator |
//! | [`crew`] | the workers of a server: threads, their sockets, who hears from whom |
//! | [`handover`] | datagrams that came to the wrong worker |
//! | [`clock`] | time, for state machines that have none of their own |
//!
//! # What is shared between workers
//!
//! Nothing on the way of a datagram: socket, endpoint, connections, timers and buffers are the worker's own. The kernel
//! hands each datagram to the worker of its connection ([`lastbyte_udp::group`]). Where it cannot, the datagram goes from
//! worker to worker by a bounded queue, is counted, and arrives.
//!
//! # Bounds
//!
//! A turn receives and sends so much at most ([`worker::Limits`]), so that neither direction, nor one connection, keeps
//! the others waiting. What cannot leave since the kernel's buffer is full waits in the one send buffer, and nothing more
//! is made until it has left.

#![forbid(unsafe_code)]

pub mod application;
pub mod clock;
pub mod crew;
pub mod handover;
pub mod worker;

pub use application::{Application, Datagram, Turn};
pub use clock::Clock;
pub use crew::{Crew, Remote};
pub use handover::Owners;
pub use worker::{Statistics, Worker};
