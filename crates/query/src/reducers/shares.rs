//! The percentiles that a query asks for, and their places among sorted values.

use crate::value::Value;

/// One percentile, or a list of them.
#[derive(Clone)]
pub(crate) enum Shares {
    One(f64),
    Many(Vec<f64>),
}

impl Shares {
    /// The value of each, nil where there is none.
    pub(super) fn each(&self, mut of: impl FnMut(f64) -> Option<Value>) -> Value {
        match self {
            Shares::One(p) => of(*p).unwrap_or_default(),
            Shares::Many(list) => {
                Value::array(list.iter().map(|p| of(*p).unwrap_or_default()).collect())
            }
        }
    }
}

/// The place of a percentile among so many sorted values, by the nearest rank.
pub(super) fn rank(p: f64, count: u64) -> Option<u64> {
    let rank = (p * count as f64).ceil() as u64;
    Some(rank.clamp(1, count.max(1)) - 1).filter(|rank| *rank < count)
}
