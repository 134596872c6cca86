//! `--plot`: a page of a run.

use core::time::Duration;
use std::{ffi::OsString, path::Path};

use lastbyte_load::{
    Amount, Arrivals, Measurement, Settings,
    histogram::{BEYOND_MIN, Histogram, needed_for},
    report,
    timeline::Timeline,
};
use lastbyte_report::load::{Distribution, Interval, Run, Step, Tile};

use crate::{commands::report as page, failure::Failure, files, terminal::save};

#[cfg(test)]
mod tests;

/// The end of the names of header fields whose values are not written to a page.
const SECRETS: [&str; 2] = ["authorization:", "cookie:"];

/// Whether the page can be written.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    if extension != Some("html") {
        return Err(Failure::Usage(format!(
            "--plot: unknown format `{}` (expected a name that ends in .html)",
            path.display()
        )));
    }
    files::check_folder_of(path)?;
    files::check_is_page(path)
}

/// Writes the page.
pub(super) fn write(
    path: &Path,
    settings: &Settings,
    measurement: &Measurement,
) -> Result<(), Failure> {
    save(path, run(settings, measurement).html().as_bytes())
}

pub(super) fn run(settings: &Settings, measurement: &Measurement) -> Run {
    let recorder = &measurement.recorder;
    let timeline = &recorder.timeline;
    let intervals = timeline.iter().map(|(_, interval)| Interval {
        done: interval.done,
        errored: interval.errored,
        max_ms: (interval.done > 0).then(|| ms(interval.max)),
    });
    let mut distributions = vec![distribution("service time", &recorder.service)];
    if settings.arrivals.rate().is_some() {
        distributions.push(distribution("latency", &recorder.latency));
    }
    let url = settings.requests.first();
    let url = url.map_or_else(String::new, |request| request.url.to_string());
    Run {
        title: format!("Load over {}", settings.version),
        subtitle: url,
        command: command(),
        tiles: tiles(settings, measurement),
        facts: facts(settings, measurement),
        warnings: report::warnings(settings, measurement),
        notes: report::notes(settings, measurement),
        p50: steps(timeline, 0.5),
        p99: steps(timeline, 0.99),
        width_ms: timeline.width().as_secs_f64() * 1e3,
        intervals: intervals.collect(),
        end_ms: end(settings, measurement).as_secs_f64() * 1e3,
        distributions,
    }
}

/// The end of the time axis: of the run, if it has a length, and else of the responses.
fn end(settings: &Settings, measurement: &Measurement) -> Duration {
    let responses = measurement.recorder.timeline.length();
    match settings.amount {
        Amount::Time { .. } => responses.max(measurement.elapsed),
        Amount::Requests(_) => responses,
    }
}

/// This command line, without the values of header fields that are secrets.
pub(super) fn command() -> String {
    command_of(std::env::args_os().skip(1))
}

fn command_of(words: impl Iterator<Item = OsString>) -> String {
    let words = words.map(|word| {
        let text = word.to_string_lossy();
        let lower = text.to_ascii_lowercase();
        let end = SECRETS
            .iter()
            .filter_map(|name| Some(lower.find(name)? + name.len()));
        match end.min() {
            Some(end) => page::shell(format!("{} …", &text[..end]).as_ref()),
            None => page::shell(&word),
        }
    });
    let words: Vec<String> = words.collect();
    format!("lastbyte {}", words.join(" "))
}

/// A percentile over time.
fn steps(timeline: &Timeline, share: f64) -> Vec<Step> {
    let ranges = timeline.percentile(share).into_iter();
    let steps = ranges.map(|(intervals, nanos)| Step {
        intervals,
        ms: ms(nanos),
    });
    steps.collect()
}

/// The headline.
fn tiles(settings: &Settings, measurement: &Measurement) -> Vec<Tile> {
    let recorder = &measurement.recorder;
    let (counts, latency) = (&recorder.counts, &recorder.latency);
    let tile = |name: &str, value: String, note: String| Tile {
        name: name.to_owned(),
        value,
        note,
    };
    let percentile = |name: &str, share| {
        if let Some(nanos) = latency.supported_quantile(share) {
            return tile(name, Run::time(ms(nanos)), "latency".to_owned());
        }
        let (needed, count) = (needed_for(share), latency.count());
        let note = format!("needs {needed} responses (there were {count})");
        tile(name, "–".to_owned(), note)
    };
    let total = measurement.total(settings);
    let share = counts.failed as f64 / total.max(1) as f64 * 100.0;
    let share = if counts.failed == 0 {
        format!("of {total} requests")
    } else {
        format!("of {total} requests, {share:.2} %")
    };
    let rate = measurement.rate();
    let responses = format!("{} responses", counts.done);
    vec![
        tile("requests/s", format!("{rate:.1}"), responses),
        percentile("P50", 0.5),
        percentile("P99", 0.99),
        tile("failed", counts.failed.to_string(), share),
    ]
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// Ten percentiles for each nine, as far as there are 10 values beyond them.
fn distribution(name: &str, histogram: &Histogram) -> Distribution {
    let mut points = Vec::new();
    let beyond = |share: f64| (1.0 - share) * histogram.count() as f64;
    let tenths = (0..60).map(|tenth| 1.0 - 10_f64.powf(-f64::from(tenth) / 10.0));
    let mut shares: Vec<f64> = tenths
        .chain([0.5, 0.75, 0.9, 0.99, 0.999, 0.9999])
        .collect();
    shares.sort_by(f64::total_cmp);
    for share in shares {
        // One part in a million for rounding.
        if beyond(share) * 1.000_001 < BEYOND_MIN as f64 {
            break;
        }
        points.extend(histogram.quantile(share).map(|nanos| (share, ms(nanos))));
    }
    Distribution {
        name: name.to_owned(),
        points,
    }
}

fn facts(settings: &Settings, measurement: &Measurement) -> Vec<(String, String)> {
    let counts = &measurement.recorder.counts;
    let amount = match settings.amount {
        Amount::Requests(count) => format!("{count} requests"),
        Amount::Time { measured, .. } => format!("{:.1} s", measured.as_secs_f64()),
    };
    let arrivals = match settings.arrivals {
        Arrivals::Closed => "closed loop".to_owned(),
        Arrivals::Constant { rate } => format!("{rate} requests/s, constant intervals"),
        Arrivals::Poisson { rate } => format!("{rate} requests/s, Poisson"),
    };
    let mut facts = vec![
        ("version", page::version()),
        ("amount", amount),
        ("arrivals", arrivals),
        ("connections", settings.connections.to_string()),
        ("streams per connection", settings.streams.to_string()),
        ("threads", settings.threads.to_string()),
        ("requests/s", format!("{:.1}", measurement.rate())),
        ("responses", counts.done.to_string()),
        ("succeeded", counts.succeeded.to_string()),
        ("failed", counts.failed.to_string()),
        ("timeouts", counts.timed_out.to_string()),
        ("retried", counts.retried.to_string()),
        ("connections lost", counts.disconnected.to_string()),
    ];
    if let Some(network) = &settings.network {
        facts.push(("paths", network.name.clone()));
    }
    let named = facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    named.collect()
}
