//! Whether connections are in balance over the arms, and estimates by site.

use std::fmt::Write as _;

use super::*;
use crate::comparison::balance::{self, ALARM, By, LOOK, Stratum};

/// A line of a production log.
fn production(chance: &mut Chance, arm: &str, site: &str, hour: u64, ttlb: f64) -> String {
    let time = 1_773_026_516_280 + hour * 3_600_000 + chance.below(1000) as u64;
    let bytes = 200_000 + chance.below(1_400_000);
    line(&json!({
        "time": time, "arm": arm, "experiment": "x", "site": site, "complete": true, "content_length": bytes, "ttlb": ttlb,
    }))
}

/// A log of two sites of 2000 connections, of which the arm has this share at each, and is 10 % faster.
fn two_sites(near: f64, far: f64) -> String {
    let mut chance = Chance(31);
    let mut text = String::new();
    for (site, share, median) in [("near", near, 100.0), ("far", far, 400.0)] {
        for _ in 0..2000 {
            let is_new = chance.unit() < share;
            let (arm, factor) = if is_new {
                ("new", 0.9)
            } else {
                ("baseline", 1.0)
            };
            let ttlb = (median * factor * (0.2 * chance.normal()).exp() * 1000.0).round() / 1000.0;
            let hour = chance.below(5) as u64;
            text += &production(&mut chance, arm, site, hour, ttlb);
        }
    }
    text
}

#[test]
fn arms_that_are_out_of_balance_by_site_have_no_verdict() {
    let comparison = read(&two_sites(0.25, 0.75), quick()).expect("a report");
    let analysis = &comparison.analysis;
    let of = |by| {
        analysis
            .balance
            .iter()
            .find(|test| test.by == by)
            .expect("a test")
    };
    assert!(of(By::Total).adjusted > LOOK, "{:?}", analysis.balance);
    assert!(of(By::Site).adjusted < ALARM && comparison.ratio_fails());
    let warnings = comparison.warnings();
    assert!(
        warnings[0].starts_with(
            "By site, the shares of the arms differ more than by chance (p <\u{a0}0.0001): at "
        ),
        "{warnings:?}"
    );
    assert!(
        comparison
            .html()
            .contains("in numbers by site that random assignment does not give")
    );
    // The pooled estimate compares the sites, the stratified one the arms.
    let one = analysis.stratified[1].expect("an estimate");
    assert!(one.pooled.interval.0 > 0.3 && one.disagree(), "{one:?}");
    let (low, high) = one.by_site.interval;
    assert!(low < -0.1 && high > -0.1 && high - low < 0.05, "{one:?}");
    assert!(
        warnings[1].starts_with("new: the pooled overall change, +"),
        "{warnings:?}"
    );
    // Nothing on the page says that an arm is faster or slower, or that a value moved.
    let json: Value = serde_json::from_str(&comparison.json()).expect("JSON");
    assert_eq!(json["significant"], json!([]));
    assert_eq!(json["sample_ratio"]["fails"], true);
    assert_eq!(json["stratified"][0]["disagree"], true);
    for list in ["verdicts", "beside", "subgroups"] {
        let sentences = json[list].as_array().expect("sentences");
        assert!(!sentences.is_empty(), "{list}");
        for sentence in sentences {
            let sentence = sentence.as_str().expect("a sentence");
            let claims = [" faster", " slower", " rose", " fell"];
            assert!(
                sentence.contains("no verdict, because the sample ratio fails")
                    && !claims.iter().any(|claim| sentence.contains(claim)),
                "{sentence}"
            );
        }
    }
    let html = comparison.html();
    for claim in ["big faster", "big slower"] {
        assert!(!html.contains(claim), "{claim}");
    }
    assert!(html.contains("<main class=\"fails\">"));
    assert!(!html.contains("each assigned at random"));
    assert!(html.contains(", no verdict: the sample ratio fails"));
    // What needs action is above the results, what is always there below.
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("<h2>Warnings</h2>") < at("<div class=\"cards\">"));
    assert!(at("<div class=\"cards\">") < at("<h2>Notes</h2>"));
}

