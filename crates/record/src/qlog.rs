//! qlog: the events of a connection as one endpoint sees them, as a JSON text sequence (RFC 7464).
//!
//! Owns: names and fields of events, those of version 0.3, because tools do not follow the current drafts yet. Never: opens a
//! file, or writes addresses, tokens or data, or any header field of a message but `:method` and `:status`.
//!
//! Sources: the drafts of version 0.3, and the loader of qvis (72c8c4b).
//!
//! Both ends of a connection write its original destination connection ID as the group, so that tools find the two files of one
//! connection. `connection_started` is not written, since it requires addresses.

mod frames;
mod names;

use core::{fmt, time::Duration};
use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use lastbyte_congestion::{Phase, Time};
use lastbyte_quic::{
    close::CloseReason,
    connection::Stage,
    trace::{ApplicationFrame, DropReason, Event, LossTrigger, Metrics, Packet, PathEvent, Trace},
};
use lastbyte_wire::{
    Side, frame::Frames, packet::PacketType, transport_parameters::TransportParameters,
};

use self::names::{Name, packet_type_name, phase_name, space_packet_type};
use crate::json::Object;

#[cfg(test)]
mod tests;

/// The header of a qlog file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The title.
    pub title: String,
    /// The endpoint whose view it is.
    pub vantage_point: Side,
    /// The name of the connection in tools if the first event is not [`Event::Started`], which has the original destination
    /// connection ID.
    pub group_id: String,
}

/// The state of the writer, shared with the caller.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<Option<io::Error>>>);

impl Health {
    /// The first error of the writer, if any. Nothing is written after it.
    pub fn take_error(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: io::Error) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert(error);
    }
}

/// Writes the events of a connection.
pub struct Qlog<W: Write> {
    side: Side,
    /// The start of the time scale.
    epoch: Time,
    writer: W,
    health: Health,
    has_failed: bool,
    /// Written with the first event, or at the end.
    header: Option<Header>,
    text: String,
    last: Option<Metrics>,
    last_phase: Option<Phase>,
}

