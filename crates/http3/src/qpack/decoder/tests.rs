use super::*;
use crate::Code;

const LIMITS: SectionLimits = SectionLimits {
    size: 1 << 16,
    fields: 100,
};

fn decode(
    decoder: &mut Decoder,
    stream: u64,
    section: &[u8],
) -> Result<(Decoded, Fields), QpackError> {
    let mut fields = Fields::new();
    let outcome = decoder.decode(stream, section, LIMITS, &mut fields)?;
    Ok((outcome, fields))
}

fn lines(fields: &Fields) -> Vec<(&str, &[u8])> {
    fields.all().map(|line| (line.name, line.value)).collect()
}

#[track_caller]
fn assert_decodes(decoder: &mut Decoder, stream: u64, section: &[u8], expected: &[(&str, &[u8])]) {
    let (outcome, fields) = decode(decoder, stream, section).expect("a section");
    assert_eq!(outcome, Decoded::Done);
    assert_eq!(lines(&fields), expected);
}

#[test]
fn rfc9204_b_1_literal_field_line_with_name_reference() {
    let mut decoder = Decoder::new(0, 0);
    let section = b"\x00\x00\x51\x0b/index.html";
    assert_decodes(&mut decoder, 0, section, &[(":path", b"/index.html")]);
    assert!(decoder.instructions().is_empty());
}

/// A decoder after the encoder instructions of B.2.
fn after_b_2() -> Decoder {
    let mut decoder = Decoder::new(220, 10);
    let section = [0x03, 0x81, 0x10, 0x11];
    let (outcome, _) = decode(&mut decoder, 4, &section).expect("a section");
    assert_eq!(outcome, Decoded::Blocked);
    let instructions = b"\x3f\xbd\x01\xc0\x0fwww.example.com\xc1\x0c/sample/path";
    // In pieces of one byte, as instructions can arrive in any pieces.
    for byte in instructions {
        assert_eq!(decoder.next_unblocked(), None);
        decoder.on_encoder_stream(&[*byte]).expect("instructions");
    }
    assert_eq!(decoder.next_unblocked(), Some(4));
    let authority: (&str, &[u8]) = (":authority", b"www.example.com");
    assert_decodes(
        &mut decoder,
        4,
        &section,
        &[authority, (":path", b"/sample/path")],
    );
    assert_eq!(std::mem::take(decoder.instructions()), [0x84]);
    assert_eq!((decoder.table.inserted(), decoder.table.size()), (2, 106));
    decoder
}

#[test]
fn rfc9204_b_2_to_b_5_dynamic_table() {
    let mut decoder = after_b_2();
    // B.3: a speculative insertion, and its acknowledgment.
    decoder
        .on_encoder_stream(b"\x4acustom-key\x0ccustom-value")
        .expect("instructions");
    assert_eq!(decoder.table.size(), 160);
    assert_eq!(std::mem::take(decoder.instructions()), [0x01]);
    // B.4: a duplicate arrives after the section that needs it, and the stream is cancelled.
    let section = [0x05, 0x00, 0x80, 0xc1, 0x81];
    let (outcome, _) = decode(&mut decoder, 8, &section).expect("a section");
    assert_eq!((outcome, decoder.blocked()), (Decoded::Blocked, 1));
    let mut cancelled = Decoder::new(220, 10);
    cancelled.blocked.clone_from(&decoder.blocked);
    cancelled.cancel(8);
    assert_eq!(cancelled.blocked(), 0);
    assert_eq!(*cancelled.instructions(), [0x48]);
    decoder.on_encoder_stream(&[0x02]).expect("instructions");
    assert_eq!(decoder.table.size(), 217);
    assert_eq!(decoder.next_unblocked(), Some(8));
    let authority: (&str, &[u8]) = (":authority", b"www.example.com");
    let custom: (&str, &[u8]) = ("custom-key", b"custom-value");
    assert_decodes(
        &mut decoder,
        8,
        &section,
        &[authority, (":path", b"/"), custom],
    );
    // B.5: an insertion that evicts the first entry.
    decoder
        .on_encoder_stream(b"\x81\x0dcustom-value2")
        .expect("instructions");
    assert_eq!((decoder.table.oldest(), decoder.table.size()), (1, 215));
    assert_eq!(
        decoder.table.get(4),
        Some((&b"custom-key"[..], &b"custom-value2"[..]))
    );
}

