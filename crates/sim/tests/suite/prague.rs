//! Prague over `DualPI2`: a short queue, and equal shares with classic flows.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_link as link;

use crate::{
    paths::{bottleneck, logged},
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
