//! What bounds the memory of a query: rows of `sort` are kept as text, in temporary files beyond a limit, and only the first
//! ones if a `limit` follows. None of it changes the result.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use lastbyte_query::{Format, Input, Memory, Options, Query, Spill, TemporaryFile};
use proptest::prelude::*;
use std::io::{self, Cursor, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, mpsc};
use std::thread;
use std::time::Duration;

#[path = "common/run.rs"]
mod run;

use run::run;

fn options(threads: usize, spill: Option<Spill>) -> Options {
    Options {
        threads,
        chunk_bytes: 200,
        spill,
        ..Options::default()
    }
}

static CREATED: AtomicUsize = AtomicUsize::new(0);

fn spill() -> Spill {
    Spill {
        bytes_max: 600,
        directory: "/elsewhere".to_owned(),
        create: || {
            CREATED.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(Cursor::new(Vec::<u8>::new())) as Box<dyn TemporaryFile>)
        },
    }
}

const VALUES: &[&str] = &[
    "1.0",
    "-0.0",
    "1e300",
    "123456789012345678901234567890",
    r#""é \u0007 \"x\" \\ / 🙂""#,
    r#"{"b":[1,{"c":null}],"a":{}}"#,
    "[true,false,[]]",
];

/// Rows with keys that are often the same, and their places.
fn rows() -> impl Strategy<Value = String> {
    let row = (-3..4_i64, any::<bool>(), 0..VALUES.len());
    proptest::collection::vec(row, 0..300).prop_map(|rows| {
        let lines = rows.iter().enumerate().map(|(at, (key, is_float, value))| {
            let key = if *is_float {
                format!("{key}.0")
            } else {
                key.to_string()
            };
            format!(
                "{{\"at\":{at},\"key\":{key},\"value\":{}}}\n",
                VALUES[*value]
            )
        });
        lines.collect::<String>()
    })
}

