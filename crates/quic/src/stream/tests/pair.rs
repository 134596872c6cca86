//! Two sets of streams, connected by a path that loses, reorders, duplicates, and drops acknowledgments.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// The byte of a stream at an offset.
fn byte(sender: Side, id: StreamId, offset: u64) -> u8 {
    let seed = id.get() * 7 + u64::from(sender == Side::Server);
    ((offset + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8
}

struct Generated(Side, StreamId, u64, u64);

impl Source for Generated {
    fn len(&self) -> u64 {
        self.3
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        assert!(offset + buffer.len() as u64 <= self.3);
        for (slot, at) in buffer.iter_mut().zip(self.2 + offset..) {
            *slot = byte(self.0, self.1, at);
        }
        Ok(())
    }
}

/// What an application received, checked byte by byte.
struct Received {
    sender: Side,
    bytes: BTreeMap<StreamId, u64>,
    ended: BTreeMap<StreamId, u64>,
    random: Random,
}

impl Received {
    fn take(&mut self, id: StreamId, data: &[u8]) {
        let offset = self.bytes.entry(id).or_default();
        for byte_here in data {
            assert_eq!(
                *byte_here,
                byte(self.sender, id, *offset),
                "{id} at {offset}"
            );
            *offset += 1;
        }
    }

    fn end(&mut self, id: StreamId) {
        let len = self.bytes.get(&id).copied().unwrap_or_default();
        assert_eq!(self.ended.insert(id, len), None, "{id} ends once");
    }
}

impl StreamSink for Received {
    fn takes(&self, id: StreamId) -> bool {
        id.index().is_multiple_of(2)
    }

    fn data(&mut self, id: StreamId, offset: u64, data: &[u8], fin: bool) -> usize {
        assert_eq!(offset, self.bytes.get(&id).copied().unwrap_or_default());
        let taken = match self.random.below(4) {
            0 => self.random.below(data.len() as u64 + 1) as usize,
            _ => data.len(),
        };
        self.take(id, &data[..taken]);
        if fin && taken == data.len() {
            self.end(id);
        }
        taken
    }
}

struct End {
    side: Side,
    streams: Streams,
    received: Received,
    /// The length of our part of each stream, and how much of it was written.
    ours: BTreeMap<StreamId, (u64, u64)>,
    to_open: Vec<Direction>,
    /// Streams that either end reset.
    given_up: BTreeSet<StreamId>,
    finished: BTreeSet<StreamId>,
    gives_up: bool,
}

impl End {
    fn new(side: Side, seed: u64, gives_up: bool) -> Self {
        let mut streams = Streams::new(side, small());
        streams.on_peer_parameters(&parameters(&small()));
        let to_open = (0..24)
            .map(|index| match index % 3 {
                0 => Direction::Unidirectional,
                _ => Direction::Bidirectional,
            })
            .collect();
        Self {
            side,
            streams,
            received: Received {
                sender: side.peer(),
                bytes: BTreeMap::new(),
                ended: BTreeMap::new(),
                random: Random(seed | 1),
            },
            ours: BTreeMap::new(),
            to_open,
            given_up: BTreeSet::new(),
            finished: BTreeSet::new(),
            gives_up,
        }
    }

    fn begin(&mut self, id: StreamId, random: &mut Random) {
        let len = match random.below(5) {
            0 => 0,
            1 => random.below(100),
            _ => random.below(30_000),
        };
        self.ours.insert(id, (len, 0));
        let priority = Priority::new(random.below(8) as u8, random.below(2) == 0);
        self.streams.set_priority(id, priority).expect("live");
        self.write(id, random);
    }

    fn write(&mut self, id: StreamId, random: &mut Random) {
        let Some((len, written)) = self.ours.get_mut(&id) else {
            return;
        };
        while *written < *len {
            let want = (random.below(8000) + 1).min(*len - *written);
            let outcome = if random.below(3) == 0 {
                let source = Generated(self.side, id, *written, want);
                self.streams
                    .send_source(id, Box::new(source))
                    .map(|()| want)
            } else {
                let bytes: Vec<u8> = (*written..*written + want)
                    .map(|offset| byte(self.side, id, offset))
                    .collect();
                self.streams.write(id, &bytes).map(|taken| taken as u64)
            };
            match outcome {
                Ok(taken) => {
                    *written += taken;
                    if taken < want {
                        return;
                    }
                }
                Err(WriteError::Blocked) => return,
                Err(error) => {
                    assert!(self.given_up.contains(&id), "{error}");
                    return;
                }
            }
        }
        let _ = self.streams.finish(id);
    }

    fn read(&mut self, id: StreamId) {
        let received = &mut self.received;
        let outcome = self.streams.read(id, NOW, &mut |bytes| {
            received.take(id, bytes);
            bytes.len()
        });
        match outcome {
            Ok(read) if read.end => self.received.end(id),
            Ok(_) => {}
            Err(error) => assert!(self.given_up.contains(&id), "{id}: {error}"),
        }
    }

    fn run(&mut self, random: &mut Random, peer_given_up: &BTreeSet<StreamId>) {
        self.given_up.extend(peer_given_up);
        while let Some(direction) = self.to_open.last().copied() {
            let Some(id) = self.streams.open(direction) else {
                break;
            };
            self.to_open.pop();
            self.begin(id, random);
        }
        while let Some(event) = self.streams.poll_event() {
            match event {
                StreamEvent::Opened(direction) => {
                    while let Some(id) = self.streams.accept(direction) {
                        if direction == Direction::Bidirectional {
                            self.begin(id, random);
                        }
                    }
                }
                StreamEvent::Readable(id) => self.read(id),
                StreamEvent::Writable(id) => self.write(id, random),
                StreamEvent::Reset { id, .. } | StreamEvent::Stopped { id, .. } => {
                    assert!(self.given_up.contains(&id), "{id}");
                }
                StreamEvent::Finished(id) => assert!(self.finished.insert(id)),
                StreamEvent::SourceFailed { .. } => panic!("sources do not fail"),
                StreamEvent::Available(_) => {}
            }
        }
        if self.gives_up && random.below(8) == 0 {
            let id = id(random.below(80));
            let code = varint(random.below(9));
            let (stops, is_known) = (random.below(2) == 0, self.streams.live.contains_key(&id));
            let is_done = if stops {
                self.streams.stop_sending(id, code, NOW).is_ok()
            } else {
                self.streams.reset(id, code).is_ok()
            };
            assert!(is_known || !is_done);
            if is_done {
                self.given_up.insert(id);
            }
        }
    }

    fn is_done(&self) -> bool {
        self.to_open.is_empty() && self.streams.live() == 0
    }
}

/// A packet in flight: when it arrives, its content, and what its sender learns of it.
struct Packet {
    from: usize,
    payload: Vec<u8>,
    receipts: Vec<Receipt>,
}

fn run(seed: u64, gives_up: bool) {
    let mut random = Random(seed | 1);
    let mut ends = [
        End::new(Side::Client, seed ^ 1, gives_up),
        End::new(Side::Server, seed ^ 2, gives_up),
    ];
    let (mut path, mut late): (Vec<Packet>, Vec<Packet>) = Default::default();
    for step in 0.. {
        assert!(step < 100_000, "no end in sight");
        for index in 0..2 {
            let by_peer = ends[1 - index].given_up.clone();
            ends[index].run(&mut random, &by_peer);
            if path.len() < 30 && ends[index].streams.wants_to_send() {
                let len = if random.below(10) == 0 {
                    60 + random.below(100)
                } else {
                    1200
                };
                let (payload, receipts) = packet(&mut ends[index].streams, len as usize);
                assert_settled(&mut ends[index].streams);
                if !payload.is_empty() {
                    path.push(Packet {
                        from: index,
                        payload,
                        receipts,
                    });
                }
            }
        }
        if path.is_empty() {
            if ends.iter().all(End::is_done) {
                break;
            }
            continue;
        }
        if path.len() > 10 || random.below(3) == 0 {
            // Usually the oldest.
            let reorders = random.below(4) == 0;
            let at = random.below(if reorders { path.len() as u64 } else { 1 });
            let fate = random.below(10);
            let packet = path.remove(at as usize);
            let packet_from = packet.from;
            if fate != 0 {
                deliver(&mut ends, &packet);
            }
            if fate == 1 {
                deliver(&mut ends, &packet);
            }
            let streams = &mut ends[packet.from].streams;
            if fate <= 2 {
                lose(streams, &packet.receipts);
            }
            // A packet that arrived can be declared lost, and acknowledged much later.
            if fate == 2 {
                late.push(packet);
            } else if fate > 2 {
                acknowledge(streams, &packet.receipts);
            }
            if random.below(20) == 0
                && let Some(packet) = late.pop()
            {
                let streams = &mut ends[packet.from].streams;
                acknowledge(streams, &packet.receipts);
            }
            assert_settled(&mut ends[packet_from].streams);
        }
    }
    check(&ends);
}

/// A call that left a stream in its queues found that nothing had changed for them: settling all streams must change
/// nothing.
fn assert_settled(streams: &mut Streams) {
    let state = |streams: &Streams| -> Vec<_> {
        let of = |stream: &Stream| (stream.place, stream.control, stream.control_queued);
        let live = streams.live.iter();
        live.map(|(id, stream)| (*id, of(stream), stream.events_queued))
            .collect()
    };
    let before = state(streams);
    for (id, ..) in &before {
        streams.settle(*id);
    }
    assert_eq!(state(streams), before);
}

fn deliver(ends: &mut [End; 2], packet: &Packet) {
    let given_up = ends[packet.from].given_up.clone();
    let to = &mut ends[1 - packet.from];
    to.given_up.extend(&given_up);
    for frame in frames(&packet.payload) {
        dispatch(&mut to.streams, &frame, &mut to.received).expect("a peer that keeps the rules");
    }
}

fn check(ends: &[End; 2]) {
    for (from, to) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
        assert_eq!(from.streams.buffered(), 0);
        assert!(from.streams.queues.scheduler.next(true).is_none());
        assert!(!from.streams.wants_to_send_data());
        for (id, (len, _)) in &from.ours {
            if !from.given_up.contains(id) && !to.given_up.contains(id) {
                assert_eq!(to.received.ended.get(id), Some(len), "{id}");
                assert!(from.finished.contains(id), "{id}");
            }
        }
        assert!(from.ours.len() >= 24);
        let (credit, window) = (&from.streams.credit, &to.streams.window);
        assert!(credit.limit() <= window.limit());
        assert_eq!(credit.used, window.received);
        assert_eq!(window.received, window.consumed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_byte_arrives_over_a_lossy_path(seed in any::<u64>()) {
        run(seed, false);
    }

    #[test]
    fn cancelled_streams_end(seed in any::<u64>()) {
        run(seed, true);
    }
}
