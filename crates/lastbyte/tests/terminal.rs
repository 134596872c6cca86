//! What commands write to a terminal, and to files: no control character of a name reaches a terminal, and tables fit it; each file
//! that was written is named, and one that could not be written is an error.

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

use run::{folder, lastbyte};

/// Sets the title, erases the screen, changes the colour; DEL.
const NAME: &str = "a\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\u{7f}";

/// What a command writes to a terminal, stdout and stderr, without styles and the erased lines of progress bars. `None`
/// without a terminal.
fn on_a_terminal(folder: &Path, arguments: &str) -> Option<String> {
    let line = format!(
        "stty cols 80; {} {arguments}",
        env!("CARGO_BIN_EXE_lastbyte")
    );
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

/// Rows of columns have two spaces between words; sentences and commands, which a terminal breaks anywhere, have none.
#[test]
fn tables_fit_a_terminal_of_80_columns() {
    let folder = folder("terminal-widths");
    let is_skipped = on_a_terminal(&folder, "ab --connections 40 --seed 3").is_none();
    if is_skipped {
        return;
    }
    for (arguments, expected) in [
        ("specs", "Values of congestion:"),
        ("specs bbr", "start:"),
        ("sim --network vdsl --size 400kB", "used"),
        (
            "sim --network vdsl --handshake full --handshake 0rtt --runs 3 --progress 100kB",
            "used",
        ),
        ("ab --connections 40 --seed 3 --force", "loss avg"),
        ("report ab/conns.ndjson", "loss avg"),
        (
            "search cubic --key initial-window=10p,30p --paths 16 --neighbour cubic",
            "neighbours' rate",
        ),
        (
            "get --timing -k -s --connect-timeout 5 https://127.0.0.1:1/a-long-name-of-a-file https://127.0.0.1:1/b || true",
            "handshake",
        ),
        ("compare --network vdsl --pages 2", "first render"),
    ] {
        let text = on_a_terminal(&folder, arguments).expect("a terminal");
        assert!(text.contains(expected), "{arguments}: {text}");
        for line in text.lines() {
            // Progress bars are overwritten.
            let line = line.trim_end().rsplit('\r').next().unwrap_or_default();
            let is_row = line.trim().contains("  ") && !line.contains("lastbyte ");
            let width = line.chars().count();
            assert!(!is_row || width <= 80, "{arguments}: {width}: {line}");
        }
    }
    // Elsewhere a row is a line.
    let output = lastbyte(&folder, &["sim", "--network", "vdsl", "--size", "400kB"]);
    let header = String::from_utf8_lossy(&output.stdout).into_owned();
    let header = header.lines().nth(1).expect("a header");
    assert!(
        header.starts_with("arm") && header.ends_with("used"),
        "{header}"
    );
}

/// All commands have one sentence for it, on stderr.
#[test]
fn a_file_that_was_written_is_named() {
    let folder = folder("terminal-wrote");
    for (arguments, files) in [
        (
            "ab --connections 40 --seed 3",
            &["ab/conns.ndjson", "ab/report.html"][..],
        ),
        (
            "sim --network vdsl --size 200kB --plot a.html --plot a.svg",
            &["a.html", "a.svg"],
        ),
        (
            "sim --network vdsl --size 200kB --qlog q",
            &["q: 8 qlog files"],
        ),
        ("report ab/conns.ndjson -o page.html", &["page.html"]),
        ("report ab/conns.ndjson --json -o page.html", &["page.html"]),
        (
            "report ab/conns.ndjson --figure 3.33in -o a.pdf --figure-data a.csv",
            &["a.csv"],
        ),
        (
            "plot q/vdsl_slow-start_200000_1_0_server.sqlog -o t.html",
            &["t.html"],
        ),
        (
            "compare --network vdsl --pages 2 --out c",
            &["c/loads.ndjson", "c/report.html"],
        ),
        ("man --out m", &["m"]),
    ] {
        let output = lastbyte(&folder, &run::command_line(arguments));
        let messages = run::stderr(&output);
        assert!(output.status.success(), "{arguments}: {messages}");
        for file in files {
            let expected = format!("wrote {file}");
            let is_there = messages.lines().any(|line| line == expected);
            assert!(is_there, "{arguments}: {messages}");
        }
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            !text.contains("wrote ") && !text.contains("report: "),
            "{arguments}: {text}"
        );
    }
}

/// Without a handler, SIGXFSZ ends the command in silence, and its temporary file stays.
#[test]
fn a_file_beyond_the_limit_of_sizes_is_an_error_and_leaves_nothing() {
    let folder = folder("terminal-limit");
    let line = format!(
        "ulimit -f 8; exec {} sim --network vdsl --size 400kB --plot a.html",
        env!("CARGO_BIN_EXE_lastbyte")
    );
    let output = Command::new("sh")
        .args(["-c", &line])
        .current_dir(&folder)
        .output();
    let output = output.expect("a shell");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let messages = run::stderr(&output);
    assert!(
        messages.contains("error: cannot write `a.html`: File too large"),
        "{messages}"
    );
    let left = fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(left, 0, "{:?}", fs::read_dir(&folder));
}
