use lastbyte_link::{Capacity, DropTail, Limit, Loss, Queue, Rate, Schedule};
use proptest::prelude::*;

use super::*;

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn millis(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// Down: 8 Mb/s, so a datagram of 1000 bytes takes 1 ms, and a delay of 10 ms. Up: a delay of 5 ms only.
fn plan() -> Plan {
    let down = Config {
        capacity: Capacity::Constant(Rate::from_bits_per_second(8_000_000)),
        queue: Queue::DropTail(DropTail {
            limit: Limit::Packets(2),
            mark_above: None,
        }),
        delay: Duration::from_millis(10),
        ..Config::default()
    };
    let up = Config {
        delay: Duration::from_millis(5),
        ..Config::default()
    };
    Plan::new(down, up)
}

fn arrivals(paths: &mut Paths) -> Vec<(u64, u64, Direction)> {
    let mut all = Vec::new();
    while let Some(at) = paths.deadline() {
        while let Some(arrival) = paths.poll(at) {
            assert_eq!(arrival.at, at, "delivered at its deadline");
            let micros = arrival.at.as_nanos() / 1000;
            all.push((micros, arrival.client, arrival.direction));
        }
    }
    all
}

#[test]
fn a_datagram_takes_the_time_of_its_link() {
    let mut paths = Paths::new(plan()).expect("valid plan");
    let (client, is_new) = paths
        .client(millis(100), address(1))
        .expect("below clients_max");
    assert!(is_new);
    assert_eq!(paths.client(millis(101), address(1)), Ok((client, false)));
    paths.send(millis(100), client, Direction::Up, Ecn::Ect0, &[7; 20]);
    assert_eq!(paths.poll(millis(104)), None);
    let arrival = paths.poll(millis(105)).expect("delivered");
    assert_eq!(arrival.bytes[..], [7; 20]);
    assert_eq!((arrival.ecn, arrival.direction), (Ecn::Ect0, Direction::Up));
    assert_eq!(arrival.address, address(1));
    // One datagram is in service, two are queued, and one does not fit.
    for _ in 0..4 {
        paths.send(
            millis(200),
            client,
            Direction::Down,
            Ecn::NotEct,
            &[0; 1000],
        );
    }
    assert_eq!(
        arrivals(&mut paths),
        [211_000, 212_000, 213_000].map(|at| (at, client, Direction::Down))
    );
    let report = paths.report();
    assert_eq!(report.down.sent.packets, 4);
    assert_eq!(report.down.delivered.bytes, 3000);
    assert_eq!(report.down.dropped_total(), 1);
    assert_eq!(report.up.delivered.packets, 1);
    assert_eq!(report.late.max(), Duration::ZERO);
}

#[test]
fn clients_have_separate_paths_or_share_one() {
    for (sharing, last) in [(Sharing::Apart, 11_000), (Sharing::Shared, 12_000)] {
        let mut paths = Paths::new(Plan { sharing, ..plan() }).expect("valid plan");
        let (one, _) = paths
            .client(Time::ZERO, address(1))
            .expect("below clients_max");
        let (two, _) = paths
            .client(Time::ZERO, address(2))
            .expect("below clients_max");
        for client in [one, two] {
            paths.send(Time::ZERO, client, Direction::Down, Ecn::NotEct, &[0; 1000]);
        }
        assert_eq!(
            arrivals(&mut paths),
            [(11_000, one, Direction::Down), (last, two, Direction::Down)],
            "{sharing:?}"
        );
    }
}

#[test]
fn a_datagram_passes_all_hops_of_its_direction() {
    let mut plan = plan();
    // 4 Mb/s: 2 ms for each datagram.
    plan.down.further = vec![Config {
        capacity: Capacity::Constant(Rate::from_bits_per_second(4_000_000)),
        delay: Duration::from_millis(20),
        ..Config::default()
    }];
    let mut paths = Paths::new(plan).expect("valid plan");
    let (client, _) = paths
        .client(Time::ZERO, address(1))
        .expect("below clients_max");
    for _ in 0..4 {
        let down = Direction::Down;
        paths.send(Time::ZERO, client, down, Ecn::NotEct, &[0; 1000]);
    }
    let mut arrived = Vec::new();
    while let Some(at) = paths.deadline() {
        while let Some(arrival) = paths.poll(at) {
            arrived.push(arrival.at);
        }
    }
    assert_eq!(arrived, [33, 35, 37].map(millis));
    let report = paths.report().down;
    assert_eq!((report.sent.packets, report.delivered.packets), (4, 3));
    assert_eq!(report.dropped_total(), 1);
}

#[test]
fn the_time_of_a_path_starts_with_its_client() {
    // The rate drops to an eighth after 50 ms of the path's own time.
    let schedule = [
        (Duration::ZERO, Rate::from_bits_per_second(8_000_000)),
        (
            Duration::from_millis(50),
            Rate::from_bits_per_second(1_000_000),
        ),
    ];
    let mut plan = plan();
    plan.down.capacity = Capacity::Schedule(Schedule::new(&schedule, None).expect("a schedule"));
    let mut paths = Paths::new(plan).expect("valid plan");
    let (early, _) = paths
        .client(Time::ZERO, address(1))
        .expect("below clients_max");
    let (late, _) = paths
        .client(millis(1000), address(2))
        .expect("below clients_max");
    for client in [early, late] {
        paths.send(
            millis(1000),
            client,
            Direction::Down,
            Ecn::NotEct,
            &[0; 1000],
        );
    }
    assert_eq!(
        arrivals(&mut paths),
        [
            (1_011_000, late, Direction::Down),
            (1_018_000, early, Direction::Down)
        ]
    );
}

#[test]
fn a_late_poll_is_recorded() {
    let mut paths = Paths::new(plan()).expect("valid plan");
    let (client, _) = paths
        .client(Time::ZERO, address(1))
        .expect("below clients_max");
    paths.send(Time::ZERO, client, Direction::Up, Ecn::NotEct, &[0; 10]);
    let arrival = paths.poll(millis(8)).expect("delivered");
    assert_eq!(arrival.at, millis(5));
    assert_eq!(paths.report().late.max(), Duration::from_millis(3));
}

#[test]
fn idle_clients_are_removed_but_their_counters_remain() {
    let mut paths = Paths::new(Plan {
        idle: Duration::from_secs(1),
        clients_max: 2,
        ..plan()
    })
    .expect("valid plan");
    let (one, _) = paths
        .client(Time::ZERO, address(1))
        .expect("below clients_max");
    let (two, _) = paths
        .client(Time::ZERO, address(2))
        .expect("below clients_max");
    assert_eq!(paths.client(Time::ZERO, address(3)), Err(TooManyClients));
    paths.send(millis(500), two, Direction::Down, Ecn::NotEct, &[0; 10]);
    assert_eq!(paths.expire(millis(999)), []);
    assert_eq!(paths.expire(millis(1000)), [one]);
    paths.send(millis(1000), one, Direction::Down, Ecn::NotEct, &[0; 10]);
    assert!(paths.client(millis(1000), address(3)).is_ok());
    assert_eq!(paths.expire(millis(5000)).len(), 2);
    assert_eq!(
        arrivals(&mut paths),
        [],
        "datagrams of removed clients are dropped"
    );
    let report = paths.report();
    assert_eq!((report.clients, report.refused), (3, 1));
    assert_eq!((report.down.sent.packets, report.down.stray), (1, 1));
}

#[test]
fn an_unlimited_queue_is_bounded_by_inside_max() {
    let mut plan = plan();
    plan.down.queue = Queue::default();
    plan.inside_max = 10_000;
    let mut paths = Paths::new(plan).expect("valid plan");
    let (client, _) = paths
        .client(Time::ZERO, address(1))
        .expect("below clients_max");
    for _ in 0..20 {
        paths.send(Time::ZERO, client, Direction::Down, Ecn::NotEct, &[0; 1000]);
    }
    let all = arrivals(&mut paths).len() as u64;
    let report = paths.report();
    assert_eq!(all, 11);
    assert_eq!(report.down.overflowed, 9);
}

#[test]
fn the_same_seed_gives_the_same_outcomes() {
    let fates = |seed| {
        let mut plan = plan();
        plan.seed = seed;
        plan.up.loss = vec![Loss::Bernoulli(0.3)];
        let mut paths = Paths::new(plan).expect("valid plan");
        let clients = [1, 2].map(|port| {
            paths
                .client(Time::ZERO, address(port))
                .expect("below clients_max")
                .0
        });
        let mut all = Vec::new();
        for at in 0..200 {
            for client in clients {
                paths.send(
                    millis(10 * at),
                    client,
                    Direction::Up,
                    Ecn::NotEct,
                    &[0; 10],
                );
            }
            all.extend(arrivals(&mut paths));
        }
        let of = |client| -> Vec<u64> {
            let mine = all.iter().filter(|(_, of, _)| *of == client);
            mine.map(|(at, _, _)| *at).collect()
        };
        (of(clients[0]), of(clients[1]))
    };
    assert_eq!(fates(1), fates(1));
    assert_ne!(fates(1), fates(2));
    let (one, two) = fates(1);
    assert_ne!(one, two, "each path has its own random stream");
    assert!((100..180).contains(&one.len()), "{}", one.len());
}

/// A client that was added has its own links, overhead, seed and time; others have those of the plan.
#[test]
fn an_added_client_has_a_path_of_its_own() {
    let mut paths = Paths::new(plan()).expect("valid plan");
    let steps = [
        (Duration::ZERO, Rate::from_bits_per_second(8_000_000)),
        (Duration::from_secs(1), Rate::from_bits_per_second(800_000)),
    ];
    let slow = Config {
        capacity: Capacity::Schedule(Schedule::new(&steps, None).expect("a schedule")),
        delay: Duration::from_millis(50),
        ..Config::default()
    };
    let model = PathModel {
        down: slow,
        overhead: 500,
        start: Duration::from_secs(2),
        ..PathModel::default()
    };
    let (ours, _) = paths.client(millis(0), address(1)).expect("a client");
    let added = paths.add(millis(100), address(2), &model).expect("a path");
    assert_ne!(ours, added);
    let known = paths.client(millis(100), address(2));
    assert_eq!(known, Ok((added, false)));
    paths.send(millis(100), added, Direction::Down, Ecn::NotEct, &[0; 500]);
    paths.send(millis(100), ours, Direction::Down, Ecn::NotEct, &[0; 1000]);
    // 1000 bytes with overhead take 10 ms at the rate of the second step.
    let expected = [
        (111_000, ours, Direction::Down),
        (160_000, added, Direction::Down),
    ];
    assert_eq!(arrivals(&mut paths), expected);
    assert_eq!(paths.report().down.delivered.packets, 2);
    // Another client with the address takes its place, and the counters stay.
    let again = paths.add(millis(200), address(2), &model).expect("a path");
    assert_eq!(paths.client(millis(200), address(2)), Ok((again, false)));
    let mut sum = paths.report();
    assert_eq!(sum.down.delivered.packets, 2);
    sum.merge(&paths.report());
    assert_eq!((sum.down.delivered.packets, sum.clients), (4, 6));
    assert_eq!(sum.late.count(), 4);
}

/// A path that waits for a packet far away, while others pass in the other direction: its deadline is kept once.
#[test]
fn a_path_has_one_deadline_until_it_is_removed() {
    let mut plan = plan();
    plan.up.delay = Duration::from_secs(10);
    let mut paths = Paths::new(plan).expect("valid plan");
    let (client, _) = paths.client(millis(0), address(1)).expect("room");
    paths.send(millis(0), client, Direction::Up, Ecn::NotEct, &[7; 20]);
    for number in 0..400 {
        let now = millis(number * 20);
        paths.send(now, client, Direction::Down, Ecn::NotEct, &[7; 20]);
        let later = now + Duration::from_millis(15);
        let arrival = paths.poll(later).expect("delivered");
        assert_eq!(arrival.direction, Direction::Down);
        assert_eq!(paths.poll(later), None);
        assert_eq!(paths.due.len(), 1);
    }
    paths.forget(client);
    assert_eq!((paths.due.len(), paths.deadline()), (0, None));
}

/// Also beside a path that all others share, which stays.
#[test]
fn the_path_of_an_added_client_ends_with_it() {
    for sharing in [Sharing::Apart, Sharing::Shared] {
        let mut paths = Paths::new(Plan { sharing, ..plan() }).expect("valid plan");
        let model = PathModel {
            up: plan().up,
            down: plan().down,
            seed: 1,
            overhead: 28,
            start: Duration::ZERO,
        };
        for _ in 0..10 {
            let added = paths.add(millis(1), address(1), &model).expect("a path");
            let (other, _) = paths.client(millis(1), address(2)).expect("room");
            assert_eq!(paths.by_number.len(), 2);
            for client in [added, other] {
                paths.send(millis(1), client, Direction::Up, Ecn::NotEct, &[7; 20]);
            }
        }
        assert_eq!(paths.expire(millis(61_001)).len(), 2);
        let kept = usize::from(sharing == Sharing::Shared);
        assert_eq!((paths.by_number.len(), paths.due.len()), (kept, kept));
        assert!(paths.clients.is_empty() && paths.by_address.is_empty());
    }
}

/// A step of a caller: what it does, for which address or client, and after how many milliseconds.
#[derive(Clone, Copy, Debug)]
enum Step {
    Client(u16),
    Add(u16),
    Send(u64, Direction),
    Forget(u64),
    Expire,
    Poll,
}

fn step() -> impl Strategy<Value = (Step, u64)> {
    let direction = prop_oneof![Just(Direction::Up), Just(Direction::Down)];
    let step = prop_oneof![
        (0..6_u16).prop_map(Step::Client),
        (0..6_u16).prop_map(Step::Add),
        (0..20_u64, direction).prop_map(|(client, direction)| Step::Send(client, direction)),
        (0..20_u64).prop_map(Step::Forget),
        Just(Step::Expire),
        Just(Step::Poll),
    ];
    (step, 0..200_u64)
}

proptest! {
    /// Whatever ends a client, and whatever is inside its path then.
    #[test]
    fn any_steps_keep_what_belongs_to_clients_only(
        steps in prop::collection::vec(step(), 0..200),
        is_shared in any::<bool>(),
    ) {
        let sharing = if is_shared { Sharing::Shared } else { Sharing::Apart };
        let idle = Duration::from_secs(1);
        let mut paths = Paths::new(Plan { sharing, idle, clients_max: 4, ..plan() }).expect("valid");
        let mut now = millis(1);
        let (mut sent, mut polled) = (0, 0);
        for (step, pause) in steps {
            now = now + Duration::from_millis(pause);
            match step {
                Step::Client(port) => drop(paths.client(now, address(port))),
                Step::Add(port) => drop(paths.add(now, address(port), &PathModel::default())),
                Step::Send(client, direction) => {
                    sent += 1;
                    paths.send(now, client, direction, Ecn::NotEct, &[0; 500]);
                }
                Step::Forget(client) => paths.forget(client),
                Step::Expire => {
                    for gone in paths.expire(now) {
                        prop_assert!(!paths.clients.contains_key(&gone));
                    }
                }
                Step::Poll => while let Some(arrival) = paths.poll(now) {
                    polled += 1;
                    paths.recycle(arrival.bytes);
                },
            }
            prop_assert_eq!(paths.by_address.len(), paths.clients.len());
            prop_assert!(paths.clients.len() <= 4 + 6, "added ones do not count");
            for (at, number) in &paths.due {
                prop_assert_eq!(paths.by_number[number].due, Some(*at));
            }
            let own = paths.clients.values().filter(|client| client.path != SHARED);
            let shared = usize::from(paths.by_number.contains_key(&SHARED));
            prop_assert_eq!(paths.by_number.len(), own.count() + shared);
            prop_assert!(paths.spare.len() <= SPARE_MAX);
        }
        // In the end all are idle.
        now = now + Duration::from_secs(100);
        while paths.poll(now).is_some() {
            polled += 1;
        }
        paths.expire(now);
        prop_assert!(paths.clients.is_empty() && paths.by_address.is_empty() && paths.due.is_empty());
        prop_assert_eq!(paths.by_number.len(), usize::from(paths.by_number.contains_key(&SHARED)));
        // Each datagram had one end.
        let report = paths.report();
        let ended = |it: &DirectionReport| {
            let dropped: u64 = it.dropped.iter().map(|count| count.packets).sum();
            dropped + it.stray + it.overflowed
        };
        prop_assert!(polled + ended(&report.up) + ended(&report.down) <= sent);
    }
}
