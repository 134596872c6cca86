//! Looks at a ramp, the rules of their decisions, and what follows for the shares.
//!
//! # Rules
//!
//! The first rule that applies decides. Errors are probabilities over all looks of a ramp ([`sequence`](lastbyte_report::statistics::sequence)).
//!
//! | action | when | error |
//! |---|---|---|
//! | `alarm-ratio` | the numbers of connections by arm contradict the shares, over all or at a site | 0.1 % |
//! | `hold` | fewer connections of an arm than the plan's least number | |
//! | `stop-harm` | the arm's mean log TTLB is higher (by more than a negative `win` permits), over all or at a site; or the rise of loss, of incomplete transfers or of the round-trip time is above its limit | 1 %; 2 % together |
//! | `win` | in the last stage, after its least time, the mean log TTLB of this stage alone is lower by more than `win`, and loss and incomplete transfers are within their limits | 2 % |
//! | `futile` | an improvement of `detect` is excluded, or, with a negative `win`, the arm is slower by more than it permits; or the plan's time is over | 5 %, if the improvement is that large |
//! | `ramp` | least time and connections of the stage are reached, and loss and incomplete transfers are within their limits | |
//! | `hold` | otherwise | |
//!
//! In a window of `freeze`, `start`, `ramp` and `win` hold: no share grows. A ramp that has not started leaves all connections at the
//! baseline. `ramp` and `win` hold, too, while more than one of a thousand lines cannot be counted, as they are of the future or not
//! JSON objects; while the TTLB or the loss of more than one of a thousand is not known, as where it is below zero; while more than half of the
//! baseline's transfers in the stage are incomplete; and while the numbers of connections by arm are rare by chance at one look (1 %): the
//! alarm needs more connections, and lines that are missing look like an effect.
//!
//! So an arm that changes nothing is stopped or wins wrongly in at most 5 % of ramps, besides alarms. A win counts connections of
//! the last stage only, so that an effect that faded in earlier stages does not count.
//!
//! # Decisions
//!
//! - *The least time of a stage passes twice*: by the clock of the looks, and in hours with lines, by the time on the lines. An hour
//!   beside one without lines counts from the minute of its first line, or until that of its last one, so that a clock that is set
//!   right in between counts for nothing. The time of the ramp is in whole hours with lines. So hours without traffic do not count.
//! - *The sample ratio needs no least number of connections of the arm*: an arm whose connections all fail may have no lines.
//! - *A ramp that is over stays over.* Another needs another directory of state.

use core::{fmt, time::Duration};
use std::collections::BTreeMap;

use lastbyte_report::statistics::{
    quantiles::{self, Bounded, Histogram},
    sequence::{Difference, Sums, difference, sample_ratio},
};
use lastbyte_scenario::RampPlan;
use lastbyte_units as units;
use serde::{Deserialize, Serialize};

use crate::{
    Epoch, Subject,
    tally::{COUNT_MAX, Ignored, Tally},
};

#[cfg(test)]
mod tests;

const WIN_ERROR: f64 = 0.02;
/// Of a higher TTLB: half of it over all, and half at a site.
const HARM_ERROR: f64 = 0.01;
/// Of the limits of loss, incomplete transfers and round-trip times together.
const RAILS_ERROR: f64 = 0.02;
const FUTILE_ERROR: f64 = 0.05;
const RATIO_ERROR: f64 = 0.001;
/// The distance of an arm's number of connections from its share, in standard deviations, at which no share grows: 1 % by chance.
const DOUBT: f64 = 2.576;
/// Of the bounds of each quantile, over all stages. No decision follows from them.
const QUANTILE_ERROR: f64 = 0.05;

/// The decision of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// The first stage starts. In a window of `freeze`, a ramp holds before it.
    Start,
    /// Shares stay.
    Hold,
    /// The next stage starts.
    Ramp,
    /// The arm has all connections but the holdback.
    Win,
    /// The arm harms, and has no connections.
    StopHarm,
    /// The arm has no effect that matters, and no connections.
    Futile,
    /// The sample ratio is wrong, so the arm has no connections.
    AlarmRatio,
    /// An operator ended the ramp.
    Stopped,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Hold => "hold",
            Self::Ramp => "ramp",
            Self::Win => "win",
            Self::StopHarm => "stop-harm",
            Self::Futile => "futile",
            Self::AlarmRatio => "alarm-ratio",
            Self::Stopped => "stopped",
        })
    }
}

