//! `sort`: rows are kept as the JSON that they are printed as, which takes about as much memory as they take in the input.
//! Beyond a limit, the sorted rows so far are a run in a temporary file, and the runs are merged at the end.

use super::Evaluator;
use super::encoding::{Bytes, write_all, write_count};
use super::portable::{Heap, Packer, Portable, copies, copy, weight};
use crate::class::Class;
use crate::json::build::{Keys, parsed};
use crate::json::print;
use crate::memory::{Bounds, Spill, TemporaryFile};
use crate::value::Value;
use crate::value::compare::{self, order, sort_with};
use crate::value::exception::{Eval, Flow, error};
use crate::value::proc::Proc;
use std::cmp::Ordering;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::rc::Rc;

/// Number of runs that are merged at once: more of them become one first.
const RUNS_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Sort {
    /// Empty if the rows themselves, or the values of a block, are compared.
    keys: Vec<Value>,
    rows: Vec<Kept>,
    /// The text of rows, one after the other.
    text: String,
    by: Option<Rc<Proc>>,
    runs: Vec<Run>,
    /// Bytes that the keys and the rows that are no text refer to.
    referred: usize,
    /// Keys that cannot be compared: an error at the end of the input, with any limit.
    failed: Option<Box<Flow>>,
    /// Rows that are more than data, or without keys, stay in memory.
    stays: bool,
}

#[derive(Clone)]
enum Kept {
    Value(Value),
    /// Start and length of its text.
    Text(usize, u32),
}

/// Rows in order.
pub(crate) struct Sorted {
    rows: std::vec::IntoIter<(Value, Kept)>,
    text: String,
    keys: Keys,
    /// What is left of each run, with its first row.
    runs: Vec<(Run, Option<Row>)>,
    /// The first of `rows`, if there are runs.
    next: Option<Row>,
}

/// A row of a run: its key, and its text or itself.
pub(crate) struct Row {
    pub(crate) key: Value,
    pub(crate) row: Result<String, Value>,
}

/// The next row.
pub(crate) enum Next<'a> {
    Text(&'a str),
    Value(Value),
}

impl Sort {
    pub(crate) fn by(by: Option<Rc<Proc>>) -> Sort {
        Sort {
            by,
            ..Sort::default()
        }
    }

    /// Whether each row so far has a key.
    pub(super) fn has_keys(&self) -> bool {
        self.keys.len() == self.rows.len()
    }

    pub(super) fn copy(&self) -> Sort {
        let rows = self.rows.iter().map(|row| match row {
            Kept::Value(value) => Kept::Value(copy(value)),
            text @ Kept::Text(..) => text.clone(),
        });
        Sort {
            keys: copies(&self.keys),
            rows: rows.collect(),
            text: self.text.clone(),
            by: self.by.clone(),
            // What is copied is never spilled.
            ..Sort::default()
        }
    }

    pub(crate) fn push(&mut self, key: Option<Value>, row: Value, bounds: &Bounds) {
        if self.failed.is_some() {
            return;
        }
        let start = self.text.len();
        // Without a key, the row is compared.
        let has_text = key.is_some()
            && self.by.is_none()
            && is_json(&row)
            && print::compact(&mut self.text, &row, bounds).is_ok();
        self.extend_keys(key);
        self.rows
            .push(match u32::try_from(self.text.len() - start) {
                Ok(length) if has_text => Kept::Text(start, length),
                _ => {
                    self.text.truncate(start);
                    self.referred += weight(&row);
                    Kept::Value(row)
                }
            });
    }

    fn extend_keys(&mut self, key: Option<Value>) {
        self.referred += key.as_ref().map_or(0, weight);
        self.keys.extend(key);
    }

    pub(super) fn push_text(&mut self, key: Option<Value>, text: &str) {
        if self.failed.is_some() {
            return;
        }
        self.extend_keys(key);
        self.rows.push(match u32::try_from(text.len()) {
            Ok(length) => Kept::Text(self.text.len(), length),
            Err(_) => Kept::Value(parsed(text, &mut Keys::default())),
        });
        self.text.push_str(text);
    }

