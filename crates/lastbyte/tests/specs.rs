//! `lastbyte specs`, and docs/specs.md, which shows its output.

use std::process::{Command, Output};

const PAGE: &str = include_str!("../../../docs/specs.md");

fn specs(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lastbyte"))
        .arg("specs")
        .args(arguments)
        .output()
        .expect("lastbyte runs")
}

fn stdout(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Texts of an arm; the error of each that is invalid, and the commands that take the others.
const ARMS: &[(&str, &str)] = &[
    ("cubic", ""),
    ("ten=cubic:initial-window=10p", ""),
    ("rapid-start:startup-beta=0.7,growth=hystart", ""),
    (
        "rapid-start:startup-beta=9",
        "`startup-beta=9` in `rapid-start:startup-beta=9` (expected 0.1 to 0.95)",
    ),
    (
        "new=rapid-start:startup-beta=9",
        "`startup-beta=9` in `rapid-start:startup-beta=9` (expected 0.1 to 0.95)",
    ),
    (
        "rapid-start:startup-beat=0.7",
        "unknown key `startup-beat` of `rapid-start` (expected ",
    ),
    ("cubik", "unknown congestion control `cubik` (expected "),
    ("a:b=cubic", "unknown congestion control `a` (expected "),
    (
        "=cubic",
        "`=cubic` has no name before `=` (expected NAME=SPEC)",
    ),
    (" cubic ", ""),
    ("ten = cubic", ""),
    (" cubik ", "unknown congestion control `cubik` (expected "),
    (
        "cubic bbr",
        "unknown congestion control `cubic bbr` (expected ",
    ),
    (
        "a=cubic bbr",
        "unknown congestion control `cubic bbr` (expected ",
    ),
    (
        "cubic:beta=0.5, initial-window=10p",
        "unknown key ` initial-window` of `cubic` (expected ",
    ),
    ("", "unknown congestion control `` (expected "),
];

/// One grammar for an arm in all commands: the same texts are valid, and the same part of the others is in the error.
#[test]
fn all_commands_read_the_same_arms() {
    let folder = std::env::temp_dir().join(format!("lastbyte-arms-{}", std::process::id()));
    let folder = folder.to_str().expect("UTF-8");
    let run = |command: &str, text: &str| {
        let words = match command {
            "sim" => vec!["--size", "1kB", "--arm", text],
            "ab" => vec![
                "--connections",
                "2",
                "--force",
                "--out",
                folder,
                "--arm",
                "newreno",
                "--arm",
                text,
            ],
            "compare" => vec![
                "--pages",
                "1",
                "--network",
                "dsl",
                "--force",
                "--out",
                folder,
                "--arm",
                "2",
                "--arm",
                text,
            ],
            _ => vec![
                "newreno",
                "--paths",
                "2",
                "--key",
                "beta=0.6",
                "--baseline",
                text,
            ],
        };
        let output = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
            .arg(command)
            .args(words)
            .output()
            .expect("lastbyte runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), errors)
    };
    for command in ["sim", "ab", "compare", "search"] {
        for (text, expected) in ARMS {
            let (is_valid, errors) = run(command, text);
            assert_eq!(is_valid, expected.is_empty(), "{command} {text}: {errors}");
            assert!(errors.contains(expected), "{command} {text}: {errors}");
        }
        for text in ["3 cubic", " 3  cubic"] {
            let (is_valid, errors) = run(command, text);
            let expected = format!("`{text}` has a version of HTTP (expected SPEC");
            assert_eq!(is_valid, command == "compare", "{command}: {errors}");
            assert!(is_valid || errors.contains(&expected), "{errors}");
        }
        // Only page loads have versions.
        let expected = match command {
            "compare" => "unknown HTTP version `4` (expected `1.1`, `2` or `3`)",
            _ => "unknown congestion control `4 cubic` (expected ",
        };
        let (is_valid, errors) = run(command, "4 cubic");
        assert!(
            !is_valid && errors.contains(expected),
            "{command}: {errors}"
        );
    }
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn the_page_shows_what_the_command_prints() {
    let printed = stdout(&specs(&[]));
    let block = format!("```text\n$ lastbyte specs\n{printed}```\n");
    assert!(
        PAGE.contains(&block),
        "docs/specs.md: paste the output of `lastbyte specs`:\n{block}"
    );
}

/// The help lists the presets of the registry, and each of them can be resolved.
#[test]
fn every_preset_resolves() {
    let printed = stdout(&specs(&[]));
    let presets: Vec<&str> = printed
        .lines()
        .skip_while(|line| *line != "Presets:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(presets.len() >= 9, "{presets:?}");
    let resolved = stdout(&specs(&presets));
    for preset in &presets {
        assert!(resolved.contains(&format!("{preset}\n  ")), "{preset}");
    }
    let changed = "hystart:congestion=newreno,initial-window=10p,search-exit=keep";
    let text = stdout(&specs(&[changed]));
    for line in [
        "  congestion             newreno",
        "  initial-window         10p",
        "  min-window             2p",
        "  first-flight-rtts      0.5",
        "  startup-beta           0.5 (default of newreno)",
        "  search-exit            keep",
        "  start: startup, window 12kB with datagrams of 1.2kB",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let shown = "hystart:congestion=newreno,initial-window=10p";
    let printed = stdout(&specs(&[shown]));
    let block = format!("```text\n$ lastbyte specs {shown}\n{printed}```\n");
    assert!(
        PAGE.contains(&block),
        "docs/specs.md: paste the output:\n{block}"
    );
    assert!(
        !text.contains("jump-window") && !text.contains("variant"),
        "{text}"
    );
}

/// All values but those of `null` can be written in a spec, which then resolves to the same.
#[test]
fn settings_as_json_are_those_of_a_spec() {
    let json = |spec: &str| {
        let output = stdout(&specs(&["--json", spec]));
        serde_json::from_str::<serde_json::Value>(&output).expect("JSON")[0].clone()
    };
    for preset in [
        "rapid-start",
        "cubic",
        "careful-resume",
        "prague",
        "bbr",
        "c4",
    ] {
        let resolved = json(preset);
        let settings = resolved["settings"].as_object().expect("an object");
        assert!(!settings.is_empty(), "{resolved}");
        let keys = settings.iter();
        let keys = keys.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
        let keys: Vec<String> = keys.collect();
        let again = json(&format!("{preset}:{}", keys.join(",")));
        assert_eq!(again["settings"], resolved["settings"]);
        assert_eq!(again["window_bytes"], resolved["window_bytes"]);
        assert_eq!(resolved["datagram_bytes"], 1200);
    }
}

#[test]
fn an_unknown_spec_is_a_usage_error() {
    let output = specs(&["rapid-start", "fast"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("`fast`") && errors.contains("rapid-no-jump"),
        "{errors}"
    );
}

/// Help that cannot be written is a failure.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_of_help_too() {
    for words in ["--help", "specs", "man", "--version"] {
        let script = format!("'{}' {words} > /dev/full", env!("CARGO_BIN_EXE_lastbyte"));
        let output = Command::new("sh").args(["-c", &script]).output();
        let output = output.expect("a shell");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {errors}");
        assert!(errors.contains("cannot write to stdout"), "{errors}");
    }
}

#[test]
fn a_message_that_cannot_be_written_does_not_change_the_exit_code() {
    let script = format!(
        "'{}' specs turbo 2>/dev/full",
        env!("CARGO_BIN_EXE_lastbyte")
    );
    let status = Command::new("sh").args(["-c", &script]).status();
    assert_eq!(status.expect("a shell").code(), Some(2));
}

#[test]
fn every_example_of_the_help_runs() {
    let help = stdout(&specs(&["--help"]));
    let lines = help.lines().skip_while(|line| *line != "Examples:");
    let mut count = 0;
    for line in lines.filter_map(|line| line.strip_prefix("  lastbyte specs")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(!stdout(&specs(&words)).is_empty(), "{line}");
        count += 1;
    }
    assert_eq!(count, 4, "{help}");
}
