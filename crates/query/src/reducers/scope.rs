//! Scopes of reducers: a stage, a group of `group_by`, a position of `map`. Reducers are identified by the order in which
//! a row calls them; the first row's value is the template their results are put into.

use super::Evaluator;
use super::accumulator::Accumulator;
use super::portable::{copies, copy};
use super::sort::Sort;
use crate::value::Value;
use crate::value::exception::{Eval, type_error};
use crate::value::table::Table;

#[derive(Default)]
pub(crate) struct Scope {
    /// `None` while one is at work.
    pub(crate) reducers: Vec<Option<Reducer>>,
    /// The next to be called by this row.
    pub(crate) cursor: usize,
    pub(crate) template: Option<Value>,
}

pub(crate) enum Reducer {
    Plain(Accumulator),
    /// On a thread with a part of the input: its values, and the initial state of the whole run.
    Chunk {
        initial: Box<Accumulator>,
        part: Accumulator,
    },
    Sort(Box<Sort>),
    Reduce(Value),
    /// One scope for each key, in order of first appearance.
    Keyed {
        kind: Keyed,
        index: Box<Table>,
        keys: Vec<Value>,
        scopes: Vec<Scope>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyed {
    /// `map`: an Array of the scopes' values.
    List,
    /// `map_values`, `group_by`: a Hash.
    Hash,
}

impl Reducer {
    pub(crate) fn keyed(kind: Keyed) -> Reducer {
        Reducer::Keyed {
            kind,
            index: Box::default(),
            keys: Vec::new(),
            scopes: Vec::new(),
        }
    }

    /// As [`Reducer::slot`], for a key that is likely to be the one at this place.
    pub(crate) fn slot_at(&mut self, place: usize, key: &Value) -> Option<&mut Scope> {
        if let Reducer::Keyed { keys, .. } = &mut *self
            && let Some(known) = keys.get_mut(place)
        {
            let same = known.same(key);
            let equal = same || same_text(known, key);
            if equal && !same {
                // The rows that follow have this very String for a key.
                *known = key.clone();
            }
            if equal {
                return match self {
                    Reducer::Keyed { scopes, .. } => scopes.get_mut(place),
                    _ => None,
                };
            }
        }
        self.slot(key)
    }

    /// One with the same state, which shares nothing that can be changed.
    fn copy(&self) -> Reducer {
        match self {
            Reducer::Plain(accumulator) => Reducer::Plain(accumulator.copy()),
            Reducer::Chunk { initial, part } => Reducer::Chunk {
                initial: Box::new(initial.copy()),
                part: part.copy(),
            },
            Reducer::Sort(sort) => Reducer::Sort(Box::new(sort.copy())),
            Reducer::Reduce(value) => Reducer::Reduce(copy(value)),
            Reducer::Keyed {
                kind, keys, scopes, ..
            } => {
                let index = keys.iter().enumerate();
                let index = index.map(|(at, key)| (copy(key), Value::size(at)));
                Reducer::Keyed {
                    kind: *kind,
                    index: Box::new(Table::from_pairs(index)),
                    keys: copies(keys),
                    scopes: scopes.iter().map(Scope::copy).collect(),
                }
            }
        }
    }

    /// The scope of a key, which is made the first time.
    pub(crate) fn slot(&mut self, key: &Value) -> Option<&mut Scope> {
        let Reducer::Keyed {
            index,
            keys,
            scopes,
            ..
        } = self
        else {
            return None;
        };
        let at = if let Some(Value::Int(at)) = index.get(key) {
            at as usize
        } else {
            index.insert(key.clone(), Value::size(scopes.len()));
            keys.push(key.clone());
            scopes.push(Scope::default());
            scopes.len() - 1
        };
        scopes.get_mut(at)
    }

    /// The rows it emits: one, but for `sort`.
    fn finish(self, vm: &mut dyn Evaluator) -> Eval<Vec<Value>> {
        Ok(match self {
            Reducer::Plain(accumulator) => results(vm, accumulator)?,
            Reducer::Chunk { mut initial, part } => {
                initial.merge(vm, part)?;
                results(vm, *initial)?
            }
            Reducer::Reduce(value) => vec![value],
            Reducer::Sort(sort) => sort.finish(vm)?.into_values()?,
            Reducer::Keyed {
                kind, keys, scopes, ..
            } => {
                let mut values = Vec::with_capacity(scopes.len());
                for scope in scopes {
                    // A key whose first row ended in an error has no value.
                    values.push(if scope.template.is_none() {
                        Value::Nil
                    } else {
                        bare(scope.finish(vm)?)
                    });
                }
                vec![match kind {
                    Keyed::List => Value::array(values),
                    Keyed::Hash => Value::hash(Table::from_pairs(keys.into_iter().zip(values))),
                }]
            }
        })
    }
}

/// Two frozen Strings of the same text.
fn same_text(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => a.is_frozen() && b.is_frozen() && *a.get() == *b.get(),
        _ => false,
    }
}

/// The results of an accumulator: one, but for the first rows of `sort`.
fn results(vm: &mut dyn Evaluator, accumulator: Accumulator) -> Eval<Vec<Value>> {
    match accumulator {
        Accumulator::Top(top) if top.emits_rows() => top.into_rows(),
        other => Ok(vec![other.finish(vm)?]),
    }
}

/// Rows where one value is wanted: a single row stands by itself.
fn bare(mut rows: Vec<Value>) -> Value {
    if rows.len() == 1 {
        rows.remove(0)
    } else {
        Value::array(rows)
    }
}

impl Scope {
    /// One with the same state, which shares nothing that can be changed.
    pub(crate) fn copy(&self) -> Scope {
        let reducers = self.reducers.iter();
        Scope {
            reducers: reducers
                .map(|reducer| reducer.as_ref().map(Reducer::copy))
                .collect(),
            cursor: 0,
            template: self.template.as_ref().map(copy),
        }
    }

