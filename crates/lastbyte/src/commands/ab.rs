//! `lastbyte ab`: a whole experiment, in the embedded simulator.

use core::{num::NonZeroUsize, time::Duration};
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use comfy_table::{Cell, CellAlignment, Table, presets};
use lastbyte_query::{Format, Input, Options, Query};
use lastbyte_record::connection_log::{self, Header};
use lastbyte_report::comparison::Settings;
use lastbyte_sim::{
    Outcome, Protocol,
    experiment::{Experiment, Plan},
    simulate,
};

use crate::{
    commands::report,
    failure::Failure,
    files,
    jobs::{Interrupt, progress_bar, run_with_bar},
};

const EXAMPLES: &str = "\
Examples:
  # The four arms over the population that is built in: a log, a table, and a page.
  lastbyte ab
  # Each path in every arm, which shows smaller differences; fewer connections.
  lastbyte ab --paired --connections 4000 --out paired
  # An experiment of your own: experiments/four-arms.toml shows the form, docs/population.md the population's.
  lastbyte ab mine.toml --seed 7

The log, conns.ndjson in the folder of --out, has a line for each connection, with the keys that H2O writes and some of our
own (arm, site, class, client.ttlb, link.rate, …): `lastbyte query` reads it. report.html beside it shows how the arms compare,
and how sure that is: docs/report.md.";

/// Draws connections from a population of paths into arms at random, simulates them, and compares the arms.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The experiment; without one, the four arms in which Rapid Start was measured
    #[arg(value_name = "EXP.toml")]
    file: Option<PathBuf>,
    /// How many connections. Default: what the experiment says
    #[arg(long, value_name = "N")]
    connections: Option<u64>,
    /// Where all chance comes from. Default: what the experiment says
    #[arg(long)]
    seed: Option<u64>,
    /// Simulate each path in every arm, in place of an arm drawn at random
    #[arg(long)]
    paired: bool,
    /// What client and server speak: h3, or raw for a request and a response without HTTP. Default: what the experiment says
    #[arg(long, value_name = "NAME")]
    protocol: Option<Protocol>,
    /// Simulations at a time. Default: one a core
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// The folder for conns.ndjson and report.html
    #[arg(long, value_name = "DIR", default_value = "ab")]
    out: PathBuf,
    /// JSON in place of a table
    #[arg(long)]
    json: bool,
}

/// Does what it was told.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let experiment = experiment(arguments)?;
    let total = arguments.connections.unwrap_or(experiment.connections);
    if total == 0 {
        return Err(Failure::Usage("--connections must be 1 or more".to_owned()));
    }
    files::create_folder(&arguments.out)?;
    let log = arguments.out.join("conns.ndjson");
    let interrupt = Interrupt::listen();
    let done = simulate_all(arguments, &experiment, total, &log, &interrupt)?;
    let page = page(arguments, &experiment, done, &log)?;
    let text = if arguments.json {
        summary_json(
            &experiment,
            &log,
            page.as_ref().map(|(page, _)| page.as_str()),
        )?
    } else {
        let mut text = summary(&experiment, &log)?;
        text.push_str(&queries(&experiment, &log));
        if let Some((_, told)) = &page {
            text.push('\n');
            text.push_str(told);
        }
        text
    };
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::stdout(&error))?;
    if interrupt.is_pressed() {
        say(&format!(
            "interrupted: {done} of {total} connections are in `{}`, and above",
            log.display()
        ));
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stderr, reason = "talk goes to stderr")]
fn say(what: &str) {
    eprintln!("{what}");
}

fn experiment(arguments: &Arguments) -> Result<Experiment, Failure> {
    let mut experiment = match &arguments.file {
        None => Experiment::four_arms(),
        Some(file) => {
            let text = files::read_text(file).map_err(Failure::Usage)?;
            let folder = file.parent().unwrap_or(Path::new(""));
            Experiment::parse_with(&text, &mut |name| files::read_text(&folder.join(name)))
                .map_err(|error| Failure::Usage(format!("`{}`: {error}", file.display())))?
        }
    };
    if let Some(seed) = arguments.seed {
        experiment.seed = seed;
    }
    if let Some(protocol) = arguments.protocol {
        experiment.protocol = protocol;
    }
    Ok(experiment)
}

