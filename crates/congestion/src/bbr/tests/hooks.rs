//! Whatever a transport tells, in whatever order: nothing overflows, and the promises of [`Controller`] hold.

use core::time::Duration;

use proptest::prelude::*;

use super::path::SIZE;
use crate::{
    Ack, Bbr, Controller, DeliverySnapshot, EcnCe, IdleRestart, Loss, Packet, Receipt, Rtt, Sent,
    Time, bbr::Config,
};

#[derive(Clone, Copy, Debug)]
enum Hook {
    Sent(u64, u64, u64),
    AppLimited(u64, u64),
    /// Of a packet sent before, or one of which only this is known.
    Acked(u64, usize, Option<Packet>),
    Lost(u64, usize, Option<Packet>),
    Spurious(u64, usize, Option<Packet>),
    CloseLosses(u64, u64, bool),
    Marked(u64, u64, u64),
    Ack(u64, u64, Option<u64>),
    Mtu(u64),
    IdleRestart(u64),
}

/// Anything, and often what sits at an edge or is plausible.
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
    let packet =
        (number(), number(), number(), delivery).prop_map(|(bytes, sent_at, order, delivery)| {
            Packet {
                bytes,
                sent_at: Time::from_nanos(sent_at),
                receipt: Receipt { order, delivery },
            }
        });
    prop::option::weighted(0.1, packet).boxed()
}

fn hook() -> impl Strategy<Value = Hook> {
    let packet = || (number(), any::<usize>(), stray());
    prop_oneof![
        6 => (number(), number(), number()).prop_map(|(a, b, c)| Hook::Sent(a, b, c)),
        1 => (number(), number()).prop_map(|(a, b)| Hook::AppLimited(a, b)),
        6 => packet().prop_map(|(a, b, c)| Hook::Acked(a, b, c)),
        3 => packet().prop_map(|(a, b, c)| Hook::Lost(a, b, c)),
        1 => packet().prop_map(|(a, b, c)| Hook::Spurious(a, b, c)),
        1 => (number(), number(), any::<bool>()).prop_map(|(a, b, c)| Hook::CloseLosses(a, b, c)),
        1 => (number(), number(), number()).prop_map(|(a, b, c)| Hook::Marked(a, b, c)),
        6 => (number(), number(), prop::option::of(number())).prop_map(|(a, b, c)| Hook::Ack(a, b, c)),
        1 => number().prop_map(Hook::Mtu),
        1 => number().prop_map(Hook::IdleRestart),
    ]
}

/// A controller, its transport's memory, and a clock that mostly runs forward, by steps or at once.
struct Driver {
    bbr: Bbr,
    rtt: Rtt,
    packets: Vec<Packet>,
    now: Time,
    max_datagram_size: u64,
}

impl Driver {
    fn advance(&mut self, step: u64) -> Time {
        self.now = match step {
            u64::MAX => Time::ZERO,
            _ => self.now + Duration::from_nanos(step),
        };
        self.now
    }

    fn packet(&self, index: usize, stray: Option<Packet>) -> Packet {
        let known = self.packets.get(index % self.packets.len().max(1));
        stray.or(known.copied()).unwrap_or(Packet {
            bytes: SIZE,
            sent_at: self.now,
            receipt: Receipt::default(),
        })
    }

    fn tell(&mut self, hook: Hook) {
        match hook {
            Hook::Sent(step, bytes, in_flight) => {
                let now = self.advance(step);
                let rtt = &self.rtt;
                let receipt = self.bbr.on_sent(&Sent {
                    now,
                    bytes,
                    in_flight,
                    rtt,
                });
                self.packets.push(Packet {
                    bytes,
                    sent_at: now,
                    receipt,
                });
            }
            Hook::AppLimited(step, in_flight) => {
                let now = self.advance(step);
                self.bbr.on_app_limited(now, in_flight);
            }
            Hook::Acked(step, index, stray) => {
                let (now, packet) = (self.advance(step), self.packet(index, stray));
                self.bbr.on_packet_acked(now, &packet);
            }
            Hook::Lost(step, index, stray) => {
                let (now, packet) = (self.advance(step), self.packet(index, stray));
                self.bbr.on_packet_lost(now, &packet);
            }
            Hook::Spurious(step, index, stray) => {
                let (now, packet) = (self.advance(step), self.packet(index, stray));
                self.bbr.on_spurious_loss(now, &packet);
            }
            Hook::CloseLosses(step, in_flight, persistent) => {
                let now = self.advance(step);
                let rtt = &self.rtt;
                self.bbr.on_lost(&Loss {
                    now,
                    in_flight,
                    rtt,
                    persistent,
                });
            }
            Hook::Marked(step, order, in_flight) => {
                let now = self.advance(step);
                let largest_acked = Receipt {
                    order,
                    ..Receipt::default()
                };
                let rtt = &self.rtt;
                self.bbr.on_ecn_ce(&EcnCe {
                    now,
                    newly_marked: 1,
                    largest_acked,
                    in_flight,
                    rtt,
                });
            }
            Hook::Ack(step, in_flight, sample) => {
                let now = self.advance(step);
                if let Some(nanos) = sample {
                    self.rtt
                        .update(now, Duration::from_nanos(nanos), Duration::ZERO, None);
                }
                let (rtt, has_rtt_sample) = (&self.rtt, sample.is_some());
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
            Hook::IdleRestart(step) => {
                let (idle, now) = (Duration::from_nanos(step), self.advance(step));
                self.bbr.on_idle_restart(&IdleRestart {
                    now,
                    idle,
                    rtt: &self.rtt,
                });
            }
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let size = self.max_datagram_size;
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
    fn arbitrary_hooks_break_no_promise(
        initial_window in number(),
        max_datagram_size in number(),
        seed in any::<u64>(),
        hooks in prop::collection::vec(hook(), 0..100),
    ) {
        let mut driver = Driver {
            bbr: Bbr::new(Config { initial_window, max_datagram_size, seed }),
            rtt: Rtt::default(),
            packets: Vec::new(),
            now: Time::ZERO,
            max_datagram_size: max_datagram_size.max(1),
        };
        for hook in hooks {
            driver.tell(hook);
            driver.check()?;
        }
    }
}