/// Temporary files, threads and the size of parts change nothing.
fn same_in_files(query: &str, rows: &str) -> Result<(), TestCaseError> {
    let whole = run(query, rows, options(1, None));
    prop_assert_eq!(&whole.1, "", "{}", query);
    for threads in [1, 3] {
        let spilled = run(query, rows, options(threads, Some(spill())));
        prop_assert_eq!(&spilled, &whole, "{} on {} threads", query, threads);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn sorting_in_temporary_files_gives_the_same_bytes(rows in rows()) {
        for query in [
            "sort(_[\"key\"])",
            "sort(-_[\"key\"]) >> [_[\"at\"], _[\"value\"]]",
            "sort([_[\"value\"].to_s, _[\"key\"]])",
            "sort(_[\"value\"].to_s) >> select(_[\"key\"] > 0)",
            "{k: _[\"key\"], v: _[\"value\"]} >> sort(_[:k]) >> _[:v]",
            "[_[\"value\"], _[\"key\"]] >> sort(_[1]) >> _[0]",
            "group_by(_[\"key\"].to_i) { sort(-_[\"at\"]) }",
        ] {
            let whole = run(query, &rows, options(1, None));
            for threads in [1, 3] {
                let spilled = run(query, &rows, options(threads, Some(spill())));
                prop_assert_eq!(&spilled, &whole, "{} on {} threads", query, threads);
            }
        }
    }

    #[test]
    fn groups_in_temporary_files_give_the_same_bytes(rows in rows()) {
        for query in [
            "group_by(_[\"at\"]) { count() }",
            "group_by(_[\"at\"].to_s) { average(_[\"key\"]) } >> _.length",
            "group_by([_[\"at\"] % 40, _[\"key\"]]) { |r| {n: count(), all: group(r[\"value\"])} }",
            "group_by(_[\"value\"].to_s + (_[\"at\"] % 30).to_s)",
            "group_by(_[\"at\"]) { group_by(_[\"key\"]) { count() } } >> _.to_a >> flat",
            "group_by(_[\"at\"] / 2) { |r| count() if r[\"key\"] > 0 }",
            "select(_[\"key\"] > -2) >> {k: _[\"at\"] % 70, v: _[\"key\"] * 0.1} >> group_by(_[:k]) { sum(_[:v]) }",
            "group_by($FILENAME + (_[\"at\"] % 50).to_s) { last(_[\"at\"]) }",
        ] {
            same_in_files(query, &rows)?;
        }
        // Of each reducer, also with sums of floats, whose order counts.
        for reducer in [
            "sum(v)", "count()", "count(v)", "count_if(v > 0)", "min(v)", "max(v)", "average(v)", "stdev(v)",
            "percentile(v, [0.1, 0.5])", "percentile(v, [0.1, 0.5], error: 0.01)", "percentile(v, 0.5, weight: 2)", "histogram(v, 1)", "distinct(v)", "top(2, v)", "group(v)", "sort(v)",
            "first(v)", "last(v)", "mode(v)", "corr(v, r[\"at\"])", "sum(v, initial: 0.5)", "[min(v), max(v)]",
        ] {
            let group = format!("group_by(_[\"at\"] % 60) {{ |r| v = r[\"key\"] * 0.1; {reducer} }}");
            same_in_files(&group, &rows)?;
        }
    }

    #[test]
    fn sort_and_limit_give_the_first_rows_of_sort(rows in rows(), count in 1..40_usize) {
        for sort in ["sort(_[\"key\"])", "sort(-_[\"key\"])", "[_[\"key\"], _[\"at\"]] >> sort(_[0])", "_[\"key\"] >> sort"] {
            let (whole, _) = run(sort, &rows, options(1, None));
            let first: String = whole.split_inclusive('\n').take(count).collect();
            for threads in [1, 3] {
                let query = format!("{sort} >> limit({count})");
                prop_assert_eq!(run(&query, &rows, options(threads, None)).0, first.clone());
            }
        }
    }
}

#[test]
fn more_runs_than_are_merged_at_once_become_one() {
    let rows: String = (0..3000)
        .map(|at| format!("{{\"key\":{},\"at\":{at}}}\n", at * 7 % 1000))
        .collect::<Vec<_>>()
        .concat();
    let before = CREATED.load(Ordering::Relaxed);
    let spilled = run("sort(_[\"key\"])", &rows, options(1, Some(spill())));
    assert!(CREATED.load(Ordering::Relaxed) - before > 100);
    assert_eq!(spilled, run("sort(_[\"key\"])", &rows, options(1, None)));
}

#[test]
fn a_full_disk_is_an_error_that_names_the_directory() {
    let full = Spill {
        create: || Err(io::Error::from(ErrorKind::StorageFull)),
        ..spill()
    };
    let rows = "{\"key\":1}\n".repeat(100);
    let (_, errors) = run("sort(_[\"key\"])", &rows, options(1, Some(full)));
    assert!(
        errors.contains("a temporary file in /elsewhere: "),
        "{errors}"
    );
}

#[test]
fn sort_and_limit_keep_no_other_rows() {
    let rows: String = (0..2000)
        .map(|at| format!("{{\"key\":{}}}\n", at % 977))
        .collect::<Vec<_>>()
        .concat();
    let mut sizes = Vec::new();
    for query in ["sort(_[\"key\"])", "sort(_[\"key\"]) >> limit(3)"] {
        let query = Query::compile(query, &[], Options::default()).unwrap();
        let (mut state, mut errors) = (Vec::new(), Vec::new());
        let input = Input::from_bytes("rows", rows.clone().into_bytes());
        assert!(query.partial(vec![input], &mut state, &mut errors));
        sizes.push(state.len());
    }
    assert!(sizes[0] > 20_000 && sizes[1] < 400, "{sizes:?}");
}

#[test]
fn keys_that_cannot_be_compared_are_an_error_at_the_end() {
    let rows = "{\"key\":1}\n{\"key\":\"a\"}\n";
    let (out, errors) = run("sort(_[\"key\"]) >> limit(1)", rows, options(1, None));
    assert_eq!(out, "");
    assert!(
        errors.ends_with("failed (ArgumentError) at end of input, stage 0\n"),
        "{errors}"
    );
}

#[test]
fn keys_that_cannot_be_compared_are_an_error_at_the_end_with_any_limit() {
    let rows: String = (0..300)
        .map(|at| {
            format!(
                "{{\"key\":{}}}\n",
                if at == 70 {
                    "\"a\"".to_owned()
                } else {
                    at.to_string()
                }
            )
        })
        .collect::<Vec<_>>()
        .concat();
    for query in ["sort(_[\"key\"])", "group_by(1) { sort([_[\"key\"]]) }"] {
        for (threads, spill) in [(1, None), (1, Some(spill())), (3, Some(spill()))] {
            let (out, errors) = run(query, &rows, options(threads, spill));
            assert_eq!(out, "");
            assert!(
                errors.ends_with("failed (ArgumentError) at end of input, stage 0\n"),
                "{errors}"
            );
        }
    }
}

#[test]
fn what_keys_and_rows_refer_to_counts() {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let spill = Spill {
        bytes_max: 30_000,
        create: || {
            FILES.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(Cursor::new(Vec::<u8>::new())) as Box<dyn TemporaryFile>)
        },
        ..spill()
    };
    let rows: Vec<String> = (0..200).map(|at| format!("{}\n", at * 7 % 200)).collect();
    let rows = rows.concat();
    for query in [
        "sort([_.to_s * 100, -_])",
        "_.to_s * 100 >> sort(_[0])",
        "[_.to_s * 100] >> sort(_[0][-1])",
    ] {
        let before = FILES.load(Ordering::Relaxed);
        let spilled = run(query, &rows, options(1, Some(spill.clone())));
        assert!(FILES.load(Ordering::Relaxed) > before, "{query}");
        assert_eq!(spilled, run(query, &rows, options(1, None)));
    }
}

