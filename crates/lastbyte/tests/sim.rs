//! `lastbyte sim` as people use it, and as they misuse it.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "what a command reads and writes is files, and it takes time"
)]

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

#[path = "common/run.rs"]
mod run;
#[path = "sim/served.rs"]
mod served;
#[path = "sim/truth.rs"]
mod truth;

use run::{check_failure, command_line, folder, lastbyte, stderr, stdout};

/// Until something has happened that takes a moment.
const PATIENCE: Duration = Duration::from_secs(30);

fn sim(arguments: &[&str]) -> Output {
    lastbyte(Path::new("."), &[&["sim"], arguments].concat())
}

fn json(arguments: &[&str]) -> Vec<Value> {
    let output = sim(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("an array")
}

/// Ctrl-C ends a simulation in the middle of a transfer. Of these, the first takes no time, and the second one minutes.
#[test]
fn ctrl_c_ends_a_transfer_at_once() {
    let folder = folder("sim-interrupt");
    let words = "sim --network vdsl --arm cubic --size 50kB,500GB --time-limit 100000000s --qlog q";
    let child = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
        .args(command_line(words))
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let begun = Instant::now();
    while !folder
        .join("q/vdsl_cubic_500000000000_1_0_server.sqlog")
        .exists()
    {
        assert!(begun.elapsed() < PATIENCE, "no second transfer");
        thread::yield_now();
    }
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.expect("kill runs").success());
    let pressed = Instant::now();
    let output = child.wait_with_output().expect("its output");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(pressed.elapsed() < PATIENCE);
    assert_eq!(
        stderr(&output),
        "wrote q: 4 qlog files\ninterrupted: the results above are partial\n"
    );
    assert!(stdout(&output).contains("cubic"), "{}", stdout(&output));
}

#[test]
fn the_table_has_a_row_for_each_arm() {
    let output = sim(&["--size", "400kB"]);
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "400kB over vdsl: 55mbit, round trip 39ms, queue 50ms"
    );
    for (line, arm) in
        lines[2..]
            .iter()
            .zip(["slow-start", "jumpstart", "rapid-no-jump", "rapid-start"])
    {
        assert!(line.trim_start().starts_with(arm), "{text}");
    }
    assert_eq!(
        lines[6..],
        ["", "TTLB and TTFB: at the client, from its first datagram."]
    );
}

