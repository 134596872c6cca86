//! `lastbyte compare`: loads the pages of a corpus over versions of HTTP in the simulator, and compares page by page.

mod arguments;
mod arms;
mod loss;
mod networks;
mod record;
mod run;

use core::fmt::Write as _;
use std::{collections::BTreeMap, io::Write, path::Path, process::ExitCode, sync::Arc};

use comfy_table::{Cell, CellAlignment, Table, presets};
use lastbyte_congestion::Registry;
use lastbyte_page::Page;
use lastbyte_report::compare::{Metric, PageFacts, PageLoads, PartTimes, Selection, Waterfall};
use lastbyte_units as units;

pub(crate) use self::arguments::Arguments;
use self::{
    arguments::{Action, view_name},
    run::{Job, Loaded},
};
use crate::{
    commands::report,
    failure::Failure,
    files,
    jobs::{Interrupt, run_all},
};

/// The most loads of a run: each takes about a kilobyte of memory until its end.
const LOADS_MAX: usize = 4_000_000;
/// Maximum number of arms that a page distinguishes.
const ARMS_MAX: usize = 16;
/// The built-in corpus.
const CORPUS_PAGES: usize = 300;
const CORPUS_SEED: u64 = 1;
/// The files in the directory of --out.
const FILES: [&str; 4] = ["loads.ndjson", "report.html", "report.svg", "summary.json"];

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    match &arguments.action {
        None => compare(arguments, registry),
        Some(Action::Record(arguments)) => arguments.run(),
        Some(Action::Generate(arguments)) => arguments.run(),
        Some(Action::Loss(arguments)) => arguments.run(registry),
    }
}

fn compare(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    let texts = match arguments.arm.as_slice() {
        [] => arguments
            .http
            .iter()
            .map(|version| version.name().to_owned())
            .collect(),
        texts => texts.to_vec(),
    };
    let arms = arms::arms(&texts, 2..=ARMS_MAX, registry).map_err(Failure::Usage)?;
    let networks = networks::networks(&arguments.network)?;
    let mut pages = corpus(arguments.corpus.as_deref())?;
    if let Some(count) = arguments.pages {
        pages.truncate(count.get());
    }
    if arguments.all_http3 {
        for page in &mut pages {
            let hosts = Arc::make_mut(page).hosts.iter_mut();
            hosts.for_each(|host| host.has_http3 = true);
        }
    }
    if let Some((first, rest)) = arguments.view.split_first()
        && rest.contains(first)
    {
        return Err(Failure::Usage(format!(
            "--view: `{}` twice (expected each once)",
            view_name(*first)
        )));
    }
    let shown = match &arguments.waterfall {
        None => 0,
        Some(name) => networks
            .iter()
            .position(|(one, _)| one == name)
            .ok_or_else(|| unknown_network(name, &networks))?,
    };
    let each = networks.len() * arguments.view.len() * arguments.repeats as usize * arms.len();
    let loads = pages.len().saturating_mul(each);
    if loads > LOADS_MAX {
        return Err(Failure::Usage(format!(
            "{loads} page loads (expected at most {LOADS_MAX}: fewer --pages, --network or --repeats)"
        )));
    }
    files::create_folder(&arguments.out)?;
    if !arguments.force {
        for file in FILES {
            files::check_absent(&arguments.out.join(file))?;
        }
    }
    let setting = run::Setting {
        arguments,
        arms: &arms,
        networks: &networks,
        pages: &pages,
        shown,
    };
    let jobs = setting.jobs();
    let interrupt = Interrupt::listen();
    let results = run_all(&jobs, arguments.jobs, &interrupt, |job| setting.load(job));
    let results: Result<Vec<Loaded>, Failure> = results.into_iter().collect();
    let results = results?;
    let done = results.len();
    // Only pages that were loaded in all arms.
    let whole = done - done % each.max(1);
    let keeps = if whole > 0 { whole } else { done };
    let loads = gather(&setting, &jobs, &results[..keeps]);
    write(arguments, &setting, &jobs, &results[..keeps], &loads)?;
    let text = if arguments.json {
        format!("{:#}\n", loads.json())
    } else {
        table(&loads, &arguments.out)
    };
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::stdout(&error))?;
    if interrupt.is_pressed() {
        print_notice(&format!(
            "interrupted: {keeps} of {} page loads are in `{}`, and above",
            jobs.len(),
            arguments.out.display()
        ));
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stderr, reason = "talk goes to stderr")]
fn print_notice(what: &str) {
    eprintln!("{what}");
}

fn unknown_network(name: &str, networks: &[(String, lastbyte_sim::Path)]) -> Failure {
    let names: Vec<&str> = networks.iter().map(|(name, _)| name.as_str()).collect();
    Failure::Usage(format!(
        "--waterfall: unknown network `{name}` (expected one of {})",
        names.join("; ")
    ))
}