impl Action {
    /// Whether no other decision follows.
    pub const fn is_end(self) -> bool {
        !matches!(self, Self::Start | Self::Hold | Self::Ramp)
    }
}

/// A change of the arm against the baseline, and its bounds at all looks, where there are any.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The change as it was seen.
    pub value: f64,
    /// The lower bound.
    pub low: Option<f64>,
    /// The upper bound.
    pub high: Option<f64>,
}

/// What a ramp is of: in its first look, so that the decisions can be read alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Setup {
    /// The name of the experiment.
    pub experiment: String,
    /// The names of the baseline and of the arm.
    pub arms: [String; 2],
    /// The share of the arm in each stage.
    pub stages: Vec<f64>,
    /// The change of the time to last byte that matters.
    pub detect: f64,
    /// The improvement of the time to last byte that a win must exceed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub win: f64,
    /// The largest acceptable rise of the share of lost packets.
    pub loss: f64,
    /// The largest acceptable fall of the share of complete transfers.
    pub completion: f64,
    /// The largest acceptable rise of the smoothed round-trip time beside the minimum, if there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<f64>,
}

/// A look: a line of the decision log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Look {
    /// The number of the look, from 0.
    pub look: u64,
    /// The time of the newest line, or of the start, in milliseconds since the Unix epoch.
    pub until: u64,
    /// When it was made, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The version of the rules by which it was made: see [`RULES`].
    pub rules: u32,
    /// Whether its lines were counted before, in states. A state may lack lines that came later.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub by_states: bool,
    /// The decision.
    pub action: Action,
    /// The reason.
    pub rule: String,
    /// The epoch after the decision.
    pub epoch: u32,
    /// The stage after the decision, from 0.
    pub stage: usize,
    /// The arm's share after the decision.
    pub share: f64,
    /// The hash of the plan's file.
    pub plan: String,
    /// What the ramp is of: of the first look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// Connections of baseline and arm by site.
    pub connections: BTreeMap<String, [u64; 2]>,
    /// The mark of a line of each log, by the log's name: of logs whose line no look noted before. A log is there while its line is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<String, u64>,
    /// Who let the ramp go on without lines that earlier looks had, and which are missing. `marks` are of all logs then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Lines that do not count.
    pub ignored: Ignored,
    /// Hashes of the servers' configurations on lines of the stage.
    pub configs: Vec<String>,
    /// Hours with lines of the stage.
    pub hours: u64,
    /// The change of the geometric mean of the time to last byte: −0.05 for 5 % less.
    pub ttlb: Option<Change>,
    /// A lower bound of `ttlb` for futility, with a larger error.
    pub ttlb_low: Option<f64>,
    /// The change of the geometric mean in the stage alone.
    pub stage_ttlb: Option<Change>,
    /// The change of the median in the stage alone.
    pub p50: Option<Change>,
    /// The change of the 75th percentile in the stage alone.
    pub p75: Option<Change>,
    /// The change of the 95th percentile in the stage alone.
    pub p95: Option<Change>,
    /// The change of the share of lost packets.
    pub loss: Option<Change>,
    /// The change of the share of incomplete transfers.
    pub incomplete: Option<Change>,
    /// The change of the smoothed round-trip time beside the minimum: of the geometric mean of their ratio.
    pub rtt: Option<Change>,
    /// The largest log Bayes factor against the shares, less its limit: an alarm above zero.
    pub ratio: Option<f64>,
    /// The sum of the line in the decision log, which chains it to the lines before it. Empty before the look is written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sum: String,
}

/// More epochs are of no ramp. The first is the second since 1970 in which it started.
const EPOCHS_MAX: u32 = 1 << 20;

/// The version of the rules. A look by another version cannot be computed again.
pub const RULES: u32 = 4;

impl Look {
    /// The look at this time that ends a ramp after this one, for an operator, with the reason.
    #[must_use]
    pub fn stopped(&self, rule: String, now_ms: u64) -> Self {
        self.stopped_after(self.epoch, rule, now_ms)
    }

