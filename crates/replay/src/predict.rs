//! Predictions, and the checks that precede them.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    bank::Bank,
    kernel::Effort,
    line::{Column, Line, Selection},
    model::{Matched, Matches, Model, Target},
    random::Random,
    statistics::{
        self, COUNT, Estimate, FIRST, LOSS, MEAN, SHARES, SLOWER, Statistics, Transfer, change,
        estimates, levels,
    },
};

/// The probability that an interval of a prediction contains the true value.
pub const LEVEL: f64 = 0.9;
/// The same of a check: one check in a hundred fails by chance.
const CHECK_LEVEL: f64 = 0.99;
/// The error of a check's mean that is large: a check fails beyond it, and holds only if its interval excludes it.
const MEAN_MARGIN: f64 = 0.05;
/// The same of a loss, as a share of packets.
const LOSS_MARGIN: f64 = 0.01;
/// Fewer lines than this are not predicted.
pub const LINES_MIN: usize = 100;
/// The share of lines without support beyond which nothing is predicted.
const UNSUPPORTED_MAX: f64 = 0.2;
/// Fewer lines than this are no group of their own.
const GROUP_MIN: usize = 50;
/// Groups of sites at most.
const SITES_MAX: usize = 16;
/// The p of the balance of arms over sites below which a check of two arms says nothing.
const BALANCE_P: f64 = 0.001;

/// A line of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// The name of its arm.
    pub arm: String,
    /// The site.
    pub site: Option<String>,
    /// The numbers.
    pub line: Line,
}

/// The kind of a group of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// All lines.
    All,
    /// Lines of similar size.
    Size,
    /// Lines of a site.
    Site,
}

/// What is predicted of a group of lines.
#[derive(Clone, Debug)]
pub struct Group {
    /// The kind.
    pub kind: GroupKind,
    /// The name.
    pub title: String,
    /// The number of matched lines.
    pub lines: usize,
    /// Change of the geometric mean of TTLB: −0.1 is 10 % less.
    pub mean: Estimate,
    /// Difference of the mean packet loss, as a share of packets: 0.01 is one percentage point more.
    pub loss: Estimate,
    /// The share of lines made slower by more than 5 %.
    pub slower: Estimate,
    /// Changes of percentiles of TTLB: the percentile as a share, and its change.
    pub percentiles: Vec<(f64, Estimate)>,
}

/// What another arm would have done to the lines of an arm.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The arm whose lines are predicted.
    pub from: String,
    /// The arm that they are predicted under.
    pub to: String,
    /// All lines, then sizes, then sites.
    pub groups: Vec<Group>,
    /// Lines that lack a feature.
    pub incomplete: usize,
    /// Lines that no path of the bank resembles, as indices of the lines of the arm.
    pub unsupported: Vec<usize>,
    /// The change of the geometric mean over the whole bank, without a match.
    pub unmatched_mean: f64,
    /// The difference of the mean packet loss over the whole bank.
    pub unmatched_loss: f64,
    /// The change of the geometric mean if each line is the nearest path, and no other.
    pub nearest_mean: f64,
    /// The difference of the mean packet loss in that case.
    pub nearest_loss: f64,
    /// The standard deviation of the error of the mean change, as a logarithm, over populations that the match has not seen.
    pub error: f64,
    /// The weight of each path of the bank, with the sum 1.
    pub weights: Vec<f64>,
    /// For each matched line, its index among the lines of the arm, and a draw of its TTLB in ms and loss under the new arm.
    pub draws: Vec<(usize, f64, f64)>,
}

/// What a check predicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// The lines of an arm of the log, from those of another one.
    Arm {
        /// The arm whose lines are used.
        from: String,
        /// The arm that is predicted.
        to: String,
    },
    /// The TTLB of the lines of an arm, without using it.
    Own {
        /// The arm.
        arm: String,
    },
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Chance and the errors of the match explain the error, and the interval excludes a large one.
    Holds,
    /// The interval contains 0 and a large error: the check excludes neither.
    Unclear,
    /// An error that they do not explain, but a small one: up to 5 % of the mean, or one percentage point of loss. A real server adds
    /// milliseconds of its own to transfers over fast paths.
    Doubtful,
    /// A large error that they do not explain.
    Fails,
}

/// A prediction of what the log has, beside it.
#[derive(Clone, Debug)]
pub struct Check {
    /// What is predicted.
    pub kind: CheckKind,
    /// The number of predicted lines.
    pub lines: usize,
    /// The predicted geometric mean of TTLB in ms.
    pub predicted_ms: f64,
    /// The true one.
    pub true_ms: f64,
    /// The error of the mean: 0.02 is predicted 2 % too slow. The interval has a level of 99 %.
    pub mean: Estimate,
    /// The error of the packet loss, as a share of packets; absent if the check does not predict it.
    pub loss: Option<Estimate>,
    /// The errors of the percentiles.
    pub percentiles: Vec<(f64, Estimate)>,
}

