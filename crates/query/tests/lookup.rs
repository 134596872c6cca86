//! `lookup`: the rows of a file by the value of a column.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use lastbyte_query::{Input, Memory, Options, Query};
use std::io::{self, Write};

#[path = "common/run.rs"]
mod run;

use run::run;

/// Files by name.
const FILES: &[(&str, &str)] = &[
    (
        "asn.csv",
        "asn,name,rank\n15169,Google,1.50\n\"0123\",\"Zero, Inc.\",\n,unnamed,3\n3.0,three,4\n",
    ),
    (
        "names.ndjson",
        "{\"id\":1,\"name\":\"eu\",\"tags\":[\"x\"]}\n\n{\"id\":2,\"name\":\"na\"}\n{\"id\":3}\n",
    ),
    ("flags.csv", "flag,what\ntrue,yes\nfalse,no\n"),
    ("versions.csv", "version,name\n\"1.10\",ten\n\"1.1\",one\n"),
    ("same.csv", "k,v\n1,a\n2,b\n\"1\",c\n"),
    ("same.ndjson", "{\"k\":2}\n{\"k\":3}\n{\"k\":2.0}\n"),
    ("list.ndjson", "{\"k\":1}\n[1]\n"),
    ("nested.ndjson", "{\"k\":{\"a\":1}}\n"),
    ("bad.ndjson", "{\"k\":1}\n{\"k\":}\n"),
    ("bad.csv", "k,v\n1,2,3\n"),
    ("empty.csv", "k,v\n"),
];

fn open(name: &str) -> io::Result<Input> {
    let file = FILES.iter().find(|(known, _)| *known == name);
    let (_, text) = file.ok_or_else(|| io::Error::other("no such file"))?;
    let input = Input::from_bytes(name, text.as_bytes().to_vec());
    Ok(if name.contains(".csv") {
        input.csv()
    } else {
        input
    })
}

fn options() -> Options {
    Options {
        open_table: Some(open),
        ..Options::default()
    }
}

const ROWS: &str = "{\"a\":15169}\n{\"a\":\"15169\"}\n{\"a\":15169.0}\n{\"a\":null}\n{\"a\":\"0123\"}\n{\"a\":123}\n{\"a\":3}\n{\"a\":\"3.0\"}\n";

fn answer(query: &str, rows: &str) -> String {
    let (out, errors) = run(query, rows, options());
    out + &errors
}

#[test]
fn the_row_of_a_key_is_a_hash_or_nil() {
    let query = "lookup(\"asn.csv\", _[\"a\"])&.fetch(\"name\")";
    let google = "\"Google\"\n".repeat(3);
    let rest = "null\n\"Zero, Inc.\"\nnull\n\"three\"\n\"three\"\n";
    assert_eq!(answer(query, ROWS), google + rest);
    let whole = "{\"id\":1,\"name\":\"eu\",\"tags\":[\"x\"]}\nnull\n";
    let query = "lookup(\"names.ndjson\", _)";
    assert_eq!(answer(query, "1\n9\n"), whole);
    // Another column.
    let query = "lookup(\"names.ndjson\", _, on: \"name\") >> _ && _[\"id\"]";
    assert_eq!(answer(query, "\"na\"\n\"1\"\nnull\n"), "2\nnull\nnull\n");
    assert_eq!(answer("lookup(\"empty.csv\", _)", "1\n"), "null\n");
}

#[test]
fn keys_are_compared_as_texts_or_as_numbers() {
    let query = "lookup(\"flags.csv\", _)[\"what\"]";
    assert_eq!(answer(query, "true\n\"false\"\n"), "\"yes\"\n\"no\"\n");
    // Texts that are numbers of the same value are different texts.
    let query = "lookup(\"versions.csv\", _)[\"name\"]";
    let rows = "\"1.10\"\n\"1.1\"\n1.1\n1.10\n";
    let found = "\"ten\"\n\"one\"\n\"one\"\n\"one\"\n";
    assert_eq!(answer(query, rows), found);
    let answer = answer("lookup(\"asn.csv\", [_])", "1\n");
    let expected = "lookup expects a key that is a number, a text or a boolean, got Array (TypeError) at rows:1, stage 0";
    assert!(answer.contains(expected), "{answer}");
}

