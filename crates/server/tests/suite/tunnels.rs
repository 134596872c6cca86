//! WebSocket through the proxy, over all versions of HTTP, by the bytes that clients and upstream servers send.

use std::{
    fmt::Write as _,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use aws_lc_rs::digest;
use lastbyte_http3::{Code, Request};
use lastbyte_server::{
    Site,
    access::{AccessLog, Format},
    log,
    proxy::{Limits, Proxy},
};
use lastbyte_wire::VarInt;
use serde_json::Value;

use crate::{
    http3::{Got, Leave, ask, leaves},
    limits::{self, DATA, HEADERS, RST_STREAM, SETTINGS, frame, http2},
    serving::{Client, PATIENCE, Serving, settings},
};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
/// The proof of [`KEY`] (RFC 6455 §1.3).
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// `H3_REQUEST_CANCELLED`.
const CANCELLED: VarInt = VarInt::from_u32(0x10c);

/// The proof of a key, by another encoder than the server's.
fn accept(key: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    let mut bits = String::new();
    for byte in hash.as_ref() {
        write!(bits, "{byte:08b}").expect("a string");
    }
    let digits = bits.as_bytes().chunks(6).map(|six| {
        let mut six = String::from_utf8_lossy(six).into_owned();
        while six.len() < 6 {
            six.push('0');
        }
        char::from(DIGITS[usize::from_str_radix(&six, 2).expect("bits")])
    });
    digits.chain(['=']).collect()
}

/// An upstream server.
///
/// | path | |
/// |---|---|
/// | `/echo` | opens a WebSocket that sends back all that it gets, and ends with it |
/// | `/silent` | opens one that neither sends nor reads |
/// | `/chatty` | opens one that sends without end, and reads nothing |
/// | `/forged` | answers 101 with the proof of another key |
/// | `/other` | answers 101 for another protocol |
/// | others | answers 200 with the head of the request, or 403 for `/forbidden` |
fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let accept = move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            let serve = move || serve(stream);
            thread::Builder::new().spawn(serve).expect("a thread");
        }
    };
    thread::Builder::new().spawn(accept).expect("a thread");
    address
}

fn serve(mut stream: TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let path = head.split(' ').nth(1).expect("a path").to_owned();
    let mut keys = head
        .lines()
        .filter_map(|line| line.strip_prefix("sec-websocket-key: "));
    let key = keys.next().map(str::to_owned).unwrap_or_default();
    let has_one = keys.next().is_none();
    let (proof, protocol) = match path.as_str() {
        "/forged" => (accept(KEY), "websocket"),
        "/other" => (accept(&key), "h2c"),
        _ => (accept(&key), "websocket"),
    };
    let websockets = ["/echo", "/silent", "/chatty", "/forged", "/other"];
    let is_websocket = websockets.contains(&path.as_str());
    let answer = if is_websocket && !key.is_empty() {
        assert_ne!(key, KEY, "that of the client");
        assert!(has_one, "{head}");
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: {protocol}\r\n\
             sec-websocket-accept: {proof}\r\nsec-websocket-protocol: chat\r\n\r\n"
        )
    } else {
        let status = if path == "/forbidden" {
            "403 Forbidden"
        } else {
            "200 OK"
        };
        let len = head.len();
        format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\nconnection: close\r\n\r\n{head}")
    };
    if stream.write_all(answer.as_bytes()).is_err() {
        return;
    }
    let mut buffer = [0; 4096];
    match path.as_str() {
        "/silent" => loop {
            // It stays open as long as the test runs.
            thread::park();
        },
        "/chatty" => while stream.write_all(&buffer).is_ok() {},
        _ => {}
    }
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(len) if path == "/echo" => {
                if stream.write_all(&buffer[..len]).is_err() {
                    return;
                }
            }
            Ok(_) => {}
        }
    }
}

fn front(limits: Limits) -> Serving {
    let url = format!("http://{}", upstream());
    let proxy = Proxy::new(url.parse().expect("a URL"), None, limits, 1).expect("threads");
    Serving::start(settings(proxy))
}

fn upgrade(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: {KEY}\r\n\r\n"
    )
}

fn opened(serving: &Serving, path: &str) -> Client {
    let mut client = serving.connect();
    client.send(upgrade(path).as_bytes());
    let head = client.head();
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    client
}

