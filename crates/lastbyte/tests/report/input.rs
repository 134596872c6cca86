//! Input and options that lead to an error instead of a report.

use super::*;

/// A log by its name and text, options, and a part of the error with its exit code.
type Case<'a> = (&'a str, &'a str, &'a [&'a str], &'a str, i32);

fn rejected(folder: &Path, (name, text, arguments, wanted, code): Case<'_>) {
    let file = format!("{name}.ndjson");
    fs::write(folder.join(&file), text).expect("a log");
    let words = [&["report", &file, "-o", "no.html"], arguments].concat();
    let output = lastbyte(folder, &words);
    let error = stderr(&output);
    assert!(error.contains(wanted), "{name}: {error}");
    assert_eq!(output.status.code(), Some(code), "{name}");
    assert!(!folder.join("no.html").exists(), "{name}");
}

#[test]
fn unusable_input_is_an_error() {
    let folder = folder("report-errors");
    let cases: [Case<'_>; 13] = [
        ("empty", "", &[], "error: the log has no lines", 1),
        ("text", "hello\n", &[], "error: not a connection log: ", 1),
        ("lists", "[1]\n", &[], "error: not a connection log: ", 1),
        (
            "other",
            "{\"a\":1}\n",
            &[],
            "lines has an arm (the key `arm`, or H2O's",
            1,
        ),
        (
            "one",
            "{\"arm\":\"a\",\"ttlb\":1}\n",
            &[],
            "all connections are of the arm `a`",
            1,
        ),
        (
            "two",
            "{\"arm\":\"a\",\"ttlb\":1,\"experiment\":\"x\"}\n{\"arm\":\"b\",\"ttlb\":1,\"experiment\":\"y\"}\n",
            &[],
            "several experiments (x, y)",
            1,
        ),
        (
            "never",
            "{\"arm\":\"a\"}\n{\"arm\":\"b\",\"ttlb\":1}\n",
            &[],
            "no transfer of the baseline `a` completed",
            1,
        ),
        // There is a table of requests, and no page.
        (
            "access",
            "{\"type\":\"request\",\"arm\":\"a\",\"ms\":1}\n{\"type\":\"request\",\"arm\":\"b\",\"ms\":1}\n",
            &[],
            "--out is for connection logs, and this is an access log",
            2,
        ),
        (
            "base",
            "{\"arm\":\"a\",\"ttlb\":1}\n{\"arm\":\"b\",\"ttlb\":1}\n",
            &["--baseline", "c"],
            "unknown arm `c` (expected one of a, b)",
            2,
        ),
        ("share", "", &["--shares", "a"], "expected ARM=N", 2),
        (
            "share0",
            "",
            &["--shares", "a=0"],
            "invalid share `0` (expected a number above 0)",
            2,
        ),
        (
            "where",
            "{\"arm\":\"a\",\"ttlb\":1}\n",
            &["--where", "_["],
            "error: --where: ",
            2,
        ),
        ("few", "", &["--resamples", "3"], "from 100 to 100000", 2),
    ];
    for case in cases {
        rejected(&folder, case);
    }
    let output = lastbyte(&folder, &["report", "."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with("error: cannot read `.`: is a directory"),
        "{}",
        stderr(&output)
    );
    let output = lastbyte(&folder, &["report", "not-there.ndjson"]);
    assert!(
        stderr(&output).starts_with("error: cannot read `not-there.ndjson`: "),
        "{}",
        stderr(&output)
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn options_that_do_not_fit_the_log_are_errors() {
    let folder = folder("report-unfit");
    let cases: [Case<'_>; 3] = [
        (
            "raises",
            "{\"arm\":\"a\",\"ttlb\":1}\n{\"arm\":\"b\",\"ttlb\":1}\n",
            &["--where", "_[\"tlb\"] > 3"],
            "error: --where: `_[\"tlb\"] > 3`: undefined method '>' for nil (NoMethodError) at raises.ndjson:1, stage 0: `tlb` is nil; none of the rows read has `tlb`; did you mean `ttlb`?",
            2,
        ),
        (
            "words",
            "{\"arm\":\"a\",\"ttlb\":1}\n{\"arm\":\"b\",\"ttlb\":1}\n",
            &["--metric", "arm"],
            "error: --metric: invalid `arm` in 2 lines, first `\"a\"` (expected a number from zero to 10^15)",
            2,
        ),
        (
            "again",
            "{\"arm\":\"a\",\"ttlb\":1}\n{\"arm\":\"b\",\"ttlb\":1}\n",
            &["./again.ndjson"],
            "error: `again.ndjson` and `./again.ndjson` are the same file (expected each log once)",
            2,
        ),
    ];
    for case in cases {
        rejected(&folder, case);
    }
}

#[test]
fn a_value_that_the_report_cannot_use_ends_the_log_and_is_no_error_of_where() {
    let folder = folder("report-unusable-value");
    let bad = "{\"arm\":\"a\",\"ttlb\":5,\"client.ttfb\":\"n/a\"}\n";
    fs::write(folder.join("bad.ndjson"), log(300) + bad).expect("a log");
    let output = lastbyte(
        &folder,
        &["report", "bad.ndjson", "--where", "_[\"ttlb\"] != 7"],
    );
    let text = stderr(&output);
    assert!(text.contains("the report is of what could: "), "{text}");
    assert!(!text.contains("error: --where"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    assert!(folder.join("report.html").exists());
}

/// A link is the same file, and a compressed copy has the same lines.
#[test]
fn a_log_that_is_given_twice_by_another_name_is_an_error() {
    let folder = folder("report-twice");
    fs::write(folder.join("a.ndjson"), log(300)).expect("a log");
    fs::hard_link(folder.join("a.ndjson"), folder.join("hard.ndjson")).expect("a link");
    fs::copy(folder.join("a.ndjson"), folder.join("copy.ndjson")).expect("a copy");
    #[cfg(unix)]
    std::os::unix::fs::symlink("a.ndjson", folder.join("soft.ndjson")).expect("a link");
    for (other, exit, expected) in [
        (
            "a.ndjson",
            2,
            "error: `a.ndjson` is given twice (expected each log once)",
        ),
        #[cfg(unix)]
        (
            "hard.ndjson",
            2,
            "error: `a.ndjson` and `hard.ndjson` are the same file (expected each log once)",
        ),
        #[cfg(unix)]
        (
            "soft.ndjson",
            2,
            "error: `a.ndjson` and `soft.ndjson` are the same file (expected each log once)",
        ),
        (
            "copy.ndjson",
            1,
            "error: 300 of 600 lines are copies of lines before them; the first is in a.ndjson and in copy.ndjson",
        ),
    ] {
        let output = lastbyte(&folder, &["report", "a.ndjson", other]);
        assert!(stderr(&output).starts_with(expected), "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(exit));
        assert!(!folder.join("report.html").exists());
    }
    // A few lines that were sent again.
    let numbered = |lines: usize| -> String {
        let text = log(300);
        let lines = text.lines().take(lines).enumerate();
        lines
            .map(|(id, line)| {
                line.replacen('{', &format!("{{\"conn_id\":{id},\"time\":{id},"), 1) + "\n"
            })
            .collect()
    };
    for (name, lines) in [("all.ndjson", 300), ("again.ndjson", 2)] {
        fs::write(folder.join(name), numbered(lines)).expect("a log");
    }
    let output = lastbyte(&folder, &["report", "all.ndjson", "again.ndjson"]);
    assert!(
        stderr(&output).starts_with("warning: 2 of 302 lines are copies of lines before them"),
        "{}",
        stderr(&output)
    );
    assert_eq!(output.status.code(), Some(3));
}

/// The ending of a name is that of its format, and a directory has none of a file.
#[test]
fn a_page_in_a_file_of_another_format_is_an_error() {
    let folder = folder("report-endings");
    fs::write(folder.join("a.ndjson"), log(500)).expect("a log");
    for (options, expected) in [
        (
            ["--out", "x.svg"],
            "--out: unknown format `x.svg` (expected a name that ends in .html; for charts: --figure WIDTH)",
        ),
        (["--out", "x.PNG"], "--out: unknown format `x.PNG`"),
        (["--out", "x.json"], "--out: unknown format `x.json`"),
    ] {
        let output = lastbyte(&folder, &[&["report", "a.ndjson"], &options[..]].concat());
        check_failure(&output, 2, expected);
    }
    let names = fs::read_dir(&folder).expect("a folder");
    assert_eq!(names.count(), 1);
    // A directory that is there is one, and the ending may be left out.
    fs::create_dir(folder.join("charts.svg")).expect("room");
    let output = lastbyte(&folder, &["report", "a.ndjson", "--out", "page"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(folder.join("page").exists());
    let output = lastbyte(
        &folder,
        &[
            "report",
            "a.ndjson",
            "--figure",
            "7in",
            "--out",
            "charts.svg",
        ],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(folder.join("charts.svg/ttlb.svg").exists());
    // Other commands.
    let output = lastbyte(&folder, &["ab", "--connections", "4", "--out", "ab.html"]);
    let expected = "`ab.html` is the name of a file (expected a directory)";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

/// A pipe is opened and read once.
#[test]
fn a_fifo_is_a_log() {
    let folder = folder("report-fifo");
    fs::write(folder.join("a.ndjson"), log(1000)).expect("a log");
    let made = Command::new("mkfifo").arg(folder.join("fifo")).status();
    assert!(made.expect("mkfifo runs").success());
    let text = |words: &[&str]| {
        let writer = Command::new("sh")
            .args(["-c", "exec cat a.ndjson > fifo"])
            .current_dir(&folder)
            .spawn();
        let output = lastbyte(&folder, words);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(writer.expect("a shell").wait().expect("a code").success());
        stdout(&output)
    };
    let of_file = stdout(&lastbyte(&folder, &["report", "a.ndjson"]));
    assert_eq!(text(&["report", "fifo"]), of_file);
    assert_eq!(text(&["query", "count()", "fifo"]), "1000\n");
    let bins = lastbyte(&folder, &["report", "fifo", "--by", "ttlb", "--bins", "2"]);
    check_failure(&bins, 2, "`fifo` can be read once");
}
