//! A ramp in virtual time while servers crash, restart and hand over, logs are lost, clocks jump, and the directory of its decisions
//! fails, each from a seed; and what must always hold.
//!
//! A disk that is full and a process that ends are one of the states that the order of writes allows: a part of a line, the whole
//! line without the experiment file, or both.
//!
//! Every other seed is a fleet: each server has a log of its own, and `steer` decides by them, or by their states.

#![expect(clippy::disallowed_methods, reason = "logs and decisions are files")]

use std::{env, fmt::Write as _, fs};

use lastbyte_steer::ramp::{Action, Ramp as Decisions};
use lastbyte_units::SplitMix64;

use super::*;
use crate::commands::{sealed, steer::decisions};

const PLAN: &str = "name = 'ramp'\nbaseline = 'old'\n
[[arms]]\nname = 'new'\nspec = 'rapid-start'\n
[[arms]]\nname = 'old'\nspec = 'cubic:initial-window=10p'\n
[plan]\nstages = ['10%', '30%', '50%']\nleast-time = '2h'\nleast-connections = 100\nmost-time = '2d'\nstate = 'state'\n";
const LEAST: u64 = 100;
const STAGES: [f64; 3] = [0.1, 0.3, 0.5];
const HOLDBACK: f64 = 0.05;
/// A whole hour of September 2020.
const STARTED_MS: u64 = 1_599_998_400_000;
const HOUR_MS: u64 = 3_600_000;
const HOURS: u64 = 36;
const LINES_AN_HOUR: u64 = 200;

/// What is done about an error that must not be.
fn failed<T>(seed: u64) -> impl FnOnce(Failure) -> T {
    move |failure| panic!("seed {seed}: {failure:?}")
}

/// A server: what it assigns by, and its log.
struct Server {
    /// The share of the arm, and the number of the epoch.
    share: f64,
    epoch: u32,
    /// Lines that are on the disk.
    log: String,
    /// The difference of its clock.
    skew_ms: i64,
    /// Whether a look had lines of its log.
    is_seen: bool,
}