    /// Starts a row.
    pub(crate) fn rewind(&mut self) {
        self.cursor = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.reducers.is_empty()
    }

    /// Keeps the first row's value as the template.
    pub(crate) fn note(&mut self, value: &Value) {
        if self.template.is_none() {
            self.template = Some(value.clone());
        }
    }

    /// If its result is what one `sort` gives, that one.
    pub(crate) fn take_sort(&mut self) -> Option<Box<Sort>> {
        let Some(Value::Token(at)) = self.template else {
            return None;
        };
        match self.reducers.get_mut(at as usize)?.take()? {
            Reducer::Sort(sort) => Some(sort),
            other => {
                self.reducers[at as usize] = Some(other);
                None
            }
        }
    }

    /// The results in the template's places; as rows, since `sort` gives many.
    pub(crate) fn finish(mut self, vm: &mut dyn Evaluator) -> Eval<Vec<Value>> {
        match self.template.take() {
            None | Some(Value::Dropped) => Ok(Vec::new()),
            Some(Value::Token(at)) => self.take(at)?.finish(vm),
            Some(template) => Ok(vec![self.fill(vm, template)?]),
        }
    }

    fn take(&mut self, at: u32) -> Eval<Reducer> {
        self.reducers
            .get_mut(at as usize)
            .and_then(Option::take)
            .ok_or_else(|| {
                type_error(
                    "a reducer's result can be used once, in the stage or block that called it",
                )
            })
    }

    fn fill(&mut self, vm: &mut dyn Evaluator, template: Value) -> Eval {
        Ok(match template {
            Value::Token(at) => bare(self.take(at)?.finish(vm)?),
            Value::Array(list) => {
                let list = list.borrow().clone();
                let mut filled = Vec::with_capacity(list.len());
                for value in list {
                    filled.push(self.fill(vm, value)?);
                }
                Value::array(filled)
            }
            Value::Hash(table) => {
                let filled = Table::default();
                for (key, value) in table.pairs() {
                    filled.insert(key, self.fill(vm, value)?);
                }
                Value::hash(filled)
            }
            other => other,
        })
    }
}
