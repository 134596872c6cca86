//! Controllers by name: `rapid-start:variant=quicly,congestion=pico,initial-window=44160B,beta=0.7`.
//!
//! A spec is the name of a preset, optionally followed by a colon and [keys](Registry::keys) that change it, each at
//! most once. All presets accept the same keys (`bbr` only `initial-window` and `burst`, `c4` also `resume`); a key that the chosen
//! rules do not use has no effect, so that several arms of an experiment can share a setting.
//!
//! All presets start with 30 datagrams, the baseline of the experiment in which Rapid Start was measured, so that arms
//! differ only in what their names say; `initial-window=10p` is the 10 of RFC 9002 §7.2. The four arms halve the window
//! at their first congestion, as in that experiment, and continue with CUBIC.
//!
//! A [`Registry`] knows the names. Startups, avoidances, whole controllers and keys can be added to it.

mod error;
mod key;
mod preset;
mod settings;
mod value;

use alloc::{
    borrow::ToOwned,
    boxed::Box,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};
use core::{fmt, str::FromStr};

pub use error::SpecError;
pub use key::Key;
pub use settings::{Settings, Value};

use self::{
    key::KEYS,
    preset::{PRESETS, Preset},
};
use crate::{
    avoidance::{Avoidance, Cubic, NewReno, Pico, Prague},
    config::Config,
    controller::{Controller, ControllerFactory, Environment},
    startup::{HyStart, RapidStart, Search, SlowStart, Startup},
};

/// Creates a startup for a controller with these settings.
type StartupMaker = dyn Fn(&Config) -> Box<dyn Startup> + Send + Sync;
/// Creates an avoidance for a controller with these settings.
type AvoidanceMaker = dyn Fn(&Config) -> Box<dyn Avoidance> + Send + Sync;
/// Creates a controller with these settings for a path.
type ControllerMaker = dyn Fn(&Arc<Config>, &Environment) -> Box<dyn Controller> + Send + Sync;

/// The presets, startups, avoidances and keys available in specs.
///
/// A monolithic algorithm is added with its own key:
///
/// ```
/// # use lastbyte_congestion::{Ack, Controller, Loss, Pacing, Packet, Phase, Receipt, Rtt, Sent, State, Statistics, Time};
/// # #[derive(Debug)]
/// # struct Fixed { window: u64 }
/// # impl Controller for Fixed {
/// #     fn on_sent(&mut self, _: &Sent<'_>) -> Receipt { Receipt::default() }
/// #     fn on_packet_acked(&mut self, _: Time, _: &Packet) {}
/// #     fn on_packet_lost(&mut self, _: Time, _: &Packet) {}
/// #     fn on_lost(&mut self, _: &Loss<'_>) {}
/// #     fn on_ack(&mut self, _: &Ack<'_>) {}
/// #     fn window(&self) -> u64 { self.window }
/// #     fn pacing(&self, _: &Rtt) -> Pacing { Pacing::UNLIMITED }
/// #     fn state(&self) -> State {
/// #         State {
/// #             startup: "fixed",
/// #             avoidance: None,
/// #             phase: Phase::Avoidance,
/// #             window: self.window,
/// #             slow_start_threshold: None,
/// #             bandwidth: None,
/// #             statistics: Statistics::new(self.window),
/// #         }
/// #     }
/// # }
/// use lastbyte_congestion::{ControllerFactory, Environment, Key, Registry};
///
/// let mut registry = Registry::builtin();
/// registry.add_key(Key::number("windows", 1.0, 8.0, "how many initial windows the window is (1)"))?;
/// registry.add_controller("fixed", "a constant window", &["initial-window", "windows"], |config, environment| {
///     let initial = config.initial_window.bytes(environment.max_datagram_size);
///     let windows = config.settings.number("windows").unwrap_or(1.0);
///     Box::new(Fixed { window: (initial as f64 * windows) as u64 })
/// })?;
///
/// let spec = registry.parse("fixed:initial-window=10p,windows=2")?;
/// let controller = spec.build(&Environment { max_datagram_size: 1200, seed: 1 });
/// assert_eq!(controller.window(), 24_000);
///
/// let error = registry.parse("fixed:windows=9").unwrap_err();
/// assert_eq!(error.to_string(), "`windows=9` in `fixed:windows=9` (expected 1 to 8)");
/// # Ok::<(), lastbyte_congestion::SpecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Registry {
    presets: Vec<Preset>,
    startups: Vec<Named<StartupMaker>>,
    avoidances: Vec<Named<AvoidanceMaker>>,
    keys: Vec<Key>,
}

struct Named<T: ?Sized> {
    name: &'static str,
    summary: &'static str,
    make: Arc<T>,
}

impl<T: ?Sized> Clone for Named<T> {
    fn clone(&self) -> Self {
        Self {
            name: self.name,
            summary: self.summary,
            make: Arc::clone(&self.make),
        }
    }
}