#[test]
fn both_estimates_agree_in_balance() {
    let comparison = read(&two_sites(0.5, 0.5), quick()).expect("a report");
    assert!(
        comparison.warnings().is_empty(),
        "{:?}",
        comparison.warnings()
    );
    let one = comparison.analysis.stratified[1].expect("an estimate");
    for estimate in [one.pooled, one.by_site] {
        let (low, high) = estimate.interval;
        assert!(low < -0.1 && high > -0.1, "{one:?}");
    }
    // Sites differ more than arms, which widens only the pooled interval.
    let width = |(low, high): (f64, f64)| high - low;
    assert!(width(one.pooled.interval) > 2.0 * width(one.by_site.interval));
    assert!(comparison.sentences()[0].starts_with("new is faster"));
    assert!(!comparison.html().contains("class=\"fails\""));
}

/// The weights, variances and intervals as documented, by hand.
#[test]
fn the_stratified_estimate_is_the_weighted_mean_of_the_sites() {
    let counts = |values: &[u64], unfinished| {
        let values = values.iter().map(|value| Some(*value));
        Counts::of(values.chain(vec![None; unfinished]))
    };
    let sites = [
        vec![counts(&[100, 200], 1), counts(&[100, 100], 0)],
        vec![counts(&[400, 800, 800], 0), counts(&[200, 400], 2)],
        // One value only: left out.
        vec![counts(&[5, 6], 0), counts(&[7], 3)],
    ];
    let one = balance::stratified(&sites, 2, 1)[1].expect("an estimate");
    assert_eq!((one.sites, one.left_out), (2, [6, 0]));
    let ln2 = std::f64::consts::LN_2;
    // Within the sites: −½ ln 2 and −7/6 ln 2; variances ¼ and 1/9 + ¼ of (ln 2)²; weights 5/12 and 7/12.
    let mean = ln2 * (5.0 / 12.0 * -0.5 + 7.0 / 12.0 * (-7.0 / 6.0));
    let variance =
        ln2 * ln2 * ((5.0f64 / 12.0).powi(2) * 0.25 + (7.0f64 / 12.0).powi(2) * (1.0 / 9.0 + 0.25));
    assert!((one.by_site.value - mean.exp_m1()).abs() < 1e-12);
    let half = crate::statistics::Z_95 * variance.sqrt();
    assert!((one.by_site.interval.1 - (mean + half).exp_m1()).abs() < 1e-12);
    // A value of zero has no logarithm, and one site is no stratum.
    let zero = vec![counts(&[0, 1], 0), counts(&[1, 2], 0)];
    assert!(balance::stratified(&[sites[0].clone(), zero], 2, 1)[1].is_none());
    assert!(balance::stratified(&sites[..1], 2, 1)[1].is_none());
}

/// The interval contains the change within sites as often as it claims, although arms are out of balance.
#[test]
fn stratified_intervals_contain_the_true_change_in_95_percent_of_logs() {
    let mut inside = 0;
    for seed in 0..400 {
        let mut chance = Chance(61_000 + seed);
        let mut sites = Vec::new();
        for site in 0..5 {
            let mut values = vec![Vec::new(), Vec::new()];
            for _ in 0..40 + 30 * site {
                let arm = usize::from(chance.unit() < 0.15 * f64::from(site + 1));
                let factor = [1.0, 0.9][arm];
                let value = 1e5 * f64::from(site + 1) * factor * (0.5 * chance.normal()).exp();
                values[arm].push(Some(value.round() as u64));
            }
            sites.push(values.into_iter().map(Counts::of).collect::<Vec<_>>());
        }
        let (low, high) = balance::stratified(&sites, 2, 1)[1]
            .expect("an estimate")
            .by_site
            .interval;
        inside += u64::from((low..high).contains(&-0.1));
    }
    // 380 expected; 366 or fewer in 0.1 % of all choices of seeds.
    assert!(inside > 366, "{inside} of 400");
}

