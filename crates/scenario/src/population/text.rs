//! The values of a population file.
//!
//! The population's structs are the file's tables. Responsible for deserializers, each of which reads and checks a value, also
//! of an experiment file; and for checks of several values together ([`Population::check`]).

use core::{fmt::Display, time::Duration};

use lastbyte_congestion::Registry;
use lastbyte_link::Spacing;
use lastbyte_units::{self as units, Direction, UnitError};
use serde::{Deserialize, Deserializer, de::Error as _};

use super::{
    AckPolicy, Class, Cross, Discipline, Population, Site, Sizes, Weight,
    distribution::{Distribution, Quantity},
};
use crate::{
    client_acks::ClientAcks, cross::CrossKind, network::OVERHEAD_MAX, setting::SettingError,
};

pub(super) const fn yes() -> bool {
    true
}

pub(crate) const fn one() -> f64 {
    1.0
}

/// Defines deserializers: `name: form in the file, parser => value`. A field may have the value, or an `Option` of it.
macro_rules! values {
    ($($name:ident: $form:ty, $parse:expr => $value:ty;)*) => {$(
        pub(crate) fn $name<'de, D: Deserializer<'de>, T: From<$value>>(
            from: D,
        ) -> Result<T, D::Error> {
            let form = <$form>::deserialize(from)?;
            let parsed: Result<$value, _> = $parse(&form);
            parsed.map(T::from).map_err(D::Error::custom)
        }
    )*};
}

values! {
    rates: String, |text: &str| Distribution::parse(text, Quantity::Rate) => Distribution;
    spans: String, |text: &str| Distribution::parse(text, Quantity::Span) => Distribution;
    sizes: String, |text: &str| Distribution::parse(text, Quantity::Bytes) => Distribution;
    shares: String, |text: &str| Distribution::parse(text, Quantity::Share) => Distribution;
    numbers: String, |text: &str| Distribution::parse(text, Quantity::Number) => Distribution;
    bytes: String, |text: &str| with_value(units::bytes(text)) => u64;
    span: String, |text: &str| with_value(units::span(text)) => Duration;
    positive_span: String, parse_positive_span => Duration;
    step: String, parse_step => Duration;
    spacing: String, parse_spacing => Spacing;
    bins: Vec<String>, |bins: &Vec<String>| bins.iter().map(|bin| parse_bin(bin)).collect() => Vec<(u64, u64)>;
    discipline: String, parse_discipline => Discipline;
    rule: String, |text: &str| text.parse() => ClientAcks;
    direction: String, parse_direction => Direction;
    share: f64, |value: &f64| within(*value, 0.0..=1.0, "a share from 0 to 1") => f64;
    weight: f64, |value: &f64| parse_factor(*value) => f64;
    positive_factor: f64, |value: &f64| parse_positive_factor(*value) => f64;
    per_second: f64, |value: &f64| {
        within(*value, 1e-6..=1e6, "a number from 0.000001 to 1000000")
            .map(|rate| Duration::from_secs_f64(1.0 / rate))
    } => Duration;
    packets: f64, |value: &f64| within(*value, 1.0..=f64::MAX, "a mean of 1 or more") => f64;
    cv: f64, |value: &f64| within(*value, 0.0..=2.0, "a number from 0 to 2") => f64;
    overhead: u32, |bytes: &u32| {
        let invalid = || SettingError::of_value(bytes, format!("at most {OVERHEAD_MAX} bytes"));
        (*bytes <= OVERHEAD_MAX).then_some(*bytes).ok_or_else(invalid)
    } => u32;
}

fn with_value<T>(parsed: Result<T, UnitError>) -> Result<T, SettingError> {
    parsed.map_err(SettingError::from)
}

fn within(
    value: f64,
    range: core::ops::RangeInclusive<f64>,
    expected: &str,
) -> Result<f64, SettingError> {
    let is_within = range.contains(&value);
    let invalid = || SettingError::of_value(value, expected);
    is_within.then_some(value).ok_or_else(invalid)
}