    /// The keys and the rows; `None` when they are more than data.
    pub(super) fn pack(&self, packer: &mut Packer) -> Option<(Vec<Portable>, Vec<Portable>)> {
        if self.by.is_some() {
            // The block is the first row's, which only that row's thread has.
            return None;
        }
        let rows = self.rows.iter().map(|row| match row {
            Kept::Value(value) => packer.pack(value),
            Kept::Text(start, length) => {
                let text = &self.text[*start..*start + *length as usize];
                Some(Portable::Json(text.to_owned()))
            }
        });
        let rows = rows.collect::<Option<_>>()?;
        Some((packer.all(&self.keys)?, rows))
    }

    /// Writes the rows to a temporary file if they exceed the limit.
    pub(crate) fn spill(&mut self, vm: &mut dyn Evaluator) -> Eval<()> {
        if self.stays {
            return Ok(());
        }
        let rows = self.rows.len() * size_of::<(Value, Kept)>();
        let bytes = self.text.len() + rows + self.referred;
        let Some(spill) = vm.spill().filter(|spill| bytes as u64 > spill.bytes_max) else {
            return Ok(());
        };
        let spill = spill.clone();
        self.stays = self.by.is_some() || !self.has_keys() || !self.is_data();
        if self.stays {
            return Ok(());
        }
        let mut sorted = match self.in_memory(vm) {
            Ok(sorted) => sorted,
            Err(flow) => {
                self.failed = Some(flow);
                return Ok(());
            }
        };
        let mut run = Run::create(&spill)?;
        while let Some(row) = sorted.next_in_memory() {
            run.write(&row)?;
        }
        self.runs.push(run.rewound()?);
        if self.runs.len() == RUNS_MAX {
            let runs = std::mem::take(&mut self.runs);
            self.runs.push(Run::create(&spill)?.merged(runs)?);
        }
        Ok(())
    }

    fn is_data(&self) -> bool {
        let is_data = |value: &Value| Packer::default().pack(value).is_some();
        let plain = |row: &Kept| match row {
            Kept::Value(value) => is_data(value),
            Kept::Text(..) => true,
        };
        self.keys.iter().all(is_data) && self.rows.iter().all(plain)
    }

    /// The rows that are in memory, in order.
    fn in_memory(&mut self, vm: &mut dyn Evaluator) -> Eval<Sorted> {
        self.referred = 0;
        let (keys, rows) = (
            std::mem::take(&mut self.keys),
            std::mem::take(&mut self.rows),
        );
        let mut pairs: Vec<(Value, Kept)> = if keys.is_empty() {
            let plain = rows.into_iter().map(|row| match row {
                Kept::Value(value) => value,
                Kept::Text(..) => Value::Nil,
            });
            let mut plain: Vec<Value> = plain.collect();
            match &self.by {
                None => compare::sort(&mut plain)?,
                Some(proc) => sort_with(&mut plain, &mut |a, b| {
                    let value = vm.call_two(proc, a, b)?;
                    compare::sign(&value, a, b)
                })?,
            }
            let plain = plain.into_iter();
            plain.map(|row| (Value::Nil, Kept::Value(row))).collect()
        } else {
            keys.into_iter().zip(rows).collect()
        };
        if pairs.iter().any(|(key, _)| !key.is_nil()) {
            sort_with(&mut pairs, &mut |a, b| order(&a.0, &b.0))?;
        }
        Ok(Sorted {
            rows: pairs.into_iter(),
            text: std::mem::take(&mut self.text),
            keys: Keys::default(),
            runs: Vec::new(),
            next: None,
        })
    }

    pub(crate) fn finish(mut self, vm: &mut dyn Evaluator) -> Eval<Sorted> {
        if let Some(flow) = self.failed.take() {
            return Err(flow);
        }
        let runs = std::mem::take(&mut self.runs);
        let mut sorted = self.in_memory(vm)?;
        if !runs.is_empty() {
            sorted.runs = Sorted::of(runs)?.runs;
            sorted.next = sorted.next_in_memory();
        }
        Ok(sorted)
    }
}

