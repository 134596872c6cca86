//! Rows as values, from the fields that the scanner found in a line. A row without references is reused for the next one.

use super::build::{Key, Keys, Parser};
use super::condition::{Condition, Scalar};
use crate::value::Value;
use crate::value::table::Table;
use lastbyte_json::Build;
use lastbyte_json::parse::{Projection, unescaped};
use lastbyte_json::scan::{Kind, Line, Plan, Scanner, Span};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Any number of up to this many digits fits into 64 bits.
const DIGITS_MAX: usize = 18;

/// This number of digits is read at once.
const WORD: usize = 8;

/// Reads rows: scans lines, and builds values from the fields found.
pub(crate) struct Reader {
    scanner: Scanner,
    projection: Projection,
    fields: Vec<Key>,
    /// When whole rows are read: the keys of the last row's plan, and the values that are the same in all its rows, with
    /// the plan's number; no values when a key comes twice.
    model: (u64, Option<Vec<(Key, Value)>>),
    /// The last row.
    row: Rc<Table>,
    /// For values that the parser reads.
    keys: Keys,
}

impl Reader {
    pub(crate) fn new(projection: &Projection) -> Reader {
        let fields = match projection {
            Projection::Whole => Vec::new(),
            Projection::Fields(fields) => fields
                .iter()
                .map(|(key, _)| Value::key(key.clone()))
                .collect(),
        };
        Reader {
            scanner: Scanner::new(projection),
            projection: projection.clone(),
            fields,
            model: (0, None),
            row: Rc::default(),
            keys: Keys::default(),
        }
    }

    /// Scans the line that starts at an offset.
    #[inline]
    pub(crate) fn line(&mut self, bytes: &[u8], start: usize) -> Line {
        self.scanner.line(bytes, start)
    }

    /// The values found in that line, by their place in the projection.
    pub(crate) fn found(&self) -> &[Option<Span>] {
        self.scanner.found()
    }

    /// Whether that line, with its line feed, equals the printed row. `false` may be wrong.
    pub(crate) fn is_verbatim(&self) -> bool {
        self.scanner.is_verbatim()
    }

    /// Whether a condition holds for that line's row; `None` if only the evaluator can tell.
    #[inline]
    pub(crate) fn holds(&self, condition: &Condition, bytes: &[u8]) -> Option<bool> {
        let found = self.scanner.found();
        condition.holds(&|field| {
            found[field].map_or(Scalar::Nil, |span| {
                let raw = &bytes[span.start..span.end];
                match span.kind {
                    Kind::Digits if raw.len() <= DIGITS_MAX => Scalar::Int(digits(bytes, span)),
                    Kind::Plain => Scalar::Text(&raw[1..raw.len() - 1]),
                    Kind::Other if raw == b"null" => Scalar::Nil,
                    Kind::Other if raw == b"false" => Scalar::False,
                    _ => Scalar::Other,
                }
            })
        })
    }

    /// The row of that line, if it was one; `None` when only the parser can tell. There should be
    /// no reference left to the row before.
    pub(crate) fn row(&mut self, bytes: &[u8]) -> Option<Value> {
        let found = self.scanner.found();
        let Projection::Fields(projections) = &self.projection else {
            return self.whole_row(bytes);
        };
        let keys = &mut self.keys;
        if let Some(row) = Rc::get_mut(&mut self.row) {
            let present = found.iter().enumerate().filter(|(_, span)| span.is_some());
            let present = present.map(|(at, _)| (at, &self.fields[at].text));
            let refilled = row.refill(present, |at, value| {
                found[at].is_some_and(|span| put(value, bytes, span, &projections[at].1, keys))
            });
            if refilled {
                return Some(Value::Hash(Rc::clone(&self.row)));
            }
        }
        let row = Table::with_capacity(found.len());
        for (at, span) in found.iter().enumerate() {
            if let Some(span) = span {
                let mut value = Value::Nil;
                if !put(&mut value, bytes, *span, &projections[at].1, keys) {
                    return None;
                }
                let key = &self.fields[at];
                row.push_hashed(key.hash, Rc::clone(&key.text), value);
            }
        }
        self.row = Rc::new(row);
        Some(Value::Hash(Rc::clone(&self.row)))
    }

