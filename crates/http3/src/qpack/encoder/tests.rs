use super::*;
use crate::{
    Code, Fields,
    qpack::{Decoded, Decoder, SectionLimits},
};

const OPTIONS: EncodeOptions = EncodeOptions {
    instructions_max: 4096,
    may_block: false,
};

const BLOCKING: EncodeOptions = EncodeOptions {
    instructions_max: 4096,
    may_block: true,
};

const LIMITS: SectionLimits = SectionLimits {
    size: 1 << 16,
    fields: 100,
};

fn encoder(capacity: u32, blocked: u16) -> Encoder {
    let mut encoder = Encoder::new(capacity, blocked);
    encoder.on_peer_settings(u64::from(capacity), u64::from(blocked));
    encoder
}

fn encode(encoder: &mut Encoder, stream: u64, fields: &Fields, options: EncodeOptions) -> Vec<u8> {
    let mut section = Vec::new();
    encoder.encode(stream, fields.all(), options, &mut section);
    section
}

fn fields(lines: &[(&str, &str)]) -> Fields {
    lines.iter().copied().collect()
}

#[test]
fn without_a_dynamic_table_only_the_static_table_is_used() {
    let mut encoder = Encoder::new(4096, 10);
    let some = fields(&[
        (":method", "GET"),
        (":path", "/index.html"),
        ("x", "y"),
        ("server", ""),
    ]);
    let section = encode(&mut encoder, 0, &some, BLOCKING);
    // Both Huffman-coded or not, whichever is shorter.
    assert_eq!(section[..4], [0, 0, 0xd1, 0x51]);
    assert!(encoder.instructions().is_empty());
}

#[test]
fn rfc9204_3_2_3_the_capacity_is_at_most_what_the_peer_permits() {
    let mut encoder = Encoder::new(4096, 10);
    encoder.on_peer_settings(220, 0);
    assert_eq!(*encoder.instructions(), [0x3f, 0xbd, 0x01]);
    let mut encoder = Encoder::new(100, 10);
    encoder.on_peer_settings(1 << 40, 0);
    assert_eq!(*encoder.instructions(), [0x3f, 0x45]);
    let mut encoder = Encoder::new(100, 10);
    encoder.on_peer_settings(0, 0);
    assert!(encoder.instructions().is_empty());
}

#[test]
fn rfc9204_2_1_2_unacknowledged_entries_are_not_referenced() {
    let mut encoder = encoder(4096, 0);
    let some = fields(&[("server", "lastbyte/0.1")]);
    let first = encode(&mut encoder, 0, &some, BLOCKING);
    assert_eq!(first[..2], [0, 0], "inserted, and sent as text");
    assert_eq!(encoder.table.inserted(), 1);
    let second = encode(&mut encoder, 4, &some, BLOCKING);
    assert_eq!(second, first);
    encoder.on_decoder_stream(&[0x01]).expect("an increment");
    assert_eq!(encode(&mut encoder, 8, &some, BLOCKING), [2, 0, 0x80]);
    assert_eq!(encoder.table.inserted(), 1, "once is enough");
}

#[test]
fn rfc9204_2_1_2_blocked_streams_stay_within_the_peers_limit() {
    let mut encoder = encoder(4096, 2);
    let some = fields(&[("server", "lastbyte/0.1")]);
    let refers = |section: &[u8]| section[0] != 0;
    assert!(refers(&encode(&mut encoder, 0, &some, BLOCKING)));
    assert!(!refers(&encode(&mut encoder, 4, &some, OPTIONS)));
    assert!(refers(&encode(&mut encoder, 4, &some, BLOCKING)));
    assert!(!refers(&encode(&mut encoder, 8, &some, BLOCKING)));
    // Streams that may be blocked anyway may wait for further entries.
    assert!(refers(&encode(&mut encoder, 4, &some, BLOCKING)));
    // Acknowledged entries block no stream.
    encoder
        .on_decoder_stream(&[0x80])
        .expect("an acknowledgment");
    assert!(refers(&encode(&mut encoder, 8, &some, OPTIONS)));
}

#[test]
fn rfc9204_2_1_1_referenced_entries_are_not_evicted() {
    // Room for two entries of this size.
    let mut encoder = encoder(100, 0);
    let one = fields(&[("server", "one")]);
    let two = fields(&[("server", "two")]);
    let three = fields(&[("server", "three")]);
    encode(&mut encoder, 0, &one, OPTIONS);
    encode(&mut encoder, 0, &two, OPTIONS);
    assert_eq!(encoder.table.inserted(), 2);
    // Nothing is acknowledged: nothing can be evicted.
    encode(&mut encoder, 0, &three, OPTIONS);
    assert_eq!(encoder.table.inserted(), 2);
    encoder.on_decoder_stream(&[0x02]).expect("an increment");
    let section = encode(&mut encoder, 4, &one, OPTIONS);
    assert_ne!(section[0], 0);
    // The first entry is referred to, and stays.
    encode(&mut encoder, 8, &three, OPTIONS);
    assert_eq!(encoder.table.inserted(), 2);
    encoder
        .on_decoder_stream(&[0x84])
        .expect("an acknowledgment");
    encode(&mut encoder, 8, &three, OPTIONS);
    assert_eq!((encoder.table.inserted(), encoder.table.oldest()), (3, 1));
}

