//! HTTP/1.1 without TLS, against a server that sends arbitrary bytes.

use std::time::Duration;

use lastbyte_client::{Failure, Fetch, Memory, Outcome, Settings, Upload, Version};
use lastbyte_quic::connection::Config;

use super::{
    raw::{ScriptedServer, body},
    recorder::{Recorder, fetch_with},
};

fn settings() -> Settings {
    Settings::new(Config::new("cubic".parse().expect("a spec")))
}

fn get(server: &ScriptedServer, path: &str) -> Fetch {
    Fetch::get(server.url(path).parse().expect("a URL"))
}

fn fetch_one(fetch: Fetch) -> (Outcome, Recorder) {
    let mut recorder = Recorder::default();
    let mut settings = settings();
    settings.time_limit = Some(Duration::from_secs(60));
    let mut outcomes = fetch_with(&settings, &Memory::default(), &mut recorder, vec![fetch]);
    recorder.bodies.resize(1, Vec::new());
    (outcomes.remove(0), recorder)
}

#[test]
fn many_fetches_share_few_connections_and_arrive_whole() {
    let server = ScriptedServer::start();
    let sizes: Vec<usize> = (0..60).map(|number| number * 997).collect();
    let fetches = sizes.iter().map(|size| get(&server, &size.to_string()));
    let mut recorder = Recorder::default();
    let outcomes = fetch_with(
        &settings(),
        &Memory::default(),
        &mut recorder,
        fetches.collect(),
    );
    recorder.bodies.resize(sizes.len(), Vec::new());
    for ((size, outcome), received) in sizes.iter().zip(&outcomes).zip(&recorder.bodies) {
        assert!(outcome.failure.is_none(), "{outcome:?}");
        assert_eq!(outcome.version, Some(Version::Http11));
        assert!(*received == body(*size), "{size}");
    }
    let connections = server.heads().into_iter().map(|(number, _)| number).max();
    assert!(connections < Some(6), "{connections:?}");
}

#[test]
fn rfc9112_6_3_bodies_end_as_specified() {
    let server = ScriptedServer::start();
    for (path, expected) in [
        ("chunked", &b"hello world"[..]),
        ("close", b"until the end"),
        ("none", b""),
        ("0", b""),
        ("early", b"ok"),
    ] {
        let (outcome, recorder) = fetch_one(get(&server, path));
        assert!(outcome.failure.is_none(), "{path}: {outcome:?}");
        assert_eq!(recorder.bodies[0], expected, "{path}");
    }
    let (_, recorder) = fetch_one(get(&server, "early"));
    assert_eq!(recorder.heads, ["103", "200"]);
    let (_, recorder) = fetch_one(get(&server, "chunked"));
    assert!(recorder.heads[1].contains("x-sum"), "{:?}", recorder.heads);
}

#[test]
fn invalid_responses_have_distinct_failures() {
    let server = ScriptedServer::start();
    let failure = |path: &str| {
        let (outcome, _) = fetch_one(get(&server, path));
        outcome
            .failure
            .unwrap_or_else(|| panic!("{path} succeeded"))
    };
    for path in ["cut", "cut-chunk"] {
        let failure = failure(path);
        let is_partial = matches!(&failure, Failure::Partial { received: 9, .. });
        assert!(is_partial, "{path}: {failure:?}");
    }
    for path in [
        "garbage",
        "large-head",
        "many-fields",
        "two-lengths",
        "endless-interim",
    ] {
        let failure = failure(path);
        assert!(
            matches!(failure, Failure::Protocol(_)),
            "{path}: {failure:?}"
        );
    }
    for (path, what) in [
        ("switch", "switched protocols (101)"),
        ("gzip-chunked", "unknown transfer coding"),
        (
            "large-head",
            "header, or the length it announces, is too large",
        ),
        (
            "huge-length",
            "header, or the length it announces, is too large",
        ),
    ] {
        let failure = failure(path);
        let is_named = matches!(&failure, Failure::Protocol(why) if why.contains(what));
        assert!(is_named, "{path}: {failure:?}");
    }
    for path in ["empty", "cut-head"] {
        let failure = failure(path);
        assert!(matches!(failure, Failure::Empty), "{path}: {failure:?}");
    }
    let failure = failure("bad-chunk");
    assert!(matches!(failure, Failure::Partial { .. }), "{failure:?}");
}

