//! Fetches over HTTP/3: results and failures.

use std::time::Duration;

use lastbyte_client::{
    Failure, Fetch, Memory, Outcome, Settings, Trust, Upload, Url, Versions, run,
};
use lastbyte_driver::Clock;
use lastbyte_quic::{connection::Config, endpoint::RetryPolicy};

use super::{
    recorder::{Recorder, fetch_with},
    server::{Server, body},
};

fn settings(server: &Server) -> Settings {
    let mut settings = Settings::new(Config::new("cubic".parse().expect("a spec")));
    settings.trust = Trust::Authorities(server.certificate.clone().into_bytes());
    settings.versions = Versions::Http3;
    settings
}

fn get(server: &Server, path: &str) -> Fetch {
    let url: Url = server.url(path).parse().expect("an address");
    Fetch::get(url)
}

fn fetch(server: &Server, path: &str) -> (Outcome, Recorder) {
    let mut recorder = Recorder::default();
    let fetches = vec![get(server, path)];
    let mut outcomes = fetch_with(
        &settings(server),
        &Memory::default(),
        &mut recorder,
        fetches,
    );
    (outcomes.remove(0), recorder)
}

fn server() -> Server {
    Server::start("localhost", RetryPolicy::Never)
}

#[test]
fn many_fetches_share_a_connection_and_arrive_whole() {
    let server = server();
    let mut recorder = Recorder::default();
    // More than the server's stream limit and the client's `parallel`.
    let sizes: Vec<usize> = (0..250).map(|number| number * 37).collect();
    let fetches = sizes.iter().map(|size| get(&server, &size.to_string()));
    let outcomes = fetch_with(
        &settings(&server),
        &Memory::default(),
        &mut recorder,
        fetches.collect(),
    );
    recorder.bodies.resize(sizes.len(), Vec::new());
    for ((size, outcome), received) in sizes.iter().zip(&outcomes).zip(&recorder.bodies) {
        assert!(outcome.failure.is_none(), "{outcome:?}");
        assert_eq!(
            (outcome.status, outcome.received),
            (Some(200), *size as u64)
        );
        assert_eq!(*received, body(*size));
    }
    assert_eq!(server.connections(), 1);
    let charged = outcomes
        .iter()
        .filter(|outcome| outcome.timing.connect.is_some());
    assert_eq!(charged.count(), 1, "the first fetch on the connection");
}

#[test]
fn a_large_body_arrives_whole_after_a_retry_packet() {
    let server = Server::start("localhost", RetryPolicy::Always);
    let (outcome, recorder) = fetch(&server, "20000000");
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert_eq!(recorder.bodies[0], body(20_000_000));
}

#[test]
fn interim_responses_and_trailers_are_reported_in_order() {
    let server = server();
    let (outcome, recorder) = fetch(&server, "all");
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert_eq!(&recorder.heads[..2], ["103", "200"]);
    assert!(recorder.heads[2].contains("x-sum"), "{:?}", recorder.heads);
    assert_eq!(recorder.bodies[0], b"hello");
}

#[test]
fn endless_interim_responses_end_at_the_limit() {
    let server = server();
    let (outcome, recorder) = fetch(&server, "hints");
    let failure = outcome.failure.expect("no final response");
    let why = failure.to_string();
    assert!(why.contains("too many interim responses"), "{why}");
    assert_eq!(recorder.heads.len(), 100);
}

#[test]
fn an_upload_arrives_whole() {
    let server = server();
    let sent = body(3_000_000);
    let mut what = get(&server, "echo");
    what.method = "POST".to_owned();
    what.upload = Some(Upload::source(sent.clone()));
    let mut recorder = Recorder::default();
    let outcomes = fetch_with(
        &settings(&server),
        &Memory::default(),
        &mut recorder,
        vec![what],
    );
    assert!(outcomes[0].failure.is_none(), "{outcomes:?}");
    assert!(recorder.bodies[0] == sent);
}

/// The server responds to the second without waiting for its body.
#[test]
fn bytes_of_an_upload_that_were_not_sent_do_not_count() {
    let server = server();
    for (path, len, is_taken) in [("echo", 3_000_000, true), ("1000", 60_000_000, false)] {
        let mut what = get(&server, path);
        what.method = "POST".to_owned();
        what.upload = Some(Upload::source(vec![7; len]));
        let mut recorder = Recorder::default();
        let outcomes = fetch_with(
            &settings(&server),
            &Memory::default(),
            &mut recorder,
            vec![what],
        );
        let (status, sent) = (outcomes[0].status, outcomes[0].sent);
        assert_eq!(status, Some(200), "{path}");
        assert_eq!(sent == len as u64, is_taken, "{path}: {sent}");
    }
}

