//! Simulations compared with closed forms.

use core::time::Duration;

use lastbyte_link as link;
use lastbyte_scenario::{CrossKind, network::PathText};

use crate::paths::{bottleneck, lost, run, transfer, ttlb_ms};

/// A transfer that fits into the first flight takes two round trips, and the time that its bytes take on the bottleneck
/// or that pacing takes, whichever is longer.
#[test]
fn a_short_transfer_takes_two_round_trips_and_its_bytes() {
    for (mbit, rtt) in [(10u64, 20u64), (10, 200), (100, 40), (1000, 100)] {
        let scenario = transfer(bottleneck(mbit, rtt, 1000), "slow-start", 20_000);
        let outcome = run(&scenario);
        let ms = ttlb_ms(&outcome);
        let bytes_ms = 20_000.0 * 8.0 / (mbit as f64 * 1e3);
        let paced_ms = rtt as f64 / 2.0 * 20_000.0 / (30.0 * 1280.0);
        let least = 2.0 * rtt as f64 + bytes_ms.max(paced_ms);
        // The handshake's own bytes, and packets in whole.
        let slack = 0.03 * rtt as f64 + 6000.0 * 8.0 / (mbit as f64 * 1e3);
        assert!(
            ms > least * 0.9 && ms < least + slack,
            "{mbit} Mb/s {rtt} ms: {ms:.2}, at least {least:.2}"
        );
        let first = outcome.flows[0].responses[0]
            .first_byte
            .expect("it arrives");
        assert!(first >= Duration::from_millis(2 * rtt), "{first:?}");
        let handshake = outcome.flows[0].handshake.expect("it is complete");
        assert!(handshake >= Duration::from_millis(rtt), "{handshake:?}");
    }
}

/// A long transfer whose window never falls below what the path holds keeps the bottleneck busy.
#[test]
fn a_deep_queue_keeps_the_link_busy() {
    const SIZE: u64 = 40_000_000;
    let scenario = transfer(bottleneck(50, 20, 60), "cubic", SIZE);
    let outcome = run(&scenario);
    let utilisation = outcome.bottleneck.utilisation.expect("there is a rate");
    assert!(utilisation > 0.97 && utilisation <= 1.0, "{utilisation}");
    // What leaves a queue is never more than its limit.
    let limit = 50_000_000 / 8 * 60 / 1000;
    assert!(outcome.down.queue_peak_bytes <= limit);
    assert!(outcome.down.queue_peak_bytes > limit * 9 / 10);
    // Payload, headers and what was sent twice: the bytes that the link carried are those that were sent and not dropped.
    let server = outcome.flows[0].server.as_ref().expect("a server");
    let dropped = outcome.down.dropped_total();
    let down = &outcome.down;
    assert_eq!(down.sent.bytes, down.served.bytes + dropped.bytes);
    // At the end an acknowledgment of the client's last PING may be on its way.
    let on_the_way = down.served.bytes - down.delivered.bytes;
    assert!(on_the_way < 100, "{on_the_way}");
    assert_eq!(server.recovery.packets_lost, dropped.packets);
    // Of streams: the body, its head, the server's settings, and what stands before them.
    let frames = server.streams.data_sent - server.streams.data_resent - SIZE;
    assert!((60..200).contains(&frames), "{frames}");
}

/// With a window below what the path holds, throughput is window / round trip.
#[test]
fn flow_control_bounds_throughput() {
    let mut scenario = transfer(bottleneck(1000, 100, 1000), "rapid-start", 20_000_000);
    scenario.transport.stream_window = 16 << 20;
    let free = ttlb_ms(&run(&scenario));
    scenario.transport.stream_window = 100_000;
    // The window is tuned upwards while it is the limit; but what it was at first shows.
    let bound = ttlb_ms(&run(&scenario));
    assert!(bound > free * 1.2, "{bound} {free}");
}

