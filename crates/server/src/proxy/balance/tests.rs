use super::*;

/// None.
const LIMITS: Limits = Limits {
    server_requests: usize::MAX,
    slow_start: Duration::ZERO,
};

const SECOND: Duration = Duration::from_secs(1);

/// The longest time until a server is tried again.
fn longest(outs: u32) -> Duration {
    SECOND * [1, 2, 4, 8, 16, 32][outs.min(5) as usize]
}

/// What a server is, in the simplest way.
#[derive(Clone, Copy, Debug, Default)]
struct Model {
    outstanding: usize,
    failures: u32,
    outs: u32,
    out_until: Option<Duration>,
    trial_until: Option<Duration>,
}

impl Model {
    fn is_up(&self) -> bool {
        self.out_until.is_none() && self.trial_until.is_none()
    }
}

/// The state under test beside the models, and the requests in flight.
struct Scene {
    state: State,
    models: Vec<Model>,
    /// Server, and whether it is its trial.
    requests: Vec<(usize, bool)>,
    now: Duration,
    /// The server whose turn it is.
    next: usize,
}

impl Scene {
    fn new(count: usize, seed: u64) -> Self {
        Self {
            state: State::new(count, seed, false, LIMITS),
            models: vec![Model::default(); count],
            requests: Vec::new(),
            now: Duration::ZERO,
            next: 0,
        }
    }

    fn choose(&mut self, tried: Tried, may_be_out: bool) {
        let now = self.now;
        let chosen = self.state.choose(now, tried, may_be_out);
        let untried: Vec<_> = (0..self.models.len())
            .filter(|it| !tried.has(*it))
            .collect();
        let of = |is: &dyn Fn(&Model) -> bool| -> Vec<usize> {
            let all = untried.iter().copied();
            all.filter(|it| is(&self.models[*it])).collect()
        };
        let due = of(&|model| {
            let until = model.out_until.or(model.trial_until);
            until.is_some_and(|until| until <= now)
        });
        if let Some(first) = due.first() {
            assert_eq!(chosen, Some((*first, true)), "due");
            let model = &mut self.models[*first];
            model.outs += u32::from(model.trial_until.is_some());
            model.out_until = None;
            model.trial_until = Some(now + longest(model.outs));
        } else {
            let mut candidates = of(&Model::is_up);
            if candidates.is_empty() && may_be_out {
                candidates = untried.clone();
            }
            let later = candidates.iter().find(|it| **it >= self.next);
            let Some(in_turn) = later.or(candidates.first()) else {
                assert_eq!(chosen, None);
                return;
            };
            let (server, is_trial) = chosen.expect("a server");
            let outstanding = |it: usize| self.models[it].outstanding;
            assert!(!is_trial && candidates.contains(&server));
            assert!(server == *in_turn || outstanding(server) < outstanding(*in_turn));
            self.next = (in_turn + 1) % self.models.len();
        }
        let chosen = chosen.expect("a server");
        self.models[chosen.0].outstanding += 1;
        self.requests.push(chosen);
    }

    fn succeed(&mut self, server: usize) {
        self.state.succeed(server, self.now);
        let outstanding = self.models[server].outstanding;
        self.models[server] = Model {
            outstanding,
            ..Model::default()
        };
    }

    fn fail(&mut self, server: usize, is_connect: bool) {
        self.state.fail(server, is_connect, self.now);
        let model = &mut self.models[server];
        model.failures += 1;
        let enough = is_connect || model.failures == 3;
        if model.trial_until.is_some() || (model.is_up() && enough) {
            let Health::Out(until) = self.state.servers[server].health else {
                panic!("{server} is not out");
            };
            let longest = longest(model.outs);
            let span = until.saturating_sub(self.now);
            assert!(
                span > longest / 2 && span <= longest,
                "{span:?} of {longest:?}"
            );
            *model = Model {
                outstanding: model.outstanding,
                outs: model.outs + 1,
                out_until: Some(until),
                ..Model::default()
            };
        }
    }

    fn end(&mut self, request: usize) {
        let (server, is_trial) = self.requests.swap_remove(request);
        self.state.end(server, is_trial, self.now);
        let model = &mut self.models[server];
        model.outstanding -= 1;
        if is_trial && model.trial_until.take().is_some() {
            model.out_until = Some(self.now);
        }
    }

