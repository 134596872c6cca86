//! The bank's paths with the weights of a log, as a population file.
//!
//! It has what the log shows of its network, and no line of it: for each class of access its share, and the weighted median, P10 and
//! P90 of rates, round trips and queues; and the shares of managed queues, of random loss, of policers, of cross traffic and of sizes.

use core::{fmt::Write as _, time::Duration};
use std::collections::BTreeMap;

use lastbyte_congestion::Registry;
use lastbyte_replay::{Bank, PRIOR};
use lastbyte_scenario::{CrossFact, Draw, Population};
use lastbyte_units as units;

use crate::failure::Failure;

/// Values with their weights.
type Weighted = Vec<(f64, f64)>;

/// The weighted values of a class of access.
#[derive(Default)]
struct Class {
    weight: f64,
    rates: Weighted,
    round_trips: Weighted,
    queues: Weighted,
    managed: f64,
}

/// A class in less than this share of the connections is left as the prior has it: its percentiles are chance.
const SHARE_MIN: f64 = 0.005;

/// The text of a population file with these weights of the bank's paths. Paths are drawn again by `draw`.
///
/// # Errors
///
/// Returns a [`Failure`] if the text is not a valid population.
pub(super) fn text(
    bank: &Bank,
    weights: &[f64],
    draw: impl Fn(u64) -> Draw,
    registry: &Registry,
) -> Result<String, Failure> {
    let mut classes: BTreeMap<String, Class> = BTreeMap::new();
    let factors = factors();
    let factor = |class: &str, key: &str| {
        let found = factors.get(&(class.to_owned(), key.to_owned()));
        found.copied().unwrap_or(1.0)
    };
    let (mut bulk, mut bursts, mut cross) = (0.0, 0.0, 0.0);
    let (mut lossy, mut may_be_lossy, mut policed) = (0.0, 0.0, 0.0);
    let (mut policers, mut sizes) = (Weighted::new(), Weighted::new());
    for (path, weight) in bank.paths().iter().zip(weights) {
        if *weight <= 0.0 {
            continue;
        }
        let Draw {
            facts,
            size_bytes,
            class: name,
            ..
        } = draw(path.seed);
        let class = classes.entry(name.clone()).or_default();
        class.weight += weight;
        class
            .rates
            .push((facts.rate.bits_per_second() as f64, *weight));
        class.round_trips.push((facts.rtt.as_secs_f64(), *weight));
        class.queues.push((facts.queue.as_secs_f64(), *weight));
        class.managed += weight * f64::from(u8::from(facts.has_aqm));
        sizes.push((size_bytes as f64, *weight));
        cross += weight * factor(&name, "cross-factor");
        match facts.cross {
            CrossFact::None => {}
            CrossFact::Bulk(_) => bulk += weight,
            CrossFact::Bursts { .. } => bursts += weight,
        }
        // Satellites have random loss on every path.
        if !["leo", "geo"].contains(&name.as_str()) {
            may_be_lossy += weight * factor(&name, "loss-factor");
            lossy += weight * f64::from(u8::from(facts.random_loss > 0.0));
        }
        if let Some(policer) = facts.policer {
            policed += weight;
            policers.push((policer.rate.bits_per_second() as f64, *weight));
        }
    }
    let cross = [share(bulk, cross), share(bursts, cross)];
    let mut text = head(&classes, cross, &sizes);
    let shares: Vec<String> = classes
        .iter()
        .map(|(name, class)| format!("{name} = {:.4}", class.weight * 100.0))
        .collect();
    // Rates and round trips of classes are those of whole paths. Writing to a string cannot fail.
    let _ = write!(
        text,
        "[[sites]]\nname = \"log\"\nweights = {{ {} }}\nrate-factor = 1.0\npath-rtt = \"1us\"\nlossy-share = {:.4}\npoliced-share = {:.4}\n\
         policer-rate = \"{}\"\n",
        shares.join(", "),
        share(lossy, may_be_lossy),
        policed.clamp(0.0, 1.0),
        if policers.is_empty() {
            "10mbit".to_owned()
        } else {
            split(&policers, rate)
        },
    );
    Population::parse_with(&text, registry)
        .map_err(|error| Failure::Run(format!("--population: {error}")))?;
    Ok(text)
}

