//! Response headers of upstream servers of HTTP/1.1 and 2, as clients of HTTP/1.1, 2 and 3 receive them.

use std::{
    future::poll_fn,
    io::Write,
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use bytes::Bytes;
use http::HeaderMap;
use lastbyte_http3::Request;
use lastbyte_server::proxy::Limits;

use crate::{
    http3::ask,
    proxy::{Behind, front_of},
    serving::{PATIENCE, Response, Serving},
};

/// What a client received.
#[derive(Debug, Default, PartialEq, Eq)]
struct Received {
    status: u16,
    lengths: Vec<String>,
    body: Vec<u8>,
    proxy_status: Option<String>,
    fields: HeaderMap,
    trailers: Option<HeaderMap>,
    /// Over HTTP/2: the header ended the stream.
    has_only_head: bool,
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(future)
}

fn texts(fields: &HeaderMap, name: &str) -> Vec<String> {
    let values = fields.get_all(name).iter();
    values
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect()
}

pub(crate) async fn connect(serving: &Serving) -> h2::client::SendRequest<Bytes> {
    let mut tls = (*serving.client(rustls::ALL_VERSIONS)).clone();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let stream = tokio::net::TcpStream::connect(serving.address()).await;
    let name = "localhost".try_into().expect("a name");
    let stream = tokio_rustls::TlsConnector::from(std::sync::Arc::new(tls))
        .connect(name, stream.expect("a listener"))
        .await
        .expect("a handshake");
    let mut builder = h2::client::Builder::new();
    builder.max_header_list_size(1 << 20);
    let (sender, connection) = builder.handshake(stream).await.expect("a handshake");
    tokio::spawn(connection);
    sender
}

/// Requests over HTTP/2, one after the other, on one connection.
fn over_http2(serving: &Serving, requests: &[(&str, String)], te: bool) -> Vec<Received> {
    block_on(async {
        let mut sender = connect(serving).await;
        let mut all = Vec::new();
        for (method, path) in requests {
            let mut request = http::Request::builder()
                .method(*method)
                .uri(format!("https://localhost{path}"));
            if te {
                request = request.header("te", "trailers");
            }
            poll_fn(|context| sender.poll_ready(context))
                .await
                .expect("a stream");
            let (response, _) = sender
                .send_request(request.body(()).expect("a request"), true)
                .expect("a stream");
            let response = response.await;
            let response = response.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
            let (head, mut body) = response.into_parts();
            let mut received = Received {
                status: head.status.as_u16(),
                lengths: texts(&head.headers, "content-length"),
                proxy_status: texts(&head.headers, "proxy-status").pop(),
                has_only_head: body.is_end_stream(),
                fields: head.headers,
                ..Received::default()
            };
            while let Some(data) = body.data().await {
                let data = data.expect("data");
                let _ = body.flow_control().release_capacity(data.len());
                received.body.extend(data);
            }
            received.trailers = body.trailers().await.expect("an end");
            all.push(received);
        }
        all
    })
}

fn over_http1(serving: &Serving, method: &str, path: &str) -> Received {
    let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut client = serving.connect();
    client.send(head.as_bytes());
    let bytes = client.rest();
    let answer = Response::parse(&bytes);
    let mut lengths = Vec::new();
    for line in answer.head.lines() {
        if let Some((name, value)) = line.split_once(": ")
            && name.eq_ignore_ascii_case("content-length")
        {
            lengths.push(value.to_owned());
        }
    }
    Received {
        status: answer.status,
        lengths,
        proxy_status: answer.field("proxy-status").map(str::to_owned),
        body: answer.body,
        ..Received::default()
    }
}

fn over_http3(serving: &Serving, method: &str, path: &str) -> Received {
    let request = Request::new(method, "https", "localhost", path);
    let got = ask(serving, request, Vec::new(), usize::MAX);
    assert!(got.is_whole && !got.was_reset, "{method} {path}: {got:?}");
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    Received {
        status: got.status,
        lengths: got.fields.get_all("content-length").map(text).collect(),
        proxy_status: got.fields.get("proxy-status").map(text),
        body: got.body,
        ..Received::default()
    }
}

/// Values of `content-length`, with `|` between lines, and whether they are the length 3.
const LENGTHS: [(&str, bool); 14] = [
    ("3", true),
    ("003", true),
    ("3, 3", true),
    ("3|3", true),
    ("+3", false),
    ("", false),
    ("abc", false),
    ("-3", false),
    ("0x3", false),
    ("3 3", false),
    ("99999999999999999999999", false),
    ("3|4", false),
    ("3, 4", false),
    ("3,", false),
];

/// The row of the table, and the status, of a path.
fn row(path: &str) -> (&'static str, u16) {
    let mut parts = path.trim_start_matches('/').split('/');
    let mut number = || parts.next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let index: u16 = number();
    (LENGTHS[usize::from(index)].0, number())
}

fn answers_http1(head: &str, _: &[u8], stream: &mut TcpStream) {
    let mut words = head.split(' ');
    let (method, path) = (words.next(), words.next().expect("a path"));
    let text = if let Some(count) = path.strip_prefix("/fields/") {
        let count: usize = count.parse().expect("a number");
        let fields: Vec<_> = (1..count).map(|index| format!("x{index}: 1\r\n")).collect();
        let fields = fields.concat();
        format!("200 OK\r\ncontent-length: 2\r\n{fields}\r\nok")
    } else if let Some(len) = path.strip_prefix("/bytes/") {
        let value = "x".repeat(len.parse().expect("a number"));
        format!("200 OK\r\ncontent-length: 2\r\nx: {value}\r\n\r\nok")
    } else if path == "/te" {
        let len = head.len();
        format!("200 OK\r\ncontent-length: {len}\r\n\r\n{head}")
    } else {
        let (lengths, status) = row(path);
        let lengths = lengths.replace('|', "\r\ncontent-length: ");
        let body = if method == Some("get") && status == 200 {
            "abc"
        } else {
            ""
        };
        format!("{status} Some\r\ncontent-length: {lengths}\r\n\r\n{body}")
    };
    let _ = stream.write_all(format!("HTTP/1.1 {text}").as_bytes());
}

/// An upstream server of HTTP/2 in clear text that shows its frames as they are.
fn http2_upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    listener.set_nonblocking(true).expect("a mode");
    let serve = async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a runtime");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            tokio::spawn(async move {
                let Ok(mut connection) = h2::server::handshake(stream).await else {
                    return;
                };
                while let Some(Ok((request, respond))) = connection.accept().await {
                    answer_http2(request, respond);
                }
            });
        }
    };
    let run = move || block_on(async { tokio::spawn(serve).await });
    thread::Builder::new().spawn(run).expect("a thread");
    address
}

