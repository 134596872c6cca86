//! The keys of a population file.
//!
//! Parses and checks the file; [`population`](super) draws from it. Errors name the key with its class or site, and what is
//! expected.

use core::time::Duration;
use std::collections::BTreeMap;

use lastbyte_congestion::Registry;
use lastbyte_link::Spacing;
use lastbyte_units as units;
use serde::Deserialize;

use super::{
    AckPolicy, Bulk, Bursts, Class, ContentionDraw, Cross, Discipline, Every, Handover, Mix,
    Population, ReorderingDraw, Returns, Site, Sizes, Up, UpRate, Variation, WakeUpDraw,
    distribution::{Distribution, Quantity},
    sweep::Sweep,
};
use crate::{
    client_acks::ClientAcks, cross::CrossKind, listener::Direction, network::OVERHEAD_MAX,
    setting::SettingError,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PopulationText {
    name: String,
    #[serde(default, rename = "description")]
    _description: String,
    #[serde(default)]
    overhead: u32,
    queue_floor: u64,
    aqm: String,
    random_loss: String,
    policer_bucket: String,
    up_queue: String,
    ecn_share: f64,
    returns: Option<ReturnsText>,
    cross: CrossText,
    sizes: SizesText,
    acks: Vec<AckText>,
    classes: Vec<ClassText>,
    sites: Vec<SiteText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ReturnsText {
    share: f64,
    changed: f64,
    used: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CrossText {
    bulk_share: f64,
    bulk: BTreeMap<String, f64>,
    bulk_lead: String,
    bursts_share: f64,
    bursts_size: String,
    bursts_every: String,
    bursts_congestion: Option<String>,
    bursts_at_most: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SizesText {
    bins: Vec<String>,
    mix: String,
    mixes: BTreeMap<String, Vec<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct AckText {
    name: String,
    share: f64,
    rule: Option<String>,
    max_ack_delay: Option<String>,
    #[serde(default)]
    ack_frequency: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ClassText {
    name: String,
    rate: String,
    #[serde(default = "yes")]
    rate_follows_site: bool,
    access_rtt: String,
    queue: String,
    aqm_share: f64,
    #[serde(default)]
    poor: bool,
    /// Random loss of every path of this class, at any site.
    loss: Option<String>,
    #[serde(default = "one")]
    loss_factor: f64,
    bursts: Option<BurstsText>,
    handover: Option<HandoverText>,
    release: Option<String>,
    jitter: Option<String>,
    contention: Option<ContentionText>,
    wake_up: Option<WakeUpText>,
    reordering: Option<ReorderingText>,
    variation: Option<VariationText>,
    up_rate: Option<String>,
    up_share: Option<String>,
    up_queue: Option<String>,
    #[serde(default)]
    up_aqm_share: f64,
    up_loss: Option<String>,
    up_jitter: Option<String>,
    #[serde(default = "one")]
    cross_factor: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct BurstsText {
    share: f64,
    per_second: f64,
    packets: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct HandoverText {
    every: String,
    stall: String,
    drop_share: f64,
    drop_packets: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ContentionText {
    share: String,
    busy: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WakeUpText {
    after: String,
    delay: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ReorderingText {
    share: f64,
    packets: String,
    delay: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct VariationText {
    cv: f64,
    step: String,
    memory: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SiteText {
    name: String,
    #[serde(default = "one")]
    share: f64,
    rate_factor: f64,
    path_rtt: String,
    lossy_share: f64,
    policed_share: f64,
    policer_rate: String,
    weights: BTreeMap<String, f64>,
}

const fn yes() -> bool {
    true
}

const fn one() -> f64 {
    1.0
}

type Outcome<T> = Result<T, SettingError>;

/// Reads a population file.
pub(super) fn parse(text: &str, registry: &Registry) -> Outcome<Population> {
    let text: PopulationText =
        toml::from_str(text).map_err(|error| SettingError::new("", error))?;
    let classes = each("classes", &text.classes, |class| &class.name, class)?;
    let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    let sites = each(
        "sites",
        &text.sites,
        |site| &site.name,
        |text| site(text, &names),
    )?;
    if sites.iter().all(|site| site.share <= 0.0) {
        return Err(SettingError::new(
            "sites",
            "no site has a `share` above zero",
        ));
    }
    let acks = each("acks", &text.acks, |policy| &policy.name, ack_policy)?;
    if acks.iter().all(|policy| policy.share <= 0.0) {
        return Err(SettingError::new(
            "acks",
            "no policy has a `share` above zero",
        ));
    }
    if text.overhead > OVERHEAD_MAX {
        return Err(SettingError::new(
            "overhead",
            format!("{} (expected at most {OVERHEAD_MAX} bytes)", text.overhead),
        ));
    }
    Ok(Population {
        name: text.name,
        overhead: text.overhead,
        queue_floor: text.queue_floor,
        aqm: match text.aqm.as_str() {
            "codel" => Discipline::CoDel,
            "fq-codel" => Discipline::FqCoDel,
            "pie" => Discipline::Pie,
            "dualpi2" => Discipline::DualPi2,
            "cake" => Discipline::Cake,
            other => {
                return Err(SettingError::new(
                    "aqm",
                    format!("`{other}` (expected `codel`, `fq-codel`, `pie`, `dualpi2` or `cake`)"),
                ));
            }
        },
        random_loss: distribution("random-loss", &text.random_loss, Quantity::Share)?,
        policer_bucket: distribution("policer-bucket", &text.policer_bucket, Quantity::Bytes)?,
        up_queue: units::bytes(&text.up_queue)
            .map_err(|error| SettingError::new("up-queue", error.with_value()))?,
        ecn_share: share("ecn-share", text.ecn_share)?,
        returns: text
            .returns
            .as_ref()
            .map(returns)
            .transpose()
            .map_err(|error| error.within("returns"))?,
        cross: cross(&text.cross, registry).map_err(|error| error.within("cross"))?,
        sizes: sizes(text.sizes).map_err(|error| error.within("sizes"))?,
        acks,
        classes,
        sites,
        sweep: Sweep::default(),
        networks: Vec::new(),
        neighbours: Vec::new(),
        horizon: None,
        direction: Direction::Down,
        variants: Vec::new(),
    })
}

pub(super) fn returns(text: &ReturnsText) -> Outcome<Returns> {
    Ok(Returns {
        share: share("share", text.share)?,
        changed: share("changed", text.changed)?,
        used: distribution("used", &text.used, Quantity::Share)?,
    })
}

/// Converts a list of items whose names must be distinct.
fn each<T, U>(
    list: &str,
    texts: &[T],
    name: impl Fn(&T) -> &String,
    read: impl Fn(&T) -> Outcome<U>,
) -> Outcome<Vec<U>> {
    if texts.is_empty() {
        return Err(SettingError::new(list, "empty (expected at least one)"));
    }
    let mut read_ones = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let place = format!("{list}.{}", name(text));
        if texts
            .iter()
            .take(index)
            .any(|before| name(before) == name(text))
        {
            return Err(SettingError::new(place, "there are two of this name"));
        }
        read_ones.push(read(text).map_err(|error| error.within(&place))?);
    }
    Ok(read_ones)
}

fn class(text: &ClassText) -> Outcome<Class> {
    Ok(Class {
        name: text.name.clone(),
        rate: distribution("rate", &text.rate, Quantity::Rate)?,
        rate_follows_site: text.rate_follows_site,
        access_rtt: distribution("access-rtt", &text.access_rtt, Quantity::Span)?,
        queue: distribution("queue", &text.queue, Quantity::Span)?,
        aqm_share: share("aqm-share", text.aqm_share)?,
        is_poor: text.poor,
        loss: match &text.loss {
            Some(text) => Some(distribution("loss", text, Quantity::Share)?),
            None => None,
        },
        loss_factor: factor("loss-factor", text.loss_factor)?,
        bursts: match &text.bursts {
            Some(text) => Some(bursts(text).map_err(|error| error.within("bursts"))?),
            None => None,
        },
        handover: match &text.handover {
            Some(text) => Some(handover(text).map_err(|error| error.within("handover"))?),
            None => None,
        },
        release: match &text.release {
            Some(text) => Some(spacing("release", text)?),
            None => None,
        },
        jitter: match &text.jitter {
            Some(text) => Some(positive_span("jitter", text)?),
            None => None,
        },
        contention: match &text.contention {
            Some(text) => Some(contention(text).map_err(|error| error.within("contention"))?),
            None => None,
        },
        wake_up: match &text.wake_up {
            Some(text) => Some(wake_up(text).map_err(|error| error.within("wake-up"))?),
            None => None,
        },
        reordering: match &text.reordering {
            Some(text) => Some(reordering(text).map_err(|error| error.within("reordering"))?),
            None => None,
        },
        variation: match &text.variation {
            Some(text) => Some(variation(text).map_err(|error| error.within("variation"))?),
            None => None,
        },
        up: up(text)?,
        cross_factor: factor("cross-factor", text.cross_factor)?,
    })
}

fn up(text: &ClassText) -> Outcome<Up> {
    let read = |key, text: &Option<String>, quantity| match text {
        Some(text) => distribution(key, text, quantity).map(Some),
        None => Ok(None),
    };
    let rate = read("up-rate", &text.up_rate, Quantity::Rate)?;
    let share_of_down = read("up-share", &text.up_share, Quantity::Share)?;
    let up = Up {
        rate: match (rate, share_of_down) {
            (Some(_), Some(_)) => {
                return Err(SettingError::new(
                    "up-share",
                    "`up-rate` is given as well (expected one of them)",
                ));
            }
            (Some(rate), None) => Some(UpRate::Rate(rate)),
            (None, Some(share)) => Some(UpRate::Share(share)),
            (None, None) => None,
        },
        queue: read("up-queue", &text.up_queue, Quantity::Span)?,
        aqm_share: share("up-aqm-share", text.up_aqm_share)?,
        loss: read("up-loss", &text.up_loss, Quantity::Share)?,
        jitter: match &text.up_jitter {
            Some(text) => Some(positive_span("up-jitter", text)?),
            None => None,
        },
    };
    for (key, is_given) in [
        ("up-queue", up.queue.is_some()),
        ("up-aqm-share", up.aqm_share > 0.0),
    ] {
        if is_given && up.rate.is_none() {
            return Err(SettingError::new(
                key,
                "there is no queue without a rate (expected `up-rate` or `up-share` as well)",
            ));
        }
    }
    Ok(up)
}

fn contention(text: &ContentionText) -> Outcome<ContentionDraw> {
    Ok(ContentionDraw {
        share: distribution("share", &text.share, Quantity::Share)?,
        busy: positive_span("busy", &text.busy)?,
    })
}

fn wake_up(text: &WakeUpText) -> Outcome<WakeUpDraw> {
    Ok(WakeUpDraw {
        after: positive_span("after", &text.after)?,
        delay: distribution("delay", &text.delay, Quantity::Span)?,
    })
}

fn reordering(text: &ReorderingText) -> Outcome<ReorderingDraw> {
    Ok(ReorderingDraw {
        paths: share("share", text.share)?,
        packets: distribution("packets", &text.packets, Quantity::Share)?,
        delay: distribution("delay", &text.delay, Quantity::Span)?,
    })
}

fn bursts(text: &BurstsText) -> Outcome<Bursts> {
    if !(1e-6..=1e6).contains(&text.per_second) {
        return Err(SettingError::new(
            "per-second",
            format!(
                "{} (expected a number from 0.000001 to 1000000)",
                text.per_second
            ),
        ));
    }
    if !(text.packets.is_finite() && text.packets >= 1.0) {
        return Err(SettingError::new(
            "packets",
            format!("the mean is one or more, and not {}", text.packets),
        ));
    }
    Ok(Bursts {
        share: share("share", text.share)?,
        every: Duration::from_secs_f64(1.0 / text.per_second),
        packets: text.packets,
    })
}

fn handover(text: &HandoverText) -> Outcome<Handover> {
    let every = match spacing("every", &text.every)? {
        Spacing::Fixed(span) => Every::Fixed(span),
        Spacing::Random(mean) => Every::Random(mean),
    };
    let stall =
        units::span(&text.stall).map_err(|error| SettingError::new("stall", error.with_value()))?;
    let (Every::Fixed(span) | Every::Random(span)) = every;
    if stall >= span / 4 {
        return Err(SettingError::new(
            "stall",
            "it must be shorter than a quarter of `every`",
        ));
    }
    Ok(Handover {
        every,
        stall,
        drop_share: share("drop-share", text.drop_share)?,
        drop_packets: text.drop_packets,
    })
}

fn variation(text: &VariationText) -> Outcome<Variation> {
    let step = positive_span("step", &text.step)?;
    if step < Duration::from_millis(1) {
        return Err(SettingError::new("step", "a step lasts `1ms` or longer"));
    }
    if !(0.0..=2.0).contains(&text.cv) {
        return Err(SettingError::new(
            "cv",
            format!("{} is not from 0 to 2", text.cv),
        ));
    }
    Ok(Variation {
        cv: text.cv,
        step,
        memory: share("memory", text.memory)?,
    })
}

fn site(text: &SiteText, classes: &[&str]) -> Outcome<Site> {
    let mut weights = vec![0.0; classes.len()];
    for (name, weight) in &text.weights {
        let place = classes.iter().position(|class| class == name);
        let Some(place) = place.and_then(|place| weights.get_mut(place)) else {
            return Err(SettingError::new(
                format!("weights.{name}"),
                format!("unknown class (expected {})", classes.join(", ")),
            ));
        };
        *place = factor(&format!("weights.{name}"), *weight)?;
    }
    if weights.iter().sum::<f64>() <= 0.0 {
        return Err(SettingError::new("weights", "no class has any"));
    }
    let rate_factor = factor("rate-factor", text.rate_factor)?;
    if rate_factor == 0.0 {
        return Err(SettingError::new("rate-factor", "it must be above zero"));
    }
    Ok(Site {
        name: text.name.clone(),
        share: factor("share", text.share)?,
        weights,
        rate_factor,
        path_rtt: distribution("path-rtt", &text.path_rtt, Quantity::Span)?,
        lossy_share: share("lossy-share", text.lossy_share)?,
        policed_share: share("policed-share", text.policed_share)?,
        policer_rate: distribution("policer-rate", &text.policer_rate, Quantity::Rate)?,
    })
}

fn cross(text: &CrossText, registry: &Registry) -> Outcome<Cross> {
    let mut bulk = Vec::new();
    for (spec, weight) in &text.bulk {
        let key = format!("bulk.{spec}");
        bulk.push(Bulk {
            weight: factor(&key, *weight)?,
            name: spec.clone(),
            kind: CrossKind::parse(spec, registry)
                .map_err(|error| SettingError::new(&key, error))?,
        });
    }
    if bulk.iter().all(|bulk| bulk.weight <= 0.0) {
        return Err(SettingError::new(
            "bulk",
            "no congestion control has a weight",
        ));
    }
    Ok(Cross {
        bulk_share: share("bulk-share", text.bulk_share)?,
        bulk,
        bulk_lead: distribution("bulk-lead", &text.bulk_lead, Quantity::Number)?,
        bursts_share: share("bursts-share", text.bursts_share)?,
        bursts_size: distribution("bursts-size", &text.bursts_size, Quantity::Bytes)?,
        bursts_every: positive_span("bursts-every", &text.bursts_every)?,
        bursts_congestion: match &text.bursts_congestion {
            Some(spec) => Some(
                registry
                    .parse(spec)
                    .map_err(|error| SettingError::new("bursts-congestion", error))?,
            ),
            None => None,
        },
        bursts_at_most: share("bursts-at-most", text.bursts_at_most)?,
    })
}

fn sizes(text: SizesText) -> Outcome<Sizes> {
    let mut bins = Vec::new();
    for bin in &text.bins {
        let words: Vec<&str> = bin.split_whitespace().collect();
        let [from, to] = words[..] else {
            return Err(SettingError::new(
                "bins",
                format!("`{bin}` is not like `200kB 400kB`"),
            ));
        };
        let bytes = |text| {
            units::bytes(text).map_err(|error| SettingError::new("bins", error.with_value()))
        };
        let (from, to) = (bytes(from)?, bytes(to)?);
        if from == 0 || from >= to || to > 1 << 40 {
            return Err(SettingError::new(
                "bins",
                format!(
                    "`{bin}` does not go from more than zero up to something larger, of 1 TB at most"
                ),
            ));
        }
        bins.push((from, to));
    }
    let mut mixes = Vec::new();
    for (name, weights) in text.mixes {
        let key = format!("mixes.{name}");
        if weights.len() != bins.len() {
            return Err(SettingError::new(
                key,
                format!("{} weights for {} bins", weights.len(), bins.len()),
            ));
        }
        for weight in &weights {
            factor(&key, *weight)?;
        }
        if weights.iter().sum::<f64>() <= 0.0 {
            return Err(SettingError::new(key, "no bin has a weight above zero"));
        }
        mixes.push(Mix { name, weights });
    }
    let mut sizes = Sizes {
        bins,
        mixes,
        chosen: 0,
    };
    sizes
        .choose(&text.mix)
        .map_err(|reason| SettingError::new("mix", reason))?;
    Ok(sizes)
}

fn ack_policy(text: &AckText) -> Outcome<AckPolicy> {
    let rule = match &text.rule {
        Some(name) => name
            .parse()
            .map_err(|error: String| SettingError::new("rule", error))?,
        None => ClientAcks::default(),
    };
    Ok(AckPolicy {
        name: text.name.clone(),
        share: factor("share", text.share)?,
        rule,
        max_ack_delay: match &text.max_ack_delay {
            Some(text) => units::span(text)
                .map_err(|error| SettingError::new("max-ack-delay", error.with_value()))?,
            None => rule.max_ack_delay(),
        },
        ack_frequency: text.ack_frequency,
    })
}

fn distribution(key: &str, text: &str, quantity: Quantity) -> Outcome<Distribution> {
    Distribution::parse(text, quantity).map_err(|reason| SettingError::new(key, reason))
}

/// `4ms` apart, or `random 4ms`.
fn spacing(key: &str, text: &str) -> Outcome<Spacing> {
    match text.trim().strip_prefix("random ") {
        Some(mean) => positive_span(key, mean).map(Spacing::Random),
        None => positive_span(key, text).map(Spacing::Fixed),
    }
}

fn positive_span(key: &str, text: &str) -> Outcome<Duration> {
    let span = units::span(text).map_err(|error| SettingError::new(key, error.with_value()))?;
    if span.is_zero() {
        return Err(SettingError::new(
            key,
            "it must be longer than zero; leave it out for none",
        ));
    }
    Ok(span)
}

fn share(key: &str, value: f64) -> Outcome<f64> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(SettingError::new(
            key,
            format!("{value} (expected a share from 0 to 1)"),
        ))
    }
}

/// A weight or a factor.
pub(crate) fn factor(key: &str, value: f64) -> Outcome<f64> {
    if (0.0..=1e6).contains(&value) {
        Ok(value)
    } else {
        Err(SettingError::new(
            key,
            format!("{value} is not from 0 to 1000000"),
        ))
    }
}
