//! `lastbyte ab` as people use it, and as they misuse it.

#![expect(
    clippy::disallowed_methods,
    reason = "what a command reads and writes is files"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

#[path = "common/run.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod run;

use run::{check_failure, command_line, folder, lastbyte, stderr};

fn ab(folder: &Path, arguments: &[&str]) -> Output {
    lastbyte(folder, &[&["ab"], arguments].concat())
}

fn log(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("ab/conns.ndjson")).expect("a log");
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("a JSON object"))
        .collect()
}

#[test]
fn an_experiment_logs_a_line_for_each_connection() {
    let folder = folder("ab-lines");
    let output = ab(&folder, &["--connections", "40", "--seed", "3"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).expect("UTF-8");
    let lines = log(&folder);
    assert_eq!(lines.len(), 40);
    let mut counts = BTreeMap::new();
    for (index, line) in lines.iter().enumerate() {
        assert_eq!(line["conn_id"], index);
        assert_eq!(line["experiment"], "four-arms");
        let arm = line["arm"].as_str().expect("an arm");
        *counts.entry(arm.to_owned()).or_insert(0) += 1;
        if line["complete"] == true {
            // The server's count begins later than the client's, and ends later.
            let (ours, theirs) = (line["ttlb"].as_f64(), line["client.ttlb"].as_f64());
            assert!(ours > Some(0.0) && theirs > Some(0.0));
            assert!(line["num-bytes.stream-data-sent"].as_u64() > line["content_length"].as_u64());
        }
        assert_eq!(
            line["num-rapid-start"],
            u64::from(arm.starts_with("rapid")),
            "{arm}"
        );
        let has_jumped = line["jumpstart.cwnd"].as_u64() > Some(0);
        assert!(
            !has_jumped || arm == "jumpstart" || arm == "rapid-start",
            "{arm}"
        );
    }
    assert_eq!(counts.len(), 4, "{counts:?}");
    for arm in counts.keys() {
        assert!(table.contains(arm.as_str()), "{table}");
    }
    // What the table says can be asked again.
    assert!(
        table.contains("lastbyte query 'select((_[\"num-packets.sent\"]"),
        "{table}"
    );
}

#[test]
fn the_same_seed_gives_the_same_log_on_any_number_of_threads() {
    let text = |name: &str, jobs: &str| {
        let folder = folder(name);
        let output = ab(&folder, &["--connections", "24", "--jobs", jobs]);
        assert!(output.status.success(), "{}", stderr(&output));
        fs::read(folder.join("ab/conns.ndjson")).expect("a log")
    };
    assert!(text("ab-one", "1") == text("ab-three", "3"));
}

const FOUR_ARMS: [&str; 4] = ["slow-start", "jumpstart", "rapid-no-jump", "rapid-start"];

#[test]
fn paired_connections_differ_only_in_their_arm() {
    let folder = folder("ab-paired");
    let output = ab(&folder, &["--connections", "16", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("an object");
    let arms = summary["arms"].as_array().expect("arms");
    assert_eq!(arms.len(), 4);
    for (arm, name) in arms.iter().zip(FOUR_ARMS) {
        assert_eq!(
            (&arm["arm"], &arm["connections"]),
            (&name.into(), &4.into())
        );
        assert!(arm["complete"] == 4 && arm["loss_percent"]["mean"].is_number());
        let at = |share: &str| arm["ttlb_ms"][share].as_f64().expect("a time");
        assert!(at("p25") <= at("p50") && at("p75") <= at("p95"));
    }
    assert_eq!(
        (&summary["seed"], &summary["baseline"]),
        (&1.into(), &FOUR_ARMS[0].into())
    );
    for four in log(&folder).chunks(4) {
        let arms: Vec<&Value> = four.iter().map(|line| &line["arm"]).collect();
        assert_eq!(arms, FOUR_ARMS);
        for key in [
            "site",
            "class",
            "seed",
            "content_length",
            "link.rate",
            "link.rtt",
        ] {
            assert!(four.iter().all(|line| line[key] == four[0][key]), "{key}");
        }
    }
}

#[test]
fn unpaired_connections_have_seeds_of_their_own() {
    let folder = folder("ab-unpaired");
    let seeds = |arguments: &[&str]| {
        let output = ab(&folder, arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        let lines = log(&folder);
        let seeds: BTreeSet<u64> = lines
            .iter()
            .filter_map(|line| line["seed"].as_u64())
            .collect();
        (lines.len(), seeds.len())
    };
    assert_eq!(seeds(&["--connections", "24", "--unpaired"]), (24, 24));
    let page = fs::read_to_string(folder.join("ab/report.html")).expect("a page");
    assert!(page.contains("--seed 1 --unpaired --out ab"));
    assert_eq!(seeds(&["--connections", "24", "--force"]), (24, 6));
}

#[test]
fn a_connection_of_the_log_can_be_run_again() {
    let folder = folder("ab-replay");
    let output = ab(&folder, &["--connections", "8", "--seed", "5"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = log(&folder);
    let four = &lines[4..];
    let seed = four[0]["seed"].to_string();
    let arguments = [
        "--replay", &seed, "--json", "--plot", "one.html", "--qlog", "qlogs",
    ];
    let output = ab(&folder, &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), 4);
    for (row, line) in rows.iter().zip(four) {
        assert_eq!(row["arm"], line["arm"]);
        assert_eq!(row["packets_sent"], line["num-packets.sent"]);
        let (again, first) = (row["ttlb_ms"].as_f64(), line["client.ttlb"].as_f64());
        let (again, first) = again.zip(first).expect("times");
        assert!((again - first).abs() < 0.001, "{row} {line}");
    }
    let page = fs::read_to_string(folder.join("one.html")).expect("a page");
    assert!(page.contains("rapid-start"));
    // Of client and server, in each arm.
    assert_eq!(
        fs::read_dir(folder.join("qlogs"))
            .expect("a folder")
            .count(),
        8
    );
    assert!(!ab(&folder, &["--plot", "one.html"]).status.success());
    // Files of an earlier run stay.
    let output = ab(&folder, &arguments);
    assert_eq!(output.status.code(), Some(2));
    let printed = stderr(&output);
    assert!(
        printed.contains("exists (expected a new file; --force"),
        "{printed}"
    );
    let output = ab(&folder, &[&arguments[..], &["--force"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Every number is the seed of some path: a mistyped one would show another transfer.
#[test]
fn a_seed_of_no_connection_is_refused() {
    let folder = folder("ab-replay-other");
    let refused = |arguments: &[&str], expected: &str| {
        let output = ab(&folder, arguments);
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(expected), "{printed}");
    };
    refused(
        &["--replay", "99"],
        "has the seed 99, and no log `ab/conns.ndjson` has it",
    );
    // The seeds of the experiment need no log; those of another run are in its log.
    let output = ab(
        &folder,
        &[
            "--connections",
            "8",
            "--seed",
            "77",
            "--log-compress",
            "gzip",
        ],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("conns.ndjson.gz"), "{text}");
    let query = ["query", "max(_[\"seed\"])", "ab/conns.ndjson.gz"];
    let output = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
        .args(query)
        .current_dir(&folder)
        .output()
        .expect("runs");
    let seed = String::from_utf8(output.stdout).expect("UTF-8");
    let seed = seed.trim();
    refused(
        &["--replay", "99"],
        &format!("`ab/conns.ndjson.gz` has others, such as {seed}"),
    );
    for more in [&[][..], &["--seed", "77", "--out", "none"]] {
        let output = ab(&folder, &[&["--replay", seed][..], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    }
    refused(
        &["--replay", seed, "--out", "none"],
        "--out names the directory of its log",
    );
    // That of the documents is one of the experiment.
    let documented = ab(&folder, &["--replay", "4836410040923515", "--out", "none"]);
    assert!(documented.status.success(), "{}", stderr(&documented));
}

/// The first sentence of a picture divides the time as the connection log does, though it has the events only.
#[test]
fn the_summary_of_a_qlog_file_agrees_with_the_parts_of_the_log() {
    let folder = folder("ab-summary");
    let output = ab(&folder, &["--connections", "12", "--seed", "5"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let parts = [
        (&["window", "idle", "queueing"][..], "the window was full"),
        (&["repair"], "losses were repaired"),
        (&["pacing"], "held back by the pacer"),
        (&["last-ack"], "waiting for the last acknowledgment"),
    ];
    let lines = log(&folder);
    let mut compared = 0;
    for wanted in [&lines[0]["seed"], &lines[8]["seed"]] {
        let seed = wanted.to_string();
        let output = ab(&folder, &["--replay", &seed, "--qlog", &seed]);
        assert!(output.status.success(), "{}", stderr(&output));
        let files = fs::read_dir(folder.join(&seed)).expect("a folder");
        for file in files.map(|file| file.expect("a file").path()) {
            let name = file.to_string_lossy().into_owned();
            let line = lines.iter().find(|line| {
                let arm = format!("_{}_", line["arm"].as_str().expect("an arm"));
                line["seed"] == *wanted && name.contains(&arm)
            });
            let Some(line) = line.filter(|_| name.contains("server")) else {
                continue;
            };
            let mut plot = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
            let plot = plot.args(["plot", &name]).current_dir(&folder).output();
            assert!(plot.expect("the binary runs").status.success());
            let page = fs::read_to_string(folder.join("plot.html")).expect("a page");
            let (_, rest) = page.split_once("<p class=\"summary\">").expect("a summary");
            let summary = rest.split('<').next().expect("text");
            let ms = |part: &str| line[&format!("anatomy.{part}")].as_f64().unwrap_or(0.0);
            let all = parts.iter().flat_map(|(keys, _)| *keys);
            let total: f64 =
                all.map(|key| ms(key)).sum::<f64>() + ms("application") + ms("flow-control");
            for (keys, name) in parts {
                let share = keys.iter().map(|key| ms(key)).sum::<f64>() / total * 100.0;
                let shown = summary
                    .split([':', ','])
                    .find_map(|words| words.trim().trim_end_matches('.').strip_suffix(name));
                let shown: f64 = shown.map_or(0.0, |share| {
                    share
                        .trim()
                        .trim_end_matches(" %")
                        .parse()
                        .expect("a share")
                });
                assert!((shown - share).abs() <= 1.6, "{name}: {share} {summary}");
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 8);
}

#[test]
fn shares_without_effect_are_reported() {
    let folder = folder("ab-shares");
    let text = "name = \"two\"\n[[arms]]\nname = \"a\"\nspec = \"newreno\"\nshare = 3\n[[arms]]\nname = \"b\"\nspec = \"bbr\"\n";
    fs::write(folder.join("two.toml"), text).expect("a file");
    let is_reported =
        |arguments: &[&str]| stderr(&ab(&folder, arguments)).contains("shares of the arms");
    assert!(is_reported(&["two.toml", "--connections", "2"]));
    assert!(!is_reported(&[
        "two.toml",
        "--connections",
        "2",
        "--unpaired",
        "--force"
    ]));
}

#[test]
fn an_experiment_can_be_a_file() {
    let folder = folder("ab-file");
    let text = "name = \"two\"\nbaseline = \"a\"\nconnections = 6\n[[arms]]\nname = \"a\"\nspec = \"newreno\"\n[[arms]]\nname = \"b\"\nspec = \"bbr\"\n";
    fs::write(folder.join("two.toml"), text).expect("a file");
    let output = ab(&folder, &["two.toml"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = log(&folder);
    assert_eq!(lines.len(), 6);
    assert!(lines.iter().all(|line| line["experiment"] == "two"));
    for line in &lines {
        let congestion = if line["arm"] == "a" { "newreno" } else { "bbr" };
        assert_eq!(line["congestion"], congestion);
    }
}

#[test]
fn a_compressed_log_has_the_same_lines() {
    let folder = folder("ab-packed");
    let run = |format: &str, suffix: &str| {
        let arguments = [
            "--connections",
            "16",
            "--json",
            "--log-compress",
            format,
            "--force",
        ];
        let output = ab(&folder, &arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        let summary: Value = serde_json::from_slice(&output.stdout).expect("an object");
        let log = format!("ab/conns.ndjson{suffix}");
        assert_eq!(summary["log"], log);
        let rows = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
            .args(["query", "_", &log])
            .current_dir(&folder)
            .output()
            .expect("the binary runs");
        assert!(rows.status.success(), "{}", stderr(&rows));
        assert!(folder.join("ab/report.html").exists());
        let len = fs::metadata(folder.join(log)).expect("a log").len();
        (summary["arms"].clone(), rows.stdout, len)
    };
    let plain = run("none", "");
    assert_eq!(plain.1.split(|byte| *byte == b'\n').count(), 16 + 1);
    for (format, suffix) in [("gzip", ".gz"), ("zstd", ".zst")] {
        let packed = run(format, suffix);
        assert!(packed.0 == plain.0 && packed.1 == plain.1, "{format}");
        assert!(packed.2 * 3 < plain.2, "{format}: {}", packed.2);
    }
}

/// What servers find lost is what the path dropped, but for acknowledgments that were lost and what was under way at the
/// end; and the log says why it was dropped.
#[test]
fn the_log_has_the_causes_of_dropped_packets() {
    let folder = folder("ab-drops");
    let output = ab(&folder, &["--connections", "60"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let reasons = [
        "queue-in-startup",
        "queue-later",
        "codel",
        "policer",
        "chance",
    ];
    let (mut lost, mut dropped) = (0, [0; 5]);
    for line in log(&folder) {
        let of = |key: &str| line[key].as_u64().expect(key);
        lost += of("num-packets.lost") - of("num-packets.late-acked");
        let by_reason = reasons.map(|reason| of(&format!("link.drops.{reason}")));
        for (sum, count) in dropped.iter_mut().zip(by_reason) {
            *sum += count;
        }
        let cross = line["link.cross"].as_str().expect("a text");
        assert!(["none", "flow", "bursts"].contains(&cross));
    }
    let all: u64 = dropped.iter().sum();
    assert!(
        all > 500 && lost.abs_diff(all) * 50 < all,
        "{lost} {dropped:?}"
    );
    for reason in [0, 1, 4] {
        assert!(dropped[reason] > 0, "{}: {dropped:?}", reasons[reason]);
    }
}

#[test]
fn invalid_experiments_are_rejected() {
    let folder = folder("ab-errors");
    fs::write(
        folder.join("bad.toml"),
        "name = \"x\"\n[[arms]]\nname = \"a\"\nspec = \"fast\"\n",
    )
    .expect("a file");
    fs::write(folder.join("file"), "").expect("a file");
    for (arguments, code, wanted) in [
        (&["none.toml"][..], 2, "cannot read `none.toml`"),
        (&["four-arm"], 2, "did you mean `four-arms`?"),
        (
            &["bad.toml"],
            2,
            "`arms.a.spec`: unknown congestion control `fast`",
        ),
        (
            &["--connections", "0"],
            2,
            "'--connections <N>': expected a whole number from 1 to",
        ),
        (&["--connections", "1e18"], 2, "'--connections <N>'"),
        (&["--seed", "9007199254740992"], 2, "2^53 - 1"),
        (&["--log-compress", "lz4"], 2, "`gzip`, `zstd` or `none`"),
        (&["--connections", "x"], 2, "--connections"),
        (
            &["--arm", "cubic"],
            2,
            "only `cubic` (expected two arms or more",
        ),
        (
            &["--arm", "cubic", "--arm", "cubic"],
            2,
            "two arms are named `cubic` (expected different names: NAME=SPEC)",
        ),
        (
            &["--arm", "cubic", "--arm", "new=fast"],
            2,
            "--arm: unknown congestion control `fast`",
        ),
        (&["--network", "none"], 2, "unknown network `none`"),
        (
            &["--network", "lte", "--network", "lte"],
            2,
            "two networks are named `lte`",
        ),
        (&["--size", "0"], 2, "--size: 0 (expected 1 byte or more)"),
        (&["--rtt", "40ms"], 2, "--network"),
        (
            &["--connections", "1", "--out", "file"],
            1,
            "cannot write `file`: not a directory",
        ),
        (
            &["--connections", "1", "--out", "/proc/none"],
            1,
            "cannot write `/proc/none`",
        ),
    ] {
        let output = ab(&folder, arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(wanted),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty());
    }
}

/// Ten thousand lines are not lost by a command that is run again.
#[test]
fn the_log_of_an_earlier_run_is_replaced_on_request_only() {
    let folder = folder("ab-again");
    let run = |more: &[&str]| ab(&folder, &[&["--connections", "1e1"], more].concat());
    assert!(run(&[]).status.success());
    let first = fs::read(folder.join("ab/conns.ndjson")).expect("a log");
    let again = run(&["--seed", "9"]);
    check_failure(
        &again,
        2,
        "`ab/conns.ndjson` exists (expected a new file; --force overwrites it)",
    );
    assert_eq!(
        fs::read(folder.join("ab/conns.ndjson")).expect("a log"),
        first
    );
    // The page belongs to the log.
    let packed = run(&["--log-compress", "gzip"]);
    assert!(
        stderr(&packed).contains("`ab/report.html` exists"),
        "{}",
        stderr(&packed)
    );
    assert!(run(&["--seed", "9", "--force"]).status.success());
    assert_ne!(
        fs::read(folder.join("ab/conns.ndjson")).expect("a log"),
        first
    );
    assert!(run(&["--out", "other"]).status.success());
}

/// Two specs over some networks need no experiment file.
#[test]
fn arms_networks_and_sizes_can_be_options() {
    let folder = folder("ab-options");
    let output = ab(
        &folder,
        &command_line(
            "--arm=cubic --arm=ten=cubic:initial-window=10p --network=lte --network=vdsl --size=300kB,1MB --connections=80",
        ),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = log(&folder);
    let values = |key: &str| -> BTreeSet<String> {
        lines.iter().map(|line| line[key].to_string()).collect()
    };
    let set = |values: &[&str]| values.iter().map(|one| (*one).to_owned()).collect();
    assert_eq!(values("arm"), set(&["\"cubic\"", "\"ten\""]));
    assert_eq!(values("site"), set(&["\"lte\"", "\"vdsl\""]));
    assert_eq!(values("content_length"), set(&["300000", "1000000"]));
    assert_eq!(values("link.rate"), set(&["30000000", "55000000"]));
    // A smaller window takes longer over the same path.
    let pairs = lines.chunks(2);
    assert!(
        pairs
            .into_iter()
            .all(|pair| pair[0]["ttlb"].as_u64() < pair[1]["ttlb"].as_u64())
    );
    let page = fs::read_to_string(folder.join("ab/report.html")).expect("a page");
    assert!(
        page.contains("lastbyte ab --arm cubic --arm ten=cubic:initial-window=10p --network lte --network vdsl --size 300000,1000000 --connections 80"),
        "the command is on the page"
    );
    // A connection of the log can be run again with the same options.
    let seed = lines[0]["seed"].to_string();
    let again = ab(
        &folder,
        &[
            "--arm=cubic",
            "--arm=ten=cubic:initial-window=10p",
            "--network=lte",
            "--network=vdsl",
            "--size=300kB,1MB",
            "--json",
            "--replay",
            &seed,
        ],
    );
    let rows: Value = serde_json::from_slice(&again.stdout).expect("JSON");
    let (again, before) = (
        rows[0]["ttlb_ms"].as_f64(),
        lines[0]["client.ttlb"].as_f64(),
    );
    let difference = again
        .zip(before)
        .map(|(again, before)| (again - before).abs());
    assert!(
        difference.is_some_and(|ms| ms < 0.001),
        "{again:?} {before:?}"
    );
}

/// The files of a folder are networks or traces; `.down` and `.up` of one name are one path.
#[test]
fn a_folder_of_traces_is_a_population() {
    let folder = folder("ab-traces");
    fs::create_dir(folder.join("traces")).expect("a folder");
    let trace = |every: usize| -> String {
        let times = (0..2000).step_by(every).map(|ms| format!("{ms}\n"));
        times.collect()
    };
    for (name, text) in [
        ("lte.down", trace(1)),
        ("lte.up", trace(4)),
        ("wifi", trace(2)),
        (
            "dsl.toml",
            "rtt = \"30ms\"\n[down]\nrate = \"8mbit\"\n".to_owned(),
        ),
        (".hidden", "x".to_owned()),
    ] {
        fs::write(folder.join("traces").join(name), text).expect("a file");
    }
    let run = |more: &[&str]| {
        let arguments =
            command_line("--arm=cubic --arm=bbr --network=traces --connections=60 --force");
        ab(&folder, &[&arguments[..], more].concat())
    };
    let output = run(&["--rtt=40ms"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let first = log(&folder);
    let sites: BTreeSet<&str> = first
        .iter()
        .filter_map(|line| line["site"].as_str())
        .collect();
    assert_eq!(sites, BTreeSet::from(["dsl", "lte", "wifi"]));
    for line in &first {
        let (rate, rtt) = match line["site"].as_str() {
            Some("lte") => (12_000_000.0, 40.0),
            Some("wifi") => (6_000_000.0, 40.0),
            _ => (8_000_000.0, 30.0),
        };
        let is_near = |value: &Value, wanted: f64| {
            value
                .as_f64()
                .is_some_and(|value| (value / wanted - 1.0).abs() < 0.01)
        };
        assert!(
            is_near(&line["link.rate"], rate) && is_near(&line["link.rtt"], rtt),
            "{line}"
        );
    }
    assert!(run(&["--rtt=40ms"]).status.success());
    assert_eq!(log(&folder), first);
    let output = run(&[]);
    check_failure(
        &output,
        2,
        "`traces/lte.down` is a trace, which has no round-trip time (expected --rtt SPAN)",
    );
    fs::write(folder.join("traces/bad"), "5\nx\n").expect("a file");
    let output = run(&["--rtt=40ms"]);
    check_failure(&output, 2, "`bad`: `down.trace`: traces/bad: line 2");
}

#[test]
fn neighbours_are_logged_and_the_page_has_their_harm() {
    let folder = folder("ab-neighbours");
    let arguments = [
        "--arm",
        "cubic",
        "--arm",
        "rapid-start",
        "--network",
        "dsl",
        "--size",
        "300kB",
        "--neighbour",
        "cubic",
        "--neighbour",
        "cbr:1mbit",
        "--horizon",
        "2s",
        "--connections",
        "24",
    ];
    let output = ab(&folder, &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(stdout.contains("neighbours of rapid-start: "), "{stdout}");
    let lines = log(&folder);
    let mut kinds = BTreeSet::new();
    for pair in lines.chunks(2) {
        let kind = pair[0]["neighbour.kind"].as_str().expect("a neighbour");
        kinds.insert(kind.to_owned());
        assert_eq!(pair[1]["neighbour.kind"], kind);
        for line in pair {
            assert_eq!(line["neighbour.horizon"], 2000);
            assert_eq!(line["link.cross"], "none");
            let (rate, line_rate) = (line["neighbour.rate"].as_u64(), line["link.rate"].as_u64());
            assert!(rate > Some(0) && rate < line_rate, "{line}");
            assert!(
                line["neighbour.loss"].as_f64() < Some(1.0) && line["neighbour.delay"].is_number()
            );
        }
    }
    assert_eq!(kinds.len(), 2);
    let page = fs::read_to_string(folder.join("ab/report.html")).expect("a page");
    assert!(page.contains("Harm to neighbours"));
    assert!(page.contains("--neighbour cubic --neighbour cbr:1mbit --horizon 2000ms"));

    let wrong = |arguments: &[&str], text: &str| {
        let output = ab(&folder, arguments);
        check_failure(&output, 2, text);
    };
    wrong(
        &["--neighbour", "stack:cubic"],
        "--neighbour: `stack:cubic` (expected a neighbour without `stack:`)",
    );
    wrong(&["--neighbour", "cubic", "--horizon", "2h"], "600s at most");
}

#[test]
fn settings_of_networks_vary_and_the_page_has_a_chart() {
    let folder = folder("ab-vary");
    let arguments = command_line(
        "--arm cubic --arm rapid-start --network dsl --vary loss=0,1% --vary queue=20ms,200ms --connections 32 --power 10%",
    );
    let output = ab(&folder, &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        stdout.contains("rapid-start: connections to detect a change of +10.0 %"),
        "{stdout}"
    );
    let lines = log(&folder);
    let sites: BTreeSet<&str> = lines
        .iter()
        .filter_map(|line| line["site"].as_str())
        .collect();
    assert!(sites.contains("dsl, queue 200ms, loss 1%"), "{sites:?}");
    for line in &lines {
        let site = line["site"].as_str().expect("a site");
        assert_eq!(
            line["link.loss"].as_f64(),
            Some(if site.ends_with("1%") { 0.01 } else { 0.0 })
        );
    }
    let page = fs::read_to_string(folder.join("ab/report.html")).expect("a page");
    assert!(page.contains("Median change by loss") && page.contains("Connections needed"));

    let output = ab(
        &folder,
        &["--vary", "loss=0,1%", "--arm", "cubic", "--arm", "bbr"],
    );
    check_failure(&output, 2, "--vary: no network");
}

#[test]
fn factors_of_a_population_are_combined_in_one_run() {
    let folder = folder("ab-sweep");
    let arguments = command_line("--sweep queue=0.5,4 --sweep cross=0,3 --connections 64");
    let output = ab(&folder, &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = log(&folder);
    let mut sites = BTreeSet::new();
    for line in &lines {
        let site = line["site"].as_str().expect("a site");
        sites.insert(site);
        if site.starts_with("cross 0") {
            assert_eq!(line["link.cross"], "none");
        }
        // The class of the population stays.
        assert_ne!(line["class"], line["site"]);
    }
    let all = [
        "cross 0, queue 0.5",
        "cross 0, queue 4",
        "cross 3, queue 0.5",
        "cross 3, queue 4",
    ];
    assert_eq!(sites, all.into(), "{sites:?}");
    let page = fs::read_to_string(folder.join("ab/report.html")).expect("a page");
    assert!(page.contains("lastbyte ab --sweep queue=0.5,4 --sweep cross=0,3"));
    assert!(page.contains("scaled by queue=0.5,4, cross=0,3"));
    // A connection of the log is simulated again by its seed.
    let seed = lines[0]["seed"].to_string();
    let output = ab(
        &folder,
        &[
            "--sweep",
            "queue=0.5,4",
            "--sweep",
            "cross=0,3",
            "--replay",
            &seed,
            "--json",
        ],
    );
    let rows: Value = serde_json::from_slice(&output.stdout).expect("an array");
    let (replayed, logged) = (
        rows[0]["ttlb_ms"].as_f64(),
        lines[0]["client.ttlb"].as_f64(),
    );
    assert_eq!(replayed.map(f64::round), logged.map(f64::round));
    let output = ab(&folder, &["--sweep", "queue=1", "--network", "lte"]);
    assert_eq!(output.status.code(), Some(2));
    let output = ab(&folder, &["--sweep", "depth=1"]);
    assert!(
        stderr(&output).contains("--sweep: unknown setting `depth` (expected queue, lossy,"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn several_objects_of_a_connection_are_a_line_of_all() {
    let folder = folder("ab-objects");
    let options = ["--requests", "2", "--parallel", "3", "--pause", "1s"];
    let arguments = [&options[..], &["--size", "20kB", "--connections", "16"]].concat();
    let output = ab(&folder, &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    for line in log(&folder) {
        assert_eq!(
            (&line["method"], &line["content_length"]),
            (&"GET".into(), &120_000.into())
        );
        if line["complete"] == true {
            assert!(
                line["ttlb"].as_f64() > Some(1000.0) && line["client.ttlb"].as_f64() > Some(1000.0)
            );
            assert!(
                line["anatomy.application"].as_f64() >= Some(1000.0),
                "{line}"
            );
        }
    }
    let page = fs::read_to_string(folder.join("ab/report.html")).expect("a page");
    assert!(page.contains("3 responses at once, 2 times, 1000ms apart"));
    assert!(page.contains("--requests 2 --parallel 3 --pause 1000ms"));
    let output = ab(&folder, &["--parallel", "51"]);
    check_failure(&output, 2, "expected a whole number from 1 to 50");
}

#[test]
fn lines_of_uploads_are_those_of_the_client() {
    let folder = folder("ab-upload");
    let output = ab(&folder, &["--upload", "--connections", "40", "--seed", "5"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut complete = 0;
    for line in log(&folder) {
        assert_eq!(line["method"], "POST");
        if line["complete"] == true {
            complete += 1;
            assert!(line["num-bytes.stream-data-sent"].as_u64() > line["content_length"].as_u64());
            assert!(line["client.ttlb"].as_f64() > line["ttlb"].as_f64().map(|ttlb| ttlb - 1.0));
            assert!(line["client.ttfb"].is_null(), "{line}");
        }
    }
    assert!(complete >= 36, "{complete}");
    let output = ab(
        &folder,
        &["--upload", "--neighbour", "cubic", "--out", "other"],
    );
    check_failure(&output, 2, "`neighbours`");
}

#[test]
fn options_of_one_connection_and_experiments_of_one_arm_are_refused() {
    let folder = folder("ab-refused");
    for option in [["--plot", "p.html"], ["--qlog", "logs"]] {
        let words = [&option[..], &["--connections", "12"]].concat();
        check_failure(&ab(&folder, &words), 2, "(expected --replay SEED)");
    }
    let text = "name = \"one\"\nconnections = 6\n[[arms]]\nname = \"a\"\nspec = \"newreno\"\n";
    fs::write(folder.join("one.toml"), text).expect("a file");
    check_failure(&ab(&folder, &["one.toml"]), 2, "only the arm `a`");
}
