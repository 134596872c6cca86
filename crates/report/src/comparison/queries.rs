//! The queries: one that reads the log, and one for each figure and table that gives its numbers.
//!
//! Keys are the constants of `lastbyte-record`, so a query cannot use a key that no log has.

use lastbyte_record::connection_log::{
    keys::{
        ANATOMY_APPLICATION, ANATOMY_FLOW_CONTROL, ANATOMY_IDLE, ANATOMY_LAST_ACK, ANATOMY_PACING,
        ANATOMY_QUEUEING, ANATOMY_REPAIR, ANATOMY_WINDOW, ARM, CC_CWND_EXITING_SLOW_START,
        CC_NUM_LOSS_EPISODES, CLIENT_HANDSHAKE, CLIENT_TTFB, COMPLETE, CONN_ID, CONTENT_LENGTH,
        EXPERIMENT_NAME, HANDSHAKE_CONFIRMED_MSEC, JUMPSTART_CWND, JUMPSTART_PREV_RATE, MODULE,
        NEIGHBOUR_DELAY, NEIGHBOUR_KIND, NEIGHBOUR_LOSS, NEIGHBOUR_RATE, NUM_JUMPSTART_APPLICABLE,
        NUM_PACED, NUM_PACKETS_LOST, NUM_PACKETS_SENT, NUM_PTOS, NUM_RAPID_START, SEED, SITE, TIME,
        TTLB, WORKER,
    },
    schema::{self, Key},
    tcp::{PROTO, TRANSPORT},
};

use super::settings::{Settings, expression_of};

/// A range of values: object sizes in bytes, unless the settings name others.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bin {
    pub(super) from: f64,
    /// The end, which is not in the range.
    pub(super) to: f64,
    pub(super) title: String,
}

/// The default bins of object sizes.
const BINS: [(f64, f64, &str); 4] = [
    (200_000.0, 400_000.0, "200–400 kB"),
    (400_000.0, 800_000.0, "400–800 kB"),
    (800_000.0, 1_600_000.0, "0.8–1.6 MB"),
    (1_600_000.0, 3_200_000.0, "1.6–3.2 MB"),
];

/// The bins of the settings.
pub(super) fn bins(settings: &Settings) -> Vec<Bin> {
    let Some(limits) = &settings.bins else {
        let bins = BINS.map(|(from, to, title)| Bin {
            from,
            to,
            title: title.to_owned(),
        });
        return bins.to_vec();
    };
    let ranges = limits.iter().zip(limits.iter().skip(1));
    ranges
        .map(|(from, to)| Bin {
            from: *from,
            to: *to,
            title: match &settings.by {
                None => format!("{}–{} kB", kilobytes(*from), kilobytes(*to)),
                Some(by) => {
                    let unit = schema::unit_of(by).unwrap_or_default();
                    format!("{}–{} {unit}", short(*from), short(*to))
                        .trim_end()
                        .to_owned()
                }
            },
        })
        .collect()
}

fn kilobytes(bytes: f64) -> String {
    short(bytes / 1000.0)
}

/// A number with about three digits.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if decimals == 0 {
        return text;
    }
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

/// The value that bins are of.
fn bin_value(settings: &Settings) -> String {
    match (&settings.bins, &settings.by) {
        (Some(_), Some(by)) => expression_of(by),
        _ => of(CONTENT_LENGTH),
    }
}

/// The query for the limits of `count` bins: the percentiles of their values, of the lines that count, and the number of lines that have
/// a value. Of states, it reads only the rows: what is wrong with the other lines is found by the pass that counts.
pub(super) fn bin_limits(settings: &Settings, count: usize) -> String {
    let of = |column: Column| {
        if settings.is_merge {
            format!("_[{}]", column as usize)
        } else {
            format!("({})", expressions(settings)[column as usize])
        }
    };
    let (value, selected) = match &settings.by {
        _ if settings.is_merge => (
            of(Column::Bin),
            vec![format!("_.length == {}", columns(settings))],
        ),
        Some(by) => (expression_of(by), filters(settings)),
        None => (self::of(CONTENT_LENGTH), filters(settings)),
    };
    let mut counting = vec![
        format!(
            "({} != nil || {} != nil)",
            of(Column::Named),
            of(Column::H2oArm)
        ),
        format!("{} == 0", of(Column::Rules)),
    ];
    if !settings.metric.is_ttlb() {
        counting.push(format!("{} != nil", of(Column::Value)));
    }
    let shares: Vec<String> = (0..=count)
        .map(|limit| {
            // The first value above the share, which is the start of the next bin.
            let above = if limit % count == 0 { 0.0 } else { 1e-6 };
            ((limit as f64 + above) / count as f64).to_string()
        })
        .collect();
    let select = match selected.join(" && ") {
        all if all.is_empty() => String::new(),
        conditions => format!("select({conditions}) >> "),
    };
    format!(
        "{select}[percentile({} ? ({value}) : nil, [{}]), count({value})]",
        counting.join(" && "),
        shares.join(", ")
    )
}

