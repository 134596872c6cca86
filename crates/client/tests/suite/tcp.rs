//! HTTP/2 and HTTP/1.1 over TLS, and the choice of the version.

use std::time::Duration;

use lastbyte_client::{
    Failure, Family, Fetch, Identity, Memory, Outcome, Settings, Transport, Trust, Upload, Version,
    Versions,
};
use lastbyte_quic::{connection::Config, endpoint::RetryPolicy};

use super::{
    raw::body,
    recorder::{Recorder, fetch_with},
    server::Server,
    tls::{Tls, TlsOptions},
};

fn settings(certificates: &[&str]) -> Settings {
    let mut settings = Settings::new(Config::new("cubic".parse().expect("a spec")));
    settings.trust = Trust::Authorities(certificates.concat().into_bytes());
    settings.connect_timeout = Duration::from_secs(30);
    settings
}

fn get(url: &str) -> Fetch {
    Fetch::get(url.parse().expect("a URL"))
}

fn fetch_one(settings: &Settings, memory: &Memory, fetch: Fetch) -> (Outcome, Recorder) {
    let mut recorder = Recorder::default();
    let mut outcomes = fetch_with(settings, memory, &mut recorder, vec![fetch]);
    recorder.bodies.resize(1, Vec::new());
    (outcomes.remove(0), recorder)
}

#[test]
fn many_fetches_share_one_http2_connection() {
    let server = Tls::start(&TlsOptions::default());
    let mut settings = settings(&[&server.certificate]);
    settings.versions = Versions::Http2;
    // More than the server's stream limit and the client's `parallel`.
    let sizes: Vec<usize> = (0..150).map(|number| number * 997).collect();
    let fetches = sizes.iter().map(|size| get(&server.url(&size.to_string())));
    let mut recorder = Recorder::default();
    let fetches = fetches.collect();
    let outcomes = fetch_with(&settings, &Memory::default(), &mut recorder, fetches);
    recorder.bodies.resize(sizes.len(), Vec::new());
    for ((size, outcome), received) in sizes.iter().zip(&outcomes).zip(&recorder.bodies) {
        assert!(outcome.failure.is_none(), "{outcome:?}");
        assert_eq!(outcome.version, Some(Version::Http2));
        assert!(*received == body(*size), "{size}");
    }
    assert_eq!(server.connections(), 1);
    assert_eq!(recorder.handshakes[0].tls, Some("TLS 1.3"));
    assert_eq!(recorder.handshakes[0].transport, Transport::Tcp);
}

#[test]
fn versions_of_http_and_tls_are_negotiated() {
    for (versions, alpn, is_old, expected) in [
        (Versions::Any, vec!["h2", "http/1.1"], false, Version::Http2),
        (Versions::Http2, vec!["http/1.1"], false, Version::Http11),
        (
            Versions::Http11,
            vec!["h2", "http/1.1"],
            false,
            Version::Http11,
        ),
        (Versions::Any, vec!["h2"], true, Version::Http2),
        (Versions::Http2Only, vec!["h2"], false, Version::Http2),
        // A server without ALPN.
        (Versions::Http2, vec![], true, Version::Http11),
    ] {
        let server = Tls::start(&TlsOptions {
            alpn,
            is_old,
            ..TlsOptions::default()
        });
        let mut settings = settings(&[&server.certificate]);
        settings.versions = versions;
        let (outcome, recorder) =
            fetch_one(&settings, &Memory::default(), get(&server.url("5000")));
        assert!(outcome.failure.is_none(), "{versions:?}: {outcome:?}");
        assert_eq!(outcome.version, Some(expected), "{versions:?}");
        assert!(recorder.bodies[0] == body(5000));
        let tls = if is_old { "TLS 1.2" } else { "TLS 1.3" };
        assert_eq!(recorder.handshakes[0].tls, Some(tls));
        let timing = &outcome.timing;
        assert!(timing.connect <= timing.transport && timing.transport < timing.connected);
    }
    let server = Tls::start(&TlsOptions {
        alpn: vec!["http/1.1"],
        ..TlsOptions::default()
    });
    let mut settings = settings(&[&server.certificate]);
    settings.versions = Versions::Http2Only;
    let (outcome, _) = fetch_one(&settings, &Memory::default(), get(&server.url("5000")));
    assert!(
        matches!(outcome.failure, Some(Failure::Tls(_))),
        "{outcome:?}"
    );
}