    /// A row of which all values are read: what varies from the line, the rest from the plan.
    fn whole_row(&mut self, bytes: &[u8]) -> Option<Value> {
        let (plan, number) = self.scanner.plan()?;
        if self.model.0 != number {
            self.model = (number, model(plan));
        }
        let (found, keys) = (self.scanner.found(), &mut self.keys);
        let model = self.model.1.as_ref()?;
        let mut put_at = |at: usize, place: &mut Value| {
            if let Some(span) = found[at] {
                return put(place, bytes, span, &Projection::Whole, keys);
            }
            if let value @ (Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_)) =
                &model[at].1
            {
                *place = value.clone();
                return true;
            }
            // Values that can be changed in place are made again.
            let (model, span) = plan.constant(at);
            put(place, model, span, &Projection::Whole, keys)
        };
        if let Some(row) = Rc::get_mut(&mut self.row) {
            let expected = model.iter().map(|(key, _)| &key.text).enumerate();
            if row.refill(expected, &mut put_at) {
                return Some(Value::Hash(Rc::clone(&self.row)));
            }
        }
        let row = Table::with_capacity(model.len());
        for (at, (key, _)) in model.iter().enumerate() {
            let mut value = Value::Nil;
            if !put_at(at, &mut value) {
                return None;
            }
            row.push_hashed(key.hash, Rc::clone(&key.text), value);
        }
        self.row = Rc::new(row);
        Some(Value::Hash(Rc::clone(&self.row)))
    }
}

/// A plan's keys, and its values; `None` when a key comes twice.
fn model(plan: &Plan) -> Option<Vec<(Key, Value)>> {
    let mut model: Vec<(Key, Value)> = Vec::with_capacity(plan.atom_count());
    let mut known = BTreeSet::new();
    let mut keys = Keys::default();
    for (at, raw) in plan.keys().enumerate() {
        let key = unescaped(raw)?;
        if !known.insert(key.clone()) {
            return None;
        }
        let (bytes, span) = plan.constant(at);
        let mut value = Value::Nil;
        if !put(&mut value, bytes, span, &Projection::Whole, &mut keys) {
            return None;
        }
        model.push((Value::key(key), value));
    }
    Some(model)
}

/// Stores the value at a span of the bytes; `false` if the parser rejects it.
#[inline]
fn put(
    place: &mut Value,
    bytes: &[u8],
    span: Span,
    projection: &Projection,
    keys: &mut Keys,
) -> bool {
    let raw = &bytes[span.start..span.end];
    match span.kind {
        Kind::Digits if raw.len() <= DIGITS_MAX => {
            let number = digits(bytes, span);
            match place {
                Value::Int(known) => *known = number,
                other => *other = Value::Int(number),
            }
        }
        Kind::Plain => {
            let Ok(text) = std::str::from_utf8(&raw[1..raw.len() - 1]) else {
                return false;
            };
            if let Value::Str(known) = place
                && let Some(known) = Rc::get_mut(known)
                && !known.is_frozen()
            {
                known.become_text(text);
            } else {
                *place = Value::str(text);
            }
        }
        _ => match Parser::new(raw, keys).only(projection) {
            Ok(value) => *place = value,
            Err(_) => return false,
        },
    }
    true
}

/// The number of at most [`DIGITS_MAX`] digits.
#[inline]
fn digits(bytes: &[u8], span: Span) -> i64 {
    let length = span.end - span.start;
    match bytes[span.start..].first_chunk() {
        Some(word) if length <= WORD => of_word(*word, length),
        _ => integer(&bytes[span.start..span.end]),
    }
}

/// The number of up to [`WORD`] digits at the start of a word, in three multiplications.
#[inline]
fn of_word(word: [u8; WORD], digits: usize) -> i64 {
    // The digits move up, and zeros come before them; each step joins neighbours: digits, pairs, fours.
    let word = u64::from_le_bytes(word) << (8 * (WORD - digits.max(1)));
    let digits = word & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    let number = (fours * 10_000 + (fours >> 32)) & 0xffff_ffff;
    number.cast_signed()
}

/// At most [`DIGITS_MAX`] digits.
#[inline]
fn integer(digits: &[u8]) -> i64 {
    digits
        .iter()
        .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
}

#[cfg(test)]
mod tests;
