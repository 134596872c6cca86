//! Objects that exist by their size alone: `/32k`, `/1m`, `/1g`.

use lastbyte_quic::stream::{Source, SourceError};
use std::sync::OnceLock;

#[cfg(test)]
mod tests;

/// The largest object, in bytes.
const LEN_MAX: u64 = 1 << 40;

/// A prime, so that a piece of a packet's or a page's size that is out of its place is not what belongs there.
const PERIOD: usize = 65_521;

/// The size that a path asks for: digits and a unit. `kB`, `MB` and `GB` are powers of 1000, `KiB`, `MiB` and `GiB` of 1024, as
/// everywhere (`docs/units.md`); so are `k`, `m` and `g` alone, which are curl's.
pub(crate) fn size_of_path(path: &str) -> Option<u64> {
    let text = path.strip_prefix('/')?;
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(unit_at);
    let unit: u64 = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "k" | "K" | "KiB" => 1 << 10,
        "m" | "M" | "MiB" => 1 << 20,
        "g" | "G" | "GiB" => 1 << 30,
        _ => return None,
    };
    let len = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    (len <= LEN_MAX).then_some(len)
}

/// Pseudo-random bytes, which depend on the offset only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generated {
    pub(crate) len: u64,
}

fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut state = 0x9e37_79b9_u32;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 8) as u8
        };
        (0..PERIOD).map(|_| next()).collect()
    })
}

impl Source for Generated {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        let pattern = pattern();
        let mut at = (offset % PERIOD as u64) as usize;
        let mut rest = buffer;
        while !rest.is_empty() {
            let len = rest.len().min(PERIOD - at);
            let (now, later) = rest.split_at_mut(len);
            now.copy_from_slice(&pattern[at..at + len]);
            rest = later;
            at = 0;
        }
        Ok(())
    }
}
