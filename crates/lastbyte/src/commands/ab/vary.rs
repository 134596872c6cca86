//! Sweeps: networks with the values of some settings varied, or a population with factors, and how their chart is arranged.

use lastbyte_report::comparison::{Panel, Sweep};
use lastbyte_scenario::{SettingError, Sweep as Factors, network::PathText};

use crate::commands::path::setting;

#[cfg(test)]
mod tests;

/// Values with their names.
pub(super) type Named<T> = Vec<(String, T)>;

/// Networks with their names.
type Networks = Named<PathText>;
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

/// A setting and its values: the text of each, and its effect.
pub(super) struct Axis<T> {
    name: &'static str,
    values: Named<T>,
}

/// The settings of networks of `KEY=VALUE,…`, each key once.
pub(super) fn axes(texts: &[String]) -> Result<Vec<Axis<PathText>>, SettingError> {
    let names: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
    parse(texts, &names, |name, text| {
        let place = SETTINGS.iter().find(|(one, _)| *one == name);
        let place = place.map_or(SETTINGS[0].1, |(_, place)| *place);
        let value = setting(place)(text).map_err(SettingError::reason)?;
        let mut varied = PathText::default();
        *place(&mut varied) = Some(value.clone());
        Ok((value, varied))
    })
}

/// The factors of a population of `KEY=FACTOR,…`, each key once.
pub(super) fn factors(texts: &[String]) -> Result<Vec<Axis<Factors>>, SettingError> {
    parse(texts, &Factors::KEYS, |name, text| {
        Ok((text.to_owned(), Factors::of(name, text)?))
    })
}

fn parse<T>(
    texts: &[String],
    names: &[&'static str],
    value: impl Fn(&'static str, &str) -> Result<(String, T), SettingError>,
) -> Result<Vec<Axis<T>>, SettingError> {
    let mut axes: Vec<Axis<T>> = Vec::new();
    for text in texts {
        let (key, values) = text
            .split_once('=')
            .ok_or_else(|| SettingError::of_value(format!("`{text}`"), "KEY=VALUE,…"))?;
        let Some(name) = names.iter().copied().find(|name| *name == key) else {
            let unknown = format!("unknown setting `{key}`");
            return Err(SettingError::of_value(unknown, names.join(", ")));
        };
        if axes.iter().any(|axis| axis.name == name) {
            let twice = format!("`{name}` is given twice");
            return Err(SettingError::of_value(twice, "once"));
        }
        let mut checked: Named<T> = Vec::new();
        for text in values.split(',') {
            let value = value(name, text.trim()).map_err(|error| error.of(name))?;
            if checked.iter().any(|(before, _)| *before == value.0) {
                let twice = format!("`{}` is given twice", value.0);
                return Err(SettingError::new(name, twice, "once"));
            }
            checked.push(value);
        }
        axes.push(Axis {
            name,
            values: checked,
        });
    }
    Ok(axes)
}

/// Each network with each combination of values, and the chart.
pub(super) fn combine(
    bases: Networks,
    axes: &[Axis<PathText>],
) -> Result<(Networks, Option<Sweep>), SettingError> {
    let bases = if bases.is_empty() && !axes.is_empty() {
        vec![(String::new(), base(axes)?)]
    } else {
        bases
    };
    combinations(bases, axes, |path, varied| {
        path.clone().overridden_by(varied.clone())
    })
}

/// Each combination of factors of a population, and the chart.
pub(super) fn combine_factors(
    population: &str,
    axes: &[Axis<Factors>],
) -> Result<(Named<Factors>, Option<Sweep>), SettingError> {
    let bases = vec![(String::new(), Factors::default())];
    let (combinations, mut sweep) = combinations(bases, axes, Factors::and)?;
    // With one setting, its panel has nothing else to be named after.
    for panel in sweep.iter_mut().flat_map(|sweep| &mut sweep.panels) {
        if panel.title.is_empty() {
            population.clone_into(&mut panel.title);
        }
    }
    Ok((combinations, sweep))
}

/// Each base with each combination of values, and the chart: the first setting is the horizontal axis, and each base and
/// combination of the others a panel.
fn combinations<T: Clone>(
    bases: Named<T>,
    axes: &[Axis<T>],
    change: impl Fn(&T, &T) -> T,
) -> Result<(Named<T>, Option<Sweep>), SettingError> {
    let Some((first, others)) = axes.split_first() else {
        return Ok((bases, None));
    };
    // The base with this value, and a name that has it.
    let with = |(name, base): &(String, T), axis: &Axis<T>, (text, value): &(String, T)| {
        let comma = if name.is_empty() { "" } else { ", " };
        let name = format!("{name}{comma}{} {text}", axis.name);
        (name, change(base, value))
    };
    let mut panels = bases;
    for axis in others {
        panels = panels
            .iter()
            .flat_map(|panel| axis.values.iter().map(|value| with(panel, axis, value)))
            .collect();
    }
    let total = panels.len() * first.values.len();
    if total > COMBINATIONS_MAX {
        let combinations = format!("{total} combinations");
        let most = format!("at most {COMBINATIONS_MAX}");
        return Err(SettingError::of_value(combinations, most));
    }
    let mut all = Vec::new();
    let mut sweep = Sweep {
        axis: first.name.to_owned(),
        values: first.values.iter().map(|(text, _)| text.clone()).collect(),
        panels: Vec::new(),
    };
    for panel in &panels {
        let values = first.values.iter().map(|value| with(panel, first, value));
        let values: Named<T> = values.collect();
        sweep.panels.push(Panel {
            title: panel.0.clone(),
            networks: values.iter().map(|(name, _)| name.clone()).collect(),
        });
        all.extend(values);
    }
    Ok((all, Some(sweep)))
}

/// The network without --network: rate and round-trip time vary, and the queue is one of 100 ms unless it varies as well.
fn base(axes: &[Axis<PathText>]) -> Result<PathText, SettingError> {
    let has = |name: &str| axes.iter().any(|axis| axis.name == name);
    if !has("rate") || !has("rtt") {
        return Err(SettingError::of_value(
            "no network",
            "--network, or `rate` and `rtt` among the settings",
        ));
    }
    let mut path = PathText::default();
    path.down.queue = Some(QUEUE.to_owned());
    Ok(path)
}

/// Maximum number of sites that the page distinguishes.
const COMBINATIONS_MAX: usize = 64;
const QUEUE: &str = "100ms";
