//! A plan over simulated connections: the whole process, from the first stage to its end, many times.
//!
//! A *bank* has paths with the outcome of a connection in each arm, simulated once. A run draws connections from it at a constant
//! rate, with replacement, assigns them by the shares in effect, and looks each hour. Scenarios change the outcomes of the arm, so
//! that the right decision is known.
//!
//! Connections are independent and their number is the same at each hour: real traffic has clients that return, and nights.

use core::time::Duration;

use lastbyte_report::statistics::sequence::Sums;
use lastbyte_scenario::RampPlan;
use lastbyte_units::SplitMix64;

use crate::{
    Subject,
    ramp::{Action, Ramp},
    tally::{Tally, Values},
};

#[cfg(test)]
mod tests;

/// The outcome of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Time to last byte in milliseconds; `None` of an incomplete transfer.
    pub ttlb_ms: Option<f64>,
    /// The share of lost packets, if packets were sent.
    pub loss: Option<f64>,
    /// The smoothed round-trip time as a multiple of the minimum.
    pub rtt: Option<f64>,
}

/// A path with the outcome in each arm.
#[derive(Clone, Debug)]
pub struct BankPath {
    /// The site.
    pub site: String,
    /// Of the baseline, and of the arm.
    pub outcomes: [Outcome; 2],
}

/// What decision is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// The arm does not differ: a win, a stop for harm and an alarm are wrong.
    Null,
    /// The arm is good enough: a stop for harm and an alarm are wrong.
    Better,
    /// The arm is worse, or not better any more: a win is wrong.
    Worse,
    /// Lines are missing: all but the alarm is wrong.
    Broken,
    /// As simulated: not known.
    Unknown,
}

/// A scenario: what the arm does to the connections of the baseline.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The name.
    pub name: &'static str,
    /// What decision is right if any improvement wins.
    truth: Truth,
    /// The factor of the time to last byte.
    ttlb: f64,
    /// The rise of the share of lost packets.
    loss: f64,
    /// Whether the effect is at one site.
    is_local: bool,
    /// Whether the effect halves each day.
    fades: bool,
    /// Whether the lines of the arm's slowest tenth are missing.
    lacks_slow: bool,
    /// Whether a site starts after 36 hours.
    has_late_site: bool,
    /// Whether the controller restarts at each look.
    restarts: bool,
    /// Whether the arm has its own simulated outcomes.
    is_simulated: bool,
}

const NULL: Scenario = Scenario {
    name: "no effect",
    truth: Truth::Null,
    ttlb: 1.0,
    loss: 0.0,
    is_local: false,
    fades: false,
    lacks_slow: false,
    has_late_site: false,
    restarts: false,
    is_simulated: false,
};

/// All scenarios.
pub static SCENARIOS: [Scenario; 10] = [
    NULL,
    Scenario {
        name: "no effect, a site added midway",
        has_late_site: true,
        ..NULL
    },
    Scenario {
        name: "no effect, restarts of the controller",
        restarts: true,
        ..NULL
    },
    Scenario {
        name: "TTLB -5%",
        truth: Truth::Better,
        ttlb: 0.95,
        ..NULL
    },
    Scenario {
        name: "TTLB +5%",
        truth: Truth::Worse,
        ttlb: 1.05,
        ..NULL
    },
    Scenario {
        name: "loss +3 points",
        truth: Truth::Worse,
        loss: 0.03,
        ..NULL
    },
    Scenario {
        name: "TTLB +20%, loss +3 points at one site",
        truth: Truth::Worse,
        ttlb: 1.2,
        loss: 0.03,
        is_local: true,
        ..NULL
    },
    Scenario {
        name: "TTLB -10%, halved each day",
        truth: Truth::Worse,
        ttlb: 0.9,
        fades: true,
        ..NULL
    },
    Scenario {
        name: "the arm's slowest tenth not logged",
        truth: Truth::Broken,
        lacks_slow: true,
        ..NULL
    },
    Scenario {
        name: "the arm as simulated",
        truth: Truth::Unknown,
        is_simulated: true,
        ..NULL
    },
];

