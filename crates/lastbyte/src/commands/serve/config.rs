//! Flags from a file.
//!
//! Converts a TOML file to flags. Errors name file and line. A key is a flag's name without its dashes;
//! `directory` is the directory. Flags of the command line take the place of the file's, and so does one that excludes
//! another: `--self-signed` of a certificate, `--experiment` of a congestion control. Hidden options are keys of a file
//! only. And which options are part of the
//! configuration that the hash on the lines of the logs names.

use std::{ffi::OsString, fmt::Write as _, path::Path};

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};
use toml::de::{DeTable, DeValue};

use super::{super::nearest, arguments::Arguments};
use crate::{commands, failure::Failure, files};

#[cfg(test)]
mod tests;

/// Flags that take each other's place.
const ALTERNATIVES: [(&[&str], &[&str]); 2] = [
    (&["self-signed"], &["cert", "key", "acme", "acme-state"]),
    (&["experiment"], &["congestion"]),
];
/// Options that are not accepted in a file.
const NOT_IN_FILES: [&str; 3] = ["config", "check", "help"];

/// Options that a reload applies.
const RELOADED: [&str; 11] = [
    "congestion",
    "experiment",
    "sticky",
    "initial-mtu",
    "mtu",
    "upload-window",
    "quic-version",
    "cert",
    "key",
    "ticket-keys",
    "lb-config",
];
/// Options that a reload applies in part: the QUIC versions that are accepted need a restart.
const RELOADED_IN_PART: [&str; 1] = ["quic-version"];
/// Options that stay as they are if they are removed.
const KEPT: [&str; 4] = ["cert", "key", "ticket-keys", "lb-config"];

/// What names or observes a server, and does not change its responses: such options are not hashed, so that all servers
/// with the same configuration have the same hash.
const NOT_HASHED: [&str; 15] = [
    "listen",
    "http-listen",
    "metrics",
    "handover",
    "server-id",
    "name",
    "site",
    "log",
    "log-rotate",
    "log-keep",
    "log-compress",
    "access-log",
    "access-format",
    "qlog",
    "keylog",
];

/// All options, each with its values, defaults included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Effective {
    options: Vec<(String, Vec<String>)>,
    /// Options that a reload applies in part, as they were at the start.
    started: Vec<(String, Vec<String>)>,
}

impl Effective {
    fn of(command: &Command, matches: &ArgMatches) -> Self {
        let keys = command.get_arguments().filter_map(|arg| {
            let key = key_of(arg).filter(|key| !NOT_IN_FILES.contains(key))?;
            let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
            let values = values.map(|value| value.to_string_lossy().into_owned());
            Some((key.to_owned(), values.collect()))
        });
        let options: Vec<(String, Vec<String>)> = keys.collect();
        let mut started = options.clone();
        started.retain(|(key, _)| RELOADED_IN_PART.contains(&key.as_str()));
        Self { options, started }
    }

    /// The version of the program and all options that can change responses, a line each: what the hash is of.
    pub(super) fn hashed(&self) -> String {
        let mut text = format!("lastbyte {}\n", env!("CARGO_PKG_VERSION"));
        for (key, values) in &self.options {
            if NOT_HASHED.contains(&key.as_str()) {
                continue;
            }
            for value in values {
                // Debug output has no line breaks, and writing to a String cannot fail.
                let _ = writeln!(text, "{key}={value:?}");
            }
        }
        text
    }

    /// Takes the values that a reload applies from the options that were read. Returns the names of the
    /// others that differ from those in effect, which for options that it applies in part are those of the start.
    pub(super) fn reload(&mut self, read: &Self) -> Vec<String> {
        let mut needs_restart = Vec::new();
        for ((key, values), (_, new)) in self.options.iter_mut().zip(&read.options) {
            let name = key.as_str();
            let started = self.started.iter().find(|(of, _)| of == name);
            let in_effect = started.map_or(&*values, |(_, values)| values);
            let differs = in_effect != new;
            let is_applied = match name {
                // A generated certificate is kept.
                "self-signed" => new != &["true"],
                _ => RELOADED.contains(&name) && !(KEPT.contains(&name) && new.is_empty()),
            };
            if differs && (started.is_some() || !is_applied) {
                needs_restart.push(key.clone());
            }
            if is_applied {
                values.clone_from(new);
            }
        }
        needs_restart
    }
}

