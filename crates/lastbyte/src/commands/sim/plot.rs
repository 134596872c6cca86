//! Pictures of one transfer, arm by arm.

use core::time::Duration;
use std::path::{Path, PathBuf};

use lastbyte_congestion::{Phase, Time};
use lastbyte_link::{self as link, Capacity, Limit, Queue};
use lastbyte_report::transfer::{Arm, Guides, Picture, Point};
use lastbyte_sim::{
    Handshake, Scenario,
    recorder::{Recorder, Recording, Sample},
    row::Row,
    simulate,
};
use lastbyte_units as units;

use super::{Job, described};
use crate::{failure::Failure, files};

/// The format of a chart, by the file's extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Html,
    Svg,
    Png,
}

fn kind(option: &str, path: &Path) -> Result<Kind, Failure> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("html") => Ok(Kind::Html),
        Some("svg") => Ok(Kind::Svg),
        Some("png") => Ok(Kind::Png),
        _ => Err(Failure::Usage(format!(
            "{option}: unknown format `{}` (expected a name that ends in .html, .svg or .png)",
            path.display()
        ))),
    }
}

/// Whether pictures can be written to these files, which `option` names.
pub(crate) fn check_files(option: &str, plots: &[PathBuf]) -> Result<(), Failure> {
    for file in plots {
        kind(option, file)?;
        files::check_folder_of(file)?;
    }
    Ok(())
}

/// Writes a picture to each of these files.
pub(crate) fn write(files: &[PathBuf], picture: &Picture) -> Result<(), Failure> {
    for file in files {
        let bytes = match kind("--plot", file)? {
            Kind::Html => picture.html().into_bytes(),
            Kind::Svg => picture.svg().into_bytes(),
            Kind::Png => picture
                .png()
                .map_err(|error| Failure::Run(format!("`{}`: {error}", file.display())))?,
        };
        files::write(file, &bytes)?;
    }
    Ok(())
}

/// Whether these jobs can be drawn: one transfer, by each arm.
pub(super) fn check(plots: &[PathBuf], jobs: &[Job]) -> Result<(), Failure> {
    check_files("--plot", plots)?;
    let Some(first) = jobs.first().filter(|_| !plots.is_empty()) else {
        return Ok(());
    };
    let is_same = |job: &Job| {
        job.label.network == first.label.network && job.label.size_bytes == first.label.size_bytes
    };
    if jobs.iter().all(is_same) {
        Ok(())
    } else {
        Err(Failure::Usage(
            "--plot draws one transfer per arm (expected one --network and one --size)".to_owned(),
        ))
    }
}

/// Draws the first flow of each arm and kind of handshake, with the first seed.
pub(super) fn draw(files: &[PathBuf], jobs: &[Job]) -> Result<(), Failure> {
    let Some(first) = jobs.first() else {
        return Ok(());
    };
    let arms: Result<Vec<Arm>, Failure> = jobs
        .iter()
        .filter(|job| job.label.seed == first.label.seed)
        .map(arm)
        .collect();
    let label = &first.label;
    let picture = Picture {
        title: format!(
            "{} over {}",
            units::show_bytes(label.size_bytes),
            label.network
        ),
        subtitle: subtitle(jobs),
        arms: arms?,
        guides: guides(&first.scenario),
    };
    write(files, &picture)
}

/// The path, and which of several transfers is drawn.
fn subtitle(jobs: &[Job]) -> String {
    let Some(first) = jobs.first() else {
        return String::new();
    };
    let mut words = described(&first.scenario);
    let flows = first.scenario.flows.len();
    if flows > 1 {
        words.push(format!("flow 1 of {flows}"));
    }
    let is_run = |job: &&Job| {
        job.label.arm == first.label.arm && job.label.handshake == first.label.handshake
    };
    let runs = jobs.iter().filter(is_run).count();
    if runs > 1 {
        words.push(format!("run 1 of {runs}"));
    }
    words.push(format!("seed {}", first.label.seed));
    words.join(" · ")
}

