//! Why there is no report.

use core::fmt;

use lastbyte_query::AbsentKey;

/// Why there is no report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The log has no lines.
    Empty,
    /// The log cannot be read as lines of JSON objects, with the error of the query engine.
    NotALog(String),
    /// No line has an arm.
    NoArms {
        /// The number of lines.
        lines: u64,
        /// Whether there are lines of H2O's.
        is_h2o: bool,
        /// The rules for production logs that leave out lines, each with their number.
        rules: Vec<(&'static str, u64)>,
    },
    /// Some lines have an invalid `ttlb`, or an invalid value of another metric.
    NotATime {
        /// The name of the metric.
        metric: String,
        /// The number of these lines.
        lines: u64,
        /// The first invalid value, as JSON.
        first: String,
    },
    /// No line has a value of this key or expression.
    NoValues {
        /// The field of [`Settings`](super::Settings).
        setting: &'static str,
        /// The key or expression.
        expression: String,
        /// The number of lines.
        lines: u64,
        /// A key of the log with a similar name.
        nearest: Option<String>,
    },
    /// The settings exclude all lines.
    NoneLeft {
        /// The number of lines, unless the input is states of their logs.
        lines: Option<u64>,
        /// The options that exclude lines.
        by: String,
        /// The keys of the condition that no line has.
        absent: Vec<AbsentKey>,
    },
    /// The values to be divided into bins are all the same, or no numbers.
    Bins(String),
    /// All connections are of one arm.
    OneArm {
        /// Its name.
        arm: String,
        /// The arms whose lines are all left out, and the options that include them, as a sentence.
        left_out: Option<String>,
    },
    /// There are more than sixteen arms, of which these are some.
    TooManyArms(Vec<String>),
    /// An arm that the log does not have.
    UnknownArm {
        /// The requested arm.
        wanted: String,
        /// The arms of the log.
        arms: Vec<String>,
        /// The arms whose lines are all left out, and the options that include them, as a sentence.
        left_out: Option<String>,
    },
    /// The log has lines of several experiments, with these names; `None` for lines without one.
    SeveralExperiments(Vec<Option<String>>),
    /// More than 1 % of the lines were read before, as a sentence without a full stop.
    Copies(String),
    /// Some lines name their arm, others are H2O's.
    MixedLines {
        /// The number of lines that name it.
        named: u64,
        /// The number of H2O's lines.
        h2o: u64,
    },
    /// The share of this arm is not a number above zero.
    Share(String),
    /// An invalid expression in the settings.
    Expression {
        /// The field of [`Settings`](super::Settings), if the expression is invalid by itself.
        setting: Option<&'static str>,
        /// The expression, and the error of the query engine.
        reason: String,
    },
    /// A log cannot be read to its end, so there is no state of it, with the errors of the query engine.
    Incomplete(String),
    /// States cannot be read, with the errors of the query engine.
    Unreadable(String),
    /// An input is not a state that fits the settings.
    State {
        /// The name of the input.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A state cannot be written, with the error of the writer.
    Write(String),
    /// No transfer of the baseline completed.
    NothingEnded(String),
    /// No line has a time to last byte.
    NoTimes,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the log has no lines"),
            Self::NotALog(reason) => write!(
                f,
                "not a connection log: {reason} (expected a JSON object per line; --merge reads states of --partial)"
            ),
            Self::NotATime {
                metric,
                lines,
                first,
            } => write!(
                f,
                "invalid `{metric}` in {lines} lines, first `{first}` (expected {}, zero or more): convert these lines, or exclude \
                 them with --where",
                if metric == "ttlb" {
                    "milliseconds"
                } else {
                    "a number"
                }
            ),
            Self::NoValues {
                setting,
                expression,
                lines,
                nearest,
            } => {
                write!(f, "none of the {lines} lines has a value of `{expression}`")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
                    None if *setting == "metric" => f.write_str(" (expected a number)"),
                    None => Ok(()),
                }
            }
            Self::NoneLeft { lines, by, absent } => {
                match lines {
                    Some(lines) => write!(f, "none of the {lines} lines is left by {by}")?,
                    None => write!(f, "no line is left by {by}")?,
                }
                absent.iter().try_for_each(|absent| write!(f, "; {absent}"))
            }
            Self::Bins(by) => write!(
                f,
                "`{by}` has too few distinct numbers for two bins (expected a key or expression with numbers)"
            ),
            Self::NoArms {
                lines,
                is_h2o,
                rules,
            } => no_arms(f, *lines, *is_h2o, rules),
            Self::OneArm { arm, left_out } => one_arm(f, arm, left_out.as_deref()),
            Self::TooManyArms(arms) => write!(
                f,
                "more than 16 arms ({}, …): check the definition of the arm (--arm-by)",
                arms.join(", ")
            ),
            Self::UnknownArm {
                wanted,
                arms,
                left_out,
            } => {
                write!(
                    f,
                    "unknown arm `{wanted}` (expected one of {})",
                    arms.join(", ")
                )?;
                left_out
                    .iter()
                    .try_for_each(|left_out| write!(f, "; {left_out}"))
            }
            Self::SeveralExperiments(names) => several_experiments(f, names),
            Self::Copies(sentence) => write!(
                f,
                "{sentence} (expected each connection once): give each log once, or remove the copies"
            ),
            Self::MixedLines { named, h2o } => write!(
                f,
                "{named} lines name their arm and {h2o} are H2O's, whose arm follows from flags: report on one kind at a time, or define the arm \
                 with --arm-by EXPR"
            ),
            Self::Share(text) => write!(
                f,
                "invalid share of `{text}` (expected a number above zero)"
            ),
            Self::Expression { reason, .. } | Self::Unreadable(reason) => f.write_str(reason),
            Self::Incomplete(reason) => write!(
                f,
                "no state of a log that cannot be read to its end: {reason}"
            ),
            Self::State { name, reason } => write!(f, "{name}: {reason}"),
            Self::Write(reason) => write!(f, "cannot write the state: {reason}"),
            Self::NothingEnded(arm) => write!(
                f,
                "no transfer of the baseline `{arm}` completed, so there is no time to compare with"
            ),
            Self::NoTimes => f.write_str(
                "no line has the key `ttlb`; in access logs times are in `ms`: lastbyte query \
                 '{arm: _[\"arm\"], ttlb: _[\"ms\"], content_length: _[\"bytes\"]}' LOG | lastbyte report -",
            ),
        }
    }
}

