//! Reports of small logs: their contents, and that the queries of a page give its numbers.

use std::collections::BTreeSet;

use lastbyte_query::{Format, Input, Options, Query};
use lastbyte_record::connection_log::schema::{json_schema, json_schema_tcp};
use serde_json::{Value, json};

use super::{
    Comparison, Error, Settings,
    analysis::Analysis,
    queries::{self, Dialect, Subgroup},
    text, warnings,
};
use crate::statistics::Counts;

mod balance;
mod charts;
mod copies;
mod expressions;
mod metric;
mod neighbours;
mod notable;
mod null;
mod parts;
mod paths;
mod power;
mod rules;
mod states;
mod sweep;

/// A line that H2O wrote, from the talk on Rapid Start.
const H2O: &str = include_str!("../../../record/src/connection_log/sample-line.json");

/// Pseudo-random numbers from a seed.
struct Chance(u64);

impl Chance {
    fn unit(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 32)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.unit() * limit as f64) as usize
    }

    /// Nearly normal: twelve uniform variates.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

const SITES: [&str; 3] = ["africa", "east \"#{1}\" asia", "europe"];

/// A log of ours. Arms are assigned at random, with the change of TTLB given for each; a share of transfers never completes.
fn log(seed: u64, lines: usize, arms: &[(&str, f64)], failing: f64) -> String {
    let mut chance = Chance(seed);
    let mut text = String::new();
    for number in 0..lines {
        let (arm, gain) = arms[chance.below(arms.len())];
        let size = (200_000.0 * (3.2 * chance.unit()).exp()) as u64;
        let ttlb =
            (300.0 * (0.7 * chance.normal()).exp() * (1.0 + gain) * (size as f64 / 5e5).sqrt())
                .round()
                .max(1.0);
        let ends = chance.unit() >= failing;
        let sent = size / 1250;
        let mut line = json!({
            "conn_id": number, "content_length": size, "ttlb": ends.then_some(ttlb as u64), "complete": ends,
            "num-packets.sent": sent, "num-packets.lost": (sent as f64 * chance.unit() * 0.05) as u64,
            "cc.num-loss-episodes": chance.below(3), "cc.cwnd-exiting-slow-start": chance.below(2) * 123_456, "num-ptos": chance.below(2),
            "experiment": "test", "arm": arm, "site": SITES[chance.below(3)], "seed": number,
            "anatomy.application": 1.0 + chance.unit(), "anatomy.flow-control": 0.0, "anatomy.pacing": 20.0 * chance.unit(), "anatomy.window": 30.0 * chance.unit(),
            "anatomy.idle": 90.0 * chance.unit() * (1.0 + gain), "anatomy.queueing": 40.0 * chance.unit(),
            "anatomy.repair": 60.0 * (chance.unit() - 0.8).max(0.0), "anatomy.last-ack": 40.0 + chance.unit(),
            "client.handshake": 40.0 + 20.0 * chance.unit(), "client.ttfb": 90.0 + 20.0 * chance.unit(),
        });
        if chance.unit() < 0.02 {
            // The connection was never established at the server.
            line = json!({ "content_length": size, "ttlb": null, "complete": false, "experiment": "test", "arm": arm, "site": "europe", "seed": number });
        }
        text.push_str(&line.to_string());
        text.push('\n');
    }
    text
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}

fn quick() -> Settings {
    Settings {
        replicates: 200,
        ..Settings::default()
    }
}

fn read(text: &str, settings: Settings) -> Result<Comparison, Error> {
    Comparison::read(
        vec![Input::from_bytes("log", text.as_bytes().to_vec())],
        settings,
    )
}

fn ask(query: &str, text: &str) -> Value {
    let options = Options {
        format: Format::Json,
        ..Options::default()
    };
    let query =
        Query::compile(query, &[], options).unwrap_or_else(|error| panic!("{query}: {error}"));
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let input = Input::from_bytes("log", text.as_bytes().to_vec());
    assert!(
        query.run(vec![input], &mut out, &mut errors),
        "{query:?}: {}",
        String::from_utf8_lossy(&errors)
    );
    serde_json::from_slice(&out).unwrap_or(Value::Null)
}

