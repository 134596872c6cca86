use core::time::Duration;

use lastbyte_quic::{Time, connection::Config};

use super::*;
use crate::{
    dispatcher::{Amount, Arrivals},
    recorder::{Cause, InFlight, Recorder},
    settings::{Request, Version},
    thread_state::ThreadUse,
};

const START: Time = Time::from_nanos(1_000_000_000);

fn settings(arrivals: Arrivals, amount: Amount) -> Settings {
    let spec = "cubic".parse().expect("a spec");
    Settings {
        client: lastbyte_client::Settings::new(Config::new(spec)),
        version: Version::Http3,
        requests: vec![Request {
            url: "https://localhost/a".parse().expect("a URL"),
            weight: 1,
        }],
        fields: lastbyte_http3::Fields::new(),
        body: None,
        amount,
        arrivals,
        connections: 2,
        streams: 1,
        threads: 1,
        timeout: Duration::from_secs(1),
        connect_rate: None,
        mix: None,
        migrate: None,
        migrate_to: Vec::new(),
        seed: 1,
        network: None,
        connection_log: None,
    }
}

/// 1000 responses in a second: each is due 1 ms after the one before, waits 1 ms and takes 2 ms; one in a hundred has status
/// 404.
fn measurement() -> Measurement {
    let mut recorder = Recorder::default();
    for number in 0..1000_u64 {
        let due = START + Duration::from_millis(number);
        let request = InFlight {
            due,
            sent: due + Duration::from_millis(1),
            is_measured: true,
            status: if number % 100 == 99 { 404 } else { 200 },
            request: 0,
            is_retry: false,
        };
        recorder.on_started(&request);
        recorder.on_done(&request, due + Duration::from_millis(3));
    }
    recorder.on_abandoned(2, Cause::Timeout, "no complete response within 1000 ms");
    recorder.counts.total_bytes = 5 << 20;
    recorder.counts.header_bytes = 10_000;
    recorder.counts.header_text_bytes = 100_000;
    recorder.counts.data_bytes = 4 << 20;
    recorder.counts.datagrams_sent = 7;
    recorder.counts.datagrams_received = 9;
    recorder.counts.connected = 2;
    recorder.handshakes = Some((START, START + Duration::from_secs(4)));
    recorder.counts.full_handshakes = 2;
    for millis in [1, 3] {
        recorder.connect.record(millis * 1_000_000);
        recorder.first_byte.record((millis + 1) * 1_000_000);
    }
    recorder.rates = vec![500.0, 502.0];
    Measurement {
        recorder,
        elapsed: Duration::from_secs(1),
        threads: vec![ThreadUse {
            cpu: Duration::from_millis(120),
            wall: Duration::from_secs(1),
        }],
        is_interrupted: false,
        paths: None,
    }
}

#[test]
fn the_table_of_an_open_loop() {
    let arrivals = Arrivals::Constant { rate: 1000.0 };
    let text = text(&settings(arrivals, Amount::Requests(1002)), &measurement());
    let expected = "\
finished in 1.00s, 1000.00 req/s, 5.24MB/s over HTTP/3
requests: 1002 total, 1000 started, 1000 done, 990 succeeded, 12 failed, 2 errored, 2 timeout
status codes: 990 2xx, 0 3xx, 10 4xx, 0 5xx
traffic: 5.24MB (5242880) total, 10.00kB (10000) headers (space savings 90.00%), 4.19MB (4194304) data
UDP datagrams: 7 sent, 9 received
connections: 2 established, 0 failed, 0 lost
handshakes: 2 full, 0 resumed (early data: 0 accepted, 0 rejected), 0.50/s

                          min         max        mean          sd    +/- sd
time for request:      2.00ms      2.00ms      2.00ms         0us   100.00%
time for connect:      1.00ms      3.00ms      2.00ms      1.41ms   100.00%
time to 1st byte:      2.00ms      4.00ms      3.00ms      1.41ms   100.00%
req/s           :      500.00      502.00      501.00        1.41   100.00%

                        P50       P75       P90       P99     P99.9    P99.99
latency:             3.00ms    3.00ms    3.00ms    3.00ms         –         –
service time:        2.00ms    2.00ms    2.00ms    2.00ms         –         –

generator: CPU 12 % of a core by thread, 120us per request
error: no complete response within 1000 ms (2 times)
note: P99.9 needs 10000, P99.99 100000 responses (there were 1000)
";
    assert_eq!(text, expected);
}

#[test]
fn a_run_without_a_response_has_a_table() {
    let amount = Amount::Time {
        warm_up: Duration::ZERO,
        measured: Duration::from_secs(1),
    };
    let empty = Measurement {
        recorder: Recorder::default(),
        elapsed: Duration::ZERO,
        threads: vec![ThreadUse::default()],
        is_interrupted: true,
        paths: None,
    };
    let settings = settings(Arrivals::Closed, amount);
    let text = text(&settings, &empty);
    assert!(
        text.starts_with("interrupted after 0us, 0.00 req/s"),
        "{text}"
    );
    assert!(text.contains("0 total, 0 started"), "{text}");
    assert!(
        !text.contains("NaN") && !text.contains("latency:"),
        "{text}"
    );
    let json = json(&settings, &empty);
    assert_eq!(json["latency_us"]["p50"], serde_json::Value::Null);
    assert_eq!(json["is_interrupted"], true);
}

/// A thread that is busy for more than 90 % of the time, and what an open loop left out, make the figures doubtful.
#[test]
fn doubtful_figures_come_with_a_warning() {
    let settings = settings(Arrivals::Poisson { rate: 9.0 }, Amount::Requests(1000));
    let mut measurement = measurement();
    assert_eq!(warnings(&settings, &measurement), [""; 0]);
    measurement.threads[0].cpu = Duration::from_millis(900);
    assert_eq!(warnings(&settings, &measurement), [""; 0]);
    measurement.threads[0].cpu = Duration::from_millis(910);
    measurement.recorder.counts.not_started = 5;
    measurement.recorder.counts.unfinished = 6;
    let all = warnings(&settings, &measurement);
    assert!(all[0].contains("91 % of a CPU core"), "{all:?}");
    assert!(
        all[1].starts_with("5 requests were due but not sent"),
        "{all:?}"
    );
    assert!(all[2].starts_with("6 requests were in progress"), "{all:?}");
}

#[test]
fn a_silent_end_of_a_run_is_a_warning() {
    let time = Amount::Time {
        warm_up: Duration::ZERO,
        measured: Duration::from_secs(5),
    };
    let of = |amount, elapsed| {
        let mut measurement = measurement();
        measurement.elapsed = Duration::from_secs_f64(elapsed);
        silent_end(&settings(Arrivals::Closed, amount), &measurement)
    };
    let silent = of(time, 5.0).expect("silence");
    assert!((2.9..3.1).contains(&silent.as_secs_f64()), "{silent:?}");
    assert_eq!(of(time, 1.5), None);
    assert_eq!(of(Amount::Requests(1000), 5.0), None);
    let mut measurement = measurement();
    measurement.elapsed = Duration::from_secs(5);
    let all = warnings(&settings(Arrivals::Closed, time), &measurement);
    assert!(
        all.iter()
            .any(|one| one.starts_with("no response in the last ")),
        "{all:?}"
    );
}
