//! The load engine and the HTTP/3 server of `lastbyte serve` in virtual time, over model paths.

use core::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use lastbyte_client::Trust;
use lastbyte_driver::Engine;
use lastbyte_emulate::{
    PathModel, Plan,
    paths::{Direction, Paths},
};
use lastbyte_link as link;
use lastbyte_origin::{
    Arms, Http3Server, Shared, Statistics,
    access::{AccessLog, Format},
    application::Command,
    generated::Objects,
    log::{self, LogQueue},
};
use lastbyte_quic::{
    crypto::{
        ClientCrypto, Keys, Session, StartError,
        plain::{PlainClient, PlainServer, Resumption},
    },
    endpoint::RetryPolicy,
};
use lastbyte_wire::{ConnectionId, packet::Version};

use super::{super::*, settings_of};
use crate::{
    dispatcher::{Amount, Arrivals, Share},
    recorder::Counts,
    settings::{Control, Settings},
};

/// The address of the server.
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 443);
const START: Time = Time::from_nanos(1_000_000_000);
/// One way.
const DELAY: Duration = Duration::from_millis(10);
/// The most turns at one time.
const TURNS_MAX: u32 = 1000;

fn settings(connections: usize, amount: Amount, arrivals: Arrivals) -> Settings {
    let urls = [
        ("https://192.0.2.1/1kB", 3),
        ("https://192.0.2.1/50kB", 1),
        ("https://192.0.2.1/status/404", 1),
    ];
    Settings {
        amount,
        arrivals,
        connections,
        ..settings_of(&urls, Trust::DangerouslyAcceptAny)
    }
}

/// The server's transport parameters of an earlier connection.
type Learned = Arc<Mutex<Option<Vec<u8>>>>;

/// Resumes an earlier connection with 0-RTT, once there was one.
#[derive(Debug)]
struct Resuming {
    first: PlainClient,
    learned: Learned,
}

impl ClientCrypto for Resuming {
    fn can_follow(&self) -> bool {
        self.first.can_follow()
    }

    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys {
        self.first.initial_keys(version, destination)
    }

    fn start(
        &self,
        version: Version,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, StartError> {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let mut client = self.first.clone();
        client.resumption = learned.clone().map(|parameters| Resumption {
            parameters,
            early_data: true,
        });
        client.start(version, server_name, parameters)
    }
}

/// What came of a run.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    counts: Counts,
    /// Latencies, P50 and P99, in ns.
    latency: [Option<u64>; 2],
    ended: Time,
    statistics: Statistics,
    lines: Vec<String>,
}

/// Both engines, and the paths between them.
struct World<'a> {
    now: Time,
    load: Engine<Http3Load<'a>>,
    server: Engine<Http3Server>,
    locals: Vec<SocketAddr>,
    paths: Paths<u64>,
    lines: LogQueue,
    buffer: Vec<u8>,
}

impl World<'_> {
    /// Has both engines receive what has left its link.
    fn deliver(&mut self) {
        while let Some(mut arrival) = self.paths.poll(self.now) {
            let local = self.locals[arrival.client as usize];
            let (local, remote) = match arrival.direction {
                Direction::Up => (SERVER.into(), local),
                Direction::Down => (local, SERVER.into()),
            };
            let path = NetworkPath { local, remote };
            let bytes = &mut arrival.bytes;
            match arrival.direction {
                Direction::Up => self.server.receive(self.now, path, arrival.ecn, bytes),
                Direction::Down => self.load.receive(self.now, path, arrival.ecn, bytes),
            }
        }
    }

    /// Remembers the parameters of the server, if a connection has received them.
    fn learn(&mut self, learned: &Learned) {
        let endpoint = self.load.endpoint();
        let handles: Vec<_> = endpoint.handles().collect();
        for handle in handles {
            let connection = endpoint.connection(handle).expect("it is open");
            if let Some(parameters) = connection.session().peer_parameters() {
                *learned.lock().expect("no panic") = Some(parameters.to_vec());
            }
        }
    }

    /// A turn of both engines. Returns when the next one is due, and whether the load is done.
    fn turn(&mut self) -> (Option<Time>, bool) {
        let now = self.now;
        let Self {
            load,
            server,
            locals,
            paths,
            buffer,
            ..
        } = self;
        let number = |address: SocketAddr| {
            let place = locals.iter().position(|local| *local == address);
            place.expect("an address of a client") as u64
        };
        load.run(now);
        while let Some(transmit) = load.poll_transmit(now, buffer) {
            let client = number(transmit.path.local);
            for datagram in buffer[..transmit.len].chunks(transmit.segment_len) {
                paths.send(now, client, Direction::Up, transmit.ecn, datagram);
            }
        }
        let of_load = load.finish(now, false);
        server.run(now);
        while let Some(transmit) = server.poll_transmit(now, buffer) {
            let client = number(transmit.path.remote);
            for datagram in buffer[..transmit.len].chunks(transmit.segment_len) {
                paths.send(now, client, Direction::Down, transmit.ecn, datagram);
            }
        }
        let of_server = server.finish(now, false);
        let is_done = of_load.status != Status::Running;
        let woken = server.application().is_woken().then_some(now);
        let deadlines = [
            of_load.deadline.filter(|_| !is_done),
            of_server.deadline,
            paths.deadline(),
            woken,
        ];
        (deadlines.into_iter().flatten().min(), is_done)
    }
}

