//! The line of a connection over TCP.
//!
//! It starts with [`HEAD`], like that of a connection over QUIC. Statistics have keys of their own, as the kernel counts other
//! things.

use core::time::Duration;

use super::{
    Header,
    keys::{HEAD, fields},
    schema::{self, Decimals, Field, Key, Kind, Nullable, Unit, Value},
};
use crate::json::Object;

/// The values of a line.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// The start of the line.
    pub header: Header,
    /// Whether all of the first response was acknowledged, if that is known.
    pub is_complete: Option<bool>,
    /// The version of HTTP.
    pub proto: &'static str,
    /// The version of TLS.
    pub tls: &'static str,
    /// Whether the TLS handshake resumed an earlier session.
    pub is_resumed: bool,
    /// The number of requests.
    pub requests: u64,
    /// The bytes of all response bodies handed to the kernel.
    pub body_bytes: u64,
    /// The time from accepting the connection until the TLS handshake was complete, in milliseconds.
    pub handshake_ms: f64,
    /// The time from accepting the connection until its end, in milliseconds.
    pub duration_ms: f64,
    /// The site of the first request.
    pub site: Option<String>,
    /// The index of the thread.
    pub worker: u64,
    /// The hash of the server's configuration.
    pub config: Option<String>,
    /// The statistics of the kernel.
    pub kernel: KernelStatistics,
}

impl Line {
    /// The line, without a line break.
    pub fn write(&self) -> String {
        let mut text = String::new();
        let mut line = Object::new(&mut text);
        schema::write(&mut line, HEAD, &self.header);
        schema::write(&mut line, SUMMARY, self);
        schema::write(&mut line, ORIGIN, self);
        schema::write(&mut line, KERNEL, &self.kernel);
        drop(line);
        text
    }
}

fields! {
    /// The transfer, the session and their duration.
    SUMMARY of Line {
        COMPLETE "complete", Kind::NullableBoolean, None, "Whether all of the first response was acknowledged; `null` if the connection was closed while its end was in flight.", |of| Nullable(of.is_complete);
        TRANSPORT "transport", Kind::Constant("tcp"), None, "The transport: `tcp`. Lines of connections over QUIC do not have this key.", |_| "tcp";
        PROTO "proto", Kind::OneOf(&["HTTP/1.1", "HTTP/2"]), None, "The version of HTTP: `HTTP/1.1` (also for 1.0) or `HTTP/2`.", |of| of.proto;
        TLS "tls", Kind::OneOf(&["1.2", "1.3"]), None, "The version of TLS.", |of| of.tls;
        HANDSHAKE "handshake", Kind::OneOf(&["full", "resumed"]), None, "The kind of TLS handshake: `full` or `resumed`.", |of| if of.is_resumed { "resumed" } else { "full" };
        HANDSHAKE_TIME "handshake-time", Kind::Number, Milliseconds, "Time from accepting the connection until the TLS handshake was complete.", |of| Decimals(of.handshake_ms, 3);
        DURATION "duration", Kind::Number, Milliseconds, "Time from accepting the connection until its end.", |of| Decimals(of.duration_ms, 3);
        REQUESTS "requests", Kind::Integer, Count, "Requests.", |of| of.requests;
        BODY_BYTES "body-bytes", Kind::Integer, Bytes, "Bytes of all response bodies handed to the kernel.", |of| of.body_bytes;
    }
}

fields! {
    /// Where the connection was served. Keys with unknown values are left out.
    ORIGIN of Line {
        SITE "site", Kind::Text, None, "The site of the first request (`serve --site`); absent without it.", |of| of.site.as_deref();
        WORKER "worker", Kind::Integer, None, "The index of the thread of `lastbyte serve` that served the connection.", |of| of.worker;
        CONFIG "config", Kind::Text, None, "The hash of the configuration of `lastbyte serve` when the connection was accepted.", |of| of.config.as_deref();
    }
}

