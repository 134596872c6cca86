//! Real connections from qlog files, as arms of a [`transfer::Picture`](crate::transfer::Picture).
//!
//! [`read`] takes the file as a stream: memory does not grow with its length. It is plain or compressed with gzip or zstd. If the
//! header of a trace is behind its events and changes their meaning, the file is read a second time. It reads what stacks write:
//!
//! | form | events |
//! |---|---|
//! | JSON text sequence (RFC 7464), `.sqlog` | a record each |
//! | JSON lines | a line each |
//! | one JSON document, `.qlog` | an array in each trace |
//!
//! Versions from draft-marx-qlog-event-definitions-quic-h3-00 (events as arrays, names in capitals, times in µs) to
//! draft-ietf-quic-qlog-quic-events-13 are accepted: the name of an event counts without its namespace, and a field under each
//! of its names. Unknown events and fields are skipped. A record that is not JSON is skipped if the next one can be found, and
//! reported. What a file does not tell is absent, and [`Reading::notes`] says so.
//!
//! | file | owns |
//! |---|---|
//! | `qlog/records.rs` | the values of the file, one at a time |
//! | `qlog/header.rs`, `qlog/event.rs` | the header of a trace, and the fields of an event under each of their names |
//! | `qlog/connection.rs` | from events to an arm |
//! | `qlog/anatomy.rs` | where the time went |
//! | `qlog/numbers.rs` | what a connection log would have |
//! | `qlog/pair.rs` | one-way delays, from the files of both ends |

mod anatomy;
mod connection;
mod event;
mod header;
mod numbers;
pub mod pair;
mod records;

use core::fmt;
use std::io::{self, Read};

use lastbyte_json::{
    Value,
    parse::{Keys, Parser, Projection},
};
use lastbyte_query::{ByteSource, Input};

pub use self::numbers::{Moment, Sender};
use self::{
    connection::Connection,
    header::Header,
    pair::End,
    records::{Broken, Framing, Source},
};
use crate::transfer::Arm;

/// A file has at most this many connections; further ones are not read.
const CONNECTIONS_MAX: usize = 8;
/// Records that are not JSON; more end the file.
const DAMAGED_MAX: u64 = 1000;

/// The content of a file.
#[derive(Debug)]
pub struct Reading {
    /// The connections with packets, in their order.
    pub arms: Vec<Arm>,
    /// What a connection log would have of each of them; `None` for a receiver.
    pub senders: Vec<Option<Sender>>,
    /// What joins each of them with the file of the other end.
    pub ends: Vec<End>,
    /// The title in the file. May be empty.
    pub title: String,
    /// The smallest round-trip time of all, in ms.
    pub rtt_min: Option<f64>,
    /// The number of events.
    pub events: u64,
    /// What a reader of the picture must know, such as numbers that the file does not tell.
    pub notes: Vec<String>,
    /// Why the file could not be read as a whole, if so.
    pub trouble: Option<String>,
}

/// A file that cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QlogError {
    /// It cannot be read.
    #[error("{0}")]
    Io(io::Error),
    /// It is not a qlog file.
    #[error(
        "not a qlog file: {0}; a qlog file is JSON, JSON lines or a JSON text sequence with `qlog_version` or `file_schema`"
    )]
    Foreign(String),
    /// Its events have a meaning that is not known, or no connection was established.
    #[error("{0}")]
    Refused(String),
    /// It is a qlog file without any packet.
    #[error(
        "none of the {events} events is a packet sent or received, so there is nothing to draw{}",
        trouble.as_ref().map(|trouble| format!("; {trouble}")).unwrap_or_default()
    )]
    NoPackets {
        /// The number of events.
        events: u64,
        /// Why the file could not be read to its end, if so.
        trouble: Option<String>,
    },
}

/// Reads a file, which `open` opens: a second time only if a header is behind events. Arms are named `label`, and numbered if there
/// are several.
///
/// # Errors
///
/// Returns [`QlogError::Io`] if the input fails, [`QlogError::Foreign`] if it is not qlog, [`QlogError::Refused`] if the numbers
/// would be wrong, and [`QlogError::NoPackets`] if there is nothing to draw. A file that breaks off is not an error if a part of
/// it can be drawn: see [`Reading::trouble`].
pub fn read(
    mut open: impl FnMut() -> io::Result<ByteSource>,
    label: &str,
) -> Result<Reading, QlogError> {
    let mut pass = |headers: Vec<Header>| {
        let source = open().and_then(|source| Input::new(label, move || Ok(source)).unpacked());
        let source = source.map_err(QlogError::Io)?;
        File::read(Source::new(source), headers)
    };
    let mut file = pass(Vec::new())?;
    if file.is_late_header {
        file = pass(file.headers).map_err(|error| {
            let what = "the header of a trace is behind its events, and the file cannot be read a second time (expected a regular file: save it first)";
            QlogError::Refused(format!("{what}: {error}"))
        })?;
    }
    file.finish(label)
}

