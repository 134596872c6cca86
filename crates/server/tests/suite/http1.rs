//! HTTP/1.1 and 2 over TLS.

use std::{io::Read, process::Command, sync::Arc, time::Duration};

use bytes::Bytes;
use lastbyte_http3::{Fields, Request, Response as Head};
use lastbyte_server::{Handler, HandlerResponse, Peer, Site, Version, exchange::Piece};

use crate::serving::{Client, Folder, PATIENCE, Response, Serving, settings};

#[test]
fn a_file_is_served_with_the_fields_for_caches_and_browsers() {
    let folder = Folder::new();
    folder.file("a.html", b"0123456789");
    let serving = Serving::site(Site::directory(&folder.0).expect("a directory"));
    let port = serving.address().port();
    let whole = serving.get("/a.html", "");
    assert_eq!(
        (whole.status, whole.body.as_slice()),
        (200, &b"0123456789"[..])
    );
    assert_eq!(whole.field("content-type"), Some("text/html"));
    let alt_svc = format!("h3=\":{port}\"; ma=86400");
    assert_eq!(whole.field("alt-svc"), Some(alt_svc.as_str()));
    assert!(whole.field("date").is_some() && whole.field("last-modified").is_some());
    let etag = whole.field("etag").expect("a tag").to_owned();

    let ranged = serving.get("/a.html", "range: bytes=2-4\r\n");
    assert_eq!((ranged.status, ranged.body.as_slice()), (206, &b"234"[..]));
    assert_eq!(ranged.field("content-range"), Some("bytes 2-4/10"));
    let same = serving.get("/a.html", &format!("if-none-match: {etag}\r\n"));
    assert_eq!((same.status, same.body.len()), (304, 0));
    assert_eq!(same.field("alt-svc"), Some(alt_svc.as_str()));
    let none = serving.get("/a.html", "range: bytes=10-\r\n");
    assert_eq!(
        (none.status, none.field("content-range")),
        (416, Some("bytes */10"))
    );

    let head = serving.ask("HEAD /a.html HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert_eq!(
        (head.status, head.field("content-length"), head.body.len()),
        (200, Some("10"), 0)
    );
    serving.end();
}

#[test]
fn a_connection_carries_several_requests() {
    let serving = Serving::site(Site::generated());
    let mut client = serving.connect();
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    // Two at once, and one after a body that no handler reads.
    client.send(format!("{}{}", get("/10"), get("/20")).as_bytes());
    for len in [10, 20] {
        let head = client.head();
        assert!(
            head.contains(&format!("content-length: {len}\r\n")),
            "{head}"
        );
        client.take(len);
    }
    client.send(b"POST /10 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n12345");
    let head = client.head();
    assert!(head.starts_with("HTTP/1.1 405 "), "{head}");
    assert!(head.contains("allow: GET, HEAD, OPTIONS\r\n"), "{head}");
    client.take("Method not allowed (expected GET, HEAD or OPTIONS)\n".len());
    client.send(get("/30").as_bytes());
    assert!(client.head().contains("content-length: 30\r\n"));
    client.take(30);
    drop(client);
    serving.end();
}

#[test]
fn rfc9112_3_2_a_request_has_exactly_one_host() {
    let serving = Serving::site(Site::generated());
    let close = "connection: close\r\n\r\n";
    for (request, expected) in [
        (format!("GET /1 HTTP/1.1\r\n{close}"), 400),
        (
            format!("GET /1 HTTP/1.1\r\nhost: a\r\nhost: b\r\n{close}"),
            400,
        ),
        (
            format!("GET https://localhost/1 HTTP/1.1\r\nhost: other\r\n{close}"),
            200,
        ),
        ("GET /1 HTTP/1.0\r\n\r\n".to_owned(), 200),
        (format!("OPTIONS * HTTP/1.1\r\nhost: a\r\n{close}"), 204),
        (format!("CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n{close}"), 405),
        ("nonsense\r\n\r\n".to_owned(), 400),
        (
            format!(
                "GET /1 HTTP/1.1\r\nhost: a\r\nx: {}\r\n{close}",
                "y".repeat(70_000)
            ),
            431,
        ),
    ] {
        assert_eq!(serving.ask(&request).status, expected, "{request:.60}");
    }
    serving.end();
}

