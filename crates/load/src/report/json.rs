//! The results as JSON. docs/bench.md lists the keys.

use lastbyte_emulate::{DirectionReport, Report};
use serde_json::{Map, Value, json};

use super::{micros, notes, percentiles, savings, warnings};
use crate::{
    dispatcher::{Amount, Arrivals},
    histogram::{Histogram, Summary},
    run::Measurement,
    settings::Settings,
};

/// The version of the format. It changes when a key changes its meaning or disappears.
const FORMAT: u32 = 1;

/// The results as a JSON object.
pub fn json(settings: &Settings, measurement: &Measurement) -> Value {
    let recorder = &measurement.recorder;
    let counts = &recorder.counts;
    let [_, informational, success, redirection, client, server] = counts.statuses;
    let threads = measurement.threads.iter().map(|thread| {
        json!({
            "cpu_us": thread.cpu.as_micros() as u64,
            "wall_us": thread.wall.as_micros() as u64,
            "cpu_share": thread.share(),
        })
    });
    json!({
        "format": FORMAT,
        "generator": concat!("lastbyte ", env!("CARGO_PKG_VERSION")),
        "settings": settings_of(settings),
        "is_interrupted": measurement.is_interrupted,
        "elapsed_us": measurement.elapsed.as_micros() as u64,
        "requests_per_second": measurement.rate(),
        "bytes_per_second": measurement.per_second(counts.total_bytes),
        "requests": {
            "total": measurement.total(settings),
            "started": counts.started,
            "done": counts.done,
            "succeeded": counts.succeeded,
            "failed": counts.failed,
            "errored": counts.errored,
            "timeout": counts.timed_out,
            "retried": counts.retried,
            "unfinished": counts.unfinished,
            "not_started": counts.not_started,
        },
        "statuses": {
            "1xx": informational,
            "2xx": success,
            "3xx": redirection,
            "4xx": client,
            "5xx": server,
        },
        "traffic": {
            "total_bytes": counts.total_bytes,
            "header_bytes": counts.header_bytes,
            "header_text_bytes": counts.header_text_bytes,
            "header_savings": savings(measurement),
            "data_bytes": counts.data_bytes,
            "datagrams_sent": counts.datagrams_sent,
            "datagrams_received": counts.datagrams_received,
        },
        "connections": {
            "established": counts.connected,
            "failed": counts.connect_failed,
            "lost": counts.disconnected,
        },
        "handshakes": handshakes(measurement),
        "migrations": json!({
            "done": counts.migrations,
            "failed": counts.migrations_failed,
            "requests_lost": counts.migration_losses,
        }),
        "request_time": summary(recorder.service.summary()),
        "connect_time": summary(recorder.connect.summary()),
        "first_byte_time": summary(recorder.first_byte.summary()),
        "connection_rate": Summary::of(&recorder.rates).map(|it| json!({
            "min": it.min,
            "max": it.max,
            "mean": it.mean,
            "sd": it.sd,
            "within_sd": it.within_sd,
        })),
        "latency_us": by_percentile(&recorder.latency),
        "service_time_us": by_percentile(&recorder.service),
        "connect_time_us": by_percentile(&recorder.connect),
        "latency_histogram": buckets(&recorder.latency),
        "paths": measurement.paths.as_ref().map(paths),
        "generator_threads": threads.collect::<Vec<Value>>(),
        "errors": recorder.errors,
        "notes": notes(settings, measurement),
        "warnings": warnings(settings, measurement),
    })
}

fn settings_of(settings: &Settings) -> Value {
    let urls = settings.requests.iter();
    let urls: Vec<String> = urls.map(|request| request.url.to_string()).collect();
    json!({
            "urls": urls,
            "http": settings.version.to_string(),
            "method": settings.method(),
            "connections": settings.connections,
            "connect_rate": settings.connect_rate,
            "streams": settings.streams,
            "threads": settings.threads,
            "requests": match settings.amount {
                Amount::Requests(count) => Some(count),
                Amount::Time { .. } => None,
            },
            "duration_us": match settings.amount {
                Amount::Requests(_) => None,
                Amount::Time { measured, .. } => Some(measured.as_micros() as u64),
            },
            "warm_up_us": match settings.amount {
                Amount::Requests(_) => None,
                Amount::Time { warm_up, .. } => Some(warm_up.as_micros() as u64),
            },
            "arrivals": match settings.arrivals {
                Arrivals::Closed => "closed",
                Arrivals::Constant { .. } => "constant",
                Arrivals::Poisson { .. } => "poisson",
            },
            "rate": settings.arrivals.rate(),
            "seed": settings.seed,
            "network": settings.network.as_ref().map(|network| network.name.as_str()),
            "migrate_us": settings.migrate.map(|interval| interval.as_micros() as u64),
            "migrate_to": settings.migrate_to,
            "mix": settings.mix.map(|mix| mix.to_string()),
    })
}

fn handshakes(measurement: &Measurement) -> Value {
    let counts = &measurement.recorder.counts;
    json!({
        "per_second": measurement.recorder.handshake_rate(),
        "full": counts.full_handshakes,
        "resumed": counts.resumed_handshakes,
        "early_data_accepted": counts.early_data_accepted,
        "early_data_rejected": counts.early_data_rejected,
    })
}

fn summary(of: Option<Summary>) -> Option<Value> {
    of.map(|it| {
        json!({
            "min_us": micros(it.min),
            "max_us": micros(it.max),
            "mean_us": micros(it.mean),
            "sd_us": micros(it.sd),
            "within_sd": it.within_sd,
        })
    })
}

/// The counters of the model paths.
fn paths(report: &Report) -> Value {
    let direction = |of: &DirectionReport| {
        json!({
            "sent": of.sent.packets,
            "delivered": of.delivered.packets,
            "dropped": of.dropped_total(),
            "overflowed": of.overflowed,
        })
    };
    let late = |share| micros(report.late.quantile(share).as_nanos() as f64);
    json!({
        "up": direction(&report.up),
        "down": direction(&report.down),
        "late_p50_us": late(0.5),
        "late_p99_us": late(0.99),
        "late_max_us": micros(report.late.max().as_nanos() as f64),
    })
}

fn by_percentile(histogram: &Histogram) -> Value {
    let all = percentiles(histogram).map(|(name, value)| {
        let value = value.map(|value| micros(value as f64));
        (name.to_owned(), json!(value))
    });
    Value::Object(all.collect::<Map<String, Value>>())
}

fn buckets(histogram: &Histogram) -> Vec<(f64, u64)> {
    let all = histogram.iter();
    all.map(|(highest, count)| (micros(highest as f64), count))
        .collect()
}
