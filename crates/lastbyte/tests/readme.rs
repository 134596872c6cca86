//! The commands of the README, against a log of the simulator, and its output.

#![expect(clippy::disallowed_methods, reason = "commands read and write files")]

#[path = "common/h2o.rs"]
mod h2o;

use std::{
    collections::BTreeMap,
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

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("readme");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("public")).expect("a folder");
    fs::write(folder.join("public/index.html"), "<p>").expect("a file");
    fs::write(folder.join("h2o.ndjson"), h2o::log()).expect("a file");
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
        // It does not end either: tests of the examples of `emulate` start it.
        if command.starts_with("lastbyte emulate ") {
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
    assert_eq!(logs, ["conns.ndjson"]);
    run(&folder, "lastbyte report h2o.ndjson");
    // Helpers and report have the same arms and connections.
    let query = "select(base_cond(_, 200_000)) >> group_by(group_name(_)) { count() }";
    let output = run(
        &folder,
        &format!("lastbyte query -r h2o '{query}' h2o.ndjson"),
    );
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

/// The first page shows what the program prints. `INSTA_UPDATE=always` writes it.
#[test]
fn the_readme_shows_what_the_simulator_prints() {
    let (before, rest) = README.split_once("```console\n").expect("a block");
    let (block, after) = rest.split_once("```").expect("its end");
    let line = block.lines().next().expect("a command");
    let command = line.strip_prefix("$ ").expect("a prompt");
    let output = run(Path::new(env!("CARGO_TARGET_TMPDIR")), command);
    let printed = String::from_utf8(output.stdout).expect("UTF-8");
    let expected = format!("{before}```console\n{line}\n{printed}```{after}");
    if std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
        return fs::write(path, expected).expect("a writable page");
    }
    assert_eq!(README, expected, "run with INSTA_UPDATE=always");
    assert!(README.lines().count() <= 90);
}
