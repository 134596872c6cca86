//! Arms: versions of HTTP with a congestion control.

use core::ops::RangeInclusive;

use lastbyte_congestion::{Registry, Spec};
use lastbyte_scenario::{HttpVersion, Upgrade};

/// An arm: a version of HTTP and a congestion control.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    pub(super) name: String,
    pub(super) version: HttpVersion,
    pub(super) congestion: Option<Spec>,
    /// The hosts that have this version; others have HTTP/1.1.
    pub(super) upgrade: Upgrade,
}

/// Each arm of HTTP/2 and 3 with each of these sets of hosts. Arms of HTTP/1.1 stay as they are.
pub(super) fn upgraded(arms: Vec<Arm>, upgrades: &[Upgrade]) -> Result<Vec<Arm>, String> {
    if let Some((first, rest)) = upgrades.split_first()
        && rest.contains(first)
    {
        return Err(format!(
            "--upgrade: `{}` twice (expected each once)",
            first.name()
        ));
    }
    let is_old = |arm: &Arm| arm.version == HttpVersion::Http1;
    if upgrades != [Upgrade::All] && arms.iter().all(is_old) {
        return Err("--upgrade: all arms are HTTP/1.1 (expected one of HTTP/2 or 3)".to_owned());
    }
    let arms = arms.into_iter().flat_map(|arm| {
        let upgrades = if is_old(&arm) {
            &[Upgrade::All]
        } else {
            upgrades
        };
        upgrades.iter().map(move |upgrade| Arm {
            name: match upgrade {
                Upgrade::All => arm.name.clone(),
                Upgrade::FirstParty => format!("{} {}", arm.name, upgrade.name()),
            },
            upgrade: *upgrade,
            ..arm.clone()
        })
    });
    Ok(arms.collect())
}

/// The arms that these texts name, at least and at most this many.
pub(super) fn arms(
    texts: &[String],
    count: RangeInclusive<usize>,
    registry: &Registry,
) -> Result<Vec<Arm>, String> {
    let mut arms: Vec<Arm> = Vec::new();
    for text in texts {
        let arm = arm(text, registry).map_err(|error| format!("--arm: `{text}`: {error}"))?;
        if arms.iter().any(|other| other.name == arm.name) {
            return Err(format!(
                "two arms are named `{}` (expected different names: NAME=VERSION SPEC)",
                arm.name
            ));
        }
        arms.push(arm);
    }
    check_count(&arms, count)?;
    Ok(arms)
}

/// Checks the number of arms.
pub(super) fn check_count(arms: &[Arm], count: RangeInclusive<usize>) -> Result<(), String> {
    if count.contains(&arms.len()) {
        return Ok(());
    }
    Err(format!(
        "{} {} (expected {} to {}, the baseline first)",
        arms.len(),
        if arms.len() == 1 { "arm" } else { "arms" },
        count.start(),
        count.end()
    ))
}

/// An arm: `3`, `3 bbr`, `new=3 rapid-start`.
fn arm(text: &str, registry: &Registry) -> Result<Arm, String> {
    // A spec may contain `=` as well, but no version stands behind it.
    let named = text.split_once('=');
    let named = named.filter(|(name, _)| !name.contains(' '));
    let (name, rest) = named.map_or((None, text), |(name, rest)| (Some(name), rest));
    let (version, spec) = rest.split_once(' ').unwrap_or((rest, ""));
    let version: HttpVersion = version.parse()?;
    let spec = spec.trim();
    let congestion = match spec {
        "" => None,
        spec => Some(registry.parse(spec).map_err(|error| error.to_string())?),
    };
    Ok(Arm {
        name: name.map_or_else(
            || format!("{version} {spec}").trim().to_owned(),
            str::to_owned,
        ),
        version,
        congestion,
        upgrade: Upgrade::All,
    })
}
