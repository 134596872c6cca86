//! The Prometheus text format 0.0.4.
//!
//! Owns the names of metrics, which must not change: dashboards depend on them.

use std::{collections::BTreeMap, fmt::Write as _};

use lastbyte_record::connection_log::{Snapshot, schema::Field};

use lastbyte_origin::{Statistics, counters::summed, histogram::Histogram};

use super::Numbers;
use crate::tcp::HandshakeFailure;

/// A text that is built metric by metric.
struct Text(String);

impl Text {
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{}\"", escaped(value));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.metric(name, kind, help);
        self.value(name, &[], value);
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// `num-packets.ack-received` as `lastbyte_quic_packets_ack_received_total`.
pub(super) fn name_of(field: &Field<Snapshot>) -> String {
    let key = field
        .key
        .name()
        .replacen("num-", "", 1)
        .replace(['.', '-'], "_");
    format!("lastbyte_quic_{key}_total")
}

pub(super) fn prometheus(numbers: &Numbers) -> String {
    let mut text = Text(String::new());
    let mut quic = Statistics::default();
    let mut transport = vec![0_u64; summed().len()];
    let mut ttlb: BTreeMap<&str, Histogram> = BTreeMap::new();
    let (mut connections, mut handshakes) = (0, 0);
    for measured in numbers.workers.iter().flatten() {
        quic.add(&measured.statistics);
        connections += measured.connections;
        handshakes += measured.handshakes;
        for (sum, more) in transport.iter_mut().zip(&measured.transport) {
            *sum = sum.saturating_add(*more);
        }
        for (arm, histogram) in &measured.ttlb {
            ttlb.entry(arm).or_default().merge(histogram);
        }
    }
    about(&mut text, numbers);
    of_connections(&mut text, numbers, &quic, connections, handshakes);
    of_requests(&mut text, numbers, &quic);
    of_ttlb(&mut text, &ttlb);
    of_workers(&mut text, numbers);
    of_logs(&mut text, numbers);
    for (field, sum) in summed().iter().zip(transport) {
        text.one(&name_of(field), "counter", field.meaning, sum);
    }
    text.0
}

fn about(text: &mut Text, numbers: &Numbers) {
    text.metric("lastbyte_info", "gauge", "The version, as a label.");
    let version = env!("CARGO_PKG_VERSION");
    text.value("lastbyte_info", &[("version", version)], 1);
    let uptime = numbers.uptime.as_secs_f64();
    text.one(
        "lastbyte_uptime_seconds",
        "gauge",
        "Time since the server started.",
        uptime,
    );
    text.one(
        "lastbyte_draining",
        "gauge",
        "Whether the server is shutting down and accepts no more requests.",
        u8::from(numbers.is_draining),
    );
    text.one(
        "lastbyte_last_reload_successful",
        "gauge",
        "Whether the last reload of configuration or certificates succeeded; the start counts as one.",
        u8::from(numbers.is_reloaded),
    );
    text.one(
        "lastbyte_last_reload_success_timestamp_seconds",
        "gauge",
        "Time of the last reload that succeeded, in seconds since 1970.",
        numbers.reloaded_at,
    );
    let name = "lastbyte_certificate_not_after_seconds";
    let help = "Time at which the first certificate of the chain expires, in seconds since 1970, by the certificate's first name.";
    text.metric(name, "gauge", help);
    // The earliest of several with one name, such as an RSA and an ECDSA certificate.
    let mut ends = BTreeMap::new();
    for (name, end) in &numbers.certificates {
        let earliest = ends.entry(name.as_str()).or_insert(*end);
        *earliest = (*earliest).min(*end);
    }
    for (first_name, end) in ends {
        text.value(name, &[("name", first_name)], end);
    }
}

fn of_connections(
    text: &mut Text,
    numbers: &Numbers,
    quic: &Statistics,
    connections: u64,
    handshakes: u64,
) {
    let tcp = &numbers.tcp;
    let name = "lastbyte_connections";
    text.metric(name, "gauge", "Open connections.");
    text.value(name, &[("transport", "quic")], connections);
    text.value(name, &[("transport", "tcp")], tcp.connections);
    text.one(
        "lastbyte_quic_handshakes_in_progress",
        "gauge",
        "QUIC connections in their handshake.",
        handshakes,
    );
    let name = "lastbyte_connections_accepted_total";
    text.metric(name, "counter", "Connections accepted.");
    text.value(name, &[("transport", "quic")], quic.accepted);
    text.value(name, &[("transport", "tcp")], tcp.accepted);
    text.one(
        "lastbyte_tcp_refused_total",
        "counter",
        "TCP connections closed at once because their address was at its limit.",
        tcp.refused,
    );
    text.one(
        "lastbyte_buffered_bytes",
        "gauge",
        "Bytes of request and response bodies that wait for a handler or a client.",
        numbers.buffered,
    );
    let name = "lastbyte_handshakes_total";
    text.metric(
        name,
        "counter",
        "Handshakes completed, by kind; zero_rtt: resumed with accepted 0-RTT data.",
    );
    let resumed = quic.resumed.saturating_sub(quic.zero_rtt);
    let full = quic.handshakes.saturating_sub(quic.resumed);
    for (transport, kind, value) in [
        ("quic", "full", full),
        ("quic", "resumed", resumed),
        ("quic", "zero_rtt", quic.zero_rtt),
        ("tcp", "full", tcp.handshakes.saturating_sub(tcp.resumed)),
        ("tcp", "resumed", tcp.resumed),
    ] {
        text.value(name, &[("transport", transport), ("kind", kind)], value);
    }
    text.one(
        "lastbyte_tcp_accepts_failed_total",
        "counter",
        "Failures to accept a waiting TCP connection, for example because too many files are open.",
        tcp.accepts_failed,
    );
    let name = "lastbyte_tcp_handshakes_failed_total";
    text.metric(
        name,
        "counter",
        "TLS handshakes over TCP that failed, by reason; server_name: not a DNS name.",
    );
    for (reason, value) in HandshakeFailure::ALL.iter().zip(tcp.handshakes_failed) {
        text.value(name, &[("reason", reason.name())], value);
    }
    let ratio = quic.zero_rtt as f64 / quic.handshakes.max(1) as f64;
    text.one(
        "lastbyte_zero_rtt_ratio",
        "gauge",
        "Share of QUIC handshakes with 0-RTT.",
        ratio,
    );
    text.one(
        "lastbyte_http3_connections_failed_total",
        "counter",
        "Connections closed because of an HTTP/3 error.",
        quic.failed,
    );
}

