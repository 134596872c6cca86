//! Decoding field sections and acknowledging them (RFC 9204 §2.2, §4.3, §4.4, §4.5).
//!
//! Owns the peer's dynamic table, the blocked streams, and pending acknowledgments. It buffers at most one instruction
//! of the encoder stream, no more blocked streams than our settings permit, and decodes no more of a section than its
//! limits allow.

use std::collections::BTreeSet;

use lastbyte_wire::Reader;

use super::{
    QpackError, huffman,
    integer::{self, IntegerError},
    static_table,
    table::Table,
};
use crate::Fields;

#[cfg(test)]
mod tests;

/// The limits of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionLimits {
    /// Size as counted by `SETTINGS_MAX_FIELD_SECTION_SIZE` (RFC 9114 §4.2.2).
    pub size: u64,
    /// Number of fields.
    pub fields: usize,
}

/// The outcome of decoding a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// It was decoded.
    Done,
    /// It is blocked on insertions: decode it again once [`Decoder::next_unblocked`] returns the stream.
    Blocked,
    /// It exceeds its limits and was not decoded completely. The stream must be reset.
    TooLarge,
}

/// The decoder of one direction.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// Our limits.
    capacity_max: u64,
    blocked_max: usize,
    /// Blocked streams, by the insert count they require.
    blocked: BTreeSet<(u64, u64)>,
    /// The start of an instruction.
    partial: Vec<u8>,
    /// The insert count that the peer knows (Known Received Count).
    told: u64,
    /// Pending data of the decoder stream.
    instructions: Vec<u8>,
}

/// A line refers to a missing entry.
const NO_ENTRY: QpackError =
    QpackError::section("a field section refers to an entry that is not there");
const TRUNCATED: QpackError = QpackError::section("a field section ends inside of a field");
const LONG_INTEGER: QpackError = QpackError::section("an integer in a field section is too large");
const NOT_HUFFMAN: QpackError =
    QpackError::section("a string in a field section is not Huffman-coded");

fn in_section(error: IntegerError) -> QpackError {
    match error {
        IntegerError::Incomplete => TRUNCATED,
        IntegerError::TooLarge => LONG_INTEGER,
    }
}

/// Why an instruction was not executed.
enum InstructionError {
    /// The rest of it has not arrived.
    Incomplete,
    Invalid(QpackError),
}

impl From<IntegerError> for InstructionError {
    fn from(error: IntegerError) -> Self {
        match error {
            IntegerError::Incomplete => Self::Incomplete,
            IntegerError::TooLarge => {
                Self::Invalid(QpackError::encoder_stream("an integer is too large"))
            }
        }
    }
}

impl Decoder {
    /// Uses a table of up to `capacity_max` bytes, and permits up to `blocked_max` blocked streams, as our settings
    /// announce.
    #[must_use]
    pub fn new(capacity_max: u32, blocked_max: u16) -> Self {
        Self {
            table: Table::default(),
            capacity_max: u64::from(capacity_max),
            blocked_max: usize::from(blocked_max),
            blocked: BTreeSet::new(),
            partial: Vec::new(),
            told: 0,
            instructions: Vec::new(),
        }
    }

