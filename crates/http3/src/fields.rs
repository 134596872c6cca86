//! A field section in memory: names and values, contiguous in one buffer (RFC 9110 §5).
//!
//! Owns the text of the fields and their offsets. A section of any size takes two allocations, and none if one is
//! reused.

use core::fmt;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// The fields of a message in order, which matters for those of the same name.
///
/// Invalid fields are reported when they are sent: [`SendError::InvalidField`](crate::SendError::InvalidField).
#[derive(Clone, Default)]
pub struct Fields {
    text: Vec<u8>,
    lines: Vec<Line>,
    /// The number of lines at the start that are pseudo-headers.
    pseudo: u8,
    prepared: Option<Arc<Prepared>>,
}

/// The first lines of a section, checked and encoded for any number of messages.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The number of lines.
    pub(crate) count: usize,
    /// Their encoding with the static table alone.
    pub(crate) encoded: Vec<u8>,
    /// The value of their `content-length`.
    pub(crate) content_length: Option<u64>,
}

/// The room that [`Fields::copy_with_room`] leaves for fields such as `date` and those of a site, in lines and bytes.
const ROOM_LINES: usize = 4;
const ROOM_TEXT: usize = 128;

#[derive(Clone, Copy)]
struct Line {
    name: u32,
    value: u32,
    end: u32,
    is_sensitive: bool,
}

/// One field of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLine<'a> {
    /// Its name, in lower case.
    pub name: &'a str,
    /// Its value.
    pub value: &'a [u8],
    /// Whether it must never be added to a compression table, on this hop or any other (RFC 9204 §7.1.3).
    pub is_sensitive: bool,
}

/// One field of a section as bytes. To compare names, this is cheaper than a [`FieldLine`], whose name is checked to be text.
#[derive(Clone, Copy)]
pub(crate) struct RawLine<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) is_sensitive: bool,
}

impl<'a> From<FieldLine<'a>> for RawLine<'a> {
    fn from(line: FieldLine<'a>) -> Self {
        Self {
            name: line.name.as_bytes(),
            value: line.value,
            is_sensitive: line.is_sensitive,
        }
    }
}

