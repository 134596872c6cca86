//! A strict JSON parser into values. What the query does not read of a row is checked, but not built.
//!
//! Consecutive rows have mostly the same keys in the same order, so the key that stood at a place in the last row is
//! tried first, and then costs no allocation.

use crate::value::Value;
use crate::value::number::integer;
use crate::value::table::{Table, hash_of_str};
use crate::value::text::Text;
use num_bigint::BigInt;
use std::rc::Rc;

const DEPTH_MAX: usize = 100;

/// Keys are remembered up to this place; those after it share one.
const KEYS_MAX: usize = 10_000;

/// What of a row is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Projection {
    Whole,
    /// These keys, if the value is an object; anything else whole.
    Fields(Vec<(String, Projection)>),
}

/// Where a text stops being JSON, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JsonError {
    pub(crate) at: usize,
    pub(crate) message: String,
    /// Too deep, which has a class of its own.
    pub(crate) nesting: bool,
}

type Parsed<T = Value> = Result<T, JsonError>;

/// The keys of the last row, by their place in it.
#[derive(Default)]
pub(crate) struct Keys {
    known: Vec<Known>,
}

struct Known {
    key: Rc<Text>,
    hash: u64,
    /// As it stands in a row, with its quotes; empty if it was written with escapes.
    literal: Box<[u8]>,
    /// The fields it was looked for among, and where it was found.
    found: (usize, Option<usize>),
}

/// No list of fields stands here.
const NOWHERE: usize = 0;

