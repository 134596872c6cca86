//! Arms, and the text of `--arm` in all commands: `[NAME=][VERSION] [SPEC]`.
//!
//! | part | example | where |
//! |---|---|---|
//! | name | `ten=…` | has no `:`, since keys of a spec follow one; no version of HTTP but the arm's own; without it, the arm is named by its text |
//! | version of HTTP | `1.1`, `2`, `3` | page loads only; without it, they use HTTP/3 |
//! | congestion control | `cubic:initial-window=10p` | page loads may leave it out |

use lastbyte_congestion::{Registry, Spec};

use crate::{
    http::{HttpVersion, Upgrade},
    setting::SettingError,
};

#[cfg(test)]
mod tests;

/// An arm: a congestion control under test.
#[derive(Clone, Debug)]
pub struct Arm {
    /// The name.
    pub name: String,
    /// The server's congestion control.
    pub spec: Spec,
    /// Its share of connections, relative to those of the other arms.
    pub share: f64,
}

/// An arm of page loads: a version of HTTP, and a congestion control.
#[derive(Clone, Debug)]
pub struct HttpArm {
    /// The name.
    pub name: String,
    /// The version.
    pub version: HttpVersion,
    /// The congestion control; `None` for the default of the version.
    pub spec: Option<Spec>,
    /// The hosts that have this version; others have HTTP/1.1. Not part of the text: all.
    pub upgrade: Upgrade,
}

impl Arm {
    /// Parses `SPEC` or `NAME=SPEC`; the share is 1.
    ///
    /// ```
    /// # use lastbyte_congestion::Registry;
    /// # use lastbyte_scenario::Arm;
    /// let registry = Registry::builtin();
    /// assert_eq!(Arm::parse("ten=cubic:initial-window=10p", &registry)?.name, "ten");
    /// let error = Arm::parse("cubic:beta=9", &registry).unwrap_err();
    /// assert_eq!(error.to_string(), "`beta=9` in `cubic:beta=9` (expected 0.1 to 0.95)");
    /// # Ok::<(), lastbyte_scenario::SettingError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] if the name is empty, the spec is invalid, or there is a version of HTTP.
    pub fn parse(text: &str, registry: &Registry) -> Result<Self, SettingError> {
        let (name, rest) = named(text)?;
        if [name.unwrap_or_default(), first_word(rest)]
            .iter()
            .any(|word| HttpVersion::by_any_name(word).is_some())
        {
            return Err(SettingError::of_value(
                format!("`{text}` has a version of HTTP"),
                "SPEC or NAME=SPEC: only page loads have versions",
            ));
        }
        Ok(Self {
            name: name.unwrap_or(rest).to_owned(),
            spec: spec(text, name, rest, registry)?,
            share: 1.0,
        })
    }

    /// Parses arms of different names.
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] if a text is invalid, or a name is repeated.
    pub fn parse_all(texts: &[String], registry: &Registry) -> Result<Vec<Self>, SettingError> {
        let arms: Result<Vec<Self>, SettingError> = texts
            .iter()
            .map(|text| Self::parse(text, registry))
            .collect();
        distinct(arms?, |arm| &arm.name)
    }
}

impl HttpArm {
    /// Parses `VERSION`, `VERSION SPEC` or `SPEC`, each with or without `NAME=` in front.
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] if the name is empty, or the version or spec is invalid.
    pub fn parse(text: &str, registry: &Registry) -> Result<Self, SettingError> {
        let (name, rest) = named(text)?;
        let word = first_word(rest);
        // No congestion control begins with a digit, and a value of a key may.
        let is_version = HttpVersion::by_any_name(word).is_some()
            || (word.starts_with(|first: char| first.is_ascii_digit())
                && !is_key(name.unwrap_or_default(), registry));
        let (version, spec) = if is_version {
            let version: HttpVersion = word.parse()?;
            let rest = rest[word.len()..].trim();
            let spec = (!rest.is_empty()).then(|| spec(text, None, rest, registry));
            (Some(version), spec.transpose()?)
        } else {
            (None, Some(spec(text, name, rest, registry)?))
        };
        if let Some(of_name) = name.and_then(HttpVersion::by_any_name)
            && version != Some(of_name)
        {
            return Err(SettingError::of_value(
                format!("`{text}` is named by a version of HTTP that it is not of"),
                format!(
                    "another name, or `{} {rest}` for the version",
                    of_name.name()
                ),
            ));
        }
        let version = version.unwrap_or(HttpVersion::Http3);
        Ok(Self {
            name: match (name, &spec) {
                (Some(name), _) => name.to_owned(),
                (None, Some(spec)) => format!("{version} {spec}"),
                (None, None) => version.to_string(),
            },
            version,
            spec,
            upgrade: Upgrade::All,
        })
    }

    /// Parses arms of different names.
    ///
    /// # Errors
    ///
    /// As [`Arm::parse_all`].
    pub fn parse_all(texts: &[String], registry: &Registry) -> Result<Vec<Self>, SettingError> {
        let arms: Result<Vec<Self>, SettingError> = texts
            .iter()
            .map(|text| Self::parse(text, registry))
            .collect();
        distinct(arms?, |arm| &arm.name)
    }
}

/// The name, if the text has one, and the rest.
fn named(text: &str) -> Result<(Option<&str>, &str), SettingError> {
    let named = text.split_once('=');
    match named.filter(|(name, _)| !name.contains(':')) {
        None => Ok((None, text.trim())),
        Some((name, _)) if name.trim().is_empty() => Err(SettingError::of_value(
            format!("`{text}` has no name before `=`"),
            "NAME=SPEC",
        )),
        Some((name, rest)) => Ok((Some(name.trim()), rest.trim())),
    }
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

fn is_key(name: &str, registry: &Registry) -> bool {
    registry.keys().iter().any(|key| key.name() == name)
}

/// The congestion control of an arm. What looks like a name may be a key without a congestion control.
fn spec(
    text: &str,
    name: Option<&str>,
    rest: &str,
    registry: &Registry,
) -> Result<Spec, SettingError> {
    let parsed = registry.parse(rest);
    match name.filter(|name| parsed.is_err() && is_key(name, registry)) {
        Some(name) => Err(SettingError::of_value(
            format!("`{text}` has the key `{name}` and no congestion control"),
            format!("SPEC:{name}={rest}, such as `cubic:{name}={rest}`"),
        )),
        None => Ok(parsed?),
    }
}

fn distinct<T>(arms: Vec<T>, name: impl Fn(&T) -> &str) -> Result<Vec<T>, SettingError> {
    for (index, arm) in arms.iter().enumerate() {
        if arms
            .iter()
            .take(index)
            .any(|other| name(other) == name(arm))
        {
            return Err(SettingError::of_value(
                format!("two arms are named `{}`", name(arm)),
                "different names: NAME=SPEC",
            ));
        }
    }
    Ok(arms)
}
