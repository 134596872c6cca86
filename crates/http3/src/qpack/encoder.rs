//! Encoding field sections, and insertions before them (RFC 9204 §2.1, §4.3, §4.4, §4.5).
//!
//! Holds our dynamic table at the peer, the entries that the peer has acknowledged, and the unacknowledged sections that refer
//! to it.
//!
//! - Inserted: fields that rarely change (`user-agent`, `server`, …) at their first use, any other at its second. Never:
//!   sensitive fields and credentials, since an attacker who can guess values could confirm them by the compression (§7.1).
//! - Referred to: entries that the peer has acknowledged. Newer ones only if the caller permits it and the peer permits more
//!   blocked streams (§2.1.2), so that streams wait for each other's packets only at the start of a connection.
//! - Evicted: only entries that are acknowledged and no longer referred to (§2.1.1). Entries close to eviction are
//!   duplicated rather than referred to.

use std::collections::VecDeque;

use lastbyte_wire::Reader;

use super::{
    ENTRY_OVERHEAD, QpackError, huffman,
    integer::{self, IntegerError},
    static_table::{self, Found},
    table::{Table, hash},
};
use crate::{FieldLine, fields::RawLine};

#[cfg(test)]
mod tests;

/// Permissions of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Free space for instructions on the encoder stream, in bytes.
    pub instructions_max: usize,
    /// Whether it may refer to entries that the peer may not have yet, which blocks the stream there if they arrive
    /// later.
    pub may_block: bool,
}

/// A section that refers to the table and is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Section {
    stream: u64,
    /// One more than the index of the newest entry that it refers to.
    required: u64,
    /// The index of the oldest.
    lowest: u64,
}

/// The encoder of one direction.
#[derive(Debug)]
pub struct Encoder {
    pub(super) table: Table,
    /// The part of the peer's table that we use.
    capacity_wanted: u64,
    blocked_wanted: u64,
    /// The peer's `SETTINGS_QPACK_MAX_TABLE_CAPACITY`, on which the encoding of insert counts depends (§4.5.1.1).
    peer_capacity: u64,
    /// Maximum number of blocked streams.
    blocked_max: u64,
    /// The Known Received Count (§2.1.4).
    pub(super) known_received: u64,
    outstanding: VecDeque<Section>,
    /// By the hash of a field, and of a name: one more than the index of an entry that may match. Empty until there is
    /// an entry.
    fields: Vec<u32>,
    /// By the hash of a field: the rest of the hash of a field that was sent once. Empty until there is such a field.
    seen: Vec<u32>,
    /// Pending data of the encoder stream.
    instructions: Vec<u8>,
    lines: Vec<u8>,
    partial: Vec<u8>,
}

const FIELD_SLOTS: usize = 512;
/// Maximum number of unacknowledged sections that refer to the table; beyond it, none does.
const OUTSTANDING_MAX: usize = 1024;

/// Names, by their static index, whose fields are inserted at once.
const AT_ONCE: u128 = 1 << 0 // :authority
    | 1 << 29 // accept
    | 1 << 31 // accept-encoding
    | 1 << 36 // cache-control
    | 1 << 44 // content-type
    | 1 << 56 // strict-transport-security
    | 1 << 59 // vary
    | 1 << 72 // accept-language
    | 1 << 83 // alt-svc
    | 1 << 85 // content-security-policy
    | 1 << 92 // server
    | 1 << 95; // user-agent
/// Names whose fields are never inserted: cookie, set-cookie, authorization.
const NEVER: u128 = 1 << 5 | 1 << 14 | 1 << 84;

/// The section that is being encoded.
struct Draft {
    base: u64,
    required: u64,
    lowest: u64,
    /// Whether it may refer to unacknowledged entries; `None` before the first question.
    may_block: Option<bool>,
    instructions_max: usize,
}

impl Draft {
    fn refer(&mut self, index: u64) {
        self.required = self.required.max(index + 1);
        self.lowest = self.lowest.min(index);
    }
}