#[test]
fn safe_requests_are_repeated_after_a_stale_connection() {
    let server = ScriptedServer::start();
    let mut settings = settings();
    settings.parallel = 1;
    let mut recorder = Recorder::default();
    let fetches = (0..4).map(|_| get(&server, "stale")).collect();
    let outcomes = fetch_with(&settings, &Memory::default(), &mut recorder, fetches);
    for (outcome, received) in outcomes.iter().zip(&recorder.bodies) {
        assert!(outcome.failure.is_none(), "{outcomes:?}");
        assert_eq!(received, b"fresh");
    }
    // A request that is not safe is not repeated.
    let mut post = get(&server, "stale");
    post.method = "POST".to_owned();
    post.upload = Some(Upload::source(b"x".to_vec()));
    let fetches = vec![get(&server, "stale"), post];
    let outcomes = fetch_with(&settings, &Memory::default(), &mut recorder, fetches);
    let failure = outcomes[1].failure.as_ref();
    assert!(matches!(failure, Some(Failure::Empty)), "{failure:?}");
}

#[test]
fn uploads_arrive_with_known_and_unknown_length_and_with_expect() {
    let server = ScriptedServer::start();
    let sent = body(3_000_000);
    for (method, path, upload) in [
        ("PUT", "echo", Upload::source(sent.clone())),
        (
            "PUT",
            "echo",
            Upload::stream(std::io::Cursor::new(sent.clone())),
        ),
        (
            "GET",
            "echo",
            Upload::stream(std::io::Cursor::new(sent.clone())),
        ),
        // The server ignores `expect`, so the client waits for its timeout of 1 s.
        ("PUT", "expect-silent", Upload::source(sent.clone())),
    ] {
        let mut put = get(&server, path);
        put.method = method.to_owned();
        put.upload = Some(upload);
        let (outcome, recorder) = fetch_one(put);
        assert!(outcome.failure.is_none(), "{path}: {outcome:?}");
        assert!(recorder.bodies[0] == sent, "{path}");
        assert_eq!(outcome.sent, 3_000_000);
    }
    // As curl does with `-H expect:`.
    let mut unannounced = get(&server, "echo?unannounced");
    unannounced.method = "PUT".to_owned();
    unannounced.upload = Some(Upload::source(sent.clone()));
    unannounced.omitted = vec!["expect".to_owned()];
    let (outcome, recorder) = fetch_one(unannounced);
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert!(recorder.bodies[0] == sent);
    let mut refused = get(&server, "expect-no");
    refused.method = "PUT".to_owned();
    refused.upload = Some(Upload::source(sent));
    let (outcome, recorder) = fetch_one(refused);
    assert_eq!(outcome.status, Some(417), "{outcome:?}");
    assert_eq!((&*recorder.bodies[0], outcome.sent), (&b"no"[..], 0));
    let heads = server.heads().into_iter().map(|(_, head)| head);
    let expecting = heads.filter(|head| head.contains("expect: 100-continue"));
    assert_eq!(expecting.count(), 5);
}

#[test]
fn redirects_are_followed_over_the_same_connection() {
    let server = ScriptedServer::start();
    let mut fetch = get(&server, "to?301,/to?302,/7");
    fetch.follows_redirects = true;
    let (outcome, recorder) = fetch_one(fetch);
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert_eq!((outcome.redirects, outcome.status), (2, Some(200)));
    assert_eq!(outcome.received, 7);
    assert_eq!(recorder.heads, ["301", "302", "200"]);
    assert_eq!(recorder.bodies[0], body(7));
    assert_eq!(
        outcome.url.expect("a redirect").to_string(),
        server.url("7")
    );
    assert!(server.heads().iter().all(|(number, _)| *number == 0));

    let mut redirect_loop = get(&server, "loop");
    redirect_loop.follows_redirects = true;
    let (outcome, _) = fetch_one(redirect_loop);
    let failure = outcome.failure.as_ref();
    assert!(
        matches!(failure, Some(Failure::Redirects(50))),
        "{failure:?}"
    );
    assert_eq!(outcome.redirects, 50);
}

#[test]
fn credentials_are_not_sent_to_another_host() {
    let (first, other) = (ScriptedServer::start(), ScriptedServer::start());
    let there = other.url("head");
    let mut fetch = get(&first, &format!("to?302,{there}"));
    fetch.url = fetch.url.with_credentials("me:secret");
    fetch.fields.push("cookie", "a=b");
    fetch.fields.push("x-mine", "1");
    fetch.follows_redirects = true;
    let (outcome, recorder) = fetch_one(fetch);
    assert!(outcome.failure.is_none(), "{outcome:?}");
    let here = first.heads()[0].1.clone();
    // `me:secret` in Base64, in lower case like the whole head.
    assert!(here.contains("authorization: basic bwu6c2vjcmv0"), "{here}");
    let received = String::from_utf8(recorder.bodies[0].clone()).expect("text");
    assert!(received.contains("x-mine: 1"), "{received}");
    assert!(
        !received.contains("authorization") && !received.contains("cookie"),
        "{received}"
    );
}