/// Extended CONNECT over HTTP/2, once the server permits it.
fn connect(serving: &Serving, path: &str) -> Client {
    let mut client = http2(serving);
    loop {
        let (kind, _, payload) = limits::next_frame(&mut client, |_| true).expect("settings");
        // SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441 §3).
        if kind == SETTINGS && !payload.is_empty() {
            assert!(
                payload.chunks(6).any(|one| one == [0, 8, 0, 0, 0, 1]),
                "{payload:?}"
            );
            break;
        }
    }
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", path),
        ("sec-websocket-version", "13"),
        ("sec-websocket-protocol", "chat"),
    ] {
        block.extend([0, name.len() as u8]);
        block.extend(name.as_bytes());
        block.push(value.len() as u8);
        block.extend(value.as_bytes());
    }
    client.send(&frame(HEADERS, 4, 1, &block));
    client
}

/// The next frame of the stream: its kind, whether it ends the stream, and its payload.
fn next(client: &mut Client) -> (u8, bool, Vec<u8>) {
    loop {
        let next = limits::next_with_flags(client, |_| true).expect("it stays open");
        let (kind, flags, stream, payload) = next;
        if stream == 1 && [DATA, HEADERS, RST_STREAM].contains(&kind) {
            return (kind, flags & 1 > 0, payload);
        }
    }
}

fn over_http3(serving: &Serving, path: &str) -> Got {
    let request = Request::extended_connect("websocket", "https", "localhost", path);
    ask(serving, request, b"ping".to_vec(), usize::MAX)
}

#[test]
fn a_websocket_passes_bytes_on_over_all_versions() {
    let url = format!("http://{}", upstream());
    let proxy = Proxy::new(url.parse().expect("a URL"), None, Limits::default(), 1);
    let mut settings = settings(proxy.expect("threads"));
    let (writer, access) = log::queue();
    settings.access = Some(AccessLog::new(writer, Format::Ndjson));
    let serving = Serving::start(settings);

    // RFC 6455 §4.2.2. Some bytes come with the request.
    let mut client = serving.connect();
    client.send(format!("{}early", upgrade("/echo")).as_bytes());
    let head = client.head().to_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    for line in [
        "connection: upgrade".to_owned(),
        "upgrade: websocket".to_owned(),
        format!("sec-websocket-accept: {}", ACCEPT.to_lowercase()),
        "sec-websocket-protocol: chat".to_owned(),
    ] {
        assert!(head.lines().any(|known| known == line), "{line}: {head}");
    }
    assert_eq!(client.take(5), b"early");
    client.send(b"ping");
    assert_eq!(client.take(4), b"ping");
    let large = vec![7; 1 << 20];
    for piece in large.chunks(64 << 10) {
        client.send(piece);
        assert_eq!(client.take(piece.len()), piece);
    }
    client.stream.conn.send_close_notify();
    assert_eq!(client.rest(), b"", "the upstream ends it");

    // RFC 8441 §5.
    let mut client = connect(&serving, "/echo");
    let (kind, is_end, block) = next(&mut client);
    assert_eq!((kind, is_end, block[0]), (HEADERS, false, 0x88), "200");
    for text in [&b"ping"[..], b"pong"] {
        client.send(&frame(DATA, 0, 1, text));
        assert_eq!(next(&mut client), (DATA, false, text.to_vec()));
    }
    client.send(&frame(DATA, 1, 1, b"last"));
    let mut rest = Vec::new();
    loop {
        let (kind, is_end, payload) = next(&mut client);
        assert_eq!(kind, DATA);
        rest.extend(payload);
        if is_end {
            break;
        }
    }
    assert_eq!(rest, b"last");
    drop(client);

    // RFC 9220.
    let got = over_http3(&serving, "/echo");
    assert_eq!(
        (got.status, &got.body[..], got.is_whole),
        (200, &b"ping"[..], true)
    );
    assert_eq!(got.fields.get("sec-websocket-protocol"), Some(&b"chat"[..]));
    assert_eq!(got.fields.get("sec-websocket-accept"), None);

    drop(serving.server.shut_down(PATIENCE));
    let mut seen = Vec::new();
    while let Some(line) = access.next() {
        let line: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(line["status"], 101, "{line}");
        assert_eq!(line["complete"], true, "{line}");
        seen.push((
            line["http"].to_string(),
            line["bytes"].as_u64().expect("a number"),
        ));
    }
    seen.sort();
    let expected = [
        ("\"HTTP/1.1\"", 9 + (1 << 20)),
        ("\"HTTP/2\"", 12),
        ("\"HTTP/3\"", 4),
    ];
    assert_eq!(seen, expected.map(|(name, bytes)| (name.to_owned(), bytes)));
}

