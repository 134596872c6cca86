//! Groups of options whose order on the command line matters: destinations of bodies, and data to send.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, value_parser};

/// Destinations of bodies: the first belongs to the first URL, and so on.
#[derive(Debug, Default)]
pub(crate) struct Outputs(pub(crate) Vec<Output>);

/// Destination of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Standard output.
    Stdout,
    /// A file with this name.
    File(PathBuf),
    /// A file named after the last segment of the URL.
    RemoteName,
}

impl Args for Outputs {
    fn augment_args(command: clap::Command) -> clap::Command {
        command
            .arg(
                Arg::new("output")
                    .short('o')
                    .long("output")
                    .value_name("FILE")
                    .action(ArgAction::Append)
                    .value_parser(value_parser!(PathBuf))
                    .help("Write the body to FILE (`-`: stdout); one per URL, in order")
                    .help_heading("Output"),
            )
            .arg(
                Arg::new("remote-name")
                    .short('O')
                    .long("remote-name")
                    .action(ArgAction::Append)
                    .num_args(0)
                    .default_missing_value("true")
                    .value_parser(value_parser!(bool))
                    .help("Write the body to a file named as in the URL; one per URL")
                    .help_heading("Output"),
            )
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Outputs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut found: Vec<(usize, Output)> = Vec::new();
        if let (Some(at), Some(paths)) = (
            matches.indices_of("output"),
            matches.get_many::<PathBuf>("output"),
        ) {
            found.extend(at.zip(paths.map(|path| {
                if path.as_os_str() == "-" {
                    Output::Stdout
                } else {
                    Output::File(path.clone())
                }
            })));
        }
        if let Some(at) = matches.indices_of("remote-name") {
            found.extend(at.map(|at| (at, Output::RemoteName)));
        }
        found.sort_by_key(|(at, _)| *at);
        Ok(Self(found.into_iter().map(|(_, output)| output).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The data to send, in the order of the command line.
#[derive(Debug, Default)]
pub(crate) struct Data(pub(crate) Vec<Datum>);

/// One piece of data to send, as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Datum {
    /// Text; line breaks of files are removed.
    Text(String),
    /// Unchanged bytes.
    Binary(String),
}

/// Constructor of a datum from its argument.
type Make = fn(String) -> Datum;

/// The options: name, help and constructor.
const DATA: [(&str, &str, Make); 2] = [
    (
        "data",
        "Data to POST, or @FILE without line breaks; repeated data is joined by `&`",
        Datum::Text,
    ),
    (
        "data-binary",
        "Data to POST, or @FILE, unchanged",
        Datum::Binary,
    ),
];

impl Args for Data {
    fn augment_args(command: clap::Command) -> clap::Command {
        DATA.iter().fold(command, |command, (name, help, _)| {
            let argument = Arg::new(*name)
                .long(*name)
                .value_name("DATA")
                .action(ArgAction::Append)
                .allow_hyphen_values(true)
                .help(*help)
                .help_heading("Request");
            command.arg(match *name {
                "data" => argument.short('d'),
                _ => argument,
            })
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Data {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut found: Vec<(usize, Datum)> = Vec::new();
        for (name, _, make) in DATA {
            if let (Some(at), Some(texts)) =
                (matches.indices_of(name), matches.get_many::<String>(name))
            {
                found.extend(at.zip(texts.map(|text| make(text.clone()))));
            }
        }
        found.sort_by_key(|(at, _)| *at);
        Ok(Self(found.into_iter().map(|(_, datum)| datum).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
