use lastbyte_quic::cid::QuicLbConfig;
use proptest::prelude::*;

use super::*;
use crate::fleet::server_id_bytes;

fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hex");
    (0..text.len()).step_by(2).map(digit).collect()
}

fn layout(rotation: u8, server_id_len: usize, nonce_len: usize, key: Option<&str>) -> QuicLbConfig {
    QuicLbConfig {
        rotation,
        server_id_len,
        nonce_len,
        key: key.map(|key| hex(key).try_into().expect("16 bytes")),
        encodes_length: false,
    }
}

fn server(id: u64, weight: u32) -> Server {
    Server {
        weight,
        ..Server::new(id, SocketAddr::from(([10, 0, 0, 1], id as u16)))
    }
}

fn fleet(ids: Vec<QuicLbConfig>, servers: Vec<Server>) -> Fleet {
    Fleet {
        ids,
        servers,
        hash_key: [3; 16],
        retry: None,
    }
}

fn plain(servers: Vec<Server>) -> Fleet {
    fleet(vec![layout(0, 2, 8, None)], servers)
}

fn table(fleet: &Fleet) -> Table {
    Table::new(fleet, |_| true).expect("valid")
}

fn short(id: &[u8]) -> Vec<u8> {
    [&[0x40], id, &[0; 20]].concat()
}

fn long(destination: &[u8]) -> Vec<u8> {
    let mut packet = vec![0xc0, 0, 0, 0, 1, destination.len() as u8];
    packet.extend_from_slice(destination);
    packet.extend_from_slice(&[0; 30]);
    packet
}

const KEY: &str = "8f95f09245765f80256934e50c66207f";

/// Server IDs and connection IDs of the draft's Appendix B.2 (four passes and single pass). The server ID of the third
/// has 8 bytes; those of the others exceed 64 bits or are shorter.
#[test]
fn quic_lb_b_2_vectors_route_to_their_server() {
    for (server_id_len, nonce_len, server_id, encoded) in [
        (3, 4, 0xed_793a, "20b1d07b359d3c"),
        (
            8,
            8,
            0xed79_3a51_d49b_8f5f,
            "4dd2d05a7b0de9b2b9907afb5ecf8cc3",
        ),
    ] {
        let ids = vec![layout(3, server_id_len, nonce_len, Some(KEY))];
        let table = table(&fleet(ids, vec![server(1, 1), server(server_id, 1)]));
        let id = [&[0x60][..], &hex(encoded)].concat();
        assert_eq!(table.route(&short(&id)), Some(Route::ConnectionId(1)));
        assert_eq!(table.route(&long(&id)), Some(Route::ConnectionId(1)));
        let mut other = id.clone();
        other[4] ^= 1;
        assert!(matches!(
            table.route(&long(&other)),
            Some(Route::Hash { .. })
        ));
    }
}

#[test]
fn quic_lb_b_1_plaintext_routes_to_its_server() {
    let ids = vec![layout(2, 1, 4, None)];
    let table = table(&fleet(ids, vec![server(0xc0, 1), server(0xed, 1)]));
    let id = hex("45ed793a81");
    assert_eq!(table.route(&short(&id)), Some(Route::ConnectionId(1)));
}

/// §3.1: the three first bits select the configuration, and all configurations are valid at the same time.
#[test]
fn quic_lb_3_1_rotation_selects_the_configuration() {
    let configs = vec![
        layout(0, 2, 8, None),
        layout(1, 2, 14, Some(KEY)),
        layout(4, 3, 6, Some("fdf726a9893ec05c0632d3956680baf0")),
    ];
    let table = table(&fleet(configs.clone(), vec![server(5, 1), server(600, 1)]));
    for config in &configs {
        let codec = QuicLb::new(config.clone()).expect("valid");
        for (index, id) in [5, 600].into_iter().enumerate() {
            let server_id = server_id_bytes(id, config.server_id_len).expect("fits");
            let mut id = codec
                .encode(&server_id, &vec![9; config.nonce_len], 7)
                .expect("lengths")
                .as_slice()
                .to_vec();
            assert_eq!(table.by_connection_id(&id), Some(index));
            // 0b111 is never routable, and 6 is not configured.
            for rotation in [6, 7] {
                id[0] = rotation << 5;
                assert_eq!(table.by_connection_id(&id), None);
            }
        }
    }
}

