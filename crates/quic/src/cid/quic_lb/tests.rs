use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::{cid::ConnectionIds as _, crypto::reset::ResetKey};

fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hex");
    (0..text.len()).step_by(2).map(digit).collect()
}

fn layout(key: Option<&str>, server_id_len: usize, nonce_len: usize) -> QuicLb {
    QuicLb::new(QuicLbConfig {
        rotation: 3,
        server_id_len,
        nonce_len,
        key: key.map(|key| hex(key).try_into().expect("16 bytes")),
        encodes_length: true,
    })
    .expect("a layout")
}

/// Key, server ID, nonce, and the bytes after octet 0.
const VECTORS: [(&str, &str, &str, &str); 5] = [
    (KEY, "ed793a", "ee080dbf", "20b1d07b359d3c"),
    (
        KEY,
        "ed793a51d49b8f5fab65",
        "ee080dbf48",
        "cc381bc74cb4fbad2823a3d1f8fed2",
    ),
    (
        KEY,
        "ed793a51d49b8f5f",
        "ee080dbf48c0d1e5",
        "4dd2d05a7b0de9b2b9907afb5ecf8cc3",
    ),
    (
        KEY,
        "ed793a51d49b8f5fab",
        "ee080dbf48c0d1e55d",
        "5779c9cc86beb3a3a4a3ca96fce4bfe0cdbc",
    ),
    (
        "fdf726a9893ec05c0632d3956680baf0",
        "31441a",
        "9c69c275",
        "67947d29be054a",
    ),
];
const KEY: &str = "8f95f09245765f80256934e50c66207f";

/// Of the draft's Appendix B.2, and the worked example of §5.4.2.3. Octet 0 of the last of B.2 is printed as 0x12, where
/// rotation 3 and a length of 18 make 0x72.
#[test]
fn quic_lb_b_2_encrypted_vectors() {
    for (key, server_id, nonce, expected) in VECTORS {
        let (server_id, nonce, expected) = (hex(server_id), hex(nonce), hex(expected));
        let layout = layout(Some(key), server_id.len(), nonce.len());
        let id = layout.encode(&server_id, &nonce, 0).expect("fits");
        assert_eq!(id.as_slice()[1..], expected);
        assert_eq!(id.as_slice()[0], 0x60 | expected.len() as u8);
        let decoded = layout.decode(id.as_slice()).expect("ours");
        assert_eq!(
            (
                decoded.server_id(),
                &decoded.plaintext[decoded.server_id_len..decoded.len]
            ),
            (&server_id[..], &nonce[..])
        );
    }
}

#[test]
fn quic_lb_b_1_without_a_key_ids_are_plaintext() {
    let layout = layout(None, 3, 4);
    let id = layout.encode(&hex("ed793a"), &hex("ee080dbf"), 0);
    assert_eq!(
        id.expect("fits").as_slice(),
        hex("67ed793aee080dbf").as_slice()
    );
}

#[test]
fn quic_lb_3_1_ids_of_another_configuration_do_not_decode() {
    let layout = layout(Some(KEY), 3, 4);
    let id = layout.encode(&[1, 2, 3], &[4; 4], 0).expect("fits");
    let changed = |mask: u8| {
        let mut bytes = id.as_slice().to_vec();
        bytes[0] ^= mask;
        layout.decode(&bytes)
    };
    assert!(changed(0).is_some());
    assert!(changed(0x20).is_none(), "another rotation");
    assert!(changed(0x80).is_none(), "no configuration");
    assert!(changed(0x01).is_none(), "another length");
    assert!(layout.decode(&id.as_slice()[..7]).is_none(), "too short");
    let mut longer = id.as_slice().to_vec();
    longer.extend([0; 30]);
    assert_eq!(layout.decode(&longer), layout.decode(id.as_slice()));
}

#[test]
fn invalid_configurations_are_rejected() {
    let config = |rotation, server_id_len, nonce_len| {
        QuicLb::new(QuicLbConfig {
            rotation,
            server_id_len,
            nonce_len,
            key: None,
            encodes_length: false,
        })
        .map(|_| ())
    };
    assert_eq!(config(7, 3, 4), Err(QuicLbError::Rotation));
    for (server_id_len, nonce_len) in [(0, 8), (3, 3), (15, 5), (1, 19), (usize::MAX, 4)] {
        assert_eq!(
            config(0, server_id_len, nonce_len),
            Err(QuicLbError::Lengths)
        );
    }
    assert_eq!(config(6, 1, 4), Ok(()));
    assert_eq!(config(0, 15, 4), Ok(()));
    assert_eq!(config(0, 1, 18), Ok(()));
}

fn ids(key: Option<[u8; 16]>, worker: u8) -> QuicLbIds {
    let config = QuicLbConfig {
        rotation: 2,
        server_id_len: 5,
        nonce_len: 11,
        key,
        encodes_length: false,
    };
    QuicLbIds::new(config, &[10, 20, 30, 40, worker], [9; 32]).expect("possible")
}

