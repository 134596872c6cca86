//! The scanner against the parser on the same lines: any shapes, spacing, escapes, duplicates, orders, broken bytes, and
//! input that ends anywhere.

use super::kernel::Simd;
use super::line::{Line, Scanner};
use super::{Kind, Span};
use crate::parse::{DIGITS_MAX, Keys, Parser, Projection, unescaped};
use crate::value::Value;
use proptest::prelude::*;
use proptest::sample::select;

/// Each line's offset, with the row that the scanner found, or `None` if it leaves the line to the parser.
fn read(
    scanner: &mut Scanner,
    bytes: &[u8],
    projection: &Projection,
) -> Vec<(usize, Option<Value>)> {
    let mut rows = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let next = match scanner.line(bytes, at) {
            Line::Row(end) => {
                let row = row(scanner, bytes, projection);
                let next = if row.is_some() {
                    end
                } else {
                    next_line(bytes, at)
                };
                rows.push((at, row));
                next
            }
            Line::Blank(end) => {
                assert!(blank(&bytes[at..end]), "line at {at}");
                end
            }
            Line::Odd => {
                rows.push((at, None));
                next_line(bytes, at)
            }
        };
        assert_eq!(next, next_line(bytes, at), "line at {at}");
        at = next;
    }
    rows
}

/// The row built from the scanner's fields.
fn row(scanner: &Scanner, bytes: &[u8], projection: &Projection) -> Option<Value> {
    let mut members: Vec<(String, Value)> = Vec::new();
    match projection {
        Projection::Fields(fields) => {
            for ((key, inner), span) in fields.iter().zip(scanner.found()) {
                if let Some(span) = span {
                    members.push((key.clone(), value_at(bytes, *span, inner)?));
                }
            }
        }
        Projection::Whole => {
            let (plan, _) = scanner.plan()?;
            for (at, raw) in plan.keys().enumerate() {
                let key = unescaped(raw)?;
                if members.iter().any(|(known, _)| *known == key) {
                    return None;
                }
                let (bytes, span) = match scanner.found()[at] {
                    Some(span) => (bytes, span),
                    None => plan.constant(at),
                };
                members.push((key, value_at(bytes, span, projection)?));
            }
        }
    }
    Some(Value::Object(members))
}

fn value_at(bytes: &[u8], span: Span, projection: &Projection) -> Option<Value> {
    let raw = &bytes[span.start..span.end];
    match span.kind {
        Kind::Digits => assert!(raw.iter().all(u8::is_ascii_digit), "{raw:?}"),
        Kind::Plain => {
            let text = &raw[1..raw.len() - 1];
            let is_plain = |byte: &u8| byte.is_ascii() && !matches!(byte, b'"' | b'\\' | 0..0x20);
            assert!(text.iter().all(is_plain), "{raw:?}");
        }
        Kind::Number | Kind::Text | Kind::Other => {}
    }
    Parser::new(raw, &mut Keys::default()).only(projection).ok()
}

fn next_line(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at..].iter().position(|byte| *byte == b'\n');
    length.map_or(bytes.len(), |length| at + length + 1)
}

fn blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// Each field as a query reads it.
fn shown(row: &Value, projection: &Projection) -> String {
    match (row, projection) {
        (Value::Object(_), Projection::Fields(fields)) => {
            let fields = fields.iter().map(|(key, inner)| {
                let value = row.get(key).map(|value| shown(value, inner));
                format!("{key}={value:?}")
            });
            fields.collect::<Vec<_>>().join(" ")
        }
        (other, _) => other.to_string(),
    }
}

/// Every kernel must read every line as the parser does.
fn check(bytes: &[u8], projection: &Projection) {
    let patient = Simd::all().map(|simd| (simd, Scanner::with(simd, projection)));
    let hasty = Simd::all().map(|simd| (simd, Scanner::with(simd, projection).without_retries()));
    for (simd, mut scanner) in patient.chain(hasty) {
        for (at, row) in read(&mut scanner, bytes, projection) {
            let line = &bytes[at..next_line(bytes, at)];
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let text = String::from_utf8_lossy(line);
            let expected: Result<Value, _> =
                Parser::new(line, &mut Keys::default()).only(projection);
            match (row, expected) {
                (Some(row), Ok(expected)) => assert_eq!(
                    shown(&row, projection),
                    shown(&expected, projection),
                    "{simd:?}: {text}"
                ),
                (Some(row), Err(wrong)) => panic!("{simd:?}: {text} is {wrong:?}, not {row:?}"),
                (None, Ok(expected)) => {
                    let is_row =
                        matches!(&expected, Value::Object(_)) && expected.to_string() != "{}";
                    let object = text.trim_start().starts_with("{\"");
                    let known = is_row && object && *projection != Projection::Whole;
                    assert!(!known, "{simd:?} leaves {text} to the parser");
                }
                (None, Err(_)) => {}
            }
        }
    }
}

