//! The results in sentences: which differences are significant, which are not, and warnings.

use core::fmt::Write as _;

use super::{
    analysis::{Analysis, Group, LARGEST, LARGEST_ALARM, LARGEST_OF, SMALL, beside_z},
    format::{
        ABSENT, count, counted, hundredths, percent, percent_range, points, points_range, share,
        share_range, signed,
    },
    power::POWER,
    queries::PARTS,
};
use crate::statistics::{
    Counts,
    bootstrap::{Absent, Interval, MEMBERS_MIN, Overall, is_joint},
    tests_of::{self, Estimate},
};

pub(super) fn title(analysis: &Analysis) -> String {
    let title = analysis
        .settings
        .title
        .clone()
        .or_else(|| analysis.experiment.clone());
    title.unwrap_or_else(|| format!("{} by arm", long_name(analysis)))
}

/// The name of the metric, written out.
pub(super) fn long_name(analysis: &Analysis) -> &str {
    if analysis.settings.metric.is_ttlb() {
        "Time to last byte"
    } else {
        &analysis.settings.metric.name
    }
}

/// ` of NAME` of a metric other than the TTLB, which sentences are about if they name none.
pub(super) fn of_metric(analysis: &Analysis) -> String {
    match &analysis.settings.metric {
        metric if metric.is_ttlb() => String::new(),
        metric => format!(" of {}", metric.name),
    }
}

/// What subgroups are by: `size and site`.
pub(super) fn dimensions(analysis: &Analysis) -> [&str; 2] {
    let settings = &analysis.settings;
    match (&settings.by, &settings.bins) {
        (Some(by), None) => ["object size", by],
        (Some(by), Some(_)) => [by, "site"],
        (None, _) => ["object size", "site"],
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// Whether the joint band excludes zero, and on which side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Significance {
    Faster,
    Slower,
    None,
}

pub(super) fn significance(cell: &Interval) -> Significance {
    match cell.together {
        Some((_, high)) if high < 0.0 => Significance::Faster,
        Some((low, _)) if low > 0.0 => Significance::Slower,
        _ => Significance::None,
    }
}

/// The percentiles at which the joint band excludes zero on this side.
fn runs(curve: &[Interval], wanted: Significance) -> Option<String> {
    let cells = (1..).zip(curve);
    let found = cells.filter(|(percentile, cell)| {
        significance(cell) == wanted && is_joint(*percentile as f64 / 100.0)
    });
    ranges(found.map(|(percentile, _)| percentile))
}

/// Ascending percentiles as ranges such as `P5–P60`; if there are more than three ranges, their number of percentiles.
pub(super) fn ranges(percentiles: impl Iterator<Item = usize>) -> Option<String> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for percentile in percentiles {
        match runs.last_mut() {
            Some((_, to)) if *to + 1 == percentile => *to = percentile,
            _ => runs.push((percentile, percentile)),
        }
    }
    let (first, last) = (runs.first()?.0, runs.last()?.1);
    if runs.len() > 3 {
        let count: usize = runs.iter().map(|(from, to)| to + 1 - from).sum();
        return Some(format!(
            "{count} of the percentiles from P{first} to P{last}"
        ));
    }
    let runs = runs.into_iter().map(|(from, to)| {
        if from == to {
            format!("P{from}")
        } else {
            format!("P{from}–P{to}")
        }
    });
    let runs: Vec<String> = runs.collect();
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    Some(listed(&runs))
}

/// In place of a verdict, if the numbers of connections cannot be by chance.
const NO_VERDICT: &str = "no verdict, because the sample ratio fails";

/// For how many looks at the experiment the intervals hold.
pub(super) fn looks(analysis: &Analysis) -> String {
    match analysis.settings.looks {
        0 | 1 => "Intervals hold for one look, at a number of connections that was chosen before."
            .to_owned(),
        many => format!(
            "Simultaneous intervals, and p of tests, are corrected for {many} planned looks (Bonferroni); other intervals hold for one look."
        ),
    }
}

