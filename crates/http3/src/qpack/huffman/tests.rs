use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// Decodes bit by bit, comparing with every word: slow and simple.
fn naive(bytes: &[u8]) -> Result<Vec<u8>, NotHuffman> {
    let mut text = Vec::new();
    let (mut word, mut len) = (0u32, 0u8);
    for bit in bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
    {
        word = word << 1 | u32::from(bit);
        len += 1;
        let found = TABLES
            .words
            .iter()
            .position(|one| one.len == len && one.bits == word);
        if let Some(symbol) = found {
            text.push(u8::try_from(symbol).map_err(|_| NotHuffman)?);
            (word, len) = (0, 0);
        }
        if len > 30 {
            return Err(NotHuffman);
        }
    }
    let is_padding = len < 8 && word == (1 << len) - 1;
    if is_padding {
        Ok(text)
    } else {
        Err(NotHuffman)
    }
}

fn encoded(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(text, &mut bytes);
    bytes
}

fn decoded(bytes: &[u8]) -> Result<Vec<u8>, NotHuffman> {
    let mut text = Vec::new();
    decode(bytes, &mut text).map(|()| text)
}

#[test]
fn rfc7541_c_4_and_c_6_examples() {
    for (text, bytes) in [
        ("www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"),
        ("no-cache", "a8eb10649cbf"),
        ("custom-key", "25a849e95ba97d7f"),
        ("custom-value", "25a849e95bb8e8b4bf"),
        ("302", "6402"),
        ("private", "aec3771a4b"),
        (
            "Mon, 21 Oct 2013 20:13:21 GMT",
            "d07abe941054d444a8200595040b8166e082a62d1bff",
        ),
        (
            "https://www.example.com",
            "9d29ad171863c78f0b97c8e9ae82ae43d3",
        ),
    ] {
        let mut hex = String::new();
        for byte in encoded(text.as_bytes()) {
            write!(hex, "{byte:02x}").expect("a string takes all");
        }
        assert_eq!(hex, bytes, "{text}");
        assert_eq!(encoded_len(text.as_bytes()) * 2, bytes.len());
        assert_eq!(
            decoded(&encoded(text.as_bytes())),
            Ok(text.as_bytes().to_vec())
        );
    }
}

#[test]
fn the_code_is_complete() {
    // Kraft's sum is 1, so every sequence of bits starts with a code word.
    let sum: u64 = LENGTHS.iter().map(|len| 1u64 << (30 - len)).sum();
    assert_eq!(sum, 1 << 30);
    assert_eq!(TABLES.words[EOS].bits, (1 << 30) - 1);
}

#[test]
fn rfc7541_5_2_padding_is_ones_shorter_than_a_byte() {
    assert_eq!(decoded(&[0x07]), Ok(b"0".to_vec()));
    assert_eq!(decoded(&[0x06]), Err(NotHuffman), "not ones");
    assert_eq!(decoded(&[0x07, 0xff]), Err(NotHuffman), "eleven ones");
    assert_eq!(decoded(&[0xff]), Err(NotHuffman), "a whole byte");
    assert_eq!(decoded(&[]), Ok(Vec::new()));
}

#[test]
fn rfc7541_5_2_the_end_of_string_symbol_is_an_error() {
    assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), Err(NotHuffman));
    assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xfc]), Err(NotHuffman));
}

#[test]
fn every_symbol_round_trips() {
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(decoded(&encoded(&all)), Ok(all));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_round_trips(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = encoded(&text);
        prop_assert_eq!(bytes.len(), encoded_len(&text));
        prop_assert_eq!(decoded(&bytes), Ok(text));
    }

    #[test]
    fn decoding_arbitrary_bytes_matches_a_bitwise_decoder(bytes in proptest::collection::vec(any::<u8>(), 0..60), ones in 0usize..6) {
        let mut bytes = bytes;
        bytes.extend(std::iter::repeat_n(0xff, ones));
        prop_assert_eq!(decoded(&bytes), naive(&bytes));
    }
}
