//! HTTP/3, QPACK and priorities as a pure state machine over a [`Transport`], such as a QUIC connection.
//!
//! [`Connection`] is one end, a client's or a server's. It holds no transport: each call takes the time and the connection that carries it, as a [`Transport`]. Call [`Connection::poll`] for events after datagrams arrived and after timers. Messages are written directly to the transport's streams.
//!
//! | module | responsibility | RFC |
//! |---|---|---|
//! | [`connection`](Connection) | the streams of a connection, receiving and sending on them, shutdown | 9114 §3, §5, §6 |
//! | `message`, `fields` | headers, and the rules for well-formed messages | 9114 §4, 9110 |
//! | `frame`, `settings` | frames other than HEADERS and DATA | 9114 §7 |
//! | [`qpack`] | field compression in both directions, with the dynamic table | 9204 |
//! | `priority` | urgency and incremental delivery, for the transport's scheduler | 9218 |
//! | `allowance` | limits on the work that a peer can cause | 9114 §10.5 |
//! | `code`, `error`, `event`, `config` | codes, errors, events and settings for applications | 9114 §8 |
//!
//! # A server
//!
//! ```no_run
//! use lastbyte_http3::{Body, Connection, Event, Response};
//! # fn now() -> lastbyte_quic::Time { lastbyte_quic::Time::from_nanos(0) }
//! # fn run(quic: &mut lastbyte_quic::connection::Connection) {
//! let mut http3 = Connection::server(&lastbyte_http3::Config::default());
//! let mut response = Response::default();
//! // After each datagram and each timeout of `quic`:
//! while let Some(event) = http3.poll(quic, now()) {
//!     match event {
//!         Event::Request { stream, request } => {
//!             response.renew(if request.path() == Some("/") { 200 } else { 404 });
//!             response.fields_mut().push("content-type", "text/plain");
//!             // Fails only if the client has gone in the meantime, or the fields cannot be sent.
//!             let body = Body::Source(Box::new(&b"hello\n"[..]));
//!             let _ = http3.respond(quic, stream, &response, body);
//!             http3.recycle(request.into_fields());
//!         }
//!         Event::Data { stream } => {
//!             let _ = http3.read(quic, now(), stream, &mut |bytes| bytes.len());
//!         }
//!         _ => {}
//!     }
//! }
//! # }
//! ```
//!
//! # A client
//!
//! ```no_run
//! use lastbyte_http3::{Body, Connection, Event, Request, RequestError};
//! # fn now() -> lastbyte_quic::Time { lastbyte_quic::Time::from_nanos(0) }
//! # fn run(quic: &mut lastbyte_quic::connection::Connection) -> Result<(), RequestError> {
//! let mut http3 = Connection::client(&lastbyte_http3::Config::default());
//! let request = Request::new("GET", "https", "example.com", "/").with("accept", "*/*");
//! // Once the handshake is complete, or before it in 0-RTT:
//! let asked = http3.request(quic, &request, Body::Empty)?;
//! while let Some(event) = http3.poll(quic, now()) {
//!     match event {
//!         Event::Response { stream, response } => assert_eq!((stream, response.status()), (asked, 200)),
//!         Event::Data { stream } => {
//!             let _ = http3.read(quic, now(), stream, &mut |bytes| bytes.len());
//!         }
//!         Event::Finished { .. } => http3.close(quic, now(), lastbyte_http3::Code::NO_ERROR),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Bodies at speed
//!
//! A body to be sent is a [`Source`](lastbyte_quic::stream::Source): one DATA frame, read directly into packets. To
//! receive a body without a copy, pass [`Connection::sink`] to the transport's `handle_datagram`: slices of the
//! decrypted packet reach a [`BodySink`], and nothing is allocated.
//!
//! This crate reads no clock, opens no socket and draws no random numbers. Received bytes never cause a panic, and each
//! queue and buffer has a bound.
//!
//! # Decisions
//!
//! - Outgoing bodies are sources behind the header of one DATA frame; incoming ones pass through `Connection::sink`,
//!   slice by slice. Nothing is allocated per packet or frame.
//! - Dynamic table entries are referenced when acknowledged. Earlier references are limited to a few messages, and the
//!   encoder stream must fit its initial credit, so that no insertion waits for what it blocks.
//! - Stable fields enter the dynamic table at once, others when they are sent a second time, credentials never:
//!   compression would confirm guesses.
//! - A response with no other around it refers to the static table only: acknowledging its section would cost each end more
//!   than the bytes that it saves.
//! - Requests that never reach the application are answered here: 431 for a large header, a reset for a malformed one,
//!   a refusal after GOAWAY.
//! - Server push is not supported, since no client permits it.

#![forbid(unsafe_code)]

mod allowance;
mod code;
mod config;
mod connection;
mod error;
mod event;
mod fields;
mod frame;
mod message;
mod priority;
pub mod qpack;
mod settings;
mod transport;

pub use allowance::{Allowance, Rate};
pub use code::Code;
pub use config::{Config, Limits, StallLimit};
pub use connection::{BodySink, Connection, Sink, Statistics};
pub use error::{ConnectionError, Origin, ReadError, RequestError, SendError, StreamError};
pub use event::Event;
pub use fields::{FieldLine, Fields, Iter};
pub use message::{Body, Request, Response, target};
pub use priority::Priority;
pub use settings::Settings;
pub use transport::Transport;

/// The ALPN identifier of HTTP/3 (RFC 9114 §3.1).
pub const ALPN: &[u8] = b"h3";
