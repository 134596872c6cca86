use serde_json::json;

use super::*;

/// A run of 2000 requests with latencies of `base` to `base` + 1 ms.
fn results(base: u64, failed: u64, streams: u64) -> Results {
    let buckets: Vec<(f64, u64)> = (0..1000)
        .map(|step| (((base * 1000) + step) as f64, 2))
        .collect();
    let value = json!({
        "format": 1,
        "settings": { "urls": [base.to_string()], "streams": streams },
        "requests_per_second": 2000.0 - base as f64,
        "requests": { "failed": failed, "errored": failed, "unfinished": 0, "not_started": 0 },
        "latency_histogram": buckets,
    });
    Results::parse(value).unwrap_or_else(|key| panic!("no {key}"))
}

#[test]
fn a_faster_run_is_significantly_faster() {
    let text = text(&results(10, 0, 1), &results(7, 0, 1));
    assert!(text.contains("latency P50 "), "{text}");
    assert!(text.contains("28.6 % less"), "{text}");
    let lines: Vec<&str> = text
        .lines()
        .filter(|it| it.starts_with("latency"))
        .collect();
    // 2000 responses have no P99.9.
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines.iter().all(|line| line.ends_with(": significant")),
        "{text}"
    );
    assert!(
        text.contains("0.0 % (Mann–Whitney, p < 1e-99: significant)"),
        "{text}"
    );
    assert!(!text.contains("warning"), "{text}");
}

#[test]
fn identical_runs_do_not_differ_significantly() {
    let text = text(&results(10, 0, 1), &results(10, 0, 1));
    let lines: Vec<&str> = text
        .lines()
        .filter(|it| it.starts_with("latency"))
        .collect();
    let verdict = ": no significant difference";
    assert!(lines.iter().all(|line| line.ends_with(verdict)), "{text}");
    assert!(text.contains("50.0 % (Mann–Whitney"), "{text}");
}

/// Failed requests are slower than all others: dropping slow requests is no improvement.
#[test]
fn failed_requests_make_a_run_slower() {
    let text = text(&results(10, 0, 1), &results(10, 2000, 1));
    let p50 = text.lines().find(|line| line.starts_with("latency P50"));
    let p50 = p50.unwrap_or_else(|| panic!("{text}"));
    assert!(
        p50.ends_with(": significant") && p50.contains(" more"),
        "{text}"
    );
    assert!(text.contains("75.0 % (Mann–Whitney"), "{text}");
}

#[test]
fn different_settings_cause_a_warning() {
    let text = text(&results(10, 0, 1), &results(9, 0, 2));
    assert!(
        text.starts_with("warning: the settings differ: streams 1 → 2\n"),
        "{text}"
    );
}

#[test]
fn a_file_that_is_not_a_result_is_rejected() {
    for (value, key) in [
        (json!({}), "format: 1"),
        (json!({ "format": 2 }), "format: 1"),
        (json!({ "format": 1 }), "latency_histogram"),
        (
            json!({ "format": 1, "latency_histogram": [[1]] }),
            "latency_histogram",
        ),
    ] {
        assert_eq!(Results::parse(value).err(), Some(key));
    }
}
