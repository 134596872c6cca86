use proptest::prelude::*;

use super::*;
use crate::frame::Frame;

fn header(id: u32, offset: u64, fin: bool) -> StreamHeader {
    StreamHeader {
        id: VarInt::from_u32(id).into(),
        offset: VarInt::new(offset).expect("in range"),
        fin,
    }
}

fn encode(header: StreamHeader, data: &[u8], length: LengthField) -> Vec<u8> {
    let mut buffer = vec![0xee; header.encoded_len(data.len(), length)];
    let mut writer = Writer::new(&mut buffer);
    header
        .begin(&mut writer, data.len(), length)
        .expect("fits exactly")
        .copy_from_slice(data);
    assert_eq!(writer.remaining(), 0);
    buffer
}

#[test]
fn rfc9000_19_8_all_eight_types() {
    use LengthField::{Absent, Present};
    let frames: [(u64, LengthField, bool, &[u8]); 8] = [
        (0, Absent, false, &[0x08, 0x05, b'x']),
        (0, Absent, true, &[0x09, 0x05, b'x']),
        (0, Present, false, &[0x0a, 0x05, 0x01, b'x']),
        (0, Present, true, &[0x0b, 0x05, 0x01, b'x']),
        (7, Absent, false, &[0x0c, 0x05, 0x07, b'x']),
        (7, Absent, true, &[0x0d, 0x05, 0x07, b'x']),
        (7, Present, false, &[0x0e, 0x05, 0x07, 0x01, b'x']),
        (7, Present, true, &[0x0f, 0x05, 0x07, 0x01, b'x']),
    ];
    for (offset, length, fin, bytes) in frames {
        let header = header(5, offset, fin);
        assert_eq!(encode(header, b"x", length), bytes);
        let frame = Frame::decode(&mut Reader::new(bytes));
        assert_eq!(frame, Ok(Frame::Stream(Stream { header, data: b"x" })));
    }
}

#[test]
fn rfc9000_19_8_the_end_of_the_data_is_at_most_2_to_the_62_minus_1() {
    let last = VarInt::MAX.get();
    let encoded = encode(header(0, last - 1, false), b"x", LengthField::Present);
    assert!(Frame::decode(&mut Reader::new(&encoded)).is_ok());
    // The same data at the next offset.
    let mut beyond = encoded;
    beyond[9] += 1;
    let error = Frame::decode(&mut Reader::new(&beyond)).expect_err("beyond the limit");
    assert_eq!(error.kind, FrameErrorKind::OffsetAboveLimit);
    assert_eq!(
        header(0, last, true).data_len_max(100, LengthField::Absent),
        Some(0)
    );
}

#[test]
fn a_frame_that_does_not_fit_writes_nothing() {
    let header = header(5, 7, false);
    for space in 0..header.encoded_len(3, LengthField::Present) {
        let mut buffer = vec![0; space];
        let mut writer = Writer::new(&mut buffer);
        let result = header.begin(&mut writer, 3, LengthField::Present);
        assert_eq!(result, Err(BufferFull));
        assert_eq!(writer.position(), 0);
    }
}

proptest! {
    #[test]
    fn the_largest_data_fits_and_one_byte_more_does_not(
        id in any::<u32>(),
        offset in 0..VarInt::MAX.get() / 2,
        small in any::<bool>(),
        space in 0_usize..20_000,
        present in any::<bool>(),
    ) {
        let header = header(id, if small { offset % 3 } else { offset }, false);
        let length = if present { LengthField::Present } else { LengthField::Absent };
        match header.data_len_max(space, length) {
            Some(len) => {
                prop_assert!(header.encoded_len(len, length) <= space);
                prop_assert!(header.encoded_len(len + 1, length) > space);
                let mut buffer = vec![0; space];
                let mut writer = Writer::new(&mut buffer);
                prop_assert_eq!(header.begin(&mut writer, len, length).map(|data| data.len()), Ok(len));
                prop_assert_eq!(writer.position(), header.encoded_len(len, length));
            }
            None => prop_assert!(header.encoded_len(0, length) > space),
        }
    }
}