/// The overall change by site beside the pooled one, a sentence per arm.
pub(super) fn stratified(analysis: &Analysis) -> Vec<String> {
    let arms = analysis.arms.iter().zip(&analysis.stratified);
    arms.filter_map(|(arm, one)| {
        let one = one.as_ref()?;
        let why = ["fewer than two values in an arm", "a value of 0, which has no logarithm"];
        let left_out = one.left_out.iter().zip(why).filter(|(many, _)| **many > 0);
        let left_out: Vec<String> = left_out
            .map(|(many, why)| format!("; {} of sites with {why}", counted(*many, "connection is", "connections are")))
            .collect();
        let left_out = left_out.concat();
        Some(format!(
            "{}: geometric mean of {} {} (95 % simultaneous: {}); stratified by site {} ({}, {} sites{left_out}).",
            arm.name,
            analysis.settings.metric.name,
            percent(one.pooled.value),
            percent_range(one.pooled.interval),
            percent(one.by_site.value),
            percent_range(one.by_site.interval),
            one.sites,
        ))
    })
    .collect()
}

/// One verdict per arm, by the joint band.
pub(super) fn verdicts(analysis: &Analysis) -> Vec<String> {
    (1..analysis.arms.len())
        .map(|arm| verdict(analysis, arm))
        .collect()
}

fn verdict(analysis: &Analysis, arm: usize) -> String {
    let (all, name, baseline) = (
        &analysis.groups[0],
        &analysis.arms[arm].name,
        &analysis.arms[0].name,
    );
    let metric = &analysis.settings.metric;
    // Faster is of the TTLB; lower is of a metric with a name.
    let verb = |adjective: &str| {
        if metric.is_ttlb() {
            format!("is {adjective}")
        } else {
            format!("has a {adjective} {}", metric.name)
        }
    };
    let (less, more) = (verb(metric.less()), verb(metric.more()));
    let of = of_metric(analysis);
    let curve = &all.curves[arm];
    let middle = curve
        .get(49)
        .and_then(|cell| cell.estimate.zip(cell.together));
    let middle = middle.map_or_else(String::new, |(value, range)| {
        format!(
            "; {} at P50 (95 % simultaneous: {})",
            percent(value),
            percent_range(range)
        )
    });
    let (faster, slower) = (
        runs(curve, Significance::Faster),
        runs(curve, Significance::Slower),
    );
    if analysis.ratio_fails() {
        let no_verdict = NO_VERDICT.replacen(',', &format!("{of},"), 1);
        return format!("{name}: {no_verdict}{middle}.");
    }
    let cells = curve.get(4..95).unwrap_or_default();
    let count_of = |wanted: fn(&Interval) -> bool| cells.iter().filter(|cell| wanted(cell)).count();
    let lost = count_of(|cell| cell.estimate.is_none());
    let few = count_of(|cell| cell.estimate.is_some() && cell.together.is_none());
    if few > 0 && lost + few == 91 {
        let others = if lost > 0 {
            format!(
                " that has a change; {lost} of the 91 have none: {}",
                without_change(analysis, arm)
            )
        } else {
            String::new()
        };
        return format!(
            "{name}: no verdict{of}, because there are too few connections for an interval at any percentile from P5 to P95{others}."
        );
    }
    if lost == 91 {
        return format!(
            "{name}: no verdict, because no percentile{of} from P5 to P95 has a change from {baseline}: {}.",
            without_change(analysis, arm)
        );
    }
    let mut text = match (&faster, &slower) {
        (None, None) if lost + few > 0 => format!(
            "{name}: no significant difference{of} from {baseline} at the percentiles from P5 to P95 that have {}{middle}.",
            if few > 0 { "an interval" } else { "a change" }
        ),
        (None, None) => {
            return format!(
                "{name}: no significant difference{of} from {baseline} at any percentile from P5 to P95{middle}."
            );
        }
        (Some(faster), None) => format!("{name} {less} than {baseline} at {faster}{middle}."),
        (None, Some(slower)) => format!("{name} {more} than {baseline} at {slower}{middle}."),
        (Some(faster), Some(slower)) => {
            format!(
                "{name} {less} than {baseline} at {faster}, and {} at {slower}{middle}.",
                metric.more()
            )
        }
    };
    let found = count_of(|cell| significance(cell) != Significance::None);
    if faster.or(slower).is_some() && found + lost + few < 91 {
        text.push_str(
            " At the other percentiles from P5 to P95 the difference is not significant.",
        );
    }
    if few > 0 {
        let _ = write!(
            text,
            " {few} of the 91 percentiles have too few connections beyond them for an interval."
        );
    }
    if lost > 0 {
        let _ = write!(
            text,
            " {lost} of the 91 percentiles have no change: {}.",
            without_change(analysis, arm)
        );
    }
    text
}

