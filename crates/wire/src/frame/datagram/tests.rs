use super::*;
use crate::frame::Frame;

#[test]
fn rfc9221_4_without_a_length_the_data_runs_to_the_end_of_the_packet() {
    let mut buffer = [0; 6];
    let mut writer = Writer::new(&mut buffer);
    let len = Datagram::data_len_max(writer.remaining(), LengthField::Absent).expect("fits");
    Datagram::begin(&mut writer, len, LengthField::Absent)
        .expect("fits")
        .copy_from_slice(b"hello");
    assert_eq!(buffer, *b"\x30hello");
    let frame = Frame::decode(&mut Reader::new(&buffer));
    assert_eq!(frame, Ok(Frame::Datagram(Datagram { data: b"hello" })));
    // Empty data is valid.
    let empty = Frame::decode(&mut Reader::new(&[0x30]));
    assert_eq!(empty, Ok(Frame::Datagram(Datagram { data: b"" })));
}

#[test]
fn the_largest_data_fits_and_one_byte_more_does_not() {
    let mut buffer = [0; 80];
    for space in 2..80 {
        let len = Datagram::data_len_max(space, LengthField::Present).expect("fits");
        let mut writer = Writer::new(&mut buffer[..space]);
        assert!(Datagram::begin(&mut writer, len + 1, LengthField::Present).is_err());
        assert_eq!(writer.position(), 0);
        assert!(Datagram::begin(&mut writer, len, LengthField::Present).is_ok());
    }
    assert_eq!(Datagram::data_len_max(1, LengthField::Present), None);
    assert_eq!(Datagram::data_len_max(0, LengthField::Absent), None);
}
