//! Requests made of frames, in any pieces, for a server: what reaches the application is well-formed, a message is as long as
//! its `content-length` says, and events come in the order of a message. Shared by the replay of the corpus and the fuzz
//! target.

use std::collections::{BTreeMap, BTreeSet};

use lastbyte_http3::{
    Body, Config, Connection, Event, Fields, Request, Response,
    qpack::{EncodeOptions, Encoder},
};
use lastbyte_testkit::Input;
use lastbyte_wire::{Direction, StreamId, VarInt};

use super::pair::{DELAY, Pair, transport_config};

const LINES: [(&str, &str); 32] = [
    (":method", "GET"),
    (":method", "POST"),
    (":method", "CONNECT"),
    (":method", "G T"),
    (":scheme", "https"),
    (":scheme", "http"),
    (":scheme", "ftp"),
    (":authority", "a.example"),
    (":authority", "a.example:443"),
    (":authority", "u@a.example"),
    (":authority", ""),
    (":path", "/"),
    (":path", "/a/../b"),
    (":path", "*"),
    (":path", "a"),
    (":path", ""),
    (":protocol", "websocket"),
    (":status", "200"),
    (":unknown", "x"),
    ("host", "a.example"),
    ("host", "b.example"),
    ("content-length", "0"),
    ("content-length", "5"),
    ("content-length", "05"),
    ("content-length", "5, 5"),
    ("content-length", "18446744073709551616"),
    ("transfer-encoding", "chunked"),
    ("te", "trailers"),
    ("connection", "close"),
    ("cookie", "a=b"),
    ("priority", "u=1, i"),
    ("Upper", "x"),
];

/// A list of fields: mostly that of a good request first.
fn fields(input: &mut Input<'_>) -> Fields {
    let how = input.byte();
    let mut fields = Fields::new();
    if how & 3 != 0 {
        for line in [0, 4, 7, 11] {
            fields.push(LINES[line].0, LINES[line].1);
        }
    }
    for _ in 0..how >> 2 & 7 {
        match input.byte() {
            known @ 0..224 => {
                let (name, value) = LINES[usize::from(known % 32)];
                fields.push(name, value);
            }
            224..240 => fields.push("x-any", input.data()),
            _ => {
                let name = String::from_utf8_lossy(input.data()).into_owned();
                fields.push(&name, input.data());
            }
        }
    }
    fields
}

fn varint(out: &mut Vec<u8>, value: usize) {
    match value {
        0..64 => out.push(value as u8),
        _ => out.extend(((value as u16) | 0x4000).to_be_bytes()),
    }
}

fn put_frame(out: &mut Vec<u8>, kind: usize, payload: &[u8]) {
    varint(out, kind);
    varint(out, payload.len());
    out.extend_from_slice(payload);
}

/// The client that the bytes speak for.
struct Client {
    pair: Pair,
    encoder: Encoder,
    /// Its control and QPACK encoder stream.
    control: StreamId,
    instructions: StreamId,
    streams: Vec<StreamId>,
    answered: usize,
}

impl Client {
    fn new(settings: u8) -> Self {
        let config = Config {
            extended_connect: settings & 1 != 0,
            ..Config::default()
        };
        let mut pair = Pair::of(
            None,
            Some(Connection::server(&config)),
            &transport_config(),
            1,
        );
        pair.server.uses_sink = settings & 4 != 0;
        pair.shake_hands();
        let mut encoder = Encoder::new(4096, 16);
        if settings & 8 != 0 {
            encoder.on_peer_settings(4096, 16);
        }
        let control = pair
            .client
            .open(Direction::Unidirectional, &[0, 4, 0], false);
        let instructions = pair.client.open(Direction::Unidirectional, &[2], false);
        Self {
            pair,
            encoder,
            control,
            instructions,
            streams: Vec::new(),
            answered: 0,
        }
    }

    fn write(&mut self, id: StreamId, bytes: &[u8], input: &mut Input<'_>) {
        let cut = usize::from(input.byte());
        let (first, second) = bytes.split_at(cut.min(bytes.len()));
        let _ = self.pair.client.quic.streams().write(id, first);
        if cut & 1 == 0 {
            self.pair.pass(2 * DELAY);
        }
        let _ = self.pair.client.quic.streams().write(id, second);
    }

