//! The rules of draft-huitema-ccwg-c4-spec, one by one, on a path whose rate and round-trip times the test sets.

use alloc::{collections::VecDeque, vec::Vec};

use lastbyte_units::nanos;

use super::{signals::sensitivity, *};

const DATAGRAM: u64 = 1000;
const ROUND: Duration = Duration::from_millis(100);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A sender whose packets are acknowledged one by one, a round trip after they are sent.
struct Sender {
    c4: C4,
    rtt: Rtt,
    now: Time,
    sent: VecDeque<Packet>,
}

impl Sender {
    fn new() -> Self {
        Self {
            c4: C4::new(Config {
                initial_window: 10 * DATAGRAM,
                max_datagram_size: DATAGRAM,
                resume_max: Some(1 << 20),
                burst: None,
            }),
            rtt: Rtt::default(),
            now: Time::ZERO,
            sent: VecDeque::new(),
        }
    }

    fn in_flight(&self) -> u64 {
        self.sent.len() as u64 * DATAGRAM
    }

    fn send(&mut self) {
        let receipt = self.c4.on_sent(&Sent {
            now: self.now,
            bytes: DATAGRAM,
            in_flight: self.in_flight() + DATAGRAM,
            rtt: &self.rtt,
        });
        self.sent.push_back(Packet {
            bytes: DATAGRAM,
            sent_at: self.now,
            receipt,
        });
    }

    fn acknowledge(&mut self, sample: Duration, marks: u64) {
        let Some(packet) = self.sent.pop_front() else {
            return;
        };
        self.rtt.update(self.now, sample, Duration::ZERO, None);
        self.c4.on_packet_acked(self.now, &packet);
        let in_flight = self.in_flight();
        if marks > 0 {
            self.c4.on_ecn_ce(&EcnCe {
                now: self.now,
                newly_marked: marks,
                largest_acked: packet.receipt,
                in_flight,
                rtt: &self.rtt,
            });
        }
        self.c4.on_ack(&Ack {
            now: self.now,
            in_flight,
            rtt: &self.rtt,
            has_rtt_sample: true,
        });
    }

    fn lose(&mut self, persistent: bool) {
        let packet = self.sent.pop_front().expect("a packet in flight");
        self.c4.on_packet_lost(self.now, &packet);
        self.c4.on_lost(&Loss {
            now: self.now,
            in_flight: self.in_flight(),
            rtt: &self.rtt,
            persistent,
        });
    }

    /// A round trip, in which what the previous one sent is acknowledged, evenly, and this many packets are sent. The first
    /// acknowledgment ends the era.
    fn round(&mut self, count: u64) {
        self.round_with(count, |_| (ROUND, 0));
    }

    /// The same, with the round-trip time and the marks of each acknowledgment.
    fn round_with(&mut self, count: u64, ack: impl Fn(u64) -> (Duration, u64)) {
        let before = self.sent.len() as u64;
        let steps = before.max(count).max(1);
        for step in 0..steps {
            // As many in each part of the round.
            let share = |whole: u64| (step + 1) * whole / steps - step * whole / steps;
            for _ in 0..share(before) {
                let (sample, marks) = ack(step);
                self.acknowledge(sample, marks);
            }
            for _ in 0..share(count) {
                self.send();
            }
            // A little more than the minimum round-trip time, or the sampler does not believe it.
            self.now = self.now + Duration::from_nanos(nanos(ROUND).div_ceil(steps));
        }
    }

    /// At this many packets a round until a state begins; returns the rounds it took.
    fn until(&mut self, phase: Phase, count: u64) -> u32 {
        for rounds in 0..50 {
            if self.c4.state().phase == phase {
                return rounds;
            }
            self.round(count);
        }
        panic!("{phase} is not reached: {:?}", self.c4);
    }

    /// A sender in Cruising whose nominal rate is that of this many packets a round, with the nominal max RTT of the path.
    fn cruising(count: u64) -> Self {
        let mut sender = Self::new();
        sender.until(Phase::Cruising, count);
        // What Initial added to the nominal max RTT is forgotten.
        for _ in 0..60 {
            sender.round(count);
        }
        sender.until(Phase::Recovery, count);
        sender.until(Phase::Cruising, count);
        sender
    }

