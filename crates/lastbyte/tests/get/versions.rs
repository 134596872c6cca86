//! The version of HTTP, and the server contacted: over TLS and TCP as over QUIC.

use std::process::Output;

use serde_json::Value;

use super::{
    Place, code, command,
    dns::{A, Dns, DnsBehavior, HTTPS, https},
    get,
    raw::body,
    stderr,
    tls::{Tls, TlsOptions},
};

fn trusting(server: &Tls, name: &str, words: &[&str]) -> Output {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("ca.pem"), &server.certificate).expect("a file");
    command()
        .args(["--cacert", "ca.pem"])
        .args(words)
        .current_dir(&folder)
        .output()
        .expect("the binary runs")
}

#[test]
fn each_http_version_is_used_and_reported() {
    let server = Tls::start(&TlsOptions::default());
    let url = server.url("5000");
    for (flag, version) in [
        (&["--http", "2"][..], "2"),
        (&["--http2"], "2"),
        (&["--http", "1.1"], "1.1"),
        (&["--http1.1"], "1.1"),
        (&[], "2"),
    ] {
        let output_flags = [
            "-v",
            "-o",
            "body",
            "-w",
            "%{http_version} %{http_code}",
            &url,
        ];
        let output = trusting(&server, "get-versions", &[flag, &output_flags].concat());
        assert_eq!(code(&output), 0, "{flag:?}: {}", stderr(&output));
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            format!("{version} 200")
        );
        let printed = stderr(&output);
        assert!(
            printed.contains(&format!("> GET /5000 HTTP/{version}")),
            "{printed}"
        );
        assert!(
            printed.contains(&format!("< HTTP/{version} 200")),
            "{printed}"
        );
        assert!(printed.contains("TLS 1.3 with "), "{printed}");
    }
    for (flags, expected) in [
        (&["--tls-max", "1.2"][..], "TLS 1.2 with "),
        (&["--tls-max", "1.3"], "TLS 1.3 with "),
    ] {
        let words = [flags, &["-v", "-o", "body", &url]].concat();
        let output = trusting(&server, "get-versions", &words);
        assert!(
            stderr(&output).contains(expected),
            "{flags:?}: {}",
            stderr(&output)
        );
    }
    for wrong in [
        &["--tls-max", "1.2", "--http", "3"][..],
        &["--tls-max", "1.1"],
    ] {
        let words = [wrong, &[&url]].concat();
        let output = trusting(&server, "get-versions", &words);
        assert_eq!(code(&output), 2, "{wrong:?}: {}", stderr(&output));
    }
    let output = trusting(&server, "get-versions", &["--http3-only", &url]);
    assert_eq!(code(&output), 7, "{}", stderr(&output));

    let words = [
        "--timing=json",
        "--http",
        "2",
        "--repeat",
        "3",
        "-o",
        "x",
        &url,
    ];
    let output = trusting(&server, "get-versions", &words);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((server.connections(), server.resumed()), (10, 2));
    for (fetch, handshake) in json["fetches"]
        .as_array()
        .expect("rows")
        .iter()
        .zip(["full", "resumed", "resumed"])
    {
        let of = |key: &str| {
            fetch[key]
                .as_f64()
                .unwrap_or_else(|| panic!("{key}: {fetch}"))
        };
        assert_eq!(fetch["http_version"], "2");
        assert_eq!(fetch["handshake"], handshake);
        let sum = of("tcp_ms") + of("tls_ms");
        assert!((sum - of("connect_ms")).abs() < 0.01, "{fetch}");
        // `localhost` needs no query.
        assert_eq!(fetch["lookup_a_ms"], Value::Null, "{fetch}");
        assert!(of("first_byte_ms") <= of("total_ms"), "{fetch}");
    }
}

