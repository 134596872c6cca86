//! Any bytes on any streams, for a server and a client: nothing panics, what is live stays bounded, and the transport
//! agrees. Shared by the replay of the corpus and the fuzz target.

use lastbyte_http3::{Body, Config, Connection, Event, Request, Response};
use lastbyte_wire::{Direction, Side, StreamId, VarInt};

use super::pair::{BAD_PATH, DELAY, Faults, Pair, transport_config};

/// Each piece comes behind two bytes: where it goes, and how long it is.
fn next<'a>(bytes: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[place, len], rest) = bytes.split_first_chunk()?;
    let (piece, rest) = rest.split_at_checked(usize::from(len).min(rest.len()))?;
    *bytes = rest;
    Some((place, piece))
}

/// The end that the bytes do not speak for.
fn begin(is_client: bool) -> Pair {
    let config = Config {
        extended_connect: true,
        ..Config::default()
    };
    let (client, server) = if is_client {
        (Some(Connection::client(&config)), None)
    } else {
        (None, Some(Connection::server(&config)))
    };
    let mut pair = Pair::of(client, server, &transport_config(), 1);
    pair.shake_hands();
    if is_client {
        let request = Request::new("GET", "https", "example.com", "/");
        let (http3, quic) = pair.client.http3();
        for _ in 0..4 {
            let asked = http3.request(quic, &request, Body::Empty);
            assert!(asked.is_ok(), "no limit applies");
        }
        pair.pass(2 * DELAY);
    }
    pair
}

/// Says the pieces that the bytes say, where they say.
pub(crate) fn play(bytes: &[u8]) {
    let mut bytes = bytes;
    let is_client = bytes.first().is_some_and(|byte| byte & 1 != 0);
    bytes = bytes.get(1..).unwrap_or_default();
    let (ours, theirs) = if is_client {
        (Side::Client, Side::Server)
    } else {
        (Side::Server, Side::Client)
    };
    let mut pair = begin(is_client);
    // What a client asked is answered on its streams.
    let mut streams: Vec<StreamId> = (0..4)
        .filter(|_| is_client)
        .filter_map(|index| StreamId::new(Side::Client, Direction::Bidirectional, index))
        .collect();
    let mut answered = 0;
    while let Some((place, piece)) = next(&mut bytes) {
        let now = pair.now;
        let quic = &mut pair.end(theirs).quic;
        let which = usize::from(place & 7);
        while streams.len() <= which {
            let direction = if streams.len().is_multiple_of(2) {
                Direction::Unidirectional
            } else {
                Direction::Bidirectional
            };
            match quic.streams().open(direction) {
                Some(id) => streams.push(id),
                None => return,
            }
        }
        let id = streams[which];
        match place >> 3 & 7 {
            0..=3 => drop(quic.streams().write(id, piece)),
            4 => {
                let _ = quic.streams().write(id, piece);
                let _ = quic.streams().finish(id);
            }
            5 => drop(quic.streams().reset(id, VarInt::ZERO)),
            _ => drop(quic.streams().stop_sending(id, VarInt::ZERO, now)),
        }
        if place & 0x40 != 0 {
            pair.pass(2 * DELAY);
            answer(&mut pair, ours, &mut answered);
        }
    }
    pair.pass(10 * DELAY);
    answer(&mut pair, ours, &mut answered);
    pair.pass(10 * DELAY);
    let end = pair.end(ours);
    let failures = end
        .events
        .iter()
        .filter(|event| matches!(event, Event::Failed(_)));
    assert!(failures.count() <= 1);
    let has_failed = end
        .http3
        .as_ref()
        .is_some_and(|http3| http3.error().is_some());
    assert_eq!(has_failed, end.quic.is_closing());
}

/// A server answers what has come.
fn answer(pair: &mut Pair, ours: Side, answered: &mut usize) {
    if ours == Side::Client {
        return;
    }
    let asked: Vec<StreamId> = pair
        .server
        .events
        .iter()
        .skip(*answered)
        .filter_map(|event| match event {
            Event::Request { stream, .. } => Some(*stream),
            _ => None,
        })
        .collect();
    *answered = pair.server.events.len();
    let (http3, quic) = pair.server.http3();
    for id in asked {
        let response = Response::new(200).with("server", "lastbyte");
        let body = Body::Source(Box::new(&b"hello"[..]));
        // It may have been given up since.
        let _ = http3.respond(quic, id, &response, body);
    }
}

/// Not for this use: the suite's.
#[expect(dead_code, reason = "what the suite alone uses of the pair")]
fn unused() -> (Faults, Pair) {
    let config = Config::default();
    let mut pair = Pair::new(&config, &config, 1, BAD_PATH);
    pair.run_until("never", |_| true);
    pair.client.open(Direction::Unidirectional, &[], false);
    (Faults::default(), Pair::plain())
}
