//! The Prometheus text format 0.0.4.
//!
//! Owns the names of metrics, which must not change: dashboards depend on them.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt::Write as _,
};

use lastbyte_origin::{Statistics, counters::summed, histogram::Histogram, times::ClassTimes};
use lastbyte_quic::{
    crypto::tickets::Refusal,
    endpoint::{self, DropReason},
};
use lastbyte_record::connection_log::{Snapshot, keys::NUM_HANDSHAKE_TIMEOUTS, schema::Field};

use super::{Numbers, RampStatus, process::Process};
use crate::{proxy::UpstreamStatistics, tcp::HandshakeFailure};

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

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let mut all = 0;
        for (bound, count) in histogram.cumulated() {
            let labels = [labels, &[("le", bound.as_str())]].concat();
            self.value(&format!("{name}_bucket"), &labels, count);
            all = count;
        }
        let sum = histogram.sum().as_secs_f64();
        self.value(&format!("{name}_sum"), labels, sum);
        self.value(&format!("{name}_count"), labels, all);
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

pub(super) fn prometheus(numbers: &Numbers, process: &Process) -> String {
    let mut text = Text(String::new());
    let mut quic = Statistics::default();
    let mut transport = vec![0_u64; summed().len()];
    let mut ttlb: BTreeMap<&str, Histogram> = BTreeMap::new();
    let mut times = Times::default();
    let mut endpoint = endpoint::Statistics::default();
    let (mut connections, mut handshakes) = (0, 0);
    for measured in numbers.workers.iter().flatten() {
        quic.add(&measured.statistics);
        endpoint.add(&measured.endpoint);
        for more in &measured.times {
            times.add("3", more);
        }
        connections += measured.connections;
        handshakes += measured.handshakes;
        for (sum, more) in transport.iter_mut().zip(&measured.transport) {
            *sum = sum.saturating_add(*more);
        }
        for (arm, histogram) in &measured.ttlb {
            ttlb.entry(arm).or_default().merge(histogram);
        }
    }
    for (version, more) in &numbers.tcp_times {
        times.add(version, more);
    }
    about(&mut text, numbers);
    of_process(&mut text, process);
    of_connections(&mut text, numbers, &quic, connections, handshakes);
    of_endpoint(&mut text, &endpoint, &quic);
    of_requests(&mut text, numbers, &quic);
    times.write(&mut text, &numbers.routes);
    of_upstreams(&mut text, &numbers.upstreams);
    of_ttlb(&mut text, &ttlb);
    if let Some(ramp) = &numbers.ramp {
        of_ramp(&mut text, ramp);
    }
    of_workers(&mut text, numbers);
    of_logs(&mut text, numbers);
    for (field, sum) in summed().iter().zip(transport) {
        // No connection that is open has it: it is of the endpoint.
        let is_timeouts = field.key.name() == NUM_HANDSHAKE_TIMEOUTS.name();
        let sum = if is_timeouts {
            endpoint.handshake_timeouts
        } else {
            sum
        };
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

fn of_ramp(text: &mut Text, ramp: &RampStatus) {
    let experiment = ("experiment", ramp.experiment.as_str());
    let name = "lastbyte_experiment_share";
    text.metric(
        name,
        "gauge",
        "Share of new connections over HTTP/3, by arm.",
    );
    for (arm, share) in &ramp.shares {
        text.value(name, &[experiment, ("arm", arm)], share);
    }
    let name = "lastbyte_experiment_decision";
    text.metric(name, "gauge", "The last decision, as a label.");
    text.value(name, &[experiment, ("action", &ramp.action)], 1);
    for (name, kind, help, value) in [
        (
            "stage",
            "gauge",
            "Stage of the ramp, from 1.",
            ramp.stage as u64,
        ),
        (
            "over",
            "gauge",
            "Whether no other decision follows.",
            ramp.is_over.into(),
        ),
        (
            "looks_total",
            "counter",
            "Looks at the logs since the ramp started.",
            ramp.looks,
        ),
        (
            "last_look_timestamp_seconds",
            "gauge",
            "Time of the last look, in seconds since 1970.",
            ramp.looked_at,
        ),
    ] {
        let name = format!("lastbyte_experiment_{name}");
        text.metric(&name, kind, help);
        text.value(&name, &[experiment], value);
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
    text.metric(
        name,
        "counter",
        "Responses that the server, its upstream or a limit ended before they were complete.",
    );
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
        text.histogram(name, &[("arm", arm)], histogram);
    }
}

/// Times of requests, by version of HTTP, route and class.
#[derive(Default)]
struct Times<'a>(BTreeMap<(&'a str, usize, u16), [Histogram; 2]>);

