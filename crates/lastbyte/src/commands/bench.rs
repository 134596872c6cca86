//! `lastbyte bench`: loads a server. The work is done by the crate `lastbyte-load`.
//!
//! | module | owns |
//! |---|---|
//! | `arguments` | the options |
//! | `compare` | the change between two runs |
//! | `h2load` | refusals of h2load's options that are not supported |
//! | `live` | display on the terminal during a run |
//! | `log` | the file of the connection log |
//! | `plot` | the page of `--plot` |
//! | `settings` | from options to the settings of a run, and the file of requests |

mod arguments;
mod compare;
mod h2load;
mod live;
mod log;
mod plot;
mod settings;

use std::{
    io,
    process::ExitCode,
    sync::{Arc, mpsc},
    thread,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lastbyte_load::{Control, Error, LineSink, Measurement, Settings, report};

pub(crate) use self::{arguments::Arguments, h2load::refusal};
use self::{live::Live, log::LogFile};
use crate::{failure::Failure, jobs::Interrupt, terminal::print};

/// The exit code of an interrupted program in shells: 128 + SIGINT.
const INTERRUPTED: u8 = 130;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if !arguments.compare.is_empty() {
        print(&compare::compare(&arguments.compare)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &arguments.plot {
        plot::check(path)?;
    }
    let log = match &arguments.connection_log {
        Some(path) => Some(LogFile::create(path)?),
        None => None,
    };
    let sink = log.clone().map(|log| log as Arc<dyn LineSink>);
    let settings = settings::settings(arguments, sink)?;
    let interrupt = Interrupt::listen();
    let control = Arc::new(Control::new(settings.threads, interrupt.flag()));
    let measurement = watched(&settings, &control).map_err(|error| match error {
        Error::Settings(_) => Failure::usage(error),
        error => Failure::run(error),
    })?;
    let text = if arguments.json {
        format!("{:#}\n", report::json(&settings, &measurement))
    } else if arguments.csv {
        report::csv(&settings, &measurement)
    } else {
        report::text(&settings, &measurement)
    };
    print(&text)?;
    if let Some(path) = &arguments.plot {
        plot::write(path, &settings, &measurement)?;
    }
    if let Some(log) = log {
        log.finish()?;
    }
    if measurement.is_interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if measurement.recorder.counts.done == 0 {
        let errors = &measurement.recorder.errors;
        let most = errors.iter().max_by_key(|(_, times)| **times);
        let why = most.map_or("the time was too short", |(why, _)| why);
        let hint = if why.contains("certificate is not trusted") {
            format!("; {}", super::get::UNTRUSTED)
        } else {
            String::new()
        };
        return Err(Failure::run(format!("no response: {why}{hint}")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs with a view of the progress, if stderr is a terminal.
fn watched(settings: &Settings, control: &Arc<Control>) -> Result<Measurement, Error> {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {msg}") {
        bar.set_style(style);
    }
    let (finished, wait) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let running = scope.spawn(move || {
            let result = lastbyte_load::run(settings, control);
            drop(finished);
            result
        });
        let mut live = Live::default();
        while wait.recv_timeout(live::INTERVAL) == Err(mpsc::RecvTimeoutError::Timeout) {
            bar.set_message(live.update(control));
        }
        bar.finish_and_clear();
        let failed = |_| Err(Error::Io(io::Error::other("the run panicked")));
        running.join().unwrap_or_else(failed)
    })
}
