//! Unsent data: flights of the TLS handshake, and application data in records.

use std::collections::VecDeque;

use super::{segment::Progress, tls::Tls};

/// The unsent part of a stream.
#[derive(Debug)]
pub(super) struct Outgoing {
    record_overhead: u64,
    record_size: u64,
    /// Flights of the handshake, which precede application data.
    flights: VecDeque<u32>,
    /// Application data, a number of bytes for each write.
    writes: VecDeque<u64>,
    /// Whether application data may be sent.
    is_open: bool,
    record: Option<Record>,
    /// The progress at the end of the data taken.
    progress: Progress,
}

/// A record that has been taken in part.
#[derive(Clone, Copy, Debug)]
struct Record {
    left: u64,
    /// The progress once all of it is taken.
    completes: Progress,
    ends_write: bool,
}

/// The payload of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    pub(super) len: u32,
    /// The progress at its end.
    pub(super) progress: Progress,
    /// Whether it contains the end of a write.
    pub(super) push: bool,
}

impl Outgoing {
    pub(super) fn new(tls: &Tls) -> Self {
        Self {
            record_overhead: tls.record_overhead.into(),
            record_size: tls.record_size.into(),
            flights: VecDeque::new(),
            writes: VecDeque::new(),
            is_open: false,
            record: None,
            progress: Progress::default(),
        }
    }

    pub(super) fn write_flight(&mut self, bytes: u32) {
        self.flights.push_back(bytes);
    }

    pub(super) fn write(&mut self, bytes: u64) {
        if bytes > 0 {
            self.writes.push_back(bytes);
        }
    }

    /// Permits application data from now on.
    pub(super) const fn open(&mut self) {
        self.is_open = true;
    }

    /// Whether data can be sent now.
    pub(super) fn has_data(&self) -> bool {
        self.record.is_some()
            || !self.flights.is_empty()
            || (self.is_open && !self.writes.is_empty())
    }

    /// Application data that was written and not taken, in bytes.
    pub(super) fn unsent(&self) -> u64 {
        self.writes.iter().sum::<u64>() + self.record.map_or(0, |record| record.left)
    }

    /// Takes at most `max` bytes. `None` if there is nothing to send.
    pub(super) fn take(&mut self, max: u32) -> Option<Payload> {
        let mut len = 0;
        let mut push = false;
        while len < u64::from(max) {
            let Some(mut record) = self.record.take().or_else(|| self.next_record()) else {
                break;
            };
            let taken = record.left.min(u64::from(max) - len);
            len += taken;
            record.left -= taken;
            if self.record_size == 0 && record.completes.flights == self.progress.flights {
                self.progress.application += taken;
            }
            if record.left > 0 {
                self.record = Some(record);
            } else {
                self.progress = record.completes;
                push |= record.ends_write;
            }
        }
        (len > 0).then_some(Payload {
            len: len as u32,
            progress: self.progress,
            push,
        })
    }

    fn next_record(&mut self) -> Option<Record> {
        let mut completes = self.progress;
        if let Some(bytes) = self.flights.pop_front() {
            completes.flights += 1;
            return Some(Record {
                left: bytes.into(),
                completes,
                ends_write: true,
            });
        }
        let write = self.writes.front_mut().filter(|_| self.is_open)?;
        let bytes = if self.record_size == 0 {
            *write
        } else {
            self.record_size.min(*write)
        };
        *write -= bytes;
        let ends_write = *write == 0;
        if ends_write {
            self.writes.pop_front();
        }
        completes.application += bytes;
        Some(Record {
            left: bytes + self.record_overhead,
            completes,
            ends_write,
        })
    }
}

#[cfg(test)]
mod tests;
