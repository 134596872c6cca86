//! Priorities (RFC 9218 §4, §5, §7, §8).
//!
//! Owns the two parameters and their text form, a dictionary of structured fields (RFC 8941 §3.2), of which only the
//! required part is parsed. The transport's scheduler decides what they mean for the order of sending.

use core::fmt;

use lastbyte_quic::stream;

#[cfg(test)]
mod tests;

/// The priority of a response (RFC 9218 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Priority {
    /// Urgency, 0 (first) to 7 (last). Default: 3 (§4.1).
    pub urgency: u8,
    /// Whether parts of the response are useful by themselves, so that it may share bandwidth with others. Default: no
    /// (§4.2).
    pub is_incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self {
            urgency: stream::Priority::URGENCY_DEFAULT,
            is_incremental: false,
        }
    }
}

impl Priority {
    /// The priority for the transport's scheduler.
    pub const fn for_transport(self) -> stream::Priority {
        stream::Priority::new(self.urgency, self.is_incremental)
    }

    /// This priority with the parameters of a field value. Missing or invalid parameters keep their values (§4, §8); a
    /// value that is not a dictionary is ignored (RFC 8941 §4.2).
    #[must_use]
    pub fn updated(self, text: &[u8]) -> Self {
        let mut updated = self;
        let mut cursor = Cursor(text);
        cursor.blanks(b" ");
        while !cursor.0.is_empty() {
            let Some((key, member)) = cursor.member() else {
                return self;
            };
            // Of members with the same key, the last applies.
            match (key, member) {
                (b"u", Item::Integer(urgency)) => {
                    updated.urgency = u8::try_from(urgency)
                        .ok()
                        .filter(|urgency| *urgency <= stream::Priority::URGENCY_MAX)
                        .unwrap_or(self.urgency);
                }
                (b"i", Item::Boolean(is_incremental)) => updated.is_incremental = is_incremental,
                (b"u", _) => updated.urgency = self.urgency,
                (b"i", _) => updated.is_incremental = self.is_incremental,
                _ => {}
            }
            cursor.blanks(b" \t");
            if cursor.0.is_empty() {
                return updated;
            }
            if !cursor.next_is(b',') {
                return self;
            }
            cursor.blanks(b" \t");
            if cursor.0.is_empty() {
                // A trailing comma.
                return self;
            }
        }
        updated
    }
}

/// As a field value: the parameters that differ from the default.
impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        match (self.urgency == default.urgency, self.is_incremental) {
            (true, false) => Ok(()),
            (true, true) => f.write_str("i"),
            (false, false) => write!(f, "u={}", self.urgency),
            (false, true) => write!(f, "u={}, i", self.urgency),
        }
    }
}

/// A parsed value, as far as it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Integer(i64),
    Boolean(bool),
    Other,
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn blanks(&mut self, blanks: &[u8]) {
        self.take_while(|byte| blanks.contains(&byte));
    }

    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> &'a [u8] {
        let len = self.0.iter().take_while(|byte| is_part(**byte)).count();
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn next_is(&mut self, byte: u8) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// A key and its value; true if it has none. Parameters are skipped.
    fn member(&mut self) -> Option<(&'a [u8], Item)> {
        let key = self.key()?;
        let item = if self.next_is(b'=') {
            if self.next_is(b'(') {
                self.inner_list()?
            } else {
                self.bare_item()?
            }
        } else {
            Item::Boolean(true)
        };
        self.parameters()?;
        Some((key, item))
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        self.0
            .first()
            .filter(|byte| byte.is_ascii_lowercase() || **byte == b'*')?;
        Some(self.take_while(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte)
        }))
    }

    fn parameters(&mut self) -> Option<()> {
        while self.next_is(b';') {
            self.blanks(b" ");
            self.key()?;
            if self.next_is(b'=') {
                self.bare_item()?;
            }
        }
        Some(())
    }

    fn inner_list(&mut self) -> Option<Item> {
        loop {
            self.blanks(b" ");
            if self.next_is(b')') {
                return Some(Item::Other);
            }
            self.bare_item()?;
            self.parameters()?;
            self.0.first().filter(|byte| b" )".contains(byte))?;
        }
    }

    fn bare_item(&mut self) -> Option<Item> {
        match *self.0.first()? {
            b'?' => {
                let (flag, rest) = self.0.split_at_checked(2)?;
                self.0 = rest;
                match flag {
                    b"?0" => Some(Item::Boolean(false)),
                    b"?1" => Some(Item::Boolean(true)),
                    _ => None,
                }
            }
            b'"' => self.string(),
            b':' => {
                self.next_is(b':');
                self.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
                self.next_is(b':').then_some(Item::Other)
            }
            first if first.is_ascii_digit() || first == b'-' => self.number(),
            first if first.is_ascii_alphabetic() || first == b'*' => {
                self.take_while(|byte| {
                    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
                });
                Some(Item::Other)
            }
            _ => None,
        }
    }

    fn string(&mut self) -> Option<Item> {
        self.next_is(b'"');
        loop {
            self.take_while(|byte| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\');
            if self.next_is(b'"') {
                return Some(Item::Other);
            }
            if !self.next_is(b'\\') || !(self.next_is(b'"') || self.next_is(b'\\')) {
                return None;
            }
        }
    }

    fn number(&mut self) -> Option<Item> {
        let is_negative = self.next_is(b'-');
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        if digits.is_empty() || digits.len() > 15 {
            return None;
        }
        if self.next_is(b'.') {
            let fraction = self.take_while(|byte| byte.is_ascii_digit());
            return ((1..=3).contains(&fraction.len()) && digits.len() <= 12)
                .then_some(Item::Other);
        }
        let value = digits
            .iter()
            .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        Some(Item::Integer(if is_negative { -value } else { value }))
    }
}