/// Why there is nothing to compare with an arm.
fn one_arm(f: &mut fmt::Formatter<'_>, arm: &str, left_out: Option<&str>) -> fmt::Result {
    match left_out {
        Some(left_out) => write!(
            f,
            "all connections that count are of the arm `{arm}`, so there is nothing to compare it with: {left_out}"
        ),
        None => write!(
            f,
            "all connections are of the arm `{arm}`, so there is nothing to compare it with: add the logs of the other arms, or define the \
             arm with --arm-by EXPR"
        ),
    }
}

/// The names of the experiments in a log, with `none` for lines without one.
fn several_experiments(f: &mut fmt::Formatter<'_>, names: &[Option<String>]) -> fmt::Result {
    let known: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
    let none = names.contains(&None).then_some("none");
    let all: Vec<&str> = known.iter().copied().chain(none).collect();
    write!(
        f,
        "the log has lines of several experiments ({}), which cannot be compared: select one, for example with --where \
         '_[\"experiment\"] == \"{}\"'",
        all.join(", "),
        known.first().copied().unwrap_or_default()
    )
}

/// Why none of the lines has an arm.
fn no_arms(
    f: &mut fmt::Formatter<'_>,
    lines: u64,
    is_h2o: bool,
    rules: &[(&str, u64)],
) -> fmt::Result {
    if rules.is_empty() {
        return write!(
            f,
            "none of the {lines} lines has an arm (the key `arm`, or H2O's `num-rapid-start` and `jumpstart.cwnd`): check that this is a \
             connection log, or define the arm, for example with --arm-by '_[\"group\"]'"
        );
    }
    let why: Vec<String> = rules
        .iter()
        .map(|(why, lines)| format!("{lines} lines because {why}"))
        .collect();
    write!(
        f,
        "no connections to compare: all lines with an arm are left out by the rules for {} logs, {}; to include all of them, define the \
         arm with --arm-by EXPR",
        if is_h2o { "H2O's" } else { "production" },
        why.join(", ")
    )
}

impl core::error::Error for Error {}
