//! A strict JSON parser into values of the caller's. Fields outside of the projection are checked, but not built.
//!
//! Consecutive rows mostly have the same keys in the same order, so the parser first tries the key that the last row had
//! at the same place, which costs no allocation.

use std::fmt;

use crate::build::Build;
use crate::value::Value;

const DEPTH_MAX: usize = 100;

/// Maximum number of digits of an integer, or of the part of a number before its point. The time of work on integers grows with the
/// square of their length; all of this length are below 2^131072.
pub(crate) const DIGITS_MAX: usize = 39_456;

/// Keys are remembered up to this place; those after it share one.
const KEYS_MAX: usize = 10_000;

/// The part of a row that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projection {
    /// All of it.
    Whole,
    /// These keys, if the value is an object; anything else whole.
    Fields(Vec<(String, Projection)>),
}

/// Text that is not JSON.
#[derive(Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Offset in bytes.
    pub at: usize,
    /// The result of the parser.
    pub message: String,
    /// The value is nested too deeply.
    pub is_too_deep: bool,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.at)
    }
}

impl std::error::Error for ParseError {}

type Parsed<T> = Result<T, ParseError>;

/// The keys of the last row, by their place in it.
pub struct Keys<B: Build = Value> {
    known: Vec<Known<B::Key>>,
}

impl<B: Build> fmt::Debug for Keys<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl<B: Build> Default for Keys<B> {
    fn default() -> Keys<B> {
        Keys { known: Vec::new() }
    }
}

struct Known<K> {
    key: K,
    /// Its text in a row, with quotes; empty if it was written with escapes.
    literal: Box<[u8]>,
    /// The fields it was looked for among, and where it was found.
    found: (usize, Option<usize>),
}

/// No list of fields stands here.
const NOWHERE: usize = 0;

/// A parser of one text.
pub struct Parser<'a, B: Build = Value> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    keys: &'a mut Keys<B>,
    /// Number of keys in this row.
    key: usize,
}

impl<B: Build> fmt::Debug for Parser<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parser")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl<'a, B: Build> Parser<'a, B> {
    /// A parser of these bytes, which uses the keys of the row before.
    pub fn new(bytes: &'a [u8], keys: &'a mut Keys<B>) -> Parser<'a, B> {
        Parser {
            bytes,
            at: 0,
            depth: 0,
            keys,
            key: 0,
        }
    }

    /// Parses one value with nothing after it.
    ///
    /// # Errors
    ///
    /// Returns [`ParseError`] if the text is anything else.
    pub fn only(mut self, projection: &Projection) -> Result<B, ParseError> {
        self.blanks();
        let value = self.value(projection)?;
        self.blanks();
        if self.at < self.bytes.len() {
            return Err(self.unexpected());
        }
        Ok(value)
    }

    /// Parses the next value of a stream in which values may span lines; `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns [`ParseError`] if the text that follows does not start with a value.
    pub fn next_of_stream(&mut self, projection: &Projection) -> Result<Option<B>, ParseError> {
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

    /// Offset of the text that was not parsed yet.
    pub fn position(&self) -> usize {
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
    fn fail(at: usize, message: impl Into<String>) -> ParseError {
        ParseError {
            at,
            message: message.into(),
            is_too_deep: false,
        }
    }

    #[cold]
    fn unexpected(&self) -> ParseError {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let shown: String = String::from_utf8_lossy(&rest[..rest.len().min(20)])
            .chars()
            .take(12)
            .collect();
        if rest.is_empty() {
            return Self::fail(self.at, "unexpected end of input");
        }
        // A byte order mark shows nothing.
        let shown = shown.replace('\u{feff}', "\\u{feff}");
        Self::fail(self.at, format!("unexpected character: '{shown}'"))
    }

    fn value(&mut self, projection: &Projection) -> Parsed<B> {
        match self.peek() {
            b'{' => self.object(projection),
            b'[' => self.array(),
            b'"' => {
                let text = self.string()?;
                Ok(B::string(text))
            }
            b't' => self.word(b"true", B::bool(true)),
            b'f' => self.word(b"false", B::bool(false)),
            b'n' => self.word(b"null", B::null()),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.unexpected()),
        }
    }

    fn word(&mut self, word: &[u8], value: B) -> Parsed<B> {
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
            return Err(ParseError {
                at: self.at - 1,
                message: format!("nesting of {} is too deep", self.depth),
                is_too_deep: true,
            });
        }
        Ok(())
    }

    fn array(&mut self) -> Parsed<B> {
        self.enter()?;
        let mut list = Vec::new();
        self.blanks();
        if self.peek() == b']' {
            self.leave();
            return Ok(B::array(list));
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
        Ok(B::array(list))
    }

    fn leave(&mut self) {
        self.depth -= 1;
        self.at += 1;
    }

    fn object(&mut self, projection: &Projection) -> Parsed<B> {
        self.enter()?;
        let mut object = B::object(match projection {
            Projection::Whole => 0,
            Projection::Fields(fields) => fields.len(),
        });
        self.blanks();
        if self.peek() == b'}' {
            self.leave();
            return Ok(B::finish(object));
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
                    // A value's own keys may take the place of this one.
                    let Some(known) = self.keys.known.get(place) else {
                        return Err(self.unexpected());
                    };
                    let key = known.key.clone();
                    let value = self.value(inner)?;
                    B::insert(&mut object, key, value);
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
        Ok(B::finish(object))
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

    /// The projection of the value whose key is at a place; `None` if it is not read.
    fn field<'p>(
        &mut self,
        place: usize,
        fields: &'p [(String, Projection)],
    ) -> Option<&'p Projection> {
        let known = self.keys.known.get_mut(place)?;
        let list = fields.as_ptr().addr();
        if known.found.0 != list {
            let at = fields
                .iter()
                .position(|(field, _)| B::key_is(&known.key, field));
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
            key: B::key(text),
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
            || plain > DIGITS_MAX
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

    /// The end of the string that starts here, whether it has escapes, and whether it is ASCII.
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
        let first = self.at;
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
        let count = self.at - first;
        if count > DIGITS_MAX {
            return Err(Self::fail(
                start,
                format!("invalid number: {count} digits (expected at most {DIGITS_MAX})"),
            ));
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

    fn number(&mut self) -> Parsed<B> {
        let (text, float) = self.number_end()?;
        if float {
            return Ok(B::float(text.parse().unwrap_or(f64::NAN)));
        }
        Ok(match text.parse() {
            Ok(small) => B::integer(small),
            Err(_) => B::big_integer(text),
        })
    }
}

/// The text of a string that may have escapes, from the bytes between its quotes; `None` if they are not a string.
pub fn unescaped(raw: &[u8]) -> Option<String> {
    let quoted = [b"\"", raw, b"\""].concat();
    Parser::<Value>::new(&quoted, &mut Keys::default())
        .string()
        .ok()
}

fn hex4(text: &str) -> Option<u32> {
    let digits = text.as_bytes().get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
