//! The presets: what a spec's name stands for before its keys change it.

use alloc::borrow::ToOwned;

use super::{
    Algorithm, Registry, SpecError,
    key::{FirstFlightName, RecoveryName, Settings},
};
use crate::{
    config::{Config, FirstFlight, FirstRecovery, IdlePolicy, Variant, WindowSize},
    startup::QueueThreshold,
};

#[derive(Clone, Copy, Debug)]
pub(super) struct Preset {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Window(Window),
    Bbr,
}

/// What differs between the presets of window-based control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    growth: &'static str,
    congestion: &'static str,
    first_flight: FirstFlightName,
    recovery: RecoveryName,
    startup_beta: Option<f64>,
}

/// Baseline of the four arms: they cut by half at their first congestion.
const SLOW_START: Window = Window {
    growth: "slow-start",
    congestion: "cubic",
    first_flight: FirstFlightName::InitialWindow,
    recovery: RecoveryName::Cut,
    startup_beta: Some(0.5),
};

/// As the RFCs have it: the avoidance's own factor counts from the start.
const STANDARD: Window = Window {
    startup_beta: None,
    ..SLOW_START
};

pub(super) const PRESETS: &[Preset] = &[
    Preset {
        name: "slow-start",
        summary: "the baseline: initial window over half a round trip, 2x growth, first cut by half",
        kind: Kind::Window(SLOW_START),
    },
    Preset {
        name: "jumpstart",
        summary: "the same, but a first flight of twice the initial window over one round trip",
        kind: Kind::Window(Window {
            first_flight: FirstFlightName::Jump,
            ..SLOW_START
        }),
    },
    Preset {
        name: "rapid-no-jump",
        summary: "3x growth while no queue shows, first recovery in proportion to loss",
        kind: Kind::Window(Window {
            growth: "rapid",
            recovery: RecoveryName::Proportional,
            ..SLOW_START
        }),
    },
    Preset {
        name: "rapid-start",
        summary: "both: Rapid Start (draft-kazuho-ccwg-rapid-start-02)",
        kind: Kind::Window(Window {
            growth: "rapid",
            recovery: RecoveryName::Proportional,
            first_flight: FirstFlightName::Jump,
            ..SLOW_START
        }),
    },
    Preset {
        name: "hystart",
        summary: "HyStart++ (RFC 9406) and CUBIC",
        kind: Kind::Window(Window {
            growth: "hystart",
            ..STANDARD
        }),
    },
    Preset {
        name: "newreno",
        summary: "slow start and NewReno (RFC 9002)",
        kind: Kind::Window(Window {
            congestion: "newreno",
            ..STANDARD
        }),
    },
    Preset {
        name: "cubic",
        summary: "slow start and CUBIC (RFC 9438)",
        kind: Kind::Window(STANDARD),
    },
    Preset {
        name: "pico",
        summary: "slow start and Pico; first cut by half, as quicly does",
        kind: Kind::Window(Window {
            congestion: "pico",
            ..SLOW_START
        }),
    },
    Preset {
        name: "bbr",
        summary: "BBRv3 (draft-ietf-ccwg-bbr-06)",
        kind: Kind::Bbr,
    },
];

/// The initial window of every preset.
const INITIAL_WINDOW: WindowSize = WindowSize::Datagrams(30);
/// The factor of quicly's Rapid Start.
const QUICLY_BETA: f64 = 0.7;

impl Preset {
    pub(super) const fn of_startup(name: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            summary,
            kind: Kind::Window(Window {
                growth: name,
                ..STANDARD
            }),
        }
    }

    pub(super) const fn of_avoidance(name: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            summary,
            kind: Kind::Window(Window {
                congestion: name,
                ..STANDARD
            }),
        }
    }

    /// What this preset comes to with these settings.
    pub(super) fn resolve(
        &self,
        registry: &Registry,
        settings: &Settings,
        spec: &str,
    ) -> Result<Algorithm, SpecError> {
        let initial_window = settings.initial_window.unwrap_or(INITIAL_WINDOW);
        let config = Config {
            initial_window,
            ..Config::default()
        };
        let Kind::Window(preset) = self.kind else {
            return Ok(Algorithm::Bbr { config });
        };
        if is_smaller(settings.jump_window, initial_window) {
            return Err(SpecError::JumpTooSmall {
                spec: spec.to_owned(),
            });
        }
        let growth = settings.growth.as_deref().unwrap_or(preset.growth);
        let congestion = settings.congestion.as_deref().unwrap_or(preset.congestion);
        // The names were checked when the keys were parsed, or come from the registry itself.
        let unknown = |name: &str| SpecError::UnknownPreset {
            name: name.to_owned(),
            known: super::names(registry.startups().chain(registry.avoidances())),
        };
        Ok(Algorithm::Window {
            config: preset.configure(settings, &config),
            startup: registry.startup(growth).ok_or_else(|| unknown(growth))?,
            avoidance: registry
                .avoidance(congestion)
                .ok_or_else(|| unknown(congestion))?,
        })
    }
}

impl Window {
    fn configure(self, settings: &Settings, base: &Config) -> Config {
        let variant = settings.variant.unwrap_or(Variant::Draft02);
        let first_recovery = match settings.recovery.unwrap_or(self.recovery) {
            RecoveryName::Cut => FirstRecovery::Cut,
            RecoveryName::Proportional => FirstRecovery::Proportional(variant),
        };
        let first_flight = match settings.first_flight.unwrap_or(self.first_flight) {
            FirstFlightName::InitialWindow => settings
                .first_flight_round_trips
                .map_or(FirstFlight::HALF_ROUND_TRIP, |round_trips| {
                    FirstFlight::InitialWindow { round_trips }
                }),
            FirstFlightName::Jump => FirstFlight::Jump {
                window: settings.jump_window,
            },
        };
        let startup_beta = match first_recovery {
            FirstRecovery::Proportional(Variant::Quicly) => Some(QUICLY_BETA),
            _ => self.startup_beta,
        };
        Config {
            minimum_window: settings.minimum_window.unwrap_or(base.minimum_window),
            first_flight,
            first_recovery,
            startup_beta: settings.startup_beta.or(settings.beta).or(startup_beta),
            beta: settings.beta,
            beta_ecn: settings.beta_ecn,
            queue_threshold: settings.queue_threshold.unwrap_or(match variant {
                Variant::Draft02 => QueueThreshold::Min,
                Variant::Quicly => QueueThreshold::Max,
            }),
            fast_convergence: settings.fast_convergence.unwrap_or(base.fast_convergence),
            pacing_gain: settings.pacing_gain,
            respect_app_limited: settings
                .respect_app_limited
                .unwrap_or(base.respect_app_limited),
            idle: settings.idle.unwrap_or(IdlePolicy::Keep),
            ..base.clone()
        }
    }
}

/// Whether a jump is to less than the initial window, as far as that can be said without the datagram size.
fn is_smaller(jump: Option<WindowSize>, initial: WindowSize) -> bool {
    match (jump, initial) {
        (Some(WindowSize::Datagrams(jump)), WindowSize::Datagrams(initial))
        | (Some(WindowSize::Bytes(jump)), WindowSize::Bytes(initial)) => jump < initial,
        _ => false,
    }
}