#[test]
fn the_next_run_resumes_and_sends_early_data() {
    let server = server();
    let memory = Memory::default();
    let mut settings = settings(&server);
    settings.early_data = true;
    settings.ticket_wait = Duration::from_secs(5);
    let mut runs = Vec::new();
    for _ in 0..3 {
        let mut recorder = Recorder::default();
        let fetches = vec![get(&server, "1000"), get(&server, "2000")];
        let outcomes = fetch_with(&settings, &memory, &mut recorder, fetches);
        assert!(outcomes.iter().all(|outcome| outcome.failure.is_none()));
        assert_eq!(recorder.bodies, [body(1000), body(2000)]);
        let handshake = recorder.handshakes.remove(0);
        let early = outcomes.iter().map(|outcome| outcome.is_early);
        runs.push((
            handshake.is_resumed,
            handshake.early_data,
            early.collect::<Vec<_>>(),
        ));
    }
    assert_eq!(runs[0], (false, None, vec![false, false]));
    assert_eq!(runs[1], (true, Some(true), vec![true, true]));
    assert_eq!(runs[2], (true, Some(true), vec![true, true]));
}

#[test]
fn certificates_must_match_the_name_and_a_trusted_authority() {
    let server = Server::start("example.com", RetryPolicy::Never);
    let (outcome, _) = fetch(&server, "1");
    let failure = outcome.failure.expect("another name");
    assert!(matches!(failure, Failure::Certificate(_)), "{failure:?}");
    assert!(failure.to_string().contains("another name"), "{failure}");

    let other = self::server();
    let mut settings = settings(&server);
    let mut recorder = Recorder::default();
    let memory = Memory::default();
    let outcomes = fetch_with(&settings, &memory, &mut recorder, vec![get(&other, "1")]);
    let failure = outcomes[0].failure.as_ref().expect("another authority");
    assert!(matches!(failure, Failure::Certificate(_)), "{failure:?}");

    settings.trust = Trust::DangerouslyAcceptAny;
    let outcomes = fetch_with(&settings, &memory, &mut recorder, vec![get(&server, "1")]);
    assert!(outcomes[0].failure.is_none(), "{outcomes:?}");
}

#[test]
fn aborted_bodies_are_partial_failures() {
    let server = server();
    for path in ["reset", "close", "short"] {
        let (outcome, _) = fetch(&server, path);
        let failure = outcome.failure.expect(path);
        assert!(
            matches!(failure, Failure::Partial { .. }),
            "{path}: {failure:?}"
        );
        assert_eq!(outcome.retries, 0, "{path}");
    }
}

