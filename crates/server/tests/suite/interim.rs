//! Interim responses over HTTP/2, and where the streams of responses end.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use bytes::Bytes;
use lastbyte_http3::{Fields, Request, Response};
use lastbyte_server::{
    FullResponse, Handler, HandlerResponse, Peer, Site,
    exchange::{Exchange, Piece},
    proxy::{Limits, Proxy},
};

use crate::{
    limits::{
        ACK, DATA, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, get, get_with, http2,
        next_frame, next_with_flags,
    },
    proxy::{behind, front},
    serving::{Client, PATIENCE, Serving, settings},
};

/// A frame of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) ends: bool,
    pub(crate) payload: Vec<u8>,
}

/// The frames of a response, up to its end. Those of other streams are skipped.
pub(crate) fn until_end(client: &mut Client, of: u32) -> Vec<Frame> {
    let mut frames = Vec::new();
    loop {
        let (kind, flags, stream, payload) =
            next_with_flags(client, |_| true).expect("it stays open");
        if stream == of && kind != WINDOW_UPDATE {
            let ends = matches!(kind, DATA | HEADERS) && flags & 1 != 0;
            frames.push(Frame {
                kind,
                ends,
                payload,
            });
            if ends || kind == RST_STREAM {
                return frames;
            }
        }
    }
}

/// The status of a header, in the forms that h2 gives it: of the static table, or with a value in Huffman code (RFC 7541 §5.2).
pub(crate) fn status(payload: &[u8]) -> u16 {
    match payload {
        [0x88, ..] => 200,
        [0x89, ..] => 204,
        [0x8b, ..] => 304,
        [0x48, 0x82, 0x08, 0x01, ..] => 100,
        [0x48, 0x82, 0x08, 0x19, ..] => 103,
        [0x48, 0x83, 0x68, 0x0d, 0xff, ..] => 405,
        [0x48, 0x83, 0x68, 0x2c, 0xff, ..] => 413,
        [0x48, 0x83, 0x68, 0x2e, 0xff, ..] => 417,
        _ => panic!("another status: {payload:x?}"),
    }
}

/// The kinds of frames, and whether the stream ends with them.
fn outline(frames: &[Frame]) -> Vec<(u8, bool)> {
    frames
        .iter()
        .map(|frame| (frame.kind, frame.ends))
        .collect()
}

/// A handler that is a function.
struct Act(fn(&str, Exchange));

impl Handler for Act {
    fn handle(&self, request: &Request, _: &Peer) -> HandlerResponse {
        let path = request.path().unwrap_or_default().to_owned();
        let act = self.0;
        HandlerResponse::Task(Box::new(move |exchange| act(&path, exchange)))
    }
}

/// The result of a future that does not wait.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it waits"),
    }
}

/// All of a response is there before any of it is sent.
fn respond(path: &str, exchange: Exchange) {
    let mut outgoing = exchange.outgoing;
    now(async move {
        let status = if path == "/204" { 204 } else { 200 };
        outgoing.begin(Response::new(status)).await?;
        if path != "/empty" {
            outgoing.data(Bytes::from_static(b"data")).await?;
        }
        let trailers = Fields::new().with("x-end", "1");
        outgoing
            .end((path == "/trailers").then_some(trailers))
            .await
    })
    .expect("the client stays");
}

#[test]
fn rfc9113_8_1_the_last_frame_of_a_response_ends_its_stream() {
    let serving = Serving::start(settings(Act(respond)));
    let mut client = http2(&serving);
    let expected = [
        ("/empty", vec![(HEADERS, true)]),
        ("/204", vec![(HEADERS, true)]),
        ("/data", vec![(HEADERS, false), (DATA, true)]),
        (
            "/trailers",
            vec![(HEADERS, false), (DATA, false), (HEADERS, true)],
        ),
    ];
    for (stream, (path, frames)) in (1..).step_by(2).zip(expected) {
        client.send(&get(stream, path));
        assert_eq!(outline(&until_end(&mut client, stream)), frames, "{path}");
    }
    drop(client);
    let report = serving.server.shut_down(PATIENCE);
    assert_eq!(report.tcp.cut_off, 0, "all are complete");
}

