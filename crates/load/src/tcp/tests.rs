//! What the engine allocates for a request over HTTP/2, and what it sends.

use std::{sync::mpsc, thread, time::Duration};

use lastbyte_client::Trust;
use lastbyte_testkit::allocation_count;
use tokio::net::TcpListener;

use super::*;
use crate::{
    dispatcher::{Amount, Share},
    http3::tests::settings_of,
    settings::Control,
};

/// A server in clear text on another thread, which sends ten bytes as each response, and reports the `content-length` of requests.
fn start() -> (String, mpsc::Receiver<Option<String>>) {
    let (to_caller, ports) = mpsc::channel();
    let (lengths, received) = mpsc::channel();
    let serve = move || {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
            let port = listener.local_addr().expect("an address").port();
            to_caller.send(port).expect("a receiver");
            while let Ok((stream, _)) = listener.accept().await {
                let lengths = lengths.clone();
                tokio::spawn(async move {
                    let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
                    while let Some(Ok((request, mut respond))) = connection.accept().await {
                        let length = request.headers().get("content-length");
                        let length = length.and_then(|value| Some(value.to_str().ok()?.to_owned()));
                        // The test may be over.
                        let _ = lengths.send(length);
                        let body = respond.send_response(Response::new(()), false);
                        let sent =
                            body.map(|mut body| body.send_data(Bytes::from("ten bytes!"), true));
                        assert!(matches!(sent, Ok(Ok(()))), "{sent:?}");
                    }
                });
            }
        });
    };
    thread::Builder::new().spawn(serve).expect("a thread");
    let port = ports.recv().expect("a port");
    (format!("http://127.0.0.1:{port}/"), received)
}

/// Runs in the calling thread. Returns the results, and the number of allocations of this thread.
fn run_here(settings: Settings) -> (ThreadResult, u64) {
    let target = Target::find(&settings).expect("an address");
    let tls = Tls::new(&settings.client).expect("TLS");
    let clock = Clock::new();
    let share = Share {
        thread: 0,
        threads: 1,
        connections: settings.connections,
    };
    let control = Arc::new(Control::new(1, Arc::default()));
    let state = ThreadState::new(Arc::new(settings), control, share, clock.now());
    let before = allocation_count();
    let result = run(state, &target, &tls, clock).expect("a run");
    (result, allocation_count() - before)
}

/// A closed loop of requests over HTTP/2.
fn settings(url: &str, requests: u64) -> Settings {
    Settings {
        version: Version::Http2,
        amount: Amount::Requests(requests),
        ..settings_of(&[(url, 1)], Trust::DangerouslyAcceptAny)
    }
}

/// The `h2` crate takes four for a response without fields. A task for each request, as hyper has, takes three more.
#[test]
fn a_request_over_http2_takes_at_most_five_blocks_of_memory() {
    let (url, _lengths) = start();
    let count = |requests| {
        let (result, allocations) = run_here(settings(&url, requests));
        assert_eq!(result.recorder.counts.succeeded, requests);
        assert_eq!(result.recorder.counts.data_bytes, 10 * requests);
        allocations
    };
    let few = count(1000);
    let per_request = (count(11_000) - few) as f64 / 10_000.0;
    assert!(per_request <= 5.0, "{per_request} for a request");
}

#[test]
fn rfc9110_8_6_requests_over_http2_have_the_length_of_their_body() {
    let cases: [(Option<&[u8]>, Option<&str>); 3] = [
        (None, None),
        (Some(b""), Some("0")),
        (Some(b"a longer body"), Some("13")),
    ];
    for (body, expected) in cases {
        let (url, lengths) = start();
        let (result, _) = run_here(Settings {
            body: body.map(Arc::from),
            ..settings(&url, 2)
        });
        assert_eq!(result.recorder.counts.succeeded, 2, "{body:?}");
        for _ in 0..2 {
            let length = lengths.recv().expect("a request");
            assert_eq!(length.as_deref(), expected, "{body:?}");
        }
    }
}

/// Responds with all of a response, or with a part of it.
fn answer(mut respond: h2::server::SendResponse<Bytes>, path: &str) {
    // The client may have reset it.
    let Ok(mut body) = respond.send_response(Response::new(()), false) else {
        return;
    };
    match path {
        "/head" => body.send_reset(h2::Reason::INTERNAL_ERROR),
        "/part" => {
            let _ = body.send_data(Bytes::from("ten"), false);
            body.send_reset(h2::Reason::NO_ERROR);
        }
        _ => drop(body.send_data(Bytes::from("ten bytes!"), true)),
    }
}

/// A server in clear text on another thread that ends requests by the path, in all ways that HTTP/2 has.
fn hostile() -> String {
    let (to_caller, ports) = mpsc::channel();
    let serve = move || {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
            let port = listener.local_addr().expect("an address").port();
            to_caller.send(port).expect("a receiver");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let Ok(mut connection) = h2::server::handshake(stream).await else {
                        return;
                    };
                    let mut kept = Vec::new();
                    while let Some(Ok((request, mut respond))) = connection.accept().await {
                        let path = request.uri().path();
                        match path {
                            "/reset" => respond.send_reset(h2::Reason::CANCEL),
                            "/refuse" => respond.send_reset(h2::Reason::REFUSED_STREAM),
                            "/never" => kept.push(respond),
                            "/close" => return,
                            "/goaway" => {
                                connection.graceful_shutdown();
                                answer(respond, path);
                            }
                            _ => answer(respond, path),
                        }
                    }
                });
            }
        });
    };
    thread::Builder::new().spawn(serve).expect("a thread");
    format!("http://127.0.0.1:{}", ports.recv().expect("a port"))
}

/// A run ends whatever the server does, and each of its requests has one end.
#[test]
fn each_request_over_http2_has_one_end_however_the_server_ends_it() {
    let base = hostile();
    let ends = [
        "/reset", "/refuse", "/never", "/goaway", "/close", "/head", "/part",
    ];
    for (mixed, weights) in [
        (ends.to_vec(), [1, 0]),
        (ends.to_vec(), [1, 7]),
        (vec!["/goaway"], [1, 1]),
        (vec!["/refuse", "/close"], [1, 2]),
        (vec!["/never"], [1, 3]),
    ] {
        let urls: Vec<String> = mixed.iter().map(|path| format!("{base}{path}")).collect();
        let mut requests: Vec<(&str, u32)> = Vec::new();
        requests.extend(urls.iter().map(|url| (url.as_str(), weights[0])));
        let whole = format!("{base}/whole");
        if weights[1] > 0 {
            requests.push((&whole, weights[1]));
        }
        let (result, _) = run_here(Settings {
            version: Version::Http2,
            amount: Amount::Requests(60),
            connections: 3,
            streams: 4,
            timeout: Duration::from_millis(200),
            ..settings_of(&requests, Trust::DangerouslyAcceptAny)
        });
        let counts = &result.recorder.counts;
        let ended = counts.done + counts.errored + counts.unfinished + counts.not_started;
        assert_eq!(ended, 60, "{mixed:?} {counts:?}");
        assert!(counts.started <= 60 + counts.retried, "{counts:?}");
        assert_eq!(counts.succeeded, counts.done, "{counts:?}");
        assert!(counts.disconnected <= counts.connected, "{counts:?}");
    }
}