#[test]
fn a_failed_fetch_does_not_affect_others() {
    let server = server();
    let mut recorder = Recorder::default();
    let paths = ["100000", "reset", "200000", "no-such", "300000"];
    let fetches = paths.map(|path| get(&server, path)).to_vec();
    let outcomes = fetch_with(
        &settings(&server),
        &Memory::default(),
        &mut recorder,
        fetches,
    );
    let failed: Vec<bool> = outcomes.iter().map(|one| one.failure.is_some()).collect();
    assert_eq!(failed, [false, true, false, false, false]);
    assert_eq!(outcomes[3].status, Some(404));
    assert_eq!(recorder.bodies[4], body(300_000));
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_listener_error_ends_the_fetch() {
    let server = server();
    let mut recorder = Recorder {
        size_max: Some(50_000),
        ..Recorder::default()
    };
    let fetches = vec![get(&server, "5000000"), get(&server, "40000")];
    let outcomes = fetch_with(
        &settings(&server),
        &Memory::default(),
        &mut recorder,
        fetches,
    );
    let failure = outcomes[0].failure.as_ref().expect("a listener error");
    assert!(matches!(failure, Failure::Write(_)), "{failure:?}");
    assert!(outcomes[1].failure.is_none(), "{outcomes:?}");
    assert!(recorder.bodies[0].len() < 60_000, "nothing after the error");
}

#[test]
fn rejected_requests_are_repeated_up_to_the_limit() {
    let server = server();
    let (outcome, _) = fetch(&server, "reject-once");
    // The path is unknown the second time.
    assert_eq!((outcome.status, outcome.retries), (Some(404), 1));
    assert_eq!(server.connections(), 2);

    let (outcome, _) = fetch(&server, "reject");
    let failure = outcome.failure.expect("rejected each time");
    assert!(matches!(failure, Failure::Response(_)), "{failure:?}");
    assert_eq!(outcome.retries, 3);
}

/// The server would violate it again.
#[test]
fn a_request_is_not_repeated_after_a_violation_of_http3() {
    let server = server();
    let (outcome, _) = fetch(&server, "violation");
    let failure = outcome.failure.expect("a violation");
    assert!(
        matches!(&failure, Failure::Response(why) if why.contains("violated HTTP/3")),
        "{failure:?}"
    );
    assert_eq!((outcome.retries, server.connections()), (0, 1));
}

#[test]
fn after_goaway_a_new_connection_is_opened() {
    let server = server();
    let mut settings = settings(&server);
    settings.parallel = 1;
    let mut recorder = Recorder::default();
    let fetches = ["goaway", "100", "goaway", "200"].map(|path| get(&server, path));
    let outcomes = fetch_with(
        &settings,
        &Memory::default(),
        &mut recorder,
        fetches.to_vec(),
    );
    let statuses: Vec<_> = outcomes.iter().map(|outcome| outcome.status).collect();
    assert_eq!(statuses, [Some(200); 4]);
    assert!(outcomes.iter().all(|outcome| outcome.failure.is_none()));
    assert_eq!(recorder.bodies[3], body(200));
    assert!(server.connections() > 1, "{}", server.connections());
}

#[test]
fn the_time_limit_ends_a_fetch() {
    let server = server();
    let mut settings = settings(&server);
    settings.time_limit = Some(Duration::from_millis(300));
    let mut recorder = Recorder::default();
    let fetches = vec![get(&server, "never"), get(&server, "10")];
    let outcomes = fetch_with(&settings, &Memory::default(), &mut recorder, fetches);
    let failure = outcomes[0].failure.as_ref().expect("too late");
    assert!(matches!(failure, Failure::TimeLimit(_)), "{failure:?}");
    assert!(outcomes[1].failure.is_none(), "{outcomes:?}");
}

#[test]
fn an_interrupt_ends_all_fetches() {
    let server = server();
    let mut recorder = Recorder {
        is_interrupted: true,
        ..Recorder::default()
    };
    let fetches = vec![get(&server, "never"), get(&server, "10")];
    let outcomes = fetch_with(
        &settings(&server),
        &Memory::default(),
        &mut recorder,
        fetches,
    );
    for outcome in &outcomes {
        let failure = outcome.failure.as_ref().expect("interrupted");
        assert!(matches!(failure, Failure::Interrupted), "{failure:?}");
    }
}

#[test]
fn unresolvable_names_and_silent_servers_fail() {
    let server = server();
    let mut settings = settings(&server);
    settings.connect_timeout = Duration::from_millis(400);
    settings.attempt_delay = Duration::from_millis(20);
    // An open port that does not respond.
    let silent = lastbyte_udp::Socket::bind(
        "127.0.0.1:0".parse().expect("an address"),
        &lastbyte_udp::Options::default(),
    )
    .expect("a socket");
    let silent = format!("https://{}/", silent.local_address());
    let there = Fetch::get(silent.parse().expect("an address"));
    let nowhere = Fetch::get("https://no-such-name.invalid/".parse().expect("an address"));
    let mut recorder = Recorder::default();
    let fetches = vec![nowhere, there, get(&server, "10")];
    let outcomes = fetch_with(&settings, &Memory::default(), &mut recorder, fetches);
    let failure = |at: usize| outcomes[at].failure.as_ref();
    assert!(matches!(
        failure(0),
        Some(Failure::Resolve(_) | Failure::ConnectTimeout(_))
    ));
    assert!(matches!(failure(1), Some(Failure::ConnectTimeout(_))));
    assert!(failure(2).is_none(), "{outcomes:?}");
}

#[test]
fn closed_ports_are_detected_before_the_timeout() {
    let server = server();
    let mut settings = settings(&server);
    settings.connect_timeout = Duration::from_secs(60);
    let mut recorder = Recorder::default();
    // Port 1 is reserved for an obsolete service (tcpmux).
    let fetches = ["https://127.0.0.1:1/", "https://[::1]:1/"]
        .map(|url| Fetch::get(url.parse().expect("an address")));
    let clock = Clock::new();
    let start = clock.now();
    let report = run(
        &settings,
        &Memory::default(),
        clock,
        fetches.to_vec(),
        &mut recorder,
    )
    .expect("a socket");
    for outcome in &report.outcomes {
        let failure = outcome.failure.as_ref().expect("a closed port");
        assert!(matches!(failure, Failure::Connect(_)), "{failure:?}");
    }
    assert!(clock.now().since(start) < Duration::from_secs(30));
}

#[test]
fn the_next_address_is_tried_if_one_is_silent() {
    let server = server();
    let silent = lastbyte_udp::Socket::bind(
        format!("127.0.0.2:{}", server.port)
            .parse()
            .expect("an address"),
        &lastbyte_udp::Options::default(),
    );
    let _silent = silent.expect("all of 127.0.0.0/8 is loopback");
    let mut settings = settings(&server);
    settings.attempt_delay = Duration::from_millis(20);
    let url: Url = server.url("1000").parse().expect("an address");
    settings.overrides = vec![lastbyte_client::Override {
        host: url.origin().host.clone(),
        port: url.origin().port,
        addresses: ["127.0.0.2", "127.0.0.1"]
            .map(|ip| ip.parse().expect("an address"))
            .to_vec(),
    }];
    let mut recorder = Recorder::default();
    let outcomes = fetch_with(
        &settings,
        &Memory::default(),
        &mut recorder,
        vec![Fetch::get(url)],
    );
    assert!(outcomes[0].failure.is_none(), "{outcomes:?}");
    assert_eq!(recorder.bodies[0], body(1000));
    assert_eq!(recorder.handshakes[0].remote.ip().to_string(), "127.0.0.1");
}

/// RFC 9114 §3.3, and RFC 9110 §15.5.20 if the server rejects the shared connection.
#[test]
fn rfc9114_3_3_origins_with_the_same_address_and_certificate_share_a_connection() {
    let names = "localhost,other.example,elsewhere.example";
    let server = Server::start(names, RetryPolicy::Never);
    let mut settings = settings(&server);
    settings.parallel = 1;
    let place = lastbyte_client::Override {
        host: "*".to_owned(),
        port: server.port,
        addresses: vec!["127.0.0.1".parse().expect("an address")],
    };
    settings.overrides = vec![place];
    let at = |host: &str, path: &str| {
        let url = format!("https://{host}:{}/{path}", server.port);
        Fetch::get(url.parse().expect("an address"))
    };
    let mut recorder = Recorder::default();
    let fetches = vec![at("localhost", "10"), at("other.example", "20")];
    let outcomes = fetch_with(
        &settings,
        &Memory::default(),
        &mut recorder,
        fetches.clone(),
    );
    assert!(
        outcomes.iter().all(|it| it.failure.is_none()),
        "{outcomes:?}"
    );
    assert_eq!(recorder.bodies, [body(10), body(20)]);
    assert_eq!(server.connections(), 1);
    let connections: Vec<_> = outcomes.iter().map(|it| it.connection).collect();
    assert_eq!(connections, [Some(0), Some(0)]);

    // The certificate does not cover this name.
    let uncovered = vec![at("localhost", "10"), at("uncovered.example", "20")];
    let outcomes = fetch_with(&settings, &Memory::default(), &mut recorder, uncovered);
    let failure = outcomes[1].failure.as_ref();
    assert!(
        matches!(failure, Some(Failure::Certificate(_))),
        "{failure:?}"
    );

    // The server rejects this name on the shared connection, so the request is repeated on a separate one.
    let before = server.connections();
    let mut recorder = Recorder::default();
    let misdirected = vec![at("localhost", "10"), at("elsewhere.example", "20")];
    let outcomes = fetch_with(&settings, &Memory::default(), &mut recorder, misdirected);
    assert_eq!(outcomes[1].status, Some(421), "{outcomes:?}");
    assert_eq!((outcomes[1].retries, outcomes[1].connection), (1, Some(1)));
    assert_eq!(server.connections() - before, 2);

    settings.coalesces = false;
    let before = server.connections();
    let outcomes = fetch_with(&settings, &Memory::default(), &mut recorder, fetches);
    assert!(
        outcomes.iter().all(|it| it.failure.is_none()),
        "{outcomes:?}"
    );
    assert_eq!(server.connections() - before, 2);
}

/// A fetch without progress is ended; a fast one on the same connection is not.
#[test]
fn stalled_fetches_over_quic_end_at_the_time_limit() {
    let server = server();
    let mut settings = settings(&server);
    settings.time_limit = Some(Duration::from_secs(3));
    let fetches = ["never", "100000"].map(|path| get(&server, path));
    let mut recorder = Recorder::default();
    let outcomes = fetch_with(
        &settings,
        &Memory::default(),
        &mut recorder,
        fetches.to_vec(),
    );
    let failure = outcomes[0].failure.as_ref();
    assert!(
        matches!(failure, Some(Failure::TimeLimit(_))),
        "{failure:?}"
    );
    assert!(outcomes[1].failure.is_none(), "{outcomes:?}");
    assert_eq!(recorder.bodies[1], body(100_000));
}