impl<T: ?Sized> fmt::Debug for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Registry {
    /// The algorithms of this crate. A new startup or avoidance is one line here.
    #[must_use]
    pub fn builtin() -> Self {
        Self {
            presets: PRESETS
                .iter()
                .cloned()
                .chain(preset::monolithic())
                .collect(),
            startups: [
                startup("slow-start", "2x a round trip", |_| Box::new(SlowStart)),
                startup(
                    "hystart",
                    "2x, then 1.25x when the RTT rises (RFC 9406)",
                    |_| Box::new(HyStart::new()),
                ),
                startup(
                    "rapid",
                    "3x while no queue shows, else 2x (Rapid Start)",
                    |config| Box::new(RapidStart::of(&config.settings)),
                ),
                startup(
                    "search",
                    "2x until delivery falls behind what was sent (SEARCH)",
                    |config| Box::new(Search::new(&config.settings)),
                ),
            ]
            .to_vec(),
            avoidances: [
                avoidance("newreno", "RFC 9002, beta 0.5", |config| {
                    Box::new(NewReno::new(config))
                }),
                avoidance("cubic", "RFC 9438, beta 0.7", |config| {
                    Box::new(Cubic::new(config))
                }),
                avoidance("pico", "quicly's cubic-like rule, beta 0.7", |config| {
                    Box::new(Pico::new(config))
                }),
                avoidance("prague", "scalable, for L4S, beta 0.5", |config| {
                    Box::new(Prague::new(config))
                }),
            ]
            .to_vec(),
            keys: KEYS.to_vec(),
        }
    }

    /// Adds a startup, and a preset of its name that uses it with CUBIC, the initial window over half a round trip, and
    /// a cut at the first congestion. Keys of its own are added with [`Registry::add_key`]; `make` finds their values in
    /// [`Config::settings`].
    ///
    /// # Errors
    ///
    /// Returns [`SpecError::NameTaken`] if there is a preset, startup or avoidance of this name, and
    /// [`SpecError::BadName`] if it is not made of lower-case letters, digits and hyphens, a letter first.
    pub fn add_startup(
        &mut self,
        name: &'static str,
        summary: &'static str,
        make: impl Fn(&Config) -> Box<dyn Startup> + Send + Sync + 'static,
    ) -> Result<&mut Self, SpecError> {
        self.check_free(name)?;
        self.presets.push(Preset::of_startup(name, summary));
        self.startups.push(startup(name, summary, make));
        Ok(self)
    }

    /// Adds an avoidance, and a preset of its name that uses it after slow start. Keys of its own are added with
    /// [`Registry::add_key`]; `make` finds their values in [`Config::settings`].
    ///
    /// # Errors
    ///
    /// As [`Registry::add_startup`].
    pub fn add_avoidance(
        &mut self,
        name: &'static str,
        summary: &'static str,
        make: impl Fn(&Config) -> Box<dyn Avoidance> + Send + Sync + 'static,
    ) -> Result<&mut Self, SpecError> {
        self.check_free(name)?;
        self.presets.push(Preset::of_avoidance(name, summary));
        self.avoidances.push(avoidance(name, summary, make));
        Ok(self)
    }

    /// Adds a monolithic algorithm, as a preset that accepts only these keys. `initial-window` is found in
    /// [`Config::initial_window`], keys of its own in [`Config::settings`].
    ///
    /// # Errors
    ///
    /// As [`Registry::add_startup`]; and [`SpecError::UnknownKey`] if a key is neither built in nor added.
    pub fn add_controller(
        &mut self,
        name: &'static str,
        summary: &'static str,
        keys: &'static [&'static str],
        make: impl Fn(&Config, &Environment) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Result<&mut Self, SpecError> {
        self.check_free(name)?;
        let is_unknown = |key: &&&str| !self.keys.iter().any(|known| known.name == **key);
        if let Some(key) = keys.iter().find(is_unknown) {
            return Err(SpecError::UnknownKey {
                key: (*key).to_owned(),
                preset: name,
                known: self.keys.iter().map(|key| key.name.to_owned()).collect(),
            });
        }
        let make = move |config: &Arc<Config>, environment: &Environment| make(config, environment);
        let preset = Preset::of_controller(name, summary, keys, Arc::new(make));
        self.presets.push(preset);
        Ok(self)
    }

    /// Adds a key. All presets with a startup and an avoidance accept it; other presets list the keys they accept.
    ///
    /// # Errors
    ///
    /// Returns [`SpecError::NameTaken`] if there is a key of this name, and [`SpecError::BadName`] if it does not
    /// consist of lower-case letters, digits and hyphens, a letter first.
    pub fn add_key(&mut self, key: Key) -> Result<&mut Self, SpecError> {
        check_name(key.name, self.keys.iter().map(|key| key.name))?;
        self.keys.push(key);
        Ok(self)
    }

