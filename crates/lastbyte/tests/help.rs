//! Negative numbers as values, and the examples of help texts, run as they are printed: those of `ab`, `report`, `serve` and `emulate`. Only what would take long or
//! needs another machine is replaced: numbers of connections, ports and names of hosts; servers check their configuration.

#![expect(
    clippy::disallowed_methods,
    reason = "what a command reads and writes is files"
)]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

#[path = "common/run.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod run;

use run::folder;

const BINARY: &str = env!("CARGO_BIN_EXE_lastbyte");

/// The examples in the help of a command, without what follows them.
fn examples(command: &str) -> String {
    let output = Command::new(BINARY).args([command, "--help"]).output();
    let help = String::from_utf8(output.expect("the binary runs").stdout).expect("UTF-8");
    let lines = help
        .lines()
        .skip_while(|line| !line.starts_with("Examples"));
    let block: Vec<&str> = lines.skip(1).take_while(|line| !line.is_empty()).collect();
    block.join("\n")
}

/// Runs a script in which `lastbyte` is the binary. Returns how often it ran this command.
fn run(folder: &Path, command: &str, script: &str) -> usize {
    // The two sides of a pipe run at once: each appends its line to a file in one write.
    let commands = folder.join("commands.txt");
    fs::write(&commands, "").expect("a file");
    let script = format!(
        "set -eux\nlastbyte() {{ echo \"$1\" >> '{}'; '{BINARY}' \"$@\"; }}\n{script}\n",
        commands.display()
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder)
        .output()
        .expect("a shell");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let commands = fs::read_to_string(&commands).expect("a file");
    commands.lines().filter(|line| *line == command).count()
}

#[test]
fn every_example_of_ab_and_report_runs() {
    let folder = folder("help-ab");
    let file = "name = \"mine\"\nconnections = 20\n[[arms]]\nname = \"a\"\nspec = \"cubic\"\n\
        [[arms]]\nname = \"b\"\nspec = \"hystart\"\n";
    fs::write(folder.join("mine.toml"), file).expect("a file");
    let network = "rtt = \"20ms\"\n[down]\nrate = \"20mbit\"\n";
    fs::write(folder.join("home.toml"), network).expect("a file");
    fs::create_dir(folder.join("traces")).expect("a folder");
    fs::write(folder.join("traces/lte"), "1\n2\n").expect("a file");
    let few = examples("ab")
        .replace("lastbyte ab\n", "lastbyte ab --connections 20\n")
        .replace("--out two", "--out two --connections 20")
        .replace("--out traces", "--out of-traces --connections 20")
        .replace("--connections 20000", "--connections 20");
    assert_eq!(run(&folder, "ab", &few), 6);
    assert!(folder.join("transfer.html").exists());
    for out in ["ab", "unpaired", "mine"] {
        let log = fs::read_to_string(folder.join(out).join("conns.ndjson")).expect("a log");
        assert!(log.lines().count() >= 20, "{out}");
        assert!(folder.join(out).join("report.html").exists(), "{out}");
    }

    let line = include_str!("../../record/src/connection_log/sample-line.json").trim();
    let jump = line.replace("\"jumpstart.cwnd\":0", "\"jumpstart.cwnd\":88320");
    let h2o: String = (0..20)
        .map(|id| {
            format!("{line}\n{jump}\n").replace("\"conn_id\":1907798", &format!("\"conn_id\":{id}"))
        })
        .collect();
    fs::write(folder.join("h2o-1.ndjson"), h2o).expect("a log");
    let line = |number: u64| {
        let group = if number.is_multiple_of(10) {
            "treatment"
        } else {
            "control"
        };
        let ttlb = 100 + number * 7919 % 800;
        format!("{{\"group\":\"{group}\",\"pop\":\"fra\",\"ttlb\":{ttlb}}}\n")
    };
    let log: String = (0..400).map(line).collect();
    fs::write(folder.join("log.ndjson"), log).expect("a log");
    let request = |number: u64| {
        let arm = if number.is_multiple_of(2) { "a" } else { "b" };
        let ms = 20 + number * 7919 % 80;
        format!(
            "{{\"type\":\"request\",\"arm\":\"{arm}\",\"ms\":{ms},\"status\":200,\"complete\":true,\"conn_id\":{number}}}\n"
        )
    };
    let access: String = (0..100).map(request).collect();
    fs::write(folder.join("access.ndjson"), access).expect("a log");
    let plan = format!("baseline = \"a\"\n{file}[plan]\n");
    fs::write(folder.join("ramp.toml"), plan).expect("a file");
    let start = "lastbyte steer --plan ramp.toml --state steer\n";
    assert_eq!(run(&folder, "steer", start), 1);
    let script = format!("gzip h2o-1.ndjson\n{}", examples("report"));
    assert_eq!(run(&folder, "report", &script), 9);
    for page in ["ab/report.html", "h2o.html"] {
        assert!(folder.join(page).exists(), "{page}");
    }
    let charts = fs::read_dir(folder.join("charts")).expect("a folder");
    assert!(charts.count() > 0);
}

