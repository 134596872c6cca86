//! What is wrong with the data, and what is to be known about them, in sentences.

use super::{
    analysis::{Analysis, SMALL},
    balance::{ALARM, BalanceTest, By, LOOK, Stratified},
    format::{count, counted, p_value, percent, percent_range},
    gather::{OTHER_SITES, SITES_MAX},
    queries::{Dialect, Subgroup},
    text::{large_values, listed, of_metric, success_together},
};
use crate::statistics::Counts;

/// The name of the experiment in lines that `lastbyte replay --log` writes.
pub const PREDICTIONS: &str = "predictions of replay";

/// A warning about arms that were not assigned at random.
pub const UNASSIGNED: &str = "Connections were not assigned to arms at random (--shares none): a difference may come from which connections an arm has. \
                              Their numbers were not checked.";

/// What needs action before the results are used.
pub(super) fn warnings(analysis: &Analysis) -> Vec<String> {
    let mut all = Vec::new();
    if analysis.experiment.as_deref() == Some(PREDICTIONS) {
        all.push(
            "The lines are predictions of `lastbyte replay`, and not measurements: intervals are of the drawn lines alone. The page of \
             `replay` has those of the prediction."
                .to_owned(),
        );
    }
    if let Some(trouble) = &analysis.trouble {
        all.push(format!(
            "The log could not be read to its end; this report covers the part that was read. {trouble}"
        ));
    }
    if let Some(copies) = &analysis.copies {
        let sentence = copies.sentence();
        let (first, rest) = sentence.split_at(1);
        all.push(format!(
            "{}{rest}. Their connections count twice, which makes intervals too narrow.",
            first.to_uppercase()
        ));
    }
    if analysis.settings.shares.is_none() && !analysis.is_paired {
        all.push(UNASSIGNED.to_owned());
    }
    for test in &analysis.balance {
        all.extend(imbalance(analysis, test));
    }
    for (arm, one) in analysis.arms.iter().zip(&analysis.stratified) {
        if let Some(one) = one.filter(Stratified::disagree) {
            all.push(format!(
                "{}: the pooled overall change{}, {} ({}), and that stratified by site, {} ({}), disagree: arms have other shares of the \
                 completed connections at each site, so pooled results compare sites as well as arms.",
                arm.name,
                of_metric(analysis),
                percent(one.pooled.value),
                percent_range(one.pooled.interval),
                percent(one.by_site.value),
                percent_range(one.by_site.interval),
            ));
        }
    }
    if let Some(why) = &analysis.unpaired {
        all.push(format!(
            "Connections with the same seed are in several arms, but they are not compared as pairs, because {why}. All are compared as \
             if each had been assigned to its arm by itself."
        ));
    }
    // The log may end within the last path.
    if analysis.incomplete_paths > 1 {
        all.push(format!(
            "{} of {} paths lack an arm. Lines were left out of the log, or selected by a value that depends on the arm.",
            count(analysis.incomplete_paths as u64),
            count(analysis.pairs as u64)
        ));
    }
    if analysis.contradictions > 0 {
        all.push(format!(
            "On {} with `\"complete\":false` there is a `ttlb`, which is not that of a whole transfer: they count as incomplete.",
            counted(analysis.contradictions, "line", "lines")
        ));
    }
    if analysis.impossible_losses > 0 {
        all.push(format!(
            "On {}, more packets are lost than sent, or fewer than none: that packet loss is left out.",
            counted(analysis.impossible_losses, "line", "lines")
        ));
    }
    for empty in analysis.left_out.empty_arms() {
        let sentence = empty.sentence();
        all.push(format!("A{}.", &sentence[1..]));
    }
    for arm in 1..analysis.arms.len() {
        if let Some(success) = success_together(analysis, arm)
            && success.excludes_zero()
        {
            all.push(format!(
                "{} and {} differ in the share of completed transfers. Their means cover completed transfers only, so they are not of comparable \
                 connections.",
                analysis.arms[arm].name, analysis.arms[0].name
            ));
        }
    }
    all.extend(large_values(analysis));
    all
}

