//! Pages of logs in which all arms are the same: what they claim is false.

use std::collections::BTreeMap;

use super::*;
use crate::statistics::tests_of::Estimate;

/// The number of pages on which each list states a significant difference, or an interval that does not contain the true share.
fn false_claims(pages: u64, text: impl Fn(u64) -> String) -> BTreeMap<&'static str, u64> {
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
            && (misses(&paths.slower, SLOWER) || misses(&paths.faster, FASTER))
        {
            lists.insert("shares of paths");
        }
        let mut kinds = analysis.neighbours.iter().flatten();
        if kinds.any(|kind| misses(&kind.less, LESS)) {
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
fn pairs(seed: u64) -> String {
    let mut chance = Chance(77_000 + seed);
    let mut text = String::new();
    for path in 0..200 {
        let time = 300.0 * (0.9 * chance.normal()).exp();
        for (arm, _) in SAME {
            let ttlb = (time * (0.1 * chance.normal()).exp() * 1000.0).round() / 1000.0;
            let lost = (5.0 * chance.unit() * chance.unit()) as u64;
            text += &line(
                &json!({ "arm": arm, "seed": path, "ttlb": ttlb, "content_length": 300_000 + path, "site": SITES[path % 3],
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
    let apart = false_claims(PAGES, |seed| log(50_000 + seed, 800, &SAME, 0.01));
    let paired = false_claims(PAGES, pairs);
    for claims in [apart, paired] {
        assert!(
            claims.values().all(|wrong| *wrong <= WRONG_MAX),
            "{claims:?} of {PAGES}"
        );
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