    /// A sender whose Recovery after a successful Probing ends with the next acknowledgment, and the nominal rate before that.
    fn after_a_probe() -> (Self, f64) {
        let mut sender = Self::cruising(1000);
        let nominal = sender.rate();
        sender.round(1000);
        // What Probing sends arrives at its rate, 17/16.
        sender.round(1070);
        assert_eq!(sender.c4.state().phase, Phase::Probing);
        sender.round(1070);
        assert_eq!(sender.c4.state().phase, Phase::Recovery);
        assert_near(sender.rate(), nominal * 1.07, 0.01);
        (sender, nominal)
    }

    fn rate(&self) -> f64 {
        self.c4
            .nominal_rate
            .map_or(0.0, |rate| rate.bytes_per_second() as f64)
    }
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value - expected).abs() <= tolerance * expected,
        "{value}, expected {expected}"
    );
}

fn rate(bytes_per_second: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(bytes_per_second)
}

#[test]
fn section_5_1_sensitivity_is_piecewise_linear() {
    for (bytes_per_second, expected) in [
        (0, 0.0),
        (50_000, 0.0),
        (525_000, 0.46),
        (1_000_000, 0.92),
        (5_500_000, 0.96),
        (10_000_000, 1.0),
        (u64::MAX, 1.0),
    ] {
        let found = sensitivity(rate(bytes_per_second));
        assert!(
            (found - expected).abs() < 1e-9,
            "{bytes_per_second}: {found}"
        );
    }
}

#[test]
fn section_5_2_delay_threshold() {
    // 1/16 + 3/16 of 80 ms; 1/16 + 0.08 × 3/16; 1/16; and the maximum.
    assert_eq!(signals::delay_threshold(rate(0), ms(80)), ms(20));
    assert_eq!(
        signals::delay_threshold(rate(1_000_000), ms(80)).as_micros(),
        6200
    );
    assert_eq!(signals::delay_threshold(rate(u64::MAX), ms(80)), ms(5));
    assert_eq!(signals::delay_threshold(rate(0), Duration::MAX), ms(25));
}

#[test]
fn section_5_3_losses_count_when_they_exceed_the_threshold() {
    // One loss is 1/16 of the smoothed rate: above the threshold of 10 MB/s (0.02), below that of 900 kB/s (0.02 + 0.5 × 0.177).
    let mut signals = Signals::default();
    signals.on_lost();
    assert!(signals.has_loss(Some(rate(10_000_000))));
    assert!(!signals.has_loss(Some(rate(900_000))));
    // 0.0625 × (15/16)^18 = 0.0196
    for _ in 0..18 {
        assert!(signals.has_loss(Some(rate(10_000_000))));
        signals.on_acked();
    }
    assert!(!signals.has_loss(Some(rate(10_000_000))));
}

#[test]
fn section_5_4_share_of_marks_is_smoothed_below_a_half() {
    let mut rtt = Rtt::default();
    rtt.update(Time::ZERO, ROUND, Duration::ZERO, None);
    let frame = |signals: &mut Signals, round: u32, acked: u64, marked: u64| {
        (0..acked).for_each(|_| signals.on_acked());
        if marked > 0 {
            signals.on_marked(marked);
        }
        let ack = Ack {
            now: Time::ZERO + ROUND * round,
            in_flight: 0,
            rtt: &rtt,
            has_rtt_sample: true,
        };
        signals.end_ack(&ack, Some(rate(10_000_000)))
    };
    let mut signals = Signals::default();
    assert_eq!(frame(&mut signals, 1, 20, 0), None);
    assert!(!signals.has_marks());
    // The threshold is 3/32 = 0.094. Each update with 40 % of marks adds a sixteenth of the difference: 0.025, 0.048, 0.070, 0.091.
    for round in 2..6 {
        assert_eq!(frame(&mut signals, round, 20, 8), None);
    }
    let beta = frame(&mut signals, 6, 20, 8).expect("above the threshold");
    let ecn_alpha = 0.4 * (1.0 - (15.0_f64 / 16.0).powi(5));
    assert_near(beta, (ecn_alpha - 0.09375) / 0.09375, 1e-9);
    // Neither few packets nor a short time are an update.
    signals.end_recovery();
    assert_eq!(frame(&mut signals, 7, 15, 15), None);
    assert_eq!(frame(&mut signals, 7, 1, 1), Some(0.25));
    assert_eq!(frame(&mut signals, 7, 20, 20), None);
    assert!(signals.has_marks());
}

