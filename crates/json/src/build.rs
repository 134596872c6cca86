//! The trait by which the parser builds values: of a type of the caller, or plain data.

use std::collections::BTreeMap;

use crate::value::Value;

/// Builds values from parsed JSON.
pub trait Build: Sized {
    /// A key, kept from row to row.
    type Key: Clone;
    /// The members of an object that is read.
    type Object;

    /// A key with this text.
    fn key(text: String) -> Self::Key;
    /// Whether a key has this text.
    fn key_is(key: &Self::Key, text: &str) -> bool;
    /// `null`.
    fn null() -> Self;
    /// `true` or `false`.
    fn bool(value: bool) -> Self;
    /// An integer of 64 bits.
    fn integer(value: i64) -> Self;
    /// The decimal digits of an integer outside of the range of `i64`.
    fn big_integer(digits: &str) -> Self;
    /// A number with a fraction or an exponent.
    fn float(value: f64) -> Self;
    /// A string.
    fn string(text: String) -> Self;
    /// An array.
    fn array(elements: Vec<Self>) -> Self;
    /// An empty object, with room for this number of members.
    fn object(capacity: usize) -> Self::Object;
    /// Adds a member, or replaces the value of a key that is there.
    fn insert(object: &mut Self::Object, key: Self::Key, value: Self);
    /// The value of an object with all its members.
    fn finish(object: Self::Object) -> Self;
}

/// The members of an object that is parsed.
#[derive(Debug, Default)]
pub struct Members {
    list: Vec<(String, Value)>,
    /// Indexes of the keys of a long list.
    places: BTreeMap<String, usize>,
}

/// Longer lists of members have an index.
const SEARCHED_MAX: usize = 16;

impl Members {
    fn place(&mut self, key: &str) -> Option<usize> {
        if self.list.len() <= SEARCHED_MAX {
            return self.list.iter().position(|(known, _)| known == key);
        }
        if self.places.is_empty() {
            let keys = self.list.iter().enumerate();
            self.places = keys.map(|(at, (key, _))| (key.clone(), at)).collect();
        }
        self.places.get(key).copied()
    }
}

impl Build for Value {
    type Key = String;
    type Object = Members;

    fn key(text: String) -> String {
        text
    }

    fn key_is(key: &String, text: &str) -> bool {
        key == text
    }

    fn null() -> Value {
        Value::Null
    }

    fn bool(value: bool) -> Value {
        Value::Bool(value)
    }

    fn integer(value: i64) -> Value {
        Value::Integer(value)
    }

    fn big_integer(digits: &str) -> Value {
        Value::BigInteger(digits.to_owned())
    }

    fn float(value: f64) -> Value {
        Value::Float(value)
    }

    fn string(text: String) -> Value {
        Value::String(text)
    }

    fn array(elements: Vec<Value>) -> Value {
        Value::Array(elements)
    }

    fn object(capacity: usize) -> Members {
        Members {
            list: Vec::with_capacity(capacity),
            places: BTreeMap::new(),
        }
    }

    fn insert(object: &mut Members, key: String, value: Value) {
        if let Some(place) = object.place(&key) {
            object.list[place].1 = value;
            return;
        }
        if !object.places.is_empty() {
            object.places.insert(key.clone(), object.list.len());
        }
        object.list.push((key, value));
    }

    fn finish(object: Members) -> Value {
        Value::Object(object.list)
    }
}
