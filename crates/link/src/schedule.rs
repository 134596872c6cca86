//! A rate that changes at given times, once or over and over.
//!
//! A packet in service when the rate changes goes on at the new rate. A rate of zero is a stall: what is in service waits.

use alloc::{sync::Arc, vec::Vec};
use core::{fmt, time::Duration};

use crate::{
    Rate, Time,
    rate::{nanos_for, saturate},
    time::nanos,
};

/// A rate that changes by steps. Time counts from the epoch of [`Time`].
///
/// ```
/// use core::time::Duration;
/// use lastbyte_link::{Rate, Schedule};
///
/// // A satellite that stands still for 100 ms of every 15 s.
/// let rate = Rate::from_bits_per_second;
/// let steps = [(Duration::ZERO, rate(0)), (Duration::from_millis(100), rate(90_000_000))];
/// let leo = Schedule::new(&steps, Some(Duration::from_secs(15)))?;
/// assert_eq!(leo.nominal(), rate(89_400_000));
/// # Ok::<(), lastbyte_link::ScheduleError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    steps: Arc<[Step]>,
    period: Option<u64>,
    /// What one period can carry, in nanobits.
    period_work: u128,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    from: u64,
    rate: Rate,
}

impl Schedule {
    /// From each of these times on, this rate. With a period, all of it is repeated; without one, the last rate stays.
    ///
    /// # Errors
    ///
    /// If there are no steps, the first is not at zero, times do not increase, or the period is not after the last step.
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

    /// The rate by which limits in milliseconds are turned into bytes: the mean over the period; without a period, the first.
    #[must_use]
    pub fn nominal(&self) -> Rate {
        match self.period {
            Some(period) => {
                Rate::from_bits_per_second(saturate(self.period_work / u128::from(period)))
            }
            None => self.steps[0].rate,
        }
    }
}

/// What is wrong with the steps of a [`Schedule`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScheduleError {
    /// There are none.
    Empty,
    /// The first step is not at time zero.
    StartsLate,
    /// The step at this index (from zero) is not later than the one before it.
    NotInOrder {
        /// Its index.
        index: usize,
    },
    /// The period ends before the last step begins.
    PeriodTooShort,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a schedule needs at least one step"),
            Self::StartsLate => f.write_str("the first step of a schedule must be at time zero"),
            Self::NotInOrder { index } => write!(
                f,
                "step {index} of the schedule (from zero) must be later than the one before it"
            ),
            Self::PeriodTooShort => {
                f.write_str("the period of a schedule must end after its last step begins")
            }
        }
    }
}

impl core::error::Error for ScheduleError {}

/// A place in a schedule. Moves forward only.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    schedule: Schedule,
    /// When the current repetition began.
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

    /// When the current step ends; [`u64::MAX`] if it does not.
    fn step_end(&self) -> u64 {
        let steps = &self.schedule.steps;
        match (steps.get(self.index + 1), self.schedule.period) {
            (Some(next), _) => self.base.saturating_add(next.from),
            (None, Some(period)) => self.base.saturating_add(period),
            (None, None) => u64::MAX,
        }
    }

    /// To the step that holds at `now`.
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

    /// When `work` that begins at `begin` is done, and what work would still fit into the nanosecond then; never is
    /// [`Time::MAX`]. Takes no more steps than one period has, however much work there is.
    pub(crate) fn end_of(&mut self, begin: Time, mut work: u128) -> (Time, u64) {
        let mut now = begin.as_nanos();
        self.seek(now);
        loop {
            let rate = self.schedule.steps[self.index].rate;
            let end = self.step_end();
            let room = u128::from(rate.bits_per_second()) * u128::from(end - now);
            if work <= room || end == u64::MAX {
                return match nanos_for(work, rate) {
                    Some((nanos, rest)) => (Time::from_nanos(now).plus(nanos), rest),
                    None => (Time::MAX, 0),
                };
            }
            work -= room;
            now = end;
            self.next_step();
            if self.index == 0 {
                // Work that fills whole periods is done with them, but for a last piece, however small.
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