impl Check {
    /// The result.
    pub fn outcome(&self) -> Outcome {
        let of = |error: &Estimate, margin: f64| match error {
            error if error.contains(0.0) && error.low >= -margin && error.high <= margin => {
                Outcome::Holds
            }
            error if error.contains(0.0) => Outcome::Unclear,
            error if error.value.abs() <= margin => Outcome::Doubtful,
            _ => Outcome::Fails,
        };
        let loss = self.loss.as_ref();
        let loss = loss.map_or(Outcome::Holds, |loss| of(loss, LOSS_MARGIN));
        of(&self.mean, MEAN_MARGIN).max(loss)
    }

    /// The mean error of the percentiles, without signs.
    pub fn curve(&self) -> f64 {
        let errors = self.percentiles.iter().map(|(_, error)| error.value.abs());
        errors.sum::<f64>() / self.percentiles.len().max(1) as f64
    }
}

/// Why nothing is predicted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The arm has fewer than [`LINES_MIN`] lines.
    #[error("the arm `{arm}` has {lines} usable lines (expected {LINES_MIN} or more)")]
    TooFew {
        /// The arm.
        arm: String,
        /// The lines.
        lines: usize,
    },
    /// The bank has not both arms, or hardly a path that completed under both.
    #[error("hardly a path of the bank completes under `{arm}` (expected 100 or more)")]
    NoBank {
        /// The arm that lacks.
        arm: String,
    },
    /// Lines lack the columns without which none is matched.
    #[error("lines lack `{}` (expected lines with statistics of the connection)", .missing.join("`, `"))]
    NoColumns {
        /// The keys.
        missing: Vec<&'static str>,
    },
    /// Too many lines resemble no path of the bank.
    #[error(
        "{unsupported} of {lines} lines of `{arm}` resemble no simulated path (expected at most {:.0} %): they are of another stack, of clients \
         that are not browsers, or of networks outside of the prior",
        UNSUPPORTED_MAX * 100.0
    )]
    NoSupport {
        /// The arm.
        arm: String,
        /// The lines without support.
        unsupported: usize,
        /// All lines.
        lines: usize,
    },
}

/// Size, minimum round-trip time, time and loss: without them, nothing is matched.
const NEEDED: [Column; 5] = [
    Column::Size,
    Column::RttMinimum,
    Column::Ttlb,
    Column::Sent,
    Column::Lost,
];

/// The features that these lines have.
pub(crate) fn selection_of(lines: &[&Line]) -> Result<Selection, Refusal> {
    let selection = Selection::of(lines);
    let needed = NEEDED.map(|column| crate::line::KEYS[column as usize]);
    let mut missing = selection.missing.clone();
    missing.retain(|key| needed.contains(key));
    if missing.is_empty() {
        Ok(selection)
    } else {
        Err(Refusal::NoColumns { missing })
    }
}

struct Match<'a> {
    lines: Vec<&'a LogLine>,
    model: Model,
    matches: Matches,
}

fn match_arm<'a>(
    bank: &Bank,
    log: &'a [LogLine],
    from: &str,
    target: &Target<'_>,
    effort: Effort,
    seed: u64,
) -> Result<Match<'a>, Refusal> {
    let lines: Vec<&LogLine> = log.iter().filter(|line| line.arm == from).collect();
    if lines.len() < LINES_MIN {
        return Err(Refusal::TooFew {
            arm: from.to_owned(),
            lines: lines.len(),
        });
    }
    let numbers: Vec<&Line> = lines.iter().map(|line| &line.line).collect();
    let mut selection = selection_of(&numbers)?;
    if *target == Target::Own {
        selection = selection.without_ttlb();
    }
    let model = Model::train(bank, from, target, &selection, effort, seed);
    let model = model.ok_or_else(|| {
        let arm = match target {
            Target::Arm(to) => (*to).to_owned(),
            Target::Own => from.to_owned(),
        };
        Refusal::NoBank { arm }
    })?;
    let matches = model.match_lines(&numbers, target);
    let unsupported = matches.unsupported.len();
    if unsupported as f64 > UNSUPPORTED_MAX * lines.len() as f64 {
        return Err(Refusal::NoSupport {
            arm: from.to_owned(),
            unsupported,
            lines: lines.len(),
        });
    }
    if matches.lines.len() < LINES_MIN {
        return Err(Refusal::TooFew {
            arm: from.to_owned(),
            lines: matches.lines.len(),
        });
    }
    Ok(Match {
        lines,
        model,
        matches,
    })
}

