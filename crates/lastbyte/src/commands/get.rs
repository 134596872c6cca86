//! `lastbyte get`: fetches, as curl would. What is done is done by the crate `lastbyte-client`.
//!
//! | module | owns |
//! |---|---|
//! | `arguments` | what can be said on the command line |
//! | `settings`, `request` | what that means: settings, and what is fetched |
//! | `output` | where what arrives goes |
//! | `keep` | what is remembered in files, from one run to the next |
//! | `timing`, `write_out` | what is told afterwards |

mod arguments;
mod keep;
mod output;
mod request;
mod settings;
mod timing;
mod write_out;

use std::{ffi::OsString, io::Write, process::ExitCode};

use lastbyte_client::{Failure as FetchFailure, Fetch, Outcome, RunError, run as fetch};
use lastbyte_driver::Clock;

pub(crate) use self::arguments::Arguments;
use self::{
    arguments::Output,
    keep::Keep,
    output::Outputs,
    settings::{Refusal, settings},
    timing::Round,
    write_out::WriteOut,
};
use crate::{failure::Failure, jobs::Interrupt};

/// The words of a command line, with those of the files that it names (`-K`).
#[expect(clippy::print_stderr, reason = "errors go to stderr")]
pub(crate) fn words(given: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>, ExitCode> {
    arguments::expanded(given).map_err(|(code, what)| {
        eprintln!("error: ({code}) {what}");
        ExitCode::from(code)
    })
}

/// Does what it was told.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let settings = match settings(arguments) {
        Ok(settings) => settings,
        Err(Refusal::Usage(failure)) => return Err(failure),
        Err(Refusal::Authorities(what)) => return Ok(failed(arguments, 77, &what)),
        Err(Refusal::Identity(what)) => return Ok(failed(arguments, 58, &what)),
        Err(Refusal::Proxy(what)) => return Ok(failed(arguments, 5, &what)),
    };
    let write_out = WriteOut::new(arguments)?;
    let fetches = match request::fetches(arguments) {
        Ok(fetches) => fetches,
        Err((code, what)) => return Ok(failed(arguments, code, &what)),
    };
    let interrupt = Interrupt::listen();
    let clock = Clock::new();
    let (keep, memory) = Keep::open(arguments)?;
    let mut rounds = Vec::new();
    let mut exit = 0;
    for round in 0..arguments.connection.repeat.get() {
        let mut outputs = Outputs::new(arguments, &fetches, &interrupt, round)?;
        let report = match fetch(&settings, &memory, clock, fetches.clone(), &mut outputs) {
            Ok(report) => report,
            Err(RunError::Trust(what)) => return Ok(failed(arguments, 77, &what)),
            Err(RunError::Identity(what)) => return Ok(failed(arguments, 58, &what)),
            Err(error) => return Ok(failed(arguments, 7, &error.to_string())),
        };
        outputs.finish()?;
        for (asked, outcome) in fetches.iter().zip(&report.outcomes) {
            let (code, what) = result(arguments, outcome);
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
            write_out.print(arguments, &fetches, &round)?;
        }
        rounds.push(round);
        if interrupt.is_pressed() {
            exit = INTERRUPTED;
            break;
        }
    }
    keep.save(&memory)?;
    tell(arguments, &fetches, &rounds)?;
    Ok(ExitCode::from(exit))
}

fn tell(arguments: &Arguments, fetches: &[Fetch], rounds: &[Round]) -> Result<(), Failure> {
    if !arguments.shown.timing && arguments.connection.repeat.get() == 1 {
        return Ok(());
    }
    let text = if arguments.shown.json {
        timing::json(fetches, rounds)
    } else {
        timing::text(fetches, rounds)
    };
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::stdout(&error))
}

/// What shells say of a program that was interrupted.
const INTERRUPTED: u8 = 130;

/// curl's exit code, and why.
fn result(arguments: &Arguments, outcome: &Outcome) -> (u8, String) {
    let is_refused = |status: &u16| arguments.shown.fail_with_body && *status >= 400;
    match (&outcome.failure, outcome.status.filter(is_refused)) {
        (Some(failure), _) => (exit_code(failure), failure.to_string()),
        (None, Some(status)) => (22, FetchFailure::Status(status).to_string()),
        (None, None) => (0, String::new()),
    }
}

/// curl's exit code.
fn exit_code(failure: &FetchFailure) -> u8 {
    match failure {
        FetchFailure::Scheme(_) => 1,
        FetchFailure::Url(_) => 3,
        FetchFailure::ResolveProxy(_) => 5,
        FetchFailure::Resolve(_) => 6,
        FetchFailure::Connect(_) => 7,
        FetchFailure::Protocol(_) => 8,
        FetchFailure::Partial { .. } => 18,
        FetchFailure::Status(_) => 22,
        FetchFailure::Write(_) => 23,
        FetchFailure::Read => 26,
        FetchFailure::ConnectTimeout(_) | FetchFailure::TimeLimit(_) | FetchFailure::Slow(..) => 28,
        FetchFailure::Range(_) => 33,
        FetchFailure::Tls(_) => 35,
        FetchFailure::Request(_) => 43,
        FetchFailure::Redirects(_) => 47,
        FetchFailure::Empty => 52,
        FetchFailure::Response(_) => 56,
        FetchFailure::Certificate(_) => 60,
        FetchFailure::Encoding(_) => 61,
        FetchFailure::TooLarge(_) => 63,
        FetchFailure::Rewind => 65,
        FetchFailure::Pin(_) => 90,
        FetchFailure::Interrupted => INTERRUPTED,
    }
}

/// Says what went wrong, unless it is to be silent.
#[expect(clippy::print_stderr, reason = "errors go to stderr")]
fn failed(arguments: &Arguments, code: u8, what: &str) -> ExitCode {
    if !arguments.shown.silent || arguments.shown.show_error {
        eprintln!("error: ({code}) {what}");
    }
    ExitCode::from(code)
}

/// The outputs of all addresses: those that none is given for go to the terminal.
fn output_of(arguments: &Arguments, fetch: usize) -> Output {
    let output = arguments.outputs.0.get(fetch);
    output.cloned().unwrap_or(Output::Stdout)
}
