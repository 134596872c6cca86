use alloc::{boxed::Box, vec::Vec};
use core::time::Duration;

use lastbyte_units::Time;

use crate::{
    avoidance::NewReno,
    config::{Config, WindowSize},
    controller::{Ack, Controller, Loss, Packet, Sent},
    rtt::Rtt,
    saved_path::SavedPath,
    startup::SlowStart,
    state::Phase,
    window::WindowController,
};

/// A path of 100 ms, datagrams of 1000 bytes, an initial window of ten and a largest jump of 500.
struct Flow {
    controller: WindowController,
    rtt: Rtt,
    now: Time,
    in_flight: u64,
    sent: Vec<Packet>,
}

impl Flow {
    /// After the initial window is acknowledged, with parameters of this window and RTT.
    fn confirmed(window: u64, rtt_ms: u64) -> Self {
        let mut flow = Self::new(window, rtt_ms);
        flow.send(10);
        flow.ack(0..10);
        flow
    }

    fn new(window: u64, rtt_ms: u64) -> Self {
        let config = Config {
            initial_window: WindowSize::Datagrams(10),
            resume: Some(WindowSize::Datagrams(500)),
            ..Config::default()
        };
        let avoidance = Box::new(NewReno::new(&config));
        let mut controller = WindowController::new(config, 1000, Box::new(SlowStart), avoidance);
        assert!(controller.uses_saved_path());
        controller.on_saved_path(&SavedPath {
            window,
            rtt: Duration::from_millis(rtt_ms),
        });
        Self {
            controller,
            rtt: Rtt::default(),
            now: Time::ZERO,
            in_flight: 0,
            sent: Vec::new(),
        }
    }

    fn send(&mut self, count: u64) {
        for _ in 0..count {
            self.in_flight += 1000;
            let receipt = self.controller.on_sent(&Sent {
                now: self.now,
                bytes: 1000,
                in_flight: self.in_flight,
                rtt: &self.rtt,
            });
            self.sent.push(Packet {
                bytes: 1000,
                sent_at: self.now,
                receipt,
            });
        }
    }

    fn ack(&mut self, packets: core::ops::Range<usize>) {
        self.frame(packets, 0..0);
    }

