//! The cost of protecting a packet, beside the plain keys of simulators, and of the AEADs of both libraries.
//!
//! `cargo bench -p lastbyte-quic`
//!
//! `OPENSSL_ia32cap=:~0xc0030000` hides AVX-512 from aws-lc. ring does not use AVX-512.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lastbyte_quic::crypto::{Keys, TAG_LEN, initial, plain};
use lastbyte_wire::{
    ConnectionId, Side, Writer,
    packet::{
        DecodeConfig, FinishedPacket, LongHeader, LongKind, Packet, PacketNumber, PacketNumberLen,
        Packets, Version,
    },
};
use rustls::{Tls13CipherSuite, quic};

const NUMBER: u32 = 1000;

fn connection_id() -> ConnectionId {
    ConnectionId::new(b"lastbyte").expect("8 bytes")
}

/// A packet of this size, before it is sealed.
fn packet(size: usize) -> (Vec<u8>, FinishedPacket) {
    let header = LongHeader {
        kind: LongKind::Handshake,
        version: Version::V1,
        destination: connection_id(),
        source: ConnectionId::EMPTY,
        number: PacketNumber::from(NUMBER).truncate_to(PacketNumberLen::Two),
        fixed_bit: true,
    };
    let mut buffer = vec![0; size];
    let mut writer = Writer::new(&mut buffer);
    let open = header.begin(&mut writer).expect("a header fits");
    let payload = size - writer.position() - TAG_LEN;
    writer.zeros(payload).expect("a payload fits");
    let finished = open.finish(&mut writer, TAG_LEN).expect("a tag fits");
    (buffer, finished)
}

fn protect_and_unprotect(criterion: &mut Criterion, name: &str, keys: fn(Side) -> Keys) {
    let (client, server) = (keys(Side::Client), keys(Side::Server));
    let number = PacketNumber::from(NUMBER);
    let largest = PacketNumber::from(NUMBER - 1);
    let mut group = criterion.benchmark_group(name);
    for size in [1200, 1452] {
        group.throughput(Throughput::Bytes(size as u64));
        let (clear, finished) = packet(size);
        let mut buffer = clear.clone();
        group.bench_function(BenchmarkId::new("protect", size), |bencher| {
            bencher.iter(|| {
                // The first byte says how long the number is: it has to be clear again.
                buffer[0] = clear[0];
                client
                    .seal
                    .protect(number, &finished, black_box(&mut buffer))
            });
        });
        let mut sealed = clear.clone();
        client
            .seal
            .protect(number, &finished, &mut sealed)
            .expect("a packet is sealed");
        group.bench_function(BenchmarkId::new("unprotect", size), |bencher| {
            bencher.iter_batched_ref(
                || sealed.clone(),
                |datagram| {
                    let config = DecodeConfig {
                        connection_id_len: 8,
                        grease_quic_bit: false,
                    };
                    let Some(Ok(Packet::Protected(packet))) = Packets::new(datagram, config).next()
                    else {
                        panic!("it is a packet");
                    };
                    let opened = server.open.unprotect(packet, Some(largest));
                    opened.expect("it is authentic").payload().len()
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// Packet keys of both libraries, without headers.
fn libraries(criterion: &mut Criterion) {
    use rustls::crypto::{aws_lc_rs::cipher_suite as aws_lc, ring::cipher_suite as ring};
    for (suite, by_aws_lc, by_ring) in [
        (
            "aes_128_gcm",
            aws_lc::TLS13_AES_128_GCM_SHA256,
            ring::TLS13_AES_128_GCM_SHA256,
        ),
        (
            "aes_256_gcm",
            aws_lc::TLS13_AES_256_GCM_SHA384,
            ring::TLS13_AES_256_GCM_SHA384,
        ),
        (
            "chacha20_poly1305",
            aws_lc::TLS13_CHACHA20_POLY1305_SHA256,
            ring::TLS13_CHACHA20_POLY1305_SHA256,
        ),
    ] {
        let mut group = criterion.benchmark_group(format!("libraries/{suite}"));
        for len in [16, 64, 1172, 1424, 1452] {
            for (library, suite) in [("aws_lc", by_aws_lc), ("ring", by_ring)] {
                let suite = suite.tls13().and_then(Tls13CipherSuite::quic_suite);
                let keys = |side| {
                    let suite = suite.expect("a suite for QUIC");
                    suite.keys(b"lastbyte", side, quic::Version::V1)
                };
                let seal = keys(rustls::Side::Client).local.packet;
                let open = keys(rustls::Side::Server).remote.packet;
                let mut buffer = vec![0; len + TAG_LEN];
                group.throughput(Throughput::Bytes(len as u64));
                group.bench_function(
                    BenchmarkId::new(format!("seal/{library}"), len),
                    |bencher| {
                        bencher.iter(|| {
                            let plaintext = black_box(&mut buffer[..len]);
                            let tag = seal.encrypt_in_place(7, &[0; 12], plaintext);
                            tag.expect("a payload is sealed")
                        });
                    },
                );
                group.bench_function(
                    BenchmarkId::new(format!("both/{library}"), len),
                    |bencher| {
                        bencher.iter(|| {
                            let plaintext = black_box(&mut buffer[..len]);
                            let tag = seal.encrypt_in_place(7, &[0; 12], plaintext);
                            buffer[len..]
                                .copy_from_slice(tag.expect("a payload is sealed").as_ref());
                            let opened = open.decrypt_in_place(7, &[0; 12], &mut buffer);
                            opened.expect("it is authentic").len()
                        });
                    },
                );
            }
        }
        group.finish();
    }
}

fn crypto(criterion: &mut Criterion) {
    protect_and_unprotect(criterion, "aes_128_gcm", |side| {
        initial::keys(side, Version::V1, &connection_id())
    });
    protect_and_unprotect(criterion, "plain", |side| {
        plain::initial_keys(side, Version::V1, &connection_id())
    });
    libraries(criterion);
    criterion.bench_function("initial_keys", |bencher| {
        bencher.iter(|| initial::keys(Side::Server, Version::V1, black_box(&connection_id())));
    });
}

criterion_group!(benches, crypto);
criterion_main!(benches);
