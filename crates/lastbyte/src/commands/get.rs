//! `lastbyte get`: fetches URLs as curl does. The crate `lastbyte-client` does the work.
//!
//! | module | owns |
//! |---|---|
//! | `arguments` | the options |
//! | `settings`, `request` | settings and fetches that the options select |
//! | `exit` | exit codes, as curl's |
//! | `output` | where bodies and headers are written |
//! | `saved` | files with state of earlier runs |
//! | `timing`, `write_out` | the report afterwards |

mod arguments;
mod exit;
mod output;
mod request;
mod saved;
mod settings;
mod timing;
mod write_out;

use std::{path::Path, process::ExitCode};

use lastbyte_client::{Fetch, RunError, run as fetch};
use lastbyte_congestion::Registry;
use lastbyte_driver::Clock;

pub(crate) use self::arguments::Arguments;
use self::{
    arguments::Timing,
    exit::{INTERRUPTED, result},
    output::Outputs,
    saved::SavedState,
    settings::{Refusal, settings},
    timing::Round,
    write_out::WriteOut,
};
pub(super) use self::{
    arguments::{connect_to, refusal},
    exit::UNTRUSTED,
    request::field,
};
use crate::{
    failure::Failure,
    jobs::Interrupt,
    terminal::{self, print},
};

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    let settings = match settings(arguments, registry) {
        Ok(settings) => settings,
        Err(Refusal::Usage(failure)) => return Err(failure),
        Err(Refusal::Authorities(what)) => return Ok(failed(arguments, 77, &what)),
        Err(Refusal::Identity(what)) => return Ok(failed(arguments, 58, &what)),
    };
    let write_out = WriteOut::new(arguments)?;
    let fetches = match request::fetches(arguments) {
        Ok(fetches) => fetches,
        Err((code, what)) => return Ok(failed(arguments, code, &what)),
    };
    let interrupt = Interrupt::listen();
    let clock = Clock::new();
    let (saved, memory) = SavedState::open(arguments);
    let mut rounds = Vec::new();
    let mut exit = 0;
    for round in 0..arguments.connection.repeat.get() {
        let mut outputs = Outputs::new(arguments, &fetches, &interrupt, round)?;
        let report = match fetch(&settings, &memory, clock, fetches.clone(), &mut outputs) {
            Ok(report) => report,
            Err(RunError::Trust(what)) => {
                let what = in_file(
                    arguments
                        .connection
                        .credentials
                        .authorities
                        .cacert
                        .as_deref(),
                    &what,
                );
                return Ok(failed(arguments, 77, &what));
            }
            Err(RunError::Identity(what)) => {
                let what = in_file(arguments.connection.credentials.cert.as_deref(), &what);
                return Ok(failed(arguments, 58, &what));
            }
            Err(error) => return Ok(failed(arguments, 7, &error.to_string())),
        };
        outputs.finish()?;
        for (asked, outcome) in fetches.iter().zip(&report.outcomes) {
            let (code, what) = result(outcome);
            if code != 0 && code != INTERRUPTED {
                let _ = failed(arguments, code, &format!("{}: {what}", asked.url));
            }
            if exit == 0 {
                exit = code;
            }
        }
        let round = Round {
            report,
            heads: outputs.take_heads(),
            handshakes: outputs.into_handshakes(),
        };
        if let Some(write_out) = &write_out {
            write_out.print(&fetches, &round)?;
        }
        rounds.push(round);
        if interrupt.is_pressed() {
            exit = INTERRUPTED;
            break;
        }
    }
    saved.save();
    write_timing(arguments, &fetches, &rounds)?;
    Ok(ExitCode::from(exit))
}

/// An error in the content of a file, with its name.
fn in_file(file: Option<&Path>, what: &str) -> String {
    file.map_or_else(
        || what.to_owned(),
        |file| format!("`{}`: {what}", file.display()),
    )
}

fn write_timing(arguments: &Arguments, fetches: &[Fetch], rounds: &[Round]) -> Result<(), Failure> {
    let text = match arguments.shown.timing {
        None if arguments.connection.repeat.get() == 1 => return Ok(()),
        Some(Timing::Json) => timing::json(fetches, rounds),
        None | Some(Timing::Text) => timing::text(fetches, rounds),
    };
    print(text)
}

/// Prints the error unless `--silent` is given, and returns the exit code.
fn failed(arguments: &Arguments, code: u8, what: &str) -> ExitCode {
    if !arguments.shown.silent || arguments.shown.show_error {
        terminal::error(format!("error: ({code}) {what}"));
    }
    ExitCode::from(code)
}
