//! Any bytes for a file: several queries give the same on any number of threads, whatever the bytes are, and a row that
//! is printed reads back. Shared by the replay of the corpus and the fuzz target.

use lastbyte_query::{Format, Input, Options, Query};

const QUERIES: &[&str] = &[
    "_",
    "_[\"a\"]",
    "[_[\"a\"], _[\"b\"]]",
    "count()",
    "[min(_[\"a\"]), max(_[\"a\"]), sum(_[\"a\"])]",
    "group_by(_[\"a\"]) { |r| [count(), percentile(r[\"b\"], 0.5)] }",
    "select(_.is_a?(Hash)) >> sort(_[\"a\"].to_s)",
    "_.to_s.length >> reduce(0) { |most, it| most > it ? most : it }",
];

fn run(query: &str, bytes: &[u8], options: Options) -> (Vec<u8>, Vec<u8>, bool) {
    let query = Query::compile(query, &[], options).expect("it is a query");
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let inputs = ["a", "b"].map(|name| Input::from_bytes(name, bytes.to_vec()));
    let good = query.run(inputs.into(), &mut out, &mut errors);
    (out, errors, good)
}

/// The first byte says which query, how it is cut and how it is printed.
pub(crate) fn play(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    let query = QUERIES[usize::from(choice & 7)];
    let format =
        [Format::Json, Format::Tsv, Format::Pretty, Format::Json][usize::from(choice >> 3 & 3)];
    let one = Options {
        format,
        line_bytes_max: 4096,
        ..Options::default()
    };
    let many = Options {
        threads: 2 + usize::from(choice >> 7),
        chunk_bytes: [1, 7, 40, 300][usize::from(choice >> 5 & 3)],
        ..one.clone()
    };
    let answer = run(query, bytes, one.clone());
    assert_eq!(answer, run(query, bytes, many), "{query}");
    let lax = Options {
        lax: true,
        ..one.clone()
    };
    run(query, bytes, lax.clone());
    // What was printed is what is printed.
    if query == "_" && format == Format::Json {
        let again = run(query, &answer.0, one);
        assert!(again.2, "{:?}", String::from_utf8_lossy(&again.1));
        assert_eq!(again.0, answer.0.repeat(2));
        assert_eq!(run(query, &answer.0, lax), again);
    }
}
