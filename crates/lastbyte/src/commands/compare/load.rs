//! `lastbyte compare load`: the pages of a corpus over real connections to `lastbyte serve --pages`.

use core::{num::NonZeroUsize, time::Duration};
use std::{
    io::Write as _,
    net::{SocketAddr, ToSocketAddrs as _},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use clap::Args;
use lastbyte_client::{ConnectTo, Memory, Settings, Url};
use lastbyte_congestion::Registry;
use lastbyte_page::{Moment, Page, View};
use lastbyte_quic::connection::Config;
use lastbyte_scenario::{Handshake, HttpVersion};
use lastbyte_units::{self as units, Time};
use serde_json::{Value, json};

use super::{
    arms,
    driver::{self, Visit, Visited},
    results::{
        About, ROWS, check_count, check_views, corpus, corpus_name, gather, handshake_name,
        prepare, print_loads, write,
    },
    run::{self, Job, Loaded, Setting},
};
use crate::{
    commands::{credentials::Credentials, get, report, values},
    failure::Failure,
    files,
    jobs::{Interrupt, progress_bar},
    terminal::notice,
};

const EXAMPLES: &str = "\
Examples:
  # Ten pages of the built-in corpus, replayed on this machine.
  lastbyte compare generate --out corpus.ndjson
  lastbyte serve --self-signed --listen 127.0.0.1:4433 --pages corpus.ndjson &
  lastbyte compare load -k 127.0.0.1:4433 --corpus corpus.ndjson --pages 10
  # One page, with resumed sessions and a cache.
  lastbyte compare load -k 127.0.0.1:4433 --corpus corpus.ndjson \\
    --page site1.example --view repeat --out repeat

Method and columns: docs/compare.md.";

/// The longest time for a load.
const LIMIT_MAX: Duration = Duration::from_secs(3600);
/// How long a server may take to send a session ticket.
const TICKET_WAIT: Duration = Duration::from_secs(1);

/// Compare page loads over real connections to `lastbyte serve --pages`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Address of the server of all hosts
    #[arg(value_name = "HOST:PORT")]
    server: String,
    #[command(flatten)]
    credentials: Credentials,
    /// Corpus file of the server [default: the built-in corpus of 300 pages]
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
    /// Versions of HTTP, the baseline first: 1.1, 2, 3
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "2,3"
    )]
    http: Vec<HttpVersion>,
    /// Name of the network, for the files
    #[arg(long, value_name = "NAME", default_value = "real")]
    network: String,
    /// Views: first, with an empty cache, and repeat
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "first",
        value_parser = run::view
    )]
    view: Vec<View>,
    /// Handshake: full, resumed or 0rtt [default: full at the first view, resumed at the repeat view]
    #[arg(long, value_name = "NAME")]
    handshake: Option<Handshake>,
    /// Page to load; repeatable [default: all]
    #[arg(long, value_name = "NAME", conflicts_with = "pages")]
    page: Vec<String>,
    /// Number of pages, from the first of the corpus [default: all]
    #[arg(long, value_name = "N", value_parser = values::positive(1_000_000))]
    pages: Option<NonZeroUsize>,
    /// Loads of each page
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count::<u32>(1..=1000))]
    repeats: u32,
    /// Time after which a load is given up
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = limit)]
    limit: Duration,
    /// Directory for loads.ndjson, report.html, report.svg, first-render.svg and summary.json
    #[arg(long, value_name = "DIR", default_value = "load")]
    out: PathBuf,
    /// Overwrite the files of an earlier run
    #[arg(long)]
    force: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// The loads of a run.
