//! Counters, which all threads of a balancer share.
//!
//! This module owns the list of counters, their names in metrics, and their sums. Each datagram from a client is counted
//! once as received, and once as forwarded, answered or dropped; likewise each datagram from a server.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Datagrams from clients.
    FromClients,
    /// Bytes of datagrams from clients.
    FromClientsBytes,
    /// Forwarded to the server in the connection ID.
    ByConnectionId,
    /// Forwarded to the server of an earlier packet with this connection ID from this address.
    ByFlow,
    /// Forwarded to the server of the hash's choice.
    ByHash,
    /// Dropped: too short to be a packet, or a first packet of less than 1200 bytes.
    Malformed,
    /// Dropped: no server takes new connections.
    NoServer,
    /// Dropped: the limit of flows, or of new ones per second, was reached.
    FlowLimit,
    /// Dropped: no socket or port was available for a new flow.
    NoSocket,
    /// Dropped: a datagram from a client could not be sent to the server.
    UpstreamFailed,
    /// Answered with a Retry.
    Retries,
    /// Dropped: the Retry could not be sent.
    RetryFailed,
    /// Dropped: a first packet with an invalid Retry token, or a packet of an unknown connection while all clients need one.
    InvalidToken,
    /// Initial packets with a valid Retry token. They are counted as forwarded or dropped as well.
    ValidTokens,
    /// Datagrams received on upstream sockets.
    FromServers,
    /// Bytes of datagrams received on upstream sockets.
    FromServersBytes,
    /// Forwarded to clients.
    ToClients,
    /// Dropped: not from the address of a server.
    Stray,
    /// Dropped: a datagram from a server could not be sent to the client.
    DownstreamFailed,
    /// Flows opened.
    FlowsOpened,
    /// Flows that ended after the idle time.
    FlowsExpired,
    /// Flows displaced by new ones.
    FlowsDisplaced,
}

impl Counter {
    /// All counters.
    pub const ALL: [Self; 22] = [
        Self::FromClients,
        Self::FromClientsBytes,
        Self::ByConnectionId,
        Self::ByFlow,
        Self::ByHash,
        Self::Malformed,
        Self::NoServer,
        Self::FlowLimit,
        Self::NoSocket,
        Self::UpstreamFailed,
        Self::Retries,
        Self::RetryFailed,
        Self::InvalidToken,
        Self::ValidTokens,
        Self::FromServers,
        Self::FromServersBytes,
        Self::ToClients,
        Self::Stray,
        Self::DownstreamFailed,
        Self::FlowsOpened,
        Self::FlowsExpired,
        Self::FlowsDisplaced,
    ];

    /// Name and labels in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FromClients => "lastbyte_lb_received_datagrams_total{from=\"clients\"}",
            Self::FromServers => "lastbyte_lb_received_datagrams_total{from=\"servers\"}",
            Self::FromClientsBytes => "lastbyte_lb_received_bytes_total{from=\"clients\"}",
            Self::FromServersBytes => "lastbyte_lb_received_bytes_total{from=\"servers\"}",
            Self::ByConnectionId => "lastbyte_lb_forwarded_datagrams_total{by=\"connection_id\"}",
            Self::ByFlow => "lastbyte_lb_forwarded_datagrams_total{by=\"flow\"}",
            Self::ByHash => "lastbyte_lb_forwarded_datagrams_total{by=\"hash\"}",
            Self::ToClients => "lastbyte_lb_forwarded_datagrams_total{by=\"upstream_socket\"}",
            Self::Malformed => "lastbyte_lb_dropped_datagrams_total{reason=\"malformed\"}",
            Self::NoServer => "lastbyte_lb_dropped_datagrams_total{reason=\"no_server\"}",
            Self::FlowLimit => "lastbyte_lb_dropped_datagrams_total{reason=\"flow_limit\"}",
            Self::NoSocket => "lastbyte_lb_dropped_datagrams_total{reason=\"no_socket\"}",
            Self::UpstreamFailed => {
                "lastbyte_lb_dropped_datagrams_total{reason=\"upstream_failed\"}"
            }
            Self::DownstreamFailed => {
                "lastbyte_lb_dropped_datagrams_total{reason=\"downstream_failed\"}"
            }
            Self::Retries => "lastbyte_lb_retries_total",
            Self::ValidTokens => "lastbyte_lb_retry_tokens_accepted_total",
            Self::RetryFailed => "lastbyte_lb_dropped_datagrams_total{reason=\"retry_failed\"}",
            Self::InvalidToken => "lastbyte_lb_dropped_datagrams_total{reason=\"invalid_token\"}",
            Self::Stray => "lastbyte_lb_dropped_datagrams_total{reason=\"stray\"}",
            Self::FlowsOpened => "lastbyte_lb_flows_total{event=\"opened\"}",
            Self::FlowsExpired => "lastbyte_lb_flows_total{event=\"expired\"}",
            Self::FlowsDisplaced => "lastbyte_lb_flows_total{event=\"displaced\"}",
        }
    }
}

/// The values of all counters.
#[derive(Debug, Default)]
pub struct Counts {
    values: [AtomicU64; Counter::ALL.len()],
}

impl Counts {
    /// Adds to a counter.
    pub fn add(&self, counter: Counter, count: u64) {
        if let Some(value) = self.values.get(counter as usize) {
            value.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// The value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        let value = self.values.get(counter as usize);
        value.map_or(0, |value| value.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_has_a_value_and_a_name_of_its_own() {
        let counts = Counts::default();
        for (value, counter) in (1..).zip(Counter::ALL) {
            counts.add(counter, value);
            counts.add(counter, 100);
        }
        let mut names = Vec::new();
        for (value, counter) in (1..).zip(Counter::ALL) {
            assert_eq!(counts.get(counter), 100 + value, "{counter:?}");
            assert!(counter.name().starts_with("lastbyte_lb_"), "{counter:?}");
            names.push(counter.name());
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Counter::ALL.len());
    }
}