#[test]
fn rfc9113_8_1_files_and_responses_without_a_body_end_with_their_last_frame() {
    let serving = Serving::site(Site::generated());
    let mut client = http2(&serving);
    for (stream, path, frames) in [
        (1, "/0", vec![(HEADERS, true)]),
        (3, "/1000", vec![(HEADERS, false), (DATA, true)]),
    ] {
        client.send(&get(stream, path));
        assert_eq!(outline(&until_end(&mut client, stream)), frames, "{path}");
    }
    drop(client);
    serving.end();
}

/// Sends 103 at once, and 200 later.
struct Hinting;

impl Handler for Hinting {
    fn handle(&self, _: &Request, _: &Peer) -> HandlerResponse {
        let hint = Response::new(103)
            .with("link", "</a>")
            .with("connection", "x");
        let answer = || FullResponse::bare(204);
        HandlerResponse::Hinted(hint, Duration::from_millis(1), Box::new(answer))
    }
}

/// The statuses of a response.
fn statuses(client: &mut Client, stream: u32) -> Vec<u16> {
    until_end(client, stream)
        .iter()
        .filter(|frame| frame.kind == HEADERS)
        .map(|frame| status(&frame.payload))
        .collect()
}

#[test]
fn rfc8297_2_early_hints_are_sent_over_http2() {
    let serving = Serving::start(settings(Hinting));
    let mut client = http2(&serving);
    client.send(&get(1, "/"));
    assert_eq!(statuses(&mut client, 1), [103, 204]);
    drop(client);
    serving.end();
}

#[test]
fn rfc8297_2_early_hints_of_an_upstream_are_sent_over_http2() {
    let serving = front(behind(), Limits::default());
    let mut client = http2(&serving);
    client.send(&get(1, "/hints"));
    assert_eq!(statuses(&mut client, 1), [103, 200]);
    drop(client);
    serving.end();
}

/// A server whose operator has asked for interim responses over HTTP/1.1.
fn with_interim_http1(handler: impl Handler + 'static) -> Serving {
    let mut settings = settings(handler);
    settings.interim_http1 = true;
    Serving::start(settings)
}

/// The heads of the responses over HTTP/1.1, up to the final one, without a body.
fn heads(client: &mut Client) -> Vec<String> {
    let mut heads = vec![client.head()];
    while heads
        .last()
        .is_some_and(|head| head.starts_with("HTTP/1.1 1"))
    {
        heads.push(client.head());
    }
    heads
}

const HINT: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";

#[test]
fn rfc8297_2_early_hints_are_sent_over_http1_if_the_operator_asks() {
    let serving = with_interim_http1(Hinting);
    let mut client = serving.connect();
    // Pipelined, so that the second is received before the first response is written.
    let request = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    client.send(request.repeat(3).as_bytes());
    for _ in 0..3 {
        let heads = heads(&mut client);
        assert_eq!(heads.len(), 2, "{heads:?}");
        assert_eq!(heads[0], HINT);
        assert!(heads[1].starts_with("HTTP/1.1 204 "), "{heads:?}");
    }
    drop(client);
    // HTTP/1.0 has none (RFC 9110 §15.2).
    assert_eq!(serving.ask("GET / HTTP/1.0\r\n\r\n").status, 204);
    serving.end();
}

#[test]
fn rfc8297_3_early_hints_are_not_sent_over_http1_unasked() {
    let serving = Serving::start(settings(Hinting));
    assert_eq!(serving.get("/", "").status, 204);
    serving.end();
}

