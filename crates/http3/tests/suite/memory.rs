//! A client and a server over a transport in memory, without QUIC.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use lastbyte_http3::{Body, Code, Config, Connection, Event, Request, Response, Transport};
use lastbyte_quic::{
    Time,
    stream::{Priority, Progress, Read, ReadError, Source, StreamEvent, UnknownStream, WriteError},
    trace::ApplicationFrame,
};
use lastbyte_wire::{Direction, Side, StreamId, VarInt};

use crate::raw::priority_update;

const NOW: Time = Time::from_nanos(1);

/// One stream at one end.
#[derive(Default)]
struct Stream {
    outgoing: Vec<u8>,
    is_finished: bool,
    received: VecDeque<u8>,
    has_end: bool,
    reset: Option<VarInt>,
}

/// One end of an in-memory transport. The test moves data between the ends.
struct Memory {
    side: Side,
    streams: BTreeMap<StreamId, Stream>,
    opened: u64,
    to_accept: VecDeque<StreamId>,
    events: VecDeque<StreamEvent>,
    closed_with: Option<u64>,
    /// The frames reported, if they are asked for.
    traced: Option<Vec<String>>,
}

impl Memory {
    fn new(side: Side) -> Self {
        Self {
            side,
            streams: BTreeMap::new(),
            opened: 0,
            to_accept: VecDeque::new(),
            events: VecDeque::new(),
            closed_with: None,
            traced: None,
        }
    }

    /// Delivers all that was sent. Returns whether there was anything.
    fn deliver_to(&mut self, peer: &mut Self) -> bool {
        let mut is_any = false;
        for (id, stream) in &mut self.streams {
            let data = std::mem::take(&mut stream.outgoing);
            let fin = std::mem::take(&mut stream.is_finished);
            let reset = stream.reset.take();
            if data.is_empty() && !fin && reset.is_none() {
                continue;
            }
            is_any = true;
            if !peer.streams.contains_key(id) {
                peer.to_accept.push_back(*id);
                peer.events.push_back(StreamEvent::Opened(id.direction()));
            }
            let there = peer.streams.entry(*id).or_default();
            there.received.extend(data);
            there.has_end |= fin;
            match reset {
                Some(code) => peer.events.push_back(StreamEvent::Reset { id: *id, code }),
                None => peer.events.push_back(StreamEvent::Readable(*id)),
            }
            if fin {
                self.events.push_back(StreamEvent::Finished(*id));
            }
        }
        is_any
    }
}

