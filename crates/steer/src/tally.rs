//! Sums of the lines of a connection log, by epoch, site and arm.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use lastbyte_report::statistics::{
    quantiles::Histogram,
    sequence::{Stratum, Sums},
};
use serde::{Deserialize, Serialize};

use crate::{Epoch, Subject};

mod state;
#[cfg(test)]
mod tests;

/// Each site has statistics of its own, and numbers in each look.
const SITES_MAX: usize = 512;
/// Epochs of a tally of lines whose epochs are not known. A ramp has one for each stage and end.
const EPOCHS_MAX: usize = 256;
/// Further hashes of an epoch are not kept.
const CONFIGS_MAX: usize = 16;
const MINUTE_MS: u64 = 60_000;
pub(crate) const HOUR_MS: u64 = 60 * MINUTE_MS;
/// A line this long after the last one that counts has a time that is wrong.
const AHEAD_MS: u64 = 120_000;
/// An epoch is at most so many after the last one: numbers of other ramps differ by the seconds between their starts.
const LATER_MAX: u32 = 16;
/// A larger multiple of the minimum round-trip time is an error of its measurement.
const RTT_MAX: f64 = 1e4;
/// More connections are of no log, and those of many parts could overflow.
pub(crate) const COUNT_MAX: u64 = 1 << 48;

/// The keys of a line that matter; `None` if absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line<'a> {
    /// The experiment.
    pub experiment: Option<&'a str>,
    /// The arm.
    pub arm: Option<&'a str>,
    /// The site.
    pub site: Option<&'a str>,
    /// The hash of the server's configuration, with the epoch behind `-`.
    pub config: Option<&'a str>,
    /// When it was written, in milliseconds since the Unix epoch.
    pub time_ms: Option<u64>,
    /// Bytes of the response.
    pub size: Option<u64>,
    /// Whether the transfer is complete.
    pub is_complete: Option<bool>,
    /// Time to last byte in milliseconds.
    pub ttlb_ms: Option<f64>,
    /// Packets sent.
    pub sent: Option<f64>,
    /// Packets lost.
    pub lost: Option<f64>,
    /// The minimum and the smoothed round-trip time in milliseconds.
    pub rtt_ms: [Option<f64>; 2],
}

/// Numbers of lines that do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ignored {
    /// Of another experiment, or without one.
    pub other_experiment: u64,
    /// Of an epoch that the ramp did not have, or without one.
    pub other_epoch: u64,
    /// Of another arm.
    pub other_arm: u64,
    /// Without a time, or too new for this look.
    pub without_time: u64,
    /// Of the future: the clock of their server is ahead.
    #[serde(default)]
    pub ahead: u64,
    /// No JSON objects, as of a server that was killed while it wrote.
    #[serde(default)]
    pub unreadable: u64,
    /// Of responses that are too short.
    pub short: u64,
}

/// The values of an arm in a stratum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Values {
    /// Number of connections.
    pub connections: u64,
    /// Logarithms of the time to last byte in milliseconds.
    pub ttlb: Sums,
    /// Shares of lost packets.
    pub loss: Sums,
    /// Logarithms of the smoothed round-trip time as a multiple of the minimum.
    pub rtt: Sums,
    /// One for each incomplete transfer, and zero for each complete one.
    pub incomplete: Sums,
}

impl Values {
    /// Adds a connection. An incomplete transfer has the time of the limit. `rtt` is the smoothed round-trip time as a multiple of the
    /// minimum.
    pub fn add(
        &mut self,
        is_complete: bool,
        ttlb_ms: Option<f64>,
        loss: Option<f64>,
        rtt: Option<f64>,
        limit_ms: f64,
    ) {
        self.connections += 1;
        self.incomplete.add(f64::from(u8::from(!is_complete)));
        if let Some(ttlb) = counted_ttlb(is_complete, ttlb_ms, limit_ms) {
            self.ttlb.add(ttlb.ln());
        }
        if let Some(loss) = loss.filter(|loss| (0.0..=1.0).contains(loss)) {
            self.loss.add(loss);
        }
        if let Some(rtt) = rtt.filter(|rtt| (1.0..=RTT_MAX).contains(rtt)) {
            self.rtt.add(rtt.ln());
        }
    }

    fn merge(&mut self, other: &Self) {
        self.connections += other.connections;
        self.ttlb.merge(&other.ttlb);
        self.loss.merge(&other.loss);
        self.rtt.merge(&other.rtt);
        self.incomplete.merge(&other.incomplete);
    }
}

