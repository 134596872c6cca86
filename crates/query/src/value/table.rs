//! A Hash: keys in order of insertion, equal by `eql?`. Up to eight keys are searched one by one; above that an index
//! is built at the first lookup, so that a row which is only passed on pays nothing for it.

use super::Value;
use super::compare::{eql, hash_of};
use super::proc::Proc;
use super::text::Text;
use lastbyte_json::fast_hash;
use std::cell::{Cell, Ref, RefCell};
use std::hash::Hasher;
use std::rc::Rc;

const SEARCHED: usize = 8;
const EMPTY: u32 = u32::MAX;

#[derive(Default)]
pub(crate) struct Table {
    entries: RefCell<Entries>,
    default: RefCell<Fallback>,
    frozen: Cell<bool>,
    /// Number of walks in progress.
    walks: Cell<u32>,
}

/// The default for a missing key.
#[derive(Clone, Default)]
pub(crate) enum Fallback {
    #[default]
    Nil,
    Value(Value),
    Proc(Rc<Proc>),
}

#[derive(Default)]
pub(crate) struct Entries {
    list: Vec<Entry>,
    /// Open addressing over `list`; empty while not built. A power of two, at most half full.
    index: Vec<u32>,
}

struct Entry {
    hash: u64,
    key: Value,
    value: Value,
}

impl Entries {
    fn find(&mut self, hash: u64, is: impl FnMut(&Value) -> bool) -> Option<usize> {
        if self.needs_index() {
            self.build();
        }
        self.find_indexed(hash, is)
    }

    fn needs_index(&self) -> bool {
        self.list.len() > SEARCHED && self.index.is_empty()
    }

