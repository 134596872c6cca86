//! Flow control of the stream data of one direction (RFC 9000 §4): its limits, and when it stopped the sender.
//!
//! Limits count stream data only, and a picture counts the bytes of packets. A limit is therefore drawn at the height at which the
//! bytes of packets reach it: the bytes of packets so far, and what the limit still allows.

use std::collections::BTreeMap;

use lastbyte_json::Value;

use super::{bounded::Bounded, event};
use crate::transfer::Point;

/// Streams of which the data are counted. Beyond it, the limit of the connection is unknown.
const STREAMS_MAX: usize = 65_536;
/// Periods that are drawn.
const PERIODS_MAX: usize = 10_000;
/// A limit has a new point once what is sent beside stream data has grown by this share of the limit.
const DRIFT: f64 = 0.001;

/// The data that a limit counts.
#[derive(Debug, Default)]
struct Window {
    used: u64,
    limit: Option<u64>,
    points: Bounded,
    /// The height of the newest point above the limit.
    drawn: Option<f64>,
    /// The limit is reached since then, in ms.
    full_since: Option<f64>,
    /// The sender reported that it is blocked.
    is_reported: bool,
    /// The limit was reached without a report in this period. It stopped the sender if more data follow.
    possible: Option<(f64, f64)>,
    periods: Vec<(f64, f64)>,
}

impl Window {
    fn is_full(&self) -> bool {
        self.full_since.is_some()
    }

    /// More data were sent, with the packet up to these bytes of packets.
    fn advance(&mut self, now: f64, bytes: u64, packets: u64) {
        self.used = self.used.saturating_add(bytes);
        if let Some(period) = self.possible.take() {
            self.add(period);
        }
        if self.limit.is_some_and(|limit| self.used >= limit) {
            self.full_since.get_or_insert(now);
        }
        self.draw(now, packets);
    }

    /// The receiver allows more.
    fn raise(&mut self, now: f64, limit: u64, packets: u64) {
        if self.limit.is_some_and(|known| known >= limit) {
            return;
        }
        self.limit = Some(limit);
        if self.used < limit
            && let Some(since) = self.full_since.take()
        {
            if core::mem::take(&mut self.is_reported) {
                self.add((since, now));
            } else {
                self.possible = Some((since, now));
            }
        }
        self.drawn = None;
        self.draw(now, packets);
    }

    /// The sender reports that this limit blocks it.
    fn report(&mut self, now: f64, limit: u64, packets: u64) {
        if self.limit.is_none_or(|known| known < limit) {
            self.raise(now, limit, packets);
        }
        if self.limit == Some(limit) {
            self.is_reported = true;
            self.full_since.get_or_insert(now);
            self.draw(now, packets);
        }
    }

    fn draw(&mut self, now: f64, packets: u64) {
        let Some(limit) = self.limit else {
            return;
        };
        let above = packets as f64 - self.used as f64;
        let tolerated = if self.is_full() {
            0.0
        } else {
            limit as f64 * DRIFT
        };
        if self
            .drawn
            .is_none_or(|drawn| (above - drawn).abs() > tolerated)
        {
            self.drawn = Some(above);
            self.points.push(now, limit as f64 + above);
        }
    }

    fn add(&mut self, (from, to): (f64, f64)) {
        if to > from && self.periods.len() < PERIODS_MAX {
            self.periods.push((from, to));
        }
    }

    fn finish(mut self, now: f64, total: u64) -> Limit {
        if let Some(since) = self.full_since
            && self.is_reported
        {
            self.add((since, now));
        }
        let mut points = self.points.finish();
        // A limit that is far above the data all the time is not drawn.
        if !points
            .iter()
            .any(|point| point.value <= total as f64 * 1.05)
        {
            points.clear();
        }
        Limit {
            points,
            periods: self.periods,
        }
    }
}

/// A limit over time.
#[derive(Debug, Default)]
pub(super) struct Limit {
    /// At the scale of the bytes of packets.
    pub(super) points: Vec<Point>,
    /// When it stopped the sender, in ms.
    pub(super) periods: Vec<(f64, f64)>,
}

#[derive(Debug, Default)]
struct Stream {
    window: Window,
    is_complete: bool,
}

/// The stream data of one direction.
#[derive(Debug, Default)]
pub(super) struct Flow {
    connection: Window,
    streams: BTreeMap<u64, Stream>,
    /// Streams whose limit is reached.
    full: usize,
    /// The limits of new streams: of bidirectional streams that the sender starts, that the receiver starts, and of
    /// unidirectional ones.
    initial: [Option<u64>; 3],
    has_too_many: bool,
}

impl Flow {
    /// Stream data sent so far, without retransmissions.
    pub(super) const fn data(&self) -> u64 {
        self.connection.used
    }

    /// Whether a limit is reached, so that the sender may have to wait.
    pub(super) fn is_full(&self) -> bool {
        self.connection.is_full() || self.full > 0
    }