#[test]
fn section_4_2_initial_grows_by_what_is_acknowledged_and_ends_after_three_flat_eras() {
    let mut sender = Sender::new();
    sender.round(10);
    assert_eq!(sender.c4.window(), 10 * DATAGRAM);
    assert!(sender.c4.pacing(&sender.rtt).rate.is_unlimited());
    sender.round(20);
    assert_eq!(sender.c4.window(), 20 * DATAGRAM);
    // 100 kB/s is measured, and 128 KiB/s is the least pacing rate; later it is twice the measured rate.
    assert_eq!(
        sender.c4.pacing(&sender.rtt).rate,
        rate(131_072).max(rate(2 * sender.rate() as u64))
    );
    // The path delivers no more than 40 packets a round.
    for count in [40, 40] {
        sender.round(count);
        assert_eq!(sender.c4.state().phase, Phase::Startup);
    }
    sender.round(40);
    let rounds = sender.until(Phase::Recovery, 40);
    assert!((2..=4).contains(&rounds), "{rounds}");
    assert_near(sender.rate(), 400_000.0, 0.03);
    let window = sender
        .c4
        .statistics
        .window_exiting_startup
        .expect("it ended");
    let estimate = window as f64 / 2.0 / sender.rate();
    let found = sender.c4.nominal_max_rtt.expect("measured").as_secs_f64();
    assert_near(found, estimate.max(ROUND.as_secs_f64()), 0.01);
}

/// A sender with this window and round-trip time saved, whose initial window of ten packets was sent.
fn returning(window: u64, rtt: Duration) -> Sender {
    let mut sender = Sender::new();
    sender.c4.on_saved_path(&SavedPath { window, rtt });
    sender.round(10);
    assert_eq!(sender.c4.state().phase, Phase::Startup);
    sender
}

#[test]
fn section_4_3_window_and_rate_are_pegged_to_half_of_the_saved_for_two_eras() {
    let mut sender = returning(400 * DATAGRAM, ROUND);
    assert_eq!(
        sender.c4.statistics.saved_path.map(|saved| saved.window),
        Some(400 * DATAGRAM)
    );
    // The tenth acknowledgment confirms the path (RFC 9959 §3.2).
    for _ in 0..9 {
        sender.acknowledge(ROUND, 0);
        assert_eq!(sender.c4.state().phase, Phase::Startup);
    }
    sender.acknowledge(ROUND, 0);
    assert_eq!(sender.c4.state().phase, Phase::Resuming);
    assert_eq!(sender.c4.state().statistics.jump_window, Some(200_000));
    for _ in 0..2 {
        assert_eq!(sender.c4.window(), 200 * DATAGRAM);
        assert_eq!(sender.c4.pacing(&sender.rtt).rate, rate(2_000_000));
        assert_eq!(sender.c4.state().phase, Phase::Resuming);
        sender.round(200);
    }
    // The first acknowledgment of what was sent in the second era ends it; what the path delivered is the nominal rate.
    sender.round(200);
    assert_eq!(sender.c4.state().phase, Phase::Recovery);
    assert_near(sender.rate(), 2_000_000.0, 0.02);
    assert_near(sender.c4.era.alpha, DRAIN, 1e-9);
    sender.until(Phase::Cruising, 180);
    assert_eq!(sender.c4.saved, None);
}

#[test]
fn section_4_3_the_first_era_lasts_while_the_application_has_nothing_to_send() {
    let mut sender = returning(400 * DATAGRAM, ROUND);
    sender.round(0);
    for _ in 0..5 {
        sender.c4.on_app_limited(sender.now, sender.in_flight());
        sender.round(2);
        assert_eq!(sender.c4.state().phase, Phase::Resuming);
        assert_eq!(sender.c4.window(), 200 * DATAGRAM);
    }
    // The second ends, whether the application has something to send or not.
    let rounds = sender.until(Phase::Recovery, 200);
    assert!((2..=4).contains(&rounds), "{rounds}");
}

