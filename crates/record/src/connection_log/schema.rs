//! The schema: each statistic's key, unit, meaning, and where it comes from.
//!
//! One table, from which the line, its documentation and its JSON schema follow. Keys, order and sentinels are H2O's.

use std::fmt::Write;

use lastbyte_quic::{recovery::EcnState, statistics::FrameKind};

use super::snapshot::{Snapshot, millis};

/// A statistic.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its key.
    pub key: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// What it means.
    pub meaning: &'static str,
    /// Where it comes from.
    pub value: fn(&Snapshot) -> u64,
}

/// The unit of a statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// How many.
    Count,
    /// 0 or 1, which can be summed.
    Flag,
    /// Bytes.
    Bytes,
    /// Segments of TCP.
    Segments,
    /// Milliseconds.
    Milliseconds,
    /// Bytes a second.
    BytesPerSecond,
    /// 1/1024 of a round trip.
    PerRtt,
}

impl Unit {
    /// Its name in documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Flag => "0 or 1",
            Self::Bytes => "bytes",
            Self::Segments => "segments",
            Self::Milliseconds => "ms",
            Self::BytesPerSecond => "bytes/s",
            Self::PerRtt => "1/1024 RTT",
        }
    }
}

/// The table of the documentation, in Markdown.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from("| key | unit | meaning |\n|---|---|---|\n");
    for field in FIELDS {
        let (key, unit, meaning) = (field.key, field.unit.name(), field.meaning);
        // Writing to a text cannot fail.
        let _ = writeln!(text, "| `{key}` | {unit} | {meaning} |");
    }
    text
}

/// A JSON schema (draft 2020-12) of the statistics of a line. Other keys may stand beside them.
#[must_use]
pub fn json_schema() -> String {
    let mut text = String::from(
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"properties\":{",
    );
    for (index, field) in FIELDS.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let (key, meaning) = (field.key, field.meaning);
        let _ = write!(
            text,
            "{comma}\n\"{key}\":{{\"type\":\"integer\",\"minimum\":0,\"description\":\"{meaning}\"}}"
        );
    }
    text.push_str("},\n\"required\":[");
    for (index, field) in FIELDS.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\"{}\"", field.key);
    }
    text.push_str("]}\n");
    text
}

macro_rules! fields {
    ($($key:literal, $unit:ident, $meaning:literal, |$one:ident| $value:expr;)*) => {
        /// The statistics, in the order of the line.
        pub const FIELDS: &[Field] = &[
            $(Field { key: $key, unit: Unit::$unit, meaning: $meaning, value: |$one| $value },)*
        ];
    };
}