#[test]
fn compressed_content_is_decompressed_and_checked() {
    let server = ScriptedServer::start();
    let compressed = |path: &str| {
        let mut fetch = get(&server, path);
        fetch.is_decoded = true;
        fetch_one(fetch)
    };
    let (outcome, recorder) = compressed("gzip");
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert!(recorder.bodies[0] == body(50_000));
    assert!(outcome.received < 50_000);
    assert!(server.heads()[0].1.contains("accept-encoding: gzip"));
    for path in ["not-gzip", "gzip-twice"] {
        let (outcome, _) = compressed(path);
        let is_named = matches!(outcome.failure, Some(Failure::Encoding(_)));
        assert!(is_named, "{path}: {outcome:?}");
    }
    let (outcome, recorder) = compressed("9");
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert_eq!(recorder.bodies[0], body(9));
}

#[test]
fn limits_end_a_fetch() {
    let server = ScriptedServer::start();
    let mut settings = settings();
    settings.time_limit = Some(Duration::from_millis(300));
    let mut recorder = Recorder::default();
    let fetches = vec![
        get(&server, "never"),
        get(&server, "never-ends"),
        get(&server, "3"),
    ];
    let outcomes = fetch_with(&settings, &Memory::default(), &mut recorder, fetches);
    for outcome in &outcomes[..2] {
        let failure = outcome.failure.as_ref();
        assert!(
            matches!(failure, Some(Failure::TimeLimit(_))),
            "{failure:?}"
        );
    }
    assert!(outcomes[2].failure.is_none(), "{outcomes:?}");
    let mut refused = get(&server, "no-such");
    refused.fails_on_error_status = true;
    let (outcome, _) = fetch_one(refused);
    assert!(matches!(outcome.failure, Some(Failure::Status(404))));
    let mut full = Recorder {
        size_max: Some(1000),
        ..Recorder::default()
    };
    let fetches = vec![get(&server, "5000000")];
    let settings = self::settings();
    let outcomes = fetch_with(&settings, &Memory::default(), &mut full, fetches);
    assert!(matches!(outcomes[0].failure, Some(Failure::Write(_))));
}

#[test]
fn a_refused_connection_is_reported_at_once() {
    let mut recorder = Recorder::default();
    let fetches = vec![Fetch::get("http://127.0.0.1:1/".parse().expect("a URL"))];
    let outcomes = fetch_with(&settings(), &Memory::default(), &mut recorder, fetches);
    let failure = outcomes[0].failure.as_ref();
    assert!(matches!(failure, Some(Failure::Connect(_))), "{failure:?}");
}

/// Of several idle connections the most recently used one is chosen, because its window may still be large.
#[test]
fn the_most_recently_used_connection_is_reused() {
    let (one, other) = (ScriptedServer::start(), ScriptedServer::start());
    let mut settings = settings();
    settings.parallel = 2;
    let fetches = [
        one.url("1"),
        one.url("3000000"),
        other.url("20000000"),
        other.url("20000000"),
        one.url("2"),
    ];
    let fetches = fetches.map(|url| Fetch::get(url.parse().expect("a URL")));
    let mut recorder = Recorder::default();
    let outcomes = fetch_with(
        &settings,
        &Memory::default(),
        &mut recorder,
        fetches.to_vec(),
    );
    let request = outcomes[4].timing.request.expect("a request");
    let before = outcomes[..2]
        .iter()
        .filter(|it| it.timing.end.expect("an end") <= request);
    let last = before
        .max_by_key(|it| it.timing.end)
        .expect("an earlier fetch");
    assert_eq!(outcomes[4].connection, last.connection, "{outcomes:?}");
}

#[test]
fn stalled_fetches_end_at_the_time_limit() {
    let server = ScriptedServer::start();
    let mut settings = settings();
    settings.time_limit = Some(Duration::from_millis(300));
    for (path, expected) in [("never-ends", &b"only this"[..]), ("never", b"")] {
        let mut recorder = Recorder::default();
        let fetch = get(&server, path);
        let outcomes = fetch_with(&settings, &Memory::default(), &mut recorder, vec![fetch]);
        let failure = outcomes[0].failure.as_ref();
        assert!(
            matches!(failure, Some(Failure::TimeLimit(_))),
            "{path}: {failure:?}"
        );
        let body = recorder.bodies.first().map_or(&b""[..], Vec::as_slice);
        assert_eq!(body, expected);
    }
}
