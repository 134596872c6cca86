//! HTTPS records (RFC 9460): their endpoints are used, and fetches succeed without them.

use std::time::Duration;

use lastbyte_client::{Fetch, Memory, Outcome, Report, Settings, Trust, Version, Versions, run};
use lastbyte_driver::Clock;
use lastbyte_quic::{connection::Config, endpoint::RetryPolicy};

use super::{
    dns::{A, Dns, DnsBehavior, HTTPS, Record, https},
    recorder::Recorder,
    server::{Server, body},
    tls::{Tls, TlsOptions},
};

/// No server listens on this port.
const URL: &str = "https://www.lastbyte.example:1/700";
const OWNER: &str = "_1._https.www.lastbyte.example";
const NAME: &str = "www.lastbyte.example";
const HERE: [u8; 4] = [127, 0, 0, 1];
const H3: (u16, &[u8]) = (1, b"\x02h3");
const H2: (u16, &[u8]) = (1, b"\x02h2");

fn settings(dns: &Dns, certificate: &str) -> Settings {
    let mut settings = Settings::new(Config::new("cubic".parse().expect("a spec")));
    settings.trust = Trust::Authorities(certificate.as_bytes().to_vec());
    settings.connect_timeout = Duration::from_secs(30);
    settings.dns_servers = vec![dns.address];
    settings
}

fn fetch(settings: &Settings, url: &str) -> (Outcome, Report, Recorder) {
    let mut recorder = Recorder::default();
    let fetch = Fetch::get(url.parse().expect("a URL"));
    let memory = Memory::default();
    let report = run(settings, &memory, Clock::new(), vec![fetch], &mut recorder);
    let mut report = report.expect("a socket");
    (report.outcomes.remove(0), report, recorder)
}

fn of(port: u16) -> [u8; 2] {
    port.to_be_bytes()
}

#[test]
fn a_record_redirects_the_connection_but_not_the_name() {
    let server = Server::start(NAME, RetryPolicy::Never);
    let port = of(server.port);
    for (behavior, records) in [
        (
            DnsBehavior::Normal,
            vec![
                (
                    OWNER,
                    HTTPS,
                    https(1, "cdn.lastbyte.example", &[H3, (3, &port)]),
                ),
                ("cdn.lastbyte.example", A, HERE.to_vec()),
            ],
        ),
        // A truncated answer is repeated over TCP.
        (
            DnsBehavior::Truncating,
            vec![
                (OWNER, HTTPS, https(1, NAME, &[H3, (3, &port)])),
                (NAME, A, HERE.to_vec()),
            ],
        ),
        // An alias, and an address hint.
        (
            DnsBehavior::Normal,
            vec![
                (OWNER, HTTPS, https(0, "pool.lastbyte.example", &[])),
                (
                    "pool.lastbyte.example",
                    HTTPS,
                    https(1, ".", &[H3, (3, &port), (4, &HERE)]),
                ),
            ],
        ),
        // The first usable record of several.
        (
            DnsBehavior::Normal,
            vec![
                (OWNER, HTTPS, https(3, "no.lastbyte.example", &[H3])),
                (OWNER, HTTPS, https(2, NAME, &[H3, (3, &port)])),
                (
                    OWNER,
                    HTTPS,
                    https(1, NAME, &[(0, &[0xff, 0]), H3, (0xff00, b"")]),
                ),
                (NAME, A, HERE.to_vec()),
            ],
        ),
    ] {
        let records: Vec<Record> = records;
        let dns = Dns::start(behavior, records);
        let (outcome, report, recorder) = fetch(&settings(&dns, &server.certificate), URL);
        assert!(
            outcome.failure.is_none(),
            "{outcome:?} {:?}",
            report.lookups
        );
        assert_eq!(outcome.version, Some(Version::Http3));
        assert_eq!(recorder.bodies[0], body(700));
        assert_eq!(recorder.handshakes[0].remote.port(), server.port);
        let answer = report.lookups[0].https.as_ref().expect("an answer");
        assert!(answer.at <= report.lookups[0].end.expect("an end"));
    }
}

