//! The corpus, and what is made of page loads: files, tables, messages.

use core::{fmt::Write as _, time::Duration};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use lastbyte_page::{Page, View};
use lastbyte_report::compare::{
    Metric, PageFacts, PageLoads, PartTimes, Selection, Verdict, Waterfall, show_speedup,
};
use lastbyte_scenario::Handshake;
use lastbyte_units as units;

use super::run::{self, Job, Loaded, Setting, view_name};
use crate::{
    commands::figure::FigureArguments,
    failure::Failure,
    files,
    table::Table,
    terminal::{notice, print, save},
};

/// The most loads of a run: each takes about a kilobyte of memory until its end.
const LOADS_MAX: usize = 4_000_000;
/// The built-in corpus.
const CORPUS_PAGES: usize = 300;
const CORPUS_SEED: u64 = 1;
/// The files in the directory of --out.
const FILES: [&str; 4] = [
    "report.html",
    "report.svg",
    "first-render.svg",
    "summary.json",
];
/// The files that --figure adds.
const PRINTS: [&str; 2] = ["report.pdf", "first-render.pdf"];
/// The file beside them that has a row per load.
pub(super) const ROWS: &str = "loads.ndjson";

/// What the report says of the loads as a whole.
pub(super) struct About {
    pub(super) subtitle: String,
    pub(super) facts: Vec<(String, String)>,
    /// When a load is given up.
    pub(super) limit: Duration,
    /// How many loads there are without an interrupt.
    pub(super) total: usize,
}

/// Checks that no view is there twice.
pub(super) fn check_views(views: &[View]) -> Result<(), Failure> {
    match views.split_first() {
        Some((first, rest)) if rest.contains(first) => Err(Failure::Usage(format!(
            "--view: `{}` twice (expected each once)",
            view_name(*first)
        ))),
        _ => Ok(()),
    }
}

/// Checks the number of loads.
pub(super) fn check_count(pages: usize, each: usize) -> Result<(), Failure> {
    let loads = pages.saturating_mul(each);
    if loads > LOADS_MAX {
        return Err(Failure::Usage(format!(
            "{loads} page loads (expected at most {LOADS_MAX}: fewer --pages, --network or --repeats)"
        )));
    }
    Ok(())
}

/// Creates the directory of --out, in which there are no files of an earlier run unless they may be overwritten.
pub(super) fn prepare(out: &Path, force: bool) -> Result<(), Failure> {
    files::create_folder(out)?;
    if !force {
        for file in [ROWS].into_iter().chain(FILES).chain(PRINTS) {
            files::check_absent(&out.join(file))?;
        }
    }
    Ok(())
}

/// Prints the summary as JSON, or tables.
pub(super) fn print_loads(loads: &PageLoads, is_json: bool) -> Result<(), Failure> {
    for warning in &loads.warnings {
        notice(format!("warning: {warning}"));
    }
    let text = if is_json {
        format!("{:#}\n", loads.json())
    } else {
        table(loads)
    };
    print(text)
}

/// The pages to load.
pub(super) fn corpus(file: Option<&Path>) -> Result<Vec<Arc<Page>>, Failure> {
    let pages = match file {
        None => lastbyte_page::generate(CORPUS_PAGES, CORPUS_SEED),
        Some(file) => {
            let text = files::read_text(file).map_err(Failure::Usage)?;
            let name = file.display().to_string();
            let pages: Result<Vec<Page>, _> = lastbyte_page::read_corpus(&name, &text).collect();
            pages.map_err(Failure::usage)?
        }
    };
    if pages.is_empty() {
        let name = file.map_or("built-in".into(), Path::to_string_lossy);
        return Err(Failure::Usage(format!(
            "`{name}` has no pages (expected a corpus: docs/corpus.md)"
        )));
    }
    Ok(pages.into_iter().map(Arc::new).collect())
}

/// What the corpus is called.
pub(super) fn corpus_name(file: Option<&Path>) -> String {
    file.map_or_else(|| "built in".to_owned(), |file| file.display().to_string())
}

