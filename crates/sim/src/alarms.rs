//! Times at which to look at parts of a world.

use std::{cmp::Reverse, collections::BinaryHeap};

use lastbyte_congestion::Time;

/// For each part, a time at which to look at it; it may turn out that there is nothing to do yet.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    /// For each part, its earliest entry in `queue`.
    earliest: Vec<Option<Time>>,
    queue: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Alarms {
    /// Makes sure that there is an alarm of `part` no later than its deadline.
    pub(crate) fn set(&mut self, part: usize, deadline: Option<Time>) {
        if part >= self.earliest.len() {
            self.earliest.resize(part + 1, None);
        }
        if let (Some(at), Some(alarm)) = (deadline, self.earliest.get_mut(part))
            && alarm.is_none_or(|set| at < set)
        {
            *alarm = Some(at);
            self.queue.push(Reverse((at, part)));
        }
    }

    /// When the next alarm is.
    pub(crate) fn next(&self) -> Option<Time> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }

    /// A part whose alarm has come. Its alarm is to be set again.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<usize> {
        while let Some(Reverse((at, part))) = self.queue.peek().copied()
            && at <= now
        {
            self.queue.pop();
            // Otherwise another entry was put before this one, and has taken its place.
            if let Some(alarm) = self.earliest.get_mut(part)
                && *alarm == Some(at)
            {
                *alarm = None;
                return Some(part);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn parts_ring_once_at_their_earliest_time_and_by_number() {
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let mut alarms = Alarms::default();
        alarms.set(3, Some(at(20)));
        alarms.set(1, Some(at(20)));
        alarms.set(3, Some(at(10)));
        alarms.set(3, Some(at(15)));
        alarms.set(0, None);
        assert_eq!(alarms.next(), Some(at(10)));
        assert_eq!(alarms.pop_due(at(9)), None);
        assert_eq!(alarms.pop_due(at(20)), Some(3));
        assert_eq!(alarms.pop_due(at(20)), Some(1));
        assert_eq!(alarms.pop_due(at(20)), None);
        assert_eq!(alarms.next(), None);
    }
}
