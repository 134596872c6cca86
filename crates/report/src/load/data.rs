//! The data of a run, and of two servers.

use core::ops::Range;

/// A run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The title, a few words.
    pub title: String,
    /// The conditions. May be empty.
    pub subtitle: String,
    /// The command that made the page. May be empty.
    pub command: String,
    /// The headline.
    pub tiles: Vec<Tile>,
    /// Names and values for the list below the charts.
    pub facts: Vec<(String, String)>,
    /// Warnings about the figures.
    pub warnings: Vec<String>,
    /// Why values are unknown.
    pub notes: Vec<String>,
    /// The width of an interval, in ms.
    pub width_ms: f64,
    /// Consecutive intervals of this width.
    pub intervals: Vec<Interval>,
    /// When the run ended, in ms from the start of the first interval: the last interval may be shorter than the others.
    pub end_ms: f64,
    /// The median over time.
    pub p50: Vec<Step>,
    /// The 99th percentile over time.
    pub p99: Vec<Step>,
    /// One or two distributions of latencies.
    pub distributions: Vec<Distribution>,
}

/// Counts of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Responses.
    pub done: u64,
    /// Requests without a complete response.
    pub errored: u64,
    /// The longest latency that ended here, in ms.
    pub max_ms: Option<f64>,
}

/// Latencies by percentile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// Its name, such as `service time`.
    pub name: String,
    /// Shares from 0 to 1, ascending, each with the latency in ms that this share does not exceed.
    pub points: Vec<(f64, f64)>,
}

/// A value of consecutive intervals: as many as it takes for the value to be known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The intervals, by index.
    pub intervals: Range<usize>,
    /// The value in ms.
    pub ms: f64,
}

/// A figure of the headline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tile {
    /// What it is.
    pub name: String,
    /// The figure, with its unit.
    pub value: String,
    /// What belongs to it, in a few words.
    pub note: String,
}

/// Two servers that were loaded in turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Versus {
    /// The title, a few words.
    pub title: String,
    /// The servers and conditions.
    pub subtitle: String,
    /// The command that made the page.
    pub command: String,
    /// The headline.
    pub tiles: Vec<Tile>,
    /// Warnings about the figures.
    pub warnings: Vec<String>,
    /// Why values are unknown.
    pub notes: Vec<String>,
    /// Up to three series of the ratio of each round, with their names.
    pub ratios: Vec<(String, Vec<Option<f64>>)>,
    /// The header of the table of turns.
    pub header: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}
