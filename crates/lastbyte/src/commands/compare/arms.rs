//! Arms: versions of HTTP with a congestion control.

use core::ops::RangeInclusive;
use std::collections::BTreeSet;

use lastbyte_congestion::Registry;
pub(super) use lastbyte_scenario::HttpArm as Arm;
use lastbyte_scenario::{HttpVersion, Upgrade};

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
    let arms: Vec<Arm> = arms.collect();
    let mut names = BTreeSet::new();
    match arms.iter().find(|arm| !names.insert(arm.name.as_str())) {
        Some(arm) => Err(format!(
            "--upgrade: two arms are named `{}` (expected other names in --arm)",
            arm.name
        )),
        None => Ok(arms),
    }
}

/// The arms that an option's texts name, at least and at most this many.
pub(super) fn arms(
    option: &str,
    texts: &[String],
    count: RangeInclusive<usize>,
    registry: &Registry,
) -> Result<Vec<Arm>, String> {
    let arms = Arm::parse_all(texts, registry).map_err(|error| format!("{option}: {error}"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_of_an_upgrade_have_different_names() {
        let texts = ["2", "HTTP/2 first-party=2 cubic"].map(str::to_owned);
        let arms = arms("--arm", &texts, 1..=8, &Registry::builtin()).expect("arms");
        let both = [Upgrade::All, Upgrade::FirstParty];
        assert_eq!(
            upgraded(arms.clone(), &both).map(|arms| arms.len()),
            Err("--upgrade: two arms are named `HTTP/2 first-party` (expected other names in --arm)".to_owned())
        );
        let names = |upgrades| -> Vec<String> {
            let arms = upgraded(arms[..1].to_vec(), upgrades)
                .expect("arms")
                .into_iter();
            arms.map(|arm| arm.name).collect()
        };
        assert_eq!(names(&both), ["HTTP/2", "HTTP/2 first-party"]);
    }
}
