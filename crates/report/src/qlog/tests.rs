//! Files of several stacks and versions, and files that are broken.

use std::fmt::Write as _;

use super::{QlogError, Reading};
use crate::transfer::{Point, bounded::Bounded};

mod flow;
mod foreign;
mod pair;

fn ok(text: &str) -> Reading {
    read(text.as_bytes(), "x").expect("a picture")
}

/// A file of these bytes.
fn read(bytes: impl AsRef<[u8]>, label: &str) -> Result<Reading, QlogError> {
    let bytes = bytes.as_ref().to_vec();
    let open = || Ok(Box::new(std::io::Cursor::new(bytes.clone())) as lastbyte_query::ByteSource);
    super::read(open, label)
}

/// A file that can be read once.
fn read_once(input: impl std::io::Read + Send + 'static) -> Result<Reading, QlogError> {
    let mut input = Some(input);
    let open = || {
        let once = input
            .take()
            .map(|input| Box::new(input) as lastbyte_query::ByteSource);
        once.ok_or_else(|| std::io::Error::other("not a regular file"))
    };
    super::read(open, "x")
}

/// A first event at 0, and three packets of 1000 bytes at 1, 2 and 3 ms; the first and third are acknowledged at 40 ms, the second
/// lost at 41 ms.
fn events() -> Vec<(f64, &'static str, String)> {
    let mut events = vec![(0.0, "transport:version_information", "{}".to_owned())];
    for number in 0..3 {
        events.push((
            f64::from(number + 1),
            "transport:packet_sent",
            format!(r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":1000}},"frames":[{{"frame_type":"stream","x":"}}]\"{{"}}]}}"#),
        ));
    }
    events.push((
        40.0,
        "transport:packet_received",
        r#"{"header":{"packet_type":"1RTT","packet_number":7},"raw":{"length":40},"frames":[{"frame_type":"ack","ack_delay":1,"acked_ranges":[[2,2],[0]]}]}"#.to_owned(),
    ));
    events.push((
        41.0,
        "recovery:packet_lost",
        r#"{"header":{"packet_type":"1RTT","packet_number":1},"trigger":"time_threshold"}"#
            .to_owned(),
    ));
    events.push((
        41.0,
        "recovery:metrics_updated",
        r#"{"min_rtt":39,"smoothed_rtt":39.5,"latest_rtt":40,"congestion_window":12000,"bytes_in_flight":0}"#.to_owned(),
    ));
    events.push((
        41.0,
        "recovery:congestion_state_updated",
        r#"{"old":"slow_start","new":"recovery"}"#.to_owned(),
    ));
    events.push((
        90.0,
        "recovery:congestion_state_updated",
        r#"{"new":"congestion_avoidance"}"#.to_owned(),
    ));
    events
}

fn check(reading: &Reading) {
    let [arm] = &reading.arms[..] else {
        panic!("one arm: {reading:?}");
    };
    let at = Point::new;
    assert_eq!(
        arm.sent,
        [at(1.0, 1000.0), at(2.0, 2000.0), at(3.0, 3000.0)]
    );
    assert_eq!(arm.acked, [at(40.0, 3000.0)]);
    assert_eq!(arm.lost, [at(41.0, 2000.0)]);
    assert_eq!(arm.window, [at(41.0, 12_000.0)]);
    assert_eq!(arm.rtt, [at(41.0, 40.0)]);
    assert_eq!(arm.recovery, [(41.0, 90.0)]);
    assert_eq!(arm.events, [(41.0, "startup ends".to_owned())]);
    assert_eq!(arm.note, "server, 3 kB sent, 1 of 3 packets lost (33.3 %)");
    assert_eq!(reading.rtt_min, Some(39.0));
    assert!(reading.trouble.is_none());
}

