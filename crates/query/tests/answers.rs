//! Queries with the answers that jrf gives.

use lastbyte_query::{Input, Options, Query};

/// A query, its rows, what is printed, and what is told (empty: nothing).
const ANSWERS: &[(&str, &str, &str, &str)] = &[
    // After an error in a row, a reducer's value is what the rows before it made.
    (
        r#"reduce(0) { |a, v| a + v["a"] }"#,
        "{\"a\":1}\n{\"a\":2}\n{\"b\":3}\n",
        "3\n",
        "nil can't be coerced into Integer (TypeError) at rows:3, stage 0\n",
    ),
    (
        r#"[sum(_["a"]), reduce([]) { |all, v| all + [v["a"] + 1] }]"#,
        "{\"a\":1}\n{\"a\":2}\n{\"b\":3}\n",
        "[3,[2,3]]\n",
        "undefined method '+' for nil (NoMethodError) at rows:3, stage 0\n",
    ),
    (
        r#"group_by(_["g"]) { |r| group(r["a"] + 1) }"#,
        "{\"g\":1,\"a\":1}\n{\"g\":2}\n",
        "{\"1\":[2],\"2\":null}\n",
        "undefined method '+' for nil (NoMethodError) at rows:2, stage 0\n",
    ),
    // The keys of groups are what Ruby prints of Arrays.
    (
        r#"group_by([_["a"]]) { count() }"#,
        "{\"a\":\"\\u0001\\u007f\\u200b\\ufff0\"}\n",
        "{\"[\\\"\\\\u0001\\\\u007F\u{200b}\\\\uFFF0\\\"]\":1}\n",
        "",
    ),
];

#[test]
fn answers_are_those_of_jrf() {
    for (query, rows, out, told) in ANSWERS {
        for threads in [1, 3] {
            let options = Options {
                threads,
                chunk_bytes: 8,
                ..Options::default()
            };
            let compiled = Query::compile(query, &[], options).expect("it is a query");
            let (mut printed, mut errors) = (Vec::new(), Vec::new());
            let rows = Input::from_bytes("rows", rows.as_bytes().to_vec());
            let good = compiled.run(vec![rows], &mut printed, &mut errors);
            assert_eq!(String::from_utf8_lossy(&printed), *out, "{query}");
            assert_eq!(String::from_utf8_lossy(&errors), *told, "{query}");
            assert_eq!(good, told.is_empty(), "{query}");
        }
    }
}
