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
    known: Vec<(Rc<Text>, u64)>,
}

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
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n' | 0x1e)
            && self.at < self.bytes.len()
        {
            self.at += 1;
        }
        if self.at >= self.bytes.len() {
            return Ok(None);
        }
        self.key = 0;
        self.depth = 0;
        let value = self.value(projection)?;
        if self.at < self.bytes.len() && !matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n' | 0x1e)
        {
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
            let (key, hash) = self.key()?;
            self.blanks();
            if self.peek() != b':' {
                return Err(self.unexpected());
            }
            self.at += 1;
            self.blanks();
            match projection {
                Projection::Whole => {
                    let value = self.value(&Projection::Whole)?;
                    table.insert_hashed(hash, key, value);
                }
                Projection::Fields(fields) => {
                    let name = key.get();
                    match fields.iter().find(|(field, _)| *field == *name) {
                        Some((_, inner)) => {
                            drop(name);
                            let value = self.value(inner)?;
                            table.insert_hashed(hash, key, value);
                        }
                        None => self.skip()?,
                    }
                }
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

    fn key(&mut self) -> Parsed<(Rc<Text>, u64)> {
        let place = self.key;
        self.key += 1;
        if let Some((known, hash)) = self.keys.known.get(place) {
            let text = known.get();
            let end = self.at + 1 + text.len();
            // Without escapes the bytes are the key.
            if self.bytes.get(end) == Some(&b'"')
                && self.bytes[self.at + 1..end] == *text.as_bytes()
                && !text.contains('\\')
            {
                self.at = end + 1;
                return Ok((Rc::clone(known), *hash));
            }
        }
        let text = self.string()?;
        let hash = hash_of_str(&text);
        let key = Rc::new(Text::frozen(text));
        if place < self.keys.known.len() {
            self.keys.known[place] = (Rc::clone(&key), hash);
        } else if place < 10_000 {
            self.keys.known.push((Rc::clone(&key), hash));
        }
        Ok((key, hash))
    }

    /// Checks a value without building it.
    fn skip(&mut self) -> Parsed<()> {
        match self.peek() {
            b'"' => {
                let start = self.at;
                let (escapes, _) = self.string_end()?;
                if escapes {
                    self.at = start;
                    self.string()?;
                }
                Ok(())
            }
            b'-' | b'0'..=b'9' => self.number_end().map(|_| ()),
            b'{' => self.object(&Projection::Fields(Vec::new())).map(|_| ()),
            b'[' => self.array().map(|_| ()),
            _ => self.value(&Projection::Whole).map(|_| ()),
        }
    }

    /// Goes past a string: whether it has escapes, and its raw text.
    fn string_end(&mut self) -> Parsed<(bool, &'a str)> {
        let start = self.at + 1;
        let mut escapes = false;
        let mut at = start;
        loop {
            match self.bytes.get(at) {
                None => {
                    return Err(Self::fail(
                        self.at,
                        "unexpected end of input: a string is not closed",
                    ));
                }
                Some(b'"') => break,
                Some(b'\\') => {
                    escapes = true;
                    at += 2;
                }
                Some(0..=0x1f) => {
                    return Err(Self::fail(at, "invalid control character in a string"));
                }
                Some(_) => at += 1,
            }
        }
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

fn hex4(text: &str) -> Option<u32> {
    let digits = text.as_bytes().get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
