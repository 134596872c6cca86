//! JSON values as plain data.

use std::fmt;

use crate::print;

/// A JSON value. [`Display`](fmt::Display) prints it as compact JSON.
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
    /// A number with a fraction or an exponent. The parser makes those out of range infinite.
    Float(f64),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Value>),
    /// The members of an object, in order.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        *self == Value::Null
    }

    /// The value of a `Bool`.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The value of an `Integer`.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// Any number, rounded to the nearest `f64`.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Integer(value) => Some(*value as f64),
            Value::BigInteger(digits) => digits.parse().ok(),
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// The text of a `String`.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of an `Array`.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The members of an `Object`.
    pub fn as_object(&self) -> Option<&[(String, Value)]> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The member of an `Object` with this key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let members = self.as_object()?;
        let member = members.iter().find(|(name, _)| name == key);
        member.map(|(_, value)| value)
    }

    /// The elements of an `Array`; of any other value, the value itself.
    pub fn columns(&self) -> &[Value] {
        self.as_array().unwrap_or(std::slice::from_ref(self))
    }

    /// Approximate size in memory, in bytes.
    pub fn weight(&self) -> usize {
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

    /// Appends it as compact JSON. Returns whether it is JSON: infinities are not.
    pub(crate) fn write(&self, out: &mut String) -> bool {
        let mut is_finite = true;
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Integer(value) => print::write_integer(out, *value),
            Value::BigInteger(digits) => out.push_str(digits),
            Value::Float(value) => {
                print::write_float(out, *value);
                is_finite = value.is_finite();
            }
            Value::String(text) => print::write_string(out, text),
            Value::Array(elements) => {
                out.push('[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    is_finite &= element.write(out);
                }
                out.push(']');
            }
            Value::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    print::write_string(out, key);
                    out.push(':');
                    is_finite &= value.write(out);
                }
                out.push('}');
            }
        }
        is_finite
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        f.write_str(&text)
    }
}