#[test]
fn section_4_3_congestion_ends_it_without_a_reduction_of_the_nominal_rate() {
    let mut sender = returning(400 * DATAGRAM, ROUND);
    sender.round(200);
    let before = sender.rate();
    for _ in 0..15 {
        sender.lose(false);
    }
    assert_eq!(sender.c4.state().phase, Phase::Recovery);
    assert_near(sender.rate(), before, 1e-9);
    assert!(sender.c4.window() < 20 * DATAGRAM);
}

#[test]
fn section_4_3_nothing_is_resumed_unless_rfc9959_permits() {
    let phase = |prepare: &dyn Fn(&mut Sender), window: u64, rtt: Duration| {
        let mut sender = returning(window, rtt);
        prepare(&mut sender);
        sender.round(20);
        sender.c4.state().phase
    };
    let none = |_: &mut Sender| {};
    // The largest window is that of the configuration.
    assert_eq!(phase(&none, u64::MAX, ROUND), Phase::Resuming);
    // §3.2 and §4.2.1: a round-trip time of at most half of the saved one, or more than ten times.
    assert_eq!(phase(&none, 400_000, ms(199)), Phase::Resuming);
    assert_eq!(phase(&none, 400_000, ms(200)), Phase::Startup);
    assert_eq!(phase(&none, 400_000, ms(10)), Phase::Resuming);
    assert_eq!(phase(&none, 400_000, ms(9)), Phase::Startup);
    // §3.2: a loss before the initial window is acknowledged.
    let lose = |sender: &mut Sender| sender.lose(false);
    assert_eq!(phase(&lose, 400_000, ROUND), Phase::Startup);
    // Half of it is no more than the window by then.
    assert_eq!(phase(&none, 36_000, ROUND), Phase::Startup);
    let off = |sender: &mut Sender| sender.c4.resume_max = None;
    assert_eq!(phase(&off, 400_000, ROUND), Phase::Startup);
}

#[test]
fn section_4_2_few_packets_are_no_measure_of_loss() {
    let mut sender = Sender::new();
    sender.round(20);
    sender.round(20);
    assert_eq!(sender.c4.packets_acked, 20);
    for _ in 0..10 {
        sender.lose(false);
    }
    assert_eq!(sender.c4.state().phase, Phase::Startup);
    sender.round(20);
    let before = sender.rate();
    for _ in 0..10 {
        sender.lose(false);
    }
    assert_eq!(sender.c4.state().phase, Phase::Recovery);
    // No reduction: the sender was faster than the nominal rate.
    assert_near(sender.rate(), before, 1e-9);
}

#[test]
fn section_4_1_states_scale_rate_and_window() {
    let mut sender = Sender::cruising(100);
    let nominal = sender.rate();
    assert_near(nominal, 1e6, 0.02);
    let mut found = Vec::new();
    for phase in [Phase::Cruising, Phase::Probing, Phase::Recovery] {
        sender.until(phase, 100);
        let pacing = sender.c4.pacing(&sender.rtt);
        found.push(pacing.rate.bytes_per_second() as f64 / sender.rate());
        assert_eq!(pacing.burst, pacing.rate.bytes_in(ms(4)));
        // The nominal max RTT and a margin of at most 15 ms.
        let rtt = sender.c4.nominal_max_rtt.expect("measured");
        assert_eq!(sender.c4.window(), pacing.rate.bytes_in(rtt + ms(15)));
    }
    for (found, expected) in found.into_iter().zip([1.0, 17.0 / 16.0, 15.0 / 16.0]) {
        assert_near(found, expected, 1e-4);
    }
}

#[test]
fn section_4_5_cruising_takes_two_eras_and_probing_one() {
    let mut sender = Sender::cruising(100);
    assert_eq!(sender.until(Phase::Probing, 100), 2);
    assert_eq!(sender.until(Phase::Recovery, 100), 1);
    assert_eq!(sender.until(Phase::Cruising, 100), 1);
    // An application-limited era does not count.
    sender.c4.on_app_limited(sender.now, 0);
    assert_eq!(sender.until(Phase::Probing, 100), 3);
}

