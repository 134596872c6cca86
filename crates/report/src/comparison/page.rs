//! The page: its sections, and the data for its script.
//!
//! The page loads nothing, and its policy forbids it. All results are in the markup: the script only moves the read-out to
//! another percentile and copies queries. Names and texts from logs are escaped.

use core::fmt::Write;

use serde_json::{Value, json};

use super::{
    analysis::{Analysis, Group},
    balance::{ALARM, By},
    bars,
    figure::{self, Chart, Size, Subject},
    format::{self, count, counted, percent, percent_range},
    queries::{Dialect, Subgroup, chart_shares},
    sweep, tables,
    text::{self, Significance},
    warnings,
};
use crate::{
    document::{self, Script, with_code},
    scale::Changes,
    scene::Scene,
    statistics::{Counts, bootstrap::Interval},
    svg::{self, escaped, lines, script_safe},
};

mod balance;
mod harm;
mod json;
mod notable;

use self::json::in_milliseconds;
pub(super) use self::json::json;

const STYLE: &str = include_str!("page.css");
const PROGRAM: &str = include_str!("page.js");

/// The page.
pub(super) fn document(analysis: &Analysis) -> String {
    let mut page = Page {
        analysis,
        body: String::new(),
        charts: Vec::new(),
    };
    page.head();
    page.overall();
    page.paths();
    page.sweep();
    page.parts_of_times();
    page.harm();
    page.verdicts();
    let [bins, sites] = text::dimensions(analysis);
    page.parts("size", &format!("By {bins}"), |subgroup| {
        matches!(subgroup, Subgroup::Bin(_))
    });
    page.parts("site", &format!("By {sites}"), |subgroup| {
        matches!(subgroup, Subgroup::Site(_))
    });
    page.times();
    page.losses();
    page.ended();
    page.measures();
    page.notable();
    page.power();
    page.ratio();
    page.method();
    let data =
        script_safe(&json!({ "arms": arm_names(analysis), "unit": analysis.settings.metric.unit, "charts": page.charts }).to_string());
    let script = Script {
        data: &data,
        program: PROGRAM,
    };
    document::page(&text::title(analysis), &[STYLE], &page.body, Some(&script))
}

fn arm_names(analysis: &Analysis) -> Vec<&str> {
    analysis.arms.iter().map(|arm| arm.name.as_str()).collect()
}

/// A value of a card, grey unless it is significant.
fn value(text: &str, is_significant: bool) -> String {
    if is_significant {
        format!("<dd>{text}</dd>")
    } else {
        format!("<dd class=\"unsure\" title=\"not significant\">{text}</dd>")
    }
}

fn absent_value() -> String {
    format!("<dd class=\"unsure\">{}</dd>", format::ABSENT)
}

/// How connections were assigned to arms. It is known only for an experiment of ours.
fn assignment(analysis: &Analysis) -> String {
    let is_known = analysis.dialect == Dialect::Named
        && analysis.experiment.is_some()
        && analysis.settings.arm.is_none()
        && analysis.unpaired.is_none();
    if analysis.settings.shares.is_none() {
        return "each in one arm, which was not assigned at random".to_owned();
    }
    let failed = analysis.balance.iter();
    let failed: Vec<By> = failed
        .filter(|test| test.adjusted < ALARM)
        .map(|test| test.by)
        .collect();
    if failed.is_empty() {
        let text = if is_known {
            "each assigned at random to one arm"
        } else {
            "each in one arm; this page assumes that it was assigned at random"
        };
        return text.to_owned();
    }
    // The totals may be as intended, and those of the sites not.
    let by = if failed.contains(&By::Total) {
        String::new()
    } else {
        let names: Vec<&str> = failed.iter().map(|by| by.name()).collect();
        format!(" by {}", text::listed(&names))
    };
    format!("each in one arm, in numbers{by} that random assignment does not give")
}

struct Page<'a> {
    analysis: &'a Analysis,
    body: String,
    charts: Vec<Value>,
}

