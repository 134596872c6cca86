//! The state of a report after a part of its log: the rows of the reading query as lines of JSON, so that a report of a large
//! log needs the log only where it is stored.
//!
//! ```text
//! ["lastbyte-report-state",3,"[_[\"arm\"], …]",["a.ndjson"]]
//! ["cubic",null,true,…]
//! ["end",1,"85944171f73967e8"]
//! ```
//!
//! The first line has the version, the reading query and the names of the logs, the last one the number of rows and a
//! checksum. Rows are read in the order of the log, as by one process: moments and pairs depend on it. States can be
//! concatenated, and compressed with gzip or zstd. Two states that begin with the same rows are an error: they are of the same part of
//! the log, or one is a later copy of it.

use core::{fmt::Write, ops::ControlFlow};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use lastbyte_query::{AbsentKey, Input, Options, Outcome, Query, RunError, Value};

use super::{
    error::Error,
    queries::{self, Column},
    settings::{Settings, expression_of},
};

/// The first cell of a state.
const NAME: &str = "lastbyte-report-state";
const VERSION: i64 = 3;
/// The first cell of its last line.
const END: &str = "end";

/// Compiles a query of the report.
pub(super) fn compile(text: &str, settings: &Settings) -> Result<Query, Error> {
    let compile = |text: &str| {
        let options = Options {
            threads: settings.threads,
            ..Options::default()
        };
        Query::compile(text, &[], options)
    };
    compile(text).map_err(|error| {
        // By itself, an invalid expression has its error at the place that the user knows.
        let mut given = settings.expressions();
        let invalid = given.find_map(|(setting, text)| {
            let error = compile(text).err()?;
            let (line, column) = (error.line, error.column);
            let place = match (error.offset, line) {
                (None, _) => String::new(),
                (Some(_), 1) => format!("column {column}: "),
                (Some(_), _) => format!("line {line}, column {column}: "),
            };
            Some((setting, format!("`{text}`: {place}{}", error.message)))
        });
        match invalid {
            Some((setting, reason)) => Error::Expression {
                setting: Some(setting),
                reason,
            },
            None => Error::Expression {
                setting: None,
                reason: error.to_string(),
            },
        }
    })
}

/// Returns an error if an expression of the settings is more than a value of each line, which would change what others compute.
pub(super) fn check_expressions(settings: &Settings) -> Result<(), Error> {
    let is_of_reducer = |error: &Error| matches!(error, Error::Expression { reason, .. } if reason.contains("a reducer's result"));
    for (setting, text) in settings.expressions() {
        let effect = match compile(text, settings) {
            // Its advice is the next stage, which an expression has not.
            Err(error) if is_of_reducer(&error) => Some("a reducer, whose result is of all rows"),
            query => query?.effect(),
        };
        if let Some(effect) = effect {
            return Err(Error::Expression {
                setting: Some(setting),
                reason: format!("`{text}` has {effect} (expected an expression of the line)"),
            });
        }
    }
    Ok(())
}

/// The errors of a run as text, if there are any.
pub(super) fn trouble(errors: &[RunError]) -> Option<String> {
    let errors: Vec<String> = errors.iter().map(RunError::to_string).collect();
    (!errors.is_empty()).then(|| errors.join("\n"))
}

/// The absent keys of the expressions of the settings.
pub(super) fn of_expressions(
    settings: &Settings,
    absent: &[AbsentKey],
) -> Result<Vec<AbsentKey>, Error> {
    let mut keys = Vec::new();
    for (_, text) in settings.expressions() {
        keys.extend(compile(text, settings)?.keys());
    }
    Ok(among(absent, &keys))
}

/// Those of the absent keys that lead to one of these paths.
pub(crate) fn among(absent: &[AbsentKey], paths: &[Vec<String>]) -> Vec<AbsentKey> {
    let leads = |key: &&AbsentKey| paths.iter().any(|path| path.starts_with(&key.path));
    absent.iter().filter(leads).cloned().collect()
}

