//! Arms: versions of HTTP with a congestion control.

use core::ops::RangeInclusive;

use lastbyte_congestion::{Registry, Spec};
use lastbyte_sim::HttpVersion;

/// An arm: a version of HTTP and a congestion control.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    pub(super) name: String,
    pub(super) version: HttpVersion,
    pub(super) congestion: Option<Spec>,
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
    if !count.contains(&arms.len()) {
        return Err(format!(
            "{} {} (expected {} to {}, the baseline first)",
            arms.len(),
            if arms.len() == 1 { "arm" } else { "arms" },
            count.start(),
            count.end()
        ));
    }
    Ok(arms)
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
    })
}
