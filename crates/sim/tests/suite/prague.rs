//! Prague over `DualPI2`: a short queue, and equal shares with classic flows.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_link::{self as link, Event};
use lastbyte_sim::{
    CrossTraffic, Direction, FlowPlan, LinkEvent, Listener, Outcome, Path, Scenario, simulate,
};

use crate::paths::{bottleneck, logged, transfer};

/// 40 Mb/s and 20 ms.
fn dual_pi2() -> Path {
    let mut path = bottleneck(40, 20, 0);
    path.down.queue = link::Queue::DualPi2(link::DualPi2::default());
    path
}

/// Each flow's share of the bottleneck in the steady state, and the queueing delays of its packets.
#[derive(Default)]
struct Shares {
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
    fn first(&self) -> f64 {
        self.bytes[0] as f64 / self.bytes.iter().sum::<u64>() as f64
    }

    /// The utilisation of the link.
    fn utilisation(&self) -> f64 {
        let span = END.abs_diff(SETTLED).as_secs_f64();
        self.bytes.iter().sum::<u64>() as f64 * 8.0 / (40e6 * span)
    }

    /// A flow's packets waited this long or less, in milliseconds: a share of them.
    fn wait_ms(&mut self, flow: usize, share: f64) -> f64 {
        let waits = &mut self.waits[flow];
        waits.sort_unstable();
        let place = (waits.len() as f64 * share) as usize;
        waits[place.min(waits.len() - 1)].as_secs_f64() * 1e3
    }
}

/// Endless flows with these specs, which send packets as ECN-capable.
fn share(path: Path, specs: &[&str], cross: &[&str]) -> (Shares, Outcome) {
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

#[test]
fn a_prague_flow_fills_the_link_with_a_queue_of_a_millisecond() {
    let (mut shares, outcome) = share(dual_pi2(), &["prague"], &[]);
    assert!(shares.utilisation() > 0.9, "{}", shares.utilisation());
    let (median, tail) = (shares.wait_ms(0, 0.5), shares.wait_ms(0, 0.99));
    assert!(median < 1.2 && tail < 2.5, "{median} and {tail} ms");
    assert_eq!(outcome.down.dropped_total().packets, 0);
    // The accurate counts of ACK frames reached the controller.
    assert_eq!(logged(&outcome, 0, "num-packets.acked-ecn-ect0"), 0);
    assert!(logged(&outcome, 0, "num-packets.acked-ecn-ect1") > 10_000);
    assert!(logged(&outcome, 0, "num-packets.acked-ecn-ce") > 100);
    assert_eq!(logged(&outcome, 0, "num-paths.ecn-validated"), 1);
    // A classic flow on the same link waits for the classic queue's 15 ms.
    let (mut shares, outcome) = share(dual_pi2(), &["cubic"], &[]);
    assert!(shares.wait_ms(0, 0.5) > 5.0);
    assert_eq!(logged(&outcome, 0, "num-packets.acked-ecn-ect1"), 0);
}

#[test]
fn prague_and_cubic_share_a_coupled_queue() {
    let (mut shares, _) = share(dual_pi2(), &["prague", "cubic"], &[]);
    let part = shares.first();
    assert!((0.3..=0.7).contains(&part), "{part}");
    assert!(shares.utilisation() > 0.9, "{}", shares.utilisation());
    let (l4s, classic) = (shares.wait_ms(0, 0.9), shares.wait_ms(1, 0.5));
    assert!(l4s < 3.0 && classic > 5.0, "{l4s} and {classic} ms");
}

#[test]
fn prague_flows_share_equally_and_keep_the_queue_short() {
    let (mut shares, _) = share(dual_pi2(), &["prague", "prague"], &[]);
    let part = shares.first();
    assert!((0.35..=0.65).contains(&part), "{part}");
    let tail = shares.wait_ms(0, 0.99).max(shares.wait_ms(1, 0.99));
    assert!(tail < 3.0, "{tail} ms");
}

#[test]
fn cross_traffic_without_endpoints_marks_ect1_as_well() {
    let (mut shares, _) = share(dual_pi2(), &["prague"], &["prague"]);
    let part = shares.first();
    assert!((0.35..=0.65).contains(&part), "{part}");
    assert!(shares.wait_ms(1, 0.99) < 3.0);
}

#[test]
fn startups_end_at_the_first_mark() {
    let (shares, outcome) = share(dual_pi2(), &["rapid-start:congestion=prague"], &[]);
    assert!(shares.utilisation() > 0.9, "{}", shares.utilisation());
    let sender = outcome.flows[0].server.as_ref().expect("a server");
    let exit = sender.congestion.statistics.startup_exited_at;
    assert!(exit < Some(Time::ZERO + Duration::from_secs(1)), "{exit:?}");
}

/// `CoDel` in a single queue marks ECT(1) as it marks classic flows (RFC 9331 §4.3).
#[test]
fn rfc9331_4_3_the_fallback_lets_a_classic_flow_live_beside_prague() {
    let path = || {
        let mut path = bottleneck(40, 20, 0);
        path.down.queue = link::Queue::CoDel(link::CoDel {
            ecn: true,
            ..link::CoDel::default()
        });
        path
    };
    let [plain, fallback] = ["prague", "prague:classic-ecn-fallback=on"]
        .map(|spec| share(path(), &[spec, "cubic"], &[]).0.first());
    assert!(plain > 0.75, "{plain}");
    assert!((0.3..=0.65).contains(&fallback), "{fallback}");
    // Over an L4S bottleneck it changes nothing.
    let [plain, fallback] = ["prague", "prague:classic-ecn-fallback=on"].map(|spec| {
        let (mut shares, _) = share(dual_pi2(), &[spec, "cubic"], &[]);
        (shares.first(), shares.wait_ms(0, 0.99))
    });
    assert_eq!(plain, fallback);
}

#[test]
fn without_marks_prague_is_newreno() {
    let path = || bottleneck(40, 20, 20);
    let (shares, outcome) = share(path(), &["prague", "newreno"], &[]);
    let part = shares.first();
    assert!((0.35..=0.65).contains(&part), "{part}");
    let sender = outcome.flows[0].server.as_ref().expect("a server");
    assert!(sender.recovery.packets_lost > 0);
}