/// The pages to load.
fn corpus(file: Option<&Path>) -> Result<Vec<Arc<Page>>, Failure> {
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

/// The data of the report.
fn gather(setting: &run::Setting<'_>, jobs: &[Job], results: &[Loaded]) -> PageLoads {
    let arguments = setting.arguments;
    let mut parts: BTreeMap<(usize, usize, usize, usize), PartTimes> = BTreeMap::new();
    let mut waterfalls = Vec::new();
    let mut incomplete = 0;
    let mut loads = Vec::new();
    for (job, result) in jobs.iter().zip(results) {
        let key = job.key;
        loads.push(result.times(key));
        incomplete += usize::from(result.outcome_ms[0].is_none());
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
    let mut warnings = Vec::new();
    if incomplete > 0 {
        warnings.push(format!(
            "{incomplete} of {} page loads were not complete after {} s; they are not compared.",
            results.len(),
            run::TIME_LIMIT.as_secs()
        ));
    }
    if results.len() < jobs.len() {
        warnings.push(format!(
            "Interrupted after {} of {} page loads.",
            results.len(),
            jobs.len()
        ));
    }
    let names: Vec<&str> = setting.arms.iter().map(|arm| arm.name.as_str()).collect();
    PageLoads {
        title: format!("Page loads: {}", names.join(" / ")),
        subtitle: format!(
            "{} pages on {} networks, simulated; seed {}",
            setting.pages.len(),
            setting.networks.len(),
            arguments.seed
        ),
        facts: facts(setting, results.len()),
        warnings,
        arms: names.into_iter().map(str::to_owned).collect(),
        networks: setting
            .networks
            .iter()
            .map(|(name, _)| name.clone())
            .collect(),
        views: arguments
            .view
            .iter()
            .map(|view| view_name(*view).to_owned())
            .collect(),
        pages: setting.pages.iter().map(|page| page_facts(page)).collect(),
        loads,
        waterfalls,
        parts: parts.into_values().collect(),
    }
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

fn facts(setting: &run::Setting<'_>, done: usize) -> Vec<(String, String)> {
    let arguments = setting.arguments;
    let corpus = arguments.corpus.as_ref();
    let corpus = corpus.map_or_else(|| "built in".to_owned(), |file| file.display().to_string());
    let handshake = arguments.handshake.map_or_else(
        || "full at the first view, resumed at the repeat view".to_owned(),
        |handshake| handshake.name().to_owned(),
    );
    let facts = [
        ("version", report::version()),
        ("command", report::again()),
        ("corpus", corpus),
        (
            "hosts with HTTP/3",
            if arguments.all_http3 {
                "all".to_owned()
            } else {
                "those of the corpus; the others use HTTP/2 in its place".to_owned()
            },
        ),
        ("page loads", done.to_string()),
        ("handshake", handshake),
        ("name resolution", units::show_span(arguments.dns)),
        ("QUIC packets", format!("{} B", arguments.datagram_size)),
        (
            "congestion control",
            "Linux' CUBIC over TCP and cubic over QUIC, unless the arm names another".to_owned(),
        ),
        ("model and sources", "docs/compare.md".to_owned()),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).into()
}

fn write(
    arguments: &Arguments,
    setting: &run::Setting<'_>,
    jobs: &[Job],
    results: &[Loaded],
    loads: &PageLoads,
) -> Result<(), Failure> {
    let rows: String = jobs
        .iter()
        .zip(results)
        .map(|(job, result)| setting.row(job, result))
        .collect();
    let texts = [
        rows,
        loads.html(),
        loads.svg(),
        format!("{:#}\n", loads.json()),
    ];
    for (name, text) in FILES.into_iter().zip(texts) {
        files::write(&arguments.out.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// The result on each network as a table: page load time of the first view.
fn table(loads: &PageLoads, out: &Path) -> String {
    let mut text = String::new();
    for arm in 1..loads.arms.len() {
        let selection = Selection {
            arm,
            view: 0,
            metric: Metric::Load,
        };
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "network",
            "pages",
            "faster",
            "speedup",
            "95 %",
            "p5",
            "p50",
            "p95",
            "slower by > 5 %",
        ]);
        for (name, verdict) in loads.networks.iter().zip(loads.verdicts(selection)) {
            let factor =
                |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |it| format!("{it:.2}"));
            let share = |value: Option<f64>| {
                value.map_or_else(|| "–".to_owned(), |it| format!("{:.0} %", it * 100.0))
            };
            let interval = verdict.speedup.map(|it| it.interval);
            let interval = interval.map_or_else(
                || "–".to_owned(),
                |(low, high)| format!("{low:.2}–{high:.2}"),
            );
            let row = [
                name.clone(),
                verdict.pages.to_string(),
                share(verdict.faster.map(|it| it.value)),
                factor(verdict.speedup.map(|it| it.value)),
                interval,
                factor(verdict.range.map(|it| it.0)),
                factor(verdict.median),
                factor(verdict.range.map(|it| it.1)),
                share(verdict.losers),
            ];
            table.add_row(row.map(Cell::new));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if let Some(column) = table.column_mut(0) {
            column.set_padding((0, 1));
        }
        // Writing to a `String` cannot fail.
        let _ = write!(
            text,
            "{} compared with {}: page load time, {} view. Speedup: geometric mean over pages, with its 95 % interval, and percentiles of pages.\n{}\n\n",
            loads.arms[arm],
            loads.arms[0],
            loads.views[0],
            table.trim_fmt()
        );
    }
    let _ = writeln!(text, "{}", out.join("report.html").display());
    text
}
