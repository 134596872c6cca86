//! Pages of logs in which all arms are the same: what they claim is false.

use std::collections::BTreeMap;

use super::*;
use crate::{
    comparison::figure::{Size, Subject, chart},
    statistics::{bootstrap::Overall, tests_of::Estimate},
};

/// The number of pages on which each list states a significant difference, or an interval that does not contain the true share.
/// The shares are those of complete [`pairs`].
fn false_claims(
    pages: u64,
    has_shares: bool,
    text: impl Fn(u64) -> String,
) -> BTreeMap<&'static str, u64> {
    let mut claims = BTreeMap::new();
    for seed in 0..pages {
        let settings = Settings { seed, ..quick() };
        let comparison = read(&text(seed), settings).expect("a report");
        let analysis = &comparison.analysis;
        let mut lists: BTreeSet<&str> = text::claims(analysis)
            .iter()
            .map(|claim| claim.list)
            .collect();
        let misses = |shares: &[Option<Estimate>], truth: f64| {
            let mut shares = shares.iter().flatten();
            shares.any(|one| truth < one.interval.0 || truth > one.interval.1)
        };
        if let Some(paths) = &analysis.paths
            && has_shares
            && (misses(&paths.slower, SLOWER) || misses(&paths.faster, FASTER))
        {
            lists.insert("shares of paths");
        }
        let mut kinds = analysis.neighbours.iter().flatten();
        if has_shares && kinds.any(|kind| misses(&kind.less, LESS)) {
            lists.insert("shares of neighbours");
        }
        for list in lists {
            *claims.entry(list).or_insert(0) += 1;
        }
    }
    claims
}

/// The shares of [`pairs`] whose time is longer, or shorter, by more than 5 %, and whose neighbour's rate is less: logarithms of
/// their ratios are normal, with standard deviations of 0.1 √2 and 0.3 √2.
const SLOWER: f64 = 0.3650;
const FASTER: f64 = 0.3584;
const LESS: f64 = 0.4519;

const SAME: [(&str, f64); 4] = [("baseline", 0.0), ("a", 0.0), ("b", 0.0), ("c", 0.0)];
const PAGES: u64 = 200;
/// At 5 %, 10 pages are expected, and more than 16 in 2.5 % of all choices of seeds.
const WRONG_MAX: u64 = 16;

/// All lines of a seed have the path's time, each with noise of its own, and in the same way its loss.
fn pairs(seed: u64, paths: usize, incomplete: f64, time_of: fn(&mut Chance) -> f64) -> String {
    let mut chance = Chance(77_000 + seed);
    let mut text = String::new();
    for path in 0..paths {
        let time = time_of(&mut chance);
        for (arm, _) in SAME {
            let ttlb = (time * (0.1 * chance.normal()).exp() * 1000.0).round() / 1000.0;
            let is_complete = incomplete == 0.0 || chance.unit() >= incomplete;
            let lost = (5.0 * chance.unit() * chance.unit()) as u64;
            text += &line(
                &json!({ "arm": arm, "seed": path, "ttlb": is_complete.then_some(ttlb), "content_length": 300_000 + path, "site": SITES[path % 3],
                         "num-packets.sent": 250, "num-packets.lost": lost,
                         "neighbour.kind": (["cubic", "bbr", "cbr:2mbit"][path % 3]), "neighbour.rate": (time * 1e5 * (0.3 * chance.normal()).exp()).round(),
                         "neighbour.delay": time * chance.unit(), "neighbour.loss": 0.1 * (chance.unit() - 0.8).max(0.0),
                         "anatomy.application": 0, "anatomy.pacing": ttlb * 0.2, "anatomy.window": 0, "anatomy.idle": ttlb * chance.unit(),
                         "anatomy.queueing": 30.0 * chance.unit(), "anatomy.repair": lost, "anatomy.last-ack": time * 0.1 + chance.unit() }),
            );
        }
    }
    text
}

#[test]
fn no_list_of_a_page_claims_a_difference_of_equal_arms_in_more_than_5_percent_of_pages() {
    // With 2 % of connections that were never established, 3 % are incomplete.
    let apart = false_claims(PAGES, true, |seed| log(50_000 + seed, 800, &SAME, 0.01));
    let paired = false_claims(PAGES, true, |seed| pairs(seed, 200, 0.0, usual));
    let starved = false_claims(PAGES, false, |seed| pairs(seed, 200, 0.03, starving));
    for claims in [apart, paired, starved] {
        assert!(
            claims.values().all(|wrong| *wrong <= WRONG_MAX),
            "{claims:?} of {PAGES}"
        );
    }
}

