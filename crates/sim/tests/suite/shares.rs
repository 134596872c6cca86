//! How endless flows share a bottleneck of 40 Mb/s, and how long their packets wait there.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_link::{self as link, Event};
use lastbyte_scenario::{CrossTraffic, Direction, FlowPlan, Path, Scenario};
use lastbyte_sim::{LinkEvent, Listener, Outcome, simulate};

use crate::paths::{bottleneck, transfer};

/// 40 Mb/s and 20 ms.
pub(crate) fn dual_pi2() -> Path {
    let mut path = bottleneck(40, 20, 0);
    path.down.queue = link::Queue::DualPi2(link::DualPi2::default());
    path
}

/// Each flow's share of the bottleneck in the steady state, and the queueing delays of its packets.
#[derive(Default)]
pub(crate) struct Shares {
    bytes: Vec<u64>,
    waits: Vec<Vec<Duration>>,
}

const SETTLED: Duration = Duration::from_secs(5);
const END: Duration = Duration::from_secs(20);

impl Listener for Shares {
    fn wants_link_events(&self) -> bool {
        true
    }

    fn on_link(&mut self, event: &LinkEvent) {
        let Some(flow) = event.flow.filter(|_| event.direction == Direction::Down) else {
            return;
        };
        if event.at < Time::ZERO + SETTLED {
            return;
        }
        let len = self.bytes.len().max(flow + 1);
        self.bytes.resize(len, 0);
        self.waits.resize(len, Vec::new());
        match event.event {
            Event::ServiceStarted { waited } => self.waits[flow].push(waited),
            Event::ServiceEnded { .. } => self.bytes[flow] += u64::from(event.bytes),
            _ => {}
        }
    }
}

impl Shares {
    /// The share of the first flow among all.
    pub(crate) fn first(&self) -> f64 {
        self.bytes[0] as f64 / self.bytes.iter().sum::<u64>() as f64
    }

    /// The utilisation of the link.
    pub(crate) fn utilisation(&self) -> f64 {
        let span = END.abs_diff(SETTLED).as_secs_f64();
        self.bytes.iter().sum::<u64>() as f64 * 8.0 / (40e6 * span)
    }

    /// A flow's packets waited this long or less, in milliseconds: a share of them.
    pub(crate) fn wait_ms(&mut self, flow: usize, share: f64) -> f64 {
        let waits = &mut self.waits[flow];
        waits.sort_unstable();
        let place = (waits.len() as f64 * share) as usize;
        waits[place.min(waits.len() - 1)].as_secs_f64() * 1e3
    }
}

/// Endless flows with these specs, which send packets as ECN-capable.
pub(crate) fn share(path: Path, specs: &[&str], cross: &[&str]) -> (Shares, Outcome) {
    let mut scenario: Scenario = transfer(path, specs[0], 1 << 40);
    let plans = specs.iter().enumerate().map(|(index, spec)| FlowPlan {
        congestion: spec.parse().expect(spec),
        start: Duration::from_millis(130) * index as u32,
        ..scenario.flows[0].clone()
    });
    scenario.flows = plans.collect();
    let registry = lastbyte_congestion::Registry::builtin();
    let cross = cross.iter();
    let cross = cross.map(|text| CrossTraffic::parse(text, &registry).expect("cross traffic"));
    scenario.cross = cross.collect();
    scenario.transport.ecn = true;
    scenario.time_limit = END;
    let mut shares = Shares::default();
    let outcome = simulate(&scenario, &mut shares).expect("a scenario");
    (shares, outcome)
}
