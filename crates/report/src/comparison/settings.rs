//! The settings of a report.

use lastbyte_record::connection_log::schema;

/// Names of arms that are the baseline if the settings name none.
pub const BASELINES: [&str; 2] = ["baseline", "slow-start"];

/// A value of each connection, which the arms are compared by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name in headings and sentences.
    pub name: String,
    /// The unit; empty for a number without one.
    pub unit: String,
    /// An expression of the query language. `None` for the time to last byte.
    expression: Option<String>,
}

impl Default for Metric {
    /// The time to last byte.
    fn default() -> Self {
        Self {
            name: "TTLB".to_owned(),
            unit: "ms".to_owned(),
            expression: None,
        }
    }
}

impl Metric {
    /// The value of a key, or of an expression of the query language. The unit is that of the key in the connection log.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self {
            name: text.to_owned(),
            unit: schema::unit_of(text).unwrap_or_default().to_owned(),
            expression: Some(expression_of(text)),
        }
    }

    /// The expression, unless it is the time to last byte.
    pub fn expression(&self) -> Option<&str> {
        self.expression.as_deref()
    }

    pub(super) const fn is_ttlb(&self) -> bool {
        self.expression.is_none()
    }

    /// The adjective for a decrease.
    pub(super) const fn less(&self) -> &'static str {
        if self.is_ttlb() { "faster" } else { "lower" }
    }

    /// The adjective for an increase.
    pub(super) const fn more(&self) -> &'static str {
        if self.is_ttlb() { "slower" } else { "higher" }
    }

    /// ` in ms`, or nothing.
    pub fn in_unit(&self) -> String {
        if self.is_ttlb() {
            format!(
                " in {}, from the request to the last acknowledgment",
                self.unit
            )
        } else if self.unit.is_empty() {
            String::new()
        } else {
            format!(" in {}", self.unit)
        }
    }
}

/// Whether a text is a key rather than an expression.
pub(super) fn is_key(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// The expression of a key, or the expression itself.
pub(crate) fn expression_of(text: &str) -> String {
    if is_key(text) {
        format!("_[\"{text}\"]")
    } else {
        text.to_owned()
    }
}

/// Networks that differ in the values of some settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The setting of the horizontal axis.
    pub axis: String,
    /// Its values.
    pub values: Vec<String>,
    /// A panel per combination of the other settings.
    pub panels: Vec<Panel>,
}

/// A panel of the chart of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    /// The common property of its networks.
    pub title: String,
    /// The names of its networks, one for each value of [`Sweep::values`].
    pub networks: Vec<String>,
}

/// What to compare, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The arm that the others are compared with. Default: `baseline` or `slow-start` if there is such an arm, else the first
    /// of the log.
    pub baseline: Option<String>,
    /// The intended share of connections of each arm, in any unit. Arms that are not listed have 1. `None` if arms were not assigned at
    /// random. Default: equal shares.
    pub shares: Option<Vec<(String, f64)>>,
    /// Selects lines: an expression of the query language. Default: all lines.
    pub filter: Option<String>,
    /// An expression that gives a line's arm. Default: the key `arm`, else H2O's flags.
    pub arm: Option<String>,
    /// An expression that gives a line's site. Default: the key `site`.
    pub site: Option<String>,
    /// The value that arms are compared by. Default: the time to last byte.
    pub metric: Metric,
    /// A key or an expression that divides the connections into groups, in place of the site. Default: the site.
    pub by: Option<String>,
    /// The limits of bins, ascending, in place of those of object sizes: see [`super::Comparison::bins`]. They are of the values of
    /// [`Settings::by`], if given, else of object sizes in bytes.
    pub bins: Option<Vec<f64>>,
    /// The size in bytes below which objects are left out. Default: 200 000 in production logs, ours or H2O's, and 0 in those
    /// of simulations and where [`Settings::arm`] is given.
    pub min_size: Option<u64>,
    /// Whether H2O's lines of connections that started at the rate of an earlier one count. Default: no.
    pub has_resumed: bool,
    /// The number of planned looks at the experiment, for which all significance levels are corrected. Default: 1.
    pub looks: u32,
    /// Whether `shares` may name arms without lines: a short log may lack an arm.
    pub may_lack_arms: bool,
    /// The change, as a share, for whose detection the page computes the number of connections. Default: none.
    pub power: Option<f64>,
    /// The command that runs a connection again, without its seed: the page lists connections to look at. Default: none.
    pub replay: Option<String>,
    /// A sweep over networks, which are the sites of the log: the page has a chart of it. Default: none.
    pub sweep: Option<Sweep>,
    /// Random seed of the bootstrap.
    pub seed: u64,
    /// The number of bootstrap resamples. Subgroups have half as many.
    pub replicates: usize,
    /// The number of threads that read the log.
    pub threads: usize,
    /// The title of the page. Default: the experiment's name.
    pub title: Option<String>,
    /// The commands that reproduce the log and the page.
    pub commands: Vec<String>,
    /// Further facts for the page, each with its name.
    pub facts: Vec<(String, String)>,
    /// Whether the inputs are states of [`super::Comparison::partial`] in place of logs.
    pub is_merge: bool,
    /// The names of the log files for the queries on the page. States have those of their logs.
    pub files: Vec<String>,
}

impl Settings {
    /// The expressions of the query language, with the names of their fields.
    pub(super) fn expressions(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let metric = self.metric.expression().map(|_| self.metric.name.as_str());
        let no_key = |text: &&str| !is_key(text);
        let given = [
            ("arm", self.arm.as_deref()),
            ("by", self.by.as_deref().filter(no_key)),
            ("metric", metric.filter(no_key)),
            ("site", self.site.as_deref()),
            ("filter", self.filter.as_deref()),
        ];
        given
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?)))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            baseline: None,
            shares: Some(Vec::new()),
            filter: None,
            arm: None,
            site: None,
            metric: Metric::default(),
            by: None,
            bins: None,
            min_size: None,
            has_resumed: false,
            looks: 1,
            may_lack_arms: false,
            power: None,
            replay: None,
            sweep: None,
            seed: 1,
            replicates: 2000,
            threads: 1,
            title: None,
            commands: Vec::new(),
            facts: Vec::new(),
            is_merge: false,
            files: Vec::new(),
        }
    }
}
