//! A rate that changes at specified times, once or periodically.
//!
//! A packet in transmission continues at the new rate. A rate of zero stalls it.

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;

use lastbyte_units::nanos;

use crate::{
    Rate, Time,
    rate::{nanos_for, saturate, work_of},
};

/// A stepwise rate. Times count from the epoch of [`Time`].
///
/// ```
/// use core::time::Duration;
/// use lastbyte_link::{Rate, Schedule};
///
/// // A satellite link that stalls for 100 ms every 15 s.
/// # Ok::<(), lastbyte_link::ScheduleError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    steps: Arc<[Step]>,
    period: Option<u64>,
    /// The capacity of one period in nanobits.
    period_work: u128,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    from: u64,
    rate: Rate,
}

impl Schedule {
    /// Creates a schedule that changes to each rate at its time. With a period, the steps repeat; without one, the last
    /// rate persists.
    ///
    /// # Errors
    ///
    /// Returns [`ScheduleError::Empty`] if there are no steps, [`ScheduleError::StartsLate`] if the first is not at
    /// time zero, [`ScheduleError::NotInOrder`] if times do not increase, and [`ScheduleError::PeriodTooShort`] if the
    /// period does not end after the last step.
    pub fn new(
        steps: &[(Duration, Rate)],
        period: Option<Duration>,
    ) -> Result<Self, ScheduleError> {
        let steps: Vec<Step> = steps
            .iter()
            .map(|(from, rate)| Step {
                from: nanos(*from),
                rate: *rate,
            })
            .collect();
        if steps.first().ok_or(ScheduleError::Empty)?.from != 0 {
            return Err(ScheduleError::StartsLate);
        }
        if let Some(index) = steps
            .windows(2)
            .position(|pair| pair[0].from >= pair[1].from)
        {
            return Err(ScheduleError::NotInOrder { index: index + 1 });
        }
        let period = period.map(nanos);
        if period.is_some_and(|period| steps.last().is_some_and(|last| period <= last.from)) {
            return Err(ScheduleError::PeriodTooShort);
        }
        let mut schedule = Self {
            steps: steps.into(),
            period,
            period_work: 0,
        };
        if let Some(period) = period {
            schedule.period_work = (0..schedule.steps.len())
                .map(|index| {
                    let end = schedule.steps.get(index + 1).map_or(period, |s| s.from);
                    let step = schedule.steps[index];
                    u128::from(step.rate.bits_per_second()) * u128::from(end - step.from)
                })
                .fold(0, u128::saturating_add);
        }
        Ok(schedule)
    }

    /// The nominal rate, which converts limits in milliseconds to bytes: the mean over the period or, without a period,
    /// the first rate.
    pub fn nominal(&self) -> Rate {
        match self.period {
            Some(period) => {
                Rate::from_bits_per_second(saturate(self.period_work / u128::from(period)))
            }
            None => self.steps[0].rate,
        }
    }

    /// The bytes that can be transmitted in this time.
    pub(crate) fn bytes_between(&self, from: Time, to: Time) -> f64 {
        let work = self.work_until(to.as_nanos()) - self.work_until(from.as_nanos());
        work as f64 / work_of(1) as f64
    }

    /// The capacity from the epoch to this time, in nanobits.
    fn work_until(&self, at: u64) -> u128 {
        let period = self.period.unwrap_or(u64::MAX);
        let (periods, rest) = (at / period, at % period);
        let ends = self.steps.iter().skip(1).map(|step| step.from);
        let steps = self.steps.iter().zip(ends.chain([u64::MAX]));
        let work = steps.map(|(step, end)| {
            let span = end.min(rest).saturating_sub(step.from);
            u128::from(step.rate.bits_per_second()) * u128::from(span)
        });
        work.fold(
            u128::from(periods).saturating_mul(self.period_work),
            u128::saturating_add,
        )
    }
}

/// The steps of a [`Schedule`] are invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScheduleError {
    /// There are no steps.
    #[error("the schedule has no steps")]
    Empty,
    /// The first step is not at time zero.
    #[error("the first step of the schedule must be at time 0")]
    StartsLate,
    /// A step is not later than its predecessor.
    #[error("step {index} of the schedule (counted from 0) must be later than its predecessor")]
    NotInOrder {
        /// The index of the step, from 0.
        index: usize,
    },
    /// The period does not end after the last step.
    #[error("the period of the schedule must end after its last step")]
    PeriodTooShort,
}

/// A position in a schedule. Only moves forward.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    schedule: Schedule,
    /// When the current period started.
    base: u64,
    index: usize,
}

impl Cursor {
    pub(crate) const fn new(schedule: Schedule) -> Self {
        Self {
            schedule,
            base: 0,
            index: 0,
        }
    }

    /// When the current step ends, or [`u64::MAX`] if it does not.
    fn step_end(&self) -> u64 {
        let steps = &self.schedule.steps;
        match (steps.get(self.index + 1), self.schedule.period) {
            (Some(next), _) => self.base.saturating_add(next.from),
            (None, Some(period)) => self.base.saturating_add(period),
            (None, None) => u64::MAX,
        }
    }

    /// Moves to the step in effect at `now`.
    fn seek(&mut self, now: u64) {
        if let Some(period) = self.schedule.period {
            let whole = (now - self.base) / period;
            if whole > 0 {
                self.base += whole * period;
                self.index = 0;
            }
        }
        while self.index + 1 < self.schedule.steps.len() && self.step_end() <= now {
            self.index += 1;
        }
    }

    fn next_step(&mut self) {
        self.index += 1;
        if self.index == self.schedule.steps.len() {
            self.index = 0;
            self.base = self
                .base
                .saturating_add(self.schedule.period.unwrap_or(u64::MAX));
        }
    }

    /// The time at which `work` started at `begin` is complete ([`Time::MAX`] for never), and the unused work in the
    /// last nanosecond. Iterates over at most the steps of one period plus whole periods at once.
    pub(crate) fn end_of(&mut self, begin: Time, mut work: u128) -> (Time, u64) {
        let mut now = begin.as_nanos();
        self.seek(now);
        loop {
            let rate = self.schedule.steps[self.index].rate;
            let end = self.step_end();
            let capacity = u128::from(rate.bits_per_second()) * u128::from(end - now);
            if work <= capacity || end == u64::MAX {
                return match nanos_for(work, rate) {
                    Some((nanos, rest)) => (Time::from_nanos(now).plus(nanos), rest),
                    None => (Time::MAX, 0),
                };
            }
            work -= capacity;
            now = end;
            self.next_step();
            if self.index == 0 {
                // Skip the whole periods that `work` fills, but leave a remainder for the last one.
                let Some(whole) = (work - 1).checked_div(self.schedule.period_work) else {
                    return (Time::MAX, 0);
                };
                let period = self.schedule.period.unwrap_or(u64::MAX);
                self.base = self
                    .base
                    .saturating_add(saturate(whole.saturating_mul(u128::from(period))));
                work -= whole * self.schedule.period_work;
                now = self.base;
            }
            if now == u64::MAX {
                return (Time::MAX, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests;
