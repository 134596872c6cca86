//! Several objects on a connection, at once and one after the other, and uploads.

use core::time::Duration;

use lastbyte_link as link;
use lastbyte_scenario::{Direction, Experiment, Scenario, Workload, experiment::Plan};
use lastbyte_sim::{Outcome, simulate};

use crate::paths::{bottleneck, run, transfer};

const SECOND: Duration = Duration::from_secs(1);

/// Objects of 100 kB over 20 Mb/s and 40 ms.
fn objects(workload: Workload) -> Scenario {
    let mut scenario = transfer(bottleneck(20, 40, 60), "cubic", 100_000);
    scenario.flows[0].requests = workload.requests(|_| 100_000);
    scenario.flows[0].direction = workload.direction;
    scenario
}

/// Milliseconds until the last byte of the first flow's last object.
fn end_ms(outcome: &Outcome) -> f64 {
    let end = outcome.flows[0].last_byte().expect("a complete flow");
    end.as_secs_f64() * 1e3
}

#[test]
fn parallel_objects_share_the_connection() {
    let workload = Workload {
        parallel: 4,
        ..Workload::default()
    };
    let outcome = run(&objects(workload));
    let flow = &outcome.flows[0];
    assert!(flow.is_complete(), "{flow:?}");
    let starts: Vec<_> = flow.responses.iter().map(|one| one.requested_at).collect();
    assert_eq!(starts, [flow.started_at; 4]);
    // All have started before one ends: they share the window instead of waiting for each other.
    let begun = flow.responses.iter().map(|one| one.first_byte).max();
    let ended = flow.responses.iter().map(|one| one.last_byte).min();
    assert!(begun.flatten() < ended.flatten(), "{flow:?}");
    // Together they take as long as one object of the total size, apart from headers.
    let one = run(&transfer(bottleneck(20, 40, 60), "cubic", 400_000));
    let (all, one) = (end_ms(&outcome), end_ms(&one));
    assert!((0.0..10.0).contains(&(all - one)), "{all} and {one} ms");
}

#[test]
fn rounds_follow_each_other_after_their_pauses() {
    let workload = Workload {
        requests: 3,
        parallel: 2,
        pause: SECOND,
        ..Workload::default()
    };
    let outcome = run(&objects(workload));
    let flow = &outcome.flows[0];
    assert_eq!(flow.responses.len(), 6);
    for round in [2, 4] {
        let before = &flow.responses[round - 2..round];
        let end = before
            .iter()
            .map(|one| one.requested_at + one.last_byte.expect("it arrives"))
            .max();
        let end = end.expect("two responses");
        for one in &flow.responses[round..round + 2] {
            assert_eq!(one.requested_at, end + SECOND);
        }
    }
    let server = flow.server.as_ref().expect("a server");
    let (start, end) = server.requested_at.zip(server.acked_at).expect("complete");
    let parts = server.snapshot.anatomy().expect("parts");
    let difference = parts.transfer().abs_diff(end.since(start));
    assert!(difference < Duration::from_millis(1), "{parts:?}");
    // The pauses belong to the application.
    assert!(parts.application >= SECOND * 2, "{parts:?}");
}

#[test]
fn as_many_streams_as_are_permitted_complete_round_after_round() {
    let workload = Workload {
        requests: 5,
        parallel: 50,
        ..Workload::default()
    };
    workload.check().expect("the limit is permitted");
    let mut scenario = objects(workload);
    for request in &mut scenario.flows[0].requests {
        request.size = 3000;
    }
    let outcome = run(&scenario);
    assert!(outcome.flows[0].is_complete());
}

#[test]
fn a_flow_that_ends_before_its_last_request_is_not_complete() {
    let workload = Workload {
        requests: 2,
        pause: SECOND * 10,
        ..Workload::default()
    };
    let mut scenario = objects(workload);
    scenario.time_limit = SECOND * 5;
    let flow = &run(&scenario).flows[0];
    assert_eq!((flow.responses.len(), flow.planned), (1, 2));
    assert!(!flow.is_complete() && flow.last_byte().is_none());
    let server = flow.server.as_ref().expect("a server");
    assert_eq!(server.acked_at, None);
}

fn upload() -> Scenario {
    let mut scenario = objects(Workload {
        direction: Direction::Up,
        ..Workload::default()
    });
    assert!(scenario.path.turn_for_uploads());
    scenario.flows[0].requests[0].size = 1_000_000;
    scenario
}

