//! `top`: the rows with the greatest keys; and the first rows of `sort(key) >> limit(n)`, those with the least.

use super::portable::copy;
use crate::value::Value;
use crate::value::compare::order;
use crate::value::exception::{Eval, Flow, argument_error};
use crate::value::inspect::inspect;
use std::cmp::Ordering;

/// The maximum number of rows that `top` keeps.
const COUNT_MAX: i64 = 1_000_000;

pub(crate) struct Top {
    pub(super) count: usize,
    /// Which of two keys comes first: the greater one, or the lesser one.
    pub(super) first: Ordering,
    /// Keys and rows in order; of equal keys the earlier row.
    pub(super) rows: Vec<(Value, Value)>,
    /// Why keys could not be compared; `sort` reports it at the end of the input.
    failure: Option<Box<Flow>>,
}

impl Top {
    pub(crate) fn new(count: &Value) -> Eval<Top> {
        match count {
            Value::Int(count @ 1..=COUNT_MAX) => Ok(Top::of(*count as usize, Ordering::Greater)),
            other => Err(argument_error(format!(
                "top expects a number of rows from 1 to {COUNT_MAX}: {}",
                inspect(other)
            ))),
        }
    }

    /// The first rows that `sort` gives.
    pub(crate) fn least(count: &Value) -> Top {
        let count = crate::value::number::need_int(count).unwrap_or(1);
        Top::of(usize::try_from(count).unwrap_or(1), Ordering::Less)
    }

    pub(super) fn of(count: usize, first: Ordering) -> Top {
        Top {
            count,
            first,
            rows: Vec::new(),
            failure: None,
        }
    }

    /// An empty one with the same settings.
    pub(super) fn empty(&self) -> Top {
        Top::of(self.count, self.first)
    }

    pub(super) fn copy(&self) -> Top {
        let rows = self.rows.iter();
        Top {
            rows: rows.map(|(key, row)| (copy(key), copy(row))).collect(),
            ..self.empty()
        }
    }

    pub(crate) fn push(&mut self, key: Value, row: Value) -> Eval<()> {
        if self.rows.len() >= self.count
            && let Some((last, _)) = self.rows.last()
            && order(&key, last)? != self.first
        {
            return Ok(());
        }
        let (mut low, mut high) = (0, self.rows.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if order(&key, &self.rows[middle].0)? == self.first {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        self.rows.insert(low, (key, row));
        self.rows.truncate(self.count);
        Ok(())
    }

    /// As [`Top::push`]; keys that cannot be compared are an error at the end of the input.
    pub(crate) fn push_or_fail_later(&mut self, key: Value, row: Value) {
        if self.failure.is_none()
            && let Err(flow) = self.push(key, row)
        {
            self.failure = Some(flow);
        }
    }

    /// Whether each row is a result of its own.
    pub(super) fn emits_rows(&self) -> bool {
        self.first == Ordering::Less
    }

    pub(super) fn into_rows(self) -> Eval<Vec<Value>> {
        match self.failure {
            Some(flow) => Err(flow),
            None => Ok(self.rows.into_iter().map(|(_, row)| row).collect()),
        }
    }
}
