//! What a report compares, and how.

/// What is to be compared, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The arm that others are held against. Default: one called `baseline` or `slow-start`, else the first in
    /// the log.
    pub baseline: Option<String>,
    /// Which share of the connections each arm should have, in any unit. Arms that are not named have 1. Default: all the
    /// same.
    pub shares: Vec<(String, f64)>,
    /// An expression of the query language: which lines count. Default: all.
    pub filter: Option<String>,
    /// An expression that gives a line's arm. Default: the key `arm`, else H2O's flags.
    pub arm: Option<String>,
    /// An expression that gives a line's site. Default: the key `site`.
    pub site: Option<String>,
    /// The size in bytes below which an object does not count. Default: 200 000 in production logs, ours or H2O's, and 0 in
    /// those of simulations and where [`Settings::arm`] is given.
    pub min_size: Option<u64>,
    /// Whether `shares` may name arms that no line is of: a short log may lack one.
    pub may_lack_arms: bool,
    /// Where the chance of resampling comes from.
    pub seed: u64,
    /// How many times is resampled. Subgroups get half.
    pub replicates: usize,
    /// How many threads read the log.
    pub threads: usize,
    /// What it is called. Default: the experiment's name.
    pub title: Option<String>,
    /// What was done to get the log and this page, line by line.
    pub commands: Vec<String>,
    /// What else one must know, name by name.
    pub facts: Vec<(String, String)>,
    /// The log's files, as queries name them.
    pub files: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            baseline: None,
            shares: Vec::new(),
            filter: None,
            arm: None,
            site: None,
            min_size: None,
            may_lack_arms: false,
            seed: 1,
            replicates: 2000,
            threads: 1,
            title: None,
            commands: Vec::new(),
            facts: Vec::new(),
            files: Vec::new(),
        }
    }
}
