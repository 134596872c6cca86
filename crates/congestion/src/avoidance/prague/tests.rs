use alloc::{boxed::Box, vec::Vec};

use super::*;
use crate::{Ack, Controller, ControllerFactory, EcnCe, Environment, Packet, Sent, Spec};

const MILLISECOND: Duration = Duration::from_millis(1);

fn rtt(ms: u32) -> Rtt {
    let mut rtt = Rtt::default();
    rtt.update(Time::ZERO, MILLISECOND * ms, Duration::ZERO, None);
    rtt
}

fn prague() -> Prague {
    Prague::new(&Config::default())
}

/// Virtual round trips in which this share of 100 packets is marked, one ACK frame each.
fn rounds(prague: &mut Prague, count: u32, marked: u64, rtt: &Rtt) {
    let start = prague.round.map_or(Time::ZERO, |round| round.started_at);
    for round in 1..=count {
        prague.on_marks(&Marks {
            now: start + rtt.smoothed() * round,
            acked: 100,
            marked,
            window: 100.0,
            rtt,
        });
    }
}

#[test]
fn section_2_3_2_alpha_is_the_moving_average_of_marks() {
    let rtt = rtt(40);
    let mut prague = prague();
    // Without a mark nothing is known of the bottleneck, and alpha stays.
    rounds(&mut prague, 50, 0, &rtt);
    assert_eq!((prague.alpha, prague.rounds), (1.0, 49));
    rounds(&mut prague, 1, 25, &rtt);
    let first = 1.0 + (0.25 - 1.0) / 16.0;
    assert!((prague.alpha - first).abs() < 1e-9, "{}", prague.alpha);
    rounds(&mut prague, 1, 25, &rtt);
    let second = first + (0.25 - first) / 16.0;
    assert!((prague.alpha - second).abs() < 1e-9, "{}", prague.alpha);
    rounds(&mut prague, 200, 25, &rtt);
    assert!((prague.alpha - 0.25).abs() < 1e-4, "{}", prague.alpha);
    rounds(&mut prague, 200, 0, &rtt);
    assert!(prague.alpha < 1e-4, "{}", prague.alpha);
}

#[test]
fn section_2_3_2_frames_within_a_round_trip_count_together() {
    let rtt = rtt(40);
    let mut prague = prague();
    for ms in 0..40 {
        prague.on_marks(&Marks {
            now: Time::ZERO + MILLISECOND * ms,
            acked: 10,
            marked: 10 * u64::from(ms % 2 == 0),
            window: 100.0,
            rtt: &rtt,
        });
    }
    assert_eq!(prague.rounds, 0);
    rounds(&mut prague, 1, 0, &rtt);
    assert_eq!(prague.rounds, 1);
    // 200 of 500 bytes.
    assert!((prague.alpha - (1.0 + (0.4 - 1.0) / 16.0)).abs() < 1e-9);
}

#[test]
fn section_2_4_1_and_2_4_2_factors_of_loss_and_marks() {
    let rtt = rtt(40);
    let mut prague = prague();
    assert!((prague.beta(Cause::Loss) - 0.5).abs() < 1e-9);
    // Of the first mark, before alpha says anything.
    assert!((prague.beta(Cause::EcnCe) - 0.7).abs() < 1e-9);
    rounds(&mut prague, 300, 20, &rtt);
    assert!((prague.beta(Cause::EcnCe) - 0.9).abs() < 1e-3);
    assert!((prague.beta(Cause::Loss) - 0.5).abs() < 1e-9);
}

/// Growth of the window in a round trip of this many datagrams, acknowledged in pairs.
fn growth(prague: &mut Prague, datagrams: u64, rtt: &Rtt) -> u64 {
    let start = datagrams * 1000;
    let mut window = start;
    for _ in 0..datagrams / 2 {
        window = prague.on_ack(&AvoidanceAck {
            now: Time::ZERO,
            bytes: 2000,
            window,
            rtt,
            max_datagram_size: 1000,
        });
    }
    window - start
}

#[test]
fn section_2_4_3_a_round_trip_adds_a_datagram() {
    let grown = growth(&mut prague(), 50, &rtt(40));
    assert!((980..=1000).contains(&grown), "{grown}");
}

#[test]
fn section_2_4_4_short_round_trips_grow_as_if_they_were_25_ms() {
    let short = rtt(5);
    let mut prague = prague();
    rounds(&mut prague, 499, 1, &short);
    assert!(growth(&mut prague, 50, &short) > 900);
    // From the 500th on, (5 / 25)² of a datagram, and alpha is updated once in 25 ms.
    rounds(&mut prague, 2, 1, &short);
    assert_eq!(prague.rounds, 500);
    let grown = growth(&mut prague, 50, &short);
    assert!((38..=41).contains(&grown), "{grown}");
    rounds(&mut prague, 4, 1, &short);
    assert_eq!(prague.rounds, 500);
    rounds(&mut prague, 5, 1, &short);
    assert_eq!(prague.rounds, 501);
    // Long ones are not changed.
    assert!(growth(&mut prague, 50, &rtt(40)) > 900);
}

#[test]
fn section_2_4_4_the_500_round_trips_are_those_of_the_flow() {
    let short = rtt(5);
    let mut prague = prague();
    rounds(&mut prague, 501, 0, &short);
    assert_eq!((prague.alpha, prague.rounds), (1.0, 500));
    assert!(growth(&mut prague, 50, &short) < 50);
}