/// Simulates, and writes the log in the order of the connections. Returns how many there are.
fn simulate_all(
    arguments: &Arguments,
    experiment: &Experiment,
    total: u64,
    log: &Path,
    interrupt: &Interrupt,
) -> Result<u64, Failure> {
    let mut file = files::create(log)?;
    let bar = progress_bar(usize::try_from(total).unwrap_or(usize::MAX));
    let mut done = 0;
    while done < total && !interrupt.is_pressed() {
        let batch: Vec<u64> = (done..total.min(done + BATCH)).collect();
        let lines = run_with_bar(&batch, arguments.jobs, interrupt, &bar, |index| {
            line(experiment, *index, arguments.paired)
        });
        // Of an interrupted run, pairs that are not whole are left out.
        let arms = experiment.arms.len() as u64;
        let odd = if arguments.paired && interrupt.is_pressed() {
            (done + lines.len() as u64) % arms
        } else {
            0
        };
        let whole = lines
            .len()
            .saturating_sub(usize::try_from(odd).unwrap_or(0));
        for line in lines.into_iter().take(whole) {
            file.write_all(line?.as_bytes())
                .map_err(|error| files::cannot_write(log, &error))?;
            done += 1;
        }
    }
    bar.finish_and_clear();
    file.flush()
        .map_err(|error| files::cannot_write(log, &error))?;
    Ok(done)
}

/// Simulates a connection. Returns its line, with its end.
fn line(experiment: &Experiment, index: u64, paired: bool) -> Result<String, Failure> {
    let plan = experiment.connection(index, paired);
    let outcome = simulate(&experiment.scenario(&plan), &mut ()).map_err(|error| {
        Failure::Run(format!(
            "connection {index}, of seed {}: {error}",
            plan.seed
        ))
    })?;
    let mut text = String::new();
    let Some(server) = outcome.flows.first().and_then(|flow| flow.server.as_ref()) else {
        // The client's first datagrams were all lost: there is no server's view.
        text.push_str(&never_began(experiment, &plan, index));
        text.push('\n');
        return Ok(text);
    };
    let ttlb = server.asked_at.zip(server.acked_at);
    let ttlb = ttlb.map(|(asked, acked)| whole_ms(acked.since(asked)));
    let header = Header {
        time_ms: outcome.ended_at.as_nanos() / 1_000_000,
        conn_id: index,
        method: "GET".to_owned(),
        content_length: plan.draw.size_bytes,
        ttlb_ms: ttlb,
    };
    connection_log::write(
        &mut text,
        &header,
        &server.snapshot,
        &facts(experiment, &plan, Some(&outcome)),
    );
    text.push('\n');
    Ok(text)
}

fn never_began(experiment: &Experiment, plan: &Plan, index: u64) -> String {
    let mut text = String::new();
    connection_log::write_without_statistics(
        &mut text,
        &Header {
            time_ms: 0,
            conn_id: index,
            method: "GET".to_owned(),
            content_length: plan.draw.size_bytes,
            ttlb_ms: None,
        },
        &facts(experiment, plan, None),
    );
    text
}

fn facts(
    experiment: &Experiment,
    plan: &Plan,
    outcome: Option<&Outcome>,
) -> connection_log::Experiment {
    let facts = &plan.draw.facts;
    let flow = outcome.and_then(|outcome| outcome.flows.first());
    let response = flow.and_then(|flow| flow.responses.first());
    let ms = |span: Duration| span.as_secs_f64() * 1e3;
    connection_log::Experiment {
        experiment: Some(experiment.name.clone()),
        arm: experiment.arms.get(plan.arm).map(|arm| arm.name.clone()),
        site: Some(plan.draw.site.clone()),
        class: Some(plan.draw.class.clone()),
        seed: Some(plan.seed),
        client_ttlb_ms: response.and_then(|response| response.last_byte).map(ms),
        client_ttfb_ms: response.and_then(|response| response.first_byte).map(ms),
        client_handshake_ms: flow.and_then(|flow| flow.handshake).map(ms),
        link_rate_bps: Some(facts.rate_in_the_long_run().bits_per_second()),
        link_rtt_ms: Some(ms(facts.rtt)),
        link_queue_ms: Some(ms(facts.queue)),
        link_loss: Some(facts.random_loss),
    }
}

fn whole_ms(span: Duration) -> u64 {
    u64::try_from((span.as_nanos() + 500_000) / 1_000_000).unwrap_or(u64::MAX)
}

