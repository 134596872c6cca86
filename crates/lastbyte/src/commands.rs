//! The commands, one file or folder each.

pub(crate) mod ab;
pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod completions;
mod credentials;
pub(crate) mod emulate;
mod experiment_file;
mod figure;
mod fleet_file;
pub(crate) mod get;
pub(crate) mod handshakes;
mod help;
pub(crate) mod lb;
pub(crate) mod man;
mod path;
pub(crate) mod plot;
pub(crate) mod query;
pub(crate) mod replay;
pub(crate) mod report;
mod sealed;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod sim;
pub(crate) mod specs;
pub(crate) mod steer;
mod summary;
mod values;
pub(crate) mod version;

#[cfg(test)]
mod tests;

use std::{ffi::OsString, io::Write as _, process::ExitCode};

use clap::{
    Command,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{
    failure::Failure,
    terminal::{self, report},
};

/// A command and its subcommands, where the value of an option can be a negative number: the option's own parser rejects it
/// and names what it expects. Positional arguments and optional values cannot, because `-4` and `-6` are options.
pub(crate) fn with_negative_values(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let is_optional = arg.get_num_args().is_some_and(|num| num.min_values() == 0);
        let has_value = arg.get_action().takes_values() && !is_optional;
        if arg.is_positional() || !has_value {
            return arg;
        }
        arg.allow_negative_numbers(true)
    });
    command.mut_subcommands(with_negative_values)
}

/// Prints a usage error (exit code 2), or the requested help, of a command line.
pub(crate) fn usage(mut error: clap::Error, program: Command, words: &[OsString]) -> ExitCode {
    if error.kind() == ErrorKind::DisplayHelp {
        let printed = match help::print(program, words) {
            Ok(printed) => printed.and_then(|()| std::io::stdout().flush()),
            Err(what) => return report(&Failure::Usage(what)),
        };
        return match printed {
            Err(error) => report(&Failure::stdout(&error)),
            Ok(()) => ExitCode::SUCCESS,
        };
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg).cloned()
    {
        let refused = match words.get(1).and_then(|command| command.to_str()) {
            Some("get") => get::refusal(&given),
            Some("sim") => sim::refusal(&given).or_else(|| path::refusal(&given)),
            Some("emulate") => path::refusal(&given),
            Some("bench") => bench::refusal(&given),
            Some("query") => query::refusal(&given),
            Some("report") => report::refusal(&given),
            _ => None,
        };
        if let Some(what) = refused {
            terminal::error(format!("error: {what}"));
            return ExitCode::from(2);
        }
        // Its list of options is that of a command line which was not given.
        error.remove(ContextKind::Usage);
        error.remove(ContextKind::Suggested);
        let suggestion = error.get(ContextKind::SuggestedArg).cloned();
        if let Some(ContextValue::String(suggestion)) = suggestion {
            let is_hidden = is_hidden(&program, words, &suggestion);
            if is_near(&given, &suggestion)
                && is_hidden
                && words.get(1).is_some_and(|it| it == "serve")
            {
                let key = suggestion.trim_start_matches("--");
                terminal::error(format!(
                    "error: unknown option `{given}`; `{key}` is a key of the configuration file only (docs/serve.md lists the keys)"
                ));
                return ExitCode::from(2);
            }
            if is_hidden || !is_near(&given, &suggestion) {
                error.remove(ContextKind::SuggestedArg);
            }
        }
    }
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    match printed {
        // There is no way to report that stderr is closed.
        _ if error.use_stderr() => ExitCode::from(2),
        Err(error) => report(&Failure::stdout(&error)),
        Ok(()) => ExitCode::SUCCESS,
    }
}

/// Whether the option of the command that the line names is not in its help: such options are refused, or kept for scripts.
fn is_hidden(program: &Command, words: &[OsString], option: &str) -> bool {
    let long = option.trim_start_matches("--").split([' ', '=']).next();
    let command = words.get(1).and_then(|word| program.find_subcommand(word));
    let mut options = command.into_iter().flat_map(Command::get_arguments);
    options.any(|arg| arg.get_long() == long && arg.is_hide_set())
}

/// The known name that is nearest to one that is not known, to be suggested, if any is near.
fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .min()
        .filter(|(distance, _)| distance * 3 <= given.chars().count())
        .map(|(_, name)| name)
}

/// The failure with the errors of TOML files as other errors are written: the expected keys in parentheses, and the one that was probably
/// meant.
pub(crate) fn with_known_keys(failure: Failure) -> Failure {
    match failure {
        Failure::Usage(what) => Failure::Usage(known_keys(&what).unwrap_or(what)),
        other => other,
    }
}

fn known_keys(what: &str) -> Option<String> {
    let (before, rest) = what.split_once("unknown field `")?;
    let (key, expected) = rest.split_once("`, expected ")?;
    // Names are every second piece.
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let hint = nearest(key, known.iter().copied());
    let hint = hint.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
    let known = known.join(", ");
    Some(format!(
        "{before}unknown key `{key}` (expected {known}){hint}"
    ))
}

/// Whether a name may be a slip for the other: a letter in three differs at most, or one is the start of the other.
fn is_near(given: &str, known: &str) -> bool {
    let name = |text: &str| {
        let text = text.trim_start_matches('-').split('=').next();
        text.unwrap_or_default().to_owned()
    };
    let (given, known) = (name(given), name(known));
    let distance = strsim::damerau_levenshtein(&given, &known);
    let is_start = given.len() > 2 && known.starts_with(&given);
    is_start || distance * 3 <= given.chars().count()
}
