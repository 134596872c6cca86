use super::*;

#[test]
fn rfc9000_2_1_table_1() {
    use Direction::{Bidirectional, Unidirectional};
    let types = [
        (0, Side::Client, Bidirectional),
        (1, Side::Server, Bidirectional),
        (2, Side::Client, Unidirectional),
        (3, Side::Server, Unidirectional),
    ];
    for (low_bits, initiator, direction) in types {
        for index in [0, 1, 5, (1 << 60) - 1] {
            let id = StreamId::new(initiator, direction, index).expect("in range");
            assert_eq!(id.get(), index * 4 + low_bits);
            assert_eq!(id.initiator(), initiator);
            assert_eq!(id.direction(), direction);
            assert_eq!(id.index(), index);
            assert_eq!(StreamId::from(VarInt::from(id)), id);
        }
        assert_eq!(StreamId::new(initiator, direction, 1 << 60), None);
    }
}

#[test]
fn rfc9000_4_6_stream_counts_are_at_most_2_to_the_60() {
    assert_eq!(StreamCount::new(1 << 60), Some(StreamCount::MAX));
    assert_eq!(StreamCount::new((1 << 60) + 1), None);
    assert_eq!(VarInt::from(StreamCount::MAX).get(), 1 << 60);
}

#[test]
fn peer_is_its_own_inverse() {
    assert_eq!(Side::Client.peer(), Side::Server);
    assert_eq!(Side::Server.peer(), Side::Client);
}
