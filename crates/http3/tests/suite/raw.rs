//! One end of ours, and another that a test speaks for.

use lastbyte_http3::{
    Body, Code, Config, Connection, Event, FieldLine, Request,
    qpack::{EncodeOptions, Encoder},
};
use lastbyte_quic::{close::CloseReason, connection as transport, stream::StreamEvent};
use lastbyte_wire::{Direction, Side, StreamId};

use crate::pair::{DELAY, Pair, transport_config};

pub(crate) const UNI: Direction = Direction::Unidirectional;
pub(crate) const BIDI: Direction = Direction::Bidirectional;
/// A control stream with SETTINGS of nothing.
pub(crate) const CONTROL: [u8; 3] = [0, 4, 0];

pub(crate) const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "example.com"),
    (":path", "/"),
];

/// A server of ours, and a client that a test speaks for.
pub(crate) fn server_with(config: &Config) -> Pair {
    server_over(&transport_config(), config)
}

/// The same, with the transport of both set.
pub(crate) fn server_over(transport: &transport::Config, config: &Config) -> Pair {
    let mut pair = Pair::of(None, Some(Connection::server(config)), transport, 1);
    pair.shake_hands();
    pair
}

pub(crate) fn server() -> Pair {
    server_with(&Config::default())
}

/// A client of ours that has asked, and a server that a test speaks for.
pub(crate) fn client() -> (Pair, StreamId) {
    client_that(&Request::new("GET", "https", "example.com", "/"))
}

pub(crate) fn client_that(request: &Request) -> (Pair, StreamId) {
    let http3 = Connection::client(&Config::default());
    let mut pair = Pair::of(Some(http3), None, &transport_config(), 1);
    pair.shake_hands();
    let (http3, quic) = pair.client.http3();
    let id = http3
        .request(quic, request, Body::Empty)
        .expect("a request");
    pair.pass(2 * DELAY);
    (pair, id)
}

/// What our end failed with; the other end receives the same error.
pub(crate) fn failure(pair: &mut Pair, side: Side) -> Option<Code> {
    pair.pass(4 * DELAY);
    let code = pair.end(side).events.iter().find_map(|event| match event {
        Event::Failed(error) => Some(error.code),
        _ => None,
    })?;
    let reason = pair.end(side.peer()).quic.close_reason();
    assert_eq!(
        reason,
        Some(CloseReason::PeerApplication { code: code.get() })
    );
    Some(code)
}

pub(crate) fn section(lines: &[(&str, &str)]) -> Vec<u8> {
    let lines = lines.iter().map(|(name, value)| FieldLine {
        name,
        value: value.as_bytes(),
        is_sensitive: false,
    });
    let options = EncodeOptions {
        instructions_max: 0,
        may_block: false,
    };
    let mut section = Vec::new();
    Encoder::new(0, 0).encode(0, lines, options, &mut section);
    section
}

/// A frame whose type is one byte, and whose length is two.
pub(crate) fn frame(frame_type: u8, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u16 | 0x4000;
    [&[frame_type][..], &len.to_be_bytes(), payload].concat()
}

pub(crate) fn head(lines: &[(&str, &str)]) -> Vec<u8> {
    frame(1, &section(lines))
}

pub(crate) fn data(payload: &str) -> Vec<u8> {
    frame(0, payload.as_bytes())
}

/// The GET, with other lines instead of those of the same name, and further ones.
pub(crate) fn get_with(
    lines: &[(&'static str, &'static str)],
) -> Vec<(&'static str, &'static str)> {
    let mut all = GET.to_vec();
    for (name, value) in lines {
        match all.iter_mut().find(|(known, _)| known == name) {
            Some(line) => line.1 = value,
            None => all.push((name, value)),
        }
    }
    all
}

pub(crate) fn reset_code(pair: &Pair, id: StreamId) -> Option<Code> {
    pair.client
        .stream_events
        .iter()
        .find_map(|event| match event {
            StreamEvent::Reset { id: of, code } if *of == id => Some(Code::from(*code)),
            _ => None,
        })
}

pub(crate) fn got_request(pair: &Pair) -> bool {
    let is_request = |event: &Event| matches!(event, Event::Request { .. });
    pair.server.events.iter().any(is_request)
}

/// A `PRIORITY_UPDATE` frame for a request.
pub(crate) fn priority_update(id: u8, text: &str) -> Vec<u8> {
    let mut bytes = vec![0x80, 0x0f, 0x07, 0x00, text.len() as u8 + 1, id];
    bytes.extend_from_slice(text.as_bytes());
    bytes
}
