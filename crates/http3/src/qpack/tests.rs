use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::Fields;

const LIMITS: SectionLimits = SectionLimits {
    size: 1 << 20,
    fields: 1000,
};

/// An action on an encoder and a decoder.
#[derive(Clone, Debug)]
enum Step {
    /// A section is encoded, for a new stream or an earlier one.
    Encode {
        lines: Vec<(u8, u8, bool)>,
        stream: u8,
    },
    /// Delivers this many bytes of the encoder stream.
    EncoderStream(u8),
    /// Delivers this many bytes of the decoder stream.
    DecoderStream(u8),
    /// One of the sections in flight arrives.
    Section(u8),
    /// The receiver cancels a stream.
    Cancel(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let line = (0u8..24, 0u8..12, prop::bool::weighted(0.05));
    prop_oneof![
        4 => (prop::collection::vec(line, 0..12), 0u8..20)
            .prop_map(|(lines, stream)| Step::Encode { lines, stream }),
        4 => any::<u8>().prop_map(Step::EncoderStream),
        4 => any::<u8>().prop_map(Step::DecoderStream),
        4 => any::<u8>().prop_map(Step::Section),
        1 => (0u8..20).prop_map(Step::Cancel),
    ]
}

/// Names of the static table, some inserted at once, secrets, and others.
fn fields(lines: &[(u8, u8, bool)]) -> Fields {
    let mut fields = Fields::new();
    for (name, value, is_sensitive) in lines {
        let name = match name {
            0..4 => [":authority", "user-agent", "cookie", ":path"][usize::from(*name)].to_owned(),
            4..8 => static_table::ENTRIES[usize::from(*value) * 8 + 2]
                .0
                .to_owned(),
            other => format!("x-name-{other}"),
        };
        let value = match value {
            0 => String::new(),
            1 => "*/*".to_owned(),
            other => format!("{name}: value {other}").repeat(usize::from(*other) % 4 + 1),
        };
        if *is_sensitive {
            fields.push_sensitive(&name, value);
        } else {
            fields.push(&name, value);
        }
    }
    fields
}

/// Both ends, and what is in flight between them.
struct World {
    encoder: Encoder,
    decoder: Decoder,
    encoder_stream: VecDeque<u8>,
    decoder_stream: VecDeque<u8>,
    /// Sections in flight, and blocked ones, by stream; those of one stream in order.
    sections: Vec<(u64, Vec<u8>, Fields)>,
    waiting: BTreeMap<u64, (Vec<u8>, Fields)>,
    decoded: usize,
}

impl World {
    fn new(capacity: u32, wanted: u32, blocked: u16) -> Self {
        let mut encoder = Encoder::new(wanted, blocked);
        encoder.on_peer_settings(u64::from(capacity), u64::from(blocked));
        Self {
            encoder,
            decoder: Decoder::new(capacity, blocked),
            encoder_stream: VecDeque::new(),
            decoder_stream: VecDeque::new(),
            sections: Vec::new(),
            waiting: BTreeMap::new(),
            decoded: 0,
        }
    }

    fn encode(&mut self, stream: u64, fields: Fields, may_block: bool) {
        let options = EncodeOptions {
            instructions_max: 2000,
            may_block,
        };
        let mut section = Vec::new();
        self.encoder
            .encode(stream, fields.all(), options, &mut section);
        self.encoder_stream
            .extend(self.encoder.instructions().drain(..));
        self.sections.push((stream, section, fields));
    }

    fn encoder_stream_arrives(&mut self, len: usize) {
        let len = len.min(self.encoder_stream.len());
        let bytes: Vec<u8> = self.encoder_stream.drain(..len).collect();
        self.decoder
            .on_encoder_stream(&bytes)
            .expect("instructions");
        while let Some(stream) = self.decoder.next_unblocked() {
            let (section, fields) = self.waiting.remove(&stream).expect("it waits");
            self.decode(stream, section, fields);
        }
        self.decoder_stream
            .extend(self.decoder.instructions().drain(..));
    }

    fn decoder_stream_arrives(&mut self, len: usize) {
        let len = len.min(self.decoder_stream.len());
        let bytes: Vec<u8> = self.decoder_stream.drain(..len).collect();
        self.encoder
            .on_decoder_stream(&bytes)
            .expect("acknowledgments");
    }

