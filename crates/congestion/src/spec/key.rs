//! The keys of a spec: one table for parsing, help and error messages.

use alloc::string::{String, ToString};

use super::{
    Registry, Value,
    value::{choice, factor, switch, window},
};

/// A key of a spec.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub(super) name: &'static str,
    summary: &'static str,
    takes: ValueType,
    /// Whether [`Config`](crate::Config) has a field for it. Other keys belong to single rules, which read them from
    /// [`Config::settings`](crate::Config::settings).
    pub(super) is_common: bool,
}

/// The type of a key's value.
#[derive(Clone, Copy, Debug)]
enum ValueType {
    /// The name of a startup.
    Startup,
    /// The name of an avoidance.
    Avoidance,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// A window of at least this many datagrams.
    Window(u64),
    /// A number from the first to the second, inclusive.
    Number(f64, f64),
    /// `on` or `off`.
    Switch,
}

/// All keys.
pub(super) const KEYS: &[Key] = &[
    Key::new(
        "congestion",
        ValueType::Avoidance,
        "congestion avoidance after startup: newreno, cubic, pico, prague",
    )
    .common(),
    Key::new(
        "growth",
        ValueType::Startup,
        "window growth in startup: slow-start (2x per round trip), hystart (RFC 9406), rapid (3x or 2x), search",
    )
    .common(),
    Key::choice(
        "first-flight",
        &["initial-window", "jump"],
        "first flight: the initial window, or jump-window paced over one round trip",
    )
    .common(),
    Key::choice(
        "recovery",
        &["cut", "proportional"],
        "window reduction at the first congestion: at once, or in proportion to the bytes lost and delivered in that round",
    )
    .common(),
    Key::choice(
        "variant",
        &["draft-02", "editor", "quicly"],
        "Rapid Start of the draft, of its editors' copy (burst=2p, startup-pacing-gain=1, startup-beta-ecn=0.8), or of quicly in April 2026 (its threshold, K = 11/18, floors, startup-beta 0.7)",
    ),
    Key::window(
        "initial-window",
        2,
        "initial window in datagrams (30p) or bytes (44160B)",
    )
    .common(),
    Key::window("min-window", 1, "minimum window (2p)").common(),
    Key::window(
        "jump-window",
        2,
        "window of first-flight=jump (twice the initial window)",
    )
    .common(),
    Key::switch(
        "resume",
        "Careful Resume: a jump to half the window of an earlier connection (off; careful-resume on)",
    )
    .common(),
    Key::window("resume-max", 2, "largest jump of resume=on (2 MiB)").common(),
    Key::number(
        "first-flight-rtts",
        0.1,
        10.0,
        "round trips over which the initial window is paced (0.5)",
    )
    .common(),
    Key::number(
        "beta",
        BETA_MIN,
        BETA_MAX,
        "factor by which congestion reduces the window, also in startup",
    )
    .common(),
    Key::number(
        "startup-beta",
        BETA_MIN,
        BETA_MAX,
        "beta for the congestion that ends startup",
    )
    .common(),
    Key::number(
        "startup-beta-ecn",
        BETA_MIN,
        BETA_MAX,
        "startup-beta where an ECN-CE mark without loss is the congestion (startup-beta, else beta-ecn)",
    )
    .common(),
    Key::number(
        "beta-ecn",
        BETA_MIN,
        BETA_MAX,
        "beta for ECN-CE marks without loss after startup (RFC 8511)",
    )
    .common(),
    Key::choice(
        "queue-threshold",
        &["min", "max"],
        "growth=rapid falls back to 2x above the min or the max of min_rtt + 4 ms and about 1.1 x min_rtt",
    ),
    Key::switch(
        "hystart-exit",
        "growth=rapid also slows down and ends as growth=hystart does, before a loss (off)",
    ),
    Key::number(
        "search-threshold",
        0.05,
        0.95,
        "growth=search ends when delivery is behind what was sent a round trip before by this share (0.26)",
    ),
    Key::choice(
        "search-exit",
        &["drain", "keep"],
        "window at the end of growth=search: drained to what a round trip delivers, or kept (drain)",
    ),
    Key::switch(
        "fast-convergence",
        "cubic: fast convergence, which releases bandwidth to new flows (on)",
    ),
    Key::switch(
        "classic-ecn-fallback",
        "prague: larger reductions where marks look like those of a classic ECN queue (off; RFC 9331, section 4.3)",
    ),
    Key::number(
        "pacing-gain",
        1.0,
        10.0,
        "pacing rate after startup, in windows per round trip (1.25; pico 2; prague 1)",
    )
    .common(),
    Key::number(
        "startup-pacing-gain",
        1.0,
        10.0,
        "pacing rate in startup after the first flight, in windows per round trip (what growth= grows to)",
    )
    .common(),
    Key::window(
        "burst",
        2,
        "burst after a pause, at least what is released at a time (10p; prague what is released; bbr and c4 as in their drafts)",
    )
    .common(),
    Key::switch(
        "respect-app-limited",
        "no window growth while the sender is application-limited (on)",
    )
    .common(),
    Key::switch(
        "rate-limited-increase",
        "growth while application-limited up to what the largest flight allows; replaces respect-app-limited (off)",
    )
    .common(),
    Key::choice(
        "idle",
        &["keep", "rfc9002", "rfc5681", "rfc2861"],
        "window after an idle period: kept; halved every 5 minutes; reset to the initial window after a timeout; halved every timeout",
    )
    .common(),
];

