//! Whether connections are in balance over the arms, and the overall change stratified by site.
//!
//! Totals can be in balance although the arms of each site are not: if a site has three times as many connections in one arm
//! and another site three times as many in the baseline, the pooled comparison of the arms compares the sites.
//!
//! # Tests
//!
//! The numbers of all connections are compared with the intended shares (Pearson's chi-squared). By site, by object size and by
//! hour of the line, a test of homogeneity follows: Pearson's chi-squared of the table of arms and strata, where `n(s)·n(a)/n`
//! connections of arm `a` are expected in stratum `s`. Together with the first test it compares each cell with its intended share.
//! Strata in which less than [`EXPECTED_MIN`] connections of an arm are expected are merged with those that follow them, by number of
//! connections for sites, and in order for sizes and hours. Connections without a size are in no stratum of sizes: that a transfer never
//! started is an outcome, which arms change. All p of a page are corrected together (Holm), so a page of an
//! experiment with random assignment shows an alarm with a probability of [`ALARM`] at most.
//!
//! # Stratified estimate
//!
//! The overall change is that of the geometric mean of the values, which a few large ones do not decide. Pooled, it is `exp(d) − 1`
//! with `d` the difference of the means of the logarithms of arm and baseline. Stratified, `d = Σ w(s)·d(s)`, where `d(s)` is
//! the same difference within site `s`, and `w(s) = n(s) / Σ n(s)` with `n(s)` the connections of the site in all arms, completed
//! or not. The variance of `d(s)` is the sum of both arms' sample variances over their numbers, and that of `d` is
//! `Σ w(s)²·var d(s)`. Intervals are normal, simultaneous over arms (Bonferroni). Sites with fewer than two values in the arm or
//! the baseline, or with a value of zero, which has no logarithm, are left out, and counted.
//!
//! # Decisions
//!
//! - Paired connections have neither: each path is in every arm, so arms have the same sites, sizes and hours. The number of paths
//!   that lack an arm is reported instead.
//! - Groups of [`Settings::by`] may be outcomes, which arms change, so they are neither tested nor strata.
//! - Times of simulated lines count from the start of each connection, so there is no test by hour.

use std::collections::BTreeMap;

use super::{
    gather::{self, Cell, Tally},
    queries,
    settings::Settings,
};
use crate::statistics::{
    Counts,
    bootstrap::Member,
    chi_squared_above,
    tests_of::{self, Estimate},
};

/// Below this p, corrected, the page says that the numbers cannot be by chance. It is far below 5 %, as usual for this check: a
/// false alarm would cast doubt on everything.
pub(super) const ALARM: f64 = 0.001;
/// Below this p, corrected, the page asks to look at the numbers.
pub(super) const LOOK: f64 = 0.01;
/// The minimum number of connections of each arm that are expected in a stratum.
const EXPECTED_MIN: f64 = 5.0;

/// What a test divides the connections by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Nothing: the arms against the intended shares.
    Total,
    Site,
    Size,
    Hour,
    /// The paths of paired connections that lack an arm: the arms against equal shares of what is missing.
    Path,
}

impl By {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Total => "all",
            Self::Site => "site",
            Self::Size => "object size",
            Self::Hour => "hour",
            Self::Path => "path",
        }
    }
}

/// A test of the numbers of connections.
#[derive(Clone, Debug)]
pub(super) struct BalanceTest {
    pub(super) by: By,
    pub(super) strata: usize,
    pub(super) statistic: f64,
    pub(super) degrees: usize,
    pub(super) p: f64,
    /// Corrected for the number of tests and of looks.
    pub(super) adjusted: f64,
    /// The cell that is farthest from what is expected.
    pub(super) farthest: Farthest,
    /// Connections that are in no stratum.
    pub(super) left_out: u64,
}

/// A cell of the table of arms and strata.
#[derive(Clone, Debug)]
pub(super) struct Farthest {
    pub(super) stratum: String,
    /// All connections of the stratum.
    pub(super) total: u64,
    pub(super) arm: usize,
    pub(super) count: u64,
    pub(super) expected: f64,
}

/// The numbers of connections of a stratum, by arm.
#[derive(Clone, Debug)]
pub(super) struct Stratum {
    pub(super) title: String,
    pub(super) counts: Vec<u64>,
}

