//! `Server-Timing` in the responses of all versions, of files, generated objects and upstream servers.

use std::{future::poll_fn, io::Write as _, sync::Arc};

use lastbyte_server::{
    Handler, Site,
    proxy::{Limits, Proxy},
    routes::{Place, Routes},
    server_timing::{Asks, ServerTiming},
};

use crate::{
    heads::{block_on, connect},
    http3,
    proxy::Behind,
    serving::{Folder, Serving, settings},
};

const PATHS: [&str; 4] = ["/file.txt", "/7", "/delay/1ms/7", "/up"];

/// `/up` is answered by an upstream that has the field itself.
fn serving(folder: &Folder, asks: Option<Asks>) -> Serving {
    let behind = Behind::start(|_, _, stream| {
        let answer = "HTTP/1.1 200 OK\r\nserver-timing: db;dur=5\r\ncontent-length: 2\r\n\r\nok";
        stream.write_all(answer.as_bytes()).expect("it is taken");
    });
    let upstream = format!("http://{}", behind.address).parse();
    let proxy = Proxy::new(upstream.expect("a URL"), None, Limits::default(), 1);
    let place = |text: &str| text.parse::<Place>().expect("a place");
    let proxy: Arc<dyn Handler> = Arc::new(proxy.expect("threads"));
    let routes = vec![(place("/up"), proxy)];
    let site = Site::directory(&folder.0).expect("a folder");
    let site = site.with_generated(true);
    let mut handler: Arc<dyn Handler> = Arc::new(Routes::new(routes, Arc::new(site)));
    if let Some(asks) = asks {
        handler = Arc::new(ServerTiming::new(asks, handler));
    }
    let mut settings = settings(Site::generated());
    settings.handler = handler;
    Serving::start(settings)
}

/// The values of the field over each version.
fn values(serving: &Serving, path: &str, fields: &[(&str, &str)]) -> [Vec<String>; 3] {
    let lines = fields.iter().fold(String::new(), |lines, (name, value)| {
        lines + name + ": " + value + "\r\n"
    });
    let over_http1 = serving.get(path, &lines);
    let over_http1 = over_http1.head.lines().filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let is_it = name.eq_ignore_ascii_case("server-timing");
        is_it.then(|| value.to_owned())
    });
    let over_http2 = block_on(async {
        let mut sender = connect(serving).await;
        let mut request = http::Request::get(format!("https://localhost{path}"));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request");
        poll_fn(|context| sender.poll_ready(context))
            .await
            .expect("a stream");
        let (response, _) = sender.send_request(request, true).expect("a stream");
        response.await.expect("a response").into_parts().0.headers
    });
    let over_http2 = over_http2.get_all("server-timing").iter();
    let over_http3 = http3::get(serving, path, fields).fields;
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    [
        over_http1.collect(),
        over_http2.map(|value| text(value.as_bytes())).collect(),
        over_http3.get_all("server-timing").map(text).collect(),
    ]
}

/// Checks a value: its metrics with their times, in order, and the route.
fn check(value: &str, times: &[&str], route: &str) {
    let mut metrics = value.split(", ");
    let mut before = f64::INFINITY;
    for name in times {
        let metric = metrics.next().expect("a metric");
        let time = metric.strip_prefix(&format!("{name};dur="));
        let time: f64 = time.and_then(|it| it.parse().ok()).expect("a time");
        assert!((0.0..=before.min(20_000.0)).contains(&time), "{value}");
        before = time;
    }
    assert_eq!(metrics.next(), Some(&*format!("route;desc=\"{route}\"")));
    assert_eq!(metrics.next(), None, "{value}");
}

#[test]
fn responses_of_all_versions_have_times_if_the_request_asks() {
    let folder = Folder::new();
    drop(folder.file("file.txt", b"a file"));
    let asks = Asks::Field("x-timing".to_owned(), "4711".to_owned());
    let serving = serving(&folder, Some(asks));
    for path in PATHS {
        for values in values(&serving, path, &[("x-timing", "4711")]) {
            let own = values.last().unwrap_or_else(|| panic!("none for {path}"));
            if path == "/up" {
                assert_eq!(values[..values.len() - 1], ["db;dur=5"], "{path}");
                check(own, &["lastbyte", "upstream"], "/up");
            } else {
                assert_eq!(values.len(), 1, "{path}");
                check(own, &["lastbyte"], "*");
            }
        }
        for fields in [
            &[][..],
            &[("x-timing", "471")],
            &[("server-timing", "4711")],
        ] {
            let kept: &[&str] = if path == "/up" { &["db;dur=5"] } else { &[] };
            for values in values(&serving, path, fields) {
                assert_eq!(values, kept, "{path} {fields:?}");
            }
        }
    }
    serving.end();
}

#[test]
fn all_responses_have_times_if_the_server_is_configured_so_and_none_by_default() {
    let folder = Folder::new();
    drop(folder.file("file.txt", b"a file"));
    for (asks, expected) in [(Some(Asks::All), 1), (None, 0)] {
        let serving = serving(&folder, asks);
        for values in values(&serving, "/file.txt", &[("x-timing", "4711")]) {
            assert_eq!(values.len(), expected, "{values:?}");
        }
        serving.end();
    }
}
