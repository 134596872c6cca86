//! Paths allocate nothing for a datagram once buffers have been taken back, and keep a bounded number of them.

use std::{net::SocketAddr, time::Duration};

use lastbyte_emulate::{Plan, paths::Paths};
use lastbyte_link::{Config, Time};
use lastbyte_testkit::{CountingAllocator, allocation_count, live_bytes};
use lastbyte_units::{Direction, Ecn};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Paths with a client, and the client's number.
fn paths() -> (Paths, u64) {
    let link = Config {
        delay: Duration::from_millis(10),
        ..Config::default()
    };
    let mut paths = Paths::new(Plan::new(link.clone(), link)).expect("valid configuration");
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let (client, _) = paths.client(Time::ZERO, address).expect("a client");
    (paths, client)
}

/// Each millisecond, `count` datagrams of `len` bytes go up, and as many of 40 bytes go down. Returns how many arrived.
fn drive(
    paths: &mut Paths,
    client: u64,
    milliseconds: std::ops::Range<u64>,
    count: usize,
    len: usize,
) -> usize {
    let datagram = vec![7; len];
    let mut arrived = 0;
    for millis in milliseconds {
        let now = Time::ZERO + Duration::from_millis(millis);
        for _ in 0..count {
            paths.send(now, client, Direction::Up, Ecn::NotEct, &datagram);
            paths.send(now, client, Direction::Down, Ecn::NotEct, &[1; 40]);
        }
        while let Some(arrival) = paths.poll(now) {
            arrived += 1;
            paths.recycle(arrival.bytes);
        }
    }
    arrived
}

#[test]
fn a_datagram_allocates_nothing_once_buffers_have_been_taken_back() {
    let (mut paths, client) = paths();
    drive(&mut paths, client, 0..2000, 44, 1452);
    let before = allocation_count();
    let arrived = drive(&mut paths, client, 2000..4000, 44, 1452);
    // One is the datagram of the test.
    assert_eq!(allocation_count() - before, 1);
    assert_eq!(arrived, 2 * 44 * 2000);
}

#[test]
fn buffers_of_a_burst_or_of_long_datagrams_are_not_kept() {
    let (mut paths, client) = paths();
    drive(&mut paths, client, 0..2000, 1, 1452);
    let before = live_bytes();
    // 29 MB, and then 6 MB.
    drive(&mut paths, client, 2000..2001, 20_000, 1452);
    drive(&mut paths, client, 2001..2002, 100, 60_000);
    drive(&mut paths, client, 2002..6000, 1, 1452);
    let kept = live_bytes() - before;
    // The buffers, and the queues of the links, whose capacity stays.
    assert!(kept < 1024 * 2048 + (8 << 20), "{kept} bytes");
}