    /// Whether each number is one of a ramp: each decision takes another epoch, and numbers of connections are summed.
    pub fn is_in_range(&self) -> bool {
        let mut counts = self.connections.values().flatten();
        self.look <= COUNT_MAX
            && self.epoch < u32::MAX - EPOCHS_MAX
            && self.stage < usize::from(u16::MAX)
            && counts.all(|count| *count <= COUNT_MAX)
    }

    fn stopped_after(&self, epoch: u32, rule: String, now_ms: u64) -> Self {
        Self {
            look: self.look + 1,
            at: now_ms,
            rules: RULES,
            by_states: false,
            action: Action::Stopped,
            rule,
            epoch: epoch.max(self.epoch) + 1,
            share: 0.0,
            setup: None,
            marks: BTreeMap::new(),
            lost: None,
            sum: String::new(),
            ..self.clone()
        }
    }
}

/// A ramp, by its looks.
#[derive(Clone, Debug, Default)]
pub struct Ramp(Vec<Look>);

impl Ramp {
    /// The ramp of these looks.
    #[must_use]
    pub const fn new(looks: Vec<Look>) -> Self {
        Self(looks)
    }

    /// The looks so far.
    pub fn looks(&self) -> &[Look] {
        &self.0
    }

    /// Adds a look of [`Ramp::start`], [`Ramp::look`] or [`Ramp::stop`].
    pub fn push(&mut self, look: Look) {
        self.0.push(look);
    }

    /// Whether the ramp has ended.
    pub fn is_over(&self) -> bool {
        self.0.last().is_some_and(|look| look.action.is_end())
    }

    /// Whether the first stage has yet to start.
    pub fn waits(&self) -> bool {
        !self.is_over() && self.0.iter().all(|look| look.action != Action::Start)
    }

    /// Whether each stage is one of this plan, and each share that of its decision.
    pub fn follows(&self, plan: &RampPlan) -> bool {
        let mut waits = true;
        self.0.iter().all(|look| {
            waits &= look.action != Action::Start;
            let has_stage = look.stage < plan.stages.len();
            let share = if waits {
                0.0
            } else {
                share(look.action, look.stage, plan)
            };
            let is_last = look.stage + 1 == plan.stages.len();
            has_stage
                && (look.share - share).abs() < 1e-9
                && (is_last || look.action != Action::Win)
        })
    }

    /// What the logs must have: the number of a look, the name that a log had then, and the mark of a line in it.
    pub fn marks(&self) -> impl Iterator<Item = (u64, &str, u64)> {
        let whole = self.0.iter().rposition(|look| look.lost.is_some());
        let looks = self.0.iter().skip(whole.unwrap_or(0));
        looks.flat_map(|look| {
            let marks = look.marks.iter();
            marks.map(|(log, mark)| (look.look, log.as_str(), *mark))
        })
    }

    /// The epochs since the start.
    pub fn epochs(&self) -> Vec<Epoch> {
        let mut epochs: Vec<Epoch> = Vec::new();
        let waits = |look: &&Look| look.action != Action::Start;
        for look in self.0.iter().skip_while(waits) {
            if epochs.last().is_none_or(|last| last.number != look.epoch) {
                epochs.push(Epoch {
                    number: look.epoch,
                    stage: look.stage,
                    share: look.share,
                    since_ms: look.until,
                    decided_ms: look.at,
                });
            } else if let Some(last) = epochs.last_mut() {
                // The clock of the decision may have been fast.
                last.decided_ms = last.decided_ms.min(look.at);
            }
        }
        epochs
    }

