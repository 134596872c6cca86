use std::collections::BTreeSet;

use lastbyte_link::Config;
use lastbyte_units::Ecn;

use super::*;

fn any() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn plan(delay: Duration) -> Plan {
    let direction = Config {
        delay,
        ..Config::default()
    };
    Plan::new(direction.clone(), direction)
}

fn send(socket: &Socket, remote: SocketAddr, ecn: Ecn, bytes: &[u8], segment_len: usize) {
    let transmit = Transmit {
        remote,
        local: None,
        ecn,
        bytes,
        segment_len,
    };
    socket.send(&transmit).expect("sent");
}

/// Waits for `count` datagrams and returns their source, ECN mark and contents.
fn receive(socket: &Socket, count: usize) -> Vec<(SocketAddr, Ecn, Vec<u8>)> {
    let mut poller = Poller::new().expect("a poller");
    poller.add(socket, 0).expect("added");
    let mut batch = Batch::new();
    let mut all = Vec::new();
    while all.len() < count {
        poller.wait(None, &mut Vec::new()).expect("waited");
        socket.receive(&mut batch).expect("received");
        for received in batch.received() {
            let (remote, ecn) = (received.remote, received.ecn);
            let datagrams = received.bytes.chunks(received.segment_len);
            all.extend(datagrams.map(|datagram| (remote, ecn, datagram.to_vec())));
        }
    }
    all
}

#[test]
fn datagrams_pass_in_both_directions_with_the_delay_of_the_path() {
    let server = Socket::bind(any(), &Options::default()).expect("a socket");
    let delay = Duration::from_millis(20);
    let relay = Relay::start(Settings {
        listen: any(),
        to: server.local_address(),
        plan: plan(delay),
        rebind: None,
    })
    .expect("a relay");
    let clients = [(); 2].map(|()| Socket::bind(any(), &Options::default()).expect("a socket"));
    let start = Instant::now();
    // Batches of several datagrams are split.
    let long: Vec<u8> = (0..2500_u32).map(|at| at as u8).collect();
    send(&clients[0], relay.address(), Ecn::Ect0, &long, 1000);
    send(&clients[1], relay.address(), Ecn::NotEct, b"second", 6);
    let mut arrived = receive(&server, 4);
    assert!(start.elapsed() >= delay);
    // The server sees two different addresses; datagrams of the same client stay in order.
    let (first, _, _) = arrived
        .iter()
        .find(|(_, ecn, _)| *ecn == Ecn::Ect0)
        .cloned()
        .expect("the marks are unchanged");
    arrived.sort_by_key(|(remote, _, _)| *remote != first);
    let whole: Vec<u8> = arrived[..3]
        .iter()
        .flat_map(|(_, _, bytes)| bytes.clone())
        .collect();
    assert_eq!(whole, long);
    let (second, ecn, bytes) = &arrived[3];
    assert_eq!((*ecn, &bytes[..]), (Ecn::NotEct, &b"second"[..]));
    assert_ne!(*second, first);
    send(&server, *second, Ecn::Ce, b"answer", 6);
    let answer = receive(&clients[1], 1);
    assert_eq!(answer, [(relay.address(), Ecn::Ce, b"answer".to_vec())]);
    assert!(start.elapsed() >= 2 * delay);
    assert!(!relay.running().is_over());
    let report = relay.stop().expect("a report");
    assert_eq!(report.clients, 2);
    assert_eq!(report.up.delivered.packets, 4);
    assert_eq!(report.up.delivered.bytes, 2506);
    assert_eq!(report.down.delivered.packets, 1);
    assert_eq!(report.late.count(), 5);
    assert_eq!((report.unsent, report.refused), (0, 0));
}

#[test]
fn an_address_in_use_is_named_in_the_error() {
    let taken = Socket::bind(any(), &Options::default()).expect("a socket");
    let error = Relay::start(Settings {
        listen: taken.local_address(),
        to: any(),
        plan: plan(Duration::ZERO),
        rebind: None,
    })
    .expect_err("address in use");
    let text = error.to_string();
    assert!(text.contains(&taken.local_address().to_string()), "{text}");
}

/// As a NAT that loses its bindings: the server sees another port, and the previous one is gone.
#[test]
fn a_client_gets_another_port_at_each_interval() {
    let server = Socket::bind(any(), &Options::default()).expect("a socket");
    let relay = Relay::start(Settings {
        listen: any(),
        to: server.local_address(),
        plan: plan(Duration::ZERO),
        rebind: Some(Duration::from_millis(20)),
    })
    .expect("a relay");
    let client = Socket::bind(any(), &Options::default()).expect("a socket");
    let mut ports = BTreeSet::new();
    while ports.len() < 3 {
        send(&client, relay.address(), Ecn::NotEct, b"ping", 4);
        let arrived = receive(&server, 1);
        ports.insert(arrived[0].0.port());
        // The port in use receives.
        send(&server, arrived[0].0, Ecn::NotEct, b"pong", 4);
    }
    receive(&client, 1);
    let report = relay.stop().expect("a report");
    assert_eq!(report.clients, 1);
}

/// The system calls of the relay are those of the server: GRO joins on loopback what GSO sent, and nothing else.
#[test]
fn datagrams_that_are_due_together_leave_in_one_system_call() {
    let server = Socket::bind(any(), &Options::default()).expect("a socket");
    let capabilities = server.capabilities();
    if capabilities.send_segments < 40 || capabilities.receive_segments < 40 {
        lastbyte_testkit::skip("no UDP segmentation offload");
        return;
    }
    let relay = Relay::start(Settings {
        listen: any(),
        to: server.local_address(),
        plan: plan(Duration::from_millis(1)),
        rebind: None,
    })
    .expect("a relay");
    let client = Socket::bind(any(), &Options::default()).expect("a socket");
    let long = vec![1; 40_000];
    let mut poller = Poller::new().expect("a poller");
    poller.add(&server, 0).expect("added");
    let mut batch = Batch::new();
    let mut lens = Vec::new();
    for total in [40_000, 80_000] {
        send(&client, relay.address(), Ecn::Ect0, &long, 1000);
        while lens.iter().sum::<usize>() < total {
            poller.wait(None, &mut Vec::new()).expect("waited");
            server.receive(&mut batch).expect("received");
            lens.extend(batch.received().map(|received| received.bytes.len()));
        }
    }
    // The first datagram proves that its length passes the interface.
    assert_eq!(lens, [1000, 39_000, 40_000]);
    let report = relay.stop().expect("a report");
    assert_eq!((report.up.delivered.packets, report.unsent), (80, 0));
}
