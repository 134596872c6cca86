//! Paths with several bottlenecks in series, and cross traffic on some of them.

use core::time::Duration;

use lastbyte_congestion::{Registry, Time};
use lastbyte_link::{
    Capacity, CoDel, Config, DropReason, Event, FqCoDel, Jitter, Loss, Pie, Queue, Rate, Spread,
};
use lastbyte_scenario::{CrossTraffic, Direction, Path, Scenario};
use lastbyte_sim::{LinkEvent, Listener, SimError, simulate};

use crate::{
    history::history,
    paths::{bottleneck, lost, run, transfer, ttlb_ms},
};

/// The download link has hops with these rates in Mb/s, and queues of 50 ms. The round trip is 40 ms.
fn series(mbit: &[u64]) -> Path {
    let mut path = bottleneck(mbit[0], 40, 50);
    let further = mbit[1..].iter();
    path.down.further = further.map(|mbit| bottleneck(*mbit, 0, 50).down).collect();
    path
}

fn traffic(text: &str) -> CrossTraffic {
    CrossTraffic::parse(text, &Registry::builtin()).expect(text)
}

/// The first hop's delay is the whole delay of the path: a second hop without a rate changes nothing, with a part of the
/// delay as well.
#[test]
fn a_hop_without_a_rate_changes_no_result() {
    let one = || transfer(bottleneck(20, 40, 50), "cubic", 3_000_000);
    let (before, packets_lost) = (run(&one()), lost(&run(&one())));
    assert!(packets_lost > 0, "the test needs a full queue");
    for moved in [0, 7] {
        let moved = Duration::from_millis(moved);
        let mut scenario = one();
        scenario.path.down.delay -= moved;
        scenario.path.down.further = vec![Config {
            delay: moved,
            ..Config::default()
        }];
        let after = run(&scenario);
        assert_eq!(scenario.path.rtt(), Duration::from_millis(40));
        assert_eq!(after.flows[0].path_rtt, before.flows[0].path_rtt);
        assert_eq!(after.flows[0].responses, before.flows[0].responses);
        assert_eq!(after.flows[0].drops, before.flows[0].drops);
        assert_eq!(after.down, before.down);
        assert_eq!(after.bottleneck, before.bottleneck);
        assert_eq!(lost(&after), packets_lost);
    }
}

#[test]
fn a_transfer_has_the_rate_of_the_narrowest_hop_wherever_that_is() {
    let times = [[10, 30, 50], [50, 10, 30], [30, 50, 10]].map(|rates| {
        let outcome = run(&transfer(series(&rates), "cubic", 10_000_000));
        let used = outcome.bottleneck.utilisation.expect("a rate");
        assert!((0.97..=1.0).contains(&used), "{rates:?}: {used}");
        ttlb_ms(&outcome)
    });
    let one = ttlb_ms(&run(&transfer(bottleneck(10, 40, 50), "cubic", 10_000_000)));
    for time in times {
        assert!(
            (time / one - 1.0).abs() < 0.03,
            "{times:?}, and {one} with one hop"
        );
    }
}

/// Drops of each hop, and bytes that the flows of each hop had transmitted after the first five seconds.
#[derive(Default)]
struct Hops {
    drops: [u64; 3],
    bytes: [[u64; 4]; 3],
    bottlenecks: Vec<u8>,
}

impl Listener for Hops {
    fn wants_link_events(&self) -> bool {
        true
    }

    fn on_link(&mut self, event: &LinkEvent) {
        if event.direction == Direction::Up {
            return;
        }
        let hop = usize::from(event.hop);
        if event.is_bottleneck && !self.bottlenecks.contains(&event.hop) {
            self.bottlenecks.push(event.hop);
        }
        match event.event {
            Event::Dropped(_) => self.drops[hop] += 1,
            Event::ServiceEnded { .. } if event.at > Time::ZERO + SETTLED => {
                let flow = event.flow.expect("no constant rates");
                self.bytes[hop][flow] += u64::from(event.bytes);
            }
            _ => {}
        }
    }
}

