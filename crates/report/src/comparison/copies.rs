//! Lines that were read before: a log that is given twice, or that has some lines twice, counts connections twice, and makes intervals
//! too narrow.
//!
//! A line has an identity if it has a seed, or the number of its connection and a time. Two such lines are the same if all columns of the
//! reading query are, except those that the name of the file is part of: a copy has another name. Lines of one seed in several arms are
//! pairs, also if each arm is a file. Of files whose lines have no identity, those are the same that have the same lines in the same order.
//!
//! Memory is bounded: of many lines, only those count whose hash ends with some zero bits, and the number of copies is an estimate.

use std::{collections::BTreeMap, sync::Arc};

use lastbyte_query::Value;

use super::{
    queries::{self, Column},
    settings::Settings,
    state::{SHARED_ROWS, value},
};

/// The maximum number of hashes that are kept.
const KEPT_MAX: usize = 1 << 18;

/// Copies of lines, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Copies {
    /// The number of lines that were read before.
    pub(super) lines: u64,
    /// Whether that is an estimate.
    pub(super) is_estimate: bool,
    /// All lines.
    pub(super) of: u64,
    /// The file of the first of them.
    pub(super) file: String,
    /// The file of the line that it is a copy of.
    pub(super) earlier: String,
}

impl Copies {
    /// `12 of 24 lines were read before: …`, without a full stop.
    pub(super) fn sentence(&self) -> String {
        let about = if self.is_estimate { "about " } else { "" };
        let first = if self.file == self.earlier {
            format!("the first is twice in {}", self.file)
        } else {
            format!("the first is in {} and in {}", self.earlier, self.file)
        };
        format!(
            "{about}{} of {} lines are copies of lines before them; {first}",
            self.lines, self.of
        )
    }

    /// Whether they are more than a few, as of a program that sends some lines again.
    pub(super) fn are_many(&self) -> bool {
        self.lines.saturating_mul(100) > self.of
    }
}

/// Lines by their hash, each with a place: of many, only some are kept, and each counts for several.
#[derive(Default)]
pub(crate) struct Seen {
    places: BTreeMap<u64, usize>,
    /// Only hashes without these bits are kept.
    mask: u64,
}

impl Seen {
    /// Notes a line. Returns the place of an equal one before it, if those are kept.
    pub(crate) fn add(&mut self, hash: u64, place: usize) -> Option<usize> {
        let hash = mixed(hash);
        if hash & self.mask != 0 {
            return None;
        }
        if let Some(earlier) = self.places.get(&hash) {
            return Some(*earlier);
        }
        self.places.insert(hash, place);
        if self.places.len() > KEPT_MAX {
            self.mask = self.mask << 1 | 1;
            let mask = self.mask;
            self.places.retain(|hash, _| hash & mask == 0);
        }
        None
    }

    /// The number of lines that each stands for.
    pub(crate) const fn weight(&self) -> u64 {
        self.mask + 1
    }
}

/// A hash of values.
pub(crate) fn hash_of(values: &[Value]) -> u64 {
    values.iter().fold(START, add)
}

/// Finds copies.
#[derive(Default)]
pub(super) struct CopyFinder {
    /// Columns that the name of the file is part of.
    names_file: Vec<bool>,
    /// Lines with an identity, each with the place of its file.
    lines: Seen,
    names: Vec<Arc<str>>,
    /// Of earlier files without an identity: the number of lines and their hash, with the place of the file.
    files: BTreeMap<(u64, u64), usize>,
    /// Of the open file: whether a line has an identity, the number of lines, and their hash.
    open: (bool, u64, u64),
    count: u64,
    copies: u64,
    /// The places of the files of the first copy, and of what it is a copy of.
    first: Option<(usize, usize)>,
}

impl CopyFinder {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            names_file: queries::names_file(settings),
            ..Self::default()
        }
    }

    /// Adds a row of the reading query.
    pub(super) fn add(&mut self, file: &str, row: &[Value]) {
        if self.names.last().is_none_or(|last| **last != *file) {
            self.end_file();
            self.names.push(file.into());
        }
        let here = self.names.len() - 1;
        self.count += 1;
        let is_there = |column| !value(row, column).is_null();
        let has_seed = is_there(Column::Seed);
        let has_identity = has_seed || (is_there(Column::Connection) && is_there(Column::Time));
        let hash = row.iter().enumerate().fold(START, |hash, (at, value)| {
            let is_paired = has_seed && at == Column::Named as usize;
            let names_file = self.names_file.get(at).is_some_and(|it| *it);
            if names_file && !is_paired {
                return hash;
            }
            add(hash, value)
        });
        let (any_identity, rows, all) = &mut self.open;
        *any_identity |= has_identity;
        *rows += 1;
        *all = word(*all, hash);
        if !has_identity {
            return;
        }
        if let Some(earlier) = self.lines.add(hash, here) {
            self.copies += self.lines.weight();
            self.first.get_or_insert((here, earlier));
        }
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.lines.places.len()
    }

    fn end_file(&mut self) {
        let (any_identity, rows, all) = core::mem::take(&mut self.open);
        // Few rows may be the same by chance.
        if any_identity || rows < SHARED_ROWS.unsigned_abs() {
            return;
        }
        let here = self.names.len() - 1;
        match self.files.get(&(rows, all)) {
            Some(earlier) => {
                self.copies += rows;
                self.first.get_or_insert((here, *earlier));
            }
            None => {
                self.files.insert((rows, all), here);
            }
        }
    }

    /// The copies, if there are any.
    pub(super) fn finish(mut self) -> Option<Copies> {
        self.end_file();
        let (file, earlier) = self.first?;
        Some(Copies {
            lines: self.copies,
            is_estimate: self.lines.weight() > 1,
            of: self.count,
            file: self.names[file].to_string(),
            earlier: self.names[earlier].to_string(),
        })
    }
}

/// FNV-1a of 64 bits.
const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

fn word(hash: u64, word: u64) -> u64 {
    bytes(hash, &word.to_le_bytes())
}

fn bytes(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

fn add(hash: u64, value: &Value) -> u64 {
    match value {
        Value::Null => word(hash, 0),
        Value::Integer(number) => word(word(hash, 1), number.cast_unsigned()),
        Value::Float(number) => word(word(hash, 2), number.to_bits()),
        Value::String(text) => word(bytes(word(hash, 3), text.as_bytes()), text.len() as u64),
        Value::Array(values) => {
            let hash = values.iter().fold(word(hash, 4), add);
            word(hash, values.len() as u64)
        }
        other => bytes(word(hash, 5), other.to_string().as_bytes()),
    }
}

/// A hash whose low bits depend on all bits (the finaliser of `SplitMix64`).
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