    /// Frees memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        self.table.release_memory();
        self.partial.shrink_to_fit();
        self.instructions.shrink_to_fit();
    }

    // ---- the encoder stream ------------------------------------------------------------------------------------------

    /// Processes data of the peer's encoder stream (§4.3).
    ///
    /// # Errors
    ///
    /// Returns [`QpackError`] if an instruction is invalid or not permitted.
    pub fn on_encoder_stream(&mut self, bytes: &[u8]) -> Result<(), QpackError> {
        if self.partial.is_empty() {
            let taken = self.carry_out(bytes)?;
            self.keep(bytes.get(taken..).unwrap_or_default())
        } else {
            let mut all = std::mem::take(&mut self.partial);
            all.extend_from_slice(bytes);
            let taken = self.carry_out(&all)?;
            all.drain(..taken);
            self.partial = all;
            self.keep(&[])
        }
    }

    fn keep(&mut self, rest: &[u8]) -> Result<(), QpackError> {
        self.partial.extend_from_slice(rest);
        // Text that fits the table takes at most 30 bits a byte, plus two lengths.
        if self.partial.len() as u64 > self.capacity_max.saturating_mul(4) + 32 {
            return Err(QpackError::encoder_stream(
                "an instruction is longer than the table",
            ));
        }
        Ok(())
    }

    /// Executes complete instructions. Returns their size in bytes.
    fn carry_out(&mut self, bytes: &[u8]) -> Result<usize, QpackError> {
        let mut reader = Reader::new(bytes);
        loop {
            let before = reader.position();
            match self.instruction(&mut reader) {
                Ok(()) => {}
                Err(InstructionError::Incomplete) => return Ok(before),
                Err(InstructionError::Invalid(error)) => return Err(error),
            }
        }
    }

    fn instruction(&mut self, reader: &mut Reader<'_>) -> Result<(), InstructionError> {
        let Some(first) = reader.rest().first().copied() else {
            return Err(InstructionError::Incomplete);
        };
        let is_done = if first & 0x80 != 0 {
            // §4.3.2: Insert with Name Reference.
            let index = integer::read(reader, 6)?;
            let value = string(reader, 7)?;
            let value = value.text().map_err(InstructionError::Invalid)?;
            if first & 0x40 != 0 {
                let (name, _) = static_table::get(index).ok_or(wrong_reference())?;
                self.table.insert(name.as_bytes(), &value)
            } else {
                let index = self.relative(index).ok_or(wrong_reference())?;
                self.table.insert_from(index, Some(&value))
            }
        } else if first & 0x40 != 0 {
            // §4.3.3: Insert with Literal Name.
            let name = string(reader, 5)?;
            let value = string(reader, 7)?;
            let (name, value) = (
                name.text().map_err(InstructionError::Invalid)?,
                value.text().map_err(InstructionError::Invalid)?,
            );
            self.table.insert(&name, &value)
        } else if first & 0x20 != 0 {
            // §4.3.1: Set Dynamic Table Capacity.
            let capacity = integer::read(reader, 5)?;
            if capacity > self.capacity_max {
                return Err(InstructionError::Invalid(QpackError::encoder_stream(
                    "a capacity above what was permitted",
                )));
            }
            self.table.set_capacity(capacity);
            true
        } else {
            // §4.3.4: Duplicate.
            let index = integer::read(reader, 5)?;
            let index = self.relative(index).ok_or(wrong_reference())?;
            self.table.insert_from(index, None)
        };
        if is_done {
            Ok(())
        } else {
            Err(InstructionError::Invalid(QpackError::encoder_stream(
                "an entry that is larger than the table",
            )))
        }
    }

    /// The absolute index of an instruction's reference (§3.2.5), if that entry exists.
    fn relative(&self, index: u64) -> Option<u64> {
        let index = self.table.inserted().checked_sub(1)?.checked_sub(index)?;
        self.table.get(index).map(|_| index)
    }

    // ---- request streams ---------------------------------------------------------------------------------------------

    /// Decodes a field section into `fields`, which must be empty (§4.5).
    ///
    /// # Errors
    ///
    /// Returns [`QpackError`] if it cannot be decoded, or too many streams are blocked.
    pub fn decode(
        &mut self,
        stream: u64,
        section: &[u8],
        limits: SectionLimits,
        fields: &mut Fields,
    ) -> Result<Decoded, QpackError> {
        let mut reader = Reader::new(section);
        let (required, base) = self.prefix(&mut reader)?;
        if required > self.table.inserted() {
            self.blocked.insert((required, stream));
            if self.blocked.len() > self.blocked_max {
                return Err(QpackError::section("more streams wait than was permitted"));
            }
            return Ok(Decoded::Blocked);
        }
        let references = References {
            table: &self.table,
            required,
            base,
        };
        let (mut size, mut count) = (0, 0);
        while !reader.is_empty() {
            size += line(&mut reader, &references, fields)?;
            count += 1;
            if size > limits.size || count > limits.fields {
                return Ok(Decoded::TooLarge);
            }
        }
        if required > 0 {
            integer::put(&mut self.instructions, 0x80, 7, stream);
            self.told = self.told.max(required);
        }
        Ok(Decoded::Done)
    }

    /// The required insert count and the base (§4.5.1).
    fn prefix(&self, reader: &mut Reader<'_>) -> Result<(u64, u64), QpackError> {
        const WRONG: QpackError = QpackError::section("invalid required insert count");
        let encoded = integer::read(reader, 8).map_err(in_section)?;
        let required = if encoded == 0 {
            0
        } else {
            let entries_max = self.capacity_max / super::ENTRY_OVERHEAD;
            let full_range = 2 * entries_max;
            if encoded > full_range {
                return Err(WRONG);
            }
            let value_max = self.table.inserted() + entries_max;
            let wrapped = value_max / full_range * full_range;
            let required = wrapped + encoded - 1;
            let required = if required > value_max {
                required.checked_sub(full_range).ok_or(WRONG)?
            } else {
                required
            };
            if required == 0 {
                return Err(WRONG);
            }
            required
        };
        let is_negative = reader.rest().first().is_some_and(|byte| byte & 0x80 != 0);
        let delta = integer::read(reader, 7).map_err(in_section)?;
        let base = if is_negative {
            required
                .checked_sub(delta)
                .and_then(|base| base.checked_sub(1))
        } else {
            required.checked_add(delta)
        };
        let base = base.ok_or(QpackError::section("a base below zero"))?;
        Ok((required, base))
    }

    /// A stream that is no longer blocked.
    pub fn next_unblocked(&mut self) -> Option<u64> {
        let &(required, stream) = self.blocked.first()?;
        if required > self.table.inserted() {
            return None;
        }
        self.blocked.pop_first();
        Some(stream)
    }

    /// The number of blocked streams.
    pub fn blocked(&self) -> usize {
        self.blocked.len()
    }

    /// The stream was reset or is not read any more (§2.2.2.2).
    pub fn cancel(&mut self, stream: u64) {
        self.blocked.retain(|(_, blocked)| *blocked != stream);
        // Without a table it cannot have referred to anything.
        if self.capacity_max > 0 {
            integer::put(&mut self.instructions, 0x40, 6, stream);
        }
    }

    // ---- the decoder stream ------------------------------------------------------------------------------------------

    /// Pending data of the decoder stream (§4.4): remove it from the front as it is sent.
    pub fn instructions(&mut self) -> &mut Vec<u8> {
        let inserted = self.table.inserted();
        if inserted > self.told {
            integer::put(&mut self.instructions, 0, 6, inserted - self.told);
            self.told = inserted;
        }
        &mut self.instructions
    }
}

