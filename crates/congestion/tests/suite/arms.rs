//! The four arms over the networks of the author's own simulator: how long until this many bytes have arrived.
//!
//! The figures are those of quicly's `t/simulator` (commit b11d3634) with its `pico`, pacing, an initial window of 30
//! packets of 1472 bytes, packets of 1280, one flow and no loss but overflow; milliseconds from the sender's first
//! Initial packet. Only sizes that complete before the first loss has to be repaired are compared: this harness has
//! neither streams nor a wire. A handshake of one round trip is added to its times.

use std::time::Duration;

use crate::path::{FlowSpec, Path, run};

const ARMS: [&str; 4] = [
    "slow-start:variant=quicly,congestion=pico,initial-window=44160B",
    "jumpstart:variant=quicly,congestion=pico,initial-window=44160B",
    "rapid-no-jump:variant=quicly,congestion=pico,initial-window=44160B",
    "rapid-start:variant=quicly,congestion=pico,initial-window=44160B",
];

/// Milliseconds until `bytes` have arrived.
fn time_to(bytes: u64, arm: &'static str, mbit: u64, rtt_ms: u64, queue_ms: u64) -> f64 {
    let flow = FlowSpec {
        bytes,
        ..FlowSpec::endless(arm, rtt_ms)
    };
    let path = Path::new(mbit, Duration::from_millis(queue_ms));
    let outcomes = run(path, &[flow], Duration::from_secs(10));
    let completed = outcomes[0].completed.expect("completes");
    (completed + Duration::from_millis(rtt_ms)).as_secs_f64() * 1e3
}

#[test]
fn times_match_quiclys_simulator() {
    // (Mb/s, RTT, queue, bytes, the four arms)
    let table = [
        (30, 30, 50, 200_000, [139.0, 121.0, 132.0, 121.0]),
        (30, 30, 50, 400_000, [194.0, 175.0, 187.0, 175.0]),
        (100, 40, 80, 200_000, [171.0, 144.0, 162.0, 137.0]),
        (100, 40, 80, 400_000, [209.0, 174.0, 178.0, 166.0]),
        (100, 40, 80, 800_000, [253.0, 217.0, 219.0, 198.0]),
        (100, 40, 80, 1_600_000, [318.0, 283.0, 284.0, 264.0]),
    ];
    let mut failures = Vec::new();
    for (mbit, rtt, queue, bytes, expected) in table {
        for (arm, expected) in ARMS.iter().zip(expected) {
            let measured = time_to(bytes, arm, mbit, rtt, queue);
            if (measured / expected - 1.0).abs() > 0.015 {
                failures.push(format!(
                    "{mbit} Mb/s, {bytes} B, {arm}: {measured:.1} ms, there {expected} ms"
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn each_arm_is_faster_than_the_baseline_where_the_path_is_long() {
    // 55 Mb/s, 39 ms: the path of the talk, with the draft's own rules.
    for bytes in [200_000, 400_000, 800_000] {
        let times = ["slow-start", "jumpstart", "rapid-no-jump", "rapid-start"]
            .map(|arm| time_to(bytes, arm, 55, 39, 50));
        for (arm, time) in times.iter().enumerate().skip(1) {
            assert!(*time < times[0], "arm {arm} at {bytes} bytes: {times:?}");
        }
    }
}

#[test]
fn hystart_loses_less_than_slow_start() {
    let lost = |spec| {
        let flow = FlowSpec {
            bytes: 8_000_000,
            ..FlowSpec::endless(spec, 40)
        };
        let path = Path::new(50, Duration::from_millis(40));
        let outcomes = run(path, &[flow], Duration::from_secs(20));
        assert!(outcomes[0].completed.is_some(), "{spec}");
        outcomes[0].packets_lost
    };
    let (hystart, cubic) = (lost("hystart"), lost("cubic"));
    assert!(hystart * 3 < cubic, "{hystart} and {cubic}");
}
