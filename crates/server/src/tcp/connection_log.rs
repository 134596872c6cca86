//! The connection log's line of a connection over TCP.
//!
//! Owns: its keys, from which line, documentation and JSON schema follow. They stand behind those that lines of QUIC begin
//! with ([`lastbyte_record::connection_log`]); counts have names of their own, as the kernel's TCP counts differently.

use std::fmt::Write as _;

use lastbyte_record::{
    connection_log::{Header, Unit, write_header},
    json::Object,
};
use lastbyte_udp::TcpInfo;

#[cfg(test)]
mod tests;

/// What is on a line.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) header: Header,
    /// Whether all of the first response was acknowledged, if that is known.
    pub(super) is_complete: Option<bool>,
    /// The version of HTTP.
    pub(super) proto: &'static str,
    /// The version of TLS.
    pub(super) tls: &'static str,
    pub(super) is_resumed: bool,
    pub(super) requests: u64,
    pub(super) body_bytes: u64,
    pub(super) handshake_ms: f64,
    pub(super) duration_ms: f64,
    /// The kernel's congestion control.
    pub(super) congestion: Option<String>,
    pub(super) info: Option<TcpInfo>,
}

impl Line {
    pub(super) fn write(&self) -> String {
        let mut text = String::new();
        let mut line = Object::new(&mut text);
        write_header(&mut line, &self.header);
        match self.is_complete {
            Some(is_complete) => line.boolean("complete", is_complete),
            None => line.null("complete"),
        };
        line.text("transport", "tcp")
            .text("proto", self.proto)
            .text("tls", self.tls)
            .text(
                "handshake",
                if self.is_resumed { "resumed" } else { "full" },
            )
            .number("handshake-time", self.handshake_ms, 3)
            .number("duration", self.duration_ms, 3)
            .integer("requests", self.requests)
            .integer("body-bytes", self.body_bytes);
        if let Some(congestion) = &self.congestion {
            line.text("tcp.congestion", congestion);
        }
        if let Some(info) = &self.info {
            for field in FIELDS {
                match (field.value)(info) {
                    Some(Value::Integer(value)) => line.integer(field.key, value),
                    Some(Value::Millis(value)) => line.number(field.key, value, 3),
                    None => continue,
                };
            }
        }
        drop(line);
        text
    }
}

/// What the kernel counts.
struct Field {
    key: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: fn(&TcpInfo) -> Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Integer(u64),
    Millis(f64),
}

macro_rules! fields {
    ($($key:literal, $unit:ident, $kind:ident, $from:ident, $meaning:literal;)*) => {
        /// In the order of the line.
        const FIELDS: &[Field] = &[
            $(Field {
                key: $key,
                unit: Unit::$unit,
                meaning: $meaning,
                value: |info| info.$from.map(Value::$kind),
            },)*
        ];
    };
}

impl Value {
    #[expect(non_snake_case, reason = "it stands where `Value::Integer` does")]
    fn Time(span: std::time::Duration) -> Self {
        Self::Millis(span.as_secs_f64() * 1e3)
    }
}

fields! {
    "tcp.rtt.minimum", Milliseconds, Time, rtt_min, "The least round-trip time.";
    "tcp.rtt.smoothed", Milliseconds, Time, rtt, "The smoothed round-trip time.";
    "tcp.rtt.variance", Milliseconds, Time, rtt_variance, "The mean deviation of the round-trip time.";
    "tcp.cwnd", Segments, Integer, window, "The congestion window.";
    "tcp.ssthresh", Segments, Integer, slow_start_threshold, "The slow start threshold; absent while there is none.";
    "tcp.mss", Bytes, Integer, segment_len, "The size of a segment that is sent.";
    "tcp.segments.sent", Segments, Integer, segments_sent, "Sent, and sent again.";
    "tcp.segments.received", Segments, Integer, segments_received, "Received.";
    "tcp.segments.retransmitted", Segments, Integer, segments_retransmitted, "Sent again.";
    "tcp.segments.delivered-ce", Segments, Integer, delivered_ce, "Reported by the peer with a CE mark.";
    "tcp.bytes.sent", Bytes, Integer, bytes_sent, "Sent, and sent again; with TLS around them.";
    "tcp.bytes.retransmitted", Bytes, Integer, bytes_retransmitted, "Sent again.";
    "tcp.bytes.acked", Bytes, Integer, bytes_acked, "Acknowledged by the peer.";
    "tcp.bytes.received", Bytes, Integer, bytes_received, "Received.";
    "tcp.delivery-rate", BytesPerSecond, Integer, delivery_rate, "The latest delivery rate that the kernel saw.";
    "tcp.reorderings", Count, Integer, reorderings, "How often segments were seen to overtake each other.";
    "tcp.busy", Milliseconds, Time, busy, "How long there was something to send.";
    "tcp.limited.receiver", Milliseconds, Time, limited_by_receiver, "Of that, how long the peer's window held it back.";
    "tcp.limited.send-buffer", Milliseconds, Time, limited_by_send_buffer, "Of that, how long the server's send buffer did.";
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

/// A JSON schema (draft 2020-12) of a line.
#[must_use]
pub fn json_schema() -> String {
    let mut text = String::from(
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
"module":{"const":"lastbyte"},
"type":{"const":"connection"},
"time":{"type":"integer","minimum":0},
"conn_id":{"type":"integer","minimum":0},
"method":{"type":"string"},
"content_length":{"type":"integer","minimum":0},
"ttlb":{"type":["integer","null"],"minimum":0},
"complete":{"type":["boolean","null"]},
"transport":{"const":"tcp"},
"proto":{"enum":["HTTP/1.1","HTTP/2"]},
"tls":{"enum":["1.2","1.3"]},
"handshake":{"enum":["full","resumed"]},
"handshake-time":{"type":"number","minimum":0},
"duration":{"type":"number","minimum":0},
"requests":{"type":"integer","minimum":0},
"body-bytes":{"type":"integer","minimum":0},
"tcp.congestion":{"type":"string"}"#,
    );
    for field in FIELDS {
        let kind = match field.unit {
            Unit::Milliseconds => "number",
            _ => "integer",
        };
        let (key, meaning) = (field.key, field.meaning);
        let _ = write!(
            text,
            ",\n\"{key}\":{{\"type\":\"{kind}\",\"minimum\":0,\"description\":\"{meaning}\"}}"
        );
    }
    text.push_str(
        r#"},
"required":["module","type","time","conn_id","method","content_length","ttlb","complete","transport","proto","tls","handshake","handshake-time","duration","requests","body-bytes"],
"additionalProperties":false}
"#,
    );
    text
}
