use alloc::{boxed::Box, vec::Vec};
use core::time::Duration;

use lastbyte_units::Time;

use crate::{
    avoidance::{Avoidance, Cubic, NewReno, Pico},
    config::{AppLimited, Config, WindowSize},
    controller::{Ack, Controller, Loss, Packet, Sent},
    rtt::Rtt,
    startup::{QueueThreshold, RapidStart, SlowStart, Startup},
    window::WindowController,
};

/// A path of 100 ms and datagrams of 1000 bytes. Each round sends some packets, runs dry, and gets an ACK for two at a time.
struct Flow {
    controller: WindowController,
    rtt: Rtt,
    now: Time,
    in_flight: u64,
}

impl Flow {
    fn new(
        startup: Box<dyn Startup>,
        avoidance: impl FnOnce(&Config) -> Box<dyn Avoidance>,
    ) -> Self {
        let config = Config {
            initial_window: WindowSize::Datagrams(10),
            app_limited: AppLimited::RateLimitedIncrease,
            ..Config::default()
        };
        let avoidance = avoidance(&config);
        Self {
            controller: WindowController::new(config, 1000, startup, avoidance),
            rtt: Rtt::default(),
            now: Time::ZERO,
            in_flight: 0,
        }
    }

    fn reno() -> Self {
        Self::new(Box::new(SlowStart), |config| Box::new(NewReno::new(config)))
    }

    fn send(&mut self, count: u64) -> Vec<Packet> {
        let packets = (0..count).map(|_| {
            self.in_flight += 1000;
            let receipt = self.controller.on_sent(&Sent {
                now: self.now,
                bytes: 1000,
                in_flight: self.in_flight,
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

    /// Returns the windows after each ACK.
    fn round(&mut self, count: u64) -> Vec<u64> {
        let packets = self.send(count);
        self.controller.on_app_limited(self.now, self.in_flight);
        self.now = self.now + Duration::from_millis(100);
        let sample = Duration::from_millis(100);
        self.rtt.update(self.now, sample, Duration::ZERO, None);
        let acks = packets.chunks(2).map(|packets| {
            for packet in packets {
                self.in_flight -= 1000;
                self.controller.on_packet_acked(self.now, packet);
            }
            self.controller.on_ack(&Ack {
                now: self.now,
                in_flight: self.in_flight,
                rtt: &self.rtt,
                has_rtt_sample: true,
            });
            self.controller.window()
        });
        acks.collect()
    }

    fn lose(&mut self, packet: &Packet) {
        self.in_flight -= 1000;
        self.controller.on_packet_lost(self.now, packet);
        self.controller.on_lost(&Loss {
            now: self.now,
            in_flight: self.in_flight,
            rtt: &self.rtt,
            persistent: false,
        });
    }
}

#[test]
fn the_example_of_the_appendix_in_bytes() {
    let mut flow = Flow::reno();
    assert_eq!(flow.round(4), [12_000, 14_000]);
    assert_eq!(flow.round(8), [16_000, 18_000, 20_000, 20_000]);
    assert_eq!(flow.round(4), [20_000, 20_000]);
    let last: Vec<u64> = (1..=10).map(|ack| 20_000 + 2000 * ack).collect();
    assert_eq!(flow.round(20), last);
}

#[test]
fn section_3_1_a_flight_of_the_initial_window_allows_twice_that() {
    let mut flow = Flow::reno();
    assert_eq!(flow.round(10).last(), Some(&20_000));
    assert_eq!(flow.round(4).last(), Some(&20_000), "unconstrained: 24000");
}

#[test]
fn the_limit_of_rapid_start_is_its_factor() {
    let mut flow = Flow::new(Box::new(RapidStart::new(QueueThreshold::Min)), |config| {
        Box::new(NewReno::new(config))
    });
    for _ in 0..5 {
        flow.round(8);
    }
    assert_eq!(flow.controller.window(), 30_000);
}

#[test]
fn section_3_in_avoidance_the_limit_counts_from_the_first_flight_after_the_reduction() {
    let mut flow = Flow::reno();
    assert_eq!(flow.round(10).last(), Some(&20_000));
    let packets = flow.send(20);
    flow.lose(&packets[0]);
    flow.in_flight = 0;
    assert_eq!(flow.controller.window(), 10_000);
    // Five of ten packets: no growth, and no further reduction either.
    for _ in 0..20 {
        assert_eq!(flow.round(5).last(), Some(&10_000));
    }
    // Nine packets allow ten, ten allow eleven.
    for _ in 0..20 {
        assert_eq!(flow.round(9).last(), Some(&10_000));
    }
    for _ in 0..20 {
        flow.round(10);
    }
    assert_eq!(flow.controller.window(), 11_000);
}

#[test]
fn limits_of_each_avoidance() {
    let config = Config::default();
    assert_eq!(NewReno::new(&config).limit(10_000, 1000), 11_000);
    assert_eq!(Cubic::new(&config).limit(10_000, 1000), 15_000);
    assert_eq!(Pico::new(&config).limit(10_000, 1000), 11_000);
    assert_eq!(Cubic::new(&config).limit(u64::MAX, 1000), u64::MAX);
}