#[test]
fn json_has_an_object_for_each_transfer() {
    let rows = json(&command_line(
        "--network dsl --network lte --size 200kB,400kB --arm rapid-start --arm bbr --runs 2 --progress 100kB,50kB --seed 9",
    ));
    assert_eq!(rows.len(), 2 * 2 * 2 * 2);
    let first = rows[0].as_object().expect("an object");
    assert_eq!(first["arm"], "rapid-start");
    assert_eq!(first["network"], "dsl");
    assert_eq!(first["size_bytes"], 200_000);
    assert_eq!(first["seed"], 9);
    assert_eq!(rows[1]["seed"], 10);
    for row in &rows {
        let ms = |key: &str| row[key].as_f64().expect(key);
        assert!(ms("handshake_ms") < ms("ttfb_ms") && ms("ttfb_ms") < ms("ttlb_ms"));
        assert!(row["packets_sent"].as_u64() > Some(100));
        assert!(row["packets_lost"].is_u64() && row["loss_episodes"].is_u64());
        let progress = row["progress"].as_array().expect("an array");
        assert_eq!(progress[0]["bytes"], 50_000);
        let after = |mark: usize| progress[mark]["ms"].as_f64().expect("it arrived");
        assert!(after(0) < after(1) && after(1) < ms("ttlb_ms"));
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let run = |threads: &str| {
        stdout(&sim(&[
            "--loss", "1%", "--size", "300kB", "--runs", "8", "--json", "--jobs", threads,
        ]))
    };
    let one = run("1");
    assert_eq!(one, run("4"));
    assert!(one.lines().count() == 8 * 4 + 2);
}

#[test]
fn options_override_the_network() {
    let slow = json(&command_line(
        "--network vdsl --rate 5mbit --arm cubic --size 1MB",
    ));
    let fast = json(&["--network", "vdsl", "--arm", "cubic", "--size", "1MB"]);
    let ttlb = |rows: &[Value]| rows[0]["ttlb_ms"].as_f64().expect("it arrived");
    assert!(ttlb(&slow) > 3.0 * ttlb(&fast));
    let own = json(&[
        "--rate", "55mbit", "--rtt", "39ms", "--queue", "50ms", "--arm", "cubic", "--size", "1MB",
    ]);
    assert_eq!(own[0]["network"], "custom");
    assert!((ttlb(&own) - ttlb(&fast)).abs() < 1e-9);
}

#[test]
fn a_file_can_describe_the_path_and_a_trace_its_rate() {
    let folder = folder("path");
    let trace = folder.join("ten.trace");
    // An opportunity a millisecond: 12 Mb/s.
    fs::write(&trace, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n").expect("a file");
    let file = folder.join("mine.toml");
    // The trace's name is relative to the file's place, not to where the command runs.
    let text = "rtt = \"20ms\"\n[down]\ntrace = \"ten.trace\"\nqueue = \"50ms\"\n";
    fs::write(&file, text).expect("a file");
    let rows = json(&[
        "--network",
        file.to_str().expect("UTF-8"),
        "--arm",
        "cubic",
        "--size",
        "1.5MB",
    ]);
    assert_eq!(rows[0]["network"], "mine");
    let ttlb = rows[0]["ttlb_ms"].as_f64().expect("it arrived");
    assert!(ttlb > 1000.0 && ttlb < 1600.0, "{ttlb}");
}

/// The handshake table of HTTP/3, as a user sees it.
#[test]
fn handshakes_take_the_expected_round_trips() {
    let arguments = command_line(
        "--rate 10gbit --rtt 200ms --arm rapid-start --size 20kB --handshake full,resumed,0rtt --tls",
    );
    let rows = json(&arguments);
    let expected = [
        ("full", 1.0, 2.0),
        ("resumed", 1.0, 2.0),
        ("0rtt", 0.0, 1.0),
    ];
    assert_eq!(rows.len(), expected.len());
    for (row, (kind, asked, first_byte)) in rows.iter().zip(expected) {
        assert_eq!(row["handshake"], kind);
        for (key, expected) in [("request_rtts", asked), ("ttfb_rtts", first_byte)] {
            let measured = row[key].as_f64().expect(key);
            let excess = measured - expected;
            assert!((0.0..1e-4).contains(&excess), "{kind} {key}: {measured}");
        }
    }
    let table = stdout(&sim(&arguments));
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].contains("request RTT") && lines[1].contains("TTFB RTT"));
    for (line, (kind, asked, first_byte)) in lines[2..].iter().zip(expected) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [asked, first_byte] = [asked, first_byte].map(|one| format!("{one:.2}"));
        assert!(words.contains(&kind), "{table}");
        assert!(words.contains(&asked.as_str()), "{table}");
        assert!(words.contains(&first_byte.as_str()), "{table}");
    }
}

#[test]
fn qlogs_have_the_packets_of_the_table() {
    let folder = folder("qlogs");
    let qlogs = folder.join("qlogs");
    let arguments = [
        "--arm",
        "rapid-start",
        "--arm",
        "bbr",
        "--size",
        "2MB",
        "--json",
        "--qlog",
        qlogs.to_str().expect("UTF-8"),
    ];
    let output = sim(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    // Listening changes nothing.
    assert_eq!(stdout(&output), stdout(&sim(&arguments[..7])));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("an array");

    let mut names: Vec<String> = fs::read_dir(&qlogs)
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "vdsl_bbr_2000000_1_0_client.sqlog",
            "vdsl_bbr_2000000_1_0_server.sqlog",
            "vdsl_rapid-start_2000000_1_0_client.sqlog",
            "vdsl_rapid-start_2000000_1_0_server.sqlog",
        ]
    );
    // Files of an earlier run stay.
    let again = |more: &[&str]| sim(&[&arguments[..], more].concat());
    let printed = stderr(&again(&[]));
    assert!(
        printed.contains("exists (expected a new file; --force"),
        "{printed}"
    );
    assert!(again(&["--force"]).status.success());
    let mut losses = 0;
    for name in names {
        let text = fs::read_to_string(qlogs.join(&name)).expect("a file");
        let mut last = 0.0;
        let mut events = Vec::new();
        for record in text.split('\u{1e}').skip(1) {
            let value: Value = serde_json::from_str(record).expect("a JSON text");
            if let Some(time) = value["time"].as_f64() {
                assert!(time >= last, "{name}");
                last = time;
            }
            events.extend(value["name"].as_str().map(str::to_owned));
        }
        let count = |event: &str| events.iter().filter(|one| *one == event).count() as u64;
        let row = rows
            .iter()
            .find(|row| name.contains(&format!("_{}_", row["arm"].as_str().expect("a name"))));
        let row = row.expect("an arm");
        if name.contains("server") {
            assert!(count("recovery:metrics_updated") > 100, "{name}");
            let packets = [
                ("transport:packet_sent", "packets_sent"),
                ("recovery:packet_lost", "packets_lost"),
            ];
            for (event, key) in packets {
                assert_eq!(Some(count(event)), row[key].as_u64(), "{name}: {key}");
            }
            losses += count("recovery:packet_lost");
        }
    }
    assert!(losses > 0);
}