/// The parts of a time to last byte, with their names.
pub(super) const PARTS: [(Key, &str); 8] = [
    (ANATOMY_APPLICATION, "application"),
    (ANATOMY_FLOW_CONTROL, "flow control"),
    (ANATOMY_PACING, "pacing"),
    (ANATOMY_WINDOW, "window"),
    (ANATOMY_IDLE, "idle"),
    (ANATOMY_QUEUEING, "queueing"),
    (ANATOMY_REPAIR, "repair"),
    (ANATOMY_LAST_ACK, "last acknowledgment"),
];

/// The smallest object of a production log that counts, in bytes, unless [`Settings::min_size`] overrides it. Smaller ones take
/// few round trips, so startup algorithms make no difference to them.
pub(super) const PRODUCTION_SIZE_MIN: u64 = 200_000;

/// The value of a key in a line.
fn of(key: Key) -> String {
    format!("_[\"{key}\"]")
}

/// An expression of the query language that gives the arm of a line of H2O's, by the flags that it writes.
pub fn h2o_arm() -> String {
    let (rapid, jump) = (of(NUM_RAPID_START), of(JUMPSTART_CWND));
    format!(
        r#"{rapid} > 0 ? ({jump} > 0 ? "rapid-start" : "rapid-no-jump") : ({jump} > 0 ? "jumpstart" : "slow-start")"#
    )
}

/// The rules by which lines of production logs are left out, as bits of [`Column::Rules`].
pub(super) const JUMP: usize = 1;
pub(super) const PACED: usize = 2;
pub(super) const RESUMED: usize = 4;
pub(super) const SMALL: usize = 8;

/// The rules for H2O's lines, with the condition for a line to count: a jump could have shown, packets are paced, and no earlier
/// connection's rate was used.
fn h2o_rules(settings: &Settings) -> Vec<(usize, String)> {
    let mut rules = vec![
        (JUMP, format!("{} == 1", of(NUM_JUMPSTART_APPLICABLE))),
        (PACED, format!("{} == 1", of(NUM_PACED))),
    ];
    if !settings.has_resumed {
        rules.push((RESUMED, format!("{} == 0", of(JUMPSTART_PREV_RATE))));
    }
    // A minimum size in the settings filters all lines.
    if settings.min_size.is_none() {
        rules.push((SMALL, at_least(PRODUCTION_SIZE_MIN)));
    }
    rules
}

/// Whether a line of H2O's counts.
fn h2o_eligible(settings: &Settings) -> String {
    let rules = h2o_rules(settings);
    let (first, rest): (Vec<_>, Vec<_>) = rules
        .into_iter()
        .map(|(rule, counts)| (rule != SMALL, counts))
        .partition(|(is_first, _)| *is_first);
    let flags = [NUM_RAPID_START, JUMPSTART_CWND].map(|key| (true, of(key)));
    let all = first.into_iter().chain(flags).chain(rest);
    let all: Vec<String> = all.map(|(_, condition)| condition).collect();
    all.join(" && ")
}

/// Objects of this size or larger.
fn at_least(bytes: u64) -> String {
    format!("({} || 0) >= {bytes}", of(CONTENT_LENGTH))
}

/// The rule on sizes for lines that name their arm, if there is no [`Settings::min_size`]. It applies to production servers of
/// ours: sizes of the simulator are part of the experiment, and the rule does not apply to other programs.
fn size_rule() -> String {
    format!(
        r#"{} != "lastbyte" || {} || {}"#,
        of(MODULE),
        of(SEED),
        at_least(PRODUCTION_SIZE_MIN)
    )
}

/// The share of packets lost, in percent.
fn loss() -> String {
    let (sent, lost) = (of(NUM_PACKETS_SENT), of(NUM_PACKETS_LOST));
    format!("({sent} || 0) > 0 && {lost} ? (100.0 * {lost} / {sent}).round(2) : nil")
}

