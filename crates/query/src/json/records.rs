//! Values as records of a table. A Hash is a record with named fields; an Array is a record without names, and any other
//! value a record of one field. An Array of Hashes or Arrays gives a record for each, and so does a Hash of them, with its
//! keys in the column `key`.

use crate::value::Value;
use crate::value::exception::{Eval, argument_error};
use crate::value::inspect::to_s;

/// The columns of a table, once they are known.
#[derive(Clone, Default)]
pub(crate) struct Header {
    names: Option<Vec<String>>,
    /// There were records, with or without names.
    pub(crate) is_started: bool,
    /// Records without names are given some.
    names_all: bool,
    /// Numbers that stand for no value, by field.
    sentinels: &'static [(&'static str, u64)],
}

/// A row of a table.
pub(crate) enum Row<'a> {
    /// The names of the columns, once, before the first record that has names.
    Header(&'a [String]),
    /// The fields of a record in the order of the header.
    Record(&'a [Value]),
}

impl Header {
    pub(crate) fn new(names_all: bool, sentinels: &'static [(&'static str, u64)]) -> Header {
        Header {
            names: None,
            is_started: false,
            names_all,
            sentinels,
        }
    }

    /// Whether there were names.
    pub(crate) fn is_known(&self) -> bool {
        self.names.is_some()
    }

    /// Calls a function for the rows of a value.
    pub(crate) fn rows(
        &mut self,
        value: &Value,
        on_row: &mut dyn FnMut(Row<'_>) -> Eval<()>,
    ) -> Eval<()> {
        let is_known = self.is_known();
        let done = self.records(value, on_row);
        self.is_started |= done.is_ok();
        if done.is_err() && !is_known {
            // It is dropped with the record.
            self.names = None;
        }
        done
    }

    fn records(&mut self, value: &Value, on_row: &mut dyn FnMut(Row<'_>) -> Eval<()>) -> Eval<()> {
        match value {
            Value::Hash(table) => {
                let pairs = table.pairs();
                if !are_records(pairs.iter().map(|(_, value)| value)) {
                    return self.record(None, value, on_row);
                }
                for (key, value) in &pairs {
                    self.record(Some(key), value, on_row)?;
                }
            }
            Value::Array(list) if are_records(list.borrow().iter()) => {
                for value in list.borrow().iter() {
                    self.record(None, value, on_row)?;
                }
            }
            other => self.record(None, other, on_row)?,
        }
        Ok(())
    }

    fn record(
        &mut self,
        key: Option<&Value>,
        value: &Value,
        on_row: &mut dyn FnMut(Row<'_>) -> Eval<()>,
    ) -> Eval<()> {
        let mut names: Vec<String> = key.map(|_| "key".to_owned()).into_iter().collect();
        let mut fields: Vec<Value> = key.cloned().into_iter().collect();
        match value {
            Value::Hash(table) => {
                for (name, value) in table.pairs() {
                    let name = to_s(&name);
                    fields.push(self.known(&name, value));
                    names.push(name);
                }
                return self.named(names, fields, on_row);
            }
            Value::Array(list) => fields.extend(list.borrow().iter().cloned()),
            other => fields.push(other.clone()),
        }
        if !self.names_all {
            return on_row(Row::Record(&fields));
        }
        if let Some(header) = &self.names {
            if fields.len() > header.len() {
                return Err(argument_error(format!(
                    "a record of {} fields (expected {}: {})",
                    fields.len(),
                    header.len(),
                    header.join(", ")
                )));
            }
            fields.resize(header.len(), Value::Nil);
            return on_row(Row::Record(&fields));
        }
        match value {
            Value::Array(list) => {
                names.extend((1..=list.borrow().len()).map(|number| format!("column{number}")));
            }
            _ => names.push("value".to_owned()),
        }
        self.named(names, fields, on_row)
    }

    /// Null for a number that stands for no value.
    fn known(&self, name: &str, value: Value) -> Value {
        let number = match &value {
            Value::Int(it) => u64::try_from(*it).ok(),
            Value::Big(it) => u64::try_from(&**it).ok(),
            _ => None,
        };
        match number {
            Some(number) if self.sentinels.contains(&(name, number)) => Value::Nil,
            _ => value,
        }
    }

    /// Puts fields into the order of the header. The first record makes the header.
    fn named(
        &mut self,
        names: Vec<String>,
        mut fields: Vec<Value>,
        on_row: &mut dyn FnMut(Row<'_>) -> Eval<()>,
    ) -> Eval<()> {
        match &self.names {
            None => {
                on_row(Row::Header(&names))?;
                self.names = Some(names);
            }
            Some(header) if *header == names => {}
            Some(header) => {
                if let Some(new) = names.iter().find(|name| !header.contains(name)) {
                    return Err(argument_error(format!(
                        "the field `{new}` is not in the header ({}); name the fields, as in `{{{new}: _[{new:?}]}}`",
                        header.join(",")
                    )));
                }
                let place = |wanted: &String| names.iter().position(|name| name == wanted);
                fields = header
                    .iter()
                    .map(|name| place(name).map_or(Value::Nil, |at| fields[at].clone()))
                    .collect();
            }
        }
        on_row(Row::Record(&fields))
    }
}

/// Whether these are all Hashes, or all Arrays.
fn are_records<'a>(values: impl Iterator<Item = &'a Value> + Clone) -> bool {
    let mut hashes = values.clone();
    let mut arrays = values.clone();
    values.count() > 0
        && (hashes.all(|value| matches!(value, Value::Hash(_)))
            || arrays.all(|value| matches!(value, Value::Array(_))))
}
