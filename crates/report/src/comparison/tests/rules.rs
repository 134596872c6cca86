//! The lines of production logs that are left out.

use super::*;

/// Lines of H2O's in which each jump started at the rate of an earlier connection.
fn resumed() -> String {
    let mut text = String::new();
    for number in 0..6 {
        text += &h2o(&[("ttlb", 300 + number)]);
        text += &h2o(&[("num-rapid-start", 1), ("ttlb", 290 + number)]);
        for rapid in [0, 1] {
            text += &h2o(&[
                ("num-rapid-start", rapid),
                ("jumpstart.cwnd", 88_320),
                ("jumpstart.prev-rate", 1000 + number),
                ("conn_id", number),
                // One of them is small as well, another not paced.
                (
                    "content_length",
                    if number == 0 { 199_999 } else { 300_000 },
                ),
                ("num-paced", u64::from(number != 1)),
            ]);
        }
    }
    text
}

#[test]
fn each_rule_has_its_count_and_an_empty_arm_its_option() {
    let comparison = read(&resumed(), quick()).expect("a report");
    assert_eq!(
        comparison.warnings(),
        [
            "All 6 lines of the arm jumpstart are left out by the rules for production logs: --resumed includes 4 of them.",
            "All 6 lines of the arm rapid-start are left out by the rules for production logs: --resumed includes 4 of them.",
        ]
    );
    let notes = comparison.notes();
    for expected in [
        "12 of 24 lines are left out by the rules for production logs; a line can be under several of them.",
        "12 lines are left out because `jumpstart.prev-rate` is not 0: the connection started at the rate of an earlier one (--resumed includes them).",
        "2 lines are left out because the object is below 200 kB (--min-size 0 includes them).",
        "2 lines are left out because `num-paced` is not 1: the packets were not paced.",
    ] {
        assert!(
            notes.iter().any(|note| note == expected),
            "{expected}: {notes:?}"
        );
    }
    // On the page, keys are code.
    let html = comparison.html();
    let (markup, _) = html.split_once("<script").expect("a program");
    assert!(
        markup.contains("because <code>num-paced</code> is not 1"),
        "{markup}"
    );
    assert!(!markup.contains('`'), "{markup}");
    // The option brings the arms back, and the queries of the page have them.
    let settings = Settings {
        has_resumed: true,
        ..quick()
    };
    let comparison = read(&resumed(), settings).expect("a report");
    assert_eq!(comparison.analysis.arms.len(), 4);
    check_queries(&comparison.analysis, &resumed());
    assert_eq!(comparison.analysis.groups[0].times[1].total(), 4);
    assert!(
        !comparison
            .warnings()
            .iter()
            .any(|text| text.contains("left out"))
    );
}

#[test]
fn small_objects_that_empty_an_arm_name_it() {
    let mut text = String::new();
    for number in 0..30 {
        for (arm, size) in [("baseline", 300_000), ("new", 300_000), ("tiny", 100_000)] {
            text += &line(
                &json!({ "module": "lastbyte", "arm": arm, "ttlb": 100 + number, "content_length": size }),
            );
        }
    }
    let comparison = read(&text, quick()).expect("a report");
    assert_eq!(
        comparison.warnings(),
        [
            "All 30 lines of the arm tiny are left out by the rules for production logs: --min-size 0 includes 30 of them."
        ]
    );
}

/// Where one arm is left, or the baseline is not, the reason is in the error.
#[test]
fn errors_about_arms_name_those_that_rules_left_out() {
    let two: String = resumed()
        .lines()
        .filter(|line| line.contains("\"num-rapid-start\":0"))
        .map(line_of)
        .collect();
    let error = read(&two, quick()).expect_err("one arm").to_string();
    let why = "all 6 lines of the arm jumpstart are left out by the rules for production logs: --resumed includes 4 of them";
    assert_eq!(
        error,
        format!(
            "all connections that count are of the arm `slow-start`, so there is nothing to compare it with: {why}"
        )
    );
    let settings = Settings {
        baseline: Some("jumpstart".to_owned()),
        ..quick()
    };
    let error = read(&resumed(), settings)
        .expect_err("no such arm")
        .to_string();
    assert!(
        error.starts_with("unknown arm `jumpstart` (expected one of ") && error.contains(why),
        "{error}"
    );
    let none = h2o(&[("jumpstart.prev-rate", 7)]);
    let error = read(&none, quick()).expect_err("no arm").to_string();
    assert!(
        error.contains("1 line because `jumpstart.prev-rate` is not 0")
            && error.contains("--resumed"),
        "{error}"
    );
}

/// What follows a reload that ends an experiment is not part of it.
#[test]
fn lines_with_and_without_an_experiment_cannot_be_compared() {
    let with = "{\"arm\":\"a\",\"ttlb\":5,\"experiment\":\"x\"}\n{\"arm\":\"b\",\"ttlb\":5,\"experiment\":\"x\"}\n";
    let without = "{\"arm\":\"a\",\"ttlb\":5}\n";
    let error = read(&format!("{with}{without}"), quick()).expect_err("two experiments");
    assert!(
        error.to_string().contains("several experiments (x, none)")
            && error.to_string().contains("_[\"experiment\"] == \"x\""),
        "{error}"
    );
    // An expression for the arm is what the user compares.
    let settings = Settings {
        arm: Some("_[\"experiment\"] ? \"x\" : \"before\"".to_owned()),
        ..quick()
    };
    assert!(read(&format!("{with}{without}"), settings.clone()).is_ok());
    // Two experiments are not comparable by any expression.
    let other = with.replace("\"x\"", "\"y\"");
    let error = read(&format!("{with}{other}{without}"), settings).expect_err("two experiments");
    assert!(error.to_string().contains("(x, y)"), "{error}");
    assert!(read(without, quick()).is_err_and(|error| matches!(error, Error::OneArm { .. })));
}
