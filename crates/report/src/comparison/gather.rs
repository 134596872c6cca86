//! From a log to counts, in one pass: histograms of the time to last byte by arm, site and size, and of other measures.
//!
//! Memory grows with the number of distinct values, not with the number of lines. The values of paired connections are kept
//! as well (about 370 bytes per pair of four).

use core::ops::ControlFlow;
use std::collections::{BTreeMap, BTreeSet};

use lastbyte_query::{AbsentKey, Input, Value};

use super::{
    copies::{Copies, CopyFinder},
    error::Error,
    neighbours::{NeighbourCounts, NeighbourStats},
    parts::{FLOW_CONTROL, PartCounts, Times},
    queries::{self, Bin, Column, Dialect},
    rules::LeftOut,
    settings::Settings,
    state::{
        self, NEVER_MS, Presence, excluding, is_unknown, no_values, of_expressions, value, whole,
    },
};
use crate::statistics::{Counts, bootstrap::Member};

/// More arms than this indicate a mistake in the expression for the arm.
const ARMS_MAX: usize = 16;
/// Further sites are counted together as [`OTHER_SITES`].
pub(super) const SITES_MAX: usize = 64;
pub(super) const OTHER_SITES: &str = "(other sites)";
/// With lines of more hours than this, a year or more, connections are not counted by hour.
const HOURS_MAX: usize = 10_000;
const HOUR_MS: f64 = 3_600_000.0;
/// The number of groups after which it is decided whether connections are paired.
const PAIRS_PROBED: usize = 4096;

/// The number of occurrences of each value.
pub(super) type Histogram = BTreeMap<u64, u64>;

/// Numbers of connections by hour and arm.
pub(super) type Hours = BTreeMap<Option<i64>, BTreeMap<usize, u64>>;

/// Times to last byte of one arm, site and size.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// In microseconds: logs may have fractions of a millisecond.
    pub(super) ttlb: Histogram,
    pub(super) unfinished: u64,
}

/// The values of several cells.
pub(super) fn merged<'a>(cells: impl Iterator<Item = &'a Cell>) -> Counts {
    let (mut counts, mut unfinished) = (Histogram::new(), 0);
    for cell in cells {
        for (value, count) in &cell.ttlb {
            *counts.entry(*value).or_insert(0) += count;
        }
        unfinished += cell.unfinished;
    }
    Counts::new(&counts, unfinished)
}

/// Other measures of an arm.
#[derive(Clone, Debug, Default)]
pub(super) struct Measures {
    pub(super) handshake: Histogram,
    pub(super) ttfb: Histogram,
    pub(super) episodes: Histogram,
    pub(super) exits_kb: Histogram,
    pub(super) probe_timeouts: Histogram,
}

/// A group of connections with one seed, one in each arm.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) seed: u64,
    pub(super) site: usize,
    pub(super) bin: Option<usize>,
    /// Times to last byte in microseconds, by arm.
    pub(super) members: Vec<Member>,
    /// Hundredths of a percent of packets lost, by arm.
    pub(super) losses: Vec<Member>,
}

/// The counts of a log.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) arms: Vec<String>,
    pub(super) sites: Vec<String>,
    pub(super) dialect: Dialect,
    pub(super) experiment: Option<String>,
    /// By arm, site and bin; `None` is a size outside of all bins.
    pub(super) cells: BTreeMap<(usize, usize, Option<usize>), Cell>,
    /// Hundredths of a percent of packets lost, by arm and site.
    pub(super) loss: BTreeMap<(usize, usize), Histogram>,
    pub(super) measures: Vec<Measures>,
    pub(super) parts: PartCounts,
    pub(super) neighbours: NeighbourCounts,
    /// The pairs, if the connections are paired.
    pub(super) blocks: Option<Vec<Block>>,
    /// Why connections are not paired although several arms have the same seeds.
    pub(super) unpaired: Option<Unpaired>,
    /// Connections without a value that puts them into a bin, by arm.
    pub(super) without_size: BTreeMap<usize, u64>,
    /// Connections by hour since the Unix epoch and by arm; `None` is a line without a time. None at all if there are too many
    /// hours.
    pub(super) hours: Option<Hours>,
    /// Lines of production logs that are left out.
    pub(super) left_out: LeftOut,
    /// Lines without an arm.
    pub(super) without_arm: u64,
    /// Lines without a value of a metric other than the time to last byte, by arm.
    pub(super) without_value: BTreeMap<String, u64>,
    /// Lines that were read before.
    pub(super) copies: Option<Copies>,
    /// Why the log could not be read to its end.
    pub(super) trouble: Option<String>,
    /// The keys of the settings' expressions that no line has.
    pub(super) absent: Vec<AbsentKey>,
    /// Lines with more lost packets than sent ones, or fewer than none.
    pub(super) impossible_losses: u64,
    /// Lines with a time of a transfer that is not complete.
    pub(super) contradictions: u64,
    /// The first state that begins like an earlier one, where that may be chance.
    pub(super) repeated: Option<String>,
}

