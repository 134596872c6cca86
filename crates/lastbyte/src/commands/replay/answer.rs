//! The answer as text, JSON and page.

use core::fmt::Write as _;

use lastbyte_replay::{
    Check, CheckKind, Estimate, GroupKind, LEVEL, LogLine, Outcome, Prediction, imbalance,
};
use lastbyte_report::replay::{Curve, Page, Section, Tile};
use lastbyte_units as units;
use serde_json::{Value, json};

use super::log::Log;
use crate::terminal::counted;

/// The number of curves that a chart has colours for.
const CURVES_MAX: usize = 4;

/// What the prediction is, and is not.
const WHAT: &str = "A prediction for these connections as logged: the same sizes, paths and hours, with no change of demand, and no effect of the \
                    connections on each other beyond the simulated path.";

/// What is shown beside the answer.
pub(super) struct Shown {
    pub(super) title: String,
    pub(super) command: String,
    pub(super) facts: Vec<(String, String)>,
}

/// The answer.
pub(super) struct Answer {
    baseline: String,
    pub(super) reasons: Vec<String>,
    warnings: Vec<String>,
    missing: Vec<&'static str>,
    checks: Vec<Check>,
    pub(super) predictions: Vec<Prediction>,
    lines: usize,
    usable: u64,
    incomplete: u64,
}

/// The share of lines without support that is worth a warning.
const UNSUPPORTED: f64 = 0.05;

impl Answer {
    pub(super) fn new(log: &Log, baseline: &str) -> Self {
        let lines: Vec<&LogLine> = log
            .lines
            .iter()
            .filter(|line| line.arm == baseline)
            .collect();
        let numbers: Vec<_> = lines.iter().map(|line| &line.line).collect();
        let mut answer = Self {
            baseline: baseline.to_owned(),
            reasons: Vec::new(),
            warnings: Vec::new(),
            missing: lastbyte_replay::Selection::of(&numbers).missing,
            checks: Vec::new(),
            predictions: Vec::new(),
            lines: lines.len(),
            usable: log.usable.get(baseline).copied().unwrap_or(0),
            incomplete: log.incomplete,
        };
        if log.usable.len() > 1
            && let Some(p) = imbalance(&log.lines)
        {
            answer.reasons.push(format!(
                "the arms of the log have their connections at different sites (chi-squared, p = {p:.1e}; expected arms assigned at random): \
                 the check of one arm by another would compare different connections"
            ));
        }
        if !answer.missing.is_empty() {
            answer.warnings.push(format!(
                "the lines have no `{}`: features of them are not used, and the errors of the match are larger for that",
                answer.missing.join("`, `")
            ));
        }
        if log.incomplete > 0 {
            answer.warnings.push(format!(
                "left out: {} of incomplete transfers: whether another algorithm would have completed them is not predicted",
                counted(log.incomplete, "line")
            ));
        }
        if log.copies > 0.0 {
            answer.warnings.push(format!(
                "about {:.1} % of the lines are copies of others, and are left out",
                100.0 * log.copies
            ));
        }
        if log.not_json > 0 {
            let lines = counted(log.not_json, "line");
            answer
                .warnings
                .push(format!("left out: {lines} of what is not JSON"));
        }
        if log.without_statistics + log.without_arm > 0 {
            answer.warnings.push(format!(
                "left out: {} without statistics of QUIC and {} without an arm",
                counted(log.without_statistics, "line"),
                log.without_arm
            ));
        }
        for (count, what) in [
            (log.without_time, "transfers without a usable `ttlb`"),
            (log.other_sizes, "objects below 50 kB or from 12.8 MB on"),
            (
                log.resumed,
                "connections that started at the rate of an earlier one",
            ),
        ] {
            if count > 0 {
                answer
                    .warnings
                    .push(format!("left out: {} of {what}", counted(count, "line")));
            }
        }
        answer
    }