fn parse_positive_span(text: &str) -> Result<Duration, SettingError> {
    let span = with_value(units::span(text))?;
    if span.is_zero() {
        return Err(SettingError::reason(
            "it must be longer than zero; leave it out for none",
        ));
    }
    Ok(span)
}

fn parse_step(text: &str) -> Result<Duration, SettingError> {
    let step = parse_positive_span(text)?;
    if step < Duration::from_millis(1) {
        return Err(SettingError::reason("a step lasts `1ms` or longer"));
    }
    Ok(step)
}

/// `4ms` apart, or `random 4ms`.
fn parse_spacing(text: &str) -> Result<Spacing, SettingError> {
    match text.trim().strip_prefix("random ") {
        Some(mean) => parse_positive_span(mean).map(Spacing::Random),
        None => parse_positive_span(text).map(Spacing::Fixed),
    }
}

fn parse_bin(text: &str) -> Result<(u64, u64), SettingError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [from, to] = words[..] else {
        return Err(SettingError::reason(format!(
            "`{text}` is not like `200kB 400kB`"
        )));
    };
    let (from, to) = (
        with_value(units::bytes(from))?,
        with_value(units::bytes(to))?,
    );
    if from == 0 || from >= to || to > 1 << 40 {
        return Err(SettingError::reason(format!(
            "`{text}` does not go from more than zero up to something larger, of 1 TB at most"
        )));
    }
    Ok((from, to))
}

fn parse_discipline(text: &str) -> Result<Discipline, SettingError> {
    Ok(match text {
        "codel" => Discipline::CoDel,
        "fq-codel" => Discipline::FqCoDel,
        "pie" => Discipline::Pie,
        "dualpi2" => Discipline::DualPi2,
        "cake" => Discipline::Cake,
        other => {
            return Err(SettingError::of_value(
                format!("`{other}`"),
                "`codel`, `fq-codel`, `pie`, `dualpi2` or `cake`",
            ));
        }
    })
}

fn parse_direction(text: &str) -> Result<Direction, SettingError> {
    match text {
        "down" => Ok(Direction::Down),
        "up" => Ok(Direction::Up),
        other => Err(SettingError::of_value(
            format!("`{other}`"),
            "`down` or `up`",
        )),
    }
}

fn parse_factor(value: f64) -> Result<f64, SettingError> {
    within(value, 0.0..=1e6, "a number from 0 to 1000000")
}

fn parse_positive_factor(value: f64) -> Result<f64, SettingError> {
    match parse_factor(value)? {
        0.0 => Err(SettingError::reason("it must be above zero")),
        factor => Ok(factor),
    }
}

/// Checks a weight or a factor.
pub(super) fn factor(key: &str, value: f64) -> Result<f64, SettingError> {
    parse_factor(value).map_err(|error| error.of(key))
}

type Outcome = Result<(), SettingError>;

fn fail<T>(key: impl Into<String>, reason: impl Display) -> Result<T, SettingError> {
    Err(SettingError::because(key, reason))
}

impl Population {
    /// Checks what involves several values, and parses the specs of other traffic.
    pub(super) fn check(&mut self, registry: &Registry) -> Outcome {
        let name = |class: &Class| class.name.clone();
        each("classes", &self.classes, name, Class::check)?;
        let classes: Vec<&str> = self.classes().collect();
        let check = |site: &Site| site.check(&classes);
        each("sites", &self.sites, |site| site.name.clone(), check)?;
        if self.sites.iter().all(|site| site.share <= 0.0) {
            return fail("sites", "no site has a `share` above zero");
        }
        let name = |policy: &AckPolicy| policy.name.clone();
        each("acks", &self.acks, name, |_| Ok(()))?;
        if self.acks.iter().all(|policy| policy.share <= 0.0) {
            return fail("acks", "no policy has a `share` above zero");
        }
        self.cross
            .parse(registry)
            .map_err(|error| error.within("cross"))?;
        self.sizes.check().map_err(|error| error.within("sizes"))
    }
}

