//! The page loads of a comparison, and their results.

use core::time::Duration;
use std::sync::Arc;

use lastbyte_page::{Kind, Moment, Page, Party, View, is_low_priority};
use lastbyte_report::compare::{LoadKey, LoadTimes};
use lastbyte_sim::PageOutcome;
use lastbyte_units::{SipHash, Time};
use serde_json::{Value, json};

use super::arms::Arm;

/// The parts of a run.
pub(super) struct Setting<'a> {
    pub(super) arms: &'a [Arm],
    /// Their names.
    pub(super) networks: Vec<String>,
    pub(super) pages: &'a [Arc<Page>],
    pub(super) views: &'a [View],
    /// Loads of each page with each arm, network and view.
    pub(super) repeats: u32,
    pub(super) seed: u64,
    /// The network whose waterfalls are kept.
    pub(super) shown: usize,
}

/// A page load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) key: LoadKey,
    pub(super) repeat: u32,
    pub(super) seed: u64,
}

/// The result of a page load.
#[derive(Debug)]
pub(super) struct Loaded {
    /// Until `onload`, until the first render, and the byte index, in ms; `None` if it took too long or a request failed.
    pub(super) outcome_ms: [Option<f64>; 3],
    connections: u32,
    requests: u32,
    pub(super) failed: u32,
    /// Bytes of bodies that were complete at the first render, of responses that HTTP/1.1 may hold back until then.
    low_priority_bytes: Option<u64>,
    pub(super) packets: u64,
    pub(super) bytes: [u64; 2],
    pub(super) drops: u64,
    pub(super) parts: [Sums; PARTS],
    pub(super) bars: Option<Vec<[Option<f64>; 3]>>,
}

/// Times of resources of a kind and a party.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) responses: u32,
    pub(super) first_byte_ms: f32,
    pub(super) last_byte_ms: f32,
}

const PARTS: usize = 2 * Kind::ALL.len();

/// Kind and party at a place of [`Loaded::parts`].
pub(super) const fn part(place: usize) -> (&'static str, &'static str) {
    let party = if place.is_multiple_of(2) {
        "first party"
    } else {
        "third party"
    };
    (Kind::ALL[place / 2].name(), party)
}

impl Setting<'_> {
    /// The number of loads of each page.
    pub(super) fn loads_of_a_page(&self) -> usize {
        self.networks.len() * self.views.len() * self.repeats as usize * self.arms.len()
    }

    /// All page loads, page by page, so that an interrupted run has some pages on all networks.
    pub(super) fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for page in 0..self.pages.len() {
            for network in 0..self.networks.len() {
                for view in 0..self.views.len() {
                    for repeat in 0..self.repeats {
                        // All arms of a page meet the same losses, as far as their packets are the same.
                        let names = json!([
                            self.networks[network],
                            self.pages[page].name,
                            view_name(self.views[view]),
                            repeat
                        ]);
                        let seed = seed_of(self.seed, &names);
                        for arm in 0..self.arms.len() {
                            let key = LoadKey {
                                page,
                                network,
                                arm,
                                view,
                            };
                            jobs.push(Job { key, repeat, seed });
                        }
                    }
                }
            }
        }
        jobs
    }

    /// What is kept of a load.
    pub(super) fn keep(&self, job: &Job, outcome: &PageOutcome) -> Loaded {
        let millis = |span: Option<Duration>| span.map(|span| span.as_secs_f64() * 1e3);
        let page = &self.pages[job.key.page];
        let mut parts = [Sums::default(); PARTS];
        let mut requests = 0;
        for (resource, moment) in page.resources.iter().zip(&outcome.resources) {
            // Resources from the cache have no first byte.
            let Moment {
                requested: Some(requested),
                first_byte: Some(first_byte),
                complete: Some(complete),
                ..
            } = *moment
            else {
                continue;
            };
            requests += 1;
            let kind = Kind::ALL.iter().position(|kind| *kind == resource.kind);
            let is_third = page.hosts[usize::from(resource.host)].party == Party::Third;
            let place = 2 * kind.unwrap_or(0) + usize::from(is_third);
            let sums = &mut parts[place];
            sums.responses += 1;
            sums.first_byte_ms += first_byte.since(requested).as_secs_f32() * 1e3;
            sums.last_byte_ms += complete.since(requested).as_secs_f32() * 1e3;
        }
        // A browser goes on without what failed; a comparison cannot.
        let whole = |span: Option<Duration>| span.filter(|_| outcome.failed == 0);
        let times = [outcome.loaded, outcome.first_render, outcome.byte_index].map(whole);
        let rendered = times[1].map(|span| Time::ZERO + span);
        let low_priority_bytes = rendered.map(|rendered| {
            let all = page.resources.iter().zip(&outcome.resources);
            let early = all.filter(|(resource, moment)| {
                let is_from_network = moment.first_byte.is_some();
                let is_early = moment.complete.is_some_and(|at| at <= rendered);
                is_low_priority(resource.priority.urgency) && is_from_network && is_early
            });
            early.map(|(resource, _)| resource.body).sum()
        });
        let is_shown = job.key.network == self.shown && job.repeat == 0;
        let bars = is_shown.then(|| {
            let millis = |at: Option<Time>| at.map(|at| at.since(Time::ZERO).as_secs_f64() * 1e3);
            let bars = outcome.resources.iter();
            bars.map(|it| [it.requested, it.first_byte, it.complete].map(millis))
                .collect()
        });
        Loaded {
            outcome_ms: times.map(millis),
            connections: outcome.connections,
            requests,
            failed: outcome.failed,
            low_priority_bytes,
            packets: outcome.packets,
            bytes: [outcome.bytes_down, outcome.bytes_up],
            drops: outcome.drops_down,
            parts,
            bars,
        }
    }

    /// A row of loads.ndjson.
    pub(super) fn row(&self, job: &Job, loaded: &Loaded) -> Value {
        let arm = &self.arms[job.key.arm];
        let [load, render, index] = loaded
            .outcome_ms
            .map(|ms| ms.map(|ms| (ms * 1e3).round() / 1e3));
        json!({
            "page": self.pages[job.key.page].name,
            "network": self.networks[job.key.network],
            "arm": arm.name,
            "http": arm.version.name(),
            "view": view_name(self.views[job.key.view]),
            "repeat": job.repeat,
            "load_ms": load,
            "first_render_ms": render,
            "byte_index_ms": index,
            "connections": loaded.connections,
            "responses": loaded.requests,
            "failed": loaded.failed,
            "low_priority_bytes": loaded.low_priority_bytes,
        })
    }
}

impl Loaded {
    pub(super) const fn times(&self, key: LoadKey) -> LoadTimes {
        LoadTimes {
            key,
            load_ms: self.outcome_ms[0],
            render_ms: self.outcome_ms[1],
        }
    }
}

/// The random seed of a load: of what identifies it, not of its place among others.
pub(super) fn seed_of(seed: u64, names: &Value) -> u64 {
    SipHash::new([seed, 0]).hash(names.to_string().as_bytes())
}

/// Parses the name of a view.
pub(super) fn view(text: &str) -> Result<View, String> {
    match text {
        "first" => Ok(View::First),
        "repeat" => Ok(View::Repeat),
        _ => Err(format!(
            "unknown view `{text}` (expected `first` or `repeat`)"
        )),
    }
}

pub(super) const fn view_name(view: View) -> &'static str {
    match view {
        View::First => "first",
        View::Repeat => "repeat",
    }
}
