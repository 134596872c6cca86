#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "waiting is about time and threads"
)]

use std::{sync::mpsc, thread, time::Instant};

use super::*;
use crate::socket::Options;

fn socket() -> Socket {
    let address = "127.0.0.1:0".parse().expect("an address");
    Socket::bind(address, &Options::default()).expect("a socket")
}

const READ: Wanted = Wanted {
    read: true,
    write: false,
};

#[test]
fn a_wait_without_events_times_out() {
    let mut waiter = Waiter::new().expect("a waiter");
    let before = Instant::now();
    let span = Duration::from_millis(3);
    let ready = waiter.wait(&socket(), false, Some(span)).expect("a wait");
    assert_eq!(ready, Ready::default());
    assert!(before.elapsed() >= span);
}

#[test]
fn a_socket_with_free_send_buffer_is_writable() {
    let mut waiter = Waiter::new().expect("a waiter");
    let ready = waiter.wait(&socket(), true, None).expect("a wait");
    assert!(ready.writable && !ready.readable && !ready.woken);
}

/// Each socket is polled for its own events.
#[test]
fn a_wait_is_for_room_in_the_socket_that_it_is_wanted_in() {
    let mut waiter = Waiter::new().expect("a waiter");
    let (current, previous) = (socket(), socket());
    let both = Wanted {
        read: true,
        write: true,
    };
    let span = Some(Duration::from_millis(3));
    for (wanted, of_previous) in [(both, READ), (READ, both)] {
        let previous = Some((&previous, of_previous));
        let ready = waiter.wait_both((&current, wanted), previous, span);
        assert!(ready.expect("a wait").writable);
    }
    let ready = waiter.wait_both((&current, READ), Some((&previous, READ)), span);
    assert_eq!(ready.expect("a wait"), Ready::default());
}

#[test]
fn another_thread_ends_a_wait_without_timeout() {
    let mut waiter = Waiter::new().expect("a waiter");
    let waker = waiter.waker();
    let (start_sender, start) = mpsc::channel();
    let other = thread::spawn(move || {
        start.recv().expect("a sender");
        waker.wake();
    });
    start_sender.send(()).expect("a receiver");
    let ready = waiter.wait(&socket(), false, None).expect("a wait");
    assert!(ready.woken);
    other.join().expect("no panic");
}

#[test]
fn wake_ups_are_merged_and_not_lost() {
    let mut waiter = Waiter::new().expect("a waiter");
    let waker = waiter.waker();
    for _ in 0..100_000 {
        waker.wake();
    }
    let socket = socket();
    assert!(waiter.wait(&socket, false, None).expect("a wait").woken);
    let zero = Some(Duration::ZERO);
    let again = waiter.wait(&socket, false, zero).expect("a wait");
    assert_eq!(again, Ready::default());
}

#[test]
fn a_datagram_on_either_socket_ends_a_wait() {
    let mut waiter = Waiter::new().expect("a waiter");
    let sockets = [socket(), socket()];
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let [first, second] = &sockets;
    for (to, from, other) in [(first, first, second), (second, first, second)] {
        sender.send_to(&[1], to.local_address()).expect("sent");
        let ready = waiter.wait_both((from, READ), Some((other, READ)), None);
        assert!(ready.expect("a wait").readable);
        assert_eq!(to.receive(&mut crate::Batch::new()).expect("received"), 1);
    }
    let zero = Some(Duration::ZERO);
    let ready = waiter.wait_both((first, READ), Some((second, READ)), zero);
    assert_eq!(ready.expect("a wait"), Ready::default());
}

#[test]
fn a_socket_that_is_not_to_be_read_ends_no_wait_by_a_datagram() {
    let mut waiter = Waiter::new().expect("a waiter");
    let socket = socket();
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    sender.send_to(&[1], socket.local_address()).expect("sent");
    let ready = waiter.wait_both((&socket, READ), None, None);
    assert!(ready.expect("a wait").readable);
    let wanted = Wanted {
        read: false,
        ..READ
    };
    let zero = Some(Duration::ZERO);
    let ready = waiter.wait_both((&socket, wanted), None, zero);
    assert_eq!(ready.expect("a wait"), Ready::default());
}
