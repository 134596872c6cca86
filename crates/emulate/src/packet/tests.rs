use proptest::prelude::*;

use super::*;

/// A straightforward implementation of the Internet checksum (RFC 1071).
fn checksum(parts: &[&[u8]]) -> u16 {
    let bytes: Vec<u8> = parts.concat();
    let mut sum: u64 = 0;
    for pair in bytes.chunks(2) {
        sum += u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Builds a TCP, UDP or ICMP packet between two addresses with valid checksums.
fn packet(addresses: [&[u8]; 2], protocol: u8, ports: [u16; 2], ecn: u8, data: &[u8]) -> Vec<u8> {
    let (header, sum_at): (Vec<u8>, usize) = match protocol {
        TCP => (vec![0; 20], 16),
        UDP => (vec![0; 8], 6),
        _ => (vec![0; 8], 2),
    };
    let mut payload = header;
    if matches!(protocol, TCP | UDP) {
        payload[..2].copy_from_slice(&ports[0].to_be_bytes());
        payload[2..4].copy_from_slice(&ports[1].to_be_bytes());
    } else {
        payload[0] = if protocol == ICMP { 8 } else { 128 };
        payload[4..6].copy_from_slice(&ports[0].to_be_bytes());
    }
    payload.extend_from_slice(data);
    let sum = payload_sum(addresses, protocol, &payload);
    payload[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
    ip_packet(addresses, protocol, ecn, &payload)
}

/// The checksum of the payload, including the pseudo-header if the protocol has one.
fn payload_sum(addresses: [&[u8]; 2], protocol: u8, payload: &[u8]) -> u16 {
    let len = (payload.len() as u32).to_be_bytes();
    match protocol {
        ICMP => checksum(&[payload]),
        _ => checksum(&[
            addresses[0],
            addresses[1],
            &len,
            &[0, 0, 0, protocol],
            payload,
        ]),
    }
}

fn ip_packet(addresses: [&[u8]; 2], protocol: u8, ecn: u8, payload: &[u8]) -> Vec<u8> {
    let mut whole;
    if addresses[0].len() == 4 {
        whole = vec![
            0x45,
            0xb8 | ecn,
            0,
            0,
            0x12,
            0x34,
            0x40,
            0,
            64,
            protocol,
            0,
            0,
        ];
        whole[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        whole.extend_from_slice(addresses[0]);
        whole.extend_from_slice(addresses[1]);
        let sum = checksum(&[&whole]);
        whole[10..12].copy_from_slice(&sum.to_be_bytes());
    } else {
        whole = vec![0x6b, 0x85 | ecn << 4, 0x43, 0x21, 0, 0, protocol, 64];
        whole[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
        whole.extend_from_slice(addresses[0]);
        whole.extend_from_slice(addresses[1]);
    }
    whole.extend_from_slice(payload);
    whole
}

/// Whether all checksums are valid.
fn has_valid_checksums(packet: &[u8]) -> bool {
    let v4 = packet[0] >> 4 == 4;
    let (header, protocol) = if v4 { (20, packet[9]) } else { (40, packet[6]) };
    let half = (header - if v4 { 12 } else { 8 }) / 2;
    let (source, destination) = packet[header - 2 * half..header].split_at(half);
    (!v4 || checksum(&[&packet[..20]]) == 0)
        && payload_sum([source, destination], protocol, &packet[header..]) == 0
}

/// The addresses of a network as bytes: host, server, client.
fn addresses_of(network: &Network, is_v6: bool) -> [Vec<u8>; 3] {
    let (host, server, client) = (network.host(), network.server(), network.client());
    [host, server, client].map(|(v4, v6)| {
        if is_v6 {
            v6.octets().to_vec()
        } else {
            v4.octets().to_vec()
        }
    })
}

fn any_network() -> impl Strategy<Value = Network> {
    (1_u8..=223, any::<u8>()).prop_filter_map("not loopback", |(one, two)| {
        Network::new(Ipv4Addr::new(one, two & !1, 0, 0)).ok()
    })
}

const MARKS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

proptest! {
    #[test]
    fn any_packet_keeps_valid_checksums_when_translated(
        network in any_network(),
        is_v6 in any::<bool>(),
        is_up in any::<bool>(),
        kind in 0_usize..3,
        ports in any::<[u16; 2]>(),
        marks in (0_usize..4, 0_usize..4),
        data in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let [host, server, client] = addresses_of(&network, is_v6);
        let protocol = [TCP, UDP, if is_v6 { ICMP_V6 } else { ICMP }][kind];
        let (to, from, direction) = if is_up {
            (&server, &client, Direction::Up)
        } else {
            (&client, &server, Direction::Down)
        };
        let mut sent = packet([&host, to], protocol, ports, marks.0 as u8, &data);
        prop_assert!(has_valid_checksums(&sent), "packet built by the test");
        let translated = network.translate(&mut sent).expect("between client and server");
        prop_assert!(has_valid_checksums(&sent), "with other addresses");
        prop_assert_eq!(translated.direction, direction);
        prop_assert_eq!(translated.ecn, MARKS[marks.0]);
        let at = if is_v6 { 8 } else { 12 };
        prop_assert_eq!(&sent[at..at + host.len()], &from[..]);
        prop_assert_eq!(&sent[at + host.len()..at + 2 * host.len()], &host[..]);
        let (near, far) = (ports[0], if kind == 2 { 0 } else { ports[1] });
        let (client, server) = if is_up {
            (near, far)
        } else if kind == 2 {
            (near, 0)
        } else {
            (far, near)
        };
        prop_assert_eq!(translated.flow, Flow { is_v6, protocol, client, server });
        set_ecn(&mut sent, MARKS[marks.1]);
        prop_assert!(has_valid_checksums(&sent), "with other marks");
        let as_marked = packet([from, &host], protocol, ports, marks.1 as u8, &data);
        let mut as_sent = sent.clone();
        // Ones' complement has two representations of zero, both of which are valid.
        if !is_v6 && checksum(&[&sent[..10], &sent[12..20]]) == 0 {
            as_sent[10..12].copy_from_slice(&as_marked[10..12]);
        }
        prop_assert_eq!(as_sent, as_marked);
    }

    #[test]
    fn any_icmp_error_quotes_the_packet_before_translation(
        network in any_network(),
        is_v6 in any::<bool>(),
        is_up in any::<bool>(),
        ports in any::<[u16; 2]>(),
        data in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let [host, server, client] = addresses_of(&network, is_v6);
        let (theirs, ours) = if is_up { (&client, &server) } else { (&server, &client) };
        let original = packet([&host, ours], UDP, ports, 0, &data);
        let mut delivered = original.clone();
        let first = network.translate(&mut delivered).expect("between client and server");
        // The receiver answers that the port is unreachable.
        let mut error = vec![if is_v6 { 1 } else { 3 }, if is_v6 { 4 } else { 3 }, 0, 0, 0, 0, 0, 0];
        error.extend_from_slice(&delivered);
        let icmp = if is_v6 { ICMP_V6 } else { ICMP };
        let sum = payload_sum([&host, theirs], icmp, &error);
        error[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut error = ip_packet([&host, theirs], icmp, 0, &error);
        let back = network.translate(&mut error).expect("between client and server");
        prop_assert!(has_valid_checksums(&error));
        prop_assert_eq!(back.direction, first.direction.opposite());
        prop_assert_eq!(back.flow, first.flow);
        let quoted = if is_v6 { 48 } else { 28 };
        prop_assert_eq!(&error[quoted..], &original[..]);
    }

    #[test]
    fn any_bytes_do_not_panic_and_unrelated_packets_stay_unchanged(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..120),
        version in prop_oneof![Just(0x45_u8), Just(0x46), Just(0x60), any::<u8>()],
        is_ours in any::<bool>(),
    ) {
        let network = Network::default();
        if let Some(first) = bytes.first_mut() {
            *first = version;
        }
        if is_ours && bytes.len() >= 20 {
            bytes[12..16].copy_from_slice(&network.v4.host);
            bytes[16..20].copy_from_slice(&network.v4.client);
        }
        let before = bytes.clone();
        if network.translate(&mut bytes).is_none() {
            prop_assert_eq!(&bytes, &before);
        }
        set_ecn(&mut bytes, Ecn::Ce);
    }
}

proptest! {
    /// There and back through a NAT: the server sees another port after each restart, the client never does.
    #[test]
    fn any_packet_of_a_bound_port_passes_a_nat_with_valid_checksums(
        is_v6 in any::<bool>(),
        is_tcp in any::<bool>(),
        ports in (1_u16.., any::<u16>()).prop_map(<[u16; 2]>::from),
        restarts in 0_u16..3000,
        data in proptest::collection::vec(any::<u8>(), 0..60),
        has_sum in any::<bool>(),
    ) {
        let network = Network::default();
        let [host, server, client] = addresses_of(&network, is_v6);
        let protocol = if is_tcp { TCP } else { UDP };
        let mut nat = Nat::default();
        for _ in 0..restarts {
            nat.restart();
        }
        let at = if is_v6 { 40 } else { 20 };
        let port = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        let mut up = packet([&client, &host], protocol, ports, 0, &data);
        let has_sum = has_sum || is_tcp || is_v6;
        if !has_sum {
            up[at + 6..at + 8].fill(0);
        }
        let delivered = up.clone();
        nat.send(&mut up);
        let seen = port(&up, at);
        prop_assert_eq!(port(&up, at + 2), ports[1]);
        prop_assert!(seen != 0);
        if has_sum {
            prop_assert!(has_valid_checksums(&up));
        } else {
            prop_assert_eq!(port(&up, at + 6), 0);
        }
        if ports[0] >= 1024 {
            prop_assert_eq!(seen == ports[0], restarts == 0);
        }
        // The response, and an ICMP error about what was received.
        let mut down = packet([&host, &client], protocol, [ports[1], seen], 0, &data);
        let translated = network.translate(&mut down).expect("between client and server");
        let mut flow = translated.flow;
        prop_assert!(nat.receive(&mut down, &mut flow));
        prop_assert!(has_valid_checksums(&down));
        prop_assert_eq!((port(&down, at + 2), flow.client), (ports[0], ports[0]));
        let icmp = if is_v6 { ICMP_V6 } else { ICMP };
        let mut error = vec![if is_v6 { 1 } else { 3 }, if is_v6 { 4 } else { 3 }, 0, 0, 0, 0, 0, 0];
        error.extend_from_slice(&up);
        let sum = payload_sum([&host, &client], icmp, &error);
        error[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut error = ip_packet([&host, &client], icmp, 0, &error);
        let back = network.translate(&mut error).expect("between client and server");
        let mut flow = back.flow;
        prop_assert!(nat.receive(&mut error, &mut flow));
        prop_assert!(has_valid_checksums(&error));
        prop_assert_eq!(flow, translated_of(&network, &host, &server, protocol, ports, &data));
        prop_assert_eq!(port(&error, 2 * at + 8), port(&delivered, at));
        // Nothing reaches a client that has not sent since.
        nat.restart();
        let mut late = packet([&host, &client], protocol, [ports[1], seen], 0, &data);
        let before = late.clone();
        prop_assert!(!nat.receive(&mut late, &mut flow));
        prop_assert_eq!(late, before);
    }

    #[test]
    fn a_nat_leaves_other_packets_alone_and_does_not_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..120),
        version in prop_oneof![Just(0x45_u8), Just(0x60), any::<u8>()],
        protocol in prop_oneof![Just(ICMP), Just(ICMP_V6), Just(TCP), Just(UDP), any::<u8>()],
    ) {
        for (place, value) in [(0, version), (if version == 0x45 { 9 } else { 6 }, protocol)] {
            if let Some(byte) = bytes.get_mut(place) {
                *byte = value;
            }
        }
        let mut nat = Nat::default();
        nat.restart();
        let before = bytes.clone();
        nat.send(&mut bytes);
        if !matches!(protocol, TCP | UDP | ICMP | ICMP_V6) {
            prop_assert_eq!(&bytes, &before);
        }
        let mut flow = Flow { is_v6: false, protocol, client: 0, server: 0 };
        nat.receive(&mut bytes, &mut flow);
    }
}

/// The flow of a packet from the client to the server.
fn translated_of(
    network: &Network,
    host: &[u8],
    server: &[u8],
    protocol: u8,
    ports: [u16; 2],
    data: &[u8],
) -> Flow {
    let mut up = packet([host, server], protocol, ports, 0, data);
    let translated = network.translate(&mut up);
    translated.expect("between client and server").flow
}

#[test]
fn fragments_of_a_datagram_belong_to_the_same_flow() {
    let network = Network::default();
    let [host, server, _] = addresses_of(&network, false);
    let whole = packet([&host, &server], UDP, [7, 8], 0, &[0; 100]);
    let flows = [0x2000_u16, 0x2010, 0x0020].map(|fragment| {
        let mut piece = whole.clone();
        piece[6..8].copy_from_slice(&fragment.to_be_bytes());
        network
            .translate(&mut piece)
            .expect("between client and server")
            .flow
    });
    assert_eq!(flows[0], flows[1]);
    assert_eq!(flows[1], flows[2]);
    assert_eq!((flows[0].client, flows[0].server), (0, 0));
}

#[test]
fn invalid_networks_are_rejected() {
    for first in [
        [198, 19, 0, 0],
        [198, 18, 0, 1],
        [127, 0, 0, 0],
        [224, 0, 0, 0],
        [0; 4],
    ] {
        let first = Ipv4Addr::from(first);
        assert_eq!(Network::new(first), Err(NetworkError), "{first}");
    }
    assert_eq!(
        Network::new(Ipv4Addr::new(198, 18, 0, 0)),
        Ok(Network::default())
    );
}
