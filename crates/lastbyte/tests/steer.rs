//! `lastbyte steer`: a ramp from its start to its end over logs, its failures, and a server that reads its file.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "what a command reads and writes is files"
)]

#[path = "steer/chain.rs"]
mod chain;
#[path = "steer/disk.rs"]
mod disk;
#[path = "steer/lost.rs"]
mod lost;
#[path = "steer/files.rs"]
mod odd_files;
#[path = "common/serving.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod serving;
#[path = "steer/states.rs"]
mod states;
#[path = "steer/stops.rs"]
mod stops;

use std::{
    fmt::Write as _,
    fs::{self, File},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use serving::{Serving, folder, lastbyte, stderr};

const PLAN: &str = "
name = 'ramp'
baseline = 'old'

[[arms]]
name = 'new'
spec = 'rapid-start'

[[arms]]
name = 'old'
spec = 'cubic:initial-window=10p'

[plan]
stages = ['10%', '50%']
least-time = '2h'
least-connections = 100
most-time = '2d'
";

/// A whole hour of September 2020.
const STARTED_MS: u64 = 1_599_998_400_000;
const HOUR_MS: u64 = 3_600_000;
/// The first epoch of a ramp that started half an hour before.
const FIRST: u64 = STARTED_MS / 1000 - 1800;

/// The arms of an experiment file whose arm has no connections.
const WITHOUT_ARM: &str = "name = \"new\"\nspec = \"rapid-start\"\nshare = 0\n\n[[arms]]\nname = \"old\"\nspec = \"cubic:initial-window=10p\"\nshare = 1\n";

struct Ramp {
    folder: PathBuf,
    log: String,
    hour: u64,
    random: u64,
}

impl Ramp {
    /// Starts a ramp.
    fn new(name: &str) -> Self {
        let folder = folder(name);
        fs::write(folder.join("ramp.toml"), PLAN).expect("room");
        fs::write(folder.join("log"), "").expect("room");
        let ramp = Self {
            folder,
            log: String::new(),
            hour: 0,
            random: 1,
        };
        let started = ramp.steer(&[]);
        assert!(started.status.success(), "{}", stderr(&started));
        began(&ramp.folder, "state");
        let published = ramp.steer(&[]);
        assert!(published.status.success(), "{}", stderr(&published));
        ramp
    }

    /// Runs the command as if the earlier looks had been made when their newest lines were written.
    fn steer(&self, arguments: &[&str]) -> Output {
        self.edit(|looks| {
            let looks = looks.split_inclusive('\n').map(at_its_newest_line);
            looks.collect()
        });
        let common = ["steer", "--plan", "ramp.toml", "--state", "state"];
        lastbyte(&self.folder, &[&common, arguments].concat())
    }

    /// Changes the decisions as if they had been made so, unless they are no chain.
    fn edit(&self, edit: impl FnOnce(&str) -> String) {
        chain::edit(&self.folder.join("state"), edit);
    }

    /// A look at the log. Returns the last decision.
    fn look(&self) -> Value {
        let output = self.steer(&["log"]);
        assert!(output.status.success(), "{}", stderr(&output));
        self.decisions().pop().expect("a decision")
    }

    fn refused(&self, arguments: &[&str], expected: &str) {
        let output = self.steer(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let error = stderr(&output);
        assert!(error.contains(expected), "{expected}: {error}");
    }

    fn decisions(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.join("state/decisions.ndjson")).expect("some");
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        lines.collect()
    }

    fn experiment(&self) -> String {
        fs::read_to_string(self.folder.join("state/experiment.toml")).expect("a file")
    }

    /// The experiment file without the sum of its decision, which depends on the time.
    fn shares(&self) -> String {
        let text = self.experiment();
        let lines = text.split_inclusive('\n');
        lines.filter(|line| !line.starts_with("decision")).collect()
    }

    /// Checks that servers give the arm no connections.
    fn has_no_arm(&self) {
        let text = self.experiment();
        assert!(text.contains(WITHOUT_ARM), "{text}");
    }

    fn unit(&mut self) -> f64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An hour of lines as servers write them.
    fn hour(&mut self, epoch: u64, share: f64, factor: f64) {
        for number in 0..2000 {
            let is_arm = self.unit() < share;
            let ttlb = 400.0 * (self.unit() - 0.5).exp() * if is_arm { factor } else { 1.0 };
            let is_complete = self.unit() < 0.99;
            let ttlb = if is_complete {
                format!("{ttlb:.0}")
            } else {
                "null".to_owned()
            };
            let lost = (self.unit() * 3.0) as u32;
            let _ = writeln!(
                self.log,
                r#"{{"type":"connection","time":{},"conn_id":{number},"content_length":300000,"ttlb":{ttlb},"num-packets.sent":250,"num-packets.lost":{lost},"rtt.minimum":20,"rtt.smoothed":{},"complete":{is_complete},"experiment":"ramp","arm":"{}","site":"{}","config":"00112233aabbccdd-{epoch}"}}"#,
                STARTED_MS + self.hour * HOUR_MS + number * 1800,
                24 + number % 5,
                if is_arm { "new" } else { "old" },
                ["fra", "nrt"][(number % 2) as usize],
            );
        }
        self.hour += 1;
        self.write();
    }

    fn write(&self) {
        fs::write(self.folder.join("log"), &self.log).expect("room");
    }
}

/// The line of a look, made when its newest line was written.
fn at_its_newest_line(line: &str) -> String {
    let value = |key: &str| {
        let (_, rest) = line.split_once(key)?;
        rest.split_once(',').map(|(value, _)| value)
    };
    match (value("\"until\":"), value("\"at\":")) {
        (Some(until), Some(at)) => {
            line.replacen(&format!("\"at\":{at},"), &format!("\"at\":{until},"), 1)
        }
        _ => line.to_owned(),
    }
}

fn write_plan_with_state(folder: &Path, state: &str) {
    let plan = PLAN.replace("[plan]", &format!("[plan]\nstate = '{state}'"));
    fs::write(folder.join("ramp.toml"), plan).expect("room");
}

/// Lets a ramp have started in 2020.
fn began(folder: &Path, state: &str) {
    let state = folder.join(state);
    chain::edit(&state, |text| {
        let look: Value = serde_json::from_str(text).expect("one");
        let until = look["until"].as_u64().expect("a time");
        assert_eq!(
            look["epoch"],
            until / 1000,
            "the first epoch is the second of the start"
        );
        let mut text = text.to_owned();
        for (key, began) in [
            ("until", FIRST * 1000),
            ("at", FIRST * 1000),
            ("epoch", FIRST),
        ] {
            let now = format!("\"{key}\":{},", look[key]);
            assert!(text.contains(&now), "{text}");
            text = text.replacen(&now, &format!("\"{key}\":{began},"), 1);
        }
        text
    });
    fs::remove_file(state.join("experiment.toml")).expect("it is there");
}

#[test]
fn a_ramp_goes_through_its_stages_and_its_decisions_are_computed_again() {
    let mut ramp = Ramp::new("steer-ramp");
    let first = ramp.experiment();
    let expected = "epoch = 1599996600\n\n[[arms]]\nname = \"new\"\nspec = \"rapid-start\"\nshare = 0.1\n\n[[arms]]\nname = \"old\"\nspec = \"cubic:initial-window=10p\"\nshare = 0.9\n";
    assert!(ramp.shares().contains(expected), "{first}");
    let check = lastbyte(
        &ramp.folder,
        &[
            "serve",
            "--self-signed",
            "--experiment",
            "state/experiment.toml",
            "--check",
        ],
    );
    assert!(check.status.success(), "{}", stderr(&check));
    ramp.hour(FIRST, 0.1, 0.85);
    let look = ramp.look();
    assert_eq!(
        (&look["action"], &look["rule"]),
        (&"hold".into(), &"60 of 120 minutes of the stage".into())
    );
    assert_eq!(ramp.experiment(), first);
    ramp.hour(FIRST, 0.1, 0.85);
    let look = ramp.look();
    assert_eq!(
        (&look["action"], &look["epoch"]),
        (&"ramp".into(), &(FIRST + 1).into()),
        "{look}"
    );
    assert!(
        ramp.experiment().contains("epoch = 1599996601\n"),
        "{}",
        ramp.experiment()
    );
    // Lines of an earlier ramp, whose experiment had the same name.
    let other = ramp.folder.join("earlier");
    fs::create_dir(&other).expect("room");
    let again = [
        "steer",
        "log",
        "--plan",
        "ramp.toml",
        "--state",
        "earlier/state",
    ];
    for rule in ["first stage", "0 of 100 connections of `old`"] {
        let output = lastbyte(&ramp.folder, &again);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(printed.contains(rule), "{printed}{}", stderr(&output));
    }
    // Servers that did not read the file yet still write lines of the first epoch, and one has another experiment.
    ramp.log.push_str(
        &ramp
            .log
            .lines()
            .next()
            .expect("a line")
            .replace("\"ramp\"", "\"other\""),
    );
    ramp.log.push('\n');
    let end = loop {
        ramp.hour(FIRST + 1, 0.5, 0.85);
        let look = ramp.look();
        if look["action"] != "hold" {
            break look;
        }
    };
    assert_eq!(
        (&end["action"], &end["share"]),
        (&"win".into(), &0.95.into()),
        "{end}"
    );
    assert_eq!(end["ignored"]["other-experiment"], 1);
    assert_eq!(
        end["configs"],
        serde_json::json!(["00112233aabbccdd-1599996601"])
    );
    assert!(
        ramp.experiment().contains("share = 0.95\n"),
        "{}",
        ramp.experiment()
    );
    // Over: further looks change nothing.
    let count = ramp.decisions().len();
    ramp.look();
    assert_eq!(ramp.decisions().len(), count);
    verify(&ramp);
    shows(&ramp);
    // After the win, an operator takes the arm away, whatever became of the plan.
    fs::write(ramp.folder.join("ramp.toml"), format!("{PLAN}# changed\n")).expect("room");
    fs::write(ramp.folder.join("state/stop"), "").expect("room");
    let stopped = ramp.steer(&[]);
    assert!(stopped.status.success(), "{}", stderr(&stopped));
    ramp.has_no_arm();
}

/// The page of a ramp, from its decisions alone.
fn shows(ramp: &Ramp) {
    let output = lastbyte(
        &ramp.folder,
        &["report", "--plan", "state", "-o", "ramp.html"],
    );
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        printed.starts_with("`new` won, and has 95% of new connections: TTLB of the last stage is"),
        "{printed}"
    );
    assert!(
        printed.lines().all(|line| line.chars().count() <= 80),
        "{printed}"
    );
    let html = fs::read_to_string(ramp.folder.join("ramp.html")).expect("a page");
    for part in [
        "<code>new</code> won",
        "Change of the P95",
        "Rise of packet loss",
        "Rise of the RTT beside its minimum",
        "Sample ratio",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("Without a chart"), "each chart has values");
    let output = lastbyte(&ramp.folder, &["report", "--plan", "state", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["setup"]["arms"], serde_json::json!(["old", "new"]));
    assert_eq!(json["decisions"][0]["action"], "start");
    let output = lastbyte(&ramp.folder, &["report", "--plan", "ramp.toml"]);
    assert!(!output.status.success(), "a file is no directory of a ramp");
}

/// Decisions against logs with the same lines, more, and fewer.
fn verify(ramp: &Ramp) {
    let verified = ramp.steer(&["log", "--verify"]);
    assert!(
        verified.status.success(),
        "{}{}",
        String::from_utf8_lossy(&verified.stdout),
        stderr(&verified)
    );
    // What was edited.
    let decisions = ramp.folder.join("state/decisions.ndjson");
    let experiment = ramp.folder.join("state/experiment.toml");
    let (all, published) = (
        fs::read_to_string(&decisions).expect("decisions"),
        ramp.experiment(),
    );
    for (path, text, from, to, expected) in [
        (
            &decisions,
            &all,
            "\"rules\":4",
            "\"rules\":3",
            "look 0: it is by version 3 of the rules",
        ),
        (
            &decisions,
            &all,
            "\"hours\":1",
            "\"hours\":7",
            "look 1: hours: 1 from the logs, 7 recorded",
        ),
        (
            &decisions,
            &all,
            "\"detect\":0.05",
            "\"detect\":0.5",
            "look 0: setup: ",
        ),
        (
            &experiment,
            &published,
            "share = 0.95",
            "share = 0.5",
            "experiment.toml: not as the last look wrote it",
        ),
    ] {
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replacen(from, to, 1)).expect("room");
        let verified = ramp.steer(&["log", "--verify"]);
        let printed = String::from_utf8_lossy(&verified.stdout);
        assert!(
            printed.contains(expected),
            "{expected}: {printed}{}",
            stderr(&verified)
        );
        assert_eq!(verified.status.code(), Some(1), "{expected}");
        fs::write(path, text).expect("room");
    }
    // A line more, of a server whose clock is slow: the decisions are those of the others.
    let late = ramp
        .log
        .lines()
        .next()
        .expect("a line")
        .replace("\"conn_id\":0,", "\"conn_id\":77777,");
    fs::write(ramp.folder.join("log"), format!("{}{late}\n", ramp.log)).expect("room");
    let verified = ramp.steer(&["log", "--verify"]);
    assert!(verified.status.success(), "{}", stderr(&verified));
    assert!(
        stderr(&verified).contains("look 1: 1 line written after it"),
        "{}",
        stderr(&verified)
    );
    // A line less: the decisions do not follow from the log.
    let (_, rest) = ramp.log.split_once('\n').expect("lines");
    fs::write(ramp.folder.join("log"), rest).expect("room");
    let verified = ramp.steer(&["log", "--verify"]);
    assert_eq!(verified.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(printed.contains("look 1: connections: "), "{printed}");
    let absent = lastbyte(
        &ramp.folder,
        &[
            "steer",
            "log",
            "--plan",
            "ramp.toml",
            "--state",
            "typo",
            "--verify",
        ],
    );
    assert!(
        stderr(&absent).contains("`typo`: no decisions (expected the directory of a ramp)"),
        "{}",
        stderr(&absent)
    );
    assert!(!ramp.folder.join("typo").exists());
}

/// The hours of a stage are those since it began, so a server whose clock is a day behind does not make it shorter.
#[test]
fn a_slow_clock_of_a_server_makes_no_stage_shorter() {
    let mut ramp = Ramp::new("steer-clock");
    ramp.hour(FIRST, 0.1, 0.85);
    let behind: Vec<String> = ramp
        .log
        .lines()
        .map(|line| {
            let (head, rest) = line.split_once("\"time\":").expect("a time");
            let (time, rest) = rest.split_once(',').expect("more");
            let time: u64 = time.parse().expect("a number");
            format!("{head}\"time\":{},{rest}\n", time - 24 * HOUR_MS)
        })
        .collect();
    fs::write(ramp.folder.join("log"), ramp.log.clone() + &behind.concat()).expect("room");
    let look = ramp.look();
    assert_eq!(look["rule"], "60 of 120 minutes of the stage");
    assert_eq!(
        look["connections"]["fra"][0]
            .as_u64()
            .map(|count| count > 1000),
        Some(true),
        "{look}"
    );
}

#[test]
fn harm_ends_a_ramp() {
    let mut ramp = Ramp::new("steer-harm");
    ramp.hour(FIRST, 0.1, 1.5);
    let look = ramp.look();
    assert_eq!(
        (&look["action"], &look["rule"]),
        (&"stop-harm".into(), &"TTLB is higher".into())
    );
    ramp.has_no_arm();
    // A server takes an arm without connections.
    let check = lastbyte(
        &ramp.folder,
        &[
            "serve",
            "--self-signed",
            "--experiment",
            "state/experiment.toml",
            "--check",
        ],
    );
    assert!(check.status.success(), "{}", stderr(&check));
}

/// Each failure leaves the shares and the decisions as they were, and the next look continues.
#[test]
fn a_failure_leaves_the_last_good_state() {
    let mut ramp = Ramp::new("steer-failures");
    ramp.hour(FIRST, 0.1, 1.0);
    ramp.look();
    let (experiment, decisions) = (ramp.experiment(), ramp.decisions());
    let state = ramp.folder.join("state");
    let path = state.join("decisions.ndjson");
    let good = fs::read_to_string(&path).expect("decisions");

    ramp.refused(&["log", "missing"], "cannot read `missing`");
    ramp.refused(&["log", "log"], "given twice");
    // A log that is empty.
    fs::write(ramp.folder.join("short"), "").expect("room");
    ramp.refused(&["short"], "the logs lack lines of `log`, which look 1 had");
    // A log that lost one line, which may be the one that is looked for.
    let (but_one, _) = ramp.log.trim_end().rsplit_once('\n').expect("lines");
    fs::write(ramp.folder.join("short"), but_one).expect("room");
    ramp.refused(&["short"], ", and look 1 had ");
    // As many lines, of which one site's are others.
    fs::write(
        ramp.folder.join("short"),
        ramp.log.replace("\"nrt\"", "\"fra\""),
    )
    .expect("room");
    ramp.refused(
        &["short"],
        "the logs have 0 connections of `old` at site `nrt`, and look 1 had ",
    );
    // A copy, as of a file that was rotated meanwhile.
    fs::write(ramp.folder.join("copy"), &ramp.log).expect("room");
    ramp.refused(
        &["log", "copy"],
        "about 50 % of the lines are copies of others (expected each connection once",
    );
    // Two controllers: at a look, and a server as long as it runs.
    for lock in ["lock", "lead"] {
        let lock = File::options().append(true).open(state.join(lock));
        let lock = lock.expect("a lock");
        lock.lock().expect("free");
        ramp.refused(&["log"], "is in use by another `lastbyte steer` or `serve`");
    }
    // Another plan.
    fs::write(ramp.folder.join("ramp.toml"), PLAN.replace("10%", "20%")).expect("room");
    ramp.refused(&["log"], "`ramp.toml` changed since the ramp started");
    fs::write(ramp.folder.join("ramp.toml"), PLAN).expect("room");
    // A clock that went back.
    ramp.edit(|looks| looks.replace("\"until\":16", "\"until\":96"));
    ramp.refused(&["log"], "(expected a later time; the shares stay)");
    fs::write(state.join("experiment.toml"), &experiment).expect("room");
    // A line that is not a look; looks that are missing.
    fs::write(&path, good.replacen("{\"look\":1", "{\"look\":", 1)).expect("room");
    ramp.refused(&["log"], "decisions.ndjson`, line 2: ");
    let (_, second) = good.split_once('\n').expect("two");
    fs::write(&path, second).expect("room");
    ramp.refused(
        &["log"],
        "decisions.ndjson`, line 1: its `sum` is not that of its text",
    );
    // The decisions are missing: the ramp does not start again.
    let expected = "`state/experiment.toml` is of epoch 1599996600, and no decision that is there";
    for missing in ["", "{\"look\":0,"] {
        fs::write(&path, missing).expect("room");
        ramp.refused(&["log"], expected);
    }
    fs::remove_file(&path).expect("it is there");
    ramp.refused(&[], expected);
    // No room: neither the decision nor the file changes.
    fs::write(&path, &good).expect("room");
    ramp.hour(FIRST, 0.1, 1.0);
    let full = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 0; exec \"$0\" steer log --plan ramp.toml --state state",
        ])
        .arg(env!("CARGO_BIN_EXE_lastbyte"))
        .current_dir(&ramp.folder)
        .output()
        .expect("a shell");
    assert_eq!(full.status.code(), Some(1), "{}", stderr(&full));
    assert!(
        stderr(&full).contains("cannot write `state/decisions.ndjson`"),
        "{}",
        stderr(&full)
    );
    assert_eq!(
        (ramp.experiment(), ramp.decisions()),
        (experiment.clone(), decisions)
    );
    // A line that was torn.
    fs::write(&path, format!("{good}{{\"look\":2,\"unt")).expect("room");
    // Without the experiment file, decisions may be missing, too: that of a stop.
    fs::remove_file(state.join("experiment.toml")).expect("it is there");
    ramp.refused(
        &["log"],
        "`state/experiment.toml` is missing, and no decision that is there wrote it",
    );
    fs::write(state.join("experiment.toml"), &experiment).expect("room");
    let output = ramp.steer(&["log"]);
    assert!(
        stderr(&output).contains("its last line has no end, and does not count"),
        "{}",
        stderr(&output)
    );
    assert_eq!(ramp.decisions().len(), 3);
    assert!(
        ramp.experiment().contains("epoch = 1599996601\n"),
        "another epoch"
    );
}

