//! The results of a network's pages with an arm.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{PageLoads, Selection};
use crate::statistics::{
    Z_95,
    tests_of::{Estimate, share},
};

/// A page: its time with the baseline and with the arm, in ms; infinite if a load was not complete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    pub(super) page: usize,
    pub(super) baseline: f64,
    pub(super) arm: f64,
}

impl Pair {
    /// The speedup of the arm; below 1 it is slower. NaN if the page was complete in neither.
    pub(super) fn speedup(&self) -> f64 {
        self.baseline / self.arm
    }
}

/// The pages of each network that were loaded in both arms, with the mean of their loads.
pub(super) fn pairs(loads: &PageLoads, selection: Selection) -> Vec<Vec<Pair>> {
    let mut sums: BTreeMap<(usize, usize), [(f64, u32); 2]> = BTreeMap::new();
    for load in &loads.loads {
        let key = load.key;
        let side = match key.arm {
            0 => 0,
            arm if arm == selection.arm => 1,
            _ => continue,
        };
        let ms = selection.metric.of(load).unwrap_or(f64::INFINITY);
        if key.view == selection.view && ms > 0.0 {
            let sum = &mut sums.entry((key.network, key.page)).or_default()[side];
            *sum = (sum.0 + ms, sum.1 + 1);
        }
    }
    let mut all = vec![Vec::new(); loads.networks.len()];
    for ((network, page), [baseline, arm]) in sums {
        if let Some(pairs) = all.get_mut(network)
            && baseline.1 > 0
            && arm.1 > 0
            && page < loads.pages.len()
        {
            pairs.push(Pair {
                page,
                baseline: baseline.0 / f64::from(baseline.1),
                arm: arm.0 / f64::from(arm.1),
            });
        }
    }
    all
}

/// The results of a network's pages with an arm, compared with the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Pages that were loaded in both arms.
    pub pages: usize,
    /// Those of which a load over the baseline, and over the arm, was not complete. It counts as infinitely long.
    pub incomplete: (usize, usize),
    /// Pages that were complete over both.
    pub complete: usize,
    /// The share that is faster in the arm, with its 95 % interval (Wilson). `None` without pages.
    pub faster: Option<Estimate>,
    /// The geometric mean of the speedups, with its 95 % interval (normal, of logarithms). It is the mean over pages, and its
    /// interval shows how far another sample of pages like these would move it. It is of the pages that were complete over both; `None`
    /// with fewer than two.
    pub speedup: Option<Estimate>,
    /// The median speedup. A page that was complete over the arm only has an infinite speedup, one over the baseline only a speedup
    /// of 0, and one over neither is between the faster and the slower ones, without a value.
    pub median: Option<f64>,
    /// The 5th percentile of the speedups: one page in twenty is below.
    pub p5: Option<f64>,
    /// The 95th percentile of the speedups: one page in twenty is above.
    pub p95: Option<f64>,
    /// The share that is slower by more than 5 %.
    pub losers: Option<f64>,
}

impl Verdict {
    pub(super) fn of(pairs: &[Pair]) -> Self {
        let mut speedups: Vec<f64> = pairs.iter().map(Pair::speedup).collect();
        let rank = |speedup: f64| if speedup.is_nan() { 1.0 } else { speedup };
        speedups.sort_by(|one, other| rank(*one).total_cmp(&rank(*other)));
        let count = speedups.len();
        let above = |limit: f64| speedups.iter().filter(|one| **one > limit).count();
        let at = |share: f64| {
            let place = ((count as f64 * share).ceil() as usize).max(1) - 1;
            speedups.get(place).copied().filter(|one| !one.is_nan())
        };
        let logs = speedups.iter().map(|one| libm::log(*one));
        let logs: Vec<f64> = logs.filter(|log| log.is_finite()).collect();
        let complete = logs.len();
        let mean = logs.iter().sum::<f64>() / complete as f64;
        let squares = logs
            .iter()
            .map(|log| (log - mean) * (log - mean))
            .sum::<f64>();
        let half = Z_95 * (squares / (complete as f64 - 1.0) / complete as f64).sqrt();
        let incomplete =
            |time: fn(&Pair) -> f64| pairs.iter().filter(|pair| time(pair).is_infinite()).count();
        let losers = speedups.iter().filter(|one| **one < 1.0 / 1.05).count();
        Self {
            pages: count,
            complete,
            faster: share(above(1.0) as u64, count as u64, Z_95),
            incomplete: (
                incomplete(|pair| pair.baseline),
                incomplete(|pair| pair.arm),
            ),
            speedup: (complete > 1).then(|| Estimate {
                value: libm::exp(mean),
                interval: (libm::exp(mean - half), libm::exp(mean + half)),
            }),
            median: at(0.5),
            p5: at(0.05),
            p95: at(0.95),
            losers: (count > 0).then(|| losers as f64 / count as f64),
        }
    }

    pub(super) fn json(&self) -> Value {
        let interval = |estimate: Option<Estimate>| {
            estimate.map(|one| json!([one.value, one.interval.0, one.interval.1]))
        };
        json!({
            "pages": self.pages,
            "complete": self.complete,
            "incomplete_baseline": self.incomplete.0,
            "incomplete_arm": self.incomplete.1,
            "faster": interval(self.faster),
            "speedup": interval(self.speedup),
            "speedup_median": self.median,
            "speedup_p5": self.p5,
            "speedup_p95": self.p95,
            "slower_by_5_percent": self.losers,
        })
    }
}

/// A speedup: two decimals, `∞`, `never` of a page that is complete over the baseline only, or a dash without a value.
pub fn show_speedup(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_infinite() => "∞".to_owned(),
        Some(0.0) => "never".to_owned(),
        Some(value) if !value.is_nan() => format!("{value:.2}"),
        _ => "–".to_owned(),
    }
}
