use proptest::prelude::*;

use super::*;

fn layout(rotation: u8, server_id_len: usize) -> QuicLbConfig {
    QuicLbConfig {
        rotation,
        server_id_len,
        nonce_len: 8,
        key: None,
        encodes_length: false,
    }
}

fn fleet() -> Fleet {
    let address = "127.0.0.1:443".parse().expect("an address");
    Fleet {
        ids: vec![layout(0, 1), layout(3, 2)],
        servers: vec![Server::new(1, address), Server::new(2, address)],
        hash_key: [0; 16],
        retry: None,
    }
}

#[test]
fn each_fault_has_its_error() {
    let error = |change: fn(&mut Fleet)| {
        let mut fleet = fleet();
        change(&mut fleet);
        fleet.validate().expect_err("invalid")
    };
    assert!(fleet().validate().is_ok());
    assert_eq!(error(|fleet| fleet.ids.clear()), FleetError::NoIds);
    assert_eq!(
        error(|fleet| fleet.servers.clear()),
        FleetError::ServerCount(0)
    );
    assert_eq!(
        error(|fleet| fleet.ids[1].rotation = 0),
        FleetError::SameRotation(0)
    );
    assert_eq!(
        error(|fleet| fleet.ids[1].rotation = 7),
        FleetError::Ids(7, QuicLbError::Rotation)
    );
    assert_eq!(
        error(|fleet| fleet.ids[1].nonce_len = 3),
        FleetError::Ids(3, QuicLbError::Lengths)
    );
    assert_eq!(
        error(|fleet| fleet.servers[1].id = 1),
        FleetError::SameServer(1)
    );
    // Also if others are between them.
    assert_eq!(
        error(|fleet| fleet.servers.push(fleet.servers[0].clone())),
        FleetError::SameServer(1)
    );
    assert_eq!(
        error(|fleet| fleet.servers[1].id = 256),
        FleetError::ServerIdTooLarge(256, 0)
    );
    assert_eq!(
        error(|fleet| fleet.servers[1].weight = 1001),
        FleetError::Weight(2, 1001)
    );
    for (keys, balancers, expected) in [
        (0, 1, FleetError::RetryKeys(0)),
        (5, 1, FleetError::RetryKeys(5)),
        (1, 0, FleetError::Balancers(0)),
        (1, 65, FleetError::Balancers(65)),
    ] {
        let mut fleet = fleet();
        fleet.retry = Some(retry(keys, balancers));
        assert_eq!(fleet.validate().err(), Some(expected));
    }
}

fn retry(keys: usize, balancers: usize) -> RetryBalancers {
    RetryBalancers {
        secrets: vec![[1; 32]; keys],
        addresses: vec![std::net::Ipv4Addr::LOCALHOST.into(); balancers],
    }
}

#[test]
fn what_is_at_its_limit_is_valid() {
    let mut fleet = fleet();
    fleet.ids = vec![layout(0, 2)];
    fleet.servers = (0..SERVERS_MAX as u64)
        .map(|id| Server::new(id, SocketAddr::from(([127, 0, 0, 1], 443))))
        .collect();
    fleet.servers[0].weight = WEIGHT_MAX;
    fleet.retry = Some(retry(RETRY_KEYS_MAX, BALANCERS_MAX));
    assert!(fleet.validate().is_ok());
    fleet
        .servers
        .push(Server::new(5000, fleet.servers[0].address));
    assert_eq!(
        fleet.validate().err(),
        Some(FleetError::ServerCount(SERVERS_MAX + 1))
    );
}

#[test]
fn errors_name_the_value_and_what_is_expected() {
    for (error, expected) in [
        (FleetError::ServerCount(0), "0 servers (expected 1 to 1024)"),
        (
            FleetError::Weight(2, 1001),
            "server 2: invalid weight 1001 (expected 0 to 1000)",
        ),
        (
            FleetError::RetryKeys(5),
            "5 keys of Retry (expected 1 to 4)",
        ),
        (FleetError::Balancers(65), "65 balancers (expected 1 to 64)"),
    ] {
        assert_eq!(error.to_string(), expected);
    }
}

proptest! {
    #[test]
    fn server_ids_survive_their_encoding(id: u64, len in 1_usize..=15) {
        match server_id_bytes(id, len) {
            Some(bytes) => {
                prop_assert_eq!(bytes.len(), len);
                prop_assert_eq!(server_id_number(&bytes), Some(id));
            }
            None => prop_assert!(len < 8 && id >> (8 * len) != 0),
        }
    }
}
