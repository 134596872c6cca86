//! Reports of another value than the time to last byte.

use super::*;
use crate::comparison::{
    Metric,
    figure::{Size, Subject, chart},
};

/// The text of a page: without its style and its script.
fn text_of(html: &str) -> String {
    let (_, body) = html.split_once("<body").expect("a body");
    let (body, _) = body.split_once("<script").expect("a script");
    body.to_owned()
}

#[test]
fn sentences_tables_and_charts_name_the_metric_and_no_other() {
    // Pairs, whose page has all sections.
    let mut text = String::new();
    for line in log(9, 900, &[("base", 0.0)], 0.0).lines() {
        for arm in ["base", "new"] {
            let ttfb = if arm == "new" {
                "\"client.ttfb\":1"
            } else {
                "\"client.ttfb\":2"
            };
            text += &line_of(
                &line
                    .replace("\"base\"", &format!("\"{arm}\""))
                    .replace("\"client.ttfb\":", ttfb),
            );
        }
    }
    for name in ["client.ttfb", "(_[\"client.ttfb\"] || 0) * 2"] {
        let settings = Settings {
            baseline: Some("base".to_owned()),
            metric: Metric::of(name),
            power: Some(0.1),
            looks: 5,
            ..quick()
        };
        let comparison = read(&text, settings).expect("a report");
        assert!(comparison.analysis.is_paired);
        let json: Value = serde_json::from_str(&comparison.json()).expect("JSON");
        for list in ["verdicts", "beside", "paths", "power"] {
            let sentences = json[list].as_array().expect(list);
            assert!(!sentences.is_empty(), "{list}");
            for sentence in sentences {
                assert!(
                    sentence.as_str().expect("text").contains(name),
                    "{sentence}"
                );
            }
        }
        let subgroups = json["subgroups"][0].as_str().expect("a sentence");
        assert!(
            subgroups.contains(&format!("comparisons of {name} by")),
            "{subgroups}"
        );
        let page = text_of(&comparison.html());
        // Queries have the names of keys.
        for other in [
            "TTLB",
            "ime to last byte",
            "faster",
            "slower",
            "completed transfers",
        ] {
            let said: Vec<&str> = page
                .lines()
                .filter(|line| {
                    line.contains(other) && !line.contains("<code>") && !line.contains("class=\"")
                })
                .collect();
            assert!(said.is_empty(), "{other}: {said:?}");
        }
        let stem = if name == "client.ttfb" {
            "client-ttfb"
        } else {
            "metric"
        };
        let figures = comparison.figures();
        assert_eq!(figures[1].name, format!("{stem}-paths"));
        for figure in figures {
            let (across, up) = &figure.captions;
            for other in ["TTLB", "ime to last byte", "faster", "slower"] {
                assert!(
                    !across.contains(other) && !up.contains(other),
                    "{across} {up}"
                );
            }
            assert!(across.contains("client.ttfb"), "{}", figure.name);
        }
        // Of one look in five, each list has a fifth of the error.
        assert!(
            page.contains("in at most 5 % of experiments at any of 5 looks, and at one look in at most 1.0\u{a0}%"),
            "the error of a list"
        );
    }
}

#[test]
fn a_metric_of_text_is_named_as_the_error() {
    let text = log(9, 90, &ARMS, 0.0);
    let settings = Settings {
        metric: Metric::of("site"),
        ..quick()
    };
    let error = read(&text, settings).expect_err("an error").to_string();
    assert!(
        error.contains("`site`") && error.contains("expected a number"),
        "{error}"
    );
}

/// Values above 10^12 are values, and those that are not counted exactly are refused.
#[test]
fn large_values_of_a_metric_are_values() {
    let of = |largest: u64| {
        let text = values(
            false,
            |number| largest - number,
            |number| largest / 2 + number,
        );
        let settings = Settings {
            metric: Metric::of("x"),
            ..quick()
        };
        read(&text, settings)
    };
    let summary = of(8_000_000_000_000).expect("a report").summary();
    assert!(
        summary.iter().all(|arm| arm.completed == arm.connections),
        "{summary:?}"
    );
    let error = of(9_000_000_000_000_000).expect_err("an error").to_string();
    assert!(
        error.starts_with("invalid `x` in 2000 lines, first `90000000000000")
            && error.contains("(expected a number from zero to 10^15)"),
        "{error}"
    );
}