/// The smoothed round-trip time as a multiple of the minimum, of a line that has both. Whole milliseconds of less than one are not known.
pub fn rtt_ratio([minimum, smoothed]: [Option<f64>; 2]) -> Option<f64> {
    let (minimum, smoothed) = minimum.zip(smoothed)?;
    (minimum > 0.0).then(|| smoothed / minimum)
}

/// The time of a connection in milliseconds, as it counts.
fn counted_ttlb(is_complete: bool, ttlb_ms: Option<f64>, limit_ms: f64) -> Option<f64> {
    let ttlb = if is_complete { ttlb_ms } else { Some(limit_ms) };
    let ttlb = ttlb.filter(|ttlb| ttlb.is_finite() && *ttlb >= 0.0)?;
    // Logs have whole milliseconds.
    Some(ttlb.clamp(0.5, limit_ms))
}

/// What is known of lines up to a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// The time of the newest line that counts, in milliseconds since the Unix epoch.
    pub until_ms: u64,
    /// Lines that do not count.
    pub ignored: Ignored,
    sites: Vec<String>,
    cells: BTreeMap<(u32, usize), [Values; 2]>,
    /// Times to last byte in milliseconds, by epoch.
    times: BTreeMap<u32, [Histogram; 2]>,
    /// Hours with lines, by epoch: since it began, if that is known. Each has the times of its first and its last line, in milliseconds
    /// since the Unix epoch.
    hours: BTreeMap<u32, BTreeMap<u64, [u64; 2]>>,
    /// The time of the newest line, by epoch.
    newest: BTreeMap<u32, u64>,
    configs: BTreeMap<u32, BTreeSet<String>>,
    /// The last epoch after those of the ramp.
    later_epoch: Option<u32>,
}

impl Tally {
    /// Counts a line that was written at `now_ms` at the latest. Lines of other epochs than these do not count. Without epochs, all
    /// may count: see [`Tally::of_epochs`]. Returns the epoch of a line that counts.
    pub fn add(
        &mut self,
        line: &Line<'_>,
        subject: &Subject<'_>,
        epochs: Option<&[Epoch]>,
        now_ms: u64,
    ) -> Option<u32> {
        if line.experiment != Some(subject.name) {
            self.ignored.other_experiment += 1;
            return None;
        }
        let number = line.config.and_then(epoch_of);
        let known = |number| {
            let since_ms = epochs.map_or(Some(0), |epochs| since(epochs, number))?;
            let is_new = !self.newest.contains_key(&number);
            (!is_new || !self.has_too_many_epochs()).then_some((number, since_ms))
        };
        let Some((epoch, since_ms)) = number.and_then(known) else {
            self.ignored.other_epoch += 1;
            self.note_later(epochs, number);
            return None;
        };
        let ignored = &mut self.ignored;
        let Some(arm) = subject.arms.iter().position(|arm| line.arm == Some(arm)) else {
            ignored.other_arm += 1;
            return None;
        };
        let latest = now_ms.saturating_add(AHEAD_MS);
        let Some(time) = line.time_ms.filter(|time| *time <= now_ms) else {
            let is_ahead = line.time_ms.is_some_and(|time| time > latest);
            ignored.ahead += u64::from(is_ahead);
            ignored.without_time += u64::from(!is_ahead);
            return None;
        };
        if line.size.unwrap_or(0) < subject.plan.min_size {
            ignored.short += 1;
            return None;
        }
        self.until_ms = self.until_ms.max(time);
        let newest = self.newest.entry(epoch).or_default();
        *newest = time.max(*newest);
        // Otherwise the server's clock is slow.
        if time >= since_ms {
            self.add_hour(epoch, time / HOUR_MS, [time, time]);
        }
        let configs = self.configs.entry(epoch).or_default();
        if let Some(config) = line.config
            && configs.len() < CONFIGS_MAX
            && !configs.contains(config)
        {
            configs.insert(config.to_owned());
        }
        let site = self.site(line.site.unwrap_or_default());
        let loss = line.sent.zip(line.lost).filter(|(sent, _)| *sent > 0.0);
        let limit_ms = subject.plan.time_limit.as_secs_f64() * 1e3;
        let is_complete = line.is_complete.unwrap_or(line.ttlb_ms.is_some());
        if let Some(ttlb) = counted_ttlb(is_complete, line.ttlb_ms, limit_ms) {
            self.times.entry(epoch).or_default()[arm].add(ttlb);
        }
        self.cells.entry((epoch, site)).or_default()[arm].add(
            is_complete,
            line.ttlb_ms,
            loss.map(|(sent, lost)| lost / sent),
            rtt_ratio(line.rtt_ms),
            limit_ms,
        );
        Some(epoch)
    }