/// The share of packets lost is that of the model, within four standard deviations.
#[test]
fn random_loss_has_the_configured_rate() {
    for probability in [0.001, 0.01, 0.05] {
        let mut path = bottleneck(100, 10, 1000);
        path.down.loss = vec![link::Loss::Bernoulli(probability)];
        let mut scenario = transfer(path, "bbr", 30_000_000);
        scenario.seed = 7;
        let outcome = run(&scenario);
        let sent = outcome.down.sent.packets as f64;
        let dropped = outcome.down.dropped(link::DropReason::Loss).packets as f64;
        let sigma = (sent * probability * (1.0 - probability)).sqrt();
        assert!(
            (dropped - sent * probability).abs() < 4.0 * sigma,
            "{dropped} of {sent}"
        );
        assert!(lost(&outcome) as f64 >= dropped - 10.0);
        assert!(outcome.flows[0].is_complete());
    }
}

/// Packets at a constant rate take their share of the bottleneck from a flow that yields.
#[test]
fn constant_cross_traffic_takes_its_share() {
    let alone = transfer(bottleneck(20, 40, 60), "cubic", 10_000_000);
    let mut beside = alone.clone();
    let rate = link::Rate::from_bits_per_second(10_000_000);
    beside.cross = vec![CrossKind::Constant(rate).into()];
    let (alone, beside) = (ttlb_ms(&run(&alone)), ttlb_ms(&run(&beside)));
    assert!(
        beside / alone > 1.8 && beside / alone < 2.6,
        "{alone} {beside}"
    );
}

/// A black hole below the datagram size lets nothing through; the client gives up at the time limit.
#[test]
fn a_transfer_through_a_black_hole_is_reported_as_incomplete() {
    let mut path = bottleneck(20, 40, 60);
    path.down.black_hole = Some(link::BlackHole {
        mtu: 1000,
        from: link::Time::ZERO,
    });
    let mut scenario = transfer(path, "cubic", 10_000);
    scenario.time_limit = Duration::from_secs(5);
    let outcome = run(&scenario);
    assert!(!outcome.flows[0].is_complete());
    assert_eq!(outcome.ended_at.as_nanos(), 5_000_000_000);
    assert_eq!(outcome.flows[0].handshake, None);
}

/// A queue that always has packets: the bottleneck carries what it can, whatever limits its rate. The token bucket and the hops
/// are the examples of docs/network.md.
#[test]
fn utilisation_is_a_share_of_what_the_bottleneck_can_carry() {
    let bucket = "rate = '20mbit'\nburst = '10MB'\npeak-rate = '100mbit'\nqueue = '100ms'";
    let hops = "rate = '100mbit'\nqueue = '40ms'\n[[down.hop]]\nrate = '50mbit'\nburst = '1MB'\npeak-rate = '60mbit'\n\
                queue = '100ms'\ndiscipline = 'pie'\n[[down.hop]]\nrate = '70mbit'\nqueue = '1000p'";
    let steps = "steps = ['0s 5mbit', '200ms 40mbit', '900ms 10mbit']\nqueue = '200ms'";
    let trace = "trace = '12mbit, then a pause'\nqueue = '300ms'";
    let mut opportunities: Vec<String> = (1..=500).map(|ms| ms.to_string()).collect();
    opportunities.push("900".to_owned());
    for (link, size, least) in [
        (bucket, 1_000_000, 0.1),
        (bucket, 8_000_000, 0.5),
        (bucket, 20_000_000, 0.6),
        (hops, 3_000_000, 0.5),
        (steps, 4_000_000, 0.7),
        (trace, 2_000_000, 0.7),
        ("rate = '10mbit'\nqueue = '200ms'", 4_000_000, 0.9),
    ] {
        let text = format!("rtt = '30ms'\n[down]\n{link}");
        let path = PathText::parse(&text)
            .and_then(|path| path.path(&mut |_| Ok(opportunities.join("\n"))));
        let outcome = run(&transfer(path.expect(link), "cubic", size));
        let used = outcome.bottleneck.utilisation.expect("a rate");
        assert!((least..=1.0).contains(&used), "{link}: {used}");
        assert!(used < 1.0 || link.contains("10mbit"), "{link}: {used}");
    }
}
