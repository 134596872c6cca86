//! `lastbyte compare`, as a user runs it.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test reads the files that the program writes, and asks servers"
)]

#[path = "common/serving.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod serving;

use std::{collections::BTreeSet, fs, path::Path, process::Output};

use serde_json::Value;

use serving::{command_line, folder, lastbyte};

const DOCS: &str = include_str!("../../../docs/compare.md");

fn compare(folder: &Path, arguments: &[&str]) -> Output {
    lastbyte(folder, &[&["compare"], arguments].concat())
}

fn rows(folder: &Path) -> Vec<Value> {
    let rows = fs::read_to_string(folder.join("loads.ndjson")).expect("rows");
    let rows = rows.lines().map(serde_json::from_str);
    rows.collect::<Result<_, _>>().expect("JSON")
}

/// Words in backticks of the first column of the tables of a section.
fn keys(heading: &str) -> BTreeSet<String> {
    let (_, rest) = DOCS.split_once(&format!("\n{heading}\n")).expect(heading);
    let section = rest
        .split_once("\n## ")
        .map_or(rest, |(section, _)| section);
    let first = section.lines().filter_map(|line| line.strip_prefix("| `"));
    first
        .filter_map(|line| line.split(" |").next())
        .flat_map(|cell| cell.split('`').step_by(2))
        .map(|key| key.trim().to_owned())
        .collect()
}

const SMALL: [&str; 8] = [
    "--pages",
    "2",
    "--network",
    "vdsl",
    "--network",
    "2mbit/100ms/1%",
    "--http",
    "1.1,2,3",
];

