//! What a report compares, and how.

/// What to compare, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The arm that the others are compared with. Default: `baseline` or `slow-start` if there is such an arm, else the first
    /// of the log.
    pub baseline: Option<String>,
    /// The intended share of connections of each arm, in any unit. Arms that are not listed have 1. Default: equal shares.
    pub shares: Vec<(String, f64)>,
    /// Selects lines: an expression of the query language. Default: all lines.
    pub filter: Option<String>,
    /// An expression that gives a line's arm. Default: the key `arm`, else H2O's flags.
    pub arm: Option<String>,
    /// An expression that gives a line's site. Default: the key `site`.
    pub site: Option<String>,
    /// The size in bytes below which objects are left out. Default: 200 000 in production logs, ours or H2O's, and 0 in those
    /// of simulations and where [`Settings::arm`] is given.
    pub min_size: Option<u64>,
    /// Whether `shares` may name arms without lines: a short log may lack an arm.
    pub may_lack_arms: bool,
    /// Random seed of the bootstrap.
    pub seed: u64,
    /// The number of bootstrap resamples. Subgroups have half as many.
    pub replicates: usize,
    /// The number of threads that read the log.
    pub threads: usize,
    /// The title of the page. Default: the experiment's name.
    pub title: Option<String>,
    /// The commands that reproduce the log and the page.
    pub commands: Vec<String>,
    /// Further facts for the page, each with its name.
    pub facts: Vec<(String, String)>,
    /// The names of the log files for the queries on the page.
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
