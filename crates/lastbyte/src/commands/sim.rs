//! `lastbyte sim`: transfers over a path, arm by arm.

mod arguments;
mod arrivals;
pub(crate) mod plot;
mod qlogs;
mod table;

use core::{num::NonZeroUsize, time::Duration};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use lastbyte_congestion::{Registry, SavedPath};
use lastbyte_scenario::{
    self as scenario, Arm, CrossKind, CrossTraffic, Direction, FlowPlan, Scenario, Security,
    Transport, Workload, arrivals::Sizes,
};
use lastbyte_sim::{
    Listener, Outcome, ServerSettings, SimError,
    listener::Listeners,
    row::{Label, Row},
    simulate, simulate_with,
};
use lastbyte_units as units;

pub(crate) use self::arguments::Arguments;
use self::qlogs::Qlogs;
use crate::{
    commands::{figure::FigureArguments, path::describe_data, serve::Simulated},
    failure::Failure,
    jobs::{Interrupt, run_all},
    terminal::{notice, print},
};

/// One simulation.
struct Job {
    label: Label,
    scenario: Scenario,
    /// The server of --serve-config.
    server: Option<Arc<ServerSettings>>,
}

impl Job {
    fn run(&self, interrupt: &Interrupt, listener: &mut impl Listener) -> Result<Outcome, Failure> {
        let mut interrupt = interrupt.clone();
        let mut listeners = Listeners(vec![listener as &mut dyn Listener, &mut interrupt]);
        match &self.server {
            Some(server) => simulate_with(&self.scenario, server, &mut listeners),
            None => simulate(&self.scenario, &mut listeners),
        }
        .map_err(|error| match error {
            SimError::Cancelled => Failure::Interrupted,
            error => Failure::usage(error),
        })
    }
}

impl Listener for Interrupt {
    fn is_cancelled(&self) -> bool {
        self.is_pressed()
    }
}

/// Why an option is refused that is no more.
pub(super) fn refusal(option: &str) -> Option<String> {
    let option = option.split('=').next()?;
    let what = match option {
        "--trace" => "--qlog DIR: the events of both ends of each connection",
        "--qlog-dialect" => "--qlog DIR alone: the files are of version 0.3",
        _ => return None,
    };
    Some(format!("`{option}` is not an option (expected {what})"))
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    let config = arguments.serve_config.as_deref();
    let simulated = config.map(|path| Simulated::read(path, registry));
    let simulated = simulated.transpose()?;
    if let (Some(simulated), Some(path)) = (&simulated, config)
        && !simulated.ignored.is_empty()
    {
        let keys = simulated.ignored.join(", ");
        notice(format!("`{}`: not simulated: {keys}", path.display()));
    }
    let jobs = jobs(arguments, registry, simulated)?;
    if !arguments.figure.check("--plot", &arguments.plot)? {
        plot::check_files("--plot", &arguments.plot)?;
    }
    plot::check_one(&arguments.plot, &jobs)?;
    if arguments.uses_ecn() {
        warn_without_marks(&jobs);
    }
    let interrupt = Interrupt::listen();
    if arguments.arrivals.is_some() {
        return arrivals::run(arguments, &jobs, &interrupt);
    }
    let qlog = arguments.qlog.as_deref();
    let qlog = qlog.map(|folder| (folder, arguments.force));
    let rows = rows(&jobs, qlog, arguments.jobs, &interrupt)?;
    print_rows(arguments.json, &jobs, &rows)?;
    if !arguments.plot.is_empty() {
        plot::draw(&arguments.plot, &arguments.figure, &jobs, &interrupt)?;
    }
    let responses = arguments.requests as usize * arguments.parallel as usize;
    let expected = jobs.iter().map(|job| job.scenario.flows.len()).sum();
    Ok(verdict(&rows, expected, responses))
}

