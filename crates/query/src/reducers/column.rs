//! A growing list of values that are mostly numbers of one kind: eight bytes each while they are.

use super::portable::copies;
use crate::value::Value;
use crate::value::compare;
use crate::value::exception::Eval;

pub(crate) enum Column<T = Value> {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Mixed(Vec<T>),
}

impl Default for Column {
    fn default() -> Column {
        Column::Ints(Vec::new())
    }
}

impl Column {
    /// One whose other values are what a function makes of them.
    pub(super) fn map<T>(
        &self,
        values: impl FnOnce(&[Value]) -> Option<Vec<T>>,
    ) -> Option<Column<T>> {
        Some(match self {
            Column::Ints(list) => Column::Ints(list.clone()),
            Column::Floats(list) => Column::Floats(list.clone()),
            Column::Mixed(list) => Column::Mixed(values(list)?),
        })
    }

    pub(super) fn copy(&self) -> Column {
        self.map(|list| Some(copies(list))).unwrap_or_default()
    }

    pub(crate) fn push(&mut self, value: Value) {
        match (&mut *self, &value) {
            (Column::Ints(list), Value::Int(it)) => list.push(*it),
            (Column::Floats(list), Value::Float(it)) => list.push(*it),
            (Column::Ints(list), Value::Float(it)) if list.is_empty() => {
                *self = Column::Floats(vec![*it]);
            }
            (Column::Mixed(list), _) => list.push(value),
            _ => {
                let mut list = std::mem::take(self).into_values();
                list.push(value);
                *self = Column::Mixed(list);
            }
        }
    }

    pub(crate) fn append(&mut self, other: Column) {
        match (&mut *self, other) {
            (Column::Ints(a), Column::Ints(b)) => a.extend(b),
            (Column::Floats(a), Column::Floats(b)) => a.extend(b),
            (_, other) => {
                for value in other.into_values() {
                    self.push(value);
                }
            }
        }
    }

    pub(crate) fn into_values(self) -> Vec<Value> {
        match self {
            Column::Ints(list) => list.into_iter().map(Value::Int).collect(),
            Column::Floats(list) => list.into_iter().map(Value::Float).collect(),
            Column::Mixed(list) => list,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Column::Ints(list) => list.len(),
            Column::Floats(list) => list.len(),
            Column::Mixed(list) => list.len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<Value> {
        match self {
            Column::Ints(list) => list.get(at).copied().map(Value::Int),
            Column::Floats(list) => list.get(at).copied().map(Value::Float),
            Column::Mixed(list) => list.get(at).cloned(),
        }
    }

    pub(crate) fn sort(&mut self) -> Eval<()> {
        match self {
            Column::Ints(list) => list.sort_unstable(),
            // NaN has no place in an order: the general path reports the error.
            Column::Floats(list) if list.iter().any(|it| it.is_nan()) => {
                let mut values = std::mem::take(self).into_values();
                compare::sort(&mut values)?;
                *self = Column::Mixed(values);
            }
            Column::Floats(list) => {
                list.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            }
            Column::Mixed(list) => compare::sort(list)?,
        }
        Ok(())
    }
}