const fn wrong_reference() -> InstructionError {
    InstructionError::Invalid(QpackError::encoder_stream(
        "an instruction refers to an entry that is not there",
    ))
}

/// A string as received.
#[derive(Clone, Copy)]
struct Coded<'a> {
    bytes: &'a [u8],
    is_huffman: bool,
}

/// Reads a string whose length has a prefix of this many bits; the bit above marks Huffman coding (§4.1.2).
#[inline]
fn string<'a>(reader: &mut Reader<'a>, prefix: u32) -> Result<Coded<'a>, IntegerError> {
    let first = *reader.rest().first().ok_or(IntegerError::Incomplete)?;
    let len = integer::read(reader, prefix)?;
    let len = usize::try_from(len).map_err(|_| IntegerError::TooLarge)?;
    Ok(Coded {
        bytes: reader.bytes(len)?,
        is_huffman: first >> prefix & 1 != 0,
    })
}

impl<'a> Coded<'a> {
    /// The decoded text, for the table.
    fn text(self) -> Result<std::borrow::Cow<'a, [u8]>, QpackError> {
        if !self.is_huffman {
            return Ok(self.bytes.into());
        }
        let mut text = Vec::new();
        huffman::decode(self.bytes, &mut text)
            .map_err(|_| QpackError::encoder_stream("a string is not Huffman-coded"))?;
        Ok(text.into())
    }

    /// Appends the decoded text to that of a section.
    #[inline]
    fn append(self, text: &mut Vec<u8>) -> Result<(), QpackError> {
        if self.is_huffman {
            huffman::decode(self.bytes, text).map_err(|_| NOT_HUFFMAN)
        } else {
            text.extend_from_slice(self.bytes);
            Ok(())
        }
    }
}

