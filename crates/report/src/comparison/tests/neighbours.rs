//! What neighbours lose or gain.

use super::*;
use crate::comparison::neighbours::Kind;

/// Checks that the query engine's values are those of the page.
fn check_queries(analysis: &Analysis, text: &str) {
    for kind in analysis.neighbours.iter().flatten() {
        let answer = ask(&kind.query, text);
        for (one, typical) in analysis.arms.iter().zip(&kind.typical) {
            for (place, scale) in [1.0, 1.0, 100.0].into_iter().enumerate() {
                let asked = answer[&one.name][place].as_f64().expect("a value") * scale;
                let shown = typical[place].expect("a value");
                assert!(
                    (shown - asked).abs() < 1e-9 * asked.max(1.0),
                    "{shown} {asked}"
                );
            }
        }
    }
}

/// 400 paths. A call is not harmed; a flow beside the new arm gets a fifth less, waits 2 ms longer and loses 1 % more. Each tenth
/// flow gets nothing in either arm.
fn log_of() -> String {
    let mut chance = Chance(12);
    let mut text = String::new();
    for path in 0..400 {
        let rate = 1e6 * (2.0 * chance.normal()).exp();
        let is_call = path % 2 == 0;
        for arm in ["baseline", "new"] {
            let is_harmed = arm == "new" && !is_call;
            let factor = if is_harmed { 0.8 } else { 1.0 } * (0.02 * chance.normal()).exp();
            let got = if path % 10 == 1 {
                0.0
            } else {
                (rate * factor).round()
            };
            let mut row = json!({
                "arm": arm, "seed": path, "ttlb": 100 + path, "content_length": 300_000,
                "neighbour.kind": if is_call { "cbr:2mbit" } else { "cubic" }, "neighbour.rate": got,
            });
            if got > 0.0 {
                let more = f64::from(u8::from(is_harmed));
                row["neighbour.delay"] = json!(10.0 + 2.0 * more + chance.unit());
                row["neighbour.loss"] = json!(0.01 * (1.0 + more));
            }
            text += &line(&row);
        }
    }
    text
}

fn kinds(comparison: &Comparison) -> &[Kind] {
    comparison
        .analysis
        .neighbours
        .as_deref()
        .expect("neighbours")
}

#[test]
fn harm_is_found_where_it_is() {
    let text = log_of();
    let comparison = read(&text, quick()).expect("a report");
    check_queries(&comparison.analysis, &text);
    let [call, flow] = kinds(&comparison) else {
        panic!("two kinds");
    };
    assert_eq!(
        (call.name.as_str(), flow.name.as_str()),
        ("cbr:2mbit", "cubic")
    );
    assert!(!call.is_significant() && flow.is_significant());
    assert_eq!(flow.counts, [0, 200]);
    let [rate, delay, loss] = flow.differences[1].map(|one| one.expect("an estimate"));
    // Of ten paths, two have no neighbour that gets anything, and count as unchanged.
    let expected = 0.8f64.powf(0.8) - 1.0;
    assert!((rate.value - expected).abs() < 0.005, "{rate:?} {expected}");
    assert!((delay.value - 2.0).abs() < 0.1 && (loss.value - 1.0).abs() < 1e-6);
    let share = flow.less[1].expect("a share");
    assert!((share.value - 0.8).abs() < 1e-9, "{share:?}");
    let median = flow.curves[1][49].estimate.expect("a change");
    assert!((-0.23..-0.17).contains(&median), "{median}");
    assert_eq!(
        text::harm(&comparison.analysis)[0]
            .split_once(" (")
            .map(|(head, _)| head),
        Some(
            format!(
                "new: cubic: rate {}",
                super::super::format::percent(rate.value)
            )
            .as_str()
        )
    );
    let claims = text::claims(&comparison.analysis);
    let claims: Vec<&str> = claims
        .iter()
        .filter(|claim| claim.list == "harm")
        .map(|claim| claim.what.as_str())
        .collect();
    assert_eq!(claims, ["rate of cubic", "delay of cubic", "loss of cubic"]);
    let page = comparison.html();
    assert!(page.contains("Harm to neighbours") && page.contains("cbr:2mbit"));
    let figures: Vec<String> = comparison
        .figures()
        .into_iter()
        .map(|one| one.name)
        .collect();
    assert!(
        figures.contains(&"neighbour-cubic".to_owned()),
        "{figures:?}"
    );
}

#[test]
fn connections_that_are_not_paired_have_no_harm() {
    let mut text = String::new();
    for path in 0..100 {
        let arm = ["baseline", "new"][path % 2];
        text += &line(&json!({
            "arm": arm, "seed": path, "ttlb": 100, "content_length": 300_000, "neighbour.kind": "cubic", "neighbour.rate": 1000,
        }));
    }
    let comparison = read(&text, quick()).expect("a report");
    assert!(comparison.analysis.neighbours.is_none() && comparison.harm().is_empty());
    assert!(!comparison.html().contains("Harm to neighbours"));
}

/// Values that no log of ours has do not count.
#[test]
fn odd_values_of_neighbours_are_left_out() {
    let mut text = String::new();
    for (path, rate) in [json!(-1), json!("x"), json!(1e13), Value::Null]
        .iter()
        .enumerate()
    {
        for arm in ["baseline", "new"] {
            text += &line(&json!({
                "arm": arm, "seed": path, "ttlb": 100, "content_length": 300_000, "neighbour.kind": "cubic", "neighbour.rate": rate,
            }));
        }
    }
    let comparison = read(&text, quick()).expect("a report");
    assert!(comparison.analysis.neighbours.is_none());
}

#[test]
fn few_paths_have_no_verdict_about_harm() {
    let text: String = log_of().split_inclusive('\n').take(40).collect();
    let comparison = read(&text, quick()).expect("a report");
    let expected =
        "new: no verdict, because there are too few paths for an interval (expected 30 or more).";
    assert_eq!(comparison.harm(), [expected]);
    assert!(comparison.html().contains("too few paths for an interval"));
}