impl Encoder {
    /// Uses up to `capacity` bytes of the peer's table, and blocks up to `blocked` streams. Until
    /// [`Encoder::on_peer_settings`], none.
    #[must_use]
    pub fn new(capacity: u32, blocked: u16) -> Self {
        Self {
            table: Table::default(),
            capacity_wanted: u64::from(capacity),
            blocked_wanted: u64::from(blocked),
            peer_capacity: 0,
            blocked_max: 0,
            known_received: 0,
            outstanding: VecDeque::new(),
            fields: Vec::new(),
            seen: Vec::new(),
            instructions: Vec::new(),
            lines: Vec::new(),
            partial: Vec::new(),
        }
    }

    /// Sets the peer's limits (§3.2.3, §2.1.2). Call it once.
    pub fn on_peer_settings(&mut self, max_table_capacity: u64, blocked_streams: u64) {
        self.peer_capacity = max_table_capacity;
        self.blocked_max = self.blocked_wanted.min(blocked_streams);
        let capacity = self.capacity_wanted.min(max_table_capacity);
        // A capacity below one entry is treated as none.
        if capacity >= ENTRY_OVERHEAD {
            self.table.set_capacity(capacity);
            integer::put(&mut self.instructions, 0x20, 5, capacity);
        }
    }

    /// Pending data of the encoder stream (§4.3), to be sent before or with the section: remove it from the front as it
    /// is sent.
    pub const fn instructions(&mut self) -> &mut Vec<u8> {
        &mut self.instructions
    }

