use lastbyte_units::SplitMix64;
use serde_json::json;

use super::{super::interval::tests::noisy, *};

/// A run of 2000 requests with latencies of `base` to `base` + 1 ms.
fn results(base: f64, failed: u64, streams: u64) -> Results {
    let buckets: Vec<(f64, u64)> = (0..1000)
        .map(|step| (base * 1000.0 + f64::from(step), 2))
        .collect();
    let value = json!({
        "format": 1,
        "generator": "lastbyte 1",
        "settings": { "urls": ["/"], "streams": streams, "seed": 1 },
        "is_interrupted": false,
        "requests_per_second": 20_000.0 / base,
        "requests": { "total": 2000 + failed, "failed": failed, "errored": failed, "unfinished": 0, "not_started": 0 },
        "latency_histogram": buckets,
        "warnings": [],
    });
    let path = format!("{base}.json");
    Results::parse(&path, value).unwrap_or_else(|key| panic!("no {key}"))
}

fn compared(before: &[Results], after: &[Results]) -> String {
    text(before, after).unwrap_or_else(|why| panic!("{why}"))
}

/// The lines with a percentile or the rate.
fn lines(text: &str) -> Vec<&str> {
    let is_line = |line: &&str| line.starts_with("latency") || line.starts_with("requests/s");
    text.lines().filter(is_line).collect()
}

/// Runs of a command whose latency differs by a tenth from run to run, as on a shared machine.
fn runs(random: &mut SplitMix64, count: usize, median: f64) -> Vec<Results> {
    let runs = (0..count).map(|_| results(noisy(random, median, 0.1), 0, 1));
    runs.collect()
}

/// One run of each has tight intervals, and says nothing about the next run.
#[test]
fn one_run_a_side_has_no_verdict() {
    let text = compared(&[results(10.0, 0, 1)], &[results(16.0, 0, 1)]);
    assert!(text.contains("95 % interval within the runs"), "{text}");
    assert!(text.contains("57.1 % more"), "{text}");
    assert!(
        text.contains("within-run variation only, and no verdict"),
        "{text}"
    );
    assert!(!text.contains("significant"), "{text}");
    // 2000 responses have no P99.9, and the reason is given.
    assert_eq!(lines(&text).len(), 5, "{text}");
    let why = "not compared: latency P99.9 needs 10000 requests (`10.json` has 2000)";
    assert!(text.contains(why), "{text}");
}

#[test]
fn one_run_on_a_side_has_no_interval() {
    let mut random = SplitMix64::new(1);
    let text = compared(&[results(10.0, 0, 1)], &runs(&mut random, 5, 16.0));
    assert!(!text.contains("significant"), "{text}");
    assert!(!text.contains("% to"), "{text}");
    assert!(text.contains("no interval and no verdict"), "{text}");
}

/// Of 20 comparisons of a command with itself over 5 runs a side, at most one has a significant line. Each run alone has an
/// interval that excludes zero, since it is tight.
#[test]
fn noise_between_runs_is_not_significant() {
    let mut random = SplitMix64::new(3);
    let mut found = 0;
    for _ in 0..20 {
        let (before, after) = (runs(&mut random, 5, 10.0), runs(&mut random, 5, 10.0));
        let text = compared(&before, &after);
        assert!(text.contains("95 % interval over 5 and 5 runs"), "{text}");
        assert_eq!(lines(&text).len(), 5, "{text}");
        found += u32::from(text.contains(": significant"));
    }
    assert!(found <= 1, "{found}");
}

#[test]
fn a_difference_beyond_the_noise_between_runs_is_significant() {
    let mut random = SplitMix64::new(3);
    let (before, after) = (runs(&mut random, 5, 10.0), runs(&mut random, 5, 16.0));
    let text = compared(&before, &after);
    for line in lines(&text) {
        assert!(line.ends_with(": significant"), "{text}");
        let which = if line.starts_with("latency") {
            "% more"
        } else {
            "% less"
        };
        assert!(line.contains(which), "{text}");
    }
    assert!(!text.contains("warning"), "{text}");
}

/// Failed requests are slower than all others: dropping slow requests is no improvement.
#[test]
fn failed_requests_make_a_run_slower() {
    let before = [
        results(10.0, 0, 1),
        results(10.01, 0, 1),
        results(10.02, 0, 1),
    ];
    let after = [
        results(10.0, 1000, 1),
        results(10.01, 1000, 1),
        results(10.02, 1000, 1),
    ];
    let text = compared(&before, &after);
    let p50 = text.lines().find(|line| line.starts_with("latency P50"));
    let p50 = p50.unwrap_or_else(|| panic!("{text}"));
    assert!(
        p50.ends_with(": significant") && p50.contains(" more"),
        "{text}"
    );
    assert!(text.contains("3000 (33.33 %)"), "{text}");
    // A third of the requests have no response: P75 and above are unknown.
    assert_eq!(lines(&text).len(), 2, "{text}");
    let why = "not compared: latency P75 more requests of `10.json` than that have no response";
    assert!(text.contains(why), "{text}");
}

