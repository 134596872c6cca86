use lastbyte_udp::Waiter;

use super::*;

const PATH: NetworkPath = NetworkPath {
    local: std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 443),
    remote: std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 5000),
};

const OWNERS: Owners = Owners {
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
fn a_byte_of_the_id_tells_the_owner_in_short_headers() {
    for byte in 0..=255 {
        assert_eq!(OWNERS.of(&short_header(byte)), Some(usize::from(byte) % 3));
        assert_eq!(OWNERS.of(&long_header(byte)), None, "the client's choice");
    }
}

#[test]
fn what_is_too_short_belongs_to_the_one_that_has_it() {
    for len in 0..4 {
        assert_eq!(OWNERS.of(&short_header(1)[..len]), None);
    }
}

#[test]
fn a_parcel_arrives_and_what_does_not_fit_is_counted() {
    let waiters: Vec<Waiter> = (0..3).map(|_| Waiter::new().expect("a waiter")).collect();
    let wakers: Vec<Waker> = waiters.iter().map(Waiter::waker).collect();
    let links = connect(OWNERS, &wakers);
    let (outlets, _) = &links[0];
    let hand = |byte| outlets.hand_over(&PATH, EcnCodepoint::Ce, &short_header(byte));
    assert_eq!(hand(3), Handed::Kept, "its own");
    for _ in 0..QUEUE_MAX {
        assert_eq!(hand(4), Handed::Over);
    }
    assert_eq!(hand(4), Handed::Lost);
    assert_eq!(hand(5), Handed::Over, "to another");
    let (_, inlet) = &links[1];
    let parcel = inlet.next().expect("a parcel");
    assert_eq!((parcel.path, parcel.ecn), (PATH, EcnCodepoint::Ce));
    assert_eq!(parcel.bytes, short_header(4));
    assert_eq!(hand(4), Handed::Over, "there is room again");
    assert_eq!(std::iter::from_fn(|| inlet.next()).count(), QUEUE_MAX);
}