/// A time of a transfer that did not complete is that of its end, and is none to last byte.
#[test]
fn an_incomplete_transfer_with_a_time_is_incomplete() {
    let text = |ttlb: &str| {
        let lines = (0..600).map(|number| {
            let [arm, lost] = [
                ["base", "new"][number % 2],
                if number % 20 == 1 { "false" } else { "true" },
            ];
            let time = if lost == "false" {
                ttlb.to_owned()
            } else {
                (100 + number).to_string()
            };
            format!("{{\"arm\":\"{arm}\",\"ttlb\":{time},\"complete\":{lost}}}\n")
        });
        lines.collect::<String>()
    };
    let [with, without] = ["3", "null"].map(|time| read(&text(time), quick()).expect("a report"));
    assert_eq!(with.summary(), without.summary());
    let completed: Vec<u64> = with.summary().iter().map(|arm| arm.completed).collect();
    assert_eq!(completed, [300, 270]);
    let warning = "On 30 lines with `\"complete\":false` there is a `ttlb`, which is not that of a whole transfer: they count as incomplete.";
    let has = |of: &Comparison| of.warnings().iter().any(|one| one == warning);
    assert_eq!([has(&with), has(&without)], [true, false]);
    // The queries of the page leave these times out as well.
    let query = |of: &Comparison| of.html().contains("complete&quot;] == false");
    assert_eq!([query(&with), query(&without)], [true, false]);
}

