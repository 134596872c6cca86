//! A constant key of the query that no row has is reported at the end.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lastbyte_query::{Input, Options, Query};

const ROWS: &str = r#"{"arm":"a","ttlb":10,"quic":{"rtt":{"min":3}},"ua":"Chrome","none":null}
{"arm":"b","ttlb":20,"quic":{"rtt":{"min":5}},"ua":"Safari","none":null,"late":1}
"#;

/// Helpers that a program brings along, and helpers of the user.
const BUILT_IN: &str = "def shares(row) = [ttl(row), row['sent'], row['loss']]\ndef ttl(row) = row['ttlb'] || row['tt']";
const OWN: &str = "def mine(row) = [row['tltb'], shares(row)]";

/// What is printed for these rows: results and notes.
fn run(query: &str, options: Options, inputs: Vec<Input>) -> (String, String) {
    let builtin = ("<built-in>".to_owned(), BUILT_IN.to_owned());
    let own = ("own.rb".to_owned(), OWN.to_owned());
    let query = Query::compile(query, &[builtin, own], options)
        .unwrap_or_else(|wrong| panic!("{query}: {wrong}"));
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    query.run(inputs, &mut out, &mut errors);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (text(out), text(errors))
}

fn input(rows: &str) -> Vec<Input> {
    vec![Input::from_bytes("rows", rows.as_bytes().to_vec())]
}

fn notes(query: &str, rows: &str) -> String {
    run(query, Options::default(), input(rows)).1
}

