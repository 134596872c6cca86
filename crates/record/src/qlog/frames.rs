//! Frames in qlog.

use lastbyte_quic::trace::ApplicationFrame;
use lastbyte_wire::{
    Direction, StreamId,
    frame::{Ack, AckFrequency, CloseCause, ConnectionClose, Frame, NewConnectionId},
};

use crate::json::Object;

fn stream<'a, 'b>(object: &'b mut Object<'a>, name: &str, id: StreamId) -> &'b mut Object<'a> {
    object
        .text("frame_type", name)
        .integer("stream_id", id.get())
}

fn streams<'a, 'b>(
    object: &'b mut Object<'a>,
    name: &str,
    direction: Direction,
) -> &'b mut Object<'a> {
    let direction = match direction {
        Direction::Bidirectional => "bidirectional",
        Direction::Unidirectional => "unidirectional",
    };
    object
        .text("frame_type", name)
        .text("stream_type", direction)
}

/// Writes the members of a frame.
pub(super) fn write(frame: &Frame<'_>, object: &mut Object<'_>) {
    match frame {
        Frame::Padding(frame) => {
            object
                .text("frame_type", "padding")
                .integer("payload_length", frame.len.get() as u64);
        }
        Frame::Ping(_) => {
            object.text("frame_type", "ping");
        }
        Frame::Ack(frame) => ack(frame, object),
        Frame::ResetStream(frame) => {
            stream(object, "reset_stream", frame.stream_id)
                .integer("error_code", frame.error_code.get())
                .integer("final_size", frame.final_size.get());
        }
        Frame::StopSending(frame) => {
            stream(object, "stop_sending", frame.stream_id)
                .integer("error_code", frame.error_code.get());
        }
        Frame::Crypto(frame) => {
            object
                .text("frame_type", "crypto")
                .integer("offset", frame.offset.get())
                .integer("length", frame.data.len() as u64);
        }
        Frame::NewToken(frame) => {
            let len = frame.token().len() as u64;
            object.text("frame_type", "new_token");
            object.object("token").integer("length", len);
        }
        Frame::Stream(frame) => {
            let len = frame.data.len() as u64;
            stream(object, "stream", frame.header.id)
                .integer("offset", frame.header.offset.get())
                .integer("length", len)
                .boolean("fin", frame.header.fin);
            object.object("raw").integer("length", len);
        }
        Frame::MaxData(frame) => {
            object
                .text("frame_type", "max_data")
                .integer("maximum", frame.maximum.get());
        }
        Frame::MaxStreamData(frame) => {
            stream(object, "max_stream_data", frame.stream_id)
                .integer("maximum", frame.maximum.get());
        }
        Frame::MaxStreams(frame) => {
            streams(object, "max_streams", frame.direction).integer("maximum", frame.maximum.get());
        }
        Frame::DataBlocked(frame) => {
            object
                .text("frame_type", "data_blocked")
                .integer("limit", frame.limit.get());
        }
        Frame::StreamDataBlocked(frame) => {
            stream(object, "stream_data_blocked", frame.stream_id)
                .integer("limit", frame.limit.get());
        }
        Frame::StreamsBlocked(frame) => {
            streams(object, "streams_blocked", frame.direction).integer("limit", frame.limit.get());
        }
        Frame::NewConnectionId(frame) => new_connection_id(frame, object),
        Frame::RetireConnectionId(frame) => {
            object
                .text("frame_type", "retire_connection_id")
                .integer("sequence_number", frame.sequence.get());
        }
        Frame::PathChallenge(_) => {
            object.text("frame_type", "path_challenge");
        }
        Frame::PathResponse(_) => {
            object.text("frame_type", "path_response");
        }
        Frame::ConnectionClose(frame) => connection_close(frame, object),
        Frame::HandshakeDone(_) => {
            object.text("frame_type", "handshake_done");
        }
        Frame::ImmediateAck(_) => {
            object.text("frame_type", "immediate_ack");
        }
        Frame::AckFrequency(frame) => ack_frequency(frame, object),
    }
}

/// Writes the members of a frame of HTTP/3.
pub(super) fn write_application(frame: &ApplicationFrame<'_>, object: &mut Object<'_>) {
    object.text("frame_type", frame.name);
    match frame.name {
        "headers" => {
            let mut headers = object.array("headers");
            if let Some((name, value)) = frame.text {
                headers.object().text("name", name).text("value", value);
            }
        }
        "settings" => {
            let mut settings = object.array("settings");
            for (name, value) in frame.values {
                settings
                    .object()
                    .text("name", name)
                    .integer("value", *value);
            }
        }
        _ => {
            for (name, value) in frame.values {
                object.integer(name, *value);
            }
            if let Some((name, text)) = frame.text {
                object.text(name, text);
            }
        }
    }
}

/// The name of a setting of HTTP/3 as a parameter.
pub(super) fn parameter_name(setting: &str) -> &str {
    match setting {
        "settings_qpack_max_table_capacity" => "max_table_capacity",
        "settings_qpack_blocked_streams" => "blocked_streams_count",
        "settings_enable_connect_protocol" => "extended_connect",
        other => other.trim_start_matches("settings_"),
    }
}

fn ack(frame: &Ack<'_>, object: &mut Object<'_>) {
    let delay = frame.delay().get() as f64 * ACK_DELAY_UNIT_MS;
    object
        .text("frame_type", "ack")
        .number("ack_delay", delay, 3);
    {
        let mut ranges = object.array("acked_ranges");
        for range in frame.ranges() {
            let (first, last) = (range.start().get(), range.end().get());
            ranges.array().integer(first).integer(last);
        }
    }
    if let Some(ecn) = frame.ecn() {
        object
            .integer("ect0", ecn.ect0.get())
            .integer("ect1", ecn.ect1.get())
            .integer("ce", ecn.ce.get());
    }
}

fn new_connection_id(frame: &NewConnectionId, object: &mut Object<'_>) {
    object
        .text("frame_type", "new_connection_id")
        .integer("sequence_number", frame.sequence().get())
        .integer("retire_prior_to", frame.retire_prior_to().get())
        .text("connection_id", &frame.connection_id().to_string());
}

fn connection_close(frame: &ConnectionClose<'_>, object: &mut Object<'_>) {
    object.text("frame_type", "connection_close");
    match frame.cause {
        CloseCause::Transport { error, .. } => object
            .text("error_space", "transport")
            .integer("error_code", error.code().get()),
        CloseCause::Application { error_code } => object
            .text("error_space", "application")
            .integer("error_code", error_code.get()),
    };
}

fn ack_frequency(frame: &AckFrequency, object: &mut Object<'_>) {
    object
        .text("frame_type", "ack_frequency")
        .integer("sequence_number", frame.sequence.get())
        .integer(
            "ack_eliciting_threshold",
            frame.ack_eliciting_threshold.get(),
        )
        .integer("requested_max_ack_delay", frame.max_ack_delay_us.get())
        .integer("reordering_threshold", frame.reordering_threshold.get());
}

/// The unit of ACK delays, in milliseconds: both of our endpoints use an exponent of 3 (RFC 9000 §19.3).
const ACK_DELAY_UNIT_MS: f64 = 0.008;
