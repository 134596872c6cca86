use super::*;
use lastbyte_query::{Input, Options, Query};
use std::ops::ControlFlow;

const ROWS: &str = "{\"g\":\"a\",\"ttlb\":120}\n{\"g\":\"b\",\"ttlb\":95}\n{\"g\":\"a\",\"ttlb\":310}\n{\"g\":\"a\",\"ttlb\":320}\n";

fn drawn(query: &str) -> Result<String, String> {
    let query = Query::compile(query, &[], Options::default()).expect("a query");
    let mut result = Vec::new();
    let input = Input::from_bytes("rows", ROWS.as_bytes().to_vec());
    let outcome = query.for_each(vec![input], |row| {
        result = row.to_vec();
        ControlFlow::Continue(())
    });
    assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
    draw(&result, query.measure().as_ref(), 40)
}

#[test]
fn a_histogram_has_a_bar_for_each_bucket_also_the_empty_ones() {
    let expected = "\
ttlb, ms  count
       0      1  ███████████▌
     100      1  ███████████▌
     200      0
     300      2  ███████████████████████
                 ├─────────────────────┤
                 0                     2
";
    assert_eq!(
        drawn("histogram(_[\"ttlb\"], 100)").as_deref(),
        Ok(expected)
    );
    let expected = "\
ttlb, ms  count
      64      2  ███████████████████████
     128      0
     256      2  ███████████████████████
                 ├─────────────────────┤
                 0                     2
";
    assert_eq!(drawn("histogram(_[\"ttlb\"])").as_deref(), Ok(expected));
    // Far apart, without a line for each bucket between.
    let text = drawn("histogram(_[\"ttlb\"], 1)").expect("a chart");
    assert_eq!(text.lines().count(), 1 + 4 + 2 + 9 + 2, "{text}");
    assert!(text.contains("\n       ⋮\n"), "{text}");
}

#[test]
fn groups_have_a_bar_for_each_number() {
    let expected = "   ttlb, ms
a       750  ███████████████████████████
b        95  ███▍
             ├─────────────────────────┤
             0                       750
";
    let sums = drawn("group_by(_[\"g\"]) { sum(_[\"ttlb\"]) }");
    assert_eq!(sums.as_deref(), Ok(expected));
    // A group without a value is not 0.
    let known = drawn("group_by(_[\"g\"]) { max(_[\"g\"] == \"a\" ? _[\"ttlb\"] : nil) }");
    let known = known.expect("a chart");
    assert!(
        known.contains("a  320  █") && known.contains("\nb\n"),
        "{known}"
    );
    let negative = drawn("{low: sum(_[\"ttlb\"] * -1), high: sum(_[\"ttlb\"])}").expect("a chart");
    let expected = "\
low   -845  ██████████████
high   845                ██████████████
            ├──────────────────────────┤
            -845                     845
";
    assert_eq!(negative, expected);
}

#[test]
fn percentiles_are_a_curve_with_labelled_axes() {
    let text = drawn("percentile(_[\"ttlb\"], [0.1, 0.5, 0.9])").expect("a chart");
    assert!(text.starts_with("ttlb, ms\n400 ┤"), "{text}");
    // The ends are 95, at the line of 100, and 320, a line above 300.
    assert!(text.contains("\n100 ┤**"), "{text}");
    let above: Vec<&str> = text
        .lines()
        .take_while(|line| !line.starts_with("300"))
        .collect();
    assert!(above.last().expect("a line").ends_with('*'), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 40),
        "{text}"
    );
    let axis = text.lines().last().expect("a line");
    assert!(axis.trim_start().starts_with("10"), "{text}");
    assert!(axis.contains("50 %") && axis.ends_with("90 %"), "{text}");
    // Those of groups have different marks.
    let text = drawn("group_by(_[\"g\"]) { |r| percentile(r[\"ttlb\"], 0.1.step(0.9, 0.1)) }");
    let text = text.expect("a chart");
    assert!(text.ends_with("* a   o b\n"), "{text}");
    // The highest curve ends at its greatest value.
    assert!(text.contains('o') && text.contains('*'), "{text}");
}

#[test]
fn other_results_are_errors_that_say_what_can_be_drawn() {
    for query in [
        "count()",
        "_",
        "group_by(_[\"g\"]) { [count(), \"x\"] }",
        "group_by(_[\"g\"]) { {n: count()} }",
        "group(\"a\")",
    ] {
        let error = drawn(query).expect_err(query);
        assert!(error.contains("expected one result: `histogram"), "{error}");
    }
    let many = drawn(
        "group_by(_[\"ttlb\"]) { [count(), max(_[\"ttlb\"])] } >> 0.step(9).to_h { |k| [k, [1, k]] }",
    );
    assert!(
        many.expect_err("an error")
            .contains("6 curves at most, not 10")
    );
    let many = drawn("count() >> 0.step(300).to_h { |k| [k, 1] }");
    assert!(
        many.expect_err("an error")
            .contains("200 bars at most, not 301")
    );
}

#[test]
fn no_numbers_break_the_drawing() {
    let numbers = [0.0, -0.0, 4e307, -4e307, 5e-324, 1.0, -1.0, 1e-7];
    for width in [0, 1, 10, 80] {
        for a in numbers {
            for b in numbers {
                let list = vec![Value::Float(a), Value::Float(b)];
                assert!(draw(&list, None, width).is_ok(), "{a} {b}");
                let hash = [
                    ("1".to_owned(), list[0].clone()),
                    ("2".to_owned(), list[1].clone()),
                ];
                let hash = [Value::Object(hash.into())];
                for scale in [
                    Scale::Buckets(None),
                    Scale::Buckets(Some(a.abs())),
                    Scale::Values,
                ] {
                    let measure = Measure { key: None, scale };
                    assert!(draw(&hash, Some(&measure), width).is_ok(), "{a} {b}");
                }
            }
        }
    }
}
