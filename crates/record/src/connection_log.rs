//! The connection log: one line of JSON per connection, with the keys that H2O writes, so that one query reads both.
//!
//! Owns: the table of keys ([`keys`], [`tcp`]), from which lines, documentation and JSON schemas follow ([`schema`]); and the
//! values taken from a connection ([`Snapshot`]). Never: decides when a line is due, or writes it to a file.
//!
//! The statistics are those of H2O of June 2026 (`edd7a12`), in its order. A statistic that this stack does not have is 0, and
//! its description says so. Further keys follow.

pub mod keys;
pub mod schema;
mod snapshot;
pub mod tcp;

pub use self::snapshot::Snapshot;
use crate::json::Object;

#[cfg(test)]
mod tests;

/// The start of a line: the identity of the connection, and the result of the first request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// When the line was written, in milliseconds since the Unix epoch; in a simulation, since its start.
    pub time_ms: u64,
    /// The connection's number within its process.
    pub conn_id: u64,
    /// The method of the first request.
    pub method: String,
    /// The length of the first response, in bytes: announced, or else sent.
    pub content_length: u64,
    /// Time to last byte, in milliseconds: from the start of the first request until all of the response was acknowledged. `None`
    /// if it was not, or if that is not known.
    pub ttlb_ms: Option<u64>,
}

/// The experiment that a connection was part of, as far as known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    /// Its name.
    pub experiment: Option<String>,
    /// The arm's name.
    pub arm: Option<String>,
    /// The site.
    pub site: Option<String>,
    /// The index of the server's thread.
    pub worker: Option<u64>,
    /// The hash of the server's configuration.
    pub config: Option<String>,
    /// The access technology.
    pub class: Option<String>,
    /// The seed of the connection.
    pub seed: Option<u64>,
    /// Time to last byte at the client, from its first datagram, in milliseconds.
    pub client_ttlb_ms: Option<f64>,
    /// Time to first byte at the client, from its first datagram, in milliseconds.
    pub client_ttfb_ms: Option<f64>,
    /// Duration of the handshake at the client, in milliseconds.
    pub client_handshake_ms: Option<f64>,
    /// The rate of the simulated bottleneck, in bits per second.
    pub link_rate_bps: Option<u64>,
    /// The round-trip time of the simulated path with empty queues, in milliseconds.
    pub link_rtt_ms: Option<f64>,
    /// The capacity of the queue of the simulated bottleneck, in milliseconds at its rate.
    pub link_queue_ms: Option<f64>,
    /// The random loss of the simulated path, as a share of packets: 0 to 1.
    pub link_loss: Option<f64>,
    /// Cross traffic on the simulated path: `none`, `flow` or `bursts`.
    pub link_cross: Option<&'static str>,
    /// Packets that the simulated path dropped on the way to the client.
    pub drops: Option<Drops>,
    /// The neighbour on the simulated path.
    pub neighbour: Option<Neighbour>,
}

/// Another user of the simulated path, and its outcome between the start of the transfer and the horizon.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighbour {
    /// Its name.
    pub kind: String,
    /// Observation time, in milliseconds.
    pub horizon_ms: f64,
    /// Its rate at the bottleneck, in bits per second.
    pub rate_bps: u64,
    /// The mean time that its packets waited before the bottleneck, in milliseconds. `None` if it had none.
    pub delay_ms: Option<f64>,
    /// The share of its packets that were lost: 0 to 1. `None` if it had none.
    pub loss: Option<f64>,
}

/// Packets of a connection that the simulated path dropped on the way to the client, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// A full queue, during the server's startup phase.
    pub queue_in_startup: u64,
    /// A full queue, after the startup phase.
    pub queue_later: u64,
    /// Active queue management.
    pub codel: u64,
    /// A policer without tokens.
    pub policer: u64,
    /// Random loss, single or in bursts.
    pub chance: u64,
}

/// Writes the line of a connection over QUIC, without a line break.
pub fn write(text: &mut String, header: &Header, snapshot: &Snapshot, experiment: &Experiment) {
    let mut line = Object::new(text);
    schema::write(&mut line, keys::HEAD, header);
    schema::write(&mut line, keys::STATISTICS, snapshot);
    schema::write(&mut line, keys::OUTCOME, header);
    schema::write(&mut line, keys::ALGORITHMS, snapshot);
    schema::write(&mut line, keys::PATH, snapshot);
    schema::write(&mut line, keys::ANATOMY, snapshot);
    schema::write(&mut line, keys::EXPERIMENT, experiment);
}

/// Writes the line of a connection that was never established at the server, so that an analysis can count it: without
/// statistics, and with a `header` without a time to last byte.
pub fn write_without_statistics(text: &mut String, header: &Header, experiment: &Experiment) {
    let mut line = Object::new(text);
    schema::write(&mut line, keys::HEAD, header);
    schema::write(&mut line, keys::OUTCOME, header);
    schema::write(&mut line, keys::EXPERIMENT, experiment);
}