fn fields(keys: &[&str]) -> Projection {
    let fields = keys.iter().map(|key| match key.split_once('/') {
        Some((key, inner)) => ((*key).to_owned(), fields(&[inner])),
        None => ((*key).to_owned(), Projection::Whole),
    });
    Projection::Fields(fields.collect())
}

fn projections() -> Vec<Projection> {
    vec![
        fields(&[]),
        fields(&["a"]),
        fields(&["b/x", "key-of-more-than-thirty-two-bytes-in-all", "é"]),
        fields(&["c", "a", "b"]),
        Projection::Whole,
    ]
}

fn scalar() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        4 => (0..2000u64).prop_map(|it| it.to_string()),
        1 => any::<i64>().prop_map(|it| it.to_string()),
        1 => "[1-9][0-9]{17,40}",
        1 => any::<f64>().prop_filter("finite", |it| it.is_finite()).prop_map(|it| format!("{it:?}")),
        1 => "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        1 => select(vec!["-0", "0", "-0.0", "1e400", "0e0", "01", "1.", "-", "+1", ".5", "1e"])
            .prop_map(str::to_owned),
    ];
    let escape = select(vec![
        "\\n",
        "\\\"",
        "\\\\",
        "\\/",
        "\\u00e9",
        "\\ud83d\\ude00",
        "é",
        "日本",
        "\u{7f}",
        "\u{2028}",
        "\\u0000",
        "\\ud800",
        "\\udc00",
        "\\x",
        "\\u12g4",
        "\t",
    ]);
    let text = prop_oneof![
        3 => "[ -!#-\\[\\]-~]{0,12}",
        1 => "[ -!#-\\[\\]-~]{28,70}",
        1 => ("[a-z]{0,40}", escape, "[a-z]{0,40}").prop_map(|(a, b, c)| format!("{a}{b}{c}")),
    ];
    prop_oneof![
        4 => number,
        3 => text.prop_map(|it| format!("\"{it}\"")),
        1 => select(vec!["true", "false", "null", "nul", "True", "{}", "[]"]).prop_map(str::to_owned),
    ]
}

fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3)
                .prop_map(|list| format!("[{}]", list.join(", "))),
            proptest::collection::vec((select(vec!["x", "y", "a"]), inner), 0..3).prop_map(
                |pairs| {
                    let pairs: Vec<String> = pairs
                        .iter()
                        .map(|(key, value)| format!("\"{key}\":{value}"))
                        .collect();
                    format!("{{{}}}", pairs.join(","))
                }
            ),
        ]
    })
}

const KEYS: [&str; 9] = [
    "a",
    "b",
    "c",
    "é",
    "\\u0061",
    "key-of-more-than-thirty-two-bytes-in-all",
    "d",
    "",
    "a\\n",
];

#[derive(Clone, Debug)]
struct Shape {
    keys: Vec<&'static str>,
    values: Vec<String>,
    colon: &'static str,
    comma: &'static str,
    end: &'static str,
}

fn shape() -> impl Strategy<Value = Shape> {
    (
        proptest::collection::vec((select(KEYS.to_vec()), value()), 1..9),
        select(vec![":", ": ", " :\t"]),
        select(vec![",", ", ", " ,"]),
        select(vec![
            "}\n", "}\n", "}\n", "} \n", "}\r\n", "}\n\n", "}}\n", "]\n",
        ]),
    )
        .prop_map(|(pairs, colon, comma, end)| {
            let (keys, values) = pairs.into_iter().unzip();
            Shape {
                keys,
                values,
                colon,
                comma,
                end,
            }
        })
}