// ---- the table ------------------------------------------------------------------------------------------------------

/// How many connections and how many complete ones, by arm.
const COUNTS: &str = r#"group_by(_["arm"]) { |r| [count(), count_if(r["complete"])] }"#;
/// Times to last byte, by arm; what never ended is slower than all that did, as on the page.
const TIMES: &str =
    r#"group_by(_["arm"]) { |r| percentile(r["ttlb"] || 1e12, [0.25, 0.5, 0.75, 0.95]) }"#;
/// What stands for the time of what never ended.
const NEVER_MS: f64 = 1e12;
/// The share of packets lost, in percent, by arm.
const LOSSES: &str = r#"select((_["num-packets.sent"] || 0) > 0) >> [_["arm"], 100.0 * _["num-packets.lost"] / _["num-packets.sent"]] >> group_by(_[0]) { |r| [average(r[1]), percentile(r[1], [0.5, 0.9, 0.99])] }"#;

/// What a query says about the log.
fn ask(query: &str, log: &Path) -> Result<serde_json::Value, Failure> {
    let options = Options {
        format: Format::Json,
        ..Options::default()
    };
    let query = Query::compile(query, &[], options).map_err(Failure::run)?;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let path = log.to_owned();
    let input = Input::new(log.display().to_string(), move || files::open(&path));
    if !query.run(vec![input], &mut out, &mut err) {
        return Err(Failure::Run(
            String::from_utf8_lossy(&err).trim().to_owned(),
        ));
    }
    if out.is_empty() {
        return Ok(serde_json::Value::Null);
    }
    serde_json::from_slice(&out).map_err(Failure::run)
}

fn number(value: &serde_json::Value, path: &[usize]) -> Option<f64> {
    let mut value = value;
    for index in path {
        value = value.get(index)?;
    }
    value.as_f64()
}

fn summary(experiment: &Experiment, log: &Path) -> Result<String, Failure> {
    let (counts, times, losses) = (ask(COUNTS, log)?, ask(TIMES, log)?, ask(LOSSES, log)?);
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "arm", "conns", "complete", "TTLB p25", "p50", "p75", "p95", "loss avg", "p50", "p90",
        "p99",
    ]);
    let baseline = experiment
        .arms
        .get(experiment.baseline)
        .map(|arm| &arm.name);
    let base = baseline.and_then(|name| times.get(name));
    for arm in &experiment.arms {
        let name = &arm.name;
        let none = serde_json::Value::Null;
        let of = |values: &'_ serde_json::Value| values.get(name).cloned().unwrap_or(none.clone());
        let (count, time, loss) = (of(&counts), of(&times), of(&losses));
        let conns = number(&count, &[0]).unwrap_or(0.0);
        let complete = number(&count, &[1]).unwrap_or(0.0);
        let mut row = vec![
            name.clone(),
            format!("{conns}"),
            if conns > 0.0 {
                format!("{:.2} %", complete / conns * 100.0)
            } else {
                ABSENT.to_owned()
            },
        ];
        for place in 0..4 {
            let value = number(&time, &[place]);
            let base = base.and_then(|base| number(base, &[place]));
            row.push(match (value, base) {
                (Some(value), _) if value >= NEVER_MS => "never".to_owned(),
                (Some(value), Some(base))
                    if Some(name) != baseline && base > 0.0 && base < NEVER_MS =>
                {
                    format!("{value} ({:+.1} %)", (value / base - 1.0) * 100.0)
                }
                (Some(value), _) => format!("{value} ms"),
                _ => ABSENT.to_owned(),
            });
        }
        for path in [&[0][..], &[1, 0], &[1, 1], &[1, 2]] {
            row.push(number(&loss, path).map_or(ABSENT.to_owned(), |loss| format!("{loss:.2} %")));
        }
        table.add_row(row.into_iter().map(Cell::new));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if let Some(column) = table.column_mut(0) {
        column.set_padding((0, 1));
    }
    Ok(table.trim_fmt() + "\n")
}

fn summary_json(
    experiment: &Experiment,
    log: &Path,
    page: Option<&str>,
) -> Result<String, Failure> {
    let summary = serde_json::json!({
        "experiment": experiment.name,
        "baseline": experiment.arms.get(experiment.baseline).map(|arm| &arm.name),
        "log": log.display().to_string(),
        "report": page,
        "connections": ask(COUNTS, log)?,
        "ttlb_ms_p25_p50_p75_p95": ask(TIMES, log)?,
        "loss_percent_average_and_p50_p90_p99": ask(LOSSES, log)?,
    });
    Ok(format!("{summary:#}\n"))
}

