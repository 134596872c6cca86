//! Network, population and experiment files: reading them, and their errors.

use core::{fmt, ops::Range};

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

/// An invalid setting in a network, population or experiment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The key of the setting; empty if the error is not in a single setting.
    pub key: String,
    /// The error, and the expected value.
    pub reason: String,
    /// The line of the file, from 1, if it is known.
    pub line: Option<usize>,
}

impl SettingError {
    pub(crate) fn new(key: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self {
            key: key.into(),
            reason: reason.to_string().trim_end().to_owned(),
            line: None,
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
        if self.key.is_empty() {
            f.write_str(&self.reason)
        } else {
            write!(f, "`{}`: {}", self.key, self.reason)
        }
    }
}

impl std::error::Error for SettingError {}

/// Reads a TOML file. An error has the key, with the names of tables in lists, and the line.
pub(crate) fn read<T: DeserializeOwned>(file: &str) -> Result<T, SettingError> {
    toml::from_str(file).map_err(|error: toml::de::Error| {
        let keys = keys(file);
        let Some(span) = error.span().filter(|_| !keys.is_empty()) else {
            return SettingError::new("", error);
        };
        // Of equal spans the last is the innermost.
        let around = keys.iter().rev();
        let around = around.filter(|(around, _)| around.contains(&span.start));
        let place = around.min_by_key(|(around, _)| around.len());
        SettingError {
            line: place.map(|_| line(file, span.start)),
            ..SettingError::new(place.map_or("", |(_, key)| key), error.message())
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