/// A log of sites, sizes and hours of uneven shares, whose connections are assigned at random.
fn random_divisions(
    chance: &mut Chance,
    lines: usize,
    shares: &[f64],
) -> (Vec<u64>, Vec<(By, Vec<Stratum>)>) {
    let stratum = |name: &str, number: usize| -> Vec<Stratum> {
        let strata = (0..number).map(|at| Stratum {
            title: format!("{name} {at}"),
            counts: vec![0; shares.len()],
        });
        strata.collect()
    };
    let mut divisions = vec![
        (By::Site, stratum("site", 7)),
        (By::Size, stratum("size", 5)),
        (By::Hour, stratum("hour", 24)),
    ];
    let whole: f64 = shares.iter().sum();
    let mut counts = vec![0; shares.len()];
    for _ in 0..lines {
        let mut at = chance.unit() * whole;
        let arm = shares.iter().position(|share| {
            at -= share;
            at < 0.0
        });
        let arm = arm.unwrap_or(0);
        counts[arm] += 1;
        for (_, strata) in &mut divisions {
            // Some are rare.
            let place = (chance.unit().powi(2) * strata.len() as f64) as usize;
            strata[place].counts[arm] += 1;
        }
    }
    (counts, divisions)
}

/// At random assignment, fewer than 0.1 % of pages show an alarm.
#[test]
fn random_assignment_shows_an_alarm_on_fewer_than_a_thousandth_of_pages() {
    const PAGES: u64 = 3000;
    let (mut alarms, mut looks) = (0, 0);
    for seed in 0..PAGES {
        let mut chance = Chance(81_000 + seed);
        let shares: &[f64] = match seed % 3 {
            0 => &[1.0, 1.0],
            1 => &[1.0, 1.0, 1.0, 1.0],
            _ => &[9.0, 1.0],
        };
        let (counts, divisions) = random_divisions(&mut chance, 500, shares);
        let tests = balance::tests(&counts, shares, divisions, 1);
        assert_eq!(tests.len(), 4, "seed {seed}");
        alarms += u64::from(tests.iter().any(|test| test.adjusted < ALARM));
        looks += u64::from(tests.iter().any(|test| test.adjusted < LOOK));
    }
    // 3 and 30 are expected at most; more than these in 1 % of all choices of seeds.
    assert!(
        alarms <= 8 && looks <= 44,
        "{alarms} and {looks} of {PAGES}"
    );
}

#[test]
fn a_site_without_balance_is_found_among_balanced_ones() {
    let mut chance = Chance(9);
    let (mut counts, mut divisions) = random_divisions(&mut chance, 20_000, &[1.0, 1.0]);
    let clean = balance::tests(&counts, &[1.0, 1.0], divisions.clone(), 1);
    assert!(clean.iter().all(|test| test.adjusted > LOOK), "{clean:?}");
    // A twentieth of an arm's connections moves to the other arm at one site, and back at another.
    for (site, from, to) in [(2, 0, 1), (4, 1, 0)] {
        let counts_of = &mut divisions[0].1[site].counts;
        let moved = counts_of[from] / 5;
        counts_of[from] -= moved;
        counts_of[to] += moved;
        counts[from] -= moved;
        counts[to] += moved;
    }
    let tests = balance::tests(&counts, &[1.0, 1.0], divisions, 1);
    for test in &tests {
        assert_eq!(test.adjusted < ALARM, test.by == By::Site, "{test:?}");
    }
    let site = &tests[1].farthest;
    assert!(
        ["site 2", "site 4"].contains(&site.stratum.as_str()),
        "{site:?}"
    );
}