/// Sends the body back, and ends with it.
async fn echo(request: http::Request<h2::RecvStream>, mut stream: h2::SendStream<Bytes>) {
    let mut body = request.into_body();
    while let Some(Ok(data)) = body.data().await {
        let is_last = body.is_end_stream();
        let _ = stream.send_data(data, is_last);
    }
}

fn answer_http2(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
) {
    let path = request.uri().path();
    let mut response = http::Response::builder();
    let (mut body, mut trailers) = (Some("ok"), None);
    match path {
        "/trailers-only" => {
            response = response.header("grpc-status", "5");
            body = None;
        }
        "/unary" => {
            trailers = Some(HeaderMap::new());
            let map = trailers.as_mut().expect("trailers");
            map.insert("grpc-status", "0".parse().expect("a value"));
        }
        "/first" => {
            let head = response.body(()).expect("a response");
            if let Ok(mut stream) = respond.send_response(head, false) {
                let _ = stream.send_data(Bytes::from_static(b"first"), false);
                tokio::spawn(echo(request, stream));
            }
            return;
        }
        "/te" => {
            for value in texts(request.headers(), "te") {
                response = response.header("x-te", value);
            }
        }
        path => {
            if let Some(count) = path.strip_prefix("/fields/") {
                let count: usize = count.parse().expect("a number");
                for index in 0..count {
                    response = response.header(format!("x{index}"), "1");
                }
            } else if let Some(len) = path.strip_prefix("/bytes/") {
                response = response.header("x", "x".repeat(len.parse().expect("a number")));
            } else {
                let (lengths, status) = row(path);
                response = response.status(status);
                for value in lengths.split('|') {
                    response = response.header("content-length", value);
                }
                body = (request.method() == "GET" && status == 200).then_some("abc");
            }
        }
    }
    let response = response.body(()).expect("a response");
    let Ok(mut stream) = respond.send_response(response, body.is_none()) else {
        return;
    };
    if let Some(body) = body {
        let _ = stream.send_data(Bytes::from_static(body.as_bytes()), trailers.is_none());
    }
    if let Some(trailers) = trailers {
        let _ = stream.send_trailers(trailers);
    }
}

/// Each field with each method and status, as clients of all versions receive it.
fn lengths_are_checked(url: &str, is_refused_too: fn(&str) -> bool) {
    let serving = front_of(url, Limits::default());
    let mut requests = Vec::new();
    for index in 0..LENGTHS.len() {
        for (method, status) in [("GET", 200), ("HEAD", 200), ("GET", 304), ("GET", 204)] {
            requests.push((method, format!("/{index}/{status}")));
        }
    }
    let all = over_http2(&serving, &requests, false);
    for ((method, path), over_http2) in requests.iter().zip(all) {
        let (value, status) = row(path);
        let is_valid = LENGTHS
            .iter()
            .any(|(text, is_valid)| *text == value && *is_valid);
        let is_passed = is_valid && !is_refused_too(value);
        let versions = [
            over_http1(&serving, method, path),
            over_http2,
            over_http3(&serving, method, path),
        ];
        for (version, received) in versions.into_iter().enumerate() {
            let what = format!(
                "HTTP/{} {method} {status} {value:?}: {received:?}",
                version + 1
            );
            if is_passed {
                let has_length = status != 204;
                let body: &[u8] = if *method == "GET" && status == 200 {
                    b"abc"
                } else {
                    b""
                };
                assert_eq!(
                    (received.status, received.body.as_slice()),
                    (status, body),
                    "{what}"
                );
                // hyper's server leaves the length of a 304 out.
                if status != 304 || !received.lengths.is_empty() {
                    let expected: &[&str] = if has_length { &["3"] } else { &[] };
                    assert_eq!(received.lengths, expected, "{what}");
                }
                assert_eq!(received.proxy_status, None, "{what}");
            } else {
                assert_eq!(received.status, 502, "{what}");
                let why = received.proxy_status.expect("a reason");
                assert!(why.contains("error=http_protocol_error"), "{why}");
            }
        }
    }
    serving.end();
}