/// The error that a key or an expression of the settings has no value.
pub(super) fn no_values(
    setting: &'static str,
    expression: &str,
    lines: u64,
    settings: &Settings,
    absent: &[AbsentKey],
) -> Error {
    let keys = compile(&expression_of(expression), settings).map(|query| query.keys());
    let absent = among(absent, &keys.unwrap_or_default());
    let nearest = absent.iter().find_map(AbsentKey::meant);
    Error::NoValues {
        setting,
        expression: expression.to_owned(),
        lines,
        nearest,
    }
}

/// The options that exclude lines.
pub(super) fn excluding(settings: &Settings) -> Option<String> {
    let arm = settings.arm.as_ref();
    let options = [
        settings.filter.as_ref().map(|_| "--where".to_owned()),
        settings.min_size.map(|bytes| format!("--min-size {bytes}")),
        arm.map(|_| "--arm-by, which excludes connections over TCP".to_owned()),
    ];
    let options: Vec<String> = options.into_iter().flatten().collect();
    (!options.is_empty()).then(|| options.join(" and "))
}

/// Columns of expressions that the settings may give.
const VALUES: [Column; 4] = [Column::Named, Column::Site, Column::Bin, Column::Value];

/// Whether lines have values of them: of the arm, any line, of the others, lines that count.
#[derive(Default)]
pub(super) struct Presence {
    pub(super) lines: u64,
    /// Lines with an arm that no rule leaves out.
    counting: u64,
    has_values: [bool; VALUES.len()],
}

impl Presence {
    pub(super) fn add(&mut self, row: &[Value], is_time: bool) {
        self.lines += 1;
        let of = |column| value(row, column);
        let has_arm = [Column::Named, Column::H2oArm]
            .iter()
            .any(|column| !of(*column).is_null());
        let counts = has_arm && whole(of(Column::Rules)).is_none_or(|rules| rules == 0);
        self.counting += u64::from(counts);
        for (has_value, column) in self.has_values.iter_mut().zip(VALUES) {
            *has_value |= match column {
                Column::Named => has_arm,
                Column::Value => counts && !is_unknown(of(column), is_time),
                _ => counts && !of(column).is_null(),
            };
        }
    }

    /// Returns an error if a key or an expression of the settings has no value in any line, or no line is left of these.
    pub(super) fn check(
        &self,
        settings: &Settings,
        rows: Option<u64>,
        absent: &[AbsentKey],
    ) -> Result<(), Error> {
        if self.lines == 0 {
            let by = excluding(settings).filter(|_| rows != Some(0));
            return by.map_or(Ok(()), |by| {
                Err(Error::NoneLeft {
                    lines: rows,
                    by,
                    absent: of_expressions(settings, absent)?,
                })
            });
        }
        let [has_arm, has_site, has_bin, has_metric] = self.has_values;
        let (has_by, has_own_site) = match settings.bins {
            Some(_) => (has_bin, has_site),
            // The sites are those of `by`.
            None => (has_site, settings.by.is_some() || has_site),
        };
        let metric = (!settings.metric.is_ttlb()).then_some(&settings.metric.name);
        let lines = self.counting;
        for (setting, expression, lines, has_value) in [
            ("arm", settings.arm.as_ref(), self.lines, has_arm),
            ("by", settings.by.as_ref(), lines, has_by),
            ("site", settings.site.as_ref(), lines, has_own_site),
            ("metric", metric, lines, has_metric),
        ] {
            // That no line counts is an error of its own.
            if let Some(expression) = expression.filter(|_| !has_value && lines > 0) {
                return Err(no_values(setting, expression, lines, settings, absent));
            }
        }
        Ok(())
    }
}

/// The value of a column.
pub(super) fn value(row: &[Value], column: Column) -> &Value {
    row.get(column as usize).unwrap_or(&Value::Null)
}

/// A number of milliseconds of this size or more is a mark for "unknown" (such as 2^63 - 1). The queries on the page use the
/// same number for an absent `ttlb`.
pub(super) const NEVER_MS: f64 = 1e12;

/// The smallest mark for "unknown" of a value that is no time.
const UNKNOWN_MIN: f64 = 9.2e18;

