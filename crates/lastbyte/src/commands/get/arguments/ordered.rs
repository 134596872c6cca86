//! Options whose order on the command line counts, of several kinds: where bodies go, and what is sent.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, FromArgMatches, value_parser};

/// What is fetched, in the order in which it was said.
#[derive(Debug, Default)]
pub(crate) struct Urls(pub(crate) Vec<String>);

impl Args for Urls {
    fn augment_args(command: clap::Command) -> clap::Command {
        let positional = Arg::new("URL")
            .action(ArgAction::Append)
            .num_args(0..)
            .help("What to fetch: `https://host[:port]/path`, or `http://…`");
        let named = Arg::new("url")
            .long("url")
            .value_name("URL")
            .action(ArgAction::Append)
            .help("The same, for files of arguments")
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

/// Where bodies go: the first to the first address, and so on.
#[derive(Debug, Default)]
pub(crate) struct Outputs(pub(crate) Vec<Output>);

/// Where a body goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Standard output.
    Stdout,
    /// A file of this name.
    File(PathBuf),
    /// A file of the name that the address ends in.
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
                    .help("Write the body into this file, `-` for the terminal; one for each address, in their order")
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
                    .help("Write the body into a file of the name that the address ends in; one for each address")
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

/// What is sent, in the order in which it was said.
#[derive(Debug, Default)]
pub(crate) struct Data(pub(crate) Vec<Datum>);

/// Part of what is sent, as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Datum {
    /// As text; files without their line ends.
    Text(String),
    /// Byte by byte.
    Binary(String),
    /// As it stands, also with an `@` before it.
    Raw(String),
    /// To be escaped.
    Escaped(String),
    /// Part of a form: text, or a file.
    Form(String),
    /// The same, text in any case.
    FormString(String),
}

impl Datum {
    /// Whether it is a part of a form.
    pub(crate) const fn is_part(&self) -> bool {
        matches!(self, Self::Form(_) | Self::FormString(_))
    }
}

/// Makes a datum of what was said.
type Make = fn(String) -> Datum;

/// How each is called, and what it makes.
const DATA: [(&str, &str, Make); 6] = [
    (
        "data",
        "Send this (POST); @FILE for what is in a file, without its line ends; several are joined by `&`",
        Datum::Text,
    ),
    (
        "data-binary",
        "Send this, or @FILE, byte by byte (POST)",
        Datum::Binary,
    ),
    (
        "data-raw",
        "Send this, with whatever it begins (POST)",
        Datum::Raw,
    ),
    (
        "data-urlencode",
        "Send this, escaped as forms are: TEXT, =TEXT, NAME=TEXT, @FILE, NAME@FILE (POST)",
        Datum::Escaped,
    ),
    (
        "form",
        "Send a form of parts (POST): NAME=TEXT, NAME=@FILE, NAME=<FILE, each with ;type=TYPE or ;filename=NAME",
        Datum::Form,
    ),
    (
        "form-string",
        "Send a part of a form, with whatever it begins: NAME=TEXT",
        Datum::FormString,
    ),
];

impl Args for Data {
    fn augment_args(command: clap::Command) -> clap::Command {
        DATA.iter().fold(command, |command, (name, help, _)| {
            let argument = Arg::new(*name)
                .long(*name)
                .value_name(if name.starts_with("form") {
                    "PART"
                } else {
                    "DATA"
                })
                .action(ArgAction::Append)
                .allow_hyphen_values(true)
                .help(*help)
                .help_heading("Request");
            command.arg(match *name {
                "data" => argument.short('d').visible_alias("data-ascii"),
                "form" => argument.short('F'),
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
