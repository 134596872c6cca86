//! `lastbyte completions`: completion scripts for shells, generated from the options.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::{failure::Failure, terminal::print_data};

const EXAMPLES: &str = "\
Examples:
  # Bash: to ~/.local/share/bash-completion/completions/lastbyte.
  lastbyte completions bash
  # Zsh: to a file `_lastbyte` in a directory of $fpath.
  lastbyte completions zsh
  # Fish: to ~/.config/fish/completions/lastbyte.fish.
  lastbyte completions fish";

/// Print a completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Runs the command. `program` has the options.
pub(crate) fn run(arguments: &Arguments, mut program: Command) -> Result<ExitCode, Failure> {
    // Into memory first: the generator panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "lastbyte", &mut script);
    print_data(script)?;
    Ok(ExitCode::SUCCESS)
}