pub(crate) struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    keys: &'a mut Keys,
    /// How many keys this row had.
    key: usize,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(bytes: &'a [u8], keys: &'a mut Keys) -> Parser<'a> {
        Parser {
            bytes,
            at: 0,
            depth: 0,
            keys,
            key: 0,
        }
    }

    /// One value and nothing else.
    pub(crate) fn only(mut self, projection: &Projection) -> Parsed {
        self.blanks();
        let value = self.value(projection)?;
        self.blanks();
        if self.at < self.bytes.len() {
            return Err(self.unexpected());
        }
        Ok(value)
    }

    /// The next value of a stream, and where it ends; `None` at the end. For `--lax`.
    pub(crate) fn next_of_stream(&mut self, projection: &Projection) -> Parsed<Option<Value>> {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n' | 0x0c | 0x1e) {
            self.at += 1;
        }
        if self.at >= self.bytes.len() {
            return Ok(None);
        }
        self.key = 0;
        self.depth = 0;
        let number = matches!(self.peek(), b'-' | b'0'..=b'9');
        let value = self.value(projection)?;
        // A value may follow at once, but `01`, `1.` and `1e` are no two numbers.
        if number && matches!(self.peek(), b'0'..=b'9' | b'.' | b'+' | b'e' | b'E') {
            return Err(self.unexpected());
        }
        Ok(Some(value))
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    #[inline]
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    #[cold]
    fn fail(at: usize, message: impl Into<String>) -> JsonError {
        JsonError {
            at,
            message: message.into(),
            nesting: false,
        }
    }

    #[cold]
    fn unexpected(&self) -> JsonError {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let shown: String = String::from_utf8_lossy(&rest[..rest.len().min(20)])
            .chars()
            .take(12)
            .collect();
        if rest.is_empty() {
            return Self::fail(self.at, "unexpected end of input");
        }
        Self::fail(self.at, format!("unexpected character: '{shown}'"))
    }

    fn value(&mut self, projection: &Projection) -> Parsed {
        match self.peek() {
            b'{' => self.object(projection),
            b'[' => self.array(),
            b'"' => {
                let text = self.string()?;
                Ok(Value::Str(Rc::new(Text::new(text))))
            }
            b't' => self.word(b"true", Value::Bool(true)),
            b'f' => self.word(b"false", Value::Bool(false)),
            b'n' => self.word(b"null", Value::Nil),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.unexpected()),
        }
    }

    fn word(&mut self, word: &[u8], value: Value) -> Parsed {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(self.unexpected());
        }
        self.at += word.len();
        Ok(value)
    }

    fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        self.at += 1;
        if self.depth > DEPTH_MAX {
            return Err(JsonError {
                at: self.at - 1,
                message: format!("nesting of {} is too deep", self.depth),
                nesting: true,
            });
        }
        Ok(())
    }

    fn array(&mut self) -> Parsed {
        self.enter()?;
        let mut list = Vec::new();
        self.blanks();
        if self.peek() == b']' {
            self.leave();
            return Ok(Value::array(list));
        }
        loop {
            self.blanks();
            list.push(self.value(&Projection::Whole)?);
            self.blanks();
            match self.peek() {
                b',' => self.at += 1,
                b']' => break,
                _ => return Err(self.unexpected()),
            }
        }
        self.leave();
        Ok(Value::array(list))
    }

    fn leave(&mut self) {
        self.depth -= 1;
        self.at += 1;
    }

    fn object(&mut self, projection: &Projection) -> Parsed {
        self.enter()?;
        let table = match projection {
            Projection::Whole => Table::default(),
            Projection::Fields(fields) => Table::with_capacity(fields.len()),
        };
        self.blanks();
        if self.peek() == b'}' {
            self.leave();
            return Ok(Value::hash(table));
        }
        loop {
            self.blanks();
            if self.peek() != b'"' {
                return Err(self.unexpected());
            }
            let place = self.key()?;
            self.colon()?;
            let inner = match projection {
                Projection::Whole => Some(projection),
                Projection::Fields(fields) => self.field(place, fields),
            };
            match inner {
                Some(inner) => {
                    let (key, hash) = match self.keys.known.get(place) {
                        Some(known) => (Rc::clone(&known.key), known.hash),
                        None => return Err(self.unexpected()),
                    };
                    let value = self.value(inner)?;
                    table.insert_hashed(hash, key, value);
                }
                None => self.skip()?,
            }
            self.blanks();
            match self.peek() {
                b',' => self.at += 1,
                b'}' => break,
                _ => return Err(self.unexpected()),
            }
        }
        self.leave();
        Ok(Value::hash(table))
    }

    #[inline]
    fn colon(&mut self) -> Parsed<()> {
        self.blanks();
        if self.peek() != b':' {
            return Err(self.unexpected());
        }
        self.at += 1;
        self.blanks();
        Ok(())
    }

    /// What is read of the value whose key stands at a place; `None` when nothing is.
    fn field<'p>(
        &mut self,
        place: usize,
        fields: &'p [(String, Projection)],
    ) -> Option<&'p Projection> {
        let known = self.keys.known.get_mut(place)?;
        let list = fields.as_ptr().addr();
        if known.found.0 != list {
            let key = known.key.get();
            let at = fields.iter().position(|(field, _)| *field == *key);
            drop(key);
            known.found = (list, at);
        }
        known.found.1.map(|at| &fields[at].1)
    }

    /// Goes past a key; gives the place where it is known.
    fn key(&mut self) -> Parsed<usize> {
        let place = self.key.min(KEYS_MAX);
        self.key += 1;
        if let Some(known) = self.keys.known.get(place)
            && !known.literal.is_empty()
            && self.bytes[self.at..].starts_with(&known.literal)
        {
            self.at += known.literal.len();
            return Ok(place);
        }
        let start = self.at;
        let text = self.string()?;
        let raw = &self.bytes[start..self.at];
        let literal = if memchr::memchr(b'\\', raw).is_some() {
            Box::default()
        } else {
            raw.into()
        };
        let known = Known {
            hash: hash_of_str(&text),
            key: Rc::new(Text::frozen(text)),
            literal,
            found: (NOWHERE, None),
        };
        match self.keys.known.get_mut(place) {
            Some(last) => *last = known,
            None => self.keys.known.push(known),
        }
        Ok(place)
    }

    /// Checks a value without building it.
    fn skip(&mut self) -> Parsed<()> {
        match self.peek() {
            b'"' => self.skip_string(),
            b'-' | b'0'..=b'9' => self.skip_number(),
            b'{' => self.skip_list(true),
            b'[' => self.skip_list(false),
            _ => self.value(&Projection::Whole).map(|_| ()),
        }
    }

    fn skip_string(&mut self) -> Parsed<()> {
        let start = self.at;
        let (end, escapes, ascii) = self.closing_quote()?;
        if escapes || !ascii {
            self.at = start;
            return self.string().map(|_| ());
        }
        self.at = end + 1;
        Ok(())
    }

    #[inline]
    fn skip_number(&mut self) -> Parsed<()> {
        let rest = &self.bytes[self.at..];
        // Most are plain; the others are looked at again.
        let plain = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let next = rest.get(plain).copied().unwrap_or(0);
        if plain == 0
            || matches!(next, b'.' | b'e' | b'E')
            || plain > 1 && rest.first() == Some(&b'0')
        {
            return self.number_end().map(|_| ());
        }
        self.at += plain;
        Ok(())
    }

    fn skip_list(&mut self, object: bool) -> Parsed<()> {
        let close = if object { b'}' } else { b']' };
        self.enter()?;
        self.blanks();
        if self.peek() == close {
            self.leave();
            return Ok(());
        }
        loop {
            self.blanks();
            if object {
                if self.peek() != b'"' {
                    return Err(self.unexpected());
                }
                self.skip_string()?;
                self.colon()?;
            }
            self.skip()?;
            self.blanks();
            match self.peek() {
                b',' => self.at += 1,
                byte if byte == close => break,
                _ => return Err(self.unexpected()),
            }
        }
        self.leave();
        Ok(())
    }

    /// Where the string that begins here ends, whether it has escapes, and whether it is ASCII.
    #[inline]
    fn closing_quote(&self) -> Parsed<(usize, bool, bool)> {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
        let (mut escapes, mut ascii) = (false, true);
        let mut at = self.at + 1;
        loop {
            // Eight bytes at once while none of them is a quote, a backslash or a control character.
            while let Some(word) = self.bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
                let word = u64::from_le_bytes(*word);
                let quote = zero(word ^ (ONES * 0x22));
                let slash = zero(word ^ (ONES * 0x5c));
                let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
                let special = quote | slash | control;
                if special == 0 {
                    ascii &= word & HIGH == 0;
                    at += 8;
                    continue;
                }
                // The lowest mark is true; those above it may be a borrow's.
                let low = special.trailing_zeros() & !7;
                ascii &= word & HIGH & ((1 << low) - 1) == 0;
                at += low as usize / 8;
                break;
            }
            match self.bytes.get(at) {
                None => {
                    return Err(Self::fail(
                        self.at,
                        "unexpected end of input: a string is not closed",
                    ));
                }
                Some(b'"') => return Ok((at, escapes, ascii)),
                Some(b'\\') => {
                    escapes = true;
                    ascii &= self.bytes.get(at + 1).is_none_or(u8::is_ascii);
                    at += 2;
                }
                Some(0..=0x1f) => {
                    return Err(Self::fail(at, "invalid control character in a string"));
                }
                Some(byte) => {
                    ascii &= byte.is_ascii();
                    at += 1;
                }
            }
        }
    }

    /// Goes past a string: whether it has escapes, and its raw text.
    fn string_end(&mut self) -> Parsed<(bool, &'a str)> {
        let start = self.at + 1;
        let (at, escapes, _) = self.closing_quote()?;
        let raw = &self.bytes[start..at];
        self.at = at + 1;
        match std::str::from_utf8(raw) {
            Ok(text) => Ok((escapes, text)),
            Err(wrong) => Err(Self::fail(
                start + wrong.valid_up_to(),
                "invalid UTF-8 in a string",
            )),
        }
    }

    fn string(&mut self) -> Parsed<String> {
        let start = self.at + 1;
        let (escapes, raw) = self.string_end()?;
        if !escapes {
            return Ok(raw.to_owned());
        }
        let mut out = String::with_capacity(raw.len());
        let mut rest = raw;
        while let Some(slash) = memchr::memchr(b'\\', rest.as_bytes()) {
            out.push_str(&rest[..slash]);
            let here = start + raw.len() - rest.len() + slash;
            rest = &rest[slash + 1..];
            let mut chars = rest.chars();
            let c = chars
                .next()
                .ok_or_else(|| Self::fail(here, "invalid escape"))?;
            rest = chars.as_str();
            match c {
                '"' | '\\' | '/' => out.push(c),
                'b' => out.push('\u{8}'),
                'f' => out.push('\u{c}'),
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                'u' => {
                    let first = hex4(rest).ok_or_else(|| {
                        Self::fail(here, "incomplete unicode character escape sequence")
                    })?;
                    rest = &rest[4..];
                    let code = if (0xd800..0xdc00).contains(&first) {
                        let second = rest
                            .strip_prefix("\\u")
                            .and_then(hex4)
                            .filter(|it| (0xdc00..0xe000).contains(it));
                        let second = second
                            .ok_or_else(|| Self::fail(here, "a lone surrogate is no character"))?;
                        rest = &rest[6..];
                        0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                    } else {
                        first
                    };
                    out.push(
                        char::from_u32(code)
                            .ok_or_else(|| Self::fail(here, "a lone surrogate is no character"))?,
                    );
                }
                _ => {
                    return Err(Self::fail(
                        here,
                        format!("invalid escape character in string: '\\{c}'"),
                    ));
                }
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Goes past a number: its text, and whether it is a Float.
    fn number_end(&mut self) -> Parsed<(&'a str, bool)> {
        let start = self.at;
        if self.peek() == b'-' {
            self.at += 1;
        }
        match self.peek() {
            b'0' if self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) => {
                return Err(Self::fail(start, "invalid number: it begins with a zero"));
            }
            b'0'..=b'9' => self.digits(),
            _ => {
                self.at = start;
                return Err(self.unexpected());
            }
        }
        let mut float = false;
        if self.peek() == b'.' {
            float = true;
            self.at += 1;
            self.some_digits(start)?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            float = true;
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.some_digits(start)?;
        }
        Ok((
            std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default(),
            float,
        ))
    }

    fn digits(&mut self) {
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
    }

    fn some_digits(&mut self, start: usize) -> Parsed<()> {
        if !self.peek().is_ascii_digit() {
            return Err(Self::fail(start, "invalid number: a digit is missing"));
        }
        self.digits();
        Ok(())
    }

    fn number(&mut self) -> Parsed {
        let (text, float) = self.number_end()?;
        if float {
            return Ok(Value::Float(text.parse().unwrap_or(f64::NAN)));
        }
        match text.parse::<i64>() {
            Ok(small) => Ok(Value::Int(small)),
            Err(_) => Ok(text.parse::<BigInt>().map_or(Value::Nil, integer)),
        }
    }
}

/// What the inside of a string that has escapes means; `None` when it is no string.
pub(crate) fn unescaped(raw: &[u8]) -> Option<String> {
    let quoted = [b"\"", raw, b"\""].concat();
    Parser::new(&quoted, &mut Keys::default()).string().ok()
}

fn hex4(text: &str) -> Option<u32> {
    let digits = text.as_bytes().get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