const BETA_MIN: f64 = 0.1;
const BETA_MAX: f64 = 0.95;

impl Key {
    /// A key whose value is a number from `min` to `max`, inclusive.
    #[must_use]
    pub const fn number(name: &'static str, min: f64, max: f64, summary: &'static str) -> Self {
        Self::new(name, ValueType::Number(min, max), summary)
    }

    /// A key whose value is `on` or `off`.
    #[must_use]
    pub const fn switch(name: &'static str, summary: &'static str) -> Self {
        Self::new(name, ValueType::Switch, summary)
    }

    /// A key whose value is one of these names.
    #[must_use]
    pub const fn choice(
        name: &'static str,
        names: &'static [&'static str],
        summary: &'static str,
    ) -> Self {
        Self::new(name, ValueType::Choice(names), summary)
    }

    /// A key whose value is a window, such as `30p` or `64KiB`, of at least this many datagrams.
    #[must_use]
    pub const fn window(name: &'static str, datagrams_min: u64, summary: &'static str) -> Self {
        Self::new(name, ValueType::Window(datagrams_min), summary)
    }

    const fn new(name: &'static str, takes: ValueType, summary: &'static str) -> Self {
        Self {
            name,
            summary,
            takes,
            is_common: false,
        }
    }

    const fn common(self) -> Self {
        Self {
            is_common: true,
            ..self
        }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// A description.
    pub const fn summary(&self) -> &'static str {
        self.summary
    }

    /// The syntax of its value.
    pub fn value(&self) -> String {
        match self.takes {
            ValueType::Startup | ValueType::Avoidance => "NAME".to_string(),
            ValueType::Choice(names) => names.join("|"),
            ValueType::Window(_) => "SIZE".to_string(),
            ValueType::Number(..) => "X".to_string(),
            ValueType::Switch => "on|off".to_string(),
        }
    }

    /// Parses a value; the error says what is valid.
    pub(super) fn parse(&self, text: &str, registry: &Registry) -> Result<Value, String> {
        match self.takes {
            ValueType::Startup => {
                choice(text, registry.startups().map(|(name, _)| name)).map(Value::Choice)
            }
            ValueType::Avoidance => {
                choice(text, registry.avoidances().map(|(name, _)| name)).map(Value::Choice)
            }
            ValueType::Choice(names) => choice(text, names.iter().copied()).map(Value::Choice),
            ValueType::Window(datagrams_min) => window(text, datagrams_min).map(Value::Window),
            ValueType::Number(min, max) => factor(text, min, max).map(Value::Number),
            ValueType::Switch => switch(text).map(Value::Switch),
        }
    }
}