#[test]
fn strata_with_few_connections_are_merged() {
    let stratum = |title: &str, counts: [u64; 2]| Stratum {
        title: title.to_owned(),
        counts: counts.to_vec(),
    };
    let hours = vec![
        stratum("1", [3, 2]),
        stratum("2", [3, 4]),
        stratum("3", [40, 41]),
        stratum("4", [1, 0]),
    ];
    let tests = balance::tests(&[47, 47], &[1.0, 1.0], vec![(By::Hour, hours)], 1);
    let hours = &tests[1];
    assert_eq!((hours.strata, hours.degrees), (2, 1));
    assert!(["1 to 2", "3 to 4"].contains(&hours.farthest.stratum.as_str()));
    // All in one stratum: nothing to compare.
    let few = vec![stratum("1", [3, 2]), stratum("2", [3, 4])];
    assert_eq!(
        balance::tests(&[6, 6], &[1.0, 1.0], vec![(By::Hour, few)], 1).len(),
        1
    );
}

#[test]
fn an_arm_that_fails_for_an_hour_is_found_by_hour() {
    let mut chance = Chance(5);
    let mut text = String::new();
    for number in 0..6000 {
        let (hour, arm) = (number / 1000, ["baseline", "new"][chance.below(2)]);
        // In the third hour, a third of the new arm is lost, and no line of the others.
        if hour == 2 && arm == "new" && chance.unit() < 0.33 {
            continue;
        }
        let ttlb = 100.0 + chance.unit();
        text += &production(&mut chance, arm, "here", hour, ttlb);
    }
    let comparison = read(&text, quick()).expect("a report");
    let warnings = comparison.warnings();
    assert!(
        warnings
            .iter()
            .any(|text| text.starts_with("By hour")
                && text.contains("at 2026-03-09 05:00 UTC, new has")),
        "{warnings:?}"
    );
}

/// Groups of an expression may be outcomes, and times of simulations are.
#[test]
fn groups_that_arms_can_change_are_not_tested() {
    let by_outcome = Settings {
        by: Some("_[\"ttlb\"] < 150 ? \"fast\" : \"slow\"".to_owned()),
        ..quick()
    };
    let text = two_sites(0.5, 0.5);
    let analysis = read(&text, by_outcome).expect("a report").analysis;
    let tested: Vec<By> = analysis.balance.iter().map(|test| test.by).collect();
    assert_eq!(tested, [By::Total, By::Size, By::Hour]);
    assert!(analysis.stratified.iter().all(Option::is_none));
    let simulated = text.replace("\"time\"", "\"seed\":7,\"time\"");
    let analysis = read(&simulated, quick()).expect("a report").analysis;
    let tested: Vec<By> = analysis.balance.iter().map(|test| test.by).collect();
    assert_eq!(tested, [By::Total, By::Site, By::Size]);
}

#[test]
fn paths_that_lack_an_arm_are_a_warning() {
    let mut text = String::new();
    for path in 0..400 {
        for arm in ["baseline", "new"] {
            // The log ends within a path.
            if path != 399 || arm == "baseline" {
                let _ = writeln!(
                    text,
                    "{}",
                    json!({ "arm": arm, "seed": path, "ttlb": 100 + path % 90, "content_length": 300_000 })
                );
            }
        }
    }
    let whole = read(&text, quick()).expect("a report");
    assert!(whole.analysis.is_paired && whole.warnings().is_empty());
    assert_eq!(whole.analysis.stratified.len(), 2);
    let without: String = text
        .lines()
        .filter(|line| !(line.contains("new") && line.contains("\"ttlb\":115")))
        .map(line_of)
        .collect();
    let comparison = read(&without, quick()).expect("a report");
    assert!(comparison.analysis.is_paired);
    let warnings = comparison.warnings();
    assert!(
        warnings[0].starts_with("6 of 400 paths lack an arm."),
        "{warnings:?}"
    );
    assert!(!comparison.html().contains("cannot be out of balance"));
}

