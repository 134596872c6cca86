//! The connection log: one line of JSON a connection, with the key names that H2O writes, so that one query reads both.
//!
//! Owns: the schema ([`FIELDS`]), from which line, documentation and JSON schema follow; and what is taken from a
//! connection for it ([`Snapshot`]). Never: decides when a line is due, or writes it anywhere.
//!
//! The statistics are those of H2O of June 2026 (`edd7a12`), in its order; what this stack does not have is 0, and its
//! description says so. Keys of our own follow.

mod schema;
mod snapshot;

pub use self::{
    schema::{FIELDS, Field, Unit, json_schema, markdown},
    snapshot::Snapshot,
};
use crate::json::Object;

#[cfg(test)]
mod tests;

/// What a line says beside the statistics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// When the line was written, in milliseconds since the Unix epoch; since the begin of the simulation in one.
    pub time_ms: u64,
    /// The connection's number within its process.
    pub conn_id: u64,
    /// The method of the first request.
    pub method: String,
    /// The length of the first response, in bytes.
    pub content_length: u64,
    /// From the begin of the request until all of the response was acknowledged, in milliseconds; `None` if it was not.
    pub ttlb_ms: Option<u64>,
}

/// What a line says of the experiment that its connection was part of. What is not known is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    /// Its name.
    pub experiment: Option<String>,
    /// The arm's name.
    pub arm: Option<String>,
    /// The site.
    pub site: Option<String>,
    /// The class of access.
    pub class: Option<String>,
    /// The seed of the connection.
    pub seed: Option<u64>,
    /// As the client saw it, from its first datagram to the last byte, in milliseconds.
    pub client_ttlb_ms: Option<f64>,
    /// As the client saw it, from its first datagram to the first byte, in milliseconds.
    pub client_ttfb_ms: Option<f64>,
    /// How long the client's handshake took, in milliseconds.
    pub client_handshake_ms: Option<f64>,
    /// The rate of the simulated bottleneck, in bits a second.
    pub link_rate_bps: Option<u64>,
    /// The round-trip time of the simulated path without queues, in milliseconds.
    pub link_rtt_ms: Option<f64>,
    /// What the queue of the simulated bottleneck holds, in milliseconds at its rate.
    pub link_queue_ms: Option<f64>,
    /// The share of packets that the simulated path loses by chance.
    pub link_loss: Option<f64>,
    /// What else used the simulated path: `none`, `flow` or `bursts`.
    pub link_cross: Option<&'static str>,
    /// What the simulated path dropped on its way to the client.
    pub drops: Option<Drops>,
}

/// Packets of the connection that the simulated path dropped on its way to the client, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// The queue was full, and the server's startup not over.
    pub queue_in_startup: u64,
    /// The queue was full later.
    pub queue_later: u64,
    /// A managed queue took them.
    pub codel: u64,
    /// The policer had no tokens.
    pub policer: u64,
    /// By chance, alone or in bursts.
    pub chance: u64,
}

/// Writes a line, without its end.
pub fn write(text: &mut String, header: &Header, snapshot: &Snapshot, experiment: &Experiment) {
    let mut line = Object::new(text);
    write_header(&mut line, header);
    for field in FIELDS {
        line.integer(field.key, (field.value)(snapshot));
    }
    line.boolean("complete", header.ttlb_ms.is_some())
        .text("startup", snapshot.startup())
        .text("congestion", snapshot.congestion());
    write_experiment(&mut line, experiment);
}

/// Writes a line about a connection that never came to be at the server, so that an analysis can count it: without
/// statistics, and not complete.
pub fn write_without_statistics(text: &mut String, header: &Header, experiment: &Experiment) {
    let mut line = Object::new(text);
    write_header(&mut line, header);
    line.boolean("complete", false);
    write_experiment(&mut line, experiment);
}

/// Writes what all lines begin with.
pub fn write_header(line: &mut Object<'_>, header: &Header) {
    line.text("module", "lastbyte")
        .text("type", "connection")
        .integer("time", header.time_ms)
        .integer("conn_id", header.conn_id)
        .text("method", &header.method)
        .integer("content_length", header.content_length);
    match header.ttlb_ms {
        Some(ttlb) => line.integer("ttlb", ttlb),
        None => line.null("ttlb"),
    };
}

fn write_experiment(line: &mut Object<'_>, experiment: &Experiment) {
    for (key, value) in [
        ("experiment", &experiment.experiment),
        ("arm", &experiment.arm),
        ("site", &experiment.site),
        ("class", &experiment.class),
    ] {
        if let Some(value) = value {
            line.text(key, value);
        }
    }
    if let Some(seed) = experiment.seed {
        line.integer("seed", seed);
    }
    for (key, value) in [
        ("client.ttlb", experiment.client_ttlb_ms),
        ("client.ttfb", experiment.client_ttfb_ms),
        ("client.handshake", experiment.client_handshake_ms),
    ] {
        if let Some(value) = value {
            line.number(key, value, 3);
        }
    }
    if let Some(rate) = experiment.link_rate_bps {
        line.integer("link.rate", rate);
    }
    for (key, value) in [
        ("link.rtt", experiment.link_rtt_ms),
        ("link.queue", experiment.link_queue_ms),
        ("link.loss", experiment.link_loss),
    ] {
        if let Some(value) = value {
            line.number(key, value, 6);
        }
    }
    if let Some(cross) = experiment.link_cross {
        line.text("link.cross", cross);
    }
    if let Some(drops) = &experiment.drops {
        line.integer("link.drops.queue-in-startup", drops.queue_in_startup)
            .integer("link.drops.queue-later", drops.queue_later)
            .integer("link.drops.codel", drops.codel)
            .integer("link.drops.policer", drops.policer)
            .integer("link.drops.chance", drops.chance);
    }
}
