//! One seed, one history; requests in sequence; flows at their times.

use core::time::Duration;
use std::{
    fmt::Write,
    sync::{Arc, Mutex},
};

use lastbyte_congestion::{Registry, Time};
use lastbyte_link as link;
use lastbyte_quic::trace::{Event, Trace};
use lastbyte_scenario::{CrossTraffic, Direction, FlowPlan, Request, Scenario};
use lastbyte_sim::{LinkEvent, Listener, simulate};
use lastbyte_wire::Side;

use crate::paths::{bottleneck, run, transfer};

/// Writes all events into one text.
#[derive(Default)]
struct Scribe(Arc<Mutex<String>>);

struct SenderTrace {
    text: Arc<Mutex<String>>,
    name: String,
}

impl Trace for SenderTrace {
    fn on_event(&mut self, now: Time, event: &Event<'_>) {
        let mut text = self.text.lock().expect("one thread");
        writeln!(text, "{now:?} {} {event:?}", self.name).expect("memory");
    }
}

impl Listener for Scribe {
    fn trace(&mut self, flow: usize, side: Side) -> Option<Box<dyn Trace>> {
        Some(Box::new(SenderTrace {
            text: Arc::clone(&self.0),
            name: format!("{flow} {side:?}"),
        }))
    }

    fn wants_link_events(&self) -> bool {
        true
    }

    fn on_link(&mut self, event: &LinkEvent) {
        let mut text = self.0.lock().expect("one thread");
        writeln!(text, "{event:?}").expect("memory");
    }
}

pub(crate) fn history(scenario: &Scenario) -> String {
    let mut scribe = Scribe::default();
    let outcome = simulate(scenario, &mut scribe).expect("a scenario");
    let mut text = std::mem::take(&mut *scribe.0.lock().expect("one thread"));
    write!(text, "{outcome:?}").expect("memory");
    text
}

/// Several flows over a path with all impairments.
fn eventful(seed: u64) -> Scenario {
    let mut path = bottleneck(20, 30, 40);
    path.down.loss = vec![link::Loss::Bernoulli(0.01)];
    path.down.duplication = 0.01;
    path.down.jitter = Some(link::Jitter {
        spread: link::Spread::Exponential(Duration::from_millis(1)),
        may_reorder: true,
    });
    path.down.reordering = Some(link::Reordering {
        probability: 0.01,
        extra: Duration::from_millis(5),
    });
    path.up.loss = vec![link::Loss::Bernoulli(0.01)];
    path.up.release = Some(link::Spacing::Random(Duration::from_millis(4)));
    let mut scenario = transfer(path, "rapid-start", 500_000);
    scenario.flows.push(FlowPlan {
        congestion: "bbr".parse().expect("a spec"),
        start: Duration::from_millis(50),
        rtt: Some(Duration::from_millis(70)),
        direction: Direction::Down,
        requests: vec![
            Request::of(100_000),
            Request {
                pause: Duration::from_millis(300),
                size: 200_000,
                is_parallel: false,
            },
        ],
        progress: vec![50_000],
    });
    let cross = [
        "cbr:1mbit start 20ms",
        "cubic",
        "bbr rtt 90ms",
        "stack:cubic",
        "newreno up",
        "pages:cubic 100kB 300ms",
    ];
    scenario.cross = cross
        .map(|text| CrossTraffic::parse(text, &Registry::builtin()).expect(text))
        .to_vec();
    scenario.transport.ecn = true;
    scenario.seed = seed;
    scenario
}

#[test]
fn same_seed_same_history_to_the_byte() {
    let first = history(&eventful(3));
    assert!(first.len() > 1_000_000, "{}", first.len());
    assert!(
        first == history(&eventful(3)),
        "the same seed, another history"
    );
    assert!(
        first != history(&eventful(4)),
        "another seed, the same history"
    );
}

#[test]
fn observers_do_not_change_the_outcome() {
    let scenario = eventful(5);
    let mut scribe = Scribe::default();
    let heard = simulate(&scenario, &mut scribe).expect("a scenario");
    let unheard = simulate(&scenario, &mut ()).expect("a scenario");
    assert_eq!(format!("{heard:?}"), format!("{unheard:?}"));
}

#[test]
fn consecutive_requests_share_one_connection() {
    let mut scenario = transfer(bottleneck(50, 40, 60), "slow-start", 100_000);
    scenario.flows[0].requests.push(Request {
        pause: Duration::from_secs(2),
        size: 100_000,
        is_parallel: false,
    });
    scenario.flows[0].requests.push(Request::of(0));
    let outcome = run(&scenario);
    let flow = &outcome.flows[0];
    assert!(flow.is_complete(), "{flow:?}");
    let [first, second, third] = flow.responses[..] else {
        panic!("three responses: {flow:?}");
    };
    let end = first.requested_at + first.last_byte.expect("it arrives");
    assert_eq!(second.requested_at, end + Duration::from_secs(2));
    // The second needs no handshake, and finds the window that the first opened.
    assert!(second.last_byte.expect("it arrives") < first.last_byte.expect("it arrives"));
    // The third has no byte, but an end.
    assert_eq!(third.first_byte, None);
    assert!(third.last_byte.expect("its end arrives") >= Duration::from_millis(40));
}

#[test]
fn a_flow_starts_at_its_time() {
    let mut scenario = transfer(bottleneck(50, 40, 60), "slow-start", 100_000);
    scenario.flows[0].start = Duration::from_millis(700);
    let late = run(&scenario);
    scenario.flows[0].start = Duration::ZERO;
    let early = run(&scenario);
    assert_eq!(late.flows[0].started_at, Time::from_nanos(700_000_000));
    assert_eq!(
        late.flows[0].responses[0].last_byte,
        early.flows[0].responses[0].last_byte
    );
}

#[test]
fn invalid_scenarios_are_errors() {
    let good = transfer(bottleneck(50, 40, 60), "slow-start", 1);
    let error = |change: &dyn Fn(&mut Scenario)| {
        let mut scenario = good.clone();
        change(&mut scenario);
        simulate(&scenario, &mut ())
            .expect_err("an invalid scenario")
            .to_string()
    };
    assert!(error(&|one| one.flows.clear()).contains("no flow"));
    assert!(error(&|one| one.flows[0].requests.clear()).contains("without requests"));
    assert!(error(&|one| one.transport.datagram_size = 1199).contains("1200"));
    assert!(error(&|one| one.path.down.duplication = 2.0).contains("the downlink"));
}

/// Collects the first events.
#[derive(Default)]
struct FirstEvents(Arc<Mutex<Vec<String>>>);

impl Trace for FirstEvents {
    fn on_event(&mut self, _: Time, event: &Event<'_>) {
        if let Event::Started {
            original_destination,
        } = event
        {
            let mut all = self.0.lock().expect("one thread");
            all.push(original_destination.to_string());
        }
    }
}

impl Listener for FirstEvents {
    fn trace(&mut self, _: usize, _: Side) -> Option<Box<dyn Trace>> {
        Some(Box::new(Self(Arc::clone(&self.0))))
    }
}

/// So that tools find the two qlog files of a connection.
#[test]
fn rfc9000_7_3_both_ends_report_the_original_destination_connection_id() {
    let mut events = FirstEvents::default();
    simulate(
        &transfer(bottleneck(20, 40, 50), "cubic", 1000),
        &mut events,
    )
    .expect("a scenario");
    let ids = events.0.lock().expect("one thread").clone();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert_eq!(ids[0], ids[1]);
    assert!(ids[0].len() >= 16, "{ids:?}");
}
