//! `--connection-log`: the client's line of each connection.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use super::{Place, lastbyte, refused, stderr, stdout};
use crate::serving::free_port;

fn lines(place: &Place, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(place.folder.join(name)).expect("a log");
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON")
}

#[test]
fn each_connection_has_a_line() {
    let place = Place::new("bench-log");
    let arguments = ["-n", "20", "-c", "5", "-t", "2", "--connection-log", "log"];
    let output = place.bench(&arguments, "/3kB");
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = lines(&place, "log");
    assert_eq!(lines.len(), 5);
    let numbers: BTreeSet<u64> = lines
        .iter()
        .filter_map(|it| it["conn_id"].as_u64())
        .collect();
    assert_eq!(numbers.len(), 5, "{lines:?}");
    for line in &lines {
        let number = |key: &str| {
            let value = line[key].as_f64();
            value.unwrap_or_else(|| panic!("no {key} in {line}"))
        };
        assert_eq!(line["type"], "connection");
        assert_eq!(line["method"], "GET");
        assert_eq!(line["content_length"], 3000);
        let handshake = number("client.handshake");
        assert!(
            handshake > 0.0 && handshake < number("client.ttfb"),
            "{line}"
        );
        assert!(number("client.ttfb") <= number("client.ttlb"), "{line}");
        assert!(number("num-packets.sent") > 0.0, "{line}");
        // Four responses of 3000 bytes.
        assert!(number("num-bytes.received") > 12_000.0, "{line}");
    }
    // A query reads it, also compressed.
    let arguments = ["-n", "2", "-c", "2", "--connection-log", "log.gz"];
    assert!(place.bench(&arguments, "/3kB").status.success());
    let query = lastbyte(&place.folder, &["query", "count()", "log.gz"]);
    assert_eq!(stdout(&query).trim(), "2", "{}", stderr(&query));
}

/// A connection that failed has a line, without the times that it did not reach.
#[test]
fn a_connection_that_failed_has_a_line() {
    let place = Place::new("bench-log-failed");
    fs::write(place.folder.join("none.toml"), "[down]\nloss = \"100%\"\n").expect("a file");
    let network = ["--network", "none.toml", "--connect-timeout", "300ms"];
    let arguments = [&network[..], &["--connection-log", "log"]].concat();
    assert_eq!(place.bench(&arguments, "/3kB").status.code(), Some(1));
    let lines = lines(&place, "log");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].get("client.handshake").is_none_or(Value::is_null));
    assert!(lines[0]["num-packets.sent"].as_u64() > Some(0));
}

#[test]
fn a_log_that_cannot_be_written_is_an_error() {
    let place = Place::new("bench-log-errors");
    let full = ["-n", "20", "-c", "5", "--connection-log", "/dev/full"];
    let output = place.bench(&full, "/3kB");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("cannot write `/dev/full`"),
        "{}",
        stderr(&output)
    );
    // The results are printed all the same.
    assert!(stdout(&output).contains("20 succeeded"));
    let url = format!("https://localhost:{}/", free_port());
    for (arguments, code, expected) in [
        (
            &["--connection-log", "no/folder"][..],
            1,
            "cannot write `no/folder`",
        ),
        (
            &["--connection-log", "log", "--http", "2"],
            2,
            "expected HTTP/3",
        ),
    ] {
        let (found, error) = refused(&place.folder, arguments, &url);
        assert_eq!(found, code, "{error}");
        assert!(error.contains(expected), "{error}");
    }
    // A command that is refused does not overwrite the log of another.
    fs::write(place.folder.join("log"), "kept").expect("room");
    let arguments = ["--connection-log", "log", "--http", "1.1", "-m", "2"];
    let (code, error) = refused(&place.folder, &arguments, &url);
    assert_eq!(code, 2, "{error}");
    assert_eq!(fs::read(place.folder.join("log")).expect("a log"), b"kept");
    let (code, error) = refused(&place.folder, &["-D", "0s"], &url);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("expected a time above 0"), "{error}");
}