#[test]
fn uploads_arrive_over_http2_whatever_their_length() {
    let server = Tls::start(&TlsOptions::default());
    let mut settings = settings(&[&server.certificate]);
    settings.versions = Versions::Http2;
    let sent = body(3_000_000);
    for upload in [
        Upload::source(sent.clone()),
        Upload::stream(std::io::Cursor::new(sent.clone())),
    ] {
        let mut put = get(&server.url("echo"));
        put.method = "PUT".to_owned();
        put.upload = Some(upload);
        let (outcome, recorder) = fetch_one(&settings, &Memory::default(), put);
        assert!(outcome.failure.is_none(), "{outcome:?}");
        assert!(recorder.bodies[0] == sent);
    }
    // RFC 9113 §8.1: the latter must not be taken for the end.
    for path in ["reset", "reset-without-error"] {
        let (outcome, _) = fetch_one(&settings, &Memory::default(), get(&server.url(path)));
        let failure = outcome.failure;
        assert!(
            matches!(failure, Some(Failure::Partial { received: 9, .. })),
            "{path}: {failure:?}"
        );
    }
}

#[test]
fn endless_interim_responses_over_http2_end_at_the_limit() {
    let server = Tls::start(&TlsOptions {
        // HEADERS of stream 1 with `:status: 103` (RFC 9113 §6.2, RFC 7541 §6.2.2).
        only: Some(b"\0\0\x05\x01\x04\0\0\0\x01\x08\x03103"),
        ..TlsOptions::default()
    });
    let mut settings = settings(&[&server.certificate]);
    settings.versions = Versions::Http2;
    let (outcome, _) = fetch_one(&settings, &Memory::default(), get(&server.url("1")));
    let why = outcome.failure.expect("no final response").to_string();
    assert!(why.contains("more than 100 interim responses"), "{why}");
}

#[test]
fn a_violation_of_http2_is_reported_and_the_request_is_not_repeated() {
    let server = Tls::start(&TlsOptions {
        // DATA on stream 1, before HEADERS.
        only: Some(b"\0\0\x01\0\0\0\0\0\x01x"),
        ..TlsOptions::default()
    });
    let mut settings = settings(&[&server.certificate]);
    settings.versions = Versions::Http2;
    let (outcome, _) = fetch_one(&settings, &Memory::default(), get(&server.url("1")));
    let failure = outcome.failure.expect("a violation");
    assert!(matches!(failure, Failure::Protocol(_)), "{failure:?}");
    assert_eq!((outcome.retries, server.connections()), (0, 1));
}

#[test]
fn sessions_are_resumed_over_tcp_from_one_run_to_the_next() {
    let server = Tls::start(&TlsOptions::default());
    let mut settings = settings(&[&server.certificate]);
    settings.versions = Versions::Http2;
    let memory = Memory::default();
    for round in 0..3 {
        let (outcome, recorder) = fetch_one(&settings, &memory, get(&server.url("5000")));
        assert!(outcome.failure.is_none(), "{outcome:?}");
        assert_eq!(recorder.handshakes[0].is_resumed, round > 0);
    }
    assert_eq!((server.connections(), server.resumed()), (3, 2));
}

#[test]
fn untrusted_and_unpinned_servers_are_rejected_over_tcp() {
    let server = Tls::start(&TlsOptions::default());
    let other = Tls::start(&TlsOptions::default());
    let mut settings = settings(&[&other.certificate]);
    settings.versions = Versions::Http2;
    let failure = |settings: &Settings| {
        let (outcome, _) = fetch_one(settings, &Memory::default(), get(&server.url("5")));
        outcome.failure
    };
    let refused = failure(&settings);
    assert!(
        matches!(refused, Some(Failure::Certificate(_))),
        "{refused:?}"
    );
    settings.trust = Trust::DangerouslyAcceptAny;
    assert!(failure(&settings).is_none());
    settings.pins = vec![other.pin.clone()];
    let refused = failure(&settings);
    assert!(matches!(refused, Some(Failure::Pin(_))), "{refused:?}");
    settings.pins.push(server.pin.clone());
    assert!(failure(&settings).is_none());
}