    /// The look that starts the first stage, or holds before it in a window of `freeze`. Times are in milliseconds since 1970: lines
    /// are of the ramp since `until_ms`, and now.
    pub fn start(&self, subject: &Subject<'_>, plan: &str, until_ms: u64, now_ms: u64) -> Look {
        let last = self.0.last();
        let first = || {
            u32::try_from(until_ms / 1000)
                .unwrap_or(u32::MAX / 2)
                .max(1)
        };
        let decided = (Action::Start, "first stage".to_owned());
        let (action, rule) = unless_frozen(subject.plan, now_ms, decided);
        let setup = Setup {
            experiment: subject.name.to_owned(),
            arms: subject.arms.map(str::to_owned),
            stages: subject.plan.stages.clone(),
            detect: subject.plan.detect,
            win: subject.plan.win,
            loss: subject.plan.loss,
            completion: subject.plan.completion,
            rtt: subject.plan.rtt,
        };
        Look {
            look: last.map_or(0, |last| last.look + 1),
            until: last.map_or(0, |last| last.until).max(until_ms),
            at: now_ms,
            rules: RULES,
            by_states: false,
            action,
            rule,
            epoch: last.map_or_else(first, |last| last.epoch + 1),
            stage: 0,
            share: if action == Action::Start {
                share(action, 0, subject.plan)
            } else {
                0.0
            },
            plan: plan.to_owned(),
            setup: last.is_none().then_some(setup),
            connections: BTreeMap::new(),
            marks: BTreeMap::new(),
            lost: None,
            ignored: Ignored::default(),
            configs: Vec::new(),
            hours: 0,
            ttlb: None,
            ttlb_low: None,
            stage_ttlb: None,
            p50: None,
            p75: None,
            p95: None,
            loss: None,
            incomplete: None,
            rtt: None,
            ratio: None,
            sum: String::new(),
        }
    }

    /// The look that takes the arm away for an operator, also before the start and after a win, in an epoch after all that servers know.
    /// `None` if there are no looks, or the ramp is over and the arm has no connections.
    pub fn stop(&self, rule: String, now_ms: u64, known_epoch: u32) -> Option<Look> {
        let last = self.0.last()?;
        let can_end = last.share > 0.0 || !last.action.is_end();
        can_end.then(|| last.stopped_after(known_epoch, rule, now_ms))
    }

    /// The look at these lines, at this time in milliseconds since 1970. `None` if the ramp did not start, or is over.
    pub fn look(&self, subject: &Subject<'_>, tally: &Tally, now_ms: u64) -> Option<Look> {
        self.look_without(tally.ignored, subject, tally, now_ms)
    }

    /// The look in place of a recorded one, the next of this ramp. Lines that did not count are those of then. `None` if the ramp is
    /// over.
    pub fn again(&self, subject: &Subject<'_>, tally: &Tally, recorded: &Look) -> Option<Look> {
        let at = recorded.at;
        if recorded.action == Action::Stopped {
            self.stop(recorded.rule.clone(), at, recorded.epoch.saturating_sub(1))
        } else if self.waits() {
            Some(self.start(subject, &recorded.plan, recorded.until, at))
        } else {
            self.look_without(recorded.ignored, subject, tally, at)
        }
    }

    fn look_without(
        &self,
        ignored: Ignored,
        subject: &Subject<'_>,
        tally: &Tally,
        now_ms: u64,
    ) -> Option<Look> {
        let last = self.0.last().filter(|look| !look.action.is_end())?;
        if self.waits() {
            return None;
        }
        let epochs = self.epochs();
        let current = *epochs.last()?;
        let findings = Findings::new(&epochs, current, tally);
        let plan = subject.plan;
        let mut decided = findings.decide(subject, current, tally, now_ms);
        if matches!(decided.0, Action::Ramp | Action::Win) {
            decided = unless_frozen(plan, now_ms, unless_unusable(ignored, tally, decided));
        }
        let (action, rule) = decided;
        let stage = current.stage + usize::from(action == Action::Ramp);
        let is_new = !matches!(action, Action::Hold);
        Some(Look {
            look: last.look + 1,
            until: tally.until_ms.max(last.until),
            at: now_ms,
            rules: RULES,
            by_states: false,
            action,
            rule,
            epoch: current.number + u32::from(is_new),
            stage,
            share: share(action, stage, plan),
            plan: last.plan.clone(),
            setup: None,
            connections: tally.by_site(),
            marks: BTreeMap::new(),
            lost: None,
            ignored,
            configs: tally.configs(current.number),
            hours: tally.hours(current.number),
            ttlb: findings.ttlb.map(|of| relative(&of, plan)),
            ttlb_low: findings
                .ttlb
                .map(|of| of.below(FUTILE_ERROR, plan.detect).exp_m1())
                .and_then(bound_of_ratio),
            stage_ttlb: findings.stage_ttlb.map(|of| relative(&of, plan)),
            p50: findings.quantile(0.5, plan),
            p75: findings.quantile(0.75, plan),
            p95: findings.quantile(0.95, plan),
            loss: findings.loss.map(|of| limited(&of, plan.loss, plan)),
            incomplete: (findings.incomplete).map(|of| limited(&of, plan.completion, plan)),
            rtt: findings.rtt.map(|of| {
                let limit = rtt_limit(plan).unwrap_or(plan.detect);
                let Change { value, low, high } = limited(&of, limit, plan);
                let ratio = |bound: Option<f64>| bound.map(f64::exp_m1);
                let bounds = (ratio(low).and_then(bound_of_ratio), ratio(high));
                Change {
                    value: value.exp_m1(),
                    low: bounds.0,
                    high: bounds.1,
                }
            }),
            ratio: findings.ratio.map(|(_, excess)| excess),
            sum: String::new(),
        })
    }
}

