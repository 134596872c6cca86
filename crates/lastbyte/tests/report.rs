//! `lastbyte report` as people use it, and as they misuse it.

#![expect(
    clippy::disallowed_methods,
    reason = "what a command reads and writes is files"
)]

use std::{fs, path::Path, process::Command};

use serde_json::Value;

#[path = "report/figure.rs"]
mod figure;
#[path = "report/input.rs"]
mod input;
#[path = "report/ratio.rs"]
mod ratio;
#[path = "report/requests.rs"]
mod requests;
#[path = "common/run.rs"]
mod run;

use run::{check_failure, command_line, folder, lastbyte, stderr, stdout};

/// A log of two arms, the second of which is half as fast again.
fn log(lines: u64) -> String {
    let line = |number: u64| {
        let arm = if number.is_multiple_of(2) {
            "baseline"
        } else {
            "new"
        };
        let ttlb = (200 + number * 7919 % 800) * if number.is_multiple_of(2) { 3 } else { 2 };
        format!(
            "{{\"arm\":\"{arm}\",\"ttlb\":{ttlb},\"content_length\":300000,\"site\":\"here\",\"experiment\":\"x\"}}\n"
        )
    };
    (0..lines).map(line).collect()
}

#[test]
fn a_log_becomes_a_page_and_charts() {
    let folder = folder("report-page");
    fs::write(folder.join("a.ndjson"), log(1000)).expect("a log");
    let output = lastbyte(&folder, &["report", "a.ndjson", "-o", "page.html"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stdout(&output);
    assert!(
        printed.starts_with("arm       conns  complete"),
        "{printed}"
    );
    let words: Vec<&str> = printed
        .lines()
        .nth(2)
        .expect("an arm")
        .split_whitespace()
        .collect();
    assert_eq!(words[..4], ["new", "500", "100.00", "%"], "{printed}");
    assert!(words.contains(&"(-33.7"), "{printed}");
    assert!(
        printed.contains("new is faster than baseline at P5–P95")
            && printed.contains("from the request to the last acknowledgment"),
        "{printed}"
    );
    let page = fs::read_to_string(folder.join("page.html")).expect("a page");
    assert!(
        page.starts_with("<!doctype html>")
            && page.contains("lastbyte report a.ndjson -o page.html<")
    );
    assert!(page.len() < 3_000_000);
    let charts = lastbyte(
        &folder,
        &command_line("report a.ndjson --figure 7in -o charts"),
    );
    assert!(charts.status.success(), "{}", stderr(&charts));
    for name in ["ttlb", "ttlb-size-1", "ttlb-site-here"] {
        let svg = fs::read_to_string(folder.join(format!("charts/{name}.svg"))).expect(name);
        assert!(svg.starts_with("<svg "), "{name}");
        assert!(folder.join(format!("charts/{name}.pdf")).exists(), "{name}");
    }
    // The same again is the same.
    let again = lastbyte(
        &folder,
        &command_line("report a.ndjson -o page.html --jobs 3"),
    );
    assert!(again.status.success());
    let strip = |page: &str| page.replace(" --jobs 3", "");
    assert!(strip(&fs::read_to_string(folder.join("page.html")).expect("a page")) == page);
    let json = lastbyte(&folder, &["report", "a.ndjson", "--json"]);
    let value: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(value["groups"][0]["arms"][0]["connections"], 500);
    assert!(folder.join("report.html").exists());
}

/// Writes a log whose lines have more keys, and one line that lacks them.
fn write_log_with_more_keys(folder: &Path) {
    let mut text = String::new();
    for (number, line) in log(2000).lines().enumerate() {
        let line = line.trim_end_matches('}');
        let ttfb = if number % 2 == 0 { 90.5 } else { 80.25 } + (number % 7) as f64;
        let (rtt, class) = (10 + number % 40, number % 3);
        text += line;
        text += &[
            ",\"client.ttfb\":",
            &ttfb.to_string(),
            ",\"link.rtt\":",
            &rtt.to_string(),
            ",\"class\":\"c",
            &class.to_string(),
            "\"}\n",
        ]
        .concat();
    }
    text += "{\"arm\":\"new\",\"ttlb\":1,\"experiment\":\"x\"}\n";
    fs::write(folder.join("a.ndjson"), text).expect("a log");
}

/// Any numeric key can take the place of the TTLB, and any key that of the site.
#[test]
fn another_metric_in_bins_of_another_key() {
    let folder = folder("report-metric");
    write_log_with_more_keys(&folder);
    let json = |more: &[&str]| -> Value {
        let output = lastbyte(&folder, &[&["report", "a.ndjson", "--json"], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).expect("JSON")
    };
    let report = json(&["--metric=client.ttfb", "--by=link.rtt", "--bins=4"]);
    assert_eq!(report["metric"], "client.ttfb");
    assert_eq!(report["unit"], "ms");
    let said = report["verdicts"][0].as_str().expect("a sentence");
    assert!(
        said.starts_with("new has a lower client.ttfb than baseline at P5–P95; −11.0"),
        "{said}"
    );
    assert_eq!(report["groups"][0]["arms"][0]["percentiles"][49], 93.5);
    let titles: Vec<&str> = report["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .filter_map(|group| group["title"].as_str())
        .collect();
    assert_eq!(
        titles,
        [
            "All connections",
            "10–20 ms",
            "20–30 ms",
            "30–40 ms",
            "40–50 ms",
            "here"
        ]
    );
    let bins = &report["groups"].as_array().expect("groups")[1..5];
    assert!(
        bins.iter()
            .all(|group| group["arms"][0]["connections"] == 250),
        "{titles:?}"
    );
    assert!(
        report["notes"]
            .to_string()
            .contains("1 connection has no value of `client.ttfb`"),
        "{}",
        report["warnings"]
    );
    // The queries of the page give its numbers.
    let query = report["groups"][1]["query_times"]
        .as_str()
        .expect("a query");
    let asked = lastbyte(&folder, &["query", query, "a.ndjson"]);
    let asked: Value = serde_json::from_str(&stdout(&asked)).expect("JSON");
    assert_eq!(
        asked["baseline"][1][1],
        report["groups"][1]["arms"][0]["percentiles"][49]
    );

    // A number without a unit is no time.
    let table = lastbyte(
        &folder,
        &[
            "report",
            "a.ndjson",
            "--metric=content_length",
            "--baseline=baseline",
        ],
    );
    let table = stdout(&table);
    assert!(
        table.contains("content_length p25") && !table.contains(" ms") && !table.contains("TTLB"),
        "{table}"
    );

    let by_class = json(&["--by=class"]);
    let titles: Vec<&str> = by_class["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .filter_map(|group| group["title"].as_str())
        .collect();
    assert_eq!(titles, ["All connections", "200–400 kB", "c0", "c1", "c2"]);
    let page = fs::read_to_string(folder.join("report.html")).expect("a page");
    assert!(page.contains("<h2>By class</h2>") && !page.contains("<h2>By site</h2>"));
}

#[test]
fn invalid_metrics_and_groups_are_errors() {
    let folder = folder("report-metric-errors");
    write_log_with_more_keys(&folder);
    for (arguments, wanted) in [
        (
            ["--metric=none", "--by=class"],
            "--metric: none of the 2001 lines has a value of `none` (expected a number)",
        ),
        (["--metric=0-1", "--by=class"], "invalid `0-1` in"),
        (
            ["--by=class", "--bins=3"],
            "--bins: `class` has too few distinct numbers for two bins",
        ),
        (["--by=class", "--site=x"], "cannot be used with"),
        (
            ["--metric=a b", "--by=class"],
            "error: --metric: `a b`: column 1: ",
        ),
        (
            ["--by=_[\"x\"] +", "--metric=ttlb"],
            "error: --by: `_[\"x\"] +`: column 9: ",
        ),
    ] {
        let output = lastbyte(&folder, &[&["report", "a.ndjson"], &arguments[..]].concat());
        assert!(!output.status.success(), "{arguments:?}");
        assert!(
            stderr(&output).contains(wanted),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    let output = lastbyte(&folder, &["report", "-", "--bins=3"]);
    assert!(
        stderr(&output).contains("--bins reads the log twice"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_end_of_the_name_of_a_key_suggests_it() {
    let folder = folder("report-part-of-name");
    write_log_with_more_keys(&folder);
    let output = lastbyte(&folder, &["report", "a.ndjson", "--by=rtt"]);
    let wanted = "`rtt`; did you mean `link.rtt`?\n";
    assert!(stderr(&output).ends_with(wanted), "{}", stderr(&output));
}

/// A key without a value in any line, and options that exclude all lines, are named; a condition with an absent key is reported.
#[test]
fn keys_that_no_line_has_and_options_that_exclude_all_lines_are_named() {
    let folder = folder("report-absent");
    write_log_with_more_keys(&folder);
    let none = "none of the 2001 lines";
    for (arguments, code, wanted) in [
        (
            &["--by=day"][..],
            2,
            format!("error: --by: {none} has a value of `day`\n"),
        ),
        (
            &["--by=clas"],
            2,
            format!("error: --by: {none} has a value of `clas`; did you mean `class`?\n"),
        ),
        (
            &["--by=link.rt", "--bins=4"],
            2,
            format!("error: --by: {none} has a value of `link.rt`; did you mean `link.rtt`?\n"),
        ),
        (
            &["--site=_[\"pop\"]&.upcase"],
            2,
            format!("error: --site: {none} has a value of `_[\"pop\"]&.upcase`\n"),
        ),
        (
            &["--arm=_[\"amr\"]"],
            2,
            format!("error: --arm-by: {none} has a value of `_[\"amr\"]`; did you mean `arm`?\n"),
        ),
        (
            &["--metric=client.tfb"],
            2,
            format!(
                "error: --metric: {none} has a value of `client.tfb`; did you mean `client.ttfb`?\n"
            ),
        ),
        (
            &["--min-size=200MB"],
            1,
            format!("error: {none} is left by --min-size 200000000\n"),
        ),
        (
            &["--where=_[\"calss\"] == \"c1\"", "--min-size=200MB"],
            1,
            format!(
                "error: {none} is left by --where and --min-size 200000000; no row has `calss`; did you mean `class`?\n"
            ),
        ),
        (
            &["--where=_[\"calss\"] != \"c1\""],
            0,
            "--where: no row has `calss`; did you mean `class`?\n".to_owned(),
        ),
    ] {
        let output = lastbyte(&folder, &[&["report", "a.ndjson"], arguments].concat());
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        if code == 0 {
            assert!(text.contains(&wanted), "{arguments:?}: {text}");
        } else {
            assert_eq!(text, wanted, "{arguments:?}");
        }
    }
    // Of a part, they are notes: other parts may have the key.
    for (option, wanted) in [
        (
            "--by=clas",
            format!("--by: {none} has a value of `clas`; did you mean `class`?"),
        ),
        (
            "--where=_[\"calss\"] != \"c1\"",
            "--where: no row has `calss`; did you mean `class`?".to_owned(),
        ),
    ] {
        let part = lastbyte(&folder, &["report", "--partial", option, "a.ndjson"]);
        assert!(part.status.success(), "{}", stderr(&part));
        assert!(stderr(&part).contains(&wanted), "{}", stderr(&part));
        assert!(stdout(&part).starts_with("[\"lastbyte-report-state\","));
    }
    // The states of parts do not have the lines that were excluded.
    let state = lastbyte(
        &folder,
        &["report", "--partial", "--min-size=200MB", "a.ndjson"],
    );
    fs::write(folder.join("a.state"), state.stdout).expect("a state");
    let merged = lastbyte(
        &folder,
        &["report", "--merge", "--min-size=200MB", "a.state"],
    );
    assert_eq!(
        stderr(&merged),
        "error: no line is left by --min-size 200000000\n"
    );
}

/// This many lines like one, each of another connection.
fn numbered(line: &str, lines: u32) -> String {
    let of = |id: u32| line.replace("\"conn_id\":1907798", &format!("\"conn_id\":{id}")) + "\n";
    (0..lines).map(of).collect()
}

#[test]
fn arms_of_h2o_logs_are_taken_from_their_flags() {
    let folder = folder("report-h2o");
    let line = include_str!("../../record/src/connection_log/sample-line.json").trim();
    let jump = line.replace("\"jumpstart.cwnd\":0", "\"jumpstart.cwnd\":88320");
    assert_ne!(jump, line);
    fs::write(folder.join("a.ndjson"), numbered(line, 20)).expect("a log");
    fs::write(folder.join("b.ndjson"), numbered(&jump, 21)).expect("a log");
    let output = lastbyte(&folder, &["report", "a.ndjson", "b.ndjson", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let arms = &value["groups"][0]["arms"];
    assert_eq!(
        (&arms[0]["arm"], &arms[0]["connections"]),
        (&"slow-start".into(), &20.into())
    );
    assert_eq!(
        (&arms[1]["arm"], &arms[1]["connections"]),
        (&"jumpstart".into(), &21.into())
    );
}

#[test]
fn states_of_parts_give_the_report_of_the_log() {
    let folder = folder("report-states");
    let text = log(1000);
    let (first, rest) = text.split_at(text.match_indices('\n').nth(332).expect("lines").0 + 1);
    for (name, part) in [("whole", &text[..]), ("a", first), ("b", rest)] {
        fs::write(folder.join(name), part).expect("a log");
    }
    let read = |arguments: &[&str]| {
        let output = lastbyte(&folder, arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    for options in [&[][..], &["--bins", "3", "--by", "ttlb"]] {
        for part in ["a", "b"] {
            let state = read(&[&["report", "--partial", part], options].concat());
            assert!(
                state.starts_with("[\"lastbyte-report-state\",3,"),
                "{state}"
            );
            fs::write(folder.join(format!("{part}.state")), state).expect("a state");
        }
        let merged = ["report", "--json", "--merge", "a.state", "b.state"];
        let expected = read(&[&["report", "--json", "whole"], options].concat());
        // Only the names of the logs differ.
        let merged = read(&[&merged[..], options].concat());
        assert_eq!(merged.replace("a b", "whole"), expected);
    }
    let page = fs::read_to_string(folder.join("report.html")).expect("a page");
    assert!(page.contains("report --json --merge a.state b.state"));
    let refused = |arguments: &[&str], exit: i32| {
        let _ = fs::remove_file(folder.join("report.html"));
        let output = lastbyte(&folder, arguments);
        assert_eq!(output.status.code(), Some(exit), "{}", stderr(&output));
        assert!(!folder.join("report.html").exists());
        stderr(&output)
    };
    // They were written with --bins.
    let other = refused(&["report", "--merge", "a.state", "b.state"], 1);
    assert!(other.contains("a.state: a state of another report (expected the same --arm-by,"));
    let log = refused(&["report", "--merge", "whole"], 1);
    assert!(log.contains("whole: not a state"), "{log}");
    fs::write(folder.join("cut"), &text[..text.len() - 9]).expect("a log");
    let cut = refused(&["report", "--partial", "cut"], 1);
    assert!(
        cut.contains("no state of a log that cannot be read to its end: cut: "),
        "{cut}"
    );
    refused(&["report", "--partial", "--merge", "a.state"], 2);
    let copy = refused(
        &command_line("report --merge --bins 3 --by ttlb a.state b.state ./a.state"),
        2,
    );
    assert!(
        copy.contains("`a.state` and `./a.state` are the same file"),
        "{copy}"
    );
    fs::copy(folder.join("a.state"), folder.join("copy.state")).expect("a state");
    let copy = refused(
        &command_line("report --merge --by ttlb --bins 3 a.state copy.state"),
        1,
    );
    assert!(
        copy.contains("copy.state: its first 320 rows are those of a.state"),
        "{copy}"
    );
    refused(&["report", "--merge", "--bins", "3", "-"], 2);
}

#[test]
fn sites_of_similar_names_have_charts_of_their_own() {
    let folder = folder("report-similar");
    let sites = ["a b", "a-b", "A b"];
    let logs = sites.map(|site| log(200).replace("here", site));
    fs::write(folder.join("a.ndjson"), logs.concat()).expect("a log");
    let words = "report a.ndjson --resamples 100 --figure 7in -o charts";
    let output = lastbyte(&folder, &words.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut svgs: Vec<String> = fs::read_dir(folder.join("charts"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "svg"))
        .map(|path| fs::read_to_string(path).expect("a chart"))
        .collect();
    svgs.retain(|svg| sites.iter().any(|site| svg.contains(&format!(": {site}"))));
    assert_eq!(svgs.len(), sites.len());
}

#[test]
fn the_file_of_a_line_can_be_its_site() {
    let folder = folder("report-file-name");
    // Lines that differ in more than the name of their file are no copies.
    for (name, size) in [("fra.ndjson", "300000"), ("nrt.ndjson", "300001")] {
        let lines = log(200).replace("300000", size);
        fs::write(folder.join(name), lines).expect("a log");
    }
    let words = "report fra.ndjson nrt.ndjson --site $FILENAME --resamples 100 --json -o p.html";
    let output = lastbyte(&folder, &words.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = String::from_utf8_lossy(&output.stdout);
    for name in ["fra.ndjson", "nrt.ndjson"] {
        assert!(
            page.contains(&format!("\"title\": \"{name}\"")),
            "{name}: {page}"
        );
    }
}

#[test]
fn a_truncated_compressed_log_is_reported_up_to_its_end() {
    let folder = folder("report-cut");
    let text = log(500);
    let bytes = text.as_bytes();
    // A gzip member with a stored block (RFC 1951 §3.2.4) that is longer than what follows.
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let len = u16::try_from(bytes.len()).expect("a block holds it");
    packed.push(1);
    packed.extend(len.to_le_bytes());
    packed.extend((!len).to_le_bytes());
    packed.extend(&bytes[..bytes.len() - 700]);
    fs::write(folder.join("cut.ndjson.gz"), packed).expect("a log");
    let output = lastbyte(&folder, &["report", "cut.ndjson.gz"]);
    check_failure(&output, 1, "not all of the log could be read");
    assert!(
        stderr(&output).contains("cut.ndjson.gz"),
        "{}",
        stderr(&output)
    );
    let page = fs::read_to_string(folder.join("report.html")).expect("a page");
    assert!(page.contains("could not be read to its end"));
}

#[test]
fn an_experiment_ends_with_its_report() {
    let folder = folder("report-ab");
    let output = lastbyte(&folder, &["ab", "--connections", "48", "--seed", "5"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("wrote ab/report.html\n"),
        "{}",
        stderr(&output)
    );
    let page = fs::read_to_string(folder.join("ab/report.html")).expect("a page");
    for part in [
        "12 paths, each in every arm",
        "lastbyte ab --connections 48 --seed 5 --out ab",
        "lastbyte report ab/conns.ndjson --baseline slow-start",
        "rapid-start",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // The page is what `report` makes of the log, but for what only `ab` knows.
    let output = lastbyte(&folder, &["report", "ab/conns.ndjson", "--json"]);
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for verdict in value["verdicts"].as_array().expect("a list") {
        let (_, printed) = verdict
            .as_str()
            .expect("a sentence")
            .split_once([':', ' '])
            .expect("an arm, and what of it");
        assert!(page.contains(printed.trim()), "{printed}");
    }
}

/// Two arms with the same control, simulated: no significant difference.
#[test]
fn identical_arms_do_not_differ_significantly() {
    let folder = folder("report-aa");
    fs::write(
        folder.join("aa.toml"),
        "name = \"aa\"\nbaseline = \"one\"\n[[arms]]\nname = \"one\"\nspec = \"slow-start\"\n[[arms]]\nname = \"other\"\nspec = \"slow-start\"\n",
    )
    .expect("an experiment");
    let output = lastbyte(
        &folder,
        &command_line("ab aa.toml --connections 400 --seed 11 --unpaired"),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("other: no significant difference from one"),
        "{}",
        stdout(&output)
    );
    // In pairs there is not even a difference.
    let output = lastbyte(
        &folder,
        &["ab", "aa.toml", "--connections", "80", "--force"],
    );
    assert!(
        stdout(&output).contains("other: no significant difference from one"),
        "{}",
        stdout(&output)
    );
    assert!(
        stdout(&output).contains("0.0 % at P50"),
        "{}",
        stdout(&output)
    );
}

/// Who presses Ctrl-C gets a log of what is done, in whole pairs, and a report on it.
#[cfg(unix)]
#[test]
fn an_interrupted_experiment_is_reported_up_to_its_end() {
    let folder = folder("report-interrupted");
    let words = ["ab", "--connections", "1000000", "--seed", "2"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
        .args(words)
        .current_dir(&folder)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // The first lines are there before long.
    let log = folder.join("ab/conns.ndjson");
    while fs::metadata(&log).map_or(0, |metadata| metadata.len()) == 0 {
        assert!(
            child.try_wait().expect("a child").is_none(),
            "it ended by itself"
        );
        std::thread::yield_now();
    }
    let whole_lines = || {
        let text = fs::read_to_string(&log).expect("a log");
        text.matches('\n').count()
    };
    let seen = whole_lines();
    // Two signals at once, as from `timeout`.
    let pressed = Command::new("sh")
        .args(["-c", "kill -INT $0; kill -TERM $0"])
        .arg(child.id().to_string())
        .status()
        .expect("kill runs");
    assert!(pressed.success());
    let output = child.wait_with_output().expect("it ends");
    check_failure(&output, 130, "interrupted: ");
    // What was there is kept, and what was ready is added.
    let lines = whole_lines();
    assert!(
        seen > 0 && lines >= seen && lines.is_multiple_of(4),
        "{seen} {lines}"
    );
    let page = fs::read_to_string(folder.join("ab/report.html")).expect("a page");
    assert!(page.contains(&format!("lastbyte ab --connections {lines} --seed 2")));
}

/// A name on the command line need not be UTF-8; the page says how it was given.
#[cfg(unix)]
#[test]
fn file_names_need_not_be_utf8() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let folder = folder("report-bytes");
    let name = OsStr::from_bytes(b"a'\xff b");
    fs::write(folder.join(name), log(1000)).expect("a log");
    let report = |name: &OsStr| {
        Command::new(env!("CARGO_BIN_EXE_lastbyte"))
            .arg("report")
            .arg(name)
            .current_dir(&folder)
            .output()
            .expect("the binary runs")
    };
    let output = report(name);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = fs::read_to_string(folder.join("report.html")).expect("a page");
    assert!(page.contains(r"lastbyte report $&#39;a\&#39;\xff b&#39;"));
    let output = report(OsStr::from_bytes(b"\xff"));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with("error: cannot read `"),
        "{}",
        stderr(&output)
    );
}

/// `serve` logs a line for each connection, small objects too; they count if they are asked for.
#[test]
fn small_objects_of_a_production_log_are_included_on_request() {
    let folder = folder("report-small");
    let small = log(400).replace("{\"arm\"", "{\"module\":\"lastbyte\",\"arm\"");
    let large = small.replace("300000", "3000000");
    fs::write(
        folder.join("a.ndjson"),
        small.replace("300000", "30000") + &large,
    )
    .expect("a log");
    let connections = |arguments: &[&str]| {
        let words = [&["report", "a.ndjson", "--json"], arguments].concat();
        let output = lastbyte(&folder, &words);
        assert!(output.status.success(), "{}", stderr(&output));
        let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        value["groups"][0]["arms"][0]["connections"].clone()
    };
    assert_eq!(connections(&[]), 200);
    assert_eq!(connections(&["--min-size", "0"]), 400);
    assert_eq!(connections(&["--min-size", "30kB"]), 400);
    assert_eq!(connections(&["--min-size", "1MiB"]), 200);
    let output = lastbyte(&folder, &["report", "a.ndjson", "--shares", "base=9"]);
    check_failure(&output, 2, "--shares: unknown arm `base`");
}

/// A page takes the place of a page, and of nothing else.
#[test]
fn a_log_is_not_overwritten_by_its_page() {
    let folder = folder("report-over-log");
    for name in ["a.ndjson", "log.html"] {
        fs::write(folder.join(name), log(1000)).expect("a log");
    }
    let report = |output: &str| lastbyte(&folder, &["report", "a.ndjson", "-o", output]);
    for (name, why) in [
        ("a.ndjson", "unknown format `a.ndjson`"),
        ("log.html", "exists and is not an HTML page"),
    ] {
        let output = report(name);
        check_failure(&output, 2, why);
        assert_eq!(
            fs::read_to_string(folder.join(name)).expect("a log"),
            log(1000)
        );
    }
    for _ in 0..2 {
        assert!(report("page.html").status.success());
    }
}

/// Simulates a transfer with qlog files in a directory, and returns the server's.
fn qlog(folder: &Path, out: &str) -> String {
    let arguments = ["sim", "--arm=cubic", "--size=300kB", "--qlog", out];
    let output = lastbyte(folder, &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let files = fs::read_dir(folder.join(out)).expect("a folder");
    let mut files = files.map(|file| file.expect("a file").path());
    let server = files.find(|file| file.to_string_lossy().contains("server"));
    server.expect("a server's file").display().to_string()
}

/// The files of server and client are drawn as one connection; a directory without files says so.
#[test]
fn a_directory_stands_for_its_qlog_files() {
    let folder = folder("report-plot-directory");
    qlog(&folder, "q");
    let output = lastbyte(&folder, &["plot", "q", "-o", "q.html"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = fs::read_to_string(folder.join("q.html")).expect("a page");
    let note =
        "\"note\":\"server, 311 kB sent, 0 of 248 packets lost (0.0 %); client, 311 kB received\"";
    assert!(page.contains(note));
    // By the same path, and by another one.
    for (again, wanted) in [
        ("q", "is given twice (expected each file once)"),
        ("./q", "are the same file (expected each file once)"),
    ] {
        let output = lastbyte(&folder, &["plot", "q", again, "-o", "again.html"]);
        check_failure(&output, 2, wanted);
    }
    fs::create_dir(folder.join("none")).expect("a folder");
    let output = lastbyte(&folder, &["plot", "none"]);
    assert_eq!(output.status.code(), Some(2));
    let wanted =
        "`none`: a directory without qlog files (expected names that end in .sqlog or .qlog)";
    assert!(stderr(&output).contains(wanted), "{}", stderr(&output));
}

/// The simulator's own qlog files are drawn; files that break off or are not qlog say so.
#[test]
fn a_qlog_file_becomes_a_picture() {
    let folder = folder("report-plot");
    let server = qlog(&folder, "q");
    let output = lastbyte(&folder, &["plot", &server, "-o", "a.html", "-o", "a.svg"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = fs::read_to_string(folder.join("a.html")).expect("a page");
    assert_eq!(page.matches("\"note\":\"server, 3").count(), 1);
    for series in [
        "sent",
        "acked",
        "window",
        "in_flight",
        "rtt",
        "rtt_smoothed",
    ] {
        assert_eq!(
            page.matches(&format!("\"{series}\":[")).count(),
            1,
            "{series}"
        );
    }
    // The first sentence says where the time went.
    assert_eq!(page.matches("<p class=\"summary\">").count(), 1);
    let svg = fs::read_to_string(folder.join("a.svg")).expect("an image");
    assert!(svg.contains("packets lost"));
    assert_eq!(stderr(&output), "wrote a.html\nwrote a.svg\n");

    let whole = fs::read(&server).expect("a file");
    fs::write(folder.join("cut.sqlog"), &whole[..whole.len() / 2]).expect("a file");
    let output = lastbyte(&folder, &["plot", "cut.sqlog", "-o", "cut.html"]);
    check_failure(
        &output,
        1,
        "the picture shows what could: `cut.sqlog`: after ",
    );
    assert!(folder.join("cut.html").exists());
    fs::write(folder.join("log.ndjson"), log(2)).expect("a file");
    for (arguments, code, wanted) in [
        (
            &["plot", "log.ndjson"][..],
            1,
            "`log.ndjson`: not a qlog file: its first object has no version",
        ),
        (
            &["plot", "a.svg"],
            1,
            "`a.svg`: not a qlog file: unexpected `<` (expected `{`)",
        ),
        (&["plot", "none.qlog"], 2, "cannot read `none.qlog`"),
        (
            &["plot", "cut.sqlog", "-o", "x.pdf"],
            2,
            "--out: `x.pdf` is a figure for print",
        ),
    ] {
        let output = lastbyte(&folder, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(
            stderr(&output).contains(wanted),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

/// Verdicts and help have colours on a terminal, or if `CLICOLOR_FORCE` asks for them; `NO_COLOR` forbids them.
#[test]
fn colours_follow_the_terminal_and_the_environment() {
    let folder = folder("report-colours");
    fs::write(folder.join("a.ndjson"), log(1000)).expect("a log");
    let print = |arguments: &[&str], variables: &[(&str, &str)]| {
        let output = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
            .args(arguments)
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .envs(variables.iter().copied())
            .current_dir(&folder)
            .output()
            .expect("the binary runs");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let force = ("CLICOLOR_FORCE", "1");
    for (arguments, colored) in [
        (&["report", "a.ndjson"][..], "\u{1b}[32mnew is faster"),
        (&["get", "--help"], "\u{1b}["),
    ] {
        let plain = print(arguments, &[]);
        assert!(!plain.contains('\u{1b}'), "{plain}");
        assert_eq!(print(arguments, &[force, ("NO_COLOR", "1")]), plain);
        let text = print(arguments, &[force]);
        assert!(text.contains(colored), "{text}");
    }
}

/// A failed write leaves the page of an earlier command, and no other file.
#[test]
fn a_page_that_cannot_be_written_leaves_the_earlier_one() {
    let folder = folder("report-full");
    fs::write(folder.join("a.ndjson"), log(1000)).expect("a log");
    assert!(
        lastbyte(&folder, &["report", "a.ndjson"]).status.success(),
        "a page"
    );
    let page = || fs::read(folder.join("report.html")).expect("a page");
    let earlier = page();
    let full = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 8; exec \"$0\" report a.ndjson --seed 7",
        ])
        .arg(env!("CARGO_BIN_EXE_lastbyte"))
        .current_dir(&folder)
        .output()
        .expect("a shell");
    check_failure(&full, 1, "cannot write `report.html`");
    assert!(page() == earlier);
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 2);
    // A symbolic link stays one.
    std::os::unix::fs::symlink("report.html", folder.join("link.html")).expect("a link");
    let words = ["report", "a.ndjson", "-o", "link.html", "--seed", "7"];
    assert!(lastbyte(&folder, &words).status.success());
    assert!(folder.join("link.html").is_symlink() && page() != earlier);
}
