//! The queries: the one that reads a log, and for each figure the one that gives its numbers.

use super::settings::Settings;

/// The bins of object sizes: from, up to (not with), in bytes, and what they are called.
pub(super) const BINS: [(u64, u64, &str); 4] = [
    (200_000, 400_000, "200–400 KB"),
    (400_000, 800_000, "400–800 KB"),
    (800_000, 1_600_000, "0.8–1.6 MB"),
    (1_600_000, 3_200_000, "1.6–3.2 MB"),
];

/// The arm by the flags that H2O writes.
const H2O_ARM: &str = r#"_["num-rapid-start"] > 0 ? (_["jumpstart.cwnd"] > 0 ? "rapid-start" : "rapid-no-jump") : (_["jumpstart.cwnd"] > 0 ? "jumpstart" : "slow-start")"#;
/// Which of H2O's lines count, whatever the size: a jump could have shown, packets are paced, and no earlier connection's
/// rate was used.
const H2O_ELIGIBLE: &str = r#"_["num-jumpstart-applicable"] == 1 && _["num-paced"] == 1 && _["jumpstart.prev-rate"] == 0 && _["num-rapid-start"] && _["jumpstart.cwnd"]"#;
/// Lines that are not of a production server of ours: of the simulator, which decides itself which sizes there are, or of
/// another program.
const NOT_PRODUCTION: &str = r#"_["module"] != "lastbyte" || _["seed"]"#;
/// The smallest object of a production log that counts, in bytes, unless [`Settings::min_size`] says otherwise. Smaller
/// ones fit into few flights: no way to start makes a difference to them.
pub(super) const PRODUCTION_SIZE_MIN: u64 = 200_000;
/// Lines of connections over TCP are in no arm.
const NOT_TCP: &str = r#"_["transport"] != "tcp""#;
const SITE: &str = r#"_["site"]"#;
const LOSS: &str = r#"(_["num-packets.sent"] || 0) > 0 && _["num-packets.lost"] ? (100.0 * _["num-packets.lost"] / _["num-packets.sent"]).round(2) : nil"#;
const EXIT_KB: &str = r#"(_["cc.cwnd-exiting-slow-start"] || 0) > 0 ? (_["cc.cwnd-exiting-slow-start"] / 1000.0).round : nil"#;

/// Whose lines a log has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Lines that name their arm, or whose arm the settings tell.
    Named,
    /// H2O's, whose flags tell the arm.
    H2o,
}