/// The tests of a log, and the estimates of each arm. Paired connections have a test of the arms that paths lack, and no estimates;
/// arms that were not assigned at random have no tests.
pub(super) fn analysis(
    tally: &Tally,
    order: &[usize],
    shares: &[f64],
    all: &[Counts],
    settings: &Settings,
) -> (Vec<BalanceTest>, Vec<Option<Stratified>>) {
    let looks = settings.looks;
    if let Some(blocks) = &tally.blocks {
        let lacks = |arm: usize| {
            let members = blocks.iter().map(|block| block.members.get(arm).copied());
            let absent = members.filter(|one| one.unwrap_or_default() == Member::Absent);
            absent.count() as u64
        };
        let missing: Vec<u64> = order.iter().map(|arm| lacks(*arm)).collect();
        return (
            paths(&missing, looks).into_iter().collect(),
            vec![None; order.len()],
        );
    }
    let counts: Vec<u64> = all.iter().map(Counts::total).collect();
    let divisions = divisions(tally, order, settings);
    let sites = sites(tally, order, settings);
    let mut tests = match settings.shares {
        Some(_) => tests(&counts, shares, divisions, looks),
        None => Vec::new(),
    };
    if let Some(test) = tests.iter_mut().find(|test| test.by == By::Size) {
        test.left_out = tally.without_size.values().sum();
    }
    (tests, stratified(&sites, order.len(), looks))
}

/// Whether each arm is missing on as many paths as any other. `None` if no path lacks an arm.
fn paths(missing: &[u64], looks: u32) -> Option<BalanceTest> {
    let total: u64 = missing.iter().sum();
    let (statistic, p) = tests_of::chi_squared(missing, &vec![1.0; missing.len()])?;
    let expected = missing.iter().map(|_| total as f64 / missing.len() as f64);
    Some(BalanceTest {
        by: By::Path,
        strata: 1,
        statistic,
        degrees: missing.len().saturating_sub(1),
        p,
        adjusted: (p * f64::from(looks)).min(1.0),
        farthest: farthest("paths without an arm", missing, expected).1,
        left_out: 0,
    })
}

/// The tests of a log: of all connections against the shares first, then by each division with two strata or more.
pub(super) fn tests(
    counts: &[u64],
    shares: &[f64],
    divisions: Vec<(By, Vec<Stratum>)>,
    looks: u32,
) -> Vec<BalanceTest> {
    let whole: f64 = shares.iter().sum();
    let total: u64 = counts.iter().sum();
    let all = tests_of::chi_squared(counts, shares).map(|(statistic, p)| {
        let expected = shares.iter().map(|share| total as f64 * share / whole);
        BalanceTest {
            by: By::Total,
            strata: 1,
            statistic,
            degrees: shares
                .iter()
                .filter(|share| **share > 0.0)
                .count()
                .saturating_sub(1),
            p,
            adjusted: p,
            farthest: farthest("all connections", counts, expected).1,
            left_out: 0,
        }
    });
    let divided = divisions
        .into_iter()
        .filter_map(|(by, strata)| homogeneity(by, strata));
    let mut tests: Vec<BalanceTest> = all.into_iter().chain(divided).collect();
    let p: Vec<f64> = tests.iter().map(|test| test.p).collect();
    for (test, adjusted) in tests.iter_mut().zip(tests_of::holm(&p)) {
        test.adjusted = (adjusted * f64::from(looks)).min(1.0);
    }
    tests
}

/// The cell of a stratum that contributes most to chi-squared, and its contribution.
fn farthest(stratum: &str, counts: &[u64], expected: impl Iterator<Item = f64>) -> (f64, Farthest) {
    let mut most = (
        -1.0,
        Farthest {
            stratum: stratum.to_owned(),
            total: counts.iter().sum(),
            arm: 0,
            count: 0,
            expected: 0.0,
        },
    );
    for (arm, (count, expected)) in counts.iter().zip(expected).enumerate() {
        let part = (*count as f64 - expected).powi(2) / expected;
        if part > most.0 {
            most.0 = part;
            (most.1.arm, most.1.count, most.1.expected) = (arm, *count, expected);
        }
    }
    most
}

/// Whether the arms have the same shares in all strata. `None` with fewer than two strata or arms.
fn homogeneity(by: By, strata: Vec<Stratum>) -> Option<BalanceTest> {
    let strata = merged(by, strata);
    let arms = totals(&strata);
    let total: u64 = arms.iter().sum();
    let degrees = strata.len().checked_sub(1)? * arms.len().checked_sub(1)?;
    if degrees == 0 {
        return None;
    }
    let mut statistic = 0.0;
    let mut most: Option<(f64, Farthest)> = None;
    for Stratum { title, counts } in &strata {
        let here: u64 = counts.iter().sum();
        let expected = || {
            arms.iter()
                .map(|arm| here as f64 * *arm as f64 / total as f64)
        };
        let cells = counts.iter().zip(expected());
        statistic += cells
            .map(|(count, expected)| (*count as f64 - expected).powi(2) / expected)
            .sum::<f64>();
        let cell = farthest(title, counts, expected());
        if most.as_ref().is_none_or(|most| cell.0 > most.0) {
            most = Some(cell);
        }
    }
    let p = chi_squared_above(statistic, degrees);
    Some(BalanceTest {
        by,
        strata: strata.len(),
        statistic,
        degrees,
        p,
        adjusted: p,
        farthest: most?.1,
        left_out: 0,
    })
}