fn object(time: f64, name: &str, data: &str) -> String {
    format!(r#"{{"time":{time},"name":"{name}","data":{data}}}"#)
}

const HEADER: &str = r#"{"qlog_version":"0.3","qlog_format":"JSON-SEQ","trace":{"vantage_point":{"type":"server"},"common_fields":{"time_format":"relative"}}}"#;

#[test]
fn a_text_sequence_and_lines() {
    for separator in ["\u{1e}", ""] {
        let mut text = format!("{separator}{HEADER}\n");
        for (time, name, data) in events() {
            let _ = writeln!(text, "{separator}{}", object(time, name, &data));
        }
        check(&ok(&text));
    }
}

/// draft-ietf-quic-qlog-quic-events-13, with differences of times, and with dates.
#[test]
fn names_and_times_of_the_drafts() {
    for (format, offset) in [
        ("relative_to_previous_event", None),
        ("delta", None),
        ("absolute", Some(1.7e12)),
    ] {
        let mut text = format!(
            "\u{1e}{{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\"trace\":{{\"vantage_point\":{{\"type\":\"server\"}},\"common_fields\":{{\"time_format\":\"{format}\"}}}}}}\n"
        );
        let mut before = 0.0;
        for (time, name, data) in events() {
            let name = name
                .replace("transport:", "quic:")
                .replace("recovery:", "quic:");
            let name = name.replace("metrics", "recovery_metrics");
            let shown = offset.map_or(time - before, |offset| offset + time);
            let _ = writeln!(text, "\u{1e}{}", object(shown, &name, &data));
            before = time;
        }
        check(&ok(&text));
    }
}

#[test]
fn a_document_with_traces() {
    let all: Vec<String> = events()
        .iter()
        .map(|(time, name, data)| object(*time, name, data))
        .collect();
    let trace = format!(
        r#"{{"title":"t","vantage_point":{{"name":"s","type":"server"}},"common_fields":{{"protocol_type":["QUIC"]}},"events":[{}]}}"#,
        all.join(",\n")
    );
    let empty = r#"{"vantage_point":{"type":"client"},"events":[]}"#;
    check(&ok(&format!(
        r#"{{"qlog_version":"0.3","qlog_format":"JSON","traces":[{empty},{trace},{{"error_description":"x"}}]}}"#
    )));
    // The version may come last.
    check(&ok(&format!(
        r#"{{"traces":[{trace}],"qlog_version":"0.3"}}"#
    )));
    let two = ok(&format!(
        r#"{{"qlog_version":"0.3","traces":[{trace},{trace}]}}"#
    ));
    let labels: Vec<&str> = two.arms.iter().map(|arm| arm.label.as_str()).collect();
    assert_eq!(labels, ["x 1", "x 2"]);
}

/// draft-marx-qlog-event-definitions-quic-h3-01: events are arrays, times are in microseconds, and numbers may be texts.
#[test]
fn arrays_in_microseconds() {
    let all: Vec<String> = events()
        .iter()
        .map(|(time, name, data)| {
            let (category, kind) = name.split_once(':').expect("a namespace");
            let data = data
                .replace(r#""raw":{"length":1000}"#, r#""packet_size":1000"#)
                .replace("[[2,2],[0]]", r#"[["2","2"],["0","0"]]"#)
                .replace(
                    r#""min_rtt":39,"smoothed_rtt":39.5,"latest_rtt":40"#,
                    r#""min_rtt":39000,"smoothed_rtt":39500,"latest_rtt":40000"#,
                )
                .replace("congestion_window", "cwnd");
            format!(r#"["{}","{category}","{kind}",{data}]"#, time * 1000.0)
        })
        .collect();
    check(&ok(&format!(
        r#"{{"qlog_version":"draft-01","traces":[{{"vantage_point":{{"type":"server"}},"configuration":{{"time_units":"us"}},"event_fields":["relative_time","CATEGORY","EVENT_TYPE","DATA"],"events":[{}]}}]}}"#,
        all.join(",")
    )));
}

/// ngtcp2 writes the initial round-trip time before the first sample, and whole milliseconds.
#[test]
fn the_initial_round_trip_time_is_not_drawn() {
    let metrics = "recovery:metrics_updated";
    let mut text = format!("{HEADER}\n");
    for (time, name, data) in [
        (
            0.0,
            metrics,
            r#"{"smoothed_rtt":333,"latest_rtt":0,"rtt_variance":166}"#,
        ),
        (
            1.0,
            "transport:packet_sent",
            r#"{"header":{"packet_type":"1RTT","packet_number":0},"raw":{"length":1200}}"#,
        ),
        (
            2.0,
            metrics,
            r#"{"min_rtt":2,"smoothed_rtt":2,"latest_rtt":2}"#,
        ),
        (
            3.0,
            metrics,
            r#"{"min_rtt":0,"smoothed_rtt":0,"latest_rtt":0}"#,
        ),
    ] {
        let _ = writeln!(text, "{}", object(time, name, data));
    }
    let reading = ok(&text);
    let at = Point::new;
    assert_eq!(reading.arms[0].rtt_smoothed, [at(2.0, 2.0), at(3.0, 0.0)]);
}

/// Idle times, the first losses, conservative slow start and the second recovery have names. A file does not show whether a queue was full.
#[test]
fn notable_events_are_named() {
    let mut text = format!("{HEADER}\n");
    let mut add = |time: f64, name: &str, data: &str| {
        let _ = writeln!(text, "{}", object(time, name, data));
    };
    let state = |name: &str| format!(r#"{{"new":"{name}"}}"#);
    let packet = |number: usize| {
        format!(
            r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":1200}}}}"#
        )
    };
    add(
        0.0,
        "recovery:metrics_updated",
        r#"{"min_rtt":30,"smoothed_rtt":30}"#,
    );
    for number in 0..20 {
        let pause = if number >= 15 { 25.0 } else { 0.0 };
        add(
            number as f64 + pause,
            "transport:packet_sent",
            &packet(number),
        );
    }
    add(
        50.0,
        "recovery:congestion_state_updated",
        &state("conservative_slow_start"),
    );
    for number in 3..7 {
        add(
            60.0 + number as f64,
            "recovery:packet_lost",
            &packet(number),
        );
    }
    add(
        67.0,
        "recovery:congestion_state_updated",
        &state("recovery"),
    );
    add(
        99.0,
        "recovery:congestion_state_updated",
        &state("congestion_avoidance"),
    );
    add(120.0, "recovery:packet_lost", &packet(9));
    add(
        120.0,
        "recovery:congestion_state_updated",
        &state("recovery"),
    );
    let arm = &ok(&text).arms[0];
    let named = |name: &str, ms: f64| (ms, name.to_owned());
    assert_eq!(
        arm.events,
        [
            named("CSS starts", 50.0),
            named("startup ends", 67.0),
            named("4 packets lost at", 63.0),
            named("second recovery", 120.0),
            named("idle for 26 ms from", 14.0),
        ]
    );
}

/// A client's file shows what it received.
#[test]
fn a_receiver_shows_what_it_received() {
    let mut text = HEADER.replace("server", "client") + "\n";
    for number in 0..5 {
        let packet = format!(
            r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":1200}}}}"#
        );
        text += &object(f64::from(number), "transport:packet_received", &packet);
        text.push('\n');
    }
    let arm = &ok(&text).arms[0];
    assert_eq!(arm.arrived.len(), 5);
    assert_eq!(arm.arrived[4], Point::new(4.0, 6000.0));
    assert_eq!(arm.note, "client, 6 kB received");
}

#[test]
fn input_other_than_qlog_is_an_error() {
    for (text, wanted) in [
        ("", "not a qlog file: it is empty"),
        ("hello", "unexpected `h`"),
        ("\u{89}PNG", "unexpected byte 0xc2"),
        (r#"{"arm":"a","ttlb":3}"#, "no version"),
        ("[1,2]", "unexpected `[`"),
        (r#"{"a" 1}"#, "unexpected `1` (expected `:`)"),
        (
            "{\"qlog_version\":\"0.3\"}\n{\"time\":1,\"name\":\"x:y\",\"data\":{}}",
            "none of the 1 events is a packet",
        ),
        (
            "{\"qlog_version\":\"0.3\",\"traces\":[]}",
            "none of the 0 events",
        ),
        ("{\"qlog_version\":\"0.3\"", "it ends in the middle"),
    ] {
        let error = read(text.as_bytes(), "x").expect_err(text).to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
    assert!(matches!(read(&b"x"[..], "x"), Err(QlogError::Foreign(_))));
}

/// A file that breaks off anywhere is drawn as far as it goes, or refused, and never panics.
#[test]
fn a_file_may_break_off_anywhere() {
    let mut sequence = format!("\u{1e}{HEADER}\n");
    let mut all = Vec::new();
    for (time, name, data) in events() {
        all.push(object(time, name, &data));
        let _ = writeln!(sequence, "\u{1e}{}", object(time, name, &data));
    }
    let document = format!(
        r#"{{"qlog_version":"0.3","traces":[{{"events":[{}]}}]}}"#,
        all.join(",")
    );
    for whole in [&sequence, &document] {
        let mut partial = 0;
        for end in 0..whole.len() {
            match read(&whole.as_bytes()[..end], "x") {
                Ok(reading) if reading.trouble.is_some() => partial += 1,
                Ok(_) | Err(_) => {}
            }
        }
        assert!(partial > whole.len() / 3, "{partial}");
    }
    let reading = ok(&document[..document.len() - 30]);
    let trouble = reading.trouble.expect("a reason");
    assert!(
        trouble.starts_with("after 8 events: it ends in the middle"),
        "{trouble}"
    );
}

/// Reads in pieces of any length give the same.
#[test]
fn pieces_of_any_length_give_the_same() {
    struct Pieces(Vec<u8>, usize);
    impl std::io::Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.len().min(self.1).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }
    let mut text = format!("\u{1e}{HEADER}\n");
    for (time, name, data) in events() {
        let _ = writeln!(text, "\u{1e}{}", object(time, name, &data));
    }
    for length in 1..40 {
        check(&read_once(Pieces(text.clone().into_bytes(), length)).expect("a picture"));
    }
}

/// Hostile values cost no memory: ranges of 2^53 packets, numbers that jump, and values without end.
#[test]
fn hostile_values_are_bounded() {
    let mut text = format!("{HEADER}\n");
    let mut add = |name: &str, data: &str| {
        let _ = writeln!(text, "{}", object(1.0, name, data));
    };
    for number in [0_u64, 1 << 53, 5, 1 << 52, u64::MAX] {
        add(
            "transport:packet_sent",
            &format!(r#"{{"header":{{"packet_number":{number}}},"raw":{{"length":99}}}}"#),
        );
        add(
            "transport:packet_received",
            r#"{"header":{"packet_number":1},"frames":[{"frame_type":"ack","acked_ranges":[[0,9007199254740992],[9,1],[-1,"x"],[],7]}]}"#,
        );
    }
    let arm = &ok(&text).arms[0];
    assert_eq!(arm.sent.len(), 5);
    assert_eq!(arm.sent[4], Point::new(0.0, 495.0));
    // Without the size of a packet, the bytes are not known.
    let odd = object(
        1.0,
        "transport:packet_sent",
        r#"{"raw":{"length":1e300},"header":3}"#,
    );
    assert!(ok(&format!("{text}{odd}\n")).arms[0].sent.is_empty());
    let endless = std::io::Read::chain(
        &b"{\"qlog_version\":\"0.3\"}\n[\""[..],
        std::io::Read::take(std::io::repeat(b'x'), 40 << 20),
    );
    let error = read_once(endless).expect_err("no packets").to_string();
    assert!(error.contains("a value of more than 16 MiB"), "{error}");
}

#[test]
fn a_series_is_bounded_and_keeps_its_extremes() {
    let mut series = Bounded::default();
    for number in 0..3_000_000_u32 {
        let value = match number {
            1_234_567 => 1e9,
            2_345_678 => -1e9,
            _ => f64::from(number % 1000),
        };
        series.push(f64::from(number) * 0.01, value);
    }
    assert!(series.len() <= 40_000, "{}", series.len());
    let points = series.finish();
    assert!(points.is_sorted_by(|a, b| a.ms <= b.ms));
    assert_eq!(points.first(), Some(&Point::new(0.0, 0.0)));
    assert_eq!(points.last(), Some(&Point::new(29_999.99, 999.0)));
    for extreme in [Point::new(12_345.67, 1e9), Point::new(23_456.78, -1e9)] {
        assert!(points.contains(&extreme), "{extreme:?}");
    }
}