impl Transport for Memory {
    fn poll_stream_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let id = StreamId::new(self.side, direction, self.opened)?;
        self.opened += 1;
        self.streams.insert(id, Stream::default());
        Some(id)
    }

    fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        let mut waiting = self.to_accept.iter();
        let at = waiting.position(|id| id.direction() == direction)?;
        self.to_accept.remove(at)
    }

    fn read(
        &mut self,
        id: StreamId,
        _: Time,
        read: &mut dyn FnMut(&[u8]) -> usize,
    ) -> Result<Read, ReadError> {
        let stream = self.streams.get_mut(&id).ok_or(ReadError::UnknownStream)?;
        let bytes = stream.received.make_contiguous();
        let len = if bytes.is_empty() { 0 } else { read(bytes) };
        stream.received.drain(..len);
        Ok(Read {
            bytes: len,
            end: stream.has_end && stream.received.is_empty(),
        })
    }

    fn room(&mut self, id: StreamId, wanted: usize) -> Result<usize, WriteError> {
        let stream = self.streams.get(&id);
        stream.map(|_| wanted).ok_or(WriteError::UnknownStream)
    }

    fn write(&mut self, id: StreamId, bytes: &[u8]) -> Result<usize, WriteError> {
        let stream = self.streams.get_mut(&id);
        let stream = stream.ok_or(WriteError::UnknownStream)?;
        stream.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn send_source(&mut self, id: StreamId, source: Box<dyn Source>) -> Result<(), WriteError> {
        let mut bytes = vec![0; source.len() as usize];
        source.read_at(0, &mut bytes).expect("readable");
        self.write(id, &bytes).map(drop)
    }

    fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        let stream = self.streams.get_mut(&id);
        stream.ok_or(WriteError::UnknownStream)?.is_finished = true;
        Ok(())
    }

    fn reset(&mut self, id: StreamId, code: VarInt) -> Result<(), UnknownStream> {
        self.streams.get_mut(&id).ok_or(UnknownStream)?.reset = Some(code);
        Ok(())
    }

    fn stop_sending(&mut self, _: StreamId, _: VarInt, _: Time) -> Result<(), UnknownStream> {
        Ok(())
    }

    fn set_priority(&mut self, _: StreamId, _: Priority) -> Result<(), UnknownStream> {
        Ok(())
    }

    fn progress(&mut self, _: StreamId) -> Option<Progress> {
        None
    }

    fn send_credit(&mut self) -> u64 {
        u64::MAX
    }

    fn data_acked(&self) -> u64 {
        0
    }

    fn initial_unidirectional_credit(&self) -> u64 {
        1 << 20
    }

    fn is_handshaking(&self) -> bool {
        false
    }

    fn round_trip(&self) -> Duration {
        Duration::from_millis(10)
    }

    fn set_awaiting(&mut self, _: bool) {}

    fn close(&mut self, _: Time, code: u64) {
        self.closed_with = Some(code);
    }

    fn is_traced(&self) -> bool {
        self.traced.is_some()
    }

    fn trace_frame(&mut self, now: Time, frame: ApplicationFrame<'_>) {
        assert_eq!(now, NOW);
        let (stream, name, len) = (frame.stream.get(), frame.name, frame.len);
        let way = if frame.is_local { ">" } else { "<" };
        let text = format!(
            "{way}{stream} {name} {len} {:?} {:?}",
            frame.values, frame.text
        );
        self.traced.as_mut().expect("asked for").push(text);
    }
}

/// Two ends of HTTP/3, and of the transport below.
struct Pair {
    client: (Connection, Memory),
    server: (Connection, Memory),
}

impl Pair {
    fn new() -> Self {
        let config = Config::default();
        Self {
            client: (Connection::client(&config), Memory::new(Side::Client)),
            server: (Connection::server(&config), Memory::new(Side::Server)),
        }
    }

    /// Delivers until nothing more is sent; returns the events of both, the server answering each request with `body`.
    fn run(&mut self, body: &'static [u8]) -> (Vec<Event>, Vec<Event>) {
        let (mut of_client, mut of_server) = (Vec::new(), Vec::new());
        loop {
            let (http3, transport) = &mut self.client;
            while let Some(event) = http3.poll(transport, NOW) {
                of_client.push(event);
            }
            let (http3, transport) = &mut self.server;
            while let Some(event) = http3.poll(transport, NOW) {
                if let Event::Request { stream, .. } = &event {
                    let response = Response::new(200).with("content-type", "text/plain");
                    let body = Body::Source(Box::new(body));
                    http3
                        .respond(transport, *stream, &response, body)
                        .expect("a response is due");
                }
                of_server.push(event);
            }
            let (client, server) = (&mut self.client.1, &mut self.server.1);
            if !(client.deliver_to(server) | server.deliver_to(client)) {
                return (of_client, of_server);
            }
        }
    }
}

