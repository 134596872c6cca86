//! What jrf does not have: its builtins, `$FILENAME`, comma-separated text, results of parts, and results so far.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use lastbyte_query::{ByteSource, CompileError, Follow, Format, Input, Options, Query};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const GOLDEN: &str = include_str!("golden.ndjson");

/// Rows of two files.
const EUROPE: &str = "{\"arm\":\"a\",\"ttlb\":120,\"tags\":[\"x\",\"y\"]}\n{\"arm\":\"b\",\"ttlb\":95.5,\"tags\":[]}\n{\"arm\":\"a\",\"ttlb\":null}\n";
const ASIA: &str = "{\"arm\":\"b\",\"ttlb\":310,\"tags\":[\"x\"]}\n{\"arm\":\"c\",\"ttlb\":-1,\"tags\":null}\n{\"arm\":\"a\",\"ttlb\":310}\n{\"arm\":\"c\",\"ttlb\":0}\n";

/// A query, what it prints, and its errors.
const ANSWERS: &[(&str, &str, &str)] = &[
    // `limit` passes on the first rows that reach it.
    (r#"limit(2) >> _["arm"]"#, "\"a\"\n\"b\"\n", ""),
    (
        r#"select(_["arm"] == "a") >> limit(2) >> _["ttlb"]"#,
        "120\nnull\n",
        "",
    ),
    (
        "limit(1)",
        "{\"arm\":\"a\",\"ttlb\":120,\"tags\":[\"x\",\"y\"]}\n",
        "",
    ),
    ("limit(0)", "", ""),
    ("limit(100) >> count()", "7\n", ""),
    (
        r#"select(_["tags"]) >> _["tags"] >> flat >> limit(2)"#,
        "\"x\"\n\"y\"\n",
        "",
    ),
    (
        r#"sort(_["arm"]) >> limit(2) >> _["ttlb"]"#,
        "120\nnull\n",
        "",
    ),
    (r#"limit(3) >> limit(5) >> sum(_["ttlb"])"#, "215.5\n", ""),
    // A row after the last one is not read, so that its error does not matter.
    (r#"limit(2) >> _["ttlb"] + 1"#, "121\n96.5\n", ""),
    (
        "limit(-1)",
        "",
        "error: limit expects a number of rows: -1 (ArgumentError) at europe:1, stage 0\n",
    ),
    // `distinct`, `top` and `histogram` skip null.
    (r#"distinct(_["arm"])"#, "[\"a\",\"b\",\"c\"]\n", ""),
    (r#"distinct(_["ttlb"]) >> _.length"#, "5\n", ""),
    (
        r#"group_by(_["arm"]) { |r| distinct(r["ttlb"]) }"#,
        "{\"a\":[120,310],\"b\":[95.5,310],\"c\":[-1,0]}\n",
        "",
    ),
    // Of equal keys the earlier row; null has no place.
    (
        r#"top(3, _["ttlb"]) >> flat >> [_["arm"], _["ttlb"]]"#,
        "[\"b\",310]\n[\"a\",310]\n[\"a\",120]\n",
        "",
    ),
    (
        r#"top(2, -_["ttlb"].to_f) >> _.map { |r| r["ttlb"] }"#,
        "[-1,null]\n",
        "",
    ),
    (r#"_["ttlb"] >> top(2)"#, "[310,310]\n", ""),
    (
        r#"group_by(_["arm"]) { |r| top(1, r["ttlb"]) } >> map_values { |rows| rows[0]["ttlb"] }"#,
        "{\"a\":310,\"b\":310,\"c\":0}\n",
        "",
    ),
    (
        "top(0)",
        "",
        "error: top expects a number of rows from 1 to 1000000: 0 (ArgumentError) at europe:1, stage 0\n",
    ),
    (
        r#"top(1, _["ttlb"] || "x")"#,
        "[{\"arm\":\"a\",\"ttlb\":120,\"tags\":[\"x\",\"y\"]}]\n",
        "error: comparison of String with 120 failed (ArgumentError) at europe:3, stage 0\n",
    ),
    (
        r#"histogram(_["ttlb"], 100)"#,
        "{\"-100\":1,\"0\":2,\"100\":1,\"300\":2}\n",
        "",
    ),
    (
        r#"histogram(_["ttlb"])"#,
        "{\"-1\":1,\"0\":1,\"64\":2,\"256\":2}\n",
        "",
    ),
    (
        r#"histogram((_["ttlb"] || 0) / 1000.0, 0.1)"#,
        "{\"-0.1\":1,\"0.0\":3,\"0.1\":1,\"0.3\":2}\n",
        "",
    ),
    (
        r#"histogram(_["ttlb"], 0)"#,
        "",
        "error: histogram expects a positive width, or none for powers of two: 0 (ArgumentError) at europe:1, stage 0\n",
    ),
    (
        r#"histogram(_["arm"])"#,
        "",
        "error: no implicit conversion of String into Float (TypeError) at europe:1, stage 0\n",
    ),
    (
        "distinct(*[])",
        "",
        "error: wrong number of arguments (given 0, expected 1) (ArgumentError) at europe:1, stage 0\n",
    ),
    // The file of a row.
    (
        "group_by($FILENAME) { count() }",
        "{\"europe\":3,\"asia\":4}\n",
        "",
    ),
    (
        r#"select(_["ttlb"] == 310) >> [$FILENAME, _["arm"]]"#,
        "[\"asia\",\"b\"]\n[\"asia\",\"a\"]\n",
        "",
    ),
    (
        r#"select(_["ttlb"]) >> reduce({}) { |h, r| h.merge($FILENAME => r["arm"]) } >> [_, $FILENAME]"#,
        "[{\"europe\":\"b\",\"asia\":\"c\"},null]\n",
        "",
    ),
    (
        r#"$FILENAME << "x""#,
        "",
        "error: can't modify frozen String: \"europe\" (FrozenError) at europe:1, stage 0\n",
    ),
];

fn inputs() -> Vec<Input> {
    [("europe", EUROPE), ("asia", ASIA)]
        .map(|(name, rows)| Input::from_bytes(name, rows.as_bytes().to_vec()))
        .into()
}

fn run(query: &str, inputs: Vec<Input>, options: Options) -> (String, String) {
    let query =
        Query::compile(query, &[], options).unwrap_or_else(|wrong| panic!("{query}: {wrong}"));
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let is_ok = query.run(inputs, &mut out, &mut errors);
    assert_eq!(is_ok, errors.is_empty());
    (
        String::from_utf8(out).unwrap(),
        String::from_utf8(errors).unwrap(),
    )
}

#[test]
fn builtins_give_the_same_result_on_any_number_of_threads() {
    for (query, out, errors) in ANSWERS {
        for (threads, chunk_bytes) in [(1, 1 << 20), (3, 8), (2, 1)] {
            let options = Options {
                threads,
                chunk_bytes,
                ..Options::default()
            };
            let answer = run(query, inputs(), options);
            assert_eq!(
                answer,
                ((*out).to_owned(), (*errors).to_owned()),
                "{query} {threads}"
            );
        }
    }
}

#[test]
fn a_limit_stops_reading_an_endless_input() {
    struct Rows;
    impl Read for Rows {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            buffer.fill(b'7');
            buffer
                .iter_mut()
                .skip(1)
                .step_by(2)
                .for_each(|byte| *byte = b'\n');
            Ok(buffer.len() / 2 * 2)
        }
    }
    for threads in [1, 3] {
        let options = Options {
            threads,
            ..Options::default()
        };
        let rows = Input::new("endless", || Ok(Box::new(Rows) as ByteSource));
        let (out, _) = run("select(_ > 3) >> limit(2)", vec![rows], options);
        assert_eq!(out, "7\n7\n");
    }
}

#[test]
fn helpers_replace_builtins_that_jrf_lacks() {
    let helpers = [(
        "h.rb".to_owned(),
        "def top(x) x + 1 end\ndef limit(x) x * 2 end\ndef distinct(x) x end".to_owned(),
    )];
    let query = Query::compile(
        "[top(_), limit(_), distinct(_)]",
        &helpers,
        Options::default(),
    )
    .unwrap();
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let rows = Input::from_bytes("rows", b"1\n2\n".to_vec());
    assert!(query.run(vec![rows], &mut out, &mut errors));
    assert_eq!(out, b"[2,2,1]\n[3,4,2]\n");
}

#[test]
fn a_literal_assigned_in_a_condition_is_refused() {
    for (query, column) in [
        (r#"select(_["a"] = "b")"#, 17),
        (r#"count_if((_["a"] = 1))"#, 20),
        (r#"select(_["b"] && (_["c"] || _["a"] = nil))"#, 38),
        ("if x = 1 then 2 end", 8),
        ("_ unless $x = :a", 15),
        ("(x = 1.5) ? 1 : 2", 6),
        ("x = 0; x += 1 while x = true", 25),
    ] {
        let error = Query::compile(query, &[], Options::default()).expect_err(query);
        assert_eq!(error.column, column, "{query}: {error}");
        assert!(error.message.contains("(expected `==`)"), "{error}");
    }
    for query in [
        r#"select(_["a"] == "b")"#,
        r#"select((x = _["a"]) && x > 1)"#,
        r#"select(_["a"] = _["b"])"#,
        r#"select(_["a"] ||= 1)"#,
        r#"_["a"] = "b"; _"#,
        "if x = _ then x end",
    ] {
        assert!(
            Query::compile(query, &[], Options::default()).is_ok(),
            "{query}"
        );
    }
}

#[test]
fn errors_of_invalid_queries_suggest_a_correction() {
    for (query, wrong) in [
        (
            "averge(_)",
            "query:1:1: undefined method 'averge'; did you mean `average`? (NameError)",
        ),
        (
            "avg(_)",
            "query:1:1: undefined method 'avg'; did you mean `average(e)`? (NameError)",
        ),
        (
            "median(_)",
            "query:1:1: undefined method 'median'; did you mean `percentile(e, 0.5)`? (NameError)",
        ),
        (
            "reject(_[\"a\"].nil?)",
            "query:1:1: undefined method 'reject'; did you mean `select(!p)`? (NameError)",
        ),
        (
            "limt(3)",
            "query:1:1: undefined method 'limt'; did you mean `limit`? (NameError)",
        ),
        (
            "_.arm",
            "query:1:3: undefined method 'arm' (NoMethodError): did you mean the field `_[\"arm\"]`?",
        ),
        (
            "group_by(_.arm) { |r| sum(r.ttlb) }",
            "query:1:12: undefined method 'arm' (NoMethodError): did you mean the field `_[\"arm\"]`?",
        ),
        (
            "_[\"rtt\"].minimum",
            "query:1:10: undefined method 'minimum' (NoMethodError): did you mean the field `_[\"rtt\"][\"minimum\"]`?",
        ),
        (
            ".arm",
            "query:1:1: syntax error: unexpected '.', ignoring it; the field is `_[\"arm\"]`",
        ),
        (
            "select(.ttlb > 1)",
            "query:1:8: syntax error: unexpected '.'; expected an argument; the field is `_[\"ttlb\"]`",
        ),
        (
            "map { limit(2) }",
            "query:1:7: `limit` counts the rows of a stage, and cannot stand in a block, a loop or a helper: write `… >> limit(10)`",
        ),
        (
            "limit",
            "query:1:1: `limit` expects a number of rows: write `limit(10)`",
        ),
        (
            "limit(1, 2)",
            "query:1:1: `limit` expects a number of rows: write `limit(10)`",
        ),
        (
            "1 + top(2)",
            "query:1:3: a reducer's result is known at the end of input only, so `+` cannot work on it: do it in the next stage, as in `count() >> 1 + _`",
        ),
        (
            "select(_[\"a\"] > 1) | count()",
            "query:1:20: `|` does not join stages (expected `>>`, as in `select(_[\"ttlb\"] > 100) >> count()`)",
        ),
        (
            "$FILENAME = 1",
            "query:1:1: $FILENAME is a read-only variable (NameError)",
        ),
    ] {
        let refused = Query::compile(query, &[], Options::default()).unwrap_err();
        assert_eq!(refused.to_string(), wrong, "{query}");
    }
}

#[test]
fn names_of_other_languages_suggest_a_correction() {
    assert!(Query::compile("sum(*[1], initial: 2)", &[], Options::default()).is_ok());
    for (query, wrong) in [
        (
            "arm",
            "query:1:1: undefined local variable or method 'arm'; did you mean the field `_[\"arm\"]`? (NameError)",
        ),
        (
            "counts",
            "query:1:1: undefined local variable or method 'counts'; did you mean `count`, or the field `_[\"counts\"]`? (NameError)",
        ),
        (
            "row[\"arm\"]",
            "query:1:1: undefined local variable or method 'row'; did you mean `_`? (NameError)",
        ),
        (
            "null",
            "query:1:1: undefined local variable or method 'null'; did you mean `nil`? (NameError)",
        ),
        (
            "p99(_)",
            "query:1:1: undefined method 'p99'; did you mean `percentile(e, 0.99)`? (NameError)",
        ),
        (
            "p5(_)",
            "query:1:1: undefined method 'p5'; did you mean `percentile(e, 0.05)`? (NameError)",
        ),
        (
            "round(_)",
            "query:1:1: undefined method 'round'; did you mean `e.round`? (NameError)",
        ),
        (
            "len(_)",
            "query:1:1: undefined method 'len'; did you mean `e.length`? (NameError)",
        ),
        (
            "_.a.contains(1)",
            "query:1:3: undefined method 'a' (NoMethodError): did you mean the field `_[\"a\"]`?",
        ),
        (
            "_[\"a\"].contains(1)",
            "query:1:8: undefined method 'contains' (NoMethodError): it is not supported; the nearest one is `include?`",
        ),
        (
            "_[\"a\"].toUpperCase",
            "query:1:8: undefined method 'toUpperCase' (NoMethodError): did you mean the field `_[\"a\"][\"toUpperCase\"]`, or `upcase`?",
        ),
        (
            "None",
            "query:1:1: uninitialized constant None; did you mean `nil`?",
        ),
        // Arguments that would have no effect.
        (
            "select { |r| r[\"ttlb\"] > 5 }",
            "query:1:1: `select` with 0 arguments (expected `select(p)`)",
        ),
        (
            "sum(_[\"a\"], _[\"b\"])",
            "query:1:1: `sum` with 2 arguments (expected `sum(e)`)",
        ),
        (
            "sort(_[\"a\"], 3)",
            "query:1:1: `sort` with 2 arguments (expected `sort(key)`)",
        ),
        (
            "group_by(\"a\") { count() }",
            "query:1:1: `group_by(\"a\")` is the same in all rows (expected a value of the row: `_[\"a\"]`)",
        ),
        (
            "select count(*) from rows",
            "query:1:14: syntax error: unexpected `*`; no anonymous rest parameter; a query is Ruby, as in `select(_[\"ttlb\"] > 100) >> count()`",
        ),
    ] {
        let refused = Query::compile(query, &[], Options::default()).unwrap_err();
        assert_eq!(refused.to_string(), wrong, "{query}");
    }
}

fn csv(query: &str, rows: &str) -> (String, String) {
    let options = Options {
        format: Format::Csv,
        ..Options::default()
    };
    run(
        query,
        vec![Input::from_bytes("rows", rows.as_bytes().to_vec())],
        options,
    )
}

#[test]
fn results_are_comma_separated_records() {
    for (query, rows, out, errors) in [
        // The first record makes the header; a missing field is null, and so is a null.
        (
            "_",
            "{\"a\":1,\"b\":\"x\"}\n{\"b\":null,\"a\":2.50}\n{\"a\":\"\"}\n",
            "a,b\n1,x\n2.5,\n\"\",\n",
            "",
        ),
        (
            "_",
            "{\"a\":1}\n{\"a\":2,\"b\":3}\n{\"a\":4}\n",
            "a\n1\n",
            "error: the field `b` is not in the header (a); name the fields, as in `{b: _[\"b\"]}` (ArgumentError) at rows:2, stage 0\n",
        ),
        // Quotes; a text that looks like a number; nested values as JSON.
        (
            "_",
            "{\"a,b\":\"say \\\"x\\\"\",\"c\":\"1\\n2\",\"d\":\"12\",\"e\":[1,\"z\"]}\n",
            "\"a,b\",c,d,e\n\"say \"\"x\"\"\",\"1\n2\",\"12\",\"[1,\"\"z\"\"]\"\n",
            "",
        ),
        // Records without names; a value alone.
        (
            "[_[\"a\"], 1.0, true, :s]",
            "{\"a\":null}\n",
            ",1.0,true,s\n",
            "",
        ),
        ("_[\"a\"]", "{\"a\":\"x\"}\n", "x\n", ""),
        // Tables: a record for each element, and for each key.
        (
            "group([_[\"a\"], 2])",
            "{\"a\":1}\n{\"a\":3}\n",
            "1,2\n3,2\n",
            "",
        ),
        (
            "group({a: _[\"a\"]})",
            "{\"a\":1}\n{\"a\":3}\n",
            "a\n1\n3\n",
            "",
        ),
        (
            "group_by(_[\"g\"]) { {n: count(), sum: sum(_[\"a\"])} }",
            "{\"a\":1,\"g\":\"x\"}\n{\"a\":3,\"g\":null}\n",
            "key,n,sum\nx,1,1\n,1,3\n",
            "",
        ),
        (
            "group_by(_[\"g\"]) { percentile(_[\"a\"], [0.1, 0.9]) }",
            "{\"a\":1,\"g\":\"x\"}\n{\"a\":3,\"g\":\"y\"}\n",
            "x,1,1\ny,3,3\n",
            "",
        ),
        (
            "group_by(_[\"g\"]) { count() }",
            "{\"g\":\"x\"}\n{\"g\":\"y\"}\n",
            "x,y\n1,1\n",
            "",
        ),
    ] {
        assert_eq!(
            csv(query, rows),
            (out.to_owned(), errors.to_owned()),
            "{query}"
        );
    }
    // One header, whatever the threads are.
    let rows = (0..200).fold(String::new(), |rows, n| format!("{rows}{{\"n\":{n}}}\n"));
    let options = |threads| Options {
        format: Format::Csv,
        threads,
        chunk_bytes: 64,
        ..Options::default()
    };
    let rows = || vec![Input::from_bytes("rows", rows.clone().into_bytes())];
    assert_eq!(
        run("{n: _[\"n\"]}", rows(), options(3)),
        run("{n: _[\"n\"]}", rows(), options(1))
    );
}

/// The names of the columns and the records, as JSON, and the errors.
fn records(query: &str, rows: &str, threads: usize) -> (Vec<String>, Vec<String>) {
    let options = Options {
        threads,
        chunk_bytes: 16,
        sentinels: &[("rtt", 4_294_967_295), ("size", u64::MAX)],
        ..Options::default()
    };
    let query = Query::compile(query, &[], options).unwrap();
    let mut lines = Vec::new();
    let input = Input::from_bytes("rows", rows.as_bytes().to_vec());
    let outcome = query.for_each_record(vec![input], |names, fields| {
        if lines.is_empty() {
            lines.push(names.join(" "));
        }
        assert_eq!(names.len(), fields.len());
        lines.push(lastbyte_query::Value::Array(fields.clone()).to_string());
        ControlFlow::Continue(())
    });
    let errors = outcome.errors.iter().map(ToString::to_string);
    (lines, errors.collect())
}

#[test]
fn records_have_the_columns_of_the_first() {
    for (query, rows, lines, errors) in [
        (
            "_",
            "{\"a\":1,\"b\":[2]}\n{\"b\":\"x\"}\n{\"b\":null,\"a\":0.5}\n",
            &["a b", "[1,[2]]", "[null,\"x\"]", "[0.5,null]"][..],
            &[][..],
        ),
        (
            "_",
            "{\"a\":1}\n{\"b\":1}\n",
            &["a", "[1]"],
            &[
                "the field `b` is not in the header (a); name the fields, as in `{b: _[\"b\"]}` (ArgumentError) at rows:2, stage 0",
            ],
        ),
        // Records without names are given some.
        (
            "[_[\"a\"], 2]",
            "{\"a\":1}\n",
            &["column1 column2", "[1,2]"],
            &[],
        ),
        (
            "_[\"a\"]",
            "{\"a\":1}\n{\"a\":2}\n",
            &["value", "[1]", "[2]"],
            &[],
        ),
        (
            "_[\"a\"]",
            "{\"a\":[1,2]}\n{\"a\":[3]}\n{\"a\":[4,5,6]}\n",
            &["column1 column2", "[1,2]", "[3,null]"],
            &[
                "a record of 3 fields (expected 2: column1, column2) (ArgumentError) at rows:3, stage 0",
            ],
        ),
        // A record for each group.
        (
            "group_by(_[\"g\"]) { {n: count()} }",
            "{\"g\":\"x\"}\n{\"g\":\"y\"}\n{\"g\":\"x\"}\n",
            &["key n", "[\"x\",2]", "[\"y\",1]"],
            &[],
        ),
        (
            "group_by(_[\"g\"]) { percentile(_[\"a\"], [0.1, 0.9]) }",
            "{\"g\":\"x\",\"a\":1}\n",
            &["key column1 column2", "[\"x\",1,1]"],
            &[],
        ),
        // Numbers that stand for no value, in their fields only.
        (
            "_",
            "{\"rtt\":4294967295,\"size\":18446744073709551615,\"a\":4294967295}\n{\"rtt\":18446744073709551615,\"size\":1}\n",
            &[
                "rtt size a",
                "[null,null,4294967295]",
                "[18446744073709551615,1,null]",
            ],
            &[],
        ),
        // A float that is no number is not JSON, but a field.
        ("{x: 0.0 / 0}", "1\n", &["x", "[NaN]"], &[]),
        ("select(false)", "1\n", &[], &[]),
    ] {
        for threads in [1, 3] {
            let (out, reported) = records(query, rows, threads);
            assert_eq!(out, lines, "{query}");
            assert_eq!(reported, errors, "{query}");
        }
    }
}

#[test]
fn sentinels_are_empty_fields_of_comma_separated_records() {
    let options = Options {
        format: Format::Csv,
        sentinels: &[("rtt", 4_294_967_295)],
        ..Options::default()
    };
    let rows = b"{\"rtt\":4294967295,\"a\":4294967295}\n{\"rtt\":3,\"a\":1}\n";
    let input = || vec![Input::from_bytes("rows", rows.to_vec())];
    let (out, _) = run("_", input(), options.clone());
    assert_eq!(out, "rtt,a\n,4294967295\n3,1\n");
    // The text for machines keeps them.
    let json = Options {
        format: Format::Json,
        ..options
    };
    let (out, _) = run("_[\"rtt\"]", input(), json);
    assert_eq!(out, "4294967295\n3\n");
}

proptest! {
    #[test]
    fn strings_and_numbers_round_trip_through_csv(
        records in proptest::collection::vec(("[ -~\n\r\u{e9}]{0,8}", any::<i64>(), any::<f64>(), proptest::option::of("[a-z\",]{0,3}")), 1..8),
    ) {
        let rows: String = records
            .iter()
            .map(|(text, int, float, maybe)| {
                let float = if float.is_finite() { *float } else { 0.5 };
                serde_json::json!({"text": text, "int": int, "float": float, "maybe": maybe}).to_string() + "\n"
            })
            .collect();
        let (table, errors) = csv("_", &rows);
        prop_assert_eq!(errors, "");
        let (plain, _) = run("_", vec![Input::from_bytes("rows", rows.into_bytes())], Options::default());
        let back = Input::from_bytes("table", table.into_bytes()).csv();
        let (out, errors) = run("_", vec![back], Options::default());
        prop_assert_eq!(errors, "");
        prop_assert_eq!(out, plain);
    }
}

#[test]
fn errors_name_the_lines_of_comma_separated_input() {
    let rows = "site,ttlb\nEU,1\n\"N\nA\",x\nAS,3,4\n";
    let input = Input::from_bytes("t.csv", rows.as_bytes().to_vec()).csv();
    let (out, errors) = run(
        "[_[\"site\"], _[\"ttlb\"]]",
        vec![input],
        Options::default(),
    );
    assert_eq!(out, "[\"EU\",1]\n[\"N\\nA\",\"x\"]\n");
    assert_eq!(
        errors,
        "error: t.csv: invalid CSV in line 5: 3 fields (expected 2, as in the header)\n"
    );
    let input = Input::from_bytes("t.csv", rows.as_bytes().to_vec()).csv();
    let (_, errors) = run("_[\"ttlb\"] + 1", vec![input], Options::default());
    assert_eq!(
        errors,
        "error: no implicit conversion of Integer into String (TypeError) at t.csv:3, stage 0\n"
    );
}

/// The state of a query over rows.
fn state(query: &Query, name: &str, rows: &[u8]) -> Result<Vec<u8>, String> {
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let input = Input::from_bytes(name, rows.to_vec());
    if query.partial(vec![input], &mut out, &mut errors) {
        Ok(out)
    } else {
        assert!(out.is_empty());
        Err(String::from_utf8(errors).unwrap())
    }
}

/// Merges states, and states of states.
fn merged(query: &Query, states: &[Vec<u8>]) -> (String, String) {
    let inputs = |states: &[Vec<u8>]| -> Vec<Input> {
        let states = states.iter().enumerate();
        states
            .map(|(at, state)| Input::from_bytes(format!("{at}.state"), state.clone()))
            .collect()
    };
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    query.merge(inputs(states), &mut out, &mut errors);
    let middle = states.len() / 2;
    let halves = [&states[..middle], &states[middle..]].map(|half| {
        let (mut state, mut errors) = (Vec::new(), Vec::new());
        assert!(query.merge_to_state(inputs(half), &mut state, &mut errors));
        state
    });
    let (mut tree, mut tree_errors) = (Vec::new(), Vec::new());
    query.merge(inputs(&halves), &mut tree, &mut tree_errors);
    assert_eq!(out, tree);
    (
        String::from_utf8(out).unwrap(),
        String::from_utf8(errors).unwrap(),
    )
}

/// Pieces of lines, of one, two and more rows.
fn pieces(text: &str) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = text;
    for lines in (1..4).cycle() {
        if rest.is_empty() {
            return pieces;
        }
        let ends = rest.match_indices('\n').nth(lines - 1);
        let end = ends.map_or(rest.len(), |(at, _)| at + 1);
        pieces.push(&rest.as_bytes()[..end]);
        rest = &rest[end..];
    }
    pieces
}

#[test]
fn merged_states_give_the_result_of_one_run() {
    let (mut compared, mut refused, mut other) = (0, 0, 0);
    let cases: Vec<Value> = GOLDEN
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let golden = cases.iter().filter_map(|case| {
        let helpers = case["helpers"].as_str().unwrap_or_default();
        Some((case["query"].as_str()?, case["stdin"].as_str()?, helpers))
    });
    let rows = [EUROPE, ASIA].concat();
    let own = ANSWERS
        .iter()
        .filter(|(query, _, errors)| errors.is_empty() && !query.contains("$FILENAME"));
    let own: Vec<_> = own.map(|(query, ..)| (*query, rows.as_str(), "")).collect();
    for (text, rows, helpers) in golden.chain(own) {
        let helpers = [("helpers.rb".to_owned(), helpers.to_owned())];
        let Ok(query) = Query::compile(text, &helpers, Options::default()) else {
            continue;
        };
        if query.check_mergeable().is_err() {
            refused += 1;
            continue;
        }
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        let one = Input::from_bytes("rows", rows.as_bytes().to_vec());
        if !query.run(vec![one], &mut out, &mut errors) {
            continue;
        }
        let states: Result<Vec<Vec<u8>>, String> = pieces(rows)
            .into_iter()
            .map(|piece| state(&query, "rows", piece))
            .collect();
        match states {
            Ok(states) => {
                let (merged, reported) = merged(&query, &states);
                if reported.is_empty() {
                    assert_eq!(merged, String::from_utf8(out).unwrap(), "{text}");
                    compared += 1;
                } else {
                    assert_eq!(merged, "", "{text}");
                    assert!(reported.contains("cannot be joined"), "{text}: {reported}");
                    other += 1;
                }
            }
            Err(reported) => {
                assert!(reported.contains("cannot be merged"), "{text}: {reported}");
                other += 1;
            }
        }
    }
    assert!(
        compared >= 100,
        "{compared} compared, {refused} refused, {other} refused at their values"
    );
}

#[test]
fn queries_that_do_not_merge_are_refused() {
    let refused = |query: &str| -> CompileError {
        let query = Query::compile(query, &[], Options::default()).unwrap();
        query.check_mergeable().unwrap_err()
    };
    for (query, why) in [
        (
            "_[\"a\"]",
            "it has no reducer; run it on each part, and concatenate the outputs",
        ),
        (
            "select(_ > 1) >> reduce(0) { |a, b| a + b }",
            "stage[1] needs all rows in order: reduce(0) { |a, b| a + b }",
        ),
        (
            "_[\"a\"] >> sort { |a, b| a <=> b }",
            "stage[1] needs all rows in order: sort { |a, b| a <=> b }",
        ),
        (
            "limit(3) >> count()",
            "it keeps values from row to row (`reduce`, `limit`, `sort` with a block, variables)",
        ),
    ] {
        assert_eq!(
            refused(query).to_string(),
            format!("query: states of this query cannot be merged: {why}")
        );
    }
    let query = Query::compile("sum(_, initial: \"\")", &[], Options::default()).unwrap();
    assert_eq!(
        state(&query, "rows", b"\"a\"\n").unwrap_err(),
        "error: stage[0] cannot be merged: its reducers hold other values than numbers, texts, arrays and hashes, hold large values many times, or sum other values than numbers\n"
    );
    // Nor for one that would be much larger as text.
    let query = Query::compile("group([_] * 5000)", &[], Options::default()).unwrap();
    let row = |length: usize| format!("\"{}\"\n", "x".repeat(length)).into_bytes();
    assert!(state(&query, "rows", &row(100)).is_ok());
    let error = state(&query, "rows", &row(20_000)).unwrap_err();
    assert!(error.contains("hold large values many times"), "{error}");
    // No state for a part with an error.
    let query = Query::compile("sum(_[\"a\"] + 1)", &[], Options::default()).unwrap();
    assert_eq!(
        state(&query, "rows", b"{\"a\":1}\n{}\n").unwrap_err(),
        "error: undefined method '+' for nil (NoMethodError) at rows:2, stage 0: `a` is nil\n"
    );
    assert_eq!(
        state(&query, "rows", b"{\"a\":1}\n{").unwrap_err(),
        "error: rows: unexpected end of input at line 2 column 2 (JSON::ParserError)\n"
    );
}

/// What a source gives, one after the other.
enum Event {
    Bytes(&'static str),
    /// The results so far are due, and there are no bytes.
    Due,
}

struct Script {
    events: VecDeque<Event>,
    due: Arc<AtomicBool>,
}

impl Read for Script {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.events.pop_front() {
            None => Ok(0),
            Some(Event::Bytes(text)) => {
                let (now, later) = text.split_at(text.len().min(buffer.len()));
                if !later.is_empty() {
                    self.events.push_front(Event::Bytes(later));
                }
                buffer[..now.len()].copy_from_slice(now.as_bytes());
                Ok(now.len())
            }
            Some(Event::Due) => {
                self.due.store(true, Ordering::Relaxed);
                Err(ErrorKind::WouldBlock.into())
            }
        }
    }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn intermediate_results_cover_the_rows_read_so_far() {
    use Event::{Bytes, Due};
    for (query, out) in [
        ("count()", "<1\n<2\n<3\n"),
        (
            "group_by(_[\"g\"]) { |r| average(r[\"a\"]) }",
            "<{\"x\":1.0}\n<{\"x\":1.5}\n<{\"x\":1.5,\"y\":4.0}\n",
        ),
        // Later stages, an accumulator that is changed in place, and global variables.
        (
            "reduce([]) { |all, r| all << r[\"a\"] } >> (_ << 0) >> _.sum",
            "<1\n<3\n<7\n",
        ),
        (
            "$n = ($n || 0) + 1; max(_[\"a\"]) >> [_, $n]",
            "<[1,1]\n<[2,2]\n<[4,3]\n",
        ),
        ("sort(-_[\"a\"]) >> _[\"a\"]", "<1\n<2\n1\n<4\n2\n1\n"),
        ("top(1, _[\"a\"]) >> flat >> _[\"a\"]", "<1\n<2\n<4\n"),
        (
            "[distinct(_[\"g\"]), histogram(_[\"a\"]), percentile(_[\"a\"], 1), stdev(_[\"a\"])] >> _[0..2]",
            "<[[\"x\"],{\"1\":1},1]\n<[[\"x\"],{\"1\":1,\"2\":1},2]\n<[[\"x\",\"y\"],{\"1\":1,\"2\":1,\"4\":1},4]\n",
        ),
        // Rows are printed as they arrive.
        ("_[\"a\"]", "1\n2\n4\n"),
    ] {
        let due = Arc::<AtomicBool>::default();
        // Nothing is printed twice, and half a row waits for its end.
        let events = [
            Bytes("{\"g\":\"x\",\"a\":1}\n"),
            Due,
            Due,
            Bytes("{\"g\":\"x\","),
            Due,
            Bytes("\"a\":2}\n"),
            Due,
            Bytes("{\"g\":\"y\",\"a\":4}\n"),
        ];
        let script = Script {
            events: events.into(),
            due: Arc::clone(&due),
        };
        let options = Options {
            follow: Some(Follow {
                due,
                before: "<".to_owned(),
            }),
            threads: 2,
            ..Options::default()
        };
        let input = Input::new("log", || Ok(Box::new(script) as ByteSource)).live();
        let query = Query::compile(query, &[], options).unwrap();
        let (mut printed, mut errors) = (Shared::default(), Vec::new());
        assert!(query.run(vec![input], &mut printed, &mut errors));
        assert_eq!(
            String::from_utf8(printed.0.lock().unwrap().clone()).unwrap(),
            out
        );
    }
}
