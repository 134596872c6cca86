//! Reports of another value than the time to last byte.

use super::*;
use crate::comparison::Metric;

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
        assert_eq!(figures[0].name, format!("{stem}-paths"));
        for figure in figures {
            let svg = figure.svg();
            for other in ["TTLB", "ime to last byte", "faster", "slower"] {
                assert!(!svg.contains(other), "{} has {other}", figure.name);
            }
            assert!(svg.contains("client.ttfb"), "{}", figure.name);
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
