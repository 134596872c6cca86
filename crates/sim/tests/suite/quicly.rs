//! Agreement with quicly's simulator.
//!
//! The figures are those of quicly's `t/simulator` (commit b11d3634) with its `pico`, pacing, an initial window of 30
//! packets of 1472 bytes, packets of 1280, one flow and no loss but overflow: milliseconds until this many bytes could be
//! read, of an endless transfer. There a client sends, and all delay is on its way; here a server answers: the first
//! byte arrives after two round trips either way. There is no HTTP there; the settings and the head of the response are a hundred bytes here.

use core::time::Duration;

use lastbyte_link as link;

use crate::paths::{bottleneck, lost, run, transfer};

const MARKS: [u64; 5] = [200_000, 400_000, 800_000, 1_600_000, 3_200_000];

/// Mb/s, round trip, queue; for each arm the times, and the packets dropped there.
type Table = (u64, u64, u64, [(&'static str, [f64; 5], f64); 4]);

const TABLES: [Table; 2] = [
    (
        30,
        30,
        50,
        [
            ("slow-start", [139.0, 194.0, 348.0, 521.0, 956.0], 241.0),
            ("jumpstart", [121.0, 175.0, 324.0, 503.0, 938.0], 239.0),
            ("rapid-no-jump", [132.0, 187.0, 328.0, 514.0, 949.0], 260.0),
            ("rapid-start", [121.0, 175.0, 325.0, 502.0, 938.0], 327.0),
        ],
    ),
    (
        100,
        40,
        80,
        [
            ("slow-start", [171.0, 209.0, 253.0, 318.0, 557.0], 1177.0),
            ("jumpstart", [144.0, 174.0, 217.0, 283.0, 520.0], 1177.0),
            ("rapid-no-jump", [162.0, 178.0, 219.0, 284.0, 505.0], 1393.0),
            ("rapid-start", [137.0, 166.0, 198.0, 264.0, 477.0], 1257.0),
        ],
    ),
];

#[test]
fn times_and_drops_match_quiclys_simulator() {
    let mut errors = Vec::new();
    let mut failures = Vec::new();
    for (mbit, rtt, queue, arms) in TABLES {
        for (arm, expected, drops) in arms {
            let mut path = bottleneck(mbit, rtt, queue);
            path.down.departure = link::Departure::FirstBit;
            path.down.delay = Duration::from_millis(rtt);
            path.up.delay = Duration::ZERO;
            let spec = format!("{arm}:variant=quicly,congestion=pico,initial-window=44160B");
            let mut scenario = transfer(path, &spec, 12_000_000);
            scenario.flows[0].progress = MARKS.to_vec();
            let outcome = run(&scenario);
            for (progress, expected) in outcome.flows[0].progress.iter().zip(expected) {
                let ms = progress.after.expect("it arrives").as_secs_f64() * 1e3;
                let error = (ms / expected - 1.0).abs();
                errors.push(error);
                if error > 0.015 {
                    let bytes = progress.bytes;
                    failures.push(format!(
                        "{mbit} Mb/s {arm} {bytes}: {ms:.1}, there {expected}"
                    ));
                }
            }
            let dropped = outcome.down.dropped_total().packets;
            assert_eq!(dropped, lost(&outcome), "every loss is a drop");
            if (dropped as f64 / drops - 1.0).abs() > 0.06 {
                failures.push(format!("{mbit} Mb/s {arm}: {dropped} drops, there {drops}"));
            }
        }
    }
    errors.sort_by(f64::total_cmp);
    assert_eq!(errors.len(), 40);
    assert!(
        errors[20] < 0.006,
        "the median cell is off by {}",
        errors[20]
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
