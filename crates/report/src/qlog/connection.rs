//! From the events of a connection to an arm: bytes sent, acknowledged and lost, window and round-trip time, and the names of what
//! happened.
//!
//! Bytes count as in [`Arm::sent`]: a packet's value is the number of bytes sent up to and including it. A connection that
//! receives more than it sends shows the bytes received.

use std::{collections::VecDeque, sync::LazyLock};

use lastbyte_json::{Value, parse::Projection};

use super::bounded::Bounded;
use crate::transfer::Arm;

/// Packets neither acknowledged nor lost yet; beyond the bound, the oldest are removed.
const OUTSTANDING_MAX: usize = 1 << 20;
/// Recovery periods and names of events beyond these are not drawn.
const RECOVERIES_MAX: usize = 10_000;
/// A time from here on, in ms, is a date, not a span from the start.
const DATE_MS: f64 = 1e11;

/// The parsed fields of an event.
pub(super) struct Frame;

impl Frame {
    /// Frames matter only in packets received, whose ACK frames say what has arrived.
    pub(super) fn projection(text: &[u8]) -> &'static Projection {
        static WITH_FRAMES: LazyLock<Projection> = LazyLock::new(|| projection(true));
        static WITHOUT: LazyLock<Projection> = LazyLock::new(|| projection(false));
        let start = &text[..text.len().min(200)];
        let is_sent = start.windows(11).any(|part| part == b"packet_sent");
        if is_sent { &WITHOUT } else { &WITH_FRAMES }
    }
}

fn projection(has_frames: bool) -> Projection {
    let whole = |keys: &[&str]| -> Vec<(String, Projection)> {
        let keys = keys.iter();
        keys.map(|key| ((*key).to_owned(), Projection::Whole))
            .collect()
    };
    let mut data = whole(&[
        "packet_number",
        "packet_type",
        "packet_size",
        "new",
        "congestion_window",
        "cwnd",
        "bytes_in_flight",
        "smoothed_rtt",
        "latest_rtt",
        "min_rtt",
        "pacing_rate",
        "ssthresh",
    ]);
    data.push((
        "header".to_owned(),
        Projection::Fields(whole(&["packet_number", "packet_type", "packet_size"])),
    ));
    data.push((
        "raw".to_owned(),
        Projection::Fields(whole(&["length", "payload_length"])),
    ));
    if has_frames {
        data.extend(whole(&["frames"]));
    }
    let mut event = whole(&["time", "relative_time", "name", "category", "event", "type"]);
    event.push(("data".to_owned(), Projection::Fields(data)));
    Projection::Fields(event)
}

/// How times are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Times {
    /// Since the start, or since a date.
    #[default]
    Absolute,
    /// Since the event before.
    Delta,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// Bytes up to and including it.
    until: u64,
    is_known: bool,
}

/// A connection, as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct Connection {
    is_client: bool,
    times: Times,
    /// Times are in microseconds.
    has_micros: bool,
    /// The places of time, category, type and data of an event that is an array.
    columns: Option<[Option<usize>; 4]>,
    /// The first time, if times are dates.
    origin: Option<f64>,
    now: f64,
    sent_bytes: u64,
    received_bytes: u64,
    sent_packets: u64,
    lost_packets: u64,
    /// Packets of the application space from `first` on.
    outstanding: VecDeque<Sent>,
    first: u64,
    series: Series,
    rtt_min: Option<f64>,
    smoothed: Option<f64>,
    state: Option<String>,
    recovery_since: Option<f64>,
    recovery: Vec<(f64, f64)>,
    named: Named,
}

#[derive(Debug, Default)]
struct Series {
    sent: Bounded,
    acked: Bounded,
    arrived: Bounded,
    lost: Bounded,
    window: Bounded,
    in_flight: Bounded,
    pacing: Bounded,
    rtt: Bounded,
    rtt_smoothed: Bounded,
}

/// What gets a name in the picture.
#[derive(Debug, Default)]
struct Named {
    startup_ends: Option<f64>,
    conservative: Option<f64>,
    second_recovery: Option<f64>,
    first_loss: Option<f64>,
    /// Bytes of packets declared lost within a round trip after the first loss.
    overshoot_packets: u64,
    last_sent: Option<f64>,
    /// The longest time between two packets sent, and when it starts.
    gap: (f64, f64),
    closed: Option<f64>,
}

impl Connection {
    pub(super) const fn has_packets(&self) -> bool {
        self.sent_packets > 0 || self.received_bytes > 0
    }

