//! `lastbyte man`: manual pages, generated from the options.

use std::{
    io::{self, Write as _, stdout},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, Command};
use clap_mangen::Man;

use crate::{failure::Failure, files};

const EXAMPLES: &str = "\
Examples:
  # The page of one command; `man -l -` shows it.
  lastbyte man get
  # The page of the program.
  lastbyte man
  # All pages, to an existing directory.
  lastbyte man --out .";

/// Print the manual page of a command, or write all pages to a directory.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Command; without one, the page of the program
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// Write the pages of all commands to this directory
    #[arg(short, long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Runs the command. `program` has the options.
pub(crate) fn run(arguments: &Arguments, mut program: Command) -> Result<ExitCode, Failure> {
    program.build();
    if let Some(directory) = &arguments.out {
        for command in pages(&program) {
            let path = directory.join(format!("{}.1", page_name(command)));
            files::write(&path, &page(command).map_err(Failure::run)?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let command = match &arguments.command {
        None => &program,
        Some(name) => program.find_subcommand(name).ok_or_else(|| {
            let names: Vec<&str> = pages(&program).skip(1).map(Command::get_name).collect();
            let expected = names.join(", ");
            Failure::usage(format!("unknown command `{name}` (expected {expected})"))
        })?,
    };
    let written = page(command).and_then(|page| stdout().write_all(&page));
    written.map_err(|error| Failure::stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// The program and its commands.
fn pages(program: &Command) -> impl Iterator<Item = &Command> {
    let commands = program.get_subcommands();
    let commands = commands.filter(|command| command.get_name() != "help");
    std::iter::once(program).chain(commands)
}

fn page_name(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    name.replace(' ', "-")
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone())
        .title(page_name(command).to_uppercase())
        .render(&mut page)?;
    Ok(page)
}