/// The arm's share after a decision of a ramp that has started.
fn share(action: Action, stage: usize, plan: &RampPlan) -> f64 {
    match action {
        Action::Win => 1.0 - plan.holdback,
        action if action.is_end() => 0.0,
        _ => plan.stages.get(stage).copied().unwrap_or(0.0),
    }
}

/// A decision after which a share grows, or a hold in a window of `freeze`.
fn unless_frozen(
    plan: &RampPlan,
    now_ms: u64,
    (action, rule): (Action, String),
) -> (Action, String) {
    let frozen = plan.freeze.iter().find(|window| window.contains(now_ms));
    frozen.map_or((action, rule.clone()), |window| {
        let rule = format!("frozen from {window}, else {action}: {rule}");
        (Action::Hold, rule)
    })
}

/// A decision after which a share grows, or a hold while more than one of a thousand lines cannot be counted.
fn unless_unusable(
    ignored: Ignored,
    tally: &Tally,
    (action, rule): (Action, String),
) -> (Action, String) {
    let Ignored {
        ahead, unreadable, ..
    } = ignored;
    let counted: u64 = tally.connections(None).iter().sum();
    if !is_notable(ahead.saturating_add(unreadable), counted) {
        return (action, rule);
    }
    let rule = format!(
        "{ahead} lines of the future and {unreadable} that are not JSON objects, else {action}: {rule}"
    );
    (Action::Hold, rule)
}

fn change(value: f64, (low, high): (f64, f64)) -> Change {
    Change {
        value,
        low: bound_of_ratio(low),
        high: Some(high).filter(|high| high.is_finite()),
    }
}

/// A lower bound, if it is one: of a relative change, −1 is none.
fn bound_of_ratio(low: f64) -> Option<f64> {
    (low.is_finite() && low > -1.0).then_some(low)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(win: &f64) -> bool {
    *win == 0.0
}

/// The change of mean log TTLB below which the arm wins.
fn win_limit(plan: &RampPlan) -> f64 {
    (-plan.win).ln_1p()
}

/// The change of mean log TTLB above which the arm harms.
fn harm_limit(plan: &RampPlan) -> f64 {
    win_limit(plan).max(0.0)
}

/// How much slower a winner may be, behind `higher` in a reason.
fn accepted(plan: &RampPlan) -> String {
    if plan.win < 0.0 {
        format!(" by more than {}", units::show_share(-plan.win))
    } else {
        String::new()
    }
}

/// The change of a geometric mean, from the difference of mean logarithms.
fn relative(of: &Difference, plan: &RampPlan) -> Change {
    let low = of.below(HARM_ERROR / 2.0, plan.detect);
    let high = of.above(WIN_ERROR, plan.win_margin());
    change(of.value.exp_m1(), (low.exp_m1(), high.exp_m1()))
}

fn limited(of: &Difference, limit: f64, plan: &RampPlan) -> Change {
    let error = rail_error(plan);
    change(of.value, (of.below(error, limit), of.above(error, limit)))
}

/// The limit of the logarithm of round-trip times, if there is one.
fn rtt_limit(plan: &RampPlan) -> Option<f64> {
    plan.rtt.map(f64::ln_1p)
}

/// The error of each guard rail.
fn rail_error(plan: &RampPlan) -> f64 {
    RAILS_ERROR / if plan.rtt.is_some() { 3.0 } else { 2.0 }
}

/// The statistics of a look.
struct Findings<'a> {
    ttlb: Option<Difference>,
    /// Of the stage alone.
    stage_ttlb: Option<Difference>,
    /// Times of the stage.
    times: Option<&'a [Histogram; 2]>,
    loss: Option<Difference>,
    incomplete: Option<Difference>,
    rtt: Option<Difference>,
    /// Whether more than half of the baseline's transfers in the stage are incomplete.
    is_broken: bool,
    /// The site, or all of them, that contradicts the shares most, and by how much the alarm's limit is exceeded.
    ratio: Option<(Option<usize>, f64)>,
    /// The distance of the arm's number of connections from the shares of all epochs, in standard deviations.
    doubt: f64,
    /// What is not known of too many lines.
    unknown: Option<&'static str>,
}

