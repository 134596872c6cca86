//! Packet numbers received in any order, beside a plain set of numbers: the same answers, and ACK frames that say what the
//! set holds. Shared by the replay of the corpus and the fuzz target.

use std::{collections::BTreeSet, ops::RangeInclusive};

use lastbyte_quic::ack::{Insertion, PacketNumberRanges};
use lastbyte_wire::{
    Reader, VarInt, Writer,
    frame::{AckReport, Frame},
    packet::PacketNumber,
};

/// The same by definition, number by number.
#[derive(Default)]
struct Model {
    numbers: BTreeSet<u64>,
    floor: u64,
}

impl Model {
    fn insert(&mut self, number: u64) -> Insertion {
        if number < self.floor || !self.numbers.insert(number) {
            return Insertion::Duplicate;
        }
        let ranges = self.ranges();
        if ranges.len() > PacketNumberRanges::RANGES_MAX
            && let Some((_, last)) = ranges.last()
        {
            self.forget(*last);
        }
        Insertion::New
    }

    fn forget(&mut self, number: u64) {
        self.numbers = self.numbers.split_off(&(number + 1));
        self.floor = self.floor.max(number + 1);
    }

    /// The ranges, the largest first.
    fn ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for number in self.numbers.iter().rev() {
            match ranges.last_mut() {
                Some((first, _)) if *first == number + 1 => *first = *number,
                _ => ranges.push((*number, *number)),
            }
        }
        ranges
    }
}

fn pair(range: RangeInclusive<PacketNumber>) -> (u64, u64) {
    (range.start().get(), range.end().get())
}

/// An ACK frame of limited size contains the newest ranges.
fn check_frame(set: &PacketNumberRanges, expected: &[(u64, u64)], bytes_max: usize) {
    let mut buffer = [0; 1500];
    let mut writer = Writer::new(&mut buffer);
    let report = AckReport {
        ranges: set.iter(),
        delay: VarInt::ZERO,
        ecn: None,
    };
    if report
        .encode(&mut writer, bytes_max, PacketNumberRanges::RANGES_MAX)
        .is_err()
    {
        assert!(bytes_max < 1 + 8 + 1 + 8 + 8, "the newest range fits");
        return;
    }
    assert!(writer.position() <= bytes_max);
    let mut reader = Reader::new(writer.written());
    let Ok(Frame::Ack(ack)) = Frame::decode(&mut reader) else {
        panic!("our own ACK frame");
    };
    assert!(reader.is_empty());
    let said: Vec<(u64, u64)> = ack.ranges().map(pair).collect();
    assert!(!said.is_empty());
    assert_eq!(said, expected[..said.len()]);
    if bytes_max >= 1200 {
        assert_eq!(said.len(), expected.len());
    }
}

/// Adds and forgets numbers as the bytes say: two bytes each, what and where.
pub(crate) fn play(bytes: &[u8]) {
    let mut set = PacketNumberRanges::new();
    let mut model = Model::default();
    // Around here numbers come.
    let mut base = 0_u64;
    for step in bytes.chunks_exact(2) {
        let &[what, value] = step else { break };
        let number = (base + u64::from(value)).min(PacketNumber::MAX.get());
        match what % 8 {
            0..=4 => {
                assert_eq!(
                    set.contains_or_below(number),
                    number < model.floor || model.numbers.contains(&number)
                );
                assert_eq!(set.insert(number), model.insert(number));
            }
            5 => {
                if let Some(largest) = model.numbers.last().copied() {
                    set.forget_up_to(number);
                    if largest > 0 {
                        model.forget(number.min(largest - 1));
                    }
                }
            }
            6 => {
                let missing = set.smallest_missing(number);
                let from = number.max(model.floor);
                let expected = model.numbers.last().and_then(|largest| {
                    (from..=*largest).find(|number| !model.numbers.contains(number))
                });
                assert_eq!(missing, expected);
            }
            _ => {
                base = base
                    .saturating_add(u64::from(value) << (what >> 3))
                    .min(PacketNumber::MAX.get());
            }
        }
        assert_eq!(set.largest(), model.numbers.last().copied());
    }
    let expected = model.ranges();
    assert!(expected.len() <= PacketNumberRanges::RANGES_MAX);
    assert!(set.iter().map(pair).eq(expected.iter().copied()));
    if !expected.is_empty() {
        check_frame(&set, &expected, 1200);
        check_frame(&set, &expected, usize::from(bytes[0]));
    }
}
