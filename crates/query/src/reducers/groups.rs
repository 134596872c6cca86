//! The scopes of the keys of `group_by`, `map` and `map_values`, in order of first appearance. The scope of a group with one
//! count, sum, average or extreme is kept as its value only.
//!
//! Beyond a limit, the table of a stage takes no more keys. Rows of other keys go to temporary files, by the hash of their
//! key, and each file is a table of its own at the end of the input: all rows of a key are reduced in one table, in order,
//! so that the results are those of a single table.

use super::Evaluator;
use super::accumulator::{Accumulator, Which};
use super::portable::{Packer, copy};
use super::scope::{Reducer, Scope};
use super::sort::{Row, Run};
use crate::class::Class;
use crate::memory::Spill;
use crate::value::Value;
use crate::value::compare::{eql, hash_of};
use crate::value::exception::{Eval, error};
use crate::value::table::{Table, frozen_key};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyed {
    /// `map`: an Array of the scopes' values.
    List,
    /// `map_values`, `group_by`: a Hash.
    Hash,
}

pub(crate) struct Groups {
    pub(crate) kind: Keyed,
    list: Vec<Group>,
    /// Open addressing over `list`, at most half full: one more than the place, or zero.
    index: Vec<u32>,
    /// The scope of a group while it is at work, if it is kept as a value.
    scratch: Scope,
    /// Approximate size of keys and scopes when they were new.
    bytes: u64,
    /// Above this size, there are no new groups.
    bytes_max: u64,
    /// Rows of other groups.
    files: Vec<Run>,
    deferred: i64,
    /// The numbers of the first rows of the groups, if they come from a file.
    numbers: Vec<i64>,
}

struct Group {
    hash: u64,
    key: Value,
    state: State,
}

/// A scope, or its value.
enum State {
    New,
    Scope(Box<Scope>),
    Count(u64),
    /// A sum that started at zero.
    Total(Value),
    One(Which, Value),
    Average(f64, u64),
}

/// Where a row stands that may be deferred.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) file: usize,
    pub(crate) line: usize,
    /// How often it was deferred, and its number among the deferred rows.
    pub(crate) again: Option<(u32, i64)>,
}

/// Number of files into which the rows of a table go.
const FILES: usize = 32;

/// How often a row is put off at most: what is left then has the same hash.
const LEVELS_MAX: u32 = 8;

impl State {
    /// Takes a scope that can be kept as a value.
    fn of(scope: &mut Scope) -> State {
        if let ([Some(Reducer::Plain(reducer))], Some(Value::Token(0))) =
            (&mut scope.reducers[..], &scope.template)
        {
            let state = match reducer {
                Accumulator::Count(count) => State::Count(*count),
                Accumulator::Sum {
                    total,
                    initial: Value::Int(0),
                } => State::Total(std::mem::take(total)),
                Accumulator::One(which, value) => State::One(*which, std::mem::take(value)),
                Accumulator::Average {
                    sum: Value::Float(sum),
                    count,
                } => State::Average(*sum, *count),
                _ => State::New,
            };
            if !matches!(state, State::New) {
                return state;
            }
        }
        State::Scope(Box::new(std::mem::take(scope)))
    }

    /// Makes the scope of a state that is no scope.
    fn fill(&mut self, scope: &mut Scope) {
        scope.reducers.clear();
        scope.template = None;
        let reducer = match std::mem::replace(self, State::New) {
            State::New | State::Scope(_) => return,
            State::Count(count) => Accumulator::Count(count),
            State::Total(total) => Accumulator::Sum {
                total,
                initial: Value::Int(0),
            },
            State::One(which, value) => Accumulator::One(which, value),
            State::Average(sum, count) => Accumulator::Average {
                sum: Value::Float(sum),
                count,
            },
        };
        scope.reducers.reserve_exact(1);
        scope.reducers.push(Some(Reducer::Plain(reducer)));
        scope.template = Some(Value::Token(0));
    }