#[test]
fn tables_of_files_use_files_of_their_own() {
    let rows: String = (0..8000)
        .map(|at| format!("{{\"key\":{},\"at\":{at}}}\n", at * 7919 % 5003))
        .collect::<Vec<_>>()
        .concat();
    for query in [
        "group_by(_[\"key\"]) { sum(_[\"at\"]) }",
        "group_by(_[\"key\"]) { sum(_[\"at\"]) } >> _.keys",
    ] {
        let before = CREATED.load(Ordering::Relaxed);
        let spilled = run(query, &rows, options(1, Some(spill())));
        assert!(CREATED.load(Ordering::Relaxed) - before > 200);
        assert_eq!(spilled, run(query, &rows, options(1, None)));
    }
}

#[test]
fn an_error_in_a_row_that_was_put_off_names_the_row() {
    let rows: String = (0..100)
        .map(|at| {
            format!(
                "{{\"at\":{at},\"value\":{}}}\n",
                if at == 90 { "\"x\"" } else { "1" }
            )
        })
        .collect::<Vec<_>>()
        .concat();
    let (out, errors) = run(
        "group_by(_[\"at\"]) { sum(_[\"value\"] + 1) }",
        &rows,
        options(1, Some(spill())),
    );
    assert_eq!(out, "");
    assert!(
        errors.starts_with(
            "error: no implicit conversion of Integer into String (TypeError) at rows:91, stage 0"
        ),
        "{errors}"
    );
}

/// Values whose text has `2^60` ones, of a few elements in memory: none is printed whole.
const HUGE: [&str; 3] = [
    "(x = [1]; 60.times { x = [x, x] }; x)",
    "(x = [1]; 60.times { x = [x, x] }; {a: [x]})",
    "(x = [1]; 60.times { x = [x, x] }; x.to_json)",
];
const FORMATS: [Format; 4] = [Format::Json, Format::Pretty, Format::Csv, Format::Tsv];

