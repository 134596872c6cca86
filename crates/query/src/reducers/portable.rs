//! Values in a form that crosses threads, and the rows made of them.

use crate::json::build::{Keys, parsed};
use crate::value::Value;
use crate::value::table::Table;
use crate::value::text::Text;
use num_bigint::BigInt;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A value is packed down to this depth.
const DEPTH_MAX: usize = 200;

/// A value that is only data. What can be changed in place and stands at several places stands once in a heap, so that
/// later stages see one object there, as on one thread. (What tells objects apart without changing them, such as
/// `equal?`, runs on one thread: see `plan::parallel`.)
pub(crate) enum Portable {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Big(BigInt),
    Symbol(String),
    Str(String),
    /// A Hash's key, for example.
    FrozenStr(String),
    Array(Vec<Portable>),
    Hash(Vec<(Portable, Portable)>),
    Token(u32),
    Dropped,
    /// In the heap.
    Shared(u32),
    /// A row of `sort`, as JSON.
    Json(String),
}

impl Portable {
    /// Its approximate size, in bytes.
    pub(super) fn weight(&self) -> usize {
        let inner = match self {
            Portable::Symbol(text)
            | Portable::Str(text)
            | Portable::FrozenStr(text)
            | Portable::Json(text) => text.len(),
            Portable::Array(list) => list.iter().map(Portable::weight).sum(),
            Portable::Hash(pairs) => pairs
                .iter()
                .map(|(key, value)| key.weight() + value.weight())
                .sum(),
            _ => 0,
        };
        size_of::<Portable>() + inner
    }
}

/// Packs values that may share parts.
#[derive(Default)]
pub(super) struct Packer {
    /// By address, for as long as the values live.
    seen: BTreeMap<usize, u32>,
    /// `None` while it is packed.
    pub(super) heap: Vec<Option<Portable>>,
}

impl Packer {
    pub(super) fn all(&mut self, values: &[Value]) -> Option<Vec<Portable>> {
        values.iter().map(|value| self.pack(value)).collect()
    }

    /// `None` when it is more than data.
    pub(super) fn pack(&mut self, value: &Value) -> Option<Portable> {
        self.at_depth(value, 0)
    }

    fn at_depth(&mut self, value: &Value, depth: usize) -> Option<Portable> {
        let shared = match value {
            Value::Str(text) => Rc::strong_count(text) > 1 && !text.is_frozen(),
            Value::Array(list) => Rc::strong_count(list) > 1,
            Value::Hash(table) => Rc::strong_count(table) > 1,
            _ => false,
        };
        let Some(address) = value.address().filter(|_| shared) else {
            return self.plain(value, depth);
        };
        if let Some(at) = self.seen.get(&address.addr()) {
            // What holds itself is not packed.
            return self.heap[*at as usize]
                .is_some()
                .then_some(Portable::Shared(*at));
        }
        let at = self.heap.len();
        self.seen.insert(address.addr(), at as u32);
        self.heap.push(None);
        self.heap[at] = Some(self.plain(value, depth)?);
        Some(Portable::Shared(at as u32))
    }

    fn plain(&mut self, value: &Value, depth: usize) -> Option<Portable> {
        if depth > DEPTH_MAX {
            return None;
        }
        Some(match value {
            Value::Nil => Portable::Nil,
            Value::Bool(it) => Portable::Bool(*it),
            Value::Int(it) => Portable::Int(*it),
            Value::Float(it) => Portable::Float(*it),
            Value::Big(it) => Portable::Big((**it).clone()),
            Value::Symbol(it) => Portable::Symbol((*it.name()).to_owned()),
            Value::Str(text) if text.is_frozen() => Portable::FrozenStr(text.string()),
            Value::Str(text) => Portable::Str(text.string()),
            Value::Array(list) => Portable::Array(
                list.borrow()
                    .iter()
                    .map(|value| self.at_depth(value, depth + 1))
                    .collect::<Option<_>>()?,
            ),
            Value::Hash(table) if !table.has_fallback() && !table.is_frozen() => Portable::Hash(
                table
                    .borrow()
                    .iter()
                    .map(|(key, value)| {
                        let key = self.at_depth(key, depth + 1)?;
                        Some((key, self.at_depth(value, depth + 1)?))
                    })
                    .collect::<Option<_>>()?,
            ),
            Value::Token(at) => Portable::Token(*at),
            Value::Dropped => Portable::Dropped,
            _ => return None,
        })
    }
}

pub(super) fn heap_weight(heap: &[Option<Portable>]) -> usize {
    heap.iter().flatten().map(Portable::weight).sum()
}

