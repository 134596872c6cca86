//! Connections of HTTP/1.1 for fetches that start together.

#![expect(clippy::disallowed_types, reason = "a port that nothing listens on")]

use std::{
    io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use lastbyte_client::{
    Failure, Fetch, Handshake, Listener, Memory, Origin, Outcome, Settings, Versions, run,
};
use lastbyte_driver::Clock;
use lastbyte_quic::connection::Config;

use super::raw::ScriptedServer;

fn settings() -> Settings {
    let mut settings = Settings::new(Config::new("cubic".parse().expect("a spec")));
    settings.time_limit = Some(Duration::from_secs(60));
    settings
}

/// Counts attempts to connect.
#[derive(Default)]
struct Attempts {
    all: usize,
    /// The attempts when the first connection was open.
    at_first: Option<usize>,
}

impl Listener for Attempts {
    fn on_body(&mut self, _: usize, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn on_tcp_connecting(&mut self, _: usize, _: &Origin, _: &[SocketAddr]) {
        self.all += 1;
    }

    fn on_connected(&mut self, _: usize, _: &Handshake) {
        self.at_first.get_or_insert(self.all);
    }
}

fn fetch(settings: &Settings, fetches: Vec<Fetch>, attempts: &mut Attempts) -> Vec<Outcome> {
    let report = run(
        settings,
        &Memory::default(),
        Clock::new(),
        fetches,
        attempts,
    );
    report.expect("a socket").outcomes
}

#[test]
fn http1_opens_a_connection_for_each_request_at_once_up_to_the_limit() {
    let server = ScriptedServer::start();
    let fetches = (0..10).map(|_| Fetch::get(server.url("5000").parse().expect("a URL")));
    let mut settings = settings();
    settings.versions = Versions::Http11;
    settings.connections_per_host = 4;
    let mut attempts = Attempts::default();
    let outcomes = fetch(&settings, fetches.collect(), &mut attempts);
    assert!(
        outcomes.iter().all(|it| it.received == 5000),
        "{outcomes:?}"
    );
    assert_eq!((attempts.at_first, attempts.all), (Some(4), 4));
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
    let mut attempts = Attempts::default();
    let outcomes = fetch(&settings, fetches.collect(), &mut attempts);
    for outcome in &outcomes {
        assert!(
            matches!(outcome.failure, Some(Failure::Connect(_))),
            "{outcome:?}"
        );
    }
    assert_eq!(attempts.all, 6, "a refused connection is not opened again");
}
