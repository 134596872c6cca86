//! Prints a row from the bytes of its line, for rows that pass through a query unchanged. Values already in the output form
//! are copied; others (fractions, escapes, arrays) are parsed and printed.

use super::grammar::{Kind, Span};
use super::kernel::{Kernel, Run, Simd};
use super::members::{self, Visit};
use crate::fast_hash;
use crate::parse::{Keys, Parser, Projection};
use crate::value::Value;

/// A row with more keys is left to the parser.
const KEYS_MAX: usize = 1 << 12;

/// Prints rows.
#[derive(Debug)]
pub struct Reprinter {
    simd: Simd,
    state: State,
}

#[derive(Debug, Default)]
struct State {
    seen: Seen,
    /// For values that are parsed.
    keys: Keys,
}

impl Default for Reprinter {
    /// A reprinter with the fastest kernel of this CPU.
    fn default() -> Reprinter {
        Reprinter::with(Simd::best())
    }
}

impl Reprinter {
    pub(super) fn with(simd: Simd) -> Reprinter {
        let state = State::default();
        Reprinter { simd, state }
    }

    /// Appends to `out` the row of this line (with or without its line feed) as parsing and printing it would, and a line
    /// feed. Returns `false` and appends nothing if the line must be parsed: it may not be a row, or a key occurs twice.
    pub fn print(&mut self, line: &[u8], out: &mut String) -> bool {
        let start = out.len();
        let Ok(text) = std::str::from_utf8(line) else {
            return false;
        };
        let state = &mut self.state;
        let printed = self.simd.run(Printing { state, text, out });
        if printed {
            out.push_str("}\n");
        } else {
            out.truncate(start);
        }
        printed
    }
}

struct Printing<'a> {
    state: &'a mut State,
    text: &'a str,
    out: &'a mut String,
}

impl Run for Printing<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, kernel: impl Kernel) -> bool {
        let State { seen, keys } = self.state;
        seen.clear();
        let mut copying = Copying {
            text: self.text,
            out: self.out,
            seen,
            keys,
            before: b'{',
            from: 0,
            to: 0,
        };
        let end = members::walk(kernel, self.text.as_bytes(), 0, true, &mut copying);
        copying.flush();
        end.is_some()
    }
}

/// Copies pieces of a text; those that stand side by side at once.
struct Copying<'a> {
    text: &'a str,
    out: &'a mut String,
    seen: &'a mut Seen,
    keys: &'a mut Keys,
    /// What stands before the next key.
    before: u8,
    from: usize,
    to: usize,
}

impl Visit for Copying<'_> {
    #[inline(always)]
    fn member(&mut self, key: (usize, usize), plain_key: bool, value: Span) -> bool {
        let bytes = self.text.as_bytes();
        if !plain_key && self.is_escaped(key.0, key.1) || !self.seen.is_new(&bytes[key.0..key.1]) {
            return false;
        }
        // The sign may have blanks behind it, and the colon before it.
        if bytes.get(key.0 - 2) == Some(&self.before) {
            self.piece(key.0 - 2, key.1 + 1);
        } else {
            self.sign(self.before);
            self.piece(key.0 - 1, key.1 + 1);
        }
        if bytes.get(key.1 + 1) == Some(&b':') {
            self.piece(key.1 + 1, key.1 + 2);
        } else {
            self.sign(b':');
        }
        self.before = b',';
        let Span { start, end, kind } = value;
        let as_it_stands = match kind {
            Kind::Digits | Kind::Plain => true,
            Kind::Text => !self.is_escaped(start, end),
            Kind::Number => false,
            Kind::Other => matches!(bytes[start], b't' | b'f' | b'n'),
        };
        if as_it_stands {
            self.piece(start, end);
            return true;
        }
        self.parsed(&bytes[start..end])
    }
}

impl Copying<'_> {
    #[inline(always)]
    fn is_escaped(&self, from: usize, to: usize) -> bool {
        self.text.as_bytes()[from..to].contains(&b'\\')
    }

    #[inline(always)]
    fn piece(&mut self, from: usize, to: usize) {
        if from != self.to {
            self.flush();
            self.from = from;
        }
        self.to = to;
    }

    fn sign(&mut self, sign: u8) {
        self.flush();
        self.out.push(char::from(sign));
    }

    fn flush(&mut self) {
        let (from, to) = (self.from, self.to);
        self.out
            .push_str(self.text.get(from..to).unwrap_or_default());
        self.from = to;
    }

    #[inline(never)]
    fn parsed(&mut self, value: &[u8]) -> bool {
        self.flush();
        let value = Parser::<Value>::new(value, self.keys).only(&Projection::Whole);
        value.is_ok_and(|value| value.write(self.out))
    }
}

/// The keys of a row, by their hashes.
#[derive(Debug, Default)]
struct Seen {
    /// Open addressing: the number of the row, and the hash. A power of two, at most half full.
    places: Vec<(u64, u64)>,
    row: u64,
    count: usize,
}

impl Seen {
    fn clear(&mut self) {
        if self.places.is_empty() {
            self.places.resize(2 * KEYS_MAX, (0, 0));
        }
        self.row += 1;
        self.count = 0;
    }

    /// False for a key that was seen, or has the hash of one that was, and when there are too many.
    #[inline(always)]
    fn is_new(&mut self, key: &[u8]) -> bool {
        let hash = fast_hash::of_bytes(key);
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        while let Some((row, known)) = self.places.get(at)
            && *row == self.row
        {
            if *known == hash {
                return false;
            }
            at = (at + 1) & mask;
        }
        if self.count == KEYS_MAX {
            return false;
        }
        self.count += 1;
        self.places[at] = (self.row, hash);
        true
    }
}

#[cfg(test)]
mod tests;
