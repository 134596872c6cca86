//! The order of responses over HTTP/2 (RFC 9218).

use std::{
    collections::BTreeMap,
    sync::mpsc::{Sender, channel},
    thread,
};

use lastbyte_http3::Request;
use lastbyte_server::{
    FullResponse, Handler, HandlerResponse, Peer, Site,
    exchange::{Exchange, Piece},
};

use crate::{
    limits::{
        ACK, DATA, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, get_with, http2,
        next_frame, next_with_flags,
    },
    serving::{Client, PATIENCE, Serving, settings},
};

/// Bytes of other responses that may be sent before a more urgent one, or in turns with it: what the server passes to h2 at a time,
/// and a piece.
const SLACK: usize = (64 + 16) << 10;
/// `SETTINGS_INITIAL_WINDOW_SIZE` (RFC 9113 §6.5.2).
const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];

/// A client whose streams have this window, and whose connection has the largest.
fn client(serving: &Serving, window: u32) -> Client {
    let mut client = http2(serving);
    let setting = [&INITIAL_WINDOW_SIZE[..], &window.to_be_bytes()].concat();
    client.send(&frame(SETTINGS, 0, 0, &setting));
    client.send(&frame(WINDOW_UPDATE, 0, 0, &0x7000_0000_u32.to_be_bytes()));
    client
}

/// Sends these requests at once, on streams 1, 3, 5, …
fn ask(client: &mut Client, requests: &[(&str, &str)]) {
    let requests = (1..).step_by(2).zip(requests);
    let bytes: Vec<_> = requests
        .flat_map(|(stream, (path, priority))| match *priority {
            "" => get_with(stream, path, &[]),
            priority => get_with(stream, path, &[("priority", priority)]),
        })
        .collect();
    client.send(&bytes);
}

/// Reads until this stream has this many bytes. Returns the bytes of all streams.
fn until(client: &mut Client, stream: u32, len: usize) -> BTreeMap<u32, usize> {
    let mut received = BTreeMap::new();
    while received.get(&stream) != Some(&len) {
        let (kind, stream, payload) = next_frame(client, |_| true).expect("it stays open");
        assert_ne!(kind, RST_STREAM, "stream {stream}");
        if kind == DATA {
            *received.entry(stream).or_insert(0) += payload.len();
        }
    }
    received
}

#[test]
fn rfc9218_10_urgent_responses_are_sent_first() {
    let serving = Serving::site(Site::generated());
    let mut client = client(&serving, 1 << 30);
    let requests = [
        ("/3000000", "u=6"),
        ("/2000000", "u=4, i"),
        ("/1000000", "u=1"),
        ("/500000", "u=0"),
    ];
    ask(&mut client, &requests);
    let received = until(&mut client, 7, 500_000);
    let others: usize = received.values().sum::<usize>() - 500_000;
    assert!(others <= SLACK, "{received:?}");
    let received = until(&mut client, 5, 1_000_000 - received.get(&5).unwrap_or(&0));
    assert!(!received.contains_key(&7), "{received:?}");
    let less_urgent = received.get(&1).unwrap_or(&0) + received.get(&3).unwrap_or(&0);
    assert!(less_urgent <= SLACK, "{received:?}");
    drop(client);
    serving.end();
}

#[test]
fn rfc9218_10_responses_that_are_not_incremental_are_sent_one_after_the_other() {
    let serving = Serving::site(Site::generated());
    let mut client = client(&serving, 1 << 30);
    ask(
        &mut client,
        &[("/1000000", ""), ("/1000000", "u=3"), ("/1000000", "")],
    );
    let received = until(&mut client, 1, 1_000_000);
    assert!(
        received.get(&3).is_none_or(|len| *len <= SLACK),
        "{received:?}"
    );
    assert_eq!(received.get(&5), None, "{received:?}");
    drop(client);
    serving.end();
}

#[test]
fn rfc9218_10_incremental_responses_share_the_connection() {
    let serving = Serving::site(Site::generated());
    let mut client = client(&serving, 1 << 30);
    ask(
        &mut client,
        &[("/1000000", "i"), ("/1000000", "i"), ("/1000000", "i")],
    );
    let received = until(&mut client, 1, 1_000_000);
    for stream in [3, 5] {
        assert!(received[&stream] >= 1_000_000 - 2 * SLACK, "{received:?}");
    }
    drop(client);
    serving.end();
}

/// Responds with as many bytes as the path says, and the query as priority.
struct Prioritised;

impl Handler for Prioritised {
    fn handle(&self, request: &Request, _: &Peer) -> HandlerResponse {
        let path = request.path().unwrap_or_default();
        let (len, priority) = path.split_once('?').unwrap_or((path, ""));
        let len = len[1..].parse().expect("a length");
        FullResponse::source(200, "text/plain", Box::new(vec![0; len]))
            .with("priority", priority)
            .into()
    }
}

