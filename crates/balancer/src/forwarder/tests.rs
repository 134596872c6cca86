use std::{cell::RefCell, net::UdpSocket};

use lastbyte_quic::{
    cid::{QuicLb, QuicLbConfig},
    endpoint::RetryBalancers,
};
use lastbyte_wire::packet::{DecodeConfig, Packet, Packets};

use lastbyte_testkit::{CountingAllocator, allocation_count};

use super::*;
use crate::fleet::{Fleet, Server};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const PATIENCE: Duration = Duration::from_secs(60);

fn layout() -> QuicLbConfig {
    QuicLbConfig {
        rotation: 0,
        server_id_len: 2,
        nonce_len: 14,
        key: Some([9; 16]),
        encodes_length: false,
    }
}

fn retry_keys(keys: &[u8]) -> RetryBalancers {
    RetryBalancers {
        secrets: keys.iter().map(|key| [*key; 32]).collect(),
        addresses: vec![Ipv4Addr::LOCALHOST.into()],
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

fn fleet_of(sockets: &[UdpSocket]) -> Fleet {
    let with_id = |(number, socket)| Server::new(number, address(socket));
    Fleet {
        ids: vec![layout()],
        servers: (1..).zip(sockets).map(with_id).collect(),
        hash_key: [1; 16],
        retry: None,
    }
}

fn address(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().expect("bound")
}

/// A packet with the connection ID of a server, or another ID.
fn short(id: &[u8]) -> Vec<u8> {
    [&[0x40], id, &[0; 30]].concat()
}

fn id_of(server: u8) -> Vec<u8> {
    let codec = QuicLb::new(layout()).expect("valid");
    let id = codec.encode(&[0, server], &[4; 14], 0).expect("lengths");
    id.as_slice().to_vec()
}

/// A datagram with a client's first packet, whose connection ID no server issued.
fn initial(number: u8) -> Vec<u8> {
    let mut packet = vec![0xc0, 0, 0, 0, 1, 8];
    packet.extend_from_slice(&[0xff, number, 1, 2, 3, 4, 5, 6]);
    packet.resize(1200, 0);
    packet
}

struct Scene {
    servers: Vec<UdpSocket>,
    fleet: Fleet,
    forwarder: Forwarder,
    newcomers: RefCell<Vec<UdpSocket>>,
}

impl Scene {
    fn new(servers: u8, limits: FlowLimits) -> Self {
        Self::with_retry(servers, limits, Retry::Never)
    }

    fn with_retry(servers: u8, limits: FlowLimits, retry: Retry) -> Self {
        let sockets: Vec<UdpSocket> = (0..servers).map(|_| socket()).collect();
        let mut fleet = fleet_of(&sockets);
        fleet.retry = Some(retry_keys(&[7]));
        let settings = Settings {
            listen: "127.0.0.1:0".parse().expect("an address"),
            workers: 1,
            limits,
            key: [2; 16],
            retry,
        };
        let table = Arc::new(Table::new(&fleet, |_| true).expect("valid"));
        Self {
            servers: sockets,
            fleet,
            forwarder: Forwarder::start(&settings, table).expect("started"),
            newcomers: RefCell::default(),
        }
    }

    fn send(&self, client: &UdpSocket, packet: &[u8]) {
        let sent = client.send_to(packet, self.forwarder.address());
        assert_eq!(sent.expect("sent"), packet.len());
    }

    /// Sends from an address that no other client of the scene has: its socket stays open.
    fn send_as_new(&self, packet: &[u8]) {
        let client = socket();
        self.send(&client, packet);
        self.newcomers.borrow_mut().push(client);
    }

    fn publish_retry_keys(&mut self, keys: &[u8]) {
        self.fleet.retry = (!keys.is_empty()).then(|| retry_keys(keys));
        let table = Table::new(&self.fleet, |_| true).expect("valid");
        self.forwarder.publish(Arc::new(table));
    }

    /// What a server receives next, and from where.
    fn receive(&self, server: usize) -> (Vec<u8>, SocketAddr) {
        receive(&self.servers[server])
    }

    /// The server that receives something. Waits for it.
    fn receiver(&self) -> (usize, SocketAddr) {
        let began = Instant::now();
        let mut buffer = [0; 2000];
        loop {
            for (index, server) in self.servers.iter().enumerate() {
                server.set_nonblocking(true).expect("possible");
                let received = server.recv_from(&mut buffer);
                server.set_nonblocking(false).expect("possible");
                if let Ok((_, from)) = received {
                    return (index, from);
                }
            }
            assert!(began.elapsed() < PATIENCE, "nothing arrives");
        }
    }

    fn wait_for(&self, counter: Counter, value: u64) {
        let began = Instant::now();
        while self.forwarder.count(counter) < value {
            assert!(began.elapsed() < PATIENCE, "{counter:?}");
            thread::yield_now();
        }
        assert_eq!(self.forwarder.count(counter), value, "{counter:?}");
    }

    /// A datagram is counted after it has been sent.
    fn wait_for_sent(&self, expected: &[u64]) {
        let began = Instant::now();
        while self.forwarder.sent().1 != expected {
            let sent = self.forwarder.sent().1;
            assert!(began.elapsed() < PATIENCE, "{sent:?}");
            thread::yield_now();
        }
    }

    /// Each datagram is counted as received, and then once as forwarded or dropped.
    fn check_counts(&self) {
        let sum = |counters: &[Counter]| -> u64 {
            let counts = counters.iter();
            counts.map(|counter| self.forwarder.count(*counter)).sum()
        };
        let ends: [(Counter, &[Counter]); 2] = [
            (
                Counter::FromClients,
                &[
                    Counter::ByConnectionId,
                    Counter::ByFlow,
                    Counter::ByHash,
                    Counter::Malformed,
                    Counter::NoServer,
                    Counter::FlowLimit,
                    Counter::NoSocket,
                    Counter::Retries,
                    Counter::RetryFailed,
                    Counter::InvalidToken,
                ],
            ),
            (
                Counter::FromServers,
                &[
                    Counter::ToClients,
                    Counter::Stray,
                    Counter::DownstreamFailed,
                ],
            ),
        ];
        let began = Instant::now();
        for (received, ends) in ends {
            while self.forwarder.count(received) != sum(ends) {
                assert!(began.elapsed() < PATIENCE, "{received:?}: {}", sum(ends));
                thread::yield_now();
            }
        }
    }
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 2000];
    let (len, from) = socket.recv_from(&mut buffer).expect("a datagram");
    (buffer[..len].to_vec(), from)
}

#[test]
fn connection_ids_route_to_their_server_from_any_address_and_back() {
    let scene = Scene::new(3, FlowLimits::default());
    let clients = [socket(), socket()];
    let mut upstream = Vec::new();
    for client in &clients {
        for server in [2, 0, 1] {
            let packet = short(&id_of(server as u8 + 1));
            scene.send(client, &packet);
            let (received, from) = scene.receive(server);
            assert_eq!(received, packet);
            scene.servers[server]
                .send_to(b"an answer", from)
                .expect("sent");
            assert_eq!(
                receive(client),
                (b"an answer".to_vec(), scene.forwarder.address())
            );
            upstream.push(from);
        }
    }
    // Servers see one address for each client.
    assert!(upstream[..3].iter().all(|from| *from == upstream[0]));
    assert!(upstream[3..].iter().all(|from| *from == upstream[3]));
    assert_ne!(upstream[0], upstream[3]);
    scene.wait_for(Counter::ToClients, 6);
    assert_eq!(scene.forwarder.count(Counter::ByConnectionId), 6);
    scene.wait_for_sent(&[2, 2, 2]);
    scene.check_counts();
}

#[test]
fn the_packets_of_a_handshake_stay_with_their_server_when_the_table_changes() {
    let mut scene = Scene::new(2, FlowLimits::default());
    let client = socket();
    scene.send(&client, &initial(1));
    let (first, _) = scene.receiver();
    // It takes no more new connections.
    scene.fleet.servers[first].drain = true;
    let table = Table::new(&scene.fleet, |_| true).expect("valid");
    scene.forwarder.publish(Arc::new(table));
    scene.send(&client, &initial(1));
    assert_eq!(scene.receiver().0, first, "a retransmission");
    scene.send(&client, &initial(2));
    assert_eq!(scene.receiver().0, 1 - first, "another connection");
    scene.send(&client, &short(&id_of(first as u8 + 1)));
    assert_eq!(scene.receiver().0, first, "an old connection");
    assert_eq!(scene.forwarder.count(Counter::ByFlow), 1);
    assert_eq!(scene.forwarder.count(Counter::ByHash), 2);
    scene.check_counts();
}

#[test]
fn datagrams_from_elsewhere_do_not_reach_clients() {
    let scene = Scene::new(1, FlowLimits::default());
    let (client, other) = (socket(), socket());
    scene.send(&client, &initial(1));
    let (_, upstream) = scene.receive(0);
    let port = SocketAddr::from(([127, 0, 0, 1], upstream.port()));
    other.send_to(b"reflected", port).expect("sent");
    scene.wait_for(Counter::Stray, 1);
    scene.servers[0]
        .send_to(b"an answer", upstream)
        .expect("sent");
    assert_eq!(receive(&client).0, b"an answer");
    scene.check_counts();
}

/// §14.1: a client's first packet fills a datagram of 1200 bytes.
#[test]
fn short_datagrams_open_no_flow() {
    let scene = Scene::new(1, FlowLimits::default());
    let client = socket();
    scene.send(&client, &initial(1)[..1199]);
    scene.send(&client, &[0x40, 1, 2]);
    scene.wait_for(Counter::Malformed, 2);
    assert_eq!(scene.forwarder.count(Counter::FlowsOpened), 0);
    scene.check_counts();
}

#[test]
fn a_flood_of_initials_opens_a_bounded_number_of_sockets() {
    let limits = FlowLimits {
        flows: 8,
        new_per_second: 1_000_000,
        ..FlowLimits::default()
    };
    let scene = Scene::new(1, limits);
    let client = socket();
    scene.send(&client, &initial(0));
    let (_, upstream) = scene.receive(0);
    // The server validated the address.
    for _ in 0..4 {
        scene.servers[0]
            .send_to(&[0x40; 1000], upstream)
            .expect("sent");
        receive(&client);
    }
    scene.wait_for(Counter::ToClients, 4);
    for number in 0..100 {
        scene.send_as_new(&initial(number));
        scene.receive(0);
    }
    assert_eq!(scene.forwarder.count(Counter::FlowsOpened), 101);
    assert_eq!(scene.forwarder.count(Counter::FlowsDisplaced), 93);
    // The proven client has kept its flow.
    scene.send(&client, &short(&id_of(1)));
    assert_eq!(scene.receive(0).1, upstream);
    scene.check_counts();
}

#[test]
fn a_flood_of_forged_connection_ids_is_bounded_by_the_rate() {
    let limits = FlowLimits {
        new_per_second: 1,
        ..FlowLimits::default()
    };
    let scene = Scene::new(1, limits);
    for number in 0..50 {
        scene.send_as_new(&short(&[number; 17]));
    }
    scene.wait_for(Counter::FromClients, 50);
    let opened = scene.forwarder.count(Counter::FlowsOpened);
    assert!((1..10).contains(&opened), "{opened}");
    assert_eq!(scene.forwarder.count(Counter::FlowLimit), 50 - opened);
    scene.check_counts();
}

#[test]
fn flows_whose_server_is_silent_expire() {
    let limits = FlowLimits {
        idle: Duration::from_millis(1),
        unproven_idle: Duration::from_millis(1),
        ..FlowLimits::default()
    };
    let scene = Scene::new(1, limits);
    let client = socket();
    for number in 1..=2 {
        scene.send(&client, &initial(1));
        scene.receive(0);
        scene.wait_for(Counter::FlowsExpired, number);
        assert_eq!(scene.forwarder.count(Counter::FlowsOpened), number);
    }
}

#[test]
fn without_servers_for_new_connections_they_are_dropped() {
    let mut scene = Scene::new(1, FlowLimits::default());
    scene.fleet.servers[0].drain = true;
    let table = Table::new(&scene.fleet, |_| true).expect("valid");
    scene.forwarder.publish(Arc::new(table));
    let client = socket();
    scene.send(&client, &initial(1));
    scene.wait_for(Counter::NoServer, 1);
    scene.check_counts();
}

#[test]
fn datagrams_that_arrive_together_are_split_by_server() {
    let scene = Scene::new(2, FlowLimits::default());
    let client = Socket::bind(
        "127.0.0.1:0".parse().expect("an address"),
        &Options::default(),
    );
    let (one, two) = (short(&id_of(1)), short(&id_of(2)));
    let bytes = [&one[..], &one, &two, &one, &two].concat();
    let transmit = Transmit {
        remote: scene.forwarder.address(),
        local: None,
        ecn: Ecn::NotEct,
        bytes: &bytes,
        segment_len: one.len(),
    };
    client.expect("a socket").send(&transmit).expect("sent");
    for _ in 0..3 {
        assert_eq!(scene.receive(0).0, one);
    }
    for _ in 0..2 {
        assert_eq!(scene.receive(1).0, two);
    }
    scene.wait_for(Counter::ByConnectionId, 5);
    scene.wait_for_sent(&[3, 2]);
    scene.check_counts();
}

#[test]
fn datagrams_of_open_flows_allocate_nothing() {
    let servers = [socket(), socket()];
    let table = Arc::new(Table::new(&fleet_of(&servers), |_| true).expect("valid"));
    let shared = Arc::new(Shared::new(table, 1));
    let any = "127.0.0.1:0".parse().expect("an address");
    let listener = Socket::bind(any, &Options::default()).expect("a socket");
    let to = listener.local_address();
    let settings = Settings {
        listen: to,
        workers: 1,
        limits: FlowLimits::default(),
        key: [2; 16],
        retry: Retry::Never,
    };
    let mut worker = Worker::new(0, listener, &settings, &shared).expect("a worker");
    let client = socket();
    let packets = [short(&id_of(1)), short(&id_of(2)), initial(7)];
    let mut buffer = [0; 2000];
    let mut exchange = |worker: &mut Worker| {
        let handled = |counter| worker_count(&shared, counter);
        let before = handled(Counter::FromClients);
        for packet in &packets {
            client.send_to(packet, to).expect("sent");
        }
        while worker_count(&shared, Counter::FromClients) < before + 3 {
            worker.turn().expect("no error");
        }
        let (_, upstream) = servers[0].recv_from(&mut buffer).expect("a datagram");
        servers[0].send_to(b"an answer", upstream).expect("sent");
        let answered = handled(Counter::ToClients);
        while worker_count(&shared, Counter::ToClients) == answered {
            worker.turn().expect("no error");
        }
        client.recv_from(&mut buffer).expect("an answer");
    };
    exchange(&mut worker);
    let before = allocation_count();
    for _ in 0..100 {
        exchange(&mut worker);
    }
    assert_eq!(allocation_count() - before, 0);
    assert_eq!(worker_count(&shared, Counter::FlowsOpened), 1);
}

/// A first packet to a connection ID, with a token.
fn initial_to(destination: &[u8], token: &[u8]) -> Vec<u8> {
    let mut packet = vec![0xc0, 0, 0, 0, 1, destination.len() as u8];
    packet.extend_from_slice(destination);
    packet.extend_from_slice(&[2, 5, 5]);
    packet.extend_from_slice(&[0x40, token.len() as u8]);
    packet.extend_from_slice(token);
    packet.resize(1200, 0);
    packet
}

/// Receives a Retry, and returns the first packet that answers it.
fn answer_to_retry(client: &UdpSocket) -> Vec<u8> {
    let (mut datagram, _) = receive(client);
    // RFC 9000 §8.1: far less than three times the bytes.
    assert!(datagram.len() < 200, "{}", datagram.len());
    let config = DecodeConfig {
        connection_id_len: 0,
        grease_quic_bit: false,
    };
    let Some(Ok(Packet::Retry(retry))) = Packets::new(&mut datagram, config).next() else {
        panic!("a Retry");
    };
    initial_to(retry.source.as_slice(), retry.token)
}

#[test]
fn rfc9000_8_1_2_initials_are_forwarded_after_a_retry_and_keep_no_state_before() {
    let scene = Scene::with_retry(2, FlowLimits::default(), Retry::Always);
    let client = socket();
    for _ in 0..50 {
        scene.send(&client, &initial_to(&[1; 8], &[]));
    }
    let answers: Vec<Vec<u8>> = (0..50).map(|_| answer_to_retry(&client)).collect();
    scene.wait_for(Counter::Retries, 50);
    assert_eq!(scene.forwarder.count(Counter::FlowsOpened), 0);
    // From another address it is dropped, and not answered.
    let other = socket();
    scene.send(&other, &answers[0]);
    scene.wait_for(Counter::InvalidToken, 1);
    assert_eq!(scene.forwarder.count(Counter::FlowsOpened), 0);
    scene.send(&client, &answers[0]);
    let (server, upstream) = scene.receiver();
    assert_eq!(scene.forwarder.count(Counter::ValidTokens), 1);
    // A connection of this server's from now on: further packets need no token.
    let reply = [
        &[0xc0, 0, 0, 0, 1, 2, 5, 5, 17][..],
        &id_of(server as u8 + 1),
    ]
    .concat();
    scene.servers[server]
        .send_to(&reply, upstream)
        .expect("sent");
    receive(&client);
    scene.send(&client, &initial_to(&id_of(server as u8 + 1), &[]));
    assert_eq!(scene.receive(server).1, upstream);
    scene.wait_for(Counter::ByConnectionId, 1);
    scene.check_counts();
    assert_eq!(scene.forwarder.count(Counter::Retries), 50);
}

/// Neither the connection ID of a server, nor a flow that other packets opened, nor a reflected Version Negotiation packet
/// stands for a token.
#[test]
fn no_other_packet_stands_for_a_token() {
    let scene = Scene::with_retry(1, FlowLimits::default(), Retry::Always);
    let client = socket();
    scene.send(&client, &short(&id_of(1)));
    let (_, upstream) = scene.receive(0);
    scene.send(&client, &initial_to(&id_of(1), &[]));
    answer_to_retry(&client);
    scene.send(&client, &short(&[0xff; 8]));
    scene.receive(0);
    scene.send(&client, &initial_to(&[0xff; 8], &[]));
    answer_to_retry(&client);
    let negotiation = [
        &[0x80, 0, 0, 0, 0, 2, 5, 5, 8][..],
        &[0xff; 8],
        &[0, 0, 0, 1],
    ]
    .concat();
    scene.servers[0]
        .send_to(&negotiation, upstream)
        .expect("sent");
    receive(&client);
    scene.wait_for(Counter::ToClients, 1);
    scene.send(&client, &initial_to(&[0xff; 8], &[]));
    answer_to_retry(&client);
    // A token that a server sealed, or no key at all.
    scene.send(&client, &initial_to(&[0xff; 8], &[9; 60]));
    answer_to_retry(&client);
    scene.wait_for(Counter::Retries, 4);
    scene.check_counts();
}

/// Packets without a token that are no first ones open a quarter of the flows at most, and clients that moved get through.
#[test]
fn packets_that_take_no_token_open_few_flows() {
    let limits = FlowLimits {
        flows: 16,
        new_per_second: 1_000_000,
        ..FlowLimits::default()
    };
    let scene = Scene::with_retry(1, limits, Retry::Always);
    // v1: 0-RTT and Handshake; an unknown version.
    let long = |first, version| {
        let mut packet = initial(1);
        (packet[0], packet[4]) = (first, version);
        packet
    };
    let packets = [
        short(&[0x55; 17]),
        long(0xd0, 1),
        long(0xe0, 1),
        long(0xc0, 77),
    ];
    for number in 0..40 {
        scene.send_as_new(&packets[number % 4]);
    }
    scene.wait_for(Counter::ByHash, 40);
    scene.check_counts();
    let count = |counter| scene.forwarder.count(counter);
    assert_eq!(
        count(Counter::FlowsOpened) - count(Counter::FlowsDisplaced),
        4
    );
    assert_eq!(count(Counter::Retries), 0);
    for _ in 0..40 {
        scene.receive(0);
    }
    let client = socket();
    scene.send(&client, &short(&id_of(1)));
    let (_, upstream) = scene.receive(0);
    scene.servers[0]
        .send_to(b"an answer", upstream)
        .expect("sent");
    receive(&client);
    scene.wait_for(Counter::ToClients, 1);
    for number in 0..40 {
        scene.send_as_new(&packets[number % 4]);
        scene.receive(0);
    }
    scene.send(&client, &short(&id_of(1)));
    assert_eq!(scene.receive(0).1, upstream, "it has kept its flow");
    scene.check_counts();
}

#[test]
fn retry_keys_rotate_with_the_table() {
    let mut scene = Scene::with_retry(1, FlowLimits::default(), Retry::Always);
    let client = socket();
    scene.send(&client, &initial_to(&[1; 8], &[]));
    let answer = answer_to_retry(&client);
    // Without its key it counts as no token, with it as a second one it is valid.
    scene.publish_retry_keys(&[8]);
    scene.send(&client, &answer);
    answer_to_retry(&client);
    scene.publish_retry_keys(&[8, 7]);
    scene.send(&client, &answer);
    scene.receive(0);
    // Without keys there are no Retry packets.
    let client = socket();
    scene.publish_retry_keys(&[]);
    scene.send(&client, &initial_to(&[1; 8], &[]));
    scene.receive(0);
    assert_eq!(scene.forwarder.count(Counter::Retries), 2);
    scene.check_counts();
}

/// A flood from many addresses uses half of the new flows, and clients that show their address get the other half.
#[test]
fn under_load_clients_with_a_token_are_admitted_beside_a_flood() {
    let limits = FlowLimits {
        new_per_second: 1,
        ..FlowLimits::default()
    };
    let scene = Scene::with_retry(1, limits, Retry::UnderLoad);
    for number in 0..40 {
        let client = socket();
        scene.send(&client, &initial_to(&[number; 8], &[]));
        // Neither an Initial nor a known connection ID: it can open flows without a token.
        scene.send_as_new(&short(&[number; 17]));
    }
    scene.wait_for(Counter::FromClients, 80);
    scene.check_counts();
    let count = |counter| scene.forwarder.count(counter);
    let opened = count(Counter::FlowsOpened);
    assert!((2..20).contains(&opened), "{opened}");
    assert!(count(Counter::Retries) > 20 && count(Counter::FlowLimit) > 20);
    let client = socket();
    scene.send(&client, &initial_to(&[1; 8], &[]));
    scene.send(&client, &answer_to_retry(&client));
    scene.wait_for(Counter::ValidTokens, 1);
    scene.wait_for(Counter::FlowsOpened, opened + 1);
}

fn worker_count(shared: &Shared, counter: Counter) -> u64 {
    shared.counts[0].get(counter)
}
