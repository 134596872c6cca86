//! Groups of options whose order on the command line matters: destinations of bodies, and data to send.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, FromArgMatches, value_parser};

/// The URLs to fetch, in the order of the command line.
#[derive(Debug, Default)]
pub(crate) struct Urls(pub(crate) Vec<String>);

impl Args for Urls {
    fn augment_args(command: clap::Command) -> clap::Command {
        let positional = Arg::new("URL")
            .action(ArgAction::Append)
            .num_args(0..)
            .help("URL to fetch: `https://host[:port]/path`, or `http://…`");
        let named = Arg::new("url")
            .long("url")
            .value_name("URL")
            .action(ArgAction::Append)
            .help("URL to fetch, as an option")
            .help_heading("Request");
        let group = ArgGroup::new("urls")
            .args(["URL", "url"])
            .required(true)
            .multiple(true);
        command.arg(positional).arg(named).group(group)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Urls {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut found: Vec<(usize, String)> = Vec::new();
        for name in ["URL", "url"] {
            if let (Some(at), Some(texts)) =
                (matches.indices_of(name), matches.get_many::<String>(name))
            {
                found.extend(at.zip(texts.cloned()));
            }
        }
        found.sort_by_key(|(at, _)| *at);
        Ok(Self(found.into_iter().map(|(_, text)| text).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Destinations of bodies: the first belongs to the first URL, and so on.
#[derive(Debug, Default)]
pub(crate) struct Outputs(pub(crate) Vec<Output>, pub(crate) Rest);

/// Destination of the bodies without one of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Standard output.
    #[default]
    Stdout,
    /// Files named after the last segment of the URLs.
    RemoteName,
}

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
            .arg(
                Arg::new("remote-name-all")
                    .long("remote-name-all")
                    .action(ArgAction::SetTrue)
                    .help("Use -O for all URLs without an output of their own")
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
        let rest = if matches.get_flag("remote-name-all") {
            Rest::RemoteName
        } else {
            Rest::Stdout
        };
        let outputs = found.into_iter().map(|(_, output)| output);
        Ok(Self(outputs.collect(), rest))
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
    /// Unchanged bytes, appended to what is before without `&`.
    Json(String),
    /// Unchanged, even with a leading `@`.
    Raw(String),
    /// To be URL-encoded.
    Escaped(String),
}

/// Constructor of a datum from its argument.
type Make = fn(String) -> Datum;

/// The options: name, help and constructor.
const DATA: [(&str, &str, Make); 5] = [
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
    (
        "data-raw",
        "Data to POST as is; a leading @ has no special meaning",
        Datum::Raw,
    ),
    (
        "data-urlencode",
        "Data to POST URL-encoded: TEXT, =TEXT, NAME=TEXT, @FILE, NAME@FILE",
        Datum::Escaped,
    ),
    (
        "json",
        "JSON to POST, or @FILE, unchanged; sets content-type and accept",
        Datum::Json,
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
                "data" => argument.short('d').visible_alias("data-ascii"),
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
