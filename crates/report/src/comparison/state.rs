//! The state of a report after a part of its log: the rows of the reading query as lines of JSON, so that a report of a large
//! log needs the log only where it is stored.
//!
//! ```text
//! ["lastbyte-report-state",2,"[_[\"arm\"], …]",["a.ndjson"]]
//! ["cubic",null,true,…]
//! ["end",1,"85944171f73967e8"]
//! ```
//!
//! The first line has the version, the reading query and the names of the logs, the last one the number of rows and a
//! checksum. Rows are read in the order of the log, as by one process: moments and pairs depend on it. States can be
//! concatenated, and compressed with gzip or zstd.

use core::ops::ControlFlow;
use std::{collections::BTreeSet, io::Write};

use lastbyte_query::{Input, Options, Query, RunError, Value};

use super::{error::Error, queries, settings::Settings};

/// The first cell of a state.
const NAME: &str = "lastbyte-report-state";
const VERSION: i64 = 2;
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

/// The errors of a run as text, if there are any.
pub(super) fn trouble(errors: &[RunError]) -> Option<String> {
    let errors: Vec<String> = errors.iter().map(RunError::to_string).collect();
    (!errors.is_empty()).then(|| errors.join("\n"))
}

/// Reads logs, and writes their state.
pub(super) fn write(
    inputs: Vec<Input>,
    settings: &Settings,
    out: &mut (dyn Write + Send),
) -> Result<(), Error> {
    let reading = queries::reading(settings);
    let query = compile(&reading, settings)?;
    let mut sum = Checksum::default();
    let mut put = |cells: &[Value]| {
        let line = line(cells);
        sum.add(&line);
        out.write_all(line.as_bytes())
            .map_err(|error| Error::Write(error.to_string()))
    };
    let files = settings.files.iter().cloned().map(Value::String);
    put(&[
        Value::String(NAME.to_owned()),
        Value::Integer(VERSION),
        Value::String(reading),
        Value::Array(files.collect()),
    ])?;
    let mut rows = 0;
    let mut written = Ok(());
    let outcome = query.for_each(inputs, |row| {
        rows += 1;
        written = put(row);
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    written?;
    if let Some(trouble) = trouble(&outcome.errors) {
        return Err(Error::Incomplete(trouble));
    }
    let end = line(&[
        Value::String(END.to_owned()),
        Value::Integer(rows),
        Value::String(sum.hexadecimal()),
    ]);
    out.write_all(end.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Error::Write(error.to_string()))
}

/// Reads states in order. Returns the names of their logs.
pub(super) fn read(
    inputs: Vec<Input>,
    settings: &Settings,
    mut on_row: impl FnMut(&[Value]) -> Result<(), Error> + Send,
) -> Result<Vec<String>, Error> {
    let query = compile("[$FILENAME, _]", settings)?;
    let mut empty: BTreeSet<String> = inputs.iter().map(|input| input.name.clone()).collect();
    let mut reader = Reader {
        reading: queries::reading(settings),
        columns: queries::columns(settings),
        files: Vec::new(),
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
        (None, None) => Ok(reader.files),
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

/// Checks the lines of states.
struct Reader {
    reading: String,
    columns: usize,
    files: Vec<String>,
    open: Option<Open>,
}

/// A state whose last line was not read yet.
struct Open {
    name: String,
    rows: i64,
    sum: Checksum,
}

impl Reader {
    fn line(
        &mut self,
        name: &str,
        cells: &[Value],
        on_row: &mut impl FnMut(&[Value]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let open = self.open.as_mut().filter(|open| open.name == name);
        match (open, cells) {
            (Some(open), [end, Value::Integer(rows), Value::String(sum)])
                if end.as_str() == Some(END) =>
            {
                if open.rows != *rows || open.sum.hexadecimal() != *sum {
                    return Err(wrong(name, CUT_OFF));
                }
                self.open = None;
                Ok(())
            }
            (Some(open), cells) if cells.len() == self.columns => {
                open.rows += 1;
                open.sum.add(&line(cells));
                on_row(cells)
            }
            (Some(_), _) => Err(wrong(name, CUT_OFF)),
            (None, cells) => self.begin(name, cells),
        }
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
        });
        Ok(())
    }
}

/// A line of a state, as JSON.
fn line(cells: &[Value]) -> String {
    use core::fmt::Write as _;
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