    /// An ACK frame, 100 ms after the one before.
    fn frame(&mut self, acked: core::ops::Range<usize>, lost: core::ops::Range<usize>) {
        self.now = self.now + Duration::from_millis(100);
        let sample = Duration::from_millis(100);
        self.rtt.update(self.now, sample, Duration::ZERO, None);
        for packet in &self.sent[acked] {
            self.in_flight -= 1000;
            self.controller.on_packet_acked(self.now, packet);
        }
        for packet in &self.sent[lost.clone()] {
            self.in_flight -= 1000;
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
        self.controller.on_ack(&Ack {
            now: self.now,
            in_flight: self.in_flight,
            rtt: &self.rtt,
            has_rtt_sample: true,
        });
    }

    fn window(&self) -> u64 {
        self.controller.window() / 1000
    }
}

#[test]
fn section_3_2_the_jump_waits_until_the_initial_window_is_acknowledged() {
    let mut flow = Flow::new(200_000, 100);
    flow.send(10);
    assert_eq!(flow.window(), 10);
    flow.ack(0..9);
    flow.send(10);
    assert_eq!(flow.window(), 19, "one of the initial packets is missing");
    flow.ack(9..10);
    flow.send(1);
    assert_eq!(flow.window(), 100);
    let statistics = flow.controller.state().statistics;
    assert_eq!(statistics.jump_window, Some(100_000));
    assert_eq!(
        statistics.saved_path.map(|saved| saved.window),
        Some(200_000)
    );
}

#[test]
fn section_3_3_the_jump_is_paced_over_a_round_trip_of_now() {
    let mut flow = Flow::confirmed(200_000, 60);
    flow.send(10);
    assert_eq!(flow.window(), 100);
    let rate = flow.controller.pacing(&flow.rtt).rate;
    assert_eq!(rate.bytes_per_second(), 1_000_000); // 100 packets in 100 ms
}

#[test]
fn section_3_3_the_jump_is_at_most_half_of_what_was_saved_and_the_largest_jump() {
    for (saved, window) in [
        (0, 20),
        (39_999, 20),
        (42_000, 21),
        (999_000, 499),
        (1_000_000, 500),
        (1_000_001, 500),
        (u64::MAX, 500),
    ] {
        let mut flow = Flow::confirmed(saved, 100);
        flow.send(10);
        assert_eq!(flow.window(), window, "{saved}");
    }
}

#[test]
fn section_4_2_1_a_round_trip_of_another_path_forbids_the_jump() {
    for (saved_ms, window) in [
        (9, 20),
        (10, 100),
        (100, 100),
        (199, 100),
        (200, 20),
        (1000, 20),
        (0, 20),
    ] {
        let mut flow = Flow::confirmed(200_000, saved_ms);
        flow.send(10);
        assert_eq!(flow.window(), window, "{saved_ms} ms");
    }
}

#[test]
fn section_3_2_congestion_before_the_jump_forbids_it() {
    let mut flow = Flow::new(200_000, 100);
    flow.send(10);
    flow.frame(1..10, 0..1);
    assert_eq!(flow.window(), 5);
    flow.send(5);
    flow.ack(10..15);
    flow.send(30);
    assert!(flow.window() < 10);
    assert_eq!(flow.controller.state().statistics.jump_window, None);
}

#[test]
fn section_3_3_the_window_falls_to_the_flight_when_the_jump_shows() {
    let mut flow = Flow::confirmed(200_000, 100);
    flow.send(60);
    assert_eq!(flow.window(), 100);
    // The packets before the jump, and the first of it: 49 are left, and the ACK adds 11.
    flow.ack(10..21);
    assert_eq!(flow.window(), 60);
    let statistics = flow.controller.state().statistics;
    assert_eq!(statistics.window_exiting_jump, Some(49_000));
    // Then it grows as in slow start.
    flow.ack(21..70);
    assert_eq!(flow.window(), 109);
}

#[test]
fn section_3_3_a_jump_that_was_hardly_used_ends_at_what_was_in_the_pipe() {
    for (sent, window) in [(11, 21 + 11), (12, 21 + 11)] {
        let mut flow = Flow::confirmed(200_000, 100);
        flow.send(sent);
        assert_eq!(flow.window(), 100);
        flow.ack(10..21);
        // PipeSize: 10 in flight before the jump and 11 acknowledged; then slow start adds 11.
        assert_eq!(flow.window(), window, "{sent}");
    }
}

#[test]
fn section_3_5_congestion_in_the_jump_halves_the_pipe_and_slow_start_ends_there() {
    let mut flow = Flow::confirmed(200_000, 100);
    flow.send(100);
    assert_eq!(flow.window(), 100);
    flow.ack(10..40); // 10 before the jump, 20 of it
    flow.frame(50..80, 40..50);
    // PipeSize: 10 + 30 + 30.
    assert_eq!(flow.window(), 35);
    flow.ack(80..110);
    assert_eq!(flow.window(), 35, "no growth in Safe Retreat");
    assert_eq!(flow.controller.state().phase, Phase::Recovery);
    flow.send(1);
    flow.ack(110..111);
    // PipeSize is 100 now.
    let state = flow.controller.state();
    assert_eq!(state.slow_start_threshold, Some(50_000));
    assert_eq!(state.phase, Phase::SlowStart);
}

#[test]
fn a_jump_whose_congestion_was_spurious_is_no_longer_in_retreat() {
    let mut flow = Flow::confirmed(200_000, 100);
    flow.send(100);
    flow.frame(12..30, 10..12);
    assert!(flow.window() < 20);
    for packet in [10, 11] {
        let packet = flow.sent[packet];
        flow.controller.on_spurious_loss(flow.now, &packet);
    }
    assert_eq!(flow.window(), 100);
    assert_eq!(flow.controller.state().slow_start_threshold, None);
}

#[test]
fn without_the_setting_saved_parameters_are_ignored() {
    let config = Config::default();
    let avoidance = Box::new(NewReno::new(&config));
    let mut controller = WindowController::new(config, 1000, Box::new(SlowStart), avoidance);
    assert!(!controller.uses_saved_path());
    controller.on_saved_path(&SavedPath {
        window: 1_000_000,
        rtt: Duration::from_millis(10),
    });
    assert_eq!(controller.state().statistics.saved_path, None);
}
