//! The output at the end of a run: h2load's table with additions, or JSON.

mod json;
mod text;

#[cfg(test)]
mod tests;

pub use self::{json::json, text::text};

use core::time::Duration;

use crate::{
    dispatcher::Amount,
    histogram::{Histogram, needed_for},
    run::Measurement,
    settings::Settings,
};

/// The percentiles that are printed.
pub const PERCENTILES: [(&str, f64); 6] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99_9", 0.999),
    ("p99_99", 0.9999),
];

/// A generator thread that uses more of a CPU core than this was the limit of the run, or close to it: what it measured may
/// be its own delay.
pub const BUSY_SHARE: f64 = 0.9;

/// Packets that leave a model path later than this falsify the measurement.
const LATE: Duration = Duration::from_millis(2);

/// Nanoseconds as microseconds, with three decimals.
fn micros(nanos: f64) -> f64 {
    nanos.round() / 1000.0
}

/// The percentiles of a histogram in ns, `None` where there are too few values.
fn percentiles(histogram: &Histogram) -> impl Iterator<Item = (&'static str, Option<u64>)> + '_ {
    PERCENTILES
        .into_iter()
        .map(|(name, share)| (name, histogram.supported_quantile(share)))
}

/// Space savings of header compression, from 0 to 1.
fn savings(measurement: &Measurement) -> f64 {
    let counts = &measurement.recorder.counts;
    if counts.header_text_bytes == 0 {
        return 0.0;
    }
    1.0 - counts.header_bytes as f64 / counts.header_text_bytes as f64
}

/// Why percentiles are unknown.
pub fn notes(settings: &Settings, measurement: &Measurement) -> Vec<String> {
    const NAMES: [&str; 6] = ["P50", "P75", "P90", "P99", "P99.9", "P99.99"];
    let recorder = &measurement.recorder;
    let connect = settings.mix.is_some().then_some(&recorder.connect);
    let of = |histogram: &Histogram, what: &str| {
        let unknown = percentiles(histogram).zip(NAMES).zip(PERCENTILES);
        let unknown = unknown.filter(|(((_, value), _), _)| value.is_none());
        let needs = unknown.map(|((_, name), (_, share))| format!("{name} {}", needed_for(share)));
        let needs: Vec<String> = needs.collect();
        let count = histogram.count();
        (!needs.is_empty()).then(|| {
            let needs = needs.join(", ").replacen(' ', " needs ", 1);
            format!("{needs} {what} (there were {count})")
        })
    };
    let requests = of(&recorder.latency, "responses");
    let handshakes = connect.and_then(|connect| of(connect, "connections"));
    requests.into_iter().chain(handshakes).collect()
}

/// The time without a response at the end of a run of a given length, if it is a tenth of the run and a second or more: the server
/// was gone or stood still.
pub fn silent_end(settings: &Settings, measurement: &Measurement) -> Option<Duration> {
    if !matches!(settings.amount, Amount::Time { .. }) || measurement.is_interrupted {
        return None;
    }
    let silent = measurement
        .elapsed
        .saturating_sub(measurement.recorder.timeline.length());
    let least = (measurement.elapsed / 10).max(Duration::from_secs(1));
    (silent >= least).then_some(silent)
}

/// Warnings about the figures.
pub fn warnings(settings: &Settings, measurement: &Measurement) -> Vec<String> {
    let mut all = Vec::new();
    let counts = &measurement.recorder.counts;
    let shares = measurement.threads.iter().map(|it| it.share());
    let busiest = shares.fold(0.0, f64::max);
    if busiest > BUSY_SHARE {
        all.push(format!(
            "the generator was the limit: a thread used {:.0} % of a CPU core (add threads with -t, or machines)",
            busiest * 100.0
        ));
    }
    if counts.not_started > 0 {
        all.push(format!(
            "{} requests were due but not sent: no stream was free (their waiting time is missing from the latencies; lower --rate, or raise -c or -m)",
            counts.not_started
        ));
    }
    let late = measurement
        .paths
        .as_ref()
        .map(|paths| paths.late.quantile(0.99));
    if let Some(late) = late.filter(|late| *late > LATE) {
        all.push(format!(
            "packets left the model paths late: P99 {:.1} ms (use fewer connections, or add threads with -t)",
            late.as_secs_f64() * 1e3
        ));
    }
    if let Some(silent) = silent_end(settings, measurement) {
        all.push(format!(
            "no response in the last {:.1} s of {:.1} s (requests that wait for one are in no latency)",
            silent.as_secs_f64(),
            measurement.elapsed.as_secs_f64()
        ));
    }
    if settings.arrivals.rate().is_some() && counts.unfinished > 0 {
        all.push(format!(
            "{} requests were in progress at the end (their time is missing from the latencies)",
            counts.unfinished
        ));
    }
    all
}
