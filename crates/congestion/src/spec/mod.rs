//! Controllers by name: `rapid-start:variant=quicly,congestion=pico,initial-window=44160B,beta=0.7`.
//!
//! A spec is the name of a preset, and after a colon any of the [keys](keys), each at most once, that change it. All
//! presets take the same keys (`bbr` only the first few); a key that the chosen rules do not use has no effect, so that
//! one setting can be given to several arms of an experiment.
//!
//! All presets start with 30 datagrams, the baseline of the experiment that Rapid Start was measured in, so that arms
//! differ in nothing but what their names say; `initial-window=10p` is the 10 of RFC 9002 §7.2. The four arms cut by
//! half at their first congestion, as that experiment does, and go on as CUBIC.
//!
//! A [`Registry`] knows the names. Startups and avoidances of one's own can be added to it.

mod error;
mod key;
mod preset;
mod value;

use alloc::{
    borrow::ToOwned,
    boxed::Box,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt, str::FromStr};

pub use error::SpecError;
pub use key::Key;

use self::{
    key::{KEYS, Settings},
    preset::{Kind, PRESETS, Preset},
};
use crate::{
    avoidance::{Avoidance, Cubic, NewReno, Pico},
    bbr::{self, Bbr},
    config::Config,
    controller::{Controller, ControllerFactory, Environment},
    startup::{HyStart, RapidStart, SlowStart, Startup},
    window::WindowController,
};

/// The keys that specs take.
#[must_use]
pub const fn keys() -> &'static [Key] {
    KEYS
}

/// Makes a startup for a controller with these settings.
pub type StartupFactory = fn(&Config) -> Box<dyn Startup>;
/// Makes an avoidance for a controller with these settings.
pub type AvoidanceFactory = fn(&Config) -> Box<dyn Avoidance>;

/// The presets, startups and avoidances that specs may name.
#[derive(Clone, Debug)]
pub struct Registry {
    presets: Vec<Preset>,
    startups: Vec<Named<StartupFactory>>,
    avoidances: Vec<Named<AvoidanceFactory>>,
}

#[derive(Clone, Copy, Debug)]
struct Named<T> {
    name: &'static str,
    summary: &'static str,
    make: T,
}

impl Registry {
    /// What this crate has. A new startup or avoidance is one line here.
    #[must_use]
    pub fn builtin() -> Self {
        Self {
            presets: PRESETS.to_vec(),
            startups: [
                named::<StartupFactory>("slow-start", "2x a round trip", |_| Box::new(SlowStart)),
                named(
                    "hystart",
                    "2x, then 1.25x when the RTT rises (RFC 9406)",
                    |_| Box::new(HyStart::new()),
                ),
                named(
                    "rapid",
                    "3x while no queue shows, else 2x (Rapid Start)",
                    |config| Box::new(RapidStart::new(config.queue_threshold)),
                ),
            ]
            .to_vec(),
            avoidances: [
                named::<AvoidanceFactory>("newreno", "RFC 9002, beta 0.5", |config| {
                    Box::new(NewReno::new(config))
                }),
                named("cubic", "RFC 9438, beta 0.7", |config| {
                    Box::new(Cubic::new(config))
                }),
                named("pico", "quicly's cubic-like rule, beta 0.7", |config| {
                    Box::new(Pico::new(config))
                }),
            ]
            .to_vec(),
        }
    }

    /// Adds a startup, and a preset of its name that uses it with CUBIC, the initial window over half a round trip, and
    /// a cut at the first congestion.
    ///
    /// # Errors
    ///
    /// If the name is taken, or is not made of lower-case letters, digits and hyphens.
    pub fn add_startup(
        &mut self,
        name: &'static str,
        summary: &'static str,
        make: StartupFactory,
    ) -> Result<&mut Self, SpecError> {
        self.check_free(name)?;
        self.presets.push(Preset::of_startup(name, summary));
        self.startups.push(named(name, summary, make));
        Ok(self)
    }

    /// Adds an avoidance, and a preset of its name that uses it after slow start.
    ///
    /// # Errors
    ///
    /// If the name is taken, or is not made of lower-case letters, digits and hyphens.
    pub fn add_avoidance(
        &mut self,
        name: &'static str,
        summary: &'static str,
        make: AvoidanceFactory,
    ) -> Result<&mut Self, SpecError> {
        self.check_free(name)?;
        self.presets.push(Preset::of_avoidance(name, summary));
        self.avoidances.push(named(name, summary, make));
        Ok(self)
    }

