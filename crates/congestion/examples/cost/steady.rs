//! A flow in steady state: a hundred packets in flight, and ACK frames of two packets, forever.

use std::{collections::VecDeque, hint::black_box, time::Duration};

use lastbyte_congestion::{
    Ack, Controller, ControllerFactory, Environment, Loss, Packet, Rtt, Sent, Spec, Time,
};

const DATAGRAM: u64 = 1452;

/// What is measured: a label, a spec, and whether the flow has had a loss, which takes it to its avoidance.
pub(crate) const CASES: &[(&str, &str, bool)] = &[
    ("slow-start", "slow-start", false),
    ("hystart", "hystart", false),
    ("search", "search", false),
    ("rapid-start", "rapid-start", false),
    ("newreno", "newreno", true),
    ("cubic", "cubic", true),
    ("pico", "pico", true),
    ("bbr", "bbr", true),
];

/// The flow.
#[derive(Debug)]
pub(crate) struct Flow {
    controller: Box<dyn Controller>,
    rtt: Rtt,
    now: Time,
    in_flight: u64,
    sent: VecDeque<Packet>,
}

impl Flow {
    /// A flow of this spec, with a loss behind it or not.
    pub(crate) fn new(spec: &str, loss: bool) -> Self {
        let spec: Spec = spec.parse().expect("a spec");
        let mut flow = Self {
            controller: spec.build(&Environment {
                max_datagram_size: DATAGRAM,
                seed: 1,
            }),
            rtt: Rtt::default(),
            now: Time::ZERO,
            in_flight: 0,
            sent: VecDeque::with_capacity(128),
        };
        for _ in 0..100 {
            flow.now = flow.now + Duration::from_micros(200);
            flow.send();
        }
        if loss {
            flow.lose();
        }
        for _ in 0..1000 {
            flow.frame();
        }
        flow
    }

    fn send(&mut self) {
        self.in_flight += DATAGRAM;
        let receipt = self.controller.on_sent(&Sent {
            now: self.now,
            bytes: DATAGRAM,
            in_flight: self.in_flight,
            rtt: &self.rtt,
        });
        self.sent.push_back(Packet {
            bytes: DATAGRAM,
            sent_at: self.now,
            receipt,
        });
    }

    /// The oldest packet is lost, and another sent.
    pub(crate) fn lose(&mut self) {
        if let Some(packet) = self.sent.pop_front() {
            self.in_flight -= packet.bytes;
            self.controller.on_packet_lost(self.now, &packet);
            self.controller.on_lost(&Loss {
                now: self.now,
                in_flight: self.in_flight,
                rtt: &self.rtt,
                persistent: false,
            });
            self.send();
        }
    }

    /// One ACK frame of two packets, the questions a sender asks, and two packets sent in their place.
    pub(crate) fn frame(&mut self) {
        self.now = self.now + Duration::from_micros(400);
        for is_largest in [false, true] {
            let Some(packet) = self.sent.pop_front() else {
                continue;
            };
            self.in_flight -= packet.bytes;
            if is_largest {
                let sample = self.now.since(packet.sent_at);
                self.rtt.update(self.now, sample, Duration::ZERO, None);
            }
            self.controller.on_packet_acked(self.now, &packet);
        }
        self.controller.on_ack(&Ack {
            now: self.now,
            in_flight: self.in_flight,
            rtt: &self.rtt,
            has_rtt_sample: true,
        });
        black_box(self.controller.window());
        black_box(self.controller.pacing(&self.rtt));
        self.send();
        self.send();
    }
}
