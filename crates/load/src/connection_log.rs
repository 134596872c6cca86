//! The connection log of the generator: a line per connection over QUIC, as the client sees it.
//!
//! Keeps the values of a connection until its line is written, at its end. Opens no file.

use core::fmt;
use std::sync::Arc;

use lastbyte_driver::Clock;
use lastbyte_http3::Response;
use lastbyte_quic::{Time, connection::Connection, endpoint::Handle};
use lastbyte_record::connection_log::{self, Experiment, Header, Snapshot};
use lastbyte_wire::StreamId;

/// Receives the lines of a connection log, from all threads.
pub trait LineSink: fmt::Debug + Send + Sync {
    /// Takes a line, which ends with a line break.
    fn line(&self, line: &str);
}

/// A connection whose line has not been written.
#[derive(Clone, Copy, Debug)]
struct Entry {
    handle: Handle,
    number: u64,
    started: Time,
    handshake: Option<Time>,
    /// The stream of the first response, when its header arrived, and its length.
    first: Option<(StreamId, Time, u64)>,
    /// When it was complete.
    last_byte: Option<Time>,
}

/// The log of one thread.
#[derive(Debug)]
pub(crate) struct ConnectionLog {
    sink: Arc<dyn LineSink>,
    method: String,
    /// By the index of the handle.
    entries: Vec<Option<Entry>>,
    /// The number of the next connection, and the number of threads: numbers are unique in a run.
    next: u64,
    step: u64,
    line: String,
}

impl ConnectionLog {
    pub(crate) fn new(
        sink: Arc<dyn LineSink>,
        method: &str,
        thread: usize,
        threads: usize,
    ) -> Self {
        Self {
            sink,
            method: method.to_owned(),
            entries: Vec::new(),
            next: thread as u64,
            step: threads as u64,
            line: String::new(),
        }
    }

    pub(crate) fn on_started(&mut self, now: Time, handle: Handle) {
        let place = handle.index() as usize;
        if self.entries.len() <= place {
            self.entries.resize(place + 1, None);
        }
        self.entries[place] = Some(Entry {
            handle,
            number: self.next,
            started: now,
            handshake: None,
            first: None,
            last_byte: None,
        });
        self.next += self.step;
    }

    pub(crate) fn on_handshake(&mut self, now: Time, handle: Handle) {
        if let Some(entry) = self.entry(handle) {
            entry.handshake = Some(now);
        }
    }

    pub(crate) fn on_head(
        &mut self,
        now: Time,
        handle: Handle,
        stream: StreamId,
        response: &Response,
    ) {
        if let Some(entry) = self.entry(handle).filter(|entry| entry.first.is_none()) {
            let length = response.fields().get("content-length");
            let length = length.and_then(|value| core::str::from_utf8(value).ok()?.parse().ok());
            entry.first = Some((stream, now, length.unwrap_or(0)));
        }
    }

    pub(crate) fn on_finished(&mut self, now: Time, handle: Handle, stream: StreamId) {
        if let Some(entry) = self.entry(handle)
            && entry.first.is_some_and(|(first, ..)| first == stream)
        {
            entry.last_byte = Some(now);
        }
    }

    /// Writes the line of a connection, once.
    pub(crate) fn write(&mut self, handle: Handle, connection: &Connection) {
        let Some(entry) = self.entry(handle).copied() else {
            return;
        };
        self.entries[handle.index() as usize] = None;
        let header = Header {
            time_ms: u64::try_from(Clock::since_epoch().as_millis()).unwrap_or(u64::MAX),
            conn_id: entry.number,
            method: self.method.clone(),
            content_length: entry.first.map_or(0, |(.., length)| length),
            // It ends when the server has received the last acknowledgment.
            ttlb_ms: None,
        };
        let since_start = |at: Time| at.since(entry.started).as_secs_f64() * 1e3;
        let experiment = Experiment {
            client_ttlb_ms: entry.last_byte.map(since_start),
            client_ttfb_ms: entry.first.map(|(_, at, _)| since_start(at)),
            client_handshake_ms: entry.handshake.map(since_start),
            ..Experiment::default()
        };
        self.line.clear();
        let snapshot = Snapshot::of(connection);
        connection_log::write(&mut self.line, &header, &snapshot, &experiment);
        self.line.push('\n');
        self.sink.line(&self.line);
    }

    fn entry(&mut self, handle: Handle) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(handle.index() as usize)?.as_mut();
        entry.filter(|entry| entry.handle == handle)
    }
}
