//! From the events of a connection to an arm: bytes sent, acknowledged and lost, window and round-trip time, flow control, and the
//! names of what happened.
//!
//! Bytes count as in [`Arm::sent`]: a packet's value is the number of bytes sent up to and including it. A connection that
//! receives more than it sends shows the bytes received.
//!
//! A number that the file does not tell is absent. Losses are unknown if an event mentions loss and is not understood, or if
//! no event does although packets were overtaken by acknowledged ones.

use std::collections::VecDeque;

use lastbyte_json::Value;

use super::{
    anatomy::{self, Anatomy},
    event::{
        application_number, first_of, frame_type, frames, is_application, length, number, size,
        whole,
    },
    header::{Clock, Fields, Header},
    numbers::{Numbers, Progress, Sender},
    pair::End,
};
use crate::{
    scale::Unit,
    transfer::{
        Arm,
        bounded::Bounded,
        flow::{Data, Flow},
        named::Named,
    },
};

/// Packets neither acknowledged nor lost yet; beyond the bound, the oldest are removed.
const OUTSTANDING_MAX: usize = 1 << 20;
/// Recovery periods and names of events beyond these are not drawn.
const RECOVERIES_MAX: usize = 10_000;
/// Packets that are acknowledged after a packet before it is taken for lost (RFC 9002 §6.1.1).
const OVERTAKEN: u64 = 3;
/// Times that go back by more than this, in ms, are not a matter of several threads.
const LATE_MAX_MS: f64 = 1000.0;

#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// Bytes up to and including it.
    until: u64,
    /// Its size if it counts as in flight, else 0.
    size: u32,
    has_data: bool,
    is_known: bool,
    progress: Progress,
}

/// A connection, as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct Connection {
    header: Header,
    clock: Clock,
    now: f64,
    sent_bytes: u64,
    received_bytes: u64,
    sent_packets: u64,
    received_packets: u64,
    /// Packets without a size, or with that of their payload only.
    unsized_packets: u64,
    /// Packets sent and received of which not even the payload's size is known.
    sizeless_packets: [u64; 2],
    /// What is not understood first about losses.
    unknown_loss: Option<String>,
    has_loss_events: bool,
    has_application: bool,
    /// Events without a time, which are not read.
    untimed: u64,
    /// Round-trip times longer than the connection at that time.
    implausible_rtts: u64,
    highest_acked: Option<u64>,
    /// Packets with a number that was sent before.
    repeated_numbers: u64,
    /// Some packets have no known fate.
    was_overflown: bool,
    in_flight: u64,
    largest_packet: u64,
    newest_window: Option<f64>,
    newest_pacing: Option<f64>,
    /// When the bytes sent have left at the pacing rate.
    paced_until: f64,
    anatomy: Anatomy,
    sending: Flow,
    receiving: Flow,
    /// Packets of the application space from `first` on.
    outstanding: VecDeque<Sent>,
    first: u64,
    series: Series,
    numbers: Numbers,
    end: End,
    state: Option<String>,
    recovery_since: Option<f64>,
    recovery: Vec<(f64, f64)>,
    /// Whether the window was what kept another packet from following the last one.
    was_limited: bool,
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

impl Connection {
    pub(super) fn new(header: Header) -> Self {
        Self {
            header,
            ..Self::default()
        }
    }

    pub(super) const fn has_packets(&self) -> bool {
        self.sent_packets > 0 || self.received_packets > 0
    }

    pub(super) fn rtt_min(&self) -> Option<f64> {
        self.numbers
            .rtt
            .minimum
            .filter(|rtt| *rtt <= self.now + 1.0)
    }

