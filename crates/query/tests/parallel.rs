//! Any number of threads, and any size of a part, gives what one thread gives: out, errors, exit.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use lastbyte_query::{Format, Input, Options, Query};
use proptest::prelude::*;
use serde_json::Value;
use std::io::{self, Cursor, Read, Write};
use std::sync::{Arc, Mutex};
use std::thread;

const GOLDEN: &str = include_str!("golden.ndjson");

fn run(
    query: &str,
    helpers: &str,
    files: &[(String, Vec<u8>)],
    options: Options,
) -> Option<(String, String, bool)> {
    let helpers = [("helpers.rb".to_owned(), helpers.to_owned())];
    let query = Query::compile(query, &helpers, options).ok()?;
    let inputs = files
        .iter()
        .map(|(name, bytes)| Input::from_bytes(name.clone(), bytes.clone()))
        .collect();
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let good = query.run(inputs, &mut out, &mut errors);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Some((text(out), text(errors), good))
}

fn options(threads: usize, chunk_bytes: usize, format: Format) -> Options {
    Options {
        threads,
        chunk_bytes,
        format,
        ..Options::default()
    }
}

#[test]
fn golden_cases_are_identical_when_run_in_parts() {
    for line in GOLDEN.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (Some(query), Some(text)) = (case["query"].as_str(), case["stdin"].as_str()) else {
            continue;
        };
        let helpers = case["helpers"].as_str().unwrap_or_default();
        // Twice, so that a second file follows whatever the first one did.
        let files: Vec<(String, Vec<u8>)> = ["a", "b"]
            .map(|name| (name.to_owned(), text.as_bytes().to_vec()))
            .into();
        for format in [Format::Json, Format::Tsv] {
            let one = run(query, helpers, &files, options(1, 1, format));
            for (threads, bytes) in [(2, 16), (3, 1)] {
                let many = run(query, helpers, &files, options(threads, bytes, format));
                assert_eq!(one, many, "{query} on {threads} threads by {bytes} bytes");
            }
        }
    }
}

#[test]
fn verbose_output_reports_what_runs_in_parallel() {
    let percentiles = "select(_[0] == 1) >> [_[\"a\"], _[\"b\"]] >> group_by(_[0]) { percentile(_[1], $p ||= 0.05.step(0.95, 0.1)) } >> map_values { |a| a }";
    for (query, wanted) in [
        ("min(_[\"rtt.minimum\"])", "up to stage[0]"),
        (percentiles, "up to stage[2]"),
        ("_[\"a\"] >> _ + 1", "all stages"),
        (
            "_[\"a\"] >> reduce(0) { |a, v| a + v }",
            "what stands before stage[1]",
        ),
        ("reduce(0) { |a, v| a + 1 }", "nothing"),
        ("$n = 1", "nothing"),
        ("count($s ||= _[\"a\"])", "nothing"),
        ("$~", "nothing"),
        ("group($p ||= [1])", "nothing"),
    ] {
        let verbose = Options {
            verbose: true,
            ..options(2, 1, Format::Json)
        };
        let (_, errors, _) = run(query, "", &[], verbose).unwrap();
        assert!(
            errors.contains(&format!("parallel: {wanted}\n")),
            "{query}: {errors}"
        );
    }
}

