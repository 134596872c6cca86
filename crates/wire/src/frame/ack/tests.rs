use proptest::prelude::*;

use super::*;
use crate::frame::{Frame, FrameError};

fn range(start: u64, end: u64) -> RangeInclusive<PacketNumber> {
    PacketNumber::new(start).expect("in range")..=PacketNumber::new(end).expect("in range")
}

fn decode(bytes: &[u8]) -> Result<Ack<'_>, FrameError> {
    match Frame::decode(&mut Reader::new(bytes))? {
        Frame::Ack(ack) => Ok(ack),
        other => panic!("not an ACK: {other:?}"),
    }
}

fn error_kind(bytes: &[u8]) -> FrameErrorKind {
    decode(bytes).expect_err("is invalid").kind
}

#[test]
fn rfc9000_19_3_1_ranges_count_down_from_the_largest() {
    // Packets 0..=1, 4, 6..=9. The gaps of two (2, 3) and one (5) are encoded as one less.
    let ack = decode(&[0x02, 9, 0x40, 0x64, 2, 3, 0, 0, 1, 1]).expect("is valid");
    assert_eq!(ack.largest().get(), 9);
    assert_eq!(ack.delay().get(), 100);
    assert_eq!(ack.ecn(), None);
    let ranges: Vec<_> = ack.ranges().collect();
    assert_eq!(ranges, [range(6, 9), range(4, 4), range(0, 1)]);
}

#[test]
fn rfc9000_19_3_2_ecn_counts_follow_the_ranges() {
    let ack = decode(&[0x03, 9, 0, 0, 9, 1, 2, 3]).expect("is valid");
    let counts = EcnCounts {
        ect0: VarInt::from_u32(1),
        ect1: VarInt::from_u32(2),
        ce: VarInt::from_u32(3),
    };
    assert_eq!(ack.ecn(), Some(counts));
    assert_eq!(ack.ranges().collect::<Vec<_>>(), [range(0, 9)]);
}

#[test]
fn rfc9000_19_3_1_a_range_below_packet_number_0_is_a_frame_encoding_error() {
    // The first range, the gap and the length are one too long in turn.
    for bytes in [
        &[0x02, 9, 0, 0, 10][..],
        &[0x02, 9, 0, 1, 3, 5, 0],
        &[0x02, 9, 0, 1, 3, 1, 4],
        &[
            0x02, 9, 0, 1, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0,
        ],
    ] {
        assert_eq!(
            error_kind(bytes),
            FrameErrorKind::AckRangeBelowZero,
            "{bytes:?}"
        );
    }
    assert!(decode(&[0x02, 9, 0, 1, 3, 4, 0]).is_ok());
    assert!(decode(&[0x02, 9, 0, 1, 3, 1, 3]).is_ok());
}

#[test]
fn a_range_count_beyond_the_payload_is_truncated() {
    let endless = [
        0x02, 9, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0,
    ];
    assert_eq!(error_kind(&endless), FrameErrorKind::Truncated);
}

#[test]
fn a_report_without_ranges_writes_nothing() {
    let report = AckReport {
        ranges: core::iter::empty(),
        delay: VarInt::ZERO,
        ecn: None,
    };
    let mut writer = Writer::new(&mut []);
    assert_eq!(report.encode(&mut writer, 0, 0), Ok(0));
}

#[test]
fn ranges_that_do_not_fit_are_omitted_smallest_first() {
    let ranges: Vec<_> = (0..100).rev().map(|i| range(i * 3, i * 3 + 1)).collect();
    let report = AckReport {
        ranges: ranges.iter().cloned(),
        delay: VarInt::ZERO,
        ecn: Some(EcnCounts::default()),
    };
    let mut buffer = [0; 300];
    for bytes_max in 0..300 {
        for ranges_max in [0, 1, 2, 63, 64, 65, usize::MAX] {
            let mut writer = Writer::new(&mut buffer);
            let Ok(count) = report.encode(&mut writer, bytes_max, ranges_max) else {
                assert!(bytes_max < 9 || ranges_max == 0);
                assert_eq!(writer.position(), 0);
                continue;
            };
            assert!(writer.position() <= bytes_max && count <= ranges_max);
            let decoded: Vec<_> = decode(writer.written()).expect("valid").ranges().collect();
            assert_eq!(decoded, ranges[..count]);
            // One more range would not fit: a pair takes two bytes, and the 64th pair also needs a longer range count.
            let more = 2 + usize::from(count == 64);
            let is_full = writer.position() + more > bytes_max;
            assert!(is_full || count == ranges_max || count == ranges.len());
        }
    }
    let mut writer = Writer::new(&mut buffer);
    assert_eq!(report.encode(&mut writer, 300, 100), Ok(100));
    assert_eq!(writer.position(), 1 + 2 + 1 + 2 + 1 + 2 * 99 + 3);
}