/// A client may leave at any time, whatever the upstream does: it is none of the responses that were cut off.
#[test]
fn a_websocket_whose_client_leaves_without_a_close_is_not_cut_off() {
    let url = format!("http://{}", upstream());
    let proxy = Proxy::new(url.parse().expect("a URL"), None, Limits::default(), 1);
    let mut settings = settings(proxy.expect("threads"));
    let (writer, access) = log::queue();
    settings.access = Some(AccessLog::new(writer, Format::Ndjson));
    let serving = Serving::start(settings);
    let mut left = 0;
    let mut is_logged = |what: &str| {
        let line = access.next().expect("the server runs");
        assert!(line.contains("\"status\":101"), "{what} {line}");
        left += 1;
    };
    for path in ["/echo", "/silent", "/chatty"] {
        drop(opened(&serving, path));
        is_logged(path);
        for is_reset in [false, true] {
            let mut client = connect(&serving, path);
            assert_eq!(next(&mut client).0, HEADERS);
            if is_reset {
                client.send(&frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]));
                is_logged(path);
            }
            drop(client);
            if !is_reset {
                is_logged(path);
            }
        }

        let leave: [Leave; 5] = [
            |_, quic, stream, _| {
                let _ = quic.streams().reset(stream, CANCELLED);
            },
            |_, quic, stream, now| {
                let _ = quic.streams().stop_sending(stream, CANCELLED, now);
            },
            |_, quic, stream, now| {
                let _ = quic.streams().reset(stream, CANCELLED);
                let _ = quic.streams().stop_sending(stream, CANCELLED, now);
            },
            |http3, quic, stream, now| http3.stop(quic, now, stream, Code::REQUEST_CANCELLED),
            |_, quic, _, now| quic.close(now, Code::NO_ERROR.get()),
        ];
        for leave in leave {
            let request = Request::extended_connect("websocket", "https", "localhost", path);
            leaves(&serving, request, leave);
            is_logged(path);
        }
    }
    let report = serving.server.shut_down(PATIENCE);
    assert_eq!(left, 24);
    assert_eq!(report.tcp.cut_off, 0);
    assert_eq!(report.statistics.cut_off, 0);
}

#[test]
fn rfc6455_4_1_responses_that_open_no_websocket_are_refused_or_passed_on() {
    let serving = front(Limits::default());
    // RFC 9110 §7.8: a server may ignore an upgrade; as a response to CONNECT, 2xx would begin a tunnel.
    for (path, status, extended) in [
        ("/forged", 502, 502),
        ("/other", 502, 502),
        ("/200", 200, 502),
        ("/forbidden", 403, 403),
    ] {
        let mut client = serving.connect();
        client.send(upgrade(path).as_bytes());
        let head = client.head().to_lowercase();
        assert!(
            head.starts_with(&format!("http/1.1 {status} ")),
            "{path}: {head}"
        );
        assert_eq!(
            head.contains("error=http_upgrade_failed"),
            status == 502,
            "{head}"
        );
        drop(client);
        let mut client = connect(&serving, path);
        let (kind, _, block) = next(&mut client);
        assert_eq!(kind, HEADERS);
        assert!(!block.starts_with(&[0x88]), "not 200");
        drop(client);
        assert_eq!(over_http3(&serving, path).status, extended, "{path}");
    }
    serving.end();
}