/// Reads all inputs. Returns the names of the logs of states as well.
pub(super) fn tally(
    inputs: Vec<Input>,
    settings: &Settings,
) -> Result<(Tally, Vec<String>), Error> {
    state::check_expressions(settings)?;
    let mut counter = Counter::new(settings);
    if settings.is_merge {
        let (files, repeated) = state::read(inputs, settings, |file, row| counter.add(file, row))?;
        counter.presence.check(settings, None, &[])?;
        let mut tally = counter.finish(None, Vec::new())?;
        tally.repeated = repeated;
        return Ok((tally, files));
    }
    let outcome = state::rows(inputs, settings, |file, row| counter.add(file, row))?;
    let trouble = state::trouble(&outcome.errors);
    if trouble.is_none() {
        let rows = Some(outcome.rows);
        counter.presence.check(settings, rows, &outcome.absent)?;
    }
    let absent = of_expressions(settings, &outcome.absent)?;
    let has_no_times = settings.metric.is_ttlb()
        && trouble.is_none()
        && outcome.absent.iter().any(|key| key.path == ["ttlb"]);
    let tally = counter.finish(trouble, absent)?;
    if has_no_times {
        return Err(Error::NoTimes);
    }
    Ok((tally, settings.files.clone()))
}

/// The limits of `count` bins of about as many connections each.
pub(super) fn bins(
    inputs: Vec<Input>,
    settings: &Settings,
    count: usize,
) -> Result<Vec<f64>, Error> {
    state::check_expressions(settings)?;
    let query = state::compile(&queries::bin_limits(settings, count), settings)?;
    let mut limits: Vec<f64> = Vec::new();
    // A log that cannot be read to its end is reported by the pass that counts it.
    let (mut has_values, mut is_counting) = (false, false);
    let outcome = query.for_each(inputs, |row| {
        if let [of_counting, lines] = row {
            has_values |= lines.as_f64() > Some(0.0);
            if let Value::Array(values) = of_counting {
                is_counting |= values.iter().any(|value| !value.is_null());
                limits = values.iter().filter_map(Value::as_f64).collect();
            }
        }
        ControlFlow::Continue(())
    });
    if let Some(by) = &settings.by
        && !has_values
        && outcome.rows > 0
        && outcome.errors.is_empty()
        && excluding(settings).is_none()
    {
        return Err(no_values("by", by, outcome.rows, settings, &outcome.absent));
    }
    // No line counts: the pass that counts has the reason.
    if has_values && !is_counting {
        return Ok(limits);
    }
    // The last bin has the largest value.
    let last = limits.pop().map(|last| last.floor() + 1.0);
    limits.dedup();
    limits.extend(last);
    if limits.len() < 3 {
        return Err(Error::Bins(
            settings
                .by
                .clone()
                .unwrap_or_else(|| "content_length".to_owned()),
        ));
    }
    Ok(limits)
}

/// Counts the rows of the reading query.
struct Counter {
    /// The key whose values are compared.
    metric: String,
    is_ttlb: bool,
    bins: Vec<Bin>,
    arms: Names,
    sites: Names,
    /// `None` for lines without one.
    experiments: BTreeSet<Option<String>>,
    /// Whether a line without an experiment cannot be compared with those of one: its arm is not an expression of the user.
    needs_experiment: bool,
    named: u64,
    h2o: u64,
    /// Lines with an invalid `ttlb`, or an invalid value of another metric.
    not_times: u64,
    /// The first of them.
    not_time: Option<String>,
    presence: Presence,
    pairing: Pairing,
    copies: CopyFinder,
    /// Without what is known only at the end.
    tally: Tally,
}

/// Names in the order in which they appeared.
#[derive(Default)]
struct Names {
    places: BTreeMap<String, usize>,
    names: Vec<String>,
}

impl Names {
    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.names.len();
        self.places.insert(name.to_owned(), place);
        self.names.push(name.to_owned());
        place
    }
}

