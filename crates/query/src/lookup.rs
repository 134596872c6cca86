//! Tables of `lookup`: the rows of a file by the value of a column. All threads share a table as text, and the row of a key
//! is parsed for each call, so that no query can change it.

use std::collections::BTreeMap;
use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::FromPrimitive;

use crate::class::Class;
use crate::json::build::{Keys, parsed};
use crate::json::csv::is_number;
use crate::value::Value;
use crate::value::exception::{Eval, type_error};
use crate::value::inspect::to_s;

/// The rows of a file.
#[derive(Debug, Default)]
pub(crate) struct LookupTable {
    /// Rows as JSON, one after the other.
    text: String,
    places: BTreeMap<Box<str>, Place>,
}

#[derive(Debug)]
struct Place {
    start: usize,
    end: usize,
    line: usize,
    is_number: bool,
}

/// The text by which keys are compared, and whether it is that of a number; `None` for nil.
fn key_text(key: &Value) -> Eval<Option<(String, bool)>> {
    Ok(Some(match key {
        Value::Nil => return Ok(None),
        // A whole number has the same text in both classes.
        Value::Float(it) if it.fract() == 0.0 => {
            (BigInt::from_f64(*it).unwrap_or_default().to_string(), true)
        }
        Value::Int(_) | Value::Big(_) | Value::Float(_) => (to_s(key), true),
        Value::Str(_) | Value::Symbol(_) | Value::Bool(_) => (to_s(key), false),
        other => {
            let class = Class::of(other).name();
            return Err(type_error(format!(
                "lookup expects a key that is a number, a text or a boolean, got {class}"
            )));
        }
    }))
}

impl LookupTable {
    /// Approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.places.len() * 2 * size_of::<(Box<str>, Place)>()
    }

    /// All rows, in order.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Adds the row of a line. Rows without a key are left out. Returns the earlier line that has the same key, or the
    /// error of a key that is none.
    pub(crate) fn add(&mut self, row: &str, key: &Value, line: usize) -> Eval<Option<usize>> {
        let Some((text, is_number)) = key_text(key)? else {
            return Ok(None);
        };
        if let Some(known) = self.places.get(text.as_str()) {
            return Ok(Some(known.line));
        }
        let start = self.text.len();
        self.text.push_str(row);
        let place = Place {
            start,
            end: self.text.len(),
            line,
            is_number,
        };
        self.places.insert(text.into(), place);
        Ok(None)
    }

    fn find(&self, key: &Value, keys: &mut Keys) -> Eval<Value> {
        let Some((text, is_number)) = key_text(key)? else {
            return Ok(Value::Nil);
        };
        let place = self.places.get(text.as_str()).or_else(|| {
            // `"80.0"` is the number 80 of a table, but not its text `"80"`.
            let is_numeral = !is_number && is_number_text(&text);
            let number = is_numeral.then(|| key_text(&parsed(&text, keys)).ok().flatten())??;
            self.places.get(number.0.as_str()).filter(|it| it.is_number)
        });
        Ok(place.map_or(Value::Nil, |it| parsed(&self.text[it.start..it.end], keys)))
    }
}

fn is_number_text(text: &str) -> bool {
    is_number(text.as_bytes())
}

/// The tables of a query, as an evaluator has them.
#[derive(Default)]
pub(crate) struct Tables {
    shared: Arc<[LookupTable]>,
    keys: Keys,
}

impl Tables {
    pub(crate) fn new(shared: &Arc<[LookupTable]>) -> Tables {
        Tables {
            shared: Arc::clone(shared),
            keys: Keys::default(),
        }
    }

    /// The same for another evaluator.
    pub(crate) fn share(&self) -> Tables {
        Tables::new(&self.shared)
    }

    /// The row of a key, or nil.
    pub(crate) fn find(&mut self, table: &Value, key: &Value) -> Eval {
        let table = match table {
            Value::Int(at) => self.shared.get(*at as usize),
            _ => None,
        };
        table.map_or(Ok(Value::Nil), |table| table.find(key, &mut self.keys))
    }
}
