//! Real connections from qlog files, as arms of a [`transfer::Picture`](crate::transfer::Picture).
//!
//! [`read`] takes the file as a stream, in one pass: memory does not grow with its length. It reads what stacks write:
//!
//! | form | events |
//! |---|---|
//! | JSON text sequence (RFC 7464), `.sqlog` | a record each |
//! | JSON lines | a line each |
//! | one JSON document, `.qlog` | an array in each trace |
//!
//! Versions from draft-marx-qlog-event-definitions-quic-h3-01 (events as arrays, times in µs) to
//! draft-ietf-quic-qlog-quic-events-13 are accepted: the name of an event counts without its namespace, and a field under each
//! of its names. Unknown events and fields are skipped.
//!
//! | file | owns |
//! |---|---|
//! | `qlog/records.rs` | the values of the file, one at a time |
//! | `qlog/connection.rs` | from events to an arm |
//! | `qlog/bounded.rs` | series of bounded length |

mod bounded;
mod connection;
mod records;

use core::fmt;
use std::io::{self, Read};

use lastbyte_json::{
    Value,
    parse::{Keys, Parser, Projection},
};

use self::{
    connection::{Connection, Frame},
    records::{Broken, Source},
};
use crate::transfer::Arm;

/// A file has at most this many traces; further ones are not read.
const TRACES_MAX: usize = 8;

/// The content of a file.
#[derive(Debug)]
pub struct Reading {
    /// A connection of each trace with packets, in their order.
    pub arms: Vec<Arm>,
    /// The smallest round-trip time of all, in ms.
    pub rtt_min: Option<f64>,
    /// The number of events.
    pub events: u64,
    /// Why the file could not be read to its end, if so.
    pub trouble: Option<String>,
}

/// A file that cannot be drawn.
#[derive(Debug)]
#[non_exhaustive]
pub enum QlogError {
    /// It cannot be read.
    Io(io::Error),
    /// It is not a qlog file.
    Foreign(String),
    /// It is a qlog file without any packet.
    NoPackets {
        /// The number of events.
        events: u64,
        /// Why the file could not be read to its end, if so.
        trouble: Option<String>,
    },
}

impl fmt::Display for QlogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Foreign(reason) => write!(
                f,
                "not a qlog file: {reason}; a qlog file is JSON, JSON lines or a JSON text sequence with `qlog_version` or `file_schema`"
            ),
            Self::NoPackets { events, trouble } => {
                write!(
                    f,
                    "none of the {events} events is a packet sent or received, so there is nothing to draw"
                )?;
                match trouble {
                    Some(trouble) => write!(f, "; {trouble}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl core::error::Error for QlogError {}

/// Reads a file. Arms are named `label`, and numbered if there are several.
///
/// # Errors
///
/// Returns [`QlogError::Io`] if the input fails, [`QlogError::Foreign`] if it is not qlog, and [`QlogError::NoPackets`] if there
/// is nothing to draw. A file that breaks off is not an error if a part of it can be drawn: see [`Reading::trouble`].
pub fn read(input: impl Read, label: &str) -> Result<Reading, QlogError> {
    let mut file = File {
        source: Source::new(input),
        connections: vec![Connection::default()],
        keys: Keys::default(),
        events: 0,
        is_qlog: false,
    };
    let trouble = match file.all() {
        Ok(()) => None,
        Err(Broken::Io(error)) if file.events == 0 => return Err(QlogError::Io(error)),
        Err(Broken::Syntax(reason)) if !file.is_qlog => return Err(QlogError::Foreign(reason)),
        Err(Broken::Io(error)) => Some(format!("after {} events: {error}", file.events)),
        Err(Broken::Syntax(reason)) => Some(format!("after {} events: {reason}", file.events)),
    };
    if !file.is_qlog {
        return Err(QlogError::Foreign(
            "its first object has no version".to_owned(),
        ));
    }
    let rtt_min = file.connections.iter().filter_map(Connection::rtt_min);
    let rtt_min = rtt_min.reduce(f64::min);
    let arms: Vec<Arm> = file
        .connections
        .into_iter()
        .filter_map(|connection| connection.finish(label))
        .collect();
    if arms.is_empty() {
        return Err(QlogError::NoPackets {
            events: file.events,
            trouble,
        });
    }
    let several = arms.len() > 1;
    let arms = arms.into_iter().enumerate().map(|(number, mut arm)| {
        if several {
            arm.label = format!("{} {}", arm.label, number + 1);
        }
        arm
    });
    Ok(Reading {
        arms: arms.collect(),
        rtt_min,
        events: file.events,
        trouble,
    })
}

struct File<R> {
    source: Source<R>,
    /// Of each trace; the last is being read.
    connections: Vec<Connection>,
    keys: Keys<Value>,
    events: u64,
    is_qlog: bool,
}

impl<R: Read> File<R> {
    /// The header, or the whole of a document; then the events of a sequence.
    fn all(&mut self) -> Result<(), Broken> {
        match self.source.peek()? {
            Some(b'{') => {}
            Some(other) => return Err(Broken::unexpected(other, "`{`")),
            None => return Err(Broken::Syntax("it is empty".to_owned())),
        }
        self.source.take()?;
        while let Some(key) = self.source.key()? {
            match key.as_str() {
                "traces" => self.traces()?,
                "trace" => {
                    let value = self.value()?;
                    self.last().header(&value);
                }
                "qlog_version" | "file_schema" => {
                    self.is_qlog = true;
                    self.source.value()?;
                }
                _ => {
                    self.source.value()?;
                }
            }
        }
        if !self.is_qlog {
            return Err(Broken::Syntax("its first object has no version".to_owned()));
        }
        while self.source.peek()?.is_some() {
            self.event()?;
        }
        Ok(())
    }

    fn traces(&mut self) -> Result<(), Broken> {
        self.source.open(b'[')?;
        while self.source.has_element()? {
            if self.source.peek()? != Some(b'{') {
                self.source.value()?;
                continue;
            }
            self.source.take()?;
            if self.last().has_packets() {
                self.connections.push(Connection::default());
            } else if let Some(last) = self.connections.last_mut() {
                *last = Connection::default();
            }
            let is_read = self.connections.len() <= TRACES_MAX;
            while let Some(key) = self.source.key()? {
                if key == "events" && is_read {
                    // The version may be behind the events.
                    self.is_qlog = true;
                    self.source.open(b'[')?;
                    while self.source.has_element()? {
                        self.event()?;
                    }
                } else if [
                    "common_fields",
                    "configuration",
                    "event_fields",
                    "vantage_point",
                ]
                .contains(&key.as_str())
                {
                    let value = self.value()?;
                    self.last().header_field(&key, &value);
                } else {
                    self.source.value()?;
                }
            }
        }
        Ok(())
    }

    fn last(&mut self) -> &mut Connection {
        if self.connections.is_empty() {
            self.connections.push(Connection::default());
        }
        let last = self.connections.len() - 1;
        &mut self.connections[last]
    }

    fn value(&mut self) -> Result<Value, Broken> {
        let text = self.source.value()?;
        let parsed = Parser::new(text, &mut self.keys).only(&Projection::Whole);
        parsed.map_err(|error| Broken::Syntax(error.to_string()))
    }

    fn event(&mut self) -> Result<(), Broken> {
        let text = self.source.value()?;
        let parsed = Parser::new(text, &mut self.keys).only(Frame::projection(text));
        let event = parsed.map_err(|error| Broken::Syntax(error.to_string()))?;
        self.events += 1;
        self.last().event(&event);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