/// Detects whether consecutive lines have the same seed and different arms.
#[derive(Default)]
struct Pairing {
    blocks: Vec<Block>,
    seed: Option<u64>,
    /// The number of seeds that several arms have.
    shared: usize,
    /// Why connections are not paired, as far as a line shows it.
    unpaired: Option<Unpaired>,
}

/// Why connections with the same seed in several arms are not compared as pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unpaired {
    /// A line has no seed.
    NoSeed,
    /// An arm has two lines of a seed.
    Twice { arm: usize, seed: u64 },
    /// The lines of a seed are of two sites, or groups.
    Sites { seed: u64, sites: [usize; 2] },
    /// More than 5 % of the seeds are of one arm only.
    Alone { seeds: usize, of: usize },
}

impl Pairing {
    fn add(
        &mut self,
        seed: Option<u64>,
        arm: usize,
        site: usize,
        bin: Option<usize>,
        member: Member,
        loss: Member,
    ) {
        if self.unpaired.is_none() {
            self.unpaired = self.problem(seed, arm, site, bin, member, loss);
            if self.unpaired.is_some() {
                self.blocks = Vec::new();
            }
        }
    }

    /// Adds a line. Returns why it cannot be of a pair.
    fn problem(
        &mut self,
        seed: Option<u64>,
        arm: usize,
        site: usize,
        bin: Option<usize>,
        member: Member,
        loss: Member,
    ) -> Option<Unpaired> {
        let Some(seed) = seed else {
            return Some(Unpaired::NoSeed);
        };
        if self.seed != Some(seed) {
            self.seed = Some(seed);
            self.blocks.push(Block {
                seed,
                site,
                bin,
                members: Vec::new(),
                losses: Vec::new(),
            });
        }
        let is_enough = self.blocks.len() == PAIRS_PROBED;
        let block = self.blocks.last_mut()?;
        if block.members.len() <= arm {
            block.members.resize(arm + 1, Member::Absent);
            block.losses.resize(arm + 1, Member::Absent);
        }
        let twice = block.members[arm] != Member::Absent;
        let present = block.members.iter().filter(|one| **one != Member::Absent);
        self.shared += usize::from(!twice && present.count() == 1);
        let sites = [block.site, site];
        if twice {
            return Some(Unpaired::Twice { arm, seed });
        }
        if site != block.site {
            return Some(Unpaired::Sites { seed, sites });
        }
        (block.members[arm], block.losses[arm]) = (member, loss);
        is_enough.then(|| self.alone()).flatten()
    }

    /// Whether too many seeds are of one arm only. The log may end within the last group.
    fn alone(&self) -> Option<Unpaired> {
        let of = self.blocks.len();
        let is_paired = self.shared > 0 && self.shared * 20 >= of.saturating_sub(1) * 19;
        let seeds = of - self.shared;
        (!is_paired).then_some(Unpaired::Alone { seeds, of })
    }

    /// The pairs, or why there are none; neither if no two arms have the same seed.
    fn finish(self) -> (Option<Vec<Block>>, Option<Unpaired>) {
        match self.unpaired.clone().or_else(|| self.alone()) {
            None => (Some(self.blocks), None),
            // A seed that all lines have is of something else.
            Some(Unpaired::Twice { .. }) if self.shared < 2 => (None, None),
            some => (None, some.filter(|_| self.shared > 0)),
        }
    }
}

impl Counter {
    fn new(settings: &Settings) -> Self {
        Self {
            metric: if settings.metric.is_ttlb() {
                "ttlb".to_owned()
            } else {
                settings.metric.name.clone()
            },
            is_ttlb: settings.metric.is_ttlb(),
            bins: queries::bins(settings),
            arms: Names::default(),
            sites: Names::default(),
            experiments: BTreeSet::new(),
            needs_experiment: settings.arm.is_none(),
            named: 0,
            h2o: 0,
            not_times: 0,
            not_time: None,
            presence: Presence::default(),
            pairing: Pairing::default(),
            copies: CopyFinder::new(settings),
            tally: Tally {
                hours: Some(Hours::new()),
                ..Tally::default()
            },
        }
    }

    /// The arm of a line that counts.
    fn arm(&mut self, named: &Value, h2o: &Value, rules: &Value) -> Option<String> {
        let arm = match (named, h2o) {
            (Value::Null, Value::Null) => {
                self.tally.without_arm += 1;
                return None;
            }
            (Value::Null, h2o) => {
                self.h2o += 1;
                name(h2o)
            }
            (named, _) => {
                self.named += 1;
                name(named)
            }
        };
        let rules = whole(rules).map_or(0, |rules| rules as usize);
        self.tally.left_out.add(&arm, rules);
        (rules == 0).then_some(arm)
    }

