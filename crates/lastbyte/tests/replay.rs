//! `lastbyte replay`: predictions against the truth of a simulation, refusals, and bad input.

#![expect(
    clippy::disallowed_methods,
    reason = "what a command reads and writes is files"
)]

use std::{collections::BTreeMap, fs, path::Path, sync::OnceLock};

use serde_json::Value;

#[path = "common/run.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod run;

use run::{command_line, folder, lastbyte, stderr};

/// The lines of 150 paths in three arms, of which a log has one or two. Simulated once.
fn simulated() -> &'static [Value] {
    static LINES: OnceLock<Vec<Value>> = OnceLock::new();
    LINES.get_or_init(|| {
        let folder = folder("replay-simulated");
        let output = lastbyte(
            &folder,
            &command_line("ab --arm slow-start --arm rapid-start --arm cubic:initial-window=10p --connections 450 --seed 71 --out ab"),
        );
        assert!(output.status.success(), "{}", stderr(&output));
        let text = fs::read_to_string(folder.join("ab/conns.ndjson")).expect("a log");
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        lines.collect()
    })
}

fn write(folder: &Path, lines: impl Iterator<Item = Value>) {
    let text: String = lines
        .map(|line| format!("{line}\n"))
        .collect::<Vec<_>>()
        .concat();
    fs::write(folder.join("a.ndjson"), text).expect("a log");
}

fn arm(name: &str) -> impl Iterator<Item = Value> {
    simulated()
        .iter()
        .filter(move |line| line["arm"] == name)
        .cloned()
}

/// The same transfers on other connections.
fn on_other_connections(lines: impl Iterator<Item = Value>) -> impl Iterator<Item = Value> {
    lines.map(|mut line| {
        let number = line["conn_id"].as_u64().expect("a number");
        line["conn_id"] = (number + 1_000_000).into();
        line
    })
}

