//! The keys of a spec: one table, from which parsing, help and error texts come.

use alloc::{
    format,
    string::{String, ToString},
};

use super::{
    Registry,
    value::{choice, factor, one_of, switch, window},
};
use crate::{
    config::{IdlePolicy, Variant, WindowSize},
    startup::QueueThreshold,
};

/// A key of a spec, as help texts show it.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What its value looks like.
    pub value: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Whether BBR takes it too.
    pub is_for_bbr: bool,
    pub(super) set: Setter,
}

/// Takes the text of a value; an error says what is allowed.
pub(super) type Setter = fn(&mut Settings, &str, &Registry) -> Result<(), String>;

/// What a spec says, each key at most once. What it does not say comes from the preset.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings {
    pub(super) congestion: Option<String>,
    pub(super) growth: Option<String>,
    pub(super) variant: Option<Variant>,
    pub(super) initial_window: Option<WindowSize>,
    pub(super) minimum_window: Option<WindowSize>,
    pub(super) first_flight: Option<FirstFlightName>,
    pub(super) first_flight_round_trips: Option<f64>,
    pub(super) jump_window: Option<WindowSize>,
    pub(super) recovery: Option<RecoveryName>,
    pub(super) beta: Option<f64>,
    pub(super) startup_beta: Option<f64>,
    pub(super) beta_ecn: Option<f64>,
    pub(super) queue_threshold: Option<QueueThreshold>,
    pub(super) fast_convergence: Option<bool>,
    pub(super) pacing_gain: Option<f64>,
    pub(super) respect_app_limited: Option<bool>,
    pub(super) idle: Option<IdlePolicy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstFlightName {
    InitialWindow,
    Jump,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecoveryName {
    Cut,
    Proportional,
}

/// All keys.
pub(super) const KEYS: &[Key] = &[
    Key {
        name: "congestion",
        value: "NAME",
        summary: "what follows startup: newreno, cubic, pico",
        is_for_bbr: false,
        set: |settings, text, registry| {
            settings.congestion = Some(known(text, registry.avoidances())?);
            Ok(())
        },
    },
    Key {
        name: "growth",
        value: "NAME",
        summary: "how the window grows in startup: slow-start (2x a round trip), hystart (RFC 9406), rapid (3x or 2x)",
        is_for_bbr: false,
        set: |settings, text, registry| {
            settings.growth = Some(known(text, registry.startups())?);
            Ok(())
        },
    },
    Key {
        name: "first-flight",
        value: "initial-window|jump",
        summary: "whether the first flight is the initial window, or jumps to jump-window paced over one round trip",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.first_flight = Some(choice(
                text,
                &[
                    ("initial-window", FirstFlightName::InitialWindow),
                    ("jump", FirstFlightName::Jump),
                ],
            )?);
            Ok(())
        },
    },
    Key {
        name: "recovery",
        value: "cut|proportional",
        summary: "how the window falls at the first congestion: at once, or in proportion to what the round lost and delivered",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.recovery = Some(choice(
                text,
                &[
                    ("cut", RecoveryName::Cut),
                    ("proportional", RecoveryName::Proportional),
                ],
            )?);
            Ok(())
        },
    },
    Key {
        name: "variant",
        value: "draft-02|quicly",
        summary: "which Rapid Start: the draft's, or quicly's of April 2026 (its threshold, K = 11/18, floors, startup-beta 0.7)",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.variant = Some(choice(
                text,
                &[("draft-02", Variant::Draft02), ("quicly", Variant::Quicly)],
            )?);
            Ok(())
        },
    },
    Key {
        name: "initial-window",
        value: "SIZE",
        summary: "the window at the start: datagrams (30p) or bytes (44160B)",
        is_for_bbr: true,
        set: |settings, text, _| {
            settings.initial_window = Some(window(text, 2)?);
            Ok(())
        },
    },
    Key {
        name: "min-window",
        value: "SIZE",
        summary: "the window is never less (2p)",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.minimum_window = Some(window(text, 1)?);
            Ok(())
        },
    },
    Key {
        name: "jump-window",
        value: "SIZE",
        summary: "what first-flight=jump jumps to (twice the initial window)",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.jump_window = Some(window(text, 2)?);
            Ok(())
        },
    },
    Key {
        name: "first-flight-rtts",
        value: "X",
        summary: "over how many round trips the initial window is spread (0.5)",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.first_flight_round_trips = Some(factor(text, 0.1, 10.0)?);
            Ok(())
        },
    },
    Key {
        name: "beta",
        value: "X",
        summary: "the factor by which a window shrinks at congestion, the first one included",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.beta = Some(factor(text, BETA_MIN, BETA_MAX)?);
            Ok(())
        },
    },
    Key {
        name: "startup-beta",
        value: "X",
        summary: "the same, for the first congestion alone",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.startup_beta = Some(factor(text, BETA_MIN, BETA_MAX)?);
            Ok(())
        },
    },
    Key {
        name: "beta-ecn",
        value: "X",
        summary: "the same, for ECN-CE marks without loss after startup (RFC 8511)",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.beta_ecn = Some(factor(text, BETA_MIN, BETA_MAX)?);
            Ok(())
        },
    },
    Key {
        name: "queue-threshold",
        value: "min|max",
        summary: "growth=rapid falls back to 2x above the min or the max of min_rtt + 4 ms and about 1.1 x min_rtt",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.queue_threshold = Some(choice(
                text,
                &[("min", QueueThreshold::Min), ("max", QueueThreshold::Max)],
            )?);
            Ok(())
        },
    },
    Key {
        name: "fast-convergence",
        value: "on|off",
        summary: "cubic: make room for new flows (on)",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.fast_convergence = Some(switch(text)?);
            Ok(())
        },
    },
    Key {
        name: "pacing-gain",
        value: "X",
        summary: "windows that may leave in a round trip after startup (1.25; pico 2)",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.pacing_gain = Some(factor(text, 1.0, 10.0)?);
            Ok(())
        },
    },
    Key {
        name: "respect-app-limited",
        value: "on|off",
        summary: "let the window grow only while it is in use (on)",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.respect_app_limited = Some(switch(text)?);
            Ok(())
        },
    },
    Key {
        name: "idle",
        value: "keep|rfc9002|rfc5681|rfc2861",
        summary: "what a pause does to the window: nothing; halved each 5 minutes; back to the initial window after a timeout; halved each timeout",
        is_for_bbr: false,
        set: |settings, text, _| {
            settings.idle = Some(choice(
                text,
                &[
                    ("keep", IdlePolicy::Keep),
                    ("rfc9002", IdlePolicy::Rfc9002),
                    ("rfc5681", IdlePolicy::Rfc5681),
                    ("rfc2861", IdlePolicy::Rfc2861),
                ],
            )?);
            Ok(())
        },
    },
];

const BETA_MIN: f64 = 0.1;
const BETA_MAX: f64 = 0.95;

fn known<'a>(
    text: &str,
    names: impl Iterator<Item = (&'a str, &'a str)> + Clone,
) -> Result<String, String> {
    let mut names = names.map(|(name, _)| name);
    if names.clone().any(|name| name == text) {
        Ok(text.to_string())
    } else {
        Err(one_of(&mut names))
    }
}

impl Key {
    /// A line of help: `initial-window=SIZE  the window at the start …`.
    #[must_use]
    pub fn help(&self) -> String {
        let usage = format!("{}={}", self.name, self.value);
        format!("{usage:<34} {}", self.summary)
    }
}