#[test]
fn rows_a_page_a_picture_and_a_summary_the_same_on_any_number_of_threads() {
    let folder = folder("compare-files");
    let run = |jobs: &str, out: &str| {
        let mut words = SMALL.to_vec();
        words.extend(["--jobs", jobs, "--out", out, "--json"]);
        let output = compare(&folder, &words);
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let summary = run("1", "one");
    assert_eq!(summary, run("3", "three"));
    let files = [
        "loads.ndjson",
        "report.svg",
        "first-render.svg",
        "summary.json",
    ];
    for file in files {
        let [one, three] = ["one", "three"].map(|out| fs::read(folder.join(out).join(file)));
        assert!(one.expect("a file") == three.expect("a file"), "{file}");
    }
    let rows = rows(&folder.join("one"));
    // Two pages on two networks, in two views, over three versions.
    assert_eq!(rows.len(), 24);
    for row in &rows {
        assert!(row["load_ms"].as_f64().is_some_and(|ms| ms > 50.0), "{row}");
        assert_eq!(row["failed"], 0, "{row}");
        let found: BTreeSet<String> = row
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect();
        assert_eq!(found, keys("## Rows"));
    }
    let summary: Value = serde_json::from_slice(&summary).expect("JSON");
    // Two arms besides the baseline, two metrics, two views, two networks.
    assert_eq!(summary["results"].as_array().map(Vec::len), Some(16));
    for result in summary["results"].as_array().expect("a list") {
        assert_eq!(result["pages"], 2);
    }
    let page = fs::read_to_string(folder.join("one/report.html")).expect("a page");
    for text in ["HTTP/1.1", "HTTP/3", "vdsl", "Pages that lose", "95 %"] {
        assert!(page.contains(text), "{text}");
    }
}

/// The rows of a run, without the numbers of its arms, networks, pages and views.
/// A network on which no page is loaded in time by both versions.
const HOPELESS: &str = "1mbit/400ms/45%";

#[test]
fn loads_that_are_not_complete_count_and_are_named_by_arm_and_network() {
    let folder = folder("compare-incomplete");
    let words = ["--pages", "4", "--network", HOPELESS, "--network", "vdsl"];
    let output = compare(
        &folder,
        &[&words[..], &["--http", "2,3", "--json"]].concat(),
    );
    assert!(output.status.success(), "{output:?}");
    let warnings = String::from_utf8_lossy(&output.stderr);
    for warning in [
        "warning: HTTP/2: page loads not complete: 4 of 4 on 1mbit/400ms/45%, first view (",
        "warning: HTTP/3: page loads not complete: 4 of 4 on 1mbit/400ms/45%, first view (",
        "; 4 of 4 on 1mbit/400ms/45%, repeat view (",
        "request", // failed, of a page that is named
        ", 1 more).\n",
        "counts as infinitely long in shares and percentiles; the mean speedup is of the other pages",
    ] {
        assert!(warnings.contains(warning), "{warning}: {warnings}");
    }
    let mut failed = 0;
    for row in rows(&folder.join("compare")) {
        if row["failed"] != 0 {
            failed += 1;
            assert!(
                row["load_ms"].is_null() && row["first_render_ms"].is_null(),
                "{row}"
            );
        }
    }
    assert!(failed > 0, "connections fail at this loss");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let hopeless = &summary["results"][0];
    assert_eq!(hopeless["network"], HOPELESS);
    assert_eq!(
        (&hopeless["pages"], &hopeless["incomplete_arm"]),
        (&Value::from(4), &Value::from(4))
    );
    assert_eq!(hopeless["faster"][0], 0.0);
    assert!(hopeless["speedup"].is_null() && hopeless["speedup_median"].is_null());
    assert!(
        summary["results"][1]["speedup"].is_array(),
        "vdsl: {summary}"
    );
}

#[test]
fn transfers_with_loss_that_are_not_complete_name_the_arm_and_the_network() {
    let folder = folder("compare-loss-incomplete");
    let words = command_line("loss --network 56kbit/400ms --size 10MB --loss 0%");
    let more = ["--runs", "2", "--arm", "2", "--arm", "3"];
    let output = compare(&folder, &[&words[..], &more].concat());
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    let warning = "HTTP/2: 2 of 2 transfers over 56kbit/400ms were not complete after 600 s";
    assert!(text.contains(warning), "{text}");
}

fn loads(folder: &Path, arguments: &[&str]) -> BTreeSet<String> {
    let output = compare(folder, &[arguments, &["--out", ".", "--force"]].concat());
    assert!(output.status.success(), "{output:?}");
    rows(folder).iter().map(Value::to_string).collect()
}

#[test]
fn a_load_does_not_depend_on_its_place_among_others() {
    let folder = folder("compare-places");
    fs::write(
        folder.join("corpus.sh.ndjson"),
        compare(&folder, &["generate", "--pages", "2"]).stdout,
    )
    .expect("room");
    let corpus = fs::read_to_string(folder.join("corpus.sh.ndjson")).expect("a corpus");
    let [first, second] = <[&str; 2]>::try_from(corpus.lines().collect::<Vec<_>>()).expect("two");
    fs::write(folder.join("forwards"), format!("{first}\n{second}\n")).expect("room");
    fs::write(folder.join("backwards"), format!("{second}\n{first}\n")).expect("room");
    fs::write(folder.join("alone"), format!("{second}\n")).expect("room");
    let lossy = ["--network", "10mbit/100ms/2%"];
    let with = |corpus: &'static str, networks: &[&'static str], arms: &'static str, view| {
        let words = ["--corpus", corpus, "--http", arms, "--view", view];
        loads(&folder, &[&words[..], networks].concat())
    };
    let after = ["--network", "dsl", "--network", "10mbit/100ms/2%"];
    let all = with("forwards", &after, "2,3", "first,repeat");
    let of = |parts: &[&str]| {
        let rows = all
            .iter()
            .filter(|row| parts.iter().all(|part| row.contains(part)));
        rows.cloned().collect::<BTreeSet<_>>()
    };
    let network = "\"network\":\"10mbit/100ms/2%\"";
    let of_lossy = of(&[network]);
    assert_eq!(of_lossy.len(), 8);
    assert_eq!(with("forwards", &lossy, "2,3", "first,repeat"), of_lossy);
    assert_eq!(with("backwards", &lossy, "2,3", "first,repeat"), of_lossy);
    assert_eq!(with("forwards", &lossy, "3,2", "repeat,first"), of_lossy);
    let repeat = of(&[network, "\"view\":\"repeat\""]);
    assert_eq!(with("forwards", &lossy, "2,3", "repeat"), repeat);
    let name: Value = serde_json::from_str(second).expect("a page");
    let second = of(&[network, &format!("\"page\":{}", name["name"])]);
    assert_eq!(with("alone", &lossy, "2,3", "first,repeat"), second);
    // Arms meet the same losses; pages, networks, views and seeds do not.
    let seeds = |rows: &BTreeSet<String>| {
        let seeds = rows.iter().map(|row| {
            let row: Value = serde_json::from_str(row).expect("JSON");
            row["seed"].as_u64().expect("a seed")
        });
        seeds.collect::<BTreeSet<_>>()
    };
    assert_eq!(seeds(&all).len(), 8);
    let words = ["--corpus", "alone", "--view", "first", "--seed", "2"];
    let other = loads(&folder, &[&words[..], &lossy].concat());
    assert!(seeds(&other).is_disjoint(&seeds(&all)));
}