/// The flags of the command line, behind the name of the command, with those of the file they name; and all options by name.
pub(super) fn read(
    path: Option<&Path>,
    command_line: &[OsString],
) -> Result<(Arguments, Effective), Failure> {
    let text = path.map(files::read_text).transpose();
    let text = text.map_err(Failure::Usage)?.unwrap_or_default();
    let name = path.map(|path| path.display().to_string());
    merge(&name.unwrap_or_default(), &text, command_line).map_err(Failure::Usage)
}

/// The options of a file alone, and its keys.
pub(super) fn read_file(path: &Path) -> Result<(Arguments, Vec<String>), Failure> {
    let text = files::read_text(path).map_err(Failure::Usage)?;
    let name = path.display().to_string();
    let (arguments, _) = merge(&name, &text, &[]).map_err(Failure::Usage)?;
    let entries = entries(&name, &text, &command()).map_err(Failure::Usage)?;
    let keys = entries.into_iter().map(|entry| entry.key).collect();
    Ok((arguments, keys))
}

/// A key of the file, as flags.
struct Entry {
    key: String,
    line: usize,
    flags: Vec<OsString>,
}

fn merge(
    name: &str,
    text: &str,
    command_line: &[OsString],
) -> Result<(Arguments, Effective), String> {
    let command = command();
    let said = command
        .clone()
        .try_get_matches_from(with_name(command_line))
        .map_err(|error| in_one_line(&lines_of(&error)))?;
    let of_file = command.get_arguments().filter(|arg| arg.is_hide_set());
    let mut of_file = of_file.filter_map(key_of);
    if let Some(key) = of_file.find(|key| is_said(&command, &said, key)) {
        return Err(format!(
            "`--{key}` is a key of the configuration file only (expected `{key} = …` in the file of --config)"
        ));
    }
    let entries = entries(name, text, &command)?;
    let mut all: Vec<OsString> = Vec::new();
    for entry in entries
        .iter()
        .filter(|entry| !is_overridden(entry, &command, &said))
    {
        all.extend(entry.flags.iter().cloned());
    }
    all.extend(command_line.iter().cloned());
    let matches = command
        .clone()
        .try_get_matches_from(with_name(&all))
        .map_err(|error| explain(name, &entries, (&command, &said), &error))?;
    let effective = Effective::of(&command, &matches);
    let arguments = Arguments::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    Ok((arguments, effective))
}

fn command() -> Command {
    // As the program parses its command line: the last value of an option counts.
    let command = Command::new("lastbyte serve").args_override_self(true);
    commands::with_negative_values(Arguments::augment_args(command))
}

fn with_name(flags: &[OsString]) -> Vec<OsString> {
    let mut all = vec![OsString::from("lastbyte serve")];
    all.extend(flags.iter().cloned());
    all
}

/// The name by which a file knows a flag.
fn key_of(arg: &Arg) -> Option<&str> {
    match arg.get_long() {
        Some(long) => Some(long),
        None => Some(arg.get_id().as_str()).filter(|id| *id == "directory"),
    }
}

fn entries(name: &str, text: &str, command: &Command) -> Result<Vec<Entry>, String> {
    let table = DeTable::parse(text).map_err(|error| format!("`{name}`: {error}"))?;
    let mut entries = Vec::new();
    for (key, value) in table.get_ref() {
        let line = line_of(text, key.span().start);
        let place = format!("`{name}` line {line}");
        let key: &str = key.get_ref();
        let known = |arg: &&Arg| key_of(arg) == Some(key);
        let Some(arg) = command
            .get_arguments()
            .find(known)
            .filter(|_| !NOT_IN_FILES.contains(&key))
        else {
            let near = hint(key, command.get_arguments().filter_map(key_of));
            return Err(format!("{place}: unknown key `{key}`{near}"));
        };
        entries.push(Entry {
            key: key.to_owned(),
            line,
            flags: flags(arg, key, value.get_ref()).map_err(|error| format!("{place}: {error}"))?,
        });
    }
    entries.sort_by_key(|entry| entry.line);
    Ok(entries)
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or_default();
    1 + before.matches('\n').count()
}

