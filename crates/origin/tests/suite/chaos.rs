//! The whole HTTP/3 server in virtual time among good and hostile clients, datagrams with faults, and a shutdown, each from a
//! seed; and what must always hold. Shared with the example `world`.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use lastbyte_quic::close::CloseReason;
use lastbyte_testkit::Input;
use lastbyte_units::SplitMix64;

use crate::{
    application::Peer,
    world::{End, Faults, UNSAFE, World},
};

/// What good clients fetch: an object, and how its request must end.
const OBJECTS: [(&str, End); 8] = [
    ("/", End::Complete(200, 3)),
    ("/large", End::Complete(200, 100_000)),
    ("/late", End::Complete(200, 4)),
    ("/hint", End::Complete(200, 4)),
    ("/invalid", End::Failed),
    ("/short", End::Failed),
    ("/failing", End::Failed),
    (UNSAFE, End::Complete(200, 3)),
];
/// The response to an unsafe request in 0-RTT.
const TOO_EARLY: End = End::Complete(425, 50);
/// The time that the server's CPU takes for a datagram.
const COST: Duration = Duration::from_micros(20);
/// The longest time that a good client needs.
const PATIENCE: Duration = Duration::from_secs(120);

/// What happens in a run.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    faults: Faults,
    /// Seeds of hostile clients.
    hostile: Vec<u64>,
    /// Seeds of good clients.
    good: Vec<u64>,
    /// Clients that do nothing.
    idle: usize,
    steps: u64,
    /// The step at which the server shuts down, and how long requests in flight may last then.
    shutdown: Option<(u64, Duration)>,
    /// Steps at which the arms are replaced.
    reloads: Vec<u64>,
    /// Steps at which the first flight of a client is sent again.
    replays: Vec<u64>,
    /// Steps at which the server's socket takes no datagrams, and for how long.
    blocks: Vec<(u64, Duration)>,
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = SplitMix64::stream(seed, 0);
        let mut below = |limit: u64| random.number() % limit;
        let faults = if below(3) == 0 {
            Faults::default()
        } else {
            Faults {
                loss: below(80),
                duplication: below(60),
                reordering: below(100),
            }
        };
        let (hostile, good) = (below(4), 1 + below(3));
        let idle = if below(10) == 0 { below(200) } else { 0 };
        let steps = 5 + below(60);
        let is_ended = below(2) == 0;
        let shutdown = (below(steps), Duration::from_millis(below(3000)));
        let (reloads, replays) = (below(3), below(4));
        let blocks = below(3);
        let reloads = (0..reloads).map(|_| below(steps)).collect();
        let replays = (0..replays).map(|_| below(steps)).collect();
        let blocks = (0..blocks).map(|_| (below(steps), Duration::from_micros(below(50_000))));
        let blocks = blocks.collect();
        Self {
            seed,
            faults,
            hostile: (0..hostile).map(|number| 100 + number).collect(),
            good: (0..good).map(|number| 200 + number).collect(),
            idle: idle as usize,
            steps,
            shutdown: is_ended.then_some(shutdown),
            reloads,
            replays,
            blocks,
        }
    }

    /// The same without an attack: only good clients.
    fn without_attack(&self) -> Self {
        Self {
            hostile: Vec::new(),
            idle: 0,
            replays: Vec::new(),
            ..self.clone()
        }
    }

    /// Whether its times can be compared with those of another plan: nothing is left to chance or cut short.
    fn has_times(&self) -> bool {
        self.faults == Faults::default() && self.shutdown.is_none() && self.blocks.is_empty()
    }

    /// The same plan with one thing less, in each way.
    fn smaller(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut Self)| {
            let mut plan = self.clone();
            change(&mut plan);
            if plan != *self {
                all.push(plan);
            }
        };
        for index in 0..self.hostile.len() {
            add(&|plan| _ = plan.hostile.remove(index));
        }
        for index in 0..self.good.len() {
            add(&|plan| _ = plan.good.remove(index));
        }
        add(&|plan| plan.idle /= 2);
        add(&|plan| plan.shutdown = None);
        add(&|plan| _ = plan.reloads.pop());
        add(&|plan| _ = plan.replays.pop());
        add(&|plan| _ = plan.blocks.pop());
        add(&|plan| plan.faults.loss = 0);
        add(&|plan| plan.faults.duplication = 0);
        add(&|plan| plan.faults.reordering = 0);
        add(&|plan| plan.steps /= 2);
        add(&|plan| plan.steps -= 1.min(plan.steps));
        all
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            faults,
            hostile,
            good,
            idle,
            steps,
            shutdown,
            reloads,
            replays,
            blocks,
        } = self;
        write!(
            f,
            "seed {seed}, {steps} steps, hostile clients {hostile:?}, good clients {good:?}, {idle} idle clients, {faults:?}, shutdown {shutdown:?}, reloads at {reloads:?}, replays at {replays:?}, full socket {blocks:?}"
        )
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// The longest time of a request of each good client.
    longest: Vec<Duration>,
    pub(crate) complete: u64,
    pub(crate) failed: u64,
    pub(crate) requests: usize,
    pub(crate) hostile_closed: u64,
}