#[test]
fn copies_of_few_lines_and_of_some_without_a_number_are_an_error() {
    let mut ramp = Ramp::new("steer-copies");
    ramp.hour(FIRST, 0.1, 1.0);
    let (first, _) = ramp.log.split_once('\n').expect("a line");
    let without = first.replace("\"conn_id\":", "\"conn_id\":\"a\",\"was\":");
    for (line, count) in [(first, 3), (&without, 4)] {
        let copies = format!("{line}\n").repeat(count);
        fs::write(ramp.folder.join("copies"), copies).expect("room");
        ramp.refused(
            &["log", "copies"],
            "about 0.15 % of the lines are copies of others",
        );
    }
    fs::write(ramp.folder.join("copies"), format!("{first}\n")).expect("room");
    let output = ramp.steer(&["log", "copies"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let note = "note: about 0.05 % of the lines are copies of others";
    assert!(stderr(&output).contains(note), "{}", stderr(&output));
}

#[test]
fn plans_are_checked() {
    let folder = folder("steer-plans");
    let write = |text: &str| fs::write(folder.join("ramp.toml"), text).expect("room");
    let serve = [
        "serve",
        "--self-signed",
        "--experiment",
        "ramp.toml",
        "--check",
    ];
    let steer = ["steer", "--plan", "ramp.toml", "--state", "state"];
    write(&PLAN.replace("50%", "5%"));
    let expected =
        "`ramp.toml`: line 14: `plan.stages`: 10%, 5% (expected 1 to 16 shares that grow";
    for command in [&serve[..], &steer] {
        let output = lastbyte(&folder, command);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    write(PLAN.split("[plan]").next().expect("a start"));
    let output = lastbyte(&folder, &steer);
    assert!(
        stderr(&output).contains("`ramp.toml`: no table `[plan]`"),
        "{}",
        stderr(&output)
    );
    write(PLAN);
    fs::create_dir_all(folder.join("state")).expect("room");
    fs::write(folder.join("state/stop"), "").expect("room");
    let output = lastbyte(&folder, &steer);
    assert!(
        stderr(&output).contains("`state` has a file `stop`"),
        "{}",
        stderr(&output)
    );
    let output = lastbyte(&folder, &["steer", "--plan", "ramp.toml"]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "no state: {}",
        stderr(&output)
    );
}

#[test]
fn ab_rehearses_a_plan_as_steer_does() {
    let folder = folder("steer-rehearse");
    let plan = PLAN
        .replace("[plan]", "[plan]\nmost-time = '4h'")
        .replace("\nmost-time = '2d'", "");
    fs::write(
        folder.join("ramp.toml"),
        format!("connections = 2000\n{plan}"),
    )
    .expect("room");
    let printed = |arguments: &[&str]| {
        let output = lastbyte(&folder, arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let by_steer = printed(&["steer", "--plan", "ramp.toml", "--rehearse", "2"]);
    let by_ab = printed(&["ab", "--plan", "ramp.toml", "--repeat", "2"]);
    assert_eq!(by_ab, by_steer);
    assert!(by_ab.contains("2 ramps in each scenario"), "{by_ab}");
    let long = "100 connections in a stage, it takes 3.5 days at 10%, 0.7 days at 50%";
    assert!(by_ab.contains(long), "{by_ab}");
    let other = lastbyte(
        &folder,
        &["ab", "--plan", "ramp.toml", "--repeat", "2", "--json"],
    );
    assert_eq!(other.status.code(), Some(2));
    assert!(
        stderr(&other).contains("cannot be used with"),
        "{}",
        stderr(&other)
    );
}

fn arms_and_epochs(log: &Path) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let epoch = |line: &Value| {
        text(&line["config"])
            .rsplit_once('-')
            .map(|(_, epoch)| epoch.to_owned())
    };
    let lines = serving::lines(log);
    lines
        .iter()
        .map(|line| (text(&line["arm"]), epoch(line).unwrap_or_default()))
        .collect()
}

#[test]
fn a_server_logs_the_epoch_and_a_stop_takes_the_arm_away() {
    let folder = folder("steer-serve");
    let plan = PLAN
        .replace("'10%', '50%'", "'90%'")
        .replace("most-time", "holdback = '5%'\nmost-time");
    fs::write(folder.join("ramp.toml"), plan).expect("room");
    let steer = |arguments: &[&str]| {
        let common = ["steer", "--plan", "ramp.toml", "--state", "state"];
        let output = lastbyte(&folder, &[&common, arguments].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    steer(&[]);
    let options = [
        "--self-signed",
        "--experiment",
        "state/experiment.toml",
        "--log",
        "log",
    ];
    let mut serving = Serving::start(&folder, &options);
    let get = |serving: &Serving| {
        let got = serving.get(&folder, "/1000", &["-o", "/dev/null"]);
        assert!(got.status.success(), "{}", stderr(&got));
    };
    get(&serving);
    // Without reading a log.
    let stop = folder.join("state/stop");
    fs::write(&stop, "  pager \u{1b}went off\nat 3 in the morning\n").expect("room");
    let owner = stop.metadata().expect("a file").uid();
    let printed = steer(&["missing"]);
    let expected = format!("look 1: stopped: the file `stop` of user {owner}: pager went off\n");
    assert!(printed.starts_with(&expected), "{printed}");
    serving.process.signal("-HUP");
    serving.process.until("reloaded: arms");
    for _ in 0..5 {
        get(&serving);
    }
    let before = fs::read_to_string(folder.join("state/experiment.toml")).expect("a file");
    assert!(before.contains("share = 0\n"), "{before}");
    serving.process.signal("-TERM");
    let (code, printed) = serving.process.wait();
    assert_eq!(code, Some(0), "{printed}");
    let found = arms_and_epochs(&folder.join("log"));
    assert_eq!(found.len(), 6);
    let next = found[0].1.parse::<u64>().expect("an epoch") + 1;
    for of_stopped in &found[1..] {
        assert_eq!(*of_stopped, ("old".to_owned(), next.to_string()));
    }
}

/// A server that decides itself, over a log that another process of it wrote: it starts, looks, grows, and stops.
#[test]
fn a_server_with_a_plan_ramps_by_its_own_log() {
    let mut ramp = Ramp::new("steer-by-serve");
    write_plan_with_state(&ramp.folder, "served");
    // The start is that of `steer`, with the same state; a server continues it.
    let started = lastbyte(&ramp.folder, &["steer", "--plan", "ramp.toml"]);
    assert!(started.status.success(), "{}", stderr(&started));
    began(&ramp.folder, "served");
    for _ in 0..2 {
        ramp.hour(FIRST, 0.1, 0.85);
    }
    // Rotated: two thirds of the lines, also in a compressed form, which does not count twice.
    let (first, second) = ramp.log.split_at(ramp.log.len() / 3);
    let (first, last) = (
        format!("{first}{}", second.split_once('\n').expect("lines").0),
        second,
    );
    let last = last.split_once('\n').expect("lines").1;
    fs::write(ramp.folder.join("log.1"), first + "\n").expect("room");
    fs::write(ramp.folder.join("log.1.gz"), "not yet whole").expect("room");
    fs::write(ramp.folder.join("log"), last).expect("room");
    let options = ["--self-signed", "--experiment", "ramp.toml"];
    let with_log = [&options[..], &["--log", "log", "--metrics", "127.0.0.1:0"]].concat();
    let check = lastbyte(
        &ramp.folder,
        &[&["serve", "--check"], &options[..]].concat(),
    );
    let expected =
        "`ramp.toml`: a table `[plan]` (expected --log with it: decisions follow from the log)";
    assert!(stderr(&check).contains(expected), "{}", stderr(&check));
    let check = lastbyte(
        &ramp.folder,
        &[&["serve", "--check"], &with_log[..]].concat(),
    );
    assert!(check.status.success(), "{}", stderr(&check));

    let mut serving = Serving::start(&ramp.folder, &with_log);
    let printed = serving.process.until("look 1: ");
    assert!(
        printed.contains("look 1: ramp: ")
            && printed.contains("new: 50% of new connections, stage 2 of 2, epoch 1599996601"),
        "{printed}"
    );
    assert_eq!(
        serving.metric("lastbyte_experiment_stage{experiment=\"ramp\"}"),
        2
    );
    let get = |serving: &Serving| {
        let got = serving.get(&ramp.folder, "/1000", &["-o", "/dev/null"]);
        assert!(got.status.success(), "{}", stderr(&got));
    };
    get(&serving);
    // Another controller finds the decisions of the server.
    let steered = lastbyte(&ramp.folder, &["steer", "--plan", "ramp.toml"]);
    assert!(
        String::from_utf8_lossy(&steered.stdout).starts_with("look 1: ramp"),
        "{}",
        stderr(&steered)
    );
    // An operator ends the ramp, without a reload.
    fs::write(ramp.folder.join("served/stop"), "").expect("room");
    serving.process.until("look 2: stopped: ");
    for _ in 0..5 {
        get(&serving);
    }
    // What is over stays over when the configuration is read again.
    serving.process.signal("-HUP");
    serving.process.until("reloaded: arms");
    assert_eq!(
        serving.metric("lastbyte_experiment_over{experiment=\"ramp\"}"),
        1
    );
    // While it drains, it leaves the looks to others.
    let mut slow = serving.begin(&ramp.folder, "/delay/2s/1000", &["-v", "-o", "/dev/null"]);
    slow.until("> GET");
    let lead = File::open(ramp.folder.join("served/lead")).expect("a lock");
    assert!(lead.try_lock().is_err(), "the server makes the looks");
    serving.process.signal("-TERM");
    serving.process.until("shutting down");
    lead.try_lock().expect("it is free");
    assert_eq!(slow.wait().0, Some(0));
    let (code, printed) = serving.process.wait();
    assert_eq!(code, Some(0), "{printed}");
    let found = arms_and_epochs(&ramp.folder.join("log"));
    let found = &found[found.len() - 7..];
    assert_eq!(found[0].1, (FIRST + 1).to_string());
    for of_stopped in &found[1..] {
        assert_eq!(*of_stopped, ("old".to_owned(), (FIRST + 2).to_string()));
    }
}

/// A plan without a place for its decisions does not give the arm the share of the file.
#[test]
fn a_server_refuses_a_plan_without_a_directory() {
    let folder = folder("steer-stateless");
    fs::write(folder.join("ramp.toml"), PLAN).expect("room");
    let options = [
        "serve",
        "--self-signed",
        "--experiment",
        "ramp.toml",
        "--log",
        "log",
    ];
    let output = lastbyte(&folder, &options);
    assert_eq!(output.status.code(), Some(2));
    let expected = "`ramp.toml`: a table `[plan]` (expected `state` in it, a directory for the decisions; or experiment.toml, which `lastbyte steer` writes)";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    write_plan_with_state(&folder, "");
    let output = lastbyte(&folder, &options);
    assert!(
        stderr(&output).contains("`plan.state`: empty (expected the name of a directory)"),
        "{}",
        stderr(&output)
    );
}

/// The switch that takes the arm away does not depend on the disk.
#[test]
fn a_stop_that_cannot_be_recorded_takes_the_arm_away() {
    let folder = folder("steer-unrecorded");
    write_plan_with_state(&folder, "served");
    let options = [
        "--self-signed",
        "--experiment",
        "ramp.toml",
        "--log",
        "log",
        "--metrics",
        "127.0.0.1:0",
    ];
    let check = lastbyte(&folder, &[&["serve", "--check"], &options[..]].concat());
    assert!(check.status.success(), "{}", stderr(&check));
    assert!(!folder.join("served").exists(), "a check starts no ramp");
    let mut serving = Serving::start(&folder, &options);
    serving.process.until("look 1: hold: ");
    let decisions = folder.join("served/decisions.ndjson");
    fs::remove_file(&decisions).expect("it is there");
    fs::create_dir(&decisions).expect("room");
    fs::write(folder.join("served/stop"), "").expect("room");
    serving.process.until("look 2: stopped: ");
    let share = "lastbyte_experiment_share{experiment=\"ramp\",arm=\"new\"}";
    assert_eq!(serving.metric(share), 0);
    serving.process.signal("-TERM");
    let (code, printed) = serving.process.wait();
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("which is not recorded"), "{printed}");
}