#[test]
fn a_transfer_with_loss_does_not_depend_on_its_place_among_others() {
    let folder = folder("compare-loss-places");
    let runs = |size: &str, loss: &str, arms: [&str; 2]| {
        let mut words = vec!["loss", "--size", size, "--loss", loss, "--runs", "2"];
        words.extend(["--arm", arms[0], "--arm", arms[1], "--force"]);
        let output = compare(&folder, &words);
        assert!(output.status.success(), "{output:?}");
        let rows = fs::read_to_string(folder.join("loss/runs.ndjson")).expect("rows");
        rows.lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let all = runs("50kB,100kB", "1%,5%", ["2", "3"]);
    let alone = runs("100kB", "5%", ["3", "2"]);
    assert_eq!(alone.len(), 4);
    assert!(alone.is_subset(&all), "{alone:?} {all:?}");
}

/// Loads two pages over LTE with each version, with an empty cache; returns what is printed.
fn compare_two_pages(folder: &Path, more: &[&str]) -> String {
    let words = ["--pages", "2", "--network", "lte", "--http", "1.1,2,3"];
    let rest = ["--view", "first", "--out", "."];
    let output = compare(folder, &[more, &words, &rest].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_single_host_takes_one_connection_over_http2_and_3_and_six_over_http11() {
    let folder = folder("compare-single-host");
    compare_two_pages(&folder, &["--single-host"]);
    let connections = |arm: &str| {
        let rows = rows(&folder);
        let of_arm = rows.into_iter().filter(|row| row["arm"] == arm);
        of_arm
            .map(|row| row["connections"].as_u64())
            .collect::<Vec<_>>()
    };
    assert_eq!(connections("HTTP/1.1"), [Some(6); 2]);
    assert_eq!(connections("HTTP/2"), [Some(1); 2]);
    assert_eq!(connections("HTTP/3"), [Some(1); 2]);
    let page = fs::read_to_string(folder.join("report.html")).expect("a page");
    assert!(page.contains("one a page: that of the document"));
}

/// Requests that are not held back make first renders later than Chromium has them, where HTTP/1.1 is beside other versions.
#[test]
fn first_renders_that_compete_with_requests_of_low_priority_cause_a_warning() {
    let folder = folder("compare-hold-back");
    let warns = |more: &[&str]| {
        let words = ["--pages", "1", "--network", "lte", "--view", "first"];
        let output = compare(&folder, &[&words, &["--force"][..], more].concat());
        assert!(output.status.success(), "{output:?}");
        let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
        warnings.contains("warning: First renders over HTTP/2 and 3 are later than in Chromium")
    };
    assert!(!warns(&["--http", "1.1,2"]));
    assert!(warns(&["--http", "1.1,2", "--no-hold-back"]));
    assert!(!warns(&["--http", "2,3", "--no-hold-back"]));
}

#[test]
fn a_partial_deployment_is_an_arm() {
    let folder = folder("compare-upgrade");
    let text = compare_two_pages(&folder, &["--upgrade", "all,first-party"]);
    let arms: Vec<_> = rows(&folder)
        .iter()
        // The first page has one host.
        .skip(5)
        .take(5)
        .map(|row| {
            let text = |key: &str| row[key].as_str().expect("text").to_owned();
            (
                text("arm"),
                text("upgrade"),
                row["connections"].as_u64().expect("a number"),
            )
        })
        .collect();
    let names: Vec<_> = arms
        .iter()
        .map(|(arm, upgrade, _)| (arm.as_str(), upgrade.as_str()))
        .collect();
    assert_eq!(
        names,
        [
            ("HTTP/1.1", "all"),
            ("HTTP/2", "all"),
            ("HTTP/2 first-party", "first-party"),
            ("HTTP/3", "all"),
            ("HTTP/3 first-party", "first-party"),
        ]
    );
    let connections: Vec<u64> = arms.iter().map(|(_, _, count)| *count).collect();
    assert!(
        connections[1] < connections[2] && connections[2] < connections[0],
        "{arms:?}"
    );
    assert!(
        text.contains("HTTP/2 first-party compared with HTTP/1.1"),
        "{text}"
    );
    assert!(text.contains("first render"), "{text}");
}

#[test]
fn the_repeat_view_loads_less_and_faster() {
    let folder = folder("compare-repeat");
    let words = ["--pages", "3", "--network", "vdsl", "--out", "."];
    let output = compare(&folder, &words);
    assert!(output.status.success(), "{output:?}");
    let rows = rows(&folder);
    let sum = |view: &str, key: &str| {
        let of_view = rows.iter().filter(|row| row["view"] == view);
        of_view.filter_map(|row| row[key].as_f64()).sum::<f64>()
    };
    for key in ["load_ms", "bytes_down", "responses"] {
        assert!(sum("repeat", key) < sum("first", key), "{key}");
    }
}

#[test]
fn arms_name_a_version_and_a_congestion_control() {
    let folder = folder("compare-arms");
    let words = [
        "--arm",
        "3 cubic",
        "--arm",
        "new=3 rapid-start",
        "--arm",
        "2 bbr",
        "--pages",
        "1",
        "--network",
        "geo",
        "--view",
        "first",
        "--out",
        ".",
    ];
    let output = compare(&folder, &words);
    assert!(output.status.success(), "{output:?}");
    let arms: Vec<Value> = rows(&folder).iter().map(|row| row["arm"].clone()).collect();
    assert_eq!(arms, ["HTTP/3 cubic", "new", "HTTP/2 bbr"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("new compared with HTTP/3 cubic"), "{text}");
}

#[test]
fn errors_name_the_value_and_what_is_expected() {
    let folder = folder("compare-errors");
    fs::write(folder.join("shop.har"), "{\n \"log\": {}}").expect("a file");
    for (words, expected) in [
        (
            &["--http", "3"][..],
            "1 arm (expected 2 to 16, the baseline first)",
        ),
        (
            &["--http", "2,4"],
            "unknown HTTP version `4` (expected `1.1`, `2` or `3`)",
        ),
        (&["--arm", "3", "--arm", "3 nonsense"], "nonsense"),
        (
            &["--arm", "3", "--arm", "3"],
            "--arm: two arms are named `HTTP/3`",
        ),
        (&["--http", "3,3"], "--http: two arms are named `HTTP/3`"),
        (&["--network", "1mbit/x"], "RATE[:UP]/RTT[/LOSS]"),
        (&["--network", "10mbit"], "such as 10mbit/50ms"),
        (&["--view", "first,first"], "`first` twice"),
        (&["--waterfall", "moon"], "unknown network `moon`"),
        (&["--corpus", "missing"], "missing"),
        (
            &["--corpus", "shop.har"],
            "shop.har: a HAR file (expected a corpus: first `lastbyte compare record shop.har",
        ),
        (
            &["--upgrade", "third-party"],
            "unknown hosts `third-party` (expected `all` or `first-party`)",
        ),
        (&["--upgrade", "all,all"], "--upgrade: `all` twice"),
        (
            &[
                "--arm",
                "1.1",
                "--arm",
                "1.1 bbr",
                "--upgrade",
                "first-party",
            ],
            "all arms are HTTP/1.1 (expected one of HTTP/2 or 3)",
        ),
        (
            &["--single-host", "--upgrade", "first-party"],
            "with --single-host, no resource is of a third party",
        ),
        (
            &["--repeats", "1000"],
            "page loads (expected at most 4000000",
        ),
    ] {
        let output = compare(&folder, words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(expected), "{words:?}: {error}");
    }
    fs::write(folder.join("loads.ndjson"), "").expect("a file");
    let output = compare(&folder, &["--pages", "1", "--network", "lte", "--out", "."]);
    assert!(!output.status.success(), "earlier files are kept");
}

#[test]
fn the_page_of_the_documentation_lists_all_options() {
    let help = compare(Path::new("."), &["--help"]).stdout;
    let help = String::from_utf8(help).expect("UTF-8");
    // Not those of other commands in the examples.
    let lines = help
        .lines()
        .filter(|line| line.trim_start().starts_with('-'));
    let options = lines
        .flat_map(str::split_whitespace)
        .filter(|word| word.starts_with("--"));
    for option in options.filter(|option| option.len() > 2) {
        let option = option.trim_end_matches([',', ']', '.', ':']);
        let is_known = option == "--help" || DOCS.contains(&format!("`{option}`"));
        assert!(
            is_known || DOCS.contains(&format!("`{option} ")),
            "{option}"
        );
    }
}

#[test]
fn loss_makes_transfers_slower_the_same_on_any_number_of_threads() {
    let folder = folder("compare-loss");
    let run = |jobs: &str, out: &str| {
        let mut words = vec![
            "loss",
            "--size",
            "100kB,1MB",
            "--loss",
            "0%,5%",
            "--runs",
            "12",
        ];
        words.extend(["--arm", "2", "--arm", "new=3 rapid-start", "--jobs", jobs]);
        words.extend(["--out", out, "--json"]);
        let output = compare(&folder, &words);
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let summary = run("1", "one");
    assert_eq!(summary, run("3", "three"));
    let summary: Value = serde_json::from_slice(&summary).expect("JSON");
    let median = |size: u64, loss: f64, arm: &str| {
        let cells = summary["cells"].as_array().expect("a list");
        let cell = cells
            .iter()
            .find(|cell| cell["size"] == size && cell["loss"] == loss && cell["arm"] == arm);
        let cell = cell.expect("a cell");
        assert_eq!(
            (&cell["transfers"], &cell["incomplete"]),
            (&12.into(), &0.into())
        );
        let [median, low, high] = [
            &cell["ttlb_ms_median"],
            &cell["ttlb_ms_ci95"][0],
            &cell["ttlb_ms_ci95"][1],
        ]
        .map(|number| number.as_f64().expect("a number"));
        assert!(low <= median && median <= high, "{cell}");
        median
    };
    for arm in ["HTTP/2", "new"] {
        for size in [100_000, 1_000_000] {
            assert!(
                median(size, 0.0, arm) < median(size, 0.05, arm),
                "{size} {arm}"
            );
        }
    }
    // Without loss there is a round trip more in TCP's handshake.
    assert!(median(100_000, 0.0, "HTTP/2") - median(100_000, 0.0, "new") > 35.0);
    let rows = fs::read_to_string(folder.join("one/runs.ndjson")).expect("rows");
    assert_eq!(rows.lines().count(), 96);
    for file in ["report.html", "100kB.svg", "1MB.svg"] {
        let text = fs::read_to_string(folder.join("one").join(file)).expect("a file");
        assert!(text.contains("HTTP/2") && text.contains("new"), "{file}");
    }
}

#[test]
fn measured_transfers_are_shown_beside_the_simulated_ones() {
    let folder = folder("compare-loss-real");
    let row = |size: u64, loss: f64, arm: &str, time: &str| {
        format!("{{\"size\":{size},\"loss\":{loss},\"arm\":\"{arm}\",\"run\":0{time}}}\n")
    };
    let rows = [
        row(100_000, 0.05, "Linux cubic", ",\"ttlb_ms\":300.5"),
        row(100_000, 0.05, "Linux cubic", ",\"ttlb_ms\":500"),
        row(100_000, 0.05, "Linux cubic", ",\"ttlb_ms\":400"),
        row(100_000, 0.05, "Linux bbr", ""),
        row(100_000, 0.04, "Linux bbr", ",\"ttlb_ms\":1"),
    ];
    fs::write(folder.join("tcp.ndjson"), rows.concat()).expect("room");
    let mut words = vec!["loss", "--size", "100kB", "--loss", "0%,5%", "--runs", "1"];
    words.extend(["--arm", "2", "--real", "tcp.ndjson", "--json"]);
    let output = compare(&folder, &words);
    assert!(output.status.success(), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let cells = summary["cells"].as_array().expect("a list");
    let cell = |arm: &str, loss: f64| {
        let cell = cells
            .iter()
            .find(|it| it["arm"] == arm && it["loss"] == loss);
        cell.expect("a cell")
    };
    assert_eq!(cell("Linux cubic", 0.05)["ttlb_ms_median"], 400.0);
    assert_eq!(cell("Linux cubic", 0.0)["transfers"], 0);
    assert_eq!(cell("Linux bbr", 0.05)["incomplete"], 1);
    assert_eq!(cell("HTTP/2", 0.05)["transfers"], 1);
    let page = fs::read_to_string(folder.join("loss/report.html")).expect("a page");
    assert!(page.contains("4 of `tcp.ndjson`") && page.contains("simulated and measured"));
    assert!(page.contains("1 measured transfers are of other sizes or losses"));

    for (text, expected) in [
        (
            "{\"size\":1}\n".to_owned(),
            "line 1: no `size`, `loss` or `arm`",
        ),
        ("x\n".to_owned(), "line 1: not a JSON object"),
        (row(1, 0.0, "HTTP/2", ""), "is the name of a simulated arm"),
        (row(1, 0.0, "a", ",\"ttlb_ms\":-1"), "not a time"),
        (
            (0..9)
                .map(|arm| row(1, 0.0, &arm.to_string(), ""))
                .collect(),
            "line 8: more than 8 arms",
        ),
    ] {
        fs::write(folder.join("wrong.ndjson"), text).expect("room");
        let words = ["loss", "--arm", "2", "--real", "wrong.ndjson"];
        let output = compare(&folder, &words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn real_transfers_run_over_the_kernels_cubic_and_http3_beside_it() {
    let folder = folder("compare-loss-measured");
    let words = [
        "loss",
        "--real",
        "--size",
        "50kB",
        "--loss",
        "0%",
        "--network",
        "50mbit/20ms",
        "--runs",
        "1",
        "--real-runs",
        "2",
        "--json",
    ];
    let output = compare(&folder, &words);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    for missing in ["CAP_NET_ADMIN", "/dev/net/tun", "unshare"] {
        if !output.status.success() && error.contains(missing) {
            lastbyte_testkit::skip(error.lines().next().unwrap_or_default());
            return;
        }
    }
    assert!(output.status.success(), "{error}");
    assert!(
        !error.contains("warning"),
        "the route sets the control: {error}"
    );
    let rows = fs::read_to_string(folder.join("loss/real.ndjson")).expect("rows");
    let rows: Vec<Value> = rows
        .lines()
        .map(|row| serde_json::from_str(row).expect("JSON"))
        .collect();
    let of = |arm: &str| {
        let rows = rows.iter().filter(|row| row["arm"] == arm);
        rows.map(|row| row["ttlb_ms"].as_f64().expect("a time"))
            .collect::<Vec<_>>()
    };
    // Three round trips over TCP and two over QUIC at least.
    let (tcp, quic) = (of("Linux cubic"), of("HTTP/3 cubic measured"));
    assert_eq!((tcp.len(), quic.len()), (2, 2), "{rows:?}");
    assert!(
        tcp.iter().all(|ms| *ms > 60.0) && quic.iter().all(|ms| *ms > 40.0),
        "{rows:?}"
    );
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let arms = [
        "HTTP/2",
        "HTTP/3 cubic",
        "Linux cubic",
        "HTTP/3 cubic measured",
    ];
    assert_eq!(summary["arms"], serde_json::json!(arms));
    let page = fs::read_to_string(folder.join("loss/report.html")).expect("a page");
    assert!(page.contains("Linux ") && page.contains("4: real.ndjson"));
    let left = fs::read_dir(folder.join("loss")).expect("a folder");
    assert!(
        left.flatten()
            .all(|file| !file.file_name().to_string_lossy().starts_with("server"))
    );
    // What was measured can be shown again.
    let words = [
        "loss",
        "--real",
        "loss/real.ndjson",
        "--size",
        "50kB",
        "--loss",
        "0%",
    ];
    let output = compare(
        &folder,
        &[&words[..], &["--runs", "1", "--out", "again"]].concat(),
    );
    assert!(output.status.success(), "{output:?}");
    let words = ["loss", "--real", "--arm", "2 rapid-start"];
    let output = compare(&folder, &words);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("no congestion control `rapid-start` (expected one of"),
        "{error}"
    );
}

#[test]
fn errors_of_loss_name_the_value_and_what_is_expected() {
    let folder = folder("compare-loss-errors");
    for (words, expected) in [
        (&["--loss", "50%"][..], "50% (expected less than 50 %)"),
        (&["--loss", "1%,0.01"], "1% twice"),
        (&["--size", "0"], "expected 1 byte to 1 GiB"),
        (&["--size", "2GiB"], "expected 1 byte to 1 GiB"),
        (&["--network", "named"], "networks (expected one)"),
        (&["--arm", "4"], "unknown HTTP version `4`"),
        (&["--runs", "100000"], "transfers (expected at most 1000000"),
    ] {
        let mut arguments = vec!["loss"];
        arguments.extend(words);
        let output = compare(&folder, &arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(expected), "{words:?}: {error}");
    }
}

#[test]
fn a_generated_corpus_is_that_of_its_seed_and_can_be_compared() {
    let folder = folder("compare-generate");
    let generate = |seed: &str, out: &str| {
        let words = ["generate", "--pages", "2", "--seed", seed, "--out", out];
        let output = compare(&folder, &words);
        assert!(output.status.success(), "{output:?}");
        fs::read(folder.join(out)).expect("a corpus")
    };
    let one = generate("1", "one.ndjson");
    assert_eq!(one, generate("1", "again.ndjson"));
    assert_ne!(one, generate("2", "two.ndjson"));
    let output = compare(&folder, &["generate", "--pages", "2", "--seed", "1"]);
    assert_eq!(output.stdout, one);
    let output = compare(&folder, &["generate", "--out", "one.ndjson"]);
    assert!(!output.status.success(), "an earlier file is kept");
    let words = command_line("--corpus one.ndjson --network vdsl --view first --out .");
    let output = compare(&folder, &words);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(rows(&folder).len(), 4);
}

#[test]
fn har_files_become_a_corpus_that_can_be_compared() {
    let folder = folder("compare-record");
    let entry = |url: &str, kind: &str, start: &str, bytes: u64| {
        serde_json::json!({
            "startedDateTime": start,
            "time": 80.0,
            "_resourceType": kind,
            "request": {"method": "GET", "url": url, "httpVersion": "h2", "headers": [], "headersSize": 300, "bodySize": 0},
            "response": {"status": 200, "httpVersion": "h2", "headers": [], "headersSize": 200, "bodySize": bytes,
                "content": {"size": bytes, "mimeType": "text/html"}},
            "timings": {"send": 0.0, "wait": 50.0, "receive": 30.0},
        })
    };
    let har = serde_json::json!({"log": {"version": "1.2", "creator": {"name": "WebInspector", "version": "1"},
    "pages": [{"id": "page_1", "startedDateTime": "2026-01-01T00:00:00.000Z", "title": "https://shop.example/?id=secret",
        "pageTimings": {"onLoad": 500.0}}],
    "entries": [
        entry("https://shop.example/?id=secret", "document", "2026-01-01T00:00:00.000Z", 9000),
        entry("https://cdn.example/app.js?key=secret", "script", "2026-01-01T00:00:00.090Z", 40000),
    ]}});
    fs::write(folder.join("shop.har"), har.to_string()).expect("a file");
    let output = compare(&folder, &["record", "shop.har", "--out", "shop.ndjson"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(
        said.starts_with("wrote shop.ndjson\n")
            && said.contains("pages: 1")
            && said.contains("assumed for"),
        "{said}"
    );
    let corpus = fs::read_to_string(folder.join("shop.ndjson")).expect("a corpus");
    assert!(
        corpus.contains("shop.example") && !corpus.contains("secret"),
        "{corpus}"
    );
    let output = compare(&folder, &["record", "--anonymous", "shop.har"]);
    let corpus = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        !corpus.contains("shop") && corpus.contains("40000"),
        "{corpus}"
    );
    let words = command_line("--corpus shop.ndjson --network vdsl --view first --out .");
    assert!(compare(&folder, &words).status.success());

    fs::write(folder.join("broken.har"), "{\"log\": {").expect("a file");
    let output = compare(&folder, &["record", "broken.har"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("broken.har"), "{error}");
}
