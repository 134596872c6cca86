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
    assert_eq!(
        error(|fleet| fleet.servers[1].id = 256),
        FleetError::ServerIdTooLarge(256, 0)
    );
    assert_eq!(
        error(|fleet| fleet.servers[1].weight = 1001),
        FleetError::Weight(2, 1001)
    );
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