    pub(super) fn event(&mut self, fields: &Fields<'_>) {
        let null = Value::Null;
        let name = fields.name.unwrap_or_default().to_ascii_lowercase();
        let name = name.rsplit(':').next().unwrap_or_default();
        if name.is_empty() {
            return;
        }
        if !self.clock.tick(fields, self.header.unit_ms()) {
            self.untimed += 1;
            return;
        }
        self.now = self.clock.now();
        let data = fields.data.unwrap_or(&null);
        match name {
            "packet_sent" => self.packet_sent(data),
            "packet_received" => self.packet_received(data),
            "packet_lost" => self.packet_lost(data),
            "packets_lost" => self.packets_lost(data),
            "metrics_updated"
            | "metric_update"
            | "congestion_metric_update"
            | "recovery_metrics_updated"
            | "recovery_parameters_set" => self.metrics(data),
            "congestion_state_updated" => {
                if let Some(state) = data.get("new").and_then(Value::as_str) {
                    self.state(&state.to_ascii_lowercase());
                }
            }
            "parameters_set" => self.parameters(data),
            "connection_closed" | "connection_close" => {
                self.named.closed(self.now);
            }
            name if name.contains("timer") => {
                let is = |key: &str, wanted: &str| {
                    let text = data.get(key).and_then(Value::as_str);
                    text.is_some_and(|text| text.eq_ignore_ascii_case(wanted))
                };
                if is("timer_type", "pto") && is("event_type", "expired") {
                    self.numbers.probe_timeouts += 1;
                    self.anatomy.on_probe_timeout(self.now, &self.limits());
                }
            }
            // Losses that were none (quic-go), and keys (`security:key_lost` of qlog 0.1).
            name if name.contains("spurious") || name.contains("key") => {}
            name if name.contains("lost") || name.contains("loss") => {
                let name = fields.name.unwrap_or_default().to_owned();
                self.unknown_loss
                    .get_or_insert_with(|| not_understood(&name));
            }
            _ => {}
        }
    }

    /// What limits the sender.
    fn limits(&self) -> anatomy::State {
        anatomy::State {
            in_flight: self.in_flight,
            window: self.newest_window,
            packet: self.largest_packet,
            is_flow_full: self.sending.is_full(),
            data: self.sending.data(),
            next_number: self.first + self.outstanding.len() as u64,
            paced_until: self.newest_pacing.map(|_| self.paced_until),
        }
    }

    /// Transport parameters.
    fn parameters(&mut self, data: &Value) {
        let owner = data.get("owner").or_else(|| data.get("initiator"));
        let owner = owner.and_then(Value::as_str).unwrap_or_default();
        let value = |key: &str| data.get(key).and_then(whole);
        let connection = value("initial_max_data");
        // `local` and `remote` are from the view of the endpoint that sends the parameters.
        let streams = [
            value("initial_max_stream_data_bidi_remote"),
            value("initial_max_stream_data_bidi_local"),
            value("initial_max_stream_data_uni"),
        ];
        if owner.eq_ignore_ascii_case("remote") {
            let packets = self.sent_bytes;
            self.sending.start(self.now, connection, streams, packets);
        } else if owner.eq_ignore_ascii_case("local") {
            let packets = self.received_bytes;
            self.receiving.start(self.now, connection, streams, packets);
        }
    }

