//! The wanted keys, and a quick test that rejects most other keys.

use crate::parse::{self, Projection};

#[derive(Debug)]
pub(super) enum Selection {
    Fields(Fields),
    All,
}

/// Some fields by their keys.
#[derive(Debug)]
pub(super) struct Fields {
    keys: Vec<Vec<u8>>,
    /// A bit for each [`sketch`] of a key.
    sketches: [u64; 4],
}

impl Selection {
    pub(super) fn of(projection: &Projection) -> Selection {
        let Projection::Fields(fields) = projection else {
            return Selection::All;
        };
        let keys = fields.iter().map(|(key, _)| key.clone().into_bytes());
        let keys: Vec<Vec<u8>> = keys.collect();
        let mut sketches = [0; 4];
        for key in &keys {
            let mut last = [0; 8];
            for (to, from) in last.iter_mut().rev().zip(key.iter().rev()) {
                *to = *from;
            }
            let sketch = sketch(u64::from_le_bytes(last), key.len());
            sketches[usize::from(sketch >> 6)] |= 1 << (sketch & 63);
        }
        Selection::Fields(Fields { keys, sketches })
    }

    /// The number of slots for values.
    pub(super) fn len(&self) -> usize {
        match self {
            Selection::Fields(fields) => fields.keys.len(),
            Selection::All => 0,
        }
    }
}

impl Fields {
    /// The index of a key among the wanted ones. A key with escapes is compared unescaped.
    #[inline(always)]
    pub(super) fn slot(&self, raw: &[u8], plain: bool) -> Option<usize> {
        let found = self.keys.iter().position(|key| key == raw);
        if found.is_none() && !plain && raw.contains(&b'\\') {
            return self.slot_of_escaped(raw);
        }
        found
    }

    /// Returns `false` only if a key without escapes at this place is not a wanted one.
    #[inline(always)]
    pub(super) fn may_have(&self, bytes: &[u8], (start, end): (usize, usize)) -> bool {
        let Some(last) = bytes.get(..end).and_then(<[u8]>::last_chunk) else {
            return true;
        };
        let sketch = sketch(u64::from_le_bytes(*last), end - start);
        self.sketches[usize::from(sketch >> 6)] >> (sketch & 63) & 1 == 1
    }

    #[cold]
    #[inline(never)]
    fn slot_of_escaped(&self, raw: &[u8]) -> Option<usize> {
        let text = parse::unescaped(raw)?;
        self.keys.iter().position(|key| key == text.as_bytes())
    }
}

/// A hash of a key's length and its last eight bytes, since many keys have common prefixes. Bytes before a shorter key are
/// masked out.
#[inline(always)]
fn sketch(last: u64, length: usize) -> u8 {
    let over = 8_usize.saturating_sub(length) * 8;
    let own = last.checked_shr(over as u32).unwrap_or(0);
    let mixed = (own ^ length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}
