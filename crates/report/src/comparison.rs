//! The report of an experiment: which arm is faster, at which percentiles, by how much, and how sure that is.
//!
//! [`Comparison::read`] goes through a connection log once, [`Comparison::html`] is the page, [`Comparison::figures`] are
//! its charts for papers. Logs may be simulated, emulated or of production, ours or H2O's.
//!
//! What is a connection's time if it never ended? Leaving it out would make an arm look better that loses its slowest: so
//! it counts as slower than all that ended, in percentiles and in tests, and as unfinished in a table of its own. Means are
//! of what ended, and say so.
//!
//! | file | owns |
//! |---|---|
//! | `comparison/queries.rs` | the text of all queries, and the bins |
//! | `comparison/gather.rs` | from a log to counts |
//! | `comparison/analysis.rs` | from counts to changes, intervals and tests |
//! | `comparison/words.rs` | what is said of them in sentences |
//! | `comparison/figure.rs` | the charts |
//! | `comparison/page.rs`, `page.css`, `page.js` | the page |

use core::fmt;

use lastbyte_query::Input;

mod analysis;
mod figure;
mod gather;
mod page;
mod queries;
mod tables;
mod words;

use self::analysis::Analysis;
use crate::{raster, scene::Scene, svg};

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

/// An arm in short.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// What it is called.
    pub arm: String,
    /// How many connections it has.
    pub connections: u64,
    /// How many of them have a time to last byte.
    pub completed: u64,
    /// Time to last byte in milliseconds at P25, P50, P75 and P95. `None` where it never came.
    pub ttlb_ms: [Option<f64>; 4],
    /// Packets lost of those sent, in percent: the mean over connections, P50, P90 and P99. `None` where none was sent.
    pub loss_percent: [Option<f64>; 4],
}

/// An experiment, analysed.
#[derive(Debug)]
pub struct Comparison {
    analysis: Analysis,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What to call its file.
    pub name: String,
    scene: Scene,
}

impl Figure {
    /// As XML.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::document(&self.scene)
    }

    /// As pixels, at twice the size, on white. `None` if the encoder has no memory.
    #[must_use]
    pub fn png(&self) -> Option<Vec<u8>> {
        raster::png(&self.scene).ok()
    }
}

impl Comparison {
    /// Reads a log.
    ///
    /// # Errors
    ///
    /// See [`Error`]. A log that cannot be read to its end is no error if something could be read: see
    /// [`Comparison::trouble`].
    pub fn read(inputs: Vec<Input>, settings: Settings) -> Result<Self, Error> {
        let tally = gather::tally(inputs, &settings)?;
        Ok(Self {
            analysis: analysis::analysis(tally, settings)?,
        })
    }

    /// Why not all of the log could be read, if so.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.analysis.trouble.as_deref()
    }

    /// The page: one file that loads nothing.
    #[must_use]
    pub fn html(&self) -> String {
        page::document(&self.analysis)
    }

    /// The charts.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        let figures = figure::all(&self.analysis);
        figures
            .into_iter()
            .map(|(name, scene)| Figure { name, scene })
            .collect()
    }

    /// The numbers, as JSON: what the page shows, for other programs.
    #[must_use]
    pub fn json(&self) -> String {
        page::json(&self.analysis)
    }

    /// The arms in short, the baseline first.
    #[must_use]
    pub fn summary(&self) -> Vec<Summary> {
        let analysis = &self.analysis;
        let arms = analysis.arms.iter().enumerate().map(|(arm, one)| {
            let times = &analysis.groups[0].times[arm];
            let loss = analysis.loss.first().map(|group| &group.loss[arm]);
            let loss_at = |share: f64| {
                let value = loss?.percentile(share)?;
                Some(value as f64 / 100.0)
            };
            Summary {
                arm: one.name.clone(),
                connections: times.total(),
                completed: times.finished(),
                ttlb_ms: [0.25, 0.5, 0.75, 0.95]
                    .map(|share| times.percentile(share).map(|micros| micros as f64 / 1000.0)),
                loss_percent: [
                    loss.and_then(crate::statistics::Counts::mean)
                        .map(|mean| mean / 100.0),
                    loss_at(0.5),
                    loss_at(0.9),
                    loss_at(0.99),
                ],
            }
        });
        arms.collect()
    }

    /// What is significant and what is not, a sentence each.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        words::verdicts(&self.analysis)
    }
}

