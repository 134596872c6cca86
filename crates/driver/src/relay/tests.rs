use std::{thread, time::Duration};

use super::*;
use crate::SteeringRule;
use crate::forward::connect;
use lastbyte_udp::{Options, Socket, Waiter};

fn path(local: &str, remote: &str) -> NetworkPath {
    NetworkPath {
        local: local.parse().expect("an address"),
        remote: remote.parse().expect("an address"),
    }
}

/// A relay from a later process, and the queues of two workers of the earlier one.
fn relay() -> (
    Predecessor,
    OwnedFd,
    Arc<Inlet>,
    Vec<crate::forward::ForwardedQueue>,
) {
    let (later, earlier) = link().expect("sockets");
    let waiters = [Waiter::new(), Waiter::new()].map(|waiter| waiter.expect("a waiter"));
    let wakers = waiters.each_ref().map(Waiter::waker);
    let steering = SteeringRule {
        byte: 2,
        workers: 2,
    };
    let (links, senders) = connect(steering, &wakers);
    let queues = links.into_iter().map(|(_, queue)| queue).collect();
    let predecessor = Predecessor::new(Arc::new(later), 1);
    (predecessor, earlier, Arc::new(Inlet::new(senders)), queues)
}

#[test]
fn a_datagram_reaches_the_worker_of_the_same_index_with_its_addresses_and_codepoint() {
    let (predecessor, earlier, inlet, queues) = relay();
    let paths = [
        path("192.0.2.1:443", "198.51.100.7:50000"),
        path("0.0.0.0:443", "198.51.100.7:50000"),
        path("[2001:db8::1]:443", "[2001:db8::2]:1"),
        path("[::]:443", "[fe80::1%3]:65535"),
    ];
    let codepoints = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
    for (path, ecn) in paths.iter().zip(codepoints) {
        let bytes = vec![ecn as u8; 1200];
        assert_eq!(predecessor.forward(path, ecn, &bytes), Relayed::Sent);
    }
    assert!(predecessor.is_open());
    drop(predecessor);
    inlet.run(earlier).expect("it ends with the later process");
    assert!(queues[0].next().is_none());
    for (path, ecn) in paths.iter().zip(codepoints) {
        let received = queues[1].next().expect("a datagram");
        assert_eq!((&received.path, received.ecn), (path, ecn));
        assert_eq!(received.bytes, vec![ecn as u8; 1200]);
    }
}

#[test]
fn a_worker_is_woken_for_a_datagram_of_a_later_process() {
    let (later, earlier) = link().expect("sockets");
    let mut waiter = Waiter::new().expect("a waiter");
    let steering = SteeringRule {
        byte: 2,
        workers: 1,
    };
    let (_links, senders) = connect(steering, &[waiter.waker()]);
    let predecessor = Predecessor::new(Arc::new(later), 0);
    let path = path("192.0.2.1:443", "198.51.100.7:50000");
    assert_eq!(
        predecessor.forward(&path, Ecn::NotEct, &[0; 20]),
        Relayed::Sent
    );
    drop(predecessor);
    let inlet = Inlet::new(senders);
    inlet.run(earlier).expect("it ends with the later process");
    let address = "127.0.0.1:0".parse().expect("an address");
    let socket = Socket::bind(address, &Options::default()).expect("a socket");
    let ready = waiter.wait(&socket, false, Some(Duration::ZERO));
    assert!(ready.expect("no error").woken);
}

#[test]
fn a_link_that_is_not_read_drops_datagrams_and_a_closed_one_reports_it() {
    let (predecessor, earlier, ..) = relay();
    let path = path("192.0.2.1:443", "198.51.100.7:50000");
    let forward = || predecessor.forward(&path, Ecn::NotEct, &[0; 1200]);
    // 4 MiB at most.
    let sent = (0..4000).find(|_| forward() == Relayed::Dropped);
    assert!(sent.is_some());
    assert!(predecessor.is_open());
    drop(earlier);
    assert_eq!(forward(), Relayed::Closed);
    assert!(!predecessor.is_open());
}

#[test]
fn a_full_queue_of_a_worker_drops_datagrams_and_its_end_ends_the_link() {
    let (predecessor, earlier, inlet, queues) = relay();
    let reader = Arc::clone(&inlet);
    let thread = thread::Builder::new();
    let thread = thread.spawn(move || reader.run(earlier)).expect("a thread");
    let path = path("192.0.2.1:443", "198.51.100.7:50000");
    let send = |predecessor: &Predecessor| {
        while predecessor.forward(&path, Ecn::NotEct, &[0; 20]) != Relayed::Sent {
            thread::yield_now();
        }
    };
    for _ in 0..3000 {
        send(&predecessor);
    }
    // The link keeps their order: once the other worker has its datagram, all were read.
    send(&Predecessor::new(Arc::clone(&predecessor.link), 0));
    while queues[0].next().is_none() {
        thread::yield_now();
    }
    // All workers have ended.
    inlet.close();
    thread.join().expect("no panic").expect("no error");
    assert!(!predecessor.is_open());
    assert_eq!(std::iter::from_fn(|| queues[1].next()).count(), 1024);
}

#[test]
fn workers_that_have_ended_get_no_link() {
    let (predecessor, earlier, inlet, _queues) = relay();
    inlet.close();
    inlet.run(earlier).expect("no error");
    assert!(!predecessor.is_open());
}

#[test]
fn messages_that_are_none_are_ignored() {
    for len in 0..HEADER_LEN {
        assert!(decode(&vec![0; len]).is_none());
    }
    let mut message = encode(9, &path("1.2.3.4:5", "6.7.8.9:10"), Ecn::Ce, &[]);
    let (worker, _) = decode(&message).expect("a message");
    assert_eq!(worker, 9);
    message[1] = 4;
    assert!(decode(&message).is_none());
}
