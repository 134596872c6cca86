use proptest::prelude::*;

use crate::{Reader, UnexpectedEnd, VarInt, Writer};

fn decode(bytes: &[u8]) -> Result<(u64, usize), UnexpectedEnd> {
    let mut reader = Reader::new(bytes);
    let value = reader.varint()?;
    Ok((value.get(), reader.position()))
}

fn encode(value: VarInt) -> Vec<u8> {
    let mut bytes = [0xee; 9];
    let mut writer = Writer::new(&mut bytes);
    writer.varint(value).expect("nine bytes are enough");
    let len = writer.position();
    assert_eq!(bytes[len..].iter().position(|byte| *byte != 0xee), None);
    bytes[..len].to_vec()
}

#[test]
fn rfc9000_a_1_vectors() {
    let vectors: [(u64, &[u8]); 4] = [
        (
            151_288_809_941_952_652,
            &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
        ),
        (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
        (15_293, &[0x7b, 0xbd]),
        (37, &[0x25]),
    ];
    for (value, bytes) in vectors {
        assert_eq!(decode(bytes), Ok((value, bytes.len())));
        assert_eq!(encode(VarInt::new(value).expect("in range")), bytes);
    }
    // 37 again, in a valid encoding of two bytes.
    assert_eq!(decode(&[0x40, 0x25]), Ok((37, 2)));
}

#[test]
fn rfc9000_16_table_4_bounds() {
    let bounds = [
        (0, 1),
        (63, 1),
        (64, 2),
        (16_383, 2),
        (16_384, 4),
        (1_073_741_823, 4),
        (1_073_741_824, 8),
        (4_611_686_018_427_387_903, 8),
    ];
    for (value, len) in bounds {
        let value = VarInt::new(value).expect("in range");
        assert_eq!(value.encoded_len(), len, "{value}");
        assert_eq!(encode(value).len(), len, "{value}");
        assert_eq!(decode(&encode(value)), Ok((value.get(), len)));
    }
    assert_eq!(VarInt::new(4_611_686_018_427_387_904), None);
    assert_eq!(VarInt::saturating(u64::MAX), VarInt::MAX);
    assert!(VarInt::try_from(u64::MAX).is_err());
    assert_eq!(VarInt::MAX.checked_add(1), None);
    assert_eq!(VarInt::MAX.checked_add(u64::MAX), None);
    assert_eq!(VarInt::ZERO.checked_add(7), Some(VarInt::from_u32(7)));
}

#[test]
fn a_failed_read_does_not_advance_the_reader() {
    let mut reader = Reader::new(&[0x01, 0x9d, 0x7f, 0x3e]);
    assert_eq!(reader.u8(), Ok(1));
    assert_eq!(reader.varint(), Err(UnexpectedEnd));
    assert_eq!((reader.position(), reader.remaining()), (1, 3));
}

proptest! {
    #[test]
    fn decode_inverts_encode(value in 0..=VarInt::MAX.get(), shift in 0_u32..62) {
        let value = VarInt::new(value >> shift).expect("in range");
        let bytes = encode(value);
        prop_assert_eq!(bytes.len(), value.encoded_len());
        prop_assert_eq!(decode(&bytes), Ok((value.get(), bytes.len())));
        for cut in 0..bytes.len() {
            prop_assert_eq!(decode(&bytes[..cut]), Err(UnexpectedEnd));
        }
    }

    #[test]
    fn any_eight_bytes_decode(bytes in any::<[u8; 8]>()) {
        let (value, len) = decode(&bytes).expect("eight bytes are always enough");
        prop_assert!(value <= VarInt::MAX.get());
        prop_assert_eq!(len, 1 << (bytes[0] >> 6));
    }
}