#[test]
fn the_client_certificate_is_sent_on_request() {
    let own = rcgen::generate_simple_self_signed(vec!["client".to_owned()]).expect("a certificate");
    let server = Tls::start(&TlsOptions {
        clients: Some(own.cert.pem()),
        ..TlsOptions::default()
    });
    let mut settings = settings(&[&server.certificate]);
    settings.versions = Versions::Http2;
    let (outcome, _) = fetch_one(&settings, &Memory::default(), get(&server.url("5")));
    assert!(outcome.failure.is_some(), "a certificate is required");
    settings.identity = Some(Identity {
        certificates: own.cert.pem().into_bytes(),
        key: own.signing_key.serialize_pem().into_bytes(),
    });
    let (outcome, recorder) = fetch_one(&settings, &Memory::default(), get(&server.url("5")));
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert_eq!(recorder.bodies[0], body(5));
}

#[test]
fn http3_is_preferred_if_available() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let tcp = Tls::start(&TlsOptions {
        port: server.port,
        ..TlsOptions::default()
    });
    let mut settings = settings(&[&server.certificate, &tcp.certificate]);
    // Long enough for a slow machine.
    settings.head_start = Duration::from_secs(20);
    let (outcome, recorder) = fetch_one(&settings, &Memory::default(), get(&server.url("5000")));
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert_eq!(outcome.version, Some(Version::Http3));
    assert!(recorder.bodies[0] == body(5000));
    assert_eq!((server.connections(), tcp.connections()), (1, 0));
}

#[test]
fn tcp_is_used_if_udp_does_not_work() {
    let tcp = Tls::start(&TlsOptions::default());
    let mut settings = settings(&[&tcp.certificate]);
    // The UDP port is closed, which is detected before the head start ends.
    settings.head_start = Duration::from_secs(20);
    let (outcome, recorder) = fetch_one(&settings, &Memory::default(), get(&tcp.url("5000")));
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert_eq!(outcome.version, Some(Version::Http2));
    assert!(recorder.bodies[0] == body(5000));
    // The UDP port is open, but silent.
    let silent = lastbyte_udp::Socket::bind(
        format!("127.0.0.1:{}", tcp.port)
            .parse()
            .expect("an address"),
        &lastbyte_udp::Options::default(),
    );
    let _silent = silent.expect("a free port");
    settings.head_start = Duration::from_millis(50);
    let mut put = get(&tcp.url("echo"));
    put.method = "PUT".to_owned();
    put.upload = Some(Upload::source(body(5000)));
    let (outcome, recorder) = fetch_one(&settings, &Memory::default(), put);
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert!(recorder.bodies[0] == body(5000));
    settings.versions = Versions::Http3;
    settings.family = Family::Ipv4;
    settings.connect_timeout = Duration::from_millis(300);
    let (outcome, _) = fetch_one(&settings, &Memory::default(), get(&tcp.url("5000")));
    assert!(
        matches!(outcome.failure, Some(Failure::ConnectTimeout(_))),
        "{outcome:?}"
    );
}

#[test]
fn rfc7838_http3_is_used_on_the_announced_port() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let tcp = Tls::start(&TlsOptions::default());
    let mut settings = settings(&[&server.certificate, &tcp.certificate]);
    let memory = Memory::default();
    let (outcome, _) = fetch_one(
        &settings,
        &memory,
        get(&tcp.url(&format!("alternative?{}", server.port))),
    );
    assert_eq!(outcome.version, Some(Version::Http2), "{outcome:?}");
    assert!(!memory.alternatives().is_empty());
    settings.head_start = Duration::from_secs(20);
    let (outcome, recorder) = fetch_one(&settings, &memory, get(&tcp.url("777")));
    assert_eq!(outcome.version, Some(Version::Http3), "{outcome:?}");
    assert!(recorder.bodies[0] == body(777));
    assert_eq!(recorder.handshakes[0].remote.port(), server.port);
}
