//! Why there is no report.

use lastbyte_query::AbsentKey;

/// Why there is no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The log has no lines.
    #[error("the log has no lines")]
    Empty,
    /// The log cannot be read as lines of JSON objects, with the error of the query engine.
    #[error(
        "not a connection log: {0} (expected a JSON object per line; --merge reads states of --partial)"
    )]
    NotALog(String),
    /// No line has an arm.
    #[error("{}", no_arms(*lines, *is_h2o, rules))]
    NoArms {
        /// The number of lines.
        lines: u64,
        /// Whether there are lines of H2O's.
        is_h2o: bool,
        /// The rules for production logs that leave out lines, each with their number.
        rules: Vec<(&'static str, u64)>,
    },
    /// Some lines have an invalid `ttlb`, or an invalid value of another metric.
    #[error(
        "invalid `{metric}` in {}, first `{first}` (expected {}): convert these lines, or exclude \
         them with --where",
        counted(*lines, "line"),
        if metric == "ttlb" { "milliseconds, zero or more" } else { "a number from zero to 10^15" }
    )]
    NotATime {
        /// The name of the metric.
        metric: String,
        /// The number of these lines.
        lines: u64,
        /// The first invalid value, as JSON.
        first: String,
    },
    /// No line has a value of this key or expression.
    #[error(
        "none of the {lines} lines has a value of `{expression}`{}",
        match nearest {
            Some(nearest) => format!("; did you mean `{nearest}`?"),
            None if *setting == "metric" => " (expected a number)".to_owned(),
            None => String::new(),
        }
    )]
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
    #[error("{}", none_left(*lines, by, absent))]
    NoneLeft {
        /// The number of lines, unless the input is states of their logs.
        lines: Option<u64>,
        /// The options that exclude lines.
        by: String,
        /// The keys of the condition that no line has.
        absent: Vec<AbsentKey>,
    },
    /// The values to be divided into bins are all the same, or no numbers.
    #[error(
        "`{0}` has too few distinct numbers for two bins (expected a key or expression with numbers)"
    )]
    Bins(String),
    /// All connections are of one arm.
    #[error("{}", one_arm(arm, left_out.as_deref()))]
    OneArm {
        /// Its name.
        arm: String,
        /// The arms whose lines are all left out, and the options that include them, as a sentence.
        left_out: Option<String>,
    },
    /// There are more than sixteen arms, of which these are some.
    #[error("more than 16 arms ({}, …): check the definition of the arm (--arm-by)", .0.join(", "))]
    TooManyArms(Vec<String>),
    /// An arm that the log does not have.
    #[error(
        "unknown arm `{wanted}` (expected one of {}){}",
        arms.join(", "),
        left_out.as_ref().map(|left_out| format!("; {left_out}")).unwrap_or_default()
    )]
    UnknownArm {
        /// The requested arm.
        wanted: String,
        /// The arms of the log.
        arms: Vec<String>,
        /// The arms whose lines are all left out, and the options that include them, as a sentence.
        left_out: Option<String>,
    },
    /// The log has lines of several experiments, with these names; `None` for lines without one.
    #[error("{}", several_experiments(.0))]
    SeveralExperiments(Vec<Option<String>>),
    /// More than 1 % of the lines were read before, as a sentence without a full stop.
    #[error("{0} (expected each connection once): give each log once, or remove the copies")]
    Copies(String),
    /// Some lines name their arm, others are H2O's.
    #[error(
        "{named} lines name their arm and {h2o} are H2O's, whose arm follows from flags: report on one kind at a time, or define the arm \
         with --arm-by EXPR"
    )]
    MixedLines {
        /// The number of lines that name it.
        named: u64,
        /// The number of H2O's lines.
        h2o: u64,
    },
    /// The share of this arm is not a number above zero.
    #[error("invalid share of `{0}` (expected a number above zero)")]
    Share(String),
    /// An invalid expression in the settings.
    #[error("{reason}")]
    Expression {
        /// The field of [`Settings`](super::Settings), if the expression is invalid by itself.
        setting: Option<&'static str>,
        /// The expression, and the error of the query engine.
        reason: String,
    },
    /// A log cannot be read to its end, so there is no state of it, with the errors of the query engine.
    #[error("no state of a log that cannot be read to its end: {0}")]
    Incomplete(String),
    /// States cannot be read, with the errors of the query engine.
    #[error("{0}")]
    Unreadable(String),
    /// An input is not a state that fits the settings.
    #[error("{name}: {reason}")]
    State {
        /// The name of the input.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A state cannot be written, with the error of the writer.
    #[error("cannot write the state: {0}")]
    Write(String),
    /// No transfer of the baseline completed.
    #[error("no transfer of the baseline `{0}` completed, so there is no time to compare with")]
    NothingEnded(String),
    /// No line has a time to last byte.
    #[error(
        "no line has the key `ttlb`; in access logs times are in `ms`: lastbyte query \
         '{{arm: _[\"arm\"], ttlb: _[\"ms\"], content_length: _[\"bytes\"]}}' LOG | lastbyte report -"
    )]
    NoTimes,
}

/// Why there is nothing to compare with an arm.
fn one_arm(arm: &str, left_out: Option<&str>) -> String {
    match left_out {
        Some(left_out) => format!(
            "all connections that count are of the arm `{arm}`, so there is nothing to compare it with: {left_out}"
        ),
        None => format!(
            "all connections are of the arm `{arm}`, so there is nothing to compare it with: add the logs of the other arms, or define the \
             arm with --arm-by EXPR"
        ),
    }
}

/// The names of the experiments in a log, with `none` for lines without one.
pub(crate) fn several_experiments(names: &[Option<String>]) -> String {
    let known: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
    let none = names.contains(&None).then_some("none");
    let all: Vec<&str> = known.iter().copied().chain(none).collect();
    format!(
        "the log has lines of several experiments ({}), which cannot be compared: select one, for example with --where \
         '_[\"experiment\"] == \"{}\"'",
        all.join(", "),
        known.first().copied().unwrap_or_default()
    )
}

/// A number of things, as plain digits.
fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Why none of the lines has an arm.
fn no_arms(lines: u64, is_h2o: bool, rules: &[(&str, u64)]) -> String {
    if rules.is_empty() {
        return format!(
            "none of the {lines} lines has an arm (the key `arm`, or H2O's `num-rapid-start` and `jumpstart.cwnd`): check that this is a \
             connection log, or define the arm, for example with --arm-by '_[\"group\"]'"
        );
    }
    let why: Vec<String> = rules
        .iter()
        .map(|(why, lines)| format!("{} because {why}", counted(*lines, "line")))
        .collect();
    format!(
        "no connections to compare: all lines with an arm are left out by the rules for {} logs, {}; to include all of them, define the \
         arm with --arm-by EXPR",
        if is_h2o { "H2O's" } else { "production" },
        why.join(", ")
    )
}

/// Which options leave out all lines.
fn none_left(lines: Option<u64>, by: &str, absent: &[AbsentKey]) -> String {
    let of = match lines {
        Some(lines) => format!("none of the {lines} lines"),
        None => "no line".to_owned(),
    };
    let absent = absent.iter().map(|absent| format!("; {absent}"));
    format!("{of} is left by {by}{}", absent.collect::<String>())
}
