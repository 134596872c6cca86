//! The keys of log lines: one table, from which lines, documentation, JSON schemas and the constants here follow.
//!
//! Statistics have H2O's keys, order and sentinels.

use lastbyte_quic::{recovery::EcnState, statistics::FrameKind};

use super::{
    Experiment, Header,
    schema::{Decimals, Field, Key, Kind, Nullable, Unit, Value},
    snapshot::{Snapshot, exact_ms, millis},
};

/// Declares a part of a line: a constant for each key, and the table of its fields.
macro_rules! fields {
    ($(#[$about:meta])* $table:ident of $source:ty {
        $($name:ident $key:literal, $kind:expr, $unit:ident, $meaning:literal, |$of:pat_param| $value:expr;)*
    }) => {
        $(#[doc = $meaning] pub const $name: Key = Key::new($key);)*

        $(#[$about])*
        pub const $table: &[Field<$source>] = &[
            $(Field::new($name, $kind, Unit::$unit, $meaning, |$of| Value::from($value)),)*
        ];
    };
}
pub(super) use fields;

/// Declares the statistics. Frames have two fields a kind: received and sent.
macro_rules! statistics {
    (
        { $($early:ident $early_key:literal, $early_unit:ident, $early_meaning:literal, |$early_of:pat_param| $early_value:expr;)* }
        frames { $($kind:ident $frame:literal, $frame_unit:ident, $frames:literal;)* }
        { $($late:ident $late_key:literal, $late_unit:ident, $late_meaning:literal, |$late_of:pat_param| $late_value:expr;)* }
    ) => {
        $(#[doc = $early_meaning] pub const $early: Key = Key::new($early_key);)*
        $(#[doc = $late_meaning] pub const $late: Key = Key::new($late_key);)*

        /// The statistics of a connection over QUIC, all of them whole numbers, in the order of the line.
        pub const STATISTICS: &[Field<Snapshot>] = &[
            $(statistics!($early, $early_unit, $early_meaning, |$early_of| $early_value),)*
            $(statistics!(
                Key::new(concat!("num-frames-received.", $frame)),
                $frame_unit,
                concat!($frames, " received."),
                |of| of.statistics.frames_received.of(FrameKind::$kind)
            ),)*
            $(statistics!(
                Key::new(concat!("num-frames-sent.", $frame)),
                $frame_unit,
                concat!($frames, " sent."),
                |of| of.statistics.frames_sent.of(FrameKind::$kind)
            ),)*
            $(statistics!($late, $late_unit, $late_meaning, |$late_of| $late_value),)*
        ];

        /// The kinds of frames as the table of statistics has them.
        #[cfg(test)]
        pub(super) const FRAMES: &[(FrameKind, &str)] = &[$((FrameKind::$kind, $frame),)*];
    };
    ($key:expr, $unit:ident, $meaning:expr, |$of:pat_param| $value:expr) => {
        Field::new($key, Kind::Integer, Unit::$unit, $meaning, |$of| Value::Integer($value))
    };
}

/// Numbers that stand for no value, each with the key that has it.
pub const SENTINELS: &[(&str, u64)] = &[
    // Of a response without a length; H2O only.
    (CONTENT_LENGTH.name(), u64::MAX),
    (HANDSHAKE_CONFIRMED_MSEC.name(), u64::MAX),
    (RTT_MINIMUM.name(), u32::MAX as u64),
    (CC_SSTHRESH.name(), u32::MAX as u64),
    (CC_EXIT_SLOW_START_AT.name(), i64::MAX as u64),
    (CC_CWND_MINIMUM.name(), u32::MAX as u64),
];

fields! {
    /// The start of every line.
    HEAD of Header {
        MODULE "module", Kind::Constant("lastbyte"), None, "The program: `lastbyte`.", |_| "lastbyte";
        TYPE "type", Kind::Constant("connection"), None, "The type of the line: `connection`.", |_| "connection";
        TIME "time", Kind::Integer, Milliseconds, "When the line was written, since the Unix epoch; in a simulation, since its start.", |of| of.time_ms;
        CONN_ID "conn_id", Kind::Integer, None, "The number of the connection within its process. QUIC and TCP are numbered separately.", |of| of.conn_id;
        METHOD "method", Kind::Text, None, "The method of the first request.", |of| of.method.as_str();
        CONTENT_LENGTH "content_length", Kind::Integer, Bytes, "The length of the first response: its `content-length`, or else the bytes of its body that were sent, over TCP those handed to the kernel.", |of| of.content_length;
        TTLB "ttlb", Kind::NullableInteger, Milliseconds, "Time to last byte: from the start of the first request until all of the response is acknowledged; `null` if it was not, or if that is not known.", |of| Nullable(of.ttlb_ms);
    }
}

statistics! {
    {
        NUM_PACKETS_RECEIVED "num-packets.received", Count, "Packets received and decrypted, without duplicates.", |of| of.statistics.packets.received;
        NUM_PACKETS_DECRYPTION_FAILED "num-packets.decryption-failed", Count, "Packets received that failed authentication.", |of| of.statistics.packets.decryption_failed;
        NUM_PACKETS_SENT "num-packets.sent", Count, "Packets sent.", |of| of.recovery.packets_sent;
        NUM_PACKETS_LOST "num-packets.lost", Count, "Packets declared lost.", |of| of.recovery.packets_lost;
        NUM_PACKETS_LOST_TIME_THRESHOLD "num-packets.lost-time-threshold", Count, "Packets declared lost by the time threshold alone.", |of| of.recovery.packets_lost_by_time;
        NUM_PACKETS_ACK_RECEIVED "num-packets.ack-received", Count, "Packets newly acknowledged, including late acknowledgments.", |of| of.recovery.packets_acked;
        NUM_PACKETS_LATE_ACKED "num-packets.late-acked", Count, "Packets acknowledged after they were declared lost.", |of| of.recovery.packets_late;
        NUM_PACKETS_INITIAL_RECEIVED "num-packets.initial-received", Count, "Initial packets received.", |of| of.statistics.packets.initial_received;
        NUM_PACKETS_ZERO_RTT_RECEIVED "num-packets.zero-rtt-received", Count, "0-RTT packets received.", |of| of.statistics.packets.zero_rtt_received;
        NUM_PACKETS_HANDSHAKE_RECEIVED "num-packets.handshake-received", Count, "Handshake packets received.", |of| of.statistics.packets.handshake_received;
        NUM_PACKETS_INITIAL_SENT "num-packets.initial-sent", Count, "Initial packets sent.", |of| of.statistics.packets.initial_sent;
        NUM_PACKETS_ZERO_RTT_SENT "num-packets.zero-rtt-sent", Count, "0-RTT packets sent.", |of| of.statistics.packets.zero_rtt_sent;
        NUM_PACKETS_HANDSHAKE_SENT "num-packets.handshake-sent", Count, "Handshake packets sent.", |of| of.statistics.packets.handshake_sent;
        NUM_PACKETS_RECEIVED_OUT_OF_ORDER "num-packets.received-out-of-order", Count, "Packets received with a lower number than an earlier packet of the same packet number space.", |of| of.statistics.packets.received_out_of_order;
        NUM_PACKETS_RECEIVED_ECN_ECT0 "num-packets.received-ecn-ect0", Count, "Packets received in datagrams marked ECT(0).", |of| of.statistics.packets.received_ect0;
        NUM_PACKETS_RECEIVED_ECN_ECT1 "num-packets.received-ecn-ect1", Count, "Packets received in datagrams marked ECT(1).", |of| of.statistics.packets.received_ect1;
        NUM_PACKETS_RECEIVED_ECN_CE "num-packets.received-ecn-ce", Count, "Packets received in datagrams marked CE.", |of| of.statistics.packets.received_ce;
        NUM_PACKETS_ACKED_ECN_ECT0 "num-packets.acked-ecn-ect0", Count, "Packets that the peer reported with ECT(0).", |of| of.ecn_reported[0];
        NUM_PACKETS_ACKED_ECN_ECT1 "num-packets.acked-ecn-ect1", Count, "Packets that the peer reported with ECT(1).", |of| of.ecn_reported[1];
        NUM_PACKETS_ACKED_ECN_CE "num-packets.acked-ecn-ce", Count, "Packets that the peer reported with CE.", |of| of.ecn_reported[2];
        NUM_PACKETS_SENT_PROMOTED_PATHS "num-packets.sent-promoted-paths", Count, "Packets sent on paths that became the active path.", |of| of.statistics.paths.packets_sent_promoted;
        NUM_PACKETS_ACK_RECEIVED_PROMOTED_PATHS "num-packets.ack-received-promoted-paths", Count, "Packets acknowledged of those sent on paths that became the active path.", |of| of.statistics.paths.packets_acked_promoted;
        NUM_PACKETS_MAX_DELAYED "num-packets.max-delayed", Count, "The largest number of packets buffered at a time until their keys were available.", |of| of.statistics.packets.delayed_max;
        NUM_PACKETS_DELAYED_USED "num-packets.delayed-used", Count, "Buffered packets that were decrypted later.", |of| of.statistics.packets.delayed_used;
        NUM_BYTES_RECEIVED "num-bytes.received", Bytes, "UDP payload received.", |of| of.statistics.bytes_received;
        NUM_BYTES_SENT "num-bytes.sent", Bytes, "UDP payload sent.", |of| of.recovery.bytes_sent;
        NUM_BYTES_LOST "num-bytes.lost", Bytes, "UDP payload declared lost.", |of| of.recovery.bytes_lost;
        NUM_BYTES_ACK_RECEIVED "num-bytes.ack-received", Bytes, "UDP payload acknowledged.", |of| of.recovery.bytes_acked;
        NUM_BYTES_STREAM_DATA_SENT "num-bytes.stream-data-sent", Bytes, "STREAM and CRYPTO data sent, including retransmissions.", |of| of.streams.data_sent + of.crypto_sent;
        NUM_BYTES_STREAM_DATA_RESENT "num-bytes.stream-data-resent", Bytes, "STREAM data retransmitted.", |of| of.streams.data_resent;
    }
    frames {
        Padding "padding", Bytes, "PADDING bytes";
        Ping "ping", Count, "PING frames";
        Ack "ack", Count, "ACK frames";
        ResetStream "reset_stream", Count, "RESET_STREAM frames";
        StopSending "stop_sending", Count, "STOP_SENDING frames";
        Crypto "crypto", Count, "CRYPTO frames";
        NewToken "new_token", Count, "NEW_TOKEN frames";
        Stream "stream", Count, "STREAM frames";
        MaxData "max_data", Count, "MAX_DATA frames";
        MaxStreamData "max_stream_data", Count, "MAX_STREAM_DATA frames";
        MaxStreamsBidi "max_streams_bidi", Count, "MAX_STREAMS_BIDI frames";
        MaxStreamsUni "max_streams_uni", Count, "MAX_STREAMS_UNI frames";
        DataBlocked "data_blocked", Count, "DATA_BLOCKED frames";
        StreamDataBlocked "stream_data_blocked", Count, "STREAM_DATA_BLOCKED frames";
        StreamsBlocked "streams_blocked", Count, "STREAMS_BLOCKED frames";
        NewConnectionId "new_connection_id", Count, "NEW_CONNECTION_ID frames";
        RetireConnectionId "retire_connection_id", Count, "RETIRE_CONNECTION_ID frames";
        PathChallenge "path_challenge", Count, "PATH_CHALLENGE frames";
        PathResponse "path_response", Count, "PATH_RESPONSE frames";
        TransportClose "transport_close", Count, "TRANSPORT_CLOSE frames";
        ApplicationClose "application_close", Count, "APPLICATION_CLOSE frames";
        HandshakeDone "handshake_done", Count, "HANDSHAKE_DONE frames";
        Datagram "datagram", Count, "DATAGRAM frames";
        AckFrequency "ack_frequency", Count, "ACK_FREQUENCY frames";
        ImmediateAck "immediate_ack", Count, "IMMEDIATE_ACK frames";
    }
    {
        NUM_PATHS_CREATED "num-paths.created", Count, "Paths created, not counting the first.", |of| of.statistics.paths.created;
        NUM_PATHS_VALIDATED "num-paths.validated", Count, "Paths validated, not counting the first.", |of| of.statistics.paths.validated;
        NUM_PATHS_VALIDATION_FAILED "num-paths.validation-failed", Count, "Paths whose validation failed.", |of| of.statistics.paths.validation_failed;
        NUM_PATHS_MIGRATION_ELICITED "num-paths.migration-elicited", Count, "Paths that the peer migrated to.", |of| of.statistics.paths.migration_elicited;
        NUM_PATHS_PROMOTED "num-paths.promoted", Count, "Paths that became the active path.", |of| of.statistics.paths.promoted;
        NUM_PATHS_CLOSED_NO_DCID "num-paths.closed-no-dcid", Count, "Paths closed because no connection ID was available for them.", |of| of.statistics.paths.closed_without_id;
        NUM_PATHS_ECN_VALIDATED "num-paths.ecn-validated", Count, "Whether ECN validation succeeded on the active path (RFC 9000 §13.4).", |of| u64::from(of.ecn == EcnState::Capable);
        NUM_PATHS_ECN_FAILED "num-paths.ecn-failed", Count, "Whether ECN validation failed on the active path.", |of| u64::from(of.ecn == EcnState::Failed);
        NUM_PTOS "num-ptos", Count, "Probe timeouts that expired.", |of| of.recovery.probe_timeouts;
        NUM_HANDSHAKE_TIMEOUTS "num-handshake-timeouts", Count, "Handshakes that timed out. Always 0: such a connection has no statistics in this log.", |_| 0;
        NUM_INITIAL_HANDSHAKE_EXCEEDED "num-initial-handshake-exceeded", Count, "Handshakes that exceeded the limit of packets. Always 0: this stack has no such limit.", |_| 0;
        NUM_JUMPSTART_APPLICABLE "num-jumpstart-applicable", Flag, "Whether more data than the initial window was sent, so that a jump could have an effect.", |of| u64::from(of.is_jump_applicable());
        QUIC_JUMPSTART_APPLICABLE "quic.jumpstart.applicable", Flag, "The same as `num-jumpstart-applicable`; the talk's version of H2O writes both.", |of| u64::from(of.is_jump_applicable());
        NUM_RAPID_START "num-rapid-start", Flag, "Whether the startup phase grows the window as Rapid Start does.", |of| u64::from(of.has_rapid_growth());
        NUM_PACED "num-paced", Flag, "Whether packets are paced.", |of| u64::from(of.is_paced);
        NUM_RESPECTED_APP_LIMITED "num-respected-app-limited", Flag, "Whether the window does not grow while the connection is application-limited. Always 1.", |_| 1;
        HANDSHAKE_CONFIRMED_MSEC "handshake-confirmed-msec", Milliseconds, "Time from the start of the connection until the handshake was confirmed; 2^64-1 if it was not.", |of| of.statistics.handshake_confirmed_after.map_or(u64::MAX, millis);
        JUMPSTART_PREV_RATE "jumpstart.prev-rate", BytesPerSecond, "The rate that an earlier connection saved and congestion control uses (RFC 9959); 0 for none.", |of| of.saved_rate();
        JUMPSTART_PREV_RTT "jumpstart.prev-rtt", Milliseconds, "The minimum round-trip time of that connection; 0 for none.", |of| of.state.statistics.saved_path.map_or(0, |saved| millis(saved.rtt));
        JUMPSTART_NEW_RTT "jumpstart.new-rtt", Milliseconds, "The minimum round-trip time if a jump could have an effect; otherwise 0.", |of| if of.is_jump_applicable() { of.rtt_ms(|rtt| rtt.minimum, 0) } else { 0 };
        JUMPSTART_CWND "jumpstart.cwnd", Bytes, "The window set by a jump; 0 without a jump.", |of| of.state.statistics.jump_window.unwrap_or(0);
        QUIC_JUMPSTART_TIME_TO_IDLE "quic.jumpstart.time-to-idle", Milliseconds, "Time from the start of the connection until nothing was in flight for the first time after more than the initial window was sent; 0 before that.", |of| of.time_to_idle.map_or(0, millis);
        TOKEN_SENT_AT "token-sent.at", Milliseconds, "Time from the start of the connection until the last token with a saved rate was sent; 0 for none.", |of| of.token_sent.map_or(0, |(at, _)| millis(at));
        TOKEN_SENT_RATE "token-sent.rate", BytesPerSecond, "The rate saved in that token for a later connection (RFC 9959); 0 for none.", |of| of.token_rate();
        TOKEN_SENT_RTT "token-sent.rtt", Milliseconds, "The minimum round-trip time saved in that token; 0 for none.", |of| of.token_sent.map_or(0, |(_, saved)| millis(saved.rtt));
        RTT_MINIMUM "rtt.minimum", Milliseconds, "The minimum round-trip time; 2^32-1 before the first sample.", |of| of.rtt_ms(|rtt| rtt.minimum, u64::from(u32::MAX));
        RTT_SMOOTHED "rtt.smoothed", Milliseconds, "The smoothed round-trip time; 0 before the first sample.", |of| of.rtt_ms(|rtt| rtt.smoothed, 0);
        RTT_VARIANCE "rtt.variance", Milliseconds, "The mean deviation of the round-trip time; 0 before the first sample.", |of| of.rtt_ms(|rtt| rtt.variance, 0);
        RTT_LATEST "rtt.latest", Milliseconds, "The latest round-trip time; 0 before the first sample.", |of| of.rtt_ms(|rtt| rtt.latest, 0);
        LOSS_THRESHOLDS_USE_PACKET_BASED "loss-thresholds.use-packet-based", Flag, "Whether loss detection uses the packet threshold.", |of| u64::from(of.thresholds.uses_packet_threshold());
        LOSS_THRESHOLDS_TIME_BASED_PERCENTILE "loss-thresholds.time-based-percentile", PerRtt, "The time threshold of loss detection beyond one round trip, in 1/1024 of a round trip.", |of| of.thresholds.time_share().into();
        CC_CWND "cc.cwnd", Bytes, "The congestion window.", |of| of.state.window;
        CC_SSTHRESH "cc.ssthresh", Bytes, "The slow start threshold; 2^32-1 while it is infinite.", |of| of.state.slow_start_threshold.unwrap_or(u64::from(u32::MAX));
        CC_CWND_INITIAL "cc.cwnd-initial", Bytes, "The initial window.", |of| of.state.statistics.initial_window;
        CC_CWND_EXITING_SLOW_START "cc.cwnd-exiting-slow-start", Bytes, "The window just before the end of the startup phase; 0 during the phase.", |of| of.state.statistics.window_exiting_startup.unwrap_or(0);
        CC_EXIT_SLOW_START_AT "cc.exit-slow-start-at", Milliseconds, "The end of the startup phase, by the server's clock; 2^63-1 during the phase.", |of| Snapshot::time_ms(of.state.statistics.startup_exited_at, i64::MAX as u64);
        CC_CWND_EXITING_JUMPSTART "cc.cwnd-exiting-jumpstart", Bytes, "Bytes in flight when the first packet of a jump was acknowledged; 0 without a jump.", |of| of.state.statistics.window_exiting_jump.unwrap_or(0);
        CC_CWND_MINIMUM "cc.cwnd-minimum", Bytes, "The smallest window after a reduction; 2^32-1 without a reduction.", |of| of.state.statistics.window_min.unwrap_or(u64::from(u32::MAX));
        CC_CWND_MAXIMUM "cc.cwnd-maximum", Bytes, "The largest window.", |of| of.state.statistics.window_max;
        CC_NUM_LOSS_EPISODES "cc.num-loss-episodes", Count, "Reductions of the window.", |of| of.state.statistics.loss_episodes;
        CC_NUM_LOSS_EPISODES_UNDONE "cc.num-loss-episodes-undone", Count, "Reductions undone because every loss in them was spurious.", |of| of.state.statistics.episodes_undone;
        CC_NUM_LOSS_EPISODES_UNDONE_IN_STARTUP "cc.num-loss-episodes-undone-in-startup", Count, "Undone reductions that had ended the startup phase.", |of| of.state.statistics.episodes_undone_in_startup;
        CC_NUM_ECN_LOSS_EPISODES "cc.num-ecn-loss-episodes", Count, "Reductions caused by CE marks without loss.", |of| of.state.statistics.ecn_episodes;
        DELIVERY_RATE_LATEST "delivery-rate.latest", BytesPerSecond, "The rate at which the path delivered in the latest span of at least 50 ms in which the connection was not application-limited; 0 for none. If there was no such span, of a shorter one.", |of| of.delivery_rate(|rate| rate.latest);
        DELIVERY_RATE_SMOOTHED "delivery-rate.smoothed", BytesPerSecond, "That rate over the latest ten spans and the one that has not ended; 0 for none.", |of| of.delivery_rate(|rate| rate.smoothed);
        DELIVERY_RATE_STDEV "delivery-rate.stdev", BytesPerSecond, "The standard deviation of the rates of these spans.", |of| of.delivery_rate(|rate| rate.deviation);
        NUM_SENTMAP_PACKETS_LARGEST "num-sentmap-packets-largest", Count, "The largest number of sent packets tracked at a time.", |of| of.recovery.ring_max;
    }
}

fields! {
    /// Whether the transfer completed.
    OUTCOME of Header {
        COMPLETE "complete", Kind::Boolean, None, "Whether all of the first response was acknowledged.", |of| of.ttlb_ms.is_some();
    }
}

fields! {
    /// The congestion control of a connection over QUIC.
    ALGORITHMS of Snapshot {
        STARTUP "startup", Kind::Text, None, "The name of the growth rule of the startup phase.", |of| of.startup();
        CONGESTION "congestion", Kind::Text, None, "The name of the congestion avoidance algorithm.", |of| of.congestion();
    }
}

fields! {
    /// What a connection over QUIC found out about its path, beyond the keys of H2O. Keys without a value are left out.
    PATH of Snapshot {
        RTT_MAXIMUM "rtt.maximum", Kind::Number, Milliseconds, "The maximum round-trip time.", |of| of.rtt.as_ref().map(|rtt| Decimals(exact_ms(rtt.maximum), 3));
        RTT_EXITING_SLOW_START "rtt.exiting-slow-start", Kind::Number, Milliseconds, "The latest round-trip time at the end of the startup phase. Absent during the phase.", |of| of.state.statistics.rtt_exiting_startup.map(|rtt| Decimals(exact_ms(rtt), 3));
        NUM_PACKETS_LOST_SLOW_START "num-packets.lost-slow-start", Kind::Integer, Count, "Packets declared lost of those sent before the end of the startup phase.", |of| of.state.statistics.packets_lost_in_startup;
        CC_IN_FLIGHT_AT_FIRST_LOSS "cc.in-flight-at-first-loss", Kind::Integer, Bytes, "Bytes in flight when the first packet was declared lost, itself included. Absent without a loss.", |of| of.in_flight_at_first_loss;
        FIRST_FLIGHT_BYTES "first-flight.bytes", Kind::Integer, Bytes, "Bytes of the first flight acknowledged after the first of its acknowledgments. The first flight is the first round trip with at least ten packets in flight. Absent before all of it is acknowledged.", |of| of.first_flight.map(|flight| flight.bytes);
        FIRST_FLIGHT_SEND_TIME "first-flight.send-time", Kind::Number, Milliseconds, "Time from sending the first packet of the first flight to sending the last.", |of| of.first_flight.map(|flight| Decimals(exact_ms(flight.sent_over), 3));
        FIRST_FLIGHT_ACK_TIME "first-flight.ack-time", Kind::Number, Milliseconds, "Time from the first acknowledgment of the first flight to the last. Where it is longer than `first-flight.send-time`, the path spread the flight at the rate of its bottleneck: `first-flight.bytes` in this time.", |of| of.first_flight.map(|flight| Decimals(exact_ms(flight.acked_over), 3));
    }
}

fields! {
    /// Where the time of a connection over QUIC went, if that was measured: `lastbyte_quic::anatomy` defines the parts. All but
    /// the first add up to `ttlb`.
    ANATOMY of Snapshot {
        ANATOMY_HANDSHAKE "anatomy.handshake", Kind::Number, Milliseconds, "Before the transfer: from the start of the connection to the request.", |of| of.part_ms(|parts| parts.handshake).map(|ms| Decimals(ms, 3));
        ANATOMY_APPLICATION "anatomy.application", Kind::Number, Milliseconds, "Part of `ttlb`: there was nothing to send.", |of| of.part_ms(|parts| parts.application).map(|ms| Decimals(ms, 3));
        ANATOMY_FLOW_CONTROL "anatomy.flow-control", Kind::Number, Milliseconds, "Part of `ttlb`: the application had data, and the peer's flow control allowed to send none of it.", |of| of.part_ms(|parts| parts.flow_control).map(|ms| Decimals(ms, 3));
        ANATOMY_WINDOW "anatomy.window", Kind::Number, Milliseconds, "Part of `ttlb`: the window was full between acknowledgments that follow each other closely.", |of| of.part_ms(|parts| parts.window).map(|ms| Decimals(ms, 3));
        ANATOMY_PACING "anatomy.pacing", Kind::Number, Milliseconds, "Part of `ttlb`: the pacer held data back.", |of| of.part_ms(|parts| parts.pacing).map(|ms| Decimals(ms, 3));
        ANATOMY_IDLE "anatomy.idle", Kind::Number, Milliseconds, "Part of `ttlb`: the window was full and the path idle, after a flight.", |of| of.part_ms(|parts| parts.idle).map(|ms| Decimals(ms, 3));
        ANATOMY_QUEUEING "anatomy.queueing", Kind::Number, Milliseconds, "Part of `ttlb`: the window was full, and packets of the flight waited before the bottleneck.", |of| of.part_ms(|parts| parts.queueing).map(|ms| Decimals(ms, 3));
        ANATOMY_REPAIR "anatomy.repair", Kind::Number, Milliseconds, "Part of `ttlb`: losses were repaired.", |of| of.part_ms(|parts| parts.repair).map(|ms| Decimals(ms, 3));
        ANATOMY_LAST_ACK "anatomy.last-ack", Kind::Number, Milliseconds, "Part of `ttlb`: all had been sent, and the last acknowledgment was on its way.", |of| of.part_ms(|parts| parts.last_ack).map(|ms| Decimals(ms, 3));
    }
}

fields! {
    /// The experiment of a connection. Keys with unknown values are left out.
    EXPERIMENT of Experiment {
        EXPERIMENT_NAME "experiment", Kind::Text, None, "The name of the experiment.", |of| of.experiment.as_deref();
        ARM "arm", Kind::Text, None, "The arm that the connection was assigned to.", |of| of.arm.as_deref();
        SITE "site", Kind::Text, None, "The site of the first request (`serve --site`), or of the simulated client.", |of| of.site.as_deref();
        WORKER "worker", Kind::Integer, None, "The index of the thread of `lastbyte serve` that served the connection.", |of| of.worker;
        CONFIG "config", Kind::Text, None, "The hash of the configuration of `lastbyte serve` when the connection was accepted.", |of| of.config.as_deref();
        CLASS "class", Kind::Text, None, "The access technology of the simulated client.", |of| of.class.as_deref();
        SEED "seed", Kind::Integer, None, "The random seed of a simulated connection, below 2^53. Paired connections have the same seed.", |of| of.seed;
        CLIENT_TTLB "client.ttlb", Kind::Number, Milliseconds, "Time to last byte at the client, from its first datagram.", |of| of.client_ttlb_ms.map(|ms| Decimals(ms, 3));
        CLIENT_TTFB "client.ttfb", Kind::Number, Milliseconds, "Time to first byte at the client, from its first datagram.", |of| of.client_ttfb_ms.map(|ms| Decimals(ms, 3));
        CLIENT_HANDSHAKE "client.handshake", Kind::Number, Milliseconds, "Duration of the handshake at the client.", |of| of.client_handshake_ms.map(|ms| Decimals(ms, 3));
        LINK_RATE "link.rate", Kind::Integer, BitsPerSecond, "The rate of the simulated bottleneck.", |of| of.link_rate_bps;
        LINK_RTT "link.rtt", Kind::Number, Milliseconds, "The round-trip time of the simulated path with empty queues.", |of| of.link_rtt_ms.map(|ms| Decimals(ms, 6));
        LINK_QUEUE "link.queue", Kind::Number, Milliseconds, "The capacity of the queue of the simulated bottleneck, in time at its rate.", |of| of.link_queue_ms.map(|ms| Decimals(ms, 6));
        LINK_LOSS "link.loss", Kind::Number, Share, "The random loss of the simulated path, as a share of packets.", |of| of.link_loss.map(|loss| Decimals(loss, 6));
        LINK_CROSS "link.cross", Kind::OneOf(&["none", "flow", "bursts"]), None, "Cross traffic on the simulated path: `none`, `flow` (one long flow) or `bursts` (page loads).", |of| of.link_cross;
        LINK_DROPS_QUEUE_IN_STARTUP "link.drops.queue-in-startup", Kind::Integer, Count, "Packets of the connection dropped by a full queue of the simulated path during the server's startup phase.", |of| of.drops.map(|drops| drops.queue_in_startup);
        LINK_DROPS_QUEUE_LATER "link.drops.queue-later", Kind::Integer, Count, "Packets dropped by a full queue after the startup phase.", |of| of.drops.map(|drops| drops.queue_later);
        LINK_DROPS_CODEL "link.drops.codel", Kind::Integer, Count, "Packets dropped by active queue management.", |of| of.drops.map(|drops| drops.codel);
        LINK_DROPS_POLICER "link.drops.policer", Kind::Integer, Count, "Packets dropped by a policer.", |of| of.drops.map(|drops| drops.policer);
        LINK_DROPS_CHANCE "link.drops.chance", Kind::Integer, Count, "Packets dropped by random loss.", |of| of.drops.map(|drops| drops.chance);
        NEIGHBOUR_KIND "neighbour.kind", Kind::Text, None, "The neighbour on the simulated path, another user's traffic, as `--neighbour` names it.", |of| of.neighbour.as_ref().map(|one| one.kind.as_str());
        NEIGHBOUR_HORIZON "neighbour.horizon", Kind::Number, Milliseconds, "How long the neighbour was observed, from the start of the connection. The same in every arm.", |of| of.neighbour.as_ref().map(|one| Decimals(one.horizon_ms, 3));
        NEIGHBOUR_RATE "neighbour.rate", Kind::Integer, BitsPerSecond, "What the bottleneck transmitted of the neighbour's traffic meanwhile.", |of| of.neighbour.as_ref().map(|one| one.rate_bps);
        NEIGHBOUR_DELAY "neighbour.delay", Kind::Number, Milliseconds, "The mean time that the neighbour's packets waited in the queue. Absent if it sent none.", |of| of.neighbour.as_ref().and_then(|one| one.delay_ms).map(|ms| Decimals(ms, 3));
        NEIGHBOUR_LOSS "neighbour.loss", Kind::Number, Share, "The share of the neighbour's packets that the path dropped. Absent if it sent none.", |of| of.neighbour.as_ref().and_then(|one| one.loss).map(|loss| Decimals(loss, 6));
    }
}
