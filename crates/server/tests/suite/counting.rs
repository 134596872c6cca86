//! What a server counts and logs of HTTP/3, and how its workers share the connections.

use std::{num::NonZeroUsize, time::Duration};

use lastbyte_driver::Clock;
use lastbyte_http3::{Request, Response};
use lastbyte_quic::cid::QuicLbConfig;
use lastbyte_server::{
    Handler, HandlerResponse, Peer, Site,
    access::{AccessLog, Format},
    log::{self, LogQueue},
};
use serde_json::Value;

use crate::{
    http3::{Got, get},
    limits,
    operations::plain,
    serving::{PATIENCE, Serving, settings},
};

/// The lines of a log that has ended.
fn lines(log: &LogQueue) -> Vec<Value> {
    let lines = std::iter::from_fn(|| log.next());
    lines
        .map(|line| serde_json::from_str(&line).expect("JSON"))
        .collect()
}

fn of<'a>(lines: &'a [Value], key: &str) -> Vec<&'a Value> {
    lines.iter().map(|line| &line[key]).collect()
}

#[test]
fn requests_over_http3_are_counted_and_logged() {
    let mut settings = settings(Site::generated());
    settings.metrics = Some("127.0.0.1:0".parse().expect("an address"));
    let (connections, connection_log) = log::queue();
    let (requests, access_log) = log::queue();
    settings.log = Some(connections);
    settings.access = Some(AccessLog::new(requests, Format::Ndjson));
    let serving = Serving::start(settings);
    let whole = get(&serving, "/1000", &[]);
    let missing = get(&serving, "/nothing", &[]);
    assert_eq!((whole.status, missing.status), (200, 404));
    let metrics = serving.server.metrics_address().expect("it listens");
    let text = String::from_utf8(plain(metrics, "/metrics").body).expect("text");
    for line in [
        "lastbyte_requests_total{http=\"3\"} 2",
        "lastbyte_responses_total{transport=\"quic\",class=\"2xx\"} 1",
        "lastbyte_responses_total{transport=\"quic\",class=\"4xx\"} 1",
        "lastbyte_responses_total{transport=\"quic\",class=\"5xx\"} 0",
        "lastbyte_handshakes_total{transport=\"quic\",kind=\"full\"} 2",
        "lastbyte_handshakes_total{transport=\"quic\",kind=\"resumed\"} 0",
        "lastbyte_connections_accepted_total{transport=\"quic\"} 2",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    let report = serving.server.shut_down(PATIENCE);
    let statistics = report.statistics;
    let found = (
        statistics.accepted,
        statistics.handshakes,
        statistics.requests,
    );
    assert_eq!(found, (2, 2, 2));
    assert_eq!(statistics.responses, [0, 0, 1, 0, 1, 0]);

    let connections = lines(&connection_log);
    let lengths = [1000, missing.body.len()].map(Value::from);
    assert_eq!(
        of(&connections, "conn_id"),
        [&Value::from(0), &Value::from(1)]
    );
    assert_eq!(of(&connections, "method"), ["GET", "GET"]);
    assert_eq!(of(&connections, "arm"), ["cubic", "cubic"]);
    assert_eq!(of(&connections, "worker"), [0, 0]);
    assert_eq!(of(&connections, "content_length"), lengths.each_ref());
    for line in &connections {
        assert!(line["ttlb"].is_u64() && line["complete"] == true, "{line}");
    }
    let requests = lines(&access_log);
    assert_eq!(of(&requests, "conn_id"), [&Value::from(0), &Value::from(1)]);
    assert_eq!(of(&requests, "path"), ["/1000", "/nothing"]);
    assert_eq!(of(&requests, "status"), [200, 404]);
    assert_eq!(of(&requests, "bytes"), lengths.each_ref());
    assert_eq!(of(&requests, "complete"), [true, true]);
}

#[test]
fn rfc9110_6_6_1_responses_over_http3_have_the_current_date() {
    let serving = Serving::site(Site::generated());
    let seconds = || Clock::since_epoch().as_secs();
    let before = seconds();
    let date = |got: Got| {
        let date = got.fields.get("date").expect("a date").to_vec();
        let date = String::from_utf8(date).expect("text");
        let time = httpdate::parse_http_date(&date).expect("a date");
        let since = time.duration_since(std::time::UNIX_EPOCH);
        since.expect("after 1970").as_secs()
    };
    let dates = ["/1", "/status/404"].map(|path| date(get(&serving, path, &[])));
    let range = before..=seconds();
    assert!(dates.iter().all(|date| range.contains(date)), "{dates:?}");
    serving.end();
}

/// The worker is in each connection ID, and the kernel steers by it.
#[test]
fn datagrams_reach_the_worker_of_their_connection() {
    let layout = QuicLbConfig {
        rotation: 0,
        server_id_len: 2,
        nonce_len: 8,
        key: None,
        encodes_length: false,
    };
    for layout in [None, Some(layout)] {
        let mut settings = settings(Site::generated());
        settings.workers = NonZeroUsize::new(4);
        settings.connection_ids = layout.clone();
        let serving = Serving::start(settings);
        for _ in 0..16 {
            // More than a server sends before its client acknowledges something.
            let got = get(&serving, "/100kB", &[]);
            assert_eq!((got.status, got.body.len()), (200, 100_000), "{layout:?}");
        }
        let report = serving.server.shut_down(PATIENCE);
        assert_eq!(report.statistics.requests, 16);
        let workers = report.workers.into_iter();
        let workers: Vec<_> = workers.map(|end| end.expect("no error")).collect();
        let sum =
            |count: fn(&lastbyte_driver::Statistics) -> u64| workers.iter().map(count).sum::<u64>();
        assert_eq!(
            (workers.len(), sum(|it| it.forwarded)),
            (4, 0),
            "{layout:?}"
        );
        assert!(sum(|it| it.datagrams_received) >= 16 * 3, "{workers:?}");
    }
}

#[test]
fn connection_ids_get_another_layout_of_the_same_length_only() {
    let layout = |rotation, server_id_len, nonce_len| QuicLbConfig {
        rotation,
        server_id_len,
        nonce_len,
        key: None,
        encodes_length: false,
    };
    let mut settings = settings(Site::generated());
    settings.connection_ids = Some(layout(0, 2, 8));
    let serving = Serving::start(settings);
    let set = |layout| serving.server.set_connection_ids(&layout);
    assert_eq!(set(layout(0, 2, 8)), Ok(false), "the current one");
    assert_eq!(set(layout(1, 2, 8)), Ok(true));
    assert_eq!(set(layout(1, 2, 8)), Ok(false));
    assert_eq!(set(layout(0, 4, 6)), Ok(true), "of the same length");
    let error = set(layout(0, 4, 4)).expect_err("a shorter one");
    assert!(error.contains("have 8 bytes: another length"), "{error}");
    assert!(error.contains("(expected 10)"), "{error}");
    assert_eq!(get(&serving, "/1000", &[]).status, 200);
    serving.end();

    let serving = Serving::site(Site::generated());
    let error = serving.server.set_connection_ids(&layout(0, 2, 8));
    assert!(error.is_err_and(|error| error.contains("requires a restart")));
    drop(serving.server.shut_down(Duration::ZERO));
}

/// Responds piece by piece, with 5000 bytes: `/cut` without the end, `/announced` after announcing more.
struct Streaming;

impl Handler for Streaming {
    fn handle(&self, request: &Request, _: &Peer) -> HandlerResponse {
        let path = request.path().unwrap_or_default().to_owned();
        HandlerResponse::Task(Box::new(move |mut exchange| {
            let respond = async move {
                let mut response = Response::new(200);
                if path == "/announced" {
                    response = response.with("content-length", "9000");
                }
                let _ = exchange.outgoing.begin(response).await;
                let _ = exchange.outgoing.data(vec![b'x'; 5000].into()).await;
                if path == "/whole" {
                    let _ = exchange.outgoing.end(None).await;
                }
            };
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let runtime = runtime.expect("a runtime");
            let work = move || runtime.block_on(respond);
            std::thread::Builder::new().spawn(work).expect("a thread");
        }))
    }
}

#[test]
fn responses_over_tcp_are_logged_with_the_bytes_of_their_bodies() {
    for is_http2 in [false, true] {
        let mut settings = settings(Streaming);
        let (writer, log) = log::queue();
        settings.access = Some(AccessLog::new(writer, Format::Ndjson));
        let serving = Serving::start(settings);
        for (method, path) in [
            ("GET", "/whole"),
            ("GET", "/cut"),
            ("GET", "/announced"),
            ("HEAD", "/announced"),
        ] {
            if is_http2 {
                let mut client = limits::http2(&serving);
                let mut request = limits::get(1, path);
                if method == "HEAD" {
                    // `:method` as a literal (RFC 7541 §6.2.2).
                    let block = [&[0x02, 4][..], b"HEAD", &request[10..]].concat();
                    request = limits::frame(limits::HEADERS, 5, 1, &block);
                }
                client.send(&request);
                loop {
                    let next = limits::next_with_flags(&mut client, |_| true);
                    let (kind, flags, stream, _) = next.expect("it stays open");
                    let is_end = kind <= limits::HEADERS && flags & 1 > 0;
                    if stream == 1 && (is_end || kind == limits::RST_STREAM) {
                        break;
                    }
                }
            } else {
                let mut client = serving.connect();
                let request =
                    format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
                client.send(request.as_bytes());
                client.rest();
            }
        }
        serving.end();
        let mut lines = lines(&log);
        lines.sort_by_key(|line| line["conn_id"].as_u64());
        assert_eq!(of(&lines, "bytes"), [5000, 5000, 5000, 0], "{is_http2}");
        let complete = of(&lines, "complete");
        assert_eq!(complete, [true, false, false, true], "{is_http2}");
    }
}

#[test]
fn a_connection_over_tcp_has_a_line_with_the_length_that_was_announced() {
    let mut settings = settings(Site::generated());
    let (writer, log) = log::queue();
    settings.log = Some(writer);
    let serving = Serving::start(settings);
    assert_eq!(serving.get("/1000", "").status, 200);
    let mut client = serving.connect();
    client.send(b"GET /100MB HTTP/1.1\r\nhost: x\r\n\r\n");
    client.head();
    // It reads nothing more.
    drop(client);
    serving.end();
    let lines = lines(&log);
    let numbers = |key| of(&lines, key).into_iter().map(Value::as_u64);
    assert!(
        numbers("content_length").eq([Some(1000), Some(100_000_000)]),
        "{lines:?}"
    );
    assert!(numbers("requests").eq([Some(1), Some(1)]), "{lines:?}");
    let sent: Vec<Option<u64>> = numbers("body-bytes").collect();
    assert!(
        sent[0] == Some(1000) && sent[1] < Some(100_000_000),
        "{lines:?}"
    );
    assert_eq!(of(&lines, "transport"), ["tcp", "tcp"]);
    assert_eq!(of(&lines, "complete"), [true, false]);
    assert_eq!(of(&lines, "method"), ["GET", "GET"]);
}