    pub(super) const fn rtt_min(&self) -> Option<f64> {
        self.rtt_min
    }

    /// The header of a trace.
    pub(super) fn header(&mut self, trace: &Value) {
        for (key, value) in trace.as_object().unwrap_or_default() {
            self.header_field(key, value);
        }
    }

    pub(super) fn header_field(&mut self, key: &str, value: &Value) {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        match key {
            "vantage_point" => {
                let kind = text("type").or_else(|| value.as_str());
                self.is_client = kind == Some("client");
            }
            "common_fields" | "configuration" => {
                if let Some(units) = text("time_units") {
                    self.has_micros = units == "us";
                }
                if let Some(format) = text("time_format") {
                    let is_delta = matches!(format, "delta" | "relative_to_previous_event");
                    self.times = if is_delta {
                        Times::Delta
                    } else {
                        Times::Absolute
                    };
                }
            }
            "event_fields" => {
                let names: Vec<String> = value
                    .columns()
                    .iter()
                    .map(|name| name.as_str().unwrap_or_default().to_ascii_lowercase())
                    .collect();
                let place = |wanted: &[&str]| {
                    names
                        .iter()
                        .position(|name| wanted.contains(&name.as_str()))
                };
                if names.iter().any(|name| name == "delta_time") {
                    self.times = Times::Delta;
                }
                self.columns = Some([
                    place(&["relative_time", "time", "delta_time"]),
                    place(&["category"]),
                    place(&["event", "event_type", "type", "name"]),
                    place(&["data"]),
                ]);
            }
            _ => {}
        }
    }

    pub(super) fn event(&mut self, event: &Value) {
        let null = Value::Null;
        let (time, name, data) = if let Some(fields) = event.as_array() {
            let columns = self.columns.unwrap_or([Some(0), Some(1), Some(2), Some(3)]);
            let field = |column: usize| columns[column].and_then(|place| fields.get(place));
            (field(0), field(2), field(3))
        } else {
            let name = ["name", "event", "type"];
            (
                event.get("time").or_else(|| event.get("relative_time")),
                name.iter().find_map(|key| event.get(key)),
                event.get("data"),
            )
        };
        if let Some(time) = time.and_then(number) {
            self.tick(time);
        }
        let name = name.and_then(Value::as_str).unwrap_or_default();
        let name = name.rsplit(':').next().unwrap_or_default();
        let data = data.unwrap_or(&null);
        match name {
            "packet_sent" => self.packet_sent(data),
            "packet_received" => self.packet_received(data),
            "packet_lost" => self.packet_lost(data),
            "metrics_updated"
            | "metric_update"
            | "recovery_metrics_updated"
            | "recovery_parameters_set" => self.metrics(data),
            "congestion_state_updated" => {
                if let Some(state) = data.get("new").and_then(Value::as_str) {
                    self.state(state);
                }
            }
            "connection_closed" => {
                self.named.closed.get_or_insert(self.now);
            }
            _ => {}
        }
    }

    fn tick(&mut self, time: f64) {
        let ms = if self.has_micros { time / 1000.0 } else { time };
        self.now = match self.times {
            Times::Delta => self.now + ms,
            Times::Absolute => {
                if self.origin.is_none() {
                    self.origin = Some(if ms >= DATE_MS { ms } else { 0.0 });
                }
                ms - self.origin.unwrap_or(0.0)
            }
        };
    }

    fn packet_sent(&mut self, data: &Value) {
        let Some(size) = size(data) else {
            return;
        };
        self.sent_bytes += size;
        self.sent_packets += 1;
        self.series.sent.push(self.now, self.sent_bytes as f64);
        if let Some(last) = self.named.last_sent
            && self.sent_packets > 10
            && self.now - last > self.named.gap.0
        {
            self.named.gap = (self.now - last, last);
        }
        self.named.last_sent = Some(self.now);
        let Some(number) = application_number(data) else {
            return;
        };
        let Some(index) = number.checked_sub(self.first) else {
            return;
        };
        if index >= OUTSTANDING_MAX as u64 {
            // Too many have no known fate, or the number is not one that follows.
            self.outstanding.clear();
            self.first = number;
        }
        let index = (number - self.first) as usize;
        if self.outstanding.len() <= index {
            // Numbers that were skipped have no fate.
            let skipped = Sent {
                until: 0,
                is_known: true,
            };
            self.outstanding.resize(index + 1, skipped);
        }
        self.outstanding[index] = Sent {
            until: self.sent_bytes,
            is_known: false,
        };
    }