/// Replays `a.ndjson` with a small bank. Returns the exit code and the JSON.
fn replay(folder: &Path, arguments: &[&str]) -> (i32, Value) {
    let bank = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay-bank");
    let bank = bank.to_str().expect("UTF-8");
    let common: &[&str] = &[
        "replay", "a.ndjson", "--paths", "768", "--bank", bank, "--json",
    ];
    let output = lastbyte(folder, &[common, arguments].concat());
    let code = output.status.code().expect("an exit code");
    assert!([0, 3].contains(&code), "{}", stderr(&output));
    (code, serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// The true change of the geometric mean, of paths that completed in both arms.
fn truth(new: &str) -> f64 {
    let logs = arm("slow-start").filter_map(|line| {
        let other = arm(new).find(|other| other["seed"] == line["seed"])?;
        Some((other["ttlb"].as_f64()? / line["ttlb"].as_f64()?).ln())
    });
    let logs: Vec<f64> = logs.collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp_m1()
}

#[test]
fn an_arm_that_never_ran_is_predicted_and_the_same_seed_gives_the_same_bytes() {
    let folder = folder("replay-predicts");
    write(&folder, arm("slow-start"));
    let arguments = command_line(
        "--arm rapid-start --arm ten=cubic:initial-window=10p --arm again=slow-start --log new.ndjson --population mine.toml",
    );
    let (code, json) = replay(&folder, &arguments);
    assert_eq!(code, 0, "{}", json["reasons"]);
    // 150 lines cannot exclude an error of 5 %.
    assert_eq!(json["checks"][0]["outcome"], "cannot tell");
    let warnings = json["warnings"].to_string();
    assert!(
        warnings.contains("more lines make it narrower"),
        "{warnings}"
    );
    for (at, new) in ["rapid-start", "cubic:initial-window=10p"]
        .into_iter()
        .enumerate()
    {
        let change = &json["predictions"][at]["groups"][0]["mean_change"];
        let [value, low, high] = [0, 1, 2].map(|at| change[at].as_f64().expect("a number"));
        let truth = truth(new);
        assert!((low..=high).contains(&truth), "{new}: {change}, {truth}");
        // A bank of 768 paths: a tenth of the default.
        assert!((value - truth).abs() < 0.05, "{new}: {change}, {truth}");
    }
    // An arm that is the logged one changes nothing.
    let placebo = &json["predictions"][2]["groups"][0];
    assert!(
        placebo["mean_change"][0]
            .as_f64()
            .is_some_and(|change| change.abs() < 1e-9),
        "{placebo}"
    );
    let page = fs::read(folder.join("replay.html")).expect("a page");
    let log = fs::read_to_string(folder.join("new.ndjson")).expect("a log");
    assert!(log.lines().count() > 400);
    // The files of an earlier run are not overwritten: one may be a log.
    let output = lastbyte(
        &folder,
        &["replay", "a.ndjson", "--arm", "bbr", "--log", "a.ndjson"],
    );
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("`a.ndjson` exists"));
    for file in ["new.ndjson", "mine.toml"] {
        fs::rename(folder.join(file), folder.join(format!("first-{file}"))).expect("a file");
    }
    let (_, again) = replay(&folder, &arguments);
    assert_eq!(json, again);
    assert_eq!(page, fs::read(folder.join("replay.html")).expect("a page"));
    let report = lastbyte(
        &folder,
        &["report", "new.ndjson", "--baseline", "slow-start"],
    );
    assert!(report.status.success(), "{}", stderr(&report));
    assert!(stderr(&report).contains("The lines are predictions of `lastbyte replay`"));
    let experiment = "name = \"mine\"\npopulation = \"mine.toml\"\n[[arms]]\nname = \"a\"\nspec = \"cubic\"\n[[arms]]\nname = \"b\"\nspec = \"bbr\"\n";
    fs::write(folder.join("mine-ab.toml"), experiment).expect("a file");
    let ab = lastbyte(&folder, &["ab", "mine-ab.toml", "--connections", "8"]);
    assert!(ab.status.success(), "{}", stderr(&ab));
}

#[test]
fn an_arm_of_the_log_is_predicted_from_the_other_before_the_answer() {
    let folder = folder("replay-checks");
    // As in production, a connection has one arm.
    let lines = simulated().iter().filter(|line| {
        let is_first = line["seed"]
            .as_u64()
            .is_some_and(|seed| seed.is_multiple_of(2));
        line["arm"]
            == if is_first {
                "slow-start"
            } else {
                "rapid-start"
            }
    });
    write(
        &folder,
        lines
            .cloned()
            .chain(on_other_connections(arm("slow-start")))
            .chain(on_other_connections(arm("rapid-start"))),
    );
    let (code, json) = replay(&folder, &["--arm", "ten=cubic:initial-window=10p"]);
    assert_eq!(code, 0, "{}", json["reasons"]);
    // As in a report.
    assert_eq!(json["baseline"], "slow-start");
    let checks = json["checks"].as_array().expect("checks");
    let predicted: Vec<&Value> = checks.iter().map(|check| &check["predicts"]).collect();
    assert_eq!(
        predicted,
        [
            &Value::Null,
            &Value::from("rapid-start"),
            &Value::from("slow-start")
        ]
    );
}

/// Logs of which nothing can be said, each with a part of the reason.
#[test]
fn a_log_that_does_not_resemble_the_simulated_paths_is_refused_with_the_reason() {
    let folder = folder("replay-refuses");
    let refused = |name: &str, lines: Vec<Value>, expected: &str| {
        write(&folder, lines.into_iter());
        let (code, json) = replay(
            &folder,
            &[
                "--arm",
                "ten=cubic:initial-window=10p",
                "--baseline",
                "slow-start",
            ],
        );
        assert_eq!(code, 3, "{name}: {json}");
        assert!(
            json["reasons"].to_string().contains(expected),
            "{name}: {}",
            json["reasons"]
        );
        assert_eq!(json["predictions"], Value::Array(Vec::new()), "{name}");
        let page = fs::read_to_string(folder.join("replay.html")).expect("a page");
        assert!(page.contains("there is no prediction"), "{name}");
    };
    let with = |change: fn(&mut Value)| -> Vec<Value> {
        let changed = arm("slow-start").map(|mut line| {
            change(&mut line);
            line
        });
        changed.collect()
    };
    let another_stack = with(|line| {
        if let Some(ttlb) = line["ttlb"].as_f64() {
            line["ttlb"] = (ttlb * 1.8).round().into();
        }
    });
    refused(
        "a stack that takes 1.8 of the time",
        another_stack,
        "the simulated stack is not that of the log",
    );
    let bots = with(|line| {
        line["rtt.smoothed"] = 60_000.into();
        line["rtt.variance"] = 50_000.into();
        line["num-ptos"] = 40.into();
    });
    refused(
        "clients that hardly answer",
        bots,
        "resemble no simulated path",
    );
    let by_site = simulated().iter().filter(|line| {
        let is_far = ["Africa", "South America", "South-East Asia"]
            .iter()
            .any(|site| line["site"] == *site);
        line["arm"] == if is_far { "rapid-start" } else { "slow-start" }
    });
    let by_site: Vec<Value> = by_site.cloned().collect();
    // As many lines as a check needs.
    let more = on_other_connections(by_site.clone().into_iter());
    let by_site = by_site.iter().cloned().chain(more).collect();
    refused("arms by site", by_site, "at different sites");
}

/// A small form of `bench/replay/proof`, whose full one has eight populations, three arms and 8192 paths: errors of up to 1.3 points
/// for this arm, and 99 % of the truths in their intervals.
#[test]
fn populations_that_the_bank_does_not_know_are_predicted() {
    let folder = folder("replay-proof");
    let (mut covered, mut cells) = (0, 0);
    for (name, sweep) in [("queues", "queue=4"), ("rates", "rate=0.5")] {
        let command = format!(
            "ab --arm slow-start --arm bbr --connections {CONNECTIONS} --seed 9302 --sweep {sweep} --out {name}"
        );
        let output = lastbyte(&folder, &command_line(&command));
        assert!(output.status.success(), "{}", stderr(&output));
        let text = fs::read_to_string(folder.join(name).join("conns.ndjson")).expect("a log");
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let of_arm = |arm: &'static str| lines.iter().filter(move |line| line["arm"] == arm);
        let other: BTreeMap<u64, &Value> = of_arm("bbr")
            .filter_map(|line| Some((line["seed"].as_u64()?, line)))
            .collect();
        let numbers = |line: &Value| {
            let of = |key: &str| line[key].as_f64().expect("a number");
            (
                of("ttlb").max(0.5),
                of("num-packets.lost") / of("num-packets.sent"),
            )
        };
        let pairs: Vec<_> = of_arm("slow-start")
            .filter_map(|line| Some((line, *other.get(&line["seed"].as_u64()?)?)))
            .filter(|(own, new)| own["complete"] == true && new["complete"] == true)
            .map(|(own, new)| (numbers(own), numbers(new)))
            .collect();
        let count = pairs.len() as f64;
        let time = pairs.iter().map(|(own, new)| (new.0 / own.0).ln());
        let mean = (time.sum::<f64>() / count).exp_m1();
        let loss = pairs.iter().map(|(own, new)| new.1 - own.1).sum::<f64>() / count;
        write(&folder, of_arm("slow-start").cloned());
        let bank = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay-bank-of-proof");
        let output = lastbyte(
            &folder,
            &[
                "replay",
                "a.ndjson",
                "--paths",
                "2048",
                "--json",
                "--arm",
                "bbr",
                "--arm",
                "again=slow-start",
                "--bank",
                bank.to_str().expect("UTF-8"),
            ],
        );
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let group = &json["predictions"][0]["groups"][0];
        let estimate = |group: &Value, key: &str| {
            [0, 1, 2].map(|at| group[key][at].as_f64().expect("a number"))
        };
        let predicted = estimate(group, "mean_change");
        assert!(
            (predicted[0] - mean).abs() <= 0.02,
            "{name}: predicted {predicted:?}, true {mean}"
        );
        let of_loss = estimate(group, "loss_difference");
        assert!(
            (of_loss[0] - loss).abs() <= 0.01,
            "{name}: predicted {of_loss:?}, true {loss}"
        );
        for ([_, low, high], truth) in [(predicted, mean), (of_loss, loss)] {
            cells += 1;
            covered += u32::from((low..=high).contains(&truth));
        }
        let [value, low, high] = estimate(&json["predictions"][1]["groups"][0], "mean_change");
        assert!(value.abs() < 1e-9 && (low..=high).contains(&0.0), "{name}");
    }
    // Of 24 losses of the full form, three are outside.
    assert!(covered + 1 >= cells, "{covered} of {cells}");
}

/// Connections of both arms, in a population.
const CONNECTIONS: u32 = 1600;

/// The lines of slow-start, of which every second one does not say which connection it is of.
fn lines_of_parts() -> Vec<String> {
    let lines = arm("slow-start").enumerate().map(|(number, mut line)| {
        if number % 2 == 0 {
            let line = line.as_object_mut().expect("an object");
            for key in ["seed", "time", "conn_id"] {
                line.remove(key);
            }
        }
        format!("{line}\n")
    });
    lines.collect()
}

/// Writes logs and their states, of as many lines as `sizes` has. Returns the names of both.
fn write_parts(folder: &Path, lines: &[String], sizes: &[usize]) -> (Vec<String>, Vec<String>) {
    let (mut logs, mut states) = (Vec::new(), Vec::new());
    let mut rest = lines;
    for (number, size) in sizes.iter().enumerate() {
        let (part, others) = rest.split_at(*size);
        rest = others;
        let (log, state) = (format!("{number}.ndjson"), format!("{number}.state"));
        fs::write(folder.join(&log), part.concat()).expect("a log");
        let output = lastbyte(folder, &["replay", "--partial", &log, "--lines", "100"]);
        assert!(output.status.success(), "{}", stderr(&output));
        fs::write(folder.join(&state), output.stdout).expect("a state");
        logs.push(log);
        states.push(state);
    }
    assert!(rest.is_empty());
    (logs, states)
}

#[test]
fn merged_parts_give_the_bytes_of_all_logs_in_one_run() {
    let lines = lines_of_parts();
    let bank = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay-bank-of-parts");
    let bank = bank.to_str().expect("UTF-8");
    let all = lines.len();
    // The second has an empty part, and both more lines than are drawn.
    for sizes in [vec![all], vec![all - 50, 0, 7, 43]] {
        let folder = folder("replay-parts");
        let (logs, states) = write_parts(&folder, &lines, &sizes);
        let run = |files: &[String], option: &[&str]| {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            let common: &[&str] = &[
                "--arm",
                "rapid-start",
                "--paths",
                "512",
                "--lines",
                "100",
                "--bank",
                bank,
                "--json",
            ];
            let output = lastbyte(
                &folder,
                &[&["replay"], option, files.as_slice(), common].concat(),
            );
            assert!(
                [Some(0), Some(3)].contains(&output.status.code()),
                "{}",
                stderr(&output)
            );
            let page = fs::read_to_string(folder.join("replay.html")).expect("a page");
            // But for the command on it.
            let page = page
                .lines()
                .filter(|line| !line.contains("lastbyte replay "));
            (output.stdout, page.collect::<Vec<_>>().join("\n"))
        };
        assert_eq!(run(&logs, &[]), run(&states, &["--merge"]), "{sizes:?}");
    }
}

#[test]
fn states_that_do_not_fit_are_refused_with_the_name_of_the_file() {
    let folder = folder("replay-states");
    let lines = lines_of_parts();
    let (_, states) = write_parts(&folder, &lines, &[60, lines.len() - 60]);
    let state = fs::read_to_string(folder.join(&states[0])).expect("a state");
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    let bad = [
        (state.clone(), "`bad.state`: it has the lines of `1.state`"),
        (
            state.replace(&version, "\"version\":\"0\""),
            "another version: 0",
        ),
        (
            state.replace("\"seed\":1,", "\"seed\":2,"),
            "another --seed: 2 (expected 1)",
        ),
        (
            state.replace("\"lines\":100,", "\"lines\":200,"),
            "another --lines: 200 (expected 100)",
        ),
        (
            state[..state.len() / 2].to_owned(),
            "the state was cut off or changed",
        ),
        (
            state.replacen("[\"slow-start\"", "[\"hystart\"", 1),
            "the state was cut off or changed",
        ),
        (lines.concat(), "not a state"),
        (String::new(), "not a state"),
    ];
    for (at, (text, expected)) in bad.into_iter().enumerate() {
        fs::write(folder.join("bad.state"), &text).expect("a file");
        // The first is that of `0.state`, under another name.
        let earlier = if at == 0 { "0.state" } else { "1.state" };
        let expected = expected.replace("1.state", earlier);
        let output = lastbyte(
            &folder,
            &[
                "replay",
                "--merge",
                earlier,
                "bad.state",
                "--lines",
                "100",
                "--arm",
                "bbr",
            ],
        );
        run::check_failure(&output, 2, &expected);
        assert!(!folder.join("replay.html").exists() && !folder.join("replay-bank").exists());
    }
}

/// A file of the bank that is not as it was written is made again. Nothing else would show it: the new arm is in no log.
#[test]
fn a_changed_bank_is_made_again() {
    let folder = folder("replay-changed-bank");
    write(&folder, arm("slow-start"));
    let run = || {
        let output = lastbyte(
            &folder,
            &command_line("replay a.ndjson --arm bbr --paths 512 --bank bank --json"),
        );
        assert!(
            [Some(0), Some(3)].contains(&output.status.code()),
            "{}",
            stderr(&output)
        );
        output.stdout
    };
    let first = run();
    let files = || {
        fs::read_dir(folder.join("bank"))
            .expect("a bank")
            .map(|file| file.expect("a file").path())
    };
    assert!(files().count() >= 2);
    for file in files() {
        let text = fs::read_to_string(&file).expect("a file");
        let numbers = text.replacen("\n[", "\n[1", 100);
        assert_ne!(text, numbers, "{}", file.display());
        fs::write(&file, numbers).expect("a file");
    }
    assert!(run() == first);
}

#[test]
fn a_name_is_of_one_file() {
    let folder = folder("replay-names");
    write(&folder, arm("slow-start"));
    for names in [
        "-o x.html --log x.html",
        "--log x.ndjson --population ./x.ndjson",
    ] {
        let output = lastbyte(
            &folder,
            &command_line(&format!("replay a.ndjson --arm bbr {names}")),
        );
        run::check_failure(&output, 2, "is the name of two files to write");
    }
}

/// A server that was killed, or is writing, leaves a part of a line.
#[test]
fn a_torn_line_is_left_out_with_a_warning() {
    let folder = folder("replay-torn");
    let lines = lines_of_parts();
    let whole = lines.concat();
    fs::write(folder.join("a.ndjson"), &whole).expect("a log");
    let torn = format!("{whole}{}", &lines[0][..lines[0].len() / 2]);
    fs::write(folder.join("b.ndjson"), torn).expect("a log");
    let states = ["a.ndjson", "b.ndjson"].map(|log| {
        let output = lastbyte(&folder, &["replay", "--partial", log]);
        assert!(output.status.success(), "{}", stderr(&output));
        let warns = stderr(&output).contains("warning: skipped 1 line that is not JSON");
        assert_eq!(warns, log == "b.ndjson", "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).expect("a state");
        text.lines().count()
    });
    assert_eq!(states[0], states[1]);
}

#[test]
fn bad_input_is_named_with_the_remedy() {
    let folder = folder("replay-input");
    let line = |arm: &str, experiment: &str| {
        format!(
            "{{\"arm\":\"{arm}\",\"experiment\":\"{experiment}\",\"ttlb\":10,\"content_length\":300000,\"num-packets.sent\":9,\"num-packets.lost\":0}}\n"
        )
    };
    let cases = [
        (String::new(), 1, "no usable lines: 0 lines"),
        (
            "{\"arm\":\"cubic\",\"ttlb\":3}\n".to_owned(),
            1,
            "1 without statistics of QUIC",
        ),
        (
            line("cubic", "x").replace("\"ttlb\":10,", ""),
            1,
            "1 without a time, 0 of objects below 50 kB or from 12.8 MB on, 0 without an arm (expected complete lines with `ttlb`",
        ),
        (line("control", "x"), 2, "expected --spec 'control=SPEC'"),
        (
            line("cubic", "x") + &line("cubic", "y"),
            2,
            "row 2 is of the experiment `y`, and earlier lines are of `x`",
        ),
        (
            line("bbr", "x"),
            2,
            "the log has an arm `bbr` (expected another name: `again=bbr`)",
        ),
    ];
    for (text, code, expected) in cases {
        fs::write(folder.join("a.ndjson"), text).expect("a log");
        let output = lastbyte(&folder, &["replay", "a.ndjson", "--arm", "bbr"]);
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{errors}");
        assert!(errors.contains(expected), "{errors}");
        assert!(!folder.join("replay.html").exists() && !folder.join("replay-bank").exists());
    }
    // H2O's lines have no arm, but what they ran, with the names of a report.
    let h2o = |rapid: u8, jump: u32| {
        format!(
            "{{\"module\":\"h2o\",\"num-rapid-start\":{rapid},\"jumpstart.cwnd\":{jump},\"ttlb\":10,\"content_length\":300000,\"num-packets.sent\":9,\"num-packets.lost\":0}}\n"
        )
    };
    let text = [h2o(0, 0), h2o(1, 0), h2o(0, 9000), h2o(1, 9000)].concat();
    fs::write(folder.join("a.ndjson"), text).expect("a log");
    let output = lastbyte(
        &folder,
        &["replay", "a.ndjson", "--arm", "bbr", "--baseline", "none"],
    );
    let expected = "(expected jumpstart, rapid-no-jump, rapid-start, slow-start)";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    write(&folder, arm("slow-start"));
    fs::copy(folder.join("a.ndjson"), folder.join("b.ndjson")).expect("room");
    let output = lastbyte(&folder, &["replay", "a.ndjson", "b.ndjson", "--arm", "bbr"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("about 50 % of the lines are copies of others"),
        "{}",
        stderr(&output)
    );
    fs::write(folder.join("a.ndjson"), line("bbr", "x")).expect("a log");
    let output = lastbyte(
        &folder,
        &["replay", "a.ndjson", "--arm", "cubic", "--baseline", "none"],
    );
    assert!(
        stderr(&output).contains("the log has no arm `none` (expected bbr)"),
        "{}",
        stderr(&output)
    );
}