/// The entries that the lines of a section may refer to.
struct References<'a> {
    table: &'a Table,
    required: u64,
    base: u64,
}

impl<'a> References<'a> {
    /// The entry with this absolute index, which must be below the section's Required Insert Count (§2.2.3).
    #[inline]
    fn get(&self, index: Option<u64>) -> Result<(&'a [u8], &'a [u8]), QpackError> {
        let index = index
            .filter(|index| *index < self.required)
            .ok_or(NO_ENTRY)?;
        self.table.get(index).ok_or(NO_ENTRY)
    }

    fn before_base(&self, index: u64) -> Option<u64> {
        self.base.checked_sub(1)?.checked_sub(index)
    }

    fn behind_base(&self, index: u64) -> Option<u64> {
        self.base.checked_add(index)
    }
}

/// Decodes one line. Returns its size.
#[inline]
fn line(
    reader: &mut Reader<'_>,
    references: &References<'_>,
    fields: &mut Fields,
) -> Result<u64, QpackError> {
    let first = reader.rest().first().copied().unwrap_or_default();
    if first & 0x80 != 0 {
        // §4.5.2: Indexed Field Line.
        let index = integer::read(reader, 6).map_err(in_section)?;
        let (name, value) = if first & 0x40 != 0 {
            let (name, value) = static_table::get(index).ok_or(NO_ENTRY)?;
            (name.as_bytes(), value.as_bytes())
        } else {
            references.get(references.before_base(index))?
        };
        return Ok(fields.push_decoded(name, value));
    }
    if first & 0xf0 == 0x10 {
        // §4.5.3: Indexed Field Line with Post-Base Index.
        let index = integer::read(reader, 4).map_err(in_section)?;
        let (name, value) = references.get(references.behind_base(index))?;
        return Ok(fields.push_decoded(name, value));
    }
    let is_sensitive;
    let text = fields.begin_line();
    if first & 0x40 != 0 {
        // §4.5.4: Literal Field Line with Name Reference.
        is_sensitive = first & 0x20 != 0;
        let index = integer::read(reader, 4).map_err(in_section)?;
        if first & 0x10 != 0 {
            let (name, _) = static_table::get(index).ok_or(NO_ENTRY)?;
            text.extend_from_slice(name.as_bytes());
        } else {
            let (name, _) = references.get(references.before_base(index))?;
            text.extend_from_slice(name);
        }
    } else if first & 0x20 != 0 {
        // §4.5.6: Literal Field Line with Literal Name.
        is_sensitive = first & 0x10 != 0;
        string(reader, 3).map_err(in_section)?.append(text)?;
    } else {
        // §4.5.5: Literal Field Line with Post-Base Name Reference.
        is_sensitive = first & 0x08 != 0;
        let index = integer::read(reader, 3).map_err(in_section)?;
        let (name, _) = references.get(references.behind_base(index))?;
        text.extend_from_slice(name);
    }
    let name_end = text.len();
    string(reader, 7).map_err(in_section)?.append(text)?;
    Ok(fields.end_line(name_end, is_sensitive))
}
