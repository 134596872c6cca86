#![expect(
    clippy::disallowed_methods,
    reason = "a thread waits while the test wakes it"
)]

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::Command,
    thread,
};

use lastbyte_testkit::alone_or_skipped;

use super::*;
use crate::{has_address, source_address};

const FIRST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const SECOND: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
const REMOTE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.expect("`ip` runs");
    assert!(output.status.success(), "ip {words}: {output:?}");
}

/// A change is reported however it came about, and the source address follows addresses and routes.
#[test]
fn changes_of_addresses_links_and_routes_are_noticed() {
    alone_or_skipped(
        "changes::tests::changes_of_addresses_links_and_routes_are_noticed",
        || {
            let remote = SocketAddr::from((REMOTE, 443));
            let mut changes = NetworkChanges::new().expect("netlink");
            assert!(source_address(remote).is_err());
            let mut notices = |words: &str| {
                ip(words);
                assert!(changes.wait().expect("waited"), "{words}");
            };
            notices("link add one type veth peer name two");
            notices("link set one up");
            notices("link set two up");
            notices("address add 10.1.0.2/24 dev one");
            notices("address add 10.2.0.2/24 dev two");
            notices("route add default via 10.1.0.1 metric 100");
            assert_eq!(source_address(remote).expect("a route"), FIRST);
            notices("route add default via 10.2.0.1 metric 50");
            assert_eq!(source_address(remote).expect("a route"), SECOND);
            notices("link set two down");
            assert_eq!(source_address(remote).expect("a route"), FIRST);
            assert!(has_address(SECOND.into()), "it is down, but assigned");
            notices("address del 10.2.0.2/24 dev two");
            assert!(!has_address(SECOND.into()));
            assert!(has_address(FIRST.into()));
        },
    );
}

#[test]
fn the_waker_ends_the_wait() {
    let mut changes = NetworkChanges::new().expect("netlink");
    let waker = changes.waker();
    let waiting = thread::spawn(move || while changes.wait().expect("waited") {});
    waker.wake();
    waiting.join().expect("it ended");
}
