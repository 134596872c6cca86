//! `lastbyte emulate` as people start it.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "files, threads, sockets and time are what tests of a program are about"
)]

#[path = "emulate/agreement.rs"]
mod agreement;
#[path = "emulate/tun.rs"]
mod tun;

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
};

use serde_json::Value;

fn lastbyte() -> Command {
    Command::new(env!("CARGO_BIN_EXE_lastbyte"))
}

/// A server or a relay. Gone with the test.
struct Running {
    child: Child,
    address: String,
}

impl Running {
    /// Starts it, and reads what it says until that ends with the address it listens on.
    fn start(arguments: &[&str], address_of: fn(&str) -> Option<&str>) -> Self {
        let mut child = lastbyte()
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut lines = stderr.lines().map(|line| line.expect("text"));
        let address = lines
            .find_map(|line| address_of(&line).map(str::to_owned))
            .expect("it says where it listens");
        // What else it says is of no interest, but it must be able to say it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// Shuts it down, and returns when it has ended.
    fn end(mut self) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.expect("kill runs").success());
        let status = self.child.wait().expect("ended");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn first_word(line: &str) -> Option<&str> {
    line.split(' ').next()
}

fn served(line: &str) -> Option<&str> {
    line.strip_prefix("listening on ")?.split(' ').next()
}

/// Over a path this long, whole round trips are distinguishable on any machine.
const RTT: f64 = 400.0;

#[test]
fn handshakes_take_the_round_trips_of_the_protocol() {
    let server = Running::start(
        &["serve", "--self-signed", "--listen", "127.0.0.1:0"],
        served,
    );
    let to = server.address.as_str();
    let path = ["--rate", "1gbit", "--rtt", "400ms"];
    let mut arguments = vec!["emulate", "--listen", "127.0.0.1:0", "--to", to];
    arguments.extend(path);
    let relay = Running::start(&arguments, first_word);
    let url = format!("https://{}/1k", relay.address);
    // The kind of handshake, the round trips to the end of the handshake, and to the first byte from the beginning.
    for (flag, expected) in [
        (None, [("full", 1, 2), ("resumed", 1, 2)]),
        (Some("--0rtt"), [("full", 1, 2), ("0rtt", 1, 1)]),
    ] {
        let output = lastbyte()
            .args([
                "get",
                "-k",
                "--timing=json",
                "--repeat",
                "2",
                "-o",
                "/dev/null",
            ])
            .args(flag)
            .arg(&url)
            .output()
            .expect("started");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let fetches = json["fetches"].as_array().expect("fetches");
        let found: Vec<(&str, u64, u64)> = fetches
            .iter()
            .map(|fetch| {
                let millis = |key: &str| fetch[key].as_f64().expect("a number");
                // At least this number of round trips, and less than one more.
                let trips = |millis: f64| (millis / RTT).floor() as u64;
                (
                    fetch["handshake"].as_str().expect("text"),
                    trips(millis("connect_ms")),
                    trips(millis("total_ms") - millis("body_ms")),
                )
            })
            .collect();
        assert_eq!(found, expected, "{json:#}");
    }
}

/// The error of a network file quotes a part of its line.
#[test]
fn an_error_quotes_at_most_200_characters_of_a_line() {
    let file = std::env::temp_dir().join(format!("lastbyte-{}-long.toml", std::process::id()));
    for text in [
        format!("rtt = {}", "x".repeat(100_000)),
        format!("rtt = \"{}\"", "x".repeat(100_000)),
        format!("{} = 1", "x".repeat(100_000)),
    ] {
        std::fs::write(&file, text).expect("written");
        let output = lastbyte()
            .args(["emulate", "--network"])
            .arg(&file)
            .output();
        let output = output.expect("started");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("xxx…xxx"), "{stderr}");
        let longest = stderr.split(|c| c != 'x' && c != '…').map(str::len).max();
        assert!(longest.is_some_and(|len| len < 210), "{stderr}");
        assert!(stderr.len() < 2500, "{stderr}");
    }
    std::fs::remove_file(file).expect("removed");
}