    pub(super) fn add_check(&mut self, check: Result<Check, String>) {
        match check {
            Ok(check) => {
                match check.outcome() {
                    Outcome::Holds => {}
                    Outcome::Unclear => self.warnings.push(format!("{}: the interval contains 0, and errors above 5 % of the mean or a percentage point of loss; more lines make it narrower", sentence(&check))),
                    Outcome::Doubtful => self.warnings.push(format!("{}: more than chance explains; predictions may be wrong by as much", sentence(&check))),
                    Outcome::Fails => self.reasons.push(format!("{}: an arm of the log ran another congestion control (--spec NAME=SPEC), the simulated stack is not that of the log, or its networks are outside of the prior", sentence(&check))),
                }
                self.checks.push(check);
            }
            Err(reason) => self.reason(reason),
        }
    }

    pub(super) fn add_prediction(&mut self, prediction: Result<Prediction, String>) {
        match prediction {
            Ok(prediction) => {
                let unsupported = prediction.unsupported.len();
                if unsupported as f64 > UNSUPPORTED * self.lines as f64 {
                    self.warnings.push(format!(
                        "{}: {unsupported} of {} lines resemble no simulated path, and are left out",
                        prediction.to, self.lines
                    ));
                }
                self.predictions.push(prediction);
            }
            Err(reason) => self.reason(reason),
        }
    }