#[test]
fn arms_of_similar_names_have_qlogs_of_their_own() {
    let folder = folder("similar");
    let texts = [
        "a b=cubic",
        "a_b=bbr",
        "A b=newreno",
        "\u{fc}=cubic",
        "\u{f6}=cubic",
        "/=cubic",
    ];
    let mut arguments = vec!["--network", "lte", "--size", "20kB", "--qlog"];
    arguments.push(folder.to_str().expect("UTF-8"));
    arguments.extend(texts.iter().flat_map(|text| ["--arm", text]));
    let output = sim(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let files = fs::read_dir(&folder).expect("a folder");
    let mut titles: Vec<(String, String)> = files
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let text = fs::read_to_string(&path).expect("a file");
            let header = text.split('\u{1e}').nth(1).expect("a header");
            let header: Value = serde_json::from_str(header).expect("a JSON text");
            let name = path.file_name().expect("a name").to_str().expect("UTF-8");
            let title = header["title"].as_str().expect("a title");
            (
                name.to_owned(),
                title.split(" over").next().expect("an arm").to_owned(),
            )
        })
        .collect();
    titles.sort();
    let expected = [
        ("lte_A_b_20000_1_0-3", "A b"),
        ("lte___20000_1_0", "/"),
        ("lte_a_b_20000_1_0", "a b"),
        ("lte_a_b_20000_1_0-2", "a_b"),
        ("lte_\u{f6}_20000_1_0", "\u{f6}"),
        ("lte_\u{fc}_20000_1_0", "\u{fc}"),
    ];
    let mut expected: Vec<(String, String)> = expected
        .iter()
        .flat_map(|(group, arm)| {
            ["client", "server"].map(|end| (format!("{group}_{end}.sqlog"), (*arm).to_owned()))
        })
        .collect();
    expected.sort();
    assert_eq!(titles, expected);
}

