use super::*;
use crate::frame::Frame;

#[test]
fn the_largest_data_fits_and_one_byte_more_does_not() {
    let data = vec![0; 20_000];
    for offset in [0, 63, 64, 20_000].map(VarInt::from_u32) {
        let len_of = |len| {
            Crypto {
                offset,
                data: &data[..len],
            }
            .encoded_len()
        };
        for space in (0..200).chain(16_300..16_500) {
            match Crypto::data_len_max(offset, space) {
                Some(len) => assert!(len_of(len) <= space && len_of(len + 1) > space),
                None => assert!(len_of(1) > space),
            }
        }
    }
    assert_eq!(Crypto::data_len_max(VarInt::MAX, 100), None);
}

#[test]
fn rfc9000_19_6_the_end_of_the_data_is_at_most_2_to_the_62_minus_1() {
    let mut bytes = [
        0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 1, b'x',
    ];
    assert!(Frame::decode(&mut Reader::new(&bytes)).is_ok());
    bytes[8] = 0xff;
    let error = Frame::decode(&mut Reader::new(&bytes)).expect_err("beyond the limit");
    assert_eq!(error.kind, FrameErrorKind::OffsetAboveLimit);
}
