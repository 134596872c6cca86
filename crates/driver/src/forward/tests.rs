use lastbyte_udp::Waiter;

use super::*;

const PATH: NetworkPath = NetworkPath {
    local: std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 443),
    remote: std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 5000),
};

const STEERING: SteeringRule = SteeringRule {
    byte: 2,
    workers: 3,
};

fn short_header(byte: u8) -> [u8; 12] {
    [0x40, 9, 9, byte, 9, 9, 9, 9, 9, 0, 0, 0]
}

fn long_header(byte: u8) -> [u8; 18] {
    let mut packet = [0; 18];
    packet[0] = 0xc0;
    packet[5] = 8;
    packet[8] = byte;
    packet
}

#[test]
fn a_byte_of_the_connection_id_selects_the_owner_in_short_headers() {
    for byte in 0..=255 {
        assert_eq!(
            STEERING.of(&short_header(byte)),
            Some(usize::from(byte) % 3)
        );
        assert_eq!(STEERING.of(&long_header(byte)), None, "the client's choice");
    }
}

#[test]
fn the_receiving_worker_keeps_datagrams_that_are_too_short() {
    for len in 0..4 {
        assert_eq!(STEERING.of(&short_header(1)[..len]), None);
    }
}

#[test]
fn forwarded_datagrams_arrive_and_overflow_is_counted() {
    let waiters: Vec<Waiter> = (0..3).map(|_| Waiter::new().expect("a waiter")).collect();
    let wakers: Vec<Waker> = waiters.iter().map(Waiter::waker).collect();
    let (links, _) = connect(STEERING, &wakers);
    let (forwarder, _) = &links[0];
    let forward = |byte| forwarder.forward(&PATH, Ecn::Ce, &short_header(byte));
    assert_eq!(forward(3), Outcome::Kept, "its own");
    for _ in 0..QUEUE_MAX {
        assert_eq!(forward(4), Outcome::Queued);
    }
    assert_eq!(forward(4), Outcome::Dropped);
    assert_eq!(forward(5), Outcome::Queued, "to another");
    let (_, queue) = &links[1];
    let datagram = queue.next().expect("a datagram");
    assert_eq!((datagram.path, datagram.ecn), (PATH, Ecn::Ce));
    assert_eq!(datagram.bytes, short_header(4));
    assert_eq!(forward(4), Outcome::Queued, "there is room again");
    assert_eq!(std::iter::from_fn(|| queue.next()).count(), QUEUE_MAX);
}