/// If the record lacks `h3`, HTTP/3 is not tried and there is no head start to wait for.
#[test]
fn tcp_is_used_at_once_if_the_record_lacks_h3() {
    let server = Tls::start(&TlsOptions {
        name: NAME,
        ..TlsOptions::default()
    });
    let port = of(server.port);
    let records = vec![
        (OWNER, HTTPS, https(1, ".", &[H2, (3, &port), (4, &HERE)])),
        (NAME, A, HERE.to_vec()),
    ];
    let dns = Dns::start(DnsBehavior::Normal, records);
    let mut settings = settings(&dns, &server.certificate);
    // The test would take this long if HTTP/3 were tried.
    settings.head_start = Duration::from_secs(20);
    let (outcome, _, recorder) = fetch(&settings, URL);
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert_eq!(outcome.version, Some(Version::Http2));
    assert_eq!(recorder.connecting, [] as [u16; 0], "no QUIC attempt");
}

#[test]
fn the_origin_is_used_if_no_endpoint_is_reachable() {
    let server = Tls::start(&TlsOptions {
        name: NAME,
        ..TlsOptions::default()
    });
    let url = format!("https://{NAME}:{}/700", server.port);
    let owner: &'static str = format!("_{}._https.{NAME}", server.port).leak();
    let records = vec![
        (owner, HTTPS, https(1, ".", &[H2, (3, &of(1)), (4, &HERE)])),
        (NAME, A, HERE.to_vec()),
    ];
    let dns = Dns::start(DnsBehavior::Normal, records);
    let (outcome, ..) = fetch(&settings(&dns, &server.certificate), &url);
    assert!(outcome.failure.is_none(), "{outcome:?}");
}

/// Without a usable record, a fetch proceeds as if there were none, after at most 50 ms.
#[test]
fn fetches_succeed_without_a_usable_record() {
    let server = Server::start(NAME, RetryPolicy::Never);
    let url = format!("https://{NAME}:{}/700", server.port);
    let owner: &'static str = format!("_{}._https.{NAME}", server.port).leak();
    let alias_loop = "circle.lastbyte.example";
    let wrong_port = https(1, ".", &[H3, (3, &of(1))]);
    for (behavior, data) in [
        (DnsBehavior::Silent, wrong_port.clone()),
        (DnsBehavior::Refusing, wrong_port.clone()),
        (DnsBehavior::Malformed, wrong_port.clone()),
        (DnsBehavior::Normal, https(1, ".", &[(3, &[1])])),
        (DnsBehavior::Normal, https(0, alias_loop, &[])),
        (DnsBehavior::Normal, https(0, ".", &[])),
    ] {
        let records = vec![
            (owner, HTTPS, data.clone()),
            (alias_loop, HTTPS, https(0, alias_loop, &[])),
            (NAME, A, HERE.to_vec()),
        ];
        let dns = Dns::start(behavior, records);
        let (outcome, report, _) = fetch(&settings(&dns, &server.certificate), &url);
        assert!(
            outcome.failure.is_none(),
            "{behavior:?} {data:?}: {outcome:?}"
        );
        assert_eq!(outcome.version, Some(Version::Http3));
        let lookup = &report.lookups[0];
        let queries = dns.queries();
        assert!(queries.contains(&(owner.to_owned(), HTTPS)), "{queries:?}");
        let answer = lookup.https.as_ref().map(|https| https.found.clone());
        match behavior {
            DnsBehavior::Silent => assert_eq!(answer, None),
            DnsBehavior::Refusing | DnsBehavior::Malformed => {
                assert!(matches!(answer, Some(Err(_))), "{answer:?}");
            }
            _ => {}
        }
    }
}

#[test]
fn records_are_queried_only_where_they_apply() {
    let server = Server::start("localhost,127.0.0.1", RetryPolicy::Never);
    let dns = Dns::start(DnsBehavior::Normal, Vec::new());
    let all = settings(&dns, &server.certificate);
    let ip = format!("https://127.0.0.1:{}/1", server.port);
    let (outcome, ..) = fetch(&all, &ip);
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert_eq!(dns.queries(), []);
    // These settings exclude the query, although the name would have a record.
    let mut three = all.clone();
    three.versions = Versions::Http3;
    let mut none = all.clone();
    none.https_records = false;
    for settings in [three, none] {
        let (outcome, ..) = fetch(&settings, URL);
        assert!(outcome.failure.is_some(), "{outcome:?}");
    }
    let (outcome, ..) = fetch(&all, "http://www.lastbyte.example:1/");
    assert!(outcome.failure.is_some(), "{outcome:?}");
    let queries = dns.queries();
    assert!(!queries.is_empty(), "addresses are queried");
    assert!(
        queries.iter().all(|(_, kind)| *kind != HTTPS),
        "{queries:?}"
    );
}
