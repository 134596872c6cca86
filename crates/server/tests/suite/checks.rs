//! Checks of the servers of an upstream: what they cost, and which requests a server gets because of them. In memory and in
//! virtual time.

use std::time::Duration;

use lastbyte_server::proxy::Checks;

use crate::servers::{CHECK, Conduct, Scene, count};

const INTERVAL: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

fn scene(servers: u16) -> Scene {
    let checks = Checks {
        path: CHECK.parse().expect("a path"),
        interval: INTERVAL,
        timeout: TIMEOUT,
        failures_max: 2,
    };
    Scene::checked(servers, Some(checks))
}

fn up(scene: &Scene) -> Vec<bool> {
    let servers = scene.statistics().servers;
    servers.iter().map(|it| it.is_up).collect()
}

#[test]
fn a_silent_server_costs_the_requests_that_it_had_until_two_checks_failed() {
    let scene = scene(2);
    scene.conduct(0, Conduct::IsSilent);
    // The first takes the limit for a response, 60 s.
    let statuses = scene.statuses("GET", 2000, PAUSE);
    assert_eq!((statuses[0], count(&statuses, 504)), (504, 1));
    assert_eq!(up(&scene), [false, true]);
    scene.conduct(0, Conduct::Answers);
    scene.pass(INTERVAL + TIMEOUT);
    assert_eq!(scene.statuses("GET", 4, PAUSE), [200; 4]);
    assert_eq!(up(&scene), [true, true]);
    assert!(
        scene.seen(|it| it.requests)[0] >= 2,
        "it has requests again"
    );
}

#[test]
fn a_server_whose_checks_pass_and_whose_requests_fail_costs_one_request_an_interval() {
    let scene = scene(2);
    scene.conduct(0, Conduct::LooksWell);
    // 300 s.
    let statuses = scene.statuses("POST", 3000, PAUSE);
    let failed = count(&statuses, 502);
    assert!((50..=3 + 60).contains(&failed), "{failed} requests failed");
    assert_eq!(count(&statuses, 200) + failed, 3000);
}

#[test]
fn a_server_that_refuses_connections_gets_no_request_until_a_check_passed() {
    let scene = scene(2);
    scene.conduct(1, Conduct::Refuses);
    assert_eq!(scene.statuses("POST", 600, PAUSE), [200; 600]);
    let (connects, checks) = (scene.seen(|it| it.connects)[1], 60 / 5);
    // One request, or none.
    assert!((checks - 1..=checks + 2).contains(&connects), "{connects}");
    let statistics = scene.statistics();
    let failed: Vec<_> = statistics
        .servers
        .iter()
        .map(|it| it.failed_checks)
        .collect();
    assert_eq!(failed[0], 0);
    assert!((11..=12).contains(&failed[1]), "{failed:?}");
}

#[test]
fn a_server_whose_checks_fail_gets_no_requests_unless_all_fail() {
    let scene = scene(2);
    scene.conduct(0, Conduct::LooksIll);
    scene.pass(INTERVAL * 3);
    assert_eq!(scene.statuses("GET", 10, Duration::ZERO), [200; 10]);
    assert_eq!(scene.seen(|it| it.requests), [0, 10]);
    scene.conduct(1, Conduct::LooksIll);
    scene.pass(INTERVAL * 3);
    assert_eq!(up(&scene), [false, false]);
    assert_eq!(scene.statuses("GET", 10, Duration::ZERO), [200; 10]);
    assert_eq!(scene.seen(|it| it.requests), [5, 15]);
    // A single server has no other to take its requests.
    let alone = self::scene(1);
    alone.conduct(0, Conduct::LooksIll);
    alone.pass(INTERVAL * 3);
    assert_eq!(up(&alone), [false]);
    assert_eq!(alone.statuses("GET", 10, PAUSE), [200; 10]);
}

/// A server that accepts connections and does nothing, and one whose answer has no end.
#[test]
fn checks_are_bounded_in_time_and_connections() {
    let scene = scene(2);
    scene.conduct(0, Conduct::IsSilent);
    scene.conduct(1, Conduct::Floods);
    let step = Duration::from_millis(50);
    let span = Duration::from_secs(700);
    let mut passed = Duration::ZERO;
    while passed < span {
        scene.pass(step);
        passed += step;
        let open = scene.seen(|it| it.open);
        assert!(open[0] <= 1 && open[1] == 0, "{open:?} after {passed:?}");
    }
    // Each takes its limit of 2 s, and then the interval passes.
    let checks = scene.seen(|it| it.checks);
    assert!((99..=101).contains(&checks[0]), "{checks:?}");
    assert!((139..=141).contains(&checks[1]), "{checks:?}");
    assert_eq!(up(&scene), [false, true]);
}

#[test]
fn checks_end_with_their_proxy() {
    let scene = scene(3);
    scene.pass(INTERVAL * 2);
    let [before, after] = scene.end_proxy(INTERVAL * 10);
    assert!(before >= 3);
    assert_eq!(before, after);
}
