//! `lastbyte bench`: loads a server. The work is done by the crate `lastbyte-load`.
//!
//! | module | owns |
//! |---|---|
//! | `against` | two servers in turn, and the ratio of their results |
//! | `arguments` | the options |
//! | `compare` | the change between the runs of two commands |
//! | `interval` | intervals of a change over runs |
//! | `live` | display on the terminal during a run |
//! | `log` | the file of the connection log |
//! | `plot` | the page of `--plot` |
//! | `settings` | from options to the settings of a run, and the file of requests |
//! | `thresholds` | limits of the results, for continuous integration |
//! | `watch` | a run with its display |

mod against;
mod arguments;
mod compare;
mod interval;
mod live;
mod log;
mod plot;
mod settings;
mod thresholds;
mod watch;

use std::{process::ExitCode, sync::Arc};

use lastbyte_load::{Control, LineSink, report};

pub(crate) use self::arguments::Arguments;
use self::{
    log::LogFile,
    watch::{INTERRUPTED, no_response, watched},
};
use crate::{
    failure::Failure,
    jobs::Interrupt,
    terminal::{error, notice, print},
};

/// Why an option is refused that is no more.
pub(super) fn refusal(option: &str) -> Option<String> {
    let what = match option {
        "--no-keepalive" => "--mix new=1: a connection for each request",
        "--resume" => "--mix resumed=1: a connection for each request, with resumed sessions",
        "--0rtt" => "--mix 0rtt=1: a connection for each request, in 0-RTT",
        _ => return None,
    };
    Some(format!("`{option}` is not an option (expected {what})"))
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if !arguments.compare.is_empty() {
        print(&compare::compare(&arguments.compare)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let plots = arguments.plot.as_slice();
    if !arguments.figure.check("--plot", plots)? {
        plots.iter().try_for_each(|path| plot::check(path))?;
    }
    let mut settings = settings::settings(arguments)?;
    // It overwrites a file: only once all options are known to be right.
    let log = match &arguments.connection_log {
        Some(path) => Some(LogFile::create(path)?),
        None => None,
    };
    settings.connection_log = log.clone().map(|log| log as Arc<dyn LineSink>);
    if let Some(note) = settings::note_of_rate(&settings) {
        notice(format!("note: {note}"));
    }
    if let Some(url) = &arguments.against {
        return against::run(arguments, &settings, url);
    }
    let interrupt = Interrupt::listen();
    let control = Arc::new(Control::new(settings.threads, interrupt.flag()));
    let measurement = watched(&settings, &control, "")?;
    let text = if arguments.json {
        format!("{:#}\n", report::json(&settings, &measurement))
    } else {
        report::text(&settings, &measurement)
    };
    print(&text)?;
    if arguments.figure.is_given() {
        let figures = plot::run(&settings, &measurement).figures();
        arguments.figure.write(plots, &figures)?;
    } else if let Some(path) = &arguments.plot {
        plot::write(path, &settings, &measurement)?;
    }
    if let Some(log) = log {
        log.finish()?;
    }
    if measurement.is_interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let counts = &measurement.recorder.counts;
    if counts.done == 0 {
        return Err(Failure::run(no_response(&measurement)));
    }
    let failed = arguments.thresholds.failures(&settings, &measurement);
    for what in &failed {
        error(format!("error: threshold failed: {what}"));
    }
    if !failed.is_empty() {
        return Ok(ExitCode::from(thresholds::FAILED));
    }
    if counts.succeeded == 0 && arguments.thresholds.max_errors.is_none() {
        let [_, one, _, _, four, five] = counts.statuses;
        return Err(Failure::run(format!(
            "no successful response: {} requests failed ({four} with 4xx, {five} with 5xx, {one} with 1xx, {} without a response)",
            counts.failed, counts.errored
        )));
    }
    Ok(ExitCode::SUCCESS)
}