fn of_requests(text: &mut Text, numbers: &Numbers, quic: &Statistics) {
    let tcp = &numbers.tcp;
    let name = "lastbyte_requests_total";
    text.metric(name, "counter", "Requests received.");
    for (http, value) in [
        ("1.1", tcp.requests_http1),
        ("2", tcp.requests_http2),
        ("3", quic.requests),
    ] {
        text.value(name, &[("http", http)], value);
    }
    text.one(
        "lastbyte_early_requests_total",
        "counter",
        "Requests received as 0-RTT.",
        quic.early_requests,
    );
    let name = "lastbyte_responses_total";
    text.metric(name, "counter", "Responses started, by status class.");
    for (transport, responses) in [("quic", &quic.responses), ("tcp", &tcp.responses)] {
        for (class, count) in responses.iter().enumerate().skip(2) {
            let class = format!("{class}xx");
            text.value(name, &[("transport", transport), ("class", &class)], count);
        }
    }
    let name = "lastbyte_responses_cut_off_total";
    text.metric(name, "counter", "Incomplete responses.");
    text.value(name, &[("transport", "quic")], quic.cut_off);
    text.value(name, &[("transport", "tcp")], tcp.cut_off);
    text.one(
        "lastbyte_requests_reset_total",
        "counter",
        "HTTP/3 requests that clients cancelled or that were malformed.",
        quic.resets,
    );
}

fn of_ttlb(text: &mut Text, ttlb: &BTreeMap<&str, Histogram>) {
    let name = "lastbyte_ttlb_seconds";
    text.metric(
        name,
        "histogram",
        "Time from the first request of a QUIC connection until all of its response is acknowledged.",
    );
    for (arm, histogram) in ttlb {
        let mut all = 0;
        for (bound, count) in histogram.cumulated() {
            let labels = [("arm", *arm), ("le", bound.as_str())];
            text.value(&format!("{name}_bucket"), &labels, count);
            all = count;
        }
        let sum = histogram.sum().as_secs_f64();
        text.value(&format!("{name}_sum"), &[("arm", arm)], sum);
        text.value(&format!("{name}_count"), &[("arm", arm)], all);
    }
}

fn of_workers(text: &mut Text, numbers: &Numbers) {
    type Value = fn(&lastbyte_driver::Statistics) -> f64;
    let all: [(&str, &str, Value); 11] = [
        ("turns", "Turns of the worker's loop.", |one| {
            one.turns as f64
        }),
        (
            "idle_seconds",
            "Idle time of the worker; its load is 1 minus the rate of this counter.",
            |one| one.idle.as_secs_f64(),
        ),
        ("datagrams_received", "Datagrams received.", |one| {
            one.datagrams_received as f64
        }),
        ("datagrams_sent", "Datagrams sent.", |one| {
            one.datagrams_sent as f64
        }),
        (
            "receive_calls",
            "System calls that received datagrams.",
            |one| one.receives as f64,
        ),
        ("send_calls", "System calls that sent datagrams.", |one| {
            one.sends as f64
        }),
        (
            "sends_blocked",
            "Send calls that found the kernel's buffer full.",
            |one| one.sends_blocked as f64,
        ),
        (
            "handed_over",
            "Datagrams received here that belong to another worker.",
            |one| one.forwarded as f64,
        ),
        (
            "handovers_lost",
            "Of those, datagrams dropped because the other worker's queue was full.",
            |one| one.forwards_dropped as f64,
        ),
        (
            "relayed",
            "Datagrams of unknown connections, forwarded to the process that this one replaces.",
            |one| one.relayed as f64,
        ),
        (
            "relays_lost",
            "Of those, datagrams dropped because the link to that process was full.",
            |one| one.relays_dropped as f64,
        ),
    ];
    for (name, help, value) in all {
        let name = format!("lastbyte_worker_{name}_total");
        text.metric(&name, "counter", help);
        for (worker, counters) in numbers.loops.iter().enumerate() {
            if let Some(counters) = counters {
                let worker = worker.to_string();
                text.value(&name, &[("worker", &worker)], value(counters));
            }
        }
    }
}

fn of_logs(text: &mut Text, numbers: &Numbers) {
    let name = "lastbyte_log_lines_total";
    text.metric(
        name,
        "counter",
        "Log lines: written, dropped because the queue was full, or failed to be written.",
    );
    for (log, statistics) in &numbers.logs {
        for (fate, value) in [
            ("written", statistics.written),
            ("dropped", statistics.dropped),
            ("failed", statistics.failed),
        ] {
            text.value(name, &[("log", log), ("fate", fate)], value);
        }
    }
}
