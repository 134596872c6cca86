use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use super::*;
use crate::{Batch, Ecn, Options, Socket, Transmit};

fn socket() -> Socket {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Socket::bind(any, &Options::default()).expect("a socket")
}

fn send(from: &Socket, to: &Socket) {
    let transmit = Transmit {
        remote: to.local_address(),
        local: None,
        ecn: Ecn::NotEct,
        bytes: b"here",
        segment_len: 4,
    };
    from.send(&transmit).expect("sent");
}

#[test]
fn the_readable_sockets_of_many_are_returned() {
    let mut poller = Poller::new().expect("a poller");
    let sockets: Vec<Socket> = (0..100).map(|_| socket()).collect();
    for (key, socket) in (0..).zip(&sockets) {
        poller.add(socket, key).expect("added");
    }
    send(&sockets[0], &sockets[42]);
    send(&sockets[0], &sockets[99]);
    let mut ready = vec![7];
    let mut told = Vec::new();
    let mut batch = Batch::new();
    while told.len() < 2 {
        assert!(!poller.wait(None, &mut ready).expect("waited"));
        for key in &ready {
            let index = usize::try_from(*key).expect("small");
            assert!(sockets[index].receive(&mut batch).expect("received") > 0);
            told.push(*key);
        }
    }
    told.sort_unstable();
    assert_eq!(told, [42, 99]);
    // Sockets are not reported again after receiving, and never after removal.
    poller.remove(&sockets[42]).expect("removed");
    send(&sockets[0], &sockets[42]);
    assert!(
        !poller
            .wait(Some(Duration::ZERO), &mut ready)
            .expect("waited")
    );
    assert_eq!(ready, []);
    assert!(poller.remove(&sockets[42]).is_err());
}

#[test]
fn a_wake_up_ends_the_wait_and_several_are_merged() {
    let mut poller = Poller::new().expect("a poller");
    let waker = poller.waker();
    for _ in 0..200 {
        waker.wake();
    }
    let mut ready = Vec::new();
    assert!(poller.wait(None, &mut ready).expect("waited"));
    assert!(
        !poller
            .wait(Some(Duration::ZERO), &mut ready)
            .expect("waited")
    );
    assert_eq!(ready, []);
    assert!(poller.add(&socket(), u64::MAX).is_err());
}