    fn check_free(&self, name: &'static str) -> Result<(), SpecError> {
        let taken = self
            .presets()
            .chain(self.startups())
            .chain(self.avoidances());
        check_name(name, taken.map(|(name, _)| name))
    }

    /// The keys.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The keys that a spec's preset accepts.
    pub fn keys_of(&self, spec: &Spec) -> impl Iterator<Item = &Key> {
        let name = spec.text.split(':').next();
        let preset = self
            .presets
            .iter()
            .find(move |preset| Some(preset.name) == name);
        let accepts = move |key: &&Key| preset.is_some_and(|preset| preset.takes(key.name));
        self.keys.iter().filter(accepts)
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

    /// The avoidance of this name, as a controller with these settings starts with it; `None` for another name.
    pub fn new_avoidance(&self, name: &str, config: &Config) -> Option<Box<dyn Avoidance>> {
        self.avoidance(name).map(|make| make(config))
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
    /// assert_eq!(error.to_string(), "`beta=1.5` in `rapid-start:beta=1.5` (expected 0.1 to 0.95)");
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the [`SpecError`] of the first invalid part: an unknown preset or key, a repeated key, or an invalid
    /// value. The message contains the part and lists what is valid.
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
        for part in rest.into_iter().flat_map(|rest| rest.split(',')) {
            self.parse_part(text, part, preset, &mut settings)?;
        }
        let (config, make) = preset.resolve(self, &settings, text)?;
        Ok(Spec {
            text: text.to_owned(),
            config: Arc::new(config),
            make,
        })
    }

    fn parse_part(
        &self,
        spec: &str,
        part: &str,
        preset: &Preset,
        settings: &mut Settings,
    ) -> Result<(), SpecError> {
        let Some((name, value)) = part.split_once('=') else {
            return Err(SpecError::NotKeyValue {
                part: part.to_owned(),
                spec: spec.to_owned(),
            });
        };
        let mut keys = self.keys.iter().filter(|key| preset.takes(key.name));
        let known = keys.clone();
        let key = keys
            .find(|key| key.name == name)
            .ok_or_else(|| SpecError::UnknownKey {
                key: name.to_owned(),
                preset: preset.name,
                known: known.map(|key| key.name.to_string()).collect(),
            })?;
        let value = key
            .parse(value, self)
            .map_err(|allowed| SpecError::BadValue {
                key: key.name,
                value: value.to_owned(),
                allowed,
                spec: spec.to_owned(),
            })?;
        if settings.contains(key.name) {
            return Err(SpecError::KeyTwice {
                key: key.name,
                spec: spec.to_owned(),
            });
        }
        settings.set(key.name, value);
        Ok(())
    }

    /// Whether [`Config`] has a field for this key.
    fn is_common(&self, name: &str) -> bool {
        self.keys
            .iter()
            .any(|key| key.is_common && key.name == name)
    }

    fn startup(&self, name: &str) -> Option<Arc<StartupMaker>> {
        find(&self.startups, name)
    }

    fn avoidance(&self, name: &str) -> Option<Arc<AvoidanceMaker>> {
        find(&self.avoidances, name)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::builtin()
    }
}

fn startup(
    name: &'static str,
    summary: &'static str,
    make: impl Fn(&Config) -> Box<dyn Startup> + Send + Sync + 'static,
) -> Named<StartupMaker> {
    Named {
        name,
        summary,
        make: Arc::new(make),
    }
}

fn avoidance(
    name: &'static str,
    summary: &'static str,
    make: impl Fn(&Config) -> Box<dyn Avoidance> + Send + Sync + 'static,
) -> Named<AvoidanceMaker> {
    Named {
        name,
        summary,
        make: Arc::new(make),
    }
}

/// Digits at the start are for versions of HTTP, which precede a spec.
fn check_name<'a>(
    name: &'static str,
    mut taken: impl Iterator<Item = &'a str>,
) -> Result<(), SpecError> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_allowed) {
        return Err(SpecError::BadName { name });
    }
    if taken.any(|taken| taken == name) {
        return Err(SpecError::NameTaken { name });
    }
    Ok(())
}

fn find<T: ?Sized>(table: &[Named<T>], name: &str) -> Option<Arc<T>> {
    table
        .iter()
        .find(|named| named.name == name)
        .map(|named| Arc::clone(&named.make))
}

fn names<'a>(table: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    table.map(|(name, _)| name.to_owned()).collect()
}

/// A parsed spec: creates a controller for each new path.
#[derive(Clone)]
pub struct Spec {
    text: String,
    /// Shared with the controllers.
    config: Arc<Config>,
    make: Arc<ControllerMaker>,
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Spec").field(&self.text).finish()
    }
}

impl ControllerFactory for Spec {
    fn build(&self, environment: &Environment) -> Box<dyn Controller> {
        (self.make)(&self.config, environment)
    }
}

impl Spec {
    /// The resulting settings, including defaults.
    pub fn config(&self) -> &Config {
        &self.config
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
    /// The original text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
