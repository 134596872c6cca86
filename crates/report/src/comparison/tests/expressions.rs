//! Expressions in the settings: each is a value of a line, and changes nothing for the others.

use super::*;
use crate::comparison::Metric;

/// The settings with this expression in one place each.
fn with(expression: &str) -> [(&'static str, Settings); 5] {
    let text = || Some(expression.to_owned());
    let metric = Metric::of(expression);
    [
        (
            "arm",
            Settings {
                arm: text(),
                ..quick()
            },
        ),
        (
            "by",
            Settings {
                by: text(),
                ..quick()
            },
        ),
        ("metric", Settings { metric, ..quick() }),
        (
            "site",
            Settings {
                site: text(),
                ..quick()
            },
        ),
        (
            "filter",
            Settings {
                filter: text(),
                ..quick()
            },
        ),
    ]
}

#[test]
fn what_is_more_than_a_value_of_the_line_is_refused_in_all_settings() {
    let text = log(4, 300, &ARMS, 0.0);
    let [assignment, change, stage, reducer] = [
        "an assignment",
        "a method that changes the row",
        "the function of a stage, such as `select` and `limit`",
        "a reducer, whose result is of all rows",
    ];
    for (expression, effect) in [
        ("_[\"ttlb\"] = 5", assignment),
        ("(_[\"ttlb\"] = 5) > 0", assignment),
        ("_[\"ttlb\"] += 1", assignment),
        ("$x ||= 3", assignment),
        ("x = 3", assignment),
        ("x = 1; x", "several statements"),
        ("_.delete(\"ttlb\")", change),
        ("_[\"arm\"] << \"x\"", change),
        ("_[\"arm\"].concat(\"z\")", change),
        ("[_[\"site\"].concat(\"z\")]", change),
        ("limit(3)", stage),
        ("[select(_[\"ttlb\"] > 300)]", stage),
        ("count()", reducer),
        ("average(_[\"ttlb\"]) > 3", reducer),
        ("sort(_[\"ttlb\"])", reducer),
        ("_[\"ttlb\"] >> _ + 1", "several stages (`>>`)"),
    ] {
        for (setting, settings) in with(expression) {
            let expected =
                format!("`{expression}` has {effect} (expected an expression of the line)");
            let error = read(&text, settings.clone()).expect_err(expression);
            assert_eq!(error.to_string(), expected, "{setting}");
            let wanted = Some(setting);
            assert!(
                matches!(&error, Error::Expression { setting, .. } if *setting == wanted),
                "{error:?}"
            );
            let input = || vec![Input::from_bytes("log", text.clone().into_bytes())];
            let count = core::num::NonZeroUsize::new(4).expect("positive");
            assert_eq!(
                Comparison::bins(input(), &settings, count),
                Err(error.clone())
            );
            let refused = Comparison::partial(input(), &settings, &mut Vec::new());
            assert_eq!(refused.expect_err("an error"), error);
        }
    }
}

/// A wrong key beside another one, which has the values.
#[test]
fn keys_that_no_line_has_are_told_in_all_settings() {
    for (setting, settings) in with("_[\"tltb\"] == 3 ? 1 : _[\"ttlb\"]") {
        let text = log(5, 100, &[("baseline", 0.0), ("new", 0.0)], 0.0);
        let Ok(read) = read(&text, settings) else {
            // There are too many.
            assert_eq!(setting, "arm");
            continue;
        };
        let absent: Vec<String> = read.absent().iter().map(ToString::to_string).collect();
        assert_eq!(
            absent,
            ["no row has `tltb`; did you mean `ttlb`?"],
            "{setting}"
        );
    }
}

#[test]
fn values_of_the_line_are_no_changes() {
    let text = log(4, 300, &ARMS, 0.0);
    for expression in [
        "$FILENAME",
        "Integer(\"7\") + 1",
        "(_[\"nothing\"] + 1 rescue 7)",
        "_[\"site\"].delete(\"a\")",
        "_[\"content_length\"] << 1",
        "[3, 1].map { |value| x = value; x + 1 }",
        "_[\"site\"] =~ /^(.)/ ? $1 : nil",
        "_.values.length",
    ] {
        let settings = Settings {
            by: Some(expression.to_owned()),
            ..quick()
        };
        read(&text, settings).expect(expression);
    }
}