    fn packet_sent(&mut self, data: &Value) {
        let limits = self.limits();
        self.anatomy.on_sent(self.now, &limits);
        self.sent_packets += 1;
        self.has_application |= is_application(data);
        let size = self.sized(data, true);
        self.sent_bytes += size;
        self.series.sent.push(self.now, self.sent_bytes as f64);
        let was_limited = core::mem::take(&mut self.was_limited) && self.recovery_since.is_none();
        self.named
            .sent(self.now, was_limited, self.numbers.rtt.minimum);
        if let Some(rate) = self.newest_pacing {
            self.paced_until = self.paced_until.max(self.now) + size as f64 * 8000.0 / rate;
        }
        let mut has_data = false;
        let mut is_eliciting = frames(data).is_empty();
        for frame in frames(data) {
            let kind = frame_type(frame);
            is_eliciting |= !matches!(kind.as_str(), "ack" | "padding" | "connection_close");
            has_data |= kind == "stream";
            if kind == "handshake_done" {
                self.numbers.confirmed = Some(self.now);
            }
            self.frame_of_sender(&kind, frame, true);
        }
        let Some(number) = application_number(data) else {
            return;
        };
        self.end.sent.push(number, self.now);
        if has_data && self.sending.data() == limits.data {
            self.anatomy.on_resent(number);
        }
        let index = number.checked_sub(self.first);
        let was_sent = |index: u64| {
            self.outstanding
                .get(index as usize)
                .is_some_and(|sent| sent.until > 0)
        };
        self.repeated_numbers += u64::from(index.is_none_or(was_sent));
        let Some(index) = index else {
            return;
        };
        if index >= OUTSTANDING_MAX as u64 {
            // Too many have no known fate, or the number is not one that follows.
            self.was_overflown = true;
            self.in_flight = 0;
            self.outstanding.clear();
            self.first = number;
        }
        let index = (number - self.first) as usize;
        if self.outstanding.len() <= index {
            // Numbers that were skipped have no fate.
            let skipped = Sent {
                is_known: true,
                ..Sent::default()
            };
            self.outstanding.resize(index + 1, skipped);
        }
        let in_flight = if is_eliciting { size } else { 0 };
        self.in_flight += in_flight;
        self.largest_packet = self.largest_packet.max(in_flight);
        self.outstanding[index] = Sent {
            until: self.sent_bytes,
            size: in_flight as u32,
            has_data,
            is_known: false,
            progress: Progress {
                data: self.sending.data(),
                packets: self.sent_packets,
            },
        };
        // Without a window in the file, any pause may be one of a full window.
        let limits = self.limits();
        let is_limited = limits.window.is_none() || limits.is_window_full();
        self.was_limited = is_limited && !limits.is_flow_full && self.recovery_since.is_none();
    }

    /// The size of a packet; 0 if it is unknown.
    fn sized(&mut self, data: &Value, is_sent: bool) -> u64 {
        let Some((size, is_payload)) = size(data) else {
            self.sizeless_packets[usize::from(!is_sent)] += 1;
            return 0;
        };
        self.unsized_packets += u64::from(is_payload);
        size
    }

    /// A frame of flow control or with data, of this endpoint or of its peer.
    fn frame_of_sender(&mut self, kind: &str, frame: &Value, is_own: bool) {
        let now = self.now;
        let is_client = self.header.is_client();
        let (sent, received) = (self.sent_bytes, self.received_bytes);
        // What an endpoint sends uses its own window and opens that of its peer.
        let (own, packets, opposite, opposite_packets, side, peer) = if is_own {
            let peer = is_client.map(|is_client| !is_client);
            (
                &mut self.sending,
                sent,
                &mut self.receiving,
                received,
                is_client,
                peer,
            )
        } else {
            let peer = is_client.map(|is_client| !is_client);
            (
                &mut self.receiving,
                received,
                &mut self.sending,
                sent,
                peer,
                is_client,
            )
        };
        let stream_id = first_of(frame, &["stream_id", "id"]);
        let is_of_stream = kind.contains("_stream_") || kind.starts_with("stream_");
        if is_of_stream && stream_id.is_none() {
            return;
        }
        let id = stream_id.filter(|_| is_of_stream);
        match kind {
            "stream" => {
                let Some(id) = stream_id else {
                    return;
                };
                match length(frame) {
                    Some(length) => {
                        let data = Data {
                            id,
                            offset: first_of(frame, &["offset"]).unwrap_or(0),
                            length,
                            is_last: frame.get("fin").and_then(Value::as_bool) == Some(true),
                        };
                        own.stream(now, data, side, packets);
                    }
                    None => own.uncounted(),
                }
                // A bidirectional stream.
                if id & 2 == 0 {
                    if is_own {
                        self.numbers.responses.insert(id);
                    }
                    // Data of the same packet count after the start.
                    self.anatomy.start(now, 0);
                }
            }
            "max_data" | "max_stream_data" => {
                if let Some(limit) = first_of(frame, &["maximum", "maximum_data", "limit"]) {
                    opposite.raise(now, id, limit, peer, opposite_packets);
                }
            }
            "data_blocked" | "stream_data_blocked" => {
                let keys = ["limit", "maximum", "data_limit", "offset"];
                if let Some(limit) = first_of(frame, &keys) {
                    own.report(now, id, limit, side, packets);
                }
            }
            _ => {}
        }
    }