#[test]
fn quic_lb_4_1_unroutable_packets_are_hashed() {
    let table = table(&plain(vec![server(1, 1)]));
    let unknown_server = hex("00000912345678aabbcc");
    assert_eq!(
        table.route(&short(&unknown_server)),
        Some(Route::Hash {
            is_long: false,
            destination: &unknown_server[..8]
        })
    );
    // Too short for the configuration, but valid as a client's choice.
    let packet = long(&[0, 0, 1, 9]);
    assert!(matches!(
        table.route(&packet),
        Some(Route::Hash { is_long: true, .. })
    ));
    assert!(matches!(table.route(&long(&[])), Some(Route::Hash { .. })));
    for too_short in [&[][..], &[0x40], &[0x40, 0, 0], &[0xc0, 0, 0, 0, 1, 20, 1]] {
        assert_eq!(table.route(too_short), None);
    }
}

#[test]
fn drained_and_unhealthy_servers_keep_their_connections_and_get_no_new_ones() {
    let mut fleet = plain(vec![server(1, 1), server(2, 1), server(3, 1)]);
    fleet.servers[0].drain = true;
    let table = Table::new(&fleet, |server| server.id != 2).expect("valid");
    assert_eq!([0, 1, 2].map(|index| table.share(index)), [0, 0, SLOTS]);
    for (index, id) in [1, 2, 3].into_iter().enumerate() {
        let id = [&[0, 0, id][..], &[7; 8]].concat();
        assert_eq!(table.by_connection_id(&id), Some(index));
    }
}

#[test]
fn if_no_server_is_healthy_all_are_used_except_the_drained() {
    let mut fleet = plain(vec![server(1, 1), server(2, 1)]);
    fleet.servers[0].drain = true;
    let table = Table::new(&fleet, |_| false).expect("valid");
    assert_eq!([table.share(0), table.share(1)], [0, SLOTS]);
    fleet.servers[1].weight = 0;
    let table = Table::new(&fleet, |_| true).expect("valid");
    let (client, local) = (client(1), client(2));
    assert_eq!(table.by_addresses(client, local), None);
}

fn client(number: u32) -> SocketAddr {
    let [a, b, c, d] = number.to_be_bytes();
    SocketAddr::from(([a, b, c, d], 4000 + (number % 1000) as u16))
}

const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 443);

#[test]
fn shares_are_proportional_to_weights() {
    let table = table(&plain(vec![server(1, 1), server(2, 2), server(3, 5)]));
    for (index, expected) in [0.125, 0.25, 0.625].into_iter().enumerate() {
        let share = table.share(index) as f64 / SLOTS as f64;
        assert!((share - expected).abs() < 0.01, "{index}: {share}");
    }
    // So are the shares of clients.
    let third =
        (0..20_000).filter(|number| table.by_addresses(client(number * 7919), LOCAL) == Some(2));
    let share = third.count() as f64 / 20_000.0;
    assert!((share - 0.625).abs() < 0.02, "{share}");
}

#[test]
fn another_key_or_local_address_makes_other_choices() {
    let mut fleet = plain(vec![server(1, 1), server(2, 1)]);
    let first = table(&fleet);
    fleet.hash_key[0] ^= 1;
    let second = table(&fleet);
    let other = SocketAddr::new(LOCAL.ip(), 444);
    let differs = |a: &dyn Fn(u32) -> Option<usize>, b: &dyn Fn(u32) -> Option<usize>| {
        (0..1000).filter(|number| a(*number) != b(*number)).count()
    };
    let original = |number| first.by_addresses(client(number), LOCAL);
    let by_key = differs(&original, &|number| {
        second.by_addresses(client(number), LOCAL)
    });
    let by_local = differs(&original, &|number| {
        first.by_addresses(client(number), other)
    });
    assert!((400..600).contains(&by_key), "{by_key}");
    assert!((400..600).contains(&by_local), "{by_local}");
}

