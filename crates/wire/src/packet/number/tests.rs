use proptest::prelude::*;

use super::*;

fn number(number: u64) -> PacketNumber {
    PacketNumber::new(number).expect("in range")
}

#[test]
fn rfc9000_a_2_encoding_vectors() {
    let acknowledged = Some(number(0x00ab_e8b3));
    let two = number(0x00ac_5c02).truncate(acknowledged);
    assert_eq!((two.len(), two.value), (PacketNumberLen::Two, 0x5c02));
    let three = number(0x00ac_e8fe).truncate(acknowledged);
    assert_eq!(
        (three.len(), three.value),
        (PacketNumberLen::Three, 0x00ac_e8fe)
    );
}

#[test]
fn rfc9000_a_3_decoding_vector() {
    let truncated = TruncatedPacketNumber::new(0x9b32, PacketNumberLen::Two);
    assert_eq!(
        truncated.expand(Some(number(0xa82f_30ea))).get(),
        0xa82f_9b32
    );
}

#[test]
fn rfc9000_17_1_the_range_is_more_than_twice_what_is_unacknowledged() {
    // 8 bits represent more than twice 127 unacknowledged packets, but not more than twice 128.
    assert_eq!(number(126).truncate(None).len(), PacketNumberLen::One);
    assert_eq!(number(127).truncate(None).len(), PacketNumberLen::Two);
    let acknowledged = Some(number(1000));
    for (distance, len) in [
        (1, 1),
        (0x7f, 1),
        (0x80, 2),
        (0x7fff, 2),
        (0x8000, 3),
        (0x7f_ffff, 3),
        (0x80_0000, 4),
    ] {
        let truncated = number(1000 + distance).truncate(acknowledged);
        assert_eq!(truncated.len().bytes(), len, "{distance:#x}");
    }
}

#[test]
fn expansion_stays_in_range() {
    assert_eq!(PacketNumber::new(1 << 62), None);
    // No expansion exceeds the last packet number or goes below 0.
    let high = TruncatedPacketNumber::new(0, PacketNumberLen::One);
    assert_eq!(high.expand(Some(PacketNumber::MAX)).get(), (1 << 62) - 256);
    let low = TruncatedPacketNumber::new(0xffff_ffff, PacketNumberLen::Four);
    assert_eq!(low.expand(None).get(), 0xffff_ffff);
}

#[test]
fn rfc9000_a_3_of_two_equally_near_numbers_the_larger_is_chosen() {
    let truncated = |value| TruncatedPacketNumber::new(value, PacketNumberLen::One);
    // Expected 128: 0 and 256 are both 128 away.
    assert_eq!(truncated(0).expand(Some(number(127))).get(), 256);
    assert_eq!(truncated(1).expand(Some(number(127))).get(), 1);
    // Expected 256: 128 and 384 are both 128 away.
    assert_eq!(truncated(128).expand(Some(number(255))).get(), 384);
    assert_eq!(truncated(129).expand(Some(number(255))).get(), 129);
}

/// A naive RFC 9000 Appendix A.3: of all numbers with these low bits near the expected one, the nearest, or the larger
/// of two equally near ones.
fn nearest(truncated: TruncatedPacketNumber, expected: u64) -> u64 {
    let window = 1_i128 << (truncated.len().bytes() * 8);
    let base = i128::from(expected) / window * window + i128::from(truncated.value);
    [base - window, base, base + window]
        .into_iter()
        .filter(|candidate| (0..1 << 62).contains(candidate))
        .min_by_key(|candidate| {
            (candidate - i128::from(expected)).abs() * 2
                - i128::from(*candidate > i128::from(expected))
        })
        .expect("one is in range") as u64
}

fn len() -> impl Strategy<Value = PacketNumberLen> {
    (0_u8..4).prop_map(PacketNumberLen::from_bits)
}

proptest! {
    #[test]
    fn expanding_finds_the_nearest(value in any::<u32>(), len in len(), largest in 0..=VarInt::MAX.get(), shift in 0..62) {
        let truncated = TruncatedPacketNumber::new(value, len);
        let largest = number(largest >> shift);
        let expected = (largest.get() + 1).min(VarInt::MAX.get());
        prop_assert_eq!(truncated.expand(Some(largest)).get(), nearest(truncated, expected));
        prop_assert_eq!(truncated.expand(None).get(), nearest(truncated, 0));
    }

    #[test]
    fn the_peer_recovers_what_was_truncated(
        acknowledged in 0_u64..(1 << 61),
        sent in 1_u64..(1 << 31),
        received in 0_u64..(1 << 31),
    ) {
        // The largest packet received lies between the largest acknowledged and the one being sent.
        let packet = number(acknowledged + sent);
        let largest_received = number(acknowledged + received % sent);
        let truncated = packet.truncate(Some(number(acknowledged)));
        prop_assert_eq!(truncated.expand(Some(largest_received)), packet);
    }
}