#[test]
fn explain_reports_stages_fields_and_why_rows_are_taken_in_order() {
    for (query, text, json) in [
        (
            "select(_[\"a\"] > 1) >> group_by(_[\"b\"][\"c\"]) { count() } >> _.length",
            "stage[0]: select(_[\"a\"] > 1)\nstage[1]: group_by(_[\"b\"][\"c\"]) { count() }\nstage[2]: _.length\n\
             plan: reads _[\"a\"], _[\"b\"][\"c\"]\nparallel: up to stage[1]\n\
             rows: those that stage[0] drops are not built\nmemory: temporary files beyond the limit\n",
            "{\"stages\":[{\"stage\":\"select(_[\\\"a\\\"] > 1)\",\"threads\":\"all\"},\
             {\"stage\":\"group_by(_[\\\"b\\\"][\\\"c\\\"]) { count() }\",\"threads\":\"all, whose results are joined\"},\
             {\"stage\":\"_.length\",\"threads\":\"one\"}],\
             \"reads\":[\"_[\\\"a\\\"]\",\"_[\\\"b\\\"][\\\"c\\\"]\"],\"parallel\":\"up to stage[1]\",\
             \"rows\":\"those that stage[0] drops are not built\",\"memory\":\"temporary files beyond the limit\"}\n",
        ),
        (
            "$n = _",
            "stage[0]: $n = _\nplan: reads whole rows\nparallel: nothing\n\
             in order: from stage[0]: a variable that all rows share\n",
            "{\"stages\":[{\"stage\":\"$n = _\",\"threads\":\"one\"}],\"reads\":[\"_\"],\"parallel\":\"nothing\",\
             \"in_order\":\"from stage[0]: a variable that all rows share\"}\n",
        ),
    ] {
        let query = Query::compile(query, &[], options(2, 1, Format::Json)).unwrap();
        assert_eq!(query.explain(false), text);
        assert_eq!(query.explain(true), json);
    }
    for (query, why) in [
        (
            "_[\"a\"] >> reduce(0) { |a, v| a + v }",
            "from stage[1]: `reduce`, `limit` and `sort` with a block take rows in order",
        ),
        (
            "_.send(:length)",
            "from stage[0]: a method that is called by its name",
        ),
        ("$~", "from stage[0]: the variables of a match"),
    ] {
        let query = Query::compile(query, &[], options(2, 1, Format::Json)).unwrap();
        assert!(
            query.explain(false).contains(&format!("in order: {why}\n")),
            "{}",
            query.explain(false)
        );
    }
}

/// Objects that stand at several places, and stages that change them there.
const SHARED: &[&str] = &[
    "(a = _[\"l\"] || []; group([a, a])) >> _.map { |p| p[0] << 9; p[1].length } >> sum(_.sum)",
    "(a = _[\"l\"] || []; [group(a), group({x: a})]) >> _[0].each { |a| a << 7 } >> _",
    "(a = _[\"l\"] || []; [group(a), group(a)]) >> [_[0].map { |a| a << 7 }, _[1]]",
    "(s = _[\"b\"].to_s; [min(s), max(s), group(s)]) >> (_[0] << \"!\"; _)",
    "(s = _[\"b\"].to_s; group([s, s])) >> _.map { |p| p[0] << \"!\"; p } >> _",
    "group(_.is_a?(Hash) ? _.keys : []) >> _.map { |k| k[0].to_s.frozen? ? 0 : (k[0] ? k[0].frozen? : nil) }",
    "group(_.is_a?(Hash) ? _.keys : []) >> (_[0][0] << \"x\") >> _",
    "[group(_), group(_)] >> (_[0].each { |r| r[\"z\"] = 1 if r.is_a?(Hash) }; _[1])",
    "(a = _[\"l\"] || []; [a, a]) >> flat >> reduce([]) { |m, x| x << 5; m << x.length }",
    "(a = _[\"l\"] || []; [a, a]) >> reduce([]) { |m, p| p[0] << 5; m << p[1].length }",
    "(a = _[\"l\"] || []; [[a], [a]]) >> flat >> (_[0] << 1; _) >> sort { |x, y| x.to_s <=> y.to_s } >> _",
    "(a = _[\"l\"] || []; group_by(a) { group(a) }) >> _.map { |k, v| v.map { |x| x << 3 }; [k, v] }",
    "(a = _[\"l\"] || []; r = group_by(a) { count() }; a << 1; r) >> _.to_a",
    "(a = _[\"l\"] || []; r = group_by(a) { count() }; a << 1 if a.length < 2; r) >> _.to_a",
    "(a = _[\"l\"] || []; {x: a, n: count(), g: group(a)}) >> (_[:x] << 4; _)",
    "(h = {k: _[\"b\"].to_s}; group_by(_[\"a\"]) { [group(h), group(h)] }) >> _.each { |k, v| v[0].each { |x| x[:k] << \"+\" } }",
    "(a = []; a << a; group(a)) >> _.length",
    "group(\"x\") >> (_[0] << \"y\"; _)",
    "sort(_[\"b\"].to_s) >> _[\"b\"]",
    "(a = _[\"l\"] || []; sort([a.length, a])) >> _",
    "group(:s) >> _.uniq",
    "group(12345678901234567890) >> _.uniq",
    "group(1..3) >> _.length",
    "group(Time.at(_[\"a\"].to_i).utc) >> _.length",
    "sum(_[\"l\"], initial: []) >> _.length",
    "sum(_[\"b\"], initial: \"\")",
    "sum(_[\"a\"], initial: 0.5)",
    "sum(_[\"big\"] || 9223372036854775807)",
    "[sum(_[\"a\"]), sum(0.1), average(_[\"a\"]), stdev(0.1)]",
    "_[\"a\"].to_i > 10 ? sum(_[\"a\"]) : count()",
    "(_[\"a\"].to_i > 10 ? min(_[\"a\"]) : max(_[\"a\"]))",
    "{a: _[\"a\"], n: count()} >> _[:a]",
    "percentile(_[\"a\"], [0, 0.5, 1])",
    "[min(_[\"a\"]), max(_[\"b\"])]",
    "_[\"l\"] >> flat",
    "_[\"l\"] || [] >> flat >> count()",
    "(_[\"l\"] || []) >> flat >> group_by(_) { count() }",
    "(_[\"l\"] || []) >> map { |x| sum(x) }",
    "_.keys.length >> $n = _",
    "@n = (@n || 0) + 1",
    "1 / (_[\"a\"].to_i - 7)",
    "count() >> 1 / 0",
    "_ >> count() >> _ + 1",
];