fn usual(chance: &mut Chance) -> f64 {
    300.0 * (0.9 * chance.normal()).exp()
}

/// Of few of these paths, one is much of the mean: Pareto's distribution without a variance.
fn starving(chance: &mut Chance) -> f64 {
    100.0 * chance.unit().max(1e-9).powf(-1.0 / 1.2)
}

/// 299 paths differ by noise, and one takes twice as long in one arm.
#[test]
fn one_path_of_300_does_not_move_the_mean_and_the_page_warns() {
    let mut chance = Chance(3);
    let mut text = String::new();
    for path in 0..300 {
        let time = usual(&mut chance);
        for (arm, starved) in [("base", 300_000.0), ("arm", 600_000.0)] {
            let ttlb = match path {
                0 => starved,
                _ => (time * (1.0 + 0.04 * (chance.unit() - 0.5)) * 1000.0).round() / 1000.0,
            };
            text += &line(&json!({ "seed": path, "arm": arm, "ttlb": ttlb }));
        }
    }
    let settings = Settings {
        baseline: Some("base".to_owned()),
        ..quick()
    };
    let comparison = read(&text, settings).expect("a report");
    let json: Value = serde_json::from_str(&comparison.json()).expect("JSON");
    assert_eq!(json["significant"], json!([]));
    let sentence = json["beside"][0].as_str().expect("a sentence");
    assert!(
        sentence.starts_with(
            "arm: the mean TTLB of completed transfers does not differ significantly: +"
        ) && sentence.contains("(95 % simultaneous: unbounded)"),
        "{sentence}"
    );
    // The mean of the baseline is one path's, so the interval has no upper end.
    let arm = &json["groups"][0]["arms"][1];
    let mean = &arm["mean_change"];
    assert!(mean[0].as_f64() > Some(0.4) && mean[1][0].as_f64() < Some(0.0));
    assert_eq!(mean[1][1], Value::Null);
    assert!(arm["largest_five_share"].as_f64() > Some(0.7), "{arm}");
    let warnings = json["warnings"].as_array().expect("warnings");
    let warning = warnings.iter().find_map(|one| {
        one.as_str()
            .filter(|one| one.starts_with("The 5 largest values are much of the mean: "))
    });
    let warning = warning.expect("a warning");
    assert!(
        warning.contains("\u{a0}% of base and ") && warning.contains("\u{a0}% of arm."),
        "{warning}"
    );
    let page = comparison.html();
    assert!(page.contains("Share of the mean that the 5 largest values have: "));
    // Lognormal times of as many paths are no reason to warn.
    let text = pairs(5, 300, 0.0, usual);
    let comparison = read(&text, quick()).expect("a report");
    assert!(!comparison.html().contains("largest values are much of"));
}

#[test]
fn incomplete_transfers_leave_the_mean_of_percentiles_and_the_band() {
    // With the connections that were never established, 2 and 4 % are incomplete.
    for failing in [0.0, 0.02] {
        let (mut with_p95, mut bounded) = (0, 0);
        for seed in 0..30 {
            for overall in overall_without_gaps(&log(60_000 + seed, 2000, &SAME, failing)) {
                with_p95 += usize::from(overall.to > 0.92);
                let (low, high) = overall.estimate.interval;
                bounded += usize::from(low > -1.0 && high.is_finite());
            }
        }
        // Of 90 arms.
        match failing {
            0.0 => assert!(with_p95 > 60 && bounded == 90, "{with_p95} {bounded}"),
            _ => assert!(with_p95 < 60 && bounded > 80, "{with_p95} {bounded}"),
        }
    }
    for seed in 0..10 {
        overall_without_gaps(&pairs(seed, 500, 0.04, usual));
    }
}

/// The mean of the percentiles of each arm. Checks that it is there, and that the bands have no gaps.
fn overall_without_gaps(text: &str) -> Vec<Overall> {
    let comparison = read(text, quick()).expect("a report");
    let group = &comparison.analysis.groups[0];
    for curve in &group.curves[1..] {
        for (place, cell) in curve.iter().enumerate().take(95).skip(4) {
            let is_known = cell.estimate.is_some();
            let bands = [cell.alone, cell.together].map(|band| band.is_some());
            assert_eq!(bands, [is_known; 2], "P{}: {cell:?}", place + 1);
        }
    }
    let arms = group.overall[1..].iter();
    arms.map(|one| one.expect("a mean of the percentiles"))
        .collect()
}