/// Approximate number of bytes that a value refers to, with those of the allocator.
pub(super) fn weight(value: &Value) -> usize {
    // What holds itself, or the same value often, has an end here.
    weight_within(value, 0, &mut 10_000)
}

fn weight_within(value: &Value, depth: usize, left: &mut u32) -> usize {
    if depth > DEPTH_MAX || *left == 0 {
        return 0;
    }
    *left -= 1;
    let mut inner = |it: &Value| size_of::<Value>() + weight_within(it, depth + 1, left);
    match value {
        Value::Str(text) => 80 + text.get().len(),
        Value::Array(list) => 96 + list.borrow().iter().map(inner).sum::<usize>(),
        Value::Hash(table) => {
            let pairs = table.borrow();
            let pairs = pairs.iter().map(|(key, value)| inner(key) + inner(value));
            256 + pairs.sum::<usize>()
        }
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Symbol(_) => 0,
        _ => 64,
    }
}

/// A copy of a value that shares nothing with it that can be changed. What is more than data is shared.
pub(super) fn copy(value: &Value) -> Value {
    let mut packer = Packer::default();
    match packer.pack(value) {
        Some(data) => Heap::new(packer.heap).unpack(&data),
        None => value.clone(),
    }
}

pub(super) fn copies(values: &[Value]) -> Vec<Value> {
    values.iter().map(copy).collect()
}

/// What several places share, on the thread that joins.
pub(super) struct Heap {
    packed: Vec<Option<Portable>>,
    made: Vec<Option<Value>>,
}

impl Heap {
    pub(super) fn new(packed: Vec<Option<Portable>>) -> Heap {
        let made = packed.iter().map(|_| None).collect();
        Heap { packed, made }
    }

    pub(super) fn all(&mut self, values: &[Portable]) -> Vec<Value> {
        values.iter().map(|value| self.unpack(value)).collect()
    }

    pub(super) fn unpack(&mut self, value: &Portable) -> Value {
        match value {
            Portable::Nil => Value::Nil,
            Portable::Bool(it) => Value::Bool(*it),
            Portable::Int(it) => Value::Int(*it),
            Portable::Float(it) => Value::Float(*it),
            Portable::Big(it) => crate::value::number::integer(it.clone()),
            Portable::Symbol(name) => Value::symbol(name),
            Portable::Str(text) => Value::str(text.as_str()),
            Portable::FrozenStr(text) => Value::Str(Rc::new(Text::frozen(text.clone()))),
            Portable::Array(list) => Value::array(self.all(list)),
            Portable::Hash(pairs) => Value::hash(Table::from_pairs(
                pairs
                    .iter()
                    .map(|(key, value)| (self.unpack(key), self.unpack(value))),
            )),
            Portable::Token(at) => Value::Token(*at),
            Portable::Dropped => Value::Dropped,
            Portable::Json(text) => parsed(text, &mut Keys::default()),
            Portable::Shared(at) => {
                let at = *at as usize;
                if let Some(made) = &self.made[at] {
                    return made.clone();
                }
                // Nothing in the heap holds itself, so that this ends.
                let packed = self.packed[at].take();
                let value = packed
                    .map(|packed| self.unpack(&packed))
                    .unwrap_or_default();
                self.made[at] = Some(value.clone());
                value
            }
        }
    }
}

/// A row on its way to a stage that runs in order.
pub(crate) struct PackedRow {
    value: Portable,
    heap: Vec<Option<Portable>>,
}

impl PackedRow {
    pub(crate) fn weight(&self) -> usize {
        self.value.weight() + heap_weight(&self.heap)
    }

    pub(crate) fn unpack(self) -> Value {
        Heap::new(self.heap).unpack(&self.value)
    }
}

/// The rows of a part, with their lines.
#[derive(Default)]
pub(crate) struct PackedRows {
    rows: Vec<(usize, PackedRow)>,
    /// Objects that the rows of the last line shared with others.
    line: usize,
    seen: BTreeSet<usize>,
}

impl PackedRows {
    /// `None` when it is more than data, or when the row before it, of the same line, has a part of it: the later stage
    /// may have changed that part before this row is made.
    pub(crate) fn push(&mut self, line: usize, row: &Value) -> Option<()> {
        if self.line != line {
            self.line = line;
            self.seen.clear();
        }
        let mut packer = Packer::default();
        let value = packer.pack(row)?;
        for address in packer.seen.keys() {
            if !self.seen.insert(*address) {
                return None;
            }
        }
        let heap = packer.heap;
        self.rows.push((line, PackedRow { value, heap }));
        Some(())
    }

    pub(crate) fn into_rows(self) -> Vec<(usize, PackedRow)> {
        self.rows
    }
}