    fn packet_received(&mut self, data: &Value) {
        self.received_packets += 1;
        self.has_application |= is_application(data);
        self.received_bytes += self.sized(data, false);
        self.series
            .arrived
            .push(self.now, self.received_bytes as f64);
        let is_application = is_application(data);
        if let Some(number) = application_number(data) {
            self.end.received.push(number, self.now);
        }
        for frame in frames(data) {
            let kind = frame_type(frame);
            self.numbers.ack_frames += u64::from(kind == "ack");
            if !is_application {
                continue;
            }
            if kind == "ack" {
                self.ack(frame);
            } else {
                if kind.starts_with("max_") {
                    self.anatomy.on_limit(self.now, &self.limits());
                }
                self.frame_of_sender(&kind, frame, false);
            }
        }
        self.forget_known();
    }

    fn ack(&mut self, frame: &Value) {
        let limits = self.limits();
        let ranges = frame.get("acked_ranges").and_then(Value::as_array);
        let mut newest = Sent::default();
        for range in ranges.unwrap_or_default() {
            // A range is two numbers, one number in an array, or a number.
            let bounds = range.columns();
            let low = bounds.first().or(Some(range)).and_then(whole);
            let high = bounds.last().or(Some(range)).and_then(whole);
            if let Some((low, high)) = low.zip(high) {
                self.acked(low, high, &mut newest);
                let next = self.first + self.outstanding.len() as u64;
                if high < next {
                    self.highest_acked = self.highest_acked.max(Some(high));
                }
            }
        }
        if newest.until > 0 {
            self.series.acked.push(self.now, newest.until as f64);
            let number = self.highest_acked.unwrap_or(0);
            let has_data = newest.has_data;
            self.anatomy.on_acked(self.now, &limits, number, has_data);
            if let Some(request) = self.anatomy.started().filter(|_| has_data) {
                let sent = self.sent_packets;
                self.numbers
                    .measure(self.now, newest.progress, sent, request);
            }
        }
    }

    /// Raises `newest` to the highest of these packets that were not known to have arrived.
    fn acked(&mut self, low: u64, high: u64, newest: &mut Sent) {
        self.numbers.acknowledged(low, high);
        let from = low.saturating_sub(self.first);
        if high < self.first {
            return;
        }
        let to = (high - self.first).saturating_add(1);
        let to = to.min(self.outstanding.len() as u64) as usize;
        for sent in self.outstanding.range_mut((from as usize).min(to)..to) {
            if !sent.is_known {
                sent.is_known = true;
                self.in_flight = self.in_flight.saturating_sub(u64::from(sent.size));
                self.numbers.acked += 1;
                let has_data = newest.has_data | sent.has_data;
                if sent.until > newest.until {
                    *newest = *sent;
                }
                newest.has_data = has_data;
            }
        }
    }

    fn forget_known(&mut self) {
        while self.outstanding.front().is_some_and(|sent| sent.is_known) {
            self.outstanding.pop_front();
            self.first += 1;
        }
    }

    /// Packets are lost.
    fn count_lost(&mut self, packets: u64, data: &Value) {
        self.anatomy.on_lost(self.now, &self.limits());
        self.has_loss_events = true;
        let trigger = data.get("trigger").and_then(Value::as_str);
        self.numbers
            .lost(packets, application_number(data), trigger);
        // Without a round-trip time, nothing tells which losses are of the first round trip.
        if let Some(round_trip) = self.numbers.rtt.smoothed.or(self.numbers.rtt.minimum)
            && self.unknown_loss.is_none()
        {
            self.named.lost(self.now, packets, round_trip);
        }
    }

    /// mvfst counts the packets, and names the last one.
    fn packets_lost(&mut self, data: &Value) {
        let count = data.get("lost_packets").and_then(whole);
        let Some(count) = count.filter(|count| *count <= self.sent_packets - self.numbers.lost)
        else {
            self.unknown_loss
                .get_or_insert_with(|| not_understood("packets_lost"));
            return;
        };
        self.count_lost(count, data);
        let index = first_of(data, &["largest_lost_packet_num"])
            .and_then(|number| number.checked_sub(self.first));
        let sent = index.and_then(|index| self.outstanding.get(index as usize));
        if let Some(until) = sent.map(|sent| sent.until) {
            for _ in 0..count {
                self.series.lost.push(self.now, until as f64);
            }
        }
    }

