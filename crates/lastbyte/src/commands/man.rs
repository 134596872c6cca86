//! `lastbyte man`: manual pages, generated from the options.

use std::{
    io::{self, Write as _, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Command};
use clap_mangen::Man;

use crate::{failure::Failure, files, terminal::wrote};

const EXAMPLES: &str = "\
Examples:
  # The page of one command; `man -l -` shows it.
  lastbyte man get
  # The page of the program.
  lastbyte man
  # All pages, to a directory.
  lastbyte man --out .";

/// Print the manual page of a command, or write all of them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Command, such as `get` or `compare loss`; without one, the page of the program
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands to this directory
    #[arg(short, long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Runs the command. `program` has the options.
pub(crate) fn run(arguments: &Arguments, program: Command) -> Result<ExitCode, Failure> {
    let mut program = without_help(program);
    program.build();
    if let Some(directory) = &arguments.out {
        files::create_folder(directory)?;
        write(directory, &program)?;
        wrote(directory);
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = &program;
    for name in &arguments.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let expected = match names[..] {
                [] => format!("`{}` has none", page_name(command).replace('-', " ")),
                _ => format!("expected {}", names.join(", ")),
            };
            Failure::usage(format!("unknown command `{name}` ({expected})"))
        })?;
    }
    let written = page(command).and_then(|page| stdout().write_all(&page));
    written.map_err(|error| Failure::stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// The commands without those named `help`, which have no pages.
fn without_help(command: Command) -> Command {
    let command = command.disable_help_subcommand(true);
    command.mut_subcommands(without_help)
}

/// Writes the pages of a command and of its commands.
fn write(directory: &Path, command: &Command) -> Result<(), Failure> {
    let path = directory.join(format!("{}.1", page_name(command)));
    files::write(&path, &page(command).map_err(Failure::run)?)?;
    let mut commands = command.get_subcommands();
    commands.try_for_each(|command| write(directory, command))
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