/// What the upstream gets of requests that look like upgrades.
#[test]
fn rfc9110_7_8_other_upgrades_are_ordinary_requests() {
    let serving = front(Limits::default());
    let valid = upgrade("/head");
    for (from, to) in [
        ("HTTP/1.1", "HTTP/1.0"),
        ("GET", "POST"),
        ("upgrade: websocket", "upgrade: h2c"),
        ("sec-websocket-version: 13", "sec-websocket-version: 8"),
        ("host: x", "host: x\r\ncontent-length: 0"),
        (
            "host: x",
            "host: x\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
        ),
        (KEY, "short"),
    ] {
        let request = valid.replacen(from, to, 1);
        let request = request.replace("keep-alive, Upgrade", "close, Upgrade");
        let response = serving.ask(&request);
        assert_eq!(response.status, 200, "{request}");
        let head = String::from_utf8(response.body).expect("text");
        assert!(!head.contains("\r\nupgrade: "), "{head}");
        assert!(!head.contains("\r\nconnection: upgrade"), "{head}");
    }
    serving.end();
    // A handler without tunnels.
    let serving = Serving::site(Site::generated());
    let request = upgrade("/10").replace("keep-alive, Upgrade", "close, Upgrade");
    assert_eq!(serving.ask(&request).status, 200);
    assert_eq!(over_http3(&serving, "/10").status, 501);
    let mut client = connect(&serving, "/10");
    let (kind, _, block) = next(&mut client);
    // `:status` of the static table with a Huffman code (RFC 7541 §6.2.1, Appendix B): 501.
    assert_eq!(
        (kind, &block[..4]),
        (HEADERS, &[0x48, 0x82, 0x6c, 0x01][..])
    );
    drop(client);
    serving.end();
}

/// The server decides by them: who asks, and for which protocol. `te` and lengths are of a body.
#[test]
fn fields_of_the_request_for_a_websocket_reach_the_upstream() {
    let serving = front(Limits::default());
    let fields = "host: x\r\norigin: https://x\r\ncookie: a=b\r\nte: trailers";
    let request = upgrade("/forbidden").replace("host: x", fields);
    let response = serving.ask(&request.replace("keep-alive, Upgrade", "close, Upgrade"));
    let request = Request::extended_connect("websocket", "https", "localhost", "/forbidden")
        .with("origin", "https://x")
        .with("cookie", "a=b")
        .with("te", "trailers");
    let got = ask(&serving, request, Vec::new(), usize::MAX);
    for (status, body) in [(response.status, response.body), (got.status, got.body)] {
        assert_eq!(status, 403);
        let head = String::from_utf8(body).expect("text");
        for line in [
            "connection: upgrade",
            "upgrade: websocket",
            "origin: https://x",
            "cookie: a=b",
            "sec-websocket-version: 13",
        ] {
            let count = head.lines().filter(|known| *known == line).count();
            assert_eq!(count, 1, "{line}: {head}");
        }
        assert!(!head.contains("\r\nte: "), "{head}");
    }
    serving.end();
}

#[test]
fn a_silent_websocket_ends_and_frees_its_slot() {
    let limits = Limits {
        stall: Duration::from_millis(200),
        requests: 1,
        ..Limits::default()
    };
    let serving = front(limits);
    let mut client = opened(&serving, "/silent");
    assert_eq!(client.rest(), b"");
    let mut client = connect(&serving, "/silent");
    assert_eq!(next(&mut client).0, HEADERS);
    let (kind, _, _) = next(&mut client);
    assert_eq!(kind, RST_STREAM);
    drop(client);
    let got = over_http3(&serving, "/silent");
    assert!(got.status == 200 && got.was_reset, "{got:?}");
    drop(opened(&serving, "/echo"));
    serving.end();
}

#[test]
fn a_shutdown_ends_websockets_at_its_limit() {
    let serving = front(Limits::default());
    let mut client = opened(&serving, "/silent");
    let report = serving.server.shut_down(Duration::from_millis(100));
    assert_eq!(client.rest(), b"");
    assert_eq!(report.tcp.requests_http1, 1);
}

#[test]
fn a_websocket_opens_on_a_server_that_accepts_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = listener.local_addr().expect("an address");
    drop(listener);
    let url = format!("http://{closed},http://{}", upstream());
    let proxy = Proxy::new(url.parse().expect("a URL"), None, Limits::default(), 1);
    let proxy = proxy.expect("threads");
    let counts = proxy.counts();
    let serving = Serving::start(settings(proxy));
    for _ in 0..3 {
        let mut client = opened(&serving, "/echo");
        client.send(b"ping");
        assert_eq!(client.take(4), b"ping");
    }
    let counts = counts.read();
    for times in [&counts.connect, &counts.response] {
        assert_eq!(times.cumulated().last().map(|(_, count)| count), Some(3));
    }
    assert!(counts.retries > 0, "the first one refuses");
    serving.end();
}