impl<'a> Times<'a> {
    fn add(&mut self, version: &'a str, times: &ClassTimes) {
        let key = (version, times.route, times.class);
        let [first_byte, whole] = self.0.entry(key).or_default();
        first_byte.merge(&times.first_byte);
        whole.merge(&times.whole);
    }

    fn write(&self, text: &mut Text, routes: &[String]) {
        let kinds = [
            (
                "lastbyte_request_first_byte_seconds",
                "Time from the arrival of a request until the header of its response was sent.",
            ),
            (
                "lastbyte_request_duration_seconds",
                "Time from the arrival of a request until the end of its response, if it was complete: over HTTP/3 until it was acknowledged, over TCP until it was passed to the system.",
            ),
        ];
        for (kind, (name, help)) in kinds.into_iter().enumerate() {
            text.metric(name, "histogram", help);
            for ((version, route, class), histograms) in &self.0 {
                let route = routes.get(*route).map_or("*", String::as_str);
                let class = format!("{class}xx");
                let labels = [("http", *version), ("class", &class), ("route", route)];
                let histogram = histograms.get(kind);
                if let Some(histogram) = histogram.filter(|it| **it != Histogram::default()) {
                    text.histogram(name, &labels, histogram);
                }
            }
        }
    }
}

fn of_upstreams(text: &mut Text, upstreams: &[UpstreamStatistics]) {
    // Several routes may lead to one.
    let mut by_name = BTreeMap::<&str, UpstreamStatistics>::new();
    for one in upstreams {
        match by_name.entry(&one.name) {
            Entry::Vacant(entry) => drop(entry.insert(one.clone())),
            Entry::Occupied(mut entry) => entry.get_mut().add(one),
        }
    }
    let name = "lastbyte_upstream_response_seconds";
    let help = "Time from passing a request to an upstream server until the header of its response, with the wait for a connection.";
    text.metric(name, "histogram", help);
    for (upstream, one) in &by_name {
        text.histogram(name, &[("upstream", upstream)], &one.response);
    }
    let name = "lastbyte_upstream_connect_seconds";
    let help = "Time to open a connection to an upstream server, with TLS.";
    text.metric(name, "histogram", help);
    for (upstream, one) in &by_name {
        text.histogram(name, &[("upstream", upstream)], &one.connect);
    }
    let name = "lastbyte_upstream_errors_total";
    let help =
        "Requests without a complete response of an upstream server, by error type of RFC 9209.";
    text.metric(name, "counter", help);
    for (upstream, one) in &by_name {
        for (error, count) in &one.errors {
            text.value(name, &[("upstream", upstream), ("error", error)], count);
        }
    }
    let name = "lastbyte_upstream_retries_total";
    text.metric(
        name,
        "counter",
        "Requests sent to an upstream server again.",
    );
    for (upstream, one) in &by_name {
        text.value(name, &[("upstream", upstream)], one.retries);
    }
    let name = "lastbyte_upstream_connections_kept";
    let help = "Open connections to an upstream server that are idle, or of HTTP/2.";
    text.metric(name, "gauge", help);
    for (upstream, one) in &by_name {
        text.value(name, &[("upstream", upstream)], one.kept);
    }
    let name = "lastbyte_upstream_server_up";
    let help = "Whether a server of an upstream receives requests.";
    text.metric(name, "gauge", help);
    for (upstream, one) in &by_name {
        for server in &one.servers {
            let labels = [("upstream", *upstream), ("server", &*server.name)];
            text.value(name, &labels, u8::from(server.is_up));
        }
    }
    let name = "lastbyte_upstream_checks_failed_total";
    text.metric(name, "counter", "Checks of a server that failed.");
    for (upstream, one) in &by_name {
        for server in &one.servers {
            let labels = [("upstream", *upstream), ("server", &*server.name)];
            text.value(name, &labels, server.failed_checks);
        }
    }
}