/// Why percentiles of an arm have no change from the baseline's.
fn without_change(analysis: &Analysis, arm: usize) -> String {
    let times = &analysis.groups[0].times;
    let curve = &analysis.groups[0].curves[arm];
    let is_at_fault = |absent: Absent| {
        let mut cells = curve.iter().take(95).skip(4);
        cells.any(|cell| cell.absent == Some(absent))
    };
    let at_fault = [(arm, Absent::Unfinished), (0, Absent::BaselineUnfinished)];
    let incomplete = at_fault.map(|(arm, absent)| {
        let name = &analysis.arms[arm].name;
        let incomplete = times[arm].unfinished();
        is_at_fault(absent).then(|| {
            format!(
                "{} of {} connections of {name} are incomplete",
                count(incomplete),
                count(times[arm].total())
            )
        })
    });
    let mut reasons: Vec<String> = incomplete.into_iter().flatten().collect();
    let cells = (1..).zip(curve);
    let zero = cells.filter(|(percentile, cell)| {
        (5..=95).contains(percentile) && cell.absent == Some(Absent::BaselineZero)
    });
    if let Some(at) = ranges(zero.map(|(percentile, _)| percentile)) {
        let (metric, baseline) = (&analysis.settings.metric.name, &analysis.arms[0].name);
        reasons.push(format!(
            "{metric} of {baseline} is 0 at {at}, and no change is relative to 0"
        ));
    }
    reasons.join(", ")
}

/// Why there is no change, in a few words. The program of the page has none of its own.
pub(super) fn why_absent(absent: Absent) -> &'static str {
    match absent {
        Absent::NoBaseline => "baseline has none",
        Absent::NoMembers => "none",
        Absent::BaselineUnfinished => "baseline incomplete",
        Absent::BaselineZero => "baseline is 0",
        Absent::Unfinished => "incomplete",
    }
}

/// The interval of a change at a percentile alone, or why there is none.
pub(super) fn range_or_why(cell: &Interval) -> String {
    match (cell.alone, cell.absent) {
        (Some(range), _) => percent_range(range),
        (None, Some(absent)) => why_absent(absent).to_owned(),
        (None, None) => "too few".to_owned(),
    }
}

/// Mean, packet loss and completion, a sentence per arm, in simultaneous intervals: a value moved where its interval excludes
/// zero.
pub(super) fn beside(analysis: &Analysis) -> Vec<String> {
    let mut all = Vec::new();
    let group = &analysis.groups[0];
    for arm in 1..analysis.arms.len() {
        let name = &analysis.arms[arm].name;
        let metric = &analysis.settings.metric;
        let mut parts = Vec::new();
        if let Some(mean) = group.means_together[arm] {
            parts.push(format!(
                "the mean {} {} {} (95 % simultaneous: {})",
                if metric.is_ttlb() {
                    "TTLB of completed transfers"
                } else {
                    &metric.name
                },
                moved(analysis, mean),
                percent(mean.value),
                percent_range(mean.interval)
            ));
        }
        if let Some(loss) = analysis
            .loss
            .first()
            .and_then(|loss| hundredths(loss.together[arm]))
        {
            parts.push(format!(
                "the mean packet loss {} {} (95 % simultaneous: {})",
                moved(analysis, loss),
                points(loss.value),
                points_range(loss.interval)
            ));
        }
        if let Some(success) = success_together(analysis, arm).filter(|_| metric.is_ttlb()) {
            let (low, high) = success.interval;
            parts.push(format!(
                "the share of completed transfers {} {} (95 % simultaneous: {})",
                moved(analysis, success),
                points(success.value * 100.0),
                points_range((low * 100.0, high * 100.0))
            ));
        }
        if !parts.is_empty() {
            let no_verdict = if analysis.ratio_fails() {
                format!("{NO_VERDICT}; ")
            } else {
                String::new()
            };
            all.push(format!("{name}: {no_verdict}{}.", parts.join("; ")));
        }
    }
    all
}

/// The difference of the share of completed transfers, simultaneous with those of mean and packet loss.
pub(super) fn success_together(analysis: &Analysis, arm: usize) -> Option<Estimate> {
    success_difference(
        analysis,
        arm,
        beside_z(analysis.arms.len(), analysis.settings.looks),
    )
}