const SETTLED: Duration = Duration::from_secs(5);

fn hops(scenario: &Scenario) -> (Hops, lastbyte_sim::Outcome) {
    let mut hops = Hops::default();
    let outcome = simulate(scenario, &mut hops).expect("a scenario");
    (hops, outcome)
}

#[test]
fn only_the_narrowest_hop_drops_packets_and_is_the_bottleneck() {
    let (hops, outcome) = hops(&transfer(series(&[50, 10, 30]), "cubic", 10_000_000));
    assert_eq!(hops.bottlenecks, [1]);
    // Slow start arrives at twice the rate that the second hop transmits: the first, of 50 Mb/s, has no queue.
    assert!(hops.drops[1] > 0);
    assert_eq!((hops.drops[0], hops.drops[2]), (0, 0));
    assert_eq!(outcome.flows[0].drops.len() as u64, hops.drops[1]);
    let dropped = outcome.down.dropped(DropReason::QueueFull).packets;
    assert_eq!(dropped, hops.drops[1]);
    assert!(outcome.down.queue_peak_bytes <= 10_000_000 / 8 / 20);
}

/// A parking lot: two hops of 20 Mb/s, a CUBIC flow over both, or over the first only, and one on each of them. Their round
/// trips are equal. Returns the share of the first flow on the first hop, and how much of that is used, over 40 s.
fn parking_lot(queue: Queue, long: &str) -> (f64, f64) {
    let mut path = series(&[20, 20]);
    path.down.queue = queue;
    path.down.further[0].queue = queue;
    let mut scenario = transfer(path, "cubic", 1);
    // The measured flow does not start.
    scenario.flows[0].start = Duration::from_secs(100);
    scenario.time_limit = Duration::from_secs(45);
    let texts = [
        long,
        "cubic hop 1 rtt 40ms start 50ms",
        "cubic hop 2 rtt 40ms",
    ];
    scenario.cross = texts.map(traffic).into();
    let Hops { bytes, drops, .. } = hops(&scenario).0;
    assert!(drops[0] > 0 && drops[1] > 0, "{queue:?}");
    let [first, second, _] = bytes;
    // Each hop carries the flow over both and its own.
    assert_eq!((first[3], second[2]), (0, 0));
    assert_eq!(second[1] == 0, long.contains("hop 1"));
    let all = first[1] + first[2];
    (
        first[1] as f64 / all as f64,
        all as f64 * 8.0 / (20e6 * 40.0),
    )
}

/// Both hops drop its packets and delay them, unless the queues are fair. The table in `docs/network.md` has more.
#[test]
fn a_flow_over_two_bottlenecks_gets_less_than_the_flows_over_one() {
    for (queue, long, expected) in [
        (Queue::Pie(Pie::default()), "cubic", 0.3..0.42),
        (Queue::CoDel(CoDel::default()), "cubic", 0.33..0.45),
        (Queue::FqCoDel(FqCoDel::default()), "cubic", 0.48..0.51),
        // Two flows over the same hop have half of it each.
        (Queue::Pie(Pie::default()), "cubic hop 1", 0.45..0.55),
    ] {
        let (share, used) = parking_lot(queue, long);
        assert!(expected.contains(&share), "{queue:?}, {long}: {share}");
        assert!((0.95..=1.0).contains(&used), "{queue:?}, {long}: {used}");
    }
}

/// The hops with events.
struct Seen([bool; 3]);

impl Listener for Seen {
    fn wants_link_events(&self) -> bool {
        true
    }

    fn on_link(&mut self, event: &LinkEvent) {
        self.0[usize::from(event.hop)] = true;
    }
}