    /// The first section in flight of some stream, unless an earlier one is blocked.
    fn section_arrives(&mut self, choice: usize) {
        if self.sections.is_empty() {
            return;
        }
        let stream = self.sections[choice % self.sections.len()].0;
        if self.waiting.contains_key(&stream) {
            return;
        }
        let first = self.sections.iter().position(|section| section.0 == stream);
        let (stream, section, fields) = self.sections.remove(first.expect("just found"));
        self.decode(stream, section, fields);
    }

    fn decode(&mut self, stream: u64, section: Vec<u8>, fields: Fields) {
        let mut decoded = Fields::new();
        match self.decoder.decode(stream, &section, LIMITS, &mut decoded) {
            Ok(Decoded::Done) => {
                assert_eq!(decoded, fields);
                self.decoded += 1;
            }
            Ok(Decoded::Blocked) => {
                self.waiting.insert(stream, (section, fields));
            }
            other => panic!("{other:?}"),
        }
        self.decoder_stream
            .extend(self.decoder.instructions().drain(..));
    }

    /// The receiver cancels a stream: nothing of it is decoded any more.
    fn cancel(&mut self, stream: u64) {
        self.waiting.remove(&stream);
        self.sections.retain(|section| section.0 != stream);
        self.decoder.cancel(stream);
        self.decoder_stream
            .extend(self.decoder.instructions().drain(..));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever arrives in whichever order, sections decode to what was encoded, no more streams are blocked than
    /// permitted, and none is once everything has arrived.
    #[test]
    fn sections_and_instructions_decode_in_any_order_of_arrival(
        capacity in prop_oneof![Just(0u32), 32u32..300, Just(4096)],
        wanted in prop_oneof![Just(0u32), 32u32..300, Just(4096)],
        blocked in 0u16..5,
        may_block in any::<bool>(),
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let mut world = World::new(capacity, wanted, blocked);
        let mut cancelled = 0;
        let mut gone = std::collections::BTreeSet::new();
        let mut encoded = 0;
        for step in steps {
            match step {
                Step::Encode { lines, stream } => {
                    if !gone.contains(&stream) {
                        encoded += 1;
                        world.encode(u64::from(stream) * 4, fields(&lines), may_block);
                    }
                }
                Step::EncoderStream(len) => world.encoder_stream_arrives(usize::from(len)),
                Step::DecoderStream(len) => world.decoder_stream_arrives(usize::from(len)),
                Step::Section(choice) => world.section_arrives(usize::from(choice)),
                Step::Cancel(stream) => {
                    if gone.insert(stream) {
                        let before = world.sections.len() + world.waiting.len();
                        world.cancel(u64::from(stream) * 4);
                        cancelled += before - world.sections.len() - world.waiting.len();
                    }
                }
            }
            prop_assert!(world.waiting.len() <= usize::from(blocked));
        }
        world.encoder_stream_arrives(usize::MAX);
        while !world.sections.is_empty() {
            world.section_arrives(0);
        }
        world.decoder_stream_arrives(usize::MAX);
        prop_assert!(world.waiting.is_empty());
        prop_assert_eq!(world.decoded + cancelled, encoded);
        prop_assert_eq!(world.encoder.known_received, world.encoder.table.inserted());
    }

    #[test]
    fn arbitrary_instructions_and_sections_decode_or_fail(
        instructions in prop::collection::vec(any::<u8>(), 0..100),
        section in prop::collection::vec(any::<u8>(), 0..100),
        acknowledgments in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut decoder = Decoder::new(220, 4);
        let _ = decoder.on_encoder_stream(&instructions);
        let mut fields = Fields::new();
        let _ = decoder.decode(0, &section, LIMITS, &mut fields);
        let _ = Encoder::new(220, 4).on_decoder_stream(&acknowledgments);
    }
}

/// Most headers of a connection are alike, which is the purpose of the table.
#[test]
fn the_dynamic_table_shrinks_repeated_header_sections() {
    let mut world = World::new(4096, 4096, 0);
    let request: Fields = [
        (
            "user-agent",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36",
        ),
        ("accept-language", "en-GB,en;q=0.8"),
        ("x-own", "the same each time"),
    ]
    .into_iter()
    .collect();
    let mut sizes = Vec::new();
    for stream in 0..4 {
        world.encode(stream * 4, request.clone(), true);
        sizes.push(world.sections[0].1.len());
        world.encoder_stream_arrives(usize::MAX);
        world.section_arrives(0);
        world.decoder_stream_arrives(usize::MAX);
    }
    assert!(sizes[0] > 60, "{sizes:?}");
    assert_eq!(sizes[3], 2 + 3, "{sizes:?}");
}