/// Runs a plan. Panics where something does not hold.
fn play(plan: &Plan) -> Report {
    let mut random = SplitMix64::stream(plan.seed, 1);
    let mut world = World::new(plan.hostile.len() + plan.idle);
    world.set_faults(random.number(), plan.faults);
    world.cost = COST;
    let mut peers: Vec<(Peer, SplitMix64)> = (0..)
        .zip(&plan.hostile)
        .map(|(index, stream)| (Peer::new(index), SplitMix64::stream(plan.seed, *stream)))
        .collect();
    let mut begins: Vec<(u64, bool, Vec<&'static str>)> = plan
        .good
        .iter()
        .map(|stream| {
            let mut random = SplitMix64::stream(plan.seed, *stream);
            let objects = 1 + random.number() % 12;
            let object = |_| OBJECTS[random.number() as usize % OBJECTS.len()].0;
            let wanted = (0..objects).map(object).collect();
            let begin = random.number() % plan.steps.max(1);
            (begin, random.number().is_multiple_of(2), wanted)
        })
        .collect();
    for step in 0..plan.steps {
        for (begin, resumes, wanted) in &mut begins {
            if *begin == step {
                world.add_good(std::mem::take(wanted), *resumes);
            }
        }
        for _ in plan.reloads.iter().filter(|at| **at == step) {
            world.reload();
        }
        for (which, _) in (0..).zip(&plan.replays).filter(|(_, at)| **at == step) {
            world.replay(which);
        }
        for (_, span) in plan.blocks.iter().filter(|(at, _)| *at == step) {
            world.blocked_until = world.now + *span;
        }
        if let Some((at, limit)) = plan.shutdown
            && at == step
        {
            // At any microsecond.
            world.pass(Duration::from_micros(plan.seed % 1000));
            world.shut_down(limit);
        }
        for (peer, random) in &mut peers {
            let bytes: Vec<u8> = (0..4).flat_map(|_| random.number().to_le_bytes()).collect();
            let mut input = Input::new(&bytes);
            for _ in 0..3 {
                peer.step(&mut world, &mut input);
                world.check();
            }
        }
        world.pass(Duration::from_millis(random.number() % 40));
        world.check();
    }
    world.pass(PATIENCE);
    let report = check_responses(plan, &mut world);
    world.end();
    report
}

/// Checks how the requests of good clients and all connections ended.
fn check_responses(plan: &Plan, world: &mut World) -> Report {
    let mut report = Report {
        requests: world.requests(),
        ..Report::default()
    };
    for good in &mut world.goods {
        let fetches = good.engine.application();
        let is_cut_short = plan.shutdown.is_some();
        assert!(
            fetches.is_over,
            "a good client is not over: {:?}",
            fetches.requests
        );
        assert!(
            fetches.left() == 0 || is_cut_short,
            "requests were not sent"
        );
        let is_early = fetches.resumed.is_some();
        let took = fetches.requests.values().map(|fetch| fetch.took);
        report.longest.push(took.max().unwrap_or_default());
        for fetch in fetches.requests.values() {
            let expected = OBJECTS.iter().find(|(path, _)| *path == fetch.path);
            let expected = expected.map(|(_, end)| *end);
            // A shutdown may end any request, but not with something else.
            let is_right = fetch.end == expected
                || (is_cut_short && fetch.end == Some(End::Failed))
                || (is_early && fetch.path == UNSAFE && fetch.end == Some(TOO_EARLY));
            assert!(is_right, "{fetch:?}: {expected:?} is right");
            match fetch.end {
                Some(End::Complete(..)) => report.complete += 1,
                _ => report.failed += 1,
            }
        }
        if is_cut_short && plan.faults.loss == 0 {
            let has_close = !matches!(fetches.closed, Some(CloseReason::IdleTimeout));
            assert!(has_close, "a client was left without a close");
        }
    }
    for client in world.clients.iter().take(plan.hostile.len()) {
        report.hostile_closed += u64::from(client.closed.is_some());
    }
    if plan.shutdown.is_some() && plan.faults.loss == 0 {
        for client in &world.clients {
            let has_close = !matches!(client.closed, None | Some(CloseReason::IdleTimeout));
            assert!(
                has_close,
                "a client was left without a close: {:?}",
                client.closed
            );
        }
    }
    report
}

/// Runs a plan, and again without its attack if the times of good clients can be compared.
fn compare(plan: &Plan) -> Report {
    let report = play(plan);
    let calm = plan.without_attack();
    if plan.has_times() && calm != *plan {
        for (attacked, calm) in report.longest.iter().zip(play(&calm).longest) {
            assert!(
                *attacked <= 2 * calm,
                "a request took {attacked:?}, without the attack {calm:?}"
            );
        }
    }
    report
}

/// Runs a plan.
///
/// # Errors
///
/// Returns what does not hold.
pub(crate) fn run(plan: &Plan) -> Result<Report, String> {
    catch_unwind(AssertUnwindSafe(|| compare(plan))).map_err(|why| {
        let text = why.downcast_ref::<String>().cloned();
        let text = text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        text.unwrap_or_else(|| "a panic without a text".to_owned())
    })
}

/// The smallest plan that still fails, found by leaving out one thing after another.
pub(crate) fn shrink(mut plan: Plan) -> Plan {
    while let Some(smaller) = plan.smaller().into_iter().find(|plan| run(plan).is_err()) {
        plan = smaller;
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEDS: u64 = 300;

    #[test]
    fn good_requests_end_rightly_and_nothing_is_kept_among_hostile_clients_and_faults() {
        let mut all = Report::default();
        for seed in 0..SEEDS {
            let plan = Plan::of(seed);
            match run(&plan) {
                Ok(report) => {
                    all.complete += report.complete;
                    all.failed += report.failed;
                    all.requests += report.requests;
                    all.hostile_closed += report.hostile_closed;
                }
                Err(error) => panic!(
                    "{plan}: {error}\nthe least that fails: {}\nto repeat: cargo run --release -p lastbyte-origin --example world -- --seed {seed}",
                    shrink(plan.clone())
                ),
            }
        }
        // Each must occur.
        assert!(all.complete > SEEDS && all.failed > SEEDS / 2, "{all:?}");
        assert!(
            all.requests as u64 > 10 * SEEDS && all.hostile_closed > SEEDS / 10,
            "{all:?}"
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        for seed in 0..5 {
            let plan = Plan::of(seed);
            assert_eq!(run(&plan), run(&plan), "{plan}");
        }
    }
}