const QUERIES: &[&str] = &[
    "_",
    "_[\"a\"]",
    "_[\"a\"] + 1",
    "select(_[\"b\"] == \"x\") >> _[\"a\"] * 2",
    "count()",
    "sum(_[\"a\"])",
    "[min(_[\"a\"]), max(_[\"a\"]), average(_[\"a\"]), stdev(_[\"a\"])]",
    "select(_[\"a\"]) >> [_[\"b\"], _[\"a\"]] >> group_by(_[0]) { percentile(_[1], $p ||= 0.05.step(0.95, 0.1)) }",
    "group_by(_[\"b\"]) { {n: count(), s: sum(_[\"a\"]), first: _[\"a\"]} } >> map_values { |x| x }",
    "group_by(_[\"b\"]) { |r| group_by(r[\"a\"]) { count() } }",
    "group(_[\"a\"])",
    "sort(_[\"b\"]) >> _[\"a\"]",
    "sort { |x, y| x[\"b\"] <=> y[\"b\"] }",
    "map_values { |v| count(v) }",
    "_[\"a\"] >> reduce(0) { |acc, v| acc * 2 + (v || 0) }",
    "$n = ($n || 0) + 1",
    "$s ||= [] >> count()",
    "apply(_[\"l\"]) { |x| sum(x) } >> sum(_ || 0)",
    "_[\"b\"] =~ /x/ >> $~.nil?",
];

fn row() -> impl Strategy<Value = String> {
    let a = prop_oneof![
        3 => (-50_i64..50).prop_map(|it| it.to_string()),
        3 => (-1e3..1e3).prop_map(|it: f64| it.to_string()),
        1 => Just("null".to_owned()),
    ];
    let usual = (a, "[xyz]", proptest::collection::vec(0..9, 0..3))
        .prop_map(|(a, b, l)| format!("{{\"a\":{a},\"b\":\"{b}\",\"l\":{l:?}}}"));
    prop_oneof![
        60 => usual,
        1 => Just("{\"a\":\"s\",\"b\":7}".to_owned()),
        1 => Just("{\"b\":null}".to_owned()),
        1 => Just(String::new()),
        1 => Just("{\"a\":".to_owned()),
    ]
}

/// Where the rows come from.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    Live,
    Packed,
    /// The last bytes of the packed file are missing.
    Cut,
    /// A byte in the midst of the packed file is another.
    Corrupt,
    Missing,
    /// A read fails after half of the bytes.
    Failing,
}

/// Gives a few bytes at a time, and then perhaps an error.
struct Drops(Cursor<Vec<u8>>, Option<io::ErrorKind>);

impl Read for Drops {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let few = buffer.len().min(7);
        match self.0.read(&mut buffer[..few])? {
            0 => self.1.take().map_or(Ok(0), |kind| Err(kind.into())),
            count => Ok(count),
        }
    }
}