impl Sorted {
    fn of(runs: Vec<Run>) -> Eval<Sorted> {
        let mut first = Vec::new();
        for mut run in runs {
            let row = run.read()?;
            first.push((run, row));
        }
        Ok(Sorted {
            rows: Vec::new().into_iter(),
            text: String::new(),
            keys: Keys::default(),
            runs: first,
            next: None,
        })
    }

    fn next_in_memory(&mut self) -> Option<Row> {
        let (key, row) = self.rows.next()?;
        let row = match row {
            Kept::Value(value) => Err(value),
            Kept::Text(start, length) => Ok(self.text[start..start + length as usize].to_owned()),
        };
        Some(Row { key, row })
    }

    /// The least of the first rows; of equal ones, that of the earliest run, and of memory last.
    fn least(&mut self) -> Eval<Option<Row>> {
        let mut best: Option<usize> = None;
        for (at, (_, row)) in self.runs.iter().enumerate() {
            let known = best.and_then(|best| self.runs[best].1.as_ref());
            match (row, known) {
                (None, _) => {}
                (Some(row), Some(known)) if order(&row.key, &known.key)? != Ordering::Less => {}
                _ => best = Some(at),
            }
        }
        let known = best.and_then(|best| self.runs[best].1.as_ref());
        let from_memory = match (&self.next, known) {
            (Some(row), Some(known)) => order(&row.key, &known.key)? == Ordering::Less,
            (next, _) => next.is_some(),
        };
        if from_memory {
            let next = self.next_in_memory();
            return Ok(std::mem::replace(&mut self.next, next));
        }
        let Some(at) = best else { return Ok(None) };
        let (run, row) = &mut self.runs[at];
        let next = run.read()?;
        Ok(std::mem::replace(row, next))
    }

    /// Hands the next row to a function.
    pub(crate) fn next<T>(&mut self, use_it: impl FnOnce(Next<'_>) -> T) -> Eval<Option<T>> {
        if !self.runs.is_empty() {
            return Ok(self.least()?.map(|row| match row.row {
                Ok(text) => use_it(Next::Text(&text)),
                Err(value) => use_it(Next::Value(value)),
            }));
        }
        Ok(self.rows.next().map(|(_, row)| match row {
            Kept::Value(value) => use_it(Next::Value(value)),
            Kept::Text(start, length) => {
                use_it(Next::Text(&self.text[start..start + length as usize]))
            }
        }))
    }

    pub(super) fn into_values(mut self) -> Eval<Vec<Value>> {
        let mut values = Vec::with_capacity(self.rows.len());
        let mut keys = std::mem::take(&mut self.keys);
        let value = |keys: &mut Keys, next: Next<'_>| match next {
            Next::Text(text) => parsed(text, keys),
            Next::Value(value) => value,
        };
        while let Some(row) = self.next(|next| value(&mut keys, next))? {
            values.push(row);
        }
        Ok(values)
    }
}

/// Whether a list or a Hash is what its JSON is read as.
fn is_json(row: &Value) -> bool {
    // A value that has the same part often has an end here.
    let mut left = 1 << 20;
    matches!(row, Value::Array(_) | Value::Hash(_)) && is_plain(row, 0, &mut left)
}

fn is_plain(value: &Value, depth: usize, left: &mut u32) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    match value {
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Big(_) => true,
        Value::Str(text) => !text.is_frozen(),
        Value::Array(list) => {
            let elements = list.borrow();
            depth < 100
                && !list.is_frozen()
                && elements.iter().all(|it| is_plain(it, depth + 1, left))
        }
        Value::Hash(table) => {
            let is_own = !table.has_fallback() && !table.is_frozen();
            is_own
                && depth < 100
                && table.borrow().iter().all(|(key, value)| {
                    matches!(key, Value::Str(text) if text.is_frozen())
                        && is_plain(value, depth + 1, left)
                })
        }
        _ => false,
    }
}

