//! `lastbyte bench` against a server over loopback, and against servers that fail.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "what tests of a command use: processes, files, sockets and time"
)]
#![expect(dead_code, reason = "shared with other tests")]

#[path = "bench/against.rs"]
mod against;
#[path = "bench/connection_log.rs"]
mod connection_log;
#[path = "bench/faults.rs"]
mod faults;
#[path = "bench/network.rs"]
mod network;
#[path = "bench/plot.rs"]
mod plot;
#[path = "../../client/tests/suite/raw.rs"]
mod raw;
#[path = "bench/refusals.rs"]
mod refusals;
#[path = "bench/schema.rs"]
mod schema;
#[path = "common/serving.rs"]
mod serving;
#[path = "bench/thresholds.rs"]
mod thresholds;
#[path = "../../client/tests/suite/tls.rs"]
mod tls;

use std::{
    collections::BTreeSet,
    fs,
    net::{TcpListener, UdpSocket},
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Instant,
};

use serde_json::Value;

use self::serving::{
    PATIENCE, Serving, certificate, command, folder, free_port, lastbyte, stderr, stdout,
};

const PAGE: &str = include_str!("../../../docs/bench.md");
const VERSIONS: [&str; 3] = ["3", "2", "1.1"];

/// A server, and a folder with its certificate.
struct Place {
    folder: PathBuf,
    server: Serving,
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = folder(name);
        certificate(&folder, "a");
        let server = Serving::start(&folder, &["--cert", "a.pem", "--key", "a.key"]);
        Self { folder, server }
    }

    fn bench(&self, arguments: &[&str], path: &str) -> Output {
        bench(&self.folder, arguments, &self.server.url(path))
    }

    fn json(&self, arguments: &[&str], path: &str) -> Value {
        let output = self.bench(&[&["--json"], arguments].concat(), path);
        assert!(output.status.success(), "{}", stderr(&output));
        json(&output)
    }
}

fn bench(folder: &Path, arguments: &[&str], url: &str) -> Output {
    let all = [&["bench", "--cacert", "a.pem"], arguments, &[url]].concat();
    lastbyte(folder, &all)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn count(json: &Value, pointer: &str) -> u64 {
    let value = json.pointer(pointer).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("no {pointer} in {json:#}"))
}