impl Page<'_> {
    fn add(&mut self, text: &str) {
        self.body.push_str(text);
    }

    /// Starts a section.
    fn section(&mut self, id: &str, title: &str) {
        let title = escaped(title);
        let _ = writeln!(self.body, "<section id=\"{id}\"><h2>{title}</h2>");
    }

    fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", with_code(text));
    }

    fn list(&mut self, class: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        let _ = writeln!(self.body, "<ul class=\"{class}\">");
        for item in items {
            let _ = writeln!(self.body, "<li>{}</li>", self.marked(item));
        }
        self.add("</ul>\n");
    }

    /// A sentence, with the mark of the arm whose name it starts with.
    fn marked(&self, sentence: &str) -> String {
        for (arm, one) in self.analysis.arms.iter().enumerate().skip(1) {
            if let Some(rest) = sentence.strip_prefix(one.name.as_str())
                && rest.starts_with([':', ' '])
            {
                return format!(
                    "<b>{}</b>{}",
                    tables::named(&one.name, Some(arm)),
                    with_code(rest)
                );
            }
        }
        with_code(sentence)
    }

    fn head(&mut self) {
        let analysis = self.analysis;
        let total: u64 = analysis.groups[0].times.iter().map(Counts::total).sum();
        let names: Vec<&str> = analysis
            .arms
            .iter()
            .skip(1)
            .map(|arm| arm.name.as_str())
            .collect();
        let kind = if analysis.is_paired {
            let each = match analysis.incomplete_paths {
                0 => "each in every arm".to_owned(),
                some => format!("{} of them not in every arm", count(some as u64)),
            };
            format!("{} paths, {each}", count(analysis.pairs as u64))
        } else {
            assignment(analysis)
        };
        let text = format!(
            "{} of {} relative to {}. {} connections, {kind}.",
            text::long_name(analysis),
            text::listed(&names),
            analysis.arms[0].name,
            count(total)
        );
        let title = escaped(&text::title(analysis));
        let _ = writeln!(
            self.body,
            "<header><h1>{title}</h1><p>{}</p>\n<nav aria-label=\"Sections\">{}</nav></header>\n<main{}>",
            escaped(&text),
            self.links(),
            if analysis.ratio_fails() {
                " class=\"fails\""
            } else {
                ""
            }
        );
        self.aside("warning", "Warnings", &warnings::warnings(analysis));
        self.cards();
        let mut notes = warnings::notes(analysis);
        notes.push(text::looks(analysis));
        self.aside("notes", "Notes", &notes);
    }

    /// Sentences in a box.
    fn aside(&mut self, class: &str, title: &str, sentences: &[String]) {
        if sentences.is_empty() {
            return;
        }
        let _ = writeln!(
            self.body,
            "<section class=\"{class}\" role=\"note\" aria-label=\"{title}\"><h2>{title}</h2>"
        );
        self.list("plain", sentences);
        self.add("</section>\n");
    }

    fn links(&self) -> String {
        let has = |wanted: fn(&Subgroup) -> bool| {
            self.analysis
                .groups
                .iter()
                .any(|group| wanted(&group.subgroup))
        };
        let [bins, sites] = text::dimensions(self.analysis);
        let analysis = self.analysis;
        let mut links = vec![("all", "Overall"), ("verdict", "Significance")];
        if has(|subgroup| matches!(subgroup, Subgroup::Bin(_))) {
            links.push(("size", if bins == "object size" { "Size" } else { bins }));
        }
        if has(|subgroup| matches!(subgroup, Subgroup::Site(_))) {
            links.push(("site", if sites == "site" { "Site" } else { sites }));
        }
        if self.analysis.settings.sweep.is_some() {
            links.insert(1, ("sweep", "Sweep"));
        }
        if self.analysis.neighbours.is_some() {
            links.insert(1, ("harm", "Harm"));
        }
        if self.analysis.parts.is_some() {
            links.insert(1, ("parts", "Where the time goes"));
        }
        if self.analysis.paths.is_some() {
            links.insert(1, ("paths", "Each path"));
        }
        links.extend([
            ("times", analysis.settings.metric.name.as_str()),
            ("loss", "Loss"),
            ("ended", "Completion"),
            ("measures", "Other measures"),
            ("notable", "Connections"),
            ("power", "Power"),
            ("ratio", "Sample ratio"),
            ("method", "Method"),
        ]);
        let links = links
            .iter()
            .filter(|(id, _)| match *id {
                "ended" => analysis.settings.metric.is_ttlb(),
                "notable" => analysis.notable.is_some(),
                "power" => analysis.power.is_some(),
                _ => true,
            })
            .map(|(id, text)| format!("<a href=\"#{id}\">{}</a>", escaped(text)));
        links.collect::<Vec<_>>().join(" ")
    }

    /// The results in short: a card per arm.
    fn cards(&mut self) {
        let analysis = self.analysis;
        let group = &analysis.groups[0];
        let is_valid = !analysis.ratio_fails();
        self.add("<div class=\"cards\">\n");
        for (arm, one) in analysis.arms.iter().enumerate().skip(1) {
            let cell = group.curves[arm][49];
            let estimate = cell
                .estimate
                .map_or_else(|| format::ABSENT.to_owned(), percent);
            // The largest text of the page is copied most: it is grey unless it is significant.
            let (class, verdict) = match text::significance(&cell) {
                _ if analysis.ratio_fails() => {
                    ("big unsure", ", no verdict: the sample ratio fails")
                }
                Significance::Faster => ("big faster", ""),
                Significance::Slower => ("big slower", ""),
                Significance::None if cell.estimate.is_none() => ("big unsure", ""),
                Significance::None => ("big unsure", ", not significant"),
            };
            let range = match (cell.together, cell.alone) {
                (Some(range), _) => format!(
                    "{}, 95\u{a0}% simultaneous over P5–P95 and all arms",
                    percent_range(range)
                ),
                (None, Some(range)) => format!("{}, 95\u{a0}% at P50 alone", percent_range(range)),
                (None, None) => cell.absent.map_or_else(
                    || "too few connections for an interval".to_owned(),
                    |absent| format!("no change of the median: {}", text::why_absent(absent)),
                ),
            };
            let mean = group.means_together[arm].map_or_else(absent_value, |mean| {
                value(&percent(mean.value), is_valid && mean.excludes_zero())
            });
            let loss = analysis
                .loss
                .first()
                .and_then(|loss| format::hundredths(loss.together[arm]));
            let loss = loss.map_or_else(absent_value, |loss| {
                value(
                    &format::points(loss.value),
                    is_valid && loss.excludes_zero(),
                )
            });
            let (overall_name, overall) = group.overall[arm].map_or_else(
                || ("mean of P5–P95".to_owned(), absent_value()),
                |one| {
                    let text = percent(one.estimate.value);
                    let is_significant = is_valid && one.estimate.excludes_zero();
                    (text::overall_name(&one), value(&text, is_significant))
                },
            );
            let p90 = group.curves[arm][89];
            let p90 = p90.estimate.map_or_else(absent_value, |estimate| {
                value(
                    &percent(estimate),
                    is_valid && text::significance(&p90) != Significance::None,
                )
            });
            let slower = analysis.paths.as_ref().and_then(|paths| paths.slower[arm]);
            let slower = slower.map_or_else(String::new, |slower| {
                format!(
                    "<div><dt>paths {} by &gt;\u{a0}5\u{a0}%</dt><dd>{}</dd></div>",
                    analysis.settings.metric.more(),
                    format::share(slower.value)
                )
            });
            let _ = writeln!(
                self.body,
                "<div class=\"card\"><h2>{}</h2><p class=\"{class}\">{estimate}</p><p>median {}{verdict}</p><p>{range}</p>\
                 <dl><div><dt>{overall_name}</dt>{overall}</div><div><dt>P90</dt>{p90}</div><div><dt>mean</dt>{mean}</div><div><dt>mean loss</dt>{loss}</div>{slower}</dl></div>",
                tables::named(&one.name, Some(arm)),
                escaped(&analysis.settings.metric.name),
            );
        }
        self.add("</div>\n");
    }

    fn overall(&mut self) {
        let group = &self.analysis.groups[0];
        let metric = &self.analysis.settings.metric;
        self.section("all", &format!("{} change by percentile", metric.name));
        self.slider();
        self.chart(Subject::Group(group), &[Size::Wide, Size::Narrow]);
        let note = format!(
            "<p class=\"note\">Left of zero is {}. The value at P50 is the change of the median: (arm − baseline) / baseline. Bands are 95 % intervals \
             for each percentile alone. Dashed lines are 95 % simultaneous intervals over P5 to P95 and all arms: a difference is significant \
             where both dashed lines of an arm lie on the same side of zero. {}</p>\n",
            metric.less(),
            if metric.is_ttlb() {
                "Transfers that never completed count as slower than all others."
            } else {
                "Where a percentile of the baseline is 0 there is no change."
            }
        );
        self.add(&note);
        self.query(&group.curve_query);
        self.numbers(group);
        self.add("</section>\n");
    }

    /// The change of each path, of paired connections.
    fn paths(&mut self) {
        let analysis = self.analysis;
        let Some(paths) = &analysis.paths else {
            return;
        };
        let metric = &analysis.settings.metric;
        self.section("paths", &format!("{} change of each path", metric.name));
        self.chart(Subject::Paths(paths), &[Size::Wide, Size::Narrow]);
        self.list("verdicts", &text::paths(analysis));
        let (less, more) = (metric.less(), metric.more());
        let note = format!(
            "<p class=\"note\">The chart above compares percentiles of all connections: a path that became {more} and one that became {less} cancel. \
             Here each path counts on its own: its change is (arm − baseline) / baseline of the two connections over it, and the chart shows \
             the distribution of these changes. Where a line crosses zero, the arm is {less} below and {more} above. A path on which neither \
             transfer completed is unchanged. Intervals of a percentile lie between two of the values (order statistics); the shares have \
             Wilson’s intervals, simultaneous over all shares of this list (Bonferroni).</p>\n",
        );
        self.add(&note);
        self.add(&tables::paths(analysis, paths));
        let arms = analysis.arms.iter().zip(&paths.queries).skip(1);
        self.queries(arms.map(|(arm, query)| (arm.name.as_str(), query.as_str())));
        self.add("</section>\n");
    }

    /// The medians over the networks of a sweep.
    fn sweep(&mut self) {
        let analysis = self.analysis;
        let Some(sweep) = &analysis.settings.sweep else {
            return;
        };
        let axis = escaped(&sweep.axis);
        let of = escaped(&text::of_metric(analysis));
        let _ = writeln!(
            self.body,
            "<section id=\"sweep\"><h2>Median change{of} by {axis}</h2>\n<div class=\"chart\">"
        );
        self.plots(|size| sweep::chart(analysis, sweep, size));
        self.add(
            "</div>\n<p class=\"note\">Each point is the change of the median over one network, below zero is less; bars are 95 % intervals of each alone, \
             and an arrow marks one that is longer than the axis. \
             A point is pale unless the arm differs on this network by the test in the section by site, which is corrected for the \
             number of tests (Holm).</p></section>\n",
        );
    }

    /// Where the time of transfers goes.
    fn parts_of_times(&mut self) {
        let analysis = self.analysis;
        let Some(parts) = &analysis.parts else {
            return;
        };
        self.add("<section id=\"parts\"><h2>Where the time goes</h2>\n<div class=\"chart\">\n");
        self.plots(|size| bars::chart(analysis, parts, size));
        self.add("</div>\n");
        self.list("verdicts", &text::parts(analysis));
        self.add(
            "<p class=\"note\">Each moment of a transfer, from the request to the last acknowledgment, belongs to one part, as the sender sees it: \
             application: nothing to send; flow control: the client's limits allowed none of the data; pacing: the pacer held data back; window: the window was full between \
             acknowledgments that followed each other closely; idle: the window was full and the path idle after a flight; queueing: the \
             window was full, and the flight waited before the bottleneck; repair: losses were repaired; last acknowledgment: all had been \
             sent. Bars are means of completed transfers of an arm between two percentiles of their TTLB; in each group the longest has the \
             full width. Intervals are 95 % simultaneous over all parts and arms (Bonferroni).</p>\n",
        );
        if let Some(note) = parts.note() {
            let _ = writeln!(self.body, "<p class=\"note\">{}</p>", with_code(&note));
        }
        self.add(&tables::parts(analysis, parts));
        self.query(&parts.query);
        self.add("</section>\n");
    }

    /// A chart for screens, and one for phones.
    fn plots(&mut self, of: impl Fn(Size) -> Scene) {
        for (size, class) in [(Size::Wide, "wide"), (Size::Narrow, "narrow")] {
            let drawn = svg::inline(&of(size));
            let _ = writeln!(self.body, "<div class=\"plot {class}\">{drawn}</div>");
        }
    }

    /// The slider that moves the read-out in all charts.
    fn slider(&mut self) {
        self.add(
            "<div class=\"slider\" hidden><label for=\"percentile\">Show percentile</label>\
             <input type=\"range\" id=\"percentile\" min=\"1\" max=\"99\" value=\"50\" step=\"1\">\
             <output for=\"percentile\" id=\"shown\">P50</output></div>\n",
        );
    }

    /// A chart in one or more sizes, with its read-out.
    fn chart(&mut self, subject: Subject<'_>, sizes: &[Size]) {
        let analysis = self.analysis;
        let title = match subject {
            Subject::Group(group) if group.subgroup != Subgroup::All => {
                let total: u64 = group.times.iter().map(Counts::total).sum();
                let is_small = (1..analysis.arms.len()).any(|arm| group.is_small(arm));
                let few = if is_small {
                    " (few: read the bands)"
                } else {
                    ""
                };
                format!(
                    "<b>{}</b> <span>{}{few}</span>",
                    escaped(&group.title),
                    counted(total, "connection", "connections")
                )
            }
            Subject::Neighbour(kind) => format!(
                "<b>{}</b> <span>{}</span>",
                escaped(&kind.name),
                counted(
                    kind.counts.iter().copied().max().unwrap_or(0),
                    "path",
                    "paths"
                )
            ),
            Subject::Group(_) | Subject::Paths(_) => String::new(),
        };
        let number = self.charts.len();
        // The main charts have bands that show it.
        let is_unsure = match subject {
            Subject::Group(group) => {
                group.subgroup != Subgroup::All
                    && !(1..analysis.arms.len()).any(|arm| group.differs(arm))
            }
            Subject::Neighbour(kind) => !kind.is_significant(),
            Subject::Paths(_) => false,
        };
        let _ = writeln!(
            self.body,
            "<figure class=\"chart{}\" data-chart=\"{number}\"><figcaption>{title}</figcaption>",
            if is_unsure { " unsure" } else { "" }
        );
        let mut plots = Vec::new();
        for size in sizes {
            let Chart { scene, plot } = figure::chart(analysis, subject, *size);
            let class = match (size, sizes.len()) {
                (Size::Wide, 2..) => "wide",
                (Size::Narrow, 2..) => "narrow",
                _ => "only",
            };
            let _ = writeln!(
                self.body,
                "<div class=\"plot {class}\">{}</div>",
                svg::inline(&scene)
            );
            plots.push(json!([
                plot.left,
                plot.top,
                plot.right,
                plot.bottom,
                plot.domain.0,
                plot.domain.1,
                Changes::is_logarithmic(plot.domain)
            ]));
        }
        let _ = writeln!(
            self.body,
            "<div class=\"read\">{}</div></figure>",
            self.readout(subject, 50)
        );
        // The times of an arm at P1 to P99. Paths have changes only.
        let times = |arm: usize| match subject {
            Subject::Paths(_) | Subject::Neighbour(_) => None,
            Subject::Group(group) if group.times[arm].total() == 0 => None,
            Subject::Group(group) => Some(
                chart_shares()
                    .iter()
                    .map(|share| group.times[arm].percentile(*share).map(in_milliseconds))
                    .collect::<Vec<_>>(),
            ),
        };
        let arms: Vec<Value> = (1..analysis.arms.len())
            .map(|arm| {
                let curve = &subject.curves()[arm];
                let column = |of: &dyn Fn(&Interval) -> Option<f64>| {
                    curve
                        .iter()
                        .map(|cell| of(cell).and_then(format::rounded_percent))
                        .collect::<Vec<_>>()
                };
                json!({
                    "e": column(&|cell| cell.estimate),
                    "l": column(&|cell| cell.alone.map(|(low, _)| low)),
                    "h": column(&|cell| cell.alone.map(|(_, high)| high)),
                    "w": why_absent(curve),
                    "m": times(arm),
                })
            })
            .collect();
        self.charts
            .push(json!({ "plots": plots, "base": times(0), "arms": arms }));
    }

    /// The values of a chart at one percentile, in the markup that the script writes.
    fn readout(&self, subject: Subject<'_>, percentile: usize) -> String {
        let share = percentile as f64 / 100.0;
        let ms = |value: Option<u64>| {
            value.map_or_else(
                || "never".to_owned(),
                |value| {
                    let unit = &self.analysis.settings.metric.unit;
                    format::with_unit(&format::bare_milliseconds(value), unit)
                },
            )
        };
        // A cell with the time of an arm. Paths have changes only.
        let time = |arm: usize| match subject {
            Subject::Paths(_) | Subject::Neighbour(_) => String::new(),
            Subject::Group(group) if group.times[arm].total() == 0 => {
                format!("<td>{}</td>", format::ABSENT)
            }
            Subject::Group(group) => {
                format!("<td>{}</td>", ms(group.times[arm].percentile(share)))
            }
        };
        let mut rows = match subject {
            Subject::Paths(_) => "<table><thead><tr><th></th><th scope=\"col\">change of a path (95\u{a0}% interval)</th></tr></thead><tbody>".to_owned(),
            Subject::Neighbour(_) => "<table><thead><tr><th></th><th scope=\"col\">change of the neighbour’s rate (95\u{a0}% interval)</th></tr></thead><tbody>".to_owned(),
            Subject::Group(_) => format!(
                "<table><thead><tr><th></th><th scope=\"col\">{}</th><th scope=\"col\">change (95\u{a0}% interval)</th></tr></thead>\
                 <tbody><tr><th scope=\"row\">{}</th>{}<td></td></tr>",
                escaped(&self.analysis.settings.metric.name),
                tables::named(&self.analysis.arms[0].name, Some(0)),
                time(0),
            ),
        };
        for (arm, one) in self.analysis.arms.iter().enumerate().skip(1) {
            let cell = subject.curves()[arm][percentile - 1];
            let change = cell
                .estimate
                .map_or_else(|| format::ABSENT.to_owned(), percent);
            let range = text::range_or_why(&cell);
            let _ = write!(
                rows,
                "<tr><th scope=\"row\">{}</th>{}<td>{change} <small>{range}</small></td></tr>",
                tables::named(&one.name, Some(arm)),
                time(arm),
            );
        }
        rows.push_str("</tbody></table>");
        rows
    }

    fn numbers(&mut self, group: &Group) {
        let table = tables::curve(self.analysis, group);
        let _ = writeln!(
            self.body,
            "<details><summary>Chart data as a table</summary>{table}</details>"
        );
    }

    /// The command for a query, to be copied.
    fn command(&self, query: &str) -> String {
        let files = self.analysis.settings.files.iter();
        let files: Vec<String> = files.map(|file| shell(file)).collect();
        let command = format!("lastbyte query {} {}", shell(query), files.join(" "));
        copied(&escaped(command.trim_end()))
    }

    fn query(&mut self, query: &str) {
        let command = self.command(query);
        let _ = writeln!(
            self.body,
            "<details class=\"query\"><summary>Query</summary><div>{command}</div></details>"
        );
    }

    fn verdicts(&mut self) {
        let analysis = self.analysis;
        self.add("<section id=\"verdict\"><h2>Significant differences</h2>\n");
        self.list("verdicts", &text::verdicts(analysis));
        self.add(if analysis.settings.metric.is_ttlb() {
            "<h3>Mean, packet loss and completion</h3>\n"
        } else {
            "<h3>Mean and packet loss</h3>\n"
        });
        self.list("verdicts", &text::beside(analysis));
        let stratified = text::stratified(analysis);
        if !stratified.is_empty() {
            self.add("<h3>Stratified by site</h3>\n");
            self.list("plain", &stratified);
        }
        let subgroups = text::subgroups(analysis);
        if !subgroups.is_empty() {
            let [bins, sites] = text::dimensions(analysis);
            let bins = if bins == "object size" { "size" } else { bins };
            let _ = writeln!(
                self.body,
                "<h3>By {} and {}</h3>",
                escaped(bins),
                escaped(sites)
            );
            self.list("verdicts", &subgroups);
        }
        let each = match analysis.settings.looks {
            0 | 1 => "each list is wrong in at most 5 % of experiments".to_owned(),
            looks => format!(
                "each list is wrong in at most 5 % of experiments at any of {looks} looks, and at one look in at most {}",
                format::share(0.05 / f64::from(looks))
            ),
        };
        self.add(&format!(
            "<p class=\"note\">The first list is the main test of this experiment: its 95 % confidence covers all percentiles from P5 to P95 and all arms \
             together. The second list has intervals that are simultaneous over its values and all arms (Bonferroni), and the third \
             is corrected for its number of tests (Holm). If no arm differs, {each}. A difference that is not significant can still exist: the width of the \
             bands shows how large it could be.</p>\n",
        ));
        self.paragraph(&text::looks(analysis));
        self.add("</section>\n");
    }

    fn parts(&mut self, id: &str, title: &str, wanted: fn(&Subgroup) -> bool) {
        let analysis = self.analysis;
        let groups: Vec<&Group> = analysis
            .groups
            .iter()
            .filter(|group| wanted(&group.subgroup))
            .collect();
        if groups.is_empty() {
            return;
        }
        let _ = writeln!(
            self.body,
            "<section id=\"{id}\"><h2>{}</h2>\n{}<div class=\"many {id}s\">",
            escaped(title),
            self.legend()
        );
        for group in &groups {
            self.chart(Subject::Group(group), &[Size::Small]);
        }
        self.add("</div>\n<p class=\"note\">All charts have the same horizontal scale; arrows mark lines and bands that are beyond it.</p>\n");
        let less = analysis.settings.metric.less();
        self.add(&tables::subgroups(
            analysis,
            &groups,
            &format!("{title}: change of {}", analysis.settings.metric.name),
        ));
        self.add(&format!(
            "<p class=\"note\">“{}{} in” is the share of {} {less}{}; ties count half. p is from {}, corrected for all comparisons of subgroups on this page \
             (Holm). Intervals are 95 % each. Colour marks p below 0.05; a chart is pale if no arm has one.</p>\n",
            less[..1].to_uppercase(),
            &less[1..],
            if analysis.is_paired {
                "paths on which the arm is"
            } else {
                "pairs of a connection of the arm and one of the baseline in which the arm is"
            },
            if analysis.is_paired { " than the baseline" } else { "" },
            if analysis.is_paired { "Wilcoxon’s signed-rank test of the ratios" } else { "the Mann–Whitney test" },
        ));
        let queries = groups.iter();
        self.queries(queries.map(|group| (group.title.as_str(), group.curve_query.as_str())));
        self.add("</section>\n");
    }

    fn queries<'a>(&mut self, queries: impl Iterator<Item = (&'a str, &'a str)>) {
        self.add("<details class=\"query\"><summary>Queries</summary>\n");
        for (title, query) in queries {
            let command = self.command(query);
            let _ = writeln!(self.body, "<h4>{}</h4><div>{command}</div>", escaped(title));
        }
        self.add("</details>\n");
    }

    fn legend(&self) -> String {
        let arms = self.analysis.arms.iter().enumerate().skip(1);
        let arms: Vec<String> = arms
            .map(|(arm, one)| format!("<span>{}</span>", tables::named(&one.name, Some(arm))))
            .collect();
        format!("<p class=\"legend\">{}</p>\n", arms.join(" "))
    }

    fn times(&mut self) {
        let analysis = self.analysis;
        let group = &analysis.groups[0];
        let metric = &analysis.settings.metric;
        self.section("times", &metric.name);
        let caption = format!(
            "{} of {}{}, and the change of the other arms",
            metric.name,
            analysis.arms[0].name,
            metric.in_unit()
        );
        self.add(&tables::times(analysis, group, &caption));
        let of = if metric.is_ttlb() {
            "Means cover completed transfers. "
        } else {
            ""
        };
        self.add(&format!(
            "<p class=\"note\">{of}Intervals are 95 % for each percentile alone; colour marks significant differences (simultaneous band).</p>\n"
        ));
        if let Some(text) = text::largest(analysis) {
            self.add(&format!("<p class=\"note\">{}</p>\n", with_code(&text)));
        }
        self.query(&group.times_query);
        self.add("</section>\n");
    }

    fn losses(&mut self) {
        let analysis = self.analysis;
        let Some(all) = analysis.loss.first() else {
            return;
        };
        self.add("<section id=\"loss\"><h2>Packet loss</h2>\n");
        self.add(&tables::losses(
            analysis,
            core::slice::from_ref(all),
            "Packets declared lost, as a share of packets sent, per connection",
        ));
        self.query(&all.query);
        if analysis.loss.len() > 1 {
            let table = tables::losses(analysis, &analysis.loss[1..], "Packet loss by site");
            let _ = writeln!(
                self.body,
                "<details><summary>By site</summary>{table}</details>"
            );
            let queries = analysis.loss[1..].iter();
            self.queries(queries.map(|group| (group.title.as_str(), group.query.as_str())));
        }
        self.add("</section>\n");
    }

    fn ended(&mut self) {
        let analysis = self.analysis;
        if !analysis.settings.metric.is_ttlb() {
            return;
        }
        self.add("<section id=\"ended\"><h2>Completed and incomplete transfers</h2>\n");
        self.add(&tables::finished_only(analysis));
        self.add(
            "<p class=\"note\">A connection that never completed has no TTLB. If it were left out, an arm that makes the slowest transfers fail would look \
             faster. Percentiles and “faster in” therefore rank it behind all completed transfers; a percentile that falls on such a \
             connection has no value. Means cover completed transfers only. The last columns show the effect of leaving out incomplete \
             transfers.</p>\n",
        );
        self.query(&analysis.counts_query);
        self.add("</section>\n");
    }

    fn measures(&mut self) {
        let analysis = self.analysis;
        if analysis.measures.is_empty() {
            return;
        }
        self.add("<section id=\"measures\"><h2>Handshake, first byte, startup, recovery</h2>\n");
        for table in &analysis.measures {
            let text = tables::measures(analysis, table);
            self.add(&text);
            self.query(&table.query);
        }
        self.add("</section>\n");
    }

    fn method(&mut self) {
        let analysis = self.analysis;
        self.add("<section id=\"method\"><h2>Method and reproduction</h2>\n");
        let resampling = if analysis.is_paired {
            "Pairs are resampled as units, so what the connections of a path have in common does not widen the bands. Lines, tables and \
             queries have plain percentiles; the bands are of smoothed ones, which vary less: the geometric mean of the values within 2.5 \
             standard errors of the percentile’s rank. They are extended to the line where they would not contain it. The band at a \
             percentile has 1.96 standard deviations of the resampled changes on a logarithmic scale."
        } else {
            "The connections of each arm are resampled separately, through order statistics of uniform variates; the distribution is exactly \
             that of drawing each connection. The band at a percentile spans the 2.5th to the 97.5th percentile of the resampled changes."
        };
        let items = [
            "Percentiles are nearest-rank, as in the query language, of times with microsecond resolution. Nothing is sampled or \
             approximated: the log is read once, and each distinct value is counted."
                .to_owned(),
            format!(
                "Bands: {} bootstrap resamples (half as many for sizes and sites; fewer, but at least 200, for very many pairs), seed {}. \
                 {resampling} The width of the \
                 simultaneous band, in standard deviations on a logarithmic scale, is such that 95 % of the resamples lie within it at all \
                 percentiles from P5 to P95 and in all arms. An interval has no upper end (“at least”, “unbounded”) where resamples lose the \
                 percentile to incomplete transfers. There is no band where fewer than 5 connections lie beyond a percentile.",
                analysis.settings.replicates, analysis.settings.seed
            ),
            "Mean of P5–P95: of the logarithms of the changes, with Student’s interval by the standard deviation of its resamples. Means: Fieller’s interval of their ratio (for pairs, of paired differences), \
             which agrees with the test of the plain difference, so a few large values cannot make it significant. It has no upper end \
             where the mean of the baseline is too uncertain. \
             Shares: Wilson’s interval; for differences, Newcombe’s. Cards and sentences widen these intervals for the number of values and \
             arms that they state (Bonferroni); tables have 95 % intervals of each value alone. Numbers of connections: Pearson’s chi-squared tests, of all against the \
             shares, and of homogeneity by site, size and hour, corrected together (Holm)."
                .to_owned(),
            "The packet loss of a connection is the share of the packets sent that were declared lost, rounded to a hundredth of a percent; \
             packets acknowledged late still count as lost. The mean weights all connections equally. For pairs, intervals are of paired \
             differences."
                .to_owned(),
        ];
        self.list("plain", &items);
        if !analysis.settings.commands.is_empty() {
            let _ = writeln!(
                self.body,
                "<h3>Reproduce this report</h3><div class=\"query\">{}</div>",
                copied(&lines(&analysis.settings.commands))
            );
        }
        if !analysis.settings.facts.is_empty() {
            self.add("<dl class=\"facts\">\n");
            for (name, value) in &analysis.settings.facts {
                let _ = writeln!(
                    self.body,
                    "<div><dt>{}</dt><dd>{}</dd></div>",
                    escaped(name),
                    escaped(value)
                );
            }
            self.add("</dl>\n");
        }
        self.add("</section>\n</main>\n");
    }
}

/// Why percentiles have no change, by percentile; `null` if all have one.
fn why_absent(curve: &[Interval]) -> Value {
    let why = curve.iter().map(|cell| cell.absent.map(text::why_absent));
    let why: Vec<Option<&str>> = why.collect();
    if why.iter().all(Option::is_none) {
        Value::Null
    } else {
        json!(why)
    }
}

/// A text in markup, with a button that copies it.
fn copied(text: &str) -> String {
    format!(
        "<button type=\"button\" hidden>Copy</button><pre tabindex=\"0\"><code>{text}</code></pre>"
    )
}

/// An argument, quoted for a shell if necessary.
pub(super) fn shell(text: &str) -> String {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '-' | '_' | '.' | '/' | '=' | ':' | ',' | '+' | '@')
    };
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}
