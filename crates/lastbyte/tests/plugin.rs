//! The commands with a registry of one's own: that of `examples/plugin.rs`.

#![expect(
    clippy::disallowed_methods,
    reason = "what a command reads and writes is files"
)]

#[expect(dead_code, reason = "its main runs a simulation")]
#[path = "../../sim/examples/algorithm.rs"]
mod algorithm;

use std::{
    ffi::OsString,
    fs::{create_dir_all, read_dir, read_to_string, remove_dir_all},
    path::PathBuf,
    process::ExitCode,
};

use lastbyte_congestion::Registry;

/// Runs a command line in this process.
fn run(registry: &Registry, words: &[&str]) -> ExitCode {
    let words = ["lastbyte"].iter().chain(words).map(OsString::from);
    lastbyte::run(words, registry)
}

#[test]
fn all_commands_know_the_startups_of_the_registry() {
    let registry = algorithm::registry().expect("free names");
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("plugin");
    let _ = remove_dir_all(&directory);
    create_dir_all(&directory).expect("a directory");
    let qlogs = directory.join("qlogs");
    let qlogs_path = qlogs.to_str().expect("UTF-8");
    let arm = "surge:patience=0.5";
    let words = [
        "sim", "--arm", arm, "--cross", arm, "--size", "50kB", "--qlog", qlogs_path,
    ];
    let builtin = Registry::builtin();
    assert_eq!(run(&builtin, &words), ExitCode::from(2));
    assert_eq!(run(&registry, &words), ExitCode::SUCCESS);
    let mut files = read_dir(&qlogs).expect("a folder");
    let file = files.next().expect("a file").expect("an entry").path();
    assert!(
        read_to_string(&file).expect("a qlog file").contains(arm),
        "the arm is named in its qlog files"
    );

    let out = directory.join("ab");
    let out_path = out.to_str().expect("UTF-8");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/plugin.toml");
    let words = ["ab", file, "--connections", "20", "--out", out_path];
    assert_eq!(run(&builtin, &words), ExitCode::from(2));
    assert_eq!(run(&registry, &words), ExitCode::SUCCESS);
    let lines = read_to_string(out.join("conns.ndjson")).expect("a log");
    let surges = lines
        .lines()
        .filter(|line| line.contains("\"startup\":\"surge\""));
    assert!(surges.count() >= 5, "{lines}");

    let words = ["specs", arm];
    assert_eq!(run(&builtin, &words), ExitCode::from(2));
    assert_eq!(run(&registry, &words), ExitCode::SUCCESS);

    // Nothing listens on port 1: the spec is accepted, and then the connection fails, with curl's exit code.
    let words = [
        "get",
        "--silent",
        "--congestion",
        "surge",
        "http://127.0.0.1:1/",
    ];
    assert_eq!(run(&builtin, &words), ExitCode::from(2));
    assert_eq!(run(&registry, &words), ExitCode::from(7));
}
