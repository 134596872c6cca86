//! `--plot`: a page of a run.

use std::path::Path;

use lastbyte_load::{
    Amount, Arrivals, Measurement, Settings,
    histogram::{BEYOND_MIN, Histogram},
    report,
};
use lastbyte_report::load::{Distribution, Interval, Run};

use crate::{commands::report as page, failure::Failure, files};

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
    files::write(path, run(settings, measurement).html().as_bytes())
}

fn run(settings: &Settings, measurement: &Measurement) -> Run {
    let recorder = &measurement.recorder;
    let timeline = &recorder.timeline;
    let intervals = timeline.iter().map(|(_, interval)| Interval {
        done: interval.done,
        errored: interval.errored,
        p50_ms: interval.quantile(0.5).map(ms),
        p99_ms: interval.quantile(0.99).map(ms),
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
        facts: facts(settings, measurement),
        warnings: report::warnings(settings, measurement),
        width_ms: timeline.width().as_secs_f64() * 1e3,
        intervals: intervals.collect(),
        end_ms: timeline.length().as_secs_f64() * 1e3,
        distributions,
    }
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