fn input(at: usize, kind: Kind, text: &str) -> Input {
    let name = format!("{at}");
    let mut bytes = text.as_bytes().to_vec();
    if let Kind::Packed | Kind::Cut | Kind::Corrupt = kind {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&bytes).unwrap();
        bytes = encoder.finish().unwrap();
    }
    match kind {
        Kind::Plain | Kind::Packed => Input::from_bytes(name, bytes),
        Kind::Cut => {
            bytes.truncate(bytes.len() - 9);
            Input::from_bytes(name, bytes)
        }
        Kind::Corrupt => {
            let half = bytes.len() / 2;
            bytes[half] ^= 0x55;
            Input::from_bytes(name, bytes)
        }
        Kind::Missing => Input::new(name, || Err(io::ErrorKind::NotFound.into())),
        Kind::Live => {
            let drops = Drops(Cursor::new(bytes), None);
            Input::new(name, || Ok(Box::new(drops))).live()
        }
        Kind::Failing => {
            bytes.truncate(bytes.len() / 2);
            let drops = Drops(Cursor::new(bytes), Some(io::ErrorKind::TimedOut));
            Input::new(name, || Ok(Box::new(drops)))
        }
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Plain),
        2 => Just(Kind::Live),
        2 => Just(Kind::Packed),
        1 => Just(Kind::Cut),
        1 => Just(Kind::Corrupt),
        1 => Just(Kind::Missing),
        1 => Just(Kind::Failing),
    ]
}

