//! Background transfers beside the full stack: the same load, and the same share beside a measured flow.

use core::time::Duration;

use lastbyte_congestion::{Registry, Spec};
use lastbyte_link::{Capacity, DropReason, Loss, Rate, Reordering, Schedule, Time};
use lastbyte_scenario::{CrossKind, CrossTraffic, Direction, Scenario};
use lastbyte_sim::{LinkEvent, Listener, Outcome, SimError, row::CompletionTimes, simulate};

use crate::paths::{bottleneck, run, transfer, ttlb_ms};

const LENGTH: Duration = Duration::from_secs(15);

/// Cross traffic of a spec: in the background, and as a whole connection.
fn both_kinds(spec: &str) -> [CrossKind; 2] {
    let spec: Spec = spec.parse().expect(spec);
    [CrossKind::Bulk(spec.clone()), CrossKind::Stack(spec)]
}

fn with_cross(mut scenario: Scenario, kind: CrossKind) -> Scenario {
    scenario.cross = vec![kind.into()];
    scenario
}

/// The integral of the queue's depth over time.
#[derive(Default)]
struct QueueDepth {
    since: Time,
    bytes: u64,
    byte_seconds: f64,
}

impl Listener for QueueDepth {
    fn wants_link_events(&self) -> bool {
        true
    }

    fn on_link(&mut self, event: &LinkEvent) {
        if event.direction == Direction::Down {
            self.byte_seconds += self.bytes as f64 * event.at.since(self.since).as_secs_f64();
            self.since = event.at;
            self.bytes = event.queue.bytes;
        }
    }
}

/// The load of one flow of cross traffic on an otherwise idle path.
#[derive(Debug, Default)]
struct Load {
    /// The share of the bottleneck's rate.
    throughput: f64,
    /// Packets dropped of those sent.
    loss: f64,
    /// The mean depth of the queue, of its limit.
    queue: f64,
}

/// The mean over three round-trip times: how a sawtooth meets a short queue depends on microseconds.
fn load(mbit: u64, rtt_ms: u64, queue_ms: u64, kind: &CrossKind) -> Load {
    const RUNS: u64 = 3;
    let bytes_per_second = (mbit * 1_000_000 / 8) as f64;
    let capacity = bytes_per_second * LENGTH.as_secs_f64();
    let limit = bytes_per_second * queue_ms as f64 / 1e3;
    let mut load = Load::default();
    for run in 0..RUNS {
        let path = bottleneck(mbit, rtt_ms + run, queue_ms);
        let mut scenario = transfer(path, "cubic", 1);
        // The measured flow never starts.
        scenario.flows[0].start = LENGTH * 2;
        scenario.time_limit = LENGTH;
        scenario.cross = vec![kind.clone().into()];
        let mut depth = QueueDepth::default();
        let outcome = simulate(&scenario, &mut depth).expect("a scenario");
        let down = &outcome.down;
        let dropped = down.dropped(DropReason::QueueFull).packets as f64;
        load.throughput += down.delivered.bytes as f64 / capacity / RUNS as f64;
        load.loss += dropped / down.sent.packets as f64 / RUNS as f64;
        load.queue += depth.byte_seconds / LENGTH.as_secs_f64() / limit / RUNS as f64;
    }
    load
}

