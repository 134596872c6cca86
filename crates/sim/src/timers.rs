//! Timers of the parts of a simulation.

use std::{cmp::Reverse, collections::BinaryHeap};

use lastbyte_congestion::Time;

/// The earliest deadline of each part. A timer may expire early, when its part has nothing to do yet.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// The earliest entry of each part in `queue`.
    earliest: Vec<Option<Time>>,
    queue: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Timers {
    /// Sets the timer of `part` to expire no later than `deadline`.
    pub(crate) fn set(&mut self, part: usize, deadline: Option<Time>) {
        if part >= self.earliest.len() {
            self.earliest.resize(part + 1, None);
        }
        if let (Some(at), Some(timer)) = (deadline, self.earliest.get_mut(part))
            && timer.is_none_or(|set| at < set)
        {
            *timer = Some(at);
            self.queue.push(Reverse((at, part)));
        }
    }

    /// When the next timer expires.
    pub(crate) fn next(&self) -> Option<Time> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }

    /// Returns a part whose timer has expired. The caller sets its timer again.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<usize> {
        while let Some(Reverse((at, part))) = self.queue.peek().copied()
            && at <= now
        {
            self.queue.pop();
            // Otherwise an earlier entry replaced this one.
            if let Some(timer) = self.earliest.get_mut(part)
                && *timer == Some(at)
            {
                *timer = None;
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
    fn parts_expire_once_at_their_earliest_time_and_by_number() {
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let mut timers = Timers::default();
        timers.set(3, Some(at(20)));
        timers.set(1, Some(at(20)));
        timers.set(3, Some(at(10)));
        timers.set(3, Some(at(15)));
        timers.set(0, None);
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.pop_due(at(9)), None);
        assert_eq!(timers.pop_due(at(20)), Some(3));
        assert_eq!(timers.pop_due(at(20)), Some(1));
        assert_eq!(timers.pop_due(at(20)), None);
        assert_eq!(timers.next(), None);
    }
}
