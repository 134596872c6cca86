//! What an operator sees of requests and upstream servers: metrics, and keys of the access log.

use std::{net::TcpListener, sync::Arc};

use lastbyte_server::{
    Handler, Site,
    access::{AccessLog, Format},
    log::{self, LogQueue},
    proxy::{Limits, Proxy},
    routes::{Place, Routes},
};
use serde_json::Value;

use crate::{
    http3,
    limits::{self, http2},
    operations::plain,
    proxy::Behind,
    serving::{PATIENCE, Serving, settings},
};

/// `/up` is answered by an upstream, which cuts `/up/cut` off, `/gone` by one that does not listen, and other requests by a site.
struct Observed {
    serving: Serving,
    access: LogQueue,
    upstream: String,
    gone: String,
}

fn observed() -> Observed {
    let behind = Behind::start(|head, _, stream| {
        use std::io::Write as _;
        let len = if head.contains("/up/cut") { 9 } else { 2 };
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {len}\r\n\r\nok");
        stream.write_all(answer.as_bytes()).expect("it is taken");
        if len > 2 {
            stream
                .shutdown(std::net::Shutdown::Both)
                .expect("a connection");
        }
    });
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = closed.local_addr().expect("an address");
    let (upstream, gone) = (
        format!("http://{}", behind.address),
        format!("http://{closed}"),
    );
    let proxy = |url: &str| {
        let url = url.parse().expect("a URL");
        Proxy::new(url, None, Limits::default(), 1).expect("threads")
    };
    let (up, dead) = (proxy(&upstream), proxy(&gone));
    let counts = vec![up.counts(), dead.counts()];
    let place = |text: &str| text.parse::<Place>().expect("a place");
    let routes: Vec<(Place, Arc<dyn Handler>)> = vec![
        (place("/up"), Arc::new(up)),
        (place("/gone"), Arc::new(dead)),
    ];
    let mut settings = settings(Routes::new(routes, Arc::new(Site::generated())));
    settings.upstreams = counts;
    settings.metrics = Some("127.0.0.1:0".parse().expect("an address"));
    let (writer, access) = log::queue();
    settings.access = Some(AccessLog::new(writer, Format::Ndjson));
    Observed {
        serving: Serving::start(settings),
        access,
        upstream,
        gone,
    }
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A request over HTTP/2, until its response ends.
fn get_http2(serving: &Serving, path: &str) {
    let mut client = http2(serving);
    client.send(&limits::get(1, path));
    loop {
        let next = limits::next_with_flags(&mut client, |_| true);
        let (kind, flags, stream, _) = next.expect("it stays open");
        let is_end = kind <= limits::HEADERS && flags & 1 > 0;
        if stream == 1 && (is_end || kind == limits::RST_STREAM) {
            return;
        }
    }
}

#[test]
fn requests_of_all_versions_have_route_upstream_time_and_error() {
    let Observed {
        serving,
        access,
        upstream,
        gone,
    } = observed();
    for path in ["/7", "/up", "/gone"] {
        drop(serving.get(path, &format!("traceparent: {TRACE}\r\n")));
        get_http2(&serving, path);
        drop(http3::get(&serving, path, &[]));
    }
    // It has no end.
    let mut client = serving.connect();
    client.send(b"GET /up/cut HTTP/1.1\r\nhost: x\r\n\r\n");
    drop(client.rest());

    let metrics = serving.server.metrics_address().expect("it listens");
    let text = String::from_utf8(plain(metrics, "/metrics").body).expect("text");
    let has = |line: &str| {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    };
    for version in ["1.1", "2", "3"] {
        let name = "lastbyte_request_first_byte_seconds_count";
        has(&format!(
            "{name}{{http=\"{version}\",class=\"2xx\",route=\"*\"}} 1"
        ));
        has(&format!(
            "{name}{{http=\"{version}\",class=\"5xx\",route=\"/gone\"}} 1"
        ));
    }
    let name = "lastbyte_request_first_byte_seconds_count";
    has(&format!(
        "{name}{{http=\"1.1\",class=\"2xx\",route=\"/up\"}} 2"
    ));
    // The other is incomplete.
    let name = "lastbyte_request_duration_seconds_count";
    has(&format!(
        "{name}{{http=\"1.1\",class=\"2xx\",route=\"/up\"}} 1"
    ));
    has(&format!(
        "lastbyte_upstream_response_seconds_count{{upstream=\"{upstream}\"}} 4"
    ));
    has(&format!(
        "lastbyte_upstream_errors_total{{upstream=\"{upstream}\",error=\"http_response_incomplete\"}} 1"
    ));
    has(&format!(
        "lastbyte_upstream_errors_total{{upstream=\"{gone}\",error=\"connection_refused\"}} 3"
    ));
    has(&format!(
        "lastbyte_upstream_connect_seconds_count{{upstream=\"{gone}\"}} 0"
    ));
    assert!(text.contains("\nprocess_start_time_seconds "), "{text}");

    drop(serving.server.shut_down(PATIENCE));
    let mut seen = Vec::new();
    while let Some(line) = access.next() {
        let line: Value = serde_json::from_str(&line).expect("JSON");
        let text = |key: &str| line[key].as_str().unwrap_or("-").to_owned();
        seen.push((text("http"), text("path"), text("route"), text("error")));
        let is_proxied = text("route") != "*";
        assert_eq!(line["upstream_ms"].is_number(), is_proxied, "{line}");
        assert!(
            line["upstream_ms"].as_f64() <= line["ms"].as_f64(),
            "{line}"
        );
        let is_traced = text("http") == "HTTP/1.1" && text("path") != "/up/cut";
        assert_eq!(text("traceparent") == TRACE, is_traced, "{line}");
    }
    seen.sort();
    let mut expected = Vec::new();
    for version in ["HTTP/1.1", "HTTP/2", "HTTP/3"] {
        for (path, route, error) in [
            ("/7", "*", "-"),
            ("/gone", "/gone", "connection_refused"),
            ("/up", "/up", "-"),
            ("/up/cut", "/up", "http_response_incomplete"),
        ] {
            if version == "HTTP/1.1" || path != "/up/cut" {
                expected.push([version, path, route, error].map(str::to_owned).into());
            }
        }
    }
    assert_eq!(seen, expected);
}
