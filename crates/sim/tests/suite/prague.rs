//! Prague over `DualPI2`: a short queue, and equal shares with classic flows.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_link as link;
use lastbyte_scenario::{Direction, Path};
use lastbyte_sim::{LinkEvent, Listener, simulate};

use crate::{
    paths::{bottleneck, logged, transfer},
    shares::{dual_pi2, share},
};

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

/// What the L4S queue held when packets were marked, and how much the link carried in the last half of a transfer.
#[derive(Default)]
struct Marks {
    /// The first marks: when, and how long the packets in front take to send, in milliseconds.
    first: Vec<(f64, f64)>,
    served: Vec<(Time, u64)>,
    /// What waits when a packet has been sent, in milliseconds.
    waits: Vec<(Time, f64)>,
}

impl Listener for Marks {
    fn wants_link_events(&self) -> bool {
        true
    }

    fn on_link(&mut self, event: &LinkEvent) {
        if event.direction != Direction::Down {
            return;
        }
        match event.event {
            link::Event::Marked => {
                let at = event.at.since(Time::ZERO).as_secs_f64() * 1e3;
                self.first.push((at, event.queue.bytes as f64 * 8.0 / 50e3));
            }
            link::Event::ServiceEnded { .. } => {
                self.served.push((event.at, u64::from(event.bytes)));
                let wait = event.queue.bytes as f64 * 8.0 / 50e3;
                self.waits.push((event.at, wait));
            }
            _ => {}
        }
    }
}

/// The draft's §2.5.2: a sender that is alone on the path does not mark itself with its own bursts, so startup goes on until the
/// window exceeds the path.
#[test]
fn prague_is_not_marked_for_its_own_bursts() {
    for rtt in [100, 40] {
        let mut scenario = transfer(path_of(50, rtt), "prague", 100_000_000);
        scenario.transport.ecn = true;
        let mut marks = Marks::default();
        let outcome = simulate(&scenario, &mut marks).expect("a scenario");
        let sender = outcome.flows[0].server.as_ref().expect("a server");
        let window = sender.congestion.statistics.window_exiting_startup;
        let pipe = 50_000_000 / 8 * rtt / 1000;
        let (at, queued) = marks.first.first().expect("marks at the end of startup");
        assert!(
            *queued > 0.8,
            "{rtt} ms: marked at {at} ms with {queued} ms in the queue"
        );
        assert!(window > Some(pipe), "{rtt} ms: {window:?} of {pipe}");
        let end = marks.served.last().expect("packets").0;
        let half = Time::ZERO + end.since(Time::ZERO) / 2;
        let late = marks.served.iter().filter(|(at, _)| *at >= half);
        let bytes: u64 = late.map(|(_, bytes)| bytes).sum();
        let used = bytes as f64 * 8.0 / (50e6 * end.since(half).as_secs_f64());
        assert!(used > 0.9, "{rtt} ms: {used}");
        let late = marks.waits.iter().filter(|(at, _)| *at >= half);
        let mut waits: Vec<f64> = late.map(|(_, wait)| *wait).collect();
        waits.sort_by(f64::total_cmp);
        let tail = waits[waits.len() * 99 / 100];
        assert!(tail <= 2.0, "{rtt} ms: a queue of {tail} ms");
    }
}

fn path_of(mbit: u64, rtt: u64) -> Path {
    let mut path = bottleneck(mbit, rtt, 0);
    path.down.queue = link::Queue::DualPi2(link::DualPi2::default());
    path
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

/// Section 2.4.4 of the draft: after 500 round trips, a flow with a short round trip gets no more than one with 25 ms, nor less.
#[test]
fn prague_flows_of_5_and_25_ms_share_equally() {
    let mut path = dual_pi2();
    path.down.delay = Duration::from_micros(2500);
    path.up.delay = Duration::from_micros(2500);
    let (mut shares, _) = share(path, &["prague"], &["prague rtt 25ms"]);
    let part = shares.first();
    assert!((0.45..=0.62).contains(&part), "{part}");
    assert!(shares.utilisation() > 0.95, "{}", shares.utilisation());
    assert!(shares.wait_ms(0, 0.99) < 3.0);
}
