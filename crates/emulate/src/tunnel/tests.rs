use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
};

use lastbyte_link::{Capacity, Config, DropReason, DropTail, Limit, Loss, Queue, Rate};
use lastbyte_testkit::alone;
use lastbyte_udp::{Batch, Ecn, Options, Socket, Transmit};

use super::*;

/// Creates a device, or skips the test if that is not permitted.
fn device(plan: Plan) -> Option<Tunnel> {
    match Tunnel::start(Settings::new(plan)) {
        Ok(tunnel) => Some(tunnel),
        Err(error @ TunnelError::Device(_))
            if error.to_string().contains("CAP_NET_ADMIN")
                || error.to_string().contains("/dev/net/tun") =>
        {
            lastbyte_testkit::skip(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The time after which a packet counts as lost.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(5));
/// The size of the transfer in bytes.
const TRANSFER: usize = 2_000_000;
const DELAY: Duration = Duration::from_millis(20);

/// 80 Mb/s down, and 20 ms each direction.
fn plan() -> Plan {
    let direction = Config {
        delay: DELAY,
        ..Config::default()
    };
    let down = Config {
        capacity: Capacity::Constant(Rate::from_bits_per_second(80_000_000)),
        ..direction.clone()
    };
    Plan::new(down, direction)
}

/// Sends a datagram back and forth and returns the time it took.
fn echo(server: IpAddr, client: IpAddr) -> Duration {
    let any = if server.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let [listening, asking] = [(); 2].map(|()| {
        let socket = UdpSocket::bind(any).expect("a socket");
        socket.set_read_timeout(PATIENCE).expect("set");
        socket
    });
    let port = listening.local_addr().expect("an address").port();
    let start = Instant::now();
    asking.send_to(b"there", (server, port)).expect("sent");
    let mut buffer = [0; 10];
    let (len, from) = listening.recv_from(&mut buffer).expect("received");
    assert_eq!(buffer[..len], *b"there");
    assert_eq!(from.ip(), client, "client address seen by the server");
    assert!(start.elapsed() >= DELAY);
    listening.send_to(b"and back", from).expect("sent");
    let (len, from) = asking.recv_from(&mut buffer).expect("received");
    assert_eq!(buffer[..len], *b"and back");
    assert_eq!(
        from,
        SocketAddr::new(server, port),
        "server address seen by the client"
    );
    start.elapsed()
}

#[test]
fn udp_icmp_and_tcp_take_the_time_of_the_path() {
    alone(
        "tunnel::tests::udp_icmp_and_tcp_take_the_time_of_the_path",
        || {
            let Some(tunnel) = device(plan()) else {
                return;
            };
            let network = Network::default();
            assert!(echo(network.server().0.into(), network.client().0.into()) >= 2 * DELAY);
            if tunnel.has_v6() {
                assert!(echo(network.server().1.into(), network.client().1.into()) >= 2 * DELAY);
            }
            // The ICMP error returns over the path and reaches the socket.
            let server = IpAddr::from(network.server().0);
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
            socket.set_read_timeout(PATIENCE).expect("set");
            socket.connect((server, 9)).expect("connected");
            socket.send(b"closed").expect("sent");
            let error = socket.recv(&mut [0; 10]).expect_err("port unreachable");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
            // A transfer is complete and no faster than the rate.
            let listener = TcpListener::bind("0.0.0.0:0").expect("a socket");
            let port = listener.local_addr().expect("an address").port();
            let sender = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("a client");
                let all: Vec<u8> = (0..TRANSFER).map(|at| (at % 251) as u8).collect();
                stream.write_all(&all).expect("written");
            });
            let start = Instant::now();
            let mut stream = TcpStream::connect((server, port)).expect("connected");
            assert!(start.elapsed() >= 2 * DELAY);
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("read");
            sender.join().expect("sent");
            assert_eq!(all.len(), TRANSFER);
            assert!(
                all.iter()
                    .enumerate()
                    .all(|(at, byte)| *byte == (at % 251) as u8)
            );
            let took = start.elapsed();
            assert!(took >= 3 * DELAY + Duration::from_millis(200), "{took:?}");
            let report = tunnel.stop().expect("a report");
            assert!(report.down.delivered.bytes > TRANSFER as u64, "{report:?}");
            assert_eq!((report.unsent, report.refused, report.missed), (0, 0, 0));
            let flows = 3 + u64::from(report.foreign > 0);
            assert!(report.clients >= 3, "{flows} flows: {report:?}");
            assert!(!is_here(network.host().0), "the device was removed");
        },
    );
}

#[test]
fn dropped_packets_are_counted_and_do_not_arrive() {
    alone(
        "tunnel::tests::dropped_packets_are_counted_and_do_not_arrive",
        || {
            let mut plan = plan();
            plan.sharing = Sharing::Shared;
            plan.up.loss = vec![Loss::Bernoulli(0.5)];
            let Some(tunnel) = device(plan) else {
                return;
            };
            let error = Tunnel::start(Settings::new(Plan::new(
                Config::default(),
                Config::default(),
            )))
            .expect_err("addresses in use");
            assert!(error.to_string().contains("198.18.0.1"), "{error}");
            let server = UdpSocket::bind("0.0.0.0:0").expect("a socket");
            let port = server.local_addr().expect("an address").port();
            let client = UdpSocket::bind("0.0.0.0:0").expect("a socket");
            for number in 0..100_u8 {
                let to = (Network::default().server().0, port);
                client.send_to(&[number], to).expect("sent");
            }
            // Packets that are not dropped arrive 20 ms later, and then no more.
            let silence = Some(Duration::from_secs(1));
            server.set_read_timeout(silence).expect("set");
            let mut arrived = 0;
            while server.recv(&mut [0; 1]).is_ok() {
                arrived += 1;
            }
            let report = tunnel.stop().expect("a report");
            let lost: u64 = DropReason::ALL
                .iter()
                .zip(&report.up.dropped)
                .filter(|(reason, _)| **reason == DropReason::Loss)
                .map(|(_, count)| count.packets)
                .sum();
            assert!((20..80).contains(&lost), "{lost}");
            assert_eq!(arrived + lost, 100);
            assert_eq!(report.clients, 1, "one path, one client");
        },
    );
}

#[test]
fn ce_marks_of_the_path_arrive() {
    alone("tunnel::tests::ce_marks_of_the_path_arrive", || {
        let mut plan = plan();
        // A packet takes 10 ms; packets behind a queued one are marked.
        plan.up.capacity = Capacity::Constant(Rate::from_bits_per_second(1_000_000));
        plan.up.queue = Queue::DropTail(DropTail {
            limit: Limit::Unlimited,
            mark_above: Some(Limit::Packets(1)),
        });
        let Some(_tunnel) = device(plan) else {
            return;
        };
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let [server, client] =
            [(); 2].map(|()| Socket::bind(any, &Options::default()).expect("a socket"));
        let remote = (Network::default().server().0, server.local_address().port()).into();
        for _ in 0..5 {
            let transmit = Transmit {
                remote,
                local: None,
                ecn: Ecn::Ect0,
                bytes: &[0; 1222],
                segment_len: 1222,
            };
            client.send(&transmit).expect("sent");
        }
        let mut poller = Poller::new().expect("a poller");
        poller.add(&server, 0).expect("added");
        let (mut marks, mut batch) = (Vec::new(), Batch::new());
        while marks.len() < 5 {
            let mut ready = Vec::new();
            poller.wait(PATIENCE, &mut ready).expect("waited");
            assert!(!ready.is_empty(), "no packet arrived: {marks:?}");
            server.receive(&mut batch).expect("received");
            for received in batch.received() {
                let datagrams = received.bytes.chunks(received.segment_len);
                marks.extend(datagrams.map(|_| received.ecn));
            }
        }
        assert!(marks.starts_with(&[Ecn::Ect0, Ecn::Ect0]), "{marks:?}");
        assert!(marks.ends_with(&[Ecn::Ce]), "{marks:?}");
    });
}

#[test]
fn proc_net_dev_is_parsed() {
    let table = "Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
        lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
        lastbyte0:17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32\n";
    assert_eq!(dropped_in(table, "lastbyte0"), Some(28));
    assert_eq!(dropped_in(table, "lastbyte"), None);
}