struct Run<'a> {
    arguments: &'a Arguments,
    setting: Setting<'a>,
    settings: Settings,
    /// The URLs of each page.
    urls: Vec<Vec<Url>>,
    interrupt: Interrupt,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    let versions = arguments.http.iter().map(|one| one.name().to_owned());
    let versions: Vec<String> = versions.collect();
    let arms = arms::arms("--http", &versions, 1..=HttpVersion::ALL.len(), registry)
        .map_err(Failure::Usage)?;
    check_views(&arguments.view)?;
    let server = address(&arguments.server)?;
    let settings = settings(arguments, server, registry)?;
    let pages = pages(arguments)?;
    let urls: Result<Vec<_>, String> = pages
        .iter()
        .map(|(index, page)| driver::urls(page, *index, server.port()))
        .collect();
    let urls = urls.map_err(Failure::Usage)?;
    let pages: Vec<Arc<Page>> = pages.into_iter().map(|(_, page)| page).collect();
    let setting = Setting {
        arms: &arms,
        networks: vec![arguments.network.clone()],
        pages: &pages,
        views: &arguments.view,
        repeats: arguments.repeats,
        seed: 0,
        shown: 0,
    };
    check_count(pages.len(), setting.loads_of_a_page())?;
    prepare(&arguments.out, arguments.force)?;
    let run = Run {
        arguments,
        setting,
        settings,
        urls,
        interrupt: Interrupt::listen(),
    };
    run.all()
}

