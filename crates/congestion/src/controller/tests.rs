use alloc::boxed::Box;

use lastbyte_units::Time;

use super::{
    Ack, Controller, ControllerFactory, EcnCe, Environment, IdleRestart, Loss, Pacing, Packet,
    Receipt, Sent,
};
use crate::{
    rtt::Rtt,
    state::{Phase, State, Statistics},
};

/// A controller with only the required methods: its window is halved by each loss.
#[derive(Debug)]
struct Minimal {
    window: u64,
    sent: u64,
}

impl Controller for Minimal {
    fn on_sent(&mut self, _: &Sent<'_>) -> Receipt {
        self.sent += 1;
        Receipt::new(self.sent - 1)
    }

    fn on_packet_acked(&mut self, _: Time, _: &Packet) {}

    fn on_packet_lost(&mut self, _: Time, _: &Packet) {}

    fn on_lost(&mut self, _: &Loss<'_>) {
        self.window /= 2;
    }

    fn on_ack(&mut self, _: &Ack<'_>) {}

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing(&self, _: &Rtt) -> Pacing {
        Pacing::UNLIMITED
    }

    fn state(&self) -> State {
        State {
            startup: "minimal",
            avoidance: None,
            phase: Phase::Avoidance,
            window: self.window,
            slow_start_threshold: None,
            bandwidth: None,
            statistics: Statistics::new(self.window),
        }
    }
}

#[derive(Debug)]
struct MinimalFactory;

impl ControllerFactory for MinimalFactory {
    fn build(&self, environment: &Environment) -> Box<dyn Controller> {
        Box::new(Minimal {
            window: 10 * environment.max_datagram_size,
            sent: 0,
        })
    }
}

#[test]
fn default_methods_respond_to_marks_like_losses_and_ignore_the_rest() {
    let (now, rtt) = (Time::ZERO, Rtt::default());
    let mut controller = MinimalFactory.build(&Environment {
        max_datagram_size: 1200,
        seed: 1,
    });
    let receipt = controller.on_sent(&Sent {
        now,
        bytes: 1200,
        in_flight: 1200,
        rtt: &rtt,
    });
    assert_eq!(receipt.send_index(), 0);
    controller.on_app_limited(now, 0);
    controller.on_mtu(9000);
    controller.on_idle_restart(&IdleRestart {
        now,
        idle: core::time::Duration::from_secs(60),
        rtt: &rtt,
    });
    let packet = Packet {
        bytes: 1200,
        sent_at: now,
        receipt,
    };
    controller.on_spurious_loss(now, &packet);
    assert_eq!(controller.window(), 12_000);
    controller.on_ecn_ce(&EcnCe {
        now,
        newly_marked: 1,
        largest_acked: receipt,
        in_flight: 0,
        rtt: &rtt,
    });
    assert_eq!(controller.window(), 6000);
}
