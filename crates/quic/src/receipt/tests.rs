use lastbyte_wire::VarInt;

use super::*;

fn stream(id: u32, offset: u64, len: u32, fin: bool) -> Receipt {
    Receipt::Stream {
        id: StreamId::from(VarInt::from_u32(id)),
        offset,
        len,
        fin,
    }
}

#[test]
fn consecutive_data_of_a_stream_joins() {
    let first = stream(4, 100, 50, false);
    assert_eq!(
        first.joined(&stream(4, 150, 7, false)),
        Some(stream(4, 100, 57, false))
    );
    assert_eq!(
        first.joined(&stream(4, 150, 0, true)),
        Some(stream(4, 100, 50, true)),
        "the end of the stream is kept"
    );
}

#[test]
fn nothing_else_joins() {
    let first = stream(4, 100, 50, false);
    for next in [
        stream(8, 150, 7, false),
        stream(4, 151, 7, false),
        stream(4, 149, 7, false),
        stream(4, 0, 99, false),
        stream(4, 150, u32::MAX, false),
        Receipt::MaxData,
        Receipt::Crypto {
            offset: 150,
            len: 7,
        },
    ] {
        assert_eq!(first.joined(&next), None, "{next:?}");
        assert_eq!(next.joined(&first), None, "{next:?}");
    }
    let end = stream(4, 100, 50, true);
    assert_eq!(end.joined(&stream(4, 150, 7, false)), None);
    let last = stream(4, u64::MAX, 1, false);
    assert_eq!(last.joined(&stream(4, 0, 1, false)), None);
}

#[test]
fn a_receipt_is_three_words() {
    assert_eq!(size_of::<Receipt>(), 24);
}
