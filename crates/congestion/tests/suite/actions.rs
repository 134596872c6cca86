//! Random sequences of what may happen to a controller, decoded from bytes: shared by the property tests and the fuzz
//! target. The values are not those of a sane transport: sizes and times may be anything, calls may come in any order.

use std::time::Duration;

use lastbyte_congestion::{
    Ack, Bandwidth, Controller, ControllerFactory, EcnCe, Environment, IdleRestart, Loss, Pacer,
    Packet, Registry, Rtt, SavedPath, Sent, Time,
};

/// The specs under test; the first byte of the input chooses.
pub(crate) const SPECS: &[&str] = &[
    "slow-start",
    "jumpstart",
    "rapid-no-jump",
    "rapid-start",
    "rapid-start:variant=quicly,congestion=pico,initial-window=44160B,beta=0.7",
    "rapid-start:congestion=newreno,startup-beta=0.7,idle=rfc2861",
    "jumpstart:congestion=pico,growth=hystart,idle=rfc5681",
    "hystart:respect-app-limited=off",
    "newreno:idle=rfc9002,min-window=1p",
    "cubic:fast-convergence=off,beta-ecn=0.85",
    "pico",
    "search",
    "search:search-threshold=0.05",
    "search:search-exit=keep,search-threshold=0.05,rate-limited-increase=on",
    "rapid-start:congestion=pico,rate-limited-increase=on",
    "rate-limited:idle=rfc2861,growth=hystart",
    "careful-resume",
    "rapid-start:resume=on,resume-max=500p,burst=2p,startup-pacing-gain=1,startup-beta-ecn=0.8",
    "bbr",
    "c4",
    "c4:resume=on,burst=2p",
    "prague",
    "prague:classic-ecn-fallback=on",
    "rapid-start:congestion=prague",
];

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A size: of a packet, a few, many, or impossible.
    fn size(&mut self) -> Option<u64> {
        let (kind, value) = (self.byte()?, u64::from(self.byte()?));
        Some(match kind {
            0..=199 => 1200,
            200..=229 => value,
            230..=244 => value << 16,
            245..=254 => value << 40,
            255 => u64::MAX,
        })
    }

    /// A span: of microseconds up to centuries.
    fn span(&mut self) -> Option<Duration> {
        let (kind, value) = (self.byte()?, u64::from(self.byte()?));
        Some(match kind {
            0..=99 => Duration::from_micros(value),
            100..=199 => Duration::from_millis(value),
            200..=249 => Duration::from_secs(value),
            250..=254 => Duration::from_secs(value << 32),
            255 => Duration::MAX,
        })
    }
}

struct Driver {
    controller: Box<dyn Controller>,
    pacer: Pacer,
    rtt: Rtt,
    now: Time,
    in_flight: u64,
    sent: Vec<Packet>,
    lost: Vec<Packet>,
    mtu: u64,
    datagrams_min: u64,
}

/// Plays what `bytes` say, checking after each action what must always hold.
pub(crate) fn play(bytes: &[u8]) {
    let mut input = Input(bytes);
    let Some(choice) = input.byte() else { return };
    let spec = SPECS[usize::from(choice) % SPECS.len()];
    let mut controller = Registry::builtin()
        .parse(spec)
        .expect("the specs of this list are valid")
        .build(&Environment {
            max_datagram_size: 1200,
            seed: u64::from(choice),
        });
    if choice >= 128 {
        controller.on_saved_path(&SavedPath {
            window: 1 << (choice % 64),
            rtt: Duration::from_millis(u64::from(choice)),
        });
    }
    let mut driver = Driver {
        controller,
        pacer: Pacer::new(),
        rtt: Rtt::default(),
        now: Time::ZERO,
        in_flight: 0,
        sent: Vec::new(),
        lost: Vec::new(),
        mtu: 1200,
        datagrams_min: match spec {
            "bbr" => 4,
            spec if spec.contains("min-window=1p") => 1,
            _ => 2,
        },
    };
    while driver.act(&mut input).is_some() {
        driver.check(spec);
    }
}

impl Driver {
    fn act(&mut self, input: &mut Input<'_>) -> Option<()> {
        match input.byte()? {
            0..=79 => {
                let count = input.byte()? % 40;
                for _ in 0..=count {
                    self.send(input)?;
                }
            }
            80..=159 => self.ack(input)?,
            160..=189 => self.now = self.now + input.span()?,
            190..=199 => self.timer(input)?,
            200..=209 => {
                let index = usize::from(input.byte()?);
                if index < self.lost.len() {
                    let packet = self.lost.swap_remove(index);
                    self.controller.on_spurious_loss(self.now, &packet);
                }
            }
            210..=219 => self.controller.on_app_limited(self.now, self.in_flight),
            220..=224 => {
                self.mtu = input.size()?.clamp(1, 65_527);
                self.controller.on_mtu(self.mtu);
            }
            225..=234 => {
                let idle = input.span()?;
                self.now = self.now + idle;
                self.controller.on_idle_restart(&IdleRestart {
                    now: self.now,
                    idle,
                    rtt: &self.rtt,
                });
            }
            235..=239 => {
                // A clock that runs backwards.
                let nanos = self
                    .now
                    .as_nanos()
                    .saturating_sub(u64::from(input.byte()?) << 20);
                self.now = Time::from_nanos(nanos);
            }
            240..=244 => self.in_flight = input.size()?,
            _ => {
                let pacing = self.controller.pacing(&self.rtt);
                let budget = self.pacer.budget(self.now, &pacing);
                self.pacer
                    .on_sent(self.now, budget.min(input.size()?), &pacing);
                let _ = self.pacer.next_release(self.now, &pacing);
            }
        }
        Some(())
    }