/// Throughput within 2 % of the rate, loss within 1 percentage point, and the mean queue within 8 % of its limit in each
/// cell; the mean differences over the grid within 0.5 %, 0.1 percentage points and 2 %.
#[test]
fn a_background_transfer_loads_the_path_like_a_connection() {
    let mut failures = Vec::new();
    let mut sums = [0.0; 3];
    let mut cells = 0.0;
    for spec in ["newreno", "cubic", "bbr"] {
        for (mbit, rtt_ms) in [(4, 20), (4, 150), (12, 20), (12, 80)] {
            for queue_ms in [20, 100] {
                let [background, stack] =
                    both_kinds(spec).map(|kind| load(mbit, rtt_ms, queue_ms, &kind));
                let differences = [
                    background.throughput - stack.throughput,
                    background.loss - stack.loss,
                    background.queue - stack.queue,
                ];
                let line = format!(
                    "{spec}, {mbit} Mb/s, {rtt_ms} ms, queue {queue_ms} ms: {background:.3?}, full stack {stack:.3?}"
                );
                let is_close = differences
                    .into_iter()
                    .zip([0.02, 0.01, 0.08])
                    .all(|(difference, most)| difference.abs() <= most);
                if !is_close {
                    failures.push(line);
                }
                for (sum, difference) in sums.iter_mut().zip(differences) {
                    *sum += difference;
                }
                cells += 1.0;
            }
        }
    }
    let means = sums.map(|sum: f64| sum / cells);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    for (mean, most) in means.into_iter().zip([0.005, 0.001, 0.02]) {
        assert!(mean.abs() <= most, "{means:?}");
    }
}

/// A measured transfer takes as long beside either kind: the mean over offsets of the start within 4 %.
#[test]
fn a_background_transfer_takes_the_share_of_a_connection() {
    for (cross, measured) in [
        ("cubic", "cubic"),
        ("bbr", "cubic"),
        ("cubic", "rapid-start"),
        ("bbr", "rapid-start"),
    ] {
        let [background, stack] = both_kinds(cross).map(|kind| {
            let offsets = 0..12;
            let times = offsets.clone().map(|offset| {
                let mut scenario = transfer(bottleneck(20, 40, 50), measured, 4_000_000);
                scenario.flows[0].start = Duration::from_millis(1500 + 173 * offset);
                scenario.seed = offset;
                ttlb_ms(&run(&with_cross(scenario, kind.clone())))
            });
            times.sum::<f64>() / offsets.count() as f64
        });
        assert!(
            (background / stack - 1.0).abs() < 0.04,
            "{measured} beside {cross}: {background:.1} ms, beside the full stack {stack:.1} ms"
        );
    }
}

/// On a path that loses, reorders, duplicates and marks, and loses acknowledgments: as many bytes within 8 %, the mean over
/// twelve seeds.
#[test]
fn a_background_transfer_recovers_from_every_link_impairment() {
    for spec in ["newreno", "bbr"] {
        let [background, stack] = both_kinds(spec).map(|kind| {
            let runs = (0..12).map(|seed| {
                let mut path = bottleneck(8, 40, 60);
                path.down.loss = vec![Loss::Bernoulli(0.01)];
                path.down.duplication = 0.01;
                path.down.reordering = Some(Reordering {
                    probability: 0.01,
                    extra: Duration::from_millis(5),
                });
                path.up.loss = vec![Loss::Bernoulli(0.05)];
                let mut scenario = transfer(path, "cubic", 1);
                scenario.flows[0].start = LENGTH * 2;
                scenario.time_limit = LENGTH;
                scenario.transport.ecn = true;
                scenario.seed = seed;
                run(&with_cross(scenario, kind.clone()))
                    .down
                    .delivered
                    .bytes
            });
            runs.sum::<u64>() as f64
        });
        assert!(
            (background / stack - 1.0).abs() < 0.08,
            "{spec}: {background} and {stack} bytes"
        );
    }
}

/// After an outage that outlasts several probe timeouts, a background transfer sends again.
#[test]
fn a_background_transfer_survives_an_outage() {
    let mut path = bottleneck(10, 40, 60);
    let rate = Rate::from_bits_per_second(10_000_000);
    let steps = [(0, rate), (5, Rate::ZERO), (7, rate)];
    let steps = steps.map(|(second, rate)| (Duration::from_secs(second), rate));
    path.down.capacity = Capacity::Schedule(Schedule::new(&steps, None).expect("a schedule"));
    let mut scenario = transfer(path, "cubic", 1);
    scenario.flows[0].start = LENGTH * 2;
    scenario.time_limit = Duration::from_secs(12);
    let [background, _] = both_kinds("cubic");
    let outcome = run(&with_cross(scenario, background));
    let megabytes = outcome.down.delivered.bytes as f64 / 1e6;
    // 10 of 12 seconds at 10 Mb/s are 12.5 MB. After the outage it starts from the smallest window.
    assert!((9.0..12.5).contains(&megabytes), "{megabytes} MB");
}