#[test]
fn rfc8297_2_early_hints_of_an_upstream_are_sent_over_http1() {
    let upstream = format!("http://{}", behind()).parse().expect("a server");
    let proxy = Proxy::new(upstream, None, Limits::default(), 1).expect("threads");
    let serving = with_interim_http1(proxy);
    let mut client = serving.connect();
    for _ in 0..3 {
        client.send(b"GET /hints HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let heads = heads(&mut client);
        assert_eq!(heads[0], HINT);
        assert!(heads[1].starts_with("HTTP/1.1 200 "), "{heads:?}");
        assert_eq!(client.take(2), b"ok");
    }
    drop(client);
    serving.end();
}

#[test]
fn interim_responses_over_http1_are_bounded() {
    let serving = with_interim_http1(Act(inform));
    let mut client = serving.connect();
    client.send(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let heads = heads(&mut client);
    assert_eq!(heads.len(), 101);
    assert!(heads[99].starts_with("HTTP/1.1 103 "), "{heads:?}");
    assert!(heads[100].starts_with("HTTP/1.1 204 "), "{heads:?}");
    drop(client);
    serving.end();
}

/// More interim responses than are sent, as fast as the connection takes them.
fn inform(_: &str, exchange: Exchange) {
    let mut outgoing = exchange.outgoing;
    on_a_thread(async move {
        for _ in 0..150 {
            // 101 is not for HTTP/2.
            outgoing.inform(Response::new(101)).await?;
            outgoing.inform(Response::new(103)).await?;
        }
        outgoing.respond(FullResponse::bare(204)).await
    });
}

/// Completes a future on a thread of its own.
pub(crate) fn on_a_thread<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let work = move || drop(runtime.block_on(future));
    thread::Builder::new().spawn(work).expect("a thread");
}

#[test]
fn interim_responses_over_http2_are_bounded() {
    let serving = Serving::start(settings(Act(inform)));
    let mut client = http2(&serving);
    client.send(&get(1, "/"));
    let frames = until_end(&mut client, 1);
    assert_eq!(frames.len(), 101);
    assert_eq!(status(&frames[0].payload), 103);
    drop(client);
    serving.end();
}

/// `POST` of a path, without the end of its stream.
fn post(stream: u32, path: &str) -> Vec<u8> {
    let mut request = get_with(stream, path, &[]);
    // :method POST of the static table, and END_HEADERS alone.
    (request[4], request[9]) = (0x4, 0x83);
    request
}

/// Responds with data at once, and ends the response with the request.
fn end_with_the_request(_: &str, exchange: Exchange) {
    on_a_thread(async move {
        let Exchange {
            mut incoming,
            mut outgoing,
        } = exchange;
        outgoing.begin(Response::new(200)).await?;
        outgoing.data(vec![b'x'; 8 << 10].into()).await?;
        while !matches!(incoming.next().await, Some(Piece::End) | None) {}
        outgoing.end(None).await
    });
}

/// The end of a response is not known with its last data, as of a proxy, and there is room for one byte of that.
#[test]
fn rfc9113_5_2_the_last_piece_of_a_response_waits_for_its_window_for_a_limited_time() {
    let mut settings = settings(Act(end_with_the_request));
    settings.tcp.stall = Duration::from_millis(200);
    let serving = Serving::start(settings);
    let mut client = http2(&serving);
    // SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 §6.5.2).
    client.send(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1]));
    client.send(&post(1, "/"));
    let is_data = |(kind, stream, payload): (u8, u32, Vec<u8>)| {
        (kind, stream) == (DATA, 1) && payload == b"x"
    };
    while !is_data(next_frame(&mut client, |_| true).expect("it stays open")) {}
    client.send(&frame(DATA, 1, 1, &[]));
    let reset = Frame {
        kind: RST_STREAM,
        ends: false,
        payload: vec![0, 0, 0, 8],
    };
    assert_eq!(until_end(&mut client, 1), [reset], "CANCEL");
    drop(client);
    let report = serving.server.shut_down(PATIENCE);
    assert_eq!(report.tcp.cut_off, 1);
}

/// A client that waits for the response before it sends more, and one that sends too much.
#[test]
fn rfc9113_8_1_an_early_response_does_not_wait_for_the_body() {
    let serving = Serving::site(Site::generated());
    let mut client = http2(&serving);
    // So that the server's window for a stream applies (RFC 9113 §6.5.3).
    client.send(&frame(SETTINGS, ACK, 0, &[]));
    client.send(&post(1, "/100"));
    let frames = until_end(&mut client, 1);
    assert_eq!(outline(&frames), [(HEADERS, false), (DATA, true)]);
    assert_eq!(status(&frames[0].payload), 405);
    // Read up to a limit, and then the stream is reset without an error.
    let piece = frame(DATA, 0, 1, &[0; 16 << 10]);
    for _ in 0..16 {
        client.send(&piece);
    }
    let reset = Frame {
        kind: RST_STREAM,
        ends: false,
        payload: vec![0; 4],
    };
    assert_eq!(until_end(&mut client, 1), [reset]);
    // Others go on.
    client.send(&get(3, "/10"));
    assert_eq!(statuses(&mut client, 3), [200]);
    drop(client);
    serving.end();
}