/// Ends of intervals that are not there, on the page, in its charts and in JSON.
#[test]
fn an_interval_without_an_end_says_so_everywhere() {
    // One transfer in 50 of the arm is incomplete, in 45, and so on, until an interval has no end.
    let (comparison, place) = (20..=50)
        .rev()
        .step_by(5)
        .find_map(|one_in| {
            let lines = log(70_000, 2000, &SAME[..2], 0.0);
            let lines = lines.lines().map(|one| {
                let mut one: Value = serde_json::from_str(one).expect("JSON");
                let seed = one["seed"].as_u64().unwrap_or(0);
                if one["arm"] == "a" && seed.is_multiple_of(one_in) {
                    one["ttlb"] = Value::Null;
                }
                line(&one)
            });
            let comparison = read(&lines.collect::<String>(), quick()).expect("a report");
            let curve = &comparison.analysis.groups[0].curves[1];
            let is_open = |place: &usize| {
                let cell = &curve[*place];
                cell.alone.is_some_and(|(_, high)| high.is_infinite())
            };
            let place = (5..95).find(is_open)?;
            Some((comparison, place))
        })
        .expect("an interval without an end");
    let curve = &comparison.analysis.groups[0].curves[1];
    let (low, _) = curve[place].alone.expect("an interval");
    assert!(low.is_finite() && low > -1.0);
    let json: Value = serde_json::from_str(&comparison.json()).expect("JSON");
    let cell = &json["groups"][0]["arms"][1]["changes_estimate_alone_together"][place];
    assert!(
        cell[0].is_f64() && cell[1][0].is_f64() && cell[2][0].is_f64(),
        "{cell}"
    );
    assert!(cell[1][1].is_null() && cell[2][1].is_null(), "{cell}");
    let page = comparison.html();
    let written = crate::comparison::tables::change(&curve[place]);
    assert!(written.contains("<small>at least "), "{written}");
    // The band reaches the edge of the chart, which the lost end does not widen.
    let print = comparison.figures()[0].print("7in".parse().expect("a width"));
    let svg = print.expect("it fits on a page").svg();
    for text in [&page, &svg] {
        assert!(!text.contains("inf\u{a0}%") && !text.contains("inf,") && !text.contains("NaN"));
    }
    let group = &comparison.analysis.groups[0];
    let drawn = chart(&comparison.analysis, Subject::Group(group), Size::Wide);
    let (from, to) = drawn.plot.domain;
    assert!(from > -60.0 && to < 90.0, "{from} {to}");
    for (range, wanted) in [
        ((-0.1, 0.2), "−10.0 to\u{a0}+20.0\u{a0}%"),
        ((-0.1, f64::INFINITY), "at least −10.0\u{a0}%"),
        ((-1.0, f64::INFINITY), "unbounded"),
        ((-1.0, 0.2), "−100 to\u{a0}+20.0\u{a0}%"),
    ] {
        assert_eq!(crate::comparison::format::percent_range(range), wanted);
    }
}

/// The page states what there is: the lists are not silent.
#[test]
fn every_list_states_a_large_difference() {
    let text = log(3, 6000, &[("baseline", 0.0), ("fast", -0.3)], 0.0);
    let comparison = read(&text, quick()).expect("a report");
    let claims = text::claims(&comparison.analysis);
    assert!(
        claims
            .iter()
            .any(|claim| claim.list == "overall" && claim.is_less)
    );
    let mut worse = String::new();
    for line in text.lines() {
        // The arm loses packets, and does not complete.
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        if line["arm"] == "fast" {
            let sent = line["num-packets.sent"].as_u64().unwrap_or(0);
            line["num-packets.lost"] = json!(sent / 5);
            if line["seed"]
                .as_u64()
                .is_some_and(|seed| seed.is_multiple_of(9))
            {
                line["ttlb"] = Value::Null;
            }
        }
        worse.push_str(&line.to_string());
        worse.push('\n');
    }
    let comparison = read(&worse, quick()).expect("a report");
    let claims = text::claims(&comparison.analysis);
    let mut found: BTreeSet<(&str, &str, bool)> = BTreeSet::new();
    for claim in &claims {
        assert_eq!(claim.arm, "fast");
        let what = if claim.list == "beside" {
            claim.what.as_str()
        } else {
            ""
        };
        found.insert((claim.list, what, claim.is_less));
    }
    for wanted in [
        ("percentiles", "", true),
        ("beside", "mean", true),
        ("beside", "mean packet loss", false),
        ("beside", "completed transfers", true),
        ("subgroups", "", true),
        ("parts", "", true),
    ] {
        assert!(found.contains(&wanted), "{wanted:?}: {found:?}");
    }
    let json: Value = serde_json::from_str(&comparison.json()).expect("JSON");
    assert_eq!(
        json["significant"].as_array().map(Vec::len),
        Some(claims.len())
    );
}
