//! `lastbyte replay`: predictions against the truth of a simulation, refusals, and bad input.

#![expect(
    clippy::disallowed_methods,
    reason = "what a command reads and writes is files"
)]

use std::{fs, path::Path, sync::OnceLock};

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
    assert_eq!(json["checks"][0]["outcome"], "holds");
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
        (line("control", "x"), 2, "expected --spec 'control=SPEC'"),
        (
            line("cubic", "x") + &line("cubic", "y"),
            2,
            "line 2 is of the experiment `y`, and earlier lines are of `x`",
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
