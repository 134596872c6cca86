//! A query gives the same whether the reader builds whole rows or only what the plan names.

use lastbyte_query::{Input, Options, Query};
use proptest::prelude::*;
use proptest::sample::select;

/// Helpers of the queries.
const HELPERS: &str = r#"
def is_a(row, n) = row["a"] == n && row["b"] != "x"
def in_range(value, from, to) = value >= from && value < to
def both(row) = is_a(row, 1) || in_range(row["b"], 0, 8)
def unused(row, n, m = 1) = row["a"] == m && row["b"] == n
def endless(row) = endless(row)
"#;

/// What is printed, and the errors, for these rows.
fn answer(query: &str, rows: &str) -> (String, String) {
    let helpers = [("helpers.rb".to_owned(), HELPERS.to_owned())];
    let query = Query::compile(query, &helpers, Options::default())
        .unwrap_or_else(|wrong| panic!("{query}: {wrong}"));
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    query.run(
        vec![Input::from_bytes("rows", rows.as_bytes().to_vec())],
        &mut out,
        &mut errors,
    );
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (text(out), text(errors))
}

/// The same query, made to read whole rows.
fn whole(query: &str) -> String {
    format!("$whole = _; {query}")
}

/// What jrf prints of these, where a plan once left out fields that count, and the keys that are absent.
const ANSWERS: &[(&str, &str, &str, &str)] = &[
    (
        r#"map_values(_["h"]) { |v| sum(v) }"#,
        "{\"h\":{\"x\":1}}\n{\"i\":1,\"j\":2}\n",
        "{\"x\":1,\"i\":1,\"j\":2}\n",
        "",
    ),
    (
        r#"map(_["a"]) { |v| [v, _["j"]] }"#,
        "{\"i\":1,\"j\":2,\"k\":3}\n",
        "[[[\"i\",1],2],[[\"j\",2],2],[[\"k\",3],2]]\n",
        "no row has `a`\n",
    ),
    (r#"_["h"].slice"#, "{\"h\":{\"x\":1}}\n", "{}\n", ""),
    (r#"_["h"]&.values_at"#, "{\"h\":{\"x\":1}}\n", "[]\n", ""),
    (
        r#"_["d"]["p"].fetch_values"#,
        "{\"d\":{\"p\":{}}}\n",
        "[]\n",
        "",
    ),
    (
        r#"group_by(_["g"], &:itself)"#,
        "{\"g\":1,\"b\":2}\n",
        "{\"1\":{\"g\":1,\"b\":2}}\n",
        "",
    ),
];

#[test]
fn needed_fields_are_read() {
    for (query, rows, out, absent) in ANSWERS {
        assert_eq!(
            answer(query, rows),
            ((*out).to_owned(), (*absent).to_owned()),
            "{query}"
        );
    }
}

/// A block without parameters reads what it names, as one with a parameter does.
#[test]
fn a_block_without_parameters_does_not_read_whole_rows() {
    let plan = |query: &str| {
        let options = Options {
            verbose: true,
            ..Options::default()
        };
        let query = Query::compile(query, &[], options).expect("it is a query");
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        query.run(Vec::new(), &mut out, &mut errors);
        let errors = String::from_utf8(errors).expect("UTF-8");
        let plan = errors.lines().find(|line| line.starts_with("plan: "));
        plan.expect("a plan").to_owned()
    };
    assert_eq!(
        plan(r#"group_by(_["site"]) { sum(_["bytes"]) }"#),
        r#"plan: reads _["site"], _["bytes"]"#
    );
    assert_eq!(
        plan(r#"group_by(_["site"]) { [count(), percentile(_["n"]["sent"], 0.5)] }"#),
        r#"plan: reads _["site"], _["n"]["sent"]"#
    );
    assert_eq!(
        plan(r#"group_by(_["site"]) { group }"#),
        "plan: reads whole rows"
    );
    assert_eq!(
        plan(r#"map_values(_["n"] || {}) { |v| sum(v) }"#),
        r#"plan: reads _["n"]"#
    );
}

/// Something that is read of the row, of a block's parameter `r` or of an element `v`.
fn read(of: &'static str) -> impl Strategy<Value = String> {
    let field = select(vec![
        r#"["a"]"#,
        r#"["h"]"#,
        r#"["h"]["x"]"#,
        r#"["l"]"#,
        r#".dig("h", "x")"#,
        r#".fetch("a", 0)"#,
        r#".fetch("h")"#,
        r#".key?("h")"#,
        r#".values_at("a", "h")"#,
        r#".slice("a")"#,
        ".slice",
        ".values_at",
    ]);
    let field = prop_oneof![30 => field, 1 => Just("")];
    let then = select(vec![
        ".slice",
        "&.slice",
        ".values_at",
        ".fetch_values",
        r#".slice("x")"#,
        r#".key?("x")"#,
        r#".include?("x")"#,
        r#"&.dig("x")"#,
        r#".fetch("x", 3)"#,
        ".to_s",
        ".to_a",
        ".nil?",
        " || {}",
        " || []",
        r#".then { |q| q["x"] }"#,
    ]);
    let then = prop_oneof![Just(""), then];
    (field, then).prop_map(move |(field, then)| format!("({of}{field}{then})"))
}

fn query() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![read("_"), read("_"), Just("1".to_owned())];
    let row = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
            (inner.clone(), read("v")).prop_map(|(a, b)| format!("map({a}) {{ |v| {b} }}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("map({a}) {{ {b} }}")),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("map_values({a}) {{ |v| [v, {b}] }}")),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("apply({a}) {{ |v| [v, {b}] }}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} ? {b} : nil)")),
            inner.clone().prop_map(|a| format!("->(r) {{ {a} }}.(_)")),
            inner.clone().prop_map(|a| format!("(x = {a}; x)")),
            inner.prop_map(|a| format!("\"#{{{a}}}\"")),
        ]
    });
    let reduced = prop_oneof![
        row.clone().prop_map(|a| format!("group({a})")),
        row.clone().prop_map(|a| format!("count({a})")),
        read("r").prop_map(|a| format!("[count(), group({a})]")),
        Just("group".to_owned()),
    ];
    let stage = prop_oneof![
        row.clone(),
        row.clone().prop_map(|a| format!("select({a})")),
        row.clone().prop_map(|a| format!("select({a}) >> _[\"a\"]")),
        row.clone().prop_map(|a| format!("group({a})")),
        row.clone().prop_map(|a| format!("sort({a}.to_s)")),
        (row.clone(), row.clone()).prop_map(|(a, b)| format!("group_by({a}) {{ group({b}) }}")),
        (row.clone(), reduced.clone()).prop_map(|(a, b)| format!("group_by({a}) {{ |r| {b} }}")),
        (row.clone(), select(vec!["itself", "to_s", "keys"]))
            .prop_map(|(a, b)| format!("group_by({a}, &:{b})")),
        (row.clone(), reduced.clone()).prop_map(|(a, b)| format!("map({a}) {{ |r| {b} }}")),
        (row.clone(), reduced).prop_map(|(a, b)| format!("map_values({a}) {{ |r| {b} }}")),
        read("r").prop_map(|a| format!("reduce([]) {{ |all, r| all + [{a}] }}")),
        row.prop_map(|a| format!("reduce([]) {{ |all, r| [all.length, {a}] }}")),
    ];
    (stage, select(vec!["", " >> _", " >> [_, 1]"])).prop_map(|(a, b)| a + b)
}

const ROWS: &[&str] = &[
    r#"{"a":1,"h":{"x":2,"y":3},"l":[1,{"x":5}]}"#,
    r#"{"h":{"x":{"x":1}},"k":0}"#,
    r#"{"a":null,"h":null,"l":null,"z":[1]}"#,
    r#"{"z":"only","y":{"x":1}}"#,
    r#"{"a":"x","h":"text with x","l":"x"}"#,
    r#"{"h":["x",1],"a":[["x",2]],"b":true}"#,
    r#"{"l":{"x":1,"q":2},"a":{}}"#,
    r#"["x",1]"#,
    r#""x""#,
    "{}",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]
    #[test]
    fn plans_do_not_change_results(
        query in query(),
        rows in prop::collection::vec(select(ROWS), 1..5),
    ) {
        let rows = rows.join("\n") + "\n";
        prop_assert_eq!(answer(&query, &rows), answer(&whole(&query), &rows), "{} of {}", query, rows);
    }
}

/// A condition that a line may decide.
fn condition() -> impl Strategy<Value = String> {
    let field = || select(vec![r#"_["a"]"#, r#"_["b"]"#, r#"_["c"]"#]);
    let operand = || {
        prop_oneof![
            4 => field().prop_map(str::to_owned),
            1 => field().prop_map(|field| format!("{field}.to_i")),
            4 => select(vec![
                "0",
                "1",
                "7",
                "-1",
                "123456789012345678",
                "1234567890123456789",
                "nil",
                "1.0",
                "\"x\"",
                "\"\"",
                "\"é\"",
            ])
            .prop_map(str::to_owned),
        ]
    };
    let operator = select(vec!["<", "<=", ">", ">=", "==", "==", "!=", "+"]);
    let leaf = prop_oneof![
        6 => (operand(), operator, operand()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
        1 => field().prop_map(str::to_owned),
        1 => operand().prop_map(|value| format!("is_a(_, {value})")),
        1 => (operand(), operand()).prop_map(|(a, b)| format!("in_range(_[\"a\"], {a}, {b})")),
        1 => Just("both(_)".to_owned()),
        1 => operand().prop_map(|value| format!("unused(_, {value})")),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
            inner.prop_map(|a| format!("!{a}")),
        ]
    })
}

/// A row with any of three fields.
fn row() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        3 => select(vec!["0", "1", "7", "8"]),
        1 => select(vec![
            "-1",
            "1.0",
            "1e3",
            "123456789012345678",
            "1234567890123456789",
            "12345678901234567890",
            r#""x""#,
            r#""""#,
            r#""\u0078""#,
            r#""é""#,
            "null",
            "true",
            "false",
            "[1]",
            r#"{"x":1}"#,
        ]),
    ];
    prop::collection::vec((select(vec!["a", "b", "c"]), value), 0..5).prop_map(|fields| {
        let fields: Vec<String> = fields
            .iter()
            .map(|(key, value)| format!("\"{key}\":{value}"))
            .collect();
        format!("{{{}}}", fields.join(","))
    })
}

#[test]
fn a_condition_that_calls_itself_ends() {
    let (out, errors) = answer("select(endless(_)) >> count()", "{\"a\":1}\n");
    assert_eq!(out, "");
    assert!(errors.contains("stack level too deep"), "{errors}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]
    #[test]
    fn conditions_decided_from_lines_do_not_change_results(
        condition in condition(),
        then in select(vec!["", " >> _[\"a\"]", " >> count()", " >> select(_[\"b\"])", " >> limit(1)"]),
        rows in prop::collection::vec(row(), 1..12),
    ) {
        let query = format!("select({condition}){then}");
        let rows = rows.join("\n") + "\n";
        prop_assert_eq!(answer(&query, &rows), answer(&whole(&query), &rows), "{} of {}", query, rows);
    }
}
