//! The wanted keys, and a quick search for places where they may stand.

use super::kernel::{Kernel, STRETCH};
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
    /// Length and last byte of each key; a quote for the empty one.
    ends: Vec<(usize, u8)>,
    /// See [`Fields::window`].
    window: usize,
}

impl Selection {
    pub(super) fn of(projection: &Projection) -> Selection {
        let Projection::Fields(fields) = projection else {
            return Selection::All;
        };
        let keys = fields.iter().map(|(key, _)| key.clone().into_bytes());
        let keys: Vec<Vec<u8>> = keys.collect();
        let end = |key: &Vec<u8>| (key.len(), key.last().copied().unwrap_or(b'"'));
        let mut ends: Vec<_> = keys.iter().map(end).collect();
        ends.sort_unstable();
        ends.dedup();
        let longest = ends.last().map_or(0, |(length, _)| *length);
        let window = longest + 1 + STRETCH;
        Selection::Fields(Fields { keys, ends, window })
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

    /// Size of a window, in bytes: a stretch, and what a wanted key may need after it.
    #[inline(always)]
    pub(super) fn window(&self) -> usize {
        self.window
    }

    /// Where in the first stretch of a window a wanted key may start: a bit for the byte before each such place. A key with
    /// its last byte and a quote stands there.
    #[inline(always)]
    pub(super) fn candidates(&self, kernel: impl Kernel, window: &[u8]) -> u64 {
        let mut candidates = 0;
        for (length, last) in &self.ends {
            if let Some(window) = window.get(*length..=*length + STRETCH)
                && let Some(stretch) = window.first_chunk()
                && let Some(next) = window.last_chunk()
            {
                candidates |= kernel.equal(stretch, *last) & kernel.equal(next, b'"');
            }
        }
        candidates
    }

    /// The index of the key without escapes that starts at an offset, if it is wanted, and the offset of the value after its
    /// quote and colon.
    #[inline(always)]
    pub(super) fn key_at(&self, bytes: &[u8], start: usize) -> Option<(usize, usize)> {
        let rest = bytes.get(start..)?;
        let is = |key: &Vec<u8>| rest.get(key.len()) == Some(&b'"') && rest.starts_with(key);
        let slot = self.keys.iter().position(is)?;
        Some((slot, start + self.keys[slot].len() + 2))
    }

    #[cold]
    #[inline(never)]
    fn slot_of_escaped(&self, raw: &[u8]) -> Option<usize> {
        let text = parse::unescaped(raw)?;
        self.keys.iter().position(|key| key == text.as_bytes())
    }
}