#[test]
fn a_request_and_its_response_need_no_quic() {
    let mut pair = Pair::new();
    pair.run(b"");
    let request = Request::new("GET", "https", "example.com", "/").with("accept", "*/*");
    let (http3, transport) = &mut pair.client;
    let asked = http3
        .request(transport, &request, Body::Empty)
        .expect("permitted");
    let (of_client, of_server) = pair.run(b"hello");
    assert!(of_server.iter().any(|event| matches!(
        event,
        Event::Request { stream, request } if *stream == asked && request.path() == Some("/")
    )));
    assert!(of_client.iter().any(|event| matches!(
        event,
        Event::Response { stream, response } if *stream == asked && response.status() == 200
    )));
    let (http3, transport) = &mut pair.client;
    let mut body = Vec::new();
    let mut read = |bytes: &[u8]| {
        body.extend_from_slice(bytes);
        bytes.len()
    };
    let taken = http3.read(transport, NOW, asked, &mut read);
    assert_eq!(taken, Ok(5));
    assert_eq!(body, b"hello");
    let finished = http3.poll(transport, NOW);
    assert_eq!(finished, Some(Event::Finished { stream: asked }));
}

/// Frames with their lengths and the values of control frames; of fields, the method and the status alone.
#[test]
fn frames_are_reported_to_a_transport_that_is_traced() {
    let mut pair = Pair::new();
    pair.client.1.traced = Some(Vec::new());
    pair.server.1.traced = Some(Vec::new());
    pair.run(b"");
    let request = Request::new("GET", "https", "example.com", "/private").with("cookie", "id=7");
    let (http3, transport) = &mut pair.client;
    let asked = http3
        .request(transport, &request, Body::Empty)
        .expect("permitted");
    assert_eq!(asked.get(), 12);
    let control = StreamId::new(Side::Client, Direction::Unidirectional, 0).expect("the first");
    transport
        .write(control, &priority_update(12, "u=5, i"))
        .expect("open");
    pair.run(b"hello");
    let (http3, transport) = &mut pair.server;
    http3.shut_down(transport, NOW);
    pair.run(b"");
    let traced = |transport: &mut Memory| transport.traced.take().expect("set above");
    let settings = r#"settings 12 [("settings_qpack_max_table_capacity", 4096), ("settings_max_field_section_size", 65536), ("settings_qpack_blocked_streams", 32)] None"#;
    let settings = |way: &str| format!("{way} {settings}");
    let reserved = |way: &str| format!(r#"{way} reserved 1 [("frame_type_value", 33)] None"#);
    let of_client = [
        settings(">2"),
        reserved(">2"),
        settings("<3"),
        reserved("<3"),
        r#">12 headers 18 [] Some((":method", "GET"))"#.to_owned(),
        r#"<12 headers 4 [] Some((":status", "200"))"#.to_owned(),
        "<12 data 5 [] None".to_owned(),
        r#"<3 goaway 8 [("id", 4611686018427387900)] None"#.to_owned(),
    ];
    assert_eq!(traced(&mut pair.client.1), of_client);
    let of_server = [
        settings(">3"),
        reserved(">3"),
        settings("<2"),
        reserved("<2"),
        r#"<2 priority_update 7 [("stream_id", 12)] Some(("priority_field_value", "u=5, i"))"#
            .to_owned(),
        r#"<12 headers 18 [] Some((":method", "GET"))"#.to_owned(),
        r#">12 headers 4 [] Some((":status", "200"))"#.to_owned(),
        ">12 data 5 [] None".to_owned(),
        r#">3 goaway 8 [("id", 4611686018427387900)] None"#.to_owned(),
    ];
    assert_eq!(traced(&mut pair.server.1), of_server);
}

#[test]
fn a_protocol_violation_closes_the_transport() {
    let mut pair = Pair::new();
    pair.run(b"");
    // Another control stream.
    let transport = &mut pair.client.1;
    let id = transport.open(Direction::Unidirectional).expect("a stream");
    transport.write(id, &[0]).expect("open");
    let (_, of_server) = pair.run(b"");
    let failed = of_server.iter().find_map(|event| match event {
        Event::Failed(error) => Some(error.code),
        _ => None,
    });
    assert_eq!(failed, Some(Code::STREAM_CREATION_ERROR));
    let code: VarInt = Code::STREAM_CREATION_ERROR.into();
    assert_eq!(pair.server.1.closed_with, Some(code.get()));
}