/// Predicts the lines of arm `from` under arm `to`. The bank must have both arms under these names.
///
/// # Errors
///
/// Returns a [`Refusal`] if the lines are too few, lack columns, or do not resemble the bank.
pub fn predict(
    bank: &Bank,
    log: &[LogLine],
    from: &str,
    to: &str,
    effort: Effort,
    seed: u64,
) -> Result<Prediction, Refusal> {
    let found = match_arm(bank, log, from, &Target::Arm(to), effort, seed)?;
    let Match {
        lines,
        model,
        matches,
    } = &found;
    let mut random = Random::new(seed, 5);
    let all: Vec<&Matched> = matches.lines.iter().collect();
    let mut groups = vec![group(
        GroupKind::All,
        "all",
        &all,
        &model.errors,
        &mut random,
    )];
    for (kind, title, members) in groups_of(lines, &all) {
        groups.push(group(kind, &title, &members, &model.errors, &mut random));
    }
    let nearest =
        [0, 1].map(|at| all.iter().map(|line| line.nearest[at]).sum::<f64>() / all.len() as f64);
    let mut weights = vec![0.0; bank.paths().len()];
    for (path, weight) in all.iter().flat_map(|line| &line.paths) {
        weights[*path as usize] += weight / all.len() as f64;
    }
    let draws = all.iter().map(|line| {
        let draw = line.draws[random.below(line.draws.len())];
        (line.line, libm::exp(draw.log_ttlb), draw.loss)
    });
    Ok(Prediction {
        from: from.to_owned(),
        to: to.to_owned(),
        draws: draws.collect(),
        groups,
        incomplete: matches.incomplete,
        unsupported: matches.unsupported.clone(),
        unmatched_mean: libm::expm1(model.unmatched[MEAN]),
        unmatched_loss: model.unmatched[LOSS],
        nearest_mean: libm::expm1(nearest[0]),
        nearest_loss: nearest[1],
        error: model.errors[MEAN],
        weights,
    })
}

/// The bounds of the groups of sizes, in bytes, and their names.
const SIZES: [(f64, f64, &str); 6] = [
    (0.0, 2e5, "below 200 kB"),
    (2e5, 4e5, "200–400 kB"),
    (4e5, 8e5, "400–800 kB"),
    (8e5, 1.6e6, "0.8–1.6 MB"),
    (1.6e6, 3.2e6, "1.6–3.2 MB"),
    (3.2e6, f64::INFINITY, "3.2 MB and more"),
];

fn groups_of<'a>(
    lines: &[&LogLine],
    all: &[&'a Matched],
) -> Vec<(GroupKind, String, Vec<&'a Matched>)> {
    let mut groups = Vec::new();
    for (from, to, title) in SIZES {
        let has = |one: &&&Matched| {
            let size = lines[one.line].line.get(Column::Size).unwrap_or(f64::NAN);
            (from..to).contains(&size)
        };
        groups.push((
            GroupKind::Size,
            title.to_owned(),
            all.iter().filter(has).copied().collect(),
        ));
    }
    let sites: BTreeSet<&str> = all
        .iter()
        .filter_map(|one| lines[one.line].site.as_deref())
        .collect();
    for site in sites.into_iter().take(SITES_MAX) {
        let has = |one: &&&Matched| lines[one.line].site.as_deref() == Some(site);
        groups.push((
            GroupKind::Site,
            site.to_owned(),
            all.iter().filter(has).copied().collect(),
        ));
    }
    groups.retain(|(_, _, members): &(_, _, Vec<&Matched>)| {
        members.len() >= GROUP_MIN && members.len() < all.len()
    });
    groups
}

fn group(
    kind: GroupKind,
    title: &str,
    lines: &[&Matched],
    errors: &Statistics,
    random: &mut Random,
) -> Group {
    let point = change(
        lines
            .iter()
            .flat_map(|line| line.draws.iter().map(|draw| (line.own, *draw))),
    );
    let all = estimates(&point, errors, LEVEL, random, |random| {
        let chosen: Vec<(Transfer, Transfer)> = lines
            .iter()
            .map(|_| {
                let line = lines[random.below(lines.len())];
                (line.own, line.draws[random.below(line.draws.len())])
            })
            .collect();
        change(chosen.iter().copied())
    });
    let slower = all[SLOWER];
    Group {
        kind,
        title: title.to_owned(),
        lines: lines.len(),
        mean: all[MEAN].exponentiated(),
        loss: all[LOSS],
        slower: Estimate {
            low: slower.low.max(0.0),
            high: slower.high.min(1.0),
            ..slower
        },
        percentiles: percentiles(&all),
    }
}

