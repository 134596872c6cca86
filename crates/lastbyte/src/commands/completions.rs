//! `lastbyte completions`: completion scripts for shells, generated from the options.

use std::{
    io::{Write as _, stdout},
    process::ExitCode,
};

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  # Bash; the directory is read by bash-completion.
  lastbyte completions bash > ~/.local/share/bash-completion/completions/lastbyte
  # Zsh: a directory in $fpath.
  lastbyte completions zsh > ~/.zfunc/_lastbyte
  # Fish.
  lastbyte completions fish > ~/.config/fish/completions/lastbyte.fish";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    // Into memory first: the generator panics if it cannot write.
    let mut script = Vec::new();
    let mut command = crate::Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "lastbyte", &mut script);
    let written = stdout().write_all(&script);
    written.map_err(|error| Failure::stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}