/// How connections are opened.
pub(super) fn handshake_name(handshake: Option<Handshake>) -> String {
    handshake.map_or_else(
        || "full at the first view, resumed at the repeat view".to_owned(),
        |handshake| handshake.name().to_owned(),
    )
}

/// The data of the report.
pub(super) fn gather(
    setting: &Setting<'_>,
    jobs: &[Job],
    results: &[Loaded],
    about: About,
) -> PageLoads {
    let mut parts: BTreeMap<(usize, usize, usize, usize), PartTimes> = BTreeMap::new();
    let mut waterfalls = Vec::new();
    let mut loads = Vec::new();
    for (job, result) in jobs.iter().zip(results) {
        let key = job.key;
        loads.push(result.times(key));
        if let Some(bars) = &result.bars {
            waterfalls.push(Waterfall {
                key,
                bars: bars.clone(),
            });
        }
        for (place, sums) in result.parts.iter().enumerate() {
            if sums.responses > 0 {
                let name = run::part(place);
                let part = parts
                    .entry((place, key.view, key.arm, 0))
                    .or_insert_with(|| PartTimes {
                        part: (name.0.to_owned(), name.1.to_owned()),
                        arm: key.arm,
                        view: key.view,
                        ..PartTimes::default()
                    });
                part.responses += u64::from(sums.responses);
                part.first_byte_ms += f64::from(sums.first_byte_ms);
                part.last_byte_ms += f64::from(sums.last_byte_ms);
            }
        }
    }
    let mut warnings = incomplete(setting, jobs, results, about.limit);
    if results.len() < about.total {
        warnings.push(format!(
            "Interrupted after {} of {} page loads.",
            results.len(),
            about.total
        ));
    }
    let names: Vec<&str> = setting.arms.iter().map(|arm| arm.name.as_str()).collect();
    PageLoads {
        title: match &names[..] {
            [baseline, others @ ..] if !others.is_empty() => {
                format!("Page loads: {} against {baseline}", others.join(", "))
            }
            _ => format!("Page loads: {}", names.join(", ")),
        },
        subtitle: about.subtitle,
        facts: about.facts,
        warnings,
        arms: names.into_iter().map(str::to_owned).collect(),
        networks: setting.networks.clone(),
        views: setting
            .views
            .iter()
            .map(|view| view_name(*view).to_owned())
            .collect(),
        pages: setting.pages.iter().map(|page| page_facts(page)).collect(),
        loads,
        waterfalls,
        parts: parts.into_values().collect(),
    }
}

/// The loads of an arm on a network and a view that were not complete.
#[derive(Default)]
struct Incomplete {
    loads: u64,
    of: u64,
    /// Their pages, each with the reason of its first load.
    pages: BTreeMap<usize, String>,
}

/// Pages that a warning names.
const PAGES_NAMED: usize = 3;

/// A warning for each arm with loads that were not complete, and one about how these loads are counted.
fn incomplete(
    setting: &Setting<'_>,
    jobs: &[Job],
    results: &[Loaded],
    limit: Duration,
) -> Vec<String> {
    let mut all: BTreeMap<(usize, usize, usize), Incomplete> = BTreeMap::new();
    let limit = units::show_span(limit);
    for (job, result) in jobs.iter().zip(results) {
        let key = job.key;
        let one = all.entry((key.arm, key.network, key.view)).or_default();
        one.of += 1;
        if result.times(key).load_ms.is_none() {
            one.loads += 1;
            let page = one.pages.entry(key.page);
            page.or_insert_with(|| match result.failed {
                0 => format!("longer than {limit}"),
                1 => "a request failed".to_owned(),
                many => format!("{many} requests failed"),
            });
        }
    }
    let mut warnings = Vec::new();
    for (arm, one) in setting.arms.iter().enumerate() {
        let networks: Vec<String> = all
            .range((arm, 0, 0)..(arm + 1, 0, 0))
            .filter(|(_, one)| one.loads > 0)
            .map(|((_, network, view), one)| {
                let named = one.pages.iter().take(PAGES_NAMED);
                let mut pages: Vec<String> = named
                    .map(|(page, why)| format!("{}: {why}", setting.pages[*page].name))
                    .collect();
                let more = one.pages.len().saturating_sub(PAGES_NAMED);
                if more > 0 {
                    pages.push(format!("{more} more"));
                }
                format!(
                    "{} of {} on {}, {} view ({})",
                    one.loads,
                    one.of,
                    setting.networks[*network],
                    view_name(setting.views[*view]),
                    pages.join(", ")
                )
            })
            .collect();
        if !networks.is_empty() {
            let networks = networks.join("; ");
            warnings.push(format!(
                "{}: page loads not complete: {networks}.",
                one.name
            ));
        }
    }
    if !warnings.is_empty() {
        warnings.push(
            "A page of which a load was not complete counts as infinitely long in shares and percentiles; the mean speedup is of the other pages."
                .to_owned(),
        );
    }
    warnings
}