/// Without a file descriptor for its socket, a client is refused as at the limit of clients.
#[test]
fn refused_clients_are_reported_once_while_it_runs() {
    use std::net::UdpSocket;

    let script = format!(
        "ulimit -n 40; exec '{}' emulate --network vdsl --listen 127.0.0.1:0 --to 127.0.0.1:9",
        env!("CARGO_BIN_EXE_lastbyte")
    );
    let mut relay = Command::new("sh")
        .args(["-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let stderr = BufReader::new(relay.stderr.take().expect("piped"));
    let mut lines = stderr.lines().map(|line| line.expect("text"));
    let first = lines.next().expect("it says where it listens");
    let address = first_word(&first).expect("an address").to_owned();
    let clients: Vec<UdpSocket> = (0..80)
        .map(|_| UdpSocket::bind("127.0.0.1:0").expect("a socket"))
        .collect();
    let from_all = || {
        for client in &clients {
            client.send_to(b"x", &address).expect("sent");
        }
    };
    from_all();
    let warning = lines.next().expect("a warning");
    assert!(
        warning
            .starts_with("warning: packets of new clients are dropped: there are 4096, or no file"),
        "{warning}"
    );
    assert!(warning.contains("idle for 60s"), "{warning}");
    from_all();
    let id = relay.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status();
    assert!(sent.expect("kill runs").success());
    assert_eq!(lines.next(), None);
    assert!(relay.wait().expect("ended").success());
}

#[test]
fn relays_until_interrupted_and_then_prints_a_summary() {
    use std::net::Ipv4Addr;

    use lastbyte_udp::{Batch, Ecn, Options, Poller, Socket, Transmit};

    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Socket::bind(any, &Options::default()).expect("a socket");
    let client = Socket::bind(any, &Options::default()).expect("a socket");
    let mut relay = lastbyte()
        .args([
            "emulate",
            "--network",
            "vdsl",
            "--json",
            "--listen",
            "127.0.0.1:0",
            "--to",
        ])
        .arg(server.local_address().to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut printed = String::new();
    let mut stderr = BufReader::new(relay.stderr.take().expect("piped"));
    stderr.read_line(&mut printed).expect("a line");
    let address = printed.split(' ').next().expect("an address");
    let transmit = Transmit {
        remote: address.parse().expect("an address"),
        local: None,
        ecn: Ecn::NotEct,
        bytes: b"through",
        segment_len: 7,
    };
    client.send(&transmit).expect("sent");
    let mut poller = Poller::new().expect("a poller");
    poller.add(&server, 0).expect("added");
    let mut batch = Batch::new();
    while server.receive(&mut batch).expect("received") == 0 {
        poller.wait(None, &mut Vec::new()).expect("waited");
    }
    let received = batch.received().next().expect("a datagram");
    assert_eq!(*received.bytes, *b"through");
    let killed = Command::new("kill")
        .args(["-TERM", &relay.id().to_string()])
        .status()
        .expect("kill");
    assert!(killed.success());
    let mut out = String::new();
    let mut stdout = relay.stdout.take().expect("piped");
    stdout.read_to_string(&mut out).expect("read");
    assert!(relay.wait().expect("ended").success());
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["clients"], 1);
    assert_eq!(report["up"]["delivered"], 1);
    assert_eq!(report["down"]["packets"], 0);
    assert!(report["late_us"]["max"].as_f64().expect("a number") > 0.0);

    // Every key is on the page, as `key` or `up.key`.
    let page = include_str!("../../../docs/emulate.md");
    let of = |object: &Value| -> Vec<String> {
        let object = object.as_object().expect("an object");
        object.keys().cloned().collect()
    };
    let within_up = of(&report["up"]).into_iter().map(|key| format!("up.{key}"));
    assert_eq!(of(&report["up"]), of(&report["down"]));
    for key in of(&report)
        .into_iter()
        .chain(within_up)
        .chain(of(&report["late_us"]))
    {
        assert!(page.contains(&format!("`{key}`")), "{key}");
    }
}

#[test]
fn invalid_options_are_rejected_with_the_reason() {
    for (arguments, words) in [
        (vec!["--network", "nowhere"], "unknown network `nowhere`"),
        (
            vec!["--network", "dsl", "--network", "lte"],
            "more than one path",
        ),
        (
            vec!["--rate", "5mbit"],
            "--rate and --rate-trace require --rtt",
        ),
        (vec!["--to", "127.0.0.1"], "--to: `127.0.0.1`"),
        (vec!["--network", "dsl", "--loss", "2"], "loss"),
        (vec!["--tun", "198.19.0.0/15"], "such as 198.18.0.0/15"),
        (vec!["--tun", "198.18.0.0/16"], "such as 198.18.0.0/15"),
        (vec!["--tun", "--to", "127.0.0.1:4433"], "--to"),
        (vec!["--apart"], "--tun"),
    ] {
        let output = lastbyte()
            .arg("emulate")
            .args(&arguments)
            .output()
            .expect("started");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_network_with_cross_traffic_is_refused() {
    let file = format!("lastbyte-emulate-cross-{}.toml", std::process::id());
    let file = std::env::temp_dir().join(file);
    std::fs::write(&file, "rtt = \"20ms\"\ncross = [\"cubic\"]\n").expect("written");
    let output = lastbyte()
        .args(["emulate", "--network", file.to_str().expect("text")])
        .args(["--to", "127.0.0.1:4433"])
        .output()
        .expect("started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("has `cross` (expected none"), "{stderr}");
    std::fs::remove_file(&file).expect("removed");
}

/// The log of a server whose client closes as soon as all has come: it says that all of it arrived, and that the sender never
/// waited for the client to allow more.
#[test]
fn a_transfer_is_logged_as_complete_and_not_limited_by_flow_control() {
    let log = std::env::temp_dir().join(format!("lastbyte-emulate-{}.ndjson", std::process::id()));
    let name = log.to_str().expect("text");
    let mut server = Running::start(
        &[
            "serve",
            "--self-signed",
            "--listen",
            "127.0.0.1:0",
            "--log",
            name,
        ],
        served,
    );
    let to = server.address.as_str();
    let relay = Running::start(
        &[
            "emulate",
            "--network",
            "vdsl",
            "--listen",
            "127.0.0.1:0",
            "--to",
            to,
        ],
        first_word,
    );
    let url = format!("https://{}/3m", relay.address);
    let output = lastbyte()
        .args(["get", "-k", "-s", "-S", "-o", "/dev/null", &url])
        .output()
        .expect("started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    // The line is written when the last acknowledgment has come, half a round trip after the client's end.
    let line = loop {
        let text = std::fs::read_to_string(&log).expect("a log");
        if let Some((line, _)) = text.split_once('\n') {
            break line.to_owned();
        }
        assert!(
            server.child.try_wait().expect("waited").is_none(),
            "the server ended"
        );
        std::thread::yield_now();
    };
    std::fs::remove_file(&log).expect("removed");
    let line: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(line["complete"], true, "{line:#}");
    for key in ["data_blocked", "stream_data_blocked"] {
        assert_eq!(line[format!("num-frames-sent.{key}")], 0, "{line:#}");
    }
}