#[test]
fn keys_are_pinned_over_quic_and_tcp() {
    let server = Tls::start(&TlsOptions::default());
    let url = server.url("7");
    let wrong = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    for (words, expected) in [
        (&["--pin-sha256", &server.pin][..], 0),
        (&["--pin-sha256", wrong], 90),
        (&["-k", "--pin-sha256", wrong], 90),
    ] {
        let words = [words, &["--http", "2", &url]].concat();
        let output = command()
            .args(["-k"])
            .args(words.iter().filter(|word| **word != "-k"))
            .output()
            .expect("the binary runs");
        assert_eq!(code(&output), expected, "{words:?}: {}", stderr(&output));
    }
    let place = Place::new("get-pins");
    let url = place.url("7");
    let output = place.get(&["--http", "3", "--pin-sha256", wrong, &url]);
    let printed = stderr(&output);
    assert_eq!(code(&output), 90, "{printed}");
    let right = printed
        .split("sha256//")
        .nth(1)
        .and_then(|rest| rest.split('`').next());
    let output = place.get(&[
        "--http",
        "3",
        "--pin-sha256",
        right.expect("it says which"),
        &url,
    ]);
    assert_eq!(output.stdout, body(7), "{}", stderr(&output));
}

#[test]
fn the_client_certificate_is_sent() {
    let own = rcgen::generate_simple_self_signed(vec!["client".to_owned()]).expect("a certificate");
    let server = Tls::start(&TlsOptions {
        clients: Some(own.cert.pem()),
        ..TlsOptions::default()
    });
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("get-identity");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (certificate, key) = (own.cert.pem(), own.signing_key.serialize_pem());
    std::fs::write(folder.join("cert.pem"), &certificate).expect("a file");
    std::fs::write(folder.join("key.pem"), &key).expect("a file");
    std::fs::write(folder.join("both.pem"), certificate + &key).expect("a file");
    let url = server.url("7");
    for (words, expected) in [
        (&["--cert", "cert.pem", "--key", "key.pem"][..], 0),
        (&["-E", "both.pem"], 0),
        (&["--cert", "cert.pem"], 58),
        (&["--cert", "key.pem", "--key", "key.pem"], 58),
        (&["--cert", "cert.pem", "--key", "missing"], 58),
        (&["--key", "key.pem"], 2),
    ] {
        let words = [words, &["--http2", &url]].concat();
        let output = trusting(&server, "get-identity", &words);
        assert_eq!(code(&output), expected, "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn refused_addresses_are_logged() {
    let place = Place::new("get-refused");
    let address = format!("localhost:{}:[::1],127.0.0.1", place.server.port);
    let output = place.get(&["-v", "--resolve", &address, &place.url("9")]);
    assert_eq!(output.stdout, body(9));
    let printed = stderr(&output);
    assert!(
        printed.contains("* Connection 0: no QUIC server at [::1]:"),
        "{printed}"
    );
    assert!(
        printed.contains("* Connection 1: QUIC version 1"),
        "{printed}"
    );
}

/// The qlog file of a lost race of addresses is not taken for that of the transfer.
#[test]
fn the_qlog_file_of_a_refused_address_is_named_failed() {
    let place = Place::new("get-refused-qlog");
    let address = format!("localhost:{}:[::1],127.0.0.1", place.server.port);
    let output = place.get(&["--qlog", "q", "--resolve", &address, &place.url("9")]);
    assert_eq!(output.stdout, body(9), "{}", stderr(&output));
    let files = std::fs::read_dir(place.folder.join("q")).expect("a folder");
    let mut names: Vec<String> = files
        .map(|file| {
            file.expect("a file")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    assert_eq!(names, ["get-0-0-failed.sqlog", "get-0-1.sqlog"]);
    // `plot` draws the transfer only, and says so.
    let plot = |file: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lastbyte"));
        let output = command
            .args(["plot", file])
            .current_dir(&place.folder)
            .output();
        output.expect("the binary runs")
    };
    let output = plot("q");
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(
        printed.contains("not drawn: `q/get-0-0-failed.sqlog`: the connection was not established"),
        "{printed}"
    );
    assert!(printed.ends_with("wrote plot.html\n"), "{printed}");
    let output = plot("q/get-0-0-failed.sqlog");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("was not established"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn plain_http_is_used_on_request() {
    let server = super::raw::ScriptedServer::start();
    let output = get(&["-v", &server.url("9")]);
    assert_eq!(output.stdout, body(9));
    assert_eq!(server.heads().len(), 1);
    assert!(
        stderr(&output).contains("clear text, HTTP/1.1"),
        "{}",
        stderr(&output)
    );
}

/// As curl does; `-i` does not print them, as docs/get.md says.
#[test]
fn trailers_are_printed_by_verbose() {
    let server = super::raw::ScriptedServer::start();
    let url = server.url("chunked");
    let output = get(&["-v", &url]);
    let printed = stderr(&output);
    assert!(printed.contains("< x-sum: 11"), "{printed}");
    let output = get(&["-i", &url]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.ends_with("\r\n\r\nhello world"), "{printed}");
}

/// Runs a command until it reports an HTTPS record, ten times at most: `get` waits 50 ms for the record after the addresses
/// (RFC 8305 §3), and on a busy machine the answer may take longer.
fn until_in_time(run: &dyn Fn() -> Output) -> Output {
    let mut output = run();
    for _ in 1..10 {
        if stderr(&output).contains("* HTTPS record of ") {
            break;
        }
        output = run();
    }
    output
}

/// The HTTPS record of a host says where it is served; `get` reports and times it.
#[test]
fn https_records_are_queried_and_reported() {
    let place = Place::new("get-https-record");
    let port = place.server.port.to_be_bytes();
    let record = https(1, ".", &[(1, b"\x02h3"), (3, &port), (4, &[127, 0, 0, 1])]);
    let owner = "_1._https.www.lastbyte.example";
    let records = vec![
        (owner, HTTPS, record),
        ("www.lastbyte.example", A, vec![127, 0, 0, 1]),
    ];
    let ask = |mood: DnsBehavior| {
        let dns = Dns::start(mood, records.clone());
        let server = dns.address.to_string();
        // The certificate is for another name: so `-k`.
        let output = get(&[
            "-k",
            "-v",
            "--timing=json",
            "--repeat",
            "2",
            "--dns-servers",
            &server,
            "-o",
            "/dev/null",
            "https://www.lastbyte.example:1/700",
        ]);
        assert!(dns.queries().contains(&(owner.to_owned(), HTTPS)));
        output
    };
    for mood in [DnsBehavior::Normal, DnsBehavior::Truncating] {
        let port = place.server.port;
        let expected =
            format!("* HTTPS record of www.lastbyte.example: h3, http/1.1 at {owner}:{port}\n");
        let output = until_in_time(&|| ask(mood));
        let printed = stderr(&output);
        assert_eq!(code(&output), 0, "{printed}");
        assert!(printed.contains(&expected), "{printed}");
        assert!(
            printed.contains("* Host www.lastbyte.example: 127.0.0.1\n"),
            "{printed}"
        );
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let fetch = &json["fetches"][0];
        let of = |key: &str| {
            fetch[key]
                .as_f64()
                .unwrap_or_else(|| panic!("{key}: {fetch}"))
        };
        assert!(of("lookup_https_ms") <= of("lookup_ms"), "{fetch}");
        assert!(of("lookup_a_ms") <= of("lookup_ms"), "{fetch}");
        for name in ["a", "aaaa", "https", "connect", "ttfb", "total"] {
            let summary = &json["summary"][name];
            let of = |key: &str| summary[key].as_f64();
            assert!(
                of("min_ms").is_some() && of("min_ms") <= of("max_ms"),
                "{name}: {json}"
            );
        }
    }
    // Without the record, the URL's own port is used, on which no server listens.
    for (mood, expected) in [
        (DnsBehavior::Silent, None),
        (
            DnsBehavior::Refusing,
            Some("the DNS server returned REFUSED"),
        ),
        (
            DnsBehavior::Malformed,
            Some("invalid answer from the DNS server"),
        ),
    ] {
        let output = match expected {
            None => ask(mood),
            Some(_) => until_in_time(&|| ask(mood)),
        };
        let printed = stderr(&output);
        assert_eq!(code(&output), 7, "{mood:?}: {printed}");
        let record_line = printed
            .lines()
            .find(|line| line.starts_with("* HTTPS record"));
        match expected {
            None => assert_eq!(record_line, None),
            Some(expected) => assert!(
                record_line.is_some_and(|it| it.contains(expected)),
                "{printed}"
            ),
        }
    }
    for wrong in ["dns.example", "127.0.0.1:0x1", ""] {
        let output = get(&["--dns-servers", wrong, "https://localhost/"]);
        assert_eq!(code(&output), 2, "{}", stderr(&output));
    }
}
