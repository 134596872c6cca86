//! The grammar of JSON within one line, without making values: where a value ends, and its kind. Text rejected here goes to
//! the parser, which reports the error; the parser accepts everything that is accepted here.
//!
//! A line feed is passed only as the last byte of a line, so no search for it is needed in advance.

use super::kernel::{BLOCK, Block, Kernel, Run};
use crate::parse::DIGITS_MAX;

/// The parser's limit; the row itself is the first level.
const DEPTH_MAX: u32 = 100;

/// The kind of a value, which selects how it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Digits.
    Digits,
    /// Any other number.
    Number,
    /// A string of ASCII without escapes.
    Plain,
    /// Any other string.
    Text,
    /// `true`, `false`, `null`, a list or an object.
    Other,
}

/// The bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset of its first byte.
    pub start: usize,
    /// Offset of the byte after it.
    pub end: usize,
    /// Its kind.
    pub kind: Kind,
}

/// A key and its value, with the separators before them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Offset of the brace or the comma, or of a blank before it.
    pub(super) start: usize,
    /// The key, without its quotes.
    pub(super) key: (usize, usize),
    /// It has neither escapes nor anything but ASCII.
    pub(super) plain_key: bool,
    pub(super) value: Span,
}

/// The item after a value of the row.
pub(super) enum Next {
    Member(Member),
    /// The end of the line; the next starts at this offset.
    End(usize),
}

/// Applies `question` to a block of the bytes, padded with zeros at the end.
#[inline(always)]
pub(super) fn with_block(bytes: &[u8], at: usize, question: impl Fn(&Block) -> usize) -> usize {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(block) => question(block),
        None => question(&last_block(bytes, at)),
    }
}

#[cold]
#[inline(never)]
pub(super) fn last_block<const SIZE: usize>(bytes: &[u8], at: usize) -> [u8; SIZE] {
    let mut block = [0; SIZE];
    let rest = bytes.get(at..).unwrap_or_default();
    let count = rest.len().min(SIZE);
    block[..count].copy_from_slice(&rest[..count]);
    block
}

/// The byte at a place; zero, which no JSON has, at the end.
#[inline(always)]
pub(super) fn peek(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

#[inline(always)]
pub(super) fn blanks(bytes: &[u8], mut at: usize) -> usize {
    while matches!(peek(bytes, at), b' ' | b'\t' | b'\r') {
        at += 1;
    }
    at
}

/// Offset of the next line, if only blanks are left of this one.
#[inline(always)]
pub(super) fn line_end(bytes: &[u8], at: usize) -> Option<usize> {
    let at = blanks(bytes, at);
    match bytes.get(at) {
        Some(b'\n') => Some(at + 1),
        None => Some(at),
        Some(_) => None,
    }
}

/// The next key and value of the row, or its end; `None` when that is no JSON, or no object with members. Not inlined.
#[inline(always)]
pub(super) fn next(kernel: impl Kernel, bytes: &[u8], start: usize, first: bool) -> Option<Next> {
    kernel.call(NextAt(bytes, start, first))
}

struct NextAt<'a>(&'a [u8], usize, bool);

impl Run for NextAt<'_> {
    type Output = Option<Next>;

    #[inline(always)]
    fn run(self, kernel: impl Kernel) -> Option<Next> {
        let NextAt(bytes, start, first) = self;
        read_next(kernel, bytes, start, first)
    }
}

#[inline(always)]
fn read_next(kernel: impl Kernel, bytes: &[u8], start: usize, first: bool) -> Option<Next> {
    let mut at = blanks(bytes, start);
    match (peek(bytes, at), first) {
        (b',', false) | (b'{', true) => at += 1,
        (b'}', false) => return line_end(bytes, at + 1).map(Next::End),
        _ => return None,
    }
    at = blanks(bytes, at);
    let (key_end, kind) = string(kernel, bytes, at)?;
    let plain_key = kind == Kind::Plain;
    let key = (at + 1, key_end - 1);
    at = blanks(bytes, key_end);
    if peek(bytes, at) != b':' {
        return None;
    }
    at = blanks(bytes, at + 1);
    let value = read_value(kernel, bytes, at)?;
    Some(Next::Member(Member {
        start,
        key,
        plain_key,
        value,
    }))
}

/// The value that starts at an offset. Not inlined.
#[inline(always)]
pub(super) fn value(kernel: impl Kernel, bytes: &[u8], start: usize) -> Option<Span> {
    kernel.call(ValueAt(bytes, start))
}

struct ValueAt<'a>(&'a [u8], usize);

impl Run for ValueAt<'_> {
    type Output = Option<Span>;

    #[inline(always)]
    fn run(self, kernel: impl Kernel) -> Option<Span> {
        read_value(kernel, self.0, self.1)
    }
}

#[inline(always)]
fn read_value(kernel: impl Kernel, bytes: &[u8], start: usize) -> Option<Span> {
    let (end, kind) = match peek(bytes, start) {
        b'{' | b'[' => (nested(kernel, bytes, start)?, Kind::Other),
        _ => scalar(kernel, bytes, start)?,
    };
    Some(Span { start, end, kind })
}

#[inline(always)]
fn scalar(kernel: impl Kernel, bytes: &[u8], at: usize) -> Option<(usize, Kind)> {
    match peek(bytes, at) {
        b'"' => string(kernel, bytes, at),
        b'0'..=b'9' => {
            let digits = with_block(bytes, at, |block| kernel.first_non_digit(block));
            let zero_first = digits > 1 && bytes[at] == b'0';
            if digits == BLOCK
                || zero_first
                || matches!(peek(bytes, at + digits), b'.' | b'e' | b'E')
            {
                return number(bytes, at);
            }
            Some((at + digits, Kind::Digits))
        }
        b'-' => number(bytes, at),
        b't' => word(bytes, at, b"true"),
        b'f' => word(bytes, at, b"false"),
        b'n' => word(bytes, at, b"null"),
        _ => None,
    }
}

