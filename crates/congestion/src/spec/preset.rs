//! The presets: the settings of a spec's name before its keys change them.

use alloc::{borrow::ToOwned, boxed::Box, sync::Arc};
use core::fmt;

use super::{ControllerMaker, Registry, Settings, SpecError};
use crate::{
    bbr::{self, Bbr},
    c4::{self, C4},
    config::{AppLimited, Config, FirstFlight, FirstRecovery, IdlePolicy, Variant, WindowSize},
    window::WindowController,
};

#[derive(Clone, Debug)]
pub(super) struct Preset {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) kind: Kind,
}

#[derive(Clone)]
pub(super) enum Kind {
    /// A startup and an avoidance. Accepts all keys.
    Window(Window),
    /// A monolithic algorithm, and the keys that it accepts.
    Whole {
        keys: &'static [&'static str],
        make: Arc<ControllerMaker>,
    },
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Window(window) => window.fmt(f),
            Self::Whole { keys, .. } => f.debug_struct("Whole").field("keys", keys).finish(),
        }
    }
}

/// The differences between the presets of window-based control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    growth: &'static str,
    congestion: &'static str,
    first_flight: &'static str,
    recovery: &'static str,
    startup_beta: Option<f64>,
    app_limited: AppLimited,
    resumes: bool,
}

/// Baseline of the four arms: they halve the window at their first congestion.
const SLOW_START: Window = Window {
    growth: "slow-start",
    congestion: "cubic",
    first_flight: "initial-window",
    recovery: "cut",
    startup_beta: Some(0.5),
    app_limited: AppLimited::NoGrowth,
    resumes: false,
};