#[test]
fn rfc9218_8_a_response_can_change_its_priority() {
    let serving = Serving::start(settings(Prioritised));
    let mut client = client(&serving, 1 << 30);
    let requests = [
        ("/1000000?u=5", "u=1"),
        ("/1000000?u=2", ""),
        ("/1000000?x", "u=4"),
    ];
    ask(&mut client, &requests);
    let received = until(&mut client, 3, 1_000_000);
    let others: usize = received.values().sum::<usize>() - 1_000_000;
    assert!(others <= 2 * SLACK, "{received:?}");
    let rest = 1_000_000 - received.get(&5).unwrap_or(&0);
    let received = until(&mut client, 5, rest);
    assert!(
        received.get(&1).is_none_or(|len| *len <= SLACK),
        "{received:?}"
    );
    drop(client);
    serving.end();
}

#[test]
fn a_response_whose_window_is_closed_does_not_delay_less_urgent_ones() {
    let serving = Serving::site(Site::generated());
    let mut client = client(&serving, 0);
    let mut requests = vec![("/1000000", "u=0"); 99];
    requests.push(("/300000", "u=7"));
    ask(&mut client, &requests);
    client.send(&frame(WINDOW_UPDATE, 0, 199, &300_000_u32.to_be_bytes()));
    let received = until(&mut client, 199, 300_000);
    assert_eq!(received.len(), 1, "{received:?}");
    // Neither do streams that are reset or whose window is opened later.
    for stream in (1..100).step_by(2) {
        client.send(&frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
    }
    client.send(&frame(WINDOW_UPDATE, 0, 197, &2_000_000_u32.to_be_bytes()));
    let received = until(&mut client, 197, 1_000_000);
    assert_eq!(received.len(), 1, "{received:?}");
    drop(client);
    serving.end();
}

/// Sends the body of each request, if it is complete.
struct Receiving(Sender<Option<Vec<u8>>>);

impl Handler for Receiving {
    fn handle(&self, _: &Request, _: &Peer) -> HandlerResponse {
        let received = self.0.clone();
        HandlerResponse::Task(Box::new(move |mut exchange| {
            let receive = async move {
                let mut body = Vec::new();
                loop {
                    match exchange.incoming.next().await {
                        Some(Piece::Data(bytes)) => body.extend_from_slice(&bytes),
                        Some(Piece::Trailers(_)) => {}
                        Some(Piece::End) => break Some(body),
                        None => break None,
                    }
                }
            };
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let runtime = runtime.expect("a runtime");
            let work = move || drop(received.send(runtime.block_on(receive)));
            thread::Builder::new().spawn(work).expect("a thread");
        }))
    }
}

/// `POST /`, without the end of its body.
fn post(client: &mut Client, stream: u32) {
    let block = [&[0x83, 0x87, 0x84, 0x01, 9][..], b"localhost"].concat();
    client.send(&frame(HEADERS, 0x4, stream, &block));
    client.send(&frame(DATA, 0, stream, b"a part"));
}

/// Responds before the body of the request has arrived, as a proxy does with an early error.
struct Early;

impl Handler for Early {
    fn handle(&self, _: &Request, _: &Peer) -> HandlerResponse {
        HandlerResponse::Task(Box::new(move |exchange| {
            let respond = async move {
                let Exchange { incoming, outgoing } = exchange;
                let _ = outgoing.respond(FullResponse::text(413, "too long")).await;
                drop(incoming);
            };
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let runtime = runtime.expect("a runtime");
            let work = move || runtime.block_on(respond);
            thread::Builder::new().spawn(work).expect("a thread");
        }))
    }
}

/// curl takes a reset for a failure, also after the whole response.
#[test]
fn rfc9113_8_1_an_early_response_is_not_followed_by_a_reset_while_the_body_is_short() {
    let serving = Serving::start(settings(Early));
    let mut client = http2(&serving);
    for stream in [1, 3, 5] {
        post(&mut client, stream);
        let mut is_answered = false;
        while !is_answered {
            let next = next_with_flags(&mut client, |_| true);
            let (kind, flags, ..) = next.expect("it stays open");
            is_answered = kind == DATA && flags & 1 > 0;
        }
        for _ in 0..6 {
            client.send(&frame(DATA, 0, stream, &[0; 8192]));
        }
        client.send(&frame(DATA, 1, stream, b"the end"));
        client.send(&frame(PING, 0, 0, b"client's"));
        loop {
            let next = next_with_flags(&mut client, |_| true);
            let (kind, flags, ..) = next.expect("it stays open");
            assert_ne!(kind, RST_STREAM, "stream {stream}");
            if (kind, flags & ACK) == (PING, ACK) {
                break;
            }
        }
    }
    drop(client);
    serving.end();
}

#[test]
fn rfc9113_8_1_a_request_body_reset_without_an_error_is_not_complete() {
    let (sender, bodies) = channel();
    let serving = Serving::start(settings(Receiving(sender)));
    let mut client = http2(&serving);
    // NO_ERROR, CANCEL.
    for (stream, code) in [(1, 0_u32), (3, 8)] {
        post(&mut client, stream);
        client.send(&frame(RST_STREAM, 0, stream, &code.to_be_bytes()));
        assert_eq!(bodies.recv_timeout(PATIENCE), Ok(None), "{code}");
    }
    post(&mut client, 5);
    client.send(&frame(DATA, 1, 5, b", and the end"));
    let whole = Some(b"a part, and the end".to_vec());
    assert_eq!(bodies.recv_timeout(PATIENCE), Ok(whole));
    drop(client);
    serving.end();
}
