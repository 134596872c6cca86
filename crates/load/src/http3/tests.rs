//! What the engine allocates, and what it does with a server that misbehaves.

#[expect(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../../../client/tests/suite/server.rs"]
mod server;

use core::sync::atomic::AtomicBool;

use lastbyte_client::Trust;
use lastbyte_quic::endpoint::RetryPolicy;
use lastbyte_testkit::{CountingAllocator, allocation_count};

use self::server::Server;
use super::*;
use crate::{
    dispatcher::{Amount, Arrivals, Share},
    sessions::NoSessions,
    settings::{Control, Request, Settings, Version},
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn settings(server: &Server, path: &str, requests: u64) -> Settings {
    let spec = "cubic".parse().expect("a spec");
    let mut client = lastbyte_client::Settings::new(Config::new(spec));
    client.trust = Trust::Authorities(server.certificate.clone().into_bytes());
    Settings {
        client,
        version: Version::Http3,
        requests: vec![Request {
            url: server.url(path).parse().expect("a URL"),
            weight: 1,
        }],
        method: None,
        fields: http3::Fields::new().with("user-agent", "test"),
        body: None,
        amount: Amount::Requests(requests),
        arrivals: Arrivals::Closed,
        connections: 2,
        streams: 10,
        threads: 1,
        timeout: Duration::from_secs(10),
        active_timeout: None,
        seed: 1,
    }
}

/// Runs in the calling thread. Returns the results, and the number of allocations of this thread.
fn run_here(settings: Settings) -> (ThreadResult, u64) {
    let target = Target::find(&settings).expect("an address");
    let store: Arc<dyn lastbyte_quic::crypto::tickets::client::SessionStore> = Arc::new(NoSessions);
    let tls = Tls::new(&settings.client, &store).expect("TLS");
    let clock = Clock::new();
    let share = Share {
        thread: 0,
        threads: 1,
        connections: settings.connections,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let control = Arc::new(Control::new(1, stop));
    let state = ThreadState::new(Arc::new(settings), control, share, clock.now());
    let before = allocation_count();
    let result = run(state, &target, &tls, clock).expect("a run");
    (result, allocation_count() - before)
}

/// The engine allocates nothing for a request. What is left is the transport's and `http3`'s, for the stream: two boxes in
/// their maps, its state, the bytes of the request, their list, and the list of received pieces.
#[test]
fn a_request_costs_the_allocations_of_its_stream_and_none_here() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let counted = |requests| {
        let (result, allocations) = run_here(settings(&server, "100", requests));
        assert_eq!(result.recorder.counts.succeeded, requests);
        allocations
    };
    // Buffers have grown by then.
    let before = counted(2000);
    let after = counted(12_000);
    let each = after.saturating_sub(before) as f64 / 10_000.0;
    assert!(each < 7.0, "{each} allocations per request");
}

/// Each request of a run ends, and is counted by how it ended.
#[test]
fn faults_of_the_server_are_counted() {
    let server = Server::start("localhost", RetryPolicy::Never);
    for path in ["reset", "close", "short", "reject", "never"] {
        let mut settings = settings(&server, path, 8);
        settings.streams = 2;
        settings.timeout = Duration::from_millis(200);
        let (result, _) = run_here(settings);
        let counts = result.recorder.counts;
        assert_eq!(
            (counts.done, counts.failed, counts.errored),
            (0, 8, 8),
            "{path}"
        );
        let timed_out = if path == "never" { 8 } else { 0 };
        assert_eq!(counts.timed_out, timed_out, "{path}");
        assert!(!result.recorder.errors.is_empty(), "{path}");
        assert_eq!(counts.disconnected > 0, path == "close", "{path}");
    }
}

/// After GOAWAY the rest of the requests go over another connection, and none is lost.
#[test]
fn a_connection_that_the_server_retires_is_replaced() {
    let server = Server::start("localhost", RetryPolicy::Never);
    let mut settings = settings(&server, "goaway", 6);
    settings.streams = 1;
    let (result, _) = run_here(settings);
    let counts = result.recorder.counts;
    assert_eq!(counts.succeeded + counts.failed, 6, "{counts:?}");
    assert!(counts.succeeded >= 3, "{counts:?}");
    assert!(counts.connected > 2, "{counts:?}");
}
