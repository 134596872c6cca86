//! The workload of a connection: number, parallelism and direction of its objects.

use core::time::Duration;

use lastbyte_units::Direction;

use crate::{scenario::Request, setting::SettingError};

#[cfg(test)]
mod tests;

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