#[test]
fn section_4_6_a_successful_probe_is_followed_by_pushing() {
    let (mut sender, nominal) = Sender::after_a_probe();
    // What Pushing sends arrives at its rate. It continues while the rate grows by 3/16 a round, and becomes Initial after three.
    let mut count = 1330;
    for _ in 0..4 {
        sender.round(count);
        assert_eq!(sender.c4.state().phase, Phase::Pushing);
        count = count * 5 / 4;
    }
    let paced = sender.c4.pacing(&sender.rtt).rate.bytes_per_second() as f64;
    assert_near(paced, sender.rate() * 1.25, 1e-3);
    sender.round(count);
    assert_eq!(sender.c4.state().phase, Phase::Startup);
    assert!(
        sender.rate() > 1.8 * nominal,
        "{} of {nominal}",
        sender.rate()
    );
}

#[test]
fn section_4_7_pushing_ends_when_the_rate_stops_growing() {
    let (mut sender, nominal) = Sender::after_a_probe();
    sender.round(1070);
    assert_eq!(sender.until(Phase::Recovery, 1070), 2);
    assert_near(sender.rate(), nominal * 1.07, 0.01);
}

#[test]
fn section_5_5_1_a_delay_in_cruising_reduces_the_rate_in_proportion() {
    let mut sender = Sender::cruising(100);
    let (nominal, max) = (sender.rate(), sender.c4.nominal_max_rtt.expect("measured"));
    let threshold = signals::delay_threshold(rate(nominal as u64), max);
    // A tenth of the threshold beyond it.
    sender.acknowledge(max + threshold + threshold / 10, 0);
    assert_eq!(sender.c4.state().phase, Phase::Recovery);
    assert_near(sender.rate(), nominal * 0.9, 1e-3);
    // The next ones are of packets sent before.
    sender.acknowledge(max * 2, 0);
    assert_near(sender.rate(), nominal * 0.9, 1e-3);
    assert_eq!(sender.c4.statistics.loss_episodes, 1);

    // At most a quarter at a time.
    let mut sender = Sender::cruising(100);
    sender.acknowledge(max * 2, 0);
    assert_near(sender.rate(), nominal * 0.75, 1e-3);
}

#[test]
fn section_3_1_the_rate_does_not_rise_in_recovery_from_congestion() {
    let mut sender = Sender::cruising(100);
    let nominal = sender.rate();
    sender.acknowledge(ms(200), 0);
    let reduced = sender.rate();
    assert!(reduced < nominal);
    while sender.c4.state().phase == Phase::Recovery {
        assert_near(sender.rate(), reduced, 1e-9);
        sender.acknowledge(ROUND, 0);
        sender.send();
        sender.now = sender.now + ms(1);
    }
}

#[test]
fn section_5_4_marks_end_cruising_and_make_probes_smaller() {
    let mut sender = Sender::cruising(100);
    let nominal = sender.rate();
    sender.round_with(100, |_| (ROUND, 1));
    assert_eq!(sender.c4.state().phase, Phase::Recovery);
    assert_near(sender.rate(), nominal * 0.75, 1e-3);
    assert_eq!(sender.c4.statistics.ecn_episodes, 1);
    sender.until(Phase::Probing, 70);
    assert!((sender.c4.era.alpha - 33.0 / 32.0).abs() < 1e-9);
}

#[test]
fn draining_follows_initial_pushing_and_a_shorter_path() {
    let alpha = |sender: &Sender| sender.c4.era.alpha;
    let mut sender = Sender::new();
    sender.until(Phase::Recovery, 100);
    assert_near(alpha(&sender), 7.0 / 8.0, 1e-9);
    // After Probing, there is nothing to drain.
    sender.until(Phase::Cruising, 100);
    sender.until(Phase::Recovery, 100);
    assert_near(alpha(&sender), 15.0 / 16.0, 1e-9);
    let (mut sender, _) = Sender::after_a_probe();
    sender.until(Phase::Pushing, 1070);
    sender.until(Phase::Recovery, 1070);
    assert_near(alpha(&sender), 7.0 / 8.0, 1e-9);

    let mut sender = Sender::cruising(100);
    sender.round_with(100, |_| (ms(80), 0));
    sender.until(Phase::Recovery, 100);
    assert_near(alpha(&sender), 7.0 / 8.0, 1e-9);
}

