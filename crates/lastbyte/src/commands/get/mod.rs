//! `lastbyte get`: fetches, as curl would. What is done is done by the crate `lastbyte-client`.

mod arguments;
mod output;
mod request;
mod timing;

use std::{io::Write, process::ExitCode, sync::Arc};

use lastbyte_client::{
    Failure as FetchFailure, Family, Memory, RunError, Settings, Trust, run as fetch,
};
use lastbyte_congestion::Spec;
use lastbyte_driver::Clock;
use lastbyte_quic::{connection::Config, crypto::key_log::KeyLogLines};

pub(crate) use self::arguments::Arguments;
use self::{arguments::Output, output::Outputs, timing::Round};
use crate::{failure::Failure, files, jobs::Interrupt};

/// Does what it was told.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.http != "3" {
        return Err(Failure::Usage(format!(
            "`--http {}`: only HTTP/3 is spoken for now; leave it out, or write `--http 3`",
            arguments.http
        )));
    }
    let settings = match settings(arguments) {
        Ok(settings) => settings,
        Err(Refusal::Usage(failure)) => return Err(failure),
        Err(Refusal::Authorities(what)) => return Ok(failed(arguments, 77, &what)),
    };
    let fetches = match request::fetches(arguments) {
        Ok(fetches) => fetches,
        Err((code, what)) => return Ok(failed(arguments, code, &what)),
    };
    let interrupt = Interrupt::listen();
    let memory = Memory::default();
    let clock = Clock::new();
    let mut rounds = Vec::new();
    let mut exit = 0;
    for round in 0..arguments.repeat.get() {
        let mut outputs = Outputs::new(arguments, &fetches, &interrupt, round)?;
        let report = match fetch(&settings, &memory, clock, fetches.clone(), &mut outputs) {
            Ok(report) => report,
            Err(RunError::Trust(what)) => return Ok(failed(arguments, 77, &what)),
            Err(error) => return Ok(failed(arguments, 7, &error.to_string())),
        };
        outputs.finish()?;
        for (asked, outcome) in fetches.iter().zip(&report.outcomes) {
            let status = outcome
                .status
                .filter(|status| arguments.fail && *status >= 400);
            let (code, what) = match (&outcome.failure, status) {
                (Some(failure), _) => (exit_code(failure), failure.to_string()),
                (None, Some(status)) => (22, format!("the server answered {status}")),
                (None, None) => continue,
            };
            if !matches!(outcome.failure, Some(FetchFailure::Interrupted)) {
                let _ = failed(arguments, code, &format!("{}: {what}", asked.url));
            }
            if exit == 0 {
                exit = code;
            }
        }
        rounds.push(Round {
            report,
            handshakes: outputs.into_handshakes(),
        });
        if interrupt.is_pressed() {
            exit = 130;
            break;
        }
    }
    if arguments.timing || arguments.repeat.get() > 1 {
        let text = if arguments.json {
            timing::json(&fetches, &rounds)
        } else {
            timing::text(&fetches, &rounds)
        };
        let mut stdout = std::io::stdout().lock();
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
            .map_err(|error| Failure::stdout(&error))?;
    }
    Ok(ExitCode::from(exit))
}

/// curl's exit code.
fn exit_code(failure: &FetchFailure) -> u8 {
    match failure {
        FetchFailure::Resolve(_) => 6,
        FetchFailure::Connect(_) => 7,
        FetchFailure::Partial { .. } => 18,
        FetchFailure::Write(_) => 23,
        FetchFailure::Read => 26,
        FetchFailure::ConnectTimeout(_) | FetchFailure::TimeLimit(_) => 28,
        FetchFailure::Tls(_) => 35,
        FetchFailure::Request(_) => 43,
        FetchFailure::Response(_) => 56,
        FetchFailure::Certificate(_) => 60,
        FetchFailure::Interrupted => 130,
    }
}

/// Says what went wrong, unless it is to be silent.
#[expect(clippy::print_stderr, reason = "errors go to stderr")]
fn failed(arguments: &Arguments, code: u8, what: &str) -> ExitCode {
    if !arguments.silent || arguments.show_error {
        eprintln!("error: ({code}) {what}");
    }
    ExitCode::from(code)
}

/// Why nothing is begun.
enum Refusal {
    Usage(Failure),
    Authorities(String),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Usage(failure)
    }
}

fn settings(arguments: &Arguments) -> Result<Settings, Refusal> {
    let congestion = match &arguments.startup {
        None => arguments.congestion.clone(),
        Some(startup) => {
            let joint = if startup.contains(':') { ',' } else { ':' };
            format!("{startup}{joint}congestion={}", arguments.congestion)
        }
    };
    let congestion: Spec = congestion.parse().map_err(Failure::usage)?;
    let mut settings = Settings::new(Config::new(congestion));
    if arguments.insecure {
        settings.trust = Trust::Anybody;
    } else if let Some(path) = &arguments.cacert {
        settings.trust = Trust::Authorities(files::read(path).map_err(Refusal::Authorities)?);
    }
    if let Some(key_log) = key_log(arguments)? {
        settings.key_log = Some(key_log);
    }
    settings.early_data = arguments.zero_rtt;
    if arguments.zero_rtt && arguments.repeat.get() > 1 {
        settings.ticket_wait = TICKET_WAIT;
    }
    settings.family = match (arguments.ipv4, arguments.ipv6) {
        (true, _) => Family::Ipv4,
        (_, true) => Family::Ipv6,
        _ => Family::Any,
    };
    settings.overrides.clone_from(&arguments.resolve);
    settings.connect_timeout = arguments.connect_timeout;
    settings.time_limit = arguments.max_time;
    settings.parallel = arguments.parallel_max.get();
    if output::to_stdout(arguments) > 1 {
        // One after the other, so that they do not mix.
        settings.parallel = 1;
    }
    Ok(settings)
}

/// Servers send tickets a round trip after the handshake.
const TICKET_WAIT: core::time::Duration = core::time::Duration::from_secs(1);

#[expect(
    clippy::disallowed_methods,
    reason = "SSLKEYLOGFILE is how such files are named everywhere"
)]
fn key_log(arguments: &Arguments) -> Result<Option<Arc<dyn rustls::KeyLog>>, Failure> {
    let from_environment = std::env::var_os("SSLKEYLOGFILE").map(std::path::PathBuf::from);
    let Some(path) = arguments.keylog.clone().or(from_environment) else {
        return Ok(None);
    };
    let file = std::sync::Mutex::new(files::append(&path)?);
    Ok(Some(Arc::new(KeyLogLines(move |line: &str| {
        let mut file = file
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // A debugger's file is not worth a connection.
        let _ = writeln!(file, "{line}");
    }))))
}

/// The outputs of all addresses: those that none is given for go to the terminal.
fn output_of(arguments: &Arguments, fetch: usize) -> Output {
    let output = arguments.outputs.0.get(fetch);
    output.cloned().unwrap_or(Output::Stdout)
}
