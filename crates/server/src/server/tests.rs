use std::{collections::BTreeSet, iter};

use lastbyte_quic::{
    cid::{ConnectionIdGenerator, ConnectionIds},
    crypto::reset::ResetKey,
};

use super::*;

#[test]
fn rfc9000_10_3_2_resets_outlive_the_process_but_fit_one_server_only() {
    let of_number = |key: &[u8], id| reset_secret(key, Some(id), b"a host");
    let first = of_number(b"a private key", 1);
    assert!(first == of_number(b"a private key", 1), "after a restart");
    assert!(first != of_number(b"a private key", 2), "another server");
    assert!(first != of_number(b"another private key", 1));
    assert!(
        first == reset_secret(b"a private key", Some(1), b"another host"),
        "a number goes with a server wherever it runs"
    );
    let of_host = |host: &[u8]| reset_secret(b"a private key", None, host);
    assert!(of_host(b"a host") == of_host(b"a host"), "after a restart");
    assert!(of_host(b"a host") != of_host(b"b host"), "another server");
    assert!(of_host(b"a host") != of_number(b"a private key", 0));
}

#[test]
fn secrets_are_random() {
    let seeds = [random(), random()].map(|seed| seed.expect("random bytes"));
    assert_ne!(seeds[0], seeds[1]);
    assert!(seeds.iter().all(|seed| *seed != [0; 32]));
}

/// RFC 9000 §10.3.2: with one key for reset tokens no ID may repeat, and the key is the same after a restart.
#[test]
fn connection_ids_have_ten_random_bytes() {
    let ids = |seed| {
        let config = ids_config();
        let ids = QuicLbIds::new(config, &[1, 2], [seed; 32]).expect("IDs");
        let key = Arc::new(ResetKey::new(&[7; 32]));
        let mut generator = ConnectionIds::generator(&ids, &key, [seed; 32]);
        let next = move || ConnectionIdGenerator::generate(&mut *generator);
        iter::repeat_with(next).take(1000)
    };
    let mut nonces: Vec<Vec<u8>> = ids(1)
        .chain(ids(2))
        .map(|id| {
            let (head, nonce) = id.as_slice().split_at(3);
            assert_eq!((&head[1..], nonce.len()), (&[1, 2][..], 10));
            nonce.to_vec()
        })
        .collect();
    // Each byte of it takes most values, so none is a counter or constant.
    for at in 0..10 {
        let values: BTreeSet<u8> = nonces.iter().map(|it| it[at]).collect();
        assert!(values.len() > 200, "byte {at}: {} values", values.len());
    }
    nonces.sort_unstable();
    nonces.dedup();
    assert_eq!(nonces.len(), 2000);
}
