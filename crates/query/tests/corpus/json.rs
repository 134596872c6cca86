//! Any bytes for rows: the scanner and the parser take and give what `serde_json` does. Shared by the replay of the corpus
//! and the fuzz target.

use lastbyte_query::{Input, Options, Query};
use serde_json::Value;

/// Rows built whole and printed, printed from their own bytes, and of which two fields are read.
const QUERIES: [&str; 3] = ["_", "select(true)", "[_[\"a\"], _[\"b\"]]"];

/// Deeper lines are refused by us, and later by `serde_json`.
const DEPTH_MAX: usize = 100;

/// The first byte says which query.
pub(crate) fn play(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    let part = choice % 3 == 2;
    let mut expected = Vec::new();
    let mut good = true;
    // A byte order mark is skipped before the first line only.
    let lines = bytes.strip_prefix("\u{feff}".as_bytes());
    for line in lines.unwrap_or(bytes).split(|byte| *byte == b'\n') {
        if line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            continue;
        }
        if line
            .iter()
            .filter(|byte| matches!(byte, b'[' | b'{'))
            .count()
            > DEPTH_MAX
        {
            return;
        }
        match serde_json::from_slice::<Value>(line) {
            Ok(Value::Object(row)) if part => {
                let field = |name: &str| row.get(name).cloned().unwrap_or_default();
                expected.push(Value::Array(vec![field("a"), field("b")]));
            }
            // What `_["a"]` is of other rows is a matter of the language.
            Ok(_) if part => return,
            Ok(row) => expected.push(row),
            // Too large for a double: an error to it, and infinite to us until it is printed.
            Err(wrong) if wrong.to_string().contains("out of range") => return,
            Err(_) => {
                good = false;
                break;
            }
        }
    }
    let query = Query::compile(QUERIES[usize::from(choice % 3)], &[], Options::default());
    let query = query.expect("it is a query");
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let done = query.run(
        vec![Input::from_bytes("rows", bytes.to_vec())],
        &mut out,
        &mut errors,
    );
    let reported = String::from_utf8_lossy(&errors);
    assert_eq!(done, good, "{reported}");
    let printed: Vec<Value> = out
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("what is printed is JSON"))
        .collect();
    assert_eq!(printed.len(), expected.len(), "{reported}");
    for (printed, expected) in printed.iter().zip(&expected) {
        assert!(same(printed, expected), "{printed} is not {expected}");
    }
}

/// Equal, with numbers by their value: `-0` and `1e2` may be written otherwise.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let known = |(key, value): (&String, &Value)| {
                b.get(key).is_some_and(|other| same(value, other))
            };
            a.len() == b.len() && a.iter().all(known)
        }
        (a, b) => a == b,
    }
}
