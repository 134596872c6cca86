//! `top`: the rows with the greatest keys.

use super::portable::copy;
use crate::value::Value;
use crate::value::compare::order;
use crate::value::exception::{Eval, argument_error};
use crate::value::inspect::inspect;
use std::cmp::Ordering;

/// The maximum number of rows that `top` keeps.
const COUNT_MAX: i64 = 1_000_000;

pub(crate) struct Top {
    pub(super) count: usize,
    /// Keys and rows, the greatest key first; of equal keys the earlier row.
    pub(super) rows: Vec<(Value, Value)>,
}

impl Top {
    pub(crate) fn new(count: &Value) -> Eval<Top> {
        match count {
            Value::Int(count @ 1..=COUNT_MAX) => Ok(Top::of(*count as usize)),
            other => Err(argument_error(format!(
                "top expects a number of rows from 1 to {COUNT_MAX}: {}",
                inspect(other)
            ))),
        }
    }

    pub(super) fn of(count: usize) -> Top {
        Top {
            count,
            rows: Vec::new(),
        }
    }

    pub(super) fn copy(&self) -> Top {
        let rows = self.rows.iter();
        Top {
            count: self.count,
            rows: rows.map(|(key, row)| (copy(key), copy(row))).collect(),
        }
    }

    pub(crate) fn push(&mut self, key: Value, row: Value) -> Eval<()> {
        if self.rows.len() >= self.count
            && let Some((least, _)) = self.rows.last()
            && order(&key, least)? != Ordering::Greater
        {
            return Ok(());
        }
        let (mut low, mut high) = (0, self.rows.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if order(&self.rows[middle].0, &key)? == Ordering::Less {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        self.rows.insert(low, (key, row));
        self.rows.truncate(self.count);
        Ok(())
    }

    pub(super) fn into_rows(self) -> Vec<Value> {
        self.rows.into_iter().map(|(_, row)| row).collect()
    }
}
