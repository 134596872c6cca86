//! Any calls in any order: nothing overflows, and the guarantees of [`Controller`] hold.

use core::time::Duration;

use proptest::prelude::*;

use super::path::SIZE;
use crate::{
    Ack, Bbr, Controller, DeliverySnapshot, EcnCe, IdleRestart, Loss, Packet, Receipt, Rtt, Sent,
    Time, bbr::Config,
};

#[derive(Clone, Copy, Debug)]
enum Hook {
    Sent(u64, u64),
    AppLimited(u64),
    /// A packet sent before, or one of which only this is known.
    Fate(Fate, usize, Option<Packet>),
    CloseLosses(u64, bool),
    Marked(u64, u64),
    Ack(u64, Option<u64>),
    Mtu(u64),
    IdleRestart(u64),
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Acked,
    Lost,
    Spurious,
}

/// Anything, and often boundary or plausible values.
fn number() -> BoxedStrategy<u64> {
    prop_oneof![
        any::<u64>(),
        0..200_000_u64,
        Just(0),
        Just(1),
        Just(SIZE),
        Just(u64::MAX),
        (0..64_u32).prop_map(|shift| 1 << shift),
    ]
    .boxed()
}

fn stray() -> BoxedStrategy<Option<Packet>> {
    let delivery = (
        number(),
        number(),
        number(),
        number(),
        number(),
        any::<bool>(),
    )
        .prop_map(
            |(delivered, delivered_at, first_sent_at, lost, in_flight, app_limited)| {
                DeliverySnapshot {
                    delivered,
                    delivered_at: Time::from_nanos(delivered_at),
                    first_sent_at: Time::from_nanos(first_sent_at),
                    lost,
                    in_flight,
                    app_limited,
                }
            },
        );
    let packet = (number(), number(), number(), delivery).prop_map(
        |(bytes, sent_at, send_index, delivery)| Packet {
            bytes,
            sent_at: Time::from_nanos(sent_at),
            receipt: Receipt::with_delivery(send_index, delivery),
        },
    );
    prop::option::weighted(0.1, packet).boxed()
}

fn hook() -> impl Strategy<Value = Hook> {
    let fate =
        prop_oneof![6 => Just(Fate::Acked), 3 => Just(Fate::Lost), 1 => Just(Fate::Spurious)];
    prop_oneof![
        6 => (number(), number()).prop_map(|(bytes, in_flight)| Hook::Sent(bytes, in_flight)),
        1 => number().prop_map(Hook::AppLimited),
        10 => (fate, any::<usize>(), stray()).prop_map(|(fate, index, stray)| Hook::Fate(fate, index, stray)),
        1 => (number(), any::<bool>()).prop_map(|(in_flight, persistent)| Hook::CloseLosses(in_flight, persistent)),
        1 => (number(), number()).prop_map(|(send_index, in_flight)| Hook::Marked(send_index, in_flight)),
        6 => (number(), prop::option::of(number())).prop_map(|(in_flight, rtt)| Hook::Ack(in_flight, rtt)),
        1 => number().prop_map(Hook::Mtu),
        1 => number().prop_map(Hook::IdleRestart),
    ]
}

/// A controller, its transport's memory, and a clock that usually moves forward, in small or large steps.
struct Driver {
    bbr: Bbr,
    rtt: Rtt,
    packets: Vec<Packet>,
    now: Time,
    max_datagram_size: u64,
}

impl Driver {
    /// Advances the clock by a step, or sets it back to the start, and returns it.
    fn step(&mut self, nanos: u64, hook: Hook) {
        self.now = match nanos {
            u64::MAX => Time::ZERO,
            _ => self.now + Duration::from_nanos(nanos),
        };
        self.tell(self.now, hook);
    }

    fn packet(&self, index: usize, stray: Option<Packet>) -> Packet {
        let known = self.packets.get(index % self.packets.len().max(1));
        stray.or(known.copied()).unwrap_or(Packet {
            bytes: SIZE,
            sent_at: self.now,
            receipt: Receipt::default(),
        })
    }

    fn send(&mut self, now: Time, bytes: u64, in_flight: u64) {
        let receipt = self.bbr.on_sent(&Sent {
            now,
            bytes,
            in_flight,
            rtt: &self.rtt,
        });
        self.packets.push(Packet {
            bytes,
            sent_at: now,
            receipt,
        });
    }

    fn tell(&mut self, now: Time, hook: Hook) {
        if let Hook::Ack(_, Some(nanos)) = hook {
            let sample = Duration::from_nanos(nanos);
            self.rtt.update(now, sample, Duration::ZERO, None);
        }
        let rtt = &self.rtt;
        match hook {
            Hook::Sent(bytes, in_flight) => self.send(now, bytes, in_flight),
            Hook::AppLimited(in_flight) => self.bbr.on_app_limited(now, in_flight),
            Hook::Fate(fate, index, stray) => {
                let packet = self.packet(index, stray);
                match fate {
                    Fate::Acked => self.bbr.on_packet_acked(now, &packet),
                    Fate::Lost => self.bbr.on_packet_lost(now, &packet),
                    Fate::Spurious => self.bbr.on_spurious_loss(now, &packet),
                }
            }
            Hook::CloseLosses(in_flight, persistent) => {
                self.bbr.on_lost(&Loss {
                    now,
                    in_flight,
                    rtt,
                    persistent,
                });
            }
            Hook::Marked(send_index, in_flight) => {
                let largest_acked = Receipt::new(send_index);
                self.bbr.on_ecn_ce(&EcnCe {
                    now,
                    newly_marked: 1,
                    largest_acked,
                    in_flight,
                    rtt,
                });
            }
            Hook::Ack(in_flight, sample) => {
                let has_rtt_sample = sample.is_some();
                self.bbr.on_ack(&Ack {
                    now,
                    in_flight,
                    rtt,
                    has_rtt_sample,
                });
            }
            Hook::Mtu(size) => {
                self.bbr.on_mtu(size);
                self.max_datagram_size = size.max(1);
            }
            Hook::IdleRestart(nanos) => {
                let idle = Duration::from_nanos(nanos);
                self.bbr.on_idle_restart(&IdleRestart { now, idle, rtt });
            }
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        // No UDP payload is larger, so the controller clamps it.
        let size = self.max_datagram_size.min(65_527);
        prop_assert!(self.bbr.window() >= size.saturating_mul(4));
        let pacing = self.bbr.pacing(&self.rtt);
        let least = size.saturating_mul(2);
        prop_assert!(
            (least..=least.max(64 * 1024)).contains(&pacing.quantum),
            "{:?}",
            pacing
        );
        prop_assert!(pacing.burst >= pacing.quantum);
        prop_assert!(pacing.rate.bytes_per_second() > 0, "stalled");
        let state = self.bbr.state();
        prop_assert_eq!(state.window, self.bbr.window());
        prop_assert!(state.statistics.window_max >= state.window);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_hooks_keep_the_invariants(
        initial_window in number(),
        max_datagram_size in number(),
        seed in any::<u64>(),
        hooks in prop::collection::vec((number(), hook()), 0..100),
    ) {
        let mut driver = Driver {
            bbr: Bbr::new(Config { initial_window, max_datagram_size, seed, burst: None }),
            rtt: Rtt::default(),
            packets: Vec::new(),
            now: Time::ZERO,
            max_datagram_size: max_datagram_size.max(1),
        };
        for (nanos, hook) in hooks {
            driver.step(nanos, hook);
            driver.check()?;
        }
    }
}