/// The window at the exit from startup, in kB.
fn exit_kb() -> String {
    let window = of(CC_CWND_EXITING_SLOW_START);
    format!("({window} || 0) > 0 ? ({window} / 1000.0).round : nil")
}

fn rounded(key: Key) -> String {
    format!("{}&.round", of(key))
}

fn site(settings: &Settings) -> String {
    let by = settings.by.as_ref().filter(|_| settings.bins.is_none());
    let by = by.map(|by| expression_of(by));
    by.or_else(|| settings.site.clone())
        .unwrap_or_else(|| of(SITE))
}

/// The kind of a log's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Lines that name their arm, or whose arm the settings define.
    #[default]
    Named,
    /// H2O's, whose arm follows from flags.
    H2o,
}

/// Declares the columns of the reading query: a variant and an expression each.
macro_rules! columns {
    (|$settings:ident| $($(#[$about:meta])* $column:ident: $expression:expr;)*) => {
        /// A column of the reading query. Its number is its place in a row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Column {
            $($(#[$about])* $column,)*
        }

        /// The expressions of all columns, in their order.
        fn expressions($settings: &Settings) -> Vec<String> {
            vec![$($expression,)*]
        }
    };
}

columns! { |settings|
    /// The arm that a line names.
    Named: settings.arm.clone().unwrap_or_else(|| of(ARM));
    /// The arm by H2O's flags.
    H2oArm: match settings.arm {
        Some(_) => "nil".to_owned(),
        None => format!("{} && {} ? ({}) : nil", of(NUM_RAPID_START), of(JUMPSTART_CWND), h2o_arm()),
    };
    /// The rules by which the line is left out, as a sum of bits; 0 if it counts.
    Rules: rules(settings);
    Site: site(settings);
    /// The value that puts the line into a bin.
    Bin: bin_value(settings);
    /// The time to last byte, or the value that is compared in its place; `false` where a time contradicts that the transfer is incomplete.
    Value: settings.metric.expression().map_or_else(
        || format!("{0} == false && {1} ? false : {1}", of(COMPLETE), of(TTLB)),
        |value| format!("({value})"),
    );
    Loss: loss();
    Handshake: rounded(CLIENT_HANDSHAKE);
    Confirmed: rounded(HANDSHAKE_CONFIRMED_MSEC);
    Ttfb: rounded(CLIENT_TTFB);
    Episodes: of(CC_NUM_LOSS_EPISODES);
    ExitKb: exit_kb();
    ProbeTimeouts: of(NUM_PTOS);
    Seed: of(SEED);
    /// When a server wrote the line. In simulations, time starts with each connection.
    Time: format!("{} ? nil : {}", of(SEED), of(TIME));
    /// What numbers the connection at a server, as an array.
    Connection: format!("{} ? [{}] : nil", of(CONN_ID), [CONN_ID, WORKER, TRANSPORT].map(of).join(", "));
    Experiment: of(EXPERIMENT_NAME);
    /// The outcome of its neighbour, as an array.
    Neighbour: format!(
        "{} ? [{}] : nil",
        of(NEIGHBOUR_KIND),
        [NEIGHBOUR_KIND, NEIGHBOUR_RATE, NEIGHBOUR_DELAY, NEIGHBOUR_LOSS].map(of).join(", ")
    );
    /// The parts of its time, as an array.
    Parts: format!("{} ? [{}] : nil", of(ANATOMY_LAST_ACK), PARTS.map(|(key, _)| of(key)).join(", "));
}

/// Columns whose expression has the name of the file, which is not of the line.
pub(super) fn names_file(settings: &Settings) -> Vec<bool> {
    let expressions = expressions(settings);
    let has_name = expressions.iter().map(|it| it.contains("$FILENAME"));
    has_name.collect()
}

/// The number of columns.
pub(super) fn columns(settings: &Settings) -> usize {
    expressions(settings).len()
}

fn rules(settings: &Settings) -> String {
    if settings.arm.is_some() {
        return "0".to_owned();
    }
    let bit = |(rule, counts): (usize, String)| format!("(({counts}) ? 0 : {rule})");
    let named = match settings.min_size {
        Some(_) => "0".to_owned(),
        None => bit((SMALL, size_rule())),
    };
    let h2o: Vec<String> = h2o_rules(settings).into_iter().map(bit).collect();
    format!("{} ? {named} : {}", of(ARM), h2o.join(" + "))
}

/// The query that reads a log: of each line, the columns as an array. It keeps nothing from line to line, so any number of
/// threads can run it.
pub(super) fn reading(settings: &Settings) -> String {
    reading_after(settings, "")
}

/// The same, with the name of the file before the columns.
pub(super) fn reading_with_file(settings: &Settings) -> String {
    reading_after(settings, "$FILENAME, ")
}

fn reading_after(settings: &Settings, first: &str) -> String {
    let row = format!("[{first}{}]", expressions(settings).join(", "));
    match filters(settings).join(" && ") {
        filter if filter.is_empty() => row,
        filter => format!("select({filter}) >> {row}"),
    }
}

/// Conditions for lines to count. An expression for the arm gives every line an arm, so lines over TCP are excluded unless the
/// expression uses the transport.
fn filters(settings: &Settings) -> Vec<String> {
    let is_loose = |text: &str| {
        ["||", "?", " or ", " and ", "not "]
            .iter()
            .any(|one| text.contains(one))
    };
    let filter = settings.filter.iter().map(|filter| {
        // It is joined with other conditions.
        if is_loose(filter) {
            format!("({filter})")
        } else {
            filter.clone()
        }
    });
    let mut filters: Vec<String> = filter.collect();
    if let Some(arm) = &settings.arm
        && ![TRANSPORT, PROTO]
            .iter()
            .any(|key| arm.contains(key.name()))
    {
        filters.push(format!(r#"{} != "tcp""#, of(TRANSPORT)));
    }
    filters.extend(settings.min_size.map(at_least));
    filters
}

/// The connections that a query covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subgroup {
    All,
    Bin(usize),
    Site(String),
}

/// Builds the queries for a log.
#[derive(Debug)]
pub(super) struct QueryBuilder<'a> {
    settings: &'a Settings,
    dialect: Dialect,
    baseline: &'a str,
    /// Whether lines of small objects are left out.
    has_size_rule: bool,
    /// Whether incomplete transfers have a time.
    has_contradictions: bool,
}

/// The percentiles of charts, as shares.
pub(super) fn chart_shares() -> Vec<f64> {
    (1..=99)
        .map(|percentile| f64::from(percentile) / 100.0)
        .collect()
}

/// The same in a query.
const CHART_SHARES: &str = "$p ||= (1..99).map { |p| p / 100.0 }";

impl<'a> QueryBuilder<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        dialect: Dialect,
        baseline: &'a str,
        has_size_rule: bool,
        has_contradictions: bool,
    ) -> Self {
        Self {
            settings,
            dialect,
            baseline,
            has_size_rule,
            has_contradictions,
        }
    }

    fn arm(&self) -> String {
        match (&self.settings.arm, self.dialect) {
            (Some(arm), _) => arm.clone(),
            (None, Dialect::Named) => of(ARM),
            (None, Dialect::H2o) => h2o_arm(),
        }
    }

    /// The value of the row that is compared, in a block over rows.
    fn value(&self) -> String {
        match self.settings.metric.expression() {
            None if self.has_contradictions => {
                format!("(r[\"{COMPLETE}\"] == false ? nil : r[\"{TTLB}\"])")
            }
            None => format!("r[\"{TTLB}\"]"),
            Some(value) => format!("({value})"),
        }
    }

    /// The same for percentiles: transfers that never completed are slower than all others.
    fn ranked(&self) -> String {
        if self.settings.metric.is_ttlb() {
            format!("{} || 1e12", self.value())
        } else {
            self.value()
        }
    }

    /// The stage `select(…) >> ` for a subgroup, or nothing.
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
                let value = bin_value(self.settings);
                if let Some(Bin { from, to, .. }) = bins(self.settings).get(*bin) {
                    conditions.push(format!("{value} >= {from} && {value} < {to}"));
                }
            }
            Subgroup::Site(name) => {
                conditions.push(format!("({}) == {}", site(self.settings), quoted(name)));
            }
        }
        if conditions.is_empty() {
            return String::new();
        }
        format!("select({}) >> ", conditions.join(" && "))
    }

    /// The curves of the chart: change in percent at the percentiles 1 to 99.
    pub(super) fn curve(&self, subgroup: &Subgroup) -> String {
        let baseline = quoted(self.baseline);
        format!(
            r"{}group_by({}) {{ |r| percentile({}, {CHART_SHARES}) }} >> map_values {{ |arm| arm.zip(_[{baseline}]).map {{ |a, b| (100.0 * a / b - 100).round(2) }} }} >> _.reject {{ |name| name == {baseline} }}",
            self.selected(subgroup),
            self.arm(),
            self.ranked(),
        )
    }

    /// The change of each path in percent at the percentiles 1 to 99, for connections in pairs.
    pub(super) fn paths(&self, subgroup: &Subgroup, arm: &str) -> String {
        let time_of = |name: &str| {
            format!(
                "average({} == {} ? {} : nil)",
                self.arm(),
                quoted(name),
                self.ranked()
            )
        };
        format!(
            r"{}group_by({}) {{ |r| [{}, {}] }} >> _.values >> flat >> select(_[0] && _[1]) >> (100.0 * _[0] / _[1] - 100).round(2) >> percentile(_, {CHART_SHARES})",
            self.selected(subgroup),
            of(SEED),
            time_of(arm),
            time_of(self.baseline),
        )
    }

    /// Percentiles in ms, and the mean of completed transfers, by arm.
    pub(super) fn times(&self, subgroup: &Subgroup) -> String {
        format!(
            "{}group_by({}) {{ |r| [average({}), percentile({}, $p ||= [0.25, 0.5, 0.75, 0.9, 0.95, 0.99])] }}",
            self.selected(subgroup),
            self.arm(),
            self.value(),
            self.ranked(),
        )
    }

    /// Connections and completed transfers by arm.
    pub(super) fn counts(&self, subgroup: &Subgroup) -> String {
        format!(
            "{}group_by({}) {{ |r| [count(), count({})] }}",
            self.selected(subgroup),
            self.arm(),
            self.value(),
        )
    }

    /// The share of packets lost, in percent, by arm: mean and percentiles.
    pub(super) fn loss(&self, subgroup: &Subgroup) -> String {
        format!(
            "{}[{}, {}] >> group_by(_[0]) {{ |r| [average(r[1]), percentile(r[1], $p ||= [0.5, 0.9, 0.99])] }}",
            self.selected(subgroup),
            self.arm(),
            loss(),
        )
    }

    /// Another measure, given as an expression of the row.
    fn measure(&self, value: &str) -> String {
        format!(
            "{}[{}, {value}] >> group_by(_[0]) {{ |r| [average(r[1]), percentile(r[1], $p ||= [0.5, 0.9, 0.99]), count(r[1])] }}",
            self.selected(&Subgroup::All),
            self.arm(),
        )
    }

    /// The mean of each part of the times of completed transfers, by arm.
    pub(super) fn parts(&self) -> String {
        let means = PARTS.map(|(key, _)| format!("average(r[\"{key}\"])"));
        let complete = if self.has_contradictions {
            format!("{} != false && ", of(COMPLETE))
        } else {
            String::new()
        };
        format!(
            "{}select({complete}{} && {}) >> group_by({}) {{ |r| [{}] }}",
            self.selected(&Subgroup::All),
            of(TTLB),
            of(ANATOMY_LAST_ACK),
            self.arm(),
            means.join(", "),
        )
    }

    /// The outcome of a kind of neighbour, by arm: the median rate, the mean delay and the mean loss.
    pub(super) fn neighbours(&self, kind: &str) -> String {
        format!(
            "{}select({} == {}) >> group_by({}) {{ |r| [percentile(r[\"{NEIGHBOUR_RATE}\"], 0.5), average(r[\"{NEIGHBOUR_DELAY}\"]), average(r[\"{NEIGHBOUR_LOSS}\"])] }}",
            self.selected(&Subgroup::All),
            of(NEIGHBOUR_KIND),
            quoted(kind),
            self.arm(),
        )
    }

    pub(super) fn handshake(&self) -> String {
        self.measure(&rounded(match self.dialect {
            Dialect::Named => CLIENT_HANDSHAKE,
            Dialect::H2o => HANDSHAKE_CONFIRMED_MSEC,
        }))
    }

    pub(super) fn ttfb(&self) -> String {
        self.measure(&rounded(CLIENT_TTFB))
    }

    pub(super) fn episodes(&self) -> String {
        self.measure(&of(CC_NUM_LOSS_EPISODES))
    }

    pub(super) fn exits(&self) -> String {
        self.measure(&exit_kb())
    }

    pub(super) fn probe_timeouts(&self) -> String {
        self.measure(&of(NUM_PTOS))
    }
}

/// A Ruby string literal without interpolation.
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
