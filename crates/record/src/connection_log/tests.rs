use core::time::Duration;
use std::collections::BTreeSet;

use lastbyte_congestion::{Phase, State};
use lastbyte_quic::{
    anatomy::Anatomy,
    recovery::{DeliveryRate, EcnState, FirstFlight, LossThresholds, RecoveryStatistics},
    statistics::{FrameKind, Statistics},
    stream,
};
use serde_json::Value;

use super::{
    schema::{Field, json_schema, json_schema_tcp, markdown},
    snapshot::Rtt,
    *,
};

/// A line that H2O wrote, from the talk on Rapid Start.
const SAMPLE: &str = include_str!("sample-line.json");

#[test]
fn sentinels_are_those_that_the_table_documents() {
    let documented: Vec<&str> = keys::STATISTICS
        .iter()
        .filter(|field| field.meaning.contains("2^"))
        .map(|field| field.key.name())
        .collect();
    let listed: Vec<&str> = keys::SENTINELS.iter().map(|(key, _)| *key).collect();
    assert_eq!(listed[0], keys::CONTENT_LENGTH.name());
    assert_eq!(listed[1..], documented);
}

#[test]
fn statistics_have_the_keys_of_h2o_in_its_order() {
    let sample: Value = serde_json::from_str(SAMPLE).expect("JSON");
    let theirs: Vec<&str> = sample
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .skip(8)
        .collect();
    // H2O added two keys after that line was written.
    let ours: Vec<&str> = keys::STATISTICS
        .iter()
        .map(|field| field.key.name())
        .filter(|key| !key.contains("-undone"))
        .collect();
    assert_eq!(ours, theirs);
    assert_eq!(keys::STATISTICS.len(), 127);
}

#[test]
fn each_kind_of_frame_is_counted_under_its_own_name() {
    let named: Vec<(FrameKind, &str)> = FrameKind::ALL.map(|kind| (kind, kind.name())).into();
    assert_eq!(keys::FRAMES, named);
}

fn described<S>(fields: &[Field<S>], schema: &Value) {
    let tables = markdown().map(|(_, table)| table).concat();
    for field in fields {
        let key = field.key.name();
        assert!(tables.contains(&format!("| `{key}` | ")), "{key}");
        assert!(field.meaning.ends_with('.'), "{key}");
        assert_eq!(schema["properties"][key]["description"], field.meaning);
    }
}

fn parsed(schema: &str) -> Value {
    serde_json::from_str(schema).expect("JSON")
}

#[test]
fn documentation_and_schemas_have_every_key() {
    let (quic, tcp) = (parsed(&json_schema()), parsed(&json_schema_tcp()));
    described(keys::HEAD, &quic);
    described(keys::STATISTICS, &quic);
    described(keys::OUTCOME, &quic);
    described(keys::ALGORITHMS, &quic);
    described(keys::PATH, &quic);
    described(keys::ANATOMY, &quic);
    described(keys::EXPERIMENT, &quic);
    described(keys::HEAD, &tcp);
    described(tcp::SUMMARY, &tcp);
    described(tcp::ORIGIN, &tcp);
    described(tcp::KERNEL, &tcp);
    let all = quic["dependentRequired"]["num-packets.received"]
        .as_array()
        .expect("the other statistics");
    assert_eq!(all.len(), 126 + 2);
}

/// Checks a line against the parts of JSON schema that ours use. Returns its keys.
fn keys_of_valid_line(line: &str, schema: &Value) -> BTreeSet<String> {
    let line = parsed(line);
    let line = line.as_object().expect("an object");
    for (key, value) in line {
        let field = &schema["properties"][key];
        let is_type = |name: &str| match name {
            "string" => value.is_string(),
            "integer" => value.is_u64(),
            "number" => value.as_f64().is_some_and(|number| number >= 0.0),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            other => panic!("{other}"),
        };
        let is_valid = match (&field["const"], &field["enum"], &field["type"]) {
            (Value::String(only), ..) => value == only,
            (_, Value::Array(some), _) => some.contains(value),
            (.., Value::String(name)) => is_type(name),
            (.., Value::Array(names)) => names
                .iter()
                .any(|name| is_type(name.as_str().expect("a name"))),
            _ => panic!("{key} is not in the schema"),
        };
        assert!(is_valid, "{key}: {value} is not {field}");
    }
    for key in schema["required"].as_array().expect("a list") {
        assert!(line.contains_key(key.as_str().expect("a key")), "{key}");
    }
    line.keys().cloned().collect()
}

fn schema_keys(schema: &Value) -> BTreeSet<String> {
    let properties = schema["properties"].as_object().expect("an object");
    properties.keys().cloned().collect()
}

fn header() -> Header {
    Header {
        time_ms: 5,
        conn_id: 7,
        method: "GET".to_owned(),
        content_length: 1000,
        ttlb_ms: Some(40),
    }
}

