//! Exit codes of `lastbyte get`: those of curl.

use lastbyte_client::{Failure as FetchFailure, Outcome};

/// The exit code of an interrupted program in shells: 128 + SIGINT.
pub(super) const INTERRUPTED: u8 = 130;

/// What to do if the server's certificate is not trusted.
pub(crate) const UNTRUSTED: &str = "--cacert FILE names its CA, -k skips the verification";

/// curl's exit code for the outcome of a fetch, and the reason.
pub(super) fn result(outcome: &Outcome) -> (u8, String) {
    match &outcome.failure {
        Some(failure @ FetchFailure::Certificate(_)) => {
            (exit_code(failure), format!("{failure}; {UNTRUSTED}"))
        }
        Some(failure) => (exit_code(failure), failure.to_string()),
        None => (0, String::new()),
    }
}

/// curl's exit code for a failure.
pub(super) fn exit_code(failure: &FetchFailure) -> u8 {
    match failure {
        FetchFailure::Scheme(_) => 1,
        FetchFailure::Url(_) => 3,
        FetchFailure::Resolve(_) => 6,
        FetchFailure::Connect(_) => 7,
        FetchFailure::Protocol(_) => 8,
        FetchFailure::Partial { .. } => 18,
        FetchFailure::Status(_) => 22,
        FetchFailure::Write(_) => 23,
        FetchFailure::Read => 26,
        FetchFailure::ConnectTimeout(_) | FetchFailure::TimeLimit(_) => 28,
        FetchFailure::Tls(_) => 35,
        FetchFailure::Request(_) => 43,
        FetchFailure::Redirects(_) => 47,
        FetchFailure::Empty => 52,
        FetchFailure::Response(_) => 56,
        FetchFailure::Certificate(_) => 60,
        FetchFailure::Encoding(_) => 61,
        FetchFailure::Rewind => 65,
        FetchFailure::Pin(_) => 90,
        FetchFailure::QuicHandshake(_) => 96,
        FetchFailure::Interrupted => INTERRUPTED,
    }
}