/// Values count of lines with an arm, and marks for "unknown" are none.
#[test]
fn a_metric_that_no_counting_line_has_is_named() {
    let text = log(9, 400, &ARMS, 0.0);
    let unknown = text.replace("{\"", "{\"x\":9223372036854775807,\"");
    let elsewhere = text.clone() + "{\"ttlb\":5,\"x\":7,\"y\":\"z\"}\n";
    for text in [&unknown, &elsewhere] {
        let settings = Settings {
            metric: Metric::of("x"),
            ..quick()
        };
        let error = read(text, settings).expect_err("an error");
        assert!(
            matches!(
                &error,
                Error::NoValues {
                    setting: "metric",
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(
            error.to_string(),
            "none of the 400 lines has a value of `x` (expected a number)"
        );
    }
    // So are groups and sites.
    for bins in [None, Some(vec![0.0, 5.0, 9.0])] {
        let settings = Settings {
            by: Some("x".to_owned()),
            bins,
            ..quick()
        };
        let error = read(&elsewhere, settings).expect_err("an error");
        assert_eq!(
            error.to_string(),
            "none of the 400 lines has a value of `x`"
        );
    }
    let settings = Settings {
        site: Some("_[\"y\"]".to_owned()),
        ..quick()
    };
    let error = read(&elsewhere, settings).expect_err("an error");
    assert_eq!(
        error.to_string(),
        "none of the 400 lines has a value of `_[\"y\"]`"
    );
    // Without an arm in any line, the arm is missing.
    let settings = Settings {
        metric: Metric::of("x"),
        ..quick()
    };
    let error = read("{\"ttlb\":5,\"y\":7}\n", settings).expect_err("an error");
    assert!(matches!(error, Error::NoArms { lines: 1, .. }), "{error}");
}

/// A log of pairs, or of connections without a seed, whose metric has these values in the baseline and in the arm `new`.
fn values(is_paired: bool, base: impl Fn(u64) -> u64, new: impl Fn(u64) -> u64) -> String {
    let lines = (0..1000).flat_map(|number| {
        [("base", base(number)), ("new", new(number))].map(|(arm, x)| {
            let seed = is_paired.then_some(number);
            line(&json!({ "arm": arm, "ttlb": 100, "seed": seed, "x": x, "site": if number % 2 == 0 { "a" } else { "b" } }))
        })
    });
    lines.collect()
}

fn of_x(text: &str) -> Comparison {
    let settings = Settings {
        metric: Metric::of("x"),
        baseline: Some("base".to_owned()),
        ..quick()
    };
    read(text, settings).expect("a report")
}

#[test]
fn a_value_that_falls_to_zero_changes_by_minus_100_percent() {
    for is_paired in [false, true] {
        // Six tenths of the values are zero in the arm, none in the baseline.
        let new = |number: u64| {
            if number * 7 % 10 < 6 {
                0
            } else {
                10 + number % 5
            }
        };
        let comparison = of_x(&values(is_paired, |number| 10 + number % 5, new));
        let curve = &comparison.analysis.groups[0].curves[1];
        for cell in &curve[9..55] {
            assert_eq!(cell.estimate, Some(-1.0));
            let (low, high) = cell.together.expect("an interval");
            assert!(low <= -1.0 && high < 0.0, "{low} {high}");
        }
        let sentence = &comparison.sentences()[0];
        assert!(
            sentence.starts_with("new has a lower x than base at ")
                && !sentence.contains("no change"),
            "{sentence}"
        );
        assert!(sentence.contains("; −100\u{a0}% at P50 "), "{sentence}");
        let page = text_of(&comparison.html());
        assert!(
            page.contains("−100\u{a0}% <small>−100 to\u{a0}−100\u{a0}%</small>"),
            "a change to zero"
        );
        assert!(!page.contains("<small>incomplete") && !page.contains("NaN"));
        if let Some(paths) = &comparison.analysis.paths {
            assert_eq!(paths.curves[1][49].estimate, Some(-1.0));
        }
        // A value of zero in all connections of an arm.
        let comparison = of_x(&values(is_paired, |number| 10 + number % 5, |_| 0));
        let mean = comparison.analysis.groups[0].means[1].expect("a mean");
        assert_eq!((mean.value, mean.interval.0), (-1.0, -1.0));
        assert!(mean.interval.1 < -0.9, "{mean:?}");
        assert!(comparison.json().contains("the mean x fell: −100\u{a0}%"));
    }
}

/// Few values above zero in the baseline may be chance.
#[test]
fn zeros_beside_rare_values_are_not_significant() {
    for is_paired in [false, true] {
        let comparison = of_x(&values(
            is_paired,
            |number| u64::from(number % 250 == 0),
            |_| 0,
        ));
        let mean = comparison.analysis.groups[0].means[1].expect("a mean");
        assert!(mean.value <= -1.0 && !mean.excludes_zero(), "{mean:?}");
    }
}

#[test]
fn only_a_baseline_of_zero_has_no_change_and_is_named() {
    for is_paired in [false, true] {
        let base = |number: u64| {
            if number * 7 % 10 < 6 {
                0
            } else {
                10 + number % 5
            }
        };
        let comparison = of_x(&values(is_paired, base, |number| 10 + number % 5));
        let sentence = &comparison.sentences()[0];
        let why = "have no change: x of base is 0 at P5–P60, and no change is relative to 0.";
        assert!(sentence.ends_with(why), "{sentence}");
        let page = text_of(&comparison.html());
        assert!(page.contains("– <small>baseline is 0</small>"));
        assert!(page.contains("no change of the median: baseline is 0"));
        assert!(!page.contains("median x, not significant"));
        assert!(!page.contains("<small>incomplete") && !page.contains("<small>too few"));
        if let Some(paths) = &comparison.analysis.paths {
            // The change of six tenths of the paths is from zero.
            assert_eq!(paths.curves[1][30].estimate, Some(0.0));
            assert_eq!(paths.curves[1][60].estimate, None);
            assert!(paths.slower[1].expect("a share").value > 0.59);
        }
        // All are zero.
        let comparison = of_x(&values(is_paired, |_| 0, |_| 0));
        assert_eq!(
            comparison.sentences()[0],
            "new: no verdict, because no percentile of x from P5 to P95 has a change from base: x of base is 0 at P5–P95, and no change is \
             relative to 0."
        );
    }
}

#[test]
fn connections_without_a_value_are_counted_by_arm() {
    let text = values(false, |_| 5, |_| 6);
    // A tenth of the lines of one arm has no value.
    let text: String = text
        .lines()
        .enumerate()
        .map(|(number, line)| {
            let line = if number % 20 == 1 {
                line.replace("\"x\"", "\"y\"")
            } else {
                line.to_owned()
            };
            line + "\n"
        })
        .collect();
    let comparison = of_x(&text);
    let counts: Vec<(u64, u64)> = comparison
        .summary()
        .iter()
        .map(|arm| (arm.connections, arm.completed))
        .collect();
    assert_eq!(counts, [(1000, 1000), (1000, 900)]);
    let note = "100 connections have no value of `x` and are left out: 100 of new.";
    assert!(
        comparison.notes().iter().any(|one| one == note),
        "{:?}",
        comparison.notes()
    );
}

/// A site with a value of zero has no logarithm, which is another reason than too few values.
#[test]
fn sites_that_are_left_out_have_the_true_reason() {
    let site = |number: u64| ["a", "b", "c"][(number % 3) as usize];
    let text: String = (0..900)
        .flat_map(|number| {
            [("base", 10), ("new", if number % 3 == 2 { 0 } else { 12 })].map(|(arm, x)| {
                line(&json!({ "arm": arm, "ttlb": 100, "x": x + number % 2, "site": site(number) }))
            })
        })
        .collect();
    let sentence = &of_x(&text).stratified()[0];
    assert!(
        sentence.contains(
            "2 sites; 600 connections are of sites with a value of 0, which has no logarithm)"
        ),
        "{sentence}"
    );
}

/// The bins are of the connections of the report, not of lines that it leaves out.
#[test]
fn bins_are_of_the_lines_that_count() {
    let text: String = (0..400)
        .map(|number| {
            let arm = if number % 3 == 0 { "b" } else { "a" };
            let counts = json!({ "module": "lastbyte", "arm": arm, "ttlb": 100 + number, "content_length": 300_000, "x": number % 100 });
            let small = json!({ "module": "lastbyte", "arm": arm, "ttlb": 1, "content_length": 100, "x": 5000 + number });
            let without_arm = json!({ "ttlb": 1, "x": 1000 + number });
            line(&counts) + &line(&small) + &line(&without_arm)
        })
        .collect();
    let settings = Settings {
        by: Some("x".to_owned()),
        ..quick()
    };
    let count = core::num::NonZeroUsize::new(2).expect("positive");
    let bins = |settings: &Settings| {
        let input = Input::from_bytes("log", text.clone().into_bytes());
        Comparison::bins(vec![input], settings, count)
    };
    assert_eq!(bins(&settings), Ok(vec![0.0, 50.0, 100.0]));
    // With a metric, those of connections with a value of it.
    let with_value = Settings {
        metric: Metric::of("_[\"x\"] < 10 ? 1 : nil"),
        ..settings.clone()
    };
    assert_eq!(bins(&with_value), Ok(vec![0.0, 5.0, 10.0]));
    // If no line counts, the pass that counts has the reason.
    let none = Settings {
        by: Some("_[\"arm\"] ? nil : _[\"x\"]".to_owned()),
        ..settings
    };
    assert_eq!(bins(&none), Ok(Vec::new()));
}

/// A long expression leaves room for the baseline's name on the same line.
#[test]
fn the_caption_of_the_percentiles_does_not_hide_the_name_of_the_baseline() {
    let text = values(false, |number| 20 + number % 7, |number| 10 + number % 5);
    let long = format!("_[\"x\"]{}", " + 0".repeat(40));
    for (metric, caption) in [
        ("x", "percentile of connections, by x"),
        (long.as_str(), "percentile of connections"),
    ] {
        let settings = Settings {
            metric: Metric::of(metric),
            baseline: Some("base".to_owned()),
            ..quick()
        };
        let comparison = read(&text, settings).expect("a report");
        let analysis = &comparison.analysis;
        let subject = Subject::Group(&analysis.groups[0]);
        let svg = crate::svg::document(&chart(analysis, subject, Size::Wide).scene);
        let document = roxmltree::Document::parse(&svg).expect("XML");
        let mut texts = document.descendants().filter_map(|node| node.text());
        assert!(texts.any(|text| text == caption), "{caption}: {svg}");
    }
}

#[test]
fn one_comparison_is_singular() {
    let text: String = (0..400)
        .map(|number| line(&json!({ "arm": if number % 2 == 0 { "a" } else { "b" }, "ttlb": 100 + number, "site": "here" })))
        .collect();
    let json = read(&text, quick()).expect("a report").json();
    assert!(json.contains("Of 1 comparison by size and site"), "{json}");
}
