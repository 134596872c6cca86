//! What is logged and counted of responses that come from an upstream.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    thread,
};

use serde_json::Value;

use super::{Serving, folder, serving::lines, stderr};

/// Answers each request with ten bytes, `/cut` with half of them, and `/slow` with half of them as long as its client waits.
fn upstream() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let accept = move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let lines = BufReader::new(stream.try_clone().expect("a handle")).lines();
            let mut path = String::new();
            for line in lines.map_while(Result::ok) {
                if let Some(rest) = line.strip_prefix("GET ") {
                    rest.split(' ')
                        .next()
                        .unwrap_or_default()
                        .clone_into(&mut path);
                }
                if !line.is_empty() {
                    continue;
                }
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n01234");
                if path == "/cut" {
                    break;
                }
                if path == "/slow" {
                    let _ = stream.read_to_end(&mut Vec::new());
                    break;
                }
                let _ = stream.write_all(b"56789");
            }
        }
    };
    thread::spawn(accept);
    format!("http://{address}")
}

#[test]
fn complete_responses_of_an_upstream_are_logged_as_complete() {
    let folder = folder("serve-proxied");
    let url = upstream();
    let flags = [
        "--self-signed",
        "--proxy",
        &url,
        "--access-log",
        "access",
        "--log",
        "log",
    ];
    let serving = Serving::start(&folder, &flags);
    for version in ["1.1", "2"] {
        for path in ["/a", "/b"] {
            let got = serving.get(&folder, path, &["--http", version]);
            assert_eq!(got.stdout, b"0123456789", "{}", stderr(&got));
        }
    }
    let cut_off = "lastbyte_responses_cut_off_total{transport=\"tcp\"}";
    assert_eq!(serving.metric(cut_off), 0);
    let got = serving.get(&folder, "/cut", &["--http", "1.1"]);
    assert_eq!(got.status.code(), Some(18), "{}", stderr(&got));
    serving.wait_for(cut_off, |count| count == 1);
    assert_eq!(serving.end().0, 0);
    let access = lines(&folder.join("access"));
    assert_eq!(access.len(), 5);
    for line in &access {
        let is_whole = line["path"] != "/cut";
        assert_eq!(line["complete"], is_whole, "{line}");
        let delivered = if is_whole { 10 } else { 5 };
        assert_eq!(line["bytes"], delivered, "{line}");
    }
    let log = lines(&folder.join("log"));
    assert_eq!(log.len(), 5);
    let whole = log.iter().filter(|line| line["complete"] == true);
    assert_eq!(whole.clone().count(), 4, "{log:?}");
    for line in whole {
        assert!(line["ttlb"].is_u64(), "{line}");
        assert_eq!(line["body-bytes"], Value::from(10), "{line}");
    }
}

/// Those of a client that leaves count in none.
#[test]
fn responses_that_an_upstream_breaks_off_are_counted_alike_in_all_versions() {
    let folder = folder("serve-cut-off");
    let url = upstream();
    let flags = ["--self-signed", "--proxy", &url, "--access-log", "access"];
    let serving = Serving::start(&folder, &flags);
    let versions = ["1.1", "2", "3"];
    let counts = || {
        ["tcp", "quic"].map(|transport| {
            let name = format!("lastbyte_responses_cut_off_total{{transport=\"{transport}\"}}");
            serving.metric(&name)
        })
    };
    let mut requests = 0;
    for (path, code, expected) in [("/slow", 28, [0, 0]), ("/cut", 18, [2, 1])] {
        for version in versions {
            let got = serving.get(&folder, path, &["--http", version, "-m", "1"]);
            assert_eq!(got.status.code(), Some(code), "{version}: {}", stderr(&got));
            requests += 1;
        }
        // The line of a request is written once it was counted.
        let began = std::time::Instant::now();
        while lines(&folder.join("access")).len() < requests {
            assert!(
                began.elapsed() < super::serving::PATIENCE,
                "lines of {path}"
            );
        }
        assert_eq!(counts(), expected, "{path}");
    }
    assert_eq!(serving.end().0, 0);
}
