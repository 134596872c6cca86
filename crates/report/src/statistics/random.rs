//! Random numbers for resampling: `SplitMix64`, normal variates by Marsaglia's polar method, gamma variates by Marsaglia and
//! Tsang.

use lastbyte_units::SplitMix64;

/// A generator.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    numbers: SplitMix64,
    spare: Option<f64>,
}

impl Random {
    /// The generator number `stream` of a seed. Streams are practically independent.
    pub(crate) const fn new(seed: u64, stream: u64) -> Self {
        Self {
            numbers: SplitMix64::stream(seed, stream),
            spare: None,
        }
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.numbers.number()
    }

    /// A uniform variate between zero and one, exclusive.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }

    /// A uniform integer below `limit`. The bias of the multiplication is below 2⁻³² for the limits used here.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }

    /// A gamma variate of whole shape and scale one; zero for shape zero.
    pub(crate) fn gamma(&mut self, shape: u64) -> f64 {
        if shape == 0 {
            return 0.0;
        }
        let third_less = shape as f64 - 1.0 / 3.0;
        let scale = 1.0 / (9.0 * third_less).sqrt();
        loop {
            let x = self.normal();
            let root = 1.0 + scale * x;
            if root <= 0.0 {
                continue;
            }
            let cube = root * root * root;
            let height = self.unit();
            let square = x * x;
            let bound = 0.5 * square + third_less * (1.0 - cube + cube.ln());
            if height < 1.0 - 0.0331 * square * square || height.ln() < bound {
                return third_less * cube;
            }
        }
    }
}
