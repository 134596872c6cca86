//! Flow control, and where the time went.

use std::fmt::Write as _;

use super::{HEADER, object, ok};
use crate::transfer::{Arm, Picture, Point};

/// A file of a server whose client allows 5000 bytes, then 10 000 (connection), and more for the stream. Packets of 1000 bytes of
/// stream data are sent at once when they may be. Round trips are 40 ms.
fn file(header: &str, received: &str, sent: &str) -> String {
    let mut text = format!("\u{1e}{header}\n");
    let mut add = |time: f64, name: &str, data: &str| {
        let _ = writeln!(text, "\u{1e}{}", object(time, name, data));
    };
    let mut number = 0;
    let mut data = |frames: &str, bytes: u64| {
        number += 1;
        format!(
            r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":{bytes}}},"frames":[{frames}]}}"#
        )
    };
    let owner = if sent == "transport:packet_sent" {
        "remote"
    } else {
        "local"
    };
    add(
        0.0,
        "transport:parameters_set",
        &format!(
            r#"{{"owner":"{owner}","initial_max_data":5000,"initial_max_stream_data_bidi_local":8000}}"#
        ),
    );
    add(
        0.0,
        "recovery:metrics_updated",
        r#"{"congestion_window":100000}"#,
    );
    add(
        10.0,
        received,
        &data(
            r#"{"frame_type":"stream","stream_id":0,"offset":0,"length":30,"fin":true}"#,
            60,
        ),
    );
    let stream = |index: u64| {
        format!(
            r#"{{"frame_type":"stream","stream_id":0,"offset":{},"length":1000,"raw":{{"length":1000}}}}"#,
            index * 1000
        )
    };
    for index in 0..5 {
        add(10.0, sent, &data(&stream(index), 1050));
    }
    add(
        10.0,
        sent,
        &data(r#"{"frame_type":"data_blocked","limit":5000}"#, 50),
    );
    let acks = |to: u64| format!(r#"{{"frame_type":"ack","acked_ranges":[[0,{to}]]}}"#);
    let more = r#"{"frame_type":"max_data","maximum":10000}"#;
    add(50.0, received, &data(&format!("{},{more}", acks(7)), 50));
    for index in 5..10 {
        add(50.0, sent, &data(&stream(index), 1050));
    }
    add(90.0, received, &data(&acks(14), 50));
    text
}

fn arm(text: &str) -> Arm {
    ok(text).arms.remove(0)
}

/// The limit is where the bytes of packets reach it, and the sender is blocked until it is raised.
#[test]
fn rfc9000_4_1_limits_and_blocked_periods_of_a_sender() {
    let arm = arm(&file(
        HEADER,
        "transport:packet_received",
        "transport:packet_sent",
    ));
    assert_eq!(arm.blocked, [(10.0, 50.0)]);
    // Five packets of 1050 bytes carry 5000; the sixth has the report only.
    assert!(arm.connection_limit.contains(&Point::new(10.0, 5300.0)));
    assert!(arm.connection_limit.contains(&Point::new(50.0, 10_300.0)));
    let stream_end = arm.stream_limit.last().expect("the limit of the stream");
    assert!((stream_end.value - 8550.0).abs() < 1.0, "{stream_end:?}");
}

/// A client's file shows the limits that it gave.
#[test]
fn rfc9000_4_1_limits_and_blocked_periods_of_a_receiver() {
    let header = HEADER.replace("server", "client");
    let arm = arm(&file(
        &header,
        "transport:packet_sent",
        "transport:packet_received",
    ));
    assert_eq!(arm.blocked, [(10.0, 50.0)]);
    assert!(arm.connection_limit.contains(&Point::new(50.0, 10_300.0)));
    assert!(!arm.stream_limit.is_empty());
    assert!(arm.summary.is_empty());
}

/// A limit that is reached without a report has stopped the sender only if it sends more when the limit is raised.
#[test]
fn a_limit_that_is_reached_at_the_end_of_the_data_blocks_no_sender() {
    let whole = file(HEADER, "transport:packet_received", "transport:packet_sent");
    let silent = whole.replace("data_blocked", "ping");
    assert_eq!(arm(&silent).blocked, [(10.0, 50.0)]);
    let until = |text: &str| {
        let end = text.find("\u{1e}{\"time\":50,\"name\":\"transport:packet_sent\"");
        text[..end.expect("packets at 50")].to_owned()
    };
    assert!(arm(&until(&silent)).blocked.is_empty());
    // A limit far above the data is not drawn.
    let large = whole.replace("\"initial_max_data\":5000", "\"initial_max_data\":5000000");
    assert!(arm(&large).connection_limit.is_empty());
}

/// The parts add up to 100 %, and the window is not full here.
#[test]
fn the_summary_says_where_the_time_went() {
    let text = file(HEADER, "transport:packet_received", "transport:packet_sent");
    let arm = arm(&text);
    assert_eq!(
        arm.summary,
        "Of the 80 ms from the request to the last acknowledgment: 50 % blocked by flow control, 50 % waiting for the last acknowledgment"
    );
    // A small window is full; without a window there is no summary.
    let small = text.replace("\"congestion_window\":100000", "\"congestion_window\":5300");
    assert!(
        self::arm(&small)
            .summary
            .contains("50 % the window was full")
    );
    let unknown = text.replace("congestion_window", "x");
    assert!(self::arm(&unknown).summary.is_empty());
}

/// The time ends with the acknowledgment of the last data, repaired or not.
#[test]
fn the_repair_of_the_last_data_counts() {
    let mut text = format!("\u{1e}{HEADER}\n");
    let mut add = |time: f64, name: &str, number: u64, frame: &str| {
        let data = format!(
            r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":1050}},"frames":[{frame}],"congestion_window":100000}}"#
        );
        let _ = writeln!(text, "\u{1e}{}", object(time, name, &data));
    };
    let (sent, received) = ("transport:packet_sent", "transport:packet_received");
    let data = |offset: u64| {
        format!(r#"{{"frame_type":"stream","stream_id":0,"offset":{offset},"length":1000}}"#)
    };
    add(0.0, "recovery:metrics_updated", 0, "");
    add(10.0, received, 0, &data(0));
    add(10.0, sent, 1, &data(0));
    add(10.0, sent, 2, &data(1000));
    add(
        50.0,
        received,
        1,
        r#"{"frame_type":"ack","acked_ranges":[[2]]}"#,
    );
    add(50.0, "recovery:packet_lost", 1, "");
    add(50.0, sent, 3, &data(0));
    add(
        90.0,
        received,
        2,
        r#"{"frame_type":"ack","acked_ranges":[[2,3]]}"#,
    );
    assert_eq!(
        arm(&text).summary,
        "Of the 80 ms from the request to the last acknowledgment: 50 % losses were repaired, 50 % waiting for the last acknowledgment"
    );
}

/// A fixture with `data_blocked` gives a page with the limit, the shade, and the sentence.
#[test]
fn the_page_shows_flow_control() {
    let text = file(HEADER, "transport:packet_received", "transport:packet_sent");
    let picture = Picture {
        title: "x".to_owned(),
        origin: "the first event".to_owned(),
        arms: ok(&text).arms,
        ..Picture::default()
    };
    let (page, svg) = (picture.html(), picture.svg());
    for text in [&page, &svg] {
        assert!(text.contains("connection limit"));
        assert!(text.contains("blocked by flow control"));
        assert!(text.contains("since the first event"));
    }
    assert!(page.contains("\"blocked\":[[10,50]]"));
    assert!(page.contains("\"connection_limit\":["));
    let (_, first) = page
        .split_once("</h1><p class=\"summary\">")
        .expect("a summary");
    let (first, rest) = first.split_once("</p>").expect("its end");
    assert!(first.contains(". Of the 80 ms from the request"), "{first}");
    // What plays is below the panels.
    assert!(rest.find("id=\"rows\"") < rest.find("id=\"play\""));
}

/// Lost data that are still missing are to come: a client's limits only rise, and its bytes stay below them.
#[test]
fn limits_do_not_fall_below_what_a_client_receives() {
    let header = HEADER.replace("server", "client");
    let mut text = format!("\u{1e}{header}\n");
    let mut number = 0;
    let mut add = |time: f64, name: &str, frames: &str, bytes: u64| {
        number += 1;
        let data = format!(
            r#"{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":{bytes}}},"frames":[{frames}]}}"#
        );
        let _ = writeln!(text, "\u{1e}{}", object(time, name, &data));
    };
    let (received, sent) = ("transport:packet_received", "transport:packet_sent");
    let stream = |index: u64| {
        let is_last = if index == 39 { r#","fin":true"# } else { "" };
        format!(
            r#"{{"frame_type":"stream","stream_id":0,"offset":{},"length":1000,"raw":{{"length":1000}}{is_last}}}"#,
            index * 1000
        )
    };
    let limit = |value: u64| {
        format!(
            r#"{{"frame_type":"max_stream_data","stream_id":0,"maximum":{value}}},{{"frame_type":"max_data","maximum":{value}}}"#
        )
    };
    add(
        1.0,
        sent,
        r#"{"frame_type":"stream","stream_id":0,"offset":0,"length":30,"fin":true}"#,
        60,
    );
    add(2.0, sent, &limit(20_000), 60);
    // 5 to 14 are lost at first, and come after the end of the stream.
    let late = 5..15;
    for index in (0..40).filter(|index| !late.contains(index)) {
        if index == 16 {
            add(20.0, sent, &limit(45_000), 60);
        }
        add(10.0 + index as f64, received, &stream(index), 1050);
    }
    for index in late {
        add(60.0 + index as f64, received, &stream(index), 1050);
    }
    let arm = arm(&text);
    for limit in [&arm.stream_limit, &arm.connection_limit] {
        let falls = limit.windows(2).any(|pair| pair[1].value < pair[0].value);
        assert!(!falls, "{limit:?}");
        let end = limit.last().expect("a limit");
        assert!(end.value > 46_900.0, "{end:?}");
    }
}