/// Runs cross traffic for `LENGTH`, with nothing to measure.
fn alone(path: lastbyte_scenario::Path, cross: &[&str]) -> Outcome {
    let mut scenario = transfer(path, "cubic", 1);
    scenario.flows[0].start = LENGTH * 2;
    scenario.time_limit = LENGTH;
    scenario.cross = cross.iter().copied().map(traffic).collect();
    run(&scenario)
}

fn traffic(text: &str) -> CrossTraffic {
    CrossTraffic::parse(text, &Registry::builtin()).expect(text)
}

/// A queue that is larger than what a receiver lets a sender send ahead never fills up, as with a whole connection.
#[test]
fn flow_control_limits_a_background_transfer() {
    let peaks = both_kinds("cubic").map(|kind| {
        let mut scenario = transfer(bottleneck(50, 40, 5000), "cubic", 1);
        scenario.flows[0].start = LENGTH * 2;
        scenario.time_limit = LENGTH;
        scenario.transport.stream_window = 1 << 20;
        run(&with_cross(scenario, kind)).down.queue_peak_bytes as f64 / 1e6
    });
    let [background, stack] = peaks;
    // The window grows to 16 MiB; the queue holds 31 MB.
    assert!((10.0..17.0).contains(&background), "{background} MB");
    assert!(
        (background / stack - 1.0).abs() < 0.1,
        "{background} and {stack} MB"
    );
}

/// Pages that the line carries begin at their interval; of pages that it does not carry, one is loaded after the other.
#[test]
fn pages_are_transfers_of_their_size_at_their_interval() {
    let outcome = alone(bottleneck(20, 40, 50), &["pages:cubic 300kB 2s"]);
    let megabytes = outcome.down.delivered.bytes as f64 / 1e6;
    // Eight pages, each datagram with 35 bytes beside its data.
    let expected = 8.0 * 0.3 * 1280.0 / 1245.0;
    assert!(
        (megabytes / expected - 1.0).abs() < 0.02,
        "{megabytes} MB, {expected} expected"
    );
    let outcome = alone(bottleneck(1, 40, 50), &["pages:cubic 300kB 2s"]);
    let megabytes = outcome.down.delivered.bytes as f64 / 1e6;
    assert!(
        (1.5..1.9).contains(&megabytes),
        "{megabytes} MB of 1.9 that the line carries"
    );
}

/// Arrivals do not wait for those before: on average they offer their load, at intervals as irregular as those of a Poisson process.
#[test]
fn transfers_that_arrive_at_random_offer_their_load() {
    let counts: Vec<f64> = (1..=8)
        .map(|seed| {
            let mut scenario = transfer(bottleneck(20, 40, 50), "cubic", 20_000_000);
            scenario.seed = seed;
            scenario.cross = vec![traffic("poisson:cubic 50% of 50kB")];
            let outcome = run(&scenario);
            let arrivals = &outcome.arrivals[0];
            assert_eq!(arrivals.refused, 0);
            let seconds = outcome.ended_at.since(Time::ZERO).as_secs_f64();
            let round_trip = Duration::from_millis(40);
            assert!(
                arrivals
                    .completions
                    .iter()
                    .all(|one| one.bytes == 50_000 && one.time > 2 * round_trip)
            );
            // 10 Mb/s of 400 kbit each.
            (arrivals.completions.len() as u64 + arrivals.open) as f64 / (25.0 * seconds)
        })
        .collect();
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    assert!((0.9..1.1).contains(&mean), "{counts:?}");
    assert!(
        counts.iter().any(|count| (count - mean).abs() > 0.01),
        "{counts:?}"
    );
}