impl Fields {
    /// No fields.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            text: Vec::new(),
            lines: Vec::new(),
            pseudo: 0,
            prepared: None,
        }
    }

    /// Appends a field. Names are in lower case (RFC 9114 §4.2).
    pub fn push(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.add(name, value.as_ref(), false);
    }

    /// Appends a field whose value is a secret short enough to be guessed: it is never added to a compression table
    /// (RFC 9204 §7.1.3).
    pub fn push_sensitive(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.add(name, value.as_ref(), true);
    }

    /// A copy with room for a few more fields.
    #[must_use]
    pub fn copy_with_room(&self) -> Self {
        let mut copy = Self {
            text: Vec::with_capacity(self.text.len() + ROOM_TEXT),
            lines: Vec::with_capacity(self.lines.len() + ROOM_LINES),
            pseudo: self.pseudo,
            prepared: self.prepared.clone(),
        };
        copy.text.extend_from_slice(&self.text);
        copy.lines.extend_from_slice(&self.lines);
        copy
    }

    /// Appends a field and returns the section, for building one in a single expression.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.push(name, value);
        self
    }

    /// The value of the first field with this name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.raw()
            .find(|line| line.name == name.as_bytes())
            .map(|line| line.value)
    }

    /// The values of all fields with this name.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.raw()
            .filter(move |line| line.name == name.as_bytes())
            .map(|line| line.value)
    }

    /// All fields.
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            text: &self.text,
            lines: self.regular().iter(),
        }
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.regular().len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.regular().is_empty()
    }

    /// Writes the values of all fields with this name into `into`, with `separator` between them, which restores a
    /// `cookie` that was split (RFC 9114 §4.2.1), with `"; "`. Returns whether there was any.
    pub fn join(&self, name: &str, separator: &str, into: &mut Vec<u8>) -> bool {
        let mut is_any = false;
        for value in self.get_all(name) {
            if is_any {
                into.extend_from_slice(separator.as_bytes());
            }
            into.extend_from_slice(value);
            is_any = true;
        }
        is_any
    }

    /// The size as counted by `SETTINGS_MAX_FIELD_SECTION_SIZE` (RFC 9114 §4.2.2).
    pub fn section_size(&self) -> u64 {
        self.text.len() as u64 + 32 * self.lines.len() as u64
    }

    // ---- with pseudo-headers -----------------------------------------------------------------------------------------

    fn add(&mut self, name: &str, value: &[u8], is_sensitive: bool) {
        // A field longer than 4 GiB is stored empty, and rejected as invalid.
        let room = (u32::MAX as usize).saturating_sub(self.text.len());
        let (name, value) = if name.len().saturating_add(value.len()) > room {
            ("", &[][..])
        } else {
            (name, value)
        };
        let start = self.text.len() as u32;
        self.text.extend_from_slice(name.as_bytes());
        let middle = self.text.len() as u32;
        self.text.extend_from_slice(value);
        self.lines.push(Line {
            name: start,
            value: middle,
            end: self.text.len() as u32,
            is_sensitive,
        });
    }

    /// Appends a pseudo-header; all of them precede the fields.
    pub(crate) fn push_pseudo(&mut self, name: &str, value: &[u8]) {
        debug_assert_eq!(usize::from(self.pseudo), self.lines.len());
        self.add(name, value, false);
        self.pseudo = self.pseudo.saturating_add(1);
    }

    /// Appends a decoded line without checks. Returns its size (RFC 9114 §4.2.2).
    pub(crate) fn push_decoded(&mut self, name: &[u8], value: &[u8]) -> u64 {
        self.text.extend_from_slice(name);
        let middle = self.text.len();
        self.text.extend_from_slice(value);
        self.end_line(middle, false)
    }

    /// Where the text of the next line is to be appended, before [`Fields::end_line`].
    pub(crate) const fn begin_line(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Ends a line: the text since the previous line, whose name ends at `name_end`. Returns its size.
    pub(crate) fn end_line(&mut self, name_end: usize, is_sensitive: bool) -> u64 {
        let start = self.lines.last().map_or(0, |line| line.end);
        let end = self.text.len() as u32;
        self.lines.push(Line {
            name: start,
            value: name_end as u32,
            end,
            is_sensitive,
        });
        u64::from(end - start) + 32
    }

    pub(crate) fn set_pseudo(&mut self, count: u8) {
        self.pseudo = count;
    }

    /// Removes everything.
    pub(crate) fn clear_all(&mut self) {
        self.text.clear();
        self.lines.clear();
        self.pseudo = 0;
        self.prepared = None;
    }

    /// All lines, including pseudo-headers.
    pub(crate) fn all(&self) -> Iter<'_> {
        Iter {
            text: &self.text,
            lines: self.lines.iter(),
        }
    }

    /// Stores the check and the encoding of the present lines. They stay valid: lines are only appended, or all
    /// removed.
    pub(crate) fn set_prepared(&mut self, prepared: Prepared) {
        debug_assert_eq!(prepared.count, self.lines.len());
        self.prepared = Some(Arc::new(prepared));
    }

    /// The check and the encoding of the first lines, if they were prepared.
    pub(crate) fn prepared(&self) -> Option<&Prepared> {
        self.prepared.as_deref()
    }

    /// The line at an index among all.
    pub(crate) fn line(&self, index: u8) -> Option<RawLine<'_>> {
        self.lines
            .get(usize::from(index))
            .map(|line| line.raw(&self.text))
    }

    /// All lines as bytes, including pseudo-headers.
    pub(crate) fn all_raw(&self) -> impl Iterator<Item = RawLine<'_>> {
        self.raw_from(0)
    }

    /// All lines from an index on as bytes.
    pub(crate) fn raw_from(&self, index: usize) -> impl Iterator<Item = RawLine<'_>> {
        let lines = self.lines.get(index..).unwrap_or_default();
        lines.iter().map(|line| line.raw(&self.text))
    }

    /// All fields as bytes.
    pub(crate) fn raw(&self) -> impl Iterator<Item = RawLine<'_>> {
        self.regular().iter().map(|line| line.raw(&self.text))
    }

    fn regular(&self) -> &[Line] {
        self.lines
            .get(usize::from(self.pseudo)..)
            .unwrap_or_default()
    }
}

impl Line {
    fn raw<'a>(&self, text: &'a [u8]) -> RawLine<'a> {
        let slice = |from: u32, to: u32| text.get(from as usize..to as usize).unwrap_or_default();
        RawLine {
            name: slice(self.name, self.value),
            value: slice(self.value, self.end),
            is_sensitive: self.is_sensitive,
        }
    }

    fn of<'a>(&self, text: &'a [u8]) -> FieldLine<'a> {
        let line = self.raw(text);
        FieldLine {
            name: core::str::from_utf8(line.name).unwrap_or(""),
            value: line.value,
            is_sensitive: line.is_sensitive,
        }
    }
}

/// Fields, one after the other.
#[derive(Clone)]
pub struct Iter<'a> {
    text: &'a [u8],
    lines: core::slice::Iter<'a, Line>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = FieldLine<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.lines.next().map(|line| line.of(self.text))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.lines.size_hint()
    }
}

impl fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'a> IntoIterator for &'a Fields {
    type Item = FieldLine<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, V: AsRef<[u8]>> FromIterator<(&'a str, V)> for Fields {
    fn from_iter<I: IntoIterator<Item = (&'a str, V)>>(lines: I) -> Self {
        let mut fields = Self::new();
        for (name, value) in lines {
            fields.push(name, value);
        }
        fields
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.pseudo == other.pseudo && self.all().eq(other.all())
    }
}

impl Eq for Fields {}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for line in self.all() {
            // Secrets must not appear in logs.
            let value = if line.is_sensitive {
                "(sensitive)".into()
            } else {
                String::from_utf8_lossy(line.value)
            };
            map.entry(&line.name, &value);
        }
        map.finish()
    }
}
