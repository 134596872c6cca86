//! The data of a run.

/// A run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The title, a few words.
    pub title: String,
    /// The conditions. May be empty.
    pub subtitle: String,
    /// Names and values for the list below the charts.
    pub facts: Vec<(String, String)>,
    /// Warnings about the figures.
    pub warnings: Vec<String>,
    /// The width of an interval, in ms.
    pub width_ms: f64,
    /// Consecutive intervals of this width.
    pub intervals: Vec<Interval>,
    /// When the run ended, in ms from the start of the first interval: the last interval may be shorter than the others.
    pub end_ms: f64,
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
    /// Median of the latencies that ended here, in ms, if there are enough.
    pub p50_ms: Option<f64>,
    /// Their 99th percentile, in ms, if there are enough.
    pub p99_ms: Option<f64>,
    /// The longest, in ms.
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
