//! The fields of an event under each of their names. Draft 00 writes names of events, packets and frames in capitals.

use std::sync::LazyLock;

use lastbyte_json::{Value, parse::Projection};

/// The parsed fields of an event.
pub(super) fn projection() -> &'static Projection {
    static FIELDS: LazyLock<Projection> = LazyLock::new(|| {
        let whole = |keys: &[&str]| -> Vec<(String, Projection)> {
            let keys = keys.iter();
            keys.map(|key| ((*key).to_owned(), Projection::Whole))
                .collect()
        };
        let mut data = whole(&[
            "packet_number",
            "packet_type",
            "packet_size",
            "type",
            "frames",
            "new",
            "congestion_window",
            "cwnd",
            "current_cwnd",
            "bytes_in_flight",
            "smoothed_rtt",
            "latest_rtt",
            "min_rtt",
            "rtt_variance",
            "pacing_rate",
            "ssthresh",
            "lost_packets",
            "largest_lost_packet_num",
            "timer_type",
            "trigger",
            "event_type",
            "owner",
            "initiator",
            "initial_max_data",
            "initial_max_stream_data_bidi_local",
            "initial_max_stream_data_bidi_remote",
            "initial_max_stream_data_uni",
        ]);
        data.push((
            "header".to_owned(),
            Projection::Fields(whole(&["packet_number", "packet_type", "packet_size"])),
        ));
        data.push((
            "raw".to_owned(),
            Projection::Fields(whole(&["length", "payload_length"])),
        ));
        let mut event = whole(&[
            "time",
            "relative_time",
            "delta_time",
            "time_format",
            "name",
            "category",
            "event",
            "type",
            "group_id",
            "qlog_version",
            "file_schema",
            "trace",
        ]);
        event.push(("data".to_owned(), Projection::Fields(data)));
        Projection::Fields(event)
    });
    &FIELDS
}

/// The size of a packet in bytes, and whether it is only that of its payload, because the file has no other.
pub(super) fn size(data: &Value) -> Option<(u64, bool)> {
    let header = data.get("header");
    let raw = data.get("raw");
    let whole_packet = raw
        .and_then(|raw| raw.get("length"))
        .or_else(|| header.and_then(|header| header.get("packet_size")))
        .or_else(|| data.get("packet_size"))
        .and_then(whole);
    let payload = || {
        raw.and_then(|raw| raw.get("payload_length"))
            .and_then(whole)
            .or_else(|| {
                let lengths = frames(data).iter().filter_map(length);
                lengths.reduce(u64::saturating_add)
            })
    };
    let (size, is_payload) = match whole_packet {
        Some(size) => (size, false),
        None => (payload()?, true),
    };
    // A QUIC packet is no larger (RFC 9000 §14).
    (size <= 65_535).then_some((size, is_payload))
}

/// The frames of a packet.
pub(super) fn frames(data: &Value) -> &[Value] {
    data.get("frames")
        .and_then(Value::as_array)
        .unwrap_or_default()
}

/// The type of a frame, in lower case.
pub(super) fn frame_type(frame: &Value) -> String {
    let kind = frame.get("frame_type").and_then(Value::as_str);
    kind.unwrap_or_default().to_ascii_lowercase()
}

/// The length of a frame's data.
pub(super) fn length(frame: &Value) -> Option<u64> {
    let raw = frame.get("raw");
    frame
        .get("length")
        .or_else(|| frame.get("len"))
        .or_else(|| raw.and_then(|raw| raw.get("payload_length")))
        .or_else(|| raw.and_then(|raw| raw.get("length")))
        .and_then(whole)
}

/// The first of these fields that is a whole number.
pub(super) fn first_of(value: &Value, keys: &[&str]) -> Option<u64> {
    keys.iter().find_map(|key| value.get(key)).and_then(whole)
}

/// Whether the packet is one of the application space, with or without a number.
pub(super) fn is_application(data: &Value) -> bool {
    let kind = data
        .get("header")
        .and_then(|header| header.get("packet_type"))
        .or_else(|| data.get("packet_type"))
        .or_else(|| data.get("type"));
    let kind = kind.and_then(Value::as_str).unwrap_or("1RTT");
    ["1rtt", "0rtt", "onertt", "zerortt"]
        .iter()
        .any(|known| kind.eq_ignore_ascii_case(known))
}

/// The number of a packet of the application space.
pub(super) fn application_number(data: &Value) -> Option<u64> {
    if !is_application(data) {
        return None;
    }
    data.get("header")
        .and_then(|header| header.get("packet_number"))
        .or_else(|| data.get("packet_number"))
        .and_then(whole)
}

/// A number; some versions write numbers as texts.
pub(super) fn number(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .or_else(|| value.as_str()?.trim().parse().ok())
        .filter(|value: &f64| value.is_finite())
}

pub(super) fn whole(value: &Value) -> Option<u64> {
    let value = number(value)?;
    (0.0..=2f64.powi(53))
        .contains(&value)
        .then_some(value as u64)
}