/// Each level of significance has its share of the error.
#[test]
fn intervals_and_p_are_corrected_for_planned_looks() {
    let text = log(3, 3000, &ARMS, 0.0);
    let planned = |looks| {
        let settings = Settings { looks, ..quick() };
        read(&text, settings).expect("a report")
    };
    let (one, five) = (planned(1), planned(5));
    assert_eq!(
        one.looks(),
        "Intervals hold for one look, at a number of connections that was chosen before."
    );
    assert!(
        five.looks()
            .contains("corrected for 5 planned looks (Bonferroni)")
    );
    assert!(five.html().contains(&five.looks()) && one.html().contains(&one.looks()));
    let (one, five) = (&one.analysis, &five.analysis);
    let width = |(low, high): (f64, f64)| high - low;
    let widths = |analysis: &Analysis| {
        let group = &analysis.groups[0];
        [
            width(group.curves[1][49].together.expect("a band")),
            width(group.overall[1].expect("a mean").estimate.interval),
            width(group.means_together[1].expect("a mean").interval),
            width(analysis.loss[0].together[1].expect("a loss").interval),
            width(
                analysis.parts.as_ref().expect("parts").differences[1][3]
                    .expect("a part")
                    .interval,
            ),
            width(
                analysis.stratified[1]
                    .expect("an estimate")
                    .by_site
                    .interval,
            ),
        ]
    };
    for (narrow, wide) in widths(one).into_iter().zip(widths(five)) {
        assert!(wide > 1.05 * narrow, "{narrow} {wide}");
    }
    for (one, five) in one.groups[1..].iter().zip(&five.groups[1..]) {
        let (one, five) = (one.adjusted[1].expect("p"), five.adjusted[1].expect("p"));
        assert!((five - (5.0 * one).min(1.0)).abs() < 1e-12);
    }
    for (one, five) in one.balance.iter().zip(&five.balance) {
        assert!((five.adjusted - (5.0 * one.adjusted).min(1.0)).abs() < 1e-12);
    }
}

/// Lines of four equal arms over the same paths; those of `d` that this selects are not in the log.
fn paths_without(is_lost: impl Fn(f64) -> bool) -> String {
    let mut chance = Chance(77);
    let mut text = String::new();
    for seed in 0..600 {
        let path = (0.8 * chance.normal()).exp();
        for arm in ["a", "b", "c", "d"] {
            let ttlb = (200.0 * path * (0.05 * chance.normal()).exp()).round();
            if arm != "d" || !is_lost(ttlb) {
                text += &line(
                    &json!({ "arm": arm, "seed": seed, "ttlb": ttlb, "content_length": 300_000 }),
                );
            }
        }
    }
    text
}

#[test]
fn an_arm_that_is_missing_on_many_paths_has_no_verdict() {
    let comparison = read(&paths_without(|ttlb| ttlb > 200.0), quick()).expect("a report");
    assert!(comparison.analysis.is_paired && comparison.ratio_fails());
    let warnings = comparison.warnings();
    assert!(
        warnings[0].starts_with("The arms are not missing equally often on paths that lack one"),
        "{warnings:?}"
    );
    assert!(warnings[0].contains("d is missing on "), "{warnings:?}");
    for sentence in comparison.sentences() {
        assert!(sentence.contains("no verdict"), "{sentence}");
    }
    assert!(!comparison.html().contains("each in every arm"));

    // Fewer pairs than that are not compared as pairs, which is said.
    let text = paths_without(|_| false);
    let mut number = 0;
    let few: String = text
        .lines()
        .filter(|line| {
            number += 1;
            line.contains("\"arm\":\"a\"") || number % 8 != 0
        })
        .filter(|line| !line.contains("\"arm\":\"b\"") && !line.contains("\"arm\":\"c\""))
        .fold(String::new(), |text, line| text + line + "\n");
    let few = read(&few, quick()).expect("a report");
    assert!(!few.analysis.is_paired);
    let said = "Connections with the same seed are in several arms, but they are not compared as pairs, because 300 of 600 seeds, more than 5";
    let warnings = few.warnings();
    assert!(
        warnings.iter().any(|one| one.starts_with(said)),
        "{warnings:?}"
    );

    let whole = read(&text, quick()).expect("a report");
    assert!(!whole.ratio_fails() && whole.analysis.balance.is_empty());
    assert!(whole.html().contains("600 paths, each in every arm"));
}