/// Checks that the query engine's answer to each query is what the page shows. Returns the number of tables other than TTLB's.
fn check_queries(analysis: &Analysis, text: &str) -> usize {
    for group in &analysis.groups {
        let (curves, times) = (ask(&group.curve_query, text), ask(&group.times_query, text));
        for (arm, one) in analysis.arms.iter().enumerate() {
            let shown = |share: f64| {
                group.times[arm]
                    .percentile(share)
                    .map_or(1e12, |micros| micros as f64 / 1000.0)
            };
            let answer = &times[&one.name];
            if answer.is_null() {
                assert_eq!(group.times[arm].total(), 0, "{} {}", group.title, one.name);
                continue;
            }
            for (place, share) in [0.25, 0.5, 0.75, 0.9, 0.95, 0.99].into_iter().enumerate() {
                assert_eq!(
                    answer[1][place].as_f64(),
                    Some(shown(share)),
                    "{} {} {share}",
                    group.title,
                    one.name
                );
            }
            let mean = group.times[arm].mean().map(|micros| micros / 1000.0);
            let asked = answer[0].as_f64();
            assert!(
                mean.zip(asked)
                    .is_none_or(|(mean, asked)| (mean - asked).abs() < 1e-6 * asked),
                "{mean:?} {asked:?}"
            );
            assert_eq!(mean.is_some(), asked.is_some());
            let Some(curve) = curves[&one.name].as_array().filter(|_| arm > 0) else {
                continue;
            };
            for (place, (cell, asked)) in group.curves[arm].iter().zip(curve).enumerate() {
                let Some(estimate) = cell.estimate else {
                    // In one of the two, this percentile falls on a transfer that never completed.
                    let base = group.times[0].percentile((place + 1) as f64 / 100.0);
                    assert!(base.is_none() || asked.as_f64() > Some(1e6), "{asked}");
                    continue;
                };
                let asked = asked.as_f64().expect("a change");
                assert!(
                    (estimate * 100.0 - asked).abs() < 0.0051,
                    "{} {} P{}: {estimate} {asked}",
                    group.title,
                    one.name,
                    place + 1
                );
            }
        }
    }
    paths::check_queries(analysis, text);
    parts::check_query(analysis, text);
    let counts = ask(&analysis.counts_query, text);
    for (arm, one) in analysis.arms.iter().enumerate() {
        let times = &analysis.groups[0].times[arm];
        assert_eq!(counts[&one.name], json!([times.total(), times.finished()]));
    }
    let losses = analysis
        .loss
        .iter()
        .map(|group| (&group.query, &group.loss, 100.0));
    let measures = analysis
        .measures
        .iter()
        .map(|table| (&table.query, &table.values, 1.0));
    let mut tables = 0;
    for (query, values, scale) in losses.chain(measures) {
        let answers = ask(query, text);
        tables += 1;
        for (arm, one) in analysis.arms.iter().enumerate() {
            let (answer, counts): (&Value, &Counts) = (&answers[&one.name], &values[arm]);
            let same = |ours: Option<f64>, asked: &Value| match (ours, asked.as_f64()) {
                (Some(ours), Some(asked)) => (ours / scale - asked).abs() < 1e-6,
                (None, None) => true,
                _ => false,
            };
            assert!(
                same(counts.mean(), &answer[0]),
                "{query}: {:?} {answer}",
                counts.mean()
            );
            for (place, share) in [0.5, 0.9, 0.99].into_iter().enumerate() {
                let ours = counts.percentile(share).map(|value| value as f64);
                assert!(same(ours, &answer[1][place]), "{query}: {ours:?} {answer}");
            }
        }
    }
    tables
}

/// The keys that a query reads from lines: `_["key"]` and `r["key"]`.
fn keys_of(query: &str) -> Vec<&str> {
    let mut keys = Vec::new();
    for start in ["_[\"", "r[\""] {
        for part in query.split(start).skip(1) {
            keys.push(part.split('"').next().expect("a key"));
        }
    }
    keys
}

#[test]
fn every_key_of_every_query_is_in_a_schema() {
    let known = [json_schema(), json_schema_tcp()].map(|schema| {
        let schema: Value = serde_json::from_str(&schema).expect("JSON");
        schema["properties"].as_object().expect("an object").clone()
    });
    let h2o = h2o(&[("jumpstart.cwnd", 88_320)]) + H2O;
    let mut found = BTreeSet::new();
    for (text, arm) in [
        (log(1, 300, &ARMS, 0.01), None),
        (log(1, 300, &ARMS, 0.01), Some("_[\"arm\"]")),
        (h2o, None),
    ] {
        let settings = Settings {
            arm: arm.map(str::to_owned),
            ..quick()
        };
        let mut queries = vec![queries::reading(&settings)];
        let analysis = read(&text, settings).expect("a report").analysis;
        queries.push(analysis.counts_query);
        for group in analysis.groups {
            queries.extend([group.curve_query, group.times_query]);
        }
        queries.extend(analysis.loss.into_iter().map(|group| group.query));
        queries.extend(analysis.parts.into_iter().map(|parts| parts.query));
        queries.extend(analysis.measures.into_iter().map(|table| table.query));
        for query in &queries {
            for key in keys_of(query) {
                // The queries compare arms by name after grouping.
                let is_arm = analysis.arms.iter().any(|arm| arm.name == key);
                assert!(
                    is_arm || known.iter().any(|keys| keys.contains_key(key)),
                    "`{key}` of {query}"
                );
                found.insert(key.to_owned());
            }
        }
    }
    assert!(found.contains("ttlb") && found.len() > 20, "{found:?}");
}