    fn packet_lost(&mut self, data: &Value) {
        if self.numbers.lost >= self.sent_packets {
            // It is not one of those sent.
            self.unknown_loss
                .get_or_insert_with(|| not_understood("packet_lost"));
            return;
        }
        if application_number(data).is_some_and(|number| self.numbers.is_lost(number)) {
            let twice = || "the same packets are lost twice".to_owned();
            self.unknown_loss.get_or_insert_with(twice);
        }
        self.count_lost(1, data);
        let Some(index) = application_number(data).and_then(|one| one.checked_sub(self.first))
        else {
            return;
        };
        if let Some(sent) = self.outstanding.get_mut(index as usize)
            && !sent.is_known
        {
            sent.is_known = true;
            self.in_flight = self.in_flight.saturating_sub(u64::from(sent.size));
            self.series.lost.push(self.now, sent.until as f64);
        }
        self.forget_known();
    }

    fn metrics(&mut self, data: &Value) {
        let value = |key: &str| data.get(key).and_then(number);
        let unit = self.header.unit_ms();
        let now = self.now;
        let window = value("congestion_window")
            .or_else(|| value("cwnd"))
            .or_else(|| value("current_cwnd"));
        if let Some(window) = window.filter(|window| *window >= 0.0) {
            self.series.window.push(now, window);
            self.newest_window = Some(window);
            self.numbers.window(window);
        }
        if let Some(bytes) = value("bytes_in_flight").filter(|bytes| *bytes >= 0.0) {
            self.series.in_flight.push(now, bytes);
            self.in_flight = bytes as u64;
        }
        // An unlimited rate is no rate to draw.
        if let Some(rate) = value("pacing_rate").filter(|rate| *rate > 0.0 && *rate < 1e15) {
            self.series.pacing.push(now, rate);
            self.newest_pacing = Some(rate);
        }
        if let Some(rtt) = value("latest_rtt")
            .map(|rtt| rtt * unit)
            .filter(|rtt| *rtt > 0.0)
        {
            // No round trip is longer than the connection, but for the resolution of whole milliseconds: such a time is not a
            // sample, or not in the unit of the file.
            if rtt <= now + 1.0 {
                self.series.rtt.push(now, rtt);
                self.numbers.rtt.latest = Some(rtt);
            } else {
                self.implausible_rtts += 1;
            }
        }
        // Before the first sample, some stacks write the initial round-trip time (RFC 9002 §6.2.2). Whole milliseconds can
        // be 0 after it.
        let is_measured =
            value("min_rtt").is_some() || value("latest_rtt").is_none_or(|rtt| rtt > 0.0);
        if let Some(rtt) = value("smoothed_rtt")
            .filter(|rtt| is_measured && (*rtt > 0.0 || self.numbers.rtt.smoothed.is_some()))
        {
            self.series.rtt_smoothed.push(now, rtt * unit);
            self.numbers.rtt.smoothed = Some(rtt * unit);
        }
        if let Some(variance) = value("rtt_variance") {
            self.numbers.rtt.variance = Some(variance * unit);
        }
        if let Some(rtt) = value("min_rtt").filter(|rtt| *rtt > 0.0) {
            let rtt = rtt * unit;
            self.numbers.rtt.minimum =
                Some(self.numbers.rtt.minimum.map_or(rtt, |least| least.min(rtt)));
        }
        // Stacks set a threshold when they leave slow start; until then it is absent or very large.
        if value("ssthresh").is_some_and(|bytes| bytes > 0.0 && bytes < 1e12) {
            self.startup_ends();
        }
        self.numbers.on_metrics(now);
    }

    fn startup_ends(&mut self) {
        self.named.startup_ends(self.now);
        self.numbers.startup_ended();
    }