    fn check(&self) {
        for (server, model) in self.state.servers.iter().zip(&self.models) {
            assert_eq!(server.outstanding, model.outstanding);
            let health = match (model.out_until, model.trial_until) {
                (Some(until), _) => Health::Out(until),
                (None, Some(until)) => Health::Trial(until),
                (None, None) => Health::Up,
            };
            assert_eq!(server.health, health);
        }
        let trials = |server: usize| {
            let all = self.requests.iter();
            all.filter(|it| **it == (server, true)).count()
        };
        for (number, model) in self.models.iter().enumerate() {
            assert!(
                model.trial_until.is_none() || trials(number) > 0,
                "a trial without a request"
            );
        }
    }
}

#[test]
fn any_sequence_of_events_agrees_with_a_naive_model() {
    for seed in 0..300 {
        let mut random = SplitMix64::stream(seed, 1);
        let mut below = |len: usize| (random.number() % len as u64) as usize;
        let mut scene = Scene::new(2 + below(4), seed);
        for _ in 0..300 {
            let in_flight = scene.requests.len();
            match below(8) {
                0..=2 => {
                    let mut tried = Tried::default();
                    for server in 0..scene.models.len() {
                        if below(4) == 0 {
                            tried.add(server);
                        }
                    }
                    scene.choose(tried, below(2) == 0);
                }
                3 if in_flight > 0 => {
                    let request = below(in_flight);
                    scene.succeed(scene.requests[request].0);
                }
                4 | 5 if in_flight > 0 => {
                    let request = below(in_flight);
                    scene.fail(scene.requests[request].0, below(2) == 0);
                }
                6 if in_flight > 0 => scene.end(below(in_flight)),
                _ => scene.now += Duration::from_millis(below(3000) as u64),
            }
            scene.check();
        }
        while !scene.requests.is_empty() {
            scene.end(0);
        }
        scene.check();
    }
}

/// The servers of some requests, which all stay outstanding.
fn servers(state: &mut State, count: usize) -> Vec<usize> {
    let choose = || state.choose(Duration::ZERO, Tried::default(), true);
    let chosen: Option<Vec<_>> = std::iter::repeat_with(choose).take(count).collect();
    chosen
        .expect("servers")
        .into_iter()
        .map(|it| it.0)
        .collect()
}

#[test]
fn equally_busy_servers_are_used_in_turn_and_a_slow_one_less() {
    let mut state = State::new(3, 1, false, LIMITS);
    assert_eq!(servers(&mut state, 6), [0, 1, 2, 0, 1, 2]);
    let mut state = State::new(3, 1, false, LIMITS);
    state.servers[1].outstanding = 100;
    let chosen = servers(&mut state, 60);
    let share = chosen.iter().filter(|server| **server == 1).count();
    assert_eq!(
        share, 0,
        "another server is compared each time, and has fewer"
    );
}

#[test]
fn a_server_that_fails_again_and_again_is_out_for_longer_up_to_a_bound() {
    let mut state = State::new(2, 7, false, LIMITS);
    let (mut now, mut tried) = (Duration::ZERO, Tried::default());
    tried.add(1);
    let mut spans = Vec::new();
    for _ in 0..40 {
        state.fail(0, true, now);
        let Health::Out(until) = state.servers[0].health else {
            panic!("it is not out");
        };
        assert_eq!(state.choose(now, tried, false), None);
        spans.push(until.saturating_sub(now));
        now = until;
        assert_eq!(state.choose(now, tried, false), Some((0, true)));
        assert_eq!(state.choose(now, tried, false), None, "one trial at a time");
        // Another that was sent before does not count.
        state.end(0, false, now);
    }
    assert!(spans[0] <= SECOND && spans.iter().all(|span| *span <= OUT_MAX));
    assert!(spans[6..].iter().all(|span| *span > OUT_MAX / 2));
    assert_ne!(spans[10], spans[11], "jitter");
    state.succeed(0, Duration::ZERO);
    state.fail(0, true, now);
    assert!(matches!(state.servers[0].health, Health::Out(until) if until <= now + SECOND));
}