/// Rows whose every value is another, so that one too many or in the wrong place shows; now and then one is wrong.
fn numbered(rows: &[u8], seed: &mut usize) -> String {
    let row = |wrong: &u8| {
        *seed += 1;
        match wrong {
            0 => "{\"a\":\n".to_owned(),
            1 => format!("{{\"a\":\"{seed}\"}}\n"),
            2 => "\n".to_owned(),
            _ => format!("{{\"a\":{seed},\"b\":\"x{}\"}}\n", seed.pow(3)),
        }
    };
    rows.iter().map(row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn files_of_any_kind_are_read_in_order(
        files in proptest::collection::vec((kind(), proptest::collection::vec(0_u8..250, 0..60)), 1..7),
        threads in 2_usize..6,
        bytes in 1_usize..200,
    ) {
        let mut seed = 0;
        let files: Vec<(Kind, String)> =
            files.iter().map(|(kind, rows)| (*kind, numbered(rows, &mut seed))).collect();
        for query in ["_[\"a\"]", "[count(), sum(_[\"a\"])]", "_[\"a\"] + 1 >> reduce(0) { |sum, it| sum * 3 + it }", "group_by(_[\"b\"]) { group(_[\"a\"]) }"] {
            let run = |options| {
                let query = Query::compile(query, &[], options).unwrap();
                let inputs = files.iter().enumerate().map(|(at, (kind, text))| input(at, *kind, text));
                let (mut out, mut errors) = (Vec::new(), Vec::new());
                let good = query.run(inputs.collect(), &mut out, &mut errors);
                let text = |bytes| String::from_utf8(bytes).unwrap();
                (text(out), text(errors), good)
            };
            let one = run(options(1, 1, Format::Json));
            let many = run(options(threads, bytes, Format::Json));
            prop_assert_eq!(one, many, "{}", query);
        }
    }
}

/// Each is smaller than what needs no threads, all together are not.
#[test]
fn many_small_files_are_distributed_over_threads() {
    let text = "{\"a\":1}\n".repeat(1000);
    let openers = Arc::new(Mutex::new(Vec::new()));
    let inputs = (0..100).map(|at| {
        let (text, openers) = (text.clone(), Arc::clone(&openers));
        Input::new(at.to_string(), move || {
            let name = thread::current().name().map(str::to_owned);
            openers.lock().unwrap().push(name.unwrap_or_default());
            Ok(Box::new(Cursor::new(text.into_bytes())))
        })
    });
    let query = Query::compile("sum(_[\"a\"])", &[], options(2, 1 << 20, Format::Json)).unwrap();
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    assert!(query.run(inputs.collect(), &mut out, &mut errors));
    assert_eq!(out, b"100000\n");
    let openers = openers.lock().unwrap();
    assert_eq!(openers.len(), 100);
    assert_eq!(openers.last().map(String::as_str), Some("query-part"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn parts_of_any_size_give_the_single_thread_result(
        rows in proptest::collection::vec(row(), 0..25),
        more in proptest::collection::vec(row(), 0..9),
        threads in 2_usize..5,
        bytes in 1_usize..200,
    ) {
        let files = [("a".to_owned(), rows.join("\n").into_bytes()), ("b".to_owned(), more.join("\n").into_bytes())];
        for query in QUERIES.iter().chain(SHARED) {
            for format in [Format::Json, Format::Tsv] {
                if matches!(format, Format::Tsv) && !query.starts_with('_') {
                    continue;
                }
                let one = run(query, "", &files, options(1, 1, format));
                let many = run(query, "", &files, options(threads, bytes, format));
                prop_assert!(one.is_some(), "{} is refused", query);
                prop_assert_eq!(one, many, "{}", query);
            }
        }
    }
}

/// What reads, keeps, changes and passes on rows in each way that there is.
const SHAPED: &[&str] = &[
    "_",
    "_[\"a\"]",
    "[_[\"b\"], _[\"a\"], _[\"o\"]]",
    "_[\"o\"] && _[\"o\"][\"x\"]",
    "select(_[\"b\"])",
    "select(_[\"a\"].to_i > 0) >> select(_[\"b\"] != \"x\")",
    "select(_[\"b\"].to_s << \"!\")",
    "select((_[\"l\"] || []) << 1)",
    "select((s = _[\"b\"]; s << \"!\" if s; _[\"a\"]))",
    "select([_[\"b\"]].each { |s| s << \"!\" if s })",
    "select(_[\"o\"].is_a?(Hash) ? _[\"o\"][\"x\"] = 0 : true)",
    "(_[\"l\"] || []) << 1; _",
    "next _ if _[\"b\"]",
    "select(_[\"b\"])",
    "group(_) >> _.reverse",
    "group([_[\"b\"], _[\"l\"]]) >> (_.each { |b, l| b << \"+\" if b; l << 0 if l }; _)",
    "sort(_[\"b\"].to_s) >> _[\"a\"]",
    "reduce([]) { |kept, row| kept << row[\"o\"] }",
    "reduce([]) { |kept, row| kept << row }",
    "map_values { |value| count(value) }",
    "map_values { |value| group(value) }",
    "group_by(_[\"b\"]) { [count(), group(_[\"l\"])] }",
];

const VALUES: &[&str] = &[
    "0",
    "7",
    "123456789012345678",
    "12345678901234567890123",
    "-3",
    "-0",
    "1.5",
    "-2e-3",
    "1E5",
    "null",
    "true",
    "\"\"",
    "\"x\"",
    "\"plain text that is longer than a block of a kernel: no less than 64 bytes of it\"",
    "\"\\u00e9\\n\\\"\"",
    "\"\u{e9}\u{1f600}\"",
    "[]",
    "[1, \"x\"]",
    "{}",
    "{\"x\":1}",
    "{\"x\": {\"x\":\"}\\\"\"}}",
];

/// A row: where its keys begin in their order, which are left out, its values, and what it has besides.
fn shaped() -> impl Strategy<Value = String> {
    // Mostly one of few shapes, so that plans are learned and followed.
    let shape = prop_oneof![6 => Just((0, 0, 0)), 2 => Just((2, 0, 0)), 1 => (0_usize..4, 0_u8..16, 0_usize..6)];
    let values = proptest::collection::vec(prop_oneof![4 => 1_usize..3, 1 => 0..VALUES.len()], 4);
    (shape, values).prop_map(|((first, missing, extra), values)| {
        let keys = ["a", "b", "l", "o"];
        let mut members: Vec<String> = (0..4)
            .map(|at| (at + first) % 4)
            .filter(|at| missing & (1 << at) == 0)
            .map(|at| format!("\"{}\":{}", keys[at], VALUES[values[at]]))
            .collect();
        let more = match extra {
            1 => "\"more\":[1,{\"b\":2}]",
            2 => "\"\\u0062\":\"escaped key\"",
            3 => " \"spaced\" : 1 ",
            _ => "\"c\":\"always\"",
        };
        let at = extra.min(members.len());
        members.insert(at, more.to_owned());
        format!("{{{}}}\n", members.join(","))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// With `lax`, rows are parsed one by one: nothing is learned from others.
    #[test]
    fn learned_plans_do_not_change_results(
        rows in proptest::collection::vec(shaped(), 1..120),
        threads in 2_usize..4,
        bytes in 1_usize..3000,
    ) {
        let files = [("a".to_owned(), rows.concat().into_bytes())];
        for query in SHAPED {
            let parsed = Options { lax: true, ..options(1, 1, Format::Json) };
            let parsed = run(query, "", &files, parsed);
            prop_assert!(parsed.is_some(), "{} is refused", query);
            for (threads, bytes) in [(1, 1 << 20), (threads, bytes), (2, 1)] {
                let learned = run(query, "", &files, options(threads, bytes, Format::Json));
                prop_assert_eq!(&parsed, &learned, "{} on {} threads by {}", query, threads, bytes);
            }
        }
    }
}