impl Scenario {
    /// What decision is right under a plan: an effect that a win needs, or permits, is not worse.
    pub fn truth(&self, plan: &RampPlan) -> Truth {
        let lasting = if self.fades { 0.0 } else { 1.0 - self.ttlb };
        match self.truth {
            Truth::Broken | Truth::Unknown => self.truth,
            truth if self.loss > 0.0 || self.is_local => truth,
            _ if lasting > plan.win + 1e-9 => Truth::Better,
            Truth::Better => Truth::Null,
            truth => truth,
        }
    }
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The decision.
    pub action: Action,
    /// Whether it is wrong.
    pub is_wrong: bool,
    /// How often the share grew before.
    pub ramps: u64,
    /// Hours until then.
    pub hours: u64,
    /// Connections until then, and those of them in the arm.
    pub connections: [u64; 2],
}

/// A plan, and the traffic it is rehearsed with.
#[derive(Clone, Debug)]
pub struct Rehearsal<'a> {
    subject: Subject<'a>,
    sites: Vec<String>,
    /// The site of a local effect.
    local: usize,
    paths: Vec<(usize, [Outcome; 2])>,
    /// The 90th percentile of the baseline's times.
    slow_ms: f64,
    /// Connections a week.
    week: u64,
}

const HOURS_A_WEEK: u64 = 168;
/// The hours after which a late site starts.
const LATE: u64 = 36;
/// Of the times of a fixed design: two-sided 5 %, power 80 %.
const FIXED: f64 = 7.849;

impl<'a> Rehearsal<'a> {
    /// A rehearsal with so many connections a week. `None` without paths.
    pub fn new(subject: Subject<'a>, bank: &[BankPath], week: u64) -> Option<Self> {
        let mut sites: Vec<String> = bank.iter().map(|path| path.site.clone()).collect();
        sites.sort();
        sites.dedup();
        let place = |name: &str| sites.iter().position(|site| site == name);
        let paths = bank
            .iter()
            .filter_map(|path| Some((place(&path.site)?, path.outcomes)));
        let paths: Vec<(usize, [Outcome; 2])> = paths.collect();
        // The smallest site with a twentieth of the paths.
        let count = |site: usize| paths.iter().filter(|(place, _)| *place == site).count();
        let large = (0..sites.len()).filter(|site| count(*site) * 20 >= paths.len());
        let local = large.min_by_key(|site| count(*site))?;
        let times = paths
            .iter()
            .map(|(_, [one, _])| one.ttlb_ms.unwrap_or(f64::INFINITY));
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        let slow_ms = times[times.len() * 9 / 10];
        Some(Self {
            subject,
            sites,
            local,
            paths,
            slow_ms,
            week,
        })
    }

    /// The number of connections with which a design of two equal arms shows at one look, at a chosen number, that an arm with the
    /// plan's expected change may win, with a power of 80 % and 5 % of false results. `None` if there is no variance.
    pub fn fixed_design(&self) -> Option<u64> {
        let mut strata = vec![Sums::default(); self.sites.len()];
        let limit = self.limit_ms();
        for (site, [outcome, _]) in &self.paths {
            let ttlb = outcome.ttlb_ms.unwrap_or(limit);
            strata[*site].add(ttlb.clamp(0.5, limit).ln());
        }
        let squares: f64 = strata
            .iter()
            .map(|one| one.squares - one.mean().unwrap_or(0.0) * one.sum)
            .sum();
        let variance = squares / self.paths.len() as f64;
        let plan = self.subject.plan;
        let effect = (1.0 - plan.expected()).ln() - (1.0 - plan.win).ln();
        (variance > 0.0).then(|| (4.0 * FIXED * variance / (effect * effect)).ceil() as u64)
    }

    fn limit_ms(&self) -> f64 {
        self.subject.plan.time_limit.as_secs_f64() * 1e3
    }