    /// Frees memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        self.table.release_memory();
        self.outstanding.shrink_to_fit();
        self.instructions.shrink_to_fit();
        self.lines = Vec::new();
        self.partial.shrink_to_fit();
    }

    // ---- sections ----------------------------------------------------------------------------------------------------

    /// Whether the next section can refer to the static table only.
    pub(crate) fn is_static(&self) -> bool {
        self.table.capacity() == 0 || self.outstanding.len() >= OUTSTANDING_MAX
    }

    /// Appends the encoded section of a stream's message to `into` (§4.5).
    pub fn encode<'f>(
        &mut self,
        stream: u64,
        lines: impl Iterator<Item = FieldLine<'f>>,
        options: EncodeOptions,
        into: &mut Vec<u8>,
    ) {
        self.encode_raw(stream, lines.map(RawLine::from), options, into);
    }

    /// The same for lines as bytes.
    pub(crate) fn encode_raw<'f>(
        &mut self,
        stream: u64,
        lines: impl Iterator<Item = RawLine<'f>>,
        options: EncodeOptions,
        into: &mut Vec<u8>,
    ) {
        if self.is_static() {
            static_section(&[], lines, into);
            return;
        }
        let base = self.table.inserted();
        let mut draft = Draft {
            base,
            required: 0,
            lowest: u64::MAX,
            may_block: (!options.may_block || self.blocked_max == 0).then_some(false),
            instructions_max: options.instructions_max,
        };
        self.lines.clear();
        for line in lines {
            self.line(&line, stream, &mut draft);
        }
        self.prefix(&draft, into);
        into.extend_from_slice(&self.lines);
        if draft.required > 0 {
            self.outstanding.push_back(Section {
                stream,
                required: draft.required,
                lowest: draft.lowest,
            });
        }
    }

    /// The required insert count and the base (§4.5.1).
    fn prefix(&self, draft: &Draft, into: &mut Vec<u8>) {
        if draft.required == 0 {
            into.extend_from_slice(&[0, 0]);
            return;
        }
        let full_range = 2 * (self.peer_capacity / ENTRY_OVERHEAD);
        let encoded = draft.required % full_range.max(1) + 1;
        integer::put(into, 0, 8, encoded);
        match draft.base.checked_sub(draft.required) {
            Some(delta) => integer::put(into, 0, 7, delta),
            None => integer::put(into, 0x80, 7, draft.required - draft.base - 1),
        }
    }

    #[inline]
    fn line(&mut self, line: &RawLine<'_>, stream: u64, draft: &mut Draft) {
        let (name, value) = (line.name, line.value);
        let name_hash = hash(name);
        let found = static_table::find(name, name_hash, value);
        let static_name = match found {
            Found::Field(index) if !line.is_sensitive => {
                integer::put(&mut self.lines, 0xc0, 6, u64::from(index));
                return;
            }
            Found::Field(index) | Found::Name(index) => Some(index),
            Found::Nothing => None,
        };
        let bit = static_name.map_or(0, |index| 1u128 << index);
        let is_secret = line.is_sensitive
            || bit & NEVER != 0
            || (static_name.is_none() && name == b"proxy-authorization");
        if is_secret {
            literal(
                &mut self.lines,
                static_name.map_or(Name::Literal, Name::Static),
                line,
                draft.base,
            );
            return;
        }
        let field_hash = hash(value).rotate_left(7) ^ name_hash.wrapping_mul(0x9e37_79b1);
        if let Some(index) = self.look_up(field_hash, name, Some(value)) {
            let index = self.freshen(index, field_hash, draft);
            if self.may_refer(index, stream, draft) {
                draft.refer(index);
                self.indexed(index, draft.base);
                return;
            }
        } else if (bit & AT_ONCE != 0 || self.was_seen(field_hash))
            && let Some(index) = self.insert(static_name, name_hash, field_hash, line, draft)
            && self.may_refer(index, stream, draft)
        {
            draft.refer(index);
            self.indexed(index, draft.base);
            return;
        }
        let name = match static_name {
            Some(index) => Name::Static(index),
            None => match self.look_up(name_hash, name, None) {
                Some(index) if self.may_refer(index, stream, draft) && !self.is_draining(index) => {
                    draft.refer(index);
                    Name::Dynamic(index)
                }
                _ => Name::Literal,
            },
        };
        literal(&mut self.lines, name, line, draft.base);
    }

    /// An entry with this name, and with this value if one is given.
    #[inline]
    fn look_up(&self, hash: u32, name: &[u8], value: Option<&[u8]>) -> Option<u64> {
        let slot = *self.fields.get(hash as usize % FIELD_SLOTS)?;
        // The low 32 bits of the index; the table holds far fewer entries than that.
        let newest = self.table.inserted();
        let index = newest.checked_sub(u64::from(
            (newest as u32).wrapping_add(1).wrapping_sub(slot),
        ))?;
        let (known_name, known_value) = self.table.get(index)?;
        let is_it = known_name == name && value.is_none_or(|value| value == known_value);
        is_it.then_some(index)
    }

    fn note(&mut self, hash: u32, index: u64) {
        if self.fields.is_empty() {
            self.fields = vec![0; FIELD_SLOTS];
        }
        if let Some(slot) = self.fields.get_mut(hash as usize % FIELD_SLOTS) {
            *slot = (index as u32).wrapping_add(1);
        }
    }

    /// Whether a field was sent before; records it.
    fn was_seen(&mut self, field_hash: u32) -> bool {
        if self.seen.is_empty() {
            self.seen = vec![0; FIELD_SLOTS];
        }
        let rest = (field_hash >> 9) | 1 << 31;
        match self.seen.get_mut(field_hash as usize % FIELD_SLOTS) {
            Some(slot) => std::mem::replace(slot, rest) == rest,
            None => false,
        }
    }

    /// Whether the section may refer to an entry, because it is acknowledged or the stream may be blocked.
    #[inline]
    fn may_refer(&self, index: u64, stream: u64, draft: &mut Draft) -> bool {
        index < self.known_received
            || *draft
                .may_block
                .get_or_insert_with(|| self.may_block(stream))
    }

    /// Whether one more stream may have to wait (§2.1.2).
    fn may_block(&self, stream: u64) -> bool {
        let waits = |section: &&Section| section.required > self.known_received;
        let mut waiting = 0;
        for section in self.outstanding.iter().filter(waits) {
            if section.stream == stream {
                return true;
            }
            // A stream with several is counted more often than necessary.
            waiting += 1;
        }
        waiting < self.blocked_max
    }

    /// Whether an entry is draining: among the oldest eighth of a table that is nearly full (§2.1.1.1).
    fn is_draining(&self, index: u64) -> bool {
        let count = self.table.inserted() - self.table.oldest();
        self.table.size() * 4 > self.table.capacity() * 3
            && index < self.table.oldest() + count.div_ceil(8)
    }

    /// The index below which entries may be evicted (§2.1.1).
    fn evictable(&self, draft: &Draft) -> u64 {
        let outstanding = self.outstanding.iter().map(|section| section.lowest).min();
        self.known_received
            .min(draft.lowest)
            .min(outstanding.unwrap_or(u64::MAX))
    }

    /// A newer copy of a draining entry, if there is room for one.
    fn freshen(&mut self, index: u64, field_hash: u32, draft: &Draft) -> u64 {
        if !self.is_draining(index) || self.instructions.len() + 10 > draft.instructions_max {
            return index;
        }
        let Some((name, value)) = self.table.get(index) else {
            return index;
        };
        let size = Table::size_of(name, value);
        // The original must not be evicted for its copy: the peer could not read it.
        if !self.table.has_room(size, self.evictable(draft).min(index)) {
            return index;
        }
        let name_hash = hash(name);
        let newest = self.table.inserted();
        integer::put(&mut self.instructions, 0, 5, newest - 1 - index);
        self.table.insert_from(index, None);
        self.note(field_hash, newest);
        self.note(name_hash, newest);
        newest
    }

    /// Inserts a field, if there is room for it in the table and on the encoder stream.
    fn insert(
        &mut self,
        static_name: Option<u8>,
        name_hash: u32,
        field_hash: u32,
        line: &RawLine<'_>,
        draft: &Draft,
    ) -> Option<u64> {
        let (name, value) = (line.name, line.value);
        let size = Table::size_of(name, value);
        let fits_stream =
            self.instructions.len() + name.len() + value.len() + 20 <= draft.instructions_max;
        if size > self.table.capacity() / 2 || !fits_stream {
            return None;
        }
        let keep = self.evictable(draft);
        if !self.table.has_room(size, keep) {
            return None;
        }
        let newest = self.table.inserted();
        if let Some(index) = static_name {
            integer::put(&mut self.instructions, 0xc0, 6, u64::from(index));
        } else if let Some(index) = self.look_up(name_hash, name, None) {
            integer::put(&mut self.instructions, 0x80, 6, newest - 1 - index);
        } else {
            put_string(&mut self.instructions, 0x40, 5, name);
        }
        put_string(&mut self.instructions, 0, 7, value);
        self.table.insert(name, value);
        self.note(field_hash, newest);
        if static_name.is_none() {
            self.note(name_hash, newest);
        }
        Some(newest)
    }

    /// An indexed field line of the dynamic table (§4.5.2, §4.5.3).
    fn indexed(&mut self, index: u64, base: u64) {
        match index.checked_sub(base) {
            None => integer::put(&mut self.lines, 0x80, 6, base - 1 - index),
            Some(behind) => integer::put(&mut self.lines, 0x10, 4, behind),
        }
    }

    // ---- the decoder stream ------------------------------------------------------------------------------------------

    /// Processes data of the peer's decoder stream (§4.4).
    ///
    /// # Errors
    ///
    /// Returns [`QpackError`] if an instruction is invalid, or acknowledges what was not sent.
    pub fn on_decoder_stream(&mut self, bytes: &[u8]) -> Result<(), QpackError> {
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(bytes);
        let mut reader = Reader::new(&all);
        let mut done = 0;
        loop {
            match self.acknowledgment(&mut reader) {
                Ok(()) => done = reader.position(),
                Err(None) => break,
                Err(Some(error)) => return Err(error),
            }
        }
        // An integer of ten bytes is invalid, so less than that stays buffered.
        all.drain(..done);
        self.partial = all;
        Ok(())
    }

    fn acknowledgment(&mut self, reader: &mut Reader<'_>) -> Result<(), Option<QpackError>> {
        let halt = |error| match error {
            IntegerError::Incomplete => None,
            IntegerError::TooLarge => Some(QpackError::decoder_stream("an integer is too large")),
        };
        let first = reader.rest().first().copied().ok_or(None)?;
        if first & 0x80 != 0 {
            // §4.4.1: Section Acknowledgment.
            let stream = integer::read(reader, 7).map_err(halt)?;
            let at = self
                .outstanding
                .iter()
                .position(|section| section.stream == stream)
                .ok_or(Some(QpackError::decoder_stream(
                    "an acknowledgment of a section that was not sent",
                )))?;
            if let Some(section) = self.outstanding.remove(at) {
                self.known_received = self.known_received.max(section.required);
            }
        } else if first & 0x40 != 0 {
            // §4.4.2: Stream Cancellation.
            let stream = integer::read(reader, 6).map_err(halt)?;
            self.outstanding.retain(|section| section.stream != stream);
        } else {
            // §4.4.3: Insert Count Increment.
            let increment = integer::read(reader, 6).map_err(halt)?;
            let known = self.known_received.saturating_add(increment);
            if increment == 0 || known > self.table.inserted() {
                return Err(Some(QpackError::decoder_stream(
                    "an increment of nothing, or of more than was inserted",
                )));
            }
            self.known_received = known;
        }
        Ok(())
    }
}