#[test]
fn every_example_of_serve_is_a_valid_configuration() {
    let folder = folder("help-serve");
    fs::create_dir(folder.join("public")).expect("a folder");
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    fs::write(folder.join("chain.pem"), cert.pem()).expect("a file");
    fs::write(folder.join("key.pem"), signing_key.serialize_pem()).expect("a file");
    fs::write(folder.join("serve.toml"), "self-signed = true\n").expect("a file");
    let script = examples("serve")
        .replace("/srv/www", "public")
        .replace(" --check", "")
        .replace("lastbyte serve", "lastbyte serve --check");
    assert_eq!(run(&folder, "serve", &script), 6);
}

#[test]
fn every_example_of_emulate_starts_and_stops() {
    let text = examples("emulate").replace("\\\n", " ");
    let relays = text.lines().filter_map(|line| {
        let words = line.trim().strip_prefix("lastbyte emulate ")?;
        Some(words.replace("127.0.0.1:4443", "127.0.0.1:0"))
    });
    let mut count = 0;
    for words in relays {
        // Port 9 discards what it receives.
        let words = words.replace("quic.example:443", "127.0.0.1:9");
        let listen = ["--listen", "127.0.0.1:0"];
        let has_address = words.contains("--listen");
        let mut relay = Command::new(BINARY)
            .arg("emulate")
            .args(words.split_whitespace())
            .args(listen.iter().filter(|_| !has_address))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let mut stderr = BufReader::new(relay.stderr.take().expect("piped"));
        stderr.read_line(&mut line).expect("text");
        assert!(line.starts_with("127.0.0.1:"), "{words}: {line}");
        let kill = Command::new("kill").arg(relay.id().to_string()).status();
        assert!(kill.expect("kill runs").success());
        let status = relay.wait().expect("it ends");
        assert!(status.success(), "{words}: {status}");
        count += 1;
    }
    assert_eq!(count, 2, "{text}");
}

/// The parser of the option rejects a negative number, and names what it expects. `-4` and `-6` stay options.
#[test]
fn a_negative_number_is_a_value_of_the_option_before_it() {
    for (words, expected) in [
        ("bench --rate -5 https://localhost/", "'-5' for '--rate"),
        ("bench -n -1 https://localhost/", "'-1' for '--requests"),
        ("get --repeat -1 https://localhost/", "'-1' for '--repeat"),
        ("sim --loss -1", "'-1' for '--loss"),
        ("serve --workers -2 --self-signed", "'-2' for '--workers"),
        ("emulate --tun -6", "unexpected argument '-6'"),
        ("get -4 --repeat 5", "required arguments"),
        (
            "query -7 rows",
            "before a query that starts with `-`, write `--`",
        ),
        (
            "query -_ rows",
            "before a query that starts with `-`, write `--`",
        ),
        ("query --nothing rows", "unexpected argument '--nothing'"),
    ] {
        let output = Command::new(BINARY).args(words.split(' ')).output();
        let output = output.expect("the binary runs");
        let printed = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(printed.contains(expected), "{words}: {printed}");
        assert_eq!(output.status.code(), Some(2), "{words}");
    }
}

/// `-h` is one screen, `--help` has all options, and `--help GROUP` those of a group.
#[test]
fn help_is_short_whole_or_of_a_group() {
    let run = |words: &str| {
        let output = Command::new(BINARY).args(words.split(' ')).output();
        let output = output.expect("the binary runs");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("UTF-8");
        (output.status.code(), text)
    };
    let (code, short) = run("get -h");
    assert_eq!(code, Some(0), "{short}");
    assert!(short.contains("--timing") && !short.contains("--resolve"));
    assert!(
        short.contains("groups output,\nrequest, connection;"),
        "{short}"
    );
    for words in ["get --help", "help get", "get -s --help"] {
        let (code, long) = run(words);
        assert_eq!(code, Some(0), "{long}");
        assert!(
            long.contains("--timing") && long.contains("--resolve"),
            "{words}"
        );
    }
    let (code, group) = run("get --help connection");
    assert_eq!(code, Some(0), "{group}");
    assert!(
        !group.contains("--timing") && group.contains("--resolve"),
        "{group}"
    );
    assert!(!group.contains("Examples"), "{group}");
    let (code, error) = run("get --help network");
    assert_eq!(code, Some(2), "{error}");
    let expected = "unknown group `network` (expected output, request, connection)";
    assert!(error.contains(expected), "{error}");
    for (words, expected) in [
        (
            "sim --jitter 5ms",
            "`jitter = …` in [down] of a network file",
        ),
        (
            "serve --max-resets 5 --self-signed",
            "is a key of the configuration file only",
        ),
        (
            "get --proxy http://a/ https://b/",
            "curl's `--proxy` is not supported: use curl",
        ),
    ] {
        let (code, error) = run(words);
        assert_eq!(code, Some(2), "{words}: {error}");
        assert!(error.contains(expected), "{words}: {error}");
    }
}

/// In a pipe there is no width of a terminal.
#[test]
fn help_in_a_pipe_has_80_columns() {
    for words in [
        &["-h"][..],
        &["--help"],
        &["help"],
        &["ab", "-h"],
        &["serve", "--help"],
    ] {
        let output = Command::new(BINARY).args(words).output();
        let help = String::from_utf8(output.expect("the binary runs").stdout).expect("UTF-8");
        assert!(help.lines().count() > 10, "{words:?}");
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{words:?}: {line}");
        }
    }
}
