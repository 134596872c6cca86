//! Fetches that a listener adds during a run, and connections for fetches that start together.

#![expect(clippy::disallowed_types, reason = "a listener that answers nothing")]

use std::{
    io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use lastbyte_client::{
    Failure, Fetch, Handshake, Listener, Memory, Next, Origin, Outcome, Settings, Trust, Version,
    Versions, run,
};
use lastbyte_driver::Clock;
use lastbyte_http3::Request;
use lastbyte_quic::{Time, connection::Config, endpoint::RetryPolicy};

use super::{
    raw::ScriptedServer,
    server::Server,
    tls::{Tls, TlsOptions},
};

fn settings() -> Settings {
    let mut settings = Settings::new(Config::new("cubic".parse().expect("a spec")));
    settings.time_limit = Some(Duration::from_secs(60));
    settings
}

/// Fetches one URL after the other, each when the one before has ended.
struct Chain {
    urls: Vec<String>,
    started: usize,
    done: Vec<usize>,
    /// Whether to end the run once a request is sent.
    stops: bool,
    is_sent: bool,
    attempts: usize,
    /// The attempts when the first connection was open.
    attempts_at_first: Option<usize>,
}

impl Chain {
    fn new(urls: Vec<String>) -> Self {
        Self {
            urls,
            started: 0,
            done: Vec::new(),
            stops: false,
            is_sent: false,
            attempts: 0,
            attempts_at_first: None,
        }
    }
}

impl Listener for Chain {
    fn on_body(&mut self, _: usize, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn next(&mut self) -> Next {
        if self.stops && self.is_sent {
            return Next::Stop;
        }
        match self.urls.get(self.started) {
            Some(url) if self.done.len() == self.started => {
                self.started += 1;
                Next::Fetch(Box::new(Fetch::get(url.parse().expect("a URL"))))
            }
            _ => Next::Wait(None),
        }
    }

    fn on_done(&mut self, fetch: usize, _: &Outcome) {
        self.done.push(fetch);
    }

    fn on_request(&mut self, _: usize, _: usize, _: Version, _: &Request) {
        self.is_sent = true;
    }

    fn on_tcp_connecting(&mut self, _: usize, _: &Origin, _: &[SocketAddr]) {
        self.attempts += 1;
    }

    fn on_connected(&mut self, _: usize, _: &Handshake) {
        self.attempts_at_first.get_or_insert(self.attempts);
    }
}

fn run_chain(settings: &Settings, fetches: Vec<Fetch>, chain: &mut Chain) -> Vec<Outcome> {
    let report = run(settings, &Memory::default(), Clock::new(), fetches, chain);
    report.expect("a socket").outcomes
}

#[test]
fn a_listener_adds_fetches_that_depend_on_others() {
    let (quic, tcp) = (
        Server::start("localhost", RetryPolicy::Never),
        ScriptedServer::start(),
    );
    let mut settings = settings();
    settings.trust = Trust::Authorities(quic.certificate.clone().into_bytes());
    settings.versions = Versions::Http3;
    settings.versions_by_host = [("127.0.0.1".to_owned(), Versions::Http11)].into();
    let urls = [
        quic.url("100"),
        tcp.url("200"),
        quic.url("300"),
        tcp.url("0"),
    ];
    let mut chain = Chain::new(urls.to_vec());
    let outcomes = run_chain(&settings, Vec::new(), &mut chain);
    assert_eq!(chain.done, [0, 1, 2, 3]);
    let received: Vec<_> = outcomes
        .iter()
        .map(|it| (it.version, it.received))
        .collect();
    let (h3, h1) = (Some(Version::Http3), Some(Version::Http11));
    assert_eq!(received, [(h3, 100), (h1, 200), (h3, 300), (h1, 0)]);
    assert_eq!(quic.connections(), 1, "they share connections");
}

#[test]
fn versions_of_a_host_take_the_place_of_those_of_the_run() {
    let server = Tls::start(&TlsOptions::default());
    let mut settings = settings();
    settings.trust = Trust::Authorities(server.certificate.clone().into_bytes());
    settings.versions = Versions::Http3;
    settings.versions_by_host = [("localhost".to_owned(), Versions::Http2Only)].into();
    let mut chain = Chain::new(vec![server.url("10")]);
    let outcomes = run_chain(&settings, Vec::new(), &mut chain);
    assert_eq!(
        (outcomes[0].version, outcomes[0].received),
        (Some(Version::Http2), 10)
    );
}

#[test]
fn a_run_lasts_until_the_time_that_the_listener_waits_for() {
    struct Waits(Clock, Time);
    impl Listener for Waits {
        fn on_body(&mut self, _: usize, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn next(&mut self) -> Next {
            Next::Wait((self.0.now() < self.1).then_some(self.1))
        }
    }
    let clock = Clock::new();
    let until = clock.now() + Duration::from_millis(30);
    let mut waits = Waits(clock, until);
    let report = run(
        &settings(),
        &Memory::default(),
        clock,
        Vec::new(),
        &mut waits,
    );
    assert!(report.expect("a socket").outcomes.is_empty());
    assert!(clock.now() >= until);
}

#[test]
fn a_listener_that_stops_interrupts_what_is_in_progress() {
    // It accepts connections, and answers nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", silent.local_addr().expect("an address"));
    let mut chain = Chain::new(vec![url.clone(), url]);
    chain.stops = true;
    let outcomes = run_chain(&settings(), Vec::new(), &mut chain);
    assert_eq!(outcomes.len(), 1);
    assert!(
        matches!(outcomes[0].failure, Some(Failure::Interrupted)),
        "{outcomes:?}"
    );
}

#[test]
fn http1_opens_a_connection_for_each_request_at_once_up_to_the_limit() {
    let server = ScriptedServer::start();
    let fetches = (0..10).map(|_| Fetch::get(server.url("5000").parse().expect("a URL")));
    let mut settings = settings();
    settings.versions = Versions::Http11;
    settings.connections_per_host = 4;
    let mut chain = Chain::new(Vec::new());
    let outcomes = run_chain(&settings, fetches.collect(), &mut chain);
    assert!(
        outcomes.iter().all(|it| it.received == 5000),
        "{outcomes:?}"
    );
    assert_eq!((chain.attempts_at_first, chain.attempts), (Some(4), 4));
}

#[test]
fn http1_gives_up_when_no_connection_is_accepted() {
    let port = {
        let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
        closed.local_addr().expect("an address").port()
    };
    let url = format!("http://127.0.0.1:{port}/");
    let fetches = (0..10).map(|_| Fetch::get(url.parse().expect("a URL")));
    let mut settings = settings();
    settings.versions = Versions::Http11;
    let mut chain = Chain::new(Vec::new());
    let outcomes = run_chain(&settings, fetches.collect(), &mut chain);
    for outcome in &outcomes {
        assert!(
            matches!(outcome.failure, Some(Failure::Connect(_))),
            "{outcome:?}"
        );
    }
    assert_eq!(
        chain.attempts, 6,
        "a refused connection is not opened again"
    );
}