/// Ranges in descending order with gaps between them, built from random steps upwards.
fn ranges_from(steps: &[(u64, u64)]) -> Vec<RangeInclusive<PacketNumber>> {
    let mut next = 0;
    let mut ranges = Vec::new();
    for (gap, len) in steps {
        let start = next + gap;
        ranges.push(range(start, start + len));
        next = start + len + 2;
    }
    ranges.reverse();
    ranges
}

fn step() -> impl Strategy<Value = (u64, u64)> {
    let size = || prop_oneof![0_u64..4, 0_u64..100, 0_u64..(1 << 40)];
    (size(), size())
}

proptest! {
    /// Compares the iterator with the list that was encoded.
    #[test]
    fn ranges_round_trip(
        steps in prop::collection::vec(step(), 1..80),
        delay in any::<u32>(),
        has_ecn in any::<bool>(),
        ce in any::<u32>(),
    ) {
        let ranges = ranges_from(&steps);
        let ecn = has_ecn.then(|| EcnCounts { ce: VarInt::from_u32(ce), ..EcnCounts::default() });
        let report = AckReport { ranges: ranges.iter().cloned(), delay: VarInt::from_u32(delay), ecn };
        let mut buffer = vec![0; 64 + 16 * ranges.len()];
        let mut writer = Writer::new(&mut buffer);
        prop_assert_eq!(report.encode(&mut writer, usize::MAX, usize::MAX), Ok(ranges.len()));
        let len = writer.position();
        buffer.truncate(len);

        let ack = decode(&buffer).expect("is valid");
        prop_assert_eq!(ack.largest(), *ranges[0].end());
        prop_assert_eq!(ack.delay().get(), u64::from(delay));
        prop_assert_eq!(ack.ecn(), ecn);
        prop_assert_eq!(ack.ranges().collect::<Vec<_>>(), ranges);

        let mut again = vec![0; ack.encoded_len()];
        ack.encode(&mut Writer::new(&mut again)).expect("fits exactly");
        prop_assert_eq!(&again, &buffer);

        for cut in 0..buffer.len() {
            prop_assert_eq!(decode(&buffer[..cut]).expect_err("is truncated").kind, FrameErrorKind::Truncated);
        }
    }

    /// Compares decoded ranges with a naive implementation of RFC 9000 §19.3.1 on sets.
    #[test]
    fn small_frames_match_the_naive_model(
        largest in 0_u8..64,
        first in 0_u8..64,
        pairs in prop::collection::vec((0_u8..8, 0_u8..8), 0..8),
    ) {
        let mut bytes = vec![0x02, largest, 0, pairs.len() as u8, first];
        let mut model = Some(Vec::new());
        let mut next = i32::from(largest);
        let mut acknowledge = |next: &mut i32, len: u8| {
            for _ in 0..=len {
                match &mut model {
                    Some(numbers) if *next >= 0 => numbers.push(*next as u64),
                    _ => model = None,
                }
                *next -= 1;
            }
        };
        acknowledge(&mut next, first);
        for (gap, len) in &pairs {
            bytes.extend([*gap, *len]);
            next -= i32::from(*gap) + 1;
            acknowledge(&mut next, *len);
        }
        let decoded = decode(&bytes).ok().map(|ack| {
            ack.ranges()
                .flat_map(|range| (range.start().get()..=range.end().get()).rev())
                .collect::<Vec<_>>()
        });
        prop_assert_eq!(decoded, model);
    }
}
