//! Congestion control in the long run: response functions, and fairness.

use core::time::Duration;

use lastbyte_link as link;
use lastbyte_scenario::{FlowPlan, Request};

use crate::paths::{bottleneck, run, transfer};

/// The mean window that a transfer over a path of random loss had in its second half, in packets: throughput × round trip /
/// packet. The first half forgets how it began.
fn mean_window(spec: &str, loss: f64, rtt_ms: u64, size: u64, seed: u64) -> f64 {
    let mut path = bottleneck(10_000, rtt_ms, 1000);
    path.down.loss = vec![link::Loss::Bernoulli(loss)];
    let mut scenario = transfer(path, spec, size);
    scenario.transport.stream_window = 16 << 20;
    scenario.flows[0].progress = vec![size / 2, size];
    scenario.seed = seed;
    let outcome = run(&scenario);
    let flow = &outcome.flows[0];
    let [half, all] = [0, 1].map(|mark| flow.progress[mark].after.expect("it arrives"));
    let round_trip = flow.server.as_ref().expect("a server").rtt_min;
    let payload = 1280.0 - 45.0;
    size as f64 / 2.0 / payload * round_trip.as_secs_f64()
        / (all.as_secs_f64() - half.as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Mathis et al. 1997: the window of additive increase and multiplicative decrease by half is √(3/2p), with an
/// acknowledgment a packet. Losses within one round trip count once, so it is somewhat more.
#[test]
fn newreno_follows_its_response_function() {
    for loss in [0.002, 0.005, 0.01] {
        let measured = median(
            (1..=5)
                .map(|seed| mean_window("newreno", loss, 50, 30_000_000, seed))
                .collect(),
        );
        let expected = (1.5 / loss).sqrt();
        let ratio = measured / expected;
        assert!(
            (0.8..1.4).contains(&ratio),
            "{loss}: {measured:.1} {expected:.1}"
        );
    }
}

/// RFC 9438 §5.1: above its Reno-friendly region CUBIC's mean window is (C (3+β) / (4 (1−β)))^¼ (RTT / p)^¾.
#[test]
fn cubic_follows_its_response_function() {
    for (loss, rtt_ms) in [(0.0005, 200), (0.001, 200)] {
        let measured = median(
            (1..=5)
                .map(|seed| mean_window("cubic", loss, rtt_ms, 160_000_000, seed))
                .collect(),
        );
        let factor = (0.4f64 * 3.7 / (4.0 * 0.3)).powf(0.25);
        let expected = factor * (rtt_ms as f64 / 1e3 / loss).powf(0.75);
        let ratio = measured / expected;
        assert!(
            (0.7..1.5).contains(&ratio),
            "{loss}: {measured:.1} {expected:.1}"
        );
    }
}

/// Two equal flows share a bottleneck equally, whichever came first.
#[test]
fn equal_flows_share_equally() {
    for spec in ["newreno", "cubic", "bbr"] {
        let size = 30_000_000;
        let mut scenario = transfer(bottleneck(20, 40, 40), spec, size);
        let second = FlowPlan {
            start: Duration::from_millis(300),
            rtt: None,
            requests: vec![Request::of(size)],
            ..scenario.flows[0].clone()
        };
        scenario.flows.push(second);
        let outcome = run(&scenario);
        let times: Vec<f64> = outcome
            .flows
            .iter()
            .map(|flow| {
                flow.responses[0]
                    .last_byte
                    .expect("it arrives")
                    .as_secs_f64()
            })
            .collect();
        // Both get the same bytes: shares are the inverse of times. Jain's index.
        let shares: Vec<f64> = times.iter().map(|time| 1.0 / time).collect();
        let sum: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        let index = sum * sum / (2.0 * squares);
        assert!(index > 0.95, "{spec}: {times:?} {index}");
        let utilisation = outcome.bottleneck.utilisation.expect("there is a rate");
        assert!(utilisation > 0.85, "{spec}: {utilisation}");
    }
}