/// The difference of the share of completed transfers, in an interval of `z` standard deviations.
pub(super) fn success_difference(analysis: &Analysis, arm: usize, z: f64) -> Option<Estimate> {
    let of = |arm: usize| {
        (
            analysis.groups[0].times[arm].finished(),
            analysis.groups[0].times[arm].total(),
        )
    };
    tests_of::share_difference(of(arm), of(0), z)
}

/// How many paths an arm makes slower or faster, a sentence per arm.
pub(super) fn paths(analysis: &Analysis) -> Vec<String> {
    let Some(paths) = &analysis.paths else {
        return Vec::new();
    };
    let metric = &analysis.settings.metric;
    let by = of_metric(analysis).replacen(" of ", ", by ", 1);
    (1..analysis.arms.len())
        .filter_map(|arm| {
            let (slower, faster) = (paths.slower[arm]?, paths.faster[arm]?);
            Some(format!(
                "{}: {} of {} paths are {} by more than 5\u{a0}% (95 % simultaneous: {}); {} are {} by more than 5\u{a0}% \
                 (95 % simultaneous: {}){by}.",
                analysis.arms[arm].name,
                share(slower.value),
                count(paths.counts[arm]),
                metric.more(),
                share_range(slower.interval),
                share(faster.value),
                metric.less(),
                share_range(faster.interval),
            ))
        })
        .collect()
}

/// Which parts of the mean time an arm makes longer or shorter, a sentence per arm.
pub(super) fn parts(analysis: &Analysis) -> Vec<String> {
    let Some(parts) = &analysis.parts else {
        return Vec::new();
    };
    let arms = analysis.arms.iter().zip(&parts.differences).skip(1);
    arms.map(|(arm, differences)| {
        if analysis.ratio_fails() {
            return format!("{}: {NO_VERDICT}.", arm.name);
        }
        let mut changes: Vec<(&str, f64)> = PARTS
            .iter()
            .zip(differences)
            .filter_map(|((_, name), one)| {
                let one = one.filter(Estimate::excludes_zero)?;
                Some((*name, one.value))
            })
            .collect();
        if differences.iter().all(Option::is_none) {
            return format!(
                "{}: no verdict, because there are too few transfers for an interval (expected {MEMBERS_MIN} or more).",
                arm.name
            );
        }
        changes.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        let changes: Vec<String> = changes
            .into_iter()
            .map(|(name, ms)| format!("{}\u{a0}ms {name}", signed(ms, 1)))
            .collect();
        if changes.is_empty() {
            format!("{}: no part differs significantly.", arm.name)
        } else {
            format!("{}: {}.", arm.name, changes.join(", "))
        }
    })
    .collect()
}

/// How many connections detect a change, a sentence per arm.
pub(super) fn power(analysis: &Analysis) -> Vec<String> {
    let Some((power, change)) = analysis.power.as_ref().zip(analysis.settings.power) else {
        return Vec::new();
    };
    let arms = analysis.arms.iter().enumerate().skip(1);
    arms.map(|(arm, one)| {
        let needed = power.needed(arm, change, analysis.settings.looks);
        let number = |value: Option<u64>| value.map_or_else(|| ABSENT.to_owned(), count);
        let both = |paired: Option<u64>, unpaired: Option<u64>| {
            if analysis.is_paired {
                format!("{} paired, {} unpaired", number(paired), number(unpaired))
            } else {
                format!("{} unpaired", number(unpaired))
            }
        };
        format!(
            "{}: connections to detect a change{} of {} with a probability of {:.0}\u{a0}%: median {}; mean {}.",
            one.name,
            of_metric(analysis),
            percent(change),
            POWER * 100.0,
            both(needed.median_paired, needed.median_unpaired),
            both(needed.mean_paired, needed.mean_unpaired),
        )
    })
    .collect()
}

