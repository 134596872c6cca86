//! The commands of the README, against a log of the simulator and against one as H2O writes it.

#![expect(clippy::disallowed_methods, reason = "commands read and write files")]

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const README: &str = include_str!("../../../README.md");

/// The blocks of commands: indented lines.
fn commands() -> Vec<&'static str> {
    let lines = README.lines().filter_map(|line| line.strip_prefix("    "));
    lines.filter(|line| line.starts_with("lastbyte ")).collect()
}

fn run(folder: &Path, command: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_lastbyte"));
    let path = format!(
        "{}:{}",
        program.parent().expect("a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output = Command::new("sh")
        .args(["-ec", command])
        .env("PATH", path)
        .current_dir(folder)
        .output()
        .expect("a shell runs");
    assert!(output.status.success(), "{command}: {output:?}");
    output
}

/// Connections of H2O's: each flag of its startups, large and small objects, some outside the experiment.
fn h2o_log() -> String {
    let mut log = String::new();
    for at in 0..400_u32 {
        let (rapid, jump) = (at % 2, at / 2 % 2 * 44_160);
        let (paced, size) = (u32::from(at % 17 != 0), 100_000 + at * 997 % 900_000);
        let ttlb = 120 + at * 37 % 300 - rapid * 20;
        writeln!(
            log,
            r#"{{"conn_id":{at},"time":{time},"num-rapid-start":{rapid},"jumpstart.cwnd":{jump},"jumpstart.prev-rate":0,"num-jumpstart-applicable":1,"num-paced":{paced},"content_length":{size},"num-packets.sent":{sent},"num-packets.lost":{lost},"ttlb":{ttlb}}}"#,
            time = 1_773_000_000_000_u64 + u64::from(at) * 1000,
            sent = size / 1400,
            lost = at % 5,
        )
        .expect("a text grows");
    }
    log
}

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("readme");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("public")).expect("a folder");
    fs::write(folder.join("public/index.html"), "<p>").expect("a file");
    fs::write(folder.join("h2o.ndjson"), h2o_log()).expect("a file");
    run(&folder, "lastbyte ab --connections 400 --out log");
    fs::rename(folder.join("log/conns.ndjson"), folder.join("conns.ndjson")).expect("a log");
    folder
}

/// None of them prints nothing, and no query misses a key.
#[test]
fn every_command_of_the_readme_gives_a_result() {
    let folder = folder();
    let mut logs = Vec::new();
    for command in commands() {
        if command.starts_with("lastbyte serve ") {
            // It does not end, and its port is fixed.
            run(&folder, &format!("{command} --check"));
            continue;
        }
        let output = run(&folder, command);
        assert!(!output.stdout.is_empty(), "{command}");
        if command.starts_with("lastbyte query ") {
            let notes = String::from_utf8_lossy(&output.stderr);
            assert_eq!(notes, "", "{command}");
            logs.extend(command.split(' ').next_back());
        }
    }
    assert_eq!(logs, ["conns.ndjson", "h2o.ndjson"]);
    for log in logs {
        run(&folder, &format!("lastbyte report {log}"));
    }
    // Helpers and report have the same arms and connections.
    let query = commands().into_iter().find(|it| it.contains("-r h2o"));
    let query = query.expect("a query of H2O's log");
    let (before, after) = query.split_once("percentile(").expect("a reducer");
    let (_, after) = after.split_once("])").expect("its end");
    let output = run(&folder, &format!("{before}count(){after}"));
    let counts: BTreeMap<String, u64> = serde_json::from_slice(&output.stdout).expect("JSON");
    let output = run(&folder, "lastbyte report h2o.ndjson --json");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let arms = report["groups"][0]["arms"].as_array().expect("arms");
    let counted = arms.iter().filter_map(|arm| {
        Some((
            arm["arm"].as_str()?.to_owned(),
            arm["connections"].as_u64()?,
        ))
    });
    let counted: BTreeMap<String, u64> = counted.collect();
    assert_eq!(counts, counted);
}
