#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use std::{
    io::{Read as _, Write as _},
    ptr,
    sync::Arc,
};

use lastbyte_wire::{Side, packet::Version};

use super::*;
use crate::crypto::{
    Keys, TAG_LEN, initial,
    testing::{connection_id, number},
    tls::testing::{SUITES, client_config, identity, provider, server_config},
};

fn keys(aead: AeadProvider, side: Side) -> Keys {
    initial::keys_by(aead, side, Version::V1, &connection_id())
}

#[test]
fn ring_replaces_the_aes_gcm_of_tls_13_and_nothing_else() {
    let aws_lc = AeadProvider::AwsLc.crypto_provider();
    let mixed = AeadProvider::Ring.crypto_provider();
    let names = |provider: &CryptoProvider| -> Vec<_> {
        let suites = provider.cipher_suites.iter();
        suites.map(SupportedCipherSuite::suite).collect()
    };
    assert_eq!(names(&mixed), names(&aws_lc));
    let groups = |provider: &CryptoProvider| -> Vec<_> {
        provider.kx_groups.iter().map(|it| it.name()).collect()
    };
    assert_eq!(groups(&mixed), groups(&aws_lc));
    let at = |provider: &CryptoProvider, suite| {
        let mut suites = provider.cipher_suites.iter();
        suites.find(|it| it.suite() == suite)?.tls13()
    };
    for (base, ring, replaces) in [
        (
            aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
            ring::cipher_suite::TLS13_AES_128_GCM_SHA256,
            true,
        ),
        (
            aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384,
            ring::cipher_suite::TLS13_AES_256_GCM_SHA384,
            true,
        ),
        (
            aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            false,
        ),
    ] {
        let suite = AeadProvider::Ring.suite(base).tls13().unwrap();
        assert_eq!(Some(suite), at(&mixed, base.suite()));
        let (base, ring) = (base.tls13().unwrap(), ring.tls13().unwrap());
        assert!(ptr::addr_eq(suite.hkdf_provider, base.hkdf_provider));
        assert!(ptr::addr_eq(
            suite.common.hash_provider,
            base.common.hash_provider
        ));
        assert_eq!(
            suite.common.confidentiality_limit,
            base.common.confidentiality_limit
        );
        let expected = if replaces { ring } else { base };
        assert!(ptr::addr_eq(suite.aead_alg, expected.aead_alg));
        assert!(ptr::addr_eq(suite.quic.unwrap(), expected.quic.unwrap()));
        assert_eq!(ptr::eq(suite, base), !replaces);
    }
}

#[test]
fn aws_lc_is_the_default_and_replaces_nothing() {
    let aws_lc = aws_lc_rs::default_provider();
    let provider = AeadProvider::default().crypto_provider();
    assert_eq!(provider.cipher_suites.len(), aws_lc.cipher_suites.len());
    for base in &aws_lc.cipher_suites {
        let mut suites = provider.cipher_suites.iter();
        let suite = suites.find(|it| it.suite() == base.suite()).unwrap();
        let (Some(suite), Some(base)) = (suite.tls13(), base.tls13()) else {
            continue;
        };
        assert!(ptr::eq(suite, base));
    }
}

#[test]
fn aes_128_is_the_first_cipher_suite_of_both_libraries() {
    for aead in AeadProvider::ALL {
        let suites = aead.crypto_provider().cipher_suites;
        assert_eq!(
            suites[0].suite(),
            CipherSuite::TLS13_AES_128_GCM_SHA256,
            "{aead}"
        );
    }
}

#[test]
fn both_libraries_seal_the_same_bytes_and_open_each_others() {
    for len in (0..64).chain([1172, 1424, 1452, 9000, 65_000]) {
        let payload: Vec<u8> = (0..len + TAG_LEN).map(|at| (at % 251) as u8).collect();
        let sealed = AeadProvider::ALL.map(|aead| {
            let mut sealed = payload.clone();
            let key = keys(aead, Side::Client).seal.packet;
            key.seal(number(7), b"header", &mut sealed).unwrap();
            sealed
        });
        assert_eq!(sealed[0], sealed[1], "{len} bytes");
        for aead in AeadProvider::ALL {
            let mut opened = sealed[0].clone();
            let key = keys(aead, Side::Server).open.packet;
            assert_eq!(key.open(number(7), b"header", &mut opened), Ok(len));
            assert_eq!(opened[..len], payload[..len]);
            assert!(
                key.open(number(8), b"header", &mut sealed[0].clone())
                    .is_err()
            );
        }
    }
}

#[test]
fn both_libraries_mask_headers_alike() {
    for sample in [[0; 16], [0xff; 16], *b"0123456789abcdef"] {
        let masks =
            AeadProvider::ALL.map(|aead| keys(aead, Side::Client).seal.header.mask(&sample));
        assert_eq!(masks[0], masks[1]);
    }
}

/// Sends `data` from one end of a TLS connection to the other.
fn transfer<F, T>(
    from: &mut rustls::ConnectionCommon<F>,
    to: &mut rustls::ConnectionCommon<T>,
    data: &[u8],
) -> Vec<u8> {
    let mut received = Vec::new();
    // Also of nothing: handshake messages may be pending.
    let mut parts = data.chunks(40_000);
    for part in [parts.next().unwrap_or_default()].into_iter().chain(parts) {
        from.writer().write_all(part).unwrap();
        while from.wants_write() {
            let mut records = Vec::new();
            from.write_tls(&mut records).unwrap();
            let mut records = &records[..];
            while !records.is_empty() {
                to.read_tls(&mut records).unwrap();
                to.process_new_packets().unwrap();
                let _ = to.reader().read_to_end(&mut received);
            }
        }
    }
    received
}

#[test]
fn tls_records_of_both_libraries_carry_data_both_ways() {
    let identity = identity();
    let data: Vec<u8> = (0..100_000).map(|at| (at % 251) as u8).collect();
    for (suite, _) in SUITES {
        for (at_client, at_server) in [
            (AeadProvider::Ring, AeadProvider::Ring),
            (AeadProvider::Ring, AeadProvider::AwsLc),
            (AeadProvider::AwsLc, AeadProvider::Ring),
        ] {
            let config = client_config(provider(&[at_client.suite(suite)]), &identity.roots);
            let name = "localhost".try_into().unwrap();
            let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
            let mut config = server_config(provider(&[at_server.suite(suite)]), &identity);
            config.max_early_data_size = 0;
            let mut server = rustls::ServerConnection::new(Arc::new(config)).unwrap();
            for _ in 0..2 {
                assert_eq!(transfer(&mut client, &mut server, b""), b"");
                assert_eq!(transfer(&mut server, &mut client, b""), b"");
            }
            assert!(!client.is_handshaking() && !server.is_handshaking());
            assert_eq!(transfer(&mut client, &mut server, &data), data);
            assert_eq!(transfer(&mut server, &mut client, &data), data);
        }
    }
}