/// A test of the numbers of connections, if it needs action.
fn imbalance(analysis: &Analysis, test: &BalanceTest) -> Option<String> {
    if test.adjusted >= LOOK {
        return None;
    }
    let cell = &test.farthest;
    let arm = &analysis.arms[cell.arm].name;
    let p = p_value(test.adjusted);
    let what = match test.by {
        By::Total => format!(
            "The numbers of connections do not match the shares of the arms (p {p}): {arm} has {} of {} (expected {:.0})",
            count(cell.count),
            count(cell.total),
            cell.expected
        ),
        By::Path => format!(
            "The arms are not missing equally often on paths that lack one (p {p}): {arm} is missing on {} of {} paths (expected {:.0})",
            count(cell.count),
            count(analysis.pairs as u64),
            cell.expected
        ),
        by => format!(
            "By {}, the shares of the arms differ more than by chance (p {p}): at {}, {arm} has {} of {} connections (expected {:.0})",
            by.name(),
            cell.stratum,
            count(cell.count),
            count(cell.total),
            cell.expected
        ),
    };
    let shares = if test.by == By::Total && analysis.settings.shares == Some(Vec::new()) {
        " Equal shares are assumed; --shares sets others."
    } else {
        ""
    };
    Some(if test.adjusted < ALARM {
        format!(
            "{what}. Connections were assigned to arms, lost from the log, or left out of this report (--where, --metric, rules for production \
             logs), in a way that depends on the arm. Find the cause before you trust this report.{shares}"
        )
    } else {
        format!(
            "{what}. That is rare by chance: look at how connections are assigned and logged.{shares}"
        )
    })
}

/// How many connections are of sites that are counted together.
fn other_sites(analysis: &Analysis) -> Option<String> {
    let mut groups = analysis.groups.iter();
    let others = groups.find(|group| group.title == OTHER_SITES)?;
    let total: u64 = others.times.iter().map(Counts::total).sum();
    let what = match &analysis.settings.by {
        Some(by) if analysis.settings.bins.is_none() => format!("values of `{by}`"),
        _ => "sites".to_owned(),
    };
    Some(format!(
        "The log has more than {SITES_MAX} {what}; the {} connections of those that came after are counted together, as {OTHER_SITES}.",
        count(total)
    ))
}

/// What a reader of the results has to know.
pub(super) fn notes(analysis: &Analysis) -> Vec<String> {
    let mut all = Vec::new();
    let arms = analysis.arms.iter().zip(&analysis.groups[0].times);
    let small = arms.filter(|(_, times)| times.total() < SMALL);
    let small: Vec<&str> = small.map(|(arm, _)| arm.name.as_str()).collect();
    if !small.is_empty() {
        let each = if small.len() > 1 { "each of " } else { "" };
        all.push(format!(
            "Fewer than {SMALL} connections are of {each}{}: too few to show small differences.",
            listed(&small)
        ));
    }
    if analysis.is_paired && analysis.settings.shares != Some(Vec::new()) {
        all.push(
            "--shares has no effect: connections are paired, and each path is in every arm."
                .to_owned(),
        );
    }
    if analysis.without_arm > 0 {
        all.push(format!(
            "{} left out.",
            counted(
                analysis.without_arm,
                "line has no arm and is",
                "lines have no arm and are"
            )
        ));
    }
    if !analysis.without_value.is_empty() {
        let metric = &analysis.settings.metric.name;
        let by_arm = analysis.without_value.iter();
        let by_arm: Vec<String> = by_arm
            .map(|(arm, lines)| format!("{} of {arm}", count(*lines)))
            .collect();
        all.push(format!(
            "{} left out: {}.",
            counted(
                analysis.without_value.values().sum(),
                &format!("connection has no value of `{metric}` and is"),
                &format!("connections have no value of `{metric}` and are"),
            ),
            by_arm.join(", ")
        ));
    }
    let rules = analysis.left_out.rules();
    if !rules.is_empty() {
        let (lines, left_out) = analysis.left_out.lines();
        all.push(format!(
            "{} of {} left out by the rules for production logs; a line can be under several of them.",
            count(left_out),
            counted(lines, "line is", "lines are")
        ));
    }
    for (why, lines) in rules {
        all.push(format!(
            "{} left out because {why}.",
            counted(lines, "line is", "lines are")
        ));
    }
    if analysis.dialect == Dialect::H2o {
        all.push(
            "H2O logs a connection when its first response is fully acknowledged. Failed transfers are not in its log and cannot be counted: \
             if an arm makes transfers fail, this page does not show it."
                .to_owned(),
        );
    }
    for test in analysis.balance.iter().filter(|test| test.left_out > 0) {
        let by = test.by.name();
        all.push(format!(
            "{} left out of the test of the arms’ shares by it.",
            counted(
                test.left_out,
                &format!("connection has no {by} and is"),
                &format!("connections have no {by} and are"),
            )
        ));
    }
    all.extend(other_sites(analysis));
    if analysis.outside_bins > 0
        && analysis.settings.bins.is_none()
        && analysis
            .groups
            .iter()
            .any(|group| matches!(group.subgroup, Subgroup::Bin(_)))
    {
        all.push(format!(
            "{} outside 200 kB to 3.2 MB, or of unknown size: all charts except those by size have them.",
            counted(analysis.outside_bins, "connection has an object", "connections have objects")
        ));
    }
    all
}
