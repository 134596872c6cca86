//! Any bytes for a QPACK decoder and encoder: nothing panics or grows, and what decodes comes through our own encoder.
//! Shared by the replay of the corpus and the fuzz target.

use lastbyte_http3::{
    Fields,
    qpack::{Decoded, Decoder, EncodeOptions, Encoder, SectionLimits},
};

const LIMITS: SectionLimits = SectionLimits {
    size: 16 << 10,
    fields: 64,
};
const CAPACITY: u32 = 512;
const BLOCKED: u16 = 4;

/// A peer that the bytes describe, and both of our ends, which repeat what it sent.
struct World {
    decoder: Decoder,
    encoder: Encoder,
    ours: Decoder,
    stream: u64,
}

impl World {
    fn section(&mut self, section: &[u8]) -> Option<()> {
        let mut fields = Fields::new();
        self.stream += 4;
        match self
            .decoder
            .decode(self.stream, section, LIMITS, &mut fields)
            .ok()?
        {
            Decoded::Done => self.again(&fields),
            Decoded::Blocked => assert!(self.decoder.blocked() <= usize::from(BLOCKED)),
            Decoded::TooLarge => {
                // One line more than fits, each no longer than its section allows.
                assert!(fields.section_size() <= LIMITS.size + 2 * section.len() as u64 + 1200);
                self.decoder.cancel(self.stream);
            }
        }
        Some(())
    }

    /// What was decoded is encoded and decoded again.
    fn again(&mut self, fields: &Fields) {
        let options = EncodeOptions {
            instructions_max: 1024,
            may_block: false,
        };
        let mut section = Vec::new();
        self.encoder
            .encode(self.stream, fields.iter(), options, &mut section);
        let instructions = std::mem::take(self.encoder.instructions());
        self.ours
            .on_encoder_stream(&instructions)
            .expect("our own instructions");
        let mut decoded = Fields::new();
        let result = self
            .ours
            .decode(self.stream, &section, LIMITS, &mut decoded);
        assert_eq!(result, Ok(Decoded::Done));
        assert_eq!(decoded, *fields);
        let acknowledged = std::mem::take(self.ours.instructions());
        self.encoder
            .on_decoder_stream(&acknowledged)
            .expect("our own acknowledgments");
    }
}

/// Each piece comes behind two bytes: what it is, and how long.
fn next<'a>(bytes: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[what, len], rest) = bytes.split_first_chunk()?;
    let (piece, rest) = rest.split_at_checked(usize::from(len).min(rest.len()))?;
    *bytes = rest;
    Some((what, piece))
}

/// Hands in the pieces that the bytes say, until one is wrong.
pub(crate) fn play(bytes: &[u8]) {
    let mut bytes = bytes;
    let mut world = World {
        decoder: Decoder::new(CAPACITY, BLOCKED),
        encoder: Encoder::new(CAPACITY, 0),
        ours: Decoder::new(CAPACITY, 0),
        stream: 0,
    };
    world.encoder.on_peer_settings(u64::from(CAPACITY), 0);
    let mut strange = Encoder::new(CAPACITY, BLOCKED);
    while let Some((what, piece)) = next(&mut bytes) {
        let is_right = match what % 4 {
            0 => world.decoder.on_encoder_stream(piece).is_ok(),
            1 | 2 => world.section(piece).is_some(),
            _ => strange.on_decoder_stream(piece).is_ok(),
        };
        if !is_right {
            return;
        }
        while world.decoder.next_unblocked().is_some() {}
        world.decoder.instructions().clear();
    }
}
