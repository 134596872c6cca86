//! Errors of network, population and experiment files.

use core::fmt;

/// An invalid setting in a network, population or experiment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The key of the setting; empty if the error is not in a single setting.
    pub key: String,
    /// The error, and the expected value.
    pub reason: String,
}

impl SettingError {
    pub(crate) fn new(key: impl Into<String>, reason: impl fmt::Display) -> Self {
        Self {
            key: key.into(),
            reason: reason.to_string().trim_end().to_owned(),
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
        if self.key.is_empty() {
            f.write_str(&self.reason)
        } else {
            write!(f, "`{}`: {}", self.key, self.reason)
        }
    }
}

impl std::error::Error for SettingError {}