fn totals(strata: &[Stratum]) -> Vec<u64> {
    let mut arms: Vec<u64> = Vec::new();
    for stratum in strata {
        arms.resize(arms.len().max(stratum.counts.len()), 0);
        for (arm, count) in arms.iter_mut().zip(&stratum.counts) {
            *arm += count;
        }
    }
    arms
}

/// The strata, each with enough connections for the test.
fn merged(by: By, mut strata: Vec<Stratum>) -> Vec<Stratum> {
    let arms = totals(&strata);
    let total: u64 = arms.iter().sum();
    // An arm of a log has a connection.
    let Some(rarest) = arms.into_iter().min().filter(|rarest| *rarest > 0) else {
        return Vec::new();
    };
    if by == By::Site {
        strata.sort_by_key(|stratum| stratum.counts.iter().sum::<u64>());
    }
    let is_enough = |stratum: &Stratum| {
        let here: u64 = stratum.counts.iter().sum();
        here as f64 * rarest as f64 / total as f64 >= EXPECTED_MIN
    };
    let mut out: Vec<Stratum> = Vec::new();
    for stratum in strata {
        match out.last_mut().filter(|last| !is_enough(last)) {
            Some(last) => join(last, &stratum),
            None => out.push(stratum),
        }
    }
    // What is left at the end.
    if out.len() > 1
        && let Some(last) = out.pop_if(|last| !is_enough(last))
        && let Some(before) = out.last_mut()
    {
        join(before, &last);
    }
    out
}

fn join(stratum: &mut Stratum, other: &Stratum) {
    for (count, other) in stratum.counts.iter_mut().zip(&other.counts) {
        *count += other;
    }
    let (first, _) = stratum
        .title
        .split_once(" to ")
        .unwrap_or((&stratum.title, ""));
    let (_, last) = other.title.split_once(" to ").unwrap_or(("", &other.title));
    stratum.title = format!("{first} to {last}");
}

/// The divisions of a log that arms cannot change.
fn divisions(tally: &Tally, order: &[usize], settings: &Settings) -> Vec<(By, Vec<Stratum>)> {
    let bins = queries::bins(settings);
    let mut sites: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut by_size: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for ((arm, site, bin), cell) in &tally.cells {
        let Some(arm) = order.iter().position(|one| one == arm) else {
            continue;
        };
        let add = |counts: &mut Vec<u64>| {
            counts.resize(order.len(), 0);
            counts[arm] += number(cell);
        };
        add(sites.entry(&tally.sites[*site]).or_default());
        add(by_size.entry(bin.unwrap_or(bins.len())).or_default());
    }
    let mut all = Vec::new();
    if has_sites(settings) {
        let strata = sites.into_iter().map(|(name, counts)| Stratum {
            title: if name.is_empty() { "no site" } else { name }.to_owned(),
            counts,
        });
        all.push((By::Site, strata.collect()));
    }
    if settings.by.is_none() || settings.bins.is_none() {
        let others = by_size.entry(bins.len()).or_default();
        for (count, arm) in others.iter_mut().zip(order) {
            *count -= tally.without_size.get(arm).copied().unwrap_or(0);
        }
        by_size.retain(|_, counts| counts.iter().any(|count| *count > 0));
        let strata = by_size.into_iter().map(|(bin, counts)| Stratum {
            title: bins
                .get(bin)
                .map_or_else(|| "other sizes".to_owned(), |bin| bin.title.clone()),
            counts,
        });
        all.push((By::Size, strata.collect()));
    }
    if let Some(hours) = &tally.hours {
        let strata = hours.iter().map(|(hour, by_arm)| Stratum {
            title: hour.map_or_else(|| "no time".to_owned(), hour_title),
            counts: order
                .iter()
                .map(|arm| by_arm.get(arm).copied().unwrap_or(0))
                .collect(),
        });
        all.push((By::Hour, strata.collect()));
    }
    all
}

/// Whether the sites of the log are sites, and no other groups.
fn has_sites(settings: &Settings) -> bool {
    settings.by.is_none() || settings.bins.is_some()
}

fn number(cell: &Cell) -> u64 {
    cell.ttlb.values().sum::<u64>() + cell.unfinished
}

