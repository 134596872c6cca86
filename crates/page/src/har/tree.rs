//! JSON reduced to the keys that a HAR reader needs, with a bound on what is kept.
//!
//! HAR files contain the bodies of responses, which can be 100 MB. They are skipped while parsing and never kept.

use core::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Maximum number of values kept.
const VALUES_MAX: usize = 2_000_000;
/// Maximum length of a text, in bytes; longer ones are cut.
const TEXT_MAX: usize = 4096;

/// A value, of which only the wanted keys are kept.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Null,
    Number(f64),
    Text(String),
    List(Vec<Self>),
    Object(Vec<(&'static str, Self)>),
}

const NULL: Tree = Tree::Null;

impl Tree {
    /// Parses `bytes`, and keeps of all objects only the values of `keys`.
    pub(super) fn parse(bytes: &[u8], keys: &'static [&'static str]) -> Result<Self, String> {
        let budget = Cell::new(VALUES_MAX);
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let tree = TreeSeed {
            keys,
            budget: &budget,
        }
        .deserialize(&mut json)
        .and_then(|tree| json.end().map(|()| tree));
        tree.map_err(|error| error.to_string())
    }

    pub(super) fn get(&self, key: &str) -> &Self {
        let found = match self {
            Self::Object(fields) => fields.iter().find(|(name, _)| *name == key),
            _ => None,
        };
        found.map_or(&NULL, |(_, value)| value)
    }

    pub(super) fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number that a number or a text holds, as `WebPageTest` writes some numbers.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text
                .trim()
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite()),
            _ => None,
        }
    }

    /// The number, if it is not negative: HAR writes -1 for unknown values.
    pub(super) fn known(&self) -> Option<f64> {
        self.number().filter(|number| *number >= 0.0)
    }
}

#[derive(Clone, Copy)]
struct TreeSeed<'a> {
    keys: &'static [&'static str],
    budget: &'a Cell<usize>,
}

impl TreeSeed<'_> {
    fn spend<E: Error>(self) -> Result<(), E> {
        match self.budget.get().checked_sub(1) {
            Some(left) => {
                self.budget.set(left);
                Ok(())
            }
            None => Err(E::custom(format_args!(
                "too many values (expected at most {VALUES_MAX})"
            ))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for TreeSeed<'_> {
    type Value = Tree;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        self.spend()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TreeSeed<'_> {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Number(f64::from(u8::from(value))))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        let mut end = value.len().min(TEXT_MAX);
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        Ok(Tree::Text(value[..end].to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Tree::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Tree, A::Error> {
        let mut fields: Vec<(&'static str, Tree)> = Vec::new();
        while let Some(name) = object.next_key_seed(Key(self.keys))? {
            match name {
                // The first value of a repeated key counts, so that an object has at most as many fields as there are keys.
                Some(name) if fields.iter().all(|(known, _)| *known != name) => {
                    fields.push((name, object.next_value_seed(self)?));
                }
                _ => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Tree::Object(fields))
    }
}

/// A key of an object, if it is one of those wanted.
struct Key(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|key| **key == value).copied())
    }
}
