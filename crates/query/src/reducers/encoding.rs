//! Bytes of a state: integers as in LEB128, texts with their length. What is read comes from a file, so each count is
//! compared with the bytes that are left before anything is allocated.

use super::portable::Portable;
use num_bigint::BigInt;

/// Depth to which values and scopes nest at most.
pub(super) const DEPTH_MAX: usize = 256;

/// What a byte of a state expands to at most, in values and bytes of text, when what several places share is counted at each.
/// Deflate has about the same limit.
const EXPANSION_MAX: u64 = 1024;

/// What any state may expand to.
const EXPANSION_FREE: u64 = 1 << 16;

pub(crate) fn write_count(out: &mut Vec<u8>, mut count: u64) {
    while count >= 0x80 {
        out.push(count as u8 | 0x80);
        count >>= 7;
    }
    out.push(count as u8);
}

/// Small numbers of both signs take few bytes.
pub(crate) fn write_int(out: &mut Vec<u8>, it: i64) {
    write_count(out, (it << 1 ^ it >> 63).cast_unsigned());
}

pub(crate) fn write_float(out: &mut Vec<u8>, it: f64) {
    out.extend_from_slice(&it.to_bits().to_le_bytes());
}

pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    write_bytes(out, text.as_bytes());
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_count(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn write_all<T>(out: &mut Vec<u8>, list: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    write_count(out, list.len() as u64);
    for it in list {
        write(out, it);
    }
}

/// The bytes that are left. Each method returns `None` where they are not valid.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn count(&mut self) -> Option<u64> {
        let mut count = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            count |= bits << shift;
            if byte < 0x80 {
                return Some(count);
            }
        }
        None
    }

    pub(super) fn int(&mut self) -> Option<i64> {
        let coded = self.count()?;
        Some((coded >> 1).cast_signed() ^ -(coded & 1).cast_signed())
    }

    pub(super) fn float(&mut self) -> Option<f64> {
        let bits = self.take(8)?.try_into().ok()?;
        Some(f64::from_bits(u64::from_le_bytes(bits)))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.count()?;
        self.take(usize::try_from(count).ok()?)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        std::str::from_utf8(self.bytes()?).ok().map(str::to_owned)
    }

    /// A list whose elements take at least `least` bytes each.
    pub(crate) fn all<T>(
        &mut self,
        least: usize,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = usize::try_from(self.count()?).ok()?;
        if count > self.0.len() / least {
            return None;
        }
        (0..count).map(|_| read(self)).collect()
    }
}

impl Portable {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Portable::Nil => out.push(0),
            Portable::Bool(it) => out.push(1 + u8::from(*it)),
            Portable::Int(it) => {
                out.push(3);
                write_int(out, *it);
            }
            Portable::Float(it) => {
                out.push(4);
                write_float(out, *it);
            }
            Portable::Big(it) => {
                out.push(5);
                write_bytes(out, &it.to_signed_bytes_le());
            }
            Portable::Symbol(text) => {
                out.push(6);
                write_text(out, text);
            }
            Portable::Str(text) => {
                out.push(7);
                write_text(out, text);
            }
            Portable::FrozenStr(text) => {
                out.push(8);
                write_text(out, text);
            }
            Portable::Array(list) => {
                out.push(9);
                write_all(out, list, |out, it| it.write(out));
            }
            Portable::Hash(pairs) => {
                out.push(10);
                write_all(out, pairs, |out, (key, value)| {
                    key.write(out);
                    value.write(out);
                });
            }
            Portable::Token(at) => {
                out.push(11);
                write_count(out, u64::from(*at));
            }
            Portable::Dropped => out.push(12),
            Portable::Shared(at) => {
                out.push(13);
                write_count(out, u64::from(*at));
            }
            Portable::Json(text) => {
                out.push(14);
                write_text(out, text);
            }
        }
    }

    pub(super) fn read(bytes: &mut Bytes<'_>, depth: usize) -> Option<Portable> {
        if depth > DEPTH_MAX {
            return None;
        }
        Some(match bytes.byte()? {
            0 => Portable::Nil,
            1 => Portable::Bool(false),
            2 => Portable::Bool(true),
            3 => Portable::Int(bytes.int()?),
            4 => Portable::Float(bytes.float()?),
            5 => Portable::Big(BigInt::from_signed_bytes_le(bytes.bytes()?)),
            6 => Portable::Symbol(bytes.text()?),
            7 => Portable::Str(bytes.text()?),
            8 => Portable::FrozenStr(bytes.text()?),
            9 => Portable::Array(bytes.all(1, |bytes| Portable::read(bytes, depth + 1))?),
            10 => Portable::Hash(bytes.all(2, |bytes| {
                let key = Portable::read(bytes, depth + 1)?;
                Some((key, Portable::read(bytes, depth + 1)?))
            })?),
            11 => Portable::Token(u32::try_from(bytes.count()?).ok()?),
            12 => Portable::Dropped,
            13 => Portable::Shared(u32::try_from(bytes.count()?).ok()?),
            14 => Portable::Json(bytes.text()?),
            _ => return None,
        })
    }
}

/// Checks values that were read: what they share exists, nothing holds itself, and they nest and expand within bounds.
pub(super) struct Checker<'a> {
    heap: &'a [Option<Portable>],
    /// The size of each entry, once it is checked.
    known: Vec<Known>,
    /// The remaining expansion budget.
    left: u64,
}

#[derive(Clone, Copy)]
enum Known {
    No,
    /// It is being checked, so a reference to it is a circle.
    Open,
    Yes(usize, u64),
}

impl<'a> Checker<'a> {
    /// A checker of values that take this number of bytes.
    pub(super) fn new(heap: &'a [Option<Portable>], bytes: usize) -> Checker<'a> {
        Checker {
            heap,
            known: vec![Known::No; heap.len()],
            left: EXPANSION_FREE + EXPANSION_MAX * bytes as u64,
        }
    }

    pub(super) fn check(&mut self, value: &Portable) -> Option<()> {
        let (_, count) = self.size(value, 0)?;
        self.left = self.left.checked_sub(count)?;
        Some(())
    }

    /// Depth, and number of values and bytes of text.
    fn size(&mut self, value: &Portable, depth: usize) -> Option<(usize, u64)> {
        if depth > DEPTH_MAX {
            return None;
        }
        let (mut deepest, mut values) = (0, 1_u64);
        let mut add = |checker: &mut Self, inner: &Portable| {
            let (depth, count) = checker.size(inner, depth + 1)?;
            deepest = deepest.max(depth + 1);
            values = values.checked_add(count)?;
            Some(())
        };
        match value {
            Portable::Array(list) => list.iter().try_for_each(|inner| add(self, inner))?,
            Portable::Hash(pairs) => pairs.iter().try_for_each(|(key, value)| {
                add(self, key)?;
                add(self, value)
            })?,
            Portable::Shared(at) => {
                let at = *at as usize;
                let (below, count) = match *self.known.get(at)? {
                    Known::Open => return None,
                    Known::Yes(below, count) => (below, count),
                    Known::No => {
                        self.known[at] = Known::Open;
                        let size = match &self.heap[at] {
                            Some(value) => self.size(value, depth)?,
                            None => (0, 1),
                        };
                        self.known[at] = Known::Yes(size.0, size.1);
                        size
                    }
                };
                if depth + below > DEPTH_MAX {
                    return None;
                }
                return Some((below, count));
            }
            Portable::Str(text) | Portable::FrozenStr(text) | Portable::Json(text) => {
                values += text.len() as u64;
            }
            _ => {}
        }
        Some((deepest, values))
    }
}