#[test]
fn ids_encode_server_and_worker() {
    let reset_key = Arc::new(ResetKey::new(&[1; 32]));
    for key in [None, Some([5; 16])] {
        let (here, there) = (ids(key, 3), ids(key, 4));
        let mut generator = here.generator(&reset_key, [1; 32]);
        for _ in 0..100 {
            let id = generator.generate();
            assert_eq!(id.len(), here.id_len());
            let decoded = here.layout().decode(id.as_slice()).expect("ours");
            assert_eq!(decoded.server_id(), [10, 20, 30, 40, 3]);
            assert!(here.is_own(id.as_slice()) && !there.is_own(id.as_slice()));
            if key.is_none() {
                // What a socket filter reads.
                assert_eq!(id.as_slice()[5], 3);
            }
        }
    }
}

#[test]
fn quic_lb_5_4_1_nonces_never_repeat_not_even_short_ones_of_many_connections() {
    let reset_key = Arc::new(ResetKey::new(&[1; 32]));
    for key in [None, Some([5; 16])] {
        let config = QuicLbConfig {
            rotation: 0,
            server_id_len: 1,
            nonce_len: 4,
            key,
            encodes_length: true,
        };
        let ids = QuicLbIds::new(config, &[1], [3; 32]).expect("possible");
        let mut made = Vec::new();
        for connection in 0..100 {
            let mut generator = ids.generator(&reset_key, [connection; 32]);
            made.extend((0..1000).map(|_| generator.generate().as_slice().to_vec()));
        }
        // Of 10^5 random nonces of 32 bits one would probably have repeated.
        made.sort_unstable();
        made.dedup();
        assert_eq!(made.len(), 100_000);
    }
}

/// Katran's `parse_quic`: the two first bits are a version, and bytes 1 to 3 (version 2) or 1 to 4 (version 3) the server.
/// docs/fleet.md has a layout for each.
#[test]
fn katran_reads_the_server_of_plaintext_ids() {
    let reset_key = Arc::new(ResetKey::new(&[1; 32]));
    for (rotation, version, server_id) in [(4, 2, &[1, 2, 3][..]), (6, 3, &[1, 2, 3, 4])] {
        let config = QuicLbConfig {
            rotation,
            server_id_len: server_id.len(),
            nonce_len: 12,
            key: None,
            encodes_length: false,
        };
        let ids = QuicLbIds::for_worker(config, server_id, (1, 4), [3; 32]).expect("possible");
        let id = ids.generator(&reset_key, [1; 32]).generate();
        assert_eq!(id.as_slice()[0] >> 6, version);
        assert_eq!(&id.as_slice()[1..=server_id.len()], server_id);
    }
}

#[test]
fn octet_0_leads_to_the_worker_and_is_random_otherwise() {
    let reset_key = Arc::new(ResetKey::new(&[1; 32]));
    let of = |rotation, worker, encodes_length| {
        let config = QuicLbConfig {
            rotation,
            server_id_len: 2,
            nonce_len: 14,
            key: Some([5; 16]),
            encodes_length,
        };
        QuicLbIds::for_worker(config, &[0, 9], worker, [3; 32])
    };
    for rotation in 0..7 {
        for workers in [1, 2, 3, 7, 31, 32] {
            let all: Vec<QuicLbIds> = (0..workers)
                .map(|worker| of(rotation, (worker, workers), false).expect("possible"))
                .collect();
            for (worker, ids) in all.iter().enumerate() {
                let mut generator = ids.generator(&reset_key, [1; 32]);
                let mut octets = std::collections::BTreeSet::new();
                for _ in 0..200 {
                    let id = generator.generate();
                    let octet = id.as_slice()[0];
                    octets.insert(octet);
                    assert_eq!(octet >> 5, rotation);
                    assert_eq!(usize::from(octet % workers), worker);
                    let owners = all.iter().filter(|ids| ids.is_own(id.as_slice()));
                    assert_eq!(owners.count(), 1);
                    assert!(ids.is_own(id.as_slice()));
                }
                assert!(octets.len() >= usize::from(32 / workers), "{workers}");
            }
        }
    }
    for (worker, encodes_length) in [((0, 33), false), ((2, 2), false), ((0, 2), true)] {
        assert_eq!(
            of(0, worker, encodes_length).err(),
            Some(QuicLbError::Worker)
        );
    }
    assert!(of(0, (0, 1), true).is_ok());
}

#[test]
fn quic_lb_5_2_plaintext_nonces_are_random() {
    let reset_key = Arc::new(ResetKey::new(&[1; 32]));
    let mut generator = ids(None, 1).generator(&reset_key, [1; 32]);
    let [first, second] = [(); 2].map(|()| generator.generate());
    let differing = first.as_slice()[6..]
        .iter()
        .zip(&second.as_slice()[6..])
        .filter(|(a, b)| a != b)
        .count();
    assert!(differing >= 8, "{first} {second}");
}

proptest! {
    #[test]
    fn decryption_inverts_encryption(
        key: [u8; 16],
        plaintext in proptest::collection::vec(any::<u8>(), 2..=28),
    ) {
        let cipher = Cipher::new(&key).expect("a key");
        let mut bytes = plaintext.clone();
        cipher.encrypt(&mut bytes).expect("a length");
        cipher.decrypt(&mut bytes).expect("a length");
        prop_assert_eq!(bytes, plaintext);
    }

    #[test]
    fn any_bytes_decode_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        for key in [None, Some(KEY)] {
            let _ = layout(key, 5, 11).decode(&bytes);
            let _ = layout(key, 1, 4).decode(&bytes);
        }
    }
}
