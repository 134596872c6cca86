//! A run with its display, and what its end means.

use std::{
    io,
    sync::{Arc, mpsc},
    thread,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lastbyte_load::{Control, Error, Measurement, Settings};

use super::live::{self, Live};
use crate::{commands::get, failure::Failure};

/// The exit code of an interrupted program in shells: 128 + SIGINT.
pub(super) const INTERRUPTED: u8 = 130;

/// Why a run has no response.
pub(super) fn no_response(measurement: &Measurement) -> String {
    let errors = &measurement.recorder.errors;
    let most = errors.iter().max_by_key(|(_, times)| **times);
    let why = most.map_or(
        "none until the end (a longer -D tells a slow server from none)",
        |(why, _)| why,
    );
    let hint = if why.contains("certificate is not trusted") {
        format!("; {}", get::UNTRUSTED)
    } else {
        String::new()
    };
    format!("no response: {why}{hint}")
}

/// Runs with a view of the progress behind a label, if stderr is a terminal.
pub(super) fn watched(
    settings: &Settings,
    control: &Arc<Control>,
    label: &str,
) -> Result<Measurement, Failure> {
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
            bar.set_message(format!("{label}{}", live.update(control)));
        }
        bar.finish_and_clear();
        let failed = |_| Err(Error::Io(io::Error::other("the run panicked")));
        running.join().unwrap_or_else(failed)
    })
    .map_err(|error| match error {
        Error::Settings(_) => Failure::usage(error),
        error => Failure::run(error),
    })
}