    fn state(&mut self, new: &str) {
        let now = self.now;
        let is_recovery = new.contains("recovery");
        let is_other = |word: &str| new.contains(word);
        if is_other("conservative") || new == "css" {
            self.named.conservative(now);
        }
        let leaves_startup = is_recovery || is_other("avoidance") || is_other("drain");
        if leaves_startup {
            self.startup_ends();
        }
        self.numbers.has_states = true;
        if is_recovery && self.recovery_since.is_none() {
            self.numbers.episodes += 1;
            self.recovery_since = Some(now);
            self.named.recovery(now);
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

    /// What cannot be drawn, if so.
    pub(super) fn refused(&self) -> Option<String> {
        if let Some(reason) = self.header.refused() {
            return Some(reason.to_owned());
        }
        let (_, most) = self.clock.late;
        if most > LATE_MAX_MS {
            return Some(format!(
                "times go back by {} (expected events in the order of time)",
                Unit::Milliseconds.format(most)
            ));
        }
        // RFC 9000, §12.3. A few may be out of order.
        if self.repeated_numbers * 100 > self.sent_packets && !self.was_overflown {
            return Some(format!(
                "packet numbers are sent twice: those of {} of {} (expected the events of one connection, once)",
                self.repeated_numbers,
                counted(self.sent_packets, "packet")
            ));
        }
        let packets = self.sent_packets + self.received_packets;
        if packets == 0 {
            let untimed = self.untimed;
            return (untimed > 0).then(|| format!("events have no time: {untimed}"));
        }
        if !self.has_application && self.received_packets == 0 {
            return Some(format!(
                "the connection was not established: {} of the handshake sent, none received",
                counted(self.sent_packets, "packet")
            ));
        }
        let has_more = |series: &Bounded| !series.is_empty();
        if self.sent_bytes + self.received_bytes == 0
            && !has_more(&self.series.window)
            && !has_more(&self.series.rtt_smoothed)
        {
            return Some(format!(
                "{} without a size, and no other value to draw",
                counted(packets, "packet")
            ));
        }
        None
    }

    /// Why the number of losses is unknown, if so.
    fn loss_doubt(&self) -> Option<String> {
        if let Some(what) = &self.unknown_loss {
            return Some(format!("losses are unknown: {what}"));
        }
        if self.has_loss_events {
            return None;
        }
        let Some(highest) = self.highest_acked else {
            return Some(
                "losses are unknown: no acknowledgment and no loss is in the file".to_owned(),
            );
        };
        let end = (highest + 1).saturating_sub(OVERTAKEN + self.first);
        let end = (end as usize).min(self.outstanding.len());
        let range = self.outstanding.range(..end);
        let overtaken = range.filter(|sent| !sent.is_known).count();
        if self.was_overflown {
            return Some("losses are unknown: packet numbers do not follow each other".to_owned());
        }
        (overtaken > 0).then(|| {
            format!(
                "losses are unknown: no loss is in the file, and without an acknowledgment below the highest: {}",
                counted(overtaken as u64, "packet")
            )
        })
    }

    /// What a reader of the picture must know about the file.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.receives() {
            notes.extend(self.loss_doubt());
        }
        let sizeless = self.sizeless();
        if sizeless > 0 {
            notes.push(format!(
                "{} without a size, so bytes are not drawn",
                counted(sizeless, "packet")
            ));
        }
        if self.unsized_packets > 0 {
            notes.push(format!(
                "{} without a size: the bytes of their frames are drawn, without headers",
                counted(self.unsized_packets, "packet")
            ));
        }
        if self.untimed > 0 {
            notes.push(format!(
                "not read, since they have no time: {}",
                counted(self.untimed, "event")
            ));
        }
        let (late, most) = self.clock.late;
        if late > 0 {
            notes.push(format!(
                "out of order, and drawn at the time of the event before: {}, by up to {}",
                counted(late, "event"),
                Unit::Milliseconds.format(most)
            ));
        }
        let is_odd = |rtt: Option<f64>| u64::from(rtt.is_some_and(|rtt| rtt > self.now + 1.0));
        let odd = self.implausible_rtts
            + is_odd(self.numbers.rtt.smoothed)
            + is_odd(self.numbers.rtt.minimum);
        if odd > 0 {
            notes.push(format!(
                "not drawn, since they are longer than the connection was old: {}",
                counted(odd, "round-trip time")
            ));
        }
        notes
    }

