//! The parser and the printer against each other and against `serde_json`: any value, and any text that is nearly JSON.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use lastbyte_query::{Input, Options, Query};
use proptest::prelude::*;
use serde_json::Value;

/// What a query prints for one line; `None` when it fails.
fn printed(query: &str, line: &[u8]) -> Option<String> {
    let query = Query::compile(query, &[], Options::default()).unwrap();
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let input = Input::from_bytes("line", line.to_vec());
    query
        .run(vec![input], &mut out, &mut errors)
        .then(|| String::from_utf8(out).unwrap())
}

/// What a query prints, and what it says of errors.
fn run_query(query: &str, lines: &[u8]) -> (String, String) {
    let query = Query::compile(query, &[], Options::default()).unwrap();
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    query.run(
        vec![Input::from_bytes("lines", lines.to_vec())],
        &mut out,
        &mut errors,
    );
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(out), text(errors))
}

/// Rows that share keys, but not their order.
fn row() -> impl Strategy<Value = Value> {
    let inner = proptest::collection::vec(("[ab\\u{e9}]{1,2}", json()), 0..3)
        .prop_map(|pairs| Value::Object(pairs.into_iter().collect()));
    let value = prop_oneof![2 => json(), 1 => inner];
    proptest::collection::vec(("[ab]{1,2}", value), 0..5)
        .prop_map(|pairs| Value::Object(pairs.into_iter().collect()))
}

/// It reads parts of rows, unless something else reads them whole.
const PART: &str = "[_[\"a\"], (_[\"b\"].is_a?(Hash) ? _[\"b\"][\"a\"] : 0)]";

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |it| it.is_finite())
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn printed_values_read_back_equal(value in json(), spaced in any::<bool>()) {
        let text = if spaced {
            serde_json::to_string_pretty(&value).unwrap().replace('\n', "\t ")
        } else {
            value.to_string()
        };
        let once = printed("_", text.as_bytes()).unwrap();
        let back: Value = serde_json::from_str(&once).unwrap();
        prop_assert_eq!(&back, &value);
        prop_assert_eq!(printed("_", once.as_bytes()).unwrap(), once);
    }

    #[test]
    fn skipped_fields_do_not_change_results(value in json(), key in "[a-c]") {
        let row = serde_json::json!({"a": value, "b": 1, "c": "x"});
        let text = row.to_string();
        let (part, whole) = (format!("_[{key:?}]"), format!("_.to_a.to_h[{key:?}]"));
        prop_assert_eq!(printed(&part, text.as_bytes()), printed(&whole, text.as_bytes()));
    }

    #[test]
    fn keys_of_the_last_row_do_not_affect_the_next(rows in proptest::collection::vec(row(), 1..6)) {
        let lines = rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        prop_assert_eq!(run_query(PART, lines.as_bytes()), run_query(&format!("_.to_a; {PART}"), lines.as_bytes()));
        prop_assert_eq!(
            run_query("_[\"b\"]", lines.as_bytes()),
            run_query("_.to_a; _[\"b\"]", lines.as_bytes())
        );
    }

    #[test]
    fn skipped_values_are_validated(row in row(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut text = row.to_string().into_bytes();
        let at = at.index(text.len());
        prop_assert_eq!(run_query("_[\"no\"]; 0", &text[..at]), run_query("_.to_a; _[\"no\"]; 0", &text[..at]));
        text[at] = byte;
        prop_assert_eq!(run_query("_[\"no\"]; 0", &text), run_query("_.to_a; _[\"no\"]; 0", &text));
    }

    #[test]
    fn invalid_json_is_rejected_like_in_serde_json(value in json(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut text = value.to_string().into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        prop_assume!(!text.contains(&b'\n') && !text.iter().all(|byte| b" \t\r".contains(byte)));
        let theirs = serde_json::from_slice::<Value>(&text);
        // They refuse numbers beyond a float, which are Infinity here and then not printable.
        let huge = theirs.as_ref().is_err_and(|wrong| wrong.to_string().contains("out of range"));
        prop_assert!(huge || printed("0", &text).is_some() == theirs.is_ok(), "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn no_query_text_panics(text in "[-_\\[\\]{}()\"'/ a-c0-9.|&>+*:,#$%?!]{0,30}") {
        let _ = Query::compile(&text, &[], Options::default());
    }
}