impl Run<'_> {
    /// Loads all pages, one after the other, and writes the files.
    fn all(&self) -> Result<ExitCode, Failure> {
        let out = &self.arguments.out;
        let jobs = self.setting.jobs();
        let rows = out.join(ROWS);
        let mut file = files::create(&rows)?;
        let bar = progress_bar(jobs.len());
        let mut results: Vec<Loaded> = Vec::new();
        let mut errors = Vec::new();
        for job in &jobs {
            let Some(visited) = self.load(job)? else {
                break;
            };
            if results.is_empty() && !visited.has_document {
                let why = visited.error.unwrap_or_default();
                let hint = if why.contains("certificate is not trusted") {
                    format!("; {}", get::UNTRUSTED)
                } else {
                    String::new()
                };
                return Err(Failure::Run(format!("cannot load a page: {why}{hint}")));
            }
            let loaded = self.setting.keep(job, &visited.outcome);
            let row = self.row(job, &loaded, &visited);
            // So that the row is there even if this process is killed.
            writeln!(file, "{row}")
                .and_then(|()| file.flush())
                .map_err(|error| files::cannot_write(&rows, &error))?;
            if let Some(error) = visited.error {
                errors.push(format!(
                    "{} over {}: {error}",
                    self.setting.pages[job.key.page].name, self.setting.arms[job.key.arm].name
                ));
            }
            results.push(loaded);
            bar.inc(1);
        }
        bar.finish_and_clear();
        let done = results.len();
        let about = About {
            subtitle: format!(
                "{} pages over real connections to {}",
                self.setting.pages.len(),
                self.arguments.server
            ),
            facts: self.facts(done),
            limit: self.arguments.limit,
            total: jobs.len(),
        };
        let loads = gather(&self.setting, &jobs[..done], &results, about);
        write(out, &loads)?;
        print_loads(&loads, out, self.arguments.json)?;
        if let Some(first) = errors.first() {
            let count = errors.len();
            notice(format!(
                "{count} of {done} page loads failed; the first: {first}"
            ));
        }
        if self.interrupt.is_pressed() {
            notice(format!(
                "interrupted: {done} of {} page loads are in `{}`, and above",
                jobs.len(),
                out.display()
            ));
            return Ok(ExitCode::from(130));
        }
        Ok(ExitCode::from(u8::from(errors.len() == done)))
    }

    /// Loads a page. `None` if interrupted.
    fn load(&self, job: &Job) -> Result<Option<Visited>, Failure> {
        if self.interrupt.is_pressed() {
            return Ok(None);
        }
        let view = self.setting.views[job.key.view];
        let handshake = self.arguments.handshake.unwrap_or(match view {
            View::First => Handshake::Full,
            View::Repeat => Handshake::Resumed,
        });
        let memory = Memory::default();
        let mut settings = self.settings.clone();
        let mut visit = Visit {
            page: &self.setting.pages[job.key.page],
            urls: &self.urls[job.key.page],
            view: View::First,
            version: self.setting.arms[job.key.arm].version,
            limit: self.arguments.limit,
            is_whole: true,
        };
        if handshake != Handshake::Full {
            // A visit before this one, which leaves sessions: for the same settings, since others have other sessions.
            settings.early_data = handshake == Handshake::ZeroRtt;
            settings.ticket_wait = TICKET_WAIT;
            let before = visit.load(&settings, &memory, &self.interrupt);
            if before.map_err(Failure::run)?.is_none() {
                return Ok(None);
            }
            settings.ticket_wait = Duration::ZERO;
        }
        visit.view = view;
        visit.is_whole = false;
        let visited = visit.load(&settings, &memory, &self.interrupt);
        visited.map_err(Failure::run)
    }

    /// A row of loads.ndjson.
    fn row(&self, job: &Job, loaded: &Loaded, visited: &Visited) -> Value {
        let mut row = self.setting.row(job, loaded);
        row["protocols"] = json!(visited.protocols);
        row["handshakes"] = json!(visited.handshakes);
        row["error"] = json!(visited.error);
        let millis = |at: Option<Time>| {
            at.map(|at| (at.since(Time::ZERO).as_secs_f64() * 1e6).round() / 1e3)
        };
        let resources = visited.outcome.resources.iter().map(|moment| {
            let Moment {
                requested,
                first_byte,
                complete,
                executed,
            } = *moment;
            [requested, first_byte, complete, executed].map(millis)
        });
        row["resources"] = resources.collect();
        row
    }

    fn facts(&self, done: usize) -> Vec<(String, String)> {
        let arguments = self.arguments;
        let facts = [
            ("version", report::version()),
            ("command", report::again()),
            ("corpus", corpus_name(arguments.corpus.as_deref())),
            ("server", arguments.server.clone()),
            ("page loads", done.to_string()),
            ("handshake", handshake_name(arguments.handshake)),
            ("method", "docs/compare.md".to_owned()),
        ];
        facts.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

fn limit(text: &str) -> Result<Duration, String> {
    let span = units::span(text).map_err(|error| error.to_string())?;
    if span.is_zero() || span > LIMIT_MAX {
        return Err(format!(
            "invalid limit `{text}` (expected more than zero and at most {})",
            units::show_span(LIMIT_MAX)
        ));
    }
    Ok(span)
}

/// The address of the server.
fn address(text: &str) -> Result<SocketAddr, Failure> {
    let wrong = |why: &str| {
        Failure::Usage(format!(
            "server `{text}`: {why} (expected HOST:PORT, such as 127.0.0.1:4433)"
        ))
    };
    let mut found = text
        .to_socket_addrs()
        .map_err(|error| wrong(&error.to_string()))?;
    found.next().ok_or_else(|| wrong("no address"))
}

fn settings(
    arguments: &Arguments,
    server: SocketAddr,
    registry: &Registry,
) -> Result<Settings, Failure> {
    let spec = registry.parse("cubic").map_err(Failure::usage)?;
    let mut settings = Settings::new(Config::new(spec));
    let credentials = &arguments.credentials;
    credentials.apply(&mut settings, Failure::Usage, Failure::Usage)?;
    settings.https_records = false;
    settings.connect_to = vec![ConnectTo {
        host: None,
        port: None,
        to_host: Some(server.ip().to_string()),
        to_port: Some(server.port()),
    }];
    Ok(settings)
}

/// The pages to load, with their numbers in the corpus.
fn pages(arguments: &Arguments) -> Result<Vec<(usize, Arc<Page>)>, Failure> {
    let mut pages: Vec<_> = corpus(arguments.corpus.as_deref())?
        .into_iter()
        .enumerate()
        .collect();
    for name in &arguments.page {
        if !pages.iter().any(|(_, page)| page.name == *name) {
            return Err(Failure::Usage(format!(
                "--page: no page `{name}` in the corpus (`{}` is the first)",
                pages[0].1.name
            )));
        }
    }
    if !arguments.page.is_empty() {
        pages.retain(|(_, page)| arguments.page.contains(&page.name));
    }
    if let Some(count) = arguments.pages {
        pages.truncate(count.get());
    }
    Ok(pages)
}