/// Checks a list of items whose names must be distinct.
fn each<T>(
    list: &str,
    items: &[T],
    name: impl Fn(&T) -> String,
    check: impl Fn(&T) -> Outcome,
) -> Outcome {
    if items.is_empty() {
        return fail(list, "empty (expected at least one)");
    }
    for (index, item) in items.iter().enumerate() {
        let place = format!("{list}.{}", name(item));
        let mut before = items.iter().take(index);
        if before.any(|before| name(before) == name(item)) {
            return fail(place, "there are two of this name");
        }
        check(item).map_err(|error| error.within(&place))?;
    }
    Ok(())
}

impl Class {
    fn check(&self) -> Outcome {
        if let Some(handover) = self.handover {
            let (Spacing::Fixed(every) | Spacing::Random(every)) = handover.every;
            if handover.stall >= every / 4 {
                let reason = "it must be shorter than a quarter of `every`";
                return fail("handover.stall", reason);
            }
        }
        if self.up_rate.is_some() && self.up_share.is_some() {
            let reason = "`up-rate` is given as well (expected one of them)";
            return fail("up-share", reason);
        }
        for (key, is_given) in [
            ("up-queue", self.up_queue.is_some()),
            ("up-aqm-share", self.up_aqm_share > 0.0),
        ] {
            if is_given && self.up_rate.is_none() && self.up_share.is_none() {
                let reason =
                    "there is no queue without a rate (expected `up-rate` or `up-share` as well)";
                return fail(key, reason);
            }
        }
        Ok(())
    }
}

impl Site {
    fn check(&self, classes: &[&str]) -> Outcome {
        let mut names = self.weights.keys();
        if let Some(name) = names.find(|name| !classes.contains(&name.as_str())) {
            let expected = classes.join(", ");
            return fail(
                format!("weights.{name}"),
                format!("unknown class (expected {expected})"),
            );
        }
        any_above_zero(self.weights.values())
            .map_err(|()| SettingError::because("weights", "no class has any"))
    }
}

fn any_above_zero<'a>(mut weights: impl Iterator<Item = &'a Weight>) -> Result<(), ()> {
    weights.any(|weight| weight.0 > 0.0).then_some(()).ok_or(())
}

impl Cross {
    fn parse(&mut self, registry: &Registry) -> Outcome {
        for text in self.bulk.keys() {
            let kind = CrossKind::parse(text, registry);
            let kind = kind.map_err(|error| error.of(format!("bulk.{text}")))?;
            self.kinds.push(kind);
        }
        any_above_zero(self.bulk.values())
            .map_err(|()| SettingError::because("bulk", "no congestion control has a weight"))?;
        if let Some(text) = &self.bursts_congestion {
            let spec = registry.parse(text);
            let spec = spec.map_err(|error| SettingError::because("bursts-congestion", error))?;
            self.bursts_spec = Some(spec);
        }
        Ok(())
    }
}

impl Sizes {
    fn check(&self) -> Outcome {
        for (name, weights) in &self.mixes {
            let key = format!("mixes.{name}");
            if weights.len() != self.bins.len() {
                let reason = format!("{} weights for {} bins", weights.len(), self.bins.len());
                return fail(key, reason);
            }
            any_above_zero(weights.iter())
                .map_err(|()| SettingError::because(key, "no bin has a weight above zero"))?;
        }
        self.check_mix("mix")
    }

    /// Checks that the chosen mix, of this key, is one.
    pub(super) fn check_mix(&self, key: &str) -> Outcome {
        if self.mixes.contains_key(&self.mix) {
            return Ok(());
        }
        let names: Vec<&str> = self.mixes.keys().map(String::as_str).collect();
        let expected = names.join(", ");
        fail(
            key,
            format!("unknown mix `{}` (expected {expected})", self.mix),
        )
    }
}
