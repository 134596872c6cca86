//! [`Query::for_each`] hands over what [`Query::run`] prints, and its errors as values.

use std::io::{self, ErrorKind};
use std::ops::ControlFlow;

use lastbyte_query::{Input, Options, Query, RunError, Value};

const QUERIES: &[&str] = &[
    "_",
    "[_]",
    r#"_["a"]"#,
    r#"[[_["a"], _["b"]]]"#,
    r#"{_["a"] => [1.5, 2**80, :symbol, nil, true, "é\n"], 2 => (1..3)}"#,
    r#"select(_["a"].is_a?(Integer))"#,
    r#"group_by(_["a"]) { [count(), sum(_["b"])] }"#,
    r#"sort(_["b"]) >> [_["b"], _["a"].to_s]"#,
    "[Time.at(0).utc, 1.0/3, []]",
    r#"[_["b"], _["b"] / (_["b"] - 50)]"#,
    "0.0/0.0",
];

fn rows() -> Vec<u8> {
    let row = |b: usize| format!("{{\"a\":{},\"b\":{b}}}\n", ["1", "\"x\"", "[1,{}]"][b % 3]);
    (0..100).map(row).collect::<String>().into_bytes()
}

fn query(text: &str, threads: usize) -> Query {
    let options = Options {
        threads,
        chunk_bytes: 200,
        ..Options::default()
    };
    Query::compile(text, &[], options).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn errors_of(query: &Query, inputs: Vec<Input>) -> Vec<RunError> {
    query.for_each(inputs, |_| ControlFlow::Continue(())).errors
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn for_each_yields_the_rows_and_errors_that_run_prints() {
    for text in QUERIES {
        for threads in [1, 4] {
            let input = || vec![Input::from_bytes("rows", rows())];
            let (mut out, mut errors) = (Vec::new(), Vec::new());
            let is_ok = query(text, threads).run(input(), &mut out, &mut errors);
            let text_of = |bytes| String::from_utf8(bytes).expect("UTF-8");
            let (printed, errors) = (text_of(out), text_of(errors));
            let mut handed = Vec::new();
            let outcome = query(text, threads).for_each(input(), |row| {
                let row = match row {
                    // An array of one element and that element are the same row.
                    [one] if !printed.starts_with('[') => one.clone(),
                    row => Value::Array(row.to_vec()),
                };
                handed.push(row.to_string());
                ControlFlow::Continue(())
            });
            assert_eq!(handed, lines(&printed), "{text} on {threads} threads");
            let typed: Vec<String> = outcome
                .errors
                .iter()
                .map(|error| format!("error: {error}"))
                .collect();
            assert_eq!(typed, lines(&errors), "{text} on {threads} threads");
            assert_eq!(outcome.errors.is_empty(), is_ok, "{text}");
        }
    }
}

#[test]
fn a_break_ends_the_run() {
    for (text, threads) in [("_", 1), ("_", 4), ("sort(1)", 1)] {
        let mut seen = 0;
        let outcome =
            query(text, threads).for_each(vec![Input::from_bytes("rows", rows())], |_| {
                seen += 1;
                if seen == 3 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
        assert!(outcome.into_result().is_ok(), "{text}");
        assert_eq!(seen, 3, "{text}");
    }
}

#[test]
fn errors_are_typed() {
    let missing = Input::new("missing", || Err(io::Error::from(ErrorKind::NotFound)));
    let errors = errors_of(
        &query("_", 1),
        vec![missing, Input::from_bytes("good", rows())],
    );
    assert!(
        matches!(&errors[..], [RunError::Unreadable { input, reason }]
            if input == "missing" && reason.kind() == ErrorKind::NotFound),
        "{errors:?}"
    );

    let broken = || vec![Input::from_bytes("broken", b"1\n{\"a\":x}\n2\n".to_vec())];
    let errors = errors_of(&query("_", 1), broken());
    assert!(
        matches!(
            &errors[..],
            [RunError::NotJson {
                line: 2,
                column: 6,
                is_too_deep: false,
                ..
            }]
        ),
        "{errors:?}"
    );

    let errors = errors_of(
        &query("1 / (_ - 2)", 1),
        vec![Input::from_bytes("n", b"1\n2\n3\n".to_vec())],
    );
    assert!(
        matches!(&errors[..], [RunError::Raised { class: "ZeroDivisionError", place, .. }]
            if place == "n:2, stage 0"),
        "{errors:?}"
    );

    let errors = errors_of(&query("raise IOError, 'lost'", 1), broken());
    assert!(
        matches!(
            &errors[..],
            [RunError::RaisedForInput {
                class: "IOError",
                ..
            }]
        ),
        "{errors:?}"
    );

    let options = Options {
        line_bytes_max: 1 << 20,
        ..Options::default()
    };
    let long = Input::from_bytes("long", vec![b' '; 3 << 20]);
    let errors = errors_of(
        &Query::compile("_", &[], options).expect("a query"),
        vec![long],
    );
    assert!(
        matches!(
            &errors[..],
            [RunError::LineTooLong {
                line: 1,
                bytes_max: 0x10_0000,
                ..
            }]
        ),
        "{errors:?}"
    );
}

#[test]
fn skipped_lines_are_counted() {
    let options = Options {
        skip_bad_lines: true,
        ..Options::default()
    };
    let query = Query::compile("_", &[], options).expect("a query");
    let mut rows = Vec::new();
    let outcome = query.for_each(
        vec![Input::from_bytes("n", b"1\nx\n2\n[\n".to_vec())],
        |row| {
            rows.extend(row[0].as_i64());
            ControlFlow::Continue(())
        },
    );
    assert_eq!(rows, [1, 2]);
    let skipped = outcome.skipped.expect("two lines");
    assert_eq!(skipped.count, 2);
    assert!(matches!(skipped.first, RunError::NotJson { line: 2, .. }));
}

#[test]
fn accessors_return_only_their_own_type() {
    let object = Value::Object(vec![("k".to_owned(), Value::Integer(2))]);
    assert_eq!(object.get("k").and_then(Value::as_f64), Some(2.0));
    assert_eq!(object.get("other"), None);
    assert_eq!(
        Value::BigInteger("36893488147419103232".to_owned()).as_f64(),
        Some(2f64.powi(65))
    );
    assert_eq!(Value::Float(2.5).as_i64(), None);
    assert_eq!(Value::String("a".to_owned()).as_str(), Some("a"));
    assert_eq!(Value::Null.as_array(), None);
    assert!(Value::Null.is_null() && !object.is_null());
    assert_eq!(Value::Bool(true).as_bool(), Some(true));
}