#[test]
fn a_row_that_was_changed_is_not_that_of_the_next_call() {
    let query = "row = lookup(\"names.ndjson\", 1); row[\"name\"] << _; row[\"tags\"] << _; row[\"new\"] = 1; row";
    let expected = "{\"id\":1,\"name\":\"eua\",\"tags\":[\"x\",\"a\"],\"new\":1}\n{\"id\":1,\"name\":\"eub\",\"tags\":[\"x\",\"b\"],\"new\":1}\n";
    assert_eq!(answer(query, "\"a\"\n\"b\"\n"), expected);
}

#[test]
fn threads_parts_and_one_thread_agree() {
    let rows = (0..4000).map(|at| format!("{{\"a\":{},\"n\":{at}}}\n", at % 5));
    let rows = rows.collect::<Vec<_>>().concat();
    for query in [
        "lookup(\"names.ndjson\", _[\"a\"])",
        "group_by(lookup(\"names.ndjson\", _[\"a\"])&.fetch(\"name\", nil)) { sum(_[\"n\"]) }",
        "group(lookup(\"names.ndjson\", _[\"a\"])) >> _.length",
        "{row: lookup(\"names.ndjson\", _[\"a\"]), n: _[\"n\"]} >> limit(3000)",
        "distinct(lookup(\"names.ndjson\", _[\"a\"]))",
    ] {
        let one = run(query, &rows, options());
        assert_eq!(one.1, "", "{query}");
        let parts = Options {
            threads: 3,
            chunk_bytes: 500,
            ..options()
        };
        assert_eq!(run(query, &rows, parts), one, "{query}");
        let compiled = Query::compile(query, &[], options()).unwrap();
        if compiled.check_mergeable().is_err() {
            continue;
        }
        let (mut states, mut out, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        let middle = rows[..rows.len() / 2].rfind('\n').unwrap() + 1;
        for half in [&rows[..middle], &rows[middle..]] {
            let mut state = Vec::new();
            let input = Input::from_bytes("half", half.as_bytes().to_vec());
            compiled.partial(vec![input], &mut state, &mut errors);
            states.push(Input::from_bytes("state", state));
        }
        compiled.merge(states, &mut out, &mut errors);
        assert_eq!(String::from_utf8(errors).unwrap(), "", "{query}");
        assert_eq!(String::from_utf8(out).unwrap(), one.0, "{query}");
    }
}

#[test]
fn a_state_of_another_table_is_refused() {
    #[expect(clippy::unnecessary_wraps, reason = "the type is that of the option")]
    fn changed(_: &str) -> io::Result<Input> {
        Ok(Input::from_bytes("names.ndjson", b"{\"id\":7}\n".to_vec()))
    }
    let query = "count(lookup(\"names.ndjson\", _[\"a\"]))";
    let (mut state, mut out, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    let input = Input::from_bytes("rows", b"{\"a\":1}\n".to_vec());
    let own = Query::compile(query, &[], options()).unwrap();
    assert!(own.partial(vec![input], &mut state, &mut errors));
    let states = || vec![Input::from_bytes("state", state.clone())];
    assert!(own.merge(states(), &mut out, &mut errors));
    assert_eq!(out, b"1\n");
    let options = Options {
        open_table: Some(changed),
        ..Options::default()
    };
    let other = Query::compile(query, &[], options).unwrap();
    assert!(!other.merge(states(), &mut out, &mut errors));
    let errors = String::from_utf8(errors).unwrap();
    assert!(errors.contains("other helper files or tables"), "{errors}");
}

#[test]
fn tables_that_cannot_be_read_are_refused_with_file_and_line() {
    for (query, expected) in [
        (
            "lookup(\"same.csv\", _)",
            "same.csv: line 4: the key `1` is that of line 2 as well (expected each key once)",
        ),
        (
            "lookup(\"same.ndjson\", _)",
            "same.ndjson: line 3: the key `2.0` is that of line 1 as well (expected each key once)",
        ),
        (
            "lookup(\"list.ndjson\", _)",
            "list.ndjson: line 2: not a row with names (expected a JSON object)",
        ),
        (
            "lookup(\"nested.ndjson\", _)",
            "nested.ndjson: line 1: lookup expects a key that is a number, a text or a boolean, got Hash",
        ),
        (
            "lookup(\"bad.ndjson\", _)",
            "bad.ndjson: line 2: unexpected character: '}'",
        ),
        (
            "lookup(\"bad.csv\", _)",
            "bad.csv: invalid CSV in line 2: 3 fields (expected 2, as in the header)",
        ),
        (
            "lookup(\"asn.csv\", _, on: \"AS\")",
            "asn.csv: line 2: no column `AS` (expected one of: asn, name, rank)",
        ),
        ("lookup(\"absent\", _)", "absent: no such file"),
        (
            "lookup(_[\"f\"], _)",
            "query:1:1: `lookup` expects the names of a file and a column as they are, the same for all rows: write `lookup(\"hosts.csv\", _[\"host\"], on: \"name\")`",
        ),
        ("lookup(\"a\", _, on: _)", "`lookup` expects the names"),
        ("lookup(*_)", "`lookup` expects the names"),
        (
            "lookup(\"a\", _, by: \"b\")",
            "write `lookup(\"file.csv\", e, on: \"column\")`",
        ),
        ("lookup(\"a\")", "`lookup` with 1 argument"),
        (
            "count(lookup(\"a\", sum(_)))",
            "a reducer's result is known at the end of input only",
        ),
    ] {
        let error = Query::compile(query, &[], options()).unwrap_err();
        assert!(error.to_string().contains(expected), "{query}: {error}");
    }
}

#[test]
fn without_an_opener_no_file_is_read() {
    let error = Query::compile("lookup(\"asn.csv\", _)", &[], Options::default()).unwrap_err();
    let expected = "query: `lookup` reads a file, and this query may not read files";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_packed_table_is_read() {
    fn packed(name: &str) -> io::Result<Input> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"k,v\n1,one\n")?;
        Ok(Input::from_bytes(name, encoder.finish()?).csv())
    }
    let options = Options {
        open_table: Some(packed),
        ..Options::default()
    };
    let (out, _) = run("lookup(\"a.csv.gz\", _)[\"v\"]", "1\n", options);
    assert_eq!(out, "\"one\"\n");
}

#[test]
fn a_table_stays_within_the_memory_limit() {
    #[expect(clippy::unnecessary_wraps, reason = "the type is that of the option")]
    fn endless(name: &str) -> io::Result<Input> {
        let mut number = 0_u64;
        let rows = std::iter::repeat_with(move || {
            number += 1;
            format!("{{\"k\":{number}}}\n").into_bytes()
        });
        let reader = io::BufReader::new(Rows(rows));
        Ok(Input::new(name, move || Ok(Box::new(reader))))
    }
    struct Rows<I>(I);
    impl<I: Iterator<Item = Vec<u8>>> io::Read for Rows<I> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let row = self.0.next().unwrap_or_default();
            buffer[..row.len()].copy_from_slice(&row);
            Ok(row.len())
        }
    }
    let mut options = Options {
        open_table: Some(endless),
        memory: Some(Memory {
            bytes_max: 1 << 20,
            used: || Some(2 << 20),
        }),
        ..Options::default()
    };
    let error = Query::compile("lookup(\"a\", _)", &[], options.clone()).unwrap_err();
    let expected = "a: 2097152 bytes of memory are used (expected at most 1048576)";
    assert_eq!(error.to_string(), expected);
    // Where the memory in use is unknown, that of tables is not.
    options.memory = Some(Memory {
        bytes_max: 1 << 20,
        used: || None,
    });
    let error = Query::compile("lookup(\"a\", _)", &[], options).unwrap_err();
    assert!(error.to_string().contains("the table takes"), "{error}");
}