/// What neighbours lose or gain, a sentence per arm.
pub(super) fn harm(analysis: &Analysis) -> Vec<String> {
    let Some(kinds) = &analysis.neighbours else {
        return Vec::new();
    };
    let arms = analysis.arms.iter().enumerate().skip(1);
    arms.map(|(arm, one)| {
        if analysis.ratio_fails() {
            return format!("{}: {NO_VERDICT}.", one.name);
        }
        if kinds.iter().all(|kind| kind.differences[arm].iter().all(Option::is_none)) {
            return format!(
                "{}: no verdict, because there are too few paths for an interval (expected {MEMBERS_MIN} or more).",
                one.name
            );
        }
        let mut parts = Vec::new();
        let mut equal = Vec::new();
        for kind in kinds {
            let [rate, delay, loss] =
                kind.differences[arm].map(|one| one.filter(Estimate::excludes_zero));
            let rate = rate.map(|one| {
                let range = percent_range(one.interval);
                format!("rate {} ({range})", percent(one.value))
            });
            let delay = delay.map(|one| {
                let (low, high) = one.interval;
                format!(
                    "delay {}\u{a0}ms ({} to {})",
                    signed(one.value, 2),
                    signed(low, 2),
                    signed(high, 2)
                )
            });
            let loss = loss.map(|one| {
                let range = points_range(one.interval);
                format!("loss {} ({range})", points(one.value))
            });
            let changed: Vec<String> = [rate, delay, loss].into_iter().flatten().collect();
            if changed.is_empty() {
                equal.push(kind.name.as_str());
            } else {
                parts.push(format!("{}: {}", kind.name, changed.join(", ")));
            }
        }
        if parts.is_empty() {
            return format!("{}: no significant difference for any neighbour.", one.name);
        }
        if !equal.is_empty() {
            parts.push(format!("no significant difference for {}", listed(&equal)));
        }
        format!("{}: {} (95 % simultaneous).", one.name, parts.join("; "))
    })
    .collect()
}

/// A significant difference that a list of the page states.
pub(super) struct Claim<'a> {
    pub(super) list: &'static str,
    pub(super) arm: &'a str,
    /// What differs: a percentile, a value or a subgroup.
    pub(super) what: String,
    pub(super) is_less: bool,
}

/// Which percentiles a mean of changes covers: `mean of P5–P95`.
pub(super) fn overall_name(overall: &Overall) -> String {
    format!("mean of P5–P{:.0}", overall.to * 100.0)
}

/// All significant differences that the page states.
pub(super) fn claims(analysis: &Analysis) -> Vec<Claim<'_>> {
    let mut all = Vec::new();
    if analysis.ratio_fails() {
        return all;
    }
    for (arm, one) in analysis.arms.iter().enumerate().skip(1) {
        let mut add = |list, what: String, is_less| {
            all.push(Claim {
                list,
                arm: &one.name,
                what,
                is_less,
            });
        };
        for (wanted, is_less) in [(Significance::Faster, true), (Significance::Slower, false)] {
            if let Some(at) = runs(&analysis.groups[0].curves[arm], wanted) {
                add("percentiles", at, is_less);
            }
        }
        if let Some(one) = &analysis.groups[0].overall[arm]
            && one.estimate.excludes_zero()
        {
            add("overall", overall_name(one), one.estimate.value < 0.0);
        }
        let loss = analysis.loss.first().and_then(|loss| loss.together[arm]);
        for (what, value) in [
            ("mean", analysis.groups[0].means_together[arm]),
            ("mean packet loss", loss),
            ("completed transfers", success_together(analysis, arm)),
        ] {
            if let Some(value) = value.filter(Estimate::excludes_zero) {
                add("beside", what.to_owned(), value.value < 0.0);
            }
        }
        for kind in analysis.neighbours.iter().flatten() {
            let values = ["rate", "delay", "loss"]
                .into_iter()
                .zip(kind.differences[arm]);
            for (value, difference) in values {
                if let Some(one) = difference.filter(Estimate::excludes_zero) {
                    add("harm", format!("{value} of {}", kind.name), one.value < 0.0);
                }
            }
        }
        let parts = analysis
            .parts
            .iter()
            .flat_map(|parts| parts.differences[arm]);
        for ((_, name), difference) in PARTS.iter().zip(parts) {
            if let Some(one) = difference.filter(Estimate::excludes_zero) {
                add("parts", (*name).to_owned(), one.value < 0.0);
            }
        }
        for group in analysis.groups.iter().skip(1) {
            if let Some(rank) = group.ranks[arm].filter(|_| group.differs(arm)) {
                add("subgroups", group.title.clone(), rank.share_less > 0.5);
            }
        }
    }
    all
}

fn moved(analysis: &Analysis, estimate: Estimate) -> &'static str {
    match estimate.interval {
        _ if analysis.ratio_fails() => "has a difference of",
        (_, high) if high < 0.0 => "fell:",
        (low, _) if low > 0.0 => "rose:",
        _ => "does not differ significantly:",
    }
}

