//! The commands of `lastbyte`: arguments, progress and output. The work is done by the other crates.
//!
//! A program with congestion controls of its own calls [`run`] with a registry that has them; `examples/plugin.rs`
//! does, and then has all commands.

#![forbid(unsafe_code)]

mod commands;
mod failure;
mod files;
mod jobs;
mod table;
mod terminal;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use lastbyte_congestion::Registry;

/// A workbench for making the web's last byte arrive sooner.
#[derive(Debug, Parser)]
#[command(
    name = "lastbyte",
    disable_version_flag = true,
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    args_override_self = true,
    max_term_width = 80
)]
struct Arguments {
    /// Print version
    #[arg(short = 'V', long)]
    version: bool,
    /// With --version: also print the cryptographic libraries in use
    #[arg(short, long, requires = "version")]
    verbose: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Get(Box<commands::get::Arguments>),
    Handshakes(commands::handshakes::Arguments),
    Sim(Box<commands::sim::Arguments>),
    Emulate(Box<commands::emulate::Arguments>),
    Ab(commands::ab::Arguments),
    Compare(Box<commands::compare::Arguments>),
    Report(commands::report::Arguments),
    Replay(commands::replay::Arguments),
    Plot(commands::plot::Arguments),
    Search(commands::search::Arguments),
    Query(commands::query::Arguments),
    Specs(commands::specs::Arguments),
    Serve(Box<commands::serve::Arguments>),
    Steer(commands::steer::Arguments),
    Lb(commands::lb::Arguments),
    Bench(Box<commands::bench::Arguments>),
    Completions(commands::completions::Arguments),
    Man(commands::man::Arguments),
}

/// Runs a command line, whose first word is the program's name. Wherever it names a congestion control, in options or in
/// files, those of `registry` are available.
pub fn run(words: impl IntoIterator<Item = OsString>, registry: &Registry) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    let mut command = commands::with_negative_values(Arguments::command());
    let parsed = command.try_get_matches_from_mut(&words);
    let parsed = parsed.and_then(|mut matches| {
        let arguments = Arguments::from_arg_matches_mut(&mut matches);
        arguments.map_err(|error| error.format(&mut command))
    });
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return commands::usage(error, Arguments::command(), &words),
    };
    jobs::outlive_file_limits();
    let result = match arguments.command {
        // Without a command there is `--version`.
        None => commands::version::run(arguments.verbose),
        Some(Command::Get(arguments)) => commands::get::run(&arguments, registry),
        Some(Command::Handshakes(arguments)) => commands::handshakes::run(&arguments, registry),
        Some(Command::Sim(arguments)) => commands::sim::run(&arguments, registry),
        Some(Command::Emulate(arguments)) => commands::emulate::run(&arguments),
        Some(Command::Ab(arguments)) => commands::ab::run(&arguments, registry),
        Some(Command::Compare(arguments)) => commands::compare::run(&arguments, registry),
        Some(Command::Report(arguments)) => commands::report::run(&arguments),
        Some(Command::Replay(arguments)) => commands::replay::run(&arguments, registry),
        Some(Command::Plot(arguments)) => commands::plot::run(&arguments, registry),
        Some(Command::Search(arguments)) => commands::search::run(&arguments, registry),
        Some(Command::Query(arguments)) => Ok(commands::query::run(&arguments)),
        Some(Command::Specs(arguments)) => commands::specs::run(&arguments, registry),
        Some(Command::Serve(arguments)) => commands::serve::run(&arguments, registry),
        Some(Command::Steer(arguments)) => commands::steer::run(&arguments, registry),
        Some(Command::Lb(arguments)) => commands::lb::run(&arguments),
        Some(Command::Bench(arguments)) => commands::bench::run(&arguments),
        Some(Command::Completions(arguments)) => {
            commands::completions::run(&arguments, Arguments::command(), registry)
        }
        Some(Command::Man(arguments)) => commands::man::run(&arguments, Arguments::command()),
    };
    match result {
        Ok(code) => code,
        Err(failure) => terminal::report(&commands::with_known_keys(failure)),
    }
}

/// The programs of docs/embed.md, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embed.md")]
struct Embedding;
