//! `lastbyte plot --twin`: where a connection parts from a simulated transfer.

#![expect(
    clippy::disallowed_methods,
    reason = "what a command reads and writes is files"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

#[path = "common/run.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod run;

use run::{command_line, folder, lastbyte, stderr};

/// Simulates 4 MB over a path of 20 Mbit/s and 40 ms, whose rate has these steps, under BBR. Returns the names of both qlog files.
fn record(folder: &Path, steps: &str) -> [String; 2] {
    let network = format!("rtt = \"40ms\"\n[down]\nsteps = [{steps}]\nqueue = \"150kB\"\n");
    fs::write(folder.join("path.toml"), network).expect("a file");
    let command =
        command_line("sim --network path.toml --size 4MB --arm bbr --seed 3 --qlog q --force");
    let output = lastbyte(folder, &command);
    assert!(output.status.success(), "{}", stderr(&output));
    ["server", "client"].map(|end| format!("q/path_bbr_4000000_3_0_{end}.sqlog"))
}

/// The exit code, stdout and stderr of `plot --twin` with a small bank.
fn twin(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let bank = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("twin-bank");
    let bank = bank.to_str().expect("UTF-8");
    let common: &[&str] = &["plot", "--twin", "--paths", "2048", "--bank", bank];
    let output = lastbyte(folder, &[common, arguments].concat());
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    let code = output.status.code().expect("an exit code");
    (code, text, stderr(&output))
}

/// The time of the parting, in ms.
fn time(text: &str) -> f64 {
    let words = text.strip_prefix("The twin parts at ").expect("a parting");
    let (time, _) = words.split_once(':').expect("a time");
    let (number, unit) = time.split_once(' ').expect("a unit");
    number.parse::<f64>().expect("a number") * if unit == "s" { 1000.0 } else { 1.0 }
}

#[test]
fn the_twin_parts_at_an_outage_and_at_a_change_of_the_rate_and_else_not() {
    let folder = folder("twin-parts");
    for (steps, from, to) in [
        ("\"0s 20mbit\", \"1s 0\", \"1.6s 20mbit\"", 1000.0, 1250.0),
        ("\"0s 20mbit\", \"1s 5mbit\"", 1000.0, 1250.0),
    ] {
        let [server, _] = record(&folder, steps);
        let (code, text, errors) = twin(&folder, &[&server]);
        assert_eq!(code, 0, "{errors}");
        assert!((from..to).contains(&time(&text)), "{steps}: {text}");
        let page = fs::read_to_string(folder.join("plot.html")).expect("a page");
        let first = text.lines().next().expect("a sentence");
        assert!(page.contains(first) && page.contains("twin: acknowledged"));
    }
    let [server, _] = record(&folder, "\"0s 20mbit\"");
    let (code, text, _) = twin(&folder, &[&server, "-o", "a.html", "-o", "a.svg"]);
    assert_eq!(code, 0);
    assert!(text.starts_with("The twin does not part"), "{text}");
    // Same seed, same bytes.
    let again = twin(&folder, &[&server, "-o", "b.html", "-o", "b.svg"]);
    assert_eq!(text, again.1);
    for end in ["html", "svg"] {
        let file = |name: &str| fs::read(folder.join(format!("{name}.{end}"))).expect("a picture");
        assert!(file("a") == file("b"), "{end}");
    }
    insta::assert_snapshot!("twin", text);
}

/// The certificate chains of servers differ in length, which is no difference of the transfers.
#[test]
fn the_twin_does_not_part_at_the_handshake() {
    let folder = folder("twin-chain");
    for chain in ["500", "6000"] {
        let command = format!(
            "sim --network vdsl --size 200kB --arm cubic --seed 3 --qlog q --force --certificate-chain {chain}"
        );
        let output = lastbyte(&folder, &command_line(&command));
        assert!(output.status.success(), "{}", stderr(&output));
        let (code, text, errors) = twin(&folder, &["q/vdsl_cubic_200000_3_0_server.sqlog"]);
        assert_eq!(code, 0, "{errors}");
        assert!(
            text.starts_with("The twin does not part"),
            "{chain}: {text}"
        );
    }
}

#[test]
fn what_has_no_twin_is_refused_with_the_reason() {
    let folder = folder("twin-refused");
    let [server, client] = record(&folder, "\"0s 20mbit\"");
    let (code, text, _) = twin(&folder, &[&client, "-o", "client.html"]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("the file is that of the receiver"), "{text}");
    // The picture is drawn without a twin.
    let page = fs::read_to_string(folder.join("client.html")).expect("a page");
    assert!(page.contains("Cannot tell where the twin parts"));
    let text = fs::read_to_string(folder.join(&server)).expect("a file");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
    write("untitled.sqlog", &text.replacen("bbr over", "ten over", 1));
    let (code, _, errors) = twin(&folder, &[&server, "untitled.sqlog"]);
    assert_eq!(code, 2);
    assert!(
        errors.contains("--twin: 2 connections (expected one)"),
        "{errors}"
    );
    let (code, _, errors) = twin(&folder, &["untitled.sqlog"]);
    assert_eq!(code, 2);
    let expected =
        "the congestion control `ten` of `untitled.sqlog` is unknown (expected --spec SPEC)";
    assert!(errors.contains(expected), "{errors}");
    assert_eq!(twin(&folder, &["untitled.sqlog", "--spec", "bbr"]).0, 0);
    let without_rtts: String = text
        .split_inclusive('\n')
        .filter(|line| !line.contains("metrics_updated"))
        .collect();
    write("no-rtt.sqlog", &without_rtts);
    let (code, text_of, _) = twin(&folder, &["no-rtt.sqlog"]);
    assert_eq!(code, 3, "{text_of}");
    assert!(text_of.contains("`rtt.minimum`"), "{text_of}");
    // A file that breaks off has a twin as far as it goes.
    write("short.sqlog", &text[..text.len() / 2]);
    let (code, text_of, errors) = twin(&folder, &["short.sqlog"]);
    assert_eq!(code, 1, "{errors}");
    assert!(text_of.starts_with("The twin does not part"), "{text_of}");
    let output = lastbyte(&folder, &["plot", &server, "--spec", "bbr"]);
    run::check_failure(&output, 2, "--twin");
}