/// Runs the transfers of another command again, prints them, and draws them or writes their qlog files to a folder, in place of
/// those of an earlier run or not.
pub(super) fn replay(
    transfers: Vec<(Label, Scenario)>,
    plots: &[PathBuf],
    qlog: Option<(&Path, bool)>,
    is_json: bool,
) -> Result<ExitCode, Failure> {
    let jobs = jobs_of(transfers);
    plot::check_files("--plot", plots)?;
    plot::check_one(plots, &jobs)?;
    let interrupt = Interrupt::listen();
    let rows = rows(&jobs, qlog, None, &interrupt)?;
    print_rows(is_json, &jobs, &rows)?;
    if interrupt.is_pressed() {
        return Err(Failure::Interrupted);
    }
    if !plots.is_empty() {
        plot::draw(plots, &FigureArguments::default(), &jobs, &interrupt)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The transfers of another command.
fn jobs_of(transfers: Vec<(Label, Scenario)>) -> Vec<Job> {
    let transfers = transfers.into_iter();
    transfers
        .map(|(label, scenario)| Job {
            label,
            scenario,
            server: None,
        })
        .collect()
}

/// The simulations, in order of network, size, arm, handshake and seed.
fn jobs(
    arguments: &Arguments,
    registry: &Registry,
    simulated: Option<Simulated>,
) -> Result<Vec<Job>, Failure> {
    arguments.check().map_err(Failure::usage)?;
    let (arms, server) = simulated.map(|it| (it.arms, Arc::new(it.server))).unzip();
    let arms = match arms.filter(|_| arguments.arm.is_empty()) {
        Some(arms) => arms,
        None => arguments.arms(registry).map_err(Failure::usage)?,
    };
    let cross = arguments.cross(registry).map_err(Failure::usage)?;
    let mut jobs = Vec::new();
    for (network, mut path) in arguments.path.paths()? {
        path.client_acks = arguments.client_acks.or(path.client_acks);
        for size in &arguments.size {
            for (arm, handshake) in arms
                .iter()
                .flat_map(|arm| arguments.handshake.iter().map(move |kind| (arm, *kind)))
            {
                for run in 0..u64::from(arguments.runs) {
                    let seed = arguments.seed + run;
                    let label = Label {
                        arm: arm.name.clone(),
                        network: network.clone(),
                        size_bytes: *size,
                        seed,
                        handshake,
                    };
                    let mut scenario = scenario(arguments, path.clone(), &cross, arm, &label);
                    if let Some(server) = &server {
                        let connections = &server.connections;
                        // What is not the server's: cross traffic, and marks of clients.
                        scenario.transport.datagram_size = connections.mtu.maximum;
                        scenario.transport.ecn |= connections.ecn;
                    }
                    jobs.push(Job {
                        label,
                        scenario,
                        server: server.clone(),
                    });
                }
            }
        }
    }
    Ok(jobs)
}

/// Warns of ECN that has no effect, once for each network.
fn warn_without_marks(jobs: &[Job]) {
    let has_marks = |job: &Job| data_link(&job.scenario).marks();
    for jobs in jobs.chunk_by(|one, next| one.label.network == next.label.network) {
        if let Some(job) = jobs.first()
            && job.scenario.transport.ecn
            && !has_marks(job)
        {
            notice(format!(
                "warning: --ecn: no queue of {} marks packets (expected --aqm with a discipline that marks, or --mark)",
                job.label.network
            ));
        }
    }
}

/// The link of the data.
fn data_link(scenario: &Scenario) -> &lastbyte_link::Config {
    scenario.path.link(scenario.direction())
}

/// Describes the path in the direction of the data.
fn described(scenario: &Scenario) -> Vec<String> {
    let mut words = describe_data(&scenario.path, scenario.direction());
    if data_link(scenario).marks() && !scenario.transport.ecn {
        words.push("endpoints without ECN".to_owned());
    }
    if scenario.direction() == Direction::Up {
        words.insert(0, "upload".to_owned());
    }
    let cross = scenario.path.cross.iter().chain(&scenario.cross);
    words.extend(cross.map(cross_words));
    words
}

/// Describes cross traffic: `cross traffic cubic`, `cross traffic cbr:5mbit up from 1s`.
fn cross_words(cross: &CrossTraffic) -> String {
    let kind = match &cross.kind {
        CrossKind::Bulk(spec) => spec.to_string(),
        CrossKind::Stack(spec) => format!("stack:{spec}"),
        CrossKind::Pages(spec, pages) => format!(
            "pages:{spec} {} {}",
            units::show_bytes(pages.bytes),
            units::show_span(pages.every)
        ),
        CrossKind::Arrivals(spec, arrivals) => format!(
            "poisson:{spec} {} of {}",
            units::show_share(arrivals.load),
            match arrivals.sizes {
                Sizes::Web => "web".to_owned(),
                Sizes::Fixed(bytes) => units::show_bytes(bytes),
            }
        ),
        CrossKind::Constant(rate) => format!("cbr:{}", units::show_rate(*rate)),
    };
    let direction = match cross.direction {
        Direction::Down => "",
        Direction::Up => " up",
    };
    let start = match cross.start {
        Duration::ZERO => String::new(),
        start => format!(" from {}", units::show_span(start)),
    };
    format!("cross traffic {kind}{direction}{start}")
}

/// The workload of each flow.
fn workload(arguments: &Arguments) -> Workload {
    Workload {
        requests: arguments.requests,
        parallel: arguments.parallel,
        pause: arguments.pause,
        direction: if arguments.upload {
            Direction::Up
        } else {
            Direction::Down
        },
    }
}

fn scenario(
    arguments: &Arguments,
    mut path: scenario::Path,
    cross: &[CrossTraffic],
    arm: &Arm,
    label: &Label,
) -> Scenario {
    let workload = workload(arguments);
    if workload.direction == Direction::Up {
        path.turn_for_uploads();
    }
    let mut progress = arguments.progress.clone();
    progress.sort_unstable();
    // Transfers that arrive at random take the place of flows.
    let arrivals = arguments.arrivals.map(|(arrivals, span)| {
        let kind = CrossKind::Arrivals(arm.spec.clone(), arrivals);
        (CrossTraffic::from(kind), span)
    });
    let (arrivals, horizon) = arrivals.unzip();
    let flows = if arrivals.is_some() {
        0
    } else {
        arguments.flows
    };
    let flows = (0..flows).map(|flow| FlowPlan {
        congestion: arm.spec.clone(),
        start: arguments.stagger.saturating_mul(flow),
        rtt: arguments.rtt_of(flow),
        direction: workload.direction,
        requests: workload.requests(|_| label.size_bytes),
        progress: progress.clone(),
    });
    let acks = path.client_acks.unwrap_or_default();
    let round_trip = path.rtt();
    Scenario {
        path,
        flows: flows.collect(),
        horizon: horizon.unwrap_or_default(),
        cross: cross.iter().cloned().chain(arrivals).collect(),
        transport: Transport {
            handshake: label.handshake,
            saved_path: arguments.saved_window.map(|window| SavedPath {
                window,
                rtt: round_trip,
            }),
            security: if arguments.tls {
                Security::Tls
            } else {
                Security::Simulated
            },
            datagram_size: arguments.mtu,
            adapts_to_reordering: true,
            ack_frequency: arguments.ack_frequency,
            ecn: arguments.uses_ecn(),
            max_ack_delay: acks.max_ack_delay(),
            ack_decimation: acks.decimation(),
            stream_window: arguments.window,
            has_fixed_windows: false,
            certificate_chain: arguments.certificate_chain,
        },
        seed: label.seed,
        time_limit: arguments.time_limit,
    }
}

/// Runs simulations: with qlog files to a folder, in place of those of an earlier run or not, one after the other. Ctrl-C ends them
/// in the middle of a transfer; there are the rows of those before it.
fn rows(
    jobs: &[Job],
    qlog: Option<(&Path, bool)>,
    parallel: Option<NonZeroUsize>,
    interrupt: &Interrupt,
) -> Result<Vec<Row>, Failure> {
    let (Some((folder, overwrites)), Some(first)) = (qlog, jobs.first()) else {
        let run = |job: &Job| Ok(Row::all(&job.label, &job.run(interrupt, &mut ())?));
        let results = run_all(jobs, parallel, interrupt, run).into_iter();
        let results = results.filter(|result| !matches!(result, Err(Failure::Interrupted)));
        let rows: Result<Vec<Vec<Row>>, Failure> = results.collect();
        return Ok(rows?.concat());
    };
    let mut qlogs = Qlogs::new(folder.to_owned(), overwrites, first.label.clone())?;
    let mut rows = Vec::new();
    for job in jobs {
        qlogs.relabel(job.label.clone())?;
        match job.run(interrupt, &mut qlogs) {
            Err(Failure::Interrupted) => break,
            outcome => rows.extend(Row::all(&job.label, &outcome?)),
        }
    }
    qlogs.finish()?;
    Ok(rows)
}

fn print_rows(is_json: bool, jobs: &[Job], rows: &[Row]) -> Result<(), Failure> {
    let mut text = String::new();
    if is_json {
        text.push('[');
        for (index, row) in rows.iter().enumerate() {
            text.push_str(if index == 0 { "\n " } else { ",\n " });
            row.write_json(&mut text);
        }
        text.push_str("\n]\n");
    } else {
        let path = |network: &str| {
            let job = jobs.iter().find(|job| job.label.network == network);
            job.map_or_else(String::new, |job| described(&job.scenario).join(", "))
        };
        text.push_str(&table::tables(rows, path));
        text.push_str("\nTTLB and TTFB: at the client, from its first datagram.\n");
    }
    print(text)
}

fn interrupted() -> ExitCode {
    notice("interrupted: the results above are partial");
    ExitCode::from(130)
}

/// Warnings about settings and transfers that did not have the requested result.
fn verdict(rows: &[Row], expected: usize, responses: usize) -> ExitCode {
    let is_complete = |row: &&Row| {
        let later = row.next_ttlb.iter().flatten().count();
        row.ttlb.is_some() && later + 1 == responses
    };
    let incomplete: Vec<&Row> = rows.iter().filter(|row| !is_complete(row)).collect();
    if let Some(first) = incomplete.first() {
        let why = match &first.failure {
            Some(failure) => format!("the connection ended: {failure}"),
            None => "incomplete at the --time-limit".to_owned(),
        };
        notice(format!(
            "warning: {} of {} transfers did not complete; the first: {} over {}, seed {}: {why}",
            incomplete.len(),
            rows.len(),
            first.label.arm,
            first.label.network,
            first.label.seed
        ));
    }
    if rows.len() < expected {
        return interrupted();
    }
    if incomplete.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
