//! The workload of a connection: number, parallelism and direction of its objects.

use core::time::Duration;

use lastbyte_units::Direction;

use crate::{scenario::Request, setting::SettingError};

/// The requests of a connection: rounds, one after the other, of objects that are requested at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// The number of rounds. Default: 1.
    pub requests: u32,
    /// The number of objects of a round. Default: 1.
    pub parallel: u32,
    /// Pause between the last byte of a round and the next requests. Default: 0.
    pub pause: Duration,
    /// Direction of the objects. Default: down.
    pub direction: Direction,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            requests: 1,
            parallel: 1,
            pause: Duration::ZERO,
            direction: Direction::Down,
        }
    }
}

impl Workload {
    /// Checks the numbers.
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] with the key if there are no requests, more than [`REQUESTS_MAX`] or [`PARALLEL_MAX`], or a pause
    /// without a second request.
    pub fn check(&self) -> Result<(), SettingError> {
        let limits = [
            ("requests", self.requests, REQUESTS_MAX),
            ("parallel", self.parallel, PARALLEL_MAX),
        ];
        for (key, value, most) in limits {
            if !(1..=most).contains(&value) {
                return Err(SettingError::new(
                    key,
                    value,
                    format!("a whole number from 1 to {most}"),
                ));
            }
        }
        if !self.pause.is_zero() && self.requests == 1 {
            return Err(SettingError::because(
                "pause",
                "it needs `requests` of 2 or more",
            ));
        }
        Ok(())
    }

    /// The requests, with the size of each object by its number.
    #[must_use]
    pub fn requests(&self, size: impl Fn(u64) -> u64) -> Vec<Request> {
        let parallel = u64::from(self.parallel.max(1));
        let total = parallel * u64::from(self.requests);
        let requests = (0..total).map(|number| Request {
            pause: if number < parallel {
                Duration::ZERO
            } else {
                self.pause
            },
            size: size(number),
            is_parallel: !number.is_multiple_of(parallel),
        });
        requests.collect()
    }

    /// A description; `None` for the default, one object down.
    #[must_use]
    pub fn describe(&self) -> Option<String> {
        if *self == Self::default() {
            return None;
        }
        let noun = match self.direction {
            Direction::Down => "response",
            Direction::Up => "upload",
        };
        let mut parts = vec![match self.parallel {
            1 => format!("one {noun}"),
            many => format!("{many} {noun}s at once"),
        }];
        if self.requests > 1 {
            parts.push(format!("{} times", self.requests));
        }
        if !self.pause.is_zero() {
            parts.push(format!("{} apart", lastbyte_units::show_span(self.pause)));
        }
        Some(parts.join(", "))
    }
}

/// The largest number of rounds of a connection in a population.
pub const REQUESTS_MAX: u32 = 1000;
/// The largest number of objects at once: a server permits 100 streams, and two rounds overlap in its count.
pub const PARALLEL_MAX: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_of_objects_at_once() {
        let workload = Workload {
            requests: 2,
            parallel: 3,
            pause: Duration::from_secs(1),
            direction: Direction::Down,
        };
        let requests = workload.requests(|number| 100 + number);
        let plan: Vec<(u64, u64, bool)> = requests
            .iter()
            .map(|one| (one.size, one.pause.as_secs(), one.is_parallel))
            .collect();
        assert_eq!(
            plan,
            [
                (100, 0, false),
                (101, 0, true),
                (102, 0, true),
                (103, 1, false),
                (104, 1, true),
                (105, 1, true),
            ]
        );
        assert_eq!(
            workload.describe().as_deref(),
            Some("3 responses at once, 2 times, 1000ms apart")
        );
        assert_eq!(Workload::default().requests(|_| 7), [Request::of(7)]);
        assert_eq!(Workload::default().describe(), None);
    }

    #[test]
    fn numbers_out_of_range_are_errors() {
        let error = |workload: Workload| workload.check().expect_err("out of range").to_string();
        let base = Workload::default();
        assert_eq!(
            error(Workload {
                requests: 0,
                ..base
            }),
            "`requests`: 0 (expected a whole number from 1 to 1000)"
        );
        assert_eq!(
            error(Workload {
                parallel: 51,
                ..base
            }),
            "`parallel`: 51 (expected a whole number from 1 to 50)"
        );
        let pause = Duration::from_secs(1);
        assert_eq!(
            error(Workload { pause, ..base }),
            "`pause`: it needs `requests` of 2 or more"
        );
    }
}
