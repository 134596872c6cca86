//! The values of results as plain data, for a program that runs a query.

use std::fmt;

use crate::json::print;
use crate::value::number::write_float;

/// A value of a result. [`Display`](fmt::Display) prints it as compact JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer of 64 bits.
    Integer(i64),
    /// The decimal digits of an integer outside of the range of `i64`.
    BigInteger(String),
    /// A finite number with a fraction.
    Float(f64),
    /// A string. Symbols, times and other values without a JSON form become strings, as in printed results.
    String(String),
    /// An array.
    Array(Vec<Value>),
    /// The members of an object, in order.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        *self == Value::Null
    }

    /// The value of a `Bool`.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The value of an `Integer`.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// Any number, rounded to the nearest `f64`.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Integer(value) => Some(*value as f64),
            Value::BigInteger(digits) => digits.parse().ok(),
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// The text of a `String`.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of an `Array`.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The members of an `Object`.
    #[must_use]
    pub fn as_object(&self) -> Option<&[(String, Value)]> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The member of an `Object` with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        let members = self.as_object()?;
        let member = members.iter().find(|(name, _)| name == key);
        member.map(|(_, value)| value)
    }

    /// The elements of an `Array`; of any other value, the value itself.
    pub(crate) fn columns(&self) -> &[Value] {
        self.as_array().unwrap_or(std::slice::from_ref(self))
    }

    /// Approximate size in memory, in bytes.
    pub(crate) fn weight(&self) -> usize {
        let behind = match self {
            Value::BigInteger(text) | Value::String(text) => text.len(),
            Value::Array(elements) => elements.iter().map(Value::weight).sum(),
            Value::Object(members) => members
                .iter()
                .map(|(key, value)| key.len() + value.weight())
                .sum(),
            _ => 0,
        };
        size_of::<Value>() + behind
    }

    fn write(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Integer(value) => print::integer(out, *value),
            Value::BigInteger(digits) => out.push_str(digits),
            Value::Float(value) => write_float(out, *value),
            Value::String(text) => print::quoted(out, text),
            Value::Array(elements) => {
                out.push('[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Value::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    print::quoted(out, key);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        f.write_str(&text)
    }
}
