//! `lastbyte compare`: loads the pages of a corpus over versions of HTTP in the simulator, and compares page by page.

mod arguments;
mod arms;
mod loss;
mod measure;
mod networks;
mod record;
mod results;
mod run;
mod simulation;

use std::{process::ExitCode, sync::Arc};

use lastbyte_congestion::Registry;
use lastbyte_scenario::HttpVersion;
use lastbyte_units as units;

pub(crate) use self::arguments::Arguments;
use self::{
    arguments::Action,
    results::{
        About, ROWS, check_count, check_views, corpus, corpus_name, gather, handshake_name,
        prepare, print_loads, write,
    },
    run::Loaded,
    simulation::{Simulation, TIME_LIMIT},
};
use crate::{
    commands::report,
    failure::Failure,
    jobs::{Interrupt, run_all},
    terminal::{notice, save},
};

/// Maximum number of arms that a page distinguishes.
const ARMS_MAX: usize = 16;

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
    arguments.check_hosts()?;
    let versions = arguments.http.iter().map(|one| one.name().to_owned());
    let (option, texts) = match arguments.arm.as_slice() {
        [] => ("--http", versions.collect()),
        texts => ("--arm", texts.to_vec()),
    };
    let arms = arms::arms(option, &texts, 1..=ARMS_MAX, registry).map_err(Failure::Usage)?;
    let arms = arms::upgraded(arms, &arguments.upgrade).map_err(Failure::Usage)?;
    arms::check_count(&arms, 2..=ARMS_MAX).map_err(Failure::Usage)?;
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
    if arguments.single_host {
        for page in &mut pages {
            Arc::make_mut(page).move_to_one_host();
        }
    }
    check_views(&arguments.view)?;
    let shown = match &arguments.waterfall {
        None => 0,
        Some(name) => networks
            .iter()
            .position(|(one, _)| one == name)
            .ok_or_else(|| unknown_network(name, &networks))?,
    };
    let setting = run::Setting {
        arms: &arms,
        networks: networks.iter().map(|(name, _)| name.clone()).collect(),
        pages: &pages,
        views: &arguments.view,
        repeats: arguments.repeats,
        seed: arguments.seed,
        shown,
    };
    let each = setting.loads_of_a_page();
    check_count(pages.len(), each)?;
    prepare(&arguments.out, arguments.force)?;
    let out = core::slice::from_ref(&arguments.out);
    arguments.figure.check("--out", out)?;
    let simulation = Simulation {
        setting: &setting,
        arguments,
        networks: &networks,
    };
    let jobs = setting.jobs();
    let interrupt = Interrupt::listen();
    let results = run_all(&jobs, arguments.jobs, &interrupt, |job| {
        simulation.load(job)
    });
    let results: Result<Vec<Loaded>, Failure> = results.into_iter().collect();
    let results = results?;
    let done = results.len();
    // Only pages that were loaded in all arms.
    let whole = done - done % each.max(1);
    let keeps = if whole > 0 { whole } else { done };
    let (jobs, results, total) = (&jobs[..keeps], &results[..keeps], jobs.len());
    let about = About {
        subtitle: format!(
            "{} pages on {} networks, simulated; seed {}",
            pages.len(),
            networks.len(),
            arguments.seed
        ),
        facts: facts(arguments, keeps),
        limit: TIME_LIMIT,
        total,
    };
    let mut loads = gather(&setting, jobs, results, about);
    // Chromium and the simulator differ most where an arm of HTTP/1.1, whose requests are held back, is beside another.
    let is_http1 = |arm: &arms::Arm| arm.version == HttpVersion::Http1;
    if arguments.no_hold_back && arms.iter().any(is_http1) && !arms.iter().all(is_http1) {
        loads.warnings.push(
            "First renders over HTTP/2 and 3 are later than in Chromium, which holds requests of low priority back over all \
             versions, as the simulator without --no-hold-back."
                .to_owned(),
        );
    }
    let rows = jobs.iter().zip(results);
    let rows = rows.map(|(job, result)| format!("{}\n", simulation.row(job, result)));
    let rows: String = rows.collect();
    save(&arguments.out.join(ROWS), rows.as_bytes())?;
    write(&arguments.out, &loads, &arguments.figure)?;
    print_loads(&loads, arguments.json)?;
    if interrupt.is_pressed() {
        notice(format!(
            "interrupted: {keeps} of {total} page loads are in `{}`, and above",
            arguments.out.display()
        ));
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

fn unknown_network(name: &str, networks: &[(String, lastbyte_scenario::Path)]) -> Failure {
    let names: Vec<&str> = networks.iter().map(|(name, _)| name.as_str()).collect();
    Failure::Usage(format!(
        "--waterfall: unknown network `{name}` (expected one of {})",
        names.join("; ")
    ))
}

fn facts(arguments: &Arguments, done: usize) -> Vec<(String, String)> {
    let facts = [
        ("version", report::version()),
        ("command", report::again()),
        ("corpus", corpus_name(arguments.corpus.as_deref())),
        (
            "hosts with HTTP/3",
            if arguments.all_http3 {
                "all".to_owned()
            } else {
                "those of the corpus; the others use HTTP/2 in its place".to_owned()
            },
        ),
        (
            "hosts",
            if arguments.single_host {
                "one a page: that of the document".to_owned()
            } else {
                "those of the corpus".to_owned()
            },
        ),
        (
            "requests held back before the first render",
            if arguments.no_hold_back {
                "those of low priority, over HTTP/1.1".to_owned()
            } else {
                "those of low priority, over all versions".to_owned()
            },
        ),
        ("page loads", done.to_string()),
        ("handshake", handshake_name(arguments.handshake)),
        ("name resolution", units::show_span(arguments.dns)),
        ("QUIC packets", format!("{} B", arguments.datagram_size)),
        (
            "congestion control",
            "Linux's CUBIC over TCP and cubic over QUIC, unless the arm names another".to_owned(),
        ),
        ("model and sources", "docs/compare.md".to_owned()),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).into()
}