impl<W: Write> fmt::Debug for Qlog<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Qlog")
            .field("side", &self.side)
            .field("has_failed", &self.has_failed)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Qlog<W> {
    /// A writer for the events of one connection, after this header. Times are relative to `epoch`.
    pub fn new(header: &Header, epoch: Time, writer: W) -> (Self, Health) {
        let health = Health::default();
        let qlog = Self {
            side: header.vantage_point,
            epoch,
            writer,
            health: health.clone(),
            has_failed: false,
            header: Some(header.clone()),
            text: String::new(),
            last: None,
            last_phase: None,
        };
        (qlog, health)
    }

    /// Writes the header if that is not done. The name of the connection is its original destination connection ID if the first
    /// event has that.
    fn begin(&mut self, first: Option<&Event<'_>>) {
        let Some(mut header) = self.header.take() else {
            return;
        };
        if let Some(Event::Started {
            original_destination,
        }) = first
        {
            header.group_id = original_destination.to_string();
        }
        self.write_header(&header);
        self.put();
    }

    fn write_header(&mut self, header: &Header) {
        let vantage = match header.vantage_point {
            Side::Client => "client",
            Side::Server => "server",
        };
        self.text.clear();
        self.text.push('\u{1e}');
        let mut object = Object::new(&mut self.text);
        object
            .text("qlog_version", "0.3")
            .text("qlog_format", "JSON-SEQ")
            .text("title", &header.title);
        let mut trace = object.object("trace");
        trace.object("vantage_point").text("type", vantage);
        let mut common = trace.object("common_fields");
        common.array("protocol_type").text("QUIC").text("HTTP3");
        common
            .text("ODCID", &header.group_id)
            .text("group_id", &header.group_id)
            .text("time_format", "relative")
            .integer("reference_time", 0u64);
    }

    /// Writes the text as one record.
    fn put(&mut self) {
        if self.has_failed {
            return;
        }
        self.text.push('\n');
        if let Err(error) = self.writer.write_all(self.text.as_bytes()) {
            self.health.set(error);
            self.has_failed = true;
        }
    }

    /// Writes an event whose data `fill` writes.
    fn event(&mut self, now: Time, name: Name, fill: impl FnOnce(&mut Object<'_>)) {
        if self.has_failed {
            return;
        }
        let ms = millis(now.since(self.epoch));
        self.text.clear();
        self.text.push('\u{1e}');
        {
            let mut object = Object::new(&mut self.text);
            object.number("time", ms, 6).text("name", name.text());
            fill(&mut object.object("data"));
        }
        self.put();
    }

    fn packet(&mut self, now: Time, name: Name, packet: &Packet<'_>, by: Side) {
        self.event(now, name, |data| {
            data.object("header")
                .text("packet_type", packet_type_name(packet.packet_type))
                .integer("packet_number", packet.number);
            data.object("raw")
                .integer("length", packet.len as u64)
                .integer("payload_length", packet.payload.len() as u64);
            if packet.is_mtu_probe {
                data.boolean("is_mtu_probe_packet", true);
            }
            let mut array = data.array("frames");
            let frames = Frames::new(packet.payload, packet.packet_type, by);
            for frame in frames.into_iter().flatten().flatten() {
                frames::write(&frame, &mut array.object());
            }
        });
    }

    fn metrics(&mut self, now: Time, metrics: &Metrics) {
        let last = self.last.take();
        let is_new =
            |of: &dyn Fn(&Metrics) -> u64| last.as_ref().is_none_or(|last| of(last) != of(metrics));
        let phase = metrics.state.phase;
        self.event(now, Name::MetricsUpdated, |data| {
            if let Some(rtt) = metrics.rtt {
                let known = last.as_ref().and_then(|last| last.rtt);
                for (key, span, before) in [
                    ("min_rtt", rtt.min, known.map(|known| known.min)),
                    (
                        "smoothed_rtt",
                        rtt.smoothed,
                        known.map(|known| known.smoothed),
                    ),
                    ("latest_rtt", rtt.latest, known.map(|known| known.latest)),
                    (
                        "rtt_variance",
                        rtt.variance,
                        known.map(|known| known.variance),
                    ),
                ] {
                    if before != Some(span) {
                        data.number(key, millis(span), 3);
                    }
                }
            }
            if is_new(&|m| m.window) {
                data.integer("congestion_window", metrics.window);
            }
            if is_new(&|m| m.in_flight) {
                data.integer("bytes_in_flight", metrics.in_flight);
            }
            if let Some(threshold) = metrics.state.slow_start_threshold
                && is_new(&|m| m.state.slow_start_threshold.unwrap_or(u64::MAX))
            {
                data.integer("ssthresh", threshold);
            }
            if is_new(&|m| m.pacing_rate.bits_per_second()) && !metrics.pacing_rate.is_unlimited() {
                data.integer("pacing_rate", metrics.pacing_rate.bits_per_second());
            }
        });
        if self.last_phase != Some(phase) {
            let old = self.last_phase.replace(phase);
            let startup = metrics.state.startup;
            self.event(now, Name::CongestionStateUpdated, |data| {
                if let Some(old) = old {
                    data.text("old", phase_name(old, startup));
                }
                data.text("new", phase_name(phase, startup));
            });
        }
        self.last = Some(metrics.clone());
    }

    fn parameters(&mut self, now: Time, is_local: bool, of: &TransportParameters) {
        // Neither stateless reset tokens, which are secret, nor addresses.
        let ids = [
            (
                "original_destination_connection_id",
                of.original_destination_connection_id,
            ),
            (
                "initial_source_connection_id",
                of.initial_source_connection_id,
            ),
            ("retry_source_connection_id", of.retry_source_connection_id),
        ];
        self.event(now, Name::ParametersSet, |data| {
            data.text("owner", if is_local { "local" } else { "remote" });
            for (key, id) in ids {
                if let Some(id) = id {
                    data.text(key, &id.to_string());
                }
            }
            data.boolean("disable_active_migration", of.disable_active_migration)
                .integer("max_idle_timeout", of.max_idle_timeout_ms.get())
                .integer("max_udp_payload_size", of.max_udp_payload_size.get())
                .integer("ack_delay_exponent", u64::from(of.ack_delay_exponent))
                .integer("max_ack_delay", of.max_ack_delay_ms.get())
                .integer(
                    "active_connection_id_limit",
                    of.active_connection_id_limit.get(),
                )
                .integer("initial_max_data", of.initial_max_data.get())
                .integer(
                    "initial_max_stream_data_bidi_local",
                    of.initial_max_stream_data_bidi_local.get(),
                )
                .integer(
                    "initial_max_stream_data_bidi_remote",
                    of.initial_max_stream_data_bidi_remote.get(),
                )
                .integer(
                    "initial_max_stream_data_uni",
                    of.initial_max_stream_data_uni.get(),
                )
                .integer(
                    "initial_max_streams_bidi",
                    of.initial_max_streams_bidi.get(),
                )
                .integer("initial_max_streams_uni", of.initial_max_streams_uni.get())
                .boolean("grease_quic_bit", of.grease_quic_bit);
        });
    }

    fn application_frame(&mut self, now: Time, frame: &ApplicationFrame<'_>) {
        let (name, owner) = if frame.is_local {
            (Name::Http3FrameCreated, "local")
        } else {
            (Name::Http3FrameParsed, "remote")
        };
        self.event(now, name, |data| {
            data.integer("stream_id", frame.stream.get())
                .integer("length", frame.len);
            frames::write_application(frame, &mut data.object("frame"));
        });
        if frame.name == "settings" {
            self.event(now, Name::Http3ParametersSet, |data| {
                data.text("owner", owner);
                for (name, value) in frame.values {
                    data.integer(frames::parameter_name(name), *value);
                }
            });
        }
    }

    fn closed(&mut self, now: Time, reason: CloseReason) {
        self.event(now, Name::ConnectionClosed, |data| {
            let (owner, trigger) = match reason {
                CloseReason::Local { .. } => ("local", "error"),
                CloseReason::LocalApplication { .. } => ("local", "application"),
                CloseReason::Peer { .. } => ("remote", "error"),
                CloseReason::PeerApplication { .. } => ("remote", "application"),
                CloseReason::StatelessReset => ("remote", "stateless_reset"),
                CloseReason::IdleTimeout => ("local", "idle_timeout"),
                CloseReason::NoCommonVersion => ("local", "version_mismatch"),
            };
            data.text("owner", owner);
            match reason {
                CloseReason::Local { code: error, .. } | CloseReason::Peer { code: error } => {
                    data.integer("connection_code", error.code().get());
                }
                CloseReason::LocalApplication { code: error }
                | CloseReason::PeerApplication { code: error } => {
                    data.integer("application_code", error);
                }
                _ => {}
            }
            if let CloseReason::Local { reason, .. } = reason {
                data.text("reason", reason);
            }
            data.text("trigger", trigger);
        });
    }
}

impl<W: Write + Send> Trace for Qlog<W> {
    fn on_event(&mut self, now: Time, event: &Event<'_>) {
        self.begin(Some(event));
        let side = self.side;
        match event {
            Event::PacketSent(packet) => self.packet(now, Name::PacketSent, packet, side),
            Event::PacketReceived(packet) => {
                self.packet(now, Name::PacketReceived, packet, side.peer());
            }
            Event::PacketDropped {
                packet_type,
                len,
                reason,
            } => {
                let (name, trigger) = drop_trigger(*reason);
                self.event(now, name, |data| {
                    if let Some(packet_type) = packet_type {
                        data.object("header")
                            .text("packet_type", packet_type_name(*packet_type));
                    }
                    data.object("raw").integer("length", *len as u64);
                    if let Some(trigger) = trigger {
                        data.text("trigger", trigger);
                    }
                });
            }
            Event::PacketLost {
                space,
                number,
                trigger,
                ..
            } => self.event(now, Name::PacketLost, |data| {
                data.object("header")
                    .text("packet_type", space_packet_type(*space))
                    .integer("packet_number", *number);
                data.text(
                    "trigger",
                    match trigger {
                        LossTrigger::ReorderingThreshold => "reordering_threshold",
                        LossTrigger::TimeThreshold => "time_threshold",
                    },
                );
            }),
            Event::ProbeTimeout(space) => self.event(now, Name::TimerUpdated, |data| {
                data.text("timer_type", "pto")
                    .text("event_type", "expired")
                    .text(
                        "packet_number_space",
                        match space_packet_type(*space) {
                            "1RTT" => "application_data",
                            other => other,
                        },
                    );
            }),
            Event::Metrics(metrics) => self.metrics(now, metrics),
            Event::Stage(stage) => self.event(now, Name::ConnectionStateUpdated, |data| {
                data.text(
                    "new",
                    match stage {
                        Stage::Handshaking => "handshake_started",
                        Stage::Complete => "handshake_complete",
                        Stage::Confirmed => "handshake_confirmed",
                    },
                );
            }),
            Event::KeysInstalled(packet_type) => self.keys(now, Name::KeyUpdated, *packet_type),
            Event::KeysDiscarded(packet_type) => self.keys(now, Name::KeyDiscarded, *packet_type),
            Event::KeysUpdated(generation) => {
                let key_type = key_type(side, PacketType::OneRtt);
                self.event(now, Name::KeyUpdated, |data| {
                    data.text("key_type", key_type)
                        .integer("generation", *generation)
                        .text("trigger", "local_update");
                });
            }
            Event::DatagramSize(bytes) => self.event(now, Name::MtuUpdated, |data| {
                data.integer("new", *bytes);
            }),
            Event::Parameters {
                is_local,
                parameters,
            } => self.parameters(now, *is_local, parameters),
            Event::Path(_, path) => self.event(now, Name::MigrationStateUpdated, |data| {
                data.text(
                    "new",
                    match path {
                        PathEvent::Created => "probing_started",
                        PathEvent::Validated => "probing_successful",
                        PathEvent::Failed => "probing_abandoned",
                        PathEvent::Promoted => "migration_complete",
                    },
                );
            }),
            Event::ApplicationFrame(frame) => self.application_frame(now, frame),
            Event::Closed(reason) => self.closed(now, *reason),
            // The header has the IDs of the start. Acknowledgments are in the ACK frame; events added later have no name here yet.
            _ => {}
        }
    }
}

impl<W: Write> Qlog<W> {
    fn keys(&mut self, now: Time, name: Name, packet_type: PacketType) {
        let key_type = key_type(self.side, packet_type);
        self.event(now, name, |data| {
            data.text("key_type", key_type).text("trigger", "tls");
        });
    }
}

impl<W: Write> Drop for Qlog<W> {
    fn drop(&mut self) {
        self.begin(None);
        if !self.has_failed
            && let Err(error) = self.writer.flush()
        {
            self.health.set(error);
        }
    }
}

const fn key_type(side: Side, packet_type: PacketType) -> &'static str {
    match (side, packet_type) {
        (Side::Client, PacketType::Initial) => "client_initial_secret",
        (Side::Client, PacketType::Handshake) => "client_handshake_secret",
        (_, PacketType::ZeroRtt) => "client_0rtt_secret",
        (Side::Client, PacketType::OneRtt) => "client_1rtt_secret",
        (Side::Server, PacketType::Initial) => "server_initial_secret",
        (Side::Server, PacketType::Handshake) => "server_handshake_secret",
        (Side::Server, PacketType::OneRtt) => "server_1rtt_secret",
    }
}

/// The event of a packet that is not processed now, and why; there is no name for an address that is not acceptable.
const fn drop_trigger(reason: DropReason) -> (Name, Option<&'static str>) {
    let trigger = match reason {
        DropReason::Buffered => return (Name::PacketBuffered, Some("keys_unavailable")),
        DropReason::Malformed => "header_parse_error",
        DropReason::NoKeys => "key_unavailable",
        DropReason::DecryptionFailed => "payload_decrypt_error",
        DropReason::Duplicate => "duplicate",
        DropReason::UnknownPath => return (Name::PacketDropped, None),
        DropReason::Unexpected => "unexpected_packet",
    };
    (Name::PacketDropped, Some(trigger))
}

fn millis(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e6
}