/// Short transfers of a mix are over sooner than long ones.
#[test]
fn completion_times_of_random_arrivals_grow_with_their_size() {
    let mut scenario = transfer(bottleneck(50, 20, 50), "cubic", 200_000_000);
    scenario.cross = vec![traffic("poisson:cubic 50% of web")];
    let outcome = run(&scenario);
    let by_size = CompletionTimes::by_size(&outcome.arrivals[0]);
    let limits: Vec<Option<u64>> = by_size.iter().map(|class| class.below).collect();
    assert_eq!(limits, [Some(100_000), Some(1_000_000), None]);
    assert!(by_size.is_sorted_by_key(|class| class.p50), "{by_size:?}");
    let all: u64 = by_size.iter().map(|class| class.count).sum();
    assert_eq!(all, outcome.arrivals[0].completions.len() as u64);
}

/// Without flows, transfers that arrive at random are what is measured: until the horizon, and all of them to their ends.
#[test]
fn measured_arrivals_end_when_all_are_complete() {
    let of = |spec: &str, horizon: u64| {
        let mut scenario = transfer(bottleneck(50, 20, 50), "cubic", 1);
        scenario.flows.clear();
        scenario.cross = vec![traffic(&format!("poisson:{spec} 60% of web"))];
        scenario.horizon = Duration::from_secs(horizon);
        scenario
    };
    let outcome = run(&of("cubic", 60));
    let arrivals = &outcome.arrivals[0];
    assert_eq!((arrivals.open, arrivals.refused), (0, 0));
    assert!(outcome.ended_at > Time::ZERO + Duration::from_secs(50));
    // A mean of 132 transfers of 1.7 MB.
    let count = arrivals.completions.len();
    assert!((90..180).contains(&count), "{count}");
    // The empty path: the handshake, the request, and its bytes at 50 Mb/s.
    for one in &arrivals.completions {
        let at_rate = Duration::from_nanos(one.bytes * 160);
        assert_eq!(one.alone, Duration::from_millis(40) + at_rate);
        assert!(one.time >= one.alone, "{one:?}");
    }
    let classes = CompletionTimes::by_size(arrivals);
    assert!(classes.iter().all(|one| 1.0 <= one.slowdown_mean
        && one.slowdown_p99.is_none_or(|p99| one.slowdown_mean <= p99)));
    // Another congestion control has the same arrivals.
    let sizes = |outcome: &Outcome| {
        let mut sizes: Vec<u64> = outcome.arrivals[0]
            .completions
            .iter()
            .map(|one| one.bytes)
            .collect();
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(sizes(&run(&of("bbr", 60))), sizes(&outcome));
    assert!(matches!(
        simulate(&of("cubic", 0), &mut ()),
        Err(SimError::NothingToDo)
    ));
}

#[test]
fn random_arrivals_need_a_rate_to_offer_a_share_of() {
    let mut path = bottleneck(20, 40, 50);
    path.down.capacity = Capacity::Unlimited;
    let mut scenario = transfer(path, "cubic", 1000);
    scenario.cross = vec![traffic("poisson:cubic 50% of 50kB")];
    let error = simulate(&scenario, &mut ()).expect_err("no rate");
    assert!(error.to_string().contains("without a rate"), "{error}");
}

/// Pages yield to a measured transfer, where a constant rate of the same mean does not.
#[test]
fn pages_respond_to_congestion_and_a_constant_rate_does_not() {
    let beside = |cross: &str| {
        let mut scenario = transfer(bottleneck(4, 40, 100), "cubic", 3_000_000);
        scenario.flows[0].start = Duration::from_secs(1);
        scenario.cross = vec![traffic(cross)];
        ttlb_ms(&run(&scenario))
    };
    let pages = beside("pages:cubic 800kB 2s");
    let constant = beside("cbr:3.2mbit");
    assert!(
        pages < 0.7 * constant,
        "{pages:.0} ms beside pages, {constant:.0} ms beside a constant rate"
    );
}

/// The uplink carries uploads, and a download whose acknowledgments wait behind one takes longer.
#[test]
fn upstream_traffic_fills_the_uplink() {
    let path = || {
        let mut path = bottleneck(20, 40, 50);
        path.up.capacity = Capacity::Constant(Rate::from_bits_per_second(2_000_000));
        path.up.queue = bottleneck(2, 40, 200).down.queue;
        path
    };
    let outcome = alone(path(), &["cubic up"]);
    let used = outcome.up.delivered.bytes as f64 * 8.0 / LENGTH.as_secs_f64() / 2e6;
    assert!((0.95..=1.0).contains(&used), "{used} of the uplink");
    assert!(outcome.down.delivered.packets > 0, "it is acknowledged");
    let outcome = alone(path(), &["cbr:1mbit up"]);
    assert_eq!(outcome.down.sent.packets, 0);
    let sent = outcome.up.sent.bytes as f64 * 8.0 / LENGTH.as_secs_f64() / 1e6;
    assert!((sent - 1.0).abs() < 0.01, "{sent} Mb/s");

    let mut scenario = transfer(path(), "cubic", 1_000_000);
    scenario.flows[0].start = Duration::from_secs(5);
    let before = ttlb_ms(&run(&scenario));
    scenario.cross = vec![traffic("cubic up")];
    let after = ttlb_ms(&run(&scenario));
    assert!(after > 1.3 * before, "{before:.0} and {after:.0} ms");
}

/// A flow's own round-trip time is what its server measures.
#[test]
fn a_flow_has_its_own_round_trip_time() {
    let mut scenario = transfer(bottleneck(50, 40, 60), "cubic", 100_000);
    scenario.flows.push(scenario.flows[0].clone());
    scenario.flows[1].rtt = Some(Duration::from_millis(130));
    let outcome = run(&scenario);
    let rtt = |flow: usize| {
        let server = outcome.flows[flow].server.as_ref().expect("a server");
        server.rtt_min.as_secs_f64() * 1e3
    };
    assert!((40.0..45.0).contains(&rtt(0)), "{} ms", rtt(0));
    assert!((130.0..135.0).contains(&rtt(1)), "{} ms", rtt(1));
    let first_byte = |flow: usize| {
        outcome.flows[flow].responses[0]
            .first_byte
            .expect("it arrives")
    };
    assert!(
        first_byte(1) >= Duration::from_millis(260),
        "{:?}",
        first_byte(1)
    );

    scenario.flows[1].rtt = Some(Duration::from_millis(39));
    let error = simulate(&scenario, &mut ()).expect_err("shorter than the path");
    let (flow, path) = (Duration::from_millis(39), Duration::from_millis(40));
    assert_eq!(error, SimError::RoundTrip { flow, path });
}

/// Of two NewReno flows, the one with the shorter round trip gets more, in the background as with whole connections.
#[test]
fn the_shorter_round_trip_gets_the_larger_share() {
    let times = [
        "newreno rtt 40ms",
        "newreno rtt 200ms",
        "stack:newreno rtt 200ms",
    ]
    .map(|cross| {
        let times = (0..6).map(|offset| {
            let mut scenario = transfer(bottleneck(20, 40, 40), "newreno", 8_000_000);
            scenario.flows[0].start = Duration::from_millis(3000 + 211 * offset);
            scenario.cross = vec![traffic(cross)];
            ttlb_ms(&run(&scenario))
        });
        times.sum::<f64>() / 6.0
    });
    let [equal, longer, longer_stack] = times;
    assert!(longer < 0.8 * equal, "{times:?}");
    assert!((longer / longer_stack - 1.0).abs() < 0.06, "{times:?}");
}