/// As in the RFCs: the avoidance's own factor applies from the start.
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
            first_flight: "jump",
            ..SLOW_START
        }),
    },
    Preset {
        name: "rapid-no-jump",
        summary: "3x growth while no queue shows, first recovery in proportion to loss",
        kind: Kind::Window(Window {
            growth: "rapid",
            recovery: "proportional",
            ..SLOW_START
        }),
    },
    Preset {
        name: "rapid-start",
        summary: "both: Rapid Start (draft-kazuho-ccwg-rapid-start-02)",
        kind: Kind::Window(Window {
            growth: "rapid",
            recovery: "proportional",
            first_flight: "jump",
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
        name: "search",
        summary: "SEARCH (draft-chung-ccwg-search-09) and CUBIC",
        kind: Kind::Window(Window {
            growth: "search",
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
        name: "rate-limited",
        summary: "slow start and CUBIC, growth by draft-ietf-ccwg-ratelimited-increase while rate-limited",
        kind: Kind::Window(Window {
            app_limited: AppLimited::RateLimitedIncrease,
            ..STANDARD
        }),
    },
    Preset {
        name: "careful-resume",
        summary: "slow start and CUBIC, with a jump to half of what an earlier connection used (RFC 9959)",
        kind: Kind::Window(Window {
            resumes: true,
            ..STANDARD
        }),
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
        name: "prague",
        summary: "slow start and Prague, for L4S: marks packets ECT(1) (draft-briscoe-iccrg-prague-04)",
        kind: Kind::Window(Window {
            congestion: "prague",
            ..STANDARD
        }),
    },
];

/// The monolithic presets.
pub(super) fn monolithic() -> [Preset; 2] {
    let keys = &["initial-window", "burst"];
    [
        Preset::of_controller(
            "bbr",
            "BBRv3 (draft-ietf-ccwg-bbr-06)",
            keys,
            Arc::new(|config, environment| {
                Box::new(Bbr::new(bbr::Config {
                    initial_window: config.initial_window.bytes(environment.max_datagram_size),
                    max_datagram_size: environment.max_datagram_size,
                    seed: environment.seed,
                    burst: config
                        .burst
                        .map(|burst| burst.bytes(environment.max_datagram_size)),
                }))
            }),
        ),
        Preset::of_controller(
            "c4",
            "C4, for media: low delay (draft-huitema-ccwg-c4-spec after -04)",
            &["initial-window", "burst", "resume", "resume-max"],
            Arc::new(|config, environment| {
                Box::new(C4::new(c4::Config {
                    initial_window: config.initial_window.bytes(environment.max_datagram_size),
                    max_datagram_size: environment.max_datagram_size,
                    resume_max: config
                        .resume
                        .map(|max| max.bytes(environment.max_datagram_size)),
                    burst: config
                        .burst
                        .map(|burst| burst.bytes(environment.max_datagram_size)),
                }))
            }),
        ),
    ]
}

/// The initial window of every preset.
const INITIAL_WINDOW: WindowSize = WindowSize::Datagrams(30);
/// The largest jump of Careful Resume. RFC 9959 leaves `max_jump` to the configuration.
const RESUME_MAX: WindowSize = WindowSize::Bytes(2 << 20);
/// Rapid Start's editors' copy: the initial window is paced without a burst (§3.1.1), later rounds over the full round trip
/// (§3.1.2), and a mark is no overflow (§3.3.1, RFC 8511).
const EDITOR_BURST: WindowSize = WindowSize::Datagrams(2);
const EDITOR_PACING_GAIN: f64 = 1.0;
const EDITOR_BETA_ECN: f64 = 0.8;
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

    pub(super) const fn of_controller(
        name: &'static str,
        summary: &'static str,
        keys: &'static [&'static str],
        make: Arc<ControllerMaker>,
    ) -> Self {
        Self {
            name,
            summary,
            kind: Kind::Whole { keys, make },
        }
    }

    /// Whether it accepts this key.
    pub(super) fn takes(&self, key: &str) -> bool {
        match &self.kind {
            Kind::Window(_) => true,
            Kind::Whole { keys, .. } => keys.contains(&key),
        }
    }

    /// The resulting settings, and the constructor of a controller.
    pub(super) fn resolve(
        &self,
        registry: &Registry,
        settings: &Settings,
        spec: &str,
    ) -> Result<(Config, Arc<ControllerMaker>), SpecError> {
        let mut config = Config {
            initial_window: settings.window("initial-window").unwrap_or(INITIAL_WINDOW),
            burst: settings.window("burst"),
            settings: settings.clone(),
            ..Config::default()
        };
        config.settings.retain(|key| !registry.is_common(key));
        let resumes = matches!(&self.kind, Kind::Window(window) if window.resumes);
        config.resume = settings
            .switch("resume")
            .unwrap_or(resumes)
            .then(|| settings.window("resume-max").unwrap_or(RESUME_MAX));
        match &self.kind {
            Kind::Whole { make, .. } => Ok((config, Arc::clone(make))),
            Kind::Window(window) => {
                let jump_window = settings.window("jump-window");
                if is_smaller(jump_window, config.initial_window) {
                    return Err(SpecError::JumpTooSmall {
                        spec: spec.to_owned(),
                    });
                }
                window.configure(settings, &mut config);
                Ok((config, window.maker(registry, settings)?))
            }
        }
    }
}

impl Window {
    fn configure(self, settings: &Settings, config: &mut Config) {
        let first_recovery = match settings.choice("recovery").unwrap_or(self.recovery) {
            "proportional" => FirstRecovery::Proportional(match settings.choice("variant") {
                Some("quicly") => Variant::Quicly,
                Some("editor") => Variant::Editor,
                _ => Variant::Draft02,
            }),
            _ => FirstRecovery::Cut,
        };
        let startup_beta = match first_recovery {
            FirstRecovery::Proportional(Variant::Quicly) => Some(QUICLY_BETA),
            _ => self.startup_beta,
        };
        let first_flight = match settings.choice("first-flight").unwrap_or(self.first_flight) {
            "jump" => FirstFlight::Jump {
                window: settings.window("jump-window"),
            },
            _ => settings
                .number("first-flight-rtts")
                .map_or(FirstFlight::HALF_ROUND_TRIP, |round_trips| {
                    FirstFlight::InitialWindow { round_trips }
                }),
        };
        config.first_flight = first_flight;
        config.first_recovery = first_recovery;
        config.beta = settings.number("beta");
        config.startup_beta = settings
            .number("startup-beta")
            .or(config.beta)
            .or(startup_beta);
        config.startup_beta_ecn = settings.number("startup-beta-ecn");
        config.beta_ecn = settings.number("beta-ecn");
        config.pacing_gain = settings.number("pacing-gain");
        config.startup_pacing_gain = settings.number("startup-pacing-gain");
        if first_recovery == FirstRecovery::Proportional(Variant::Editor) {
            config.burst = config.burst.or(Some(EDITOR_BURST));
            config.startup_pacing_gain = config.startup_pacing_gain.or(Some(EDITOR_PACING_GAIN));
            config.startup_beta_ecn = config.startup_beta_ecn.or(Some(EDITOR_BETA_ECN));
        }
        config.idle = match settings.choice("idle") {
            Some("rfc9002") => IdlePolicy::Rfc9002,
            Some("rfc5681") => IdlePolicy::Rfc5681,
            Some("rfc2861") => IdlePolicy::Rfc2861,
            _ => IdlePolicy::Keep,
        };
        if let Some(size) = settings.window("min-window") {
            config.minimum_window = size;
        }
        config.app_limited = match (
            settings.switch("rate-limited-increase"),
            settings.switch("respect-app-limited"),
        ) {
            (Some(true), _) => AppLimited::RateLimitedIncrease,
            (_, Some(false)) => AppLimited::Ignored,
            (Some(false), _) | (_, Some(true)) => AppLimited::NoGrowth,
            (None, None) => self.app_limited,
        };
    }

    fn maker(
        self,
        registry: &Registry,
        settings: &Settings,
    ) -> Result<Arc<ControllerMaker>, SpecError> {
        let growth = settings.choice("growth").unwrap_or(self.growth);
        let congestion = settings.choice("congestion").unwrap_or(self.congestion);
        // The names were checked when the keys were parsed, or come from the registry itself.
        let unknown = |name: &str| SpecError::UnknownPreset {
            name: name.to_owned(),
            known: super::names(registry.startups().chain(registry.avoidances())),
        };
        let startup = registry.startup(growth).ok_or_else(|| unknown(growth))?;
        let avoidance = registry
            .avoidance(congestion)
            .ok_or_else(|| unknown(congestion))?;
        Ok(Arc::new(move |config, environment| {
            Box::new(WindowController::new(
                Arc::clone(config),
                environment.max_datagram_size,
                startup(config),
                avoidance(config),
            ))
        }))
    }
}

/// Whether a jump is to less than the initial window, as far as that is known without the datagram size.
fn is_smaller(jump: Option<WindowSize>, initial: WindowSize) -> bool {
    match (jump, initial) {
        (Some(WindowSize::Datagrams(jump)), WindowSize::Datagrams(initial))
        | (Some(WindowSize::Bytes(jump)), WindowSize::Bytes(initial)) => jump < initial,
        _ => false,
    }
}
