//! Load balancing of QUIC by connection ID (draft-ietf-quic-load-balancers-21).
//!
//! | module | responsibility | pure |
//! |---|---|---|
//! | [`fleet`] | the configuration: servers, and layouts of connection IDs | yes |
//! | [`table`] | the server of a packet: by its connection ID, otherwise by a consistent hash | yes |
//! | [`flows`] | the client addresses in use, bounded in number and time | yes |
//! | [`counts`] | counters, which all threads share | yes |
//! | [`forwarder`] | the sockets and threads | no |
//!
//! # Path of a datagram
//!
//! A client sends to the balancer. If the connection ID of the packet decodes to a known server ID, that server receives
//! it; this is so for all packets after the client's first flight, also after its address changed, and on every balancer
//! with the same configuration. Any other packet goes to the server that the consistent hash of its addresses selects,
//! or to the one that received the previous packet with this connection ID from this address.
//!
//! The balancer sends to the server from a socket that belongs to the client's address. The server therefore sees an
//! address of the balancer, a different one for each client, and answers to it; the balancer sends the answer on to the
//! client.
//!
//! # Decisions
//!
//! - *One upstream socket per client address*, as a NAT does. Many QUIC clients use empty connection IDs, so the packets
//!   of a server carry no sign of the client but the address they are sent to. It needs no privileges, and any server
//!   works. It costs a file descriptor and a port per client address, about 60,000 per address of the balancer, and
//!   servers do not see the client's address.
//! - *The consistent hash is rendezvous hashing, written into a table*: a packet is hashed into one of 65,536 slots, and
//!   each slot belongs to the server with the highest score for it. Removing a server moves its slots and no others,
//!   adding one takes its share and no others; Maglev's tables only come close to this. Looking up a slot costs the same
//!   for any number of servers, which matters in a flood. The cost is the construction: 65,536 scores per server at each
//!   change, outside of the path of packets.
//! - *The hash has a key*, so that clients cannot compute addresses that select one server. Balancers that share an
//!   address must have the same key.
//! - *A flow is proven* when the client used a connection ID that the server sent to its address, or when the server sent
//!   more than three times the bytes it received: it may do so only after it validated the address (RFC 9000 §8.1).
//! - *Flows are shared by address prefix*: in a full table, a new flow displaces one of the prefix that has most ([`flows`]).
//! - *A displaced flow does not end a connection*: the next packet of the client opens another, with another port, and to
//!   the server this is a change of address that it validates (§9.3).
//!
//! # Example
//!
//! ```
//! use lastbyte_balancer::{Fleet, Route, Server, Table};
//! use lastbyte_quic::cid::{QuicLb, QuicLbConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ids = QuicLbConfig {
//!     rotation: 0,
//!     server_id_len: 2,
//!     nonce_len: 14,
//!     key: Some(*b"0123456789abcdef"),
//!     encodes_length: false,
//! };
//! let fleet = Fleet {
//!     ids: vec![ids.clone()],
//!     servers: vec![
//!         Server::new(1, "192.0.2.1:443".parse()?),
//!         Server::new(2, "192.0.2.2:443".parse()?),
//!     ],
//!     hash_key: [7; 16],
//!     retry: None,
//! };
//! let table = Table::new(&fleet, |_| true)?;
//!
//! // A packet with a short header, whose connection ID server 2 issued.
//! let id = QuicLb::new(ids)?.encode(&[0, 2], &[9; 14], 0).ok_or("lengths")?;
//! let packet = [&[0x40], id.as_slice(), &[0; 20]].concat();
//! let Some(Route::ConnectionId(server)) = table.route(&packet) else {
//!     return Err("not routable".into());
//! };
//! assert_eq!(table.server(server).map(|server| server.id), Some(2));
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod counts;
pub mod fleet;
pub mod flows;
#[cfg(target_os = "linux")]
pub mod forwarder;
pub mod table;

pub use counts::{Counter, Counts};
pub use fleet::{Fleet, FleetError, Server};
pub use flows::{FlowLimits, Flows, Opening};
#[cfg(target_os = "linux")]
pub use forwarder::{Forwarder, Retry, Settings};
pub use table::{Route, ServerIndex, Table};
