//! Arms, and the text of `--arm` in all commands: `[NAME=][VERSION] [SPEC]`.
//!
//! | part | example | where |
//! |---|---|---|
//! | name | `ten=…` | has no `:`, since keys of a spec follow one; without it, the arm is named by its text |
//! | version of HTTP | `1.1`, `2`, `3` | page loads only; without it, they use HTTP/3 |
//! | congestion control | `cubic:initial-window=10p` | page loads may leave it out |

use lastbyte_congestion::{Registry, Spec};

use crate::{
    http::{HttpVersion, Upgrade},
    setting::SettingError,
};

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
        let word = rest.split_whitespace().next().unwrap_or_default();
        if word.parse::<HttpVersion>().is_ok() {
            return Err(SettingError::new(
                "",
                format!("`{text}` has a version of HTTP"),
                "SPEC or NAME=SPEC: only page loads have versions",
            ));
        }
        Ok(Self {
            name: name.unwrap_or(rest).to_owned(),
            spec: registry.parse(rest)?,
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
        // No congestion control begins with a digit.
        let (version, spec) = if rest.starts_with(|first: char| first.is_ascii_digit()) {
            match rest.split_once(char::is_whitespace) {
                Some((version, spec)) => (version.parse()?, Some(registry.parse(spec.trim())?)),
                None => (rest.parse()?, None),
            }
        } else {
            (HttpVersion::Http3, Some(registry.parse(rest)?))
        };
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
        Some((name, _)) if name.trim().is_empty() => Err(SettingError::new(
            "",
            format!("`{text}` has no name before `=`"),
            "NAME=SPEC",
        )),
        Some((name, rest)) => Ok((Some(name.trim()), rest.trim())),
    }
}

fn distinct<T>(arms: Vec<T>, name: impl Fn(&T) -> &str) -> Result<Vec<T>, SettingError> {
    for (index, arm) in arms.iter().enumerate() {
        if arms
            .iter()
            .take(index)
            .any(|other| name(other) == name(arm))
        {
            return Err(SettingError::new(
                "",
                format!("two arms are named `{}`", name(arm)),
                "different names: NAME=SPEC",
            ));
        }
    }
    Ok(arms)
}
