//! Values of the language as plain data: what [`super::print`] prints, without the text.

use super::print::{enter, not_in_json, reducer_in_template};
use crate::memory::{Bounds, Growth};
use crate::value::Value;
use crate::value::exception::Eval;
use crate::value::inspect::to_s_within;
use lastbyte_json::Value as Plain;

pub(crate) fn export(value: &Value) -> Eval<Plain> {
    export_within(value, &Bounds::default())
}

/// Returns an error if the data exceed the bounds, and as [`export`].
pub(crate) fn export_within(value: &Value, bounds: &Bounds) -> Eval<Plain> {
    export_at(value, 0, (&mut 0, &mut Growth::of(bounds, 0)))
}

/// A field of a table, which may be no number.
pub(crate) fn export_field(value: &Value, bounds: &Bounds) -> Eval<Plain> {
    match value {
        Value::Float(it) => Ok(Plain::Float(*it)),
        other => export_within(other, bounds),
    }
}

fn export_at(
    value: &Value,
    depth: usize,
    (bytes, growth): (&mut usize, &mut Growth<'_>),
) -> Eval<Plain> {
    *bytes += size_of::<Plain>();
    growth.to(*bytes)?;
    Ok(match value {
        Value::Nil | Value::Dropped => Plain::Null,
        Value::Bool(it) => Plain::Bool(*it),
        Value::Int(it) => Plain::Integer(*it),
        Value::Big(it) => Plain::BigInteger(it.to_string()),
        Value::Float(it) if it.is_finite() => Plain::Float(*it),
        Value::Float(it) => return Err(not_in_json(*it)),
        Value::Array(list) | Value::Flat(list) => {
            enter(depth)?;
            let list = list.borrow();
            let elements = list
                .iter()
                .map(|element| export_at(element, depth + 1, (bytes, growth)));
            Plain::Array(elements.collect::<Eval<_>>()?)
        }
        Value::Hash(table) => {
            enter(depth)?;
            let entries = table.borrow();
            let members = entries.iter().map(|(key, value)| {
                let key = to_s_within(key, growth.of_another().limit())?;
                Ok((key, export_at(value, depth + 1, (bytes, growth))?))
            });
            Plain::Object(members.collect::<Eval<_>>()?)
        }
        Value::Token(_) => return Err(reducer_in_template()),
        other => Plain::String(to_s_within(other, growth.of_another().limit())?),
    })
}
