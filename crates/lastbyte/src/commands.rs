//! The commands, a file or a folder each.

pub(crate) mod ab;
pub(crate) mod emulate;
pub(crate) mod get;
mod path;
pub(crate) mod query;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod sim;
mod summary;
mod values;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

/// Prints a usage error (or the help that was asked for) and says how to exit: 1 for `query`, as jrf does, else 2.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    let words = std::env::args_os().nth(1);
    ExitCode::from(if words.is_some_and(|word| word == "query") {
        1
    } else {
        2
    })
}