#[test]
fn percentiles_without_a_change_have_no_verdict() {
    let mut text = String::new();
    for number in 0..600 {
        let ttlb = 100 + number % 97;
        text += &line(&json!({ "arm": "a", "ttlb": ttlb, "content_length": 300_000 }));
        text += &line(&json!({ "arm": "b", "ttlb": null, "content_length": 300_000 }));
        let half = (number % 5 > 1).then_some(2 * ttlb);
        text += &line(&json!({ "arm": "c", "ttlb": half, "content_length": 300_000 }));
    }
    let comparison = read(&text, quick()).expect("a report");
    let sentences = comparison.sentences();
    assert_eq!(
        sentences[0],
        "b: no verdict, because no percentile from P5 to P95 has a change from a: 600 of 600 connections of b are incomplete."
    );
    let c = &sentences[1];
    assert!(c.starts_with("c is slower than a at P5–P"), "{c}");
    assert!(
        c.ends_with(
            " of the 91 percentiles have no change: 240 of 600 connections of c are incomplete."
        ),
        "{c}"
    );
}

#[test]
fn a_site_where_an_arm_completes_nothing_is_in_neither_estimate() {
    let mut chance = Chance(5);
    let mut text = String::new();
    for site in ["near", "middle", "far"] {
        for number in 0..900 {
            let arm = ["a", "b"][number % 2];
            let median = if site == "far" { 2000.0 } else { 100.0 };
            let ttlb = median * (0.2 * chance.normal()).exp();
            let ttlb = (site != "far" || arm == "a").then_some(ttlb);
            text += &line(
                &json!({ "arm": arm, "site": site, "ttlb": ttlb, "content_length": 300_000 }),
            );
        }
    }
    let comparison = read(&text, quick()).expect("a report");
    let one = comparison.analysis.stratified[1].expect("an estimate");
    assert_eq!((one.sites, one.left_out), (2, [900, 0]));
    assert!(!one.disagree(), "{one:?}");
}

#[test]
fn a_log_that_is_paired_in_part_says_why_it_is_not_compared_as_pairs() {
    let pair = |seed: u64, group: [&str; 2], has_both: bool| {
        let arms = ["a", "b"].into_iter().zip(group);
        let lines = arms.take(if has_both { 2 } else { 1 }).map(|(arm, group)| {
            line(&json!({ "arm": arm, "seed": seed, "ttlb": 100 + seed % 90, "group": group, "content_length": 300_000 }))
        });
        lines.collect::<String>()
    };
    let said = |text: &str| {
        let settings = Settings {
            by: Some("group".to_owned()),
            ..quick()
        };
        let comparison = read(text, settings).expect("a report");
        assert!(!comparison.analysis.is_paired);
        let warnings = comparison.warnings();
        let all = warnings.iter().filter(|one| one.contains("same seed"));
        all.cloned().collect::<String>()
    };
    let of = |has_both: fn(u64) -> bool| {
        let seeds = 0..400;
        seeds
            .map(|seed| pair(seed, ["x", "x"], has_both(seed)))
            .collect::<String>()
    };
    for (has_both, alone) in [
        (of(|seed| seed % 10 > 0), 40),
        (of(|seed| seed % 10 == 0), 360),
    ] {
        let said = said(&has_both);
        let wanted =
            format!("because {alone} of 400 seeds, more than 5\u{a0}%, are in one arm only");
        assert!(said.contains(&wanted), "{said}");
    }
    let whole = of(|_| true);
    let other_group = said(&(whole.clone() + &pair(400, ["x", "y"], true)));
    assert!(
        other_group.contains("because those with the seed 400 are in different groups, x and y"),
        "{other_group}"
    );
    let twice =
        said(&(whole.clone() + &pair(400, ["x", "x"], true) + &pair(400, ["x", "x"], true)));
    assert!(
        twice.contains("because a has several lines with the seed 400"),
        "{twice}"
    );
    let without = said(&(whole + &pair(400, ["x", "x"], true).replace("\"seed\":400,", "")));
    assert!(
        without.contains("because some lines have no seed"),
        "{without}"
    );
    // Seeds that no two arms share are those of connections.
    let alone = (0..400).map(|seed| {
        let arm = format!("\"{}\"", ["a", "b"][seed as usize % 2]);
        pair(seed, ["x", "x"], false).replace("\"a\"", &arm)
    });
    assert_eq!(said(&alone.collect::<String>()), "");
}

