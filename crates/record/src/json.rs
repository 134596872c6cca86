//! Writes JSON member by member into a string, without a tree.
//!
//! Handles commas, quotes and escapes. A number that JSON cannot represent, such as infinity, is written as `null`.

use std::fmt::Write;

#[cfg(test)]
mod tests;

/// An object being written. It is closed when it is dropped.
#[derive(Debug)]
pub struct Object<'a> {
    text: &'a mut String,
    is_empty: bool,
}

/// An array being written. It is closed when it is dropped.
#[derive(Debug)]
pub struct Array<'a> {
    text: &'a mut String,
    is_empty: bool,
}

impl<'a> Object<'a> {
    /// Starts an object at the end of the text.
    pub fn new(text: &'a mut String) -> Self {
        text.push('{');
        Self {
            text,
            is_empty: true,
        }
    }

    fn key(&mut self, key: &str) {
        if !std::mem::take(&mut self.is_empty) {
            self.text.push(',');
        }
        string(self.text, key);
        self.text.push(':');
    }

    /// Writes a string.
    pub fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        string(self.text, value);
        self
    }

    /// Writes an integer.
    pub fn integer(&mut self, key: &str, value: impl Into<u64>) -> &mut Self {
        self.key(key);
        integer(self.text, value.into());
        self
    }

    /// Writes a number with at most this many decimal places.
    pub fn number(&mut self, key: &str, value: f64, digits: usize) -> &mut Self {
        self.key(key);
        number(self.text, value, digits);
        self
    }

    /// Writes `null`.
    pub fn null(&mut self, key: &str) -> &mut Self {
        self.key(key);
        self.text.push_str("null");
        self
    }

    /// Writes a boolean.
    pub fn boolean(&mut self, key: &str, value: bool) -> &mut Self {
        self.key(key);
        self.text.push_str(if value { "true" } else { "false" });
        self
    }

    /// Starts an object.
    pub fn object(&mut self, key: &str) -> Object<'_> {
        self.key(key);
        Object::new(self.text)
    }

    /// Starts an array.
    pub fn array(&mut self, key: &str) -> Array<'_> {
        self.key(key);
        Array::new(self.text)
    }
}

impl Drop for Object<'_> {
    fn drop(&mut self) {
        self.text.push('}');
    }
}

impl<'a> Array<'a> {
    fn new(text: &'a mut String) -> Self {
        text.push('[');
        Self {
            text,
            is_empty: true,
        }
    }

    fn next(&mut self) {
        if !std::mem::take(&mut self.is_empty) {
            self.text.push(',');
        }
    }

    /// Writes an integer.
    pub fn integer(&mut self, value: u64) -> &mut Self {
        self.next();
        integer(self.text, value);
        self
    }

    /// Writes a number with at most this many decimal places.
    pub fn number(&mut self, value: f64, digits: usize) -> &mut Self {
        self.next();
        number(self.text, value, digits);
        self
    }

    /// Writes a string.
    pub fn text(&mut self, value: &str) -> &mut Self {
        self.next();
        string(self.text, value);
        self
    }

    /// Starts an object.
    pub fn object(&mut self) -> Object<'_> {
        self.next();
        Object::new(self.text)
    }

    /// Starts an array.
    pub fn array(&mut self) -> Array<'_> {
        self.next();
        Array::new(self.text)
    }
}

impl Drop for Array<'_> {
    fn drop(&mut self) {
        self.text.push(']');
    }
}

fn integer(text: &mut String, value: u64) {
    // Writing to a `String` cannot fail.
    let _ = write!(text, "{value}");
}

fn number(text: &mut String, value: f64, digits: usize) {
    if !value.is_finite() {
        text.push_str("null");
        return;
    }
    let start = text.len();
    let _ = write!(text, "{value:.digits$}");
    if text
        .get(start..)
        .is_some_and(|written| written.contains('.'))
    {
        let trimmed = text.trim_end_matches('0').trim_end_matches('.').len();
        text.truncate(trimmed);
    }
    if text.get(start..) == Some("-0") {
        text.truncate(start);
        text.push('0');
    }
}

/// Writes a text in quotes.
pub(crate) fn string(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            // Those of C1 as well: a terminal may interpret them.
            control if control.is_control() => {
                let _ = write!(text, "\\u{:04x}", control as u32);
            }
            other => text.push(other),
        }
    }
    text.push('"');
}