/// Objects of this size or larger.
fn at_least(bytes: u64) -> String {
    format!(r#"(_["content_length"] || 0) >= {bytes}"#)
}

/// The rule on sizes for lines that name their arm, if there is no [`Settings::min_size`].
fn size_rule() -> String {
    format!("{NOT_PRODUCTION} || {}", at_least(PRODUCTION_SIZE_MIN))
}

/// Which of H2O's lines count.
fn h2o_eligible(settings: &Settings) -> String {
    // A smallest size of the caller's is a filter of all lines.
    match settings.min_size {
        Some(_) => H2O_ELIGIBLE.to_owned(),
        None => format!("{H2O_ELIGIBLE} && {}", at_least(PRODUCTION_SIZE_MIN)),
    }
}

/// The columns that [`reading`] gives, by place.
pub(super) mod column {
    pub(in super::super) const NAMED: usize = 0;
    pub(in super::super) const H2O: usize = 1;
    pub(in super::super) const ELIGIBLE: usize = 2;
    pub(in super::super) const SITE: usize = 3;
    pub(in super::super) const SIZE: usize = 4;
    pub(in super::super) const TTLB: usize = 5;
    pub(in super::super) const LOSS: usize = 6;
    pub(in super::super) const HANDSHAKE: usize = 7;
    pub(in super::super) const CONFIRMED: usize = 8;
    pub(in super::super) const TTFB: usize = 9;
    pub(in super::super) const EPISODES: usize = 10;
    pub(in super::super) const EXIT_KB: usize = 11;
    pub(in super::super) const PTOS: usize = 12;
    pub(in super::super) const SEED: usize = 13;
    pub(in super::super) const EXPERIMENT: usize = 14;
}

/// The query that reads a log: of each line, what all figures need, as an array. It keeps nothing from line to line, so
/// any number of threads can run it.
pub(super) fn reading(settings: &Settings) -> String {
    let named = settings.arm.as_deref().unwrap_or(r#"_["arm"]"#);
    let (h2o, eligible) = if settings.arm.is_some() {
        ("nil".to_owned(), "true".to_owned())
    } else {
        let named = match settings.min_size {
            Some(_) => "true".to_owned(),
            None => size_rule(),
        };
        (
            format!(r#"_["num-rapid-start"] && _["jumpstart.cwnd"] ? ({H2O_ARM}) : nil"#),
            format!(r#"!!(_["arm"] ? ({named}) : ({}))"#, h2o_eligible(settings)),
        )
    };
    let site = settings.site.as_deref().unwrap_or(SITE);
    let row = format!(
        r#"[{named}, {h2o}, {eligible}, {site}, _["content_length"], _["ttlb"], {LOSS}, _["client.handshake"]&.round, _["handshake-confirmed-msec"]&.round, _["client.ttfb"]&.round, _["cc.num-loss-episodes"], {EXIT_KB}, _["num-ptos"], _["seed"], _["experiment"]]"#
    );
    match filters(settings).join(" && ") {
        filter if filter.is_empty() => row,
        filter => format!("select({filter}) >> {row}"),
    }
}

/// Which lines count at all. An expression for the arm gives every line one, also where there is none, unless it knows of
/// the difference itself.
fn filters(settings: &Settings) -> Vec<String> {
    let is_loose = |text: &str| {
        ["||", "?", " or ", " and ", "not "]
            .iter()
            .any(|one| text.contains(one))
    };
    let filter = settings.filter.iter().map(|filter| {
        // It is joined with others.
        if is_loose(filter) {
            format!("({filter})")
        } else {
            filter.clone()
        }
    });
    let mut filters: Vec<String> = filter.collect();
    if let Some(arm) = &settings.arm
        && !["transport", "proto"].iter().any(|key| arm.contains(key))
    {
        filters.push(NOT_TCP.to_owned());
    }
    filters.extend(settings.min_size.map(at_least));
    filters
}

/// Who is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subgroup {
    All,
    Bin(usize),
    Site(String),
}

/// Writes queries about one log.
#[derive(Debug)]
pub(super) struct Asker<'a> {
    settings: &'a Settings,
    dialect: Dialect,
    baseline: &'a str,
    /// Whether lines of small objects were left out.
    has_size_rule: bool,
}

const CHART_SHARES: &str = "$p ||= (1..99).map { |p| p / 100.0 }";

impl<'a> Asker<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        dialect: Dialect,
        baseline: &'a str,
        has_size_rule: bool,
    ) -> Self {
        Self {
            settings,
            dialect,
            baseline,
            has_size_rule,
        }
    }

    fn arm(&self) -> &str {
        match (&self.settings.arm, self.dialect) {
            (Some(arm), _) => arm,
            (None, Dialect::Named) => r#"_["arm"]"#,
            (None, Dialect::H2o) => H2O_ARM,
        }
    }

    fn site(&self) -> &str {
        self.settings.site.as_deref().unwrap_or(SITE)
    }

    /// `select(…) >> ` of these, or nothing.
    fn selected(&self, subgroup: &Subgroup) -> String {
        let mut conditions = filters(self.settings);
        if self.dialect == Dialect::H2o {
            conditions.push(h2o_eligible(self.settings));
        } else if self.has_size_rule {
            conditions.push(format!("({})", size_rule()));
        }
        match subgroup {
            Subgroup::All => {}
            Subgroup::Bin(bin) => {
                let (from, to, _) = BINS[*bin];
                conditions.push(format!(
                    r#"_["content_length"] >= {from} && _["content_length"] < {to}"#
                ));
            }
            Subgroup::Site(site) => {
                conditions.push(format!("({}) == {}", self.site(), quoted(site)));
            }
        }
        if conditions.is_empty() {
            return String::new();
        }
        format!("select({}) >> ", conditions.join(" && "))
    }

    /// The lines of the chart: change in percent at the percentiles 1 to 99.
    pub(super) fn curve(&self, subgroup: &Subgroup) -> String {
        let baseline = quoted(self.baseline);
        format!(
            r#"{}group_by({}) {{ |r| percentile(r["ttlb"] || 1e12, {CHART_SHARES}) }} >> map_values {{ |arm| arm.zip(_[{baseline}]).map {{ |a, b| (100.0 * a / b - 100).round(2) }} }} >> _.reject {{ |name| name == {baseline} }}"#,
            self.selected(subgroup),
            self.arm(),
        )
    }

    /// Percentiles in ms, and the mean of what ended, by arm.
    pub(super) fn times(&self, subgroup: &Subgroup) -> String {
        format!(
            r#"{}group_by({}) {{ |r| [average(r["ttlb"]), percentile(r["ttlb"] || 1e12, $p ||= [0.25, 0.5, 0.75, 0.9, 0.95, 0.99])] }}"#,
            self.selected(subgroup),
            self.arm(),
        )
    }

    /// How many, and how many of them ended, by arm.
    pub(super) fn counts(&self, subgroup: &Subgroup) -> String {
        format!(
            r#"{}group_by({}) {{ |r| [count(), count(r["ttlb"])] }}"#,
            self.selected(subgroup),
            self.arm(),
        )
    }

    /// The share of packets lost, in percent, by arm: mean and percentiles.
    pub(super) fn loss(&self, subgroup: &Subgroup) -> String {
        format!(
            "{}[{}, {LOSS}] >> group_by(_[0]) {{ |r| [average(r[1]), percentile(r[1], $p ||= [0.5, 0.9, 0.99])] }}",
            self.selected(subgroup),
            self.arm(),
        )
    }

    /// Other measures: each with its own expression of the row.
    pub(super) fn measure(&self, value: &str) -> String {
        format!(
            "{}[{}, {value}] >> group_by(_[0]) {{ |r| [average(r[1]), percentile(r[1], $p ||= [0.5, 0.9, 0.99]), count(r[1])] }}",
            self.selected(&Subgroup::All),
            self.arm(),
        )
    }

    pub(super) fn handshake(&self) -> String {
        self.measure(match self.dialect {
            Dialect::Named => r#"_["client.handshake"]&.round"#,
            Dialect::H2o => r#"_["handshake-confirmed-msec"]&.round"#,
        })
    }

    pub(super) fn ttfb(&self) -> String {
        self.measure(r#"_["client.ttfb"]&.round"#)
    }

    pub(super) fn episodes(&self) -> String {
        self.measure(r#"_["cc.num-loss-episodes"]"#)
    }

    pub(super) fn exits(&self) -> String {
        self.measure(EXIT_KB)
    }

    pub(super) fn probe_timeouts(&self) -> String {
        self.measure(r#"_["num-ptos"]"#)
    }
}

/// A string of Ruby's without interpolation.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '#') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}
