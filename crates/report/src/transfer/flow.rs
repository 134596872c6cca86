//! Flow control of the stream data of one direction (RFC 9000 §4): its limits, and when it stopped the sender.
//!
//! Limits count stream data only, and a picture counts the bytes of packets. A limit is therefore drawn at the height at which the
//! bytes of packets reach it: the bytes of packets so far, and what the limit still allows. A receiver's bytes lag behind the offsets
//! while lost data are missing; they are still to come, so the height never falls.

use std::collections::BTreeMap;

use super::{Arm, Point, bounded::Bounded};

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
    /// The most that the bytes of packets were ahead of the stream data: the height above the limit.
    above: f64,
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
        // The first packet is counted before its data.
        if self.used > 0 {
            self.above = self.above.max(packets as f64 - self.used as f64);
        }
        let above = self.above;
        let Some(limit) = self.limit else {
            return;
        };
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
struct Limit {
    /// At the scale of the bytes of packets.
    points: Vec<Point>,
    /// When it stopped the sender, in ms.
    periods: Vec<(f64, f64)>,
}

#[derive(Debug, Default)]
struct Stream {
    window: Window,
    is_complete: bool,
}

/// The data of a STREAM frame, as a limit counts them.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// The stream.
    pub id: u64,
    /// The offset of the data.
    pub offset: u64,
    /// Their length.
    pub length: u64,
    /// Whether the stream ends with them.
    pub is_last: bool,
}

/// The stream data of one direction. Times are in ms, and `packets` are the bytes of all packets so far, with the one that has the
/// frame.
#[derive(Debug, Default)]
pub struct Flow {
    connection: Window,
    streams: BTreeMap<u64, Stream>,
    /// Streams whose limit is reached.
    full: usize,
    /// See [`Self::start`].
    initial: [Option<u64>; 3],
    has_too_many: bool,
}

impl Flow {
    /// Stream data sent so far, without retransmissions.
    pub const fn data(&self) -> u64 {
        self.connection.used
    }

    /// Whether a limit is reached, so that the sender may have to wait.
    pub fn is_full(&self) -> bool {
        self.connection.is_full() || self.full > 0
    }

    /// The limits of the receiver's transport parameters: of the connection, and of new streams, which are bidirectional streams that the
    /// sender starts, that the receiver starts, and unidirectional ones. One that is not known does not change.
    pub fn start(
        &mut self,
        now: f64,
        connection: Option<u64>,
        streams: [Option<u64>; 3],
        packets: u64,
    ) {
        if let Some(limit) = connection {
            self.connection.raise(now, limit, packets);
        }
        for (initial, limit) in self.initial.iter_mut().zip(streams) {
            *initial = limit.or(*initial);
        }
    }

    /// A STREAM frame of the sender. `is_client` is of the sender.
    pub fn stream(&mut self, now: f64, frame: Data, is_client: Option<bool>, packets: u64) {
        let Some(stream) = self.entry(now, frame.id, is_client, packets) else {
            return;
        };
        let end = frame.offset.saturating_add(frame.length);
        let new = end.saturating_sub(stream.window.used);
        let was_full = stream.window.is_full();
        stream.is_complete |= frame.is_last;
        if new > 0 {
            stream.window.advance(now, new, packets);
        } else {
            stream.window.draw(now, packets);
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

    /// The sender sent stream data of unknown length: nothing can be counted.
    pub fn uncounted(&mut self) {
        self.has_too_many = true;
    }

    /// The receiver raises the limit of this stream, or of the connection.
    pub fn raise(
        &mut self,
        now: f64,
        id: Option<u64>,
        limit: u64,
        is_client: Option<bool>,
        packets: u64,
    ) {
        self.with(now, id, is_client, packets, |window| {
            window.raise(now, limit, packets);
        });
    }

    /// The sender reports that the limit of this stream, or of the connection, blocks it.
    pub fn report(
        &mut self,
        now: f64,
        id: Option<u64>,
        limit: u64,
        is_client: Option<bool>,
        packets: u64,
    ) {
        self.with(now, id, is_client, packets, |window| {
            window.report(now, limit, packets);
        });
    }

    fn with(
        &mut self,
        now: f64,
        id: Option<u64>,
        is_client: Option<bool>,
        packets: u64,
        change: impl FnOnce(&mut Window),
    ) {
        let Some(id) = id else {
            change(&mut self.connection);
            return;
        };
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

    /// Draws the limits of the connection and of the largest stream, and when they stopped the sender. The transfer ends now, after this
    /// many bytes of packets.
    pub fn draw(self, now: f64, packets: u64, arm: &mut Arm) {
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
        arm.blocked = united(connection.periods, stream.periods);
        arm.connection_limit = connection.points;
        arm.stream_limit = stream.points;
    }
}

/// Periods of both, in the order of time; those that overlap are one.
fn united(mut periods: Vec<(f64, f64)>, others: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    periods.extend(others);
    periods.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut united: Vec<(f64, f64)> = Vec::with_capacity(periods.len());
    for (from, to) in periods {
        match united.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => united.push((from, to)),
        }
    }
    united
}