#[test]
fn both_tls_versions_are_supported_and_resumed() {
    let serving = Serving::site(Site::generated());
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let config = serving.client(&[version]);
        let mut kinds = Vec::new();
        for _ in 0..2 {
            let mut client = Client::connect(serving.address(), Arc::clone(&config));
            client.send(b"GET /1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
            assert_eq!(Response::parse(&client.rest()).status, 200);
            assert_eq!(client.stream.conn.protocol_version(), Some(version.version));
            kinds.push(client.stream.conn.handshake_kind());
        }
        assert_eq!(kinds[0], Some(rustls::HandshakeKind::Full));
        assert_eq!(
            kinds[1],
            Some(rustls::HandshakeKind::Resumed),
            "{version:?}"
        );
    }
    serving.end();
}

#[test]
fn a_delayed_response_does_not_block_others() {
    let serving = Serving::site(Site::generated());
    let mut waiting = serving.connect();
    waiting.send(b"GET /delay/60s/1 HTTP/1.1\r\nhost: x\r\n\r\n");
    // With one thread.
    assert_eq!(serving.get("/1", "").status, 200);
    assert_eq!(serving.get("/delay/1ms/status/503", "").status, 503);
    drop(waiting);
    drop(serving.server.shut_down(Duration::ZERO));
}

#[test]
fn a_request_head_that_does_not_arrive_times_out() {
    let mut settings = settings(Site::generated());
    settings.tcp.head = Duration::from_millis(50);
    settings.tcp.handshake = Duration::from_millis(50);
    let serving = Serving::start(settings);
    let mut client = serving.connect();
    client.send(b"GET / HTTP/1.1\r\nhost:");
    let answer = String::from_utf8(client.rest()).expect("text");
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 408 "),
        "{answer}"
    );
    // Nor is a handshake.
    let mut silent = std::net::TcpStream::connect(serving.address()).expect("it listens");
    silent.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut byte = [0];
    let read = silent.read(&mut byte);
    assert!(matches!(read, Ok(0)), "{read:?}");
    serving.end();
}

#[test]
fn a_file_truncated_while_it_is_sent_is_not_a_complete_response() {
    let folder = Folder::new();
    let len = 64 << 20;
    let path = folder.file("big", &vec![7; len]);
    let serving = Serving::site(Site::directory(&folder.0).expect("a directory"));
    let mut client = serving.connect();
    client.send(b"GET /big HTTP/1.1\r\nhost: x\r\n\r\n");
    let head = client.head();
    assert!(
        head.contains(&format!("content-length: {len}\r\n")),
        "{head}"
    );
    // More than sockets hold is still to be read.
    let file = std::fs::File::options()
        .write(true)
        .open(path)
        .expect("a file");
    file.set_len(1000).expect("it is cut");
    let got = client.rest().len();
    assert!(got < len, "{got} of {len}");
    serving.end();
}

/// Answers from another thread, in pieces.
struct Pieces(tokio::runtime::Runtime);

impl Pieces {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build();
        Self(runtime.expect("a runtime"))
    }
}

impl Handler for Pieces {
    fn handle(&self, request: &Request, peer: &Peer) -> HandlerResponse {
        assert_ne!(peer.version, Version::Http3);
        let path = request.path().unwrap_or_default().to_owned();
        let runtime = self.0.handle().clone();
        HandlerResponse::Task(Box::new(move |mut exchange| {
            runtime.spawn(async move {
                let mut body = Vec::new();
                let mut is_whole = false;
                while let Some(piece) = exchange.incoming.next().await {
                    match piece {
                        Piece::Data(bytes) => body.extend(bytes),
                        Piece::End => is_whole = true,
                        Piece::Trailers(_) => {}
                    }
                }
                assert!(is_whole);
                let mut outgoing = exchange.outgoing;
                if path == "/silent" {
                    return;
                }
                let _ = outgoing.inform(Head::new(103).with("link", "</a>")).await;
                let _ = outgoing.begin(Head::new(200).with("x-path", &path)).await;
                for piece in body.chunks(10_000) {
                    let _ = outgoing.data(Bytes::copy_from_slice(piece)).await;
                }
                if path != "/cut" {
                    let trailers = Fields::new().with("x-sum", body.len().to_string());
                    let _ = outgoing.end(Some(trailers)).await;
                }
            });
        }))
    }
}

