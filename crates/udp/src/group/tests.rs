use std::collections::BTreeSet;

use super::*;
use crate::{
    socket::{Batch, Ecn, Transmit},
    wait::Waiter,
};

const COUNT: usize = 3;
const BYTE: u8 = 2;

fn long_header(id: [u8; 8]) -> Vec<u8> {
    [&[0xc3, 0, 0, 0, 1, 8][..], &id, &[0; 30]].concat()
}

fn short_header(id: [u8; 8]) -> Vec<u8> {
    [&[0x43][..], &id, &[0; 30]].concat()
}

const STEERING: Steering = Steering::ByConnectionId { byte: BYTE };

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

#[test]
fn a_byte_of_the_connection_id_in_short_headers_selects_the_socket() {
    let group = bind_group(any(), COUNT, &Options::default(), STEERING).expect("a group");
    is_steered(group);
}

/// The kernel may choose the port of another group of the same user for a socket that has `SO_REUSEPORT` when it is bound.
#[test]
fn groups_on_free_ports_do_not_share_a_port() {
    let groups: Vec<_> = (0..450)
        .map(|_| {
            let (sockets, _) =
                bind_group(any(), 2, &Options::default(), Steering::ByAddress).expect("a group");
            assert_eq!(sockets[0].local_address(), sockets[1].local_address());
            sockets
        })
        .collect();
    let ports: BTreeSet<u16> = groups
        .iter()
        .map(|sockets| sockets[0].local_address().port())
        .collect();
    assert_eq!(ports.len(), groups.len());
}

/// As from a service manager: all sockets bound, or only the first.
#[test]
fn adopted_sockets_are_steered_too() {
    let options = Options::default();
    let (first, others) = bind_two();
    let all = vec![first, others];
    assert!(all.iter().all(shares_its_port));
    let group = adopt_group(all, 2, &options, STEERING).expect("a group");
    is_steered(group);
    // Only the first socket is adopted. The program of the earlier group does not remain.
    let (first, second) = bind_two();
    drop(second);
    let group = adopt_group(vec![first], COUNT, &options, STEERING).expect("a group");
    is_steered(group);
}

/// The option is set once the first socket is bound: before that, the kernel may choose the port of a group of another test.
fn bind_two() -> (UdpSocket, UdpSocket) {
    let options = Options::default();
    let first = open(any(), &options, false).expect("a socket");
    first.set_reuse_port(true).expect("it is supported");
    let address = first.local_addr().expect("an address").as_socket();
    let second = open(address.expect("of IP"), &options, true).expect("another");
    (first.into(), second.into())
}

#[test]
fn a_socket_without_reuseport_cannot_be_extended() {
    let alone: UdpSocket = open(any(), &Options::default(), false)
        .expect("a socket")
        .into();
    assert!(!shares_its_port(&alone));
    let address = alone.local_addr().expect("an address");
    let given = vec![alone.try_clone().expect("a descriptor")];
    let error = adopt_group(given, 2, &Options::default(), STEERING).expect_err("it is alone");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    let (sockets, steering) =
        adopt_group(vec![alone], 1, &Options::default(), STEERING).expect("a socket");
    assert_eq!((sockets.len(), steering), (1, Steering::ByAddress));
    assert_eq!(sockets[0].local_address(), address);
}

fn is_steered((sockets, achieved): (Vec<Socket>, Steering)) {
    if achieved != STEERING {
        return lastbyte_testkit::skip("the system does not steer by connection ID");
    }
    let count = sockets.len();
    assert!(count > 1);
    let mut owners = BTreeSet::new();
    for value in 0..=255_u8 {
        let id = [9, 9, value, 7, 7, 7, 7, 7];
        // A new client address for each.
        let client = Socket::bind(any(), &Options::default()).expect("a socket");
        let owner = owner_of(&sockets, &client, &short_header(id));
        assert_eq!(owner, usize::from(value) % count, "{value}");
        // The connection ID in a long header has no effect.
        let owner = owner_of(&sockets, &client, &long_header(id));
        owners.insert(owner);
        for guess in 0..count as u8 {
            let id = [9, 9, guess, value, 7, 7, 7, 7];
            assert_eq!(owner_of(&sockets, &client, &long_header(id)), owner);
        }
    }
    // All addresses select the same socket with a probability of 2^-255.
    assert!(owners.len() > 1, "{owners:?}");
}

/// The index of the socket that received a datagram.
fn owner_of(sockets: &[Socket], client: &Socket, datagram: &[u8]) -> usize {
    let transmit = Transmit {
        remote: sockets[0].local_address(),
        local: None,
        ecn: Ecn::NotEct,
        bytes: datagram,
        segment_len: datagram.len(),
    };
    client.send(&transmit).expect("to be sent");
    let mut waiter = Waiter::new().expect("a waiter");
    let mut batch = Batch::new();
    for _ in 0..10_000 {
        for (owner, socket) in sockets.iter().enumerate() {
            if socket.receive(&mut batch).expect("a receive") > 0 {
                let received = batch.received().next().expect("one");
                assert_eq!(received.bytes, datagram);
                return owner;
            }
        }
        let soon = Some(std::time::Duration::from_millis(1));
        waiter.wait(&sockets[0], false, soon).expect("a wait");
    }
    panic!("it got lost");
}

#[test]
fn a_single_socket_is_not_steered_and_does_not_share_its_port() {
    let address = "127.0.0.1:0".parse().expect("an address");
    let steering = Steering::ByConnectionId { byte: 0 };
    let (sockets, achieved) =
        bind_group(address, 1, &Options::default(), steering).expect("a group");
    assert_eq!((sockets.len(), achieved), (1, Steering::ByAddress));
    let again = Socket::bind(sockets[0].local_address(), &Options::default());
    assert!(again.is_err());
}

#[test]
fn a_group_does_not_join_another() {
    let any = "127.0.0.1:0".parse().expect("an address");
    let bind = |address| bind_group(address, 2, &Options::default(), Steering::ByAddress);
    let (first, _) = bind(any).expect("a group");
    let taken = first[0].local_address();
    let error = bind(taken).expect_err("the port is taken");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    drop(first);
    bind(taken).expect("the port is free again");
}