    /// Runs the plan once.
    pub fn run(&self, scenario: &Scenario, seed: u64) -> Run {
        let mut random = SplitMix64::stream(seed, 0);
        let mut ramp = Ramp::default();
        let first = ramp.start(&self.subject, "", 0, 0);
        let (mut share, mut epoch) = (first.share, first.epoch);
        ramp.push(first);
        let mut tally = Tally::default();
        let (mut connections, mut ramps) = ([0, 0], 0);
        let hours = RampPlan::hours(self.subject.plan.most_time);
        for hour in 0..=hours {
            let from = u128::from(self.week) * u128::from(hour) / u128::from(HOURS_A_WEEK);
            let to = u128::from(self.week) * u128::from(hour + 1) / u128::from(HOURS_A_WEEK);
            let mut cells = vec![[Values::default(); 2]; self.sites.len()];
            for _ in from..to {
                let (site, arm) = self.connect(scenario, hour, share, &mut random, &mut cells);
                // Connections of a site that is not there yet do not exist.
                if site {
                    connections[0] += 1;
                    connections[1] += u64::from(arm);
                }
            }
            for (site, values) in cells.iter().enumerate() {
                if !ramp.waits() && values.iter().any(|one| one.connections > 0) {
                    let place = tally.site(&self.sites[site]);
                    tally.add_values(epoch, place, values);
                    tally.add_whole_hour(epoch, hour);
                }
            }
            tally.until_ms = (hour + 1) * Duration::from_secs(3600).as_millis() as u64;
            if scenario.restarts {
                // Its state is its decisions.
                ramp = Ramp::new(ramp.looks().to_vec());
            }
            let now_ms = tally.until_ms;
            let look = if ramp.waits() {
                ramp.start(&self.subject, "", now_ms, now_ms)
            } else if let Some(look) = ramp.look(&self.subject, &tally, now_ms) {
                look
            } else {
                break;
            };
            (share, epoch) = (look.share, look.epoch);
            ramps += u64::from(look.action == Action::Ramp);
            let action = look.action;
            // A hold leaves nothing behind but its line.
            if action != Action::Hold {
                let number = ramp.looks().len() as u64;
                ramp.push(crate::ramp::Look {
                    look: number,
                    ..look
                });
            }
            if action.is_end() {
                return Run {
                    action,
                    is_wrong: is_wrong(scenario.truth(self.subject.plan), action),
                    ramps,
                    hours: hour + 1,
                    connections,
                };
            }
        }
        // Reached without traffic only: a plan ends by its time.
        Run {
            action: Action::Hold,
            is_wrong: false,
            ramps,
            hours,
            connections,
        }
    }

    /// Draws a connection. Returns whether there is one, and whether it is in the arm.
    fn connect(
        &self,
        scenario: &Scenario,
        hour: u64,
        share: f64,
        random: &mut SplitMix64,
        cells: &mut [[Values; 2]],
    ) -> (bool, bool) {
        let (site, outcomes) = &self.paths[below(random, self.paths.len())];
        if scenario.has_late_site && hour < LATE && *site == self.local {
            return (false, false);
        }
        let is_arm = unit(random) < share;
        let mut outcome = outcomes[usize::from(is_arm && scenario.is_simulated)];
        if is_arm && (!scenario.is_local || *site == self.local) {
            let days = hour as f64 / 24.0;
            let strength = if scenario.fades { (-days).exp2() } else { 1.0 };
            outcome.ttlb_ms = outcome
                .ttlb_ms
                .map(|ttlb| ttlb * scenario.ttlb.powf(strength));
            outcome.loss = outcome
                .loss
                .map(|loss| (loss + scenario.loss * strength).min(1.0));
        }
        let is_slow = outcome.ttlb_ms.is_none_or(|ttlb| ttlb > self.slow_ms);
        if is_arm && scenario.lacks_slow && is_slow {
            return (true, true);
        }
        let is_complete = outcome.ttlb_ms.is_some();
        cells[*site][usize::from(is_arm)].add(
            is_complete,
            outcome.ttlb_ms,
            outcome.loss,
            outcome.rtt,
            self.limit_ms(),
        );
        (true, is_arm)
    }
}

fn is_wrong(truth: Truth, action: Action) -> bool {
    match truth {
        Truth::Null => matches!(action, Action::Win | Action::StopHarm | Action::AlarmRatio),
        Truth::Better => matches!(action, Action::StopHarm | Action::AlarmRatio),
        Truth::Worse => action == Action::Win,
        Truth::Broken => action != Action::AlarmRatio,
        Truth::Unknown => false,
    }
}

/// A uniform variate from zero to one.
fn unit(random: &mut SplitMix64) -> f64 {
    (random.number() >> 11) as f64 / (1_u64 << 53) as f64
}

fn below(random: &mut SplitMix64, limit: usize) -> usize {
    ((u128::from(random.number()) * limit as u128) >> 64) as usize
}
