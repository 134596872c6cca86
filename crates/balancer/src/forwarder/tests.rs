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
        Self::over((0..servers).map(|_| socket()).collect(), limits, retry)
    }

    fn over(sockets: Vec<UdpSocket>, limits: FlowLimits, retry: Retry) -> Self {
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

#[test]
fn servers_of_both_address_families_exchange_datagrams_with_a_client() {
    let other = UdpSocket::bind("[::1]:0").expect("a socket");
    other.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let scene = Scene::over(vec![socket(), other], FlowLimits::default(), Retry::Never);
    for server in 0..2 {
        let client = socket();
        scene.send(&client, &short(&id_of(server as u8 + 1)));
        let (_, upstream) = scene.receive(server);
        let reply = short(&[5; 2]);
        let sent = scene.servers[server].send_to(&reply, upstream);
        sent.expect("sent");
        assert_eq!(receive(&client).0, reply);
    }
}

/// Other packets opened the flow.
#[test]
fn rfc9000_8_1_2_a_token_proves_the_address_of_an_open_flow() {
    let scene = Scene::with_retry(1, FlowLimits::default(), Retry::Always);
    let client = socket();
    scene.send(&client, &short(&id_of(1)));
    scene.receive(0);
    scene.send(&client, &initial_to(&id_of(1), &[]));
    scene.send(&client, &answer_to_retry(&client));
    scene.receive(0);
    // Further packets need no token.
    scene.send(&client, &initial_to(&id_of(1), &[]));
    scene.receive(0);
    assert_eq!(scene.forwarder.count(Counter::Retries), 1);
}

/// Packets without a token that are no first ones open a quarter of the flows at most, and clients that moved get through.
#[test]
fn packets_that_take_no_token_open_few_flows() {
    let limits = FlowLimits {
        flows: 16,
        new_per_second: 1_000_000,
        ..FlowLimits::default()
    };
    let scene = Scene::with_retry(1, limits, Retry::UnderLoad);
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

/// With a token from each client, packets of unknown connections open no flow, unless a server has to name its versions.
#[test]
fn rfc9000_8_1_2_garbage_opens_no_flow_if_all_clients_need_a_token() {
    let scene = Scene::with_retry(1, FlowLimits::default(), Retry::Always);
    let long = |first, version| {
        let mut packet = initial(1);
        (packet[0], packet[4]) = (first, version);
        packet
    };
    for packet in [
        short(&[0x55; 17]),
        short(&[0xff; 8]),
        long(0xd0, 1),
        long(0xe0, 1),
        long(0xf0, 1),
    ] {
        scene.send_as_new(&packet);
    }
    scene.wait_for(Counter::InvalidToken, 5);
    assert_eq!(scene.forwarder.count(Counter::FlowsOpened), 0);
    scene.send_as_new(&long(0xc0, 77));
    scene.send_as_new(&short(&id_of(1)));
    scene.receive(0);
    scene.receive(0);
    scene.wait_for(Counter::FlowsOpened, 2);
    scene.check_counts();
}

#[test]
fn the_counts_of_a_server_outlive_another_table() {
    let mut scene = Scene::new(2, FlowLimits::default());
    scene.send_as_new(&short(&id_of(2)));
    scene.wait_for_sent(&[0, 1]);
    // The first server leaves, and another one comes.
    scene.fleet.servers.remove(0);
    let other = socket();
    scene.fleet.servers.push(Server::new(3, address(&other)));
    let table = Table::new(&scene.fleet, |_| true).expect("valid");
    scene.forwarder.publish(Arc::new(table));
    assert_eq!(scene.forwarder.sent().1, [1, 0]);
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

fn settings_of(workers: usize, limits: FlowLimits) -> Settings {
    Settings {
        listen: "127.0.0.1:0".parse().expect("an address"),
        workers,
        limits,
        key: [2; 16],
        retry: Retry::Never,
    }
}

/// A forwarder of several threads, after first packets of 64 addresses, and the flows that are open then.
fn flooded(workers: usize, limits: FlowLimits) -> (Forwarder, u64) {
    let server = socket();
    let table = Arc::new(Table::new(&fleet_of(&[server]), |_| true).expect("valid"));
    let forwarder = Forwarder::start(&settings_of(workers, limits), table).expect("started");
    let clients: Vec<UdpSocket> = (0..64).map(|_| socket()).collect();
    for client in &clients {
        client
            .send_to(&initial(1), forwarder.address())
            .expect("sent");
    }
    let began = Instant::now();
    let count = |counter| forwarder.count(counter);
    while count(Counter::ByHash) + count(Counter::FlowLimit) < 64 {
        assert!(began.elapsed() < PATIENCE);
        thread::yield_now();
    }
    let open = count(Counter::FlowsOpened) - count(Counter::FlowsDisplaced);
    (forwarder, open)
}

#[test]
fn the_limits_are_those_of_all_threads_together() {
    let flows = FlowLimits {
        flows: 8,
        ..FlowLimits::default()
    };
    let (_forwarder, open) = flooded(4, flows);
    assert!((1..=8).contains(&open), "{open}");
    let rate = FlowLimits {
        new_per_second: 4,
        ..FlowLimits::default()
    };
    let began = Instant::now();
    let (_forwarder, open) = flooded(4, rate);
    // Twice as many at once, and the rate for the time that it took.
    let most = 8 + 4 * (began.elapsed().as_secs() + 1);
    assert!((1..=most).contains(&open), "{open} of {most}");
}

/// While a thread has the address, no other socket can be bound to it alone.
#[test]
fn a_forwarder_that_is_stopped_or_dropped_has_no_sockets_and_threads() {
    let is_free = |address| UdpSocket::bind(address).is_ok();
    for stops in [true, false] {
        let (forwarder, _) = flooded(2, FlowLimits::default());
        let address = forwarder.address();
        assert!(!is_free(address));
        assert!(!forwarder.has_failed());
        if stops {
            forwarder.stop().expect("no error");
        } else {
            drop(forwarder);
        }
        assert!(is_free(address), "stops: {stops}");
    }
}

#[test]
fn a_thread_that_failed_is_reported_with_its_error() {
    let (mut forwarder, _) = flooded(1, FlowLimits::default());
    let failed = thread::spawn(|| Err(io::Error::other("no poller")));
    forwarder.threads.push(failed);
    let began = Instant::now();
    while !forwarder.has_failed() {
        assert!(began.elapsed() < PATIENCE);
        thread::yield_now();
    }
    let error = forwarder.stop().expect_err("an error");
    assert_eq!(error.to_string(), "no poller");
}

/// A client that sends to the connection ID of the server's answer receives at its address, whatever the form of the header, and
/// one that sends the bytes of the ID elsewhere proves nothing.
#[test]
fn rfc9000_8_1_the_servers_connection_id_in_either_header_form_proves_an_address() {
    let own_id = [7; 8];
    let long = |first: u8, id: &[u8]| {
        let mut packet = vec![first, 0, 0, 0, 1, id.len() as u8];
        packet.extend(id);
        packet.push(0);
        packet.resize(1200, 0);
        packet
    };
    let short = |offset: usize| [&[0x40][..], &vec![0; offset], &own_id, &[0; 30]].concat();
    for (packet, is_proof) in [
        (short(0), true),
        (short(1), false),
        (long(0xe0, &own_id), true),
        (long(0xe0, &[6; 8]), false),
    ] {
        let server = socket();
        let table = Table::new(&fleet_of(std::slice::from_ref(&server)), |_| true).expect("valid");
        let shared = Arc::new(Shared::new(Arc::new(table), 1));
        let any = "127.0.0.1:0".parse().expect("an address");
        let listener = Socket::bind(any, &Options::default()).expect("a socket");
        let to = listener.local_address();
        let settings = settings_of(1, FlowLimits::default());
        let mut worker = Worker::new(0, listener, &settings, &shared).expect("a worker");
        let client = socket();
        let turn_until = |worker: &mut Worker, counter, count| {
            while worker_count(&shared, counter) < count {
                worker.turn().expect("no error");
            }
        };
        client.send_to(&initial(7), to).expect("sent");
        turn_until(&mut worker, Counter::FromClients, 1);
        let mut buffer = [0; 2000];
        let (_, upstream) = server.recv_from(&mut buffer).expect("a datagram");
        // A long header with the server's ID as its source.
        let answer = [&[0xe0, 0, 0, 0, 1, 0, 8][..], &own_id, &[0; 100]].concat();
        server.send_to(&answer, upstream).expect("sent");
        turn_until(&mut worker, Counter::ToClients, 1);
        assert!(!worker.flows.is_proven(0));
        client.send_to(&packet, to).expect("sent");
        turn_until(&mut worker, Counter::FromClients, 2);
        assert_eq!(worker.flows.is_proven(0), is_proof, "{:x?}", &packet[..9]);
    }
}