/// Sorted rows in a temporary file: each with its size, its key and its text or itself.
pub(crate) struct Run {
    file: BufReader<Box<dyn TemporaryFile>>,
    pending: Vec<u8>,
    directory: String,
}

/// Bytes of rows that are written at once.
const WRITTEN: usize = 1 << 16;

impl Run {
    pub(crate) fn create(spill: &Spill) -> Eval<Run> {
        let file = (spill.create)().map_err(|reason| failed(&spill.directory, &reason))?;
        Ok(Run {
            file: BufReader::with_capacity(WRITTEN, file),
            pending: Vec::new(),
            directory: spill.directory.clone(),
        })
    }

    /// Writes a row that is only data.
    pub(crate) fn write(&mut self, row: &Row) -> Eval<()> {
        let mut bytes = Vec::new();
        encode(&mut bytes, row)
            .ok_or_else(|| failed(&self.directory, &io::ErrorKind::InvalidInput.into()))?;
        write_count(&mut self.pending, bytes.len() as u64);
        self.pending.extend_from_slice(&bytes);
        if self.pending.len() >= WRITTEN {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Eval<()> {
        let written = self.file.get_mut().write_all(&self.pending);
        self.pending.clear();
        written.map_err(|reason| failed(&self.directory, &reason))
    }

    /// Appends the rows of others, in order.
    pub(crate) fn merged(mut self, runs: Vec<Run>) -> Eval<Run> {
        let mut sorted = Sorted::of(runs)?;
        while let Some(row) = sorted.least()? {
            self.write(&row)?;
        }
        self.rewound()
    }

    pub(crate) fn rewound(mut self) -> Eval<Run> {
        self.flush()?;
        self.pending = Vec::new();
        let rewound = self.file.seek(SeekFrom::Start(0));
        rewound.map_err(|reason| failed(&self.directory, &reason))?;
        Ok(self)
    }

    pub(crate) fn read(&mut self) -> Eval<Option<Row>> {
        let read = read_row(&mut self.file, &mut self.pending);
        read.map_err(|reason| failed(&self.directory, &reason))
    }
}

fn read_row(file: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<Option<Row>> {
    let (mut count, mut shift) = (0_u64, 0);
    loop {
        let mut byte = [0];
        if file.read(&mut byte)? == 0 {
            return if shift == 0 {
                Ok(None)
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
        count |= u64::from(byte[0] & 0x7f) << shift;
        shift += 7;
        if byte[0] < 0x80 || shift > 56 {
            break;
        }
    }
    bytes.clear();
    file.take(count).read_to_end(bytes)?;
    decode(bytes)
        .map(Some)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn encode(out: &mut Vec<u8>, row: &Row) -> Option<()> {
    let mut packer = Packer::default();
    let mut parts = vec![packer.pack(&row.key)?];
    if let Err(value) = &row.row {
        parts.push(packer.pack(value)?);
    }
    write_all(out, &packer.heap, |out, entry| {
        if let Some(entry) = entry {
            entry.write(out);
        }
    });
    write_all(out, &parts, |out, part| part.write(out));
    if let Ok(text) = &row.row {
        out.extend_from_slice(text.as_bytes());
    }
    Some(())
}

fn decode(bytes: &[u8]) -> Option<Row> {
    let mut bytes = Bytes(bytes);
    let mut heap = Heap::new(bytes.all(1, |bytes| Portable::read(bytes, 0).map(Some))?);
    let parts = bytes.all(1, |bytes| Portable::read(bytes, 0))?;
    let row = match parts.get(1) {
        Some(value) => Err(heap.unpack(value)),
        None => Ok(std::str::from_utf8(bytes.0).ok()?.to_owned()),
    };
    let key = heap.unpack(parts.first()?);
    Some(Row { key, row })
}

fn failed(directory: &str, reason: &io::Error) -> Box<Flow> {
    let what = format!(
        "a temporary file in {directory}: {reason} (expected room for what `sort` and `group_by` keep beyond the memory limit)"
    );
    error(Class::NoMemoryError, what)
}