/// A part of a sum, from 0 to 1.
fn share(part: f64, of: f64) -> f64 {
    if of > 0.0 {
        (part / of).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// The prior without its sites, with the values of the classes, the shares of the two kinds of cross traffic, and the sizes.
fn head(classes: &BTreeMap<String, Class>, cross: [f64; 2], sizes: &[(f64, f64)]) -> String {
    let head = PRIOR.split("[[sites]]").next().unwrap_or_default();
    let mut text = String::new();
    let mut name = "";
    for line in head.lines().filter(|line| !line.starts_with('#')) {
        let key = line.split('=').next().unwrap_or_default().trim();
        if key == "name" {
            name = line.split('"').nth(1).unwrap_or_default();
        }
        let class = classes.get(name).filter(|class| class.weight >= SHARE_MIN);
        let replaced = match (key, class) {
            ("name", _) if name == "replay-prior" => Some("name = \"replayed\"".to_owned()),
            ("description", _) => Some(
                "description = \"paths of `lastbyte replay`, with the weights of a log\""
                    .to_owned(),
            ),
            ("bulk-share", _) => Some(format!("bulk-share = {:.4}", cross[0])),
            ("bursts-share", _) => Some(format!("bursts-share = {:.4}", cross[1])),
            ("both", _) => Some(format!("both = {:?}", bins(sizes))),
            ("rate", Some(class)) => Some(format!("rate = \"{}\"", split(&class.rates, rate))),
            ("access-rtt", Some(class)) => Some(format!(
                "access-rtt = \"{}\"",
                split(&class.round_trips, span)
            )),
            ("queue", Some(class)) => Some(format!("queue = \"{}\"", split(&class.queues, span))),
            ("aqm-share", Some(class)) => Some(format!(
                "aqm-share = {:.4}",
                share(class.managed, class.weight)
            )),
            _ => None,
        };
        text.push_str(replaced.as_deref().unwrap_or(line));
        text.push('\n');
    }
    text
}

/// The factors of classes in the prior, by class and key; 1 unless they are there.
fn factors() -> BTreeMap<(String, String), f64> {
    let mut factors = BTreeMap::new();
    let mut class = String::new();
    for line in PRIOR.lines() {
        let Some((key, value)) = line.split_once(" = ") else {
            continue;
        };
        let number = value
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok());
        match (key, number) {
            ("name", _) => value
                .split('"')
                .nth(1)
                .unwrap_or_default()
                .clone_into(&mut class),
            ("cross-factor" | "loss-factor", Some(number)) => {
                factors.insert((class.clone(), key.to_owned()), number);
            }
            _ => {}
        }
    }
    factors
}

/// The shares of the prior's bins of sizes: octaves from 50 kB.
fn bins(sizes: &[(f64, f64)]) -> [f64; 8] {
    let mut bins = [0.0; 8];
    for (size, weight) in sizes {
        let bin = (size / 50e3).max(1.0).log2() as usize;
        bins[bin.min(7)] += weight;
    }
    bins.map(|share| (share * 1e4).round() / 1e4)
}

/// The weighted median, P10 and P90.
fn split(values: &[(f64, f64)], show: impl Fn(f64) -> String) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = sorted.iter().map(|one| one.1).sum();
    let at = |share: f64| {
        let mut below = 0.0;
        let place = sorted.iter().find(|(_, weight)| {
            below += weight;
            below >= share * total
        });
        place.or(sorted.last()).map_or(0.0, |one| one.0)
    };
    let median = at(0.5);
    let (p10, p90) = (at(0.1).min(0.99 * median), at(0.9).max(1.01 * median));
    format!("{} p10 {} p90 {}", show(median), show(p10), show(p90))
}

fn rate(bits: f64) -> String {
    format!("{}kbit", (bits / 1e3).round().max(16.0))
}

fn span(seconds: f64) -> String {
    units::show_span(Duration::from_micros(
        (seconds * 1e6).round().max(1.0) as u64
    ))
}
