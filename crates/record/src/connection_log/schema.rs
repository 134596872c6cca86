//! The types of the table of keys, and the output generated from it: lines, documentation, JSON schemas.

use core::fmt;
use std::fmt::Write;

use super::{keys, tcp};
use crate::json::{self, Object};

/// A key of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(&'static str);

impl Key {
    pub(super) const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The key as it is written.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A field of a log line, with its value taken from an `S`.
#[derive(Debug)]
pub struct Field<S: 'static> {
    /// Its key.
    pub key: Key,
    /// Its type.
    pub kind: Kind,
    /// Its unit.
    pub unit: Unit,
    /// Its description, one or more sentences.
    pub meaning: &'static str,
    value: for<'a> fn(&'a S) -> Value<'a>,
}

impl<S> Field<S> {
    pub(super) const fn new(
        key: Key,
        kind: Kind,
        unit: Unit,
        meaning: &'static str,
        value: for<'a> fn(&'a S) -> Value<'a>,
    ) -> Self {
        Self {
            key,
            kind,
            unit,
            meaning,
            value,
        }
    }

    /// The value of the field.
    pub fn value<'a>(&self, source: &'a S) -> Value<'a> {
        (self.value)(source)
    }
}

/// The type of a field in JSON. Numbers are never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Always this text.
    Constant(&'static str),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// Any text.
    Text,
    /// A whole number.
    Integer,
    /// A whole number or `null`.
    NullableInteger,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `true`, `false` or `null`.
    NullableBoolean,
}

impl Kind {
    /// The members of the JSON schema for this type.
    fn write_schema(self, text: &mut String) {
        text.push_str(match self {
            Self::Constant(value) => {
                text.push_str("\"const\":");
                return json::string(text, value);
            }
            Self::OneOf(values) => {
                text.push_str("\"enum\":");
                return list(text, values.iter().copied());
            }
            Self::Text => r#""type":"string""#,
            Self::Integer => r#""type":"integer","minimum":0"#,
            Self::NullableInteger => r#""type":["integer","null"],"minimum":0"#,
            Self::Number => r#""type":"number","minimum":0"#,
            Self::Boolean => r#""type":"boolean""#,
            Self::NullableBoolean => r#""type":["boolean","null"]"#,
        });
    }
}

/// The unit of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// None: text, a truth value or an identifier.
    None,
    /// A count.
    Count,
    /// 0 or 1, which can be summed.
    Flag,
    /// Bytes.
    Bytes,
    /// TCP segments.
    Segments,
    /// Milliseconds.
    Milliseconds,
    /// Bytes per second.
    BytesPerSecond,
    /// Bits per second.
    BitsPerSecond,
    /// A share of the whole: 0 to 1.
    Share,
    /// 1/1024 of a round trip.
    PerRtt,
}

impl Unit {
    /// Its name in documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Count => "count",
            Self::Flag => "0 or 1",
            Self::Bytes => "bytes",
            Self::Segments => "segments",
            Self::Milliseconds => "ms",
            Self::BytesPerSecond => "bytes/s",
            Self::BitsPerSecond => "bit/s",
            Self::Share => "0 to 1",
            Self::PerRtt => "1/1024 RTT",
        }
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Not known: the key is left out.
    Absent,
    /// `null`.
    Null,
    /// A text.
    Text(&'a str),
    /// A whole number.
    Integer(u64),
    /// A number with at most this many decimal places.
    Number(f64, usize),
    /// A truth value.
    Boolean(bool),
}

/// A number with at most this many decimal places.
pub(super) struct Decimals(pub(super) f64, pub(super) usize);