#[test]
fn trimming_halves_the_distance_to_what_is_delivered() {
    let mut sender = Sender::cruising(100);
    let nominal = sender.rate();
    // 90 packets a round are delivered, and there is no congestion. After a whole cycle of that, the rate is half as far from it.
    for _ in 0..8 {
        sender.round(90);
    }
    assert_near(sender.rate(), nominal * 0.95, 0.01);
    // Not if the application had no more to send.
    let mut sender = Sender::cruising(100);
    for _ in 0..12 {
        sender.c4.on_app_limited(sender.now, sender.in_flight());
        sender.round(90);
    }
    assert_near(sender.rate(), nominal, 1e-3);
}

#[test]
fn a_delay_that_is_no_jitter_ends_initial() {
    for (sample, phase) in [(ms(340), Phase::Startup), (ms(360), Phase::Recovery)] {
        let mut sender = Sender::new();
        // The rate doubles in each era.
        for count in [10, 20, 40] {
            sender.round(count);
        }
        sender.acknowledge(sample, 0);
        assert_eq!(sender.c4.state().phase, phase);
    }
}

#[test]
fn section_3_2_jitter_raises_the_nominal_max_rtt_at_once_and_is_forgotten_slowly() {
    let mut sender = Sender::cruising(10);
    let before = sender.c4.nominal_max_rtt.expect("measured");
    // 100 kB/s: the threshold is a quarter, less the little that sensitivity takes.
    sender.round_with(10, |step| (if step == 5 { ms(115) } else { ROUND }, 0));
    sender.round(10);
    let raised = sender.c4.nominal_max_rtt.expect("measured");
    assert!(
        raised > before && raised > ms(113),
        "{before:?}, {raised:?}"
    );
    sender.round(10);
    let later = sender.c4.nominal_max_rtt.expect("measured");
    assert!(later < raised && later > ms(110), "{raised:?}, {later:?}");
}

#[test]
fn section_4_4_1_high_jitter_restarts_initial_once() {
    let mut sender = Sender::cruising(10);
    let mut restarts = 0;
    for _ in 0..60 {
        let before = sender.c4.state().phase;
        // Every tenth sample is 220 ms longer.
        sender.round_with(10, |step| (if step == 5 { ms(320) } else { ROUND }, 0));
        let after = sender.c4.state().phase;
        restarts += u32::from(before != Phase::Startup && after == Phase::Startup);
    }
    assert_eq!(restarts, 1);
}

#[test]
fn persistent_congestion_restarts_with_the_least_window() {
    let mut sender = Sender::cruising(100);
    sender.lose(true);
    sender.sent.clear();
    assert_eq!(sender.c4.window(), 2 * DATAGRAM);
    assert_eq!(sender.c4.state().phase, Phase::Startup);
    assert_eq!(sender.c4.statistics.persistent_congestions, 1);
    sender.until(Phase::Cruising, 50);
    assert_near(sender.rate(), 500_000.0, 0.1);
}

#[test]
fn section_5_5_2_congestion_in_a_row_falls_back_to_what_was_measured() {
    let mut sender = Sender::cruising(100);
    // The path delivers a tenth of the rate, and drops the rest.
    let mut rates = Vec::new();
    while sender.c4.congestion_events < 2 {
        rates.push(sender.rate());
        sender.round(100);
        (0..90).for_each(|_| sender.lose(false));
    }
    assert!(rates.len() < 8, "{rates:?}");
    // Two reductions alone leave 0.56 of it.
    assert_near(sender.rate(), 1e5, 0.3);
}

#[test]
fn a_handshake_is_not_the_first_estimate() {
    let mut sender = Sender::new();
    sender.round(4);
    sender.round(10);
    assert_eq!(sender.c4.nominal_rate, None);
    assert!(sender.c4.pacing(&sender.rtt).rate.is_unlimited());
    sender.round(10);
    assert_near(sender.rate(), 90_000.0, 0.1);
}
