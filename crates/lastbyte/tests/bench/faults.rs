//! `lastbyte bench` against servers that are replaced during the run, or do not respond.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener},
    process::{Child, Stdio},
    thread,
};

use serde_json::Value;

use super::{
    Place, VERSIONS, certificate, command, count, folder, free_port, json, lastbyte, stderr,
    wait_for_requests,
};
use crate::{
    serving::Serving,
    tls::{Tls, TlsOptions},
};

/// Starts `bench` for an hour, over four connections.
fn begin(folder: &std::path::Path, arguments: &[&str], url: &str) -> Child {
    let common = [
        "bench", "--cacert", "a.pem", "-D", "1h", "-c", "4", "--json",
    ];
    let all = [&common, arguments, &[url]].concat();
    command(folder, &all)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs")
}

/// Interrupts the run. Returns its results.
fn interrupt(child: Child) -> Value {
    let id = child.id().to_string();
    let status = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(status.expect("kill runs").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    json(&output)
}

/// The results of a run whose server was killed and replaced by another on the same port, which responds as well.
fn replaced(name: &str, arguments: &[&str], path: &str) -> Value {
    let folder = folder(name);
    certificate(&folder, "a");
    let listen = format!("127.0.0.1:{}", free_port());
    let start = || {
        Serving::start_as(
            &folder,
            &[],
            &listen,
            &["--cert", "a.pem", "--key", "a.key"],
        )
    };
    let first = start();
    let running = begin(&folder, arguments, &first.url(path));
    wait_for_requests(&first);
    first.kill();
    let second = start();
    wait_for_requests(&second);
    interrupt(running)
}

/// Whether the requests that the first server did not complete failed for this reason.
fn has_error(json: &Value, part: &str) -> bool {
    let errors = json["errors"].as_object().expect("errors");
    errors.keys().any(|error| error.contains(part))
}

#[test]
fn connections_to_a_replaced_server_end_with_a_stateless_reset() {
    for (name, arguments) in [
        ("bench-replaced", &[][..]),
        ("bench-replaced-migrating", &["--migrate", "100ms"]),
    ] {
        let json = replaced(name, arguments, "/1kB");
        assert!(has_error(&json, "stateless reset"), "{json:#}");
        assert!(count(&json, "/requests/errored") <= 4, "{json:#}");
    }
}

#[test]
fn each_request_on_a_connection_of_its_own_reaches_the_server_that_replaces_another() {
    let json = replaced("bench-replaced-single", &["--mix", "resumed=1"], "/1kB");
    assert!(count(&json, "/handshakes/resumed") > 200, "{json:#}");
}

/// The second server does not have the keys of the first one's tickets. While they wait for a response, clients have a
/// ticket for their next connection.
#[test]
fn early_data_that_a_replaced_server_rejects_is_counted() {
    let json = replaced("bench-replaced-0rtt", &["--mix", "0rtt=1"], "/delay/20ms/1");
    assert!(
        count(&json, "/handshakes/early_data_accepted") > 0,
        "{json:#}"
    );
    assert!(
        count(&json, "/handshakes/early_data_rejected") > 0,
        "{json:#}"
    );
}

/// With `NO_ERROR` (RFC 9113 §8.1).
#[test]
fn http2_responses_that_are_reset_before_their_end_are_errors() {
    let server = Tls::start(&TlsOptions::default());
    let folder = folder("bench-reset");
    let arguments = ["bench", "--json", "-k", "--http", "2", "-n", "3"];
    let url = server.url("reset-without-error");
    let json = json(&lastbyte(&folder, &[&arguments[..], &[&url]].concat()));
    assert_eq!(count(&json, "/requests/errored"), 3, "{json:#}");
    assert!(has_error(&json, "before the end"), "{json:#}");
}

/// Closing a socket with unread data makes the kernel send a reset.
#[test]
fn rfc9112_9_5_responses_before_the_end_of_the_request_are_counted_by_their_status() {
    const RESPONSE: &[u8] =
        b"HTTP/1.1 413 Too Large\r\ncontent-length: 5\r\nconnection: close\r\n\r\nlarge";
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            // The client may have closed the connection already.
            let _ = stream
                .read_exact(&mut vec![0; 64 << 10])
                .and_then(|()| stream.write_all(RESPONSE))
                .and_then(|()| stream.shutdown(Shutdown::Write));
        }
    });
    let folder = folder("bench-early");
    std::fs::write(folder.join("body"), vec![b'x'; 8 << 20]).expect("room");
    let arguments = [
        "bench", "--json", "--http", "1.1", "-n", "20", "-c", "2", "-d", "body",
    ];
    let json = json(&lastbyte(&folder, &[&arguments[..], &[&url]].concat()));
    assert_eq!(count(&json, "/requests/errored"), 0, "{json:#}");
    assert_eq!(count(&json, "/statuses/4xx"), 20, "{json:#}");
}

#[test]
fn requests_without_a_response_time_out() {
    let place = Place::new("bench-timeouts");
    for http in VERSIONS {
        let arguments = ["--http", http, "-n", "4", "-c", "2", "--timeout", "200ms"];
        let output = place.bench(&[&arguments[..], &["--json"]].concat(), "/delay/60s/1");
        let json = json(&output);
        for key in ["/requests/timeout", "/requests/failed"] {
            assert_eq!(count(&json, key), 4, "HTTP/{http}: {key}: {json:#}");
        }
        assert_eq!(
            count(&json, "/requests/succeeded"),
            0,
            "HTTP/{http}: {json:#}"
        );
    }
}