    fn send(&mut self, input: &mut Input<'_>) -> Option<()> {
        let bytes = input.size()?;
        self.in_flight = self.in_flight.saturating_add(bytes);
        let (window, pacing) = (self.controller.window(), self.controller.pacing(&self.rtt));
        let receipt = self.controller.on_sent(&Sent {
            now: self.now,
            bytes,
            in_flight: self.in_flight,
            rtt: &self.rtt,
        });
        if self.in_flight > bytes && self.controller.window() == window {
            // The contract of `Controller::pacing`.
            assert_eq!(self.controller.pacing(&self.rtt), pacing);
        }
        self.sent.push(Packet {
            bytes,
            sent_at: self.now,
            receipt,
        });
        Some(())
    }

    fn take(&mut self, input: &mut Input<'_>) -> Option<Vec<Packet>> {
        let (from, count) = (usize::from(input.byte()?), usize::from(input.byte()? % 50));
        let from = from.min(self.sent.len());
        let upto = (from + count).min(self.sent.len());
        let taken: Vec<Packet> = self.sent.drain(from..upto).collect();
        for packet in &taken {
            self.in_flight = self.in_flight.saturating_sub(packet.bytes);
        }
        Some(taken)
    }

    fn ack(&mut self, input: &mut Input<'_>) -> Option<()> {
        let flags = input.byte()?;
        let acked = self.take(input)?;
        let lost = if flags & 1 == 1 {
            self.take(input)?
        } else {
            Vec::new()
        };
        if flags & 2 == 2 {
            let sample = input.span()?;
            self.rtt.update(self.now, sample, input.span()?, None);
        }
        for packet in &acked {
            self.controller.on_packet_acked(self.now, packet);
        }
        for packet in &lost {
            self.controller.on_packet_lost(self.now, packet);
        }
        if let Some(packet) = acked.last().filter(|_| flags & 4 == 4) {
            self.controller.on_ecn_ce(&EcnCe {
                now: self.now,
                newly_marked: u64::from(flags),
                largest_acked: packet.receipt,
                in_flight: self.in_flight,
                rtt: &self.rtt,
            });
        }
        if !lost.is_empty() {
            self.controller.on_lost(&Loss {
                now: self.now,
                in_flight: self.in_flight,
                rtt: &self.rtt,
                persistent: flags & 0x38 == 0x38,
            });
        }
        self.controller.on_ack(&Ack {
            now: self.now,
            in_flight: self.in_flight,
            rtt: &self.rtt,
            has_rtt_sample: flags & 2 == 2,
        });
        self.lost.extend(lost);
        Some(())
    }

    fn timer(&mut self, input: &mut Input<'_>) -> Option<()> {
        let persistent = input.byte()? & 1 == 1;
        let lost = self.take(input)?;
        for packet in &lost {
            self.controller.on_packet_lost(self.now, packet);
        }
        self.controller.on_lost(&Loss {
            now: self.now,
            in_flight: self.in_flight,
            rtt: &self.rtt,
            persistent,
        });
        self.lost.extend(lost);
        Some(())
    }

    /// What must always hold.
    fn check(&self, spec: &str) {
        let window = self.controller.window();
        let minimum = self.datagrams_min * self.mtu;
        assert!(window >= minimum, "{spec}: window {window} below {minimum}");
        assert!(window <= 1 << 40, "{spec}: window {window} out of bounds");
        let state = self.controller.state();
        assert_eq!(state.window, window, "{spec}");
        let statistics = state.statistics;
        assert!(
            statistics.episodes_undone <= statistics.loss_episodes,
            "{spec}"
        );
        assert!(
            statistics.ecn_episodes <= statistics.loss_episodes,
            "{spec}"
        );
        assert!(
            statistics
                .window_min
                .is_none_or(|least| least <= statistics.window_max),
            "{spec}: {statistics:?}"
        );
        let pacing = self.controller.pacing(&self.rtt);
        assert!(pacing.quantum <= pacing.burst, "{spec}: {pacing:?}");
        if pacing.rate.is_unlimited() {
            return;
        }
        assert!(pacing.quantum >= 2 * self.mtu, "{spec}: {pacing:?}");
        assert!(
            pacing.quantum <= (2 * self.mtu).max(64 * 1024),
            "{spec}: {pacing:?}"
        );
        assert!(pacing.rate != Bandwidth::ZERO, "{spec}: {pacing:?}");
    }
}
