//! Errors in specs.

use alloc::{string::String, vec::Vec};
use core::fmt;

/// A spec that cannot be built. The message contains the part, the reason, and what is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// There is no preset of this name.
    UnknownPreset {
        /// The name given.
        name: String,
        /// The valid names.
        known: Vec<String>,
    },
    /// There is no key of this name, or the preset does not accept it.
    UnknownKey {
        /// The key given.
        key: String,
        /// The preset.
        preset: &'static str,
        /// The valid keys.
        known: Vec<String>,
    },
    /// A part of the spec is not `key=value`.
    NotKeyValue {
        /// The part.
        part: String,
        /// The whole spec.
        spec: String,
    },
    /// A key is repeated.
    KeyTwice {
        /// The key.
        key: &'static str,
        /// The spec.
        spec: String,
    },
    /// A key does not accept this value.
    BadValue {
        /// The key.
        key: &'static str,
        /// The value given.
        value: String,
        /// The accepted values.
        allowed: String,
        /// The spec.
        spec: String,
    },
    /// `jump-window` is less than `initial-window`.
    JumpTooSmall {
        /// The spec.
        spec: String,
    },
    /// The name is not permitted.
    BadName {
        /// The name.
        name: &'static str,
    },
    /// There is a startup, avoidance, preset or key of this name already.
    NameTaken {
        /// The name.
        name: &'static str,
    },
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownPreset { name, known } => write!(
                f,
                "unknown congestion control `{name}` (expected {}){}",
                known.join(", "),
                Hint { given: name, known }
            ),
            Self::UnknownKey { key, preset, known } => write!(
                f,
                "unknown key `{key}` of `{preset}` (expected {}){}",
                known.join(", "),
                Hint { given: key, known }
            ),
            Self::NotKeyValue { part, spec } => write!(
                f,
                "`{part}` in `{spec}` (expected KEY=VALUE, as in `cubic:initial-window=10p,beta=0.7`)"
            ),
            Self::KeyTwice { key, spec } => {
                write!(f, "`{key}` is given twice in `{spec}` (expected once)")
            }
            Self::BadValue {
                key,
                value,
                allowed,
                spec,
            } => write!(f, "`{key}={value}` in `{spec}` (expected {allowed})"),
            Self::JumpTooSmall { spec } => write!(
                f,
                "`jump-window` in `{spec}` is less than `initial-window` (expected at least as much)"
            ),
            Self::BadName { name } => write!(
                f,
                "invalid name `{name}` (expected lower-case letters, digits and hyphens, a letter first)"
            ),
            Self::NameTaken { name } => {
                write!(f, "the name `{name}` is in use (expected another)")
            }
        }
    }
}

impl core::error::Error for SpecError {}

/// Names the known name that was probably meant, if there is one.
struct Hint<'a> {
    given: &'a str,
    known: &'a [String],
}

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.known.iter().find(|name| is_near(self.given, name)) {
            return write!(f, "; did you mean `{name}`?");
        }
        let is_start = |name: &&String| self.given.len() > 2 && name.starts_with(self.given);
        for (place, name) in self.known.iter().filter(is_start).enumerate() {
            let before = if place == 0 { "; did you mean" } else { " or" };
            write!(f, "{before} `{name}`")?;
        }
        if self.known.iter().any(|name| is_start(&name)) {
            f.write_str("?")?;
        }
        Ok(())
    }
}

/// Whether two names differ by case, by one letter, or by two letters that are exchanged.
fn is_near(given: &str, known: &str) -> bool {
    let (given, known) = (given.to_ascii_lowercase(), known.to_ascii_lowercase());
    let pairs = given.bytes().zip(known.bytes());
    let start = pairs.take_while(|(one, other)| one == other).count();
    let pairs = given.bytes().rev().zip(known.bytes().rev());
    let end = pairs.take_while(|(one, other)| one == other).count();
    let len = given.len().max(known.len());
    let is_exchanged = || {
        let (one, other) = (given.as_bytes(), known.as_bytes());
        one.len() == other.len()
            && start + end + 2 == len
            && one[start] == other[start + 1]
            && one[start + 1] == other[start]
    };
    len > 2 && (start + end + 1 >= len || is_exchanged())
}
