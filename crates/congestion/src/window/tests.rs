//! What a startup receives, and what its answer does.

use alloc::{vec, vec::Vec};
use core::time::Duration;

use super::*;
use crate::{avoidance::NewReno, config::WindowSize, startup::Growth};

/// Checks the bytes of each frame, and those delivered, sent and in flight; and gives an answer.
#[derive(Debug)]
struct Script {
    frames: Vec<([u64; 4], Growth)>,
}

impl Startup for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn on_ack(&mut self, ack: &StartupAck<'_>) -> Growth {
        let (expected, growth) = self.frames.remove(0);
        assert_eq!(
            [ack.bytes, ack.delivered, ack.sent, ack.in_flight],
            expected
        );
        growth
    }
}

/// A window of ten datagrams of 1000 bytes. In a round of 100 ms, packets are sent and acknowledged.
struct Flow {
    controller: WindowController,
    rtt: Rtt,
    now: Time,
}

impl Flow {
    fn new(script: Script) -> Self {
        let config = Config {
            initial_window: WindowSize::Datagrams(10),
            ..Config::default()
        };
        let avoidance = Box::new(NewReno::new(&config));
        Self {
            controller: WindowController::new(config, 1000, Box::new(script), avoidance),
            rtt: Rtt::default(),
            now: Time::ZERO,
        }
    }

    fn send(&mut self, count: u64) -> Vec<Packet> {
        let packets = (1..=count).map(|packet| {
            let receipt = self.controller.on_sent(&Sent {
                now: self.now,
                bytes: 1000,
                in_flight: packet * 1000,
                rtt: &self.rtt,
            });
            Packet {
                bytes: 1000,
                sent_at: self.now,
                receipt,
            }
        });
        packets.collect()
    }

    fn round(&mut self, count: u64) -> u64 {
        let packets = self.send(count);
        self.acknowledge(&packets)
    }

    /// Returns the window.
    fn acknowledge(&mut self, packets: &[Packet]) -> u64 {
        self.now = self.now + Duration::from_millis(100);
        let sample = Duration::from_millis(100);
        self.rtt.update(self.now, sample, Duration::ZERO, None);
        for packet in packets {
            self.controller.on_packet_acked(self.now, packet);
        }
        self.controller.on_ack(&Ack {
            now: self.now,
            in_flight: 0,
            rtt: &self.rtt,
            has_rtt_sample: true,
        });
        self.controller.window()
    }
}

#[test]
fn a_startup_receives_totals_while_application_limited_too() {
    let frames = vec![
        ([10_000, 10_000, 10_000, 0], Growth::by(10_000)),
        ([0, 12_000, 12_000, 0], Growth::by(0)),
    ];
    let mut flow = Flow::new(Script { frames });
    assert_eq!(flow.round(10), 20_000);
    let packets = flow.send(2);
    flow.controller.on_app_limited(flow.now, 2000);
    assert_eq!(flow.acknowledge(&packets), 20_000);
}

#[test]
fn a_limit_lowers_the_window_and_the_threshold_follows_at_the_end() {
    let lower = Growth {
        limit: Some(15_000),
        ..Growth::by(10_000)
    };
    let frames = vec![
        ([10_000, 10_000, 10_000, 0], Growth::by(10_000)),
        ([20_000, 30_000, 30_000, 0], lower),
        ([10_000, 40_000, 40_000, 0], Growth::end_at(1)),
    ];
    let mut flow = Flow::new(Script { frames });
    assert_eq!(flow.round(10), 20_000);
    assert_eq!(flow.round(20), 15_000, "lowered, and startup goes on");
    let state = flow.controller.state();
    assert_eq!(state.phase, Phase::Startup);
    assert_eq!(state.statistics.window_min, Some(15_000));
    // Not below the minimum of two datagrams.
    assert_eq!(flow.round(10), 2000);
    let state = flow.controller.state();
    assert_eq!(state.phase, Phase::Avoidance);
    assert_eq!(state.slow_start_threshold, Some(2000));
    assert_eq!(state.statistics.window_exiting_startup, Some(15_000));
    assert_eq!(state.statistics.loss_episodes, 0);
}