/// The name reference of a literal.
#[derive(Clone, Copy)]
enum Name {
    Static(u8),
    Dynamic(u64),
    Literal,
}

/// Lines encoded with the static table alone.
pub(crate) fn encode_static<'f>(lines: impl Iterator<Item = RawLine<'f>>) -> Vec<u8> {
    let mut encoded = Vec::new();
    for line in lines {
        static_line(&mut encoded, &line);
    }
    encoded
}

/// Appends a section that refers to the static table only, whose first lines are encoded already, by [`encode_static`].
pub(crate) fn static_section<'f>(
    encoded: &[u8],
    lines: impl Iterator<Item = RawLine<'f>>,
    into: &mut Vec<u8>,
) {
    into.extend_from_slice(&[0, 0]);
    into.extend_from_slice(encoded);
    for line in lines {
        static_line(into, &line);
    }
}

fn static_line(lines: &mut Vec<u8>, line: &RawLine<'_>) {
    match static_table::find(line.name, hash(line.name), line.value) {
        Found::Field(index) if !line.is_sensitive => {
            integer::put(lines, 0xc0, 6, u64::from(index));
        }
        Found::Field(index) | Found::Name(index) => literal(lines, Name::Static(index), line, 0),
        Found::Nothing => literal(lines, Name::Literal, line, 0),
    }
}

/// A literal field line (§4.5.4, §4.5.5, §4.5.6).
fn literal(lines: &mut Vec<u8>, name: Name, line: &RawLine<'_>, base: u64) {
    let is_sensitive = line.is_sensitive;
    let flag = |bit: u8| if is_sensitive { bit } else { 0 };
    match name {
        Name::Static(index) => {
            integer::put(lines, 0x50 | flag(0x20), 4, u64::from(index));
        }
        Name::Dynamic(index) => match index.checked_sub(base) {
            None => integer::put(lines, 0x40 | flag(0x20), 4, base - 1 - index),
            Some(behind) => integer::put(lines, flag(0x08), 3, behind),
        },
        Name::Literal => {
            put_string(lines, 0x20 | flag(0x10), 3, line.name);
        }
    }
    put_string(lines, 0, 7, line.value);
}

/// Appends a string, Huffman-coded if that is shorter (§4.1.2).
#[inline]
fn put_string(into: &mut Vec<u8>, flags: u8, prefix: u32, text: &[u8]) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        integer::put(into, flags | 1 << prefix, prefix, coded as u64);
        huffman::encode(text, into);
    } else {
        integer::put(into, flags, prefix, text.len() as u64);
        into.extend_from_slice(text);
    }
}