/// A value that is written as `null` if it is not known.
pub(super) struct Nullable<T>(pub(super) Option<T>);

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<Decimals> for Value<'_> {
    fn from(Decimals(number, places): Decimals) -> Self {
        Self::Number(number, places)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value<'_> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

impl<T: Into<Self>> From<Nullable<T>> for Value<'_> {
    fn from(Nullable(value): Nullable<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Writes the fields that `source` has values for.
pub(super) fn write<S>(line: &mut Object<'_>, fields: &[Field<S>], source: &S) {
    for field in fields {
        let key = field.key.name();
        match field.value(source) {
            Value::Absent => continue,
            Value::Null => line.null(key),
            Value::Text(text) => line.text(key, text),
            Value::Integer(number) => line.integer(key, number),
            Value::Number(number, places) => line.number(key, number, places),
            Value::Boolean(value) => line.boolean(key, value),
        };
    }
}

/// The unit of the values of this key, as it is written behind a number: empty for counts. `None` if no line has the key.
pub fn unit_of(key: &str) -> Option<&'static str> {
    fn find<S>(fields: &[Field<S>], key: &str) -> Option<Unit> {
        let field = fields.iter().find(|field| field.key.name() == key);
        field.map(|field| field.unit)
    }
    let unit = find(keys::HEAD, key)
        .or_else(|| find(keys::STATISTICS, key))
        .or_else(|| find(keys::OUTCOME, key))
        .or_else(|| find(keys::ALGORITHMS, key))
        .or_else(|| find(keys::PATH, key))
        .or_else(|| find(keys::ANATOMY, key))
        .or_else(|| find(keys::EXPERIMENT, key))
        .or_else(|| find(tcp::SUMMARY, key))
        .or_else(|| find(tcp::KERNEL, key))?;
    Some(match unit {
        Unit::None | Unit::Count | Unit::Flag | Unit::Share => "",
        unit => unit.name(),
    })
}

/// The tables of the documentation, in Markdown, each with its title.
pub fn markdown() -> [(&'static str, String); 5] {
    let mut own = String::from(TABLE_HEAD);
    rows(&mut own, keys::OUTCOME);
    rows(&mut own, keys::ALGORITHMS);
    rows(&mut own, keys::PATH);
    rows(&mut own, keys::ANATOMY);
    rows(&mut own, keys::EXPERIMENT);
    let mut over_tcp = table(tcp::SUMMARY);
    rows(&mut over_tcp, tcp::ORIGIN);
    [
        ("Head", table(keys::HEAD)),
        ("Statistics", table(keys::STATISTICS)),
        ("Result and experiment", own),
        ("Connections over TCP", over_tcp),
        ("Kernel statistics", table(tcp::KERNEL)),
    ]
}

const TABLE_HEAD: &str = "| key | unit | meaning |\n|---|---|---|\n";

fn table<S>(fields: &[Field<S>]) -> String {
    let mut text = String::from(TABLE_HEAD);
    rows(&mut text, fields);
    text
}

fn rows<S>(text: &mut String, fields: &[Field<S>]) {
    for field in fields {
        let (key, unit, meaning) = (field.key, field.unit.name(), field.meaning);
        let unit = if unit.is_empty() {
            String::new()
        } else {
            format!("{unit} ")
        };
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "| `{key}` | {unit}| {meaning} |");
    }
}

const SCHEMA_HEAD: &str = "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"properties\":{";

/// A JSON schema (draft 2020-12) of a line of a connection over QUIC. A line has all statistics or none of them. Other keys
/// may stand beside those of the schema.
pub fn json_schema() -> String {
    let mut text = String::from(SCHEMA_HEAD);
    properties(&mut text, keys::HEAD);
    properties(&mut text, keys::STATISTICS);
    properties(&mut text, keys::OUTCOME);
    properties(&mut text, keys::ALGORITHMS);
    properties(&mut text, keys::PATH);
    properties(&mut text, keys::ANATOMY);
    properties(&mut text, keys::EXPERIMENT);
    text.push_str("},\n\"required\":");
    list(&mut text, names(keys::HEAD).chain(names(keys::OUTCOME)));
    let mut measured = names(keys::STATISTICS).chain(names(keys::ALGORITHMS));
    if let Some(first) = measured.next() {
        let _ = write!(text, ",\n\"dependentRequired\":{{\"{first}\":");
        list(&mut text, measured);
        text.push('}');
    }
    text.push_str("}\n");
    text
}

/// A JSON schema (draft 2020-12) of a line of a connection over TCP.
pub fn json_schema_tcp() -> String {
    let mut text = String::from(SCHEMA_HEAD);
    properties(&mut text, keys::HEAD);
    properties(&mut text, tcp::SUMMARY);
    properties(&mut text, tcp::ORIGIN);
    properties(&mut text, tcp::KERNEL);
    text.push_str("},\n\"required\":");
    list(&mut text, names(keys::HEAD).chain(names(tcp::SUMMARY)));
    text.push_str(",\n\"additionalProperties\":false}\n");
    text
}

fn properties<S>(text: &mut String, fields: &[Field<S>]) {
    for field in fields {
        let comma = if text.ends_with('{') { "" } else { "," };
        let _ = write!(text, "{comma}\n\"{}\":{{", field.key);
        field.kind.write_schema(text);
        text.push_str(",\"description\":");
        json::string(text, field.meaning);
        text.push('}');
    }
}

fn names<S>(fields: &[Field<S>]) -> impl Iterator<Item = &'static str> {
    fields.iter().map(|field| field.key.name())
}

/// A JSON array of texts.
fn list<'a>(text: &mut String, names: impl Iterator<Item = &'a str>) {
    text.push('[');
    for (index, name) in names.enumerate() {
        if index > 0 {
            text.push(',');
        }
        json::string(text, name);
    }
    text.push(']');
}
