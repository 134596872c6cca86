//! Scopes of reducers: a stage, a group of `group_by`, a position of `map`. Reducers are identified by the order in which
//! a row calls them; the first row's value is the template their results are put into.

use super::Evaluator;
use super::accumulator::Accumulator;
use super::groups::{Groups, Keyed};
use super::portable::copy;
use super::sort::Sort;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error, type_error};
use crate::value::table::Table;
use std::collections::BTreeMap;
use std::rc::Rc;

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
    /// One scope for each key.
    Keyed(Box<Groups>),
}

impl Reducer {
    pub(crate) fn keyed(kind: Keyed) -> Reducer {
        Reducer::Keyed(Box::new(Groups::new(kind)))
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
            Reducer::Keyed(groups) => Reducer::Keyed(Box::new(groups.copy())),
        }
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
            Reducer::Keyed(groups) => vec![groups.finish(vm)?],
        })
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

/// Maximum depth of a template; a deeper one contains itself.
const FILLED_MAX: u32 = 1000;

/// A template that is being filled.
#[derive(Default)]
struct Filling {
    /// Shared parts without reducers, and what they became, by address.
    known: BTreeMap<usize, (Value, Value)>,
    /// Number of reducers that were taken.
    taken: u32,
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

    /// If its result is that of one reducer that a function takes, that one.
    pub(crate) fn take_only<T>(
        &mut self,
        take: impl FnOnce(Reducer) -> Result<T, Reducer>,
    ) -> Option<T> {
        let Some(Value::Token(at)) = self.template else {
            return None;
        };
        let place = self.reducers.get_mut(at as usize)?;
        match take(place.take()?) {
            Ok(taken) => Some(taken),
            Err(other) => {
                *place = Some(other);
                None
            }
        }
    }

    /// The table of a stage that is one `group_by`.
    pub(crate) fn groups(&mut self) -> Option<&mut Groups> {
        match self.reducers.first_mut() {
            Some(Some(Reducer::Keyed(groups))) => Some(groups),
            _ => None,
        }
    }

    /// The result as one value; nil if the first row ended in an error.
    pub(super) fn finish_bare(self, vm: &mut dyn Evaluator) -> Eval {
        if self.template.is_none() {
            return Ok(Value::Nil);
        }
        Ok(bare(self.finish(vm)?))
    }

    /// The results in the template's places; as rows, since `sort` gives many.
    pub(crate) fn finish(mut self, vm: &mut dyn Evaluator) -> Eval<Vec<Value>> {
        match self.template.take() {
            None | Some(Value::Dropped) => Ok(Vec::new()),
            Some(Value::Token(at)) => self.take(at)?.finish(vm),
            Some(template) => Ok(vec![self.fill(vm, template, &mut Filling::default(), 0)?]),
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

    /// A part of the template without reducers is filled once, however many places have it.
    fn fill(
        &mut self,
        vm: &mut dyn Evaluator,
        template: Value,
        filling: &mut Filling,
        depth: u32,
    ) -> Eval {
        if let Value::Token(at) = template {
            filling.taken += 1;
            return Ok(bare(self.take(at)?.finish(vm)?));
        }
        // One more owner is the copy of the elements below.
        let is_shared = match &template {
            Value::Array(list) => Rc::strong_count(list) > 2,
            Value::Hash(table) => Rc::strong_count(table) > 2,
            _ => return Ok(template),
        };
        if depth > FILLED_MAX {
            return Err(argument_error("tried to fill a recursive value"));
        }
        let address = template
            .address()
            .filter(|_| is_shared)
            .map(<*const u8>::addr);
        if let Some((_, filled)) = address.and_then(|address| filling.known.get(&address)) {
            return Ok(filled.clone());
        }
        let taken = filling.taken;
        let filled = match &template {
            Value::Hash(table) => {
                let filled = Table::default();
                for (key, value) in table.pairs() {
                    filled.insert(key, self.fill(vm, value, filling, depth + 1)?);
                }
                Value::hash(filled)
            }
            Value::Array(list) => {
                let list = list.borrow().clone();
                let mut filled = Vec::with_capacity(list.len());
                for value in list {
                    filled.push(self.fill(vm, value, filling, depth + 1)?);
                }
                Value::array(filled)
            }
            other => other.clone(),
        };
        if let Some(address) = address
            && taken == filling.taken
        {
            let both = (template, filled.clone());
            filling.known.insert(address, both);
        }
        Ok(filled)
    }
}