impl<'a> Findings<'a> {
    fn new(epochs: &[Epoch], current: Epoch, tally: &'a Tally) -> Self {
        let mut of_stage = Sums::default();
        for stratum in tally.strata(Some(current.number), None, |of| of.incomplete) {
            of_stage.merge(&stratum.control);
        }
        Self {
            is_broken: of_stage.mean().is_some_and(|share| share > 0.5),
            ttlb: difference(tally.strata(None, None, |of| of.ttlb)),
            stage_ttlb: difference(tally.strata(Some(current.number), None, |of| of.ttlb)),
            times: tally.times(current.number),
            loss: difference(tally.strata(None, None, |of| of.loss)),
            incomplete: difference(tally.strata(None, None, |of| of.incomplete)),
            rtt: difference(tally.strata(None, None, |of| of.rtt)),
            ratio: ratio(epochs, tally),
            doubt: doubt(epochs, tally),
            unknown: unknown(tally),
        }
    }

    /// The decision, and its reason.
    fn decide(
        &self,
        subject: &Subject<'_>,
        current: Epoch,
        tally: &Tally,
        now_ms: u64,
    ) -> (Action, String) {
        let plan = subject.plan;
        let least = plan.least_connections;
        let all = tally.connections(None);
        let (hours, most) = (tally.all_hours(), RampPlan::hours(plan.most_time));
        let undecided = (hours >= most).then(|| {
            let rule = format!("undecided after {hours} hours");
            (Action::Futile, rule)
        });
        if let Some((site, excess)) = self.ratio
            && excess > 0.0
            && all[0] + all[1] >= least
        {
            let place = site.map_or("over all".to_owned(), |site| {
                format!("at site `{}`", tally.name(site))
            });
            return (
                Action::AlarmRatio,
                format!("numbers of connections contradict the shares {place}"),
            );
        }
        if let Some((count, name)) = all
            .iter()
            .zip(subject.arms)
            .find(|(count, _)| **count < least)
        {
            let rule = format!("{count} of {least} connections of `{name}`");
            return undecided.unwrap_or((Action::Hold, rule));
        }
        if let Some(rule) = self.harm(subject, tally) {
            return (Action::StopHarm, rule);
        }
        let excess = self.excess(subject);
        let wait = waiting(subject, current, tally, now_ms);
        let is_last = current.stage + 1 >= plan.stages.len();
        if is_last
            && wait.is_none()
            && excess.is_none()
            && let Some(rule) = self.win(plan)
        {
            return (Action::Win, rule);
        }
        if let Some(rule) = self.futile(plan) {
            return (Action::Futile, rule);
        }
        if let Some(end) = undecided {
            return end;
        }
        if let Some(rule) = wait.or(excess) {
            return (Action::Hold, rule);
        }
        if is_last {
            return (Action::Hold, undecided_rule(plan));
        }
        (
            Action::Ramp,
            "least time and connections of the stage, within limits".to_owned(),
        )
    }