/// Transfers that never started have no size. That an arm has more of them is no imbalance of sizes.
#[test]
fn connections_without_a_size_are_in_no_stratum_of_sizes() {
    let mut chance = Chance(91);
    let mut text = String::new();
    for number in 0..2000 {
        let arm = ["baseline", "new"][number % 2];
        let starts = arm == "baseline" || chance.unit() > 0.06;
        let size = 200_000 + chance.below(1_400_000);
        let ttlb = (100.0 * (0.2 * chance.normal()).exp()).round();
        let starts = |value: Value| if starts { value } else { Value::Null };
        text += &line(
            &json!({ "arm": arm, "experiment": "x", "ttlb": starts(json!(ttlb)), "content_length": starts(json!(size)) }),
        );
    }
    let settings = Settings {
        min_size: Some(0),
        ..quick()
    };
    let comparison = read(&text, settings).expect("a report");
    let tests = &comparison.analysis.balance;
    let of_sizes = tests.iter().find(|one| one.by == By::Size);
    let of_sizes = of_sizes.expect("a test of sizes");
    assert!(
        of_sizes.adjusted > LOOK && !comparison.ratio_fails(),
        "{of_sizes:?}"
    );
    let lost = comparison.analysis.groups[0].times[1].unfinished();
    assert_eq!(of_sizes.left_out, lost);
    let said = format!(
        "{lost} connections have no object size and are left out of the test of the arms’ shares by it."
    );
    assert!(
        comparison.notes().contains(&said),
        "{:?}",
        comparison.notes()
    );
    assert!(comparison.html().contains(&format!(
        "object size ({lost} connections without one left out)"
    )));
}

#[test]
fn sites_that_are_counted_together_are_said() {
    let text = |sites: usize| -> String {
        let lines = 0..1000;
        let lines = lines.map(|number| {
            let (site, arm) = (format!("site {}", number / 2 % sites), ["a", "b"][number % 2]);
            line(&json!({ "arm": arm, "site": site, "ttlb": 100 + number % 7, "content_length": 300_000 }))
        });
        lines.collect()
    };
    let said = "The log has more than 64 sites; the 360 connections of those that came after are counted together, as (other sites).";
    let comparison = read(&text(100), quick()).expect("a report");
    assert!(
        comparison.notes().iter().any(|note| note == said),
        "{:?}",
        comparison.notes()
    );
    let comparison = read(&text(64), quick()).expect("a report");
    assert!(
        !comparison
            .notes()
            .iter()
            .any(|note| note.contains("more than 64"))
    );
    let by = Settings {
        by: Some("site".to_owned()),
        ..quick()
    };
    let comparison = read(&text(100), by).expect("a report");
    assert!(
        comparison
            .notes()
            .iter()
            .any(|note| note.contains("more than 64 values of `site`"))
    );
}

#[test]
fn arms_that_were_not_assigned_at_random_have_a_warning_and_no_test() {
    let shares = None;
    let uneven = log(5, 4000, &[("baseline", 0.0)], 0.0) + &log(6, 400, &[("new", 0.0)], 0.0);
    let observed = read(&uneven, Settings { shares, ..quick() }).expect("a report");
    assert_eq!(
        warnings::warnings(&observed.analysis)[0],
        warnings::UNASSIGNED
    );
    assert!(!observed.ratio_fails() && observed.json().contains("\"sample_ratio\": null"));
    assert!(observed.html().contains("which was not assigned at random"));
}
