//! A bounded set of packet numbers, stored as ranges.
//!
//! Numbers usually are consecutive, so the newest range is extended in place. There are at most
//! [`PacketNumberRanges::RANGES_MAX`] ranges: beyond that, the oldest is dropped, and with it every number below its
//! end.

use core::ops::RangeInclusive;
use std::collections::VecDeque;

use lastbyte_wire::packet::PacketNumber;

/// Packet numbers received.
#[derive(Clone, Debug)]
pub struct PacketNumberRanges {
    /// First and last number of each range, ascending, with a gap between any two.
    ranges: VecDeque<(u64, u64)>,
    /// Numbers below are neither stored nor accepted.
    floor: u64,
}

/// The result of [`PacketNumberRanges::insert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// It was not in the set and has been added.
    New,
    /// It was in the set, or is below the stored ranges.
    Duplicate,
}

impl PacketNumberRanges {
    /// Maximum number of ranges stored, and reported in an ACK frame.
    pub const RANGES_MAX: usize = 64;

    /// An empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ranges: VecDeque::new(),
            floor: 0,
        }
    }

    /// Frees memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        self.ranges.shrink_to_fit();
    }

    /// Adds a number.
    pub fn insert(&mut self, number: u64) -> Insertion {
        if number < self.floor {
            return Insertion::Duplicate;
        }
        // In order, as usual: only the newest range grows.
        if let Some((_, last)) = self.ranges.back_mut()
            && *last + 1 == number
        {
            *last = number;
            return Insertion::New;
        }
        // The first range, from the newest on, that starts at the number or below.
        let newer = self
            .ranges
            .iter()
            .rev()
            .take_while(|(first, _)| *first > number)
            .count();
        let at = self.ranges.len() - newer;
        let touches_older = match at.checked_sub(1).and_then(|older| self.ranges.get(older)) {
            Some((_, last)) if *last >= number => return Insertion::Duplicate,
            Some((_, last)) => *last + 1 == number,
            None => false,
        };
        let touches_newer = self
            .ranges
            .get(at)
            .is_some_and(|(first, _)| *first == number + 1);
        match (touches_older, touches_newer) {
            (true, true) => {
                if let Some((_, last)) = self.ranges.remove(at)
                    && let Some(older) = self.ranges.get_mut(at - 1)
                {
                    older.1 = last;
                }
            }
            (true, false) => {
                if let Some(older) = self.ranges.get_mut(at - 1) {
                    older.1 = number;
                }
            }
            (false, true) => {
                if let Some(newer) = self.ranges.get_mut(at) {
                    newer.0 = number;
                }
            }
            (false, false) => {
                self.ranges.insert(at, (number, number));
                self.give_up_oldest();
            }
        }
        Insertion::New
    }

    fn give_up_oldest(&mut self) {
        if self.ranges.len() > Self::RANGES_MAX
            && let Some((_, last)) = self.ranges.pop_front()
        {
            self.floor = self.floor.max(last + 1);
        }
    }

    /// Whether the number is in the set, or below the stored ranges.
    pub fn contains_or_below(&self, number: u64) -> bool {
        if number < self.floor {
            return true;
        }
        let is_new_largest = self.largest().is_none_or(|largest| number > largest);
        !is_new_largest
            && self
                .ranges
                .iter()
                .rev()
                .find(|(first, _)| *first <= number)
                .is_some_and(|(_, last)| *last >= number)
    }

    /// The largest number.
    pub fn largest(&self) -> Option<u64> {
        self.ranges.back().map(|(_, last)| *last)
    }

    /// The smallest missing number from `from` on, below the largest of the set.
    pub fn smallest_missing(&self, from: u64) -> Option<u64> {
        let mut candidate = from.max(self.floor);
        for (first, last) in &self.ranges {
            if candidate < *first {
                return Some(candidate);
            }
            candidate = candidate.max(last.saturating_add(1));
        }
        None
    }

    /// Drops all numbers up to `number`, which are not accepted any more. The largest of all is kept, as each ACK frame
    /// must report it (RFC 9000 §13.2.4).
    pub fn forget_up_to(&mut self, number: u64) {
        // Below the largest, if there is anything.
        let Some(below) = self.largest().and_then(|largest| largest.checked_sub(1)) else {
            return;
        };
        let number = number.min(below);
        while let Some((first, last)) = self.ranges.front_mut() {
            if *first > number {
                break;
            }
            if *last > number {
                *first = number + 1;
                break;
            }
            self.ranges.pop_front();
        }
        self.floor = self.floor.max(number + 1);
    }

    /// The ranges, the largest numbers first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RangeInclusive<PacketNumber>> + Clone + '_ {
        let number = |number| PacketNumber::new(number).unwrap_or(PacketNumber::MAX);
        let ranges = self.ranges.iter().rev();
        ranges.map(move |(first, last)| number(*first)..=number(*last))
    }
}

impl Default for PacketNumberRanges {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
