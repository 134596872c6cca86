//! What the log says of connections, over TCP too, and which arm they are in.

use std::{fs, path::Path};

use serde_json::Value;

use super::{
    Serving, folder,
    serving::{certificate, command, free_port, lines},
    stderr,
};

/// The lines of the log, those over TCP first, by version.
fn log(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("log")).expect("a log");
    let lines = text.lines().map(serde_json::from_str);
    let mut lines: Vec<Value> = lines.collect::<Result<_, _>>().expect("JSON");
    lines.sort_by_key(|line| line["proto"].as_str().unwrap_or("QUIC").to_owned());
    lines
}

#[test]
fn connections_over_tcp_are_logged_without_an_arm() {
    let folder = folder("serve-tcp-log");
    let flags = ["--self-signed", "--experiment", "four-arms", "--log", "log"];
    let serving = Serving::start(&folder, &flags);
    for version in ["1.1", "2", "3"] {
        let got = serving.get(&folder, "/300000", &["--http", version, "-o", "/dev/null"]);
        assert!(got.status.success(), "{}", stderr(&got));
    }
    assert_eq!(serving.end().0, 0);
    let lines = log(&folder);
    for (line, proto) in lines.iter().zip(["HTTP/1.1", "HTTP/2"]) {
        assert_eq!(line["proto"], proto);
        for (key, value) in [
            ("transport", Value::from("tcp")),
            ("tls", "1.3".into()),
            ("handshake", "full".into()),
            ("requests", 1.into()),
            ("content_length", 300_000.into()),
            ("body-bytes", 300_000.into()),
            ("complete", true.into()),
        ] {
            assert_eq!(line[key], value, "{key}: {line}");
        }
        assert!(line["ttlb"].is_u64(), "{line}");
        assert!(line["tcp.bytes.acked"].as_u64() > Some(300_000), "{line}");
        assert!(line.get("arm").is_none() && line.get("num-packets.sent").is_none());
    }
    assert!(lines.len() == 3 && lines[2]["arm"].is_string(), "{lines:?}");
    assert!(lines[2].get("transport").is_none());
    // Over QUIC, the parts of the time add up to it, as simulated.
    let part = |name: &str| lines[2][format!("anatomy.{name}")].as_f64().expect(name);
    let parts = [
        "application",
        "flow-control",
        "window",
        "pacing",
        "idle",
        "queueing",
        "repair",
        "last-ack",
    ];
    let sum: f64 = parts.into_iter().map(part).sum();
    let ttlb = lines[2]["ttlb"].as_f64().expect("a time");
    assert!((sum - ttlb).abs() < 1.0, "{sum} {}", lines[2]);
    assert!(part("handshake") > 0.0);
}

/// By chance, it would be one in 4^7.
#[test]
fn a_client_keeps_its_arm_across_connections_and_a_restart() {
    let folder = folder("serve-sticky");
    let flags = [
        "--self-signed",
        "--experiment",
        "four-arms",
        "--sticky",
        "--log",
        "log",
    ];
    for _ in 0..2 {
        let serving = Serving::start(&folder, &flags);
        for _ in 0..4 {
            let got = serving.get(&folder, "/100", &["--http", "3", "-o", "/dev/null"]);
            assert!(got.status.success(), "{}", stderr(&got));
        }
        assert_eq!(serving.end().0, 0);
    }
    let lines = log(&folder);
    assert_eq!(lines.len(), 8);
    assert!(lines[0]["arm"].is_string());
    assert!(
        lines.iter().all(|line| line["arm"] == lines[0]["arm"]),
        "{lines:?}"
    );
}

#[test]
fn a_refused_quic_handshake_is_reported_as_such() {
    let folder = folder("serve-refused");
    let flags = ["--self-signed", "--max-connections", "1", "--drain", "1ms"];
    let serving = Serving::start(&folder, &flags);
    let mut client = serving.begin(&folder, "/delay/60s/1", &["-v", "--http", "3"]);
    client.until("* Request over connection");
    let got = serving.get(&folder, "/1", &["--http", "3"]);
    let printed = stderr(&got);
    assert_eq!(got.status.code(), Some(96), "{printed}");
    let why = "QUIC handshake failed: the server closed the connection: CONNECTION_REFUSED";
    assert!(printed.contains(why), "{printed}");
    // Without a version, TCP takes over.
    let got = serving.get(&folder, "/1", &[]);
    assert!(got.status.success(), "{}", stderr(&got));
    client.child.kill().expect("it was there");
    client.wait();
    assert_eq!(serving.end().0, 0);
}

/// The kernel's control of connections over TCP is that of the option; a later process sets its own on the sockets that it
/// takes over.
#[test]
fn the_congestion_control_of_tcp_is_that_of_the_configuration() {
    let folder = folder("serve-tcp-congestion");
    certificate(&folder, "a");
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let serving = |log: &str, flags: &[&str]| {
        let mut all = vec!["serve", "--listen", &listen, "--handover", "socket"];
        all.extend(["--cert", "a.pem", "--key", "a.key", "--workers", "2"]);
        all.extend(["--metrics", "127.0.0.1:0", "--log", log]);
        all.extend(flags);
        Serving::spawn(&mut command(&folder, &all))
    };
    let of_system = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    let of_system = of_system.expect("a name");
    // `reno` is in every kernel.
    let mut first = serving("first", &["--tcp-congestion", "reno"]);
    get_twice(&first, &folder);
    let second = serving("second", &[]);
    first.until("a later process has taken over");
    get_twice(&second, &folder);
    assert_eq!((first.process.wait().0, second.end().0), (Some(0), 0));
    for (log, expected) in [("first", "reno"), ("second", of_system.trim())] {
        let lines = lines(&folder.join(log));
        let used: Vec<_> = lines.iter().map(|it| &it["tcp.congestion"]).collect();
        assert_eq!(used, [expected; 2], "{log}");
    }
}

fn get_twice(serving: &Serving, folder: &Path) {
    for version in ["1.1", "2"] {
        let got = serving.get(folder, "/1000", &["--http", version, "-o", "/dev/null"]);
        assert!(got.status.success(), "{}", stderr(&got));
    }
}

#[test]
fn a_congestion_control_that_the_kernel_lacks_is_an_error_that_lists_those_that_it_has() {
    let folder = folder("serve-tcp-congestion-error");
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let available = available.expect("names").trim().replace(' ', ", ");
    for name in ["nosuch", "", "reno\n", "renorenorenorenoreno"] {
        for check in [&["--check"][..], &[]] {
            let flags = ["serve", "--self-signed", "--listen", "127.0.0.1:0"];
            let ended = command(&folder, &flags)
                .args(["--tcp-congestion", name])
                .args(check)
                .output();
            let ended = ended.expect("it runs");
            assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
            let error = stderr(&ended);
            assert!(error.contains("--tcp-congestion: `"), "{error}");
            let expected = format!("(expected one of {available})");
            assert!(error.contains(&expected), "{error}");
        }
    }
}
