//! What an installation needs besides the program: completions, manual pages, and a version that names the build.

#![expect(
    clippy::disallowed_methods,
    reason = "reads the pages that it has written"
)]

use std::{
    fs,
    process::{Command, Output},
};

fn lastbyte(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_lastbyte");
    let output = Command::new(program).args(arguments).output();
    output.expect("the program starts")
}

fn stdout(arguments: &[&str]) -> String {
    let output = lastbyte(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

const COMMANDS: [&str; 16] = [
    "get",
    "handshakes",
    "sim",
    "emulate",
    "ab",
    "compare",
    "plot",
    "report",
    "query",
    "search",
    "specs",
    "serve",
    "lb",
    "bench",
    "completions",
    "man",
];

#[test]
fn completions_of_all_shells_have_all_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&["completions", shell]);
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
        assert!(script.contains("max-concurrent-streams"), "{shell}");
    }
    let refused = lastbyte(&["completions", "tcsh"]);
    assert_eq!(refused.status.code(), Some(2));
    let error = String::from_utf8(refused.stderr).expect("UTF-8");
    assert!(error.contains("tcsh") && error.contains("fish"), "{error}");
}

#[test]
fn bash_completes_commands_and_options() {
    let script = stdout(&["completions", "bash"]);
    let complete = |words: &str| {
        let test = format!(
            "{script}\nCOMP_WORDS=({words})\nCOMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
             _lastbyte lastbyte \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        );
        let output = Command::new("bash").args(["-c", &test]).output();
        let output = output.expect("bash starts");
        assert!(output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    assert_eq!(complete("lastbyte repo"), "report\n");
    assert_eq!(complete("lastbyte bench --warm"), "--warm-up-time\n");
    assert_eq!(complete("lastbyte sim --network vd"), "vdsl\n");
    assert_eq!(complete("lastbyte sim --arm rapid-s"), "rapid-start\n");
    assert_eq!(complete("lastbyte serve --congestion cub"), "cubic\n");
    // The arm is an expression there.
    assert_eq!(complete("lastbyte report --arm-by rapid-s"), "\n");
    // A file as well.
    assert_eq!(
        complete("lastbyte emulate --network Cargo.to"),
        "Cargo.toml\n"
    );
}

#[test]
fn every_command_has_a_manual_page() {
    let directory = env!("CARGO_TARGET_TMPDIR").to_owned() + "/man";
    let _ = fs::remove_dir_all(&directory);
    assert_eq!(stdout(&["man", "--out", &directory]), "");
    for command in COMMANDS {
        let path = format!("{directory}/lastbyte-{command}.1");
        let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(page, stdout(&["man", command]), "{command}");
        let title = format!(".TH LASTBYTE-{} 1", command.to_uppercase());
        assert!(page.contains(&title), "{command}: {page}");
    }
    // Each page that a page lists is there.
    let mut listed = 0;
    for entry in fs::read_dir(&directory).expect("a directory") {
        let page = fs::read_to_string(entry.expect("an entry").path()).expect("a page");
        let names = page.lines().filter_map(|line| line.strip_suffix("(1)"));
        for name in names.map(|name| name.replace('\\', "")) {
            listed += 1;
            let path = format!("{directory}/{name}.1");
            assert!(fs::exists(&path).is_ok_and(|exists| exists), "{path}");
        }
    }
    assert!(listed > COMMANDS.len(), "{listed}");
    let nested = fs::read_to_string(format!("{directory}/lastbyte-compare-loss.1"));
    assert_eq!(nested.expect("a page"), stdout(&["man", "compare", "loss"]));
    let page = fs::read_to_string(format!("{directory}/lastbyte.1")).expect("a page");
    assert!(
        page.contains(".TH LASTBYTE 1") && page.contains("lastbyte\\-get(1)"),
        "{page}"
    );
    assert!(stdout(&["man", "get"]).contains("\\-\\-compressed"));

    let refused = lastbyte(&["man", "fetch"]);
    assert_eq!(refused.status.code(), Some(2));
    let error = String::from_utf8(refused.stderr).expect("UTF-8");
    assert!(
        error.contains("unknown command `fetch` (expected get, "),
        "{error}"
    );
    let refused = lastbyte(&["man", "--out", "/dev/null/man"]);
    assert_eq!(refused.status.code(), Some(1));
    let error = String::from_utf8(refused.stderr).expect("UTF-8");
    assert!(error.contains("/dev/null/man"), "{error}");
}

#[test]
fn the_version_has_the_commit() {
    let version = stdout(&["--version"]);
    let git = Command::new("git")
        .args(["log", "-1", "--format=%h", "--abbrev=9"])
        .output();
    let commit = git.ok().filter(|output| output.status.success());
    let commit = commit.map(|output| String::from_utf8(output.stdout).expect("UTF-8"));
    let Some(commit) = commit else {
        assert_eq!(
            version,
            concat!("lastbyte ", env!("CARGO_PKG_VERSION"), "\n")
        );
        return;
    };
    let expected = format!("lastbyte {} ({} ", env!("CARGO_PKG_VERSION"), commit.trim());
    assert!(version.starts_with(&expected), "{version} {expected}");
}
