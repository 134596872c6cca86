//! What holds for any input.

use std::time::Duration;

use lastbyte_congestion::{
    Ack, Bandwidth, Controller, ControllerFactory, Environment, Loss, Pacer, Pacing, Packet, Rtt,
    Sent, Spec, Time,
};
use proptest::{collection::vec, prelude::*};

const DATAGRAM: u64 = 1000;

/// A flight, of which some is lost, in ACK frames of any size; and the end of recovery.
struct Round {
    controller: Box<dyn Controller>,
    rtt: Rtt,
    now: Time,
    in_flight: u64,
}

impl Round {
    fn new(spec: &str) -> Self {
        let spec: Spec = spec.parse().expect("a spec");
        Self {
            controller: spec.build(&Environment {
                max_datagram_size: DATAGRAM,
                seed: 1,
            }),
            rtt: Rtt::default(),
            now: Time::ZERO,
            in_flight: 0,
        }
    }

    fn send(&mut self, count: usize) -> Vec<Packet> {
        (0..count)
            .map(|_| {
                self.in_flight += DATAGRAM;
                let receipt = self.controller.on_sent(&Sent {
                    now: self.now,
                    bytes: DATAGRAM,
                    in_flight: self.in_flight,
                    rtt: &self.rtt,
                });
                Packet {
                    bytes: DATAGRAM,
                    sent_at: self.now,
                    receipt,
                }
            })
            .collect()
    }

    fn frame(&mut self, acked: &[&Packet], lost: &[&Packet]) {
        let sample = Duration::from_millis(40);
        self.rtt.update(self.now, sample, Duration::ZERO, None);
        self.in_flight -= (acked.len() + lost.len()) as u64 * DATAGRAM;
        for packet in acked {
            self.controller.on_packet_acked(self.now, packet);
        }
        for packet in lost {
            self.controller.on_packet_lost(self.now, packet);
        }
        if !lost.is_empty() {
            self.controller.on_lost(&Loss {
                now: self.now,
                in_flight: self.in_flight,
                rtt: &self.rtt,
                persistent: false,
            });
        }
        if !acked.is_empty() {
            self.controller.on_ack(&Ack {
                now: self.now,
                in_flight: self.in_flight,
                rtt: &self.rtt,
                has_rtt_sample: true,
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// draft-kazuho-ccwg-rapid-start-02 §3.3 and Appendix A: whatever is lost, and in whatever portions the news
    /// comes, the window leaves the first recovery at beta × the bytes acknowledged in the round, or at the floor.
    #[test]
    fn rapid_start_exits_recovery_at_beta_times_the_bytes_acknowledged(
        // Which packet of the flight is lost; at least the first is.
        fates in vec(prop::bool::weighted(0.4), 2..400),
        frames in vec(1_usize..40, 1..40),
        beta in prop::sample::select(vec![0.5, 0.7, 0.8, 0.1, 0.95]),
        congestion in prop::sample::select(vec!["cubic", "newreno", "pico", "prague"]),
    ) {
        let count = fates.len();
        let mut round = Round::new(&format!(
            "rapid-no-jump:congestion={congestion},startup-beta={beta},initial-window={count}p"
        ));
        let flight = round.send(count);
        let mut frames = frames.iter().cycle();
        let mut news: Vec<(&Packet, bool)> = flight.iter().zip(fates).collect();
        news[0].1 = true;
        let mut acked_bytes = 0;
        while !news.is_empty() {
            let size = *frames.next().expect("cycles");
            let frame: Vec<(&Packet, bool)> = news.drain(..size.min(news.len())).collect();
            let part = |is_lost: bool| -> Vec<&Packet> {
                frame.iter().filter(|(_, lost)| *lost == is_lost).map(|(packet, _)| *packet).collect()
            };
            let (lost, acked) = (part(true), part(false));
            acked_bytes += acked.len() as u64 * DATAGRAM;
            round.frame(&acked, &lost);
        }
        let pre = count as f64 * DATAGRAM as f64;
        let expected = (beta * acked_bytes as f64).max(pre * beta / 3.0).max(2.0 * DATAGRAM as f64);
        let window = round.controller.window();
        prop_assert!((window as f64 - expected).abs() <= 1.0, "{} for {}", window, expected);

        // What is sent now and acknowledged ends recovery; avoidance adds a datagram at most.
        let after = round.send(1);
        round.frame(&[&after[0]], &[]);
        let exit = round.controller.window();
        prop_assert!((window..=window + DATAGRAM).contains(&exit), "{} after {}", exit, window);
        prop_assert_eq!(round.controller.state().phase.name(), "avoidance");
    }

    /// No input makes a controller panic, overflow, or leave its bounds.
    #[test]
    fn invariants_hold_for_any_actions(bytes in vec(any::<u8>(), 0..2000)) {
        crate::actions::play(&bytes);
    }

    /// RFC 9002 §7.7: over any interval, a pacer releases at most rate × interval + burst.
    #[test]
    fn pacer_releases_at_most_rate_times_interval_plus_a_burst(
        kbit in 64_u64..20_000_000,
        steps in vec((0_u64..3_000_000, 0_u64..80), 1..80),
    ) {
        let rate = Bandwidth::from_bits_per_second(kbit * 1000);
        let pacing = Pacing::at(rate, DATAGRAM);
        let mut pacer = Pacer::new();
        let mut now = Time::ZERO;
        let mut releases: Vec<(Time, u64)> = Vec::new();
        for (pause, datagrams) in steps {
            now = now + Duration::from_nanos(pause);
            let bytes = pacer.budget(now, &pacing).min(datagrams * DATAGRAM);
            pacer.on_sent(now, bytes, &pacing);
            releases.push((now, bytes));
        }
        for (index, (from, _)) in releases.iter().enumerate() {
            let mut sum = 0;
            for (upto, bytes) in &releases[index..] {
                sum += bytes;
                // In nanoseconds and bytes a second this is exact.
                let allowed = rate.bytes_in(upto.since(*from)) + pacing.burst + 1;
                prop_assert!(sum <= allowed, "{sum} in {:?}, {allowed} allowed", upto.since(*from));
            }
        }
    }

    /// A sender that has data and waits for each release time gets the rate, less at most the last quantum.
    #[test]
    fn pacer_sustains_the_rate(kbit in 64_u64..20_000_000, quanta in 2_u64..60) {
        let rate = Bandwidth::from_bits_per_second(kbit * 1000);
        let pacing = Pacing::at(rate, DATAGRAM);
        let mut pacer = Pacer::new();
        let mut now = Time::ZERO;
        let mut sent = 0;
        while sent < pacing.burst + quanta * pacing.quantum {
            let budget = pacer.budget(now, &pacing) / DATAGRAM * DATAGRAM;
            if budget > 0 {
                pacer.on_sent(now, budget, &pacing);
                sent += budget;
                continue;
            }
            let release = pacer.next_release(now, &pacing).expect("no budget, so there is a wait");
            prop_assert!(release > now);
            now = release;
            prop_assert!(pacer.budget(now, &pacing) >= pacing.quantum);
        }
        let least = rate.bytes_in(now.since(Time::ZERO));
        prop_assert!(sent + pacing.quantum >= least, "{sent} sent, {least} possible");
    }
}

#[test]
fn fuzz_corpus_of_congestion_is_replayed() {
    lastbyte_testkit::replay_corpus("congestion", 20, crate::actions::play);
}

#[test]
fn fuzz_corpus_of_spec_is_replayed() {
    lastbyte_testkit::replay_corpus("spec", 20, crate::spec_text::play);
}