struct File<R> {
    source: Source<R>,
    connections: Vec<Reader>,
    keys: Keys<Value>,
    events: u64,
    is_qlog: bool,
    title: String,
    /// Of each trace, as far as they are known; those of a pass before are complete.
    headers: Vec<Header>,
    /// The number of traces that have started.
    traces: usize,
    /// A header behind events has changed what they mean.
    is_late_header: bool,
    /// Events of connections beyond the maximum.
    unread: u64,
    damaged: u64,
    /// The first of them: where, and why.
    first_damaged: Option<(String, String)>,
    trouble: Option<String>,
}

/// A connection being read.
struct Reader {
    trace: usize,
    group: Option<String>,
    connection: Connection,
}

impl<R: Read> File<R> {
    fn read(source: Source<R>, headers: Vec<Header>) -> Result<Self, QlogError> {
        let mut file = Self {
            source,
            connections: Vec::new(),
            keys: Keys::default(),
            events: 0,
            is_qlog: false,
            title: String::new(),
            headers,
            traces: 0,
            is_late_header: false,
            unread: 0,
            damaged: 0,
            first_damaged: None,
            trouble: None,
        };
        let after = |events: u64, reason: &dyn fmt::Display| {
            Some(format!("after {events} events: {reason}"))
        };
        match file.all() {
            Ok(()) => {}
            Err(Broken::Io(error)) if file.events == 0 => return Err(QlogError::Io(error)),
            Err(Broken::Syntax(reason) | Broken::Damaged(reason)) if !file.is_qlog => {
                return Err(QlogError::Foreign(reason));
            }
            Err(Broken::Io(error)) => file.trouble = after(file.events, &error),
            Err(Broken::Syntax(reason) | Broken::Damaged(reason)) => {
                file.trouble = after(file.events, &reason);
            }
        }
        if !file.is_qlog {
            return Err(QlogError::Foreign(
                "its first object has no version".to_owned(),
            ));
        }
        Ok(file)
    }