#[test]
fn a_key_that_no_row_has_is_reported_with_a_similar_one() {
    let (out, notes) = run(r#"average(_["tltb"])"#, Options::default(), input(ROWS));
    assert_eq!(out, "null\n");
    assert_eq!(notes, "no row has `tltb`; did you mean `ttlb`?\n");
}

/// Query, and what is reported.
const ABSENT: &[(&str, &str)] = &[
    // Rows that are kept and printed, whole rows, and reducers.
    (
        r#"select(_["amr"] == "a")"#,
        "no row has `amr`; did you mean `arm`?\n",
    ),
    (
        r#"select(_["amr"]) >> _["ttlb"]"#,
        "no row has `amr`; did you mean `arm`?\n",
    ),
    (
        r#"sort(_["ttbl"].to_i) >> _["arm"]"#,
        "no row has `ttbl`; did you mean `ttlb`?\n",
    ),
    (
        r#"$row = _; _["amr"]"#,
        "no row has `amr`; did you mean `arm`?\n",
    ),
    (
        r#"group_by(_["amr"]) { |r| [count(r["x"]), sum(_["ttlb"])] }"#,
        "no row has `amr`; did you mean `arm`?\nno row has `x`\n",
    ),
    (
        r#"reduce(0) { |sum, row| sum + row["ttbl"].to_i }"#,
        "no row has `ttbl`; did you mean `ttlb`?\n",
    ),
    // An expression that a condition keeps from running.
    (
        r#"select(_["arm"] == "z") >> _["ttbl"]"#,
        "no row has `ttbl`; did you mean `ttlb`?\n",
    ),
    (
        r#"_["arm"] == "z" ? _["unlike"] : 1"#,
        "no row has `unlike`\n",
    ),
    // Keys of rows are texts.
    (r"_[:ttlb]", "no row has `:ttlb`; did you mean `ttlb`?\n"),
    // Keys within keys; the first that is absent counts.
    (
        r#"_["quic"]["rtt"]["mni"]"#,
        "no row has `_[\"quic\"][\"rtt\"][\"mni\"]`; did you mean `_[\"quic\"][\"rtt\"][\"min\"]`?\n",
    ),
    (
        r#"_.dig("quic", "rt", "min")"#,
        "no row has `_[\"quic\"][\"rt\"]`; did you mean `_[\"quic\"][\"rtt\"]`?\n",
    ),
    (
        r#"_.dig("quick", "rtt")"#,
        "no row has `quick`; did you mean `quic`?\n",
    ),
    (
        r#"_["quick"]&.fetch("rtt")"#,
        "no row has `quick`; did you mean `quic`?\n",
    ),
    // A literal in place of an absent value, and two absent keys.
    (
        r#"_["ttbl"] || 0"#,
        "no row has `ttbl`; did you mean `ttlb`?\n",
    ),
    (
        r#"_.fetch("ttbl", 0)"#,
        "no row has `ttbl`; did you mean `ttlb`?\n",
    ),
    (r#"_["x"] || _["y"]"#, "no row has `x`\nno row has `y`\n"),
    // Of later stages: rows whose keys the query writes.
    (
        r#"{a: _["ttlb"]} >> sum(_["a"])"#,
        "no row has `a`; did you mean `_[:a]`?\n",
    ),
    (
        r#"{a: _["ttlb"]} >> select(_["a"]) >> _[:a]"#,
        "no row has `a`; did you mean `_[:a]`?\n",
    ),
    (
        r#"{"a" => _["ttlb"]} >> group_by(_[:a]) { |r| sum(r["b"] || 0) }"#,
        "no row has `:a`; did you mean `a`?\nno row has `b`\n",
    ),
    (
        r#"{ttlb: sum(_["ttlb"]), "n" => count()} >> select(_["n"] > 0) >> sort(_["m"].to_i) >> _[:tltb]"#,
        "no row has `m`\nno row has `:tltb`; did you mean `_[:ttlb]`?\n",
    ),
    (
        r#"{a: {"b-c": _["ttlb"]}} >> [_[:a], _["a"], _[:a]["b-c"]]"#,
        "no row has `a`; did you mean `_[:a]`?\n",
    ),
    (
        r#"{"a" => {"b-c": _["ttlb"]}} >> _["a"]["b-c"]"#,
        "no row has `_[\"a\"][\"b-c\"]`; did you mean `_[\"a\"][:\"b-c\"]`?\n",
    ),
    (
        r#"group_by(_["arm"]) { |r| {n: count()} } >> map_values { |v| v["n"] }"#,
        "no row has `n`; did you mean `_[:n]`?\n",
    ),
    (r#"{"a": 1} >> _["b"]"#, "no row has `b`\n"),
    // Not to the end.
    (
        r#"_["ttbl"] >> limit(1)"#,
        "none of the rows read has `ttbl`; did you mean `ttlb`?\n",
    ),
];

#[test]
fn absent_keys_are_found_wherever_they_stand() {
    for (query, expected) in ABSENT {
        for threads in [1, 3] {
            let options = Options {
                threads,
                chunk_bytes: 1,
                ..Options::default()
            };
            assert_eq!(run(query, options, input(ROWS)).1, *expected, "{query}");
        }
    }
}

/// Queries without an absent key.
const PRESENT: &[&str] = &[
    r#"[_["arm"], _["late"], _["none"]]"#,
    r#"_["quic"]["rtt"]["min"]"#,
    // One of two keys; an expression in place of an absent value; a key that is asked for.
    r#"_["amr"] || _["arm"]"#,
    r#"_["amr"] || _["ua"].upcase"#,
    r#"_.key?("amr") ? _["amr"] : 0"#,
    // A part of a text is not a key, nor is what a query writes.
    r#"_["ua"]["Chr"]"#,
    r#"_["ua"].include?("Chr")"#,
    r#"_["sum"] = 3; _["sum"]"#,
    r#"_["sum"] ||= 3; _"#,
    r#"_.merge!("sum" => 1); _["sum"]"#,
    r#"r = _; r = r["quic"]; r["rtt"]"#,
    // Of rows whose keys are not all known, and of other values.
    r#"{a: _["ttlb"], **_} >> _["arm"]"#,
    r#"{_["arm"] => 1} >> _["a"]"#,
    r#"{a: 1} >> _.transform_keys(&:to_s) >> _["a"]"#,
    r#"{a: 1} >> (_["b"] = 2; _) >> _["b"]"#,
    r#"{a: 1} >> (_["b"] ||= 2; _["b"])"#,
    r#"{a: 1} >> (_.key?("a") ? _["a"] : _[:a])"#,
    r#"{a: 1} >> (_["a"] || _[:a])"#,
    r#"{a: [{"b" => 1}]} >> _[:a].map { |it| it["b"] }"#,
    r#"group_by(_["arm"]) { {n: count()} } >> _["a"]"#,
    r#"group_by(_["arm"]) { |r| {n: count()} } >> map_values { |v| v[:n] } >> _["a"]"#,
    r#"map([{"x" => 1}]) { |it| [it["x"], _["x"]] }"#,
    r#"[[_]].map { |row| row.first["absent"] }"#,
];

/// Logs write a key within a key in one of two ways, and names are abbreviated.
#[test]
fn keys_with_dots_and_starts_of_names_are_suggested() {
    let flat =
        r#"{"num-packets.lost":1,"num-paced":0,"rtt.minimum":3,"link.rate":5,"a":{"b.c":1}}"#;
    let nested = r#"{"num-packets":{"lost":1},"num-paced":0}"#;
    for (query, rows, expected) in [
        (
            r#"sum(_.dig("num-packets", "lost"))"#,
            flat,
            r#"no row has `_["num-packets"]["lost"]`; did you mean `_["num-packets.lost"]`?"#,
        ),
        (
            r#"_.dig("a", "b", "c")"#,
            flat,
            r#"no row has `_["a"]["b"]["c"]`; did you mean `_["a"]["b.c"]`?"#,
        ),
        (
            r#"_["num-packets.lost"]"#,
            nested,
            r#"no row has `num-packets.lost`; did you mean `_["num-packets"]["lost"]`?"#,
        ),
        (
            r#"_["rtt.min"]"#,
            flat,
            "no row has `rtt.min`; did you mean `rtt.minimum`?",
        ),
        (
            r#"_["rate"]"#,
            flat,
            "no row has `rate`; did you mean `link.rate`?",
        ),
        (r#"_["rt"]"#, flat, "no row has `rt`"),
        (r#"_["ate"]"#, flat, "no row has `ate`"),
        (
            r#"_["num-packets.sent"]"#,
            nested,
            "no row has `num-packets.sent`; did you mean `num-packets`?",
        ),
    ] {
        assert_eq!(notes(query, rows), format!("{expected}\n"), "{query}");
    }
}

#[test]
fn keys_that_a_row_has_and_other_texts_in_brackets_are_not_reported() {
    for query in PRESENT {
        assert_eq!(notes(query, ROWS), "", "{query}");
    }
    let escaped = r#"{"a":{"\u0062":1}}"#;
    assert_eq!(notes(r#"_["a"]["b"]"#, escaped), "");
    assert_eq!(notes(r#"_["A"]"#, r#"{"\u0041":1}"#), "");
}

#[test]
fn an_input_without_objects_has_no_absent_keys() {
    for rows in ["", "\n\n", "[1]\n", "\"text\"\n"] {
        assert!(
            !notes(r#"_["a"] rescue 0"#, rows).contains("has `a`"),
            "{rows}"
        );
    }
    let lines = "1\n{\"b\":2}\n";
    assert_eq!(
        notes(r#"_.is_a?(Hash) && _["a"]"#, lines),
        "no row has `a`\n"
    );
}

/// The key of one row in thousands, in any part of the input and behind any condition, is not absent.
#[test]
fn a_key_of_a_single_row_is_seen_by_any_number_of_threads() {
    let row = |at: usize, wanted: usize| {
        let more = if at == wanted { r#","x":{"y":1}"# } else { "" };
        format!("{{\"n\":{at},\"arm\":\"{}\"{more}}}\n", at % 3)
    };
    for query in [
        r#"count(_["x"])"#,
        r#"select(_["n"] < 0) >> _["x"]"#,
        r#"select(_["x"] && _["n"] == 1)"#,
        r#"select(_["n"] < 0) >> [_["x"] && _["x"]["y"]]"#,
        r#"sort(_["x"].to_s) >> limit(1) >> 1"#,
    ] {
        for wanted in [0, 1500, 2999] {
            let rows: String = (0..3000).map(|at| row(at, wanted)).collect();
            for threads in [1, 4] {
                let options = Options {
                    threads,
                    chunk_bytes: 4096,
                    ..Options::default()
                };
                let notes = run(query, options, input(&rows)).1;
                assert_eq!(notes, "", "{query}, row {wanted}, {threads} threads");
            }
        }
    }
}

#[test]
fn absent_keys_are_reported_for_every_kind_of_input_and_output() {
    let (expected, query) = (
        "no row has `tltb`; did you mean `ttlb`?\n",
        r#"count(_["tltb"])"#,
    );
    let csv = || vec![Input::from_bytes("rows", b"arm,ttlb\na,1\n".to_vec()).csv()];
    assert_eq!(run(query, Options::default(), csv()).1, expected);
    let lax = Options {
        lax: true,
        ..Options::default()
    };
    assert_eq!(
        run(query, lax, input("{\"ttlb\":\n1} {\"ttlb\":2}")).1,
        expected
    );

    let compiled = Query::compile(query, &[], Options::default()).expect("a query");
    let (mut state, mut notes) = (Vec::new(), Vec::new());
    assert!(compiled.partial(input(ROWS), &mut state, &mut notes));
    assert_eq!(String::from_utf8_lossy(&notes), expected);
    let states = vec![Input::from_bytes("state", state)];
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    assert!(compiled.merge(states, &mut out, &mut notes));
    assert_eq!((out, notes), (b"0\n".to_vec(), Vec::new()));

    let outcome = compiled.for_each(input(ROWS), |_| ControlFlow::Continue(()));
    assert_eq!(outcome.rows, 2);
    let absent: Vec<String> = outcome.absent.iter().map(ToString::to_string).collect();
    assert_eq!(absent.join("\n") + "\n", expected);
}

/// The query names the helper, not the keys.
#[test]
fn keys_that_only_a_built_in_helper_reads_are_not_reported_one_by_one() {
    assert_eq!(notes("shares(_)", ROWS), "");
    let other = r#"{"a":1}"#;
    let absent = "no row has a key that `shares` reads, such as `ttlb`\n";
    assert_eq!(notes("[shares(_), shares(_)]", other), absent);
    let typed = format!("{absent}no row has `sent`\n");
    assert_eq!(notes(r#"[shares(_), _["sent"]]"#, other), typed);
    // Helpers of the user.
    assert_eq!(
        notes("mine(_)", ROWS),
        "no row has `tltb`; did you mean `ttlb`?\n"
    );
}

#[test]
fn an_error_because_of_nil_names_the_key() {
    let at = "(NoMethodError) at rows:1, stage";
    for (query, expected) in [
        (
            r#"{x: _["ttlb"]} >> _["y"] + 1"#,
            format!("error: undefined method '+' for nil {at} 1: `y` is nil\n"),
        ),
        (
            r#"{x: _["ttlb"]} >> _[:y].fdiv(2)"#,
            format!("error: undefined method 'fdiv' for nil {at} 1: `:y` is nil\n"),
        ),
        (
            r#"_.then { |row| 1 + row["none"] }"#,
            "error: nil can't be coerced into Integer (TypeError) at rows:1, stage 0: `none` is nil\n"
                .to_owned(),
        ),
        (
            r#"_.then { |row| row["none"]["x"] }"#,
            format!("error: undefined method '[]' for nil {at} 0: `none` is nil\n"),
        ),
        (r#"[[1]] >> _["a"]"#, "error: no implicit conversion of String into Integer (TypeError) at rows:1, stage 1: `_` is an Array (`flat >> …` takes its elements as rows)\n".to_owned()),
        // Not of another error, and not in the message that a program sees.
        (
            r#"(_["none"] + 1 rescue nil) + 1"#,
            format!("error: undefined method '+' for nil {at} 0\n"),
        ),
    ] {
        assert_eq!(notes(query, ROWS), expected, "{query}");
    }
    let rescued = r#"[1].map { |it| begin; it + _["none"]; rescue => e; e.message; end }.first"#;
    let message = "\"nil can't be coerced into Integer\"\n";
    assert!(
        run(rescued, Options::default(), input(ROWS))
            .0
            .starts_with(message)
    );
}

/// Nothing is known of rows that were not read.
#[test]
fn after_an_error_or_an_interrupt_the_rows_read_count() {
    let expected = "none of the rows read has `tltb`; did you mean `ttlb`?\n";
    let raised = notes(r#"_["tltb"] + 1"#, ROWS);
    assert!(
        raised.contains("NoMethodError") && raised.ends_with(expected),
        "{raised}"
    );
    let cut = notes(r#"_["tltb"]"#, &format!("{ROWS}{{"));
    assert!(
        cut.contains("JSON::ParserError") && cut.ends_with(expected),
        "{cut}"
    );
    let options = Options {
        interrupt: Some(Arc::new(AtomicBool::new(true))),
        ..Options::default()
    };
    assert_eq!(run(r#"_["tltb"]"#, options, input(ROWS)).1, "");
}

#[test]
fn a_query_names_the_constant_keys_that_it_reads() {
    let query =
        r#"select(_["a"] && _.dig("b", "c")) >> group_by(_["d"] || _["e"]) { |r| sum(r["f"]) }"#;
    let keys = Query::compile(query, &[], Options::default())
        .expect("a query")
        .keys();
    let keys: Vec<String> = keys.iter().map(|path| path.join(".")).collect();
    assert_eq!(keys, ["a", "b.c", "d", "e", "f"]);
}
