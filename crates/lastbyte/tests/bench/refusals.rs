//! `lastbyte bench` against an HTTP/2 server that refuses requests without processing them (RFC 9113 §8.7).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use bytes::Bytes;
use tokio::net::TcpListener;

use super::{count, folder, json, lastbyte, stderr, stdout};

/// What a server refuses.
#[derive(Clone, Copy, PartialEq)]
enum Refuses {
    /// The first request.
    First,
    /// Every request.
    All,
    /// Requests behind the first of the first connection, by GOAWAY.
    Later,
}

/// A server in clear text, and how many requests it has received.
fn start(refuses: Refuses) -> (String, Arc<AtomicUsize>) {
    let received = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&received);
    let (to_caller, ports) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
            let port = listener.local_addr().expect("an address").port();
            to_caller.send(port).expect("a receiver");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, refuses, Arc::clone(&counter)));
            }
        });
    });
    let port = ports.recv().expect("a port");
    (format!("http://127.0.0.1:{port}/"), received)
}

async fn serve(stream: tokio::net::TcpStream, refuses: Refuses, received: Arc<AtomicUsize>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        let number = received.fetch_add(1, Ordering::SeqCst);
        let is_refused = match refuses {
            Refuses::First => number == 0,
            Refuses::All => true,
            Refuses::Later => false,
        };
        if is_refused {
            respond.send_reset(h2::Reason::REFUSED_STREAM);
            continue;
        }
        let response = hyper::Response::new(());
        if let Ok(mut body) = respond.send_response(response, false) {
            // The client may have gone.
            let _ = body.send_data(Bytes::from_static(b"ten bytes!"), true);
        }
        if refuses == Refuses::Later && number == 0 {
            connection.graceful_shutdown();
        }
    }
}

/// In closed and open loops, with one connection and with one for each request.
#[test]
fn rfc9113_8_7_a_refused_request_is_sent_again_over_another_connection() {
    let folder = folder("bench-refused-once");
    for more in [
        &["-m", "3"][..],
        &["--rate", "200", "-m", "3"],
        &["--mix", "new=1"],
    ] {
        let (url, received) = start(Refuses::First);
        let common = ["bench", "--json", "--http", "2", "-n", "9"];
        let output = lastbyte(&folder, &[&common[..], more, &[&url]].concat());
        assert!(output.status.success(), "{more:?}: {}", stderr(&output));
        let json = json(&output);
        for (key, expected) in [
            ("started", 9),
            ("succeeded", 9),
            ("failed", 0),
            ("retried", 1),
        ] {
            let found = count(&json, &format!("/requests/{key}"));
            assert_eq!(found, expected, "{more:?}: {key}: {json:#}");
        }
        assert_eq!(received.load(Ordering::SeqCst), 10, "{more:?}");
    }
    let (url, _) = start(Refuses::First);
    let output = lastbyte(&folder, &["bench", "--http", "2", "-n", "9", &url]);
    let text = stdout(&output);
    assert!(
        text.contains("0 unfinished, 0 not started, 1 retried"),
        "{text}"
    );
}

/// It receives each request at most twice, and the run ends.
#[test]
fn an_http2_server_that_refuses_everything_receives_each_request_at_most_twice() {
    let folder = folder("bench-refused-always");
    for more in [
        &["-n", "40", "-m", "5"][..],
        &["-n", "40", "-c", "3", "--rate", "500"],
        &["-D", "500ms", "-m", "5"],
    ] {
        let (url, received) = start(Refuses::All);
        let common = ["bench", "--json", "--http", "2"];
        let output = lastbyte(&folder, &[&common[..], more, &[&url]].concat());
        assert_eq!(
            output.status.code(),
            Some(1),
            "{more:?}: {}",
            stderr(&output)
        );
        let json = json(&output);
        let started = count(&json, "/requests/started");
        let retried = count(&json, "/requests/retried");
        assert!(retried > 0 && retried <= started, "{more:?}: {json:#}");
        assert_eq!(count(&json, "/requests/succeeded"), 0, "{json:#}");
        let sent = received.load(Ordering::SeqCst) as u64;
        assert!(sent <= started + retried, "{more:?}: {sent}: {json:#}");
        if more[0] == "-n" {
            assert_eq!(count(&json, "/requests/failed"), 40, "{more:?}: {json:#}");
        }
    }
}

/// Streams behind the last one of a GOAWAY frame are safe to repeat (RFC 9113 §6.8).
#[test]
fn rfc9113_6_8_requests_behind_a_goaway_do_not_fail() {
    let folder = folder("bench-goaway");
    let (url, _) = start(Refuses::Later);
    let all = ["bench", "--json", "--http", "2", "-n", "200", "-m", "20"];
    let output = lastbyte(&folder, &[&all[..], &[&url]].concat());
    let json = json(&output);
    assert_eq!(count(&json, "/requests/succeeded"), 200, "{json:#}");
    assert_eq!(count(&json, "/requests/failed"), 0, "{json:#}");
}
