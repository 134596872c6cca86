//! The binary `lastbyte`: arguments, progress, output; no logic of its own.

mod commands;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A workbench for the time to last byte.
#[derive(Parser)]
#[command(name = "lastbyte", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Query(commands::query::Arguments),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return commands::usage(&error),
    };
    match &arguments.command {
        Command::Query(arguments) => commands::query::run(arguments),
    }
}
