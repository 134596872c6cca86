//! Access logs.

use std::{fmt::Write as _, fs};

use serde_json::Value;

use super::{folder, lastbyte, stderr, stdout};

/// Requests of two arms, of which the second is twice as fast and fails more often.
fn access_log(connections: usize) -> String {
    let mut log = String::new();
    for connection in 0..connections {
        for request in 0..5 {
            let is_new = connection % 2 == 1;
            let (arm, factor) = if is_new { ("new", 1) } else { ("baseline", 2) };
            let ms = factor * (100 + (connection * 7 + request * 13) % 40);
            let status = if is_new && connection % 10 == 1 && request == 0 {
                503
            } else {
                200
            };
            let _ = writeln!(
                log,
                "{{\"type\":\"request\",\"time\":{connection},\"remote\":\"192.0.2.1\",\"port\":{connection},\"http\":\"HTTP/3\",\
                 \"status\":{status},\"ms\":{ms},\"complete\":true,\"conn_id\":{connection},\"worker\":0,\"arm\":\"{arm}\"}}"
            );
        }
    }
    log
}

#[test]
fn requests_of_an_access_log_are_compared_by_arm() {
    let folder = folder("report-requests");
    fs::write(folder.join("access.ndjson"), access_log(400)).expect("a log");
    let output = lastbyte(&folder, &["report", "--metric", "ms", "access.ndjson"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
    };
    assert!(
        row("connections").contains("200  ") && row("requests").contains("1000"),
        "{text}"
    );
    assert!(row("success").contains("-4.00 points"), "{text}");
    assert!(row("ms p50").contains("-5"), "{text}");

    let output = lastbyte(
        &folder,
        &["report", "access.ndjson", "--json", "--baseline", "new"],
    );
    let json: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(json["arms"][0]["arm"], "new");
    assert_eq!(json["arms"][0]["changes"][0], Value::Null);
    let interval = &json["arms"][1]["changes"][3]["interval"];
    assert!(interval[0].as_f64() > Some(0.5), "{json}");
    assert!(!folder.join("report.html").exists(), "there is no page");

    for (options, expected) in [
        (
            ["--figure", "3in"],
            "--figure is for connection logs, and this is an access log",
        ),
        (["--bins", "4"], "--bins is for connection logs"),
        (["--title", "x"], "--title is for connection logs"),
        (
            ["--baseline", "old"],
            "unknown arm `old` (expected baseline, new)",
        ),
        (["--arm-by", "_[\"arm"], "error: "),
    ] {
        let output = lastbyte(
            &folder,
            &[&["report", "access.ndjson"], &options[..]].concat(),
        );
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
fn requests_of_one_arm_are_not_compared() {
    let folder = folder("report-one-arm");
    let log = access_log(40).replace("new", "baseline");
    fs::write(folder.join("access"), log).expect("a log");
    let output = lastbyte(&folder, &["report", "--metric", "ms", "access"]);
    super::check_failure(&output, 1, "all requests are of the arm `baseline`");
}

#[test]
fn logs_of_two_kinds_are_refused() {
    let folder = folder("report-kinds");
    fs::write(folder.join("access"), access_log(40)).expect("a log");
    let line = "{\"arm\":\"new\",\"ttlb\":200,\"site\":\"here\"}\n";
    fs::write(folder.join("conns"), line.repeat(40)).expect("a log");
    // One without a line is of any kind.
    fs::write(folder.join("empty"), "").expect("a log");
    for logs in [["access", "empty"], ["empty", "access"]] {
        let output = lastbyte(&folder, &[&["report"][..], &logs].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    }
    for words in [["report", "access", "conns"], ["report", "conns", "access"]] {
        let output = lastbyte(&folder, &words);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            stderr(&output).contains("`access` is an access log, and `conns` is not"),
            "{}",
            stderr(&output)
        );
    }
}