    fn reason(&mut self, reason: String) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        for check in &self.checks {
            let _ = writeln!(text, "check: {}", sentence(check));
        }
        for warning in &self.warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        if !self.reasons.is_empty() {
            let _ = writeln!(text, "no prediction:");
            for reason in &self.reasons {
                let _ = writeln!(text, "  {reason}");
            }
            return text;
        }
        for prediction in &self.predictions {
            let _ = writeln!(
                text,
                "\n{} in place of {}, on {} of {} lines:",
                prediction.to, prediction.from, prediction.groups[0].lines, self.usable
            );
            let _ = writeln!(
                text,
                "  {:<14} {:>6}  {:<26} loss",
                "", "lines", "mean TTLB"
            );
            for group in &prediction.groups {
                let _ = writeln!(
                    text,
                    "  {:<14} {:>6}  {:<26} {}",
                    group.title,
                    group.lines,
                    percent(&group.mean),
                    points(&group.loss),
                );
            }
            let all = &prediction.groups[0];
            let _ = writeln!(text, "  slower by more than 5 %: {}", share(&all.slower));
            for (share, change) in &all.percentiles {
                if [5, 25, 50, 75, 95].contains(&((share * 100.0).round() as u32)) {
                    let _ = writeln!(text, "  P{:<3.0} {}", share * 100.0, percent(change));
                }
            }
        }
        let _ = writeln!(
            text,
            "\nMean TTLB is the geometric mean; intervals are {:.0} %. {WHAT}",
            LEVEL * 100.0
        );
        text
    }

    pub(super) fn json(&self, shown: &Shown) -> String {
        let estimate = |one: &Estimate| json!([one.value, one.low, one.high]);
        let curve = |points: &[(f64, Estimate)]| -> Vec<Value> {
            points
                .iter()
                .map(|(share, one)| json!([share, one.value, one.low, one.high]))
                .collect()
        };
        let checks = self.checks.iter().map(|check| {
            let (from, to) = match &check.kind {
                CheckKind::Arm { from, to } => (from, Some(to)),
                CheckKind::Own { arm } => (arm, None),
            };
            json!({
                "from": from, "predicts": to, "lines": check.lines, "outcome": result(check),
                "predicted_ms": check.predicted_ms, "true_ms": check.true_ms,
                "mean_error": estimate(&check.mean), "loss_error": check.loss.as_ref().map(estimate),
                "curve_error": check.curve(), "percentile_errors": curve(&check.percentiles),
            })
        });
        let predictions = self.predictions.iter().map(|one| {
            let groups = one.groups.iter().map(|group| {
                json!({
                    "kind": match group.kind { GroupKind::All => "all", GroupKind::Size => "size", GroupKind::Site => "site" },
                    "title": group.title, "lines": group.lines,
                    "mean_change": estimate(&group.mean), "loss_difference": estimate(&group.loss),
                    "share_slower_by_5_percent": estimate(&group.slower), "changes_at_percentiles": curve(&group.percentiles),
                })
            });
            json!({
                "arm": one.to, "baseline": one.from, "groups": groups.collect::<Vec<_>>(),
                "lines_without_support": one.unsupported.len(), "lines_without_columns": one.incomplete,
                "bank_mean_change": one.unmatched_mean, "bank_loss_difference": one.unmatched_loss, "nearest_mean_change": one.nearest_mean,
                "nearest_loss_difference": one.nearest_loss, "match_error": one.error,
            })
        });
        let all = json!({
            "usable": self.reasons.is_empty(), "reasons": self.reasons, "warnings": self.warnings, "title": shown.title,
            "baseline": self.baseline, "lines": self.usable, "matched_lines": self.lines, "incomplete_lines": self.incomplete,
            "missing_keys": self.missing, "level": LEVEL,
            "checks": checks.collect::<Vec<_>>(),
            "predictions": if self.reasons.is_empty() { predictions.collect::<Vec<Value>>() } else { Vec::new() },
        });
        format!("{all:#}\n")
    }

    pub(super) fn page(&self, shown: &Shown) -> Page {
        let checks = self.check_section();
        let answers = self.predictions.iter().flat_map(|one| self.sections(one));
        let tiles = if self.reasons.is_empty() {
            self.predictions.iter().map(tile).collect()
        } else {
            Vec::new()
        };
        Page {
            title: format!("Replay: {}", shown.title),
            subtitle: WHAT.to_owned(),
            reasons: self.reasons.clone(),
            warnings: self.warnings.clone(),
            tiles,
            checks,
            answers: answers.collect(),
            notes: vec![format!(
                "Each line of {} is matched with simulated paths by what it says; what the new arm did on them, relative to {}, is applied to the \
                 line. Intervals ({:.0} %) are of resampled lines, of draws from the match, and of the errors of the match on populations that it \
                 has not seen. docs/replay.md has the method and its limits.",
                self.baseline,
                self.baseline,
                LEVEL * 100.0
            )],
            facts: shown.facts.clone(),
            command: shown.command.clone(),
        }
    }

    fn check_section(&self) -> Vec<Section> {
        if self.checks.is_empty() {
            return Vec::new();
        }
        // The reverse predictions are in the table alone: the chart would be crowded.
        let shown = self.checks.iter().filter(|check| match &check.kind {
            CheckKind::Own { .. } => true,
            CheckKind::Arm { from, .. } => *from == self.baseline,
        });
        let curves = shown.take(CURVES_MAX).map(|check| Curve {
            name: name(check),
            points: in_percent(&check.percentiles),
        });
        let rows = self.checks.iter().map(|check| {
            vec![
                name(check),
                result(check).to_owned(),
                percent(&check.mean),
                check.loss.as_ref().map_or("–".to_owned(), points),
                format!("{:.1} %", check.curve() * 100.0),
                format!("{:.1} ms", check.predicted_ms),
                format!("{:.1} ms", check.true_ms),
                check.lines.to_string(),
            ]
        });
        vec![Section {
            title: "Check: what the log has, predicted".to_owned(),
            text: "Error of the prediction by percentile of TTLB, with geometric means in the table. A check holds if its 99 % interval contains 0 and no error above 5 % of the mean or a percentage point of loss; with a wider interval it cannot tell. If the interval does not contain 0, the check is doubtful, and fails beyond these errors.".to_owned(),
            curves: curves.collect(),
            header: ["check", "", "error of the mean", "error of loss", "error of the curve", "predicted mean", "true mean", "lines"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }]
    }

    fn sections(&self, one: &Prediction) -> Vec<Section> {
        let header = |first: &str| {
            [
                first,
                "lines",
                "geometric mean of TTLB",
                "loss",
                "slower by > 5 %",
            ]
            .map(str::to_owned)
            .to_vec()
        };
        let rows = |kind: GroupKind| -> Vec<Vec<String>> {
            let of_kind = one.groups.iter().filter(|group| group.kind == kind);
            let row = |group: &lastbyte_replay::Group| {
                vec![
                    group.title.clone(),
                    group.lines.to_string(),
                    percent(&group.mean),
                    points(&group.loss),
                    share(&group.slower),
                ]
            };
            of_kind.map(row).collect()
        };
        let mut sections = vec![Section {
            title: format!("{} in place of {}", one.to, one.from),
            text: format!(
                "Change of TTLB by percentile. Support: {} of {} lines resemble simulated paths, and {} lack a column. Without the match, the bank's \
                 mean would be {} %.",
                one.groups[0].lines,
                self.lines,
                one.incomplete,
                units::show_signed(one.unmatched_mean * 100.0, 1)
            ),
            curves: vec![Curve {
                name: one.to.clone(),
                points: in_percent(&one.groups[0].percentiles),
            }],
            header: header(""),
            rows: rows(GroupKind::All),
        }];
        for (kind, by) in [(GroupKind::Size, "size"), (GroupKind::Site, "site")] {
            let rows = rows(kind);
            if !rows.is_empty() {
                sections.push(Section {
                    title: format!("{} by {by}", one.to),
                    header: header(by),
                    rows,
                    ..Section::default()
                });
            }
        }
        sections
    }
}