#[test]
fn handlers_can_stream_responses_and_read_request_bodies() {
    let serving = Serving::start(settings(Pieces::new()));
    let post = |path: &str, body: &str| {
        let len = body.len();
        serving.ask(&format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len}\r\n\r\n{body}"
        ))
    };
    let echo = post("/echo", "hello");
    assert_eq!((echo.status, echo.field("x-path")), (200, Some("/echo")));
    assert_eq!(echo.field("transfer-encoding"), Some("chunked"));
    assert!(echo.body.starts_with(b"5\r\nhello\r\n0\r\n"), "{echo:?}");
    // Given up in the middle: the last chunk never comes.
    let cut = post("/cut", "hello");
    assert_eq!(cut.body, b"5\r\nhello\r\n");
    assert_eq!(post("/silent", "hello").status, 502);
    serving.end();
}

/// Runs a program, or says that it is not there.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                output.status.success(),
                "{program}: {said}{}",
                String::from_utf8_lossy(&output.stderr)
            );
            Some(said)
        }
        Err(error) => {
            lastbyte_testkit::skip(&format!("no `{program}`: {error}"));
            None
        }
    }
}

#[test]
fn curl_receives_the_same_over_both_versions() {
    let serving = Serving::site(Site::generated());
    let url = format!("https://localhost:{}/100000", serving.address().port());
    for (flag, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let arguments = [
            "-sk",
            "-4",
            flag,
            "-o",
            "/dev/null",
            "-w",
            "%{http_version} %{size_download} %{response_code}",
            &url,
        ];
        if let Some(said) = run("curl", &arguments) {
            assert_eq!(said, format!("{version} 100000 200"));
        }
        // A body that is not wanted does not keep curl from hearing so.
        let upload = "x".repeat(100_000);
        let arguments = [
            "-sk",
            "-4",
            flag,
            "-d",
            &upload,
            "-o",
            "/dev/null",
            "-w",
            "%{response_code}",
            &url,
        ];
        if let Some(said) = run("curl", &arguments) {
            assert_eq!(said, "405", "{version}");
        }
    }
    serving.end();
}

#[test]
fn h2load_loses_no_request_over_http2() {
    let serving = Serving::site(Site::generated());
    let url = format!("https://127.0.0.1:{}/32k", serving.address().port());
    if let Some(said) = run("h2load", &["-n", "500", "-c", "5", "-m", "10", &url]) {
        let line = "requests: 500 total, 500 started, 500 done, 500 succeeded, 0 failed, 0 errored, 0 timeout";
        assert!(said.contains(line), "{said}");
    }
    serving.end();
}

#[test]
fn data_after_a_request_does_not_abort_its_response() {
    let serving = Serving::site(Site::generated());
    for late in [0, 1, 20_000, 1_000_000] {
        let mut client = serving.connect();
        let mut bytes = b"GET /1000000 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_vec();
        bytes.resize(bytes.len() + late, b'x');
        client.send(&bytes);
        let answer = Response::parse(&client.rest());
        assert_eq!(
            (answer.status, answer.body.len()),
            (200, 1_000_000),
            "{late}"
        );
    }
    serving.end();
}

/// A record can be read when all of it has arrived: it must fit into TCP's initial window.
#[test]
fn the_head_of_a_large_response_is_in_a_small_record() {
    let serving = Serving::site(Site::generated());
    let mut client = serving.connect();
    client.send(b"GET /100000 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let mut raw = Vec::new();
    client.stream.sock.read_to_end(&mut raw).expect("all of it");
    let (mut rest, mut records) = (raw.as_slice(), Vec::new());
    while let Some(len) = rest.get(3..5) {
        let len = usize::from(u16::from_be_bytes([len[0], len[1]]));
        records.push(len);
        rest = &rest[5 + len..];
    }
    assert!(records.iter().sum::<usize>() > 100_000);
    let largest = records.into_iter().max().expect("records");
    assert!((8192..10_000).contains(&largest), "{largest} bytes");
    serving.end();
}