/// Whether a value is absent, or one of the marks for "unknown".
pub(super) fn is_unknown(value: &Value, is_time: bool) -> bool {
    let least = if is_time { NEVER_MS } else { UNKNOWN_MIN };
    value.is_null() || value.as_f64().is_some_and(|value| value >= least)
}

/// A number, rounded, unless it is a mark for "unknown". Other programs may write `2.0` instead of `2`.
pub(super) fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(value) => u64::try_from(*value).ok(),
        Value::BigInteger(digits) => digits.parse().ok().filter(|value| *value < u64::MAX),
        Value::Float(value) => (0.0..=2f64.powi(53))
            .contains(value)
            .then(|| value.round() as u64),
        _ => None,
    }
}

/// Reads logs with the reading query.
///
/// # Errors
///
/// Returns the error of `on_row`, and [`Error::Expression`] if an expression of the settings is invalid, or raises an exception.
pub(super) fn rows(
    inputs: Vec<Input>,
    settings: &Settings,
    mut on_row: impl FnMut(&str, &[Value]) -> Result<(), Error> + Send,
) -> Result<Outcome, Error> {
    let query = compile(&queries::reading_with_file(settings), settings)?;
    let mut result = Ok(());
    let outcome = query.for_each(inputs, |row| {
        if let [Value::String(file), cells @ ..] = row {
            result = on_row(file, cells);
        }
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    result?;
    let raised = outcome
        .errors
        .iter()
        .find(|error| matches!(error, RunError::Raised { .. }));
    match raised.and_then(|raised| exception(raised, settings, &outcome.absent)) {
        Some(error) => Err(error),
        None => Ok(outcome),
    }
}

/// The error that an expression of the settings raises an exception, with its keys that no line has. `None` if each can be computed
/// by itself: then a column of the report cannot.
fn exception(raised: &RunError, settings: &Settings, absent: &[AbsentKey]) -> Option<Error> {
    let RunError::Raised { place, row, .. } = raised else {
        return None;
    };
    // Expressions may use the name of the file.
    let name = place.rsplit_once(':').map_or("", |(name, _)| name);
    let row = row.as_ref()?.to_string();
    let fails = |text: &str| {
        compile(text, settings).is_ok_and(|query| {
            let input = Input::from_bytes(name, row.clone().into_bytes());
            let outcome = query.for_each(vec![input], |_| ControlFlow::Continue(()));
            !outcome.errors.is_empty()
        })
    };
    let failing: Vec<_> = settings
        .expressions()
        .filter(|(_, text)| fails(text))
        .collect();
    // Others are computed for lines that it selects.
    let filter = failing.iter().find(|(setting, _)| *setting == "filter");
    let (setting, text) = filter.or(failing.first())?;
    let keys = compile(text, settings).map(|query| query.keys());
    let mut reason = format!("`{text}`: {raised}");
    for absent in among(absent, &keys.unwrap_or_default()) {
        // Writing to a string does not fail.
        let _ = write!(reason, "; {absent}");
    }
    Some(Error::Expression {
        setting: Some(setting),
        reason,
    })
}

/// Reads logs, and writes their state. Returns what a report of these logs alone would refuse, and the absent keys of the condition
/// for lines.
pub(super) fn write(
    inputs: Vec<Input>,
    settings: &Settings,
    out: &mut (dyn std::io::Write + Send),
) -> Result<(Option<Error>, Vec<AbsentKey>), Error> {
    check_expressions(settings)?;
    let unwritten = |error: std::io::Error| Error::Write(error.to_string());
    let files = settings.files.iter().cloned().map(Value::String);
    let head = line(&[
        Value::String(NAME.to_owned()),
        Value::Integer(VERSION),
        Value::String(queries::reading(settings)),
        Value::Array(files.collect()),
    ]);
    let mut sum = Checksum::default();
    sum.add(&head);
    out.write_all(head.as_bytes()).map_err(unwritten)?;
    let mut presence = Presence::default();
    let outcome = rows(inputs, settings, |_, row| {
        presence.add(row, settings.metric.is_ttlb());
        let line = line(row);
        sum.add(&line);
        out.write_all(line.as_bytes()).map_err(unwritten)
    })?;
    if let Some(trouble) = trouble(&outcome.errors) {
        return Err(Error::Incomplete(trouble));
    }
    let end = line(&[
        Value::String(END.to_owned()),
        Value::Integer(presence.lines.cast_signed()),
        Value::String(sum.hexadecimal()),
    ]);
    out.write_all(end.as_bytes())
        .and_then(|()| out.flush())
        .map_err(unwritten)?;
    let refused = presence.check(settings, Some(outcome.rows), &outcome.absent);
    let absent = of_expressions(settings, &outcome.absent)?;
    Ok((refused.err(), absent))
}

/// Reads states in order. Returns the names of their logs, and which states may be of the same part of a log.
pub(super) fn read(
    inputs: Vec<Input>,
    settings: &Settings,
    mut on_row: impl FnMut(&str, &[Value]) -> Result<(), Error> + Send,
) -> Result<(Vec<String>, Option<String>), Error> {
    let query = compile("[$FILENAME, _]", settings)?;
    let mut empty: BTreeSet<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let mut reader = Reader {
        reading: queries::reading(settings),
        columns: queries::columns(settings),
        files: Vec::new(),
        starts: BTreeMap::new(),
        longest: BTreeMap::new(),
        repeated: None,
        open: None,
    };
    let mut failed = None;
    let outcome = query.for_each(inputs, |row| {
        let result = match row {
            [Value::String(name), Value::Array(cells)] => {
                empty.remove(name);
                reader.line(name, cells, &mut on_row)
            }
            [Value::String(name), _] => Err(wrong(name, NO_STATE)),
            _ => Ok(()),
        };
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    if let Some(trouble) = trouble(&outcome.errors) {
        return Err(Error::Unreadable(trouble));
    }
    match (reader.open, empty.pop_first()) {
        (Some(open), _) => Err(wrong(&open.name, CUT_OFF)),
        (None, Some(name)) => Err(wrong(&name, NO_STATE)),
        (None, None) => Ok((reader.files, reader.repeated)),
    }
}

const NO_STATE: &str = "not a state (expected the output of `lastbyte report --partial`)";
const CUT_OFF: &str = "the state is cut off or was changed";

fn wrong(name: &str, reason: &str) -> Error {
    Error::State {
        name: name.to_owned(),
        reason: reason.to_owned(),
    }
}

/// States that begin with this number of rows or more in common are of the same part of a log.
pub(super) const SHARED_ROWS: i64 = 20;

/// Whether the first rows of states of this number are compared: 1 to 20, 40, 80 and so on, so that memory does not grow with
/// the number of rows.
fn is_compared(rows: i64) -> bool {
    rows < SHARED_ROWS
        || (rows % SHARED_ROWS == 0 && (rows / SHARED_ROWS).cast_unsigned().is_power_of_two())
}

/// First rows of a state: their number and checksum.
type Start = (i64, u64);

/// Checks the lines of states.
struct Reader {
    reading: String,
    columns: usize,
    files: Vec<String>,
    /// The starts of the states that were read, with their names.
    starts: BTreeMap<Start, Arc<str>>,
    /// Those of them that are the longest of a state.
    longest: BTreeMap<Start, Arc<str>>,
    /// The first state that begins like an earlier one, where that may be chance.
    repeated: Option<String>,
    open: Option<Open>,
}

/// A state whose last line was not read yet.
struct Open {
    name: String,
    rows: i64,
    /// Of all lines.
    sum: Checksum,
    /// Of the rows.
    of_rows: Checksum,
    /// Whether all rows have a seed or a time.
    is_dated: bool,
    /// The compared starts, and whether it is certain that another state with one of them is of the same part of a log.
    starts: Vec<(Start, bool)>,
}

impl Reader {
    fn line(
        &mut self,
        name: &str,
        cells: &[Value],
        on_row: &mut impl FnMut(&str, &[Value]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let open = self.open.as_mut().filter(|open| open.name == name);
        match (open, cells) {
            (Some(open), [end, Value::Integer(rows), Value::String(sum)])
                if end.as_str() == Some(END) =>
            {
                if open.rows != *rows || open.sum.hexadecimal() != *sum {
                    return Err(wrong(name, CUT_OFF));
                }
                let starts = core::mem::take(&mut open.starts);
                self.open = None;
                self.compare(name, &starts)
            }
            (Some(open), cells) if cells.len() == self.columns => {
                let line = line(cells);
                open.rows += 1;
                open.sum.add(&line);
                open.of_rows.add(&line);
                let is_dated = [Column::Seed, Column::Time]
                    .iter()
                    .any(|column| !value(cells, *column).is_null());
                open.is_dated &= is_dated;
                if is_compared(open.rows) {
                    let is_certain = open.rows >= SHARED_ROWS || open.is_dated;
                    open.starts.push(((open.rows, open.of_rows.0), is_certain));
                }
                on_row(name, cells)
            }
            (Some(_), _) => Err(wrong(name, CUT_OFF)),
            (None, cells) => self.begin(name, cells),
        }
    }

    /// Compares the first rows of a state with those of earlier ones: as many as the shorter of the two has, of the numbers compared.
    fn compare(&mut self, name: &str, starts: &[(Start, bool)]) -> Result<(), Error> {
        let Some((longest, _)) = starts.last() else {
            return Ok(());
        };
        let shared = starts.iter().rev().find_map(|(start, is_certain)| {
            let of_longer = self.starts.get(start).filter(|_| start == longest);
            let earlier = of_longer.or_else(|| self.longest.get(start))?;
            Some((start.0, *is_certain, earlier))
        });
        if let Some((rows, is_certain, earlier)) = shared {
            let what = match rows {
                1 => "its first row is that".to_owned(),
                _ => format!("its first {rows} rows are those"),
            };
            let reason = format!("{what} of {earlier} (expected each part of the log once)");
            if is_certain {
                return Err(wrong(name, &reason));
            }
            self.repeated.get_or_insert(format!("{name}: {reason}"));
        }
        let name: Arc<str> = name.into();
        for (start, _) in starts {
            self.starts.entry(*start).or_insert_with(|| name.clone());
        }
        self.longest.entry(*longest).or_insert(name);
        Ok(())
    }

    /// The first line of a state.
    fn begin(&mut self, name: &str, cells: &[Value]) -> Result<(), Error> {
        if let Some(open) = &self.open {
            return Err(wrong(&open.name, CUT_OFF));
        }
        let [first, Value::Integer(version), rest @ ..] = cells else {
            return Err(wrong(name, NO_STATE));
        };
        if first.as_str() != Some(NAME) {
            return Err(wrong(name, NO_STATE));
        }
        if *version != VERSION {
            let reason = format!("a state of version {version} (expected {VERSION})");
            return Err(wrong(name, &reason));
        }
        let [Value::String(reading), Value::Array(files)] = rest else {
            return Err(wrong(name, CUT_OFF));
        };
        if *reading != self.reading {
            return Err(wrong(
                name,
                "a state of another report (expected the same --arm-by, --bins, --by, --metric, --min-size, --resumed, --site and --where)",
            ));
        }
        for file in files.iter().filter_map(Value::as_str) {
            if self.files.last().is_none_or(|last| last != file) {
                self.files.push(file.to_owned());
            }
        }
        let mut sum = Checksum::default();
        sum.add(&line(cells));
        self.open = Some(Open {
            name: name.to_owned(),
            rows: 0,
            sum,
            of_rows: Checksum::default(),
            is_dated: true,
            starts: Vec::new(),
        });
        Ok(())
    }
}

/// A line of a state, as JSON.
fn line(cells: &[Value]) -> String {
    let mut line = String::new();
    for (at, cell) in cells.iter().enumerate() {
        line.push(if at == 0 { '[' } else { ',' });
        // Writing to a string does not fail.
        let _ = write!(line, "{cell}");
    }
    line.push_str("]\n");
    line
}

/// FNV-1a of 64 bits, against damage, not against forgery.
struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    fn add(&mut self, line: &str) {
        self.0 = line.bytes().fold(self.0, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    }

    fn hexadecimal(&self) -> String {
        format!("{:016x}", self.0)
    }
}
