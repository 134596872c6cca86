//! Help: `-h` fits one screen, `--help` prints all options, and `--help GROUP` those of one group. Everything comes from the
//! definitions of the commands.

use std::{ffi::OsString, io};

use clap::{Arg, Command};

/// The most lines of `-h`.
const LINES_MAX: usize = 40;
/// The number of examples, and of options, in `-h` of a command with many options.
const EXAMPLES: usize = 2;
const OPTIONS: usize = 5;

/// Examples come first.
const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";
/// The same without examples.
const WITHOUT_EXAMPLES: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}{after-help}";

/// The everyday options of commands for which they are not the first ones.
const EVERYDAY: [(&str, [&str; OPTIONS]); 6] = [
    ("ab", ["arm", "network", "connections", "seed", "out"]),
    (
        "bench",
        ["requests", "connections", "streams", "duration", "http"],
    ),
    ("emulate", ["network", "listen", "to", "shared", "tun"]),
    ("get", ["output", "include", "location", "http", "timing"]),
    ("serve", ["listen", "cert", "key", "proxy", "log"]),
    ("sim", ["network", "arm", "size", "runs", "plot"]),
];

/// Prints the help that a command line requests. `program` has all commands.
///
/// # Errors
///
/// Returns what is wrong if the line names a group that the command does not have.
pub(super) fn print(mut program: Command, words: &[OsString]) -> Result<io::Result<()>, String> {
    program.build();
    let words: Vec<&str> = words
        .iter()
        .skip(1)
        .filter_map(|word| word.to_str())
        .collect();
    let mut command = program;
    let mut is_long = false;
    let mut is_program = true;
    for word in &words {
        if *word == "help" {
            is_long = true;
        } else if let Some(found) = command.find_subcommand(word) {
            command = found.clone();
            is_program = false;
        } else {
            break;
        }
    }
    if !cfg!(feature = "acme") {
        command = command.mut_args(without_acme);
    }
    let long = words.iter().position(|word| *word == "--help");
    if is_program {
        return Ok(command.print_help());
    }
    let group = long.and_then(|at| words.get(at + 1));
    match group.filter(|word| !word.starts_with('-')) {
        Some(name) => group_of(command, name).map(|mut command| command.print_long_help()),
        None if is_long || long.is_some() => Ok(layout(command).print_long_help()),
        None => Ok(short(command).print_help()),
    }
}

/// Says above the options of the feature `acme` that this build lacks it.
fn without_acme(arg: Arg) -> Arg {
    if arg.get_help_heading() == Some("ACME") {
        return arg.help_heading("ACME (not in this build; compile it with `--features acme`)");
    }
    arg
}

/// The whole help of a command.
pub(super) fn layout(command: Command) -> Command {
    let (examples, notes) = after(&command);
    let template = match &*examples {
        "" => WITHOUT_EXAMPLES,
        _ => TEMPLATE,
    };
    command
        .help_template(template)
        .before_help(examples.clone())
        .before_long_help(examples)
        .after_help(notes.clone())
        .after_long_help(notes)
}

/// The help of a command on one screen: all options if they fit, otherwise the everyday ones and the names of the groups.
pub(super) fn short(command: Command) -> Command {
    let mut whole = layout(command.clone());
    if whole.render_help().to_string().lines().count() <= LINES_MAX {
        return whole;
    }
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let more = match &groups(&command)[..] {
        [_] => format!("More options: `{name} --help`."),
        groups => format!(
            "More options: `{name} --help GROUP` with one of the groups {}; `{name} --help` for all.",
            groups.join(", ")
        ),
    };
    let (examples, _) = after(&command);
    let everyday = everyday(&command);
    let short = layout(command)
        .before_help(first(&examples))
        .after_help(more);
    short.mut_args(|arg| {
        let is_everyday = everyday.iter().any(|id| arg.get_id() == id.as_str());
        if arg.is_positional() || is_everyday {
            arg.help_heading(None::<&'static str>)
        } else {
            arg.hide(true)
        }
    })
}

/// The help of one group of options.
fn group_of(command: Command, name: &str) -> Result<Command, String> {
    let known = groups(&command);
    if !known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        let expected = known.join(", ");
        return Err(format!(
            "--help: unknown group `{name}` (expected {expected})"
        ));
    }
    let command = layout(command)
        .help_template(WITHOUT_EXAMPLES)
        .after_long_help("");
    Ok(command.mut_args(|arg| {
        let is_inside = !arg.is_positional() && group(&arg).eq_ignore_ascii_case(name);
        if is_inside { arg } else { arg.hide(true) }
    }))
}

/// The name of an option's group: the first word of its heading.
fn group(arg: &Arg) -> String {
    let heading = arg.get_help_heading().unwrap_or("Options");
    let word = heading.split(' ').next().unwrap_or_default();
    word.to_ascii_lowercase()
}

/// The names of the groups, in their order.
fn groups(command: &Command) -> Vec<String> {
    let mut groups = Vec::new();
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    for arg in shown.filter(|arg| !arg.is_positional() && arg.get_id() != "help") {
        let name = group(arg);
        if !groups.contains(&name) {
            groups.push(name);
        }
    }
    groups
}

/// The everyday options of a command.
fn everyday(command: &Command) -> Vec<String> {
    let named = EVERYDAY
        .iter()
        .find(|(name, _)| *name == command.get_name());
    if let Some((_, ids)) = named {
        return ids.map(str::to_owned).to_vec();
    }
    let options = command.get_arguments().filter(|arg| !arg.is_positional());
    let shown = options.filter(|arg| !arg.is_hide_set() && arg.get_id() != "help");
    shown
        .take(OPTIONS)
        .map(|arg| arg.get_id().to_string())
        .collect()
}

/// What follows the options in the definition of a command: the examples, and the rest.
fn after(command: &Command) -> (String, String) {
    let text = command.get_after_long_help().or(command.get_after_help());
    let text = text.map(ToString::to_string).unwrap_or_default();
    let (examples, notes): (Vec<&str>, Vec<&str>) = text
        .split("\n\n")
        .partition(|paragraph| paragraph.starts_with("Examples"));
    (examples.join("\n\n"), notes.join("\n\n"))
}

/// The first examples. Each starts with a comment.
fn first(examples: &str) -> String {
    let mut count = 0;
    let mut is_comment = false;
    let lines = examples.lines().take_while(|line| {
        let was_comment = core::mem::replace(&mut is_comment, line.starts_with("  #"));
        count += usize::from(is_comment && !was_comment);
        count <= EXAMPLES
    });
    lines.collect::<Vec<_>>().join("\n")
}