    fn packet_received(&mut self, data: &Value) {
        if let Some(size) = size(data) {
            self.received_bytes += size;
            self.series
                .arrived
                .push(self.now, self.received_bytes as f64);
        }
        if application_number(data).is_none() {
            return;
        }
        let frames = data.get("frames").and_then(Value::as_array);
        for frame in frames.unwrap_or_default() {
            if frame.get("frame_type").and_then(Value::as_str) != Some("ack") {
                continue;
            }
            let ranges = frame.get("acked_ranges").and_then(Value::as_array);
            let mut highest = 0;
            for range in ranges.unwrap_or_default() {
                let bounds = range.columns();
                let low = bounds.first().and_then(whole);
                let high = bounds.last().and_then(whole);
                if let Some((low, high)) = low.zip(high) {
                    highest = self.acked(low, high).max(highest);
                }
            }
            if highest > 0 {
                self.series.acked.push(self.now, highest as f64);
            }
        }
        self.forget_known();
    }

    /// Returns the bytes up to the highest of these packets that were not known to have arrived.
    fn acked(&mut self, low: u64, high: u64) -> u64 {
        let from = low.saturating_sub(self.first);
        if high < self.first {
            return 0;
        }
        let to = (high - self.first).saturating_add(1);
        let to = to.min(self.outstanding.len() as u64) as usize;
        let mut highest = 0;
        for sent in self.outstanding.range_mut((from as usize).min(to)..to) {
            if !sent.is_known {
                sent.is_known = true;
                highest = sent.until;
            }
        }
        highest
    }

    fn forget_known(&mut self) {
        while self.outstanding.front().is_some_and(|sent| sent.is_known) {
            self.outstanding.pop_front();
            self.first += 1;
        }
    }

    fn packet_lost(&mut self, data: &Value) {
        self.lost_packets += 1;
        let first = *self.named.first_loss.get_or_insert(self.now);
        let round_trip = self.smoothed.or(self.rtt_min).unwrap_or(0.0);
        if self.now <= first + round_trip {
            self.named.overshoot_packets += 1;
        }
        let Some(index) = application_number(data).and_then(|one| one.checked_sub(self.first))
        else {
            return;
        };
        if let Some(sent) = self.outstanding.get_mut(index as usize)
            && !sent.is_known
        {
            sent.is_known = true;
            self.series.lost.push(self.now, sent.until as f64);
        }
        self.forget_known();
    }