#[test]
fn cross_traffic_loads_its_hop_only() {
    let mut scenario = transfer(series(&[20, 10, 20]), "cubic", 1);
    scenario.flows[0].start = Duration::from_secs(10);
    scenario.time_limit = Duration::from_secs(2);
    for (text, loaded) in [
        ("cbr:2mbit", [true, true, true]),
        ("cbr:2mbit hop 1", [true, false, false]),
        ("cbr:2mbit hop 2-3", [false, true, true]),
        ("cbr:2mbit hop 3", [false, false, true]),
    ] {
        scenario.cross = vec![traffic(text)];
        let mut seen = Seen([false; 3]);
        let outcome = simulate(&scenario, &mut seen).expect("a scenario");
        assert_eq!(seen.0, loaded, "{text}");
        let all = &outcome.down;
        let sent = all.sent.bytes as f64 * 8.0 / 2e6 / 2.0;
        assert!((sent - 1.0).abs() < 0.01, "{text}: {sent}");
        assert!(all.delivered.packets > all.sent.packets * 9 / 10, "{text}");
    }
}

/// Its data pass less of the path, so its round trip is shorter.
#[test]
fn the_round_trip_of_cross_traffic_is_that_of_its_hops() {
    let path = || {
        let mut path = series(&[20, 20]);
        path.down.further[0].delay = Duration::from_millis(30);
        path
    };
    let scenario = |cross: &str| {
        let mut scenario = transfer(path(), "cubic", 1);
        scenario.cross = vec![traffic(cross)];
        simulate(&scenario, &mut ()).map(|_| ())
    };
    assert_eq!(scenario("cubic hop 1 rtt 40ms"), Ok(()));
    assert_eq!(scenario("cubic hop 2 rtt 50ms"), Ok(()));
    let error = scenario("cubic hop 2 rtt 40ms").expect_err("20 + 30 ms");
    let (flow, path) = (Duration::from_millis(40), Duration::from_millis(50));
    assert_eq!(error, SimError::RoundTrip { flow, path });
    let error = scenario("cubic hop 2-3").expect_err("two hops");
    assert_eq!(
        error.to_string(),
        "cross traffic on hop 3 of the downlink (expected 1 to 2)"
    );
    let error = scenario("cubic up hop 2").expect_err("one hop");
    assert_eq!(
        error.to_string(),
        "cross traffic on hop 2 of the uplink (expected 1 to 1)"
    );
}

#[test]
fn one_seed_gives_one_history_over_several_hops() {
    let scenario = |seed| {
        let mut path = series(&[30, 20, 25]);
        path.down.further[0].loss = vec![Loss::Bernoulli(0.01)];
        path.down.further[1].jitter = Some(Jitter {
            spread: Spread::Exponential(Duration::from_millis(1)),
            may_reorder: true,
        });
        path.up.further = vec![Config {
            capacity: Capacity::Constant(Rate::from_bits_per_second(5_000_000)),
            duplication: 0.01,
            ..Config::default()
        }];
        let mut scenario = transfer(path, "rapid-start", 500_000);
        scenario.cross = vec![traffic("cubic hop 2-3"), traffic("cbr:1mbit up hop 2")];
        scenario.seed = seed;
        scenario
    };
    let first = history(&scenario(1));
    assert_eq!(first, history(&scenario(1)));
    assert_ne!(first, history(&scenario(2)));
    // Observers change nothing.
    let outcome = format!("{:?}", run(&scenario(1)));
    assert!(first.ends_with(&outcome));
}

/// The hops of a path and the cross traffic on them go together to the uplink.
#[test]
fn cross_traffic_of_a_path_turns_with_its_links() {
    let mut path = series(&[100, 50, 70]);
    path.cross = ["cubic hop 3", "cbr:1mbit up", "stack:cubic"]
        .map(traffic)
        .into();
    assert!(path.turn_for_uploads());
    let directions = path.cross.iter().map(|cross| cross.direction);
    let directions: Vec<Direction> = directions.collect();
    assert_eq!(
        directions,
        [Direction::Up, Direction::Down, Direction::Down]
    );
    for cross in &path.cross {
        assert_eq!(cross.check(path.link(cross.direction)), Ok(()));
    }
}
