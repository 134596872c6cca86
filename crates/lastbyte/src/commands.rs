//! The commands, one file or folder each.

pub(crate) mod ab;
pub(crate) mod bench;
pub(crate) mod completions;
mod credentials;
pub(crate) mod emulate;
mod fleet_file;
pub(crate) mod get;
pub(crate) mod lb;
pub(crate) mod man;
mod path;
pub(crate) mod plot;
pub(crate) mod query;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod sim;
pub(crate) mod specs;
mod summary;
mod values;
pub(crate) mod version;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

/// Prints a usage error (exit code 2), or the requested help.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}