    /// The improvement that is shown in the stage, if it is enough.
    fn win(&self, plan: &RampPlan) -> Option<String> {
        let high = self.stage_ttlb?.above(WIN_ERROR, plan.win_margin());
        let percent = high.exp_m1() * 100.0;
        (high < win_limit(plan)).then(|| {
            if high < 0.0 {
                format!(
                    "TTLB of the last stage is lower, by {:.1}% or more",
                    -percent
                )
            } else {
                format!("TTLB of the last stage is at most {percent:.1}% higher")
            }
        })
    }

    /// The improvement that is excluded, if it is the expected one, or any that is enough.
    fn futile(&self, plan: &RampPlan) -> Option<String> {
        let low = self.ttlb?.below(FUTILE_ERROR, plan.detect);
        if plan.win < 0.0 {
            return (low > win_limit(plan)).then(|| format!("TTLB is higher{}", accepted(plan)));
        }
        let detect = units::show_share(plan.detect);
        (low > (1.0 - plan.detect).ln()).then(|| format!("TTLB is not {detect} lower"))
    }

    /// The change of a quantile of the stage's times. Its bounds hold over all stages, among which the error is divided.
    fn quantile(&self, share: f64, plan: &RampPlan) -> Option<Change> {
        let [control, arm] = self.times?;
        let error = QUANTILE_ERROR / plan.stages.len().max(1) as f64;
        let Bounded { value, low, high } = quantiles::change(control, arm, share, error)?;
        Some(Change { value, low, high })
    }

    /// The guard rails: names, rises, limits, and limits as shares.
    fn rails(
        &self,
        plan: &RampPlan,
    ) -> impl Iterator<Item = (&'static str, Option<Difference>, f64, f64)> {
        let rtt = rtt_limit(plan).zip(plan.rtt);
        let rtt = rtt.map(|(limit, shown)| ("the RTT beside its minimum", self.rtt, limit, shown));
        let both = [
            ("loss", self.loss, plan.loss),
            (
                "the share of incomplete transfers",
                self.incomplete,
                plan.completion,
            ),
        ];
        let both = both.map(|(what, of, limit)| (what, of, limit, limit));
        both.into_iter().chain(rtt)
    }

    /// The harm that is shown.
    fn harm(&self, subject: &Subject<'_>, tally: &Tally) -> Option<String> {
        let plan = subject.plan;
        let is_slower =
            |of: Difference, error: f64| of.below(error, plan.detect) > harm_limit(plan);
        if self.ttlb.is_some_and(|of| is_slower(of, HARM_ERROR / 2.0)) {
            return Some(format!("TTLB is higher{}", accepted(plan)));
        }
        let error = rail_error(plan);
        for (what, of, limit, shown) in self.rails(plan) {
            if of.is_some_and(|of| of.below(error, limit) > limit) {
                let limit = units::show_share(shown);
                return Some(format!("{what} rose by more than {limit}"));
            }
        }
        let error = HARM_ERROR / 2.0 / tally.sites().len().max(1) as f64;
        let site = tally.sites().find(|site| {
            let mut counts = [0; 2];
            for values in tally.cells(None, Some(*site)) {
                counts[0] += values[0].connections;
                counts[1] += values[1].connections;
            }
            let of = difference(tally.strata(None, Some(*site), |of| of.ttlb));
            counts.iter().all(|count| *count >= plan.least_connections)
                && of.is_some_and(|of| is_slower(of, error))
        })?;
        let (by, site) = (accepted(plan), tally.name(site));
        Some(format!("TTLB is higher{by} at site `{site}`"))
    }

    /// The guard rail that is exceeded by what was seen, or what was not seen.
    fn excess(&self, subject: &Subject<'_>) -> Option<String> {
        if self.ttlb.is_none() {
            return Some("TTLB is not known".to_owned());
        }
        if self.is_broken {
            return Some("more than half of the baseline's transfers are incomplete".to_owned());
        }
        if self.doubt > DOUBT {
            return Some("numbers of connections may contradict the shares".to_owned());
        }
        let mut rails = self.rails(subject.plan);
        let exceeded = rails.find_map(|(what, of, limit, _)| match of {
            Some(of) => (of.value > limit || of.value.is_nan())
                .then(|| format!("{what} is above its limit")),
            None => Some(format!("{what} is not known")),
        });
        let unknown = || {
            Some(format!(
                "{} of more than 0.1% of the lines is not known",
                self.unknown?
            ))
        };
        exceeded.or_else(unknown)
    }
}

