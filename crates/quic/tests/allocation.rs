//! A bulk sender and its receiver allocate nothing for each packet, also when packets are lost.

use std::collections::VecDeque;

use lastbyte_congestion::Time;
use lastbyte_quic::{
    receipt::Receipt,
    stream::{Config, Source, SourceError, StreamSink, Streams},
};
use lastbyte_testkit::{CountingAllocator, allocation_count};
use lastbyte_wire::{
    Direction, Side, StreamId, Writer,
    frame::{Frame, Frames},
    packet::PacketType,
    transport_parameters::TransportParameters,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A gibibyte of zeros.
struct Zeros;

impl Source for Zeros {
    fn len(&self) -> u64 {
        1 << 30
    }

    fn read_at(&self, _: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        buffer.fill(0);
        Ok(())
    }
}

/// Takes all, in order.
struct Count(u64);

impl StreamSink for Count {
    fn data(&mut self, _: StreamId, offset: u64, data: &[u8], _: bool) -> usize {
        assert_eq!(offset, self.0);
        self.0 += data.len() as u64;
        data.len()
    }
}

/// A packet on its way: the receipts of its frames, its bytes, and how many of them.
struct Packet {
    receipts: [Option<Receipt>; 4],
    bytes: Vec<u8>,
    len: usize,
}

impl Packet {
    fn new() -> Self {
        Self {
            receipts: [None; 4],
            bytes: vec![0; 1200],
            len: 0,
        }
    }

    fn fill(&mut self, streams: &mut Streams) {
        self.receipts = [None; 4];
        let mut writer = Writer::new(&mut self.bytes);
        let mut free = self.receipts.iter_mut();
        streams.write_frames(&mut writer, &mut |receipt| {
            *free.next().expect("four frames at most") = Some(receipt);
        });
        self.len = writer.position();
    }

    fn frames(&self, sender: Side) -> impl Iterator<Item = Frame<'_>> {
        let payload = &self.bytes[..self.len];
        let frames = (self.len > 0).then(|| Frames::new(payload, PacketType::OneRtt, sender));
        frames.into_iter().flatten().flatten().flatten()
    }
}

struct Pair {
    client: Streams,
    server: Streams,
    sink: Count,
    spare: Vec<Packet>,
    flight: VecDeque<(Packet, bool)>,
}

impl Pair {
    fn new() -> Self {
        let config = Config::default();
        let mut parameters = TransportParameters::default();
        config.announce(&mut parameters);
        let mut client = Streams::new(Side::Client, config.clone());
        let mut server = Streams::new(Side::Server, config);
        client.on_peer_parameters(&parameters);
        server.on_peer_parameters(&parameters);
        Self {
            client,
            server,
            sink: Count(0),
            spare: (0..80).map(|_| Packet::new()).collect(),
            flight: VecDeque::with_capacity(80),
        }
    }

    /// One packet each way; each seventeenth of the client's is lost. News of a packet comes sixty packets later.
    fn step(&mut self, number: u64) {
        let now = Time::from_nanos(number * 1000);
        if self.client.wants_to_send()
            && let Some(mut packet) = self.spare.pop()
        {
            packet.fill(&mut self.client);
            let is_lost = number.is_multiple_of(17);
            for frame in packet.frames(Side::Client).filter(|_| !is_lost) {
                if let Frame::Stream(stream) = frame {
                    self.server
                        .on_stream(&stream, now, &mut self.sink)
                        .expect("within its limits");
                }
            }
            self.flight.push_back((packet, is_lost));
        }
        if self.flight.len() > 60
            && let Some((packet, is_lost)) = self.flight.pop_front()
        {
            for receipt in packet.receipts.iter().flatten() {
                if is_lost {
                    self.client.lost(receipt);
                } else {
                    self.client.acked(receipt);
                }
            }
            self.spare.push(packet);
        }
        self.answer();
        while self.client.poll_event().is_some() {}
        while self.server.poll_event().is_some() {}
    }

    fn answer(&mut self) {
        if !self.server.wants_to_send() {
            return;
        }
        let Some(mut packet) = self.spare.pop() else {
            return;
        };
        packet.fill(&mut self.server);
        for frame in packet.frames(Side::Server) {
            match frame {
                Frame::MaxData(frame) => self.client.on_max_data(&frame),
                Frame::MaxStreamData(frame) => {
                    self.client
                        .on_max_stream_data(&frame)
                        .expect("its own stream");
                }
                _ => {}
            }
        }
        self.spare.push(packet);
    }
}

/// Runs a bulk stream, and returns how often memory was allocated once buffers and windows had grown.
fn allocations(mut feed: impl FnMut(&mut Streams, StreamId)) -> u64 {
    let mut pair = Pair::new();
    let id = pair
        .client
        .open(Direction::Bidirectional)
        .expect("a stream");
    let mut before = 0;
    for number in 1..=100_000 {
        if number == 40_000 {
            before = allocation_count();
        }
        feed(&mut pair.client, id);
        pair.step(number);
    }
    assert!(
        pair.sink.0 > 80_000_000,
        "{} bytes came through",
        pair.sink.0
    );
    allocation_count() - before
}

#[test]
fn a_stream_from_a_source_allocates_nothing_per_packet() {
    let mut source: Option<Box<dyn Source>> = Some(Box::new(Zeros));
    let counted = allocations(|streams, id| {
        if let Some(source) = source.take() {
            streams.send_source(id, source).expect("open");
        }
    });
    assert_eq!(counted, 0);
}

#[test]
fn a_stream_that_is_written_allocates_nothing_per_packet() {
    let text = [7; 4096];
    let counted = allocations(|streams, id| while streams.write(id, &text).expect("open") > 0 {});
    assert_eq!(counted, 0);
}

#[test]
fn the_allocation_counter_counts() {
    let before = allocation_count();
    drop(std::hint::black_box(Box::new(1)));
    assert!(allocation_count() > before);
}
