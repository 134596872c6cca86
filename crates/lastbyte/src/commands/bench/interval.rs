//! Intervals of a change over repeated runs: Student's t on logarithms, so that a change is a ratio.
//!
//! The values of a run are one observation: its requests share the state of the machine, and are no independent evidence for
//! a difference between two commands.

#[cfg(test)]
pub(super) mod tests;

/// The level of significance: intervals cover 95 %.
const LEVEL: f64 = 0.05;

/// A relative change with its 95 % interval: 0.1 is 10 % more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) relative: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The probability of a change as large as this one between equal commands.
    p: f64,
}

impl Change {
    /// The change of a mean of logarithms, with its standard error; values differ by their `precision` without a cause.
    fn of(mean: f64, error: f64, freedom: u32, precision: f64) -> Option<Self> {
        let half_width = t_quantile(freedom) * error + precision;
        let all = [mean, mean - half_width, mean + half_width].map(f64::exp_m1);
        let [relative, low, high] = all;
        let beyond = (mean.abs() - precision).max(0.0);
        let p = match beyond {
            0.0 => 1.0,
            _ => 1.0 - t_within(beyond / error, freedom),
        };
        let is_finite = all.iter().all(|value| value.is_finite());
        is_finite.then_some(Self {
            relative,
            low,
            high,
            p,
        })
    }

    /// Whether the interval excludes no change.
    fn is_significant_alone(self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// What the lines of a table say together, in their order: of 20 tables of equal commands, one has a significant line (Holm).
pub(super) fn verdicts(lines: &[Option<Change>]) -> Vec<Option<Verdict>> {
    let mut order: Vec<(f64, usize)> = Vec::new();
    for (line, change) in lines.iter().enumerate() {
        order.extend(change.map(|change| (change.p, line)));
    }
    order.sort_by(|one, other| one.0.total_cmp(&other.0));
    let count = order.len();
    let significant: Vec<usize> = (0..count)
        .map_while(|place| {
            let (p, line) = order[place];
            (p * (count - place) as f64 <= LEVEL).then_some(line)
        })
        .collect();
    let verdict = |(line, change): (usize, &Option<Change>)| {
        change.map(|change| {
            if significant.contains(&line) {
                Verdict::Significant
            } else if change.is_significant_alone() {
                Verdict::SignificantAlone { lines: count }
            } else {
                Verdict::NoDifference
            }
        })
    };
    lines.iter().enumerate().map(verdict).collect()
}

/// What a line says about a difference.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    Significant,
    /// A difference that this line would have as the only one, and does not have as one of these.
    SignificantAlone {
        lines: usize,
    },
    NoDifference,
}

impl core::fmt::Display for Verdict {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Significant => f.write_str("significant"),
            Self::SignificantAlone { lines } => {
                write!(f, "not significant as one of {lines} lines")
            }
            Self::NoDifference => f.write_str("no significant difference"),
        }
    }
}

/// The change of the geometric mean between two independent groups of runs (Welch's interval, its degrees of freedom rounded
/// down). `precision` is the relative precision of a value. `None` unless both have two runs, with positive values only.
pub(super) fn between(before: &[f64], after: &[f64], precision: f64) -> Option<Change> {
    let (old, new) = (Group::of(before)?, Group::of(after)?);
    let (a, b) = (old.variance / old.count, new.variance / new.count);
    let freedom = (a + b).powi(2)
        / (a * a / (old.count - 1.0) + b * b / (new.count - 1.0)).max(f64::MIN_POSITIVE);
    let least = (old.count - 1.0).min(new.count - 1.0);
    let freedom = freedom.clamp(least, old.count + new.count - 2.0);
    Change::of(
        new.mean - old.mean,
        (a + b).sqrt(),
        freedom as u32,
        precision,
    )
}

/// The geometric mean of ratios, of which each round gives one. `None` for fewer than two, or unless all are positive.
pub(super) fn over_rounds(ratios: &[f64], precision: f64) -> Option<Change> {
    let group = Group::of(ratios)?;
    let error = (group.variance / group.count).sqrt();
    Change::of(group.mean, error, group.count as u32 - 1, precision)
}

/// The geometric mean; `None` without values, or unless all are positive.
pub(super) fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Option<Vec<f64>> = values.iter().copied().map(log).collect();
    let logs = logs.filter(|logs| !logs.is_empty())?;
    Some((logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// Logarithms of the values of a group.
struct Group {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Group {
    fn of(values: &[f64]) -> Option<Self> {
        let logs: Vec<f64> = values.iter().copied().map(log).collect::<Option<_>>()?;
        let count = logs.len() as f64;
        if logs.len() < 2 {
            return None;
        }
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        Some(Self {
            count,
            mean,
            variance: squares / (count - 1.0),
        })
    }
}

fn log(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then(|| value.ln())
}

/// The value of Student's t distribution that is exceeded on either side with a probability of [`LEVEL`] in total.
fn t_quantile(freedom: u32) -> f64 {
    let (mut low, mut high) = (0.0, 16.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if t_within(middle, freedom) < 1.0 - LEVEL {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The probability of a value from -`t` to `t` (Abramowitz and Stegun 26.7.3 and 26.7.4).
fn t_within(t: f64, freedom: u32) -> f64 {
    let freedom = freedom.max(1);
    let angle = (t / f64::from(freedom).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    // The terms of odd powers of the cosine for odd degrees of freedom, else of even powers.
    let first = freedom % 2;
    let mut term = if first == 1 { cos } else { 1.0 };
    let mut sum = 0.0;
    for power in (first..freedom - 1).step_by(2) {
        sum += term;
        let power = f64::from(power);
        term *= cos * cos * (power + 1.0) / (power + 2.0);
    }
    if first == 1 {
        (angle + sin * sum) * core::f64::consts::FRAC_2_PI
    } else {
        sin * sum
    }
}
