use std::time::Duration;

use super::*;

fn line() -> Line {
    Line {
        header: Header {
            time_ms: 5,
            conn_id: 7,
            method: "GET".into(),
            content_length: 1000,
            ttlb_ms: Some(40),
        },
        is_complete: Some(true),
        proto: "HTTP/2",
        tls: "1.3",
        is_resumed: true,
        requests: 2,
        body_bytes: 1500,
        handshake_ms: 20.5,
        duration_ms: 100.0,
        congestion: Some("cubic".into()),
        info: Some(TcpInfo {
            rtt: Some(Duration::from_micros(1500)),
            window: Some(10),
            ..TcpInfo::default()
        }),
    }
}

#[test]
fn a_line_says_what_is_known_and_leaves_out_the_rest() {
    assert_eq!(
        line().write(),
        r#"{"module":"lastbyte","type":"connection","time":5,"conn_id":7,"method":"GET","content_length":1000,"ttlb":40,"complete":true,"transport":"tcp","proto":"HTTP/2","tls":"1.3","handshake":"resumed","handshake-time":20.5,"duration":100,"requests":2,"body-bytes":1500,"tcp.congestion":"cubic","tcp.rtt.smoothed":1.5,"tcp.cwnd":10}"#
    );
    let unknown = Line {
        header: Header::default(),
        is_complete: None,
        ..line()
    };
    assert!(unknown.write().contains(r#""ttlb":null,"complete":null,"#));
}

#[test]
fn the_schema_has_what_a_line_has() {
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).expect("JSON");
    let mut full = line();
    let second = Some(Duration::from_secs(1));
    full.info = Some(TcpInfo {
        rtt_min: second,
        rtt: second,
        rtt_variance: second,
        window: Some(1),
        slow_start_threshold: Some(1),
        segment_len: Some(1),
        segments_sent: Some(1),
        segments_received: Some(1),
        segments_retransmitted: Some(1),
        bytes_sent: Some(1),
        bytes_retransmitted: Some(1),
        bytes_acked: Some(1),
        bytes_received: Some(1),
        delivery_rate: Some(1),
        reorderings: Some(1),
        delivered_ce: Some(1),
        busy: second,
        limited_by_receiver: second,
        limited_by_send_buffer: second,
        unacked: 0,
        not_sent: 0,
    });
    let line: serde_json::Value = serde_json::from_str(&full.write()).expect("JSON");
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(keys(&line), keys(&schema["properties"]));
    let required = schema["required"].as_array().expect("a list");
    for key in required {
        assert!(line.get(key.as_str().expect("text")).is_some(), "{key}");
    }
    assert_eq!(line["tcp.busy"], 1000);
}
