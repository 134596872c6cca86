//! Benchmarks of encoding and decoding on the per-packet paths.

use core::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use lastbyte_wire::{
    ConnectionId, Encode, Reader, Side, VarInt, Writer,
    frame::{AckReport, Crypto, Frame, Frames, LengthField, MaxData, StreamHeader},
    packet::{
        DecodeConfig, Invariant, Packet, PacketBuilder, PacketNumber, PacketNumberLen, PacketType,
        Packets, ShortHeader,
    },
};

const DATAGRAM_LEN: usize = 1452;
const TAG_LEN: usize = 16;

fn connection_id() -> ConnectionId {
    ConnectionId::new(&[7; 8]).unwrap_or_default()
}

fn short_header(destination: &ConnectionId) -> ShortHeader<'_> {
    ShortHeader {
        destination,
        number: PacketNumber::from(123_456).truncate_to(PacketNumberLen::Two),
        spin_bit: false,
        key_phase: false,
        fixed_bit: true,
    }
}

fn stream_header() -> StreamHeader {
    StreamHeader {
        id: VarInt::from_u32(8).into(),
        offset: VarInt::from_u32(1_234_567),
        fin: false,
    }
}

/// Ten ranges of ten packets, with gaps of two.
fn ack_frame(buffer: &mut [u8]) -> &[u8] {
    let ranges = (0..10_u32).rev().map(|range| {
        let start = 100_000 + range * 12;
        PacketNumber::from(start)..=PacketNumber::from(start + 9)
    });
    let report = AckReport {
        ranges,
        delay: VarInt::from_u32(500),
        ecn: None,
    };
    let mut writer = Writer::new(buffer);
    let written = report.encode(&mut writer, usize::MAX, usize::MAX);
    assert_eq!(written, Ok(10));
    let len = writer.position();
    &buffer[..len]
}

fn sending(c: &mut Criterion) {
    let mut buffer = [0; DATAGRAM_LEN];
    let stream_header = stream_header();
    let destination = connection_id();
    let short_header = short_header(&destination);
    c.bench_function("encode STREAM header of 1200 bytes", |b| {
        b.iter(|| {
            let header = black_box(&stream_header);
            let mut writer = Writer::new(black_box(&mut buffer[..1200]));
            let len = header.data_len_max(writer.remaining(), LengthField::Absent);
            header
                .begin(&mut writer, len.unwrap_or(0), LengthField::Absent)
                .map(|data| data.len())
        });
    });
    c.bench_function("encode short header, finish and mask", |b| {
        b.iter(|| {
            let mut writer = Writer::new(black_box(&mut buffer));
            let open: Option<PacketBuilder> = black_box(&short_header).begin(&mut writer).ok();
            let reserved = writer.reserve(1000).is_ok();
            let finished = open.and_then(|open| open.finish(&mut writer, TAG_LEN).ok());
            let masked = finished.and_then(|packet| {
                let sample = packet.sample(writer.written())?;
                packet.mask(writer.written_mut(), [sample[0], 1, 2, 3, 4])
            });
            (reserved, masked)
        });
    });
    c.bench_function("encode ACK, 10 ranges", |b| {
        b.iter(|| ack_frame(black_box(&mut buffer)).len());
    });
}

/// The length in bytes of the STREAM and CRYPTO data, plus one per other frame.
fn data_len(frames: Frames<'_>) -> usize {
    let mut len = 0;
    for frame in frames {
        match frame {
            Ok(Frame::Stream(stream)) => len += stream.data.len(),
            Ok(Frame::Crypto(crypto)) => len += crypto.data.len(),
            Ok(_) => len += 1,
            Err(_) => return 0,
        }
    }
    len
}

fn receiving_frames(c: &mut Criterion) {
    let mut buffer = [0; 256];
    let ack = ack_frame(&mut buffer).to_vec();
    c.bench_function("decode ACK, iterate 10 ranges", |b| {
        b.iter(|| match Frame::decode(&mut Reader::new(black_box(&ack))) {
            Ok(Frame::Ack(ack)) => ack.ranges().map(|range| range.start().get()).sum(),
            _ => 0_u64,
        });
    });

    let mut payload = [0; 1400];
    let mut writer = Writer::new(&mut payload);
    let prepared = MaxData {
        maximum: VarInt::from_u32(1 << 20),
    }
    .encode(&mut writer)
    .and_then(|()| {
        let len = stream_header().data_len_max(writer.remaining(), LengthField::Absent);
        stream_header()
            .begin(&mut writer, len.unwrap_or(0), LengthField::Absent)
            .map(|_| ())
    });
    assert!(prepared.is_ok());
    c.bench_function("iterate frames: MAX_DATA and STREAM", |b| {
        b.iter(|| Frames::new(black_box(&payload), PacketType::OneRtt, Side::Server).map(data_len));
    });

    let mut initial = [0; 1162];
    let hello = Crypto {
        offset: VarInt::ZERO,
        data: &[1; 241],
    };
    assert!(hello.encode(&mut Writer::new(&mut initial)).is_ok());
    c.bench_function("iterate frames: CRYPTO and 917 PADDING", |b| {
        b.iter(|| {
            Frames::new(black_box(&initial), PacketType::Initial, Side::Client).map(data_len)
        });
    });
}

fn receiving_packets(c: &mut Criterion) {
    let mut datagram = [0; DATAGRAM_LEN];
    assert!(
        short_header(&connection_id())
            .begin(&mut Writer::new(&mut datagram))
            .is_ok()
    );
    let config = DecodeConfig {
        connection_id_len: 8,
        grease_quic_bit: true,
    };
    c.bench_function("parse and unmask short header", |b| {
        b.iter(|| {
            let packet = Packets::new(black_box(&mut datagram), config).next();
            let Some(Ok(Packet::Protected(protected))) = packet else {
                return None;
            };
            let unmasked = protected.unmask(black_box([0; 5]));
            Some(unmasked.number().expand(Some(PacketNumber::from(123_455))))
        });
    });
    c.bench_function("find the connection ID of a short header", |b| {
        b.iter(|| {
            Invariant::decode(black_box(&datagram))
                .ok()
                .and_then(|invariant| invariant.destination(8).map(<[u8]>::len))
        });
    });
}

criterion_group!(benches, sending, receiving_frames, receiving_packets);
criterion_main!(benches);
