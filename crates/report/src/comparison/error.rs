//! Why there is no report.

use core::fmt;

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
            Self::NothingEnded(arm) => write!(
                f,
                "no transfer of the baseline `{arm}` came to an end: there is no time to compare with"
            ),
        }
    }
}

impl core::error::Error for Error {}