#[test]
fn rfc9110_8_6_lengths_of_responses_over_http1_become_one_or_502() {
    let behind = Behind::start(answers_http1);
    lengths_are_checked(&format!("http://{}", behind.address), |_| false);
}

#[test]
fn rfc9110_8_6_lengths_of_responses_over_http2_become_one_or_502() {
    let url = format!("h2c://{}", http2_upstream());
    // h2 accepts no list.
    lengths_are_checked(&url, |value| value.contains(", "));
}

#[test]
fn response_headers_have_up_to_256_fields_and_16_kib() {
    let behind = Behind::start(answers_http1);
    for url in [
        format!("http://{}", behind.address),
        format!("h2c://{}", http2_upstream()),
    ] {
        let serving = front_of(&url, Limits::default());
        for (path, expected) in [
            ("/fields/250", 200),
            ("/fields/256", 200),
            ("/fields/257", 502),
            ("/fields/450", 502),
            ("/bytes/15000", 200),
            ("/bytes/17000", 502),
            ("/bytes/60000", 502),
        ] {
            let over_http2 = over_http2(&serving, &[("GET", path.to_owned())], false);
            let over_http1 = over_http1(&serving, "GET", path);
            // The client takes 256 fields over HTTP/3, with those that the proxy adds.
            let is_taken = path != "/fields/256";
            let over_http3 = is_taken.then(|| over_http3(&serving, "GET", path));
            let all = over_http3.into_iter().chain([over_http1]);
            for received in over_http2.into_iter().chain(all) {
                let why = received.proxy_status;
                assert_eq!(received.status, expected, "{url} {path}: {why:?}");
                assert_eq!(why.is_some(), expected == 502, "{url} {path}: {why:?}");
            }
        }
        serving.end();
    }
}

#[test]
fn grpc_responses_without_a_body_end_with_their_header() {
    let serving = front_of(&format!("h2c://{}", http2_upstream()), Limits::default());
    let paths = ["/trailers-only", "/unary", "/te"].map(|path| ("POST", path.to_owned()));
    let all = over_http2(&serving, &paths, true);
    let [only, unary, te] = &all[..] else {
        panic!("{all:?}");
    };
    let status = |fields: Option<&HeaderMap>| texts(fields.expect("fields"), "grpc-status");
    assert!(only.has_only_head && only.body.is_empty() && only.trailers.is_none());
    assert_eq!(status(Some(&only.fields)), ["5"]);
    assert_eq!(unary.body, b"ok");
    assert_eq!(status(unary.trailers.as_ref()), ["0"]);
    assert_eq!(texts(&te.fields, "x-te"), ["trailers"]);
    serving.end();
}

#[test]
fn grpc_servers_may_speak_before_the_client() {
    let serving = front_of(&format!("h2c://{}", http2_upstream()), Limits::default());
    block_on(async {
        let sender = connect(&serving).await;
        let mut sender = sender.ready().await.expect("a connection");
        let request = http::Request::post("https://localhost/first").body(());
        let request = request.expect("a request");
        let (response, mut stream) = sender.send_request(request, false).expect("a stream");
        let response = tokio::time::timeout(PATIENCE, response).await;
        let mut body = response.expect("in time").expect("a response").into_body();
        let first = body.data().await.expect("data").expect("data");
        assert_eq!(first, "first");
        let message = Bytes::from_static(b"second");
        stream.send_data(message, true).expect("a stream");
        let second = body.data().await.expect("data").expect("data");
        assert_eq!(second, "second");
        while let Some(rest) = body.data().await {
            assert!(rest.expect("data").is_empty());
        }
    });
    serving.end();
}

#[test]
fn rfc9110_10_1_4_te_is_sent_over_http1_if_the_client_takes_trailers() {
    let behind = Behind::start(answers_http1);
    let serving = front_of(&format!("http://{}", behind.address), Limits::default());
    let te = "\r\nte: trailers\r\n";
    for (is_taken, path) in [(true, "/te"), (false, "/te")] {
        let all = over_http2(&serving, &[("GET", path.to_owned())], is_taken);
        let head = String::from_utf8_lossy(&all[0].body).into_owned();
        assert_eq!(head.contains(te), is_taken, "{head}");
        assert_eq!(head.contains("\r\nconnection: te\r\n"), is_taken, "{head}");
    }
    let line = "GET /te HTTP/1.1\r\nhost: x\r\nte: gzip, trailers\r\nconnection: te, close\r\n\r\n";
    let head = String::from_utf8_lossy(&serving.ask(line).body).into_owned();
    assert!(head.contains(te), "{head}");
    serving.end();
}