    fn copy(&self) -> State {
        match self {
            State::New => State::New,
            State::Scope(scope) => State::Scope(Box::new(scope.copy())),
            State::Count(count) => State::Count(*count),
            State::Total(value) => State::Total(copy(value)),
            State::One(which, value) => State::One(*which, copy(value)),
            State::Average(sum, count) => State::Average(*sum, *count),
        }
    }
}

impl Groups {
    pub(crate) fn new(kind: Keyed) -> Groups {
        Groups {
            kind,
            list: Vec::new(),
            index: Vec::new(),
            scratch: Scope::default(),
            bytes: 0,
            bytes_max: u64::MAX,
            files: Vec::new(),
            deferred: 0,
            numbers: Vec::new(),
        }
    }

    /// Those with the same state, which share nothing that can be changed.
    pub(super) fn copy(&self) -> Groups {
        let list = self.list.iter().map(|group| Group {
            hash: group.hash,
            key: copy(&group.key),
            state: group.state.copy(),
        });
        Groups {
            list: list.collect(),
            index: self.index.clone(),
            ..Groups::new(self.kind)
        }
    }

    fn find(&self, hash: u64, key: &Value) -> Option<usize> {
        let mask = self.index.len().checked_sub(1)?;
        let mut slot = hash as usize & mask;
        loop {
            let at = (self.index[slot] as usize).checked_sub(1)?;
            let group = &self.list[at];
            if group.hash == hash && eql(&group.key, key) {
                return Some(at);
            }
            slot = (slot + 1) & mask;
        }
    }

