//! Sweeps: networks with the values of some settings varied, and how their chart is arranged.

use lastbyte_report::comparison::{Panel, Sweep};
use lastbyte_sim::network::PathText;

use crate::commands::path::setting;

#[cfg(test)]
mod tests;

/// Networks with their names.
type Networks = Vec<(String, PathText)>;
type Place = fn(&mut PathText) -> &mut Option<String>;

/// The settings that can vary.
const SETTINGS: [(&str, Place); 11] = [
    ("rate", |path| &mut path.down.rate),
    ("rtt", |path| &mut path.rtt),
    ("queue", |path| &mut path.down.queue),
    ("aqm", |path| &mut path.down.discipline),
    ("loss", |path| &mut path.down.loss),
    ("burst-loss", |path| &mut path.down.burst_loss),
    ("jitter", |path| &mut path.down.jitter),
    ("reorder", |path| &mut path.down.reorder),
    ("policer", |path| &mut path.down.policer),
    ("up-rate", |path| &mut path.up.rate),
    ("up-loss", |path| &mut path.up.loss),
];

/// A setting and its values.
pub(super) struct Axis {
    name: &'static str,
    place: Place,
    values: Vec<String>,
}

/// Parses `KEY=VALUE,…`, each key once.
pub(super) fn axes(texts: &[String]) -> Result<Vec<Axis>, String> {
    let mut axes: Vec<Axis> = Vec::new();
    for text in texts {
        let (key, values) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` (expected KEY=VALUE,…)"))?;
        let Some((name, place)) = SETTINGS.into_iter().find(|(name, _)| *name == key) else {
            let names = SETTINGS.map(|(name, _)| name).join(", ");
            return Err(format!("unknown setting `{key}` (expected {names})"));
        };
        if axes.iter().any(|axis| axis.name == name) {
            return Err(format!("`{name}` is given twice (expected once)"));
        }
        let mut checked: Vec<String> = Vec::new();
        for value in values.split(',') {
            let value =
                setting(place)(value.trim()).map_err(|error| format!("`{name}`: {error}"))?;
            if checked.contains(&value) {
                return Err(format!(
                    "`{name}`: `{value}` is given twice (expected once)"
                ));
            }
            checked.push(value);
        }
        axes.push(Axis {
            name,
            place,
            values: checked,
        });
    }
    Ok(axes)
}

/// Each network with each combination of values, and the chart: the first setting is the horizontal axis, and each network and
/// combination of the others a panel.
pub(super) fn combine(bases: Networks, axes: &[Axis]) -> Result<(Networks, Option<Sweep>), String> {
    let Some((first, others)) = axes.split_first() else {
        return Ok((bases, None));
    };
    let mut panels = if bases.is_empty() {
        vec![(String::new(), base(axes)?)]
    } else {
        bases
    };
    for axis in others {
        panels = panels
            .iter()
            .flat_map(|panel| axis.values.iter().map(|value| with(panel, axis, value)))
            .collect();
    }
    let total = panels.len() * first.values.len();
    if total > COMBINATIONS_MAX {
        return Err(format!(
            "{total} combinations (expected at most {COMBINATIONS_MAX})"
        ));
    }
    let mut networks = Vec::new();
    let mut sweep = Sweep {
        axis: first.name.to_owned(),
        values: first.values.clone(),
        panels: Vec::new(),
    };
    for panel in &panels {
        let values = first.values.iter().map(|value| with(panel, first, value));
        let values: Vec<(String, PathText)> = values.collect();
        sweep.panels.push(Panel {
            title: panel.0.clone(),
            networks: values.iter().map(|(name, _)| name.clone()).collect(),
        });
        networks.extend(values);
    }
    Ok((networks, Some(sweep)))
}

/// The network with this value, and a name that has it.
fn with((name, path): &(String, PathText), axis: &Axis, value: &str) -> (String, PathText) {
    let mut varied = PathText::default();
    *(axis.place)(&mut varied) = Some(value.to_owned());
    let comma = if name.is_empty() { "" } else { ", " };
    (
        format!("{name}{comma}{} {value}", axis.name),
        path.clone().overridden_by(varied),
    )
}

/// The network without --network: rate and round-trip time vary, and the queue is one of 100 ms unless it varies as well.
fn base(axes: &[Axis]) -> Result<PathText, String> {
    let has = |name: &str| axes.iter().any(|axis| axis.name == name);
    if !has("rate") || !has("rtt") {
        return Err(
            "no network (expected --network, or `rate` and `rtt` among the settings)".to_owned(),
        );
    }
    let mut path = PathText::default();
    path.down.queue = Some(QUEUE.to_owned());
    Ok(path)
}

/// As many sites as the page distinguishes.
const COMBINATIONS_MAX: usize = 64;
const QUEUE: &str = "100ms";
