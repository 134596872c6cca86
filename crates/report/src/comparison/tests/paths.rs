//! The change of each path.

use super::*;

/// Checks that the query engine's answers are what the page shows.
pub(super) fn check_queries(analysis: &Analysis, text: &str) {
    for (arm, paths) in analysis
        .paths
        .iter()
        .flat_map(|paths| (1..analysis.arms.len()).map(move |arm| (arm, paths)))
    {
        let asked = ask(&paths.queries[arm], text);
        for (cell, asked) in paths.curves[arm]
            .iter()
            .zip(asked.as_array().expect("a list"))
        {
            // A path on which only the arm never completed has no change here, and an enormous one there.
            let (ours, asked) = (
                cell.estimate.unwrap_or(1e6),
                asked.as_f64().expect("a change"),
            );
            assert!(
                (ours * 100.0 - asked).abs() < 0.0051 || ours > 1e5 && asked > 1e6,
                "{}: {ours} {asked}",
                paths.queries[arm]
            );
        }
    }
}

/// A path per number: the arm changes its time by this share; `None` never completes.
fn log_of(changes: &[(Option<f64>, Option<f64>)]) -> String {
    let mut text = String::new();
    for (path, (base, ours)) in changes.iter().enumerate() {
        for (arm, value) in [("baseline", base), ("new", ours)] {
            text += &line(
                &json!({ "arm": arm, "seed": path, "ttlb": value, "content_length": 300_000 }),
            );
        }
    }
    text
}

#[test]
fn shares_of_slower_and_faster_paths_count_each_path_once() {
    // 100 paths: 20 slower by 10 %, 50 faster by 30 %, 26 by 4 % either way, 2 fail in one arm, 1 in the other, 1 in both.
    let mut changes = Vec::new();
    for path in 0..100u32 {
        let base = 100.0 + f64::from(path);
        changes.push(match path {
            0..20 => (Some(base), Some(base * 1.1)),
            20..70 => (Some(base), Some(base * 0.7)),
            70..83 => (Some(base), Some(base * 1.04)),
            83..96 => (Some(base), Some(base * 0.96)),
            96..98 => (Some(base), None),
            98 => (None, Some(base)),
            _ => (None, None),
        });
    }
    let text = log_of(&changes);
    let comparison = read(&text, quick()).expect("a report");
    let paths = comparison.analysis.paths.as_ref().expect("pairs");
    assert_eq!(paths.counts, [0, 100]);
    let (slower, faster) = (
        paths.slower[1].expect("a share"),
        paths.faster[1].expect("a share"),
    );
    assert!((slower.value - 0.22).abs() < 1e-9, "{slower:?}");
    assert!((faster.value - 0.51).abs() < 1e-9, "{faster:?}");
    assert!(
        slower.interval.0 > 0.13 && slower.interval.1 < 0.34,
        "{slower:?}"
    );
    let at = |percentile: usize| paths.curves[1][percentile - 1];
    assert_eq!(at(1).estimate, Some(-1.0));
    assert!(
        at(50)
            .estimate
            .is_some_and(|change| (change + 0.3).abs() < 0.001),
        "{:?}",
        at(50)
    );
    let (low, high) = at(50).alone.expect("an interval");
    assert!(low < -0.29 && high > -0.05 && high < 0.05, "{low} {high}");
    // Two of 100 never completed: the slowest.
    assert_eq!((at(99).estimate, at(99).alone), (None, None));
    check_queries(&comparison.analysis, &text);
    assert_eq!(super::check_queries(&comparison.analysis, &text), 0);
    let html = comparison.html();
    assert!(html.contains("id=\"paths\"") && html.contains("paths slower by"));
    assert!(
        html.contains("22.0\u{a0}% of 100 paths are slower by more than 5\u{a0}%"),
        "{:?}",
        text::paths(&comparison.analysis)
    );
    assert!(
        comparison
            .figures()
            .iter()
            .any(|figure| figure.name == "ttlb-paths")
    );
}

#[test]
fn connections_that_are_not_paired_have_no_changes_of_paths() {
    let comparison = read(&log(4, 400, &ARMS, 0.0), quick()).expect("a report");
    assert!(comparison.analysis.paths.is_none());
    assert!(!comparison.html().contains("id=\"paths\""));
    let json: Value = serde_json::from_str(&comparison.json()).expect("JSON");
    assert!(json["changes_of_paths"].is_null() && json["paths"] == json!([]));
}

/// The interval of a percentile contains the true value as often as it claims.
#[test]
fn intervals_of_the_change_of_paths_contain_the_true_median() {
    let mut inside = 0;
    for seed in 0..200 {
        let mut chance = Chance(9_000 + seed);
        let changes: Vec<_> = (0..150)
            .map(|_| {
                let base = 200_000.0;
                (
                    Some(base),
                    Some((base * (0.2 * chance.normal()).exp()).round()),
                )
            })
            .collect();
        let settings = Settings {
            replicates: 100,
            ..Settings::default()
        };
        let comparison = read(&log_of(&changes), settings).expect("a report");
        let paths = comparison.analysis.paths.expect("pairs");
        let (low, high) = paths.curves[1][49].alone.expect("an interval");
        inside += u32::from(low <= 0.0 && high >= 0.0);
    }
    assert!((186..=199).contains(&inside), "{inside} of 200");
}