#[test]
fn the_client_of_an_upload_is_the_sender_and_its_link_the_bottleneck() {
    let scenario = upload();
    let outcome = run(&scenario);
    let flow = &outcome.flows[0];
    assert!(flow.is_complete(), "{flow:?}");
    let sender = flow.server.as_ref().expect("the client's side");
    assert!(sender.recovery.bytes_sent > 1_000_000);
    assert!(sender.streams.data_sent >= 1_000_000);
    assert!(outcome.bottleneck.utilisation > Some(0.7));
    assert!(outcome.up.served.bytes > 1_000_000 && outcome.down.served.bytes < 200_000);
    // As long as the download of as much over the same line, but for half of a round trip at the end.
    let down = transfer(bottleneck(20, 40, 60), "cubic", 1_000_000);
    let (up, down) = (end_ms(&outcome), end_ms(&run(&down)));
    assert!((0.9..1.1).contains(&(up / down)), "{up} and {down} ms");
    let (start, end) = sender.requested_at.zip(sender.acked_at).expect("complete");
    let parts = sender.snapshot.anatomy().expect("parts");
    let difference = parts.transfer().abs_diff(end.since(start));
    assert!(difference < Duration::from_millis(1), "{parts:?}");
}

#[test]
fn congestion_control_of_an_upload_is_that_of_the_client() {
    let times = ["slow-start", "rapid-start"].map(|spec| {
        let mut scenario = upload();
        scenario.flows[0].congestion = spec.parse().expect(spec);
        scenario.flows[0].requests[0].size = 200_000;
        end_ms(&run(&scenario))
    });
    assert!(times[1] < times[0] - 10.0, "{times:?}");
}

#[test]
fn losses_of_an_upload_are_those_of_the_link_up() {
    let mut scenario = upload();
    scenario.path.up.loss = vec![link::Loss::Bernoulli(0.02)];
    let outcome = run(&scenario);
    let flow = &outcome.flows[0];
    assert!(flow.is_complete());
    let lost = flow
        .server
        .as_ref()
        .expect("the client")
        .recovery
        .packets_lost;
    assert!(lost > 0 && flow.drops.len() as u64 >= lost / 2, "{lost}");
    assert_eq!(
        flow.drops.len() as u64,
        outcome.up.dropped_total().packets,
        "drops of the uplink"
    );
}

const TWO: &str = "
name = 'two'
connections = 40
[[arms]]
name = 'a'
spec = 'slow-start'
[[arms]]
name = 'b'
spec = 'rapid-start'
";

fn experiment(keys: &str) -> Experiment {
    Experiment::parse(&TWO.replacen("connections = 40", keys, 1)).expect(keys)
}

#[test]
fn an_experiment_draws_each_object_by_itself() {
    let experiment = experiment("requests = 2\nparallel = 3\npause = '1s'");
    let plan = experiment.connection(7, true);
    let requests = &experiment.scenario(&plan).flows[0].requests;
    assert_eq!(requests.len(), 6);
    assert_eq!(requests[0].size, plan.draw.size_bytes);
    let mut sizes: Vec<u64> = requests.iter().map(|one| one.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    assert_eq!(sizes.len(), 6, "{requests:?}");
    // The partner on the same path transfers the same.
    let partner = experiment.connection(6, true);
    assert_eq!(&experiment.scenario(&partner).flows[0].requests, requests);
    // The path is that of an experiment with one object.
    let one = Experiment::parse(TWO)
        .expect("an experiment")
        .connection(7, true);
    assert_eq!(one.draw.facts, plan.draw.facts);
}

#[test]
fn uploads_of_a_population_complete_and_add_up() {
    let experiment = experiment("direction = 'up'");
    let mut complete = 0;
    let mut limited = 0;
    for index in 0..60 {
        let plan: Plan = experiment.connection(index, true);
        let scenario = experiment.scenario(&plan);
        let facts = &plan.draw.facts;
        // Data have the line's rate, or the rate that the class has on the uplink.
        let capacity = &scenario.path.up.capacity;
        assert!(!matches!(capacity, link::Capacity::Unlimited), "{index}");
        limited += u32::from(facts.up_rate == Some(facts.rate));
        let outcome = simulate(&scenario, &mut ()).expect("a scenario");
        complete += u32::from(outcome.flows[0].is_complete());
        assert_eq!(outcome.direction, Direction::Up);
    }
    assert!(complete >= 55, "{complete}");
    assert!(limited > 0, "no class with a rate of its own on the uplink");
}

#[test]
fn keys_of_a_workload_are_checked() {
    let error = |keys: &str| {
        let text = TWO.replacen("connections = 40", keys, 1);
        Experiment::parse(&text).expect_err(keys).to_string()
    };
    assert!(error("requests = 0").starts_with("`requests`: 0 (expected"));
    assert!(error("parallel = 51").starts_with("`parallel`: 51 (expected"));
    assert!(error("pause = '1s'").starts_with("`pause`: it needs `requests`"));
    assert!(error("direction = 'left'").contains("`left` (expected `down` or `up`)"));
    let neighbours = error("direction = 'up'\nneighbours = ['cubic']");
    assert!(neighbours.starts_with("`neighbours`: "), "{neighbours}");
}
