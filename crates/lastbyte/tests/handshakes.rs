//! `lastbyte handshakes` with a server of ours: a row for each transport and kind of handshake, with its times or with a reason.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the server is a process"
)]

#[path = "common/serving.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod serving;

use serde_json::Value;
use serving::{Serving, check_failure, folder, free_port, lastbyte, stderr, stdout};

/// The rows of a server with these options: transport, kind, and the reason if there are no times.
fn rows(name: &str, options: &[&str]) -> Vec<[String; 3]> {
    let folder = folder(name);
    let server = Serving::start(&folder, &[&["--self-signed"], options].concat());
    let url = server.url("/1");
    let output = lastbyte(
        &folder,
        &["handshakes", "-k", "--repeat", "2", "--json", &url],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rtt = document["rtt_ms"].as_f64();
    let rows = document["rows"].as_array().expect("rows").iter();
    let rows = rows.map(|row| {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let time = |key: &str| row[key].as_f64();
        let (handshake, first_byte) = (time("handshake_ms"), time("first_byte_ms"));
        assert_eq!(handshake.is_some(), row["error"].is_null(), "{row}");
        if let Some((handshake, first_byte)) = handshake.zip(first_byte) {
            // In 0-RTT, both come with the server's first packets.
            assert!(text("kind") == "0-RTT" || handshake <= first_byte, "{row}");
            let trips = time("first_byte_rtts").zip(rtt);
            if let Some((trips, rtt)) = trips {
                assert!((trips * rtt / first_byte - 1.0).abs() < 0.1, "{row} {rtt}");
            }
            assert_eq!(trips.is_some(), rtt.is_some(), "{row}");
        }
        [text("transport"), text("kind"), text("error")]
    });
    let rows = rows.collect();
    assert_eq!(server.end().0, 0);
    rows
}

const ROWS: [(&str, &str); 9] = [
    ("TCP, TLS 1.2", "new"),
    ("TCP, TLS 1.2", "resumed"),
    ("TCP, TLS 1.2", "0-RTT"),
    ("TCP, TLS 1.3", "new"),
    ("TCP, TLS 1.3", "resumed"),
    ("TCP, TLS 1.3", "0-RTT"),
    ("QUIC", "new"),
    ("QUIC", "resumed"),
    ("QUIC", "0-RTT"),
];

/// Checks the rows, of which these have no times, for a reason that has this text.
fn check(rows: &[[String; 3]], without: &[(usize, &str)]) {
    assert_eq!(rows.len(), ROWS.len(), "{rows:?}");
    for (index, (row, expected)) in rows.iter().zip(ROWS).enumerate() {
        assert_eq!((&*row[0], &*row[1]), expected);
        let reason = without.iter().find(|(of, _)| *of == index);
        match reason {
            Some((_, reason)) => assert!(row[2].contains(reason), "{row:?}: {reason}"),
            None => assert_eq!(row[2], "", "{row:?}"),
        }
    }
}

/// Of TLS 1.2 and of this client.
const NEVER: [(usize, &str); 2] = [
    (2, "TLS 1.2 has no 0-RTT"),
    (5, "this client sends no 0-RTT over TCP"),
];

#[test]
fn each_kind_of_handshake_has_times() {
    check(&rows("handshakes-all", &[]), &NEVER);
}

#[test]
fn kinds_that_the_server_lacks_have_a_reason() {
    let refused = rows("handshakes-early", &["--no-0rtt"]);
    check(&refused, &[&NEVER[..], &[(8, "0-RTT")]].concat());
    let tcp = rows("handshakes-tcp", &["--http", "1.1,2"]);
    let no_session = "no session to resume";
    let lacks = [(6, "refused"), (7, no_session), (8, no_session)];
    check(&tcp, &[&NEVER[..], &lacks].concat());
    let quic = rows("handshakes-quic", &["--http", "3"]);
    let lacks = [
        (0, "refused"),
        (1, no_session),
        (3, "refused"),
        (4, no_session),
    ];
    check(&quic, &[&NEVER[..], &lacks].concat());
}

#[test]
fn a_server_without_any_handshake_is_a_failure() {
    let folder = folder("handshakes-none");
    let url = format!("https://127.0.0.1:{}/", free_port());
    let output = lastbyte(&folder, &["handshakes", "--repeat", "1", &url]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    assert_eq!(text.lines().count(), 1 + ROWS.len() + 2, "{text}");
    assert!(text.contains("no round-trip time"), "{text}");
    for url in ["http://localhost/", "https://local host/"] {
        let output = lastbyte(&folder, &["handshakes", url]);
        check_failure(&output, 2, "invalid value");
    }
}
