//! Names of files on a terminal: no control character of theirs reaches it. In a pipe, the same sequences would be removed with
//! those of styles.

#![expect(
    clippy::disallowed_methods,
    reason = "what a command reads and writes is files"
)]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;

#[path = "common/run.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod run;

use run::folder;

/// Sets the title, erases the screen, changes the colour; DEL.
const NAME: &str = "a\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\u{7f}";

/// What a command writes to a terminal, stdout and stderr, without styles and the erased lines of progress bars. `None`
/// without a terminal.
fn on_a_terminal(folder: &Path, arguments: &str) -> Option<String> {
    let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_lastbyte"));
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(folder)
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        lastbyte_testkit::skip("no `script`");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments}: {text}");
    let mut plain = String::new();
    for (index, piece) in text.split("\u{1b}[").enumerate() {
        let is_style = |numbers: &str| numbers.chars().all(|c| c.is_ascii_digit() || c == ';');
        match piece.split_once(['m', 'K']) {
            _ if index == 0 => plain.push_str(piece),
            Some((numbers, rest)) if is_style(numbers) => plain.push_str(rest),
            _ => {
                plain.push_str("\u{1b}[");
                plain.push_str(piece);
            }
        }
    }
    Some(plain)
}

#[test]
fn names_of_files_contain_no_sequences_for_terminals() {
    let folder = folder("terminal-names");
    let row = |number: u64| {
        let is_new = number.is_multiple_of(2);
        json!({
            "arm": if is_new { NAME } else { "base" },
            "site": NAME,
            "experiment": NAME,
            "complete": true,
            "ttlb": (200 + number * 7919 % 800) * if is_new { 2 } else { 3 },
            "content-length": 300_000,
        })
    };
    let rows: Vec<String> = (0..400)
        .map(|number| format!("{}\n", row(number)))
        .collect();
    fs::write(folder.join("log.ndjson"), rows.concat()).expect("a log");
    let quoted = serde_json::to_string(NAME).expect("a string");
    // DEL and C1 controls are not escaped in JSON, and may not be in TOML.
    let quoted = quoted
        .replace('\u{7f}', "\\u007f")
        .replace('\u{9b}', "\\u009b");
    let arm = |name: &str, spec: &str| format!("[[arms]]\nname = {name}\nspec = \"{spec}\"\n");
    let arms = arm(&quoted, "newreno") + &arm("\"b\"", "bbr");
    let experiment = format!("name = {quoted}\nconnections = 6\n{arms}");
    fs::write(folder.join("two.toml"), experiment).expect("a file");
    for (file, setting) in [("before.json", NAME), ("after.json", "b")] {
        let buckets: Vec<(u64, u64)> = (1..=1000).map(|micros| (micros, 2)).collect();
        let run = json!({
            "format": 1,
            "settings": { NAME: setting },
            "requests_per_second": 1.0,
            "requests": { "total": 2000, "failed": 0, "errored": 0, "unfinished": 0, "not_started": 0 },
            "latency_histogram": buckets,
        });
        fs::write(folder.join(file), run.to_string()).expect("a file");
    }
    for arguments in [
        "report log.ndjson",
        "report --json log.ndjson",
        "ab two.toml",
        "ab two.toml --json --force",
        "bench --compare before.json after.json",
    ] {
        let Some(text) = on_a_terminal(&folder, arguments) else {
            return;
        };
        let is_safe = |c: char| matches!(c, '\r' | '\n' | '\t') || !c.is_control();
        assert!(text.chars().all(is_safe), "{arguments}: {text:?}");
        // The name is not left out.
        assert!(text.contains("]0;x"), "{arguments}: {text}");
    }
}