    fn metrics(&mut self, data: &Value) {
        let value = |key: &str| data.get(key).and_then(number);
        let unit = if self.has_micros { 1000.0 } else { 1.0 };
        let now = self.now;
        if let Some(window) = value("congestion_window").or_else(|| value("cwnd")) {
            self.series.window.push(now, window);
        }
        if let Some(bytes) = value("bytes_in_flight") {
            self.series.in_flight.push(now, bytes);
        }
        // An unlimited rate is no rate to draw.
        if let Some(rate) = value("pacing_rate").filter(|rate| *rate > 0.0 && *rate < 1e15) {
            self.series.pacing.push(now, rate);
        }
        if let Some(rtt) = value("latest_rtt").filter(|rtt| *rtt > 0.0) {
            self.series.rtt.push(now, rtt / unit);
        }
        // Before the first sample, some stacks write the initial round-trip time (RFC 9002 §6.2.2). Whole milliseconds can
        // be 0 after it.
        let is_measured =
            value("min_rtt").is_some() || value("latest_rtt").is_none_or(|rtt| rtt > 0.0);
        if let Some(rtt) = value("smoothed_rtt")
            .filter(|rtt| is_measured && (*rtt > 0.0 || self.smoothed.is_some()))
        {
            self.series.rtt_smoothed.push(now, rtt / unit);
            self.smoothed = Some(rtt / unit);
        }
        if let Some(rtt) = value("min_rtt").filter(|rtt| *rtt > 0.0) {
            let rtt = rtt / unit;
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
        // Stacks set a threshold when they leave slow start; until then it is absent or very large.
        if value("ssthresh").is_some_and(|bytes| bytes > 0.0 && bytes < 1e12) {
            self.named.startup_ends.get_or_insert(now);
        }
    }

    fn state(&mut self, new: &str) {
        let now = self.now;
        let is_recovery = new.contains("recovery");
        let is_other = |word: &str| new.contains(word);
        if is_other("conservative") || new == "css" {
            self.named.conservative.get_or_insert(now);
        }
        let leaves_startup = is_recovery || is_other("avoidance") || is_other("drain");
        if leaves_startup {
            self.named.startup_ends.get_or_insert(now);
        }
        if is_recovery && self.recovery_since.is_none() {
            self.recovery_since = Some(now);
            if self.recovery.len() == 1 {
                self.named.second_recovery.get_or_insert(now);
            }
        } else if !is_recovery && let Some(since) = self.recovery_since.take() {
            self.end_recovery(since);
        }
        self.state = Some(new.to_owned());
    }

    fn end_recovery(&mut self, since: f64) {
        if self.recovery.len() < RECOVERIES_MAX {
            self.recovery.push((since, self.now));
        }
    }

    /// The arm; `None` without packets.
    pub(super) fn finish(mut self, label: &str) -> Option<Arm> {
        if !self.has_packets() {
            return None;
        }
        if let Some(since) = self.recovery_since.take() {
            self.end_recovery(since);
        }
        let receives = self.received_bytes > self.sent_bytes;
        let mut arm = Arm::new(label);
        arm.note = self.note(receives);
        arm.events = self.events(receives);
        let series = self.series;
        if receives {
            arm.arrived = series.arrived.finish();
        } else {
            arm.sent = series.sent.finish();
            arm.acked = series.acked.finish();
            arm.lost = series.lost.finish();
            arm.window = series.window.finish();
            arm.in_flight = series.in_flight.finish();
            arm.pacing = series.pacing.finish();
            arm.recovery = self.recovery;
        }
        arm.rtt = series.rtt.finish();
        arm.rtt_smoothed = series.rtt_smoothed.finish();
        Some(arm)
    }

    fn note(&self, receives: bool) -> String {
        let end = if self.is_client { "client" } else { "server" };
        let megabytes = |bytes: u64| format!("{:.2} MB", bytes as f64 / 1e6);
        if receives {
            return format!("{end}, {} received", megabytes(self.received_bytes));
        }
        let share = self.lost_packets as f64 / self.sent_packets.max(1) as f64 * 100.0;
        format!(
            "{end}, {} sent, {} of {} packets lost ({share:.1} %)",
            megabytes(self.sent_bytes),
            self.lost_packets,
            self.sent_packets
        )
    }

    /// Events by name.
    fn events(&self, receives: bool) -> Vec<(f64, String)> {
        let mut events = Vec::new();
        if receives {
            return events;
        }
        let named = &self.named;
        let mut add = |at: Option<f64>, what: String| {
            if let Some(at) = at {
                events.push((at, what));
            }
        };
        add(named.conservative, "CSS starts".to_owned());
        add(named.startup_ends, "startup ends".to_owned());
        if named.overshoot_packets > 1 {
            let what = format!("overshoot: {} packets lost", named.overshoot_packets);
            add(named.first_loss, what);
        }
        add(named.second_recovery, "second recovery".to_owned());
        // Shorter gaps are those between flights.
        let (gap, from) = named.gap;
        if self.rtt_min.is_some_and(|rtt| gap > 0.5 * rtt) {
            add(Some(from), format!("idle for {gap:.0} ms"));
        }
        add(named.closed, "closed".to_owned());
        events
    }
}

/// The size of a packet in bytes.
fn size(data: &Value) -> Option<u64> {
    let header = data.get("header");
    let raw = data.get("raw");
    raw.and_then(|raw| raw.get("length"))
        .or_else(|| header.and_then(|header| header.get("packet_size")))
        .or_else(|| data.get("packet_size"))
        .or_else(|| raw.and_then(|raw| raw.get("payload_length")))
        .and_then(whole)
        // A QUIC packet is no larger (RFC 9000 §14).
        .filter(|size| *size <= 65_535)
}

/// The number of a packet of the application space.
fn application_number(data: &Value) -> Option<u64> {
    let header = data.get("header").unwrap_or(data);
    let kind = header
        .get("packet_type")
        .or_else(|| data.get("packet_type"));
    let kind = kind.and_then(Value::as_str).unwrap_or("1RTT");
    if !["1RTT", "1rtt", "0RTT", "0rtt", "onertt", "zerortt"].contains(&kind) {
        return None;
    }
    header
        .get("packet_number")
        .or_else(|| data.get("packet_number"))
        .and_then(whole)
}

/// A number; some versions write numbers as texts.
fn number(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .or_else(|| value.as_str()?.parse().ok())
        .filter(|value: &f64| value.is_finite())
}

fn whole(value: &Value) -> Option<u64> {
    let value = number(value)?;
    (0.0..=2f64.powi(53))
        .contains(&value)
        .then_some(value as u64)
}
