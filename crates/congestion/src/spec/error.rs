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
        /// What it accepts.
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
                "there is no congestion control named `{name}`; there are: {}",
                known.join(", ")
            ),
            Self::UnknownKey { key, preset, known } => write!(
                f,
                "`{preset}` takes no key `{key}`; it takes: {}",
                known.join(", ")
            ),
            Self::NotKeyValue { part, spec } => write!(
                f,
                "`{part}` in `{spec}` is not of the form `key=value`; write it like `cubic:initial-window=10p,beta=0.7`"
            ),
            Self::KeyTwice { key, spec } => {
                write!(f, "`{key}` is given twice in `{spec}`; give it once")
            }
            Self::BadValue {
                key,
                value,
                allowed,
                spec,
            } => write!(
                f,
                "`{key}={value}` in `{spec}`: the value must be {allowed}"
            ),
            Self::JumpTooSmall { spec } => write!(
                f,
                "`jump-window` in `{spec}` is less than `initial-window`; a jump must be to at least as much"
            ),
            Self::BadName { name } => write!(
                f,
                "`{name}` cannot be a name; use lower-case letters, digits and hyphens"
            ),
            Self::NameTaken { name } => {
                write!(f, "the name `{name}` is already in use; choose another")
            }
        }
    }
}

impl core::error::Error for SpecError {}