/// Declares the statistics of the kernel: the struct that holds them and the table of their fields.
macro_rules! kernel_statistics {
    ($($name:ident $key:literal, $field:ident: $type:ty as $kind:ident, $unit:ident, $meaning:literal;)*) => {
        /// The statistics of the kernel (`TCP_INFO`). Values that the kernel does not provide are `None`.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct KernelStatistics {
            /// The name of the congestion control algorithm.
            pub congestion: Option<String>,
            $(#[doc = $meaning] pub $field: Option<$type>,)*
        }

        fields! {
            /// The statistics of the kernel. Keys with unknown values are left out.
            KERNEL of KernelStatistics {
                TCP_CONGESTION "tcp.congestion", Kind::Text, None, "The kernel's congestion control algorithm.", |of| of.congestion.as_deref();
                $($name $key, Kind::$kind, $unit, $meaning, |of| of.$field;)*
            }
        }
    };
}

impl From<Duration> for Value<'_> {
    fn from(span: Duration) -> Self {
        Self::Number(span.as_secs_f64() * 1e3, 3)
    }
}

kernel_statistics! {
    TCP_RTT_MINIMUM "tcp.rtt.minimum", rtt_min: Duration as Number, Milliseconds, "The minimum round-trip time.";
    TCP_RTT_SMOOTHED "tcp.rtt.smoothed", rtt: Duration as Number, Milliseconds, "The smoothed round-trip time.";
    TCP_RTT_VARIANCE "tcp.rtt.variance", rtt_variance: Duration as Number, Milliseconds, "The mean deviation of the round-trip time.";
    TCP_CWND "tcp.cwnd", window: u64 as Integer, Segments, "The congestion window.";
    TCP_SSTHRESH "tcp.ssthresh", slow_start_threshold: u64 as Integer, Segments, "The slow start threshold; absent while it is infinite.";
    TCP_MSS "tcp.mss", segment_len: u64 as Integer, Bytes, "The maximum segment size for sending.";
    TCP_SEGMENTS_SENT "tcp.segments.sent", segments_sent: u64 as Integer, Segments, "Segments sent, including retransmissions.";
    TCP_SEGMENTS_RECEIVED "tcp.segments.received", segments_received: u64 as Integer, Segments, "Segments received.";
    TCP_SEGMENTS_RETRANSMITTED "tcp.segments.retransmitted", segments_retransmitted: u64 as Integer, Segments, "Segments retransmitted.";
    TCP_SEGMENTS_DELIVERED_CE "tcp.segments.delivered-ce", delivered_ce: u64 as Integer, Segments, "Segments that the peer reported with a CE mark.";
    TCP_BYTES_SENT "tcp.bytes.sent", bytes_sent: u64 as Integer, Bytes, "Bytes sent, including retransmissions and the overhead of TLS.";
    TCP_BYTES_RETRANSMITTED "tcp.bytes.retransmitted", bytes_retransmitted: u64 as Integer, Bytes, "Bytes retransmitted.";
    TCP_BYTES_ACKED "tcp.bytes.acked", bytes_acked: u64 as Integer, Bytes, "Bytes acknowledged by the peer.";
    TCP_BYTES_RECEIVED "tcp.bytes.received", bytes_received: u64 as Integer, Bytes, "Bytes received.";
    TCP_DELIVERY_RATE "tcp.delivery-rate", delivery_rate: u64 as Integer, BytesPerSecond, "The latest delivery rate that the kernel measured.";
    TCP_REORDERINGS "tcp.reorderings", reorderings: u64 as Integer, Count, "Reordering events that the kernel observed.";
    TCP_BUSY "tcp.busy", busy: Duration as Number, Milliseconds, "The time during which there was data to send.";
    TCP_LIMITED_RECEIVER "tcp.limited.receiver", limited_by_receiver: Duration as Number, Milliseconds, "The part of `tcp.busy` limited by the peer's receive window.";
    TCP_LIMITED_SEND_BUFFER "tcp.limited.send-buffer", limited_by_send_buffer: Duration as Number, Milliseconds, "The part of `tcp.busy` limited by the send buffer.";
}