/// An hour since the Unix epoch: `2026-03-09 10:00 UTC`.
fn hour_title(hour: i64) -> String {
    let (days, hour_of_day) = (hour.div_euclid(24), hour.rem_euclid(24));
    let (year, month, day) = lastbyte_units::date_of_days(days);
    format!("{year:04}-{month:02}-{day:02} {hour_of_day:02}:00 UTC")
}

/// The overall change of an arm, pooled and by site.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stratified {
    pub(super) pooled: Estimate,
    pub(super) by_site: Estimate,
    /// The number of sites that count, at least two.
    pub(super) sites: usize,
    /// The connections of the others, in all arms: of sites with fewer than two values in the arm or the baseline, and of sites with a
    /// value of zero there.
    pub(super) left_out: [u64; 2],
}

impl Stratified {
    /// Whether the two intervals have no value in common.
    pub(super) fn disagree(&self) -> bool {
        let ((low, high), (from, to)) = (self.pooled.interval, self.by_site.interval);
        high < from || to < low
    }
}

/// The estimates of each arm but the baseline; `None` where a value is zero, which has no logarithm, and for fewer than two sites.
pub(super) fn stratified(
    sites: &[Vec<Counts>],
    arms: usize,
    looks: u32,
) -> Vec<Option<Stratified>> {
    let z = tests_of::simultaneous(arms.saturating_sub(1) * looks as usize);
    let of_arm = |arm: usize| {
        if arm == 0 || sites.len() < 2 {
            return None;
        }
        let total = |site: &[Counts]| site.iter().map(Counts::total).sum::<u64>();
        let (mut sum, mut variance, mut weights) = (0.0, 0.0, 0.0);
        let (mut counting, mut left_out) = (Vec::new(), [0; 2]);
        for site in sites {
            let Some((difference, of)) = log_difference(&site[arm], &site[0]) else {
                let has_zero = [arm, 0].iter().any(|arm| has_zero(&site[*arm]));
                left_out[usize::from(has_zero)] += total(site);
                continue;
            };
            counting.push(site);
            let weight = total(site) as f64;
            sum += weight * difference;
            variance += weight * weight * of;
            weights += weight;
        }
        // Pooled over the same sites: those that are left out are no reason for the two to differ.
        let of = |arm: usize| Counts::joined(counting.iter().map(|site| &site[arm]));
        let pooled = log_difference(&of(arm), &of(0))?;
        (counting.len() > 1).then(|| Stratified {
            pooled: estimate(pooled, z),
            by_site: estimate((sum / weights, variance / (weights * weights)), z),
            sites: counting.len(),
            left_out,
        })
    };
    (0..arms).map(of_arm).collect()
}

fn estimate((difference, variance): (f64, f64), z: f64) -> Estimate {
    let half = z * variance.sqrt();
    Estimate {
        value: difference.exp_m1(),
        interval: ((difference - half).exp_m1(), (difference + half).exp_m1()),
    }
}

/// The difference of the means of logarithms, and its variance.
fn log_difference(one: &Counts, other: &Counts) -> Option<(f64, f64)> {
    let ((first, one), (second, other)) = (logarithms(one)?, logarithms(other)?);
    Some((first - second, one + other))
}

fn has_zero(counts: &Counts) -> bool {
    counts.iter().next().is_some_and(|(value, _)| value == 0)
}

/// The mean of logarithms, and its variance. `None` with fewer than two values, or a value of zero.
fn logarithms(counts: &Counts) -> Option<(f64, f64)> {
    let n = counts.finished() as f64;
    if n < 2.0 || has_zero(counts) {
        return None;
    }
    let sum = |of: &dyn Fn(f64) -> f64| -> f64 {
        let terms = counts.iter();
        terms
            .map(|(value, count)| of((value as f64).ln()) * count as f64)
            .sum()
    };
    let mean = sum(&|value| value) / n;
    let squares = sum(&|value| (value - mean).powi(2));
    Some((mean, squares / (n - 1.0) / n))
}

/// The values of each site, by arm in this order. None if there are no sites; lines without one are of none.
fn sites(tally: &Tally, order: &[usize], settings: &Settings) -> Vec<Vec<Counts>> {
    if !has_sites(settings) {
        return Vec::new();
    }
    let named = (0..tally.sites.len()).filter(|site| !tally.sites[*site].is_empty());
    let sites = named.map(|site| {
        let of_arm = |arm: &usize| {
            let cells = tally.cells.iter();
            let cells = cells.filter(|((of, at, _), _)| of == arm && *at == site);
            gather::merged(cells.map(|(_, cell)| cell))
        };
        order.iter().map(of_arm).collect::<Vec<Counts>>()
    });
    sites
        .filter(|site| site.iter().any(|counts| counts.total() > 0))
        .collect()
}