#[test]
fn a_row_that_is_printed_or_handed_over_obeys_the_memory_limit() {
    let options = |format| Options {
        memory: Some(Memory {
            bytes_max: 1,
            used: || Some(2),
        }),
        format,
        threads: 1,
        ..Options::default()
    };
    for (format, huge) in FORMATS
        .into_iter()
        .flat_map(|it| HUGE.map(|huge| (it, huge)))
    {
        let (out, errors) = run(huge, "1\n", options(format));
        assert!(errors.contains("NoMemoryError"), "{format:?}: {errors}");
        assert_eq!(out, "", "{format:?}");
    }
    for huge in HUGE {
        let query = Query::compile(huge, &[], options(Format::Json)).unwrap();
        let inputs = || vec![Input::from_bytes("rows", b"1\n".to_vec())];
        let rows = query.for_each(inputs(), |_| panic!("a row"));
        let records = query.for_each_record(inputs(), |_, _| panic!("a record"));
        for outcome in [rows, records] {
            let errors = format!("{:?}", outcome.errors);
            assert!(errors.contains("NoMemoryError"), "{errors}");
        }
    }
}

/// The same values, made into a text or an Array by a method or a form of the language.
#[test]
fn what_a_value_becomes_obeys_the_memory_limit_while_it_is_made() {
    for (interrupts, form) in [false, true].into_iter().flat_map(|interrupts| {
        [
            "x.inspect",
            "x.to_s",
            "{a: x}.to_s",
            "x.each.inspect",
            "x.each_slice(2).to_s",
            "x.flatten",
            "x.join",
            "x * \", \"",
            "\"#{x}\"",
            "\"a\".gsub(/a/) { x }",
            "\"a\".gsub(/a/, {\"a\" => x})",
            "(x = 1..2; 60.times { x = (x..x) }; x.to_s)",
            "(x = 1..2; 60.times { x = (x..x) }; x.inspect)",
            "format(\"%s\", x)",
            "format(\"%p\", x)",
            "format(\"%{x}\", {x: x})",
            "String(x)",
            "(begin; raise StandardError.new(x); rescue => e; e.message; end)",
        ]
        .map(move |form| (interrupts, form))
    }) {
        static ENDED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
        ENDED.store(false, Ordering::Relaxed);
        let options = Options {
            interrupt: Some(Arc::clone(&ENDED)),
            memory: Some(Memory {
                bytes_max: 1,
                used: if interrupts {
                    || {
                        ENDED.store(true, Ordering::Relaxed);
                        None
                    }
                } else {
                    || Some(2)
                },
            }),
            threads: 1,
            ..Options::default()
        };
        let query = format!("(x = [1]; 60.times {{ x = [x, x] }}; {form}; 0)");
        let (out, errors) = run(&query, "1\n", options);
        assert_eq!(out, "", "{form}");
        if !interrupts {
            assert!(errors.contains("NoMemoryError"), "{form}: {errors}");
        }
    }
}

/// A message is about a value, and need not have all of it.
#[test]
fn the_value_in_a_message_is_cut() {
    for form in ["Integer(x)", "[1].first(x)"] {
        let query = format!("(x = [1]; 60.times {{ x = [x, x] }}; {form})");
        let (out, errors) = run(&query, "1\n", options(1, None));
        assert_eq!(out, "", "{form}");
        assert!(errors.contains("Error"), "{form}: {} bytes", errors.len());
        assert!(errors.len() < 3 << 20, "{form}: {} bytes", errors.len());
    }
}

/// The rows of a query that ends within the patience of a test.
#[expect(
    clippy::disallowed_methods,
    reason = "a query that does not end must not keep the test from failing"
)]
fn run_soon(query: &str, rows: &str, options: Options) -> (String, String) {
    let (sender, results) = mpsc::channel();
    let (text, rows) = (query.to_owned(), rows.to_owned());
    // Not joined: one that does not end is left to the end of the process.
    thread::spawn(move || sender.send(run(&text, &rows, options)));
    let result = results.recv_timeout(Duration::from_secs(20));
    result.unwrap_or_else(|error| panic!("{error}: {query}"))
}