    /// Counts a row. Returns an error if the log cannot be used.
    fn add(&mut self, file: &str, row: &[Value]) -> Result<(), Error> {
        let of = |column| value(row, column);
        let whole = |column| whole(of(column));
        self.presence.add(row, self.is_ttlb);
        let Some(arm) = self.arm(of(Column::Named), of(Column::H2oArm), of(Column::Rules)) else {
            return Ok(());
        };
        self.copies.add(file, row);
        self.tally.contradictions +=
            u64::from(self.is_ttlb && *of(Column::Value) == Value::Bool(false));
        let ttlb = match Ttlb::of(of(Column::Value), self.is_ttlb) {
            Ttlb::Micros(micros) => Some(micros),
            Ttlb::Never if !self.is_ttlb => {
                *self.tally.without_value.entry(arm).or_insert(0) += 1;
                return Ok(());
            }
            Ttlb::Never => None,
            Ttlb::NotATime => {
                self.not_times += 1;
                self.not_time
                    .get_or_insert_with(|| of(Column::Value).to_string());
                return Ok(());
            }
        };
        let arm = self.arms.place(&arm);
        if arm >= ARMS_MAX {
            return Err(Error::TooManyArms(
                self.arms.names.iter().take(4).cloned().collect(),
            ));
        }
        if self.tally.measures.len() <= arm {
            self.tally.measures.resize_with(arm + 1, Measures::default);
        }
        let site = self.site(of(Column::Site));
        let value = of(Column::Bin).as_f64();
        *self.tally.without_size.entry(arm).or_insert(0) += u64::from(value.is_none());
        let bin = value.and_then(|value| {
            let mut bins = self.bins.iter();
            bins.position(|bin| (bin.from..bin.to).contains(&value))
        });
        let cell = self.tally.cells.entry((arm, site, bin)).or_default();
        match ttlb {
            Some(ttlb) => *cell.ttlb.entry(ttlb).or_insert(0) += 1,
            None => cell.unfinished += 1,
        }
        self.count_hour(arm, of(Column::Time));
        let loss = of(Column::Loss).as_f64();
        let possible = loss.filter(|loss| (0.0..=100.0).contains(loss));
        self.tally.impossible_losses += u64::from(loss.is_some() && possible.is_none());
        let loss = possible.map(|loss| (loss * 100.0).round() as u64);
        if let Some(hundredths) = loss {
            *self
                .tally
                .loss
                .entry((arm, site))
                .or_default()
                .entry(hundredths)
                .or_insert(0) += 1;
        }
        self.measure(arm, row);
        if let (Some(ttlb), Some((times, is_split))) = (ttlb, times(of(Column::Parts))) {
            self.tally
                .parts
                .add(arm, ttlb, whole(Column::Seed), times, is_split);
        }
        if let Some((kind, stats)) = neighbour(of(Column::Neighbour)) {
            self.tally
                .neighbours
                .add(arm, whole(Column::Seed), kind, stats);
        }
        let experiment = of(Column::Experiment).as_str();
        if experiment.is_some() || self.needs_experiment {
            self.experiments.insert(experiment.map(str::to_owned));
            if self.experiments.len() > 1 {
                return Err(Error::SeveralExperiments(
                    self.experiments.iter().cloned().collect(),
                ));
            }
        }
        let member = ttlb.map_or(Member::Unfinished, Member::Value);
        // A connection without packets has no loss, and its pair none either.
        let loss = loss.map_or(Member::Absent, Member::Value);
        self.pairing
            .add(whole(Column::Seed), arm, site, bin, member, loss);
        Ok(())
    }

    fn count_hour(&mut self, arm: usize, time: &Value) {
        let Some(hours) = &mut self.tally.hours else {
            return;
        };
        let time = time
            .as_f64()
            .filter(|ms| (0.0..NEVER_MS * 10.0).contains(ms));
        let hour = time.map(|ms| (ms / HOUR_MS).floor() as i64);
        *hours.entry(hour).or_default().entry(arm).or_insert(0) += 1;
        if hours.len() > HOURS_MAX {
            self.tally.hours = None;
        }
    }

    /// The index of a site.
    fn site(&mut self, value: &Value) -> usize {
        let site = match value {
            Value::Null => String::new(),
            site => name(site),
        };
        let is_new = !self.sites.places.contains_key(&site);
        if is_new && self.sites.names.len() >= SITES_MAX {
            self.sites.place(OTHER_SITES)
        } else {
            self.sites.place(&site)
        }
    }

