//! `first`, `last`, `mode`, `corr` and `bucket`: answers, and a naive model of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use lastbyte_query::{Format, Input, Options, Query};
use proptest::prelude::*;

#[path = "common/run.rs"]
mod run;

use run::run;

#[test]
fn answers() {
    let rows = "{\"a\":null,\"b\":1,\"t\":\"2000-10-10 13:58:36 -0700\"}\n\
                {\"a\":\"x\",\"b\":2,\"t\":\"2000-10-10T20:59:59.900Z\"}\n\
                {\"a\":\"y\",\"b\":3,\"t\":null}\n\
                {\"a\":\"y\",\"b\":4,\"t\":\"2000-10-10T21:00:00Z\"}\n";
    for (query, answer) in [
        (
            "[first(_[\"a\"]), last(_[\"a\"]), mode(_[\"a\"])]",
            "[\"x\",\"y\",\"y\"]\n",
        ),
        ("first(nil)", "null\n"),
        // Of equal counts, the value that appeared first.
        ("mode(_[\"b\"])", "1\n"),
        ("mode({a: _[\"a\"]})", "{\"a\":\"y\"}\n"),
        ("corr(_[\"b\"], 10 - 3 * _[\"b\"]) >> _.round(9)", "-1.0\n"),
        ("corr(_[\"b\"], 1)", "null\n"),
        (
            "limit(1) >> [bucket(_[\"b\"] * 7, 5), bucket(_[\"b\"] * -7, 5), bucket(_[\"b\"] * 0.37, 0.1), bucket(_[\"a\"], 5)]",
            "[5,-10,0.3,null]\n",
        ),
        (
            "limit(1) >> [bucket(_[\"b\"] * 61000, \"1m\"), bucket(_[\"b\"] * 61500.5, \"30s\"), bucket(_[\"b\"] * 3599999, \"1h\")]",
            "[60000,60000,0]\n",
        ),
        (
            "limit(1) >> bucket(Time.at(_[\"b\"] * 90061).utc, \"1d\")",
            "\"1970-01-02 00:00:00 UTC\"\n",
        ),
        (
            "group_by(bucket(_[\"t\"], \"5m\")) { count() }",
            "{\"2000-10-10T20:55:00Z\":2,\"\":1,\"2000-10-10T21:00:00Z\":1}\n",
        ),
        (
            "limit(1) >> bucket(_[\"t\"], \"250ms\")",
            "\"2000-10-10T20:58:36.000Z\"\n",
        ),
    ] {
        assert_eq!(
            run(query, rows, Options::default()),
            (answer.to_owned(), String::new()),
            "{query}"
        );
    }
}

#[test]
fn wrong_arguments_are_errors() {
    for (query, wrong) in [
        (
            "first(3)",
            "`first(3)` is the same in all rows (expected a value of the row; for rows: `limit(3)`)",
        ),
        (
            "corr(_[\"a\"])",
            "`corr` with 1 argument (expected `corr(x, y)`)",
        ),
        (
            "bucket(5, _[\"a\"])",
            "wrong arguments of `bucket` (expected `bucket(e, width)`, with the same width for all rows)",
        ),
        ("mode()", "`mode` with 0 arguments (expected `mode(e)`)"),
        (
            "last(_[\"a\"], by: 1)",
            "`last` has no keyword `by:`; write `top(1, key)`",
        ),
    ] {
        let refused = Query::compile(query, &[], Options::default()).unwrap_err();
        assert!(refused.to_string().contains(wrong), "{query}: {refused}");
    }
    for (query, wrong) in [
        (
            "bucket(_[\"a\"], \"5x\")",
            "bucket expects a positive width, as in 100, \"5m\" or \"1h\" (ms, s, m, h, d): \"5x\" (ArgumentError)",
        ),
        ("bucket(_[\"a\"], 0)", "bucket expects a positive width"),
        (
            "bucket(_[\"a\"], \"99999999999999999999d\")",
            "bucket expects a positive width",
        ),
        ("corr(_[\"a\"], \"x\")", "no implicit conversion"),
    ] {
        let (_, errors) = run(query, "{\"a\":1}\n", Options::default());
        assert!(errors.contains(wrong), "{query}: {errors}");
    }
}

/// Keys and numbers.
fn rows() -> impl Strategy<Value = Vec<(u8, Option<i32>, i32)>> {
    proptest::collection::vec((0..4_u8, proptest::option::of(-3..4), -9..9), 0..120)
}

fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let (x, y) = (mean(|it| it.0), mean(|it| it.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    let (xx, yy) = (sum(&|it| (it.0 - x).powi(2)), sum(&|it| (it.1 - y).powi(2)));
    (xx > 1e-9 && yy > 1e-9).then(|| sum(&|it| (it.0 - x) * (it.1 - y)) / (xx * yy).sqrt())
}

#[test]
fn an_error_of_percentiles_is_a_number_in_bounds() {
    for (error, shown) in [("0.00001", "1.0e-05"), ("0.6", "0.6"), ("\"x\"", "\"x\"")] {
        let query = format!("percentile(_, 0.5, error: {error})");
        let (out, errors) = run(&query, "1\n", Options::default());
        assert_eq!(out, "", "{query}");
        let expected = format!("error: {shown} (expected 0.0001 to 0.5)");
        assert!(errors.contains(&expected), "{query}: {errors}");
    }
}

/// Numbers of all orders of magnitude, also such that no float is smaller or greater.
fn number() -> impl Strategy<Value = f64> {
    let scaled =
        (-1000_i32..1000, -300_i32..300).prop_map(|(it, scale)| f64::from(it) * 10_f64.powi(scale));
    prop_oneof![scaled, Just(5e-324), Just(-f64::MAX), Just(0.0), 0.9..1.1]
}

proptest! {
    #[test]
    fn percentiles_within_an_error_differ_by_no_more(
        numbers in proptest::collection::vec(number(), 1..200),
        error in prop_oneof![Just(0.0001), Just(0.5), 0.001..0.1],
        threads in 1..4_usize,
    ) {
        let rows: Vec<String> = numbers.iter().map(|it| format!("[{it:?}]\n")).collect();
        let rows = rows.concat();
        let shares = "[0, 0.01, 0.5, 0.9, 0.999, 1]";
        let list = |query: &str, threads| {
            let options = Options { threads, chunk_bytes: 100, ..Options::default() };
            let (out, errors) = run(query, &rows, options);
            assert_eq!(errors, "", "{query}");
            let numbers = out.trim().trim_matches(['[', ']']).split(',').map(|it| it.parse::<f64>().unwrap());
            numbers.collect::<Vec<_>>()
        };
        let exact = list(&format!("percentile(_[0], {shares})"), 1);
        let close = list(&format!("percentile(_[0], {shares}, error: {error:?})"), threads);
        prop_assert_eq!(exact.len(), close.len());
        for (exact, close) in exact.iter().zip(&close) {
            prop_assert!((close - exact).abs() <= exact.abs() * error * (1.0 + 1e-9) + 5e-324, "{close} for {exact}, {error}");
        }
    }
}

/// The least value up to which the values have a share of all weights.
fn weighted(rows: &[(i32, u16)], share: f64) -> Option<i32> {
    let mut sorted: Vec<(i32, u16)> = rows.iter().copied().filter(|row| row.1 > 0).collect();
    sorted.sort_unstable();
    let total: f64 = sorted.iter().map(|row| f64::from(row.1)).sum();
    let reached = |value: i32| {
        let up_to = sorted.iter().filter(|row| row.0 <= value);
        up_to.map(|row| f64::from(row.1)).sum::<f64>() >= share * total
    };
    sorted.iter().map(|row| row.0).find(|value| reached(*value))
}

#[test]
fn weights_are_numbers_that_are_not_negative() {
    let query = "percentile(_[0], 0.5, weight: _[1])";
    for (rows, expected) in [
        ("[1,null]\n[2,1]\n[null,9]\n", "2\n"),
        ("[1,0]\n[2,0.0]\n", "null\n"),
        ("[\"b\",1]\n[\"a\",0.5]\n", "\"b\"\n"),
        ("[1,100000000000000000000]\n[0,1]\n", "1\n"),
    ] {
        assert_eq!(
            run(query, rows, Options::default()),
            (expected.to_owned(), String::new())
        );
    }
    for weight in ["-1", "-0.5", "\"1\"", "[1]", "true"] {
        let errors = run(query, &format!("[1,{weight}]\n"), Options::default()).1;
        let expected = "percentile expects a weight that is a number of at least 0: ";
        assert!(errors.contains(expected), "{weight}: {errors}");
    }
    let query = "percentile(_, 0.5, weight: 1 / 0.0)";
    let errors = run(query, "1\n", Options::default()).1;
    assert!(errors.contains("of at least 0: Infinity"), "{errors}");
    let both = "percentile(_, 0.5, weight: 1, error: 0.1)";
    let errors = run(both, "1\n", Options::default()).1;
    assert!(
        errors.contains("error: and weight: cannot be combined"),
        "{errors}"
    );
}

/// 0.1 has no exact binary form, so that its sums are rounded.
#[test]
fn equal_weights_give_the_percentiles_of_values_without_weights() {
    for len in [1, 2, 20, 100, 1000] {
        let rows: Vec<String> = (1..=len).map(|value: u16| value.to_string()).collect();
        let rows = rows.join("\n");
        let shares: Vec<f64> = (0..=8).map(|part| f64::from(part) / 8.0).collect();
        let plain = run(
            &format!("percentile(_, {shares:?})"),
            &rows,
            Options::default(),
        );
        for weight in [0.1, 0.3, 0.7, 3.0] {
            let query = format!("percentile(_, {shares:?}, weight: {weight})");
            assert_eq!(
                run(&query, &rows, Options::default()),
                plain,
                "{len} {weight}"
            );
        }
    }
}

proptest! {
    #[test]
    fn weighted_percentiles_agree_with_a_naive_model_on_threads_and_in_parts(
        rows in proptest::collection::vec((-9..9_i32, 0..5_u16), 1..80),
        float in any::<bool>(),
        cut in 0..80_usize,
    ) {
        let tail = if float { ".0" } else { "" };
        let lines: Vec<String> = rows.iter().map(|(value, weight)| format!("[{value},{weight}{tail}]\n")).collect();
        let shares = [0.0, 0.1, 0.25, 0.5, 0.9, 1.0];
        let query = format!("percentile(_[0], {shares:?}, weight: _[1])");
        let expected: Vec<Option<i32>> = shares.iter().map(|share| weighted(&rows, *share)).collect();
        let expected = format!("{}\n", serde_json::to_string(&expected).unwrap());
        for threads in [1, 3] {
            let options = Options { threads, chunk_bytes: 40, ..Options::default() };
            prop_assert_eq!(&run(&query, &lines.concat(), options), &(expected.clone(), String::new()));
        }
        let compiled = Query::compile(&query, &[], Options::default()).unwrap();
        let (first, rest) = lines.split_at(cut.min(lines.len()));
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        let states = [first, rest].map(|part| {
            let mut state = Vec::new();
            let input = Input::from_bytes("part", part.concat().into_bytes());
            assert!(compiled.partial(vec![input], &mut state, &mut errors));
            Input::from_bytes("state", state)
        });
        prop_assert!(compiled.merge(states.into(), &mut out, &mut errors));
        prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reducers_agree_with_a_naive_model(rows in rows()) {
        let lines = rows.iter().map(|(key, a, b)| {
            let a = a.map_or("null".to_owned(), |a| a.to_string());
            format!("{{\"k\":{key},\"a\":{a},\"b\":{b}}}\n")
        });
        let text = lines.collect::<Vec<_>>().concat();
        let query = "group_by(_[\"k\"]) { |r| [first(r[\"a\"]), last(r[\"a\"]), mode(r[\"a\"]), corr(r[\"a\"], r[\"b\"])] }";
        let (out, errors) = run(query, &text, Options::default());
        prop_assert_eq!(&errors, "");
        for threads in [2, 3] {
            let options = Options { threads, chunk_bytes: 100, ..Options::default() };
            prop_assert_eq!(&run(query, &text, options).0, &out);
        }
        let Ok(found) = serde_json::from_str::<serde_json::Value>(&out) else {
            prop_assert!(rows.is_empty());
            return Ok(());
        };
        for key in 0..4_u8 {
            let own: Vec<_> = rows.iter().filter(|row| row.0 == key).collect();
            if own.is_empty() {
                continue;
            }
            let values: Vec<i32> = own.iter().filter_map(|row| row.1).collect();
            let count = |value: &i32| values.iter().filter(|it| *it == value).count();
            let mode = values.iter().rev().max_by_key(|value| (count(value), values.len() - values.iter().position(|it| it == *value).unwrap()));
            let group = &found[key.to_string()];
            prop_assert_eq!(group[0].as_i64(), values.first().map(|it| i64::from(*it)));
            prop_assert_eq!(group[1].as_i64(), values.last().map(|it| i64::from(*it)));
            prop_assert_eq!(group[2].as_i64(), mode.map(|it| i64::from(*it)));
            let pairs: Vec<(f64, f64)> = own.iter().filter_map(|row| Some((f64::from(row.1?), f64::from(row.2)))).collect();
            match (group[3].as_f64(), correlation(&pairs)) {
                (Some(found), Some(known)) => prop_assert!((found - known).abs() < 1e-9),
                (found, known) => prop_assert!(found.is_none() && known.is_none(), "{:?} {:?}", found, known),
            }
        }
    }

    #[test]
    fn tables_printed_by_threads_are_those_of_one(
        rows in proptest::collection::vec((0..3_u8, 0..1000_u32), 0..200),
        query in prop::sample::select(vec![
            "_",
            "[_[\"n\"], _[\"k\"]]",
            "_[\"n\"]",
            "select(_[\"k\"] > 0) >> {n: _[\"n\"]}",
            "_[\"k\"] > 0 ? {n: _[\"n\"]} : [_[\"n\"]]",
            "_[\"n\"] < 900 ? {n: _[\"n\"]} : {n: 1, other: 2}",
        ]),
    ) {
        let lines = rows.iter().map(|(k, n)| format!("{{\"k\":{k},\"n\":{n}}}\n"));
        let text = lines.collect::<Vec<_>>().concat();
        let options = |threads, chunk_bytes| Options { format: Format::Csv, threads, chunk_bytes, ..Options::default() };
        let one = run(query, &text, options(1, 1));
        for (threads, bytes) in [(2, 16), (3, 100)] {
            prop_assert_eq!(&run(query, &text, options(threads, bytes)), &one, "{}", query);
        }
    }
}
