//! What requests cost in memory: bodies nothing for each packet or frame, and heads little.

#[path = "suite/pair.rs"]
mod pair;

use lastbyte_http3::{
    Body, BodySink, Config, Event, FieldLine, Fields, Request, Response,
    qpack::{Decoded, Decoder, EncodeOptions, Encoder, SectionLimits},
};
use lastbyte_quic::stream::{Source, SourceError, StreamSink};
use lastbyte_testkit::{CountingAllocator, allocation_count};
use lastbyte_wire::{Direction, StreamId};

use self::pair::{BAD_PATH, DELAY, Faults, Pair};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn counted(work: impl FnOnce()) -> u64 {
    let before = allocation_count();
    work();
    allocation_count() - before
}

const REQUEST: [(&str, &str); 8] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "www.example.com"),
    (":path", "/images/picture-17.jpg"),
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36",
    ),
    ("accept", "image/avif,image/webp,image/*,*/*;q=0.8"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("priority", "u=5, i"),
];

#[test]
fn a_section_allocates_only_the_memory_of_its_fields() {
    let mut encoder = Encoder::new(4096, 0);
    encoder.on_peer_settings(4096, 0);
    let mut decoder = Decoder::new(4096, 0);
    let limits = SectionLimits {
        size: 1 << 16,
        fields: 100,
    };
    let options = EncodeOptions {
        instructions_max: 4096,
        may_block: false,
    };
    let mut section = Vec::new();
    let mut lengths = Vec::new();
    let mut once = |stream: u64| {
        let lines = REQUEST.iter().map(|(name, value)| FieldLine {
            name,
            value: value.as_bytes(),
            is_sensitive: false,
        });
        section.clear();
        encoder.encode(stream, lines, options, &mut section);
        decoder
            .on_encoder_stream(encoder.instructions())
            .expect("instructions");
        encoder.instructions().clear();
        let mut fields = Fields::new();
        let outcome = decoder.decode(stream, &section, limits, &mut fields);
        assert_eq!(outcome, Ok(Decoded::Done));
        encoder
            .on_decoder_stream(decoder.instructions())
            .expect("acknowledgments");
        decoder.instructions().clear();
        section.len()
    };
    for stream in 0..10 {
        lengths.push(once(stream * 4));
    }
    let cost = counted(|| {
        for stream in 10..20 {
            once(stream * 4);
        }
    });
    assert_eq!(lengths.last(), Some(&10), "{lengths:?}");
    // The text and the lines of the fields, which grow as they are filled.
    assert!(cost <= 10 * 10, "{cost}");
}

/// A body from nowhere.
struct Zeros(u64);

impl Source for Zeros {
    fn len(&self) -> u64 {
        self.0
    }

    fn read_at(&self, _: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        buffer.fill(0);
        Ok(())
    }
}

struct Count(u64);

impl BodySink for Count {
    fn body(&mut self, _: StreamId, bytes: &[u8]) -> usize {
        self.0 += bytes.len() as u64;
        bytes.len()
    }
}

/// Slices of packets go to the sink without a copy: whatever DATA frames they are cut into.
#[test]
fn a_body_allocates_nothing_per_packet_or_frame() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    let (http3, quic) = pair.client.http3();
    let request = Request::new("GET", "https", "example.com", "/");
    let id = http3
        .request(quic, &request, Body::Empty)
        .expect("a request");
    let mut body = Count(0);
    assert!(!http3.sink(&mut body).takes(id), "not before the head");
    pair.pass(2 * DELAY);
    let (http3, quic) = pair.server.http3();
    http3
        .respond(quic, id, &Response::new(200), Body::Follows)
        .expect("a response");
    pair.pass(2 * DELAY);
    // Frames of 5000 bytes in packets of 1400.
    let frame = [&[0, 0x53, 0x88][..], &[7; 5000]].concat();
    let stream = frame.repeat(1000);
    let (http3, _) = pair.client.http3();
    let mut sink = http3.sink(&mut body);
    assert!(sink.takes(id));
    let cost = counted(|| {
        for (offset, packet) in (0..).step_by(1400).zip(stream.chunks(1400)) {
            assert_eq!(sink.data(id, offset, packet, false), packet.len());
        }
    });
    assert_eq!((cost, body.0), (0, 5_000_000));
}

/// How much memory a request and its response of 32 KiB cost, both ends and both transports together.
#[test]
fn allocations_of_a_request_are_bounded() {
    let config = Config::default();
    let mut pair = Pair::new(&config, &config, 1, Faults::default());
    pair.client.uses_sink = true;
    pair.shake_hands();
    let mut response = Response::new(200);
    let mut request = Request::default();
    let mut once = |pair: &mut Pair| {
        request.renew("GET", "https", "www.example.com", "/images/picture-17.jpg");
        for (name, value) in REQUEST.iter().skip(4) {
            request.fields_mut().push(name, value);
        }
        let (http3, quic) = pair.client.http3();
        let mut cost = 0;
        let mut id = None;
        cost += counted(|| id = http3.request(quic, &request, Body::Empty).ok());
        let id = id.expect("a request");
        pair.pass(2 * DELAY);
        response.renew(200);
        response.fields_mut().push("content-type", "image/jpeg");
        response.fields_mut().push("content-length", "32768");
        let (http3, quic) = pair.server.http3();
        let body = Body::Source(Box::new(Zeros(32768)));
        cost += counted(|| {
            let answered = http3.respond(quic, id, &response, body);
            answered.expect("a response");
        });
        pair.pass(10 * DELAY);
        for end in [&mut pair.client, &mut pair.server] {
            for event in end.events.drain(..) {
                let http3 = end.http3.as_mut().expect("an end");
                match event {
                    Event::Request { request, .. } => http3.recycle(request.into_fields()),
                    Event::Response { response, .. } => http3.recycle(response.into_fields()),
                    _ => {}
                }
            }
            end.bodies.clear();
        }
        cost
    };
    for _ in 0..10 {
        once(&mut pair);
    }
    let cost = once(&mut pair);
    // The transport's stream and the parts of its body, at both ends; nothing of ours.
    assert!(cost <= 8, "{cost}");
}

#[test]
fn the_allocation_counter_counts() {
    assert!(counted(|| drop(std::hint::black_box(Box::new(1)))) > 0);
}

/// What the suite alone uses of the pair.
#[expect(dead_code, reason = "the pair is shared with the suite")]
fn unused() -> Pair {
    let config = Config::default();
    let mut pair = Pair::new(&config, &config, 1, BAD_PATH);
    pair.run_until("never", |_| true);
    pair.client.open(Direction::Unidirectional, &[], false);
    Pair::plain()
}