    /// Counts the measures beside TTLB and loss.
    fn measure(&mut self, arm: usize, row: &[Value]) {
        let whole = |column| whole(value(row, column));
        let handshake = if value(row, Column::Named).is_null() {
            whole(Column::Confirmed)
        } else {
            whole(Column::Handshake)
        };
        let measures = &mut self.tally.measures[arm];
        for (histogram, value) in [
            (&mut measures.handshake, handshake),
            (&mut measures.ttfb, whole(Column::Ttfb)),
            (&mut measures.episodes, whole(Column::Episodes)),
            (&mut measures.exits_kb, whole(Column::ExitKb)),
            (&mut measures.probe_timeouts, whole(Column::ProbeTimeouts)),
        ] {
            if let Some(value) = value {
                *histogram.entry(value).or_insert(0) += 1;
            }
        }
    }

    fn finish(self, trouble: Option<String>, absent: Vec<AbsentKey>) -> Result<Tally, Error> {
        if let Some(first) = self.not_time {
            return Err(Error::NotATime {
                metric: self.metric,
                lines: self.not_times,
                first,
            });
        }
        if self.tally.cells.is_empty() {
            return Err(match trouble {
                Some(trouble) if !trouble.is_empty() => Error::NotALog(trouble),
                _ if self.presence.lines == 0 => Error::Empty,
                _ => Error::NoArms {
                    lines: self.presence.lines,
                    is_h2o: self.h2o > 0,
                    rules: self.tally.left_out.rules(),
                },
            });
        }
        if self.named > 0 && self.h2o > 0 {
            return Err(Error::MixedLines {
                named: self.named,
                h2o: self.h2o,
            });
        }
        let copies = self.copies.finish();
        if let Some(copies) = copies.as_ref().filter(|copies| copies.are_many()) {
            return Err(Error::Copies(copies.sentence()));
        }
        let mut tally = self.tally;
        tally.copies = copies;
        (tally.blocks, tally.unpaired) = self.pairing.finish();
        (tally.arms, tally.sites) = (self.arms.names, self.sites.names);
        tally
            .measures
            .resize_with(tally.arms.len(), Measures::default);
        if self.h2o > 0 {
            tally.dialect = Dialect::H2o;
        }
        tally.experiment = self.experiments.into_iter().flatten().next();
        (tally.trouble, tally.absent) = (trouble, absent);
        Ok(tally)
    }
}

/// A `ttlb` of a log, in milliseconds there.
enum Ttlb {
    Micros(u64),
    /// Absent, one of the marks for "unknown", or of a transfer that is not complete.
    Never,
    NotATime,
}

/// Values are counted in thousandths, and those above are not exact.
const VALUE_MAX: f64 = 1e15;

impl Ttlb {
    fn of(value: &Value, is_ttlb: bool) -> Self {
        match value.as_f64() {
            _ if is_unknown(value, is_ttlb) || (is_ttlb && *value == Value::Bool(false)) => {
                Self::Never
            }
            Some(ms) if (0.0..=VALUE_MAX).contains(&ms) => {
                Self::Micros((ms * 1000.0).round() as u64)
            }
            _ => Self::NotATime,
        }
    }
}

/// The parts of a time, if all are known, and whether flow control is apart from the application: older logs do not have it.
fn times(value: &Value) -> Option<(Times, bool)> {
    let Value::Array(values) = value else {
        return None;
    };
    let mut times = Times::default();
    let is_split = !matches!(values.get(FLOW_CONTROL), Some(Value::Null));
    for (part, (time, value)) in times.iter_mut().zip(values).enumerate() {
        if part == FLOW_CONTROL && !is_split {
            continue;
        }
        *time = value.as_f64().filter(|ms| (0.0..NEVER_MS).contains(ms))?;
    }
    Some((times, is_split))
}

/// The name of a neighbour, and its outcome.
fn neighbour(value: &Value) -> Option<(&str, NeighbourStats)> {
    let Value::Array(values) = value else {
        return None;
    };
    let number = |place: usize| {
        let number = values.get(place)?.as_f64()?;
        (0.0..NEVER_MS).contains(&number).then_some(number)
    };
    let stats = NeighbourStats {
        rate: number(1)?,
        delay: number(2),
        loss: number(3).filter(|loss| *loss <= 1.0),
    };
    Some((values.first()?.as_str()?, stats))
}

/// The name that a value stands for.
fn name(value: &Value) -> String {
    match value {
        Value::String(name) => name.clone(),
        other => other.to_string(),
    }
}
