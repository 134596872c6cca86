//! `corr`: Pearson's correlation of pairs of numbers, by Welford's recurrences.

use crate::value::Value;
use crate::value::exception::{Eval, no_conversion};
use crate::value::number::float_of;

#[derive(Clone, Default)]
pub(crate) struct Correlation {
    count: u64,
    mean_x: f64,
    mean_y: f64,
    /// Sums of products of distances from the means.
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Correlation {
    /// Takes an Array of two numbers.
    pub(super) fn add(&mut self, pair: &Value) -> Eval<()> {
        let number = |it: &Value| float_of(it).ok_or_else(|| no_conversion(it, "Float"));
        let (x, y) = match pair {
            Value::Array(pair) => match &pair.borrow()[..] {
                [x, y] => (number(x)?, number(y)?),
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        self.count += 1;
        let count = self.count as f64;
        let (from_x, from_y) = (x - self.mean_x, y - self.mean_y);
        self.mean_x += from_x / count;
        self.mean_y += from_y / count;
        self.xx += from_x * (x - self.mean_x);
        self.yy += from_y * (y - self.mean_y);
        self.xy += from_x * (y - self.mean_y);
        Ok(())
    }

    /// Nil if either does not vary.
    pub(super) fn finish(&self) -> Value {
        let scale = self.xx.sqrt() * self.yy.sqrt();
        if scale > 0.0 {
            Value::Float((self.xy / scale).clamp(-1.0, 1.0))
        } else {
            Value::Nil
        }
    }
}
