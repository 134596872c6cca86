//! The parser's values: those of the language.

use std::rc::Rc;

use lastbyte_json::{Build, parse};

use crate::value::Value;
use crate::value::number;
use crate::value::table::{Table, hash_of_str};
use crate::value::text::Text;

pub(crate) type Keys = parse::Keys<Value>;
pub(crate) type Parser<'a> = parse::Parser<'a, Value>;

/// The value of a text that was printed.
pub(crate) fn parsed(text: &str, keys: &mut Keys) -> Value {
    Parser::new(text.as_bytes(), keys)
        .only(&parse::Projection::Whole)
        .unwrap_or_default()
}

/// A frozen key and its hash.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) text: Rc<Text>,
    pub(crate) hash: u64,
}

impl Build for Value {
    type Key = Key;
    type Object = Table;

    #[inline]
    fn key(text: String) -> Key {
        Key {
            hash: hash_of_str(&text),
            text: Rc::new(Text::frozen(text)),
        }
    }

    #[inline]
    fn key_is(key: &Key, text: &str) -> bool {
        *key.text.get() == *text
    }

    #[inline]
    fn null() -> Value {
        Value::Nil
    }

    #[inline]
    fn bool(value: bool) -> Value {
        Value::Bool(value)
    }

    #[inline]
    fn integer(value: i64) -> Value {
        Value::Int(value)
    }

    #[inline]
    fn big_integer(digits: &str) -> Value {
        digits.parse().map_or(Value::Nil, number::integer)
    }

    #[inline]
    fn float(value: f64) -> Value {
        Value::Float(value)
    }

    #[inline]
    fn string(text: String) -> Value {
        Value::str(text)
    }

    #[inline]
    fn array(elements: Vec<Value>) -> Value {
        Value::array(elements)
    }

    #[inline]
    fn object(capacity: usize) -> Table {
        Table::with_capacity(capacity)
    }

    #[inline]
    fn insert(table: &mut Table, key: Key, value: Value) {
        table.insert_hashed(key.hash, key.text, value);
    }

    #[inline]
    fn finish(table: Table) -> Value {
        Value::hash(table)
    }
}