fields! {
    "num-packets.received", Count, "Packets received and opened, without duplicates.", |one| one.statistics.packets.received;
    "num-packets.decryption-failed", Count, "Packets received that were not authentic.", |one| one.statistics.packets.decryption_failed;
    "num-packets.sent", Count, "Packets sent.", |one| one.recovery.packets_sent;
    "num-packets.lost", Count, "Packets declared lost.", |one| one.recovery.packets_lost;
    "num-packets.lost-time-threshold", Count, "Of the packets declared lost, those judged by time alone.", |one| one.recovery.packets_lost_by_time;
    "num-packets.ack-received", Count, "Packets newly acknowledged, late ones included.", |one| one.recovery.packets_acked;
    "num-packets.late-acked", Count, "Packets acknowledged after they had been declared lost.", |one| one.recovery.packets_late;
    "num-packets.initial-received", Count, "Initial packets received.", |one| one.statistics.packets.initial_received;
    "num-packets.zero-rtt-received", Count, "0-RTT packets received.", |one| one.statistics.packets.zero_rtt_received;
    "num-packets.handshake-received", Count, "Handshake packets received.", |one| one.statistics.packets.handshake_received;
    "num-packets.initial-sent", Count, "Initial packets sent.", |one| one.statistics.packets.initial_sent;
    "num-packets.zero-rtt-sent", Count, "0-RTT packets sent.", |one| one.statistics.packets.zero_rtt_sent;
    "num-packets.handshake-sent", Count, "Handshake packets sent.", |one| one.statistics.packets.handshake_sent;
    "num-packets.received-out-of-order", Count, "Packets received with a lower number than one before, in their space.", |one| one.statistics.packets.received_out_of_order;
    "num-packets.received-ecn-ect0", Count, "Packets received in datagrams marked ECT(0).", |one| one.statistics.packets.received_ect0;
    "num-packets.received-ecn-ect1", Count, "Packets received in datagrams marked ECT(1).", |one| one.statistics.packets.received_ect1;
    "num-packets.received-ecn-ce", Count, "Packets received in datagrams marked CE.", |one| one.statistics.packets.received_ce;
    "num-packets.acked-ecn-ect0", Count, "Packets that the peer reported with ECT(0).", |one| one.ecn_reported.0;
    "num-packets.acked-ecn-ect1", Count, "Packets that the peer reported with ECT(1). Always 0: none is sent.", |_one| 0;
    "num-packets.acked-ecn-ce", Count, "Packets that the peer reported with CE.", |one| one.ecn_reported.1;
    "num-packets.sent-promoted-paths", Count, "Packets sent on paths that became the one in use.", |one| one.statistics.paths.packets_sent_promoted;
    "num-packets.ack-received-promoted-paths", Count, "Packets acknowledged that were sent on such paths.", |one| one.statistics.paths.packets_acked_promoted;
    "num-packets.max-delayed", Count, "The most packets that waited at a time for keys to open them.", |one| one.statistics.packets.delayed_max;
    "num-packets.delayed-used", Count, "Packets that were opened after they had waited.", |one| one.statistics.packets.delayed_used;
    "num-bytes.received", Bytes, "UDP payload received.", |one| one.statistics.bytes_received;
    "num-bytes.sent", Bytes, "UDP payload sent.", |one| one.recovery.bytes_sent;
    "num-bytes.lost", Bytes, "UDP payload declared lost.", |one| one.recovery.bytes_lost;
    "num-bytes.ack-received", Bytes, "UDP payload acknowledged.", |one| one.recovery.bytes_acked;
    "num-bytes.stream-data-sent", Bytes, "STREAM and CRYPTO data sent, first and repeated.", |one| one.streams.data_sent + one.crypto_sent;
    "num-bytes.stream-data-resent", Bytes, "The repeated part of the STREAM data.", |one| one.streams.data_resent;
    "num-frames-received.padding", Bytes, "PADDING bytes received.", |one| one.statistics.frames_received.of(FrameKind::Padding);
    "num-frames-received.ping", Count, "PING frames received.", |one| one.statistics.frames_received.of(FrameKind::Ping);
    "num-frames-received.ack", Count, "ACK frames received.", |one| one.statistics.frames_received.of(FrameKind::Ack);
    "num-frames-received.reset_stream", Count, "RESET_STREAM frames received.", |one| one.statistics.frames_received.of(FrameKind::ResetStream);
    "num-frames-received.stop_sending", Count, "STOP_SENDING frames received.", |one| one.statistics.frames_received.of(FrameKind::StopSending);
    "num-frames-received.crypto", Count, "CRYPTO frames received.", |one| one.statistics.frames_received.of(FrameKind::Crypto);
    "num-frames-received.new_token", Count, "NEW_TOKEN frames received.", |one| one.statistics.frames_received.of(FrameKind::NewToken);
    "num-frames-received.stream", Count, "STREAM frames received.", |one| one.statistics.frames_received.of(FrameKind::Stream);
    "num-frames-received.max_data", Count, "MAX_DATA frames received.", |one| one.statistics.frames_received.of(FrameKind::MaxData);
    "num-frames-received.max_stream_data", Count, "MAX_STREAM_DATA frames received.", |one| one.statistics.frames_received.of(FrameKind::MaxStreamData);
    "num-frames-received.max_streams_bidi", Count, "MAX_STREAMS_BIDI frames received.", |one| one.statistics.frames_received.of(FrameKind::MaxStreamsBidi);
    "num-frames-received.max_streams_uni", Count, "MAX_STREAMS_UNI frames received.", |one| one.statistics.frames_received.of(FrameKind::MaxStreamsUni);
    "num-frames-received.data_blocked", Count, "DATA_BLOCKED frames received.", |one| one.statistics.frames_received.of(FrameKind::DataBlocked);
    "num-frames-received.stream_data_blocked", Count, "STREAM_DATA_BLOCKED frames received.", |one| one.statistics.frames_received.of(FrameKind::StreamDataBlocked);
    "num-frames-received.streams_blocked", Count, "STREAMS_BLOCKED frames received.", |one| one.statistics.frames_received.of(FrameKind::StreamsBlocked);
    "num-frames-received.new_connection_id", Count, "NEW_CONNECTION_ID frames received.", |one| one.statistics.frames_received.of(FrameKind::NewConnectionId);
    "num-frames-received.retire_connection_id", Count, "RETIRE_CONNECTION_ID frames received.", |one| one.statistics.frames_received.of(FrameKind::RetireConnectionId);
    "num-frames-received.path_challenge", Count, "PATH_CHALLENGE frames received.", |one| one.statistics.frames_received.of(FrameKind::PathChallenge);
    "num-frames-received.path_response", Count, "PATH_RESPONSE frames received.", |one| one.statistics.frames_received.of(FrameKind::PathResponse);
    "num-frames-received.transport_close", Count, "TRANSPORT_CLOSE frames received.", |one| one.statistics.frames_received.of(FrameKind::TransportClose);
    "num-frames-received.application_close", Count, "APPLICATION_CLOSE frames received.", |one| one.statistics.frames_received.of(FrameKind::ApplicationClose);
    "num-frames-received.handshake_done", Count, "HANDSHAKE_DONE frames received.", |one| one.statistics.frames_received.of(FrameKind::HandshakeDone);
    "num-frames-received.datagram", Count, "DATAGRAM frames received.", |one| one.statistics.frames_received.of(FrameKind::Datagram);
    "num-frames-received.ack_frequency", Count, "ACK_FREQUENCY frames received.", |one| one.statistics.frames_received.of(FrameKind::AckFrequency);
    "num-frames-received.immediate_ack", Count, "IMMEDIATE_ACK frames received.", |one| one.statistics.frames_received.of(FrameKind::ImmediateAck);
    "num-frames-sent.padding", Bytes, "PADDING bytes sent.", |one| one.statistics.frames_sent.of(FrameKind::Padding);
    "num-frames-sent.ping", Count, "PING frames sent.", |one| one.statistics.frames_sent.of(FrameKind::Ping);
    "num-frames-sent.ack", Count, "ACK frames sent.", |one| one.statistics.frames_sent.of(FrameKind::Ack);
    "num-frames-sent.reset_stream", Count, "RESET_STREAM frames sent.", |one| one.statistics.frames_sent.of(FrameKind::ResetStream);
    "num-frames-sent.stop_sending", Count, "STOP_SENDING frames sent.", |one| one.statistics.frames_sent.of(FrameKind::StopSending);
    "num-frames-sent.crypto", Count, "CRYPTO frames sent.", |one| one.statistics.frames_sent.of(FrameKind::Crypto);
    "num-frames-sent.new_token", Count, "NEW_TOKEN frames sent.", |one| one.statistics.frames_sent.of(FrameKind::NewToken);
    "num-frames-sent.stream", Count, "STREAM frames sent.", |one| one.statistics.frames_sent.of(FrameKind::Stream);
    "num-frames-sent.max_data", Count, "MAX_DATA frames sent.", |one| one.statistics.frames_sent.of(FrameKind::MaxData);
    "num-frames-sent.max_stream_data", Count, "MAX_STREAM_DATA frames sent.", |one| one.statistics.frames_sent.of(FrameKind::MaxStreamData);
    "num-frames-sent.max_streams_bidi", Count, "MAX_STREAMS_BIDI frames sent.", |one| one.statistics.frames_sent.of(FrameKind::MaxStreamsBidi);
    "num-frames-sent.max_streams_uni", Count, "MAX_STREAMS_UNI frames sent.", |one| one.statistics.frames_sent.of(FrameKind::MaxStreamsUni);
    "num-frames-sent.data_blocked", Count, "DATA_BLOCKED frames sent.", |one| one.statistics.frames_sent.of(FrameKind::DataBlocked);
    "num-frames-sent.stream_data_blocked", Count, "STREAM_DATA_BLOCKED frames sent.", |one| one.statistics.frames_sent.of(FrameKind::StreamDataBlocked);
    "num-frames-sent.streams_blocked", Count, "STREAMS_BLOCKED frames sent.", |one| one.statistics.frames_sent.of(FrameKind::StreamsBlocked);
    "num-frames-sent.new_connection_id", Count, "NEW_CONNECTION_ID frames sent.", |one| one.statistics.frames_sent.of(FrameKind::NewConnectionId);
    "num-frames-sent.retire_connection_id", Count, "RETIRE_CONNECTION_ID frames sent.", |one| one.statistics.frames_sent.of(FrameKind::RetireConnectionId);
    "num-frames-sent.path_challenge", Count, "PATH_CHALLENGE frames sent.", |one| one.statistics.frames_sent.of(FrameKind::PathChallenge);
    "num-frames-sent.path_response", Count, "PATH_RESPONSE frames sent.", |one| one.statistics.frames_sent.of(FrameKind::PathResponse);
    "num-frames-sent.transport_close", Count, "TRANSPORT_CLOSE frames sent.", |one| one.statistics.frames_sent.of(FrameKind::TransportClose);
    "num-frames-sent.application_close", Count, "APPLICATION_CLOSE frames sent.", |one| one.statistics.frames_sent.of(FrameKind::ApplicationClose);
    "num-frames-sent.handshake_done", Count, "HANDSHAKE_DONE frames sent.", |one| one.statistics.frames_sent.of(FrameKind::HandshakeDone);
    "num-frames-sent.datagram", Count, "DATAGRAM frames sent.", |one| one.statistics.frames_sent.of(FrameKind::Datagram);
    "num-frames-sent.ack_frequency", Count, "ACK_FREQUENCY frames sent.", |one| one.statistics.frames_sent.of(FrameKind::AckFrequency);
    "num-frames-sent.immediate_ack", Count, "IMMEDIATE_ACK frames sent.", |one| one.statistics.frames_sent.of(FrameKind::ImmediateAck);
    "num-paths.created", Count, "Paths that came to be known, beside the first.", |one| one.statistics.paths.created;
    "num-paths.validated", Count, "Of them, those that were validated.", |one| one.statistics.paths.validated;
    "num-paths.validation-failed", Count, "Those that did not answer.", |one| one.statistics.paths.validation_failed;
    "num-paths.migration-elicited", Count, "Those that the peer moved to.", |one| one.statistics.paths.migration_elicited;
    "num-paths.promoted", Count, "Those that became the path in use.", |one| one.statistics.paths.promoted;
    "num-paths.closed-no-dcid", Count, "Those given up for want of a connection ID to use on them.", |one| one.statistics.paths.closed_without_id;
    "num-paths.ecn-validated", Count, "Whether ECN was found to work on the path in use (RFC 9000 §13.4).", |one| u64::from(one.ecn == EcnState::Capable);
    "num-paths.ecn-failed", Count, "Whether ECN was found not to work on it.", |one| u64::from(one.ecn == EcnState::Failed);
    "num-ptos", Count, "Probe timeouts that expired.", |one| one.recovery.probe_timeouts;
    "num-handshake-timeouts", Count, "Handshakes that took too long. Always 0: such a connection has no line of statistics here.", |_one| 0;
    "num-initial-handshake-exceeded", Count, "Handshakes that took too many packets. Always 0: there is no such limit here.", |_one| 0;
    "num-jumpstart-applicable", Flag, "Whether there was more to send than the initial window, so that a jump could have shown.", |one| u64::from(one.streams.data_sent > one.state.statistics.initial_window);
    "num-rapid-start", Flag, "Whether startup grows as Rapid Start's.", |one| u64::from(one.has_rapid_growth());
    "num-paced", Flag, "Whether packets are paced.", |one| u64::from(one.is_paced);
    "num-respected-app-limited", Flag, "Whether the window does not grow while the application limits what is sent. Always 1.", |_one| 1;
    "handshake-confirmed-msec", Milliseconds, "How long after its begin the handshake was confirmed; 2^64-1 if it was not.", |one| one.statistics.handshake_confirmed_after.map_or(u64::MAX, millis);
    "jumpstart.prev-rate", BytesPerSecond, "The delivery rate of an earlier connection. Always 0: not remembered here.", |_one| 0;
    "jumpstart.prev-rtt", Milliseconds, "The round-trip time of an earlier connection. Always 0: not remembered here.", |_one| 0;
    "jumpstart.new-rtt", Milliseconds, "The least round-trip time, where a jump could have shown; else 0.", |one| if one.streams.data_sent > one.state.statistics.initial_window { one.rtt_ms(|rtt| rtt.minimum, 0) } else { 0 };
    "jumpstart.cwnd", Bytes, "The window jumped to; 0 for no jump.", |one| one.state.statistics.jump_window.unwrap_or(0);
    "rtt.minimum", Milliseconds, "The least round-trip time; 2^32-1 before a sample.", |one| one.rtt_ms(|rtt| rtt.minimum, u64::from(u32::MAX));
    "rtt.smoothed", Milliseconds, "The smoothed round-trip time; 0 before a sample.", |one| one.rtt_ms(|rtt| rtt.smoothed, 0);
    "rtt.variance", Milliseconds, "The mean deviation of the round-trip time; 0 before a sample.", |one| one.rtt_ms(|rtt| rtt.variance, 0);
    "rtt.latest", Milliseconds, "The latest round-trip time; 0 before a sample.", |one| one.rtt_ms(|rtt| rtt.latest, 0);
    "loss-thresholds.use-packet-based", Flag, "Whether losses are judged by packet numbers, too.", |one| u64::from(one.thresholds.uses_packet_threshold());
    "loss-thresholds.time-based-percentile", PerRtt, "What is waited beyond a round trip, in 1/1024 of it.", |one| one.thresholds.time_share().into();
    "cc.cwnd", Bytes, "The congestion window.", |one| one.state.window;
    "cc.ssthresh", Bytes, "The slow start threshold; 2^32-1 while there is none.", |one| one.state.slow_start_threshold.unwrap_or(u64::from(u32::MAX));
    "cc.cwnd-initial", Bytes, "The window at the begin.", |one| one.state.statistics.initial_window;
    "cc.cwnd-exiting-slow-start", Bytes, "The window just before startup ended; 0 while it lasts.", |one| one.state.statistics.window_exiting_startup.unwrap_or(0);
    "cc.exit-slow-start-at", Milliseconds, "When startup ended, by the server's clock; 2^63-1 while it lasts.", |one| Snapshot::time_ms(one.state.statistics.startup_exited_at, i64::MAX as u64);
    "cc.cwnd-exiting-jumpstart", Bytes, "Bytes in flight when the first packet of a jump was acknowledged; 0 without.", |one| one.state.statistics.window_exiting_jump.unwrap_or(0);
    "cc.cwnd-minimum", Bytes, "The smallest window after a reduction; 2^32-1 without one.", |one| one.state.statistics.window_min.unwrap_or(u64::from(u32::MAX));
    "cc.cwnd-maximum", Bytes, "The largest window.", |one| one.state.statistics.window_max;
    "cc.num-loss-episodes", Count, "Reductions of the window.", |one| one.state.statistics.loss_episodes;
    "cc.num-loss-episodes-undone", Count, "Reductions undone, since every loss in them was spurious.", |one| one.state.statistics.episodes_undone;
    "cc.num-loss-episodes-undone-in-startup", Count, "Of these, the ones that had ended startup.", |one| one.state.statistics.episodes_undone_in_startup;
    "cc.num-ecn-loss-episodes", Count, "Reductions that saw CE marks and no loss.", |one| one.state.statistics.ecn_episodes;
    "num-sentmap-packets-largest", Count, "The most packets that were kept as sent.", |one| one.recovery.ring_max;
}