fn experiment() -> Experiment {
    Experiment {
        experiment: Some("x".to_owned()),
        arm: Some("a".to_owned()),
        site: Some("s".to_owned()),
        worker: Some(0),
        config: Some("c".to_owned()),
        class: Some("dsl".to_owned()),
        seed: Some(9),
        client_ttlb_ms: Some(50.123_456),
        client_ttfb_ms: Some(30.0),
        client_handshake_ms: Some(20.5),
        link_rate_bps: Some(10_000_000),
        link_rtt_ms: Some(25.0),
        link_queue_ms: Some(100.0),
        link_loss: Some(0.001),
        link_cross: Some("flow"),
        neighbour: Some(Neighbour {
            kind: "cbr:2mbit".to_owned(),
            horizon_ms: 900.0,
            rate_bps: 1_900_000,
            delay_ms: Some(3.25),
            loss: Some(0.01),
        }),
        drops: Some(Drops {
            queue_in_startup: 1,
            queue_later: 2,
            codel: 3,
            policer: 4,
            chance: 5,
        }),
    }
}

#[test]
fn a_line_without_statistics_has_head_result_and_experiment() {
    let mut line = String::new();
    let header = Header {
        ttlb_ms: None,
        ..header()
    };
    write_without_statistics(&mut line, &header, &experiment());
    assert_eq!(
        line,
        r#"{"module":"lastbyte","type":"connection","time":5,"conn_id":7,"method":"GET","content_length":1000,"ttlb":null,"complete":false,"experiment":"x","arm":"a","site":"s","worker":0,"config":"c","class":"dsl","seed":9,"client.ttlb":50.123,"client.ttfb":30,"client.handshake":20.5,"link.rate":10000000,"link.rtt":25,"link.queue":100,"link.loss":0.001,"link.cross":"flow","link.drops.queue-in-startup":1,"link.drops.queue-later":2,"link.drops.codel":3,"link.drops.policer":4,"link.drops.chance":5,"neighbour.kind":"cbr:2mbit","neighbour.horizon":900,"neighbour.rate":1900000,"neighbour.delay":3.25,"neighbour.loss":0.01}"#
    );
    let found = keys_of_valid_line(&line, &parsed(&json_schema()));
    assert_eq!(found.len(), keys::HEAD.len() + 1 + keys::EXPERIMENT.len());
    let mut line = String::new();
    write_without_statistics(&mut line, &header, &Experiment::default());
    assert!(line.ends_with(r#""ttlb":null,"complete":false}"#), "{line}");
}

fn tcp_line() -> tcp::Line {
    tcp::Line {
        header: header(),
        is_complete: Some(true),
        proto: "HTTP/2",
        tls: "1.3",
        is_resumed: true,
        requests: 2,
        body_bytes: 1500,
        handshake_ms: 20.5,
        duration_ms: 100.0,
        site: Some("fra".to_owned()),
        worker: 2,
        config: Some("0123456789abcdef".to_owned()),
        kernel: tcp::KernelStatistics {
            congestion: Some("cubic".to_owned()),
            rtt: Some(Duration::from_micros(1500)),
            window: Some(10),
            ..tcp::KernelStatistics::default()
        },
    }
}

#[test]
fn a_line_over_tcp_leaves_out_unknown_values() {
    assert_eq!(
        tcp_line().write(),
        r#"{"module":"lastbyte","type":"connection","time":5,"conn_id":7,"method":"GET","content_length":1000,"ttlb":40,"complete":true,"transport":"tcp","proto":"HTTP/2","tls":"1.3","handshake":"resumed","handshake-time":20.5,"duration":100,"requests":2,"body-bytes":1500,"site":"fra","worker":2,"config":"0123456789abcdef","tcp.congestion":"cubic","tcp.rtt.smoothed":1.5,"tcp.cwnd":10}"#
    );
    let unknown = tcp::Line {
        header: Header::default(),
        is_complete: None,
        ..tcp_line()
    };
    assert!(unknown.write().contains(r#""ttlb":null,"complete":null,"#));
}

#[test]
fn a_line_over_tcp_has_the_keys_and_types_of_its_schema() {
    let second = Some(Duration::from_secs(1));
    let kernel = tcp::KernelStatistics {
        congestion: Some("bbr".to_owned()),
        rtt_min: second,
        rtt: second,
        rtt_variance: second,
        window: Some(1),
        slow_start_threshold: Some(1),
        segment_len: Some(1),
        segments_sent: Some(1),
        segments_received: Some(1),
        segments_retransmitted: Some(1),
        delivered_ce: Some(1),
        bytes_sent: Some(1),
        bytes_retransmitted: Some(1),
        bytes_acked: Some(1),
        bytes_received: Some(1),
        delivery_rate: Some(1),
        reorderings: Some(1),
        busy: second,
        limited_by_receiver: second,
        limited_by_send_buffer: second,
    };
    let line = tcp::Line {
        kernel,
        ..tcp_line()
    };
    let schema = parsed(&json_schema_tcp());
    let found = keys_of_valid_line(&line.write(), &schema);
    assert_eq!(found, schema_keys(&schema));
    assert_eq!(parsed(&line.write())["tcp.busy"], 1000);
}

fn snapshot() -> Snapshot {
    Snapshot {
        statistics: Statistics::default(),
        recovery: RecoveryStatistics::default(),
        streams: stream::Statistics::default(),
        state: State {
            startup: "rapid",
            avoidance: Some("cubic"),
            phase: Phase::Startup,
            window: 14_720,
            slow_start_threshold: None,
            bandwidth: None,
            statistics: lastbyte_congestion::Statistics {
                rtt_exiting_startup: Some(Duration::from_micros(41_250)),
                packets_lost_in_startup: 6,
                ..lastbyte_congestion::Statistics::new(14_720)
            },
        },
        thresholds: LossThresholds::fixed(),
        ecn: EcnState::Capable,
        ecn_reported: [3, 0, 4],
        rtt: Some(Rtt {
            minimum: Duration::from_millis(40),
            maximum: Duration::from_micros(80_500),
            smoothed: Duration::from_millis(42),
            variance: Duration::from_millis(3),
            latest: Duration::from_millis(41),
        }),
        is_paced: true,
        crypto_sent: 0,
        anatomy: Some(Anatomy {
            handshake: Duration::from_micros(20_500),
            flow_control: Duration::from_millis(5),
            idle: Duration::from_millis(30),
            last_ack: Duration::from_millis(10),
            ..Anatomy::default()
        }),
        token_sent: None,
        delivery_rate: Some(DeliveryRate {
            latest: 1_250_000,
            smoothed: 1_200_000,
            deviation: 50_000,
        }),
        first_flight: Some(FirstFlight {
            bytes: 33_600,
            sent_over: Duration::from_millis(20),
            acked_over: Duration::from_micros(26_880),
        }),
        in_flight_at_first_loss: Some(90_000),
        time_to_idle: Some(Duration::from_millis(150)),
    }
}

#[test]
fn a_line_over_quic_has_the_keys_and_types_of_its_schema() {
    let mut line = String::new();
    write(&mut line, &header(), &snapshot(), &experiment());
    let schema = parsed(&json_schema());
    assert_eq!(keys_of_valid_line(&line, &schema), schema_keys(&schema));
    let line = parsed(&line);
    for (key, value) in [
        (keys::NUM_PACKETS_ACKED_ECN_CE, 4),
        (keys::NUM_PATHS_ECN_VALIDATED, 1),
        (keys::NUM_RAPID_START, 1),
        (keys::HANDSHAKE_CONFIRMED_MSEC, u64::MAX),
        (keys::CC_SSTHRESH, u64::from(u32::MAX)),
        (keys::CC_CWND_INITIAL, 14_720),
        (keys::QUIC_JUMPSTART_TIME_TO_IDLE, 150),
        (keys::DELIVERY_RATE_LATEST, 1_250_000),
        (keys::DELIVERY_RATE_SMOOTHED, 1_200_000),
        (keys::DELIVERY_RATE_STDEV, 50_000),
        (keys::NUM_PACKETS_LOST_SLOW_START, 6),
        (keys::CC_IN_FLIGHT_AT_FIRST_LOSS, 90_000),
        (keys::FIRST_FLIGHT_BYTES, 33_600),
    ] {
        assert_eq!(line[key.name()], value, "{key}");
    }
    for (key, value) in [
        (keys::ANATOMY_HANDSHAKE, 20.5),
        (keys::ANATOMY_FLOW_CONTROL, 5.0),
        (keys::ANATOMY_IDLE, 30.0),
        (keys::ANATOMY_REPAIR, 0.0),
        (keys::ANATOMY_LAST_ACK, 10.0),
        (keys::RTT_MAXIMUM, 80.5),
        (keys::RTT_EXITING_SLOW_START, 41.25),
        (keys::FIRST_FLIGHT_SEND_TIME, 20.0),
        (keys::FIRST_FLIGHT_ACK_TIME, 26.88),
    ] {
        assert_eq!(line[key.name()].as_f64(), Some(value), "{key}");
    }
    assert_eq!(line[keys::COMPLETE.name()], true);
    assert_eq!(line[keys::CONGESTION.name()], "cubic");
}

#[test]
fn a_value_that_was_not_measured_is_left_out() {
    let snapshot = Snapshot {
        rtt: None,
        delivery_rate: None,
        first_flight: None,
        in_flight_at_first_loss: None,
        time_to_idle: None,
        ..snapshot()
    };
    let mut line = String::new();
    write(&mut line, &header(), &snapshot, &experiment());
    let line = parsed(&line);
    for key in [
        keys::RTT_MAXIMUM,
        keys::CC_IN_FLIGHT_AT_FIRST_LOSS,
        keys::FIRST_FLIGHT_BYTES,
        keys::FIRST_FLIGHT_SEND_TIME,
        keys::FIRST_FLIGHT_ACK_TIME,
    ] {
        assert_eq!(line.get(key.name()), None, "{key}");
    }
    // As in H2O's lines, which have all statistics.
    assert_eq!(line[keys::DELIVERY_RATE_LATEST.name()], 0);
    assert_eq!(line[keys::QUIC_JUMPSTART_TIME_TO_IDLE.name()], 0);
}