/// Values with `2^60` paths to a few parts: a walk takes the parts, not the paths.
#[test]
fn what_compares_or_hashes_values_ends_if_they_share_parts() {
    const SHARED: [&str; 5] = [
        "[v, v]",
        "{a: v, b: v}",
        "[{a: v}, [v]]",
        "{v => v}",
        "(v..v)",
    ];
    const FORMS: [(&str, &str); 19] = [
        ("x == y", "true"),
        ("x != y", "false"),
        ("x == z", "false"),
        ("[x] <=> [y]", "0"),
        ("(x..x).nil?", "false"),
        ("(x..y).nil?", "false"),
        ("{x => 1}[y]", "1"),
        ("{x => 1}[z]", "null"),
        ("[x, y, z].uniq.size", "2"),
        ("([x] & [y]).size", "1"),
        ("([x] - [y]).size", "0"),
        ("[z, x].include?(y)", "true"),
        ("[z, x].index(y)", "1"),
        ("[x, y].tally.size", "1"),
        ("[x, y].group_by { |it| it }.size", "1"),
        ("[[y, 2], [x, 1]].sort[0][1]", "1"),
        ("[x, y].max == x", "true"),
        ("{a: x}.value?(y)", "true"),
        ("[[x, 1]].to_h[y]", "1"),
    ];
    for shared in SHARED {
        for (form, wanted) in FORMS {
            let grown = |name: &str, leaf: &str| {
                let step = shared.replace('v', name);
                format!("{name} = {leaf}; 60.times {{ {name} = {step} }}")
            };
            let (x, y, z) = (grown("x", "1"), grown("y", "1"), grown("z", "2"));
            let query = format!("({x}; {y}; {z}; {form})");
            let (out, errors) = run_soon(&query, "1\n2\n", options(1, None));
            assert_eq!(
                (out, errors),
                (format!("{wanted}\n").repeat(2), String::new()),
                "{query}"
            );
        }
    }
}

#[test]
fn stages_that_group_and_sort_values_end_if_they_share_parts() {
    for (rest, wanted) in [
        ("group_by(x) { count() }) >> _.values", "[2]\n"),
        ("distinct(x)) >> _.size", "1\n"),
        ("[count(), x]) >> _[0]", "2\n"),
        ("{n: count(), x: [x]}) >> _[:n]", "2\n"),
        ("x) >> sort(1) >> 1", "1\n1\n"),
        ("x) >> sort >> 1", "1\n1\n"),
        ("[x, 1]) >> sort(_[1]) >> 1", "1\n1\n"),
        ("[x, 1]) >> sort(_[0]) >> 1", "1\n1\n"),
    ] {
        for spill in [None, Some(spill())] {
            let query = format!("(x = [1]; 60.times {{ x = [x, x] }}; {rest}");
            let (out, errors) = run_soon(&query, "1\n2\n", options(1, spill));
            assert_eq!((out.as_str(), errors.as_str()), (wanted, ""), "{query}");
        }
    }
}

/// A Hash and a list of parts in two orders, more than are hashed.
#[test]
fn values_that_share_parts_are_one_key_in_any_order() {
    let x = "(x = [1]; 60.times { x = [x, x] }; y = [1]; 60.times { y = [y, y] }";
    for (form, wanted) in [
        ("{{a: x, b: 2} => 1}[{b: 2, a: y}]", "1"),
        ("{{a: x, b: 2} => 1}[{b: 3, a: y}]", "null"),
        ("{{a: x, b: x, c: 1} => 1}[{c: 1, b: y, a: y}]", "1"),
        ("{a: x, b: 2} == {b: 2, a: y}", "true"),
        ("[x, 1] <=> [y, 2]", "-1"),
        ("[1, x] == [1.0, y]", "true"),
        ("{[1, x] => 1}[[1.0, y]]", "null"),
    ] {
        let query = format!("{x}; {form})");
        let (out, errors) = run_soon(&query, "1\n2\n", options(1, None));
        assert_eq!(
            (out, errors),
            (format!("{wanted}\n").repeat(2), String::new()),
            "{query}"
        );
    }
}