fn flags(arg: &Arg, key: &str, value: &DeValue<'_>) -> Result<Vec<OsString>, String> {
    let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
    match value {
        DeValue::Boolean(is_on) if is_switch => {
            let flag = is_on.then(|| OsString::from(format!("--{key}")));
            return Ok(flag.into_iter().collect());
        }
        _ if is_switch => return Err(format!("invalid value of `{key}` (expected true or false)")),
        _ => {}
    }
    let is_list = matches!(arg.get_action(), ArgAction::Append);
    let texts = match value {
        DeValue::Array(values) if is_list => values
            .iter()
            .map(|value| text_of(key, value.get_ref()))
            .collect::<Result<Vec<_>, _>>()?,
        DeValue::Array(_) => {
            return Err(format!(
                "invalid value of `{key}`: a list (expected one value)"
            ));
        }
        value => vec![text_of(key, value)?],
    };
    let flag = |text: String| match arg.get_long() {
        Some(long) => OsString::from(format!("--{long}={text}")),
        // A path, and no option.
        None if text.starts_with('-') => OsString::from(format!("./{text}")),
        None => OsString::from(text),
    };
    Ok(texts.into_iter().map(flag).collect())
}

fn text_of(key: &str, value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        value => Err(format!(
            "invalid value of `{key}`: {} (expected a string or a number)",
            value.type_str()
        )),
    }
}

/// Whether the command line sets this key.
fn is_said(command: &Command, said: &ArgMatches, key: &str) -> bool {
    let arg = command.get_arguments().find(|arg| key_of(arg) == Some(key));
    arg.is_some_and(|arg| {
        said.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
    })
}

/// Whether the command line sets another value.
fn is_overridden(entry: &Entry, command: &Command, said: &ArgMatches) -> bool {
    let excludes = |one: &[&str], other: &[&str]| {
        let is_other = other.iter().any(|key| is_said(command, said, key));
        one.contains(&entry.key.as_str()) && is_other
    };
    is_said(command, said, &entry.key)
        || ALTERNATIVES
            .iter()
            .any(|(one, other)| excludes(one, other) || excludes(other, one))
}

/// An error about flags of the file, or of the file and the command line: the former are called keys.
fn explain(
    name: &str,
    entries: &[Entry],
    (command, said): (&Command, &ArgMatches),
    error: &clap::Error,
) -> String {
    let kind = error.kind();
    let mut lines = lines_of(error);
    let mut built = command.clone();
    // How an option is written in errors is known from here on.
    built.build();
    for arg in built.get_arguments() {
        let Some(key) = key_of(arg).filter(|key| !is_said(command, said, key)) else {
            continue;
        };
        let (quoted, named) = (format!("'{arg}'"), format!("`{key}`"));
        for line in &mut lines {
            // The options of a list have no quotation marks.
            *line = if *line == arg.to_string() {
                named.clone()
            } else {
                line.replace(&quoted, &named)
            };
        }
    }
    if kind == ErrorKind::MissingRequiredArgument {
        let fails = |entry: &&Entry| {
            let alone = command
                .clone()
                .try_get_matches_from(with_name(&entry.flags));
            alone.is_err_and(|error| error.kind() == kind)
        };
        let (place, by) = match entries.iter().find(fails) {
            Some(entry) => (format!(" line {}", entry.line), format!("`{}`", entry.key)),
            None => (String::new(), "another key".to_owned()),
        };
        let missing = lines.get(1..).unwrap_or_default().join(", ");
        return format!("`{name}`{place}: {by} requires {missing}");
    }
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) => flag.as_str(),
        _ => "",
    };
    let key = flag
        .trim_start_matches("--")
        .split([' ', '=', '<'])
        .next()
        .unwrap_or_default();
    let what = in_one_line(&lines);
    match entries.iter().find(|entry| entry.key == key) {
        Some(entry) => format!("`{name}` line {}: {what}", entry.line),
        None => format!("`{name}`: {what}"),
    }
}

/// What is wrong with a command line, and the values or options that its first line announces: without usage and tips.
fn lines_of(error: &clap::Error) -> Vec<String> {
    let text = error.to_string();
    let lines = text.lines().map(str::trim);
    let lines = lines.take_while(|line| !line.starts_with("Usage:"));
    let lines = lines.filter(|line| {
        let is_about_help = line.starts_with("tip:") || line.starts_with("For more information");
        !line.is_empty() && !is_about_help
    });
    lines
        .map(|line| line.strip_prefix("error: ").unwrap_or(line).to_owned())
        .collect()
}

fn in_one_line(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        [first] => first.clone(),
        [first, rest @ ..] => format!("{first} {}", rest.join(", ")),
    }
}

/// A suggestion for a key that is not known.
fn hint<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(key, known.filter(|name| !NOT_IN_FILES.contains(name))) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => "; docs/serve.md lists the keys".into(),
    }
}