struct World {
    seed: u64,
    random: SplitMix64,
    folder: PathBuf,
    /// The ramp of `serve`, which is also that of the fleet's controller.
    ramp: Ramp,
    servers: Vec<Server>,
    /// Whether each server has a log of its own.
    is_fleet: bool,
    /// Whether servers are of one site, so that lines of one may hide that those of another are lost.
    has_one_site: bool,
    /// Whether a clock is wrong, so that decisions of late lines may differ.
    has_wrong_clock: bool,
    /// How often something happened: looks, failures, recoveries, stops, decisions.
    counts: [u64; 5],
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = SplitMix64::stream(seed, 0);
        let folder = env::temp_dir().join(format!("lastbyte-ramp-{}-{seed}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).expect("room");
        let file = folder.join("ramp.toml");
        fs::write(&file, PLAN).expect("room");
        let controller = Controller::read(&file, &Registry::builtin())
            .unwrap_or_else(failed(seed))
            .expect("a plan");
        let ramp = Ramp {
            controller: Arc::new(controller),
            folder: folder.join("state"),
            log: folder.join("log"),
            lead: steer::lead(&folder.join("state"))
                .expect("room")
                .map(Arc::new),
            look: None,
            is_recorded: true,
            looked_at_ms: 0,
        };
        fs::write(&ramp.log, "").expect("room");
        let started = ramp.decide(&[], STARTED_MS + 60_000);
        let ramp = started.unwrap_or_else(failed(seed)).expect("no other");
        let has_wrong_clock = random.number().is_multiple_of(3);
        let count = 1 + random.number() % 3;
        let servers = (0..count).map(|_| Server {
            share: STAGES[0],
            epoch: ramp.epoch(),
            log: String::new(),
            is_seen: false,
            skew_ms: if has_wrong_clock {
                ((random.number() % 8).cast_signed() - 4) * HOUR_MS.cast_signed()
            } else {
                0
            },
        });
        let servers = servers.collect();
        let has_one_site = random.number().is_multiple_of(2);
        Self {
            seed,
            random,
            folder,
            ramp,
            servers,
            is_fleet: seed % 2 == 1,
            has_one_site,
            has_wrong_clock,
            counts: [0; 5],
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.number() % limit
    }

    fn unit(&mut self) -> f64 {
        (self.random.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn decisions_file(&self) -> PathBuf {
        self.folder.join("state/decisions.ndjson")
    }

    fn decisions(&self) -> Decisions {
        decisions(&self.folder.join("state"))
            .unwrap_or_else(failed(self.seed))
            .ramp
    }

    /// An hour of connections, each assigned by what its server knows.
    fn traffic(&mut self, hour: u64, effect: f64) {
        for number in 0..LINES_AN_HOUR {
            let place = self.below(self.servers.len() as u64) as usize;
            let (is_arm, spread) = (self.unit() < self.servers[place].share, self.unit());
            let ttlb = 400.0 * (spread - 0.5).exp() * if is_arm { effect } else { 1.0 };
            let is_complete = self.unit() < 0.995;
            let site = if self.has_one_site { 0 } else { place };
            let server = &mut self.servers[place];
            let time = STARTED_MS + hour * HOUR_MS + number * (HOUR_MS / LINES_AN_HOUR);
            let time = time.saturating_add_signed(server.skew_ms);
            let ttlb = if is_complete {
                format!("{ttlb:.0}")
            } else {
                "null".to_owned()
            };
            let _ = writeln!(
                server.log,
                r#"{{"time":{time},"conn_id":{},"content_length":300000,"ttlb":{ttlb},"num-packets.sent":250,"num-packets.lost":{},"complete":{is_complete},"experiment":"ramp","arm":"{}","site":"s{site}","config":"00ff-{}"}}"#,
                hour * LINES_AN_HOUR + number,
                number % 3,
                if is_arm { "new" } else { "old" },
                server.epoch,
            );
        }
    }

    fn write_log(&self) {
        if self.is_fleet {
            for (path, server) in self.logs().iter().zip(&self.servers) {
                fs::write(path, &server.log).expect("room");
            }
            return;
        }
        let all: String = self.servers.iter().map(|one| one.log.as_str()).collect();
        fs::write(&self.ramp.log, all).expect("room");
    }

    /// The logs that are looked at.
    fn logs(&self) -> Vec<PathBuf> {
        if self.is_fleet {
            let places = 0..self.servers.len();
            return places
                .map(|place| self.folder.join(format!("of-server-{place}")))
                .collect();
        }
        logs(&self.ramp.log).unwrap_or_else(failed(self.seed))
    }

    /// Takes a log away, as a disk that is not mounted does. Returns whether a look had lines of it.
    fn lose_log(&mut self) -> bool {
        let place = self.below(self.servers.len() as u64) as usize;
        let (lost, is_seen) = if self.is_fleet {
            (self.logs().swap_remove(place), self.servers[place].is_seen)
        } else {
            let is_seen = self.servers.iter().any(|server| server.is_seen);
            (self.ramp.log.clone(), is_seen)
        };
        fs::write(lost, "").expect("room");
        is_seen
    }

    /// The ramp after a look of a server, or of `steer`.
    fn looked(&mut self, now_ms: u64) -> Result<Ramp, Failure> {
        if !self.is_fleet {
            return self.ramp.clone().after_look(now_ms);
        }
        let mut files = self.logs();
        let by_states = self.below(2) == 0;
        let controller = Arc::clone(&self.ramp.controller);
        let mut states = Vec::new();
        if by_states {
            for path in &mut files {
                let state = controller.part(core::slice::from_ref(path), None, now_ms)?;
                path.set_extension("state");
                fs::write(path, sealed::sealed(state)).expect("room");
            }
            states = controller.states(&files)?;
        }
        let lines = if by_states {
            Lines::States(&states)
        } else {
            Lines::Logs(&files, Some(NonZeroUsize::MIN))
        };
        let ramp = self.ramp.clone();
        let look = controller.step(&ramp.folder, lines, (None, None), now_ms)?;
        let look = look.or_else(|| controller.standing(&ramp.folder).last);
        Ok(Ramp { look, ..ramp })
    }

    /// A look, or a failure of one. Returns whether it was whole.
    fn look(&mut self, now_ms: u64) -> bool {
        let state = self.folder.join("state");
        let (file, experiment) = (self.decisions_file(), state.join("experiment.toml"));
        let (before, published) = (
            fs::read_to_string(&file).expect("decisions"),
            fs::read(&experiment).ok(),
        );
        let whole = &before[..before.rfind('\n').map_or(0, |end| end + 1)];
        let fault = self.below(12);
        let now_ms = match self.below(12) {
            0 if self.has_wrong_clock => now_ms + 5 * HOUR_MS,
            // Before any look.
            1 => STARTED_MS - HOUR_MS,
            _ => now_ms,
        };
        // Lines are few at first, so that others hide what is lost.
        let loses = fault == 0 || ((5..8).contains(&fault) && self.counts[0] < 3);
        let is_lost = loses && self.lose_log();
        let lock = (fault == 1).then(|| files::lock(&state.join("lock")));
        let looked = self.looked(now_ms);
        drop(lock);
        self.write_log();
        let after = fs::read_to_string(&file).expect("decisions");
        assert!(
            after == before || after.starts_with(whole),
            "seed {}: an earlier decision changed",
            self.seed
        );
        self.counts[0] += 1;
        let is_looked_at = after.len() > whole.len();
        let is_lost = is_lost && is_looked_at && !self.folder.join("state/stop").exists();
        assert!(
            !is_lost || looked.is_err(),
            "seed {}: a look without a log that an earlier look had",
            self.seed
        );
        let Ok(ramp) = looked else {
            self.counts[1] += 1;
            assert_eq!(
                (after, fs::read(&experiment).ok()),
                (before, published),
                "seed {}: a look that failed changed something",
                self.seed
            );
            return false;
        };
        let added = after.len() - whole.len().min(after.len());
        if (2..=4).contains(&fault) && added > 0 {
            // The process ended, or the disk was full: what is there is a part.
            let left = match fault {
                2 => whole.len() + self.below(added as u64) as usize,
                _ => after.len(),
            };
            fs::write(&file, &after[..left]).expect("room");
            match published {
                Some(text) => fs::write(&experiment, text).expect("room"),
                None => fs::remove_file(&experiment).expect("it is there"),
            }
            self.counts[2] += 1;
            return false;
        }
        if fault == 1 {
            // Another process had the directory: the decision in effect is the last one.
            assert_eq!(after, before, "seed {}", self.seed);
        }
        self.ramp = ramp;
        if fault != 1 && !loses && !self.has_wrong_clock && added > 0 {
            for server in &mut self.servers {
                server.is_seen |= !server.log.is_empty();
            }
        }
        fault != 1
    }

    /// What servers assign by: those that crash or reload read the file or the last decision; others keep theirs.
    fn reload(&mut self, is_all: bool) {
        let last = self.ramp.look.clone();
        let shares: (f64, u32) = last.map_or((STAGES[0], 1), |look| (look.share, look.epoch));
        for place in 0..self.servers.len() {
            if is_all || self.below(4) > 0 {
                let server = &mut self.servers[place];
                (server.share, server.epoch) = shares;
            }
        }
        // A restart, or a handover: its state is the directory.
        if self.below(6) == 0 {
            let fresh = Ramp {
                look: None,
                ..self.ramp.clone()
            };
            let ramp = fresh.decide(&[], STARTED_MS + 3 * HOURS * HOUR_MS);
            self.ramp = ramp
                .unwrap_or_else(failed(self.seed))
                .expect("no other process");
        }
    }

    /// What holds of all decisions.
    fn check(&mut self) {
        let (seed, ramp) = (self.seed, self.decisions());
        let mut before: Option<&Look> = None;
        for look in ramp.looks() {
            let most = match look.action {
                Action::Win => 1.0 - HOLDBACK,
                action if action.is_end() => 0.0,
                _ => STAGES[look.stage],
            };
            assert!(
                look.share <= most && (look.share <= STAGES[2] || look.action == Action::Win),
                "seed {seed}: {look:?}"
            );
            let counts = look.connections.values();
            let counts = counts.fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
            let is_by_numbers = matches!(
                look.action,
                Action::Ramp | Action::Win | Action::StopHarm | Action::Futile
            );
            assert!(
                !is_by_numbers || counts.iter().all(|count| *count >= LEAST),
                "seed {seed}: {look:?}"
            );
            if let Some(before) = before {
                assert!(look.stage <= before.stage + 1, "seed {seed}: {look:?}");
                let is_over = before.action.is_end() && look.action != Action::Stopped;
                assert!(!is_over, "seed {seed}: a look after the end: {look:?}");
            }
            before = Some(look);
        }
        for server in &self.servers {
            let is_decided = ramp.looks().iter().any(|look| {
                look.epoch == server.epoch && look.share.to_bits() == server.share.to_bits()
            });
            // A stop that cannot be recorded takes the arm away all the same.
            let is_stopped = server.share <= 0.0 && self.folder.join("state/stop").exists();
            assert!(
                is_decided || is_stopped,
                "seed {seed}: shares that are no decision: {}",
                server.share
            );
        }
        let ends = ramp
            .looks()
            .iter()
            .filter(|look| look.action != Action::Hold);
        self.counts[4] = ends.count() as u64;
    }

    /// Each decision follows from the logs. Lines that were late by a wrong clock may change one.
    fn verify(&self) {
        let logs = self.logs();
        let subject = self.ramp.controller.subject();
        let all = steer::recomputed(&logs, Some(NonZeroUsize::MIN), &subject, &self.decisions());
        let all = all.unwrap_or_else(failed(self.seed));
        for (number, look) in all.iter().enumerate() {
            assert!(
                look.differences.is_empty() || (self.has_wrong_clock && look.later > 0),
                "seed {}, look {number}: {look:?}",
                self.seed
            );
        }
    }

    fn run(mut self) -> [u64; 5] {
        let effect = [0.7, 1.0, 1.5][self.below(3) as usize];
        let stop = (self.below(4) == 0).then(|| self.below(HOURS));
        for hour in 0..HOURS {
            self.traffic(hour, effect);
            self.write_log();
            let stop_file = self.folder.join("state/stop");
            if stop == Some(hour) {
                fs::write(&stop_file, "").expect("room");
                self.counts[3] += 1;
            }
            let is_whole = self.look(STARTED_MS + (hour + 1) * HOUR_MS + 60_000);
            if stop.is_some_and(|stop| hour >= stop) {
                assert!(
                    !is_whole || !self.ramp.has_arm(),
                    "seed {}: the arm has connections after a stop",
                    self.seed
                );
            }
            let is_all = stop.is_some_and(|stop| hour >= stop);
            self.reload(is_all);
            self.check();
        }
        self.write_log();
        self.verify();
        fs::remove_dir_all(&self.folder).expect("it is there");
        self.counts
    }
}

/// `LASTBYTE_RAMP_SEEDS=1000` runs more.
#[test]
fn a_ramp_keeps_its_promises_whatever_fails() {
    let seeds = env::var("LASTBYTE_RAMP_SEEDS").ok();
    let seeds: u64 = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(100);
    let mut total = [0; 5];
    for seed in 0..seeds {
        for (total, count) in total.iter_mut().zip(World::new(seed).run()) {
            *total += count;
        }
    }
    // Each of these happened, so the test is one.
    assert!(
        total.iter().all(|count| *count >= seeds / 10),
        "looks, failures, torn writes, stops, decisions: {total:?}"
    );
}

#[test]
fn a_ramp_waits_for_the_end_of_a_window_and_starts_then() {
    let world = World::new(1_000_001);
    let file = world.folder.join("frozen.toml");
    // It is the noon of a Sunday.
    let window = "freeze = ['Sun 00:00 to Mon 08:00']\nmost-time";
    fs::write(&file, PLAN.replace("most-time", window)).expect("room");
    let controller = Controller::read(&file, &Registry::builtin());
    let controller = controller.unwrap_or_else(failed(0)).expect("a plan");
    let mut ramp = Ramp {
        controller: Arc::new(controller),
        folder: world.folder.join("frozen"),
        look: None,
        ..world.ramp.clone()
    };
    for (hour, share, looks) in [(0, 0.0, 1), (1, 0.0, 1), (19, 0.0, 1), (20, 0.1, 2)] {
        let now_ms = STARTED_MS + hour * HOUR_MS;
        ramp = ramp.after_look(now_ms).unwrap_or_else(failed(0));
        let arms = ramp.arms().0;
        assert!((arms[0].share - share).abs() < 1e-9, "{hour}: {arms:?}");
        assert!(ramp.goes_on(), "{hour}");
        let decisions = decisions(&ramp.folder).unwrap_or_else(failed(0)).ramp;
        assert_eq!(decisions.looks().len(), looks, "{hour}");
    }
    fs::remove_dir_all(&world.folder).expect("it is there");
}

/// The next ramp, which comes within seconds if it does.
async fn next(ramping: &Ramping) -> Ramp {
    let next = tokio::time::timeout(Duration::from_secs(60), ramping.next());
    let next = next.await.expect("a ramp within a minute");
    next.unwrap_or_else(failed(0))
}

/// A stop that was announced is recorded later, also if its file is gone by then: while another process had the directory, or during a
/// look that did not see it.
#[tokio::test(flavor = "current_thread")]
async fn an_announced_stop_is_recorded_although_its_file_is_gone() {
    let world = World::new(1_000_001);
    let stop = world.folder.join("state/stop");
    let lock = files::lock(&world.folder.join("state/lock")).expect("a lock");
    fs::write(&stop, "enough").expect("room");
    let ramp = world
        .ramp
        .clone()
        .after_look(steer::now_ms())
        .expect("a look");
    assert!(!ramp.has_arm() && !ramp.is_recorded);
    fs::remove_file(&stop).expect("it is there");
    let ramp = ramp.after_look(steer::now_ms()).expect("a look");
    assert!(!ramp.has_arm() && !ramp.is_recorded, "still locked");
    drop(lock);
    let ramp = ramp.after_look(steer::now_ms()).expect("a look");
    assert!(!ramp.has_arm() && ramp.is_recorded);
    let looks = world.decisions();
    let last = looks.looks().last().expect("a look");
    assert!(
        last.action == Action::Stopped && last.rule.ends_with("enough"),
        "{last:?}"
    );
    fs::remove_dir_all(&world.folder).expect("it is there");
}

/// The ramp of a file's options, as a reload reads them.
#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    arguments: Arguments,
}

/// A reload between a stop that cannot be recorded and its record, after its file was removed.
#[test]
fn a_reload_keeps_an_announced_stop() {
    use clap::Parser as _;

    let world = World::new(1_000_002);
    let file = |name: &str| world.folder.join(name).display().to_string();
    let (plan, log) = (file("ramp.toml"), file("log"));
    let options = ["serve", "--experiment", &plan, "--log", &log];
    let arguments = Options::parse_from(options).arguments;
    let stop = world.folder.join("state/stop");
    let lock = files::lock(&world.folder.join("state/lock")).expect("a lock");
    fs::write(&stop, "enough").expect("room");
    let before = world.ramp.clone().after_look(steer::now_ms());
    let before = before.unwrap_or_else(failed(0));
    fs::remove_file(&stop).expect("it is there");
    let reloaded = |before: Option<&Ramp>| {
        let ramp = Ramp::started(&arguments, &Registry::builtin(), before);
        ramp.unwrap_or_else(failed(0)).expect("a ramp")
    };
    let ramp = reloaded(Some(&before));
    assert!(!ramp.has_arm() && !ramp.is_recorded);
    assert!(
        ramp.decision()
            .is_some_and(|text| text.ends_with("; not recorded"))
    );
    assert_eq!(ramp.epoch(), before.epoch());
    // Of another plan.
    fs::write(
        world.folder.join("other.toml"),
        PLAN.replace("'state'", "'other'"),
    )
    .expect("room");
    let other = file("other.toml");
    let options = ["serve", "--experiment", &other, "--log", &log];
    let other = Options::parse_from(options).arguments;
    let other = Ramp::started(&other, &Registry::builtin(), Some(&ramp));
    assert!(other.unwrap_or_else(failed(0)).expect("a ramp").has_arm());
    drop(lock);
    let recorded = reloaded(Some(&ramp));
    assert!(!recorded.has_arm() && recorded.is_recorded);
    assert!(!reloaded(None).has_arm());
    fs::remove_dir_all(&world.folder).expect("it is there");
}

/// A process that starts while a stop is in effect and not recorded, whose file is gone: a restart, or a handover.
#[test]
fn a_later_process_keeps_a_stop_that_is_not_recorded() {
    let world = World::new(1_000_005);
    let fresh = Ramp {
        look: None,
        ..world.ramp.clone()
    };
    let stop = world.folder.join("state/stop");
    let lock = files::lock(&world.folder.join("state/lock")).expect("a lock");
    fs::write(&stop, "enough").expect("room");
    let stopped = world.ramp.stopped(steer::now_ms()).expect("a stop");
    assert!(!stopped.has_arm());
    fs::remove_file(&stop).expect("it is there");
    let after = |ramp: &Ramp| {
        let ramp = ramp.clone().after(Ok(Vec::new()), steer::now_ms());
        ramp.unwrap_or_else(failed(0))
    };
    let locked = after(&fresh);
    assert!(!locked.has_arm() && !locked.is_recorded);
    drop(lock);
    let later = after(&fresh);
    assert!(
        !later.has_arm() && !later.is_recorded,
        "its decision is missing"
    );
    let recorded = after(&later);
    assert!(!recorded.has_arm() && recorded.is_recorded);
    let epochs: Vec<u32> = world
        .decisions()
        .looks()
        .iter()
        .map(|look| look.epoch)
        .collect();
    assert_eq!(
        (epochs[1], recorded.epoch()),
        (epochs[0] + 1, epochs[0] + 1)
    );
    fs::remove_dir_all(&world.folder).expect("it is there");
}

#[test]
fn without_a_decision_the_arm_has_no_connections_and_a_stop_counts() {
    let world = World::new(1_000_006);
    let ramp = Ramp {
        look: None,
        folder: world.folder.join("new"),
        ..world.ramp.clone()
    };
    fs::create_dir(&ramp.folder).expect("room");
    let lock = files::lock(&ramp.folder.join("lock")).expect("a lock");
    let after = |ramp: &Ramp| {
        let ramp = ramp.clone().after(Ok(Vec::new()), steer::now_ms());
        ramp.unwrap_or_else(failed(0))
    };
    let shares = |ramp: &Ramp| {
        ramp.arms()
            .0
            .iter()
            .map(|arm| arm.share)
            .collect::<Vec<_>>()
    };
    let locked = after(&ramp);
    assert_eq!(shares(&locked), [0.0, 1.0]);
    assert!(!locked.has_arm() && locked.goes_on());
    fs::write(ramp.folder.join("stop"), "enough").expect("room");
    assert_eq!(shares(&after(&locked)), [0.0, 1.0]);
    drop(lock);
    assert_eq!(shares(&after(&locked)), [0.0, 1.0], "it cannot start");
    assert!(!ramp.folder.join("experiment.toml").exists());
    fs::remove_file(ramp.folder.join("stop")).expect("it is there");
    let started = after(&locked);
    assert!(started.has_arm());
    // The directory of a ramp that is under way is gone, as of a volume that is not mounted.
    fs::remove_dir_all(&ramp.folder).expect("it is there");
    for _ in 0..2 {
        let failure = started.clone().after(Ok(Vec::new()), steer::now_ms());
        let lacks = |why: &str| why.contains("lacks the decision of epoch");
        assert!(matches!(failure, Err(Failure::Run(why)) if lacks(&why)));
    }
    fs::remove_dir_all(&world.folder).expect("it is there");
}

/// Servers that read the directory's experiment file have the baseline of its ramp, not that of this plan.
#[test]
fn a_stop_of_another_plan_is_not_published() {
    let world = World::new(1_000_007);
    let file = world.folder.join("other.toml");
    let other = PLAN.replace("baseline = 'old'", "baseline = 'new'");
    fs::write(&file, other).expect("room");
    let controller = Controller::read(&file, &Registry::builtin());
    let controller = controller.unwrap_or_else(failed(0)).expect("a plan");
    let published = || fs::read_to_string(world.folder.join("state/experiment.toml")).ok();
    let before = published();
    for look in [None, world.ramp.look.clone()] {
        let ramp = Ramp {
            controller: Arc::new(controller.clone()),
            look,
            ..world.ramp.clone()
        };
        let refused = ramp.clone().after(Ok(Vec::new()), steer::now_ms());
        let names_plan = |why: &str| why.contains("changed since the ramp started");
        assert!(matches!(refused, Err(Failure::Usage(why)) if names_plan(&why)));
        let stop = world.folder.join("state/stop");
        fs::write(&stop, "enough").expect("room");
        let stopped = ramp.after(Ok(Vec::new()), steer::now_ms());
        assert!(!stopped.unwrap_or_else(failed(0)).has_arm());
        assert_eq!(published(), before);
        fs::remove_file(&stop).expect("it is there");
    }
    fs::remove_dir_all(&world.folder).expect("it is there");
}

/// The time of the last look is when a process made it.
#[test]
fn a_look_that_another_process_prevents_is_none() {
    let world = World::new(1_000_003);
    let looked_at = |ramp: &Ramp| ramp.status().expect("it started").looked_at;
    let now_ms = STARTED_MS + 5 * HOUR_MS;
    let lock = files::lock(&world.folder.join("state/lock")).expect("a lock");
    let ramp = world
        .ramp
        .clone()
        .after_look(now_ms)
        .unwrap_or_else(failed(0));
    assert_eq!(looked_at(&ramp), STARTED_MS / 1000 + 60);
    drop(lock);
    // A start or a reload reads no log.
    let ramp = ramp.after(Ok(Vec::new()), now_ms).unwrap_or_else(failed(0));
    assert_eq!(looked_at(&ramp), STARTED_MS / 1000 + 60);
    let ramp = ramp.after_look(now_ms).unwrap_or_else(failed(0));
    assert_eq!(looked_at(&ramp), now_ms / 1000);
    fs::remove_dir_all(&world.folder).expect("it is there");
}

/// A stop is recorded soon after it can be.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn a_stop_is_recorded_soon_after_it_can_be() {
    let world = World::new(1_000_004);
    let lock = files::lock(&world.folder.join("state/lock")).expect("a lock");
    let ramping = Ramping::new(Some(world.ramp.clone()));
    let first = ramping.next().await.unwrap_or_else(failed(0));
    assert!(first.has_arm());
    fs::write(world.folder.join("state/stop"), "enough").expect("room");
    let started = Instant::now();
    let stopped = ramping.next().await.unwrap_or_else(failed(0));
    assert!(!stopped.has_arm() && !stopped.is_recorded);
    assert!(started.elapsed() <= STOP_PERIOD, "{:?}", started.elapsed());
    let again = ramping.next().await.unwrap_or_else(failed(0));
    assert!(!again.is_recorded);
    assert_eq!(again.epoch(), stopped.epoch());
    drop(lock);
    let recorded = ramping.next().await.unwrap_or_else(failed(0));
    assert!(!recorded.has_arm() && recorded.is_recorded);
    assert!(
        started.elapsed() < 3 * RETRY_PERIOD,
        "{:?}",
        started.elapsed()
    );
    fs::remove_dir_all(&world.folder).expect("it is there");
}

#[test]
fn logs_are_found_by_numbers_and_dates() {
    let folder = env::temp_dir().join(format!("lastbyte-ramp-logs-{}", std::process::id()));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).expect("room");
    let log = folder.join("log");
    let found = || {
        logs(&log).map(|logs| {
            let names = logs
                .iter()
                .map(|log| log.strip_prefix(&folder).expect("in it"));
            names
                .map(|name| name.display().to_string())
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(
        found().unwrap_or_else(failed(0)),
        ["log"],
        "before its first line"
    );
    for name in [
        "log.1",
        "log.2",
        "log.2.gz",
        "log-20261127.zst",
        "log-20261126-1764288000",
        "log.old",
        "log.toml",
        "log-.gz",
        "logs.1",
    ] {
        fs::write(folder.join(name), "").expect("room");
    }
    let mut expected = vec![
        "log.1",
        "log.2",
        "log-20261126-1764288000",
        "log-20261127.zst",
    ];
    assert_eq!(
        found().unwrap_or_else(failed(0)),
        expected,
        "between two lines"
    );
    fs::write(&log, "").expect("room");
    expected.push("log");
    assert_eq!(found().unwrap_or_else(failed(0)), expected);
    fs::write(folder.join("log.3.xz"), "").expect("room");
    assert!(
        matches!(found(), Err(Failure::Run(why)) if why.contains("log.3.xz`: a rotated log that cannot be read"))
    );
    fs::remove_dir_all(&folder).expect("it is there");
}

/// A look that takes long: its caller looks at certificates meanwhile, and an operator stops the ramp.
#[tokio::test(flavor = "current_thread")]
async fn a_look_goes_on_while_its_caller_is_elsewhere_and_a_stop_does_not_wait_for_it() {
    let world = World::new(1_000_000);
    let ramping = Ramping::new(Some(world.ramp.clone()));
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    let ramp = world.ramp.clone();
    let looking = task::spawn_blocking(move || {
        let _ = waits.recv();
        ramp.after_look(steer::now_ms())
    });
    ramping.looking.replace(Some(looking));
    for _ in 0..3 {
        // As in a turn that another event ends.
        let none = tokio::time::timeout(Duration::from_millis(1), ramping.next()).await;
        assert!(none.is_err(), "the look waits");
    }
    let stop = world.folder.join("state/stop");
    fs::write(&stop, "enough").expect("room");
    let stopped = next(&ramping).await;
    assert!(!stopped.has_arm() && !stopped.is_recorded);
    let decisions = fs::read_to_string(world.decisions_file()).expect("decisions");
    assert_eq!(decisions.lines().count(), 1, "the look is under way");
    drop(go_on);
    let recorded = next(&ramping).await;
    assert!(!recorded.has_arm() && recorded.is_recorded);
    let looks = world.decisions();
    let looks: Vec<Action> = looks.looks().iter().map(|look| look.action).collect();
    assert_eq!(looks, [Action::Start, Action::Stopped]);
    fs::remove_dir_all(&world.folder).expect("it is there");
}

/// A pipe in place of the log: nothing waits for its writer, and the directory is free.
#[test]
fn a_log_that_became_a_pipe_is_an_error() {
    let world = World::new(1_000_008);
    fs::remove_file(&world.ramp.log).expect("it is there");
    // Without a process, which would have the locks of other tests for a moment.
    let kind = rustix::fs::FileType::Fifo;
    let log = &world.ramp.log;
    rustix::fs::mknodat(rustix::fs::CWD, log, kind, rustix::fs::Mode::RWXU, 0).expect("a pipe");
    let lock = files::lock(&world.folder.join("state/lock")).expect("a lock");
    let looked = world.ramp.clone().after_look(steer::now_ms());
    let is_named = |why: &str| why.contains("log`: not a regular file");
    assert!(matches!(looked, Err(Failure::Usage(why)) if is_named(&why)));
    drop(lock);
    fs::write(world.folder.join("state/stop"), "enough").expect("room");
    let stopped = world.ramp.clone().after_look(steer::now_ms());
    let stopped = stopped.unwrap_or_else(failed(0));
    assert!(!stopped.has_arm() && stopped.is_recorded);
    fs::remove_dir_all(&world.folder).expect("it is there");
}

/// A look with an arm, which is the rule, and one while another process has the directory.
#[test]
fn a_look_reads_the_decisions_once() {
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

    let world = World::new(1_000_009);
    let events = inotify::init(CreateFlags::NONBLOCK).expect("a queue");
    // Events that are the same and follow each other are one.
    let what = WatchFlags::OPEN | WatchFlags::CLOSE_NOWRITE;
    inotify::add_watch(&events, world.decisions_file(), what).expect("a file");
    for is_locked in [false, true] {
        let lock = is_locked.then(|| files::lock(&world.folder.join("state/lock")));
        let ramp = world.ramp.clone().after_look(steer::now_ms());
        assert!(ramp.unwrap_or_else(failed(0)).has_arm());
        drop(lock);
        let mut space = [core::mem::MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&events, &mut space);
        let mut reads = 0;
        while let Ok(event) = reader.next() {
            reads += usize::from(event.events().contains(ReadFlags::CLOSE_NOWRITE));
        }
        assert_eq!(reads, 1, "{is_locked}");
    }
    fs::remove_dir_all(&world.folder).expect("it is there");
}