    /// Adds the lines of a later part of the same log.
    pub fn merge(&mut self, other: &Self) {
        self.until_ms = self.until_ms.max(other.until_ms);
        let (ours, theirs) = (&mut self.ignored, &other.ignored);
        ours.other_experiment += theirs.other_experiment;
        ours.other_epoch += theirs.other_epoch;
        ours.other_arm += theirs.other_arm;
        ours.without_time += theirs.without_time;
        ours.ahead += theirs.ahead;
        ours.unreadable += theirs.unreadable;
        ours.short += theirs.short;
        self.later_epoch = self.later_epoch.max(other.later_epoch);
        for ((epoch, site), values) in &other.cells {
            let site = self.site(&other.sites[*site]);
            self.add_values(*epoch, site, values);
        }
        for (epoch, times) in &other.times {
            let ours = self.times.entry(*epoch).or_default();
            for (ours, theirs) in ours.iter_mut().zip(times) {
                ours.merge(theirs);
            }
        }
        for (epoch, hours) in &other.hours {
            for (hour, times) in hours {
                self.add_hour(*epoch, *hour, *times);
            }
        }
        for (epoch, newest) in &other.newest {
            let ours = self.newest.entry(*epoch).or_default();
            *ours = (*newest).max(*ours);
        }
        for (epoch, configs) in &other.configs {
            let ours = self.configs.entry(*epoch).or_default();
            for config in configs {
                if ours.len() < CONFIGS_MAX {
                    ours.insert(config.clone());
                }
            }
        }
    }

    /// The sites beyond those that can be told apart. A caller refuses such lines.
    pub const fn excess_sites(&self) -> usize {
        self.sites.len().saturating_sub(SITES_MAX)
    }

    /// Whether epochs that are not known yet do not count any more, for want of room.
    pub fn has_too_many_epochs(&self) -> bool {
        self.newest.len() >= EPOCHS_MAX
    }

    /// The lines of these epochs. Those of other epochs do not count.
    #[must_use]
    pub fn of_epochs(mut self, epochs: &[Epoch]) -> Self {
        let is_known = |number: u32| since(epochs, number).is_some();
        let numbers: Vec<u32> = self.newest.keys().copied().collect();
        for number in numbers {
            self.note_later(Some(epochs), Some(number));
        }
        for ((epoch, _), values) in &self.cells {
            if !is_known(*epoch) {
                self.ignored.other_epoch += values[0].connections + values[1].connections;
            }
        }
        self.cells.retain(|(epoch, _), _| is_known(*epoch));
        self.times.retain(|epoch, _| is_known(*epoch));
        self.configs.retain(|epoch, _| is_known(*epoch));
        self.newest.retain(|epoch, _| is_known(*epoch));
        self.hours.retain(|epoch, _| is_known(*epoch));
        for (epoch, hours) in &mut self.hours {
            let since_ms = since(epochs, *epoch).unwrap_or(0);
            hours.retain(|_, [_, last]| *last >= since_ms);
            for [first, _] in hours.values_mut() {
                *first = since_ms.max(*first);
            }
        }
        self.until_ms = self.newest.values().copied().max().unwrap_or(0);
        self
    }

    /// The index of a site.
    pub(crate) fn site(&mut self, name: &str) -> usize {
        if let Some(known) = self.sites.iter().position(|site| site == name) {
            return known;
        }
        self.sites.push(name.to_owned());
        self.sites.len() - 1
    }

    pub(crate) fn add_values(&mut self, epoch: u32, site: usize, values: &[Values; 2]) {
        let cell = self.cells.entry((epoch, site)).or_default();
        for (ours, theirs) in cell.iter_mut().zip(values) {
            ours.merge(theirs);
        }
    }

    fn add_hour(&mut self, epoch: u32, hour: u64, [first, last]: [u64; 2]) {
        let hours = self.hours.entry(epoch).or_default();
        let times = hours.entry(hour).or_insert([first, last]);
        *times = [first.min(times[0]), last.max(times[1])];
    }

    /// Notes an epoch that comes after the last one of a ramp.
    fn note_later(&mut self, epochs: Option<&[Epoch]>, number: Option<u32>) {
        let last = epochs.and_then(<[Epoch]>::last);
        if let Some((last, number)) = last.zip(number)
            && (1..=LATER_MAX).contains(&number.saturating_sub(last.number))
        {
            self.later_epoch = self.later_epoch.max(Some(number));
        }
    }

    /// The last epoch of a line that comes after those of the ramp: decisions are missing.
    pub const fn later_epoch(&self) -> Option<u32> {
        self.later_epoch
    }

