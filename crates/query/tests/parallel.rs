//! Any number of threads, and any size of a part, gives what one thread gives: out, errors, exit.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use lastbyte_query::{Format, Input, Options, Query};
use proptest::prelude::*;
use serde_json::Value;

const GOLDEN: &str = include_str!("golden.ndjson");

fn run(
    query: &str,
    helpers: &str,
    files: &[(String, Vec<u8>)],
    options: Options,
) -> Option<(String, String, bool)> {
    let helpers = [("helpers.rb".to_owned(), helpers.to_owned())];
    let query = Query::compile(query, &helpers, options).ok()?;
    let inputs = files
        .iter()
        .map(|(name, bytes)| Input::from_bytes(name.clone(), bytes.clone()))
        .collect();
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let good = query.run(inputs, &mut out, &mut errors);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Some((text(out), text(errors), good))
}

fn options(threads: usize, chunk_bytes: usize, format: Format) -> Options {
    Options {
        threads,
        chunk_bytes,
        format,
        ..Options::default()
    }
}

#[test]
fn golden_cases_are_the_same_in_parts() {
    for line in GOLDEN.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (Some(query), Some(text)) = (case["query"].as_str(), case["stdin"].as_str()) else {
            continue;
        };
        let helpers = case["helpers"].as_str().unwrap_or_default();
        // Twice, so that a second file follows whatever the first one did.
        let files: Vec<(String, Vec<u8>)> = ["a", "b"]
            .map(|name| (name.to_owned(), text.as_bytes().to_vec()))
            .into();
        for format in [Format::Json, Format::Tsv] {
            let one = run(query, helpers, &files, options(1, 1, format));
            for (threads, bytes) in [(2, 16), (3, 1)] {
                let many = run(query, helpers, &files, options(threads, bytes, format));
                assert_eq!(one, many, "{query} on {threads} threads by {bytes} bytes");
            }
        }
    }
}

#[test]
fn what_runs_in_parallel_is_told() {
    let percentiles = "select(_[0] == 1) >> [_[\"a\"], _[\"b\"]] >> group_by(_[0]) { percentile(_[1], $p ||= 0.05.step(0.95, 0.1)) } >> map_values { |a| a }";
    for (query, wanted) in [
        ("min(_[\"rtt.minimum\"])", "up to stage[0]"),
        (percentiles, "up to stage[2]"),
        ("_[\"a\"] >> _ + 1", "all stages"),
        (
            "_[\"a\"] >> reduce(0) { |a, v| a + v }",
            "what stands before stage[1]",
        ),
        ("reduce(0) { |a, v| a + 1 }", "nothing"),
        ("$n = 1", "nothing"),
        ("rand", "nothing"),
        ("count($s ||= _[\"a\"])", "nothing"),
        ("$~", "nothing"),
    ] {
        let verbose = Options {
            verbose: true,
            ..options(2, 1, Format::Json)
        };
        let (_, errors, _) = run(query, "", &[], verbose).unwrap();
        assert!(
            errors.contains(&format!("parallel: {wanted}\n")),
            "{query}: {errors}"
        );
    }
}

const QUERIES: &[&str] = &[
    "_",
    "_[\"a\"]",
    "_[\"a\"] + 1",
    "select(_[\"b\"] == \"x\") >> _[\"a\"] * 2",
    "count()",
    "sum(_[\"a\"])",
    "[min(_[\"a\"]), max(_[\"a\"]), average(_[\"a\"]), stdev(_[\"a\"])]",
    "select(_[\"a\"]) >> [_[\"b\"], _[\"a\"]] >> group_by(_[0]) { percentile(_[1], $p ||= 0.05.step(0.95, 0.1)) }",
    "group_by(_[\"b\"]) { {n: count(), s: sum(_[\"a\"]), first: _[\"a\"]} } >> map_values { |x| x }",
    "group_by(_[\"b\"]) { |r| group_by(r[\"a\"]) { count() } }",
    "group(_[\"a\"])",
    "sort(_[\"b\"]) >> _[\"a\"]",
    "sort { |x, y| x[\"b\"] <=> y[\"b\"] }",
    "map_values { |v| count(v) }",
    "_[\"a\"] >> reduce(0) { |acc, v| acc * 2 + (v || 0) }",
    "$n = ($n || 0) + 1",
    "$s ||= [] >> count()",
    "apply(_[\"l\"]) { |x| sum(x) } >> sum(_ || 0)",
    "_[\"b\"] =~ /x/ >> $~.nil?",
];

fn row() -> impl Strategy<Value = String> {
    let a = prop_oneof![
        3 => (-50_i64..50).prop_map(|it| it.to_string()),
        3 => (-1e3..1e3).prop_map(|it: f64| it.to_string()),
        1 => Just("null".to_owned()),
    ];
    let usual = (a, "[xyz]", proptest::collection::vec(0..9, 0..3))
        .prop_map(|(a, b, l)| format!("{{\"a\":{a},\"b\":\"{b}\",\"l\":{l:?}}}"));
    prop_oneof![
        60 => usual,
        1 => Just("{\"a\":\"s\",\"b\":7}".to_owned()),
        1 => Just("{\"b\":null}".to_owned()),
        1 => Just(String::new()),
        1 => Just("{\"a\":".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn parts_of_any_size_give_what_one_thread_gives(
        rows in proptest::collection::vec(row(), 0..25),
        more in proptest::collection::vec(row(), 0..9),
        threads in 2_usize..5,
        bytes in 1_usize..200,
    ) {
        let files = [("a".to_owned(), rows.join("\n").into_bytes()), ("b".to_owned(), more.join("\n").into_bytes())];
        for query in QUERIES {
            let one = run(query, "", &files, options(1, 1, Format::Json));
            let many = run(query, "", &files, options(threads, bytes, Format::Json));
            prop_assert_eq!(one, many, "{}", query);
        }
    }
}
