//! What it costs to protect a packet, beside the bare AEAD, and beside the plain keys of simulators.
//!
//! `cargo bench -p lastbyte-quic`

use std::hint::black_box;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lastbyte_quic::crypto::{Keys, TAG_LEN, initial, plain};
use lastbyte_wire::{
    ConnectionId, Side, Writer,
    packet::{
        DecodeConfig, FinishedPacket, LongHeader, LongKind, Packet, PacketNumber, PacketNumberLen,
        Packets, Version,
    },
};

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
    let payload = size - header.encoded_len() - TAG_LEN;
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

fn bare(criterion: &mut Criterion) {
    let key = UnboundKey::new(&AES_128_GCM, &[1; 16]).expect("16 bytes");
    let key = LessSafeKey::new(key);
    let mut group = criterion.benchmark_group("bare_aes_128_gcm");
    for size in [1200, 1452] {
        group.throughput(Throughput::Bytes(size as u64));
        let mut payload = vec![0; size - 19 - TAG_LEN];
        group.bench_function(BenchmarkId::new("seal", size), |bencher| {
            bencher.iter(|| {
                let nonce = Nonce::assume_unique_for_key([2; 12]);
                let payload = black_box(&mut payload[..]);
                key.seal_in_place_separate_tag(nonce, Aad::from([0; 19]), payload)
                    .expect("a payload is sealed")
            });
        });
    }
    group.finish();
}

fn crypto(criterion: &mut Criterion) {
    protect_and_unprotect(criterion, "aes_128_gcm", |side| {
        initial::keys(side, Version::V1, &connection_id())
    });
    protect_and_unprotect(criterion, "plain", |side| {
        plain::initial_keys(side, Version::V1, &connection_id())
    });
    bare(criterion);
    criterion.bench_function("initial_keys", |bencher| {
        bencher.iter(|| initial::keys(Side::Server, Version::V1, black_box(&connection_id())));
    });
}

criterion_group!(benches, crypto);
criterion_main!(benches);
