//! A query over rows in memory.

use lastbyte_query::{Input, Options, Query};

/// What it prints, and its messages.
pub(crate) fn run(query: &str, rows: &str, options: Options) -> (String, String) {
    let query = Query::compile(query, &[], options).unwrap();
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let input = Input::from_bytes("rows", rows.as_bytes().to_vec());
    query.run(vec![input], &mut out, &mut errors);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(out), text(errors))
}
