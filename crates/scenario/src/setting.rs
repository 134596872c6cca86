//! Network, population and experiment files: reading them, and their errors.

use core::{fmt, ops::Range};

use lastbyte_congestion::SpecError;
use lastbyte_units::UnitError;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

/// An invalid setting in a file or on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The key of the setting, or the name of the option with its dashes; empty if the error is not in a single setting.
    pub key: String,
    /// The invalid value, or what is wrong with it.
    pub value: String,
    /// What is expected; empty if `value` says it.
    pub expected: String,
    /// The line of the file, from 1, if it is known.
    pub line: Option<usize>,
}

impl SettingError {
    /// The error of a value in place of the expected one.
    pub fn new(
        key: impl Into<String>,
        value: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self {
            expected: expected.to_string(),
            ..Self::because(key, value)
        }
    }

    /// The error of a value in place of the expected one, which is not of a setting, or not yet.
    pub fn of_value(value: impl fmt::Display, expected: impl fmt::Display) -> Self {
        Self::new("", value, expected)
    }

    /// The value with a name, or the error that the name is unknown.
    pub(crate) fn named<T: Copy>(
        all: &[T],
        name: impl Fn(T) -> &'static str,
        what: &str,
        text: &str,
    ) -> Result<T, Self> {
        let found = all.iter().copied().find(|one| name(*one) == text);
        found.ok_or_else(|| {
            let names: Vec<String> = all.iter().map(|one| format!("`{}`", name(*one))).collect();
            let expected = match names.split_last() {
                Some((last, others)) if !others.is_empty() => {
                    format!("{} or {last}", others.join(", "))
                }
                _ => names.concat(),
            };
            Self::of_value(format!("unknown {what} `{text}`"), expected)
        })
    }

    /// An error that is not a value in place of another.
    pub fn because(key: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self {
            key: key.into(),
            value: reason.to_string().trim_end().to_owned(),
            expected: String::new(),
            line: None,
        }
    }

    /// An error that is neither a value in place of another, nor of a setting.
    pub fn reason(reason: impl fmt::Display) -> Self {
        Self::because("", reason)
    }

    /// The sentence without the key and the line.
    pub fn problem(&self) -> String {
        match self.expected.as_str() {
            "" => self.value.clone(),
            expected => format!("{} (expected {expected})", self.value),
        }
    }

    /// Names the setting that has the value.
    #[must_use]
    pub fn of(self, key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            ..self
        }
    }

    /// Names the text that the value is a part of.
    pub(crate) fn in_text(self, text: &str) -> Self {
        Self {
            value: format!("`{text}`: {}", self.value),
            ..self
        }
    }

    /// Adds the line of the key in this file, unless the error has a line.
    pub(crate) fn at_line_of(self, file: &str) -> Self {
        let keys = keys(file);
        let place = keys.iter().rev().find(|(_, key)| *key == self.key);
        let found = place.map(|(span, _)| line(file, span.start));
        Self {
            line: self.line.or(found),
            ..self
        }
    }

    /// Prefixes the key with that of the enclosing part.
    pub(crate) fn within(self, what: &str) -> Self {
        let dot = if self.key.is_empty() { "" } else { "." };
        Self {
            key: format!("{what}{dot}{}", self.key),
            ..self
        }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        match self.key.as_str() {
            "" => f.write_str(&self.problem()),
            option if option.starts_with("--") => write!(f, "{option}: {}", self.problem()),
            key => write!(f, "`{key}`: {}", self.problem()),
        }
    }
}

impl std::error::Error for SettingError {}

impl From<UnitError> for SettingError {
    fn from(error: UnitError) -> Self {
        Self::of_value(format!("`{}`", error.text()), error.expected())
    }
}

impl From<SpecError> for SettingError {
    fn from(error: SpecError) -> Self {
        Self::reason(error)
    }
}

/// Reads a TOML file. An error has the key, with the names of tables in lists, and the line.
pub(crate) fn read<T: DeserializeOwned>(file: &str) -> Result<T, SettingError> {
    toml::from_str(file).map_err(|error: toml::de::Error| {
        let keys = keys(file);
        let Some(span) = error.span().filter(|_| !keys.is_empty()) else {
            return SettingError::reason(error);
        };
        // Of equal spans the last is the innermost.
        let around = keys.iter().rev();
        let around = around.filter(|(around, _)| around.contains(&span.start));
        let place = around.min_by_key(|(around, _)| around.len());
        SettingError {
            line: place.map(|_| line(file, span.start)),
            ..SettingError::because(place.map_or("", |(_, key)| key), error.message())
        }
    })
}

fn line(file: &str, offset: usize) -> usize {
    let before = file.bytes().take(offset);
    1 + before.filter(|byte| *byte == b'\n').count()
}

/// The keys of a file, with the places of each and of its value; none if it is not TOML.
fn keys(file: &str) -> Vec<(Range<usize>, String)> {
    let mut keys = Vec::new();
    if let Ok(table) = DeTable::parse(file) {
        collect(table.get_ref(), "", &mut keys);
    }
    keys
}

fn collect(table: &DeTable<'_>, within: &str, keys: &mut Vec<(Range<usize>, String)>) {
    for (key, value) in table {
        let path = format!("{within}{}", key.get_ref());
        keys.push((value.span(), path.clone()));
        keys.push((key.span(), path.clone()));
        match value.get_ref() {
            DeValue::Table(table) => collect(table, &format!("{path}."), keys),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if let DeValue::Table(table) = item.get_ref() {
                        let name = table.get("name").and_then(|name| name.get_ref().as_str());
                        let path = match name {
                            Some(name) => format!("{path}.{name}"),
                            // Further hops, which count from 2.
                            None if *key.get_ref() == "hop" => format!("{path}[{}]", index + 2),
                            None => format!("{path}.{index}"),
                        };
                        keys.push((item.span(), path.clone()));
                        collect(table, &format!("{path}."), keys);
                    }
                }
            }
            _ => {}
        }
    }
}
