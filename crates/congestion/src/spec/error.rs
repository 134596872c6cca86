//! Errors in specs.

use alloc::{string::String, vec::Vec};
use core::fmt;

/// A spec that cannot be built. The message contains the part, the reason, and what is valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// There is no preset of this name.
    #[error("unknown congestion control `{name}` (expected {}){}", known.join(", "), Hint { given: name, known })]
    UnknownPreset {
        /// The name given.
        name: String,
        /// The valid names.
        known: Vec<String>,
    },
    /// There is no key of this name, or the preset does not accept it.
    #[error("unknown key `{key}` of `{preset}` (expected {}){}", known.join(", "), Hint { given: key, known })]
    UnknownKey {
        /// The key given.
        key: String,
        /// The preset.
        preset: &'static str,
        /// The valid keys.
        known: Vec<String>,
    },
    /// A part of the spec is not `key=value`.
    #[error("`{part}` in `{spec}` (expected KEY=VALUE, as in `cubic:initial-window=10p,beta=0.7`)")]
    NotKeyValue {
        /// The part.
        part: String,
        /// The whole spec.
        spec: String,
    },
    /// A key is repeated.
    #[error("`{key}` is given twice in `{spec}` (expected once)")]
    KeyTwice {
        /// The key.
        key: &'static str,
        /// The spec.
        spec: String,
    },
    /// A key does not accept this value.
    #[error("`{key}={value}` in `{spec}` (expected {allowed})")]
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
    #[error("`jump-window` in `{spec}` is less than `initial-window` (expected at least as much)")]
    JumpTooSmall {
        /// The spec.
        spec: String,
    },
    /// The name is not permitted.
    #[error(
        "invalid name `{name}` (expected lower-case letters, digits and hyphens, a letter first)"
    )]
    BadName {
        /// The name.
        name: &'static str,
    },
    /// There is a startup, avoidance, preset or key of this name already.
    #[error("the name `{name}` is in use (expected another)")]
    NameTaken {
        /// The name.
        name: &'static str,
    },
}

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
