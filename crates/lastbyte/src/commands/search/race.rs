//! The statistics of a race: candidates on the same paths, and which of them can be dropped.

use lastbyte_report::statistics::tests_of::{self, Estimate};

#[cfg(test)]
mod tests;

/// The result of a candidate on a path, relative to the baseline on the same path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PathResult {
    /// The logarithm of the ratio of the times to last byte.
    pub(super) time: f64,
    /// The difference of the shares of packets lost, in percentage points.
    pub(super) loss: f64,
    /// The logarithm of the ratio of the neighbours' rates; 0 without neighbours.
    pub(super) neighbour: f64,
}

/// Limits of a candidate, relative to the baseline.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// More packet loss, in percentage points.
    pub(super) loss: Option<f64>,
    /// The share by which neighbours get less.
    pub(super) harm: Option<f64>,
}

/// Why a candidate was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Loss,
    Harm,
    /// Another is faster, and neither loses more nor harms more.
    SlowerThan(usize),
}

/// Means over paths, each with its interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Means {
    /// The geometric mean of the change of the time to last byte.
    pub(super) time: Estimate,
    /// The mean difference of loss, in percentage points.
    pub(super) loss: Estimate,
    /// The geometric mean of the change of the neighbours' rates.
    pub(super) neighbour: Estimate,
}

/// Candidates and their results, path by path.
#[derive(Debug)]
pub(super) struct Race {
    results: Vec<Vec<PathResult>>,
    dropped: Vec<Option<Reason>>,
    limits: Limits,
    /// The half width of intervals in standard deviations: simultaneous over candidates, rounds and values.
    z: f64,
}

impl Race {
    pub(super) fn new(candidates: usize, rounds: usize, limits: Limits) -> Self {
        Self {
            results: vec![Vec::new(); candidates],
            dropped: vec![None; candidates],
            limits,
            z: tests_of::simultaneous(3 * candidates * rounds),
        }
    }

    /// The candidates that are not dropped.
    pub(super) fn alive(&self) -> Vec<usize> {
        let all = self.dropped.iter().enumerate();
        all.filter(|(_, reason)| reason.is_none())
            .map(|(candidate, _)| candidate)
            .collect()
    }

    pub(super) fn reason(&self, candidate: usize) -> Option<Reason> {
        self.dropped[candidate]
    }

    pub(super) fn paths(&self, candidate: usize) -> usize {
        self.results[candidate].len()
    }

    /// Adds the result of a candidate on the next path.
    pub(super) fn add(&mut self, candidate: usize, result: PathResult) {
        self.results[candidate].push(result);
    }

    /// The means of a candidate. `None` for fewer than two paths.
    pub(super) fn means(&self, candidate: usize) -> Option<Means> {
        let results = &self.results[candidate];
        let of = |value: fn(&PathResult) -> f64| estimate(results.iter().map(value), self.z);
        Some(Means {
            time: change(of(|one| one.time)?),
            loss: of(|one| one.loss)?,
            neighbour: change(of(|one| one.neighbour)?),
        })
    }

    /// Drops the candidates of which the results so far show that they exceed a limit, or that another is faster and neither
    /// loses more nor harms more. One that was dropped is not compared with.
    pub(super) fn drop_losers(&mut self) {
        for candidate in self.alive() {
            let Some(means) = self.means(candidate) else {
                continue;
            };
            let exceeds = |limit: Option<f64>, least: f64| limit.is_some_and(|limit| least > limit);
            if exceeds(self.limits.loss, means.loss.interval.0) {
                self.dropped[candidate] = Some(Reason::Loss);
            } else if exceeds(self.limits.harm, -means.neighbour.interval.1) {
                self.dropped[candidate] = Some(Reason::Harm);
            }
        }
        let mut alive = self.alive();
        // The fastest first: it drops most.
        alive.sort_by(|a, b| self.mean_time(*a).total_cmp(&self.mean_time(*b)));
        for faster in &alive {
            for slower in &alive {
                if faster != slower
                    && self.dropped[*faster].is_none()
                    && self.dropped[*slower].is_none()
                    && self.is_shown_worse(*slower, *faster)
                {
                    self.dropped[*slower] = Some(Reason::SlowerThan(*faster));
                }
            }
        }
    }

    fn mean_time(&self, candidate: usize) -> f64 {
        self.means(candidate).map_or(0.0, |means| means.time.value)
    }

    /// Whether `slower` is slower beyond chance, and by the estimates neither loses less nor harms less.
    fn is_shown_worse(&self, slower: usize, faster: usize) -> bool {
        let both = self.results[slower].iter().zip(&self.results[faster]);
        let difference = estimate(both.map(|(slow, fast)| slow.time - fast.time), self.z);
        let Some((difference, (slow, fast))) =
            difference.zip(self.means(slower).zip(self.means(faster)))
        else {
            return false;
        };
        difference.interval.0 > 0.0
            && slow.loss.value >= fast.loss.value
            && slow.neighbour.value <= fast.neighbour.value
    }

    /// The candidates within the limits, by their estimates, that no other within them beats or equals in everything: the Pareto
    /// front, the fastest first.
    pub(super) fn front(&self) -> Vec<usize> {
        let within: Vec<(usize, Means)> = self
            .alive()
            .into_iter()
            .filter_map(|candidate| Some((candidate, self.means(candidate)?)))
            .filter(|(_, means)| {
                self.limits
                    .loss
                    .is_none_or(|limit| means.loss.value <= limit)
                    && self
                        .limits
                        .harm
                        .is_none_or(|limit| -means.neighbour.value <= limit)
            })
            .collect();
        let mut front: Vec<(usize, Means)> = within
            .iter()
            .filter(|(candidate, means)| {
                !within
                    .iter()
                    .any(|(other, theirs)| dominates((*other, theirs), (*candidate, means)))
            })
            .copied()
            .collect();
        front.sort_by(|(_, a), (_, b)| a.time.value.total_cmp(&b.time.value));
        front.into_iter().map(|(candidate, _)| candidate).collect()
    }
}

/// Whether one is as good in everything and better in something; of equal ones the first.
fn dominates((a, ours): (usize, &Means), (b, theirs): (usize, &Means)) -> bool {
    let ours = [ours.time.value, ours.loss.value, -ours.neighbour.value];
    let theirs = [
        theirs.time.value,
        theirs.loss.value,
        -theirs.neighbour.value,
    ];
    let is_as_good = ours
        .iter()
        .zip(&theirs)
        .all(|(ours, theirs)| ours <= theirs);
    let is_better = ours.iter().zip(&theirs).any(|(ours, theirs)| ours < theirs);
    is_as_good && (is_better || a < b)
}

/// The mean of values, in an interval of `z` standard deviations. `None` for fewer than two.
fn estimate(values: impl Iterator<Item = f64>, z: f64) -> Option<Estimate> {
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    // Welford's sums.
    for value in values {
        count += 1.0;
        let step = value - mean;
        mean += step / count;
        squares += step * (value - mean);
    }
    if count < 2.0 {
        return None;
    }
    let half = z * (squares / (count - 1.0) / count).sqrt();
    Some(Estimate {
        value: mean,
        interval: (mean - half, mean + half),
    })
}

/// From the logarithm of a ratio to a change.
fn change(one: Estimate) -> Estimate {
    Estimate {
        value: one.value.exp_m1(),
        interval: (one.interval.0.exp_m1(), one.interval.1.exp_m1()),
    }
}