    fn note(&mut self, at: usize) {
        let mask = self.index.len() - 1;
        let mut slot = self.list[at].hash as usize & mask;
        while self.index[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.index[slot] = at as u32 + 1;
    }

    /// The place of a key, which is made the first time, and is likely to be this one.
    pub(crate) fn place(&mut self, likely: usize, key: &Value) -> usize {
        if let Some(group) = self.list.get_mut(likely) {
            if group.key.same(key) {
                return likely;
            }
            if same_text(&group.key, key) {
                // The rows that follow have this very String for a key.
                group.key = key.clone();
                return likely;
            }
        }
        let hash = hash_of(key);
        if let Some(at) = self.find(hash, key) {
            return at;
        }
        let at = self.list.len();
        let key = frozen_key(key.clone());
        let text = match &key {
            Value::Str(text) => text.get().len() + size_of::<Scope>(),
            Value::Array(list) => list.borrow().len() * size_of::<Scope>(),
            _ => 0,
        };
        self.bytes += (size_of::<Group>() * 2 + text) as u64;
        self.list.push(Group {
            hash,
            key,
            state: State::New,
        });
        if self.list.len() * 2 > self.index.len() {
            // The old one is freed first.
            self.index = Vec::new();
            self.index = vec![0; (self.list.len() * 4).next_power_of_two()];
            (0..self.list.len()).for_each(|at| self.note(at));
        } else {
            self.note(at);
        }
        at
    }

    /// Runs a function on the scope of the key at a place.
    pub(crate) fn with<T>(&mut self, at: usize, run: impl FnOnce(&mut Scope) -> T) -> T {
        let state = &mut self.list[at].state;
        if let State::Scope(scope) = state {
            return run(scope);
        }
        let is_new = matches!(state, State::New);
        state.fill(&mut self.scratch);
        let result = run(&mut self.scratch);
        *state = State::of(&mut self.scratch);
        if let (true, State::Scope(scope)) = (is_new, state) {
            let each = size_of::<Reducer>() * 2 * scope.reducers.len();
            self.bytes += (size_of::<Scope>() + each) as u64;
        }
        result
    }

    /// Whether a part with these keys can be joined: it would not make groups beyond the limit, and fits what there is.
    pub(super) fn fits(&self, key: &Value, fits: impl FnOnce(&Scope) -> bool) -> bool {
        let Some(at) = self.find(hash_of(key), key) else {
            return self.bytes <= self.bytes_max && fits(&Scope::default());
        };
        let state = &self.list[at].state;
        if let State::Scope(scope) = state {
            return fits(scope);
        }
        let mut scope = Scope::default();
        state.copy().fill(&mut scope);
        fits(&scope)
    }

    /// The keys and scopes; `None` if a key was changed in place, or a scope is kept as a value, which is no part.
    pub(super) fn scopes(&self) -> impl Iterator<Item = Option<(&Value, &Scope)>> {
        self.list.iter().map(|group| match &group.state {
            State::Scope(scope) if hash_of(&group.key) == group.hash => {
                Some((&group.key, &**scope))
            }
            _ => None,
        })
    }

    /// The number of groups in memory.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The bytes that the groups take.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// From now on, keys that exceed the limit are put off.
    pub(crate) fn limit(&mut self, spill: &Spill) {
        // Half of what is left, since nothing else but the parts of other threads is in memory.
        self.bytes_max = spill.bytes_max.saturating_add(spill.bytes_max / 2);
    }

    /// Puts a row off until the end of the input if its key would exceed the limit.
    pub(crate) fn defer(
        &mut self,
        spill: &Spill,
        key: &Value,
        row: &Value,
        place: Place,
    ) -> Eval<bool> {
        self.limit(spill);
        let level = place.again.map_or(0, |(level, _)| level);
        let is_full = self.bytes > self.bytes_max && level < LEVELS_MAX;
        if !is_full && place.again.is_none() {
            return Ok(false);
        }
        let hash = hash_of(key);
        if self.find(hash, key).is_some() {
            return Ok(false);
        }
        let number = place.again.map_or(self.deferred, |(_, number)| number);
        if !is_full {
            self.numbers.push(number);
            return Ok(false);
        }
        if Packer::default().pack(row).is_none() {
            return Err(error(
                Class::NoMemoryError,
                "the rows of `group_by` exceed the memory limit, and are more than data",
            ));
        }
        if self.files.is_empty() {
            let files = (0..FILES).map(|_| Run::create(spill));
            self.files = files.collect::<Eval<_>>()?;
        }
        self.deferred += 1;
        let (file, line) = (Value::size(place.file), Value::size(place.line));
        self.files[file_of(hash, level)].write(&Row {
            key: Value::Int(number),
            row: Err(Value::array(vec![file, line, row.clone()])),
        })?;
        Ok(true)
    }

    pub(crate) fn has_deferred(&self) -> bool {
        !self.files.is_empty()
    }

    /// The results of the groups in memory, with the number of their first rows, and the rows of the others.
    pub(crate) fn finish_in_memory(
        self,
        vm: &mut dyn Evaluator,
        on_group: &mut dyn FnMut(i64, Value, Value) -> Eval<()>,
    ) -> Eval<Vec<Run>> {
        drop(self.index);
        let mut numbers = self.numbers.into_iter();
        for group in self.list {
            let number = numbers.next().unwrap_or(0);
            on_group(number, group.key, group.state.finish(vm)?)?;
        }
        self.files.into_iter().map(Run::rewound).collect()
    }

    pub(super) fn finish(self, vm: &mut dyn Evaluator) -> Eval {
        drop(self.index);
        if self.kind == Keyed::List {
            let values = self.list.into_iter().map(|group| group.state.finish(vm));
            return Ok(Value::array(values.collect::<Eval<_>>()?));
        }
        let mut table = Table::with_capacity(self.list.len());
        for group in self.list {
            table.push_known(group.hash, group.key, group.state.finish(vm)?);
        }
        Ok(Value::hash(table))
    }
}

impl State {
    fn finish(mut self, vm: &mut dyn Evaluator) -> Eval {
        let mut scope = Scope::default();
        match self {
            State::Scope(own) => scope = *own,
            _ => self.fill(&mut scope),
        }
        scope.finish_bare(vm)
    }
}

/// The file of a key. Each level takes other bits of the hash, from the highest ones down: the index takes the lowest ones,
/// and the keys of a file must not have the same there.
fn file_of(hash: u64, level: u32) -> usize {
    (hash >> (59 - 5 * level.min(LEVELS_MAX))) as usize % FILES
}

/// Two frozen Strings of the same text.
fn same_text(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => a.is_frozen() && b.is_frozen() && *a.get() == *b.get(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
