//! Compares output printed from lines with output printed from their values.

use super::*;
use proptest::prelude::*;
use proptest::sample::select;

/// Whether the line was printed without being parsed, in which case it must be what parsing gives.
fn check(line: &str) -> bool {
    let parsed: Result<Value, _> =
        Parser::new(line.trim_end_matches('\n').as_bytes(), &mut Keys::default())
            .only(&Projection::Whole);
    let mut done = false;
    for simd in Simd::all() {
        let mut out = String::from("before\n");
        done = Reprinter::with(simd).print(line.as_bytes(), &mut out);
        if !done {
            assert_eq!(out, "before\n");
            continue;
        }
        let mut expected = String::from("before\n");
        let value = parsed.as_ref().expect("what is printed is JSON");
        assert!(matches!(value, Value::Object(_)), "{line}");
        assert!(value.write(&mut expected), "{line}");
        expected.push('\n');
        assert_eq!(out, expected, "{simd:?}: {line}");
    }
    done
}

#[test]
fn unusual_forms_are_normalized() {
    for line in [
        "{\"a\":1,\"b\":\"x\"}\n",
        "{\"a\": 1, \"b\":\t[1, {\"c\": 1.50}]}\r\n",
        " { \"a\" :1 ,\"b\" : \"x\" , \"c\": {} } \n",
        "{\"a\":-0,\"b\":-0.0,\"c\":1e2,\"d\":0.10,\"e\":-12,\"f\":123456789012345678901234567890}",
        "{\"a\":\"\\u00e9\\/\\n\",\"b\":\"é\",\"c\":true,\"d\":null,\"e\":false,\"é\":{}}\n",
    ] {
        assert!(check(line), "{line}");
    }
}

#[test]
fn lines_that_need_the_parser_are_not_reprinted() {
    for line in [
        "{}\n",
        "[1]\n",
        "{\"a\":1,\"b\":2,\"a\":3}\n",
        "{\"a\":1,\"\\u0061\":3}\n",
        "{\"a\":1e400}\n",
        "{\"a\":1\n",
        "{\"a\":01}\n",
        "{\"a\":1} 2\n",
    ] {
        assert!(!check(line), "{line}");
    }
}

#[test]
fn a_row_may_have_more_keys_than_are_kept() {
    for (count, done) in [(KEYS_MAX, true), (KEYS_MAX + 1, false)] {
        let keys = (0..count).map(|at| format!("\"{at}\":{at}"));
        let line = format!("{{{}}}\n", keys.collect::<Vec<_>>().join(","));
        assert_eq!(check(&line), done, "{count} keys");
    }
}

proptest! {
    #[test]
    fn reprinted_rows_equal_printed_values(
        pairs in proptest::collection::vec((
            select(vec!["a", "b", "c", "d", "é", "\\n", "num-packets.sent", "num-packets.lost"]),
            prop_oneof![
                2 => "[0-9]|[1-9][0-9]{1,30}|-[0-9]",
                1 => "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
                1 => "\"([a-z:,]|\\\\[\"/nt]|é){0,40}\"",
                1 => select(vec!["true", "null", "[]", "{ }", "[1 ,2]", "{\"a\" :1}", "01"])
                    .prop_map(str::to_owned),
            ],
        ), 1..6),
        blank in select(vec!["", "", " ", "\t"]),
        end in select(vec!["", "\n", " \n"]),
    ) {
        let pairs = pairs.iter().map(|(key, value)| format!("\"{key}\":{blank}{value}"));
        let pairs = pairs.collect::<Vec<_>>().join(&format!(",{blank}"));
        check(&format!("{{{pairs}}}{end}"));
    }
}