#[test]
fn different_settings_of_the_sides_cause_a_warning() {
    let text = compared(&[results(10.0, 0, 1)], &[results(10.0, 0, 2)]);
    assert!(
        text.starts_with("warning: the settings differ: streams 1 → 2\n"),
        "{text}"
    );
}

/// A run or a copy of it on both sides would show no change, and twice on a side no variation.
#[test]
fn a_run_that_is_given_twice_is_rejected() {
    let run = |base: f64| results(base, 0, 1);
    let named = |path: &str| {
        let mut copy = run(10.0);
        copy.path = path.to_owned();
        copy
    };
    for (before, after) in [
        (vec![run(10.0)], vec![named("copy.json")]),
        (
            vec![run(10.0), named("copy.json")],
            vec![run(11.0), run(12.0)],
        ),
        (
            vec![run(11.0), run(10.0)],
            vec![run(12.0), named("copy.json")],
        ),
    ] {
        let expected =
            "`10.json` and `copy.json` are the results of the same run (expected different runs)";
        assert_eq!(text(&before, &after), Err(expected.to_owned()));
    }
}

/// Runs of one side are repetitions of one command.
#[test]
fn a_side_with_another_command_is_rejected() {
    let one = || vec![results(10.0, 0, 1), results(11.0, 0, 1)];
    let mixed = text(
        &[results(10.0, 0, 1), results(11.0, 0, 2)],
        &[results(12.0, 0, 1)],
    );
    let expected = "`11.json` is a run of another command than `10.json`: streams 2 (expected 1)";
    assert_eq!(mixed.err().as_deref(), Some(expected));
    let mut lacking = results(12.0, 0, 1);
    lacking.value["settings"] = json!({ "urls": ["/"], "seed": 1 });
    let mixed = text(&one(), &[results(13.0, 0, 1), lacking]);
    assert!(mixed.is_err_and(|why| why.contains("streams null (expected 1)")));
    // Another random seed is no other command.
    let mut seeded = results(12.0, 0, 1);
    seeded.value["settings"]["seed"] = json!(2);
    assert!(text(&one(), &[results(13.0, 0, 1), seeded]).is_ok());
    assert!(text(&[], &one()).is_err());
}

#[test]
fn doubtful_runs_cause_warnings() {
    let (mut interrupted, mut busy) = (results(10.0, 0, 1), results(11.0, 0, 1));
    interrupted.value["is_interrupted"] = json!(true);
    busy.value["warnings"] = json!(["the generator was the limit"]);
    busy.value["generator"] = json!("lastbyte 2");
    let text = compared(
        &[interrupted, busy],
        &[results(12.0, 0, 1), results(13.0, 0, 1)],
    );
    for expected in [
        "warning: `10.json`: the run was interrupted",
        "warning: `11.json`: the generator was the limit",
        "warning: `11.json` is of another program than `10.json`: \"lastbyte 1\" → \"lastbyte 2\"",
    ] {
        assert!(text.contains(expected), "{text}");
    }
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
        assert_eq!(Results::parse("a", value).err(), Some(key));
    }
}

/// A run without any response has no latency and a rate of 0: dashes, no infinite change.
#[test]
fn a_run_without_a_response_has_no_change() {
    let empty = |base: f64| {
        let mut empty = results(base, 10, 1);
        empty.latencies = Counts::new(&BTreeMap::new(), 10);
        empty.rate = 0.0;
        empty
    };
    let full = || vec![results(10.0, 0, 1), results(11.0, 0, 1)];
    for (before, after) in [
        (vec![empty(1.0), empty(2.0)], full()),
        (full(), vec![empty(1.0), empty(2.0)]),
        (vec![empty(1.0)], vec![empty(2.0)]),
    ] {
        let text = compared(&before, &after);
        assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
        assert!(!text.contains("significant"), "{text}");
    }
}

#[test]
fn a_run_of_error_pages_is_not_compared() {
    let mut errors = results(10.0, 0, 1);
    errors.failed = errors.total;
    let why = text(&[results(11.0, 0, 1)], &[errors]).expect_err("an error");
    assert_eq!(
        why,
        "`10.json`: 2000 of 2000 requests failed (expected runs with mostly successful responses)"
    );
}

#[test]
fn other_urls_of_a_side_are_named() {
    let mut other = results(10.0, 0, 1);
    other.value["settings"]["urls"] = json!(["/other"]);
    let text = compared(&[results(10.0, 0, 1)], &[other]);
    assert!(
        text.starts_with("note: the URLs differ: [\"/\"] → [\"/other\"]\n"),
        "{text}"
    );
    let same = compared(&[results(10.0, 0, 1)], &[results(16.0, 0, 1)]);
    assert!(!same.contains("URLs"), "{same}");
}

/// Errors are fast without a merit.
#[test]
fn a_run_that_mostly_failed_is_not_compared() {
    let why = text(&[results(10.0, 2001, 1)], &[results(16.0, 0, 1)]);
    assert_eq!(
        why,
        Err("`10.json`: 2001 of 4001 requests failed (expected runs with mostly successful responses)".to_owned())
    );
    assert!(text(&[results(10.0, 1999, 1)], &[results(16.0, 0, 1)]).is_ok());
}