/// The results of the tests by size and site.
pub(super) fn subgroups(analysis: &Analysis) -> Vec<String> {
    let groups: Vec<&Group> = analysis.groups.iter().skip(1).collect();
    let tests = groups
        .iter()
        .flat_map(|group| &group.adjusted)
        .flatten()
        .count();
    if tests == 0 {
        return Vec::new();
    }
    if analysis.ratio_fails() {
        return vec![format!(
            "By {}: {NO_VERDICT}.",
            dimensions(analysis).join(" and ")
        )];
    }
    let arms = 1..analysis.arms.len();
    let significant: usize = groups
        .iter()
        .map(|group| arms.clone().filter(|arm| group.differs(*arm)).count())
        .sum();
    let mut all = vec![format!(
        "Of {tests} comparison{}{} by {} (arms × subgroups), {} significant after Holm’s correction ({} for the whole list). \
         Without the correction, about {:.1} would be significant by chance alone.",
        if tests == 1 { "" } else { "s" },
        of_metric(analysis),
        match dimensions(analysis) {
            ["object size", "site"] => "size and site".to_owned(),
            both => both.join(" and "),
        },
        match significant {
            0 => "none is".to_owned(),
            1 => "one is".to_owned(),
            many => format!("{many} are"),
        },
        share(0.05 / f64::from(analysis.settings.looks.max(1))),
        (tests as f64) * 0.05
    )];
    for arm in 1..analysis.arms.len() {
        let name = &analysis.arms[arm].name;
        let of = |wanted: fn(f64) -> bool, is_significant: bool| -> Vec<&str> {
            let chosen = groups.iter().filter(|group| {
                let Some(rank) = group.ranks[arm] else {
                    return false;
                };
                group.differs(arm) == is_significant && (!is_significant || wanted(rank.share_less))
            });
            chosen.map(|group| group.title.as_str()).collect()
        };
        let (faster, slower) = (of(|share| share > 0.5, true), of(|share| share < 0.5, true));
        let rest = of(|_| true, false);
        let mut parts = Vec::new();
        let metric = &analysis.settings.metric;
        for (chosen, what) in [(faster, metric.less()), (slower, metric.more())] {
            if chosen.len() == groups.len() {
                parts.push(format!("{what} in all of them"));
            } else if !chosen.is_empty() {
                parts.push(format!("{what} in {}", listed(&chosen)));
            }
        }
        if rest.len() == groups.len() {
            parts.push("no significant difference in any of them".to_owned());
        } else if !rest.is_empty() {
            parts.push(format!("no significant difference in {}", listed(&rest)));
        }
        all.push(format!("{name}: {}.", parts.join("; ")));
    }
    let small: Vec<&str> = groups
        .iter()
        .filter(|group| (1..analysis.arms.len()).any(|arm| group.is_small(arm)))
        .map(|group| group.title.as_str())
        .collect();
    if !small.is_empty() {
        all.push(format!(
            "Small subgroups (fewer than {SMALL} connections in an arm): {}. They have too few connections to show small differences.",
            listed(&small)
        ));
    }
    all
}

/// The share of the mean that the largest values have, of each arm in which it is above a limit: `29.6 % of slow-start`.
fn largest_above(analysis: &Analysis, limit: f64) -> Option<String> {
    let arms = analysis.arms.iter().zip(&analysis.groups[0].times);
    let shares = arms.filter_map(|(arm, times)| {
        let of_mean = times.share_of_largest(LARGEST)?;
        (of_mean > limit).then(|| format!("{} of {}", share(of_mean), arm.name))
    });
    let shares: Vec<String> = shares.collect();
    let shares: Vec<&str> = shares.iter().map(String::as_str).collect();
    (!shares.is_empty()).then(|| listed(&shares))
}

/// The share of each arm's mean that its largest values have.
pub(super) fn largest(analysis: &Analysis) -> Option<String> {
    let shares = largest_above(analysis, 0.0)?;
    Some(format!(
        "Share of the mean{} that the {LARGEST} largest values have: {shares}.",
        of_metric(analysis)
    ))
}

/// That a few values are much of the mean, if they are.
pub(super) fn large_values(analysis: &Analysis) -> Option<String> {
    let finished = analysis.groups[0].times.iter().map(Counts::finished);
    let is_large_enough = finished.min() >= Some(LARGEST_OF);
    let shares = largest_above(analysis, LARGEST_ALARM).filter(|_| is_large_enough)?;
    Some(format!(
        "The {LARGEST} largest values are much of the mean{}: {shares}. The mean depends on them, the percentiles do not.",
        of_metric(analysis)
    ))
}
