use proptest::prelude::*;

use super::*;

#[test]
fn rfc7541_c_1_examples() {
    for (prefix, value, bytes) in [
        (5, 10, &[0x0a][..]),
        (5, 1337, &[0x1f, 0x9a, 0x0a]),
        (8, 42, &[0x2a]),
    ] {
        let mut written = Vec::new();
        put(&mut written, 0, prefix, value);
        assert_eq!(written, bytes);
        assert_eq!(read(&mut Reader::new(bytes), prefix), Ok(value));
    }
}

#[test]
fn rfc9204_4_1_1_integers_above_62_bits_are_errors() {
    let mut bytes = Vec::new();
    put(&mut bytes, 0, 8, (1 << 62) - 1);
    assert_eq!(read(&mut Reader::new(&bytes), 8), Ok((1 << 62) - 1));
    bytes.clear();
    put(&mut bytes, 0, 8, 1 << 62);
    assert_eq!(
        read(&mut Reader::new(&bytes), 8),
        Err(IntegerError::TooLarge)
    );
    let endless = [0xff; 64];
    assert_eq!(
        read(&mut Reader::new(&endless), 3),
        Err(IntegerError::TooLarge)
    );
}

proptest! {
    #[test]
    fn integers_round_trip(value in 0u64..1 << 62, small in 0u64..600, prefix in 1u32..=8) {
        for value in [value, small] {
            let mut bytes = Vec::new();
            let flags = if prefix == 8 { 0 } else { 0xffu8 << prefix };
            put(&mut bytes, flags, prefix, value);
            prop_assert_eq!(read(&mut Reader::new(&bytes), prefix), Ok(value));
            let short = &bytes[..bytes.len() - 1];
            prop_assert_eq!(read(&mut Reader::new(short), prefix), Err(IntegerError::Incomplete));
        }
    }
}