fn page_facts(page: &Page) -> PageFacts {
    let resources = page.resources.iter().map(|resource| {
        let host = &page.hosts[usize::from(resource.host)];
        let kind = resource.kind.name().to_owned();
        (kind, host.name.clone(), resource.body)
    });
    PageFacts {
        name: page.name.clone(),
        hosts: page.hosts.len(),
        bytes: page.resources.iter().map(|resource| resource.body).sum(),
        resources: resources.collect(),
    }
}

/// Writes the files. Of charts for print, their SVG is in place of that for screens.
pub(super) fn write(
    out: &PathBuf,
    loads: &PageLoads,
    figure: &FigureArguments,
) -> Result<(), Failure> {
    let texts = [
        loads.html(),
        loads.svg(Metric::Load),
        loads.svg(Metric::Render),
        format!("{:#}\n", loads.json()),
    ];
    for (name, text) in FILES.into_iter().zip(texts) {
        save(&out.join(name), text.as_bytes())?;
    }
    let figures = [
        loads.figure("report", Metric::Load),
        loads.figure("first-render", Metric::Render),
    ];
    figure.write(core::slice::from_ref(out), &figures)
}

/// The result on each network as a table: page load time of the first view.
fn table(loads: &PageLoads) -> String {
    let mut text = String::new();
    for arm in 1..loads.arms.len() {
        let selection = Selection {
            arm,
            view: 0,
            metric: Metric::Load,
        };
        let render = Selection {
            metric: Metric::Render,
            ..selection
        };
        let renders = loads.verdicts(render);
        let mut table = Table::new([
            "network",
            "pages",
            "complete",
            "faster",
            "speedup",
            "95 %",
            "p5",
            "p50",
            "p95",
            "slower by > 5 %",
            "first render",
            "95 %",
        ]);
        let verdicts = loads.verdicts(selection).into_iter().zip(renders);
        for (name, (verdict, render)) in loads.networks.iter().zip(verdicts) {
            let share = |value: Option<f64>| {
                value.map_or_else(|| "–".to_owned(), |it| format!("{:.0} %", it * 100.0))
            };
            let interval = |verdict: &Verdict| {
                let interval = verdict.speedup.map(|it| it.interval);
                interval.map_or_else(
                    || "–".to_owned(),
                    |(low, high)| format!("{low:.2}–{high:.2}"),
                )
            };
            let row = [
                name.clone(),
                verdict.pages.to_string(),
                verdict.complete.to_string(),
                share(verdict.faster.map(|it| it.value)),
                show_speedup(verdict.speedup.map(|it| it.value)),
                interval(&verdict),
                show_speedup(verdict.p5),
                show_speedup(verdict.median),
                show_speedup(verdict.p95),
                share(verdict.losers),
                show_speedup(render.speedup.map(|it| it.value)),
                interval(&render),
            ];
            table.row(row);
        }
        // Writing to a `String` cannot fail.
        let _ = write!(
            text,
            "{} compared with {}: page load time, {} view. Speedup: geometric mean over pages that are complete over both, with its 95 % interval, and percentiles of all pages. First render: its speedup.\n{}\n\n",
            loads.arms[arm],
            loads.arms[0],
            loads.views[0],
            table.text()
        );
    }
    text
}
