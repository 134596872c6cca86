//! Files of other implementations, and files with defects: right, or refused with a reason.

use std::{fmt::Write as _, io::Write as _};

use flate2::{Compression, write::GzEncoder};

use super::{HEADER, Reading, check, events, object, ok, read, read_once};
use crate::transfer::{Arm, Point};

/// A sequence of these events, without the first that has a place in the file.
fn sequence(header: &str, events: &[(f64, &str, String)]) -> String {
    let mut text = format!("\u{1e}{header}\n");
    for (time, name, data) in events {
        let _ = writeln!(text, "\u{1e}{}", object(*time, name, data));
    }
    text
}

fn only(reading: &Reading) -> &Arm {
    let [arm] = &reading.arms[..] else {
        panic!("one arm: {reading:?}");
    };
    arm
}

/// Twelve packets, of which two are lost, and a round trip of 50 ms, closed at 200 ms.
fn check_case(reading: &Reading) {
    let arm = only(reading);
    assert_eq!(
        arm.note,
        "server, 16.2 kB sent, 2 of 12 packets lost (16.7 %)"
    );
    assert_eq!(arm.lost.len(), 2);
    assert_eq!(arm.window.last().map(|point| point.value), Some(27_000.0));
    assert_eq!(reading.rtt_min, Some(50.0));
    assert_eq!(arm.events.last(), Some(&(200.0, "closed".to_owned())));
}

/// mvfst has `packets_lost` with a count, `congestion_metric_update` with `current_cwnd`, and times as texts.
#[test]
fn losses_and_the_window_of_mvfst() {
    let reading = read(include_bytes!("files/mvfst.qlog"), "x").expect("a picture");
    let arm = only(&reading);
    assert!(
        arm.note.ends_with("2 of 12 packets lost (16.7 %)"),
        "{}",
        arm.note
    );
    assert_eq!(arm.lost.len(), 2);
    assert_eq!(arm.window.last().map(|point| point.value), Some(27_000.0));
}

/// Key order is free in JSON: units, formats and columns behind the events count as well.
#[test]
fn a_header_behind_the_events_counts() {
    let text = include_str!("files/doc_fields_after_us.qlog");
    check_case(&read(text, "x").expect("a picture"));
    // Differences of times.
    let mut before = 0.0;
    let all: Vec<String> = events()
        .iter()
        .map(|(time, name, data)| {
            let delta = time - before;
            before = *time;
            object(delta, name, data)
        })
        .collect();
    check(&ok(&format!(
        r#"{{"traces":[{{"events":[{}],"common_fields":{{"time_format":"delta"}},"vantage_point":{{"type":"server"}}}}],"qlog_version":"0.3"}}"#,
        all.join(",")
    )));
    // What can be read once only is refused.
    let error = read_once(text.as_bytes()).expect_err("a pipe").to_string();
    assert!(
        error.starts_with(
            "the header of a trace is behind its events, and the file cannot be read a second time (expected a regular file: save it first)"
        ),
        "{error}"
    );
}

/// A clock may start at a boot, or be behind the first time.
#[test]
fn the_first_event_is_the_origin_of_any_clock() {
    check_case(&read(include_bytes!("files/abs_boot.sqlog"), "x").expect("a picture"));
    for (format, shift) in [
        ("absolute", 7e8),
        ("relative", -500.0),
        ("relative_to_epoch", 9e11),
    ] {
        let header = HEADER.replace("relative", format);
        let events: Vec<_> = events()
            .into_iter()
            .map(|(time, name, data)| (time + shift, name, data))
            .collect();
        check(&ok(&sequence(&header, &events)));
    }
}

#[test]
fn units_and_formats_of_time_that_are_not_known_are_refused() {
    for (header, wanted) in [
        (
            HEADER.replace("relative", "since_lunch"),
            "time_format: `since_lunch` (expected `absolute`, `relative`",
        ),
        (
            HEADER.replace("\"time_format\":\"relative\"", "\"time_units\":\"ns\""),
            "time_units: `ns` (expected `ms` or `us`)",
        ),
    ] {
        let error = read(sequence(&header, &events()), "x").expect_err(&header);
        assert!(error.to_string().starts_with(wanted), "{error}");
    }
}