#[test]
fn only_addresses_of_servers_are_known() {
    let table = table(&plain(vec![server(1, 1), server(2, 1)]));
    assert!(table.has_address(SocketAddr::from(([10, 0, 0, 1], 2))));
    assert!(!table.has_address(SocketAddr::from(([10, 0, 0, 1], 3))));
}

/// The choice of the consistent hash without a table: scores all servers for a slot.
fn naive(fleet: &Fleet, client: SocketAddr, local: SocketAddr) -> Option<u64> {
    let ip = |address: SocketAddr| match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    let bytes = [
        &ip(client)[..],
        &client.port().to_be_bytes(),
        &ip(local),
        &local.port().to_be_bytes(),
    ]
    .concat();
    let slot = SipHash::from_bytes(&fleet.hash_key).hash_2_4(&bytes) % 65_536;
    let score = |server: &Server| {
        let bytes = [server.id.to_be_bytes(), slot.to_be_bytes()].concat();
        let uniform = ((SipHash::from_bytes(&fleet.hash_key).hash_2_4(&bytes) >> 11) as f64 + 0.5)
            / 2_f64.powi(53);
        -libm::log(uniform) / f64::from(server.weight)
    };
    let active = fleet.servers.iter().filter(|server| server.weight > 0);
    active
        .min_by(|a, b| score(a).total_cmp(&score(b)))
        .map(|server| server.id)
}

fn servers() -> impl Strategy<Value = Vec<Server>> {
    proptest::collection::btree_map(0_u64..1000, 0_u32..=4, 2..6).prop_map(|all| {
        all.into_iter()
            .map(|(id, weight)| server(id, weight))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_table_agrees_with_scoring_all_servers(servers in servers(), seed: u32) {
        let fleet = plain(servers);
        let table = table(&fleet);
        for number in 0..200 {
            let client = client(seed.wrapping_add(number * 977));
            let chosen = table.by_addresses(client, LOCAL);
            let chosen = chosen.and_then(|index| table.server(index)).map(|server| server.id);
            prop_assert_eq!(chosen, naive(&fleet, client, LOCAL));
        }
    }

    /// Exactly, not only on average.
    #[test]
    fn removing_a_server_moves_only_its_clients(servers in servers(), at: prop::sample::Index) {
        let before = plain(servers);
        let mut after = before.clone();
        let removed = after.servers.remove(at.index(before.servers.len())).id;
        let id = |table: &Table, number| {
            let index = table.by_addresses(client(number), LOCAL)?;
            table.server(index).map(|server| server.id)
        };
        let tables = [&before, &after].map(table);
        for number in 0..2000 {
            let [old, new] = [0, 1].map(|at| id(&tables[at], number * 31));
            if old != Some(removed) {
                prop_assert_eq!(old, new);
            }
        }
    }

    #[test]
    fn packets_of_the_same_destination_have_the_same_route(
        id in proptest::collection::vec(any::<u8>(), 11),
        flip in 0_usize..24,
        first: u8,
    ) {
        let table = table(&plain(vec![server(1, 1), server(0x0203, 1)]));
        let one = short(&id);
        let mut other = one.clone();
        other[0] = first;
        other[flip] ^= 1;
        let expected = id[0] >> 5 == 0 && other[0] & 0x80 == 0 && other[1..12] == one[1..12];
        prop_assert_eq!(table.is_same_destination(&one, &other), expected);
        if expected {
            prop_assert_eq!(table.route(&one), table.route(&other));
        }
    }

    #[test]
    fn any_bytes_are_routed_or_dropped(packet in proptest::collection::vec(any::<u8>(), 0..80)) {
        let ids = vec![layout(0, 1, 4, None), layout(1, 8, 8, Some(KEY)), layout(5, 9, 9, Some(KEY))];
        let table = table(&fleet(ids, vec![server(1, 1), server(2, 1)]));
        if let Some(Route::ConnectionId(index)) = table.route(&packet) {
            prop_assert!(index < 2);
        }
    }
}