fn arm(job: &Job) -> Result<Arm, Failure> {
    let scenario = &job.scenario;
    let flow = scenario.flows.first();
    let start = flow.map_or(Duration::ZERO, |flow| flow.start);
    let mut recorder = Recorder::new(0, scenario.direction(), Time::ZERO + start);
    let outcome = simulate(&job.scenario, &mut recorder).map_err(Failure::usage)?;
    let recording = recorder.into_recording();
    let mut name = job.label.arm.clone();
    if job.label.handshake != Handshake::Full {
        name = format!("{name}, {}", job.label.handshake.name());
    }
    let mut arm = Arm::new(name);
    if let Some(row) = Row::all(&job.label, &outcome).first() {
        arm.note = note(row);
        arm.events = events(row, &recording);
    }
    let end = outcome.ended_at.since(Time::ZERO + start);
    arm.sent = bytes(&recording.sent);
    arm.acked = bytes(&recording.acked);
    arm.lost = bytes(&recording.lost);
    arm.queue = bytes(&recording.queue);
    arm.drops = bytes(&recording.drops);
    arm.marks = bytes(&recording.marks);
    arm.window = bytes(&recording.window);
    arm.in_flight = bytes(&recording.in_flight);
    // No pacing is no rate to be drawn.
    arm.pacing = bytes(&recording.pacing);
    arm.pacing.retain(|point| point.value > 0.0);
    arm.rtt = spans(&recording.rtt);
    arm.rtt_smoothed = spans(&recording.rtt_smoothed);
    let recovery = recording.recovery.iter();
    arm.recovery = recovery
        .map(|(from, to)| (ms(*from), ms(to.unwrap_or(end))))
        .collect();
    Ok(arm)
}

fn note(row: &Row) -> String {
    let time = row.ttlb.map_or_else(
        || "did not arrive".to_owned(),
        |ttlb| format!("{:.1} ms", ms(ttlb)),
    );
    let share = if row.packets_sent > 0 {
        row.packets_lost as f64 / row.packets_sent as f64 * 100.0
    } else {
        0.0
    };
    format!(
        "{time}, {} of {} packets lost ({share:.1} %)",
        row.packets_lost, row.packets_sent
    )
}

fn events(row: &Row, recording: &Recording) -> Vec<(f64, String)> {
    let mut events = Vec::new();
    let mut add = |at: Option<Duration>, what: &str| {
        if let Some(at) = at {
            events.push((ms(at), what.to_owned()));
        }
    };
    add(row.ttfb, "first byte");
    let exit = row.startup_exit.or_else(|| {
        let left = recording
            .phases
            .iter()
            .find(|(_, phase)| *phase != Phase::Startup);
        left.map(|(at, _)| *at)
    });
    add(exit, "startup ends");
    add(row.ttlb, "last byte");
    events
}

fn rate(link: &link::Config) -> Option<lastbyte_link::Rate> {
    match &link.capacity {
        Capacity::Constant(rate) => Some(*rate),
        _ => None,
    }
}

fn guides(scenario: &Scenario) -> Guides {
    let link = scenario.bottleneck();
    let rate = rate(link);
    let queue_limit = match link.queue {
        Queue::DropTail(queue) => match queue.limit {
            Limit::Bytes(bytes) => Some(bytes as f64),
            Limit::Time(span) => rate.map(|rate| rate.bytes_in(span) as f64),
            _ => None,
        },
        _ => None,
    };
    Guides {
        rate: rate.map(|rate| rate.bits_per_second() as f64),
        queue_limit,
        rtt: Some(ms(scenario.path.down.delay + scenario.path.up.delay)),
    }
}

fn bytes(series: &[Sample<u64>]) -> Vec<Point> {
    let points = series.iter();
    points
        .map(|(at, value)| Point::new(ms(*at), *value as f64))
        .collect()
}

fn spans(series: &[Sample<Duration>]) -> Vec<Point> {
    let points = series.iter();
    points
        .map(|(at, value)| Point::new(ms(*at), ms(*value)))
        .collect()
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}
