//! What field sections cost: time of encoding and decoding a typical request and response, with and without the dynamic
//! table, and of one exchange on a connection.
//!
//!     cargo run --profile dist -p lastbyte-http3 --example message_cost
//!
//! For instructions: `valgrind --tool=callgrind` over the same, with `-- request` or `-- response` for one of them.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example measures and prints"
)]

use std::{hint::black_box, time::Instant};

use lastbyte_http3::{
    FieldLine, Fields,
    qpack::{Decoder, EncodeOptions, Encoder, SectionLimits},
};

const REQUEST: [(&str, &str); 10] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "www.example.com"),
    (":path", "/images/2026/11/picture-17.jpg?size=large"),
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    ),
    (
        "accept",
        "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
    ),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-GB,en;q=0.9"),
    ("referer", "https://www.example.com/gallery"),
    ("priority", "u=5, i"),
];

const RESPONSE: [(&str, &str); 8] = [
    (":status", "200"),
    ("content-type", "image/jpeg"),
    ("content-length", "32768"),
    ("date", "Sat, 21 Nov 2026 19:00:00 GMT"),
    ("last-modified", "Fri, 20 Nov 2026 08:30:00 GMT"),
    ("etag", "\"5f2b-18c9d\""),
    ("server", "lastbyte"),
    ("cache-control", "public, max-age=31536000"),
];

const ROUNDS: u64 = 300_000;

fn lines<'a>(of: &'a [(&'a str, &'a str)]) -> impl Iterator<Item = FieldLine<'a>> {
    of.iter().map(|(name, value)| FieldLine {
        name,
        value: value.as_bytes(),
        is_sensitive: false,
    })
}

fn measure(what: &str, head: &[(&str, &str)], capacity: u32) {
    let mut encoder = Encoder::new(capacity, 0);
    encoder.on_peer_settings(u64::from(capacity), 0);
    let mut decoder = Decoder::new(capacity, 0);
    let options = EncodeOptions {
        instructions_max: 4096,
        may_block: false,
    };
    let limits = SectionLimits {
        size: 1 << 16,
        fields: 100,
    };
    let mut section = Vec::new();
    // The table settles.
    for stream in 0..8 {
        section.clear();
        encoder.encode(stream, lines(head), options, &mut section);
        exchange(&mut encoder, &mut decoder, stream, &section, limits);
    }
    let before = Instant::now();
    for stream in 0..ROUNDS {
        section.clear();
        encoder.encode(stream, lines(black_box(head)), options, &mut section);
        // As if it was acknowledged at once.
        if section.first().is_some_and(|first| *first != 0) {
            let mut acknowledgment = Vec::with_capacity(0);
            std::mem::swap(&mut acknowledgment, decoder.instructions());
            acknowledgment.clear();
            put_acknowledgment(&mut acknowledgment, stream);
            let taken = encoder.on_decoder_stream(&acknowledgment);
            debug_assert!(taken.is_ok());
            acknowledgment.clear();
            *decoder.instructions() = acknowledgment;
        }
    }
    let encoding = before.elapsed();
    let before = Instant::now();
    for stream in 0..ROUNDS {
        let mut fields = Fields::new();
        let outcome = decoder.decode(stream, black_box(&section), limits, &mut fields);
        debug_assert!(outcome.is_ok());
        decoder.instructions().clear();
    }
    let decoding = before.elapsed();
    let each = |time: std::time::Duration| time.as_secs_f64() * 1e9 / ROUNDS as f64;
    let text: usize = head
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    println!(
        "{what:>10} {capacity:>8} {text:>6} {:>8} {:>10.0} {:>10.0}",
        section.len(),
        each(encoding),
        each(decoding)
    );
}

fn exchange(
    encoder: &mut Encoder,
    decoder: &mut Decoder,
    stream: u64,
    section: &[u8],
    limits: SectionLimits,
) {
    let taken = decoder.on_encoder_stream(encoder.instructions());
    debug_assert!(taken.is_ok());
    encoder.instructions().clear();
    let outcome = decoder.decode(stream, section, limits, &mut Fields::new());
    debug_assert!(outcome.is_ok());
    let taken = encoder.on_decoder_stream(decoder.instructions());
    debug_assert!(taken.is_ok());
    decoder.instructions().clear();
}

/// RFC 9204 §4.4.1.
fn put_acknowledgment(into: &mut Vec<u8>, stream: u64) {
    if stream < 127 {
        into.push(0x80 | stream as u8);
        return;
    }
    into.push(0xff);
    let mut rest = stream - 127;
    while rest >= 0x80 {
        into.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    into.push(rest as u8);
}

fn main() {
    let wanted = std::env::args().nth(1);
    println!("      head capacity   text  encoded  encode ns  decode ns");
    for (what, head) in [("request", &REQUEST[..]), ("response", &RESPONSE[..])] {
        if wanted.as_deref().is_none_or(|wanted| wanted == what) {
            measure(what, head, 0);
            measure(what, head, 4096);
        }
    }
}