/// Runs the load against a server that shuts down after a time, if one is given.
fn play(settings: Settings, loss: f64, shutdown: Option<Duration>) -> Outcome {
    let server = PlainServer::new(7, vec![http3::ALPN.to_vec()]);
    play_with(settings, (loss, shutdown), server)
}

/// The same for each handshake.
fn same_for_all(crypto: Arc<dyn ClientCrypto>) -> Crypto {
    Crypto {
        full: Arc::clone(&crypto),
        resumed: Arc::clone(&crypto),
        zero_rtt: crypto,
    }
}

fn play_with(
    settings: Settings,
    (loss, shutdown): (f64, Option<Duration>),
    crypto: PlainServer,
) -> Outcome {
    let now = START;
    let count = settings.connections;
    let is_resuming = settings.mix.is_some();
    let target = Target::find(&settings).expect("an address");
    let tls = Tls::new(&settings.client).expect("TLS");
    let locals: Vec<SocketAddr> = (0..count as u16)
        .map(|index| SocketAddr::from(([198, 51, 100, 1], 50_000 + index)))
        .collect();
    let mut link = link::Config {
        delay: DELAY,
        ..link::Config::default()
    };
    if loss > 0.0 {
        link.loss.push(link::Loss::Bernoulli(loss));
    }
    let mut paths = Paths::new(Plan::new(link.clone(), link.clone())).expect("paths");
    for index in 0..count as u64 {
        let model = PathModel {
            down: link.clone(),
            up: link.clone(),
            overhead: 28,
            start: Duration::ZERO,
            seed: index + 1,
        };
        paths.add(now, index, &model).expect("a path");
    }
    let share = Share {
        thread: 0,
        threads: 1,
        connections: count,
    };
    let control = Arc::new(Control::new(1, Arc::new(AtomicBool::new(false))));
    let state = ThreadState::new(Arc::new(settings), control, share, now);
    let mut load = Http3Load::new(state, &target, &tls, locals.clone()).expect("a load");
    load.can_probe = false;
    let learned = Learned::default();
    load.crypto = same_for_all(Arc::new(Resuming {
        first: PlainClient::new(3, vec![http3::ALPN.to_vec()]),
        learned: Arc::clone(&learned),
    }));
    let endpoint = Endpoint::with_data(EndpointConfig::client(), [5; 32]).expect("an endpoint");

    let (writer, lines) = log::queue();
    let config = Arc::new(Config::new("cubic".parse().expect("a spec")));
    let wall = Arc::new(|now: Time| now.since(Time::ZERO));
    let shared = Shared {
        access: Some(AccessLog::new(writer, Format::Ndjson)),
        ..Shared::new(Arc::new(Objects), Arms::one(Arc::clone(&config)), wall)
    };
    let mut server = EndpointConfig::server(config, Arc::new(crypto));
    if let Some(server) = &mut server.server {
        server.retry = RetryPolicy::Never;
    }
    let server = lastbyte_origin::engine(shared, server, [9; 32]).expect("a server");
    let mut world = World {
        now,
        load: Engine::new(endpoint, load),
        server,
        locals,
        paths,
        lines,
        buffer: vec![0; 65_535],
    };
    let mut shutdown = shutdown.map(|after| now + after);
    let (mut turns, mut ended) = (0, None);
    loop {
        world.deliver();
        if shutdown.is_some_and(|at| at <= world.now) {
            shutdown = None;
            let command = Command::ShutDown(Duration::from_millis(100));
            world.server.command(world.now, command);
        }
        let (next, is_done) = world.turn();
        if is_resuming {
            world.learn(&learned);
        }
        if is_done {
            ended.get_or_insert(world.now);
        }
        // The server hears of the closes.
        let until = ended.map(|ended| ended + Duration::from_secs(120));
        let next = [next, shutdown].into_iter().flatten().min();
        let Some(next) = next.filter(|next| until.is_none_or(|until| *next <= until)) else {
            break;
        };
        turns = if next > world.now { 0 } else { turns + 1 };
        assert!(turns < TURNS_MAX, "turns without end at {:?}", world.now);
        world.now = world.now.max(next);
    }
    let result = world.load.application().state.finish(world.now);
    let latency = [0.5, 0.99].map(|share| result.recorder.latency.supported_quantile(share));
    Outcome {
        counts: result.recorder.counts,
        latency,
        ended: ended.expect("the load ends"),
        statistics: *world.server.application().statistics(),
        lines: world.lines.try_iter().collect(),
    }
}