/// Why there is no report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There are no lines.
    Empty,
    /// It cannot be read as lines of JSON objects: what the query engine said.
    NotALog(String),
    /// No line has an arm.
    NoArms {
        /// How many lines there are.
        lines: u64,
        /// How many of them are H2O's, of connections that take no part in the experiment.
        not_eligible: u64,
        /// How many of them are of `lastbyte serve`, with an object too small to count.
        too_small: u64,
    },
    /// Some lines have a `ttlb` that is no time.
    NotATime {
        /// How many.
        lines: u64,
        /// The first such value, as JSON.
        first: String,
    },
    /// There is one arm, and nothing to hold it against.
    OneArm(String),
    /// More than sixteen arms: these are some.
    TooManyArms(Vec<String>),
    /// There is no such arm.
    UnknownArm {
        /// The arm asked for.
        wanted: String,
        /// Those there are.
        arms: Vec<String>,
    },
    /// Lines of several experiments.
    SeveralExperiments(Vec<String>),
    /// Some lines name their arm, others are H2O's.
    MixedLines {
        /// How many name it.
        named: u64,
        /// How many do not.
        h2o: u64,
    },
    /// A share that is not a number above zero.
    Share(String),
    /// An expression that is not of the query language.
    Expression(String),
    /// The query engine gave what is no row.
    Row(String),
    /// No connection of the baseline came to an end.
    NothingEnded(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the log has no lines"),
            Self::NotALog(said) => write!(f, "this is no connection log: {said}"),
            Self::NotATime { lines, first } => write!(
                f,
                "`ttlb` of {lines} lines is not a number of milliseconds, zero or more (the first: {first}): convert them, or leave \
                 them out with --where"
            ),
            Self::NoArms {
                lines,
                too_small: 1..,
                ..
            } => write!(
                f,
                "all connections with an arm among the {lines} lines have objects below 200 kB, which do not count in a production \
                 log; to count them: --min-size 0"
            ),
            Self::NoArms {
                lines,
                not_eligible: 0,
                ..
            } => write!(
                f,
                "none of the {lines} lines says which arm it belongs to: it has neither the key `arm` nor H2O's `num-rapid-start` \
                 and `jumpstart.cwnd`. Is it a connection log? If the arm is told by something else, say how: --arm '_[\"group\"]'"
            ),
            Self::NoArms {
                lines,
                not_eligible,
                ..
            } => write!(
                f,
                "of {lines} lines, {not_eligible} are H2O's of connections that took no part in the experiment (it takes \
                 num-jumpstart-applicable = 1, num-paced = 1, jumpstart.prev-rate = 0, content_length >= 200000), and none is of one \
                 that did. To decide otherwise, say which line belongs to which arm: --arm EXPR"
            ),
            Self::OneArm(arm) => write!(
                f,
                "all connections are of the arm `{arm}`: there is nothing to hold it against. Give the logs of the other arms as \
                 well, or say with --arm EXPR what tells arms apart"
            ),
            Self::TooManyArms(arms) => write!(
                f,
                "there are more than 16 arms ({}, …): is this what tells arms apart? See --arm",
                arms.join(", ")
            ),
            Self::UnknownArm { wanted, arms } => {
                write!(
                    f,
                    "there is no arm `{wanted}`; there are {}",
                    arms.join(", ")
                )
            }
            Self::SeveralExperiments(names) => write!(
                f,
                "the log has lines of several experiments ({}), which cannot be compared with each other; take one: --where \
                 '_[\"experiment\"] == \"{}\"'",
                names.join(", "),
                names.first().map_or("", String::as_str)
            ),
            Self::MixedLines { named, h2o } => write!(
                f,
                "{named} lines name their arm and {h2o} are H2O's, whose arm is told by flags: report on one kind at a time, or say \
                 with --arm EXPR what tells arms apart"
            ),
            Self::Share(text) => write!(f, "the share of `{text}` must be a number above zero"),
            Self::Expression(said) => write!(f, "{said}"),
            Self::Row(said) => write!(f, "a row of the log cannot be used: {said}"),
            Self::NothingEnded(arm) => write!(
                f,
                "no transfer of the baseline `{arm}` came to an end: there is no time to compare with"
            ),
        }
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests;