    /// The receiver's transport parameters.
    pub(super) fn parameters(&mut self, now: f64, data: &Value, packets: u64) {
        let value = |key: &str| data.get(key).and_then(event::whole);
        if let Some(limit) = value("initial_max_data") {
            self.connection.raise(now, limit, packets);
        }
        // `local` and `remote` are from the view of the endpoint that sends the parameters.
        let keys = [
            "initial_max_stream_data_bidi_remote",
            "initial_max_stream_data_bidi_local",
            "initial_max_stream_data_uni",
        ];
        for (initial, key) in self.initial.iter_mut().zip(keys) {
            *initial = value(key).or(*initial);
        }
    }

    /// A STREAM frame of the sender, in the packet up to these bytes of packets. `is_client` is of the sender.
    pub(super) fn stream(
        &mut self,
        now: f64,
        frame: &Value,
        is_client: Option<bool>,
        packets: u64,
    ) {
        let Some(id) = stream_id(frame) else {
            return;
        };
        let offset = frame.get("offset").and_then(event::whole).unwrap_or(0);
        let Some(length) = event::length(frame) else {
            // Without lengths, nothing can be counted.
            self.has_too_many = true;
            return;
        };
        let Some(stream) = self.entry(now, id, is_client, packets) else {
            return;
        };
        let new = offset
            .saturating_add(length)
            .saturating_sub(stream.window.used);
        let was_full = stream.window.is_full();
        if frame.get("fin").and_then(Value::as_bool) == Some(true) {
            stream.is_complete = true;
        }
        if new > 0 {
            stream.window.advance(now, new, packets);
        }
        if stream.is_complete {
            stream.window.full_since = None;
        }
        let is_full = stream.window.is_full();
        self.full = self.full + usize::from(is_full) - usize::from(was_full);
        if new > 0 {
            self.connection.advance(now, new, packets);
        } else {
            self.connection.draw(now, packets);
        }
    }

    /// A limit of the connection or of a stream: raised by the receiver, or reported by a sender that it blocks.
    pub(super) fn limit(
        &mut self,
        now: f64,
        kind: &str,
        frame: &Value,
        is_client: Option<bool>,
        packets: u64,
    ) {
        let is_raise = kind.starts_with("max_");
        let keys: &[&str] = if is_raise {
            &["maximum", "maximum_data", "limit"]
        } else {
            &["limit", "maximum", "data_limit", "offset"]
        };
        let change = if is_raise {
            Window::raise
        } else {
            Window::report
        };
        let Some(limit) = event::first_of(frame, keys) else {
            return;
        };
        if matches!(kind, "max_data" | "data_blocked") {
            change(&mut self.connection, now, limit, packets);
        } else if let Some(id) = stream_id(frame) {
            self.with(now, id, is_client, packets, |window| {
                change(window, now, limit, packets);
            });
        }
    }

    fn with(
        &mut self,
        now: f64,
        id: u64,
        is_client: Option<bool>,
        packets: u64,
        change: impl FnOnce(&mut Window),
    ) {
        let Some(stream) = self.entry(now, id, is_client, packets) else {
            return;
        };
        if stream.is_complete {
            return;
        }
        let was_full = stream.window.is_full();
        change(&mut stream.window);
        let is_full = stream.window.is_full();
        self.full = self.full + usize::from(is_full) - usize::from(was_full);
    }

    /// A stream; a new one has its initial limit (RFC 9000 §18.2).
    fn entry(
        &mut self,
        now: f64,
        id: u64,
        is_client: Option<bool>,
        packets: u64,
    ) -> Option<&mut Stream> {
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&id) {
            self.has_too_many = true;
            return None;
        }
        let is_senders = is_client.map(|is_client| (id & 1 == 0) == is_client);
        let initial = match (id & 2 == 0, is_senders) {
            (false, _) => self.initial[2],
            (true, Some(true)) => self.initial[0],
            (true, Some(false)) => self.initial[1],
            (true, None) => None,
        };
        let stream = self.streams.entry(id).or_default();
        if stream.window.limit.is_none()
            && let Some(limit) = initial
        {
            stream.window.raise(now, limit, packets);
        }
        Some(stream)
    }

    /// The limits of the connection and of the largest stream at the end, after this many bytes of packets.
    pub(super) fn finish(self, now: f64, packets: u64) -> [Limit; 2] {
        let connection = if self.has_too_many {
            Limit::default()
        } else {
            self.connection.finish(now, packets)
        };
        let largest = self
            .streams
            .into_values()
            .max_by_key(|stream| stream.window.used);
        let stream =
            largest.map_or_else(Limit::default, |stream| stream.window.finish(now, packets));
        [connection, stream]
    }
}

fn stream_id(frame: &Value) -> Option<u64> {
    event::first_of(frame, &["stream_id", "id"])
}