    fn finish(self, label: &str) -> Result<Reading, QlogError> {
        let mut troubles = Vec::new();
        if let Some((place, why)) = self.first_damaged {
            troubles.push(match self.damaged {
                1 => format!("{place} is damaged and was skipped: {why}"),
                more => {
                    format!("{more} records are damaged and were skipped, {place} first: {why}")
                }
            });
        }
        troubles.extend(self.trouble);
        let trouble = (!troubles.is_empty()).then(|| troubles.join("; "));
        let mut notes = Vec::new();
        if self.unread > 0 {
            notes.push(format!(
                "not read, since there are more than {CONNECTIONS_MAX} connections: {} events",
                self.unread
            ));
        }
        let (mut arms, mut senders, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        let (mut refused, mut rtt_min) = (Vec::new(), None::<f64>);
        for reader in self.connections {
            let connection = reader.connection;
            if let Some(reason) = connection.refused() {
                refused.push(reason);
                continue;
            }
            if !connection.has_packets() {
                continue;
            }
            notes.extend(connection.notes());
            rtt_min = [rtt_min, connection.rtt_min()]
                .into_iter()
                .flatten()
                .reduce(f64::min);
            let (arm, sender, end) = connection.finish(label);
            arms.push(arm);
            senders.push(sender);
            let header = self.headers.get(reader.trace.saturating_sub(1));
            let of_trace = || header.and_then(|header| header.group.clone());
            ends.push(End {
                group: reader.group.or_else(of_trace),
                title: self.title.clone(),
                ..end
            });
        }
        if arms.is_empty() {
            let events = self.events;
            return Err(match refused.into_iter().next() {
                Some(reason) => QlogError::Refused(reason),
                None => QlogError::NoPackets { events, trouble },
            });
        }
        notes.extend(
            refused
                .into_iter()
                .map(|reason| format!("a connection is not drawn: {reason}")),
        );
        notes.dedup();
        if arms.len() > 1 {
            for (number, arm) in arms.iter_mut().enumerate() {
                arm.label = format!("{} {}", arm.label, number + 1);
            }
        }
        Ok(Reading {
            arms,
            senders,
            ends,
            title: self.title,
            rtt_min,
            events: self.events,
            notes,
            trouble,
        })
    }

    /// The header, or the whole of a document; then the events of a sequence.
    fn all(&mut self) -> Result<(), Broken> {
        self.source.skip_mark()?;
        match self.source.peek()? {
            Some(b'{') => {}
            Some(other) => return Err(Broken::unexpected(other, "`{`")),
            None => return Err(Broken::Syntax("it is empty".to_owned())),
        }
        self.source.take()?;
        let line = self.source.line();
        self.start_trace();
        while let Some(key) = self.source.key()? {
            match key.as_str() {
                "traces" => self.traces()?,
                "trace" => {
                    let value = self.value()?;
                    self.header().read(&value);
                }
                "qlog_version" | "file_schema" => {
                    self.is_qlog = true;
                    self.source.value()?;
                }
                "title" => {
                    let value = self.value()?;
                    value
                        .as_str()
                        .unwrap_or_default()
                        .clone_into(&mut self.title);
                }
                "events" => {
                    return Err(Broken::Syntax(
                        "its events are not in traces, as those of qlog 0.1 (expected draft-00 or later)".to_owned(),
                    ));
                }
                _ => {
                    self.source.value()?;
                }
            }
        }
        if !self.is_qlog {
            return Err(Broken::Syntax("its first object has no version".to_owned()));
        }
        let is_one_line = self.source.line() == line;
        let is_sequence = self.source.peek()?.is_some();
        self.source
            .set_lines(is_sequence && is_one_line && self.source.line() > line);
        while self.source.peek()?.is_some() {
            self.event_or_skip()?;
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
            self.start_trace();
            let mut before = None;
            while let Some(key) = self.source.key()? {
                if key == "events" {
                    // The version may be behind the events.
                    self.is_qlog = true;
                    before = Some(self.header().clone());
                    self.events_of_document()?;
                } else if Header::owns(&key) {
                    let value = self.value()?;
                    self.header().read_field(&key, &value);
                } else {
                    self.source.value()?;
                }
            }
            if let Some(mut before) = before {
                // The ID of the connection does not change what events mean.
                before.group.clone_from(&self.header().group);
                self.is_late_header |= before != *self.header();
            }
        }
        Ok(())
    }

    /// The events of a document. If each of the first ones is a line of its own, all are taken to be.
    fn events_of_document(&mut self) -> Result<(), Broken> {
        self.source.open(b'[')?;
        let mut is_lines = true;
        let mut newest = self.source.line();
        let mut read = 0;
        while self.source.has_element()? {
            let start = self.source.line();
            is_lines &= read == 0 || start > newest;
            if is_lines && read >= 2 {
                self.source.set_lines(true);
            }
            self.event_or_skip()?;
            newest = self.source.line();
            is_lines &= newest == start || self.source.framing() == Framing::Lines;
            read += 1;
        }
        self.source.set_lines(false);
        Ok(())
    }

    /// A trace starts. Its header is known if the file is read a second time.
    fn start_trace(&mut self) {
        self.traces += 1;
        if self.headers.len() < self.traces {
            self.headers.push(Header::default());
        }
    }

    /// The header of the trace.
    fn header(&mut self) -> &mut Header {
        let last = self.traces.max(1) - 1;
        if self.headers.len() <= last {
            self.headers.resize(last + 1, Header::default());
        }
        &mut self.headers[last]
    }

    fn value(&mut self) -> Result<Value, Broken> {
        let text = self.source.value()?;
        let parsed = Parser::new(text, &mut self.keys).only(&Projection::Whole);
        parsed.map_err(|error| Broken::Syntax(error.to_string()))
    }

    /// An event. One that is not JSON is skipped if the next one can be found.
    fn event_or_skip(&mut self) -> Result<(), Broken> {
        let Err(broken) = self.event() else {
            return Ok(());
        };
        let Broken::Damaged(why) = broken else {
            return Err(broken);
        };
        self.damaged += 1;
        if self.damaged > DAMAGED_MAX {
            return Err(Broken::Syntax(format!(
                "more than {DAMAGED_MAX} records are damaged"
            )));
        }
        let Some(place) = self.source.skip_damaged()? else {
            self.damaged -= 1;
            return Err(Broken::Syntax(why));
        };
        self.first_damaged.get_or_insert((place, why));
        Ok(())
    }

    fn event(&mut self) -> Result<(), Broken> {
        let text = self.source.value()?;
        let parsed = Parser::new(text, &mut self.keys).only(event::projection());
        let event = parsed.map_err(|error| Broken::Damaged(error.to_string()))?;
        if event
            .get("qlog_version")
            .or_else(|| event.get("file_schema"))
            .is_some()
        {
            // Files in a row.
            self.start_trace();
            if let Some(trace) = event.get("trace") {
                self.header().read(trace);
            }
            return Ok(());
        }
        self.events += 1;
        let fields = self.header().fields(&event);
        match self.connection(fields.group) {
            Some(connection) => connection.event(&fields),
            None => self.unread += 1,
        }
        Ok(())
    }

    /// The connection of an event: that of its group, or the newest one of the trace. `None` beyond the maximum.
    fn connection(&mut self, group: Option<&str>) -> Option<&mut Connection> {
        let trace = self.traces;
        let mut found = None;
        for (index, reader) in self.connections.iter_mut().enumerate().rev() {
            if reader.trace != trace {
                break;
            }
            // Events without a group are those of the connection before.
            if group.is_none() || reader.group.as_deref() == group {
                found = Some(index);
                break;
            }
            if reader.group.is_none() {
                reader.group = group.map(str::to_owned);
                found = Some(index);
                break;
            }
        }
        if found.is_none() {
            // A trace without packets is not a connection.
            self.connections
                .retain(|reader| reader.trace == trace || reader.connection.has_packets());
            if self.connections.len() >= CONNECTIONS_MAX {
                return None;
            }
            let connection = Connection::new(self.header().clone());
            self.connections.push(Reader {
                trace,
                group: group.map(str::to_owned),
                connection,
            });
        }
        let index = found.unwrap_or(self.connections.len().checked_sub(1)?);
        self.connections
            .get_mut(index)
            .map(|reader| &mut reader.connection)
    }
}

#[cfg(test)]
mod tests;