#[test]
fn rfc9204_2_1_1_1_draining_entries_are_duplicated() {
    // Ten entries of 46 bytes, of which two are draining.
    let mut encoder = encoder(470, 0);
    let number = |number| fields(&[("server", &format!("number {number}"))]);
    for at in 0..10 {
        encode(&mut encoder, 0, &number(at), OPTIONS);
        encoder.on_decoder_stream(&[0x01]).expect("an increment");
    }
    encoder.instructions().clear();
    let section = encode(&mut encoder, 4, &number(1), OPTIONS);
    assert_eq!(*encoder.instructions(), [0x08], "a copy of the second");
    assert_eq!(section[..2], [0, 0], "which is not there yet");
    assert_eq!((encoder.table.inserted(), encoder.table.oldest()), (11, 1));
    encoder.on_decoder_stream(&[0x01]).expect("an increment");
    assert_eq!(encode(&mut encoder, 4, &number(1), OPTIONS)[2..], [0x80]);
    // Those in the middle are referred to directly.
    encoder.instructions().clear();
    assert_eq!(encode(&mut encoder, 8, &number(6), OPTIONS)[2..], [0x84]);
    assert!(encoder.instructions().is_empty());
}

#[test]
fn rfc9204_7_1_sensitive_fields_are_not_inserted() {
    let mut encoder = encoder(4096, 10);
    let mut some = fields(&[
        ("cookie", "a=b"),
        ("set-cookie", "a=b"),
        ("authorization", "Basic x"),
        ("proxy-authorization", "Basic x"),
    ]);
    some.push_sensitive("server", "secret");
    for stream in 0..5 {
        encode(&mut encoder, stream * 4, &some, BLOCKING);
    }
    assert_eq!(encoder.table.inserted(), 0);
}

#[test]
fn instructions_stay_within_the_space_on_the_encoder_stream() {
    let mut encoder = encoder(4096, 10);
    encoder.instructions().clear();
    let some = fields(&[("server", "lastbyte"), ("x", "y")]);
    let options = EncodeOptions {
        instructions_max: 30,
        may_block: true,
    };
    for stream in 0..4 {
        encode(&mut encoder, stream, &some, options);
        assert!(encoder.instructions().len() <= 30);
    }
    assert_eq!(encoder.table.inserted(), 1, "`x` alone");
}

#[test]
fn rfc9204_4_4_invalid_acknowledgments_are_decoder_stream_errors() {
    for bytes in [
        &[0x00][..],
        &[0x02],
        &[0x84],
        &[
            0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ],
    ] {
        let mut encoder = encoder(4096, 10);
        encode(&mut encoder, 0, &fields(&[("server", "x")]), BLOCKING);
        let error = encoder.on_decoder_stream(bytes).expect_err("wrong");
        assert_eq!(error.code, Code::QPACK_DECODER_STREAM_ERROR, "{bytes:?}");
    }
}

#[test]
fn sections_that_are_never_acknowledged_are_bounded() {
    let mut encoder = encoder(4096, 10);
    let some = fields(&[("server", "lastbyte")]);
    encode(&mut encoder, 0, &some, OPTIONS);
    encoder.on_decoder_stream(&[0x01]).expect("an increment");
    for stream in 0..5000 {
        encode(&mut encoder, stream, &some, OPTIONS);
    }
    assert_eq!(encoder.outstanding.len(), OUTSTANDING_MAX);
    let section = encode(&mut encoder, 0, &some, OPTIONS);
    let mut decoded = Fields::new();
    let result = Decoder::new(0, 0).decode(0, &section, LIMITS, &mut decoded);
    assert_eq!(
        (result, decoded),
        (Ok(Decoded::Done), some),
        "without the table"
    );
}

#[test]
fn a_section_after_pre_encoded_lines_is_identical() {
    let fields = Fields::new()
        .with("content-type", "text/html")
        .with("etag", "\"17f-5e\"")
        .with("date", "Sun, 06 Nov 1994 08:49:37 GMT");
    let mut plain = encoder(0, 0);
    assert!(plain.is_static());
    let first = encode_static(fields.all_raw().take(2));
    let mut section = Vec::new();
    static_section(&first, fields.raw_from(2), &mut section);
    assert_eq!(section, encode(&mut plain, 4, &fields, OPTIONS));
    assert!(!encoder(4096, 0).is_static());
}
