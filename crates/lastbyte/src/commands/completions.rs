//! `lastbyte completions`: completion scripts for shells, generated from the options.

use std::process::ExitCode;

use clap::{Args, Command, builder::PossibleValuesParser};
use clap_complete::Shell;
use lastbyte_congestion::Registry;
use lastbyte_scenario::network::NAMED;

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

/// Runs the command. `program` has the options, `registry` the presets.
pub(crate) fn run(
    arguments: &Arguments,
    program: Command,
    registry: &Registry,
) -> Result<ExitCode, Failure> {
    let networks: Vec<&'static str> = NAMED.iter().map(|(name, _)| *name).collect();
    let presets: Vec<&'static str> = registry.presets().map(|(name, _)| name).collect();
    let mut program = with_names(program, &|option| match option {
        "network" => Some(&networks),
        "arm" | "congestion" | "specs" => Some(&presets),
        _ => None,
    });
    // Into memory first: the generator panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "lastbyte", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    // Names of files stay, which the generator leaves out beside names.
    for names in [&networks, &presets] {
        let words = names.join(" ");
        script = script
            .replace(
                &format!("compgen -W \"{words}\""),
                &format!("compgen -f -W \"{words}\""),
            )
            .replace(
                &format!(":({words})'"),
                &format!(":{{compadd {words}; _files}}'"),
            );
        let lines = names.iter().map(|name| format!("{name}\\t''"));
        let lines = lines.collect::<Vec<_>>().join("\\n");
        script = script.replace(
            &format!("-r -f -a \"{lines}\""),
            &format!("-r -F -a \"{lines}\""),
        );
    }
    print_data(script)?;
    Ok(ExitCode::SUCCESS)
}

/// Sets the names that options take, in all subcommands.
fn with_names<'n>(command: Command, of: &dyn Fn(&str) -> Option<&'n Vec<&'static str>>) -> Command {
    let command =
        command.mut_args(
            |arg| match of(arg.get_long().unwrap_or(arg.get_id().as_str())) {
                Some(names) => arg.value_parser(PossibleValuesParser::new(names)),
                None => arg,
            },
        );
    command.mut_subcommands(|command| with_names(command, of))
}