    /// Counts lines that are not JSON objects.
    pub const fn add_unreadable(&mut self, count: u64) {
        self.ignored.unreadable += count;
    }

    /// Adds an hour with lines until its end.
    pub(crate) fn add_whole_hour(&mut self, epoch: u32, hour: u64) {
        let end = (hour + 1) * HOUR_MS;
        self.add_hour(epoch, hour, [hour * HOUR_MS, end]);
        self.newest.insert(epoch, end);
        self.until_ms = self.until_ms.max(end);
    }

    /// Hours with lines of an epoch.
    pub(crate) fn hours(&self, epoch: u32) -> u64 {
        self.hours.get(&epoch).map_or(0, BTreeMap::len) as u64
    }

    /// The time in which an epoch had lines: its hours with lines, where those beside an hour without lines count from the minute of their
    /// first line, or until that of their last one.
    pub(crate) fn covered(&self, epoch: u32) -> Duration {
        let hours = self.hours.get(&epoch);
        let covered = hours.into_iter().flatten().map(|(hour, [first, last])| {
            let has_lines = |hour: u64| hours.is_some_and(|hours| hours.contains_key(&hour));
            let has_before = hour.checked_sub(1).is_some_and(has_lines);
            let from = if has_before {
                hour * 60
            } else {
                first / MINUTE_MS
            };
            let end = (hour + 1) * 60;
            let until = if has_lines(hour + 1) {
                end
            } else {
                end.min(last / MINUTE_MS + 1)
            };
            (until - from) * MINUTE_MS
        });
        Duration::from_millis(covered.sum())
    }

    /// Hours with lines of any epoch.
    pub(crate) fn all_hours(&self) -> u64 {
        let all: BTreeSet<&u64> = self.hours.values().flat_map(BTreeMap::keys).collect();
        all.len() as u64
    }

    /// Hashes of configurations on lines of an epoch.
    pub(crate) fn configs(&self, epoch: u32) -> Vec<String> {
        let configs = self.configs.get(&epoch);
        configs.map_or(Vec::new(), |configs| configs.iter().cloned().collect())
    }

    /// The number of connections of baseline and arm in an epoch, or in all.
    pub fn connections(&self, epoch: Option<u32>) -> [u64; 2] {
        let mut counts = [0; 2];
        for ((number, _), values) in &self.cells {
            if epoch.is_none_or(|epoch| epoch == *number) {
                counts[0] += values[0].connections;
                counts[1] += values[1].connections;
            }
        }
        counts
    }

    /// The number of connections of baseline and arm by site.
    pub fn by_site(&self) -> BTreeMap<String, [u64; 2]> {
        let mut sites: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for ((_, site), values) in &self.cells {
            let counts = sites.entry(self.sites[*site].clone()).or_default();
            counts[0] += values[0].connections;
            counts[1] += values[1].connections;
        }
        sites
    }

    /// The times to last byte of baseline and arm in an epoch, in milliseconds.
    pub(crate) fn times(&self, epoch: u32) -> Option<&[Histogram; 2]> {
        self.times.get(&epoch)
    }

    /// The indices of sites.
    pub(crate) fn sites(&self) -> core::ops::Range<usize> {
        0..self.sites.len()
    }

    pub(crate) fn name(&self, site: usize) -> &str {
        self.sites.get(site).map_or("", String::as_str)
    }

    /// The cells of an epoch and a site, or of all.
    pub(crate) fn cells(
        &self,
        epoch: Option<u32>,
        site: Option<usize>,
    ) -> impl Iterator<Item = &[Values; 2]> {
        let cells = self.cells.iter().filter(move |((number, place), _)| {
            epoch.is_none_or(|epoch| epoch == *number) && site.is_none_or(|site| site == *place)
        });
        cells.map(|(_, values)| values)
    }

    /// The strata of a measure.
    pub(crate) fn strata(
        &self,
        epoch: Option<u32>,
        site: Option<usize>,
        of: fn(&Values) -> Sums,
    ) -> impl Iterator<Item = Stratum> {
        self.cells(epoch, site).map(move |values| Stratum {
            control: of(&values[0]),
            arm: of(&values[1]),
        })
    }
}

/// When an epoch began, in milliseconds since 1970. `None` if it is not one of these.
fn since(epochs: &[Epoch], number: u32) -> Option<u64> {
    let epoch = epochs.iter().find(|one| one.number == number)?;
    Some(epoch.since_ms)
}

/// The epoch of a configuration: the number behind the last `-`.
fn epoch_of(config: &str) -> Option<u32> {
    let (_, epoch) = config.rsplit_once('-')?;
    epoch.parse().ok()
}