fn tile(one: &Prediction) -> Tile {
    let all = &one.groups[0];
    Tile {
        name: format!("{}: geometric mean of TTLB", one.to),
        value: format!("{} %", units::show_signed(all.mean.value * 100.0, 1)),
        note: format!(
            "{} to {} %; loss {}; {} slower by > 5 %",
            units::show_signed(all.mean.low * 100.0, 1),
            units::show_signed(all.mean.high * 100.0, 1),
            points(&all.loss),
            share(&all.slower)
        ),
    }
}

fn name(check: &Check) -> String {
    match &check.kind {
        CheckKind::Arm { from, to } => format!("{to} from {from}"),
        CheckKind::Own { arm } => format!("times of {arm} without using them"),
    }
}

fn result(check: &Check) -> &'static str {
    match check.outcome() {
        Outcome::Holds => "holds",
        Outcome::Unclear => "cannot tell",
        Outcome::Doubtful => "doubtful",
        Outcome::Fails => "fails",
    }
}

fn sentence(check: &Check) -> String {
    let loss = check
        .loss
        .as_ref()
        .map_or_else(String::new, |loss| format!(", loss {}", points(loss)));
    format!(
        "{}: predicted {:.1} ms, true {:.1} ms, error {} (99 %){loss}, curve {:.1} %: {}",
        name(check),
        check.predicted_ms,
        check.true_ms,
        percent(&check.mean),
        check.curve() * 100.0,
        result(check)
    )
}

fn in_percent(points: &[(f64, Estimate)]) -> Vec<(f64, f64, f64, f64)> {
    let percent = |(share, one): &(f64, Estimate)| {
        (
            share * 100.0,
            one.value * 100.0,
            one.low * 100.0,
            one.high * 100.0,
        )
    };
    points.iter().map(percent).collect()
}

fn percent(one: &Estimate) -> String {
    let [value, low, high] =
        [one.value, one.low, one.high].map(|part| units::show_signed(part * 100.0, 1));
    format!("{value} % ({low} to {high})")
}

fn points(one: &Estimate) -> String {
    let [value, low, high] =
        [one.value, one.low, one.high].map(|part| units::show_signed(part * 100.0, 2));
    format!("{value} points ({low} to {high})")
}

fn share(one: &Estimate) -> String {
    format!(
        "{:.0} % ({:.0} to {:.0})",
        one.value * 100.0,
        one.low * 100.0,
        one.high * 100.0
    )
}