fn word(bytes: &[u8], at: usize, word: &[u8]) -> Option<(usize, Kind)> {
    bytes
        .get(at..)?
        .starts_with(word)
        .then_some((at + word.len(), Kind::Other))
}

/// Any number, a byte at a time.
fn number(bytes: &[u8], start: usize) -> Option<(usize, Kind)> {
    let digits = |mut at: usize| {
        let from = at;
        while peek(bytes, at).is_ascii_digit() {
            at += 1;
        }
        (at > from).then_some(at)
    };
    let mut kind = Kind::Digits;
    let mut at = start;
    if peek(bytes, at) == b'-' {
        kind = Kind::Number;
        at += 1;
    }
    let first = at;
    if peek(bytes, at) == b'0' {
        at += 1;
        if peek(bytes, at).is_ascii_digit() {
            return None;
        }
    } else {
        at = digits(at)?;
    }
    if at - first > DIGITS_MAX {
        return None;
    }
    if peek(bytes, at) == b'.' {
        kind = Kind::Number;
        at = digits(at + 1)?;
    }
    if matches!(peek(bytes, at), b'e' | b'E') {
        kind = Kind::Number;
        at += 1;
        if matches!(peek(bytes, at), b'+' | b'-') {
            at += 1;
        }
        at = digits(at)?;
    }
    Some((at, kind))
}

/// The string whose quote is at an offset.
#[inline(always)]
pub(super) fn string(kernel: impl Kernel, bytes: &[u8], start: usize) -> Option<(usize, Kind)> {
    if peek(bytes, start) != b'"' {
        return None;
    }
    let mut at = start + 1;
    loop {
        let plain = with_block(bytes, at, |block| kernel.first_special(block));
        at += plain;
        if plain < BLOCK {
            break;
        }
    }
    if peek(bytes, at) == b'"' {
        return Some((at + 1, Kind::Plain));
    }
    text(kernel, bytes, start, at)
}

/// A string in which something other than plain text was met.
#[inline(always)]
fn text(kernel: impl Kernel, bytes: &[u8], start: usize, special: usize) -> Option<(usize, Kind)> {
    let mut at = special;
    let mut ascii = true;
    loop {
        match peek(bytes, at) {
            b'"' => break,
            b'\\' => at = escape(bytes, at + 1)?,
            0..=0x1f => return None,
            byte => {
                ascii &= byte.is_ascii();
                at += 1;
                // Text that is not ASCII is mostly so throughout; it is checked as a whole below.
                while !peek(bytes, at).is_ascii() {
                    ascii = false;
                    at += 1;
                }
                at += with_block(bytes, at, |block| kernel.first_special(block));
            }
        }
    }
    if !ascii {
        std::str::from_utf8(&bytes[start..at]).ok()?;
    }
    Some((at + 1, Kind::Text))
}

/// Skips an escape after its backslash.
pub(super) fn escape(bytes: &[u8], at: usize) -> Option<usize> {
    match peek(bytes, at) {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        b'u' => match hex4(bytes, at + 1)? {
            0xd800..0xdc00 => {
                let low = bytes.get(at + 5..)?.starts_with(b"\\u");
                let low = low.then(|| hex4(bytes, at + 7)).flatten()?;
                (0xdc00..0xe000).contains(&low).then_some(at + 11)
            }
            0xdc00..0xe000 => None,
            _ => Some(at + 5),
        },
        _ => None,
    }
}

fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..)?.first_chunk::<4>()?;
    let mut code = 0;
    for digit in digits {
        code = code << 4 | char::from(*digit).to_digit(16)?;
    }
    Some(code)
}

/// Goes past a list or an object.
#[inline(always)]
fn nested(kernel: impl Kernel, bytes: &[u8], start: usize) -> Option<usize> {
    // A bit for each open level, the lowest the innermost: whether it is an object.
    let mut levels: u128 = 0;
    let mut depth = 1;
    let mut at = start;
    loop {
        // A value begins here.
        let open = peek(bytes, at);
        if open == b'{' || open == b'[' {
            depth += 1;
            if depth > DEPTH_MAX {
                return None;
            }
            let object = open == b'{';
            levels = levels << 1 | u128::from(object);
            at = blanks(bytes, at + 1);
            if peek(bytes, at) == if object { b'}' } else { b']' } {
                at += 1;
                levels >>= 1;
                depth -= 1;
            } else {
                if object {
                    at = key(kernel, bytes, at)?;
                }
                continue;
            }
        } else {
            at = scalar(kernel, bytes, at)?.0;
        }
        // A value ended here.
        loop {
            if depth == 1 {
                return Some(at);
            }
            at = blanks(bytes, at);
            let object = levels & 1 == 1;
            match peek(bytes, at) {
                b',' => {
                    at = blanks(bytes, at + 1);
                    if object {
                        at = key(kernel, bytes, at)?;
                    }
                    break;
                }
                b'}' if object => {}
                b']' if !object => {}
                _ => return None,
            }
            at += 1;
            levels >>= 1;
            depth -= 1;
        }
    }
}

/// Goes past a key, its colon and the blanks after it.
#[inline(always)]
fn key(kernel: impl Kernel, bytes: &[u8], at: usize) -> Option<usize> {
    let at = blanks(bytes, string(kernel, bytes, at)?.0);
    (peek(bytes, at) == b':').then(|| blanks(bytes, at + 1))
}