/// Why the last stage goes on.
fn undecided_rule(plan: &RampPlan) -> String {
    if plan.win > 0.0 {
        let win = units::show_share(plan.win);
        format!("TTLB of the last stage is not significantly lower by more than {win} yet")
    } else if plan.win < 0.0 {
        format!("TTLB of the last stage may be higher{}", accepted(plan))
    } else {
        "no significant difference yet".to_owned()
    }
}

/// What a stage waits for.
fn waiting(subject: &Subject<'_>, current: Epoch, tally: &Tally, now_ms: u64) -> Option<String> {
    let plan = subject.plan;
    let by_clock = Duration::from_millis(now_ms.saturating_sub(current.decided_ms));
    let passed = by_clock.min(tally.covered(current.number));
    if passed < plan.least_time {
        let minutes = |span: Duration| span.as_secs() / 60;
        return Some(format!(
            "{} of {} minutes of the stage",
            minutes(passed),
            minutes(plan.least_time)
        ));
    }
    let counts = tally.connections(Some(current.number));
    let few = counts
        .iter()
        .zip(subject.arms)
        .find(|(count, _)| **count < plan.least_connections);
    few.map(|(count, name)| {
        format!(
            "{count} of {} connections of `{name}` in the stage",
            plan.least_connections
        )
    })
}

/// The largest excess of a log Bayes factor above its limit. The error is divided among epochs, as 1 / k (k + 1), and among the
/// sites of an epoch and their total.
fn ratio(epochs: &[Epoch], tally: &Tally) -> Option<(Option<usize>, f64)> {
    let places = tally.sites().len() as f64 + 1.0;
    let mut largest: Option<(Option<usize>, f64)> = None;
    for (epoch, k) in epochs.iter().zip(1_u32..) {
        let limit = (places * f64::from(k) * f64::from(k + 1) / RATIO_ERROR).ln();
        for site in tally.sites().map(Some).chain([None]) {
            let counts = counts(*epoch, tally, site);
            if let Some(factor) = sample_ratio(&counts, &[1.0 - epoch.share, epoch.share])
                && largest.is_none_or(|(_, excess)| factor - limit > excess)
            {
                largest = Some((site, factor - limit));
            }
        }
    }
    largest
}

/// The connections of an epoch by arm, at a site or over all.
fn counts(epoch: Epoch, tally: &Tally, site: Option<usize>) -> [u64; 2] {
    let mut counts = [0; 2];
    for values in tally.cells(Some(epoch.number), site) {
        counts[0] += values[0].connections;
        counts[1] += values[1].connections;
    }
    counts
}

/// How far the arm's number of connections is from what the shares of all epochs give, in standard deviations.
fn doubt(epochs: &[Epoch], tally: &Tally) -> f64 {
    let (mut distance, mut variance) = (0.0, 0.0);
    for epoch in epochs
        .iter()
        .filter(|one| one.share > 0.0 && one.share < 1.0)
    {
        let [control, arm] = counts(*epoch, tally, None).map(|count| count as f64);
        distance += arm - (control + arm) * epoch.share;
        variance += (control + arm) * epoch.share * (1.0 - epoch.share);
    }
    if variance > 0.0 {
        distance.abs() / variance.sqrt()
    } else {
        0.0
    }
}

/// A value that too many lines do not have, or that is impossible on them. An incomplete transfer has the time of the limit.
fn unknown(tally: &Tally) -> Option<&'static str> {
    let (mut connections, mut ttlb, mut loss) = (0, 0, 0);
    for one in tally.cells(None, None).flatten() {
        connections += one.connections;
        ttlb += one.ttlb.count;
        loss += one.loss.count;
    }
    let known = [("TTLB", ttlb), ("loss", loss)];
    let lacking = known
        .into_iter()
        .find(|(_, known)| is_notable(connections - known, connections));
    lacking.map(|(what, _)| what)
}

/// Whether this number of lines is more than a thousandth of all.
fn is_notable(lines: u64, all: u64) -> bool {
    lines.saturating_mul(1000) > all
}