const ARMS: [(&str, f64); 3] = [("baseline", 0.0), ("fast", -0.2), ("same", 0.0)];

#[test]
fn every_number_equals_the_result_of_its_query() {
    let text = log(1, 3000, &ARMS, 0.01);
    let comparison = read(&text, quick()).expect("a report");
    assert_eq!(comparison.analysis.groups.len(), 1 + 4 + 3);
    assert_eq!(comparison.analysis.dialect, Dialect::Named);
    assert_eq!(check_queries(&comparison.analysis, &text), 4 + 5);
}

#[test]
fn every_number_of_a_filtered_log_equals_the_result_of_its_query() {
    let text = log(2, 2000, &ARMS, 0.01);
    let settings = Settings {
        filter: Some(r#"_["num-ptos"] == 0"#.to_owned()),
        arm: Some(r#"_["arm"] == "fast" ? "new" : "old""#.to_owned()),
        site: Some(r#"_["site"] == "africa" ? "here" : "there""#.to_owned()),
        baseline: Some("old".to_owned()),
        threads: 2,
        ..quick()
    };
    let comparison = read(&text, settings).expect("a report");
    let names: Vec<&str> = comparison
        .analysis
        .arms
        .iter()
        .map(|arm| arm.name.as_str())
        .collect();
    assert_eq!(names, ["old", "new"]);
    assert_eq!(check_queries(&comparison.analysis, &text), 3 + 5);
}

/// `serve --log` writes lines of both transports to one file.
#[test]
fn connections_over_tcp_have_no_arm_unless_an_expression_gives_them_one() {
    let quic = log(5, 1000, &ARMS, 0.01);
    let tcp = line(&json!({
        "type": "connection", "content_length": 300_000, "ttlb": 1, "complete": true, "transport": "tcp", "proto": "HTTP/2",
    }));
    let mixed: String = quic
        .lines()
        .flat_map(|one| [line_of(one), tcp.clone()])
        .collect();
    let counts = |text: &str, arm: Option<&str>| {
        let settings = Settings {
            arm: arm.map(str::to_owned),
            baseline: arm.map(|_| "old".to_owned()),
            ..quick()
        };
        let analysis = read(text, settings).expect("a report").analysis;
        check_queries(&analysis, text);
        let arms = analysis.arms.iter().zip(&analysis.groups[0].times);
        let arms = arms.map(|(arm, times)| (arm.name.clone(), times.total()));
        (arms.collect::<Vec<_>>(), analysis.without_arm)
    };
    let (named, without_arm) = counts(&quic, None);
    assert_eq!(without_arm, 0);
    assert_eq!(counts(&mixed, None), (named, 1000));
    let by_name = r#"_["arm"] == "fast" ? "new" : "old""#;
    assert_eq!(counts(&mixed, Some(by_name)), counts(&quic, Some(by_name)));
    let by_transport = r#"_["transport"] == "tcp" ? "new" : "old""#;
    let (arms, _) = counts(&mixed, Some(by_transport));
    assert_eq!(arms, [("old".to_owned(), 1000), ("new".to_owned(), 1000)]);
}

fn line_of(text: &str) -> String {
    format!("{text}\n")
}

/// H2O's line with other values.
fn h2o(changes: &[(&str, u64)]) -> String {
    let mut line: serde_json::Map<String, Value> = serde_json::from_str(H2O).expect("an object");
    for (key, value) in changes {
        assert!(
            line.insert((*key).to_owned(), json!(value)).is_some(),
            "{key} is one of H2O's keys"
        );
    }
    serde_json::to_string(&line).expect("JSON") + "\n"
}

#[test]
fn h2o_lines_have_the_arm_of_their_flags() {
    let mut text = H2O.trim().to_owned() + "\n";
    text += &h2o(&[("jumpstart.cwnd", 88_320), ("ttlb", 300)]);
    text += &h2o(&[("num-rapid-start", 1), ("ttlb", 290)]);
    text += &h2o(&[
        ("num-rapid-start", 1),
        ("jumpstart.cwnd", 88_320),
        ("ttlb", 280),
        ("num-packets.lost", 2),
    ]);
    // These are outside the experiment.
    text += &h2o(&[("num-jumpstart-applicable", 0)]);
    text += &h2o(&[("num-paced", 0)]);
    text += &h2o(&[("jumpstart.prev-rate", 1000)]);
    text += &h2o(&[("content_length", 199_999)]);
    let comparison = read(&text, quick()).expect("a report");
    let analysis = &comparison.analysis;
    assert_eq!(analysis.dialect, Dialect::H2o);
    assert_eq!(analysis.left_out.lines(), (8, 4));
    let found: Vec<(&str, Option<u64>)> = analysis
        .arms
        .iter()
        .zip(&analysis.groups[0].times)
        .map(|(arm, times)| (arm.name.as_str(), times.percentile(0.5)))
        .collect();
    let wanted = [
        ("slow-start", Some(364_000)),
        ("jumpstart", Some(300_000)),
        ("rapid-no-jump", Some(290_000)),
        ("rapid-start", Some(280_000)),
    ];
    assert_eq!(found, wanted);
    assert_eq!(check_queries(analysis, &text), 1 + 3);
    assert!(
        warnings::notes(analysis)
            .iter()
            .any(|text| text.contains("Failed transfers are not in its log"))
    );
}

#[test]
fn a_real_difference_is_significant_and_equal_arms_are_not() {
    let text = log(3, 6000, &ARMS, 0.0);
    let comparison = read(&text, quick()).expect("a report");
    let sentences = comparison.sentences();
    assert!(
        sentences[0].starts_with("fast is faster than baseline at P"),
        "{sentences:?}"
    );
    assert!(
        sentences[1].starts_with("same: no significant difference from baseline"),
        "{sentences:?}"
    );
    let html = comparison.html();
    for part in [
        "id=\"size\"",
        "id=\"site\"",
        "id=\"ratio\"",
        "Holm",
        "lastbyte query",
        "P50",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn equal_arms_differ_significantly_in_about_5_percent_of_logs() {
    let mut alike = 0;
    for seed in 0..100 {
        let text = log(1000 + seed, 1500, &[("baseline", 0.0), ("again", 0.0)], 0.0);
        let settings = Settings {
            replicates: 300,
            seed,
            ..Settings::default()
        };
        let comparison = read(&text, settings).expect("a report");
        alike += u32::from(
            comparison.sentences()[0].contains("no significant difference from baseline"),
        );
    }
    assert!(alike >= 93, "{alike} of 100");
    // Nor less often: a band that is never wrong would be too wide.
    assert!(alike < 100, "{alike} of 100");
}

#[test]
fn connections_of_one_seed_in_each_arm_are_paired() {
    let mut chance = Chance(9);
    let mut text = String::new();
    for seed in 0..700 {
        let path = (0.9 * chance.normal()).exp();
        for (arm, factor) in [("baseline", 1.0), ("fast", 0.96)] {
            let ttlb = (2000.0 * path * factor * (0.03 * chance.normal()).exp()).round() as u64;
            // Both arms have the loss of the path; the second has 0.2 percentage points more.
            let lost = (100.0 * path).round() as u64 + if arm == "fast" { 20 } else { 0 };
            text += &line(
                &json!({ "arm": arm, "seed": seed, "ttlb": ttlb, "content_length": 300_000, "site": "here", "num-packets.sent": 10_000, "num-packets.lost": lost }),
            );
        }
    }
    let comparison = read(&text, quick()).expect("a report");
    let analysis = &comparison.analysis;
    assert!(analysis.is_paired);
    for group in &analysis.loss {
        let difference = group.differences[1].expect("a difference");
        let (low, high) = difference.interval;
        assert!(
            (19.9..20.1).contains(&low) && (19.9..20.1).contains(&high),
            "{difference:?}"
        );
        let median = group.percentiles[1][0].alone.expect("an interval");
        assert!(median.1 - median.0 < 5.0, "{median:?}");
    }
    assert_eq!(analysis.pairs, 700);
    let mean = analysis.groups[0].means[1].expect("a mean");
    assert!(
        mean.interval.0 < -0.04
            && mean.interval.1 > -0.04
            && mean.interval.1 - mean.interval.0 < 0.02,
        "{mean:?}"
    );
    assert!(
        comparison.sentences()[0].starts_with("fast is faster"),
        "{:?}",
        comparison.sentences()
    );
    // Of loss, in all and at the one site.
    assert_eq!(check_queries(analysis, &text), 2);
    // Without any loss, an interval of no width is not one.
    let lossless = text.replace("\"num-packets.lost\":", "\"num-packets.lost\":0,\"other\":");
    let lossless = read(&lossless, quick()).expect("a report").analysis;
    assert_eq!(lossless.loss[0].together, [None, None]);
    // As long as one of them is not told of its seed, they are not.
    let without = text.replacen("\"seed\":5,", "", 1);
    assert!(
        !read(&without, quick())
            .expect("a report")
            .analysis
            .is_paired
    );
}

#[test]
fn a_sample_ratio_mismatch_is_a_warning() {
    let mut text = log(5, 4000, &[("baseline", 0.0), ("new", 0.0)], 0.0);
    let beware = |text: &str, shares: &[(&str, f64)]| {
        let named = shares
            .iter()
            .map(|(arm, share)| ((*arm).to_owned(), *share));
        let shares = Some(named.collect());
        let comparison = read(text, Settings { shares, ..quick() }).expect("a report");
        warnings::warnings(&comparison.analysis)
            .iter()
            .any(|text| text.contains("numbers of connections"))
    };
    assert!(!beware(&text, &[]));
    assert!(beware(&text, &[("baseline", 9.0)]));
    let more = log(6, 700, &[("new", 0.0)], 0.0);
    text += &more;
    assert!(beware(&text, &[]));
}

#[test]
fn transfers_that_never_completed_are_slower_than_all_others() {
    // The arm loses its slowest fifth: it is faster by completed transfers, and not by all transfers.
    let mut text = String::new();
    for number in 0..2000u64 {
        let ttlb = 100 + (number * 7919) % 1000;
        for (arm, ends) in [("baseline", true), ("cutting", ttlb < 900)] {
            text += &line(
                &json!({ "arm": arm, "ttlb": ends.then_some(ttlb), "content_length": 300_000 }),
            );
        }
    }
    let comparison = read(&text, quick()).expect("a report");
    let analysis = &comparison.analysis;
    let median = analysis.groups[0].curves[1][49].estimate;
    assert_eq!(median, Some(0.0));
    assert!(
        comparison.sentences()[0].contains("no significant difference"),
        "{:?}",
        comparison.sentences()
    );
    assert_eq!(analysis.groups[0].curves[1][89].estimate, None);
    assert!(
        warnings::warnings(analysis)
            .iter()
            .any(|text| text.contains("differ in the share of completed transfers"))
    );
    assert!(text::beside(analysis)[0].contains("the share of completed transfers fell: −"));
}

#[test]
fn a_log_that_cannot_be_compared_is_an_error() {
    let one = |text: &str| {
        read(text, quick())
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert_eq!(one(""), "the log has no lines");
    assert_eq!(one("\n\n"), "the log has no lines");
    assert!(
        one("hello\n").starts_with("not a connection log: "),
        "{}",
        one("hello\n")
    );
    assert!(
        one("[1,2]\n").starts_with("not a connection log: "),
        "{}",
        one("[1,2]\n")
    );
    assert!(
        one("{\"a\":1}\n").contains("none of the 1 lines has an arm"),
        "{}",
        one("{\"a\":1}\n")
    );
    assert!(one(&h2o(&[("num-paced", 0)])).contains("1 line because `num-paced` is not 1"));
    assert!(one(H2O).contains("all connections are of the arm `slow-start`"));
    let never = "{\"arm\":\"baseline\",\"ttlb\":null}\n{\"arm\":\"b\",\"ttlb\":5}\n";
    assert!(
        one(never).contains("no transfer of the baseline"),
        "{}",
        one(never)
    );
    let two = "{\"arm\":\"a\",\"ttlb\":5,\"experiment\":\"x\"}\n{\"arm\":\"b\",\"ttlb\":5,\"experiment\":\"y\"}\n";
    assert!(
        one(two).contains("several experiments (x, y)"),
        "{}",
        one(two)
    );
    let mixed = format!("{}{{\"arm\":\"b\",\"ttlb\":5}}\n", h2o(&[]));
    assert!(
        one(&mixed).contains("1 lines name their arm and 1 are H2O's"),
        "{}",
        one(&mixed)
    );
    let many: Vec<String> = (0..40)
        .map(|arm| line(&json!({ "arm": format!("a{arm}"), "ttlb": 5 })))
        .collect();
    let many = many.concat();
    assert!(one(&many).contains("more than 16 arms"));
    let text = log(1, 50, &ARMS, 0.0);
    let with = |settings: Settings| read(&text, settings).err();
    let unknown = with(Settings {
        baseline: Some("no".to_owned()),
        ..quick()
    })
    .expect("an error");
    assert!(
        unknown
            .to_string()
            .starts_with("unknown arm `no` (expected one of "),
        "{unknown}"
    );
    assert!(matches!(
        with(Settings {
            filter: Some("_[".to_owned()),
            ..quick()
        }),
        Some(Error::Expression {
            setting: Some("filter"),
            ..
        })
    ));
    assert!(matches!(
        with(Settings {
            shares: Some(vec![("fast".to_owned(), f64::NAN)]),
            ..quick()
        }),
        Some(Error::Share(_))
    ));
}

#[test]
fn a_truncated_log_is_reported_up_to_its_end() {
    let mut text = log(7, 400, &ARMS, 0.0);
    text.push_str("{\"arm\":\"fast\",\"tt");
    let comparison = read(&text, quick()).expect("a report");
    assert!(
        comparison
            .trouble()
            .is_some_and(|error| error.contains("401")),
        "{:?}",
        comparison.trouble()
    );
    assert!(comparison.html().contains("could not be read to its end"));
    // The other arms may have come after the end.
    let text = line(&json!({ "arm": "a", "ttlb": 5 })) + "{\"arm\":\"fast\",\"tt";
    let error = read(&text, quick()).expect_err("one arm").to_string();
    assert!(
        error.contains("of the arm `a`") && error.contains("could not be read to its end"),
        "{error}"
    );
}

#[test]
fn the_same_log_and_seed_give_the_same_page_on_any_number_of_threads() {
    let text = log(8, 900, &ARMS, 0.01);
    let page = |threads| {
        read(&text, Settings { threads, ..quick() })
            .expect("a report")
            .html()
    };
    assert!(page(1) == page(3));
}

#[test]
fn names_from_logs_are_escaped() {
    let evil = "</script><img src=x onerror=alert(1)>";
    let mut text = log(9, 300, &[("baseline", 0.0), ("same", 0.0)], 0.0);
    text = text
        .replace("\"same\"", &json!(evil).to_string())
        .replace("africa", "</td><script>x</script>");
    let comparison = read(&text, quick()).expect("a report");
    let html = comparison.html();
    assert!(!html.contains("<img src=x") && !html.contains("<script>x"));
    assert_eq!(html.matches("</script>").count(), 2);
    for figure in comparison.figures() {
        crate::figure::tests::assert_readable(&figure);
        assert!(
            figure
                .name
                .chars()
                .all(|c| c.is_alphanumeric() || c == '-' || c == '_'),
            "{}",
            figure.name
        );
    }
    serde_json::from_str::<Value>(&comparison.json()).expect("JSON");
}

#[test]
fn few_connections_are_a_warning() {
    let text = log(10, 60, &ARMS, 0.0);
    let comparison = read(&text, quick()).expect("a report");
    assert!(
        warnings::notes(&comparison.analysis)
            .iter()
            .any(|text| text.contains("too few to show small differences"))
    );
    // There is no band where fewer than five connections lie beyond a percentile.
    let cell = comparison.analysis.groups[0].curves[1][89];
    assert!(
        cell.alone.is_none() && cell.together.is_none() && cell.estimate.is_some(),
        "{cell:?}"
    );
}

/// Times are the same whether a log has them as integers or as floats.
#[test]
fn fractional_times_are_times() {
    let mut chance = Chance(11);
    let mut text = String::new();
    for number in 0..2000 {
        let ttlb = 300.0 * (0.7 * chance.normal()).exp();
        for (arm, factor) in [("a", 1.0), ("b", 0.5)] {
            // Half of them are whole, as floats or integers.
            let ttlb = match number % 4 {
                0 => json!((ttlb * factor).round() as u64),
                1 => json!((ttlb * factor).round()),
                _ => json!(ttlb * factor),
            };
            text += &line(
                &json!({ "arm": arm, "ttlb": ttlb, "content_length": 300_000.0, "handshake-confirmed-msec": 12.6 }),
            );
        }
    }
    let comparison = read(&text, quick()).expect("a report");
    let analysis = &comparison.analysis;
    let group = &analysis.groups[0];
    let answers = ask(&group.times_query, &text);
    for (arm, name) in ["a", "b"].into_iter().enumerate() {
        let times = &group.times[arm];
        assert_eq!((times.finished(), times.total()), (2000, 2000));
        let asked = answers[name][1][1].as_f64().expect("a median");
        let shown = times.percentile(0.5).expect("a median") as f64 / 1000.0;
        assert!((shown - asked).abs() <= 0.0005, "{shown} {asked}");
    }
    assert!(
        comparison.sentences()[0].contains("b is faster than a at P5–P95"),
        "{:?}",
        comparison.sentences()
    );
    // A size may be a float.
    assert_eq!(analysis.groups[1].subgroup, Subgroup::Bin(0));
    assert_eq!(analysis.groups[1].times[0].total(), 2000);
    let html = comparison.html();
    let shown = group.times[0].percentile(0.5).expect("a median");
    assert!(html.contains(&format!(
        "<td>{}\u{a0}ms</td>",
        super::format::bare_milliseconds(shown)
    )));
}

#[test]
fn short_times_have_three_digits() {
    for (micros, text) in [
        (145_000, "145"),
        (145_234, "145.2"),
        (145_250, "145.3"),
        (14_526, "14.53"),
        (999_960, "1\u{202f}000"),
        (1_234_000, "1\u{202f}234"),
        (432, "0.432"),
        (9_500, "9.5"),
        (0, "0"),
    ] {
        assert_eq!(super::format::bare_milliseconds(micros), text);
    }
}

#[test]
fn an_invalid_ttlb_is_an_error_and_not_an_incomplete_transfer() {
    for bad in [json!("145"), json!(-1), json!(true), json!([1])] {
        let mut text = log(12, 100, &ARMS, 0.0);
        for _ in 0..3 {
            text += &line(&json!({ "arm": "fast", "ttlb": bad, "experiment": "test" }));
        }
        let error = read(&text, quick())
            .expect_err("an invalid time")
            .to_string();
        assert!(
            error.starts_with(&format!(
                "invalid `ttlb` in 3 lines, first `{bad}` (expected milliseconds, zero or more)"
            )),
            "{error}"
        );
    }
    // Marks for "unknown" are not times: such transfers never completed.
    let mut text = log(12, 100, &ARMS, 0.0);
    let unfinished = |text: &str| {
        let analysis = read(text, quick()).expect("a report").analysis;
        let times = analysis.groups[0].times.iter();
        times.map(Counts::unfinished).sum::<u64>()
    };
    let before = unfinished(&text);
    for mark in [
        json!(u64::MAX),
        json!(1.844_674_407_370_955_2e19),
        json!(null),
    ] {
        text += &line(&json!({ "arm": "fast", "ttlb": mark, "experiment": "test" }));
    }
    assert_eq!(unfinished(&text), before + 3);
}

/// The rule of 200 kB is the same for logs of H2O and of `lastbyte serve`.
#[test]
fn small_objects_of_production_logs_are_left_out() {
    let ours = |ttlb: u64, size: u64, arm: &str| {
        line(&json!({ "module": "lastbyte", "arm": arm, "ttlb": ttlb, "content_length": size }))
    };
    let mut text = String::new();
    for number in 0..30 {
        for arm in ["baseline", "rapid-start"] {
            text += &ours(100 + number, 200_000, arm);
            text += &ours(1, 199_999, arm);
        }
    }
    let counted = |text: &str, settings: Settings| {
        let analysis = read(text, settings).expect("a report").analysis;
        check_queries(&analysis, text);
        (
            analysis.groups[0].times[0].total(),
            analysis.left_out.lines().1,
        )
    };
    assert_eq!(counted(&text, quick()), (30, 60));
    let comparison = read(&text, quick()).expect("a report");
    assert!(
        warnings::notes(&comparison.analysis)[2]
            .starts_with("60 lines are left out because the object is below 200 kB"),
        "{:?}",
        warnings::notes(&comparison.analysis)
    );
    // An explicit minimum overrides the rule.
    let with = |min_size| Settings {
        min_size: Some(min_size),
        ..quick()
    };
    assert_eq!(counted(&text, with(0)), (60, 0));
    assert_eq!(counted(&text, with(1)), (60, 0));
    let by_arm = Settings {
        arm: Some(r#"_["arm"]"#.to_owned()),
        ..quick()
    };
    assert_eq!(counted(&text, by_arm), (60, 0));
    // Lines of the simulator have a seed; their sizes are part of the experiment.
    let lines = text.lines().enumerate();
    let simulated: String = lines
        .map(|(seed, line)| {
            line.replace("\"module\"", &format!("\"seed\":{seed},\"module\"")) + "\n"
        })
        .collect();
    assert_eq!(counted(&simulated, quick()), (60, 0));
    assert_eq!(counted(&simulated, with(200_000)), (30, 0));
    // The rule does not apply to lines of other programs.
    assert_eq!(
        counted(&text.replace("lastbyte", "other"), quick()),
        (60, 0)
    );
    let h2o = h2o(&[("content_length", 199_999)]) + &h2o(&[("jumpstart.cwnd", 88_320)]) + H2O;
    let error = read(&h2o, quick()).map(|_| ());
    assert!(error.is_ok(), "{error:?}");
    let all = read(&h2o, with(0)).expect("a report").analysis;
    assert_eq!(
        (all.groups[0].times[0].total(), all.left_out.lines().1),
        (2, 0)
    );
    let small = ours(5, 100, "a") + &ours(5, 100, "b");
    let error = read(&small, quick())
        .expect_err("no line is left")
        .to_string();
    assert!(error.contains("--min-size 0"), "{error}");
}

#[test]
fn shares_of_unknown_arms_are_an_error() {
    let text = log(13, 100, &ARMS, 0.0);
    let with = |may_lack_arms| {
        let settings = Settings {
            shares: Some(vec![("fats".to_owned(), 2.0)]),
            may_lack_arms,
            ..quick()
        };
        read(&text, settings).map(|_| ())
    };
    assert!(matches!(with(false), Err(Error::UnknownArm { wanted, .. }) if wanted == "fats"));
    assert_eq!(with(true), Ok(()));
}

#[test]
fn commands_are_on_lines_of_their_own() {
    let settings = Settings {
        commands: vec!["lastbyte ab --out a&b".into(), "lastbyte report".into()],
        ..quick()
    };
    let log = log(3, 600, &ARMS, 0.0);
    let html = read(&log, settings).expect("a report").html();
    assert!(
        html.contains("<code>lastbyte ab --out a&amp;b\nlastbyte report</code>"),
        "the commands are joined"
    );
}

/// Cards are copied most, so they include their confidence.
#[test]
fn cards_include_significance_and_interval() {
    let cards = |text: &str| {
        let html = read(text, quick()).expect("a report").html();
        let start = html.find("<div class=\"cards\">").expect("cards");
        let end = html.find("<section id=\"all\">").expect("a chart");
        html[start..end].to_owned()
    };
    let all = cards(&log(3, 6000, &ARMS, 0.0));
    let (fast, same) = all.split_once("same</h2>").expect("two cards");
    assert!(
        fast.contains("<p class=\"big faster\">−") && !fast.contains("median TTLB, not"),
        "{fast}"
    );
    assert!(
        same.contains("<p class=\"big unsure\">") && same.contains("median TTLB, not significant"),
        "{same}"
    );
    for card in [fast, same] {
        assert!(
            card.contains("95\u{a0}% simultaneous over P5–P95 and all arms"),
            "{card}"
        );
    }
    // Too few connections have no interval, and no comma before it.
    let few = cards(&log(3, 12, &ARMS, 0.0));
    assert!(
        few.contains("too few connections for an interval") && !few.contains(", <"),
        "{few}"
    );
    assert_eq!(few.matches("big unsure").count(), 2, "{few}");
}

#[test]
fn the_summary_of_each_arm_equals_the_result_of_its_query() {
    let text = log(14, 800, &ARMS, 0.05);
    let comparison = read(&text, quick()).expect("a report");
    let summary = comparison.summary();
    let counts = ask(&comparison.analysis.counts_query, &text);
    let times = ask(&comparison.analysis.groups[0].times_query, &text);
    assert_eq!(summary.len(), 3);
    for arm in summary {
        let asked = &counts[&arm.arm];
        assert_eq!(asked, &json!([arm.connections, arm.completed]));
        assert_eq!(arm.ttlb_ms[1], times[&arm.arm][1][1].as_f64());
        assert!(arm.loss_percent[0] > Some(1.0) && arm.loss_percent[3] < Some(5.1));
    }
}

/// Only a log of an experiment of ours says how connections were assigned to arms.
/// A log with a site in every line does not make a table in every line.
#[test]
fn sites_beyond_64_are_counted_together() {
    let text: String = (0..100)
        .map(|number| {
            let (site, arm) = (format!("site {number:03}"), ["a", "b"][number % 2]);
            line(&json!({
                "content_length": 100_000, "ttlb": 100, "complete": true, "experiment": "test", "arm": arm, "site": site,
            }))
        })
        .collect();
    let input = Input::from_bytes("log", text.into_bytes());
    let (tally, _) = super::gather::tally(vec![input], &quick()).expect("a log");
    assert_eq!(tally.sites.len(), 65);
    let other = tally.sites.iter().position(|name| name == "(other sites)");
    let other = other.expect("the sites beyond 64");
    let in_all: u64 = tally
        .cells
        .values()
        .flat_map(|cell| cell.ttlb.values())
        .sum();
    let of_other = tally
        .cells
        .iter()
        .filter(|((_, site, _), _)| *site == other);
    let in_other: u64 = of_other.flat_map(|(_, cell)| cell.ttlb.values()).sum();
    assert_eq!((in_all, in_other), (100, 36));
}

#[test]
fn random_assignment_is_assumed_if_the_log_does_not_state_it() {
    let assumed = "this page assumes that it was assigned at random";
    let text = log(15, 300, &ARMS, 0.0);
    assert!(
        !read(&text, quick())
            .expect("a report")
            .html()
            .contains(assumed)
    );
    let h2o = h2o(&[("jumpstart.cwnd", 88_320)]) + H2O;
    assert!(
        read(&h2o, quick())
            .expect("a report")
            .html()
            .contains(assumed)
    );
}