    fn check_free(&self, name: &'static str) -> Result<(), SpecError> {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(SpecError::BadName { name });
        }
        let mut taken = self
            .presets()
            .chain(self.startups())
            .chain(self.avoidances());
        if taken.any(|(taken, _)| taken == name) {
            return Err(SpecError::NameTaken { name });
        }
        Ok(())
    }

    /// Names and summaries of the presets.
    pub fn presets(&self) -> impl Iterator<Item = (&'static str, &'static str)> + Clone + '_ {
        self.presets
            .iter()
            .map(|preset| (preset.name, preset.summary))
    }

    /// Names and summaries of the startups: the values of `growth`.
    pub fn startups(&self) -> impl Iterator<Item = (&'static str, &'static str)> + Clone + '_ {
        self.startups
            .iter()
            .map(|named| (named.name, named.summary))
    }

    /// Names and summaries of the avoidances: the values of `congestion`.
    pub fn avoidances(&self) -> impl Iterator<Item = (&'static str, &'static str)> + Clone + '_ {
        self.avoidances
            .iter()
            .map(|named| (named.name, named.summary))
    }

    /// Parses a spec.
    ///
    /// ```
    /// let registry = lastbyte_congestion::Registry::builtin();
    /// let error = registry.parse("rapid-start:beta=1.5").unwrap_err();
    /// assert_eq!(error.to_string(), "`beta=1.5` in `rapid-start:beta=1.5`: the value must be 0.1 to 0.95");
    /// ```
    ///
    /// # Errors
    ///
    /// If the preset or a key is unknown, a key is given twice, or a value is not allowed. The message names the place
    /// and lists what exists.
    pub fn parse(&self, text: &str) -> Result<Spec, SpecError> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let preset = self
            .presets
            .iter()
            .find(|preset| preset.name == name)
            .ok_or_else(|| SpecError::UnknownPreset {
                name: name.to_owned(),
                known: names(self.presets()),
            })?;
        let mut settings = Settings::default();
        let mut seen = Vec::new();
        for part in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let key = self.parse_part(text, part, preset, &mut settings)?;
            if seen.contains(&key) {
                return Err(SpecError::KeyTwice {
                    key,
                    spec: text.to_owned(),
                });
            }
            seen.push(key);
        }
        Ok(Spec {
            text: text.to_owned(),
            algorithm: preset.resolve(self, &settings, text)?,
        })
    }

    fn parse_part(
        &self,
        spec: &str,
        part: &str,
        preset: &Preset,
        settings: &mut Settings,
    ) -> Result<&'static str, SpecError> {
        let allowed = |key: &&Key| !matches!(preset.kind, Kind::Bbr) || key.is_for_bbr;
        let Some((name, value)) = part.split_once('=') else {
            return Err(SpecError::NotKeyValue {
                part: part.to_owned(),
                spec: spec.to_owned(),
            });
        };
        let key = KEYS
            .iter()
            .filter(allowed)
            .find(|key| key.name == name)
            .ok_or_else(|| SpecError::UnknownKey {
                key: name.to_owned(),
                preset: preset.name,
                known: KEYS
                    .iter()
                    .filter(allowed)
                    .map(|key| key.name.to_string())
                    .collect(),
            })?;
        (key.set)(settings, value, self).map_err(|allowed| SpecError::BadValue {
            key: key.name,
            value: value.to_owned(),
            allowed,
            spec: spec.to_owned(),
        })?;
        Ok(key.name)
    }

    fn startup(&self, name: &str) -> Option<StartupFactory> {
        find(&self.startups, name)
    }

    fn avoidance(&self, name: &str) -> Option<AvoidanceFactory> {
        find(&self.avoidances, name)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::builtin()
    }
}

fn named<T>(name: &'static str, summary: &'static str, make: T) -> Named<T> {
    Named {
        name,
        summary,
        make,
    }
}

fn find<T: Copy>(table: &[Named<T>], name: &str) -> Option<T> {
    table
        .iter()
        .find(|named| named.name == name)
        .map(|named| named.make)
}

fn names<'a>(table: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    table.map(|(name, _)| name.to_owned()).collect()
}

/// A controller as described: what to build for each new path.
#[derive(Clone, Debug)]
pub struct Spec {
    text: String,
    algorithm: Algorithm,
}

#[derive(Clone, Debug)]
enum Algorithm {
    Window {
        config: Config,
        startup: StartupFactory,
        avoidance: AvoidanceFactory,
    },
    Bbr {
        config: Config,
    },
}

impl ControllerFactory for Spec {
    fn build(&self, environment: &Environment) -> Box<dyn Controller> {
        let max_datagram_size = environment.max_datagram_size;
        match &self.algorithm {
            Algorithm::Window {
                config,
                startup,
                avoidance,
            } => Box::new(WindowController::new(
                config.clone(),
                max_datagram_size,
                startup(config),
                avoidance(config),
            )),
            Algorithm::Bbr { config } => Box::new(Bbr::new(bbr::Config {
                initial_window: config.initial_window.bytes(max_datagram_size),
                max_datagram_size,
                seed: environment.seed,
            })),
        }
    }
}

impl Spec {
    /// The resulting settings, defaults included.
    #[must_use]
    pub const fn config(&self) -> &Config {
        match &self.algorithm {
            Algorithm::Window { config, .. } | Algorithm::Bbr { config } => config,
        }
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    /// Parses with [`Registry::builtin`].
    fn from_str(text: &str) -> Result<Self, SpecError> {
        Registry::builtin().parse(text)
    }
}

impl fmt::Display for Spec {
    /// The text it was parsed from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
