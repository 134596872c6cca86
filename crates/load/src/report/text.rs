//! The final table.

use core::fmt::Write as _;

use super::{notes, percentiles, savings, warnings};
use crate::{
    histogram::{Histogram, Summary},
    run::Measurement,
    settings::Settings,
};

/// The final table: that of h2load, percentiles, errors, and how busy the generator was.
pub fn text(settings: &Settings, measurement: &Measurement) -> String {
    let mut text = String::new();
    let recorder = &measurement.recorder;
    let counts = &recorder.counts;
    let what = if measurement.is_interrupted {
        "interrupted after"
    } else {
        "finished in"
    };
    let _ = writeln!(
        text,
        "{what} {}, {:.2} req/s, {}/s over {}",
        time(measurement.elapsed.as_nanos() as f64),
        measurement.rate(),
        bytes(measurement.per_second(counts.total_bytes)),
        settings.version,
    );
    let total = measurement.total(settings);
    let _ = writeln!(
        text,
        "requests: {total} total, {} started, {} done, {} succeeded, {} failed, {} errored, {} timeout",
        counts.started,
        counts.done,
        counts.succeeded,
        counts.failed,
        counts.errored,
        counts.timed_out
    );
    if counts.unfinished + counts.not_started + counts.retried > 0 {
        let _ = writeln!(
            text,
            "          {} unfinished, {} not started, {} retried",
            counts.unfinished, counts.not_started, counts.retried
        );
    }
    let [_, informational, success, redirection, client, server] = counts.statuses;
    let _ = write!(
        text,
        "status codes: {success} 2xx, {redirection} 3xx, {client} 4xx, {server} 5xx"
    );
    if informational > 0 {
        let _ = write!(text, ", {informational} 1xx");
    }
    let _ = writeln!(
        text,
        "\ntraffic: {} ({}) total, {} ({}) headers (space savings {:.2}%), {} ({}) data",
        bytes(counts.total_bytes as f64),
        counts.total_bytes,
        bytes(counts.header_bytes as f64),
        counts.header_bytes,
        savings(measurement) * 100.0,
        bytes(counts.data_bytes as f64),
        counts.data_bytes
    );
    if counts.datagrams_sent > 0 {
        let _ = writeln!(
            text,
            "UDP datagrams: {} sent, {} received",
            counts.datagrams_sent, counts.datagrams_received
        );
    }
    if let (Some(network), Some(paths)) = (&settings.network, &measurement.paths) {
        let late = |share| time(paths.late.quantile(share).as_nanos() as f64);
        let _ = writeln!(
            text,
            "paths: {}; {} of {} packets dropped; delay added by this machine P50 {}, P99 {}, max {}",
            network.name,
            paths.up.dropped_total() + paths.down.dropped_total(),
            paths.up.sent.packets + paths.down.sent.packets,
            late(0.5),
            late(0.99),
            time(paths.late.max().as_nanos() as f64),
        );
    }
    connections(&mut text, settings, measurement);
    table(&mut text, measurement);
    latencies(&mut text, settings, measurement);
    let _ = writeln!(text, "\n{}", generator(measurement));
    for (why, times) in &recorder.errors {
        let _ = writeln!(text, "error: {why} ({times} times)");
    }
    for note in notes(settings, measurement) {
        let _ = writeln!(text, "note: {note}");
    }
    for warning in warnings(settings, measurement) {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

/// Connections, handshakes and moves.
fn connections(text: &mut String, settings: &Settings, measurement: &Measurement) {
    let counts = &measurement.recorder.counts;
    let rate = measurement.recorder.handshake_rate();
    let _ = writeln!(
        text,
        "connections: {} established, {} failed, {} lost",
        counts.connected, counts.connect_failed, counts.disconnected
    );
    let _ = writeln!(
        text,
        "handshakes: {} full, {} resumed (early data: {} accepted, {} rejected), {:.2}/s",
        counts.full_handshakes,
        counts.resumed_handshakes,
        counts.early_data_accepted,
        counts.early_data_rejected,
        rate
    );
    if settings.migrate.is_some() {
        let _ = writeln!(
            text,
            "migrations: {} done, {} failed, {} requests lost",
            counts.migrations, counts.migrations_failed, counts.migration_losses
        );
    }
}

fn table(text: &mut String, measurement: &Measurement) {
    let recorder = &measurement.recorder;
    let _ = writeln!(
        text,
        "\n{:<17}{:>12}{:>12}{:>12}{:>12}{:>10}",
        "", "min", "max", "mean", "sd", "+/- sd"
    );
    for (name, summary) in [
        ("time for request:", recorder.service.summary()),
        ("time for connect:", recorder.connect.summary()),
        ("time to 1st byte:", recorder.first_byte.summary()),
    ] {
        row(text, name, summary, time);
    }
    let rates = Summary::of(&recorder.rates);
    row(text, "req/s           :", rates, |rate| {
        format!("{rate:.2}")
    });
}

fn row(text: &mut String, name: &str, summary: Option<Summary>, show: impl Fn(f64) -> String) {
    let cells = summary.map_or_else(
        || [const { String::new() }; 5].map(|_| ABSENT.to_owned()),
        |it| {
            let share = format!("{:.2}%", it.within_sd * 100.0);
            [
                show(it.min),
                show(it.max),
                show(it.mean),
                show(it.sd),
                share,
            ]
        },
    );
    let [min, max, mean, sd, within] = cells;
    let _ = writeln!(
        text,
        "{name}{min:>12}{max:>12}{mean:>12}{sd:>12}{within:>10}"
    );
}

/// What cannot be known.
const ABSENT: &str = "–";

fn latencies(text: &mut String, settings: &Settings, measurement: &Measurement) {
    let recorder = &measurement.recorder;
    let _ = write!(text, "\n{:<17}", "");
    for name in ["P50", "P75", "P90", "P99", "P99.9", "P99.99"] {
        let _ = write!(text, "{name:>10}");
    }
    text.push('\n');
    let mut line = |name: &str, histogram: &Histogram| {
        let _ = write!(text, "{name:<17}");
        for (_, value) in percentiles(histogram) {
            let cell = value.map_or_else(|| ABSENT.to_owned(), |value| time(value as f64));
            let _ = write!(text, "{cell:>10}");
        }
        text.push('\n');
    };
    // A closed loop has no waiting time, unless requests wait for their connections.
    if settings.arrivals.rate().is_some() || settings.mix.is_some() {
        line("latency:", &recorder.latency);
    }
    line("service time:", &recorder.service);
    if settings.mix.is_some() {
        line("connect:", &recorder.connect);
    }
}

/// How busy the generator was.
fn generator(measurement: &Measurement) -> String {
    let shares = measurement.threads.iter().map(|it| it.share() * 100.0);
    let shares: Vec<String> = shares.map(|share| format!("{share:.0} %")).collect();
    let cpu: f64 = measurement
        .threads
        .iter()
        .map(|it| it.cpu.as_secs_f64())
        .sum();
    let done = measurement.recorder.counts.done;
    let each = if done > 0 {
        format!(", {} per request", time(cpu * 1e9 / done as f64))
    } else {
        String::new()
    };
    format!(
        "generator: CPU {} of a core by thread{each}",
        shares.join(", ")
    )
}

/// A time in nanoseconds, as h2load prints it.
fn time(nanos: f64) -> String {
    match nanos {
        1e9.. => format!("{:.2}s", nanos / 1e9),
        1e6.. => format!("{:.2}ms", nanos / 1e6),
        _ => format!("{:.0}us", nanos / 1e3),
    }
}

/// A number of bytes with powers of 1000, as everywhere in Lastbyte; h2load's are powers of 1024.
fn bytes(count: f64) -> String {
    match count {
        1e9.. => format!("{:.2}GB", count / 1e9),
        1e6.. => format!("{:.2}MB", count / 1e6),
        1e3.. => format!("{:.2}kB", count / 1e3),
        _ => format!("{count:.0}B"),
    }
}
