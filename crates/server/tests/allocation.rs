//! What the answer to a request costs in memory.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test makes a directory"
)]

use std::{
    fs,
    time::{Duration, UNIX_EPOCH},
};

use lastbyte_http3::Request;
use lastbyte_server::{
    Site,
    handler::{Handler, HandlerResponse, Peer, Version},
};
use lastbyte_testkit::{CountingAllocator, allocation_count};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const REQUESTS: u64 = 1000;

/// The box of the body, the text of the fields and their lines.
#[test]
fn a_response_from_the_file_cache_takes_three_allocations() {
    let path = std::env::temp_dir().join(format!("lastbyte-allocation-{}", std::process::id()));
    fs::create_dir_all(&path).expect("room");
    let peer = Peer {
        remote: "192.0.2.1:5000".parse().expect("an address"),
        version: Version::Http3,
        is_early: false,
    };
    let site = Site::directory(&path)
        .expect("a directory")
        .with_field("cache-control", "max-age=60")
        .with_file_cache(Duration::from_secs(3600));
    for (name, len) in [("small.css", 1000), ("large.bin", 100_000)] {
        fs::write(path.join(name), vec![0; len]).expect("room");
        let file = fs::File::options().write(true).open(path.join(name));
        let date = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        file.and_then(|file| file.set_modified(date))
            .expect("a date");
        let request = Request::new("GET", "https", "localhost", &format!("/{name}"))
            .with("accept-encoding", "gzip, br")
            .with("user-agent", "test");
        let answer = || match site.handle(&request, &peer) {
            HandlerResponse::Now(answer) => assert_eq!(answer.body_len(), len as u64),
            other => panic!("{other:?}"),
        };
        answer();
        let before = allocation_count();
        (0..REQUESTS).for_each(|_| answer());
        assert_eq!(allocation_count() - before, 3 * REQUESTS, "{name}");
    }
    drop(fs::remove_dir_all(path));
}