/// The lines with a text.
fn count(outcome: &Outcome, what: &str) -> u64 {
    let lines = outcome.lines.iter().filter(|line| line.contains(what));
    lines.count() as u64
}

/// What always holds: each request has one end at the client, and one line at the server.
fn check(outcome: &Outcome) {
    let Outcome {
        counts, statistics, ..
    } = outcome;
    let ends = counts.done + counts.errored + counts.unfinished;
    assert!(ends >= counts.started, "{counts:?}");
    assert_eq!(outcome.lines.len() as u64, statistics.requests);
    assert_eq!(count(outcome, "\"complete\":true"), statistics.sent);
    assert!(statistics.sent <= counts.done, "{counts:?} {statistics:?}");
    assert!(statistics.requests <= counts.started + counts.retried);
}

#[test]
fn each_request_of_a_closed_loop_has_one_response_and_one_line() {
    for loss in [0.0, 0.02] {
        let run = || {
            play(
                settings(4, Amount::Requests(500), Arrivals::Closed),
                loss,
                None,
            )
        };
        let outcome = run();
        check(&outcome);
        let Outcome { counts, .. } = &outcome;
        assert_eq!((counts.started, counts.done), (500, 500), "{counts:?}");
        assert_eq!((counts.errored, counts.connected), (0, 4), "{counts:?}");
        assert_eq!(outcome.lines.len(), 500);
        let missing = count(&outcome, "\"status\":404");
        assert_eq!(counts.statuses[4], missing);
        assert_eq!(counts.failed, missing);
        assert!(run() == outcome, "the same run again");
    }
}

#[test]
fn connections_are_opened_at_the_rate_asked_for() {
    for (rate, last) in [(None, 0), (Some(10.0), 300), (Some(1000.0), 3)] {
        let settings = Settings {
            connect_rate: rate,
            ..settings(4, Amount::Requests(4), Arrivals::Closed)
        };
        let outcome = play(settings, 0.0, None);
        assert_eq!(outcome.counts.connected, 4, "{rate:?}");
        // The last one needs two round trips, and waits for a tick.
        let first = START + Duration::from_millis(last);
        let ended = outcome.ended;
        assert!(
            (first + DELAY * 4..first + DELAY * 7).contains(&ended),
            "{rate:?}: {ended:?}"
        );
    }
}

#[test]
fn the_latency_without_loss_is_a_round_trip() {
    let outcome = play(
        settings(2, Amount::Requests(200), Arrivals::Closed),
        0.0,
        None,
    );
    let [median, _] = outcome.latency;
    let median = Duration::from_nanos(median.expect("200 requests"));
    assert!((DELAY * 2..DELAY * 3).contains(&median), "{median:?}");
}

/// The first connection has nothing to resume.
#[test]
fn requests_in_early_data_that_is_rejected_are_sent_again_once() {
    let mut took = Vec::new();
    for accepts in [true, false] {
        let settings = Settings {
            mix: Some("0rtt=1".parse().expect("a mix")),
            streams: 1,
            ..settings(1, Amount::Requests(6), Arrivals::Closed)
        };
        let mut server = PlainServer::new(7, vec![http3::ALPN.to_vec()]);
        server.accepts_early_data = accepts;
        let outcome = play_with(settings, (0.0, None), server);
        check(&outcome);
        let Outcome { counts, .. } = &outcome;
        assert_eq!((counts.started, counts.done), (6, 6), "{counts:?}");
        let lost = (counts.errored, counts.disconnected, counts.retried);
        assert_eq!(lost, (0, 0, 0), "{counts:?}");
        assert_eq!((counts.connected, counts.resumed_handshakes), (6, 5));
        let early = (counts.early_data_accepted, counts.early_data_rejected);
        assert_eq!(early, if accepts { (5, 0) } else { (0, 5) });
        assert_eq!(outcome.lines.len(), 6, "one each at the server");
        assert_eq!(count(&outcome, "\"early\":true"), early.0);
        took.push(outcome.ended.since(START));
    }
    assert!(took[1] > took[0] + DELAY * 2, "{took:?}");
}

#[test]
fn requests_at_a_shutdown_end_once() {
    for after in [15, 45, 61, 100, 137] {
        let settings = settings(4, Amount::Requests(2000), Arrivals::Closed);
        let outcome = play(settings, 0.0, Some(Duration::from_millis(after)));
        check(&outcome);
        let Outcome { counts, .. } = &outcome;
        assert!(counts.done < 2000, "{counts:?}");
        // All 2000 have an end.
        assert_eq!(counts.done + counts.errored, 2000, "{counts:?}");
    }
}