fn percentiles(all: &[Estimate; COUNT]) -> Vec<(f64, Estimate)> {
    let of = |(share, estimate): (f64, &Estimate)| (share, estimate.exponentiated());
    SHARES.into_iter().zip(&all[FIRST..]).map(of).collect()
}

/// Predicts what the log has: an arm from another one, or the times of an arm without using them.
///
/// # Errors
///
/// As [`predict`].
pub fn check(
    bank: &Bank,
    log: &[LogLine],
    kind: &CheckKind,
    effort: Effort,
    seed: u64,
) -> Result<Check, Refusal> {
    let (from, target) = match kind {
        CheckKind::Arm { from, to } => (from, Target::Arm(to)),
        CheckKind::Own { arm } => (arm, Target::Own),
    };
    let Match {
        lines,
        model,
        matches,
    } = match_arm(bank, log, from, &target, effort, seed)?;
    let all = &matches.lines;
    let truth_of = |line: &Line| {
        Some(Transfer {
            log_ttlb: line.log_ttlb()?,
            loss: line.loss()?,
        })
    };
    let mut random = Random::new(seed, 6);
    let predicted = levels(all.iter().flat_map(|line| line.draws.iter().copied()));
    let mut chosen = Vec::with_capacity(all.len());
    let truths: Vec<Transfer> = match &target {
        Target::Own => all
            .iter()
            .filter_map(|line| truth_of(&lines[line.line].line))
            .collect(),
        Target::Arm(to) => {
            let of_arm = log.iter().filter(|line| line.arm == *to);
            let truths: Vec<Transfer> = of_arm.filter_map(|line| truth_of(&line.line)).collect();
            if truths.len() < LINES_MIN {
                return Err(Refusal::TooFew {
                    arm: (*to).to_owned(),
                    lines: truths.len(),
                });
            }
            truths
        }
    };
    let truth = levels(truths.iter().copied());
    let point = minus(&predicted, &truth);
    let errors = estimates(&point, &model.errors, CHECK_LEVEL, &mut random, |random| {
        chosen.clear();
        chosen.extend((0..all.len()).map(|_| random.below(all.len())));
        let new = levels(chosen.iter().map(|one| {
            let draws = &all[*one].draws;
            draws[random.below(draws.len())]
        }));
        // The lines of another arm are drawn apart, the times of the same arm with their predictions.
        if matches!(target, Target::Arm(_)) {
            chosen.clear();
            chosen.extend(truths.iter().map(|_| random.below(truths.len())));
        }
        let truths = chosen.iter().filter_map(|one| truths.get(*one).copied());
        minus(&new, &levels(truths))
    });
    Ok(Check {
        kind: kind.clone(),
        lines: all.len(),
        predicted_ms: libm::exp(predicted[MEAN]),
        true_ms: libm::exp(truth[MEAN]),
        mean: errors[MEAN].exponentiated(),
        loss: matches!(target, Target::Arm(_)).then_some(errors[LOSS]),
        percentiles: percentiles(&errors),
    })
}

fn minus(first: &Statistics, second: &Statistics) -> Statistics {
    let mut difference = [0.0; COUNT];
    for ((difference, first), second) in difference.iter_mut().zip(first).zip(second) {
        *difference = first - second;
    }
    difference
}

/// The p of a chi-squared test of whether the arms of a log have their connections at the same sites, if it is so small that a check of
/// one arm by another compares different connections.
pub fn imbalance(log: &[LogLine]) -> Option<f64> {
    let mut cells: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    let mut arms: BTreeMap<&str, f64> = BTreeMap::new();
    let mut sites: BTreeMap<&str, f64> = BTreeMap::new();
    for line in log {
        let (arm, site) = (line.arm.as_str(), line.site.as_deref().unwrap_or_default());
        *cells.entry((arm, site)).or_default() += 1.0;
        *arms.entry(arm).or_default() += 1.0;
        *sites.entry(site).or_default() += 1.0;
    }
    let total = log.len() as f64;
    // Rare sites say nothing.
    sites.retain(|_, count| arms.values().all(|arm| *count * arm / total >= 5.0));
    let freedom = ((arms.len().max(1) - 1) * (sites.len().max(1) - 1)) as f64;
    if freedom < 1.0 {
        return None;
    }
    let mut statistic = 0.0;
    for (arm, of_arm) in &arms {
        for (site, of_site) in &sites {
            let expected = of_arm * of_site / total;
            let difference = cells.get(&(*arm, *site)).copied().unwrap_or(0.0) - expected;
            statistic += difference * difference / expected;
        }
    }
    let p = statistics::chi_squared_above(statistic, freedom);
    (p < BALANCE_P).then_some(p)
}

#[cfg(test)]
mod tests;
