//! `Expect: 100-continue` (RFC 9110 §10.1.1) and `CONNECT`, over all versions of HTTP.

use lastbyte_http3::Request;
use lastbyte_server::{
    FullResponse, Handler, HandlerResponse, Peer, Site, proxy::Limits, sink::Sink,
};

use crate::{
    http3::ask,
    interim::{on_a_thread, status, until_end},
    limits::{DATA, HEADERS, frame, http2, next_with_flags},
    proxy::{behind, front},
    serving::{Response, Serving, settings},
};

/// Of the static table (RFC 7541, Appendix A).
const POST: u8 = 0x83;
/// `END_HEADERS`, without and with `END_STREAM`.
const OPEN: u8 = 0x4;
const END: u8 = 0x5;

/// A literal field (RFC 7541 §6.2.2).
fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0, name.len() as u8];
    field.extend(name.as_bytes());
    field.push(value.len() as u8);
    field.extend(value.as_bytes());
    field
}

/// The header of a request that waits.
fn expecting(stream: u32, path: &str, expectation: &str) -> Vec<u8> {
    let mut block = vec![POST, 0x87, 0x01, 9];
    block.extend(b"localhost");
    block.extend([0x04, path.len() as u8]);
    block.extend(path.as_bytes());
    block.extend(literal("content-length", "5"));
    block.extend(literal("expect", expectation));
    frame(HEADERS, OPEN, stream, &block)
}

/// The statuses of the responses over HTTP/1.1 to a client that sends a body after 100.
fn over_http1(serving: &Serving, path: &str, expectation: &str) -> Vec<u16> {
    let mut client = serving.connect();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\nexpect: {expectation}\r\n\r\n"
    );
    client.send(head.as_bytes());
    let mut statuses = vec![Response::parse(client.head().as_bytes()).status];
    if statuses == [100] {
        client.send(b"hello");
        statuses.push(Response::parse(client.head().as_bytes()).status);
    }
    statuses
}

fn over_http2(serving: &Serving, path: &str, expectation: &str) -> Vec<u16> {
    let mut client = http2(serving);
    client.send(&expecting(1, path, expectation));
    let mut statuses = Vec::new();
    loop {
        let (kind, flags, stream, payload) =
            next_with_flags(&mut client, |_| true).expect("it stays open");
        if (kind, stream) == (HEADERS, 1) {
            statuses.push(status(&payload));
            if statuses == [100] {
                assert_eq!(flags & 1, 0, "the response follows");
                client.send(&frame(DATA, 1, 1, b"hello"));
            } else {
                return statuses;
            }
        }
    }
}

fn over_http3(serving: &Serving, path: &str, expectation: &str) -> Vec<u16> {
    let request = Request::new("POST", "https", "localhost", path)
        .with("content-length", "5")
        .with("expect", expectation);
    let got = ask(serving, request, b"hello".to_vec(), usize::MAX);
    let mut statuses = got.informed;
    statuses.push(got.status);
    statuses
}

fn over_all(serving: &Serving, path: &str, expectation: &str) -> [Vec<u16>; 3] {
    [over_http1, over_http2, over_http3].map(|ask| ask(serving, path, expectation))
}

#[test]
fn rfc9110_10_1_1_a_body_that_is_read_is_asked_for() {
    let serving = Serving::start(settings(Sink::new(100)));
    let statuses = over_all(&serving, "/", "100-Continue");
    assert_eq!(statuses, [(); 3].map(|()| vec![100, 200]));
    serving.end();
}

#[test]
fn rfc9110_10_1_1_the_proxy_asks_for_the_body_itself() {
    let serving = front(behind(), Limits::default());
    let statuses = over_all(&serving, "/len", "100-continue");
    assert_eq!(statuses, [(); 3].map(|()| vec![100, 200]));
    serving.end();
}

/// Responds without reading the body: at once, or from a task.
struct Refusing;

impl Handler for Refusing {
    fn handle(&self, request: &Request, _: &Peer) -> HandlerResponse {
        let refusal = FullResponse::text(413, "Too long\n");
        if request.path() == Some("/now") {
            return refusal.into();
        }
        HandlerResponse::Task(Box::new(|exchange| {
            on_a_thread(exchange.outgoing.respond(refusal));
        }))
    }
}

#[test]
fn rfc9110_10_1_1_a_request_that_is_refused_has_no_interim_response() {
    let serving = Serving::start(settings(Refusing));
    for path in ["/now", "/later"] {
        let statuses = over_all(&serving, path, "100-continue");
        assert_eq!(statuses, [(); 3].map(|()| vec![413]), "{path}");
    }
    serving.end();
    let serving = Serving::site(Site::generated());
    assert_eq!(
        over_all(&serving, "/100", "100-continue"),
        [(); 3].map(|()| vec![405])
    );
    serving.end();
}

#[test]
fn rfc9110_10_1_1_another_expectation_is_refused() {
    let serving = Serving::start(settings(Sink::new(100)));
    for expectation in ["200-ok", "100-continue, x"] {
        let statuses = over_all(&serving, "/", expectation);
        assert_eq!(statuses, [(); 3].map(|()| vec![417]), "{expectation}");
    }
    serving.end();
}

#[test]
fn rfc9110_9_3_6_connect_is_refused_alike() {
    let serving = Serving::site(Site::generated());
    let target = "localhost:443";
    let text = "CONNECT is not supported\n";
    let response = serving.ask(&format!(
        "CONNECT {target} HTTP/1.1\r\nhost: {target}\r\nconnection: close\r\n\r\n"
    ));
    assert_eq!(
        (response.status, &response.body[..]),
        (405, text.as_bytes())
    );
    let allow = response.field("allow").map(str::to_owned);

    let mut client = http2(&serving);
    let mut block = vec![0x02, 7];
    block.extend(b"CONNECT");
    block.extend([0x01, target.len() as u8]);
    block.extend(target.as_bytes());
    client.send(&frame(HEADERS, END, 1, &block));
    let frames = until_end(&mut client, 1);
    assert_eq!(status(&frames[0].payload), 405);
    assert_eq!(frames[1].payload, text.as_bytes());
    drop(client);

    let request = Request::connect(target);
    let got = ask(&serving, request, Vec::new(), usize::MAX);
    assert_eq!((got.status, &got.body[..]), (405, text.as_bytes()));
    assert_eq!(
        got.fields
            .get("allow")
            .map(|text| String::from_utf8_lossy(text).into_owned()),
        allow
    );
    serving.end();
}