/// The numbers are those asked for, and those that the server has counted.
#[test]
fn every_version_sends_the_requests_asked_for() {
    let place = Place::new("bench-versions");
    for http in VERSIONS {
        let streams = if http == "1.1" { "1" } else { "5" };
        let arguments = ["--http", http, "-n", "100", "-c", "3", "-m", streams];
        let json = place.json(&arguments, "/1kB");
        for key in ["total", "started", "done", "succeeded"] {
            assert_eq!(
                count(&json, &format!("/requests/{key}")),
                100,
                "{http} {key}"
            );
        }
        for key in ["failed", "errored", "timeout", "unfinished", "not_started"] {
            assert_eq!(count(&json, &format!("/requests/{key}")), 0, "{http} {key}");
        }
        assert_eq!(count(&json, "/statuses/2xx"), 100, "{http}");
        assert_eq!(count(&json, "/traffic/data_bytes"), 100_000, "{http}");
        assert_eq!(count(&json, "/connections/established"), 3, "{http}");
        let headers = count(&json, "/traffic/header_bytes");
        let text = count(&json, "/traffic/header_text_bytes");
        let total = count(&json, "/traffic/total_bytes");
        let is_compressed = http != "1.1";
        // HTTP/1.1 has nothing but headers and bodies; the others have frames.
        assert_eq!(total > 100_000 + headers, is_compressed, "{http}: {total}");
        assert!(total >= 100_000 + headers, "{http}: {total}");
        assert_eq!(headers < text, is_compressed, "{http}: {headers} of {text}");
        assert!(headers > 0, "{http}");
        assert_eq!(json["errors"], serde_json::json!({}), "{http}");
    }
    let metrics = place.server.get_plain("/metrics").1;
    let served: u64 = metrics
        .lines()
        .filter(|line| line.starts_with("lastbyte_responses_total"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum();
    assert_eq!(served, 300, "{metrics}");
}

/// Several threads, URLs with weights, a body, and a status that is no success.
#[test]
fn requests_match_the_options() {
    let place = Place::new("bench-requests");
    let file = format!(
        "{} 3\n{} 1\n",
        place.server.url("/1kB"),
        place.server.url("/2kB")
    );
    fs::write(place.folder.join("urls"), file).expect("a file");
    for http in VERSIONS {
        let all = ["bench", "--cacert", "a.pem", "--json", "--http", http];
        let all = [&all[..], &["-n", "80", "-c", "4", "-t", "2", "-i", "urls"]].concat();
        let output = lastbyte(&place.folder, &all);
        assert!(output.status.success(), "{}", stderr(&output));
        let json = json(&output);
        assert_eq!(count(&json, "/traffic/data_bytes"), 100_000, "{http}");
        assert_eq!(json["generator_threads"].as_array().map(Vec::len), Some(2));
        // A run without a successful response is no success.
        let output = place.bench(&["--json", "--http", http, "-n", "5"], "/nothing-here");
        assert_eq!(output.status.code(), Some(1), "{http}");
        let missing = self::json(&output);
        assert_eq!(count(&missing, "/statuses/4xx"), 5, "{http}");
        assert_eq!(count(&missing, "/requests/failed"), 5, "{http}");
        assert_eq!(count(&missing, "/requests/errored"), 0, "{http}");
        // The server refuses POST.
        let refused = ["-n", "3", "-d", "urls", "--max-errors", "100%"];
        let post = place.json(&[&["--http", http], &refused[..]].concat(), "/1kB");
        assert_eq!(count(&post, "/requests/done"), 3, "{http}");
        assert_eq!(post["settings"]["method"], "POST");
    }
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let place = Place::new("bench-open");
    for http in VERSIONS {
        for arrivals in ["constant", "poisson"] {
            let load = ["--http", http, "-c", "4", "-n", "50", "--rate", "500"];
            let json = place.json(&[&load[..], &["--arrivals", arrivals]].concat(), "/1kB");
            assert_eq!(count(&json, "/requests/done"), 50, "{http}");
            // The last of 50 constant arrivals is due after 98 ms; random ones last about as long.
            let least = if arrivals == "constant" {
                98_000
            } else {
                30_000
            };
            assert!(count(&json, "/elapsed_us") >= least, "{http} {json:#}");
            assert_eq!(json["settings"]["arrivals"], arrivals);
        }
    }
    // Streams are opened as needed: as many as a second needs, and one over HTTP/1.1, with a note before the run.
    for (more, streams, note) in [
        (&["--rate", "30"][..], 30, false),
        (&["--rate", "5000"], 100, true),
        (&["--rate", "30", "-c", "4"], 8, false),
        (&["--rate", "30", "-m", "1"], 1, true),
        (&["--rate", "30", "--http", "1.1"], 1, true),
        (&["--rate", "30", "--mix", "new=1"], 1, true),
        (&[], 1, false),
    ] {
        let output = place.bench(&[&["-n", "3", "--json"], more].concat(), "/1kB");
        let json = json(&output);
        assert_eq!(count(&json, "/settings/streams"), streams, "{more:?}");
        let error = stderr(&output);
        assert_eq!(
            error.contains("on average; otherwise requests wait"),
            note,
            "{more:?}: {error}"
        );
    }
    let output = place.bench(&["-n", "100", "--rate", "1000"], "/1kB");
    let text = stdout(&output);
    assert!(
        text.contains("\nlatency:") && text.contains("\nservice time:"),
        "{text}"
    );
}

#[test]
fn a_duration_bounds_the_measured_time() {
    let place = Place::new("bench-duration");
    for http in VERSIONS {
        let arguments = [
            "--http",
            http,
            "-D",
            "200ms",
            "--warm-up-time",
            "100ms",
            "-c",
            "2",
        ];
        let json = place.json(&arguments, "/1kB");
        assert_eq!(count(&json, "/elapsed_us"), 200_000, "{http}");
        assert!(count(&json, "/requests/done") > 0, "{http}");
        assert_eq!(count(&json, "/requests/failed"), 0, "{http}");
        assert!(count(&json, "/requests/unfinished") <= 2, "{http}");
    }
}

/// A mix with a single way uses a connection for each request, whose handshakes are full or resumed.
#[test]
fn a_connection_for_each_request_measures_handshakes() {
    let place = Place::new("bench-handshakes");
    let handshakes = |json: &Value, key: &str| count(json, &format!("/handshakes/{key}"));
    for http in VERSIONS {
        for (mix, full) in [("new=1", 60), ("resumed=1", 5), ("0rtt=1", 5)] {
            if mix == "0rtt=1" && http != "3" {
                continue;
            }
            let all = ["--http", http, "-n", "60", "-c", "5", "--mix", mix];
            let json = place.json(&all, "/1kB");
            let context = format!("{http} {mix}: {json:#}");
            assert_eq!(count(&json, "/requests/succeeded"), 60, "{context}");
            assert_eq!(count(&json, "/requests/failed"), 0, "{context}");
            assert_eq!(count(&json, "/connections/established"), 60, "{context}");
            assert_eq!(count(&json, "/connections/lost"), 0, "{context}");
            assert_eq!(handshakes(&json, "full"), full, "{context}");
            assert_eq!(handshakes(&json, "resumed"), 60 - full, "{context}");
            let early = if mix == "0rtt=1" { 55 } else { 0 };
            assert_eq!(handshakes(&json, "early_data_accepted"), early, "{context}");
            assert_eq!(handshakes(&json, "early_data_rejected"), 0, "{context}");
            let rate = json["handshakes"]["per_second"].as_f64();
            // The first handshake starts with the run or later, and the last one ends before it.
            let least = 60e6 / count(&json, "/elapsed_us") as f64;
            assert!(
                rate.is_some_and(|rate| rate.is_finite() && rate >= 0.99 * least),
                "{context}"
            );
        }
    }
}

/// 100 connections change their port again and again while requests run, and no request is lost.
#[test]
fn connections_that_change_their_port_lose_no_request() {
    let place = Place::new("bench-migrate");
    // A slow machine needs longer for two moves of each connection.
    for duration in ["1200ms", "5s", "20s", "80s"] {
        let all = ["-c", "100", "-m", "2", "-D", duration, "--migrate", "250ms"];
        let json = place.json(&all, "/1kB");
        let context = format!("{:#}", json["migrations"]);
        assert_eq!(count(&json, "/migrations/failed"), 0, "{context}");
        assert_eq!(count(&json, "/migrations/requests_lost"), 0, "{context}");
        assert_eq!(count(&json, "/requests/failed"), 0, "{json:#}");
        assert_eq!(count(&json, "/connections/established"), 100, "{json:#}");
        assert_eq!(json["errors"], serde_json::json!({}));
        if count(&json, "/migrations/done") >= 200 {
            return;
        }
    }
    panic!("fewer than 200 moves in 80 s");
}

fn interrupt(child: &std::process::Child) {
    let id = child.id().to_string();
    let status = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(status.expect("kill runs").success());
}

/// The server sees the given addresses in turn: those of connections that begin between two moves.
#[cfg(target_os = "linux")]
#[test]
fn connections_move_to_the_given_addresses_in_turn() {
    let folder = folder("bench-migrate-to");
    certificate(&folder, "a");
    let flags = ["--cert", "a.pem", "--key", "a.key"];
    let log = ["--access-log", "access.ndjson"];
    let server = Serving::start(&folder, &[&flags[..], &log].concat());
    let to = ["--migrate", "200ms", "--migrate-to", "127.0.0.2,127.0.0.3"];
    let run = |more: &[&str]| {
        let all = [&["--json", "-D", "900ms"], more, &to].concat();
        let output = bench(&folder, &all, &server.url("/1kB"));
        assert!(output.status.success(), "{}", stderr(&output));
        json(&output)
    };
    let json = run(&["-c", "10", "-m", "2"]);
    let context = format!("{json:#}");
    assert!(count(&json, "/migrations/done") >= 10, "{context}");
    assert_eq!(count(&json, "/migrations/failed"), 0, "{context}");
    assert_eq!(count(&json, "/requests/failed"), 0, "{context}");
    let expected = serde_json::json!(["127.0.0.2", "127.0.0.3"]);
    assert_eq!(json["settings"]["migrate_to"], expected);
    let json = run(&["-c", "2", "--mix", "new=1"]);
    assert_eq!(count(&json, "/requests/failed"), 0, "{json:#}");
    server.end();
    let log = serving::lines(&folder.join("access.ndjson"));
    let remotes: BTreeSet<String> = log.iter().map(|line| line["remote"].to_string()).collect();
    let expected = ["\"127.0.0.1\"", "\"127.0.0.2\"", "\"127.0.0.3\""];
    assert_eq!(remotes, expected.map(str::to_owned).into());
}

/// The seed decides which requests get new connections; an open loop has the same ones.
#[test]
fn a_mix_uses_connections_by_weight() {
    let place = Place::new("bench-mix");
    for http in VERSIONS {
        let mix = if http == "3" {
            "new=1,0rtt=3,reused=6"
        } else {
            "new=1,resumed=3,reused=6"
        };
        let run = |more: &[&str]| {
            let all = ["--http", http, "-n", "300", "-c", "3", "--mix", mix];
            let json = place.json(&[&all[..], more].concat(), "/1kB");
            assert_eq!(count(&json, "/requests/succeeded"), 300, "{http}: {json:#}");
            let handshakes = ["full", "resumed", "early_data_accepted"]
                .map(|key| count(&json, &format!("/handshakes/{key}")));
            assert_eq!(
                handshakes[0] + handshakes[1],
                count(&json, "/connections/established"),
                "{http}: {json:#}"
            );
            handshakes
        };
        let first = run(&[]);
        // Of 300 requests, about 30 are on new connections with full handshakes, and about 90 on resumed ones.
        assert!((15..=50).contains(&first[0]), "{http}: {first:?}");
        assert!((65..=115).contains(&first[1]), "{http}: {first:?}");
        assert_eq!(first[2], if http == "3" { first[1] } else { 0 }, "{http}");
        assert_eq!(run(&[]), first, "{http}");
        assert_ne!(run(&["--seed", "2"]), first, "{http}");
    }
}

/// A server that refuses 0-RTT, or gives no tickets at all, still answers every request.
#[test]
fn servers_that_reject_0rtt_or_sessions_answer_every_request() {
    let folder = folder("bench-no-0rtt");
    certificate(&folder, "a");
    let options = ["--cert", "a.pem", "--key", "a.key", "--no-0rtt"];
    let server = Serving::start(&folder, &options);
    let all = ["-n", "20", "-c", "2", "--mix", "0rtt=1", "--json"];
    let output = bench(&folder, &all, &server.url("/1kB"));
    assert!(output.status.success(), "{}", stderr(&output));
    let json = json(&output);
    assert_eq!(count(&json, "/requests/succeeded"), 20, "{json:#}");
    assert_eq!(count(&json, "/handshakes/resumed"), 18, "{json:#}");
    let early = count(&json, "/handshakes/early_data_accepted");
    assert_eq!(early, 0, "{json:#}");
}

/// A failure that ends a run at once: its exit code, and the line on stderr.
fn refused(folder: &Path, arguments: &[&str], url: &str) -> (i32, String) {
    let start = Instant::now();
    let output = bench(folder, arguments, url);
    assert!(start.elapsed() < PATIENCE, "{arguments:?}");
    let code = output.status.code().expect("an exit code");
    (code, stderr(&output))
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error() {
    let folder = folder("bench-unreachable");
    certificate(&folder, "a");
    let closed = format!("https://127.0.0.1:{}/", free_port());
    // These accept connections or datagrams, and never answer.
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    for http in VERSIONS {
        let many = ["--http", http, "-n", "20", "-c", "3"];
        let (code, error) = refused(&folder, &many, &closed);
        assert_eq!(code, 1, "{http}: {error}");
        assert!(
            error.contains("no response: cannot connect to 127.0.0.1:"),
            "{error}"
        );
        assert!(error.contains("refused"), "{http}: {error}");
        let silent = match http {
            "3" => udp.local_addr(),
            _ => tcp.local_addr(),
        };
        let silent = format!("https://{}/", silent.expect("an address"));
        let limit = ["--http", http, "--connect-timeout", "300ms"];
        let (code, error) = refused(&folder, &limit, &silent);
        assert_eq!(code, 1, "{http}: {error}");
        assert!(error.contains("timed out after 300 ms"), "{http}: {error}");
    }
    let (code, error) = refused(&folder, &[], "https://name.invalid/");
    assert_eq!(code, 1, "{error}");
    assert!(
        error.contains("could not resolve host `name.invalid`"),
        "{error}"
    );
}

#[test]
fn a_certificate_that_is_not_trusted_is_an_error() {
    let place = Place::new("bench-certificate");
    certificate(&place.folder, "b");
    for http in VERSIONS {
        let url = place.server.url("/1kB");
        let all = [
            "bench", "--cacert", "b.pem", "--http", http, "-n", "9", &url,
        ];
        let output = lastbyte(&place.folder, &all);
        assert_eq!(output.status.code(), Some(1), "{http}");
        let error = stderr(&output);
        assert!(
            error.contains("certificate is not trusted"),
            "{http}: {error}"
        );
        let table = stdout(&output);
        assert!(
            table.contains("9 failed, 9 errored, 0 timeout"),
            "{http}: {table}"
        );
        let all = ["bench", "-k", "--http", http, "-n", "9", &url];
        assert!(lastbyte(&place.folder, &all).status.success(), "{http}");
    }
}

/// The requests on connections to a server that dies are counted, and the run ends.
#[test]
fn a_server_that_is_killed_ends_a_run() {
    for http in VERSIONS {
        let Place { folder, server } = Place::new(&format!("bench-killed-{http}"));
        let url = server.url("/1kB");
        let all = ["bench", "--cacert", "a.pem", "--http", http, "--json"];
        let all = [
            &all[..],
            &["-n", "1000000000", "-c", "2", "--timeout", "1s", &url],
        ]
        .concat();
        let running = command(&folder, &all)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        wait_for_requests(&server);
        server.kill();
        let output = running.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{http}: {}", stderr(&output));
        let json = json(&output);
        assert!(count(&json, "/requests/done") > 0, "{http}");
        let (failed, done) = (
            count(&json, "/requests/failed"),
            count(&json, "/requests/done"),
        );
        assert_eq!(failed + done, 1_000_000_000, "{http}: {json:#}");
        assert_eq!(failed, count(&json, "/requests/errored"), "{http}");
        assert!(
            !json["errors"].as_object().expect("errors").is_empty(),
            "{http}"
        );
    }
}

fn wait_for_requests(server: &Serving) {
    let start = Instant::now();
    loop {
        let (_, metrics) = server.get_plain("/metrics");
        let mut counts = metrics
            .lines()
            .filter(|line| line.starts_with("lastbyte_responses_total"))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        if counts.any(|count| count > 100) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{metrics}");
    }
}

/// Ctrl-C prints what was measured so far.
#[test]
fn an_interrupted_run_prints_its_results() {
    for http in VERSIONS {
        let place = Place::new(&format!("bench-interrupted-{http}"));
        let url = place.server.url("/1kB");
        let all = [
            "bench", "--cacert", "a.pem", "--http", http, "-D", "1h", &url,
        ];
        let child = command(&place.folder, &all)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        wait_for_requests(&place.server);
        interrupt(&child);
        let output = child.wait_with_output().expect("it ends");
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(130), "{http}: {text}");
        assert!(text.starts_with("interrupted after "), "{http}: {text}");
        assert!(text.contains(" succeeded, 0 failed"), "{http}: {text}");
    }
}

#[test]
fn options_that_contradict_each_other_are_usage_errors() {
    let folder = folder("bench-usage");
    certificate(&folder, "a");
    fs::write(folder.join("urls"), "https://a.example/ 0\n").expect("a file");
    let url = "https://localhost:1/";
    let cases: &[(&[&str], &str)] = &[
        (&["-c", "0"], "expected a whole number from 1 to 100000"),
        (&["--rate", "0"], "expected requests per second"),
        (&["--rate", "x"], "expected requests per second"),
        (&["-D", "10"], "`10s`"),
        (&["-n", "5", "-D", "1s"], "cannot be used with"),
        (&["--warm-up-time", "1s"], "--duration"),
        (&["--warm-up-time", "1s", "-n", "5"], "--requests"),
        (&["--http", "1.1", "-m", "2"], "expected `-m 1`"),
        (
            &["-t", "2"],
            "more threads than connections: 2 (expected at most 1)",
        ),
        (&["https://localhost:2/"], "URL of another origin"),
        (&["-H", "nonsense"], "expected `name: value`"),
        (&["-i", "absent"], "cannot read `absent`"),
        (&["-i", "urls"], "`urls`, line 1: invalid weight `0`"),
        (&["-d", "absent"], "cannot read `absent`"),
        (
            &["--http", "2", "--mix", "0rtt=1"],
            "0-RTT is not supported over HTTP/2 (expected HTTP/3)",
        ),
        (
            &["-d", "urls", "--mix", "0rtt=1,reused=1"],
            "a POST request cannot be sent in 0-RTT",
        ),
        (
            &["--http", "2", "--migrate", "1s"],
            "connections of HTTP/2 cannot move to another port (expected HTTP/3)",
        ),
        (&["--migrate", "1ms"], "expected at least 100 ms"),
        (
            &["--migrate", "1s", "--migrate-to", "::1"],
            "connections cannot move to `::1` (expected an address of the same family as 127.0.0.1)",
        ),
        (
            &["--migrate", "1s", "--migrate-to", "192.0.2.1"],
            "expected an address of this machine",
        ),
        (&["--migrate-to", "127.0.0.2"], "--migrate <INTERVAL>"),
        (
            &["--migrate", "1s", "--network", "lte"],
            "connections over model paths cannot move to another port",
        ),
        (&["-X", "PUT"], "unexpected argument '-X' found"),
        (&["--mix", "new=1", "-m", "2"], "expected `-m 1`"),
        (&["--mix", "old=1"], "expected `new`, `resumed`, `0rtt`"),
        (
            &["--no-keepalive"],
            "`--no-keepalive` is not an option (expected --mix new=1: a connection for each request)",
        ),
        (
            &["--resume"],
            "`--resume` is not an option (expected --mix resumed=1",
        ),
        (
            &["--0rtt"],
            "`--0rtt` is not an option (expected --mix 0rtt=1",
        ),
        (&["--compare", "a", "b"], "cannot be used with"),
    ];
    for (arguments, expected) in cases {
        let (code, error) = refused(&folder, arguments, url);
        assert_eq!(code, 2, "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let output = lastbyte(&folder, &["bench", "--compare", "urls", "urls"]);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    let expected = "`urls` is not a result of `lastbyte bench --json`: ";
    assert!(error.contains(expected), "{error}");
    let output = lastbyte(&folder, &["bench", "--compare", "urls,absent", "urls"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let output = lastbyte(&folder, &["bench", "--compare", "urls"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let (code, error) = refused(&folder, &[], "http://localhost:1/");
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("cannot be requested over HTTP/3"), "{error}");
}

// ---- docs/bench.md ---------------------------------------------------------------------------------------------------

fn keys_of(prefix: &str, value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) if prefix != "errors" => {
            for (name, value) in fields {
                let joint = if prefix.is_empty() { "" } else { "." };
                keys_of(&format!("{prefix}{joint}{name}"), value, keys);
            }
        }
        Value::Array(items) if items.first().is_some_and(Value::is_object) => {
            keys_of(&format!("{prefix}[]"), &items[0], keys);
        }
        _ => {
            keys.insert(prefix.to_owned());
        }
    }
}

/// Each key of the JSON is on the page, and no other; CSV has those with a single value.
#[test]
fn the_page_names_the_keys_of_the_json() {
    let place = Place::new("bench-keys");
    let mut keys = BTreeSet::new();
    let arguments = ["-n", "10", "--network", "lte"];
    keys_of("", &place.json(&arguments, "/1kB"), &mut keys);
    let (_, section) = PAGE.split_once("\n## JSON\n").expect("a section");
    let of_page: BTreeSet<String> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect();
    assert_eq!(keys, of_page);
}

/// Every example of the page and of the help runs.
#[test]
fn every_example_runs() {
    let place = Place::new("bench-examples");
    let help = stdout(&lastbyte(Path::new("."), &["bench", "--help"]));
    let (_, help) = help.split_once("Examples").expect("examples");
    let page: String = PAGE
        .split_inclusive('\n')
        .filter(|line| line.starts_with("    lastbyte bench "))
        .collect();
    let text = [page.as_str(), help].concat().replace("\\\n", " ");
    let mut count = 0;
    for line in text.lines() {
        let Some(words) = line.trim().strip_prefix("lastbyte bench ") else {
            continue;
        };
        let origin = place.server.url("/");
        let words = words
            .replace("https://localhost:4433/", &origin)
            .replace("https://localhost:4434/", &origin)
            .replace("-D 10s", "-D 200ms")
            .replace("-D 2s", "-D 200ms")
            .replace("--warm-up-time 2s", "--warm-up-time 50ms")
            // This machine may be busy.
            .replace("--max-p99 50ms", "--max-p99 1h")
            .replace("-n 10000", "-n 200");
        let (words, file) = words.split_once(" > ").unwrap_or((&words, ""));
        let words: Vec<&str> = ["bench"]
            .into_iter()
            .chain(words.split_whitespace())
            .collect();
        let output = lastbyte(&place.folder, &words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        assert!(stdout(&output).contains("requests"), "{words:?}");
        if !file.is_empty() {
            fs::write(place.folder.join(file), &output.stdout).expect("a file");
        }
        count += 1;
    }
    assert!(count >= 17, "{count}");
}

/// The lines of the final table that the page explains are those that are printed.
#[test]
fn the_page_shows_the_table_as_it_is_printed() {
    let place = Place::new("bench-table");
    let text = stdout(&place.bench(&["-n", "100", "-c", "2"], "/1kB"));
    let (_, shown) = PAGE.split_once("```text\n").expect("an example");
    let (shown, _) = shown.split_once("```").expect("its end");
    // Numbers differ; the words do not.
    let words = |text: &str| {
        let is_word = |word: &&str| !word.contains(|c: char| c.is_ascii_digit()) && *word != "–";
        let words = text.split_whitespace().filter(is_word);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let names = |text: &str| words(&text.replace(['(', ')', ','], " "));
    assert_eq!(names(&text), names(shown));
}