    fn find_indexed(&self, hash: u64, mut is: impl FnMut(&Value) -> bool) -> Option<usize> {
        if self.list.len() <= SEARCHED {
            return self
                .list
                .iter()
                .position(|entry| entry.hash == hash && is(&entry.key));
        }
        let mask = self.index.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.index[slot] {
                EMPTY => return None,
                at => {
                    let entry = &self.list[at as usize];
                    if entry.hash == hash && is(&entry.key) {
                        return Some(at as usize);
                    }
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    fn build(&mut self) {
        let size = (self.list.len() * 2 + 2).next_power_of_two() * 2;
        self.index.clear();
        self.index.resize(size, EMPTY);
        for at in 0..self.list.len() {
            self.note(at);
        }
    }

    fn note(&mut self, at: usize) {
        let mask = self.index.len() - 1;
        let mut slot = self.list[at].hash as usize & mask;
        while self.index[slot] != EMPTY {
            slot = (slot + 1) & mask;
        }
        self.index[slot] = at as u32;
    }

    fn push(&mut self, hash: u64, key: Value, value: Value) {
        self.list.push(Entry { hash, key, value });
        if self.index.is_empty() {
            return;
        }
        if self.list.len() * 2 > self.index.len() {
            self.index.clear();
        } else {
            self.note(self.list.len() - 1);
        }
    }
}

/// A String key is kept as a frozen copy.
pub(crate) fn frozen_key(key: Value) -> Value {
    match key {
        Value::Str(text) if !text.is_frozen() => {
            if Rc::strong_count(&text) == 1 {
                text.freeze();
                Value::Str(text)
            } else {
                Value::Str(Rc::new(Text::frozen(text.string())))
            }
        }
        key => key,
    }
}

/// Whether a key is this String.
#[inline]
fn is_text(key: &Value, text: &str) -> bool {
    matches!(key, Value::Str(known) if *known.get().as_bytes() == *text.as_bytes())
}

/// The hash of a String key; [`hash_of`] agrees.
pub(crate) fn hash_of_str(text: &str) -> u64 {
    let mut hasher = fast_hash::FastHasher::default();
    hasher.write_u64(fast_hash::of_bytes(text.as_bytes()));
    hasher.finish()
}

impl Table {
    pub(crate) fn with_capacity(count: usize) -> Table {
        Table {
            entries: RefCell::new(Entries {
                list: Vec::with_capacity(count),
                index: Vec::new(),
            }),
            ..Table::default()
        }
    }

    pub(crate) fn from_pairs(pairs: impl IntoIterator<Item = (Value, Value)>) -> Table {
        let table = Table::default();
        for (key, value) in pairs {
            table.insert(key, value);
        }
        table
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.borrow().list.len()
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen.get()
    }

    pub(crate) fn freeze(&self) {
        self.frozen.set(true);
    }

    /// Runs a walk over the entries; meanwhile [`Table::is_walked`].
    pub(crate) fn walk<T>(&self, walk: impl FnOnce() -> T) -> T {
        self.walks.set(self.walks.get() + 1);
        let result = walk();
        self.walks.set(self.walks.get() - 1);
        result
    }

    pub(crate) fn is_walked(&self) -> bool {
        self.walks.get() > 0
    }

    pub(crate) fn get(&self, key: &Value) -> Option<Value> {
        if let Value::Str(text) = key {
            return self.get_str(&text.get());
        }
        self.get_by(hash_of(key), |known| eql(known, key))
    }

    /// The value of the key with this hash that `is` the one. What `is` compares may be this Table.
    pub(crate) fn get_by(&self, hash: u64, is: impl FnMut(&Value) -> bool) -> Option<Value> {
        if self.entries.borrow().needs_index() {
            self.entries.borrow_mut().build();
        }
        let entries = self.entries.borrow();
        let at = entries.find_indexed(hash, is)?;
        Some(entries.list[at].value.clone())
    }

    pub(crate) fn get_str(&self, key: &str) -> Option<Value> {
        self.read_str(key, &Cell::new(0), Value::clone)
    }

    /// Passes the value of a String key to `read`. `place` is the index tried first, and is set to the index found.
    #[inline]
    pub(crate) fn read_str<T>(
        &self,
        key: &str,
        place: &Cell<usize>,
        read: impl FnOnce(&Value) -> T,
    ) -> Option<T> {
        let entries = self.entries.borrow();
        if let Some(entry) = entries.list.get(place.get())
            && is_text(&entry.key, key)
        {
            return Some(read(&entry.value));
        }
        drop(entries);
        place.set(self.find_str(key)?);
        let entries = self.entries.borrow();
        entries
            .list
            .get(place.get())
            .map(|entry| read(&entry.value))
    }

    #[inline(never)]
    fn find_str(&self, key: &str) -> Option<usize> {
        let mut entries = self.entries.borrow_mut();
        if entries.list.len() <= SEARCHED {
            let mut list = entries.list.iter();
            return list.position(|entry| is_text(&entry.key, key));
        }
        entries.find(hash_of_str(key), |known| is_text(known, key))
    }

    pub(crate) fn contains(&self, key: &Value) -> bool {
        let hash = hash_of(key);
        self.entries
            .borrow_mut()
            .find(hash, |known| eql(known, key))
            .is_some()
    }

    /// A new key goes to the end; a known one keeps its place. A String key is kept as a frozen copy.
    pub(crate) fn insert(&self, key: Value, value: Value) {
        let hash = hash_of(&key);
        let mut entries = self.entries.borrow_mut();
        if let Some(at) = entries.find(hash, |known| eql(known, &key)) {
            entries.list[at].value = value;
            return;
        }
        entries.push(hash, frozen_key(key), value);
    }

    /// Adds to the number of times that a key occurred.
    pub(crate) fn count(&self, key: Value, more: i64) {
        let known = match self.get(&key) {
            Some(Value::Int(known)) => known,
            _ => 0,
        };
        self.insert(key, Value::Int(known.saturating_add(more)));
    }

    /// For the JSON parser: a frozen key with its hash.
    pub(crate) fn insert_hashed(&self, hash: u64, key: Rc<Text>, value: Value) {
        let mut entries = self.entries.borrow_mut();
        let found = entries.find(hash, |known| match known {
            Value::Str(text) => Rc::ptr_eq(text, &key) || *text.get() == *key.get(),
            _ => false,
        });
        match found {
            Some(at) => entries.list[at].value = value,
            None => entries.push(hash, Value::Str(key), value),
        }
    }

    /// For rows that come one after the other: puts the values of the next into their places, if the keys are these and
    /// nothing else was done to it. `set` is given each key's number; false when the Table is of no more use.
    pub(crate) fn refill<'k>(
        &mut self,
        keys: impl Iterator<Item = (usize, &'k Rc<Text>)>,
        mut set: impl FnMut(usize, &mut Value) -> bool,
    ) -> bool {
        if self.frozen.get() || !matches!(self.default.get_mut(), Fallback::Nil) {
            return false;
        }
        let mut entries = self.entries.get_mut().list.iter_mut();
        for (at, key) in keys {
            let Some(entry) = entries.next() else {
                return false;
            };
            let same = matches!(&entry.key, Value::Str(known) if Rc::ptr_eq(known, key));
            if !same || !set(at, &mut entry.value) {
                return false;
            }
        }
        entries.next().is_none()
    }

    /// For rows: a frozen key that is not there yet, with its hash.
    pub(crate) fn push_hashed(&self, hash: u64, key: Rc<Text>, value: Value) {
        self.entries.borrow_mut().push(hash, Value::Str(key), value);
    }

    pub(crate) fn remove(&self, key: &Value) -> Option<Value> {
        let hash = hash_of(key);
        let mut entries = self.entries.borrow_mut();
        let at = entries.find(hash, |known| eql(known, key))?;
        entries.index.clear();
        Some(entries.list.remove(at).value)
    }

    pub(crate) fn remove_first(&self) -> Option<(Value, Value)> {
        let mut entries = self.entries.borrow_mut();
        if entries.list.is_empty() {
            return None;
        }
        entries.index.clear();
        let entry = entries.list.remove(0);
        Some((entry.key, entry.value))
    }

    pub(crate) fn pairs(&self) -> Vec<(Value, Value)> {
        let entries = self.entries.borrow();
        entries
            .list
            .iter()
            .map(|entry| (entry.key.clone(), entry.value.clone()))
            .collect()
    }

    /// The pairs with the hashes of their keys, for [`Table::push_known`].
    pub(crate) fn hashed_pairs(&self) -> Vec<(u64, Value, Value)> {
        let entries = self.entries.borrow();
        let list = entries.list.iter();
        list.map(|entry| (entry.hash, entry.key.clone(), entry.value.clone()))
            .collect()
    }

    /// A key of another Table, which is not in this one yet.
    pub(crate) fn push_known(&mut self, hash: u64, key: Value, value: Value) {
        self.entries.get_mut().push(hash, key, value);
    }

    pub(crate) fn keys(&self) -> Vec<Value> {
        self.entries
            .borrow()
            .list
            .iter()
            .map(|entry| entry.key.clone())
            .collect()
    }

    pub(crate) fn values(&self) -> Vec<Value> {
        self.entries
            .borrow()
            .list
            .iter()
            .map(|entry| entry.value.clone())
            .collect()
    }

    pub(crate) fn borrow(&self) -> Ref<'_, Entries> {
        self.entries.borrow()
    }

    pub(crate) fn fallback(&self) -> Fallback {
        self.default.borrow().clone()
    }

    pub(crate) fn has_fallback(&self) -> bool {
        !matches!(*self.default.borrow(), Fallback::Nil)
    }

    pub(crate) fn set_fallback(&self, fallback: Fallback) {
        *self.default.borrow_mut() = fallback;
    }

    /// The same entries and the same fallback.
    pub(crate) fn copy(&self) -> Table {
        let table = Table::from_entries(&self.entries.borrow());
        table.set_fallback(self.fallback());
        table
    }

    fn from_entries(entries: &Entries) -> Table {
        let list = entries
            .list
            .iter()
            .map(|entry| Entry {
                hash: entry.hash,
                key: entry.key.clone(),
                value: entry.value.clone(),
            })
            .collect();
        Table {
            entries: RefCell::new(Entries {
                list,
                index: entries.index.clone(),
            }),
            ..Table::default()
        }
    }
}

impl Entries {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Value, &Value)> {
        self.list.iter().map(|entry| (&entry.key, &entry.value))
    }
}