#[test]
fn a_transfer_can_be_plotted() {
    let folder = folder("plot");
    let files = ["p.html", "p.svg"].map(|name| folder.join(name));
    let mut arguments = vec![
        "--size",
        "1MB",
        "--arm",
        "slow-start",
        "--arm",
        "rapid-start",
    ];
    for file in &files {
        arguments.extend(["--plot", file.to_str().expect("UTF-8")]);
    }
    let output = sim(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let [html, svg] = files.map(|file| fs::read(file).expect("a file"));
    let (html, svg) = (
        String::from_utf8_lossy(&html),
        String::from_utf8_lossy(&svg),
    );
    for text in [&html, &svg] {
        for word in [
            "1MB over vdsl",
            "slow-start",
            "rapid-start",
            "55mbit · round trip 39ms · queue 50ms · seed 1",
            "last byte",
        ] {
            assert!(text.contains(word), "{word}");
        }
    }
    assert!(html.len() < 3_000_000 && svg.len() < 1_000_000);
}

/// The same transfer, drawn by `sim --plot` and by `plot` from its qlog.
#[test]
fn a_simulated_transfer_has_the_names_of_its_qlog() {
    let folder = folder("plot-names");
    let (plot, qlogs) = (folder.join("p.svg"), folder.join("qlogs"));
    let output = sim(&[
        "--network",
        "vdsl",
        "--queue",
        "100ms",
        "--size",
        "5MB",
        "--arm",
        "hystart",
        "--arm",
        "slow-start",
        "--plot",
        plot.to_str().expect("UTF-8"),
        "--qlog",
        qlogs.to_str().expect("UTF-8"),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let simulated = fs::read_to_string(&plot).expect("a plot");
    let file = |arm: &str| qlogs.join(format!("vdsl_{arm}_5000000_1_0_server.sqlog"));
    let text = fs::read_to_string(file("hystart")).expect("a qlog file");
    assert!(text.contains("\"conservative_slow_start\""));
    let drawn = folder.join("q.svg");
    let output = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
        .args([
            "plot",
            file("hystart").to_str().expect("UTF-8"),
            file("slow-start").to_str().expect("UTF-8"),
            "-o",
            drawn.to_str().expect("UTF-8"),
        ])
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let drawn = fs::read_to_string(drawn).expect("a plot");
    // A file of the server starts with its first packet, half a round trip after the client's.
    let mut shifts = Vec::new();
    for name in ["CSS starts", "startup ends", "packets lost at", "idle for "] {
        let all = |text: &str| -> Vec<(String, f64)> {
            // A file does not show whether a queue was full.
            let labels = text
                .split('>')
                .map(|part| part.split('<').next().unwrap_or_default());
            let labels = labels.map(|label| label.strip_prefix("overshoot: ").unwrap_or(label));
            let labels = labels.filter(|label| label.contains(name));
            let mut found: Vec<(String, f64)> = labels.map(label_and_time).collect();
            found.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            found
        };
        let (simulated, drawn) = (all(&simulated), all(&drawn));
        assert!(!simulated.is_empty(), "no {name}");
        assert!(
            !drawn
                .iter()
                .any(|(label, _)| label.starts_with("overshoot"))
        );
        assert_eq!(simulated.len(), drawn.len(), "{simulated:?} {drawn:?}");
        for (one, other) in simulated.iter().zip(&drawn) {
            assert_eq!(one.0, other.0);
            shifts.push(one.1 - other.1);
        }
    }
    let around = |shift: &f64| (19.5 - 1.0..19.5 + 1.0).contains(shift);
    assert!(shifts.iter().all(around), "{shifts:?}");
}

/// The parts of the first sentence of a picture, in percent.
fn spent(picture: &str) -> BTreeMap<String, f64> {
    let at = picture.find("Of the ").expect("a sentence");
    let text = picture[at..].split(" \u{b7} ").next().unwrap_or_default();
    // In an SVG, it has several lines.
    let lines = text
        .split('<')
        .map(|part| part.rsplit('>').next().unwrap_or_default());
    let text = lines.collect::<Vec<_>>().join(" ");
    let text = text.split_once(": ").expect("parts").1;
    let parts = text.split_once('.').map_or(text, |(parts, _)| parts);
    let parts = parts.split(", ").filter_map(|part| part.split_once(" % "));
    parts
        .map(|(share, name)| {
            (
                name.trim().to_owned(),
                share.trim().parse().expect("a share"),
            )
        })
        .collect()
}

#[test]
fn a_simulated_transfer_has_the_limits_and_the_sentence_of_its_qlog() {
    let folder = folder("plot-limits");
    for (window, is_blocked) in [("100kB", true), ("6MB", false)] {
        let (plot, qlogs) = (folder.join("p.svg"), folder.join(window));
        let words = ["--network", "vdsl", "--size", "2MB", "--window", window];
        let more = [
            "--plot",
            plot.to_str().expect("UTF-8"),
            "--qlog",
            qlogs.to_str().expect("UTF-8"),
        ];
        let output = sim(&[&words[..], &["--arm", "rapid-start"], &more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let simulated = fs::read_to_string(&plot).expect("a plot");
        let drawn = folder.join("q.svg");
        let qlog = qlogs.join("vdsl_rapid-start_2000000_1_0_server.sqlog");
        let output = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
            .args(["plot", qlog.to_str().expect("UTF-8"), "-o"])
            .arg(&drawn)
            .output()
            .expect("the binary runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let drawn = fs::read_to_string(&drawn).expect("a plot");
        for name in ["stream limit", "blocked by flow control<"] {
            let has = [&simulated, &drawn].map(|text| text.contains(name));
            assert_eq!(has, [is_blocked; 2], "{name}, {window}");
        }
        let (ours, theirs) = (spent(&simulated), spent(&drawn));
        assert_eq!(ours, theirs);
        let blocked = ours.get("blocked by flow control");
        assert_eq!(
            blocked.is_some_and(|share| *share > 30.0),
            is_blocked,
            "{ours:?}"
        );
    }
}

/// A label without its time, and the time in milliseconds: `startup ends 245 ms`.
fn label_and_time(label: &str) -> (String, f64) {
    let words: Vec<&str> = label.split([' ', '\u{a0}', '\u{202f}']).collect();
    let [name @ .., time, unit] = &words[..] else {
        panic!("no time in {label}");
    };
    let factor = if *unit == "s" { 1000.0 } else { 1.0 };
    let time: f64 = time.parse().expect("a number");
    (name.join(" "), time * factor)
}

/// Times in round trips are in those of the flow's own path.
#[test]
fn round_trips_of_a_flow_are_its_own() {
    let output = sim(&command_line(
        "--rate 50mbit --rtt 20ms --flows 2 --flow-rtt 20ms,120ms --size 100kB --arm cubic --json",
    ));
    assert!(output.status.success(), "{}", stderr(&output));
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for (flow, rtt) in [(0, 20.0), (1, 120.0)] {
        assert_eq!(rows[flow]["path_rtt_ms"], rtt);
        let ttfb = rows[flow]["ttfb_rtts"].as_f64().expect("a number");
        assert!((2.0..2.5).contains(&ttfb), "{ttfb}");
    }
}

#[test]
fn usage_errors_exit_with_code_2() {
    for (arguments, wanted) in [
        (
            &["--rate", "55", "--rtt", "39ms"][..],
            "invalid value '55' for '--rate <RATE>': expected a rate with its unit, such as `55Mb/s`",
        ),
        (
            &["--rate", "55mbit"],
            "--rate and --rate-trace require --rtt",
        ),
        (&["--rtt", "39ms"], "--rtt requires --rate"),
        (&["--network", "isdn"], "home-wifi"),
        (&["--network", "vdls"], "; did you mean `vdsl`?"),
        (&["--network", "vdsl,lte"], "; --network can be repeated"),
        (&["--network", "none.toml"], "cannot read `none.toml`"),
        (&["--arm", "fast"], "rapid-no-jump"),
        (&["--arm", "rapid-strat"], "; did you mean `rapid-start`?"),
        (&["--size", "much"], "1.6MB"),
        (&["--mtu", "500"], "1200"),
        (&["--handshake", "half"], "`full`, `resumed` or `0rtt`"),
        (&["--runs", "0"], "--runs"),
        (
            &["--rate-trace", "none.trace", "--rtt", "1ms"],
            "--rate-trace: cannot read `none.trace`",
        ),
        (&["--cross", "cbr:5"], "`5` (expected a rate"),
        (&["--cross", "pages:cubic"], "`pages` without a size"),
        (
            &["--flows", "2", "--flow-rtt", "40ms,1ms"],
            "a flow with a round trip of 1ms (expected at least that of the path, 39ms)",
        ),
        (
            &["--flows", "2", "--flow-rtt", "40ms,50ms,60ms"],
            "--flow-rtt: 3 round-trip times (expected at most one for each of 2 flows)",
        ),
        (
            &["--queue", "big"],
            "'--queue <DEPTH>': expected a depth, such as `50ms`",
        ),
        (
            &["--queue", "60"],
            "expected a depth with its unit: `60ms`, `60kB` or `60p`",
        ),
        (
            &["--loss", "1"],
            "'--loss <SHARE>': expected a percent sign: `1%`, or `100%`",
        ),
        (&["--rate", "-5mbit"], "expected a rate"),
        (
            &["--size", "400k"],
            "`400kB` (decimal) or `400KiB` (binary)",
        ),
        (&["--rtt", "40"], "such as `40s` or `40ms`"),
        (&["--seed", "9007199254740992"], "2^53 - 1"),
        (
            &["--seed", "9007199254740991", "--runs", "2"],
            "--seed: 9007199254740991",
        ),
        (
            &["--progress", "5MB", "--size", "1MB"],
            "--progress: 5MB (expected at most the --size, 1MB)",
        ),
        (&["--pause", "1s"], "--pause requires --requests"),
        (&["--stagger", "1s"], "--stagger requires --flows"),
        (
            &["--aqm", "codel", "--mark", "5ms"],
            "(expected `on` or `off`",
        ),
        (
            &["--arm", "cubic", "--arm", "cubic"],
            "--arm: two arms are named `cubic`",
        ),
        (
            &["--network", "dsl", "--network", "dsl"],
            "two networks are named `dsl`",
        ),
        (
            &["--network", "/dev/zero.toml"],
            "cannot read `/dev/zero.toml`",
        ),
        (
            &["--rate-trace", "/dev/zero", "--rtt", "1ms"],
            "too large (expected at most 64 MiB)",
        ),
        (&["--no-such-flag"], "--no-such-flag"),
        (&["--plot", "p.png"], "ends in .html or .svg"),
        (&["--plot", "p.svg", "--size", "1MB,2MB"], "one --size"),
    ] {
        let output = sim(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr(&output).contains(wanted),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn removed_options_are_refused_by_name() {
    for (arguments, wanted) in [
        (
            &["--trace=events.ndjson"][..],
            "`--trace` is not an option (expected --qlog DIR",
        ),
        (
            &["--qlog-dialect", "draft"],
            "`--qlog-dialect` is not an option (expected --qlog DIR alone",
        ),
        (
            &["--jitter", "1ms"],
            "`--jitter` is not an option (expected `jitter = …`",
        ),
    ] {
        check_failure(&sim(arguments), 2, wanted);
    }
}

#[test]
fn repeated_values_and_impossible_marks_are_named() {
    for (arguments, wanted) in [
        (
            &["--handshake", "full,0rtt,full"][..],
            "--handshake: `full` is given twice (expected once)",
        ),
        (
            &["--size", "1MB,400kB,1000kB"],
            "--size: `1MB` is given twice (expected once)",
        ),
        (
            &["--aqm", "dualpi2", "--mark", "off"],
            "(expected `on`: `dualpi2` always marks)",
        ),
        // The client of an upload receives nothing, and grants no window.
        (&["--upload", "--progress", "100kB"], "cannot be used with"),
        (&["--upload", "--window", "64kB"], "cannot be used with"),
    ] {
        let output = sim(arguments);
        check_failure(&output, 2, wanted);
    }
}

/// The marks of a managed queue reach the sender, so its reduction by marks matters; a drop-tail queue that does not mark is
/// reported. The queue has the limit of the discipline, so that nothing is dropped at its tail.
#[test]
fn ecn_over_a_managed_queue_is_marked_and_over_another_is_warned_of() {
    let path = [
        "--rate", "50mbit", "--rtt", "40ms", "--ecn", "--size", "10MB",
    ];
    let arms = ["--arm", "cubic", "--arm", "cubic:beta-ecn=0.5"];
    let run = |words: &[&str]| json(&[&path[..], words].concat());
    for name in ["codel", "fq-codel", "pie", "cake"] {
        let rows = run(&[&arms[..], &["--aqm", name]].concat());
        assert_ne!(rows[0]["ttlb_ms"], rows[1]["ttlb_ms"], "{name}: no marks");
    }
    let rows = run(&[&arms[..], &["--aqm", "codel", "--mark", "off"]].concat());
    assert_eq!(rows[0]["ttlb_ms"], rows[1]["ttlb_ms"], "marks turned off");

    let shown = |words: &[&str]| {
        let output = sim(&[&path[..], &["--arm", "cubic"], words].concat());
        let head = stdout(&output)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        (head, stderr(&output))
    };
    let (head, errors) = shown(&["--aqm", "codel"]);
    assert!(head.ends_with("CoDel, queue 1000 packets, marks"), "{head}");
    assert_eq!(errors, "");
    let without = "warning: --ecn: no queue of custom marks packets";
    for words in [&[][..], &["--aqm", "codel", "--mark", "off"]] {
        assert!(shown(words).1.starts_with(without), "{words:?}");
    }
    let output = sim(&[
        "--rate", "50mbit", "--rtt", "40ms", "--aqm", "pie", "--size", "100kB",
    ]);
    assert!(
        stdout(&output).contains("marks, endpoints without ECN"),
        "{}",
        stdout(&output)
    );
}

/// Cross traffic that leaves nothing, as in docs/sim.md: the server gives the transfer up, and the warning says by which limit.
#[test]
fn a_transfer_that_the_server_cancels_fails_with_a_sentence() {
    let output = sim(&command_line(
        "--rate 10mbit --rtt 40ms --cross cbr:12mbit --size 400kB --arm cubic",
    ));
    check_failure(
        &output,
        1,
        "the connection ended: the server cancelled a transfer of less than 3000 bytes in 30 s, its limit for stalled clients",
    );
}

#[test]
fn runtime_errors_exit_with_code_1_and_a_message() {
    let folder = folder("full");
    let name = folder.join("vdsl_cubic_1000000_1_0_server.sqlog");
    std::os::unix::fs::symlink("/dev/full", &name).expect("a link");
    let into = folder.to_str().expect("UTF-8");
    let arguments = ["--arm", "cubic", "--size", "1MB", "--force", "--qlog", into];
    check_failure(
        &sim(&arguments),
        1,
        &format!("cannot write `{}`", name.display()),
    );
    let late = sim(&["--time-limit", "100ms", "--size", "1MB"]);
    check_failure(&late, 1, "4 of 4 transfers did not complete");
    assert!(stdout(&late).contains('–'));
}

#[test]
fn every_example_of_the_help_runs() {
    let help = stdout(&sim(&["--help"]));
    let lines = help.lines().skip_while(|line| *line != "Examples:");
    let block: Vec<&str> = lines.skip(1).take_while(|line| !line.is_empty()).collect();
    let folder = folder("examples");
    let script = format!(
        "set -eux\nlastbyte() {{ '{}' \"$@\"; }}\n{}\n",
        env!("CARGO_BIN_EXE_lastbyte"),
        block.join("\n")
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&folder)
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(
        stderr(&output).matches("+ lastbyte sim ").count(),
        9,
        "{help}"
    );
}

/// All figures of a table over several runs are medians, as its heading says; JSON has each run.
/// The arms have the same transfers; the table has those of all seeds, and the JSON output an object for each seed.
#[test]
fn arrivals_are_measured_by_size() {
    let words = [
        "--rate",
        "20mbit",
        "--rtt",
        "40ms",
        "--arm",
        "cubic",
        "--arm",
        "bbr",
        "--runs",
        "2",
        "--arrivals",
        "50% of web for 30s",
    ];
    let output = sim(&words);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    assert!(table.contains("arrivals for 30s"), "{table}");
    assert_eq!(table.matches("\ncubic  below 100kB").count(), 1, "{table}");
    let rows = json(&words);
    let named = rows
        .iter()
        .map(|row| (&row["arm"], &row["seed"], &row["open"]));
    let named: Vec<String> = named
        .map(|(arm, seed, open)| format!("{arm} {seed} {open}"))
        .collect();
    assert_eq!(
        named,
        [
            "\"cubic\" 1 0",
            "\"cubic\" 2 0",
            "\"bbr\" 1 0",
            "\"bbr\" 2 0"
        ]
    );
    assert_eq!(rows[0]["completed"], rows[2]["completed"]);
    let class = &rows[0]["completion_times"][0];
    assert_eq!(class["below_bytes"], 100_000);
    assert!(class["slowdown_mean"].as_f64() >= Some(1.0), "{class}");
    for (words, why) in [
        (&["--arrivals", "50%"][..], "arrivals without sizes"),
        (&["--arrivals", "5% of web now"], "`now` behind the sizes"),
        (
            &["--arrivals", "5% of web for 2000s"],
            "at most the --time-limit",
        ),
        (
            &["--arrivals", "5% of web", "--size", "1kB"],
            "cannot be used with",
        ),
    ] {
        check_failure(&sim(words), 2, why);
    }
    let none = stderr(&sim(&["--arrivals", "1% of 1GB for 1s"]));
    assert!(none.contains(": no transfer began"), "{none}");
}

#[test]
fn figures_of_several_runs_are_medians() {
    let arguments = command_line("--arm rapid-start --loss 2% --size 1MB --runs 5");
    let rows = json(&arguments);
    let median = |key: &str| {
        let mut values: Vec<f64> = rows
            .iter()
            .map(|row| row[key].as_f64().expect("a number"))
            .collect();
        values.sort_by(f64::total_cmp);
        values[2]
    };
    let mean = |key: &str| {
        let values = rows.iter().map(|row| row[key].as_f64().expect("a number"));
        values.sum::<f64>() / 5.0
    };
    assert!((median("packets_lost") - mean("packets_lost")).abs() > 0.1);
    let table = stdout(&sim(&arguments));
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines[0].ends_with("loss 2%; medians of 5 runs, seeds 1 to 5"),
        "{table}"
    );
    let head: Vec<&str> = lines[1]
        .split("  ")
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    let cells: Vec<&str> = lines[2]
        .split("  ")
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .collect();
    let cell = |name: &str| {
        let place = head.iter().position(|head| *head == name).expect(name);
        cells[place].to_owned()
    };
    assert_eq!(cell("sent"), median("packets_sent").to_string());
    assert_eq!(cell("lost"), median("packets_lost").to_string());
    assert_eq!(cell("episodes"), median("loss_episodes").to_string());
    assert_eq!(cell("TTLB ms"), format!("{:.1}", median("ttlb_ms")));
}

/// Idle policies differ in later responses alone: the table has those too.
#[test]
fn later_responses_are_in_the_table() {
    let arms = ["cubic:idle=keep", "cubic:idle=rfc5681"];
    let output = sim(&[
        "--arm",
        arms[0],
        "--arm",
        arms[1],
        "--requests",
        "3",
        "--pause",
        "5s",
        "--size",
        "1MB",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    let later = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[6].parse::<f64>().expect("a time")
    };
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].contains("TTFB RTT  later ms  sent"), "{table}");
    assert!(later(lines[3]) > 1.1 * later(lines[2]), "{table}");
}

#[test]
fn objects_at_once_and_uploads_are_simulated() {
    let common = ["--arm", "cubic", "--network", "vdsl", "--size", "300kB"];
    let one = json(&common);
    let three = json(&[&common[..], &["--parallel", "3"]].concat());
    let next = three[0]["next_ttlb_ms"].as_array().expect("two more");
    assert_eq!(next.len(), 2);
    assert!(three[0]["ttlb_ms"].as_f64() > one[0]["ttlb_ms"].as_f64());
    // The client sends as many packets as the server does otherwise, and its link is the bottleneck.
    let upload = json(&[&common[..], &["--upload"]].concat());
    let sent = |rows: &[Value]| rows[0]["packets_sent"].as_f64().expect("a number");
    assert!(
        (0.9..1.1).contains(&(sent(&upload) / sent(&one))),
        "{upload:?}"
    );
    assert!(upload[0]["utilisation"].as_f64() > Some(0.2), "{upload:?}");
    let table = stdout(&sim(&[&common[..], &["--upload"]].concat()));
    assert!(
        table.starts_with("300kB over vdsl: upload, 55mbit"),
        "{table}"
    );
}

/// What cannot be written is found out before anything is simulated.
#[test]
fn a_plot_without_a_folder_is_an_error_before_the_simulation() {
    let output = sim(&["--plot", "/nonexistent/p.svg", "--time-limit", "1ms"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("cannot write `/nonexistent/p.svg`") && output.stdout.is_empty(),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_plot_names_the_transfer_it_shows() {
    let folder = folder("plot-several");
    let file = folder.join("p.svg");
    let output = sim(&[
        "--arm",
        "cubic",
        "--size",
        "100kB",
        "--flows",
        "2",
        "--runs",
        "3",
        "--seed",
        "4",
        "--plot",
        file.to_str().expect("UTF-8"),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let svg = fs::read_to_string(&file).expect("a file");
    for text in [
        "cubic, flow 1",
        "cubic, flow 2",
        "run 1 of 3 · seed 4",
        "Rate at the bottleneck",
        "other traffic",
    ] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
}

/// Cross traffic is in the row of rates; a transfer alone has no such row.
#[test]
fn a_plot_shows_the_rate_of_cross_traffic() {
    let folder = folder("plot-cross");
    let draw = |name: &str, more: &[&str]| {
        let file = folder.join(name);
        let plot = file.to_str().expect("UTF-8");
        let mut arguments = vec!["--arm", "cubic", "--size", "100kB", "--plot", plot];
        arguments.extend(more);
        let output = sim(&arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        fs::read_to_string(&file).expect("a file")
    };
    assert!(!draw("alone.svg", &[]).contains("Rate at the bottleneck"));
    assert!(draw("cross.svg", &["--cross", "bbr"]).contains("other traffic"));
    let many = draw("many.svg", &["--flows", "9"]);
    assert!(many.contains("flows 1 to 8 of 9"), "{many}");
    assert!(many.contains("flow 8") && !many.contains("flow 9"));
}