    fn frame(&mut self, id: StreamId, input: &mut Input<'_>) {
        let mut out = Vec::new();
        match input.byte() % 16 {
            0..=6 => {
                let fields = fields(input);
                let options = EncodeOptions {
                    instructions_max: 1024,
                    may_block: true,
                };
                let mut section = Vec::new();
                self.encoder
                    .encode(id.get(), fields.iter(), options, &mut section);
                let instructions = std::mem::take(self.encoder.instructions());
                let at = self.instructions;
                let _ = self.pair.client.quic.streams().write(at, &instructions);
                put_frame(&mut out, 1, &section);
            }
            7..=10 => put_frame(&mut out, 0, input.data()),
            11 => {
                // A frame that is longer than what comes of it.
                let kind = usize::from(input.byte());
                varint(&mut out, kind);
                varint(&mut out, usize::from(input.byte()) * 64);
                out.extend_from_slice(input.data());
            }
            12 => put_frame(&mut out, usize::from(input.byte() & 15), input.data()),
            13 => put_frame(&mut out, 0x21, input.data()),
            14 => out.extend_from_slice(input.data()),
            _ => {
                // PRIORITY_UPDATE, GOAWAY, … on the control stream.
                let kinds = [0x0d, 0x07, 0x04, 0x40];
                put_frame(&mut out, kinds[usize::from(input.byte() & 3)], input.data());
                let at = self.control;
                return self.write(at, &out, input);
            }
        }
        self.write(id, &out, input);
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let what = input.byte();
        let which = usize::from(what >> 4);
        while self.streams.len() <= which.min(8) {
            let streams = self.pair.client.quic.streams();
            match streams.open(Direction::Bidirectional) {
                Some(id) => self.streams.push(id),
                None => return,
            }
        }
        let id = self.streams[which.min(8)];
        let now = self.pair.now;
        match what & 15 {
            0..=7 => self.frame(id, input),
            8..=10 => drop(self.pair.client.quic.streams().finish(id)),
            11 => drop(self.pair.client.quic.streams().reset(id, VarInt::ZERO)),
            12 => drop(
                self.pair
                    .client
                    .quic
                    .streams()
                    .stop_sending(id, VarInt::ZERO, now),
            ),
            _ => {
                self.pair.pass(2 * DELAY);
                self.answer();
            }
        }
    }

    /// The server answers what has come.
    fn answer(&mut self) {
        let server = &mut self.pair.server;
        let asked: Vec<StreamId> = server.events[self.answered..]
            .iter()
            .filter_map(|event| match event {
                Event::Request { stream, .. } => Some(*stream),
                _ => None,
            })
            .collect();
        self.answered = server.events.len();
        let (http3, quic) = server.http3();
        for id in asked {
            let body = Body::Source(Box::new(&b"hello"[..]));
            // It may have been given up since.
            let _ = http3.respond(quic, id, &Response::new(200), body);
        }
    }
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Head,
    Trailers,
    End,
}

/// The server's application receives only what RFC 9114 §4 permits, and each of its responses ends at most once.
fn check(pair: &Pair) {
    let mut ended = BTreeSet::new();
    let mut stages: BTreeMap<StreamId, (Stage, &Request)> = BTreeMap::new();
    for event in &pair.server.events {
        match event {
            Event::Request { stream, request } => {
                check_head(request);
                let before = stages.insert(*stream, (Stage::Head, request));
                assert!(before.is_none(), "two heads on {stream:?}");
            }
            Event::Data { stream } => {
                let (stage, _) = stages.get(stream).expect("a head first");
                assert_eq!(*stage, Stage::Head, "data behind the trailers");
            }
            Event::Trailers { stream, fields } => {
                let (stage, _) = stages.get_mut(stream).expect("a head first");
                assert!(*stage < Stage::Trailers);
                *stage = Stage::Trailers;
                assert!(!fields.iter().any(|line| line.name.starts_with(':')));
                check_fields(fields);
            }
            Event::Finished { stream } => {
                let (stage, request) = stages.get_mut(stream).expect("a head first");
                assert!(*stage < Stage::End);
                *stage = Stage::End;
                let body = pair.server.bodies.get(stream).map_or(0, Vec::len);
                if let Some(len) = request.fields().get("content-length") {
                    // Leading zeros are allowed (RFC 9110 §8.6).
                    let len = str::from_utf8(len).expect("digits").parse();
                    assert_eq!(len, Ok(body));
                }
            }
            Event::Sent { stream }
            | Event::Stopped { stream, .. }
            | Event::SourceFailed { stream, .. }
            | Event::Reset {
                stream,
                cancels_ours: true,
                ..
            } => assert!(ended.insert(*stream), "{stream:?} ended twice"),
            _ => {}
        }
    }
}

/// RFC 9114 §4.3.1.
fn check_head(request: &Request) {
    let method = request.method();
    assert!(!method.is_empty() && !method.contains(' '), "{method:?}");
    if method != "CONNECT" {
        assert!(request.scheme().is_some() && request.path().is_some());
    }
    let authority = request.authority();
    assert!(authority.is_none_or(|text| !text.is_empty()));
    if let (Some(authority), Some(host)) = (authority, request.fields().get("host")) {
        assert_eq!(authority.as_bytes(), host);
    }
    check_fields(request.fields());
}

/// RFC 9114 §4.2.
fn check_fields(fields: &Fields) {
    for line in fields {
        let name = line.name;
        assert!(!name.is_empty(), "an empty name");
        assert!(
            !name
                .bytes()
                .any(|byte| byte.is_ascii_uppercase() || byte <= b' '),
            "{name:?}"
        );
        assert!(!["connection", "transfer-encoding", "upgrade", "keep-alive"].contains(&name));
        assert!(name != "te" || line.value == b"trailers");
        assert!(
            !line
                .value
                .iter()
                .any(|byte| matches!(byte, 0 | b'\r' | b'\n'))
        );
    }
}

/// Says what the bytes say.
pub(crate) fn play(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut client = Client::new(input.byte());
    while !input.is_empty() {
        client.step(&mut input);
    }
    client.pair.pass(4 * DELAY);
    client.answer();
    client.pair.pass(10 * DELAY);
    check(&client.pair);
}