// ---- the page -------------------------------------------------------------------------------------------------------

/// Writes the page. Returns where it is, and what it says in short; nothing if there is nothing to compare, which is said.
fn page(
    arguments: &Arguments,
    experiment: &Experiment,
    done: u64,
    log: &Path,
) -> Result<Option<(String, String)>, Failure> {
    let arms = &experiment.arms;
    let shares = if arguments.paired {
        Vec::new()
    } else {
        arms.iter()
            .map(|arm| (arm.name.clone(), arm.share))
            .collect()
    };
    let settings = Settings {
        baseline: arms.get(experiment.baseline).map(|arm| arm.name.clone()),
        shares,
        seed: experiment.seed,
        threads: report::threads(arguments.jobs),
        title: Some(title(experiment)),
        commands: again(arguments, experiment, done, log),
        facts: page_facts(arguments, experiment, done),
        ..Settings::default()
    };
    match report::compare(&[log.to_owned()], settings) {
        Ok(comparison) => {
            let page = report::write(&comparison, &arguments.out.join("report.html"), None)?;
            let told = report::told(&comparison, &page);
            Ok(Some((page, told)))
        }
        Err(Failure::Run(why) | Failure::Usage(why)) => {
            say(&format!("no report: {why}"));
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

fn title(experiment: &Experiment) -> String {
    if experiment.description.is_empty() {
        return experiment.name.clone();
    }
    format!("{}: {}", experiment.name, experiment.description)
}

/// The commands that give the same log and page.
fn again(arguments: &Arguments, experiment: &Experiment, done: u64, log: &Path) -> Vec<String> {
    let file = arguments.file.as_ref();
    let file = file.map_or_else(String::new, |file| format!(" {}", file.display()));
    let paired = if arguments.paired { " --paired" } else { "" };
    let protocol = arguments.protocol;
    let protocol = protocol.map_or_else(String::new, |one| format!(" --protocol {}", one.name()));
    let command = format!(
        "lastbyte ab{file} --connections {done} --seed {}{paired}{protocol} --out {}",
        experiment.seed,
        arguments.out.display()
    );
    let baseline = experiment.arms.get(experiment.baseline);
    let baseline = baseline.map_or("", |arm| arm.name.as_str());
    let page = format!(
        "lastbyte report {} --baseline {baseline} --seed {}",
        log.display(),
        experiment.seed
    );
    vec![command, page]
}

fn page_facts(arguments: &Arguments, experiment: &Experiment, done: u64) -> Vec<(String, String)> {
    let file = arguments.file.as_ref();
    let file = file.map_or_else(|| "built in".to_owned(), |file| file.display().to_string());
    let mut facts = vec![
        ("version", report::version()),
        ("experiment", format!("{} ({file})", experiment.name)),
        (
            "where",
            "simulated, on modelled paths: docs/population.md".to_owned(),
        ),
        ("connections", done.to_string()),
        ("seed", experiment.seed.to_string()),
        ("protocol", experiment.protocol.name().to_owned()),
        (
            "given up after",
            format!("{} s", experiment.time_limit.as_secs_f64()),
        ),
    ];
    let arms: Vec<(String, String)> = experiment
        .arms
        .iter()
        .map(|arm| (format!("arm {}", arm.name), arm.spec.to_string()))
        .collect();
    facts.extend(
        arms.iter()
            .map(|(name, spec)| (name.as_str(), spec.clone())),
    );
    facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// How to ask again.
fn queries(experiment: &Experiment, log: &Path) -> String {
    let mut text = format!(
        "\nTTLB is from request to last acknowledgment, in ms, and its change against {}. The log, and what was asked of it:\n",
        experiment
            .arms
            .get(experiment.baseline)
            .map_or("the first arm", |arm| &arm.name)
    );
    for query in [COUNTS, TIMES, LOSSES] {
        text.push_str("  lastbyte query '");
        text.push_str(query);
        text.push_str("' ");
        text.push_str(&log.display().to_string());
        text.push('\n');
    }
    text
}

/// What is not known.
const ABSENT: &str = "–";
/// Connections simulated before their lines are written.
const BATCH: u64 = 512;