/// Changes to a line: another value, a member removed, two swapped, one added.
#[derive(Clone, Debug)]
enum Change {
    Value(usize, String),
    Drop(usize),
    Swap(usize),
    Twice(usize, String),
    Byte(usize, u8),
    Cut(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (0..9usize, value()).prop_map(|(at, value)| Change::Value(at, value)),
        2 => (0..9usize).prop_map(Change::Drop),
        1 => (0..9usize).prop_map(Change::Swap),
        1 => (0..9usize, value()).prop_map(|(at, value)| Change::Twice(at, value)),
        1 => (0..200usize, any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        1 => (0..200usize).prop_map(Change::Cut),
    ]
}

fn line(shape: &Shape, changes: &[Change]) -> Vec<u8> {
    let keys = shape.keys.iter().copied();
    let mut pairs: Vec<(&str, String)> = keys.zip(shape.values.iter().cloned()).collect();
    for change in changes {
        let count = pairs.len().max(1);
        match change {
            Change::Value(at, value) => {
                if let Some(pair) = pairs.get_mut(at % count) {
                    pair.1.clone_from(value);
                }
            }
            Change::Drop(at) if *at < pairs.len() => {
                pairs.remove(*at);
            }
            Change::Swap(at) if at + 1 < pairs.len() => pairs.swap(*at, at + 1),
            Change::Twice(at, value) if *at < pairs.len() => {
                pairs.push((pairs[*at].0, value.clone()));
            }
            _ => {}
        }
    }
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(key, value)| format!("\"{key}\"{}{value}", shape.colon))
        .collect();
    let mut line = format!("{{{}{}", pairs.join(shape.comma), shape.end).into_bytes();
    for change in changes {
        match change {
            Change::Byte(at, byte) if *at < line.len() => line[*at] = *byte,
            Change::Cut(at) if *at < line.len() => line.truncate(*at),
            _ => {}
        }
    }
    line
}

fn lines() -> impl Strategy<Value = Vec<u8>> {
    let rows = proptest::collection::vec(
        (
            any::<prop::sample::Index>(),
            proptest::collection::vec(change(), 0..3),
        ),
        1..30,
    );
    (proptest::collection::vec(shape(), 1..4), rows, 0..3usize).prop_map(|(shapes, rows, short)| {
        let mut bytes: Vec<u8> = rows
            .iter()
            .flat_map(|(at, changes)| line(at.get(&shapes), changes))
            .collect();
        bytes.truncate(bytes.len().saturating_sub(short));
        bytes
    })
}

#[test]
fn numbers_of_any_length_before_any_byte_match_the_parser() {
    for length in (1..40).step_by(if cfg!(miri) { 13 } else { 1 }) {
        // Two lines from which the place is learned.
        let mut lines = b"{\"a\":1,\"b\":2}\n{\"a\":34,\"b\":2}\n".to_vec();
        for end in (0..=u8::MAX).filter(|byte| *byte != b'\n') {
            for first in [b'0', b'7'] {
                lines.extend(b"{\"a\":");
                lines.push(first);
                lines.extend(&b"1234567890".repeat(4)[1..length]);
                lines.push(end);
                lines.extend(b",\"b\":2}\n");
            }
            lines.extend(b"{\"a\":");
            lines.extend(&b"1234567890".repeat(4)[..length]);
            lines.extend(b",\"b\":2}\n");
        }
        for projection in projections() {
            check(&lines, &projection);
        }
    }
}

#[test]
fn numbers_of_most_digits_match_the_parser() {
    let digits = "7".repeat(DIGITS_MAX);
    for value in [
        digits.clone(),
        format!("-{digits}"),
        format!("{digits}7"),
        format!("-{digits}7"),
        format!("{digits}.57e1"),
        format!("{digits}7.5"),
    ] {
        let lines = format!("{{\"a\":1,\"b\":2}}\n{{\"a\":{value},\"b\":2}}\n");
        for projection in projections() {
            check(lines.as_bytes(), &projection);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 8 } else { 2000 },
        ..ProptestConfig::default()
    })]

    #[test]
    fn scanned_lines_match_the_parser(bytes in lines(), at in 0..5usize) {
        check(&bytes, &projections()[at]);
    }

    #[test]
    fn scanning_arbitrary_bytes_matches_the_parser(
        bytes in proptest::collection::vec(select(b"{}[]\",:\\\n \tabu0159e.-+tn".to_vec()), 0..80),
        at in 0..5usize,
    ) {
        check(&bytes, &projections()[at]);
    }
}

#[test]
fn truncated_input_matches_the_parser() {
    let row = |number: u64| {
        format!(
            "{{\"a\":{number},\"b\":{{\"x\":[1,{number}]}},\"c\":\"text {number}\",\"key-of-more-than-thirty-two-bytes-in-all\"\
             :-{number}.5e1,\"d\":\"\\u00e9\\n{number}\",\"é\":true,\"f\":null}}\n"
        )
    };
    let lines: String = (95..105).map(row).collect();
    let first = lines.len() - 2 * row(104).len();
    for projection in projections() {
        for end in first..=lines.len() {
            check(&lines.as_bytes()[..end], &projection);
        }
    }
}

#[test]
fn the_nesting_limit_matches_the_parser() {
    for depth in [98, 99, 100, 101] {
        for (open, close) in [("[", "]"), ("{\"x\":", "}")] {
            let inner = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let lines = format!("{{\"a\":1,\"z\":{inner}}}\n").repeat(3);
            for projection in projections() {
                check(lines.as_bytes(), &projection);
            }
        }
    }
}
