//! `lastbyte get` as people use it, and as they misuse it, against a server over loopback.

#![expect(
    clippy::disallowed_methods,
    reason = "what a command reads and writes is files"
)]

#[path = "get/curl.rs"]
mod curl;
#[path = "../../client/tests/suite/dns.rs"]
mod dns;
#[path = "get/documents.rs"]
mod documents;
#[path = "get/files.rs"]
mod files;
#[path = "../../client/tests/suite/raw.rs"]
mod raw;
#[path = "../../client/tests/suite/server.rs"]
mod server;
#[path = "../../client/tests/suite/tls.rs"]
mod tls;
#[path = "get/versions.rs"]
mod versions;

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use lastbyte_quic::endpoint::RetryPolicy;
use serde_json::Value;

use self::server::{Server, body};

/// A program, without what the environment would say to it.
fn alone(program: &str) -> Command {
    let mut command = Command::new(program);
    // For curl, which is run beside ours.
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command
            .env_remove(name)
            .env_remove(name.to_ascii_uppercase());
    }
    command.env_remove("SSLKEYLOGFILE");
    command
}

/// The command, without what the environment would say to it.
fn command() -> Command {
    let mut command = alone(env!("CARGO_BIN_EXE_lastbyte"));
    command.arg("get");
    command
}

/// A folder of its own, with the server's certificate.
struct Place {
    server: Server,
    folder: PathBuf,
}

impl Place {
    fn new(name: &str) -> Self {
        let server = Server::start("localhost", RetryPolicy::Never);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("ca.pem"), &server.certificate).expect("a file");
        Self { server, folder }
    }

    fn get(&self, arguments: &[&str]) -> Output {
        command()
            .args(["--cacert", "ca.pem"])
            .args(arguments)
            .current_dir(&self.folder)
            .output()
            .expect("the binary runs")
    }

    fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.join(name)).expect(name)
    }
}