/// Small steps back are those of threads; large ones, of a clock.
#[test]
fn times_that_go_back_are_reported_or_refused() {
    let mut late = events();
    late[3].0 = 1.5;
    let reading = ok(&sequence(HEADER, &late));
    assert_eq!(only(&reading).sent[2], Point::new(2.0, 3000.0));
    assert_eq!(
        reading.notes,
        ["out of order, and drawn at the time of the event before: 1 event, by up to 0.5 ms"]
    );
    late[3].0 = -5000.0;
    let error = read(sequence(HEADER, &late), "x")
        .expect_err("refused")
        .to_string();
    assert!(error.starts_with("times go back by 5"), "{error}");
    // Events without a time are not read.
    let text = sequence(HEADER, &events());
    let text = text.replacen("\"time\":2,", "\"moment\":2,", 1);
    let reading = ok(&text);
    assert_eq!(only(&reading).sent.len(), 2);
    assert!(
        reading.notes[0].starts_with("not read, since they have no time: 1 event"),
        "{:?}",
        reading.notes
    );
}

/// An event about losses that is not understood, and losses that are in no event.
#[test]
fn losses_that_are_not_understood_are_unknown() {
    let mut all = events();
    all[5] = (41.0, "recovery:bulk_loss", r#"{"count":1}"#.to_owned());
    let reading = ok(&sequence(HEADER, &all));
    let arm = only(&reading);
    assert_eq!(arm.note, "server, 3 kB sent, 3 packets, losses unknown");
    assert!(arm.lost.is_empty());
    assert_eq!(
        reading.notes,
        ["losses are unknown: `recovery:bulk_loss` is not understood"]
    );

    // Each loss twice: a number of packets that are lost cannot be told.
    let mut all = events();
    all.insert(5, all[5].clone());
    assert_eq!(
        ok(&sequence(HEADER, &all)).notes,
        ["losses are unknown: the same packets are lost twice"]
    );

    // The packets of two connections.
    let mut all = events();
    all.extend(
        events()
            .into_iter()
            .skip(1)
            .map(|(time, name, data)| (time + 100.0, name, data)),
    );
    let refused = read(sequence(HEADER, &all), "x").expect_err("two connections");
    assert!(
        refused
            .to_string()
            .contains("packet numbers are sent twice: those of 3 of 6 packets"),
        "{refused}"
    );

    // Neither timers of loss detection, losses that were none, nor keys are losses.
    let mut all = events();
    all.push((91.0, "recovery:spurious_loss", "{}".to_owned()));
    all.push((91.0, "security:key_lost", "{}".to_owned()));
    all.push((91.0, "recovery:loss_timer_updated", "{}".to_owned()));
    check(&ok(&sequence(HEADER, &all)));

    // Packet 0 is never acknowledged although five later ones are, and no event is a loss.
    let mut text = format!("{HEADER}\n");
    for number in 0..6 {
        let packet = format!(
            r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":1200}}}}"#
        );
        let _ = writeln!(
            text,
            "{}",
            object(f64::from(number), "transport:packet_sent", &packet)
        );
    }
    let ack = |first: u32| {
        let ack = format!(
            r#"{{"header":{{"packet_type":"1RTT","packet_number":1}},"frames":[{{"frame_type":"ack","acked_ranges":[[{first},5]]}}]}}"#
        );
        object(50.0, "transport:packet_received", &ack)
    };
    let reading = ok(&format!("{text}{}", ack(1)));
    assert_eq!(
        only(&reading).note,
        "server, 7.2 kB sent, 6 packets, losses unknown"
    );
    let reading = ok(&format!("{text}{}", ack(0)));
    assert_eq!(
        only(&reading).note,
        "server, 7.2 kB sent, 0 of 6 packets lost (0.0 %)"
    );
    // Neither acknowledgments nor losses.
    assert_eq!(
        only(&ok(&text)).note,
        "server, 7.2 kB sent, 6 packets, losses unknown"
    );
}

/// Packets without a size count, with the bytes of their frames.
#[test]
fn packets_without_a_size_count() {
    let without: Vec<_> = events()
        .into_iter()
        .map(|(time, name, data)| {
            let data = data
                .replace(r#""raw":{"length":1000},"#, "")
                .replace(r#""x":"}]\"{"#, r#""length":960,"x":"}]\"{"#);
            (time, name, data)
        })
        .collect();
    let reading = ok(&sequence(HEADER, &without));
    let arm = only(&reading);
    assert_eq!(arm.sent.last(), Some(&Point::new(3.0, 2880.0)));
    assert_eq!(
        arm.note,
        "server, 2.88 kB sent, 1 of 3 packets lost (33.3 %)"
    );
    assert!(
        reading.notes[0].starts_with("3 packets without a size"),
        "{:?}",
        reading.notes
    );
    // Neither sizes nor frames: no bytes, but the rest.
    let sizeless: Vec<_> = events()
        .into_iter()
        .map(|(time, name, data)| (time, name, data.replace(r#""raw":{"length":1000},"#, "")))
        .collect();
    let reading = ok(&sequence(HEADER, &sizeless));
    let arm = only(&reading);
    assert_eq!(
        arm.note,
        "server, 3 packets sent, 1 of 3 packets lost (33.3 %)"
    );
    assert!(arm.sent.is_empty() && arm.acked.is_empty() && arm.lost.is_empty());
    assert!(!arm.rtt.is_empty() && arm.summary.is_empty());
    assert!(
        reading.notes[0].starts_with("3 packets without a size, so bytes are not drawn"),
        "{:?}",
        reading.notes
    );
    // Nor anything else.
    let text = sequence(
        HEADER,
        &[(
            1.0,
            "transport:packet_sent",
            r#"{"header":{"packet_type":"1RTT","packet_number":0}}"#.to_owned(),
        )],
    );
    let error = read(text, "x").expect_err("nothing to draw").to_string();
    assert_eq!(error, "1 packet without a size, and no other value to draw");
}

/// Draft 00 writes names in capitals, with a trigger between name and data, and packet types beside the header.
#[test]
fn names_in_capitals_of_draft_00() {
    let all: Vec<String> = events()
        .iter()
        .map(|(time, name, data)| {
            let (category, kind) = name.split_once(':').expect("a namespace");
            let (category, kind) = (category.to_uppercase(), kind.to_uppercase());
            let kind = kind.replace("METRICS_UPDATED", "METRIC_UPDATE");
            let data = data
                .replace(r#""raw":{"length":1000}"#, r#""x":0"#)
                .replace(
                    r#"{"packet_type":"1RTT","packet_number""#,
                    r#"{"packet_size":"1000","packet_number""#,
                )
                .replace(r#""frame_type":"ack""#, r#""frame_type":"ACK""#)
                .replace("recovery", "RECOVERY")
                .replace("congestion_window", "cwnd");
            format!(r#"["{time}","{category}","{kind}","DEFAULT",{data}]"#)
        })
        .collect();
    check(&ok(&format!(
        r#"{{"qlog_version":"draft-00","traces":[{{"vantage_point":{{"type":"SERVER"}},"event_fields":["relative_time","CATEGORY","EVENT_TYPE","TRIGGER","DATA"],"events":[{}]}}]}}"#,
        all.join(",")
    )));
}

/// The view of the network is that of the endpoint whose packets count as sent.
#[test]
fn the_view_of_the_network_is_named() {
    for (point, wanted) in [
        (
            r#"{"type":"network","flow":"client"}"#,
            "client, seen from the network, 3 kB sent",
        ),
        (r#"{"type":"network"}"#, "seen from the network, 3 kB sent"),
        (r#"{"type":"unknown"}"#, "3 kB sent"),
    ] {
        let header = HEADER.replace(r#"{"type":"server"}"#, point);
        let reading = ok(&sequence(&header, &events()));
        let note = &only(&reading).note;
        assert!(note.starts_with(wanted), "{note}");
    }
}

/// RFC 7464 §2.3: a parser goes on at the next record separator.
#[test]
fn rfc7464_2_3_a_damaged_record_is_skipped() {
    let reading = read(include_bytes!("files/truncated_mid.sqlog"), "x").expect("a picture");
    let arm = only(&reading);
    assert_eq!(
        arm.note,
        "server, 14.8 kB sent, 2 of 11 packets lost (18.2 %)"
    );
    assert_eq!(
        reading.trouble.as_deref(),
        Some("record 8 is damaged and was skipped: a string without an end")
    );
    // Brackets that do not match, bytes behind the value, and a value that is cut off outside of a string.
    for damage in [
        "{\"time\":1,[}",
        "{\"time\":1}}",
        "{\"time\":1,",
        "nul",
        "{\"time\":01}",
    ] {
        let text = sequence(HEADER, &events());
        let (start, rest) = text.split_at(text.rfind('\u{1e}').expect("a record"));
        let reading = ok(&format!("{start}\u{1e}{damage}{rest}"));
        let trouble = reading.trouble.clone().expect("a reason");
        assert!(
            trouble.starts_with("record 10 is damaged"),
            "{damage}: {trouble}"
        );
        check(&Reading {
            trouble: None,
            ..reading
        });
    }
}

/// picoquic 1.1.52 writes an event of parameters without a comma and closing braces; each event is a line of its array.
#[test]
fn a_damaged_line_is_skipped() {
    let mut all: Vec<String> = events()
        .iter()
        .map(|(time, name, data)| {
            let (category, kind) = name.split_once(':').expect("a namespace");
            format!(r#"[{time}, "{category}", "{kind}", {data}]"#)
        })
        .collect();
    let whole = |all: &[String]| {
        format!(
            r#"{{"qlog_version":"draft-00","traces":[{{"vantage_point":{{"type":"server"}},"event_fields":["relative_time","category","event","data"],"events":[{}]}}]}}"#,
            all.join(",\n")
        )
    };
    for damage in [
        r#"[2.5, "transport", "parameters_set", {"owner": "remote" "version_information": { "chosen": "1"]"#,
        r#"[2.5, "transport", "parameters_set", {"owner": "remo"#,
        r#"[2.5, "transport","#,
    ] {
        all.insert(3, damage.to_owned());
        let reading = ok(&whole(&all));
        all.remove(3);
        let trouble = reading.trouble.clone().expect("a reason");
        assert!(
            trouble.starts_with("line 4 is damaged and was skipped"),
            "{damage}: {trouble}"
        );
        check(&Reading {
            trouble: None,
            ..reading
        });
    }
    // JSON lines.
    let mut text = format!("{HEADER}\n");
    for (index, (time, name, data)) in events().iter().enumerate() {
        if index == 2 {
            text.push_str("{\"time\":1.5,\"name\":\n");
        }
        let _ = writeln!(text, "{}", object(*time, name, data));
    }
    let reading = ok(&text);
    let trouble = reading.trouble.clone().expect("a reason");
    assert!(trouble.starts_with("line 4 is damaged"), "{trouble}");
    check(&Reading {
        trouble: None,
        ..reading
    });
}

#[test]
fn compressed_files_and_byte_order_marks() {
    let text = sequence(HEADER, &events());
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes()).expect("memory");
    let gzip = gzip.finish().expect("memory");
    check(&read(&gzip, "x").expect("a picture"));
    check(&ok(&format!("\u{feff}{text}")));
    // A frame of raw blocks (RFC 8878 §3.1.1).
    let mut zstd = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    zstd.extend((text.len() as u32).to_le_bytes());
    let header = (text.len() as u32) << 3 | 1;
    zstd.extend(&header.to_le_bytes()[..3]);
    zstd.extend(text.as_bytes());
    check(&read(&zstd, "x").expect("a picture"));
    // A file that is cut off.
    let reading = read(&gzip[..gzip.len() - 9], "x");
    assert!(reading.is_err() || reading.is_ok_and(|reading| reading.trouble.is_some()));
}

/// Connections of one trace by group, and files in a row.
#[test]
fn connections_are_not_mixed() {
    let mut text = format!("\u{1e}{HEADER}\n");
    for (time, name, data) in events() {
        for group in ["a", "b"] {
            let event = object(time, name, &data);
            let event = event.replacen('{', &format!("{{\"group_id\":\"{group}\","), 1);
            let _ = writeln!(text, "\u{1e}{event}");
        }
    }
    for text in [text, sequence(HEADER, &events()).repeat(2)] {
        let mut reading = ok(&text);
        assert_eq!(reading.arms.len(), 2);
        for _ in 0..2 {
            let arm = reading.arms.remove(0);
            check(&Reading {
                arms: vec![arm],
                notes: Vec::new(),
                trouble: None,
                senders: Vec::new(),
                ends: Vec::new(),
                title: String::new(),
                ..reading
            });
        }
    }
    // Connections beyond the maximum are reported.
    let reading = ok(&sequence(HEADER, &events()).repeat(10));
    assert_eq!(reading.arms.len(), 8);
    assert_eq!(
        reading.notes,
        ["not read, since there are more than 8 connections: 18 events"]
    );
}

/// A round trip longer than the connection is not in the unit of the file.
#[test]
fn round_trips_longer_than_the_connection_are_not_drawn() {
    let mut all = events();
    all[6].2 = all[6]
        .2
        .replace("\"latest_rtt\":40", "\"latest_rtt\":40000");
    let reading = ok(&sequence(HEADER, &all));
    assert!(only(&reading).rtt.is_empty());
    assert_eq!(
        reading.notes,
        ["not drawn, since they are longer than the connection was old: 1 round-trip time"]
    );
}

/// The file of a refused attempt has one packet.
#[test]
fn a_connection_that_was_not_established_is_refused() {
    let packet = r#"{"header":{"packet_type":"initial","packet_number":0},"raw":{"length":1200},"frames":[]}"#;
    let text = sequence(HEADER, &[(0.0, "transport:packet_sent", packet.to_owned())]);
    let error = read(text, "x").expect_err("nothing to draw").to_string();
    assert_eq!(
        error,
        "the connection was not established: 1 packet of the handshake sent, none received"
    );
    let error = read(
        r#"{"qlog_version":"0.1","fields":[],"events":[[0,"A","B","C",{}]]}"#,
        "x",
    );
    let error = error.expect_err("too old").to_string();
    assert!(
        error.contains("those of qlog 0.1 (expected draft-00 or later)"),
        "{error}"
    );
}