#[test]
fn rfc9204_4_5_1_1_insert_counts_wrap_around() {
    // Capacity 64 is two empty entries, so that counts are encoded modulo 4.
    let mut decoder = Decoder::new(64, 10);
    decoder
        .on_encoder_stream(&[0x3f, 0x21])
        .expect("a capacity of 64");
    for inserted in 1..=20u64 {
        decoder
            .on_encoder_stream(&[0x40, 0x00])
            .expect("an empty entry");
        let encoded = (inserted % 4 + 1) as u8;
        assert_decodes(&mut decoder, 0, &[encoded, 0, 0x80], &[("", b"")]);
    }
    assert_eq!(
        decode(&mut decoder, 0, &[5, 0, 0x80]).map_err(|error| error.code),
        Err(Code::QPACK_DECOMPRESSION_FAILED)
    );
}

#[test]
fn rfc9204_2_2_3_invalid_references_are_decompression_failures() {
    for section in [
        // Static; dynamic without a required insert count; beyond it; evicted; post-base; the same for names.
        &[0, 0, 0xff, 0x24][..],
        &[0, 0, 0x80],
        &[2, 0x80, 0x11],
        &[3, 0, 0x82],
        &[2, 0, 0x10],
        &[0, 0, 0x5f, 0x54, 0],
        &[0, 0, 0x40, 0],
        &[0, 0, 0x00, 0],
        // A negative base; an encoded required insert count of zero that is invalid; a count without a base; truncated.
        &[2, 0x81, 0x80],
        &[],
        &[0],
        &[0, 0, 0x51],
        &[0, 0, 0x51, 5, b'a'],
        &[0, 0, 0x23, b'a'],
        // Invalid Huffman code.
        &[0, 0, 0x51, 0x81, 0x00],
        // An integer that never ends.
        &[
            0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ],
    ] {
        let mut decoder = after_b_2();
        let error = decode(&mut decoder, 0, section).expect_err("wrong");
        assert_eq!(error.code, Code::QPACK_DECOMPRESSION_FAILED, "{section:?}");
    }
}

#[test]
fn rfc9204_3_2_2_and_3_2_3_invalid_encoder_instructions_are_errors() {
    let too_long = [&[0x40, 0x7f, 0x80, 0x10][..], &[b'x'; 2000]].concat();
    for instructions in [
        // Capacity too large; an entry larger than the table; references to missing entries; invalid Huffman code.
        &[0x3f, 0xbe, 0x01][..],
        &[0x20, 0x40, 0x00],
        &[0x02],
        &[0x82, 0x00],
        &[0xff, 0x24, 0x00],
        &[0xc0, 0x81, 0x00],
        &too_long,
    ] {
        let mut decoder = after_b_2();
        let error = decoder.on_encoder_stream(instructions).expect_err("wrong");
        assert_eq!(
            error.code,
            Code::QPACK_ENCODER_STREAM_ERROR,
            "{instructions:?}"
        );
    }
}

#[test]
fn rfc9204_2_1_2_too_many_blocked_streams_are_an_error() {
    let mut decoder = Decoder::new(220, 1);
    assert!(decode(&mut decoder, 0, &[2, 0, 0x80]).is_ok());
    let error = decode(&mut decoder, 4, &[2, 0, 0x80]).expect_err("one too many");
    assert_eq!(error.code, Code::QPACK_DECOMPRESSION_FAILED);
}

#[test]
fn decoding_stops_at_the_section_limits() {
    let mut decoder = Decoder::new(0, 0);
    let section = [&[0, 0][..], &[0xd1; 50]].concat();
    for (size, fields, expected) in [
        (50 * 42, 50, Decoded::Done),
        (50 * 42 - 1, 50, Decoded::TooLarge),
        (50 * 42, 49, Decoded::TooLarge),
    ] {
        let limits = SectionLimits { size, fields };
        let mut into = Fields::new();
        assert_eq!(decoder.decode(0, &section, limits, &mut into), Ok(expected));
        assert!(into.section_size() <= size + 42);
    }
}

#[test]
fn rfc9204_7_1_3_the_never_indexed_bit_is_preserved() {
    let mut decoder = Decoder::new(0, 0);
    let section = b"\x00\x00\x75\x01x\x31y\x01z\x21y\x01z";
    let (_, fields) = decode(&mut decoder, 0, section).expect("a section");
    let marks: Vec<bool> = fields.all().map(|line| line.is_sensitive).collect();
    assert_eq!(marks, [true, true, false]);
}
