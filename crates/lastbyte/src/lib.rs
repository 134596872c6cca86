//! The commands of `lastbyte`: arguments, progress and output. The work is done by the other crates.
//!
//! A program with congestion controls of its own calls [`run`] with a registry that has them; `examples/algorithm.rs`
//! does, and then has all commands.

#![forbid(unsafe_code)]

mod commands;
mod failure;
mod files;
mod jobs;

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, Subcommand};
use lastbyte_congestion::Registry;

/// A workbench for making the web's last byte arrive sooner.
#[derive(Debug, Parser)]
#[command(name = "lastbyte", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Fetches over HTTP/3, 2 and 1.1, as curl would: files, timings, key logs, qlog.
    Get(Box<commands::get::Arguments>),
    /// Simulates transfers over a path, arm by arm: a table of times to last byte, losses, pictures.
    Sim(Box<commands::sim::Arguments>),
    /// Emulates a network path between real clients and a real server: a UDP relay, or a network device for all protocols.
    Emulate(Box<commands::emulate::Arguments>),
    /// Runs an experiment: connections drawn from a population into arms, simulated, logged and compared.
    Ab(commands::ab::Arguments),
    /// Compares the arms of an experiment by its log: a page with charts, tables, and what is significant.
    Report(commands::report::Arguments),
    /// Queries logs: stages of Ruby expressions joined by `>>`, with reducers.
    Query(commands::query::Arguments),
    /// Serves a directory, and objects by their size, over HTTP/1.1, 2 and 3.
    Serve(Box<commands::serve::Arguments>),
}

/// Runs a command line, the program's name first. `ab` and `serve` take the congestion controls of `registry`, in
/// experiments and flags; the other commands take those that are built in.
#[must_use]
pub fn run(words: impl IntoIterator<Item = OsString>, registry: &Registry) -> ExitCode {
    let words = match commands::get::words(words) {
        Ok(words) => words,
        Err(code) => return code,
    };
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => return commands::usage(&error),
    };
    let result = match arguments.command {
        Command::Get(arguments) => commands::get::run(&arguments),
        Command::Sim(arguments) => commands::sim::run(&arguments),
        Command::Emulate(arguments) => commands::emulate::run(&arguments),
        Command::Ab(arguments) => commands::ab::run(&arguments, registry),
        Command::Report(arguments) => commands::report::run(&arguments),
        Command::Query(arguments) => Ok(commands::query::run(&arguments)),
        Command::Serve(arguments) => commands::serve::run(&arguments, registry),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