fn get(arguments: &[&str]) -> Output {
    let output = command().args(arguments).output();
    output.expect("the binary runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

#[test]
fn bodies_are_written_to_the_requested_outputs() {
    let place = Place::new("get-outputs");
    let [a, b, c] = ["1000", "2000", "3000"].map(|path| place.url(path));
    let output = place.get(&[&a, "-o", "first", &b, "-O", &c]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(place.read("first"), body(1000));
    assert_eq!(place.read("2000"), body(2000));
    assert_eq!(output.stdout, body(3000));
    assert_eq!(stderr(&output), "", "no bar in a pipe");
    assert_eq!(place.server.connections(), 1);

    // Two to the terminal: one after the other.
    let output = place.get(&[&place.url("40000"), &place.url("50000")]);
    assert_eq!(output.stdout, [body(40_000), body(50_000)].concat());
}

#[test]
fn an_empty_body_creates_a_file_and_a_rejected_one_does_not() {
    let place = Place::new("get-empty");
    let output = place.get(&[&place.url("0"), "-o", "empty"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(place.read("empty"), b"");
    let output = place.get(&["-f", &place.url("no-such"), "-o", "none"]);
    assert_eq!(code(&output), 22, "{}", stderr(&output));
    assert!(!place.folder.join("none").exists());
}

#[test]
fn heads_are_printed_like_in_curl() {
    let place = Place::new("get-heads");
    let output = place.get(&["-I", &place.url("1000")]);
    let head = "HTTP/3 200 \r\ncontent-length: 1000\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), head);
    let output = place.get(&["-i", &place.url("3")]);
    assert_eq!(
        output.stdout,
        b"HTTP/3 200 \r\ncontent-length: 3\r\n\r\n\x00\x01\x02"
    );
    let output = place.get(&["-sv", "-H", "X-Mine: 1", "-H", "accept:", &place.url("1")]);
    let printed = stderr(&output);
    for expected in [
        "> GET /1 HTTP/3",
        "> x-mine: 1",
        "< HTTP/3 200",
        "< content-length: 1",
        "QUIC version 1",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
    assert!(!printed.contains("accept"), "{printed}");
}

#[test]
fn uploads_arrive() {
    let place = Place::new("get-uploads");
    fs::write(place.folder.join("large"), body(700_000)).expect("a file");
    fs::write(place.folder.join("lines"), "a\r\nb\n").expect("a file");
    let url = place.url("echo");
    let sent = |arguments: &[&str]| {
        let output = place.get(&[arguments, &[&url]].concat());
        assert_eq!(code(&output), 0, "{arguments:?}: {}", stderr(&output));
        output.stdout
    };
    assert_eq!(sent(&["-d", "x=1", "-d", "@lines"]), b"x=1&ab");
    assert_eq!(sent(&["--data-binary", "@lines"]), b"a\r\nb\n");
    assert_eq!(sent(&["-T", "large"]), body(700_000));
    let output = place.get(&["-T", "missing", &url]);
    assert_eq!(code(&output), 26, "{}", stderr(&output));
}

#[test]
fn exit_codes_are_those_of_curl() {
    let place = Place::new("get-errors");
    let one = place.url("1");
    let [close, reset, short, never, large] =
        ["close", "reset", "short", "never", "1000000"].map(|path| place.url(path));
    let cases: [(&[&str], i32); 23] = [
        (&["https://127.0.0.1:1/"], 7),
        (&["https://no-such-name.invalid/"], 6),
        (&[&close], 18),
        (&[&reset], 18),
        (&[&short], 18),
        (&["-f", &place.url("no-such")], 22),
        (&[&large, "-o", "/dev/full"], 23),
        (&[&large, "-o", "no/such/folder"], 23),
        (&["-m", "0.2", &never], 28),
        (&["https://a b/"], 3),
        (&["ftp://localhost/"], 1),
        (&["--http", "4", &one], 2),
        // The server does not speak it.
        (&["--http", "2", &one], 7),
        (&["--http", "3", "http://localhost/"], 1),
        (&["--http3", "--http2", &one], 7),
        (&["-I", "-d", "x", &one], 2),
        (&["-u", "me", &one], 2),
        (&["-r", "x", &one], 2),
        (&["-b", "a=b", &one], 2),
        (&["-w", "%{no_such}", &one], 2),
        (&["--cert", "/nonexistent", &one], 58),
        (&["--congestion", "none", &one], 2),
        (&["-O", &place.url("")], 2),
    ];
    for (arguments, expected) in cases {
        let output = place.get(arguments);
        let printed = stderr(&output);
        assert_eq!(code(&output), expected, "{arguments:?}: {printed}");
        assert!(printed.starts_with("error: "), "{arguments:?}: {printed}");
        let silent = place.get(&[&["-s"], arguments].concat());
        if expected != 2 {
            assert_eq!(stderr(&silent), "", "{arguments:?}");
        }
    }
    fs::write(place.folder.join("not.pem"), "nothing").expect("a file");
    for (arguments, expected) in [
        (&["--cacert", "/nonexistent", &one][..], 77),
        (
            &[
                "--cacert",
                concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
                &one,
            ],
            77,
        ),
        // No CA of the system has signed it.
        (&[&one], 60),
    ] {
        let output = get(arguments);
        assert_eq!(
            code(&output),
            expected,
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    // Bound and silent.
    let silent = lastbyte_udp::Socket::bind(
        "127.0.0.1:0".parse().expect("an address"),
        &lastbyte_udp::Options::default(),
    );
    let silent = silent.expect("a socket");
    let url = format!("https://{}/", silent.local_address());
    let output = place.get(&["--http3-only", "--connect-timeout", "300ms", &url]);
    assert_eq!(code(&output), 28, "{}", stderr(&output));
    // As in curl, limits of zero are none.
    let output = place.get(&["-m", "0", &one]);
    assert_eq!(output.stdout, body(1), "{}", stderr(&output));
}

#[test]
fn timings_are_printed_as_text_and_as_json() {
    let place = Place::new("get-timing");
    let (a, b) = (place.url("1000"), place.url("200000"));
    let words = [
        "-s",
        "--timing=json",
        "--0rtt",
        "--repeat",
        "3",
        "-o",
        "a",
        "-o",
        "b",
        &a,
        &b,
    ];
    let output = place.get(&words);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let fetches = json["fetches"].as_array().expect("an array");
    assert_eq!(fetches.len(), 6);
    let handshakes: Vec<_> = fetches.iter().map(|fetch| &fetch["handshake"]).collect();
    assert_eq!(handshakes, ["full", "full", "0rtt", "0rtt", "0rtt", "0rtt"]);
    for fetch in fetches {
        let of = |key: &str| fetch[key].as_f64();
        assert_eq!(fetch["status"], 200);
        let total = of("total_ms").expect("a total");
        assert!(
            of("first_byte_ms").expect("a first byte") <= total,
            "{fetch}"
        );
    }
    assert_eq!(fetches[0]["early"], false);
    assert_eq!(fetches[5]["early"], true);
    assert!(fetches[0]["connect_ms"].is_number());
    assert_eq!(fetches[1]["connect_ms"], Value::Null, "shared");
    assert_eq!(json["summary"]["handshakes"]["0rtt"], 2);

    let output = place.get(&["--timing", "-o", "a", &a]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.lines().next().expect("a head").contains("TTFB"),
        "{text}"
    );
    let row: Vec<&str> = text
        .lines()
        .nth(1)
        .expect("a row")
        .split_whitespace()
        .collect();
    assert_eq!(row[7..11], ["200", "3", "1000", "full"], "{text}");
}

#[test]
fn key_logs_and_qlogs_are_written_to_the_requested_files() {
    let place = Place::new("get-logs");
    let output = place.get(&[
        "--keylog",
        "keys",
        "--qlog",
        "qlogs",
        "-o",
        "x",
        &place.url("9"),
    ]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let keys = String::from_utf8(place.read("keys")).expect("text");
    assert!(keys.contains("CLIENT_TRAFFIC_SECRET_0 "), "{keys}");
    // An address of `localhost` without a server has a file whose name says so.
    let files = fs::read_dir(place.folder.join("qlogs")).expect("a folder");
    let files = files.map(|file| file.expect("a file").file_name());
    let mut names = files.map(|name| format!("qlogs/{}", name.to_string_lossy()));
    let name = names.find(|name| !name.ends_with("-failed.sqlog"));
    let events = place.read(&name.expect("the file of the transfer"));
    let text = String::from_utf8_lossy(&events);
    assert!(text.contains("packet_sent"), "{text}");
    // A second run has its own files, also of attempts that failed.
    let files = || {
        let files = fs::read_dir(place.folder.join("qlogs")).expect("a folder");
        let files = files.map(|file| file.expect("a file").path());
        let files = files.map(|path| (path.clone(), fs::read(&path).expect("a file")));
        files.collect::<std::collections::BTreeMap<_, _>>()
    };
    let first = files();
    let output = place.get(&["--qlog", "qlogs", "-o", "x", &place.url("999")]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let both = files();
    assert!(both.len() > first.len(), "{:?}", both.keys());
    for (path, content) in first {
        assert_eq!(both[&path], content, "{}", path.display());
    }
    // From the environment, behind what is there.
    let output = command()
        .args(["-k", "-o", "x", &place.url("9")])
        .current_dir(&place.folder)
        .env("SSLKEYLOGFILE", "keys")
        .output()
        .expect("the binary runs");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let more = String::from_utf8(place.read("keys")).expect("text");
    assert!(more.starts_with(&keys) && more.len() > keys.len());
}

#[test]
fn resolve_overrides_the_address_of_a_host() {
    let place = Place::new("get-resolve");
    let port = place.server.port;
    let mapping = format!("somewhere.invalid:{port}:127.0.0.1");
    let url = format!("https://somewhere.invalid:{port}/5");
    let output = place.get(&["--resolve", &mapping, &url]);
    // It is there, but is called otherwise.
    assert_eq!(code(&output), 60, "{}", stderr(&output));
    let output = get(&["-k", "--resolve", &mapping, &url]);
    assert_eq!(output.stdout, body(5), "{}", stderr(&output));
    let output = get(&["-k", "-6", "--resolve", &mapping, &url]);
    assert_eq!(code(&output), 6, "{}", stderr(&output));
}

/// A wrong name is not ignored where nothing depends on the file.
#[test]
fn a_file_of_authorities_that_cannot_be_read_is_an_error_beside_insecure() {
    let output = get(&["-k", "--cacert", "no-such.pem", "https://127.0.0.1:1/"]);
    assert_eq!(code(&output), 77, "{}", stderr(&output));
    let expected = "cannot read `no-such.pem`";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}