/// A product or a text of it used to take minutes, which no signal and no limit ended.
#[test]
fn integers_have_a_bounded_length() {
    let long = "9".repeat(39_456);
    for query in [
        "x = 3; 40.times { x = x * x }; x.to_s.length",
        "x = 3; 40.times { x = x ** 2 }; 1",
        "x = 1; 40.times { x = x << 100_000 }; 1",
        "x = _[\"long\"]; 40.times { x = x + x }; 1",
        "(1..100_000).inject(:*)",
        "(_[\"long\"].to_s * 2).to_i",
        "Integer(_[\"long\"].to_s * 2)",
        "(\"f\" * 40_000).hex",
        "-1.floor(-100_000)",
        "2 ** 131_072",
        "2 ** 131_071 * 2",
        "x = 2 ** 131_071; x + x",
    ] {
        let rows = format!("{{\"long\":{long}}}\n");
        let (out, errors) = run_soon(query, &rows, Options::default());
        assert_eq!(out, "", "{query}");
        assert!(
            errors.contains(" bits (expected at most 131072)"),
            "{query}: {errors}"
        );
    }
    // The longest that a row may have, with what becomes of it.
    let row = format!("{{\"long\":-{long}}}\n");
    let answers = run(
        "[_[\"long\"].abs.to_s.length, _[\"long\"] + 1 > _[\"long\"], -15.floor(-400) == -(10 ** 400), (10 ** 39_456 - 1).to_s.length, (2 ** 131_071 + (2 ** 131_071 - 1)).to_s.length, 0 << 9_999_999, 7.round(-9_999_999), 7.floor(-9_999_999)]",
        &row,
        Options::default(),
    );
    assert_eq!(
        answers,
        (
            "[39456,true,true,39456,39457,0,0,0]\n".to_owned(),
            String::new()
        )
    );
    for query in ["_[\"long\"] > 1", "_[\"a\"]", "_"] {
        let rows = format!("{{\"long\":1{long},\"a\":1}}\n");
        let (out, errors) = run(query, &rows, Options::default());
        assert_eq!(out, "", "{query}");
        assert!(
            errors.contains("39457 digits (expected at most 39456)"),
            "{query}: {errors}"
        );
    }
}

#[test]
fn a_template_that_contains_itself_is_an_error() {
    let (out, errors) = run("(a = [1]; a << a; [count(), a])", "1\n", options(1, None));
    assert_eq!(out, "");
    assert!(
        errors.contains("tried to fill a recursive value"),
        "{errors}"
    );
}

static INTERRUPT: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

#[test]
fn a_signal_ends_a_run_that_prints_a_row() {
    for (format, huge) in FORMATS
        .into_iter()
        .flat_map(|it| HUGE.map(|huge| (it, huge)))
    {
        INTERRUPT.store(false, Ordering::Relaxed);
        let options = Options {
            interrupt: Some(Arc::clone(&INTERRUPT)),
            memory: Some(Memory {
                bytes_max: u64::MAX,
                // While the row is printed.
                used: || {
                    INTERRUPT.store(true, Ordering::Relaxed);
                    None
                },
            }),
            format,
            threads: 1,
            ..Options::default()
        };
        let (out, errors) = run(huge, "1\n", options);
        assert!(INTERRUPT.load(Ordering::Relaxed), "{format:?}: {errors}");
        assert_eq!(out, "", "{format:?}");
    }
}

/// What they would make does not fit.
#[test]
fn the_memory_limit_counts_what_a_method_is_about_to_make() {
    let options = Options {
        memory: Some(Memory {
            bytes_max: 50 << 20,
            used: || Some(0),
        }),
        threads: 1,
        ..Options::default()
    };
    for query in [
        "(\"a\" * 10**9).size",
        "([1] * 40_000_000).size",
        "\"a\".ljust(90_000_000).size",
        "Array.new(90_000_000).size",
    ] {
        let (_, errors) = run(query, "1\n", options.clone());
        assert!(errors.contains("NoMemoryError"), "{query}: {errors}");
        let smaller = query.replace("0_000", "0").replace("**9", "**6");
        let (out, errors) = run(&smaller, "1\n", options.clone());
        assert_eq!(errors, "", "{smaller}");
        assert!(out.len() > 4, "{smaller}: {out}");
    }
}
