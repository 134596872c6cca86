//! Queries with the answers that jrf gives.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use lastbyte_query::{Input, Options, Query};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Output and errors of a query for one input.
fn answer(query: &str, bytes: &[u8], options: &Options) -> (String, String, bool) {
    let query = Query::compile(query, &[], options.clone()).unwrap();
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let good = query.run(
        vec![Input::from_bytes("rows", bytes.to_vec())],
        &mut out,
        &mut errors,
    );
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(out), text(errors), good)
}

/// A query, its rows, what is printed, and the errors (empty: none): those of jrf, after `error:`, with the key that is nil.
const ANSWERS: &[(&str, &str, &str, &str)] = &[
    // After an error in a row, a reducer's value is what the rows before it made.
    (
        r#"reduce(0) { |a, v| a + v["a"] }"#,
        "{\"a\":1}\n{\"a\":2}\n{\"b\":3}\n",
        "3\n",
        "error: nil can't be coerced into Integer (TypeError) at rows:3, stage 0: `a` is nil\n",
    ),
    (
        r#"[sum(_["a"]), reduce([]) { |all, v| all + [v["a"] + 1] }]"#,
        "{\"a\":1}\n{\"a\":2}\n{\"b\":3}\n",
        "[3,[2,3]]\n",
        "error: undefined method '+' for nil (NoMethodError) at rows:3, stage 0: `a` is nil\n",
    ),
    (
        r#"group_by(_["g"]) { |r| group(r["a"] + 1) }"#,
        "{\"g\":1,\"a\":1}\n{\"g\":2}\n",
        "{\"1\":[2],\"2\":null}\n",
        "error: undefined method '+' for nil (NoMethodError) at rows:2, stage 0: `a` is nil\n",
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
fn answers_match_jrf() {
    for (query, rows, out, reported) in ANSWERS {
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
            assert_eq!(String::from_utf8_lossy(&errors), *reported, "{query}");
            assert_eq!(good, reported.is_empty(), "{query}");
        }
    }
}

/// `--lax`: values need no blank between them, and what came before an error is printed.
#[test]
fn concatenated_json_values_are_read() {
    let lax = Options {
        lax: true,
        ..Options::default()
    };
    for (stream, out, good) in [
        (r#"{"a":1}{"a":2}"#, "{\"a\":1}\n{\"a\":2}\n", true),
        ("[1][2]", "[1]\n[2]\n", true),
        (r#""a""b""#, "\"a\"\n\"b\"\n", true),
        ("1[2]", "1\n[2]\n", true),
        ("truefalse", "true\nfalse\n", true),
        ("1-2", "1\n-2\n", true),
        ("1\u{c}2", "1\n2\n", true),
        (r#"{"a":1},{"a":2}"#, "{\"a\":1}\n", false),
        (r#"{"a":1}]"#, "{\"a\":1}\n", false),
        ("01", "", false),
        ("1.", "", false),
        ("1.5.2", "", false),
        ("1e", "", false),
        ("[2]+1", "[2]\n", false),
    ] {
        let (printed, reported, done) = answer("_", stream.as_bytes(), &lax);
        assert_eq!(
            (printed.as_str(), done),
            (out, good),
            "{stream}: {reported}"
        );
        assert_eq!(reported.is_empty(), good, "{stream}");
    }
    // Wherever the stream is cut for reading.
    let many = r#"{"a":[1,"}{"]}"#.repeat(20_000);
    let (printed, reported, done) = answer("count()", many.as_bytes(), &lax);
    assert_eq!(
        (printed.as_str(), reported.as_str(), done),
        ("20000\n", "", true)
    );
}

/// Rows that do not pack well.
fn rows() -> Vec<u8> {
    let mut text = Vec::new();
    let mut random = 1_u64;
    for at in 0..40_000 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        writeln!(text, "{{\"a\":{at},\"b\":{random}}}").unwrap();
    }
    text
}

#[test]
fn rows_before_corrupt_compressed_data_are_counted() {
    let rows = rows();
    let packed = compress_to_vec(&rows[..], CompressionLevel::Fastest);
    let count = |bytes: &[u8]| answer("count()", bytes, &Options::default());
    assert_eq!(count(&packed), ("40000\n".to_owned(), String::new(), true));
    let twice = [&packed[..], &packed[..]].concat();
    assert_eq!(count(&twice).0, "80000\n");
    // RFC 8878 §3.1.2: a frame that is to be skipped.
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &packed].concat();
    let (out, ..) = count(&[&packed[..], &skipped[..]].concat());
    assert_eq!(out, "80000\n");
    let number = |out: &str| out.trim().parse::<usize>().unwrap_or(0);
    let mut last = 0;
    for part in 1..20 {
        let (out, reported, good) = count(&packed[..packed.len() * part / 20]);
        assert!(
            !good && reported == "error: rows: the zstd data is cut off\n",
            "{reported}"
        );
        assert!(number(&out) >= last, "{part}: {out}");
        last = number(&out);
    }
    assert!(last > 30_000, "{last} of the 40000 rows");
    for part in 1..20 {
        let mut corrupt = packed.clone();
        let at = corrupt.len() * part / 20;
        corrupt[at] ^= 0x10;
        let (_, reported, good) = count(&corrupt);
        assert!(
            !good && reported.starts_with("error: rows: "),
            "{part}: {reported}"
        );
    }
}

/// The rows of a frame wait in its window.
#[test]
fn large_windows_of_zstd_are_an_error() {
    // Of 2^41 bytes, and a single segment as large.
    for header in [&[0, 31 << 3][..], &[0xe0, 0, 0, 0, 0, 0, 2, 0, 0]] {
        let block = [2, 0, 0x10, b'1'];
        let packed = [&[0x28, 0xb5, 0x2f, 0xfd][..], header, &block].concat();
        let (out, reported, good) = answer("count()", &packed, &Options::default());
        assert_eq!((out.as_str(), good), ("", false));
        assert_eq!(reported, "error: rows: the zstd window is above 100 MiB\n");
    }
}

#[test]
fn rfc8878_3_1_2_skippable_frames_stand_anywhere() {
    let frame = |row: &str| compress_to_vec(row.as_bytes(), CompressionLevel::Fastest);
    let (one, two, none) = (frame("1\n"), frame("2\n"), frame(""));
    let long = [&[0x5f, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], b"abcd"].concat();
    let empty = [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0];
    let count = |parts: &[&[u8]]| answer("count()", &parts.concat(), &Options::default());
    for parts in [
        &[&long[..], &one, &two][..],
        &[&empty, &long, &none, &one, &empty, &two, &long],
        &[&one, &none, &two, &empty],
        &[&none, &one, &two],
    ] {
        assert_eq!(count(parts), ("2\n".to_owned(), String::new(), true));
    }
    assert_eq!(count(&[&long]), (String::new(), String::new(), true));
    // Cut off.
    for (parts, rows) in [(&[&long[..10]][..], ""), (&[&one, &long[..11]], "1\n")] {
        let (out, reported, good) = count(parts);
        assert_eq!((out.as_str(), good), (rows, false));
        assert_eq!(reported, "error: rows: the zstd data is cut off\n");
    }
}

#[test]
fn other_formats_are_refused_by_name() {
    for (bytes, name) in [
        (&b"PK\x03\x04.."[..], "a ZIP archive"),
        (b"BZh91AY&SY..", "bzip2 data"),
        (b"\xfd7zXZ\0..", "xz data"),
        (b"PAR1..", "a Parquet file"),
        (b"ARROW1\0\0..", "an Arrow file"),
        (b"\xff\xfe{\0}\0", "text in UTF-16"),
        (b"\xfe\xff\0{\0}", "text in UTF-16"),
    ] {
        let (out, reported, good) = answer("_", bytes, &Options::default());
        assert_eq!((out.as_str(), good), ("", false));
        let expected = "(expected text, plain or compressed with gzip or zstd)";
        assert_eq!(
            reported,
            format!("error: rows: this is {name} {expected}\n")
        );
    }
}

#[test]
fn rows_that_end_with_carriage_returns_are_read_or_refused() {
    let read = |rows: &str, lax| {
        let options = Options {
            lax,
            ..Options::default()
        };
        answer("_", rows.as_bytes(), &options)
    };
    let all = ("1\n2\n".to_owned(), String::new(), true);
    for rows in ["1\r\n2\r\n", "1\r\r\n2\r\r\n", "1\n2\r"] {
        assert_eq!(read(rows, false), all, "{rows:?}");
    }
    assert_eq!(read("1\r2\r", true), all);
    let (out, reported, good) = read("1\r2\r", false);
    assert_eq!((out.as_str(), good), ("", false));
    let expected = "error: rows: unexpected character: '2\r' (`query --lax` reads lines that end with a carriage return) at line 1 column 3 (JSON::ParserError)\n";
    assert_eq!(reported, expected);
}

/// What only the reader of `--lax` accepts is refused with its name.
#[test]
fn rows_that_are_not_lines_are_refused_with_the_option_that_reads_them() {
    let read = |rows: &str, options: &Options| answer("_", rows.as_bytes(), options);
    let lax = Options {
        lax: true,
        ..Options::default()
    };
    for (rows, what) in [
        ("{\n \"a\": 1\n}\n", "values of several lines"),
        ("{\"a\":1,\n\"b\":2}\n", "values of several lines"),
        ("{\"a\":1,\r\n\"b\":2}\r\n", "values of several lines"),
        ("[\"\u{e9}\", \n2]", "values of several lines"),
        (
            "\u{1e}{\"a\":1}\n\u{1e}{\"a\":2}\n",
            "values with RS before them",
        ),
        ("{\"a\":1} {\"a\":2}\n", "several values in a line"),
        ("[1][2]\n", "several values in a line"),
        ("\"a\" 2\n", "several values in a line"),
    ] {
        let hint = format!(" (`query --lax` reads {what}) at line 1");
        let (_, reported, good) = read(rows, &Options::default());
        assert!(!good && reported.contains(&hint), "{rows:?}: {reported}");
        assert!(read(rows, &lax).2, "{rows:?}");
        // Also of the first of the lines that are skipped.
        let skipping = Options {
            skip_bad_lines: true,
            ..Options::default()
        };
        let (_, reported, _) = read(rows, &skipping);
        assert!(reported.contains(&hint), "{rows:?}: {reported}");
    }
    // A byte order mark shows nothing. Before the first line it is skipped.
    let (out, reported, _) = read(
        "\u{feff}{\"a\":1}\n\u{feff}{\"a\":1}\n",
        &Options::default(),
    );
    assert_eq!(out, "{\"a\":1}\n");
    assert!(
        reported.contains("unexpected character: '\\u{feff}{\"a\":1}'"),
        "{reported}"
    );
    for rows in [
        "{\"a\":}\n",
        "{\"a\":1}x\n",
        "1\n{\"a\":",
        "nul\n",
        "[1 2]\n",
    ] {
        let (_, reported, good) = read(rows, &Options::default());
        assert!(!good && !reported.contains("--lax"), "{rows:?}: {reported}");
    }
}

#[test]
fn compressed_text_may_begin_with_a_mark_and_nothing_else_is_in_it() {
    let packed = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let run = |bytes: Vec<u8>| {
        let query = Query::compile("_", &[], Options::default()).unwrap();
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        query.run(vec![Input::from_bytes("in", bytes)], &mut out, &mut errors);
        String::from_utf8([out, errors].concat()).unwrap()
    };
    let marked = "\u{feff}{\"a\":1}\n\u{feff}1\n";
    let text = run(packed(marked.as_bytes()));
    assert!(
        text.starts_with("{\"a\":1}\nerror: in: unexpected character: '\\u{feff}1'"),
        "{text}"
    );
    assert_eq!(run(packed(b"")), "");
    assert_eq!(run(packed(b"7")), "7\n");
    for (bytes, what) in [
        (packed(b"1\n"), "gzip"),
        (b"PAR1 and so on".to_vec(), "a Parquet file"),
    ] {
        let expected = format!(
            "error: in: this is {what} (expected text, plain or compressed with gzip or zstd)\n"
        );
        assert_eq!(run(packed(&bytes)), expected);
    }
}

#[test]
fn zero_padding_after_gzip_data_is_ignored() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&rows()).unwrap();
    let packed = encoder.finish().unwrap();
    let count = |bytes: &[u8]| answer("count()", bytes, &Options::default());
    let zeros = [&packed[..], &vec![0; 200_000]].concat();
    assert_eq!(count(&zeros), ("40000\n".to_owned(), String::new(), true));
    let twice = [&packed[..], &packed[..]].concat();
    assert_eq!(count(&twice).0, "80000\n");
    for garbage in [&b"\0\0x"[..], b"xyz"] {
        let (out, reported, good) = count(&[&packed[..], garbage].concat());
        assert_eq!((out.as_str(), good), ("40000\n", false), "{reported}");
        assert!(reported.starts_with("error: rows: "), "{reported}");
    }
}

#[test]
fn invalid_lines_are_skipped_and_counted() {
    let rows = "{\"a\":1}\n{\"a\":\n{\"a\":3}\ntorn\n{\"a\":5}\n".repeat(50);
    for (query, out) in [
        ("[count(), sum(_[\"a\"])]", "[150,450]\n".to_owned()),
        ("_[\"a\"]", "1\n3\n5\n".repeat(50)),
        (
            "select(true)",
            "{\"a\":1}\n{\"a\":3}\n{\"a\":5}\n".repeat(50),
        ),
    ] {
        for threads in [1, 3] {
            let options = Options {
                threads,
                chunk_bytes: 100,
                skip_bad_lines: true,
                ..Options::default()
            };
            let reported = "skipped 100 lines that are not JSON; the first: rows: unexpected end of input at line 2 column 6 (JSON::ParserError)\n";
            assert_eq!(
                answer(query, rows.as_bytes(), &options),
                (out.clone(), reported.to_owned(), true),
                "{query}"
            );
        }
    }
}

#[test]
fn an_interrupted_run_returns_the_results_so_far() {
    let options = Options {
        interrupt: Some(Arc::new(AtomicBool::new(true))),
        ..Options::default()
    };
    assert_eq!(
        answer("count()", b"{\"a\":1}\n", &options),
        (String::new(), String::new(), true)
    );
}