/// A slow upload, or a response that the server holds back.
#[test]
fn a_trial_without_an_outcome_keeps_no_server_out() {
    let mut state = State::new(2, 7, false, LIMITS);
    let tried = Tried::default();
    state.fail(0, true, Duration::ZERO);
    let mut now = SECOND;
    for seconds in [2, 4, 8, 16, 32, 32, 32] {
        assert_eq!(state.choose(now, tried, false), Some((0, true)));
        assert_eq!(state.choose(now, tried, false), Some((1, false)));
        now += SECOND * seconds;
    }
    assert_eq!(state.choose(now, tried, false), Some((0, true)));
    state.succeed(0, Duration::ZERO);
    // The end of an earlier trial changes nothing.
    state.end(0, true, now);
    assert_eq!(state.servers[0].health, Health::Up);
}

#[test]
fn failures_among_responses_put_no_server_out() {
    let mut state = State::new(2, 7, false, LIMITS);
    for _ in 0..100 {
        for _ in 1..FAILURES_MAX {
            state.fail(0, false, Duration::ZERO);
        }
        state.succeed(0, Duration::ZERO);
    }
    assert_eq!(state.servers[0].health, Health::Up);
}

#[test]
fn a_server_with_fewer_requests_is_chosen_before_its_turn() {
    let mut state = State::new(2, 1, false, LIMITS);
    let choose = |state: &mut State| state.choose(Duration::ZERO, Tried::default(), false);
    assert_eq!(choose(&mut state), Some((0, false)));
    assert_eq!(choose(&mut state), Some((1, false)));
    state.end(1, false, Duration::ZERO);
    assert_eq!(choose(&mut state), Some((1, false)), "the other has one");
}

#[test]
fn a_single_server_is_never_out() {
    let balance = Balance::new(1, 1, false, LIMITS);
    for _ in 0..2 * FAILURES_MAX {
        balance.fail(0, true);
        let turn = balance.choose(Tried::default(), false);
        assert_eq!(turn.expect("it is up").server(), 0);
    }
    let mut tried = Tried::default();
    tried.add(0);
    assert!(balance.choose(tried, true).is_none());
}

/// A server that is out gets a request after a check passed, and no other until that has its response.
#[test]
fn a_checked_server_that_is_out_is_tried_once_after_each_check_that_passes() {
    let mut state = State::new(2, 1, true, LIMITS);
    let choose = |state: &mut State, now| state.choose(now, Tried::default(), true);
    state.fail(0, true, SECOND);
    for second in 1..1000 {
        let chosen = choose(&mut state, SECOND * second);
        assert_eq!(chosen, Some((1, false)), "no time brings it back");
    }
    let mut now = SECOND * 1000;
    for _ in 0..5 {
        state.check(0, true, 2, now);
        assert_eq!(choose(&mut state, now), Some((0, true)), "the trial");
        assert_eq!(choose(&mut state, now), Some((1, false)));
        state.fail(0, false, now);
        state.end(0, true, now);
        assert_eq!(choose(&mut state, now), Some((1, false)));
        now += SECOND;
    }
    state.check(0, true, 2, now);
    assert_eq!(choose(&mut state, now), Some((0, true)));
    state.succeed(0, Duration::ZERO);
    assert_eq!(state.servers[0].health, Health::Up);
}

#[test]
fn consecutive_failed_checks_put_a_server_out_whatever_its_requests_do() {
    let mut state = State::new(2, 1, true, LIMITS);
    state.check(0, false, 2, SECOND);
    state.check(0, true, 2, SECOND);
    state.check(0, false, 2, SECOND);
    assert_eq!(state.servers[0].health, Health::Up);
    state.check(0, false, 2, SECOND);
    state.succeed(0, Duration::ZERO);
    let chosen = |state: &mut State, tried| state.choose(SECOND, tried, true);
    assert_eq!(chosen(&mut state, Tried::default()), Some((1, false)));
    state.end(1, false, SECOND);
    // While all are out, they get requests as if none was.
    state.check(1, false, 1, SECOND);
    let mut counts = [0, 0];
    for _ in 0..4 {
        let (server, is_trial) = chosen(&mut state, Tried::default()).expect("a server");
        assert!(!is_trial);
        counts[server] += 1;
        state.succeed(server, SECOND);
        state.end(server, is_trial, SECOND);
    }
    assert_eq!(counts, [2, 2]);
}

/// A state of two servers in which the first came back at this time, after a trial.
fn back(now: Duration, limits: Limits) -> State {
    let mut state = State::new(2, 1, false, limits);
    state.fail(0, true, Duration::ZERO);
    assert_eq!(state.choose(now, Tried::default(), false), Some((0, true)));
    state.succeed(0, now);
    state.end(0, true, now);
    state
}

