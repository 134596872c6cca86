use lastbyte_congestion::{
    Ack, Controller, ControllerFactory, Loss, Pacing, Packet, Phase, Receipt, Sent, State,
    Statistics,
};

use super::*;

/// A window that never changes, of four datagrams.
#[derive(Debug)]
struct Fixed {
    window: u64,
    sent: u64,
}

impl ControllerFactory for Fixed {
    fn build(&self, environment: &Environment) -> Box<dyn Controller> {
        let window = 4 * environment.max_datagram_size;
        Box::new(Self { window, sent: 0 })
    }
}

impl Controller for Fixed {
    fn on_sent(&mut self, _: &Sent<'_>) -> Receipt {
        self.sent += 1;
        Receipt::new(self.sent - 1)
    }

    fn on_packet_acked(&mut self, _: Time, _: &Packet) {}

    fn on_packet_lost(&mut self, _: Time, _: &Packet) {}

    fn on_lost(&mut self, _: &Loss<'_>) {}

    fn on_ack(&mut self, _: &Ack<'_>) {}

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing(&self, _: &Rtt) -> Pacing {
        Pacing::UNLIMITED
    }

    fn state(&self) -> State {
        State {
            startup: "fixed",
            avoidance: None,
            phase: Phase::Avoidance,
            window: self.window,
            slow_start_threshold: None,
            bandwidth: None,
            statistics: Statistics::new(self.window),
        }
    }
}

#[test]
fn a_factory_from_outside_the_crates_controls_a_connection() {
    let server_config = Config::with_controllers(Arc::new(Fixed { window: 0, sent: 0 }));
    let mut pair = Pair::with_configs(1, Faults::default(), config(), server_config);
    pair.shake_hands();
    pair.transfer(&body(100, 1), &body(100_000, 2));
    let state = pair.server.recovery().congestion();
    assert_eq!((state.startup, state.window), ("fixed", 4800));
}