fn of_process(text: &mut Text, process: &Process) {
    let optional = |value: Option<u64>| value.map(|value| value as f64);
    for (name, kind, help, value) in [
        (
            "process_cpu_seconds_total",
            "counter",
            "User and system CPU time.",
            process.cpu,
        ),
        (
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory.",
            optional(process.resident),
        ),
        (
            "process_open_fds",
            "gauge",
            "Open file descriptors.",
            optional(process.open_files),
        ),
        (
            "process_max_fds",
            "gauge",
            "Limit on open file descriptors.",
            optional(process.open_files_max),
        ),
        (
            "process_start_time_seconds",
            "gauge",
            "Start of the process, in seconds since 1970.",
            process.started,
        ),
    ] {
        if let Some(value) = value {
            text.one(name, kind, help, value);
        }
    }
}

/// What the endpoints of the workers count, before there is a connection.
fn of_endpoint(text: &mut Text, endpoint: &endpoint::Statistics, quic: &Statistics) {
    let name = "lastbyte_quic_address_validations_total";
    let help = "QUIC connections whose client had validated its address with a token: of a Retry packet, or of an earlier connection.";
    text.metric(name, "counter", help);
    text.value(name, &[("token", "retry")], endpoint.accepted_after_retry);
    text.value(name, &[("token", "earlier")], endpoint.accepted_with_token);
    let name = "lastbyte_quic_refused_total";
    let help =
        "QUIC clients refused: a limit on connections or handshakes, or an invalid Retry token.";
    text.metric(name, "counter", help);
    let tokens = endpoint.refused_tokens;
    let limits = endpoint.refused.saturating_sub(tokens);
    text.value(name, &[("reason", "limit")], limits);
    text.value(name, &[("reason", "invalid_token")], tokens);
    let name = "lastbyte_quic_datagrams_dropped_total";
    text.metric(
        name,
        "counter",
        "Datagrams dropped without a connection, by reason.",
    );
    for reason in DropReason::ALL {
        let count = endpoint.dropped_for(reason);
        text.value(name, &[("reason", reason.name())], count);
    }
    let name = "lastbyte_quic_zero_rtt_refused_total";
    let help = "Resumed QUIC handshakes in which 0-RTT, if offered, was refused, by reason.";
    text.metric(name, "counter", help);
    for (reason, count) in Refusal::ALL.iter().zip(quic.zero_rtt_refused) {
        text.value(name, &[("reason", reason.name())], count);
    }
    for (name, help, value) in [
        (
            "lastbyte_quic_retries_sent_total",
            "Retry packets sent.",
            endpoint.retries,
        ),
        (
            "lastbyte_quic_version_negotiations_sent_total",
            "Version Negotiation packets sent.",
            endpoint.version_negotiations,
        ),
        (
            "lastbyte_quic_stateless_resets_sent_total",
            "Stateless resets sent.",
            endpoint.resets_sent,
        ),
        (
            "lastbyte_quic_stateless_resets_received_total",
            "Connections ended by a stateless reset of the client.",
            endpoint.resets_received,
        ),
        (
            "lastbyte_quic_tokens_replayed_total",
            "Address validation tokens that were used before, and ignored.",
            endpoint.tokens_replayed,
        ),
    ] {
        text.one(name, "counter", help, value);
    }
}

fn of_workers(text: &mut Text, numbers: &Numbers) {
    type Value = fn(&lastbyte_driver::Statistics) -> f64;
    let all: [(&str, &str, Value); 13] = [
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
            "datagrams_dropped",
            "Datagrams not sent because the system had no room for them.",
            |one| one.datagrams_dropped as f64,
        ),
        (
            "send_errors",
            "Send calls that failed for another reason: no route, a packet filter.",
            |one| one.send_errors as f64,
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