    /// The arm of a connection that is not refused, its sender if that is the endpoint of the file, and what joins it with the other end.
    pub(super) fn finish(mut self, label: &str) -> (Arm, Option<Sender>, End) {
        if let Some(since) = self.recovery_since.take() {
            self.end_recovery(since);
        }
        let receives = self.receives();
        let has_bytes = self.sizeless() == 0;
        let has_losses = self.loss_doubt().is_none();
        let mut arm = Arm::new(label);
        arm.note = self.note(receives, has_losses);
        if !receives {
            arm.events = self.named.events();
            let is_known = |name: &str| has_losses || !name.ends_with(crate::transfer::named::LOST);
            arm.events.retain(|(_, name)| is_known(name));
        }
        if !receives && has_losses && has_bytes && self.unsized_packets == 0 {
            arm.summary = self.anatomy.sentence().unwrap_or_default();
        }
        let has_data = |sent: &Sent| !sent.is_known && sent.has_data;
        let is_complete = !self.outstanding.iter().any(has_data);
        let numbers = core::mem::take(&mut self.numbers);
        let sender = numbers.finish(is_complete, has_losses, &self.anatomy);
        let sender = sender.filter(|_| !receives);
        let series = self.series;
        let (flow, packets) = if receives {
            arm.arrived = series.arrived.finish();
            (self.receiving, self.received_bytes)
        } else {
            arm.sent = series.sent.finish();
            arm.acked = series.acked.finish();
            if has_losses {
                arm.lost = series.lost.finish();
            }
            arm.window = series.window.finish();
            arm.in_flight = series.in_flight.finish();
            arm.pacing = series.pacing.finish();
            arm.recovery = self.recovery;
            (self.sending, self.sent_bytes)
        };
        if has_bytes {
            flow.draw(self.now, packets, &mut arm);
        } else {
            for series in [
                &mut arm.sent,
                &mut arm.acked,
                &mut arm.lost,
                &mut arm.arrived,
            ] {
                series.clear();
            }
        }
        arm.rtt = series.rtt.finish();
        arm.rtt_smoothed = series.rtt_smoothed.finish();
        let now = self.now;
        arm.rtt_smoothed.retain(|point| point.value <= now + 1.0);
        let end = End {
            is_client: self.header.is_client(),
            ..self.end
        };
        (arm, sender, end)
    }

    /// Whether more is received than sent: of bytes, or of packets if those have no sizes.
    fn receives(&self) -> bool {
        if self.sizeless_packets == [0; 2] {
            self.received_bytes > self.sent_bytes
        } else {
            self.received_packets > self.sent_packets
        }
    }

    /// Packets without a size, of the direction that is drawn.
    fn sizeless(&self) -> u64 {
        self.sizeless_packets[usize::from(self.receives())]
    }

    fn note(&self, receives: bool, has_losses: bool) -> String {
        let mut words = Vec::new();
        let view = self.header.view();
        if !view.is_empty() {
            words.push(view.to_owned());
        }
        let amount = |bytes: u64, packets: u64| {
            if self.sizeless() > 0 {
                counted(packets, "packet")
            } else {
                Unit::Bytes.format(bytes as f64)
            }
        };
        if receives {
            let amount = amount(self.received_bytes, self.received_packets);
            words.push(format!("{amount} received"));
            return words.join(", ");
        }
        words.push(format!(
            "{} sent",
            amount(self.sent_bytes, self.sent_packets)
        ));
        if has_losses {
            let share = self.numbers.lost as f64 / self.sent_packets.max(1) as f64 * 100.0;
            words.push(format!(
                "{} of {} packets lost ({share:.1} %)",
                self.numbers.lost, self.sent_packets
            ));
        } else {
            words.push(format!("{} packets, losses unknown", self.sent_packets));
        }
        words.join(", ")
    }
}

fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn not_understood(event: &str) -> String {
    format!("`{event}` is not understood")
}