#[test]
fn the_share_of_a_server_that_came_back_grows_to_that_of_the_others() {
    let limits = Limits {
        slow_start: 10 * SECOND,
        ..LIMITS
    };
    let share = |state: &mut State, now| {
        let mut count = 0;
        for _ in 0..10_000 {
            let (server, is_trial) = state.choose(now, Tried::default(), false).expect("one");
            assert!(!is_trial);
            count += u32::from(server == 0);
            state.end(server, false, now);
        }
        f64::from(count) / 1e4
    };
    let began = 2 * SECOND;
    for busy in [0, 100] {
        let mut state = back(began, limits);
        // The other has more requests in flight, and the share grows no faster.
        state.servers[1].outstanding = busy;
        for (seconds, expected) in [(0, 0.0), (2, 0.1), (5, 0.25), (9, 0.45)] {
            let share = share(&mut state, began + seconds * SECOND);
            assert!((share - expected).abs() < 0.03, "{share} {expected} {busy}");
        }
        let share = share(&mut state, began + limits.slow_start);
        let expected = if busy > 0 { 1.0 } else { 0.5 };
        assert!((share - expected).abs() < 0.03, "{share} {expected}");
    }
    // One that comes back again starts again; so it does as often as it fails.
    let mut state = back(began, limits);
    let mut now = began;
    for _ in 0..5 {
        now += 20 * SECOND;
        assert!(share(&mut state, now) > 0.45);
        state.fail(0, true, now);
        now += SECOND;
        assert_eq!(state.choose(now, Tried::default(), false), Some((0, true)));
        state.succeed(0, now);
        state.end(0, true, now);
        assert!(share(&mut state, now) < 0.01);
    }
    // Without others, it gets all requests; if both came back, they share them.
    let mut others = Tried::default();
    others.add(1);
    assert_eq!(state.choose(now, others, false), Some((0, false)));
    state.end(0, false, now);
    state.servers[1].came_back = Some(now);
    let share = share(&mut state, now);
    assert!((share - 0.5).abs() < 0.03, "{share}");
}

#[test]
fn servers_that_came_back_together_do_not_take_the_requests_of_each_other() {
    let limits = Limits {
        slow_start: 10 * SECOND,
        ..LIMITS
    };
    let mut state = State::new(3, 1, false, limits);
    state.servers[1].came_back = Some(SECOND);
    state.servers[2].came_back = Some(SECOND);
    for (seconds, expected) in [(0, 0.0), (5, 1.0 / 6.0), (10, 1.0 / 3.0)] {
        let now = SECOND + seconds * SECOND;
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            let (server, _) = state.choose(now, Tried::default(), false).expect("one");
            counts[server] += 1;
            state.end(server, false, now);
        }
        for count in &counts[1..] {
            let share = f64::from(*count) / 1e4;
            assert!((share - expected).abs() < 0.03, "{seconds}: {counts:?}");
        }
    }
}

#[test]
fn no_server_gets_more_requests_than_its_limit() {
    let limits = Limits {
        server_requests: 2,
        ..LIMITS
    };
    let choose =
        |state: &mut State, now, may_be_out| state.choose(now, Tried::default(), may_be_out);
    let mut state = State::new(2, 1, false, limits);
    assert_eq!(servers(&mut state, 4), [0, 1, 0, 1]);
    for may_be_out in [false, true] {
        assert_eq!(choose(&mut state, SECOND, may_be_out), None);
    }
    state.end(1, false, SECOND);
    assert_eq!(choose(&mut state, SECOND, false), Some((1, false)));
    // One that is out does not get what the other cannot take; nor does a trial exceed its limit.
    state.fail(0, true, SECOND);
    assert_eq!(choose(&mut state, SECOND, true), None);
    assert_eq!(choose(&mut state, 3 * SECOND, true), None);
    state.end(0, false, 3 * SECOND);
    assert_eq!(choose(&mut state, 3 * SECOND, true), Some((0, true)));
    // While all are out, limits hold as well.
    state.fail(0, true, 4 * SECOND);
    state.fail(1, true, 4 * SECOND);
    assert_eq!(choose(&mut state, 4 * SECOND, true), None);
    state.end(1, false, 4 * SECOND);
    assert_eq!(choose(&mut state, 4 * SECOND, true), Some((1, false)));
}
