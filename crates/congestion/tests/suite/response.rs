//! The mean window at random loss, against the response function of additive increase.

use core::time::Duration;
use std::collections::VecDeque;

use lastbyte_congestion::{
    Ack, ControllerFactory, Environment, Loss, Packet, Rtt, Sent, Spec, Time,
};

const DATAGRAM: u64 = 1200;
const ROUND_TRIP: Duration = Duration::from_millis(40);
const PACKETS: u64 = 400_000;

/// The mean window over time, in packets, of a sender with endless data over a path without a limit of its rate, which loses each
/// packet with the probability `loss`. Each packet is acknowledged; one is lost when a packet three numbers later arrives.
fn mean_window(spec: &str, loss: f64, seed: u64) -> f64 {
    let spec: Spec = spec.parse().expect("a spec");
    let mut controller = spec.build(&Environment {
        max_datagram_size: DATAGRAM,
        seed,
    });
    let mut random = lastbyte_units::SplitMix64::new(seed);
    let (mut rtt, mut now, mut next) = (Rtt::default(), Time::ZERO, 0);
    rtt.update(now, ROUND_TRIP, Duration::ZERO, None);
    let mut flight: VecDeque<(u64, Packet, bool)> = VecDeque::new();
    let mut missing: VecDeque<(u64, Packet)> = VecDeque::new();
    let (mut in_flight, mut area) = (0, 0.0);
    while next < PACKETS {
        while in_flight + DATAGRAM <= controller.window() {
            in_flight += DATAGRAM;
            let receipt = controller.on_sent(&Sent {
                now,
                bytes: DATAGRAM,
                in_flight,
                rtt: &rtt,
            });
            let packet = Packet {
                bytes: DATAGRAM,
                sent_at: now,
                receipt,
            };
            let is_lost = (random.number() >> 11) as f64 / (1_u64 << 53) as f64 <= loss;
            flight.push_back((next, packet, is_lost));
            next += 1;
        }
        // With nothing in flight that arrives, as after a probe timeout, all that is missing is lost.
        let arrived = flight.pop_front();
        let then = arrived.map_or(now + ROUND_TRIP * 2, |(_, packet, _)| {
            packet.sent_at + ROUND_TRIP
        });
        area += controller.window() as f64 * then.since(now).as_secs_f64();
        now = then;
        let number = match arrived {
            Some((number, packet, true)) => {
                missing.push_back((number, packet));
                continue;
            }
            Some((number, packet, false)) => {
                in_flight -= DATAGRAM;
                controller.on_packet_acked(now, &packet);
                number
            }
            None => u64::MAX,
        };
        let mut lost_count = 0;
        while missing.front().is_some_and(|(one, _)| one + 3 <= number)
            && let Some((_, packet)) = missing.pop_front()
        {
            in_flight -= DATAGRAM;
            lost_count += 1;
            controller.on_packet_lost(now, &packet);
        }
        if lost_count > 0 {
            controller.on_lost(&Loss {
                now,
                in_flight,
                rtt: &rtt,
                persistent: false,
            });
        }
        if arrived.is_some() {
            controller.on_ack(&Ack {
                now,
                in_flight,
                rtt: &rtt,
                has_rtt_sample: true,
            });
        }
    }
    area / now.since(Time::ZERO).as_secs_f64() / DATAGRAM as f64
}

/// Mathis et al. 1997: √(3/2p), where losses come at equal distances. Random ones give up to 7 % more (Ott et al. 1996: 1.31/√p).
#[test]
fn rfc9002_b_5_newreno_has_the_window_of_its_response_function() {
    for loss in [0.001, 0.003, 0.01, 0.03] {
        let expected = (1.5_f64 / loss).sqrt();
        let ratio = mean_window("newreno", loss, 1) / expected;
        assert!((0.95..1.07).contains(&ratio), "{loss}: {ratio:.3}");
    }
}
