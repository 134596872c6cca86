use lastbyte_units::Time;

use super::*;
use crate::rtt::Rtt;

/// Drives HyStart++ one round at a time: all packets of a round have the same RTT.
struct Flow {
    hystart: HyStart,
    window: u64,
    /// Packets sent so far; all before it are acknowledged when a round ends.
    sent: u64,
    acked: u64,
}

impl Flow {
    fn new() -> Self {
        Self {
            hystart: HyStart::new(),
            window: 100,
            sent: 100,
            acked: 0,
        }
    }

    /// One packet of one byte is acknowledged, with an RTT sample of this many microseconds.
    fn ack(&mut self, rtt_us: u64) -> Growth {
        let growth = self.hystart.on_ack(&StartupAck {
            now: Time::ZERO,
            bytes: 4,
            delivered: 0,
            sent: 0,
            in_flight: 0,
            window: self.window,
            largest_acked: self.acked,
            next: self.sent,
            rtt: &Rtt::default(),
            rtt_sample: Some(Duration::from_micros(rtt_us)),
        });
        self.acked += 1;
        self.window += growth.bytes;
        growth
    }

    /// Acknowledges everything sent before the round started, and the first packet sent in it, which ends it.
    fn round(&mut self, rtt_us: u64) -> bool {
        let end = self.sent;
        let mut done = false;
        while self.acked < end {
            done |= self.ack(rtt_us).done;
        }
        self.sent += 100;
        done | self.ack(rtt_us).done
    }

    fn is_conservative(&self) -> bool {
        self.hystart.conservative.is_some()
    }
}

#[test]
fn rfc9406_4_2_threshold_is_an_eighth_between_4_and_16_ms() {
    let of = |millis| threshold(Duration::from_millis(millis));
    assert_eq!(of(8), Duration::from_millis(4));
    assert_eq!(of(32), Duration::from_millis(4));
    assert_eq!(of(64), Duration::from_millis(8));
    assert_eq!(of(128), Duration::from_millis(16));
    assert_eq!(of(600), Duration::from_millis(16));
}

#[test]
fn rfc9406_4_2_exits_slow_start_at_the_threshold_and_not_below() {
    let mut flow = Flow::new();
    flow.round(80_000);
    flow.round(89_999);
    assert!(!flow.is_conservative());
    let mut flow = Flow::new();
    flow.round(80_000);
    flow.round(90_000);
    assert!(flow.is_conservative());
}

#[test]
fn rfc9406_4_2_decides_from_the_eighth_sample_of_a_round() {
    let mut flow = Flow::new();
    flow.round(80_000);
    for sample in 1..=7 {
        flow.ack(120_000);
        assert!(!flow.is_conservative(), "after {sample} samples");
    }
    flow.ack(120_000);
    assert!(flow.is_conservative());
}

#[test]
fn rfc9406_4_2_smallest_sample_of_a_round_counts() {
    let mut flow = Flow::new();
    flow.round(80_000);
    flow.ack(80_500);
    for _ in 0..50 {
        flow.ack(140_000);
    }
    assert!(!flow.is_conservative());
}

#[test]
fn rfc9406_4_2_grows_by_a_quarter_in_conservative_slow_start() {
    let mut flow = Flow::new();
    assert_eq!(flow.ack(80_000), Growth::by(4));
    flow.round(80_000);
    flow.round(120_000);
    assert_eq!(flow.ack(120_000), Growth::by(1));
}

#[test]
fn rfc9406_4_2_ends_after_five_conservative_rounds_the_first_included() {
    let mut flow = Flow::new();
    flow.round(80_000);
    for round in 1..=4 {
        assert!(!flow.round(120_000), "round {round}");
    }
    assert!(flow.round(120_000));
}

#[test]
fn rfc9406_4_2_resumes_slow_start_when_the_rtt_falls_below_the_baseline() {
    let mut flow = Flow::new();
    flow.round(80_000);
    flow.round(120_000);
    assert!(flow.is_conservative());
    flow.round(119_000);
    assert!(!flow.is_conservative());
    assert_eq!(flow.ack(119_000), Growth::by(4));
}