#[test]
fn section_2_4_4_marks_reduce_once_in_25_ms() {
    let short = rtt(5);
    let mut prague = prague();
    let at = |ms: u32| Time::ZERO + MILLISECOND * ms;
    let reduce = |prague: &mut Prague, now: Time, cause: Cause| {
        prague.on_congestion(&Reduction {
            now,
            full: 50_000,
            is_measured: false,
            after: 25_000,
            cause,
            rtt: &short,
            max_datagram_size: 1000,
        });
    };
    // Before the 500th round trip, packets alone decide.
    reduce(&mut prague, at(10), Cause::EcnCe);
    assert!(prague.responds_to_marks(at(11), &short));
    rounds(&mut prague, 501, 1, &short);
    assert!(!prague.responds_to_marks(at(34), &short));
    assert!(prague.responds_to_marks(at(35), &short));
    // A loss is another matter.
    reduce(&mut prague, at(100), Cause::Loss);
    assert!(prague.responds_to_marks(at(101), &short));
    // Nor do long round trips wait longer than their packets take.
    reduce(&mut prague, at(200), Cause::EcnCe);
    assert!(prague.responds_to_marks(at(240), &rtt(40)));
}

#[test]
fn arguments_of_any_size_do_no_harm() {
    let none = Rtt::default();
    let mut prague = prague();
    for (acked, marked) in [
        (0, u64::MAX),
        (u64::MAX, 0),
        (u64::MAX, u64::MAX),
        (1, u64::MAX),
    ] {
        prague.on_marks(&Marks {
            now: Time::MAX,
            acked,
            marked,
            window: 100.0,
            rtt: &none,
        });
        assert!((0.0..=1.0).contains(&prague.alpha), "{}", prague.alpha);
        let window = prague.on_ack(&AvoidanceAck {
            now: Time::MAX,
            bytes: acked,
            window: 1,
            rtt: &none,
            max_datagram_size: 65_527,
        });
        assert!((1..=65_530).contains(&window), "{window}");
    }
}

/// A controller, and packets of 1000 bytes.
struct Flow {
    controller: Box<dyn Controller>,
    rtt: Rtt,
    in_flight: u64,
}

impl Flow {
    fn new() -> Self {
        let spec: Spec = "prague:initial-window=100p".parse().expect("a preset");
        Self {
            controller: spec.build(&Environment {
                max_datagram_size: 1000,
                seed: 1,
            }),
            rtt: rtt(40),
            in_flight: 0,
        }
    }

    fn send(&mut self, count: usize) -> Vec<Packet> {
        let packets = (0..count).map(|_| {
            self.in_flight += 1000;
            let receipt = self.controller.on_sent(&Sent {
                now: Time::ZERO,
                bytes: 1000,
                in_flight: self.in_flight,
                rtt: &self.rtt,
            });
            Packet {
                bytes: 1000,
                sent_at: Time::ZERO,
                receipt,
            }
        });
        packets.collect()
    }

    /// The window after an ACK frame for these packets, of which this many were marked.
    fn ack(&mut self, packets: &[Packet], newly_marked: u64) -> u64 {
        for packet in packets {
            self.in_flight -= 1000;
            self.controller.on_packet_acked(Time::ZERO, packet);
        }
        if newly_marked > 0 {
            self.controller.on_ecn_ce(&EcnCe {
                now: Time::ZERO,
                newly_marked,
                largest_acked: packets.last().expect("a packet").receipt,
                in_flight: self.in_flight,
                rtt: &self.rtt,
            });
        }
        self.controller.on_ack(&Ack {
            now: Time::ZERO,
            in_flight: self.in_flight,
            rtt: &self.rtt,
            has_rtt_sample: true,
        });
        self.controller.window()
    }
}

#[test]
fn section_2_4_2_marks_of_a_round_trip_reduce_once_and_growth_goes_on() {
    let mut flow = Flow::new();
    assert!(flow.controller.is_scalable());
    let first = flow.send(100);
    // The first mark ends startup.
    assert_eq!(flow.ack(&first[..50], 1), 70_000);
    assert_eq!(flow.ack(&first[50..], 20), 70_000);
    let second = flow.send(70);
    assert_eq!(flow.ack(&second, 0), 71_000);
    let third = flow.send(71);
    // Halved, as alpha starts at 1, and grown by the 30 of 35 packets that were not marked.
    assert_eq!(flow.ack(&third[..35], 5), 35_500 + 845);
    // Marks of packets from before the reduction reduce no more.
    assert_eq!(flow.ack(&third[35..], 5), 35_500 + 845 + 853);
    let fourth = flow.send(36);
    assert!(flow.ack(&fourth, 1) < 20_000);
}

#[test]
fn section_2_5_releases_are_of_250_us_or_two_datagrams() {
    let mut flow = Flow::new();
    let first = flow.send(100);
    flow.ack(&first, 1);
    // 70 datagrams in 40 ms, in pairs.
    let pacing = flow.controller.pacing(&flow.rtt);
    assert_eq!(pacing.rate.bytes_per_second(), 1_750_000);
    assert_eq!(pacing.quantum, 2000);
    let fast = flow.controller.pacing(&{
        let mut rtt = Rtt::default();
        rtt.update(Time::ZERO, MILLISECOND, Duration::ZERO, None);
        rtt
    });
    assert_eq!(fast.quantum, 17_500);
}
