//! Rules for the options and the help of every command.

mod tables;

use std::process;

use clap::{Arg, Command, CommandFactory, error::ErrorKind};

use super::help;
use crate::failure::Failure;

fn commands() -> Vec<Command> {
    let mut all = crate::Arguments::command();
    all.build();
    let commands: Vec<Command> = all.get_subcommands().cloned().collect();
    assert!(commands.len() >= 8);
    commands
        .into_iter()
        .filter(|command| command.get_name() != "help")
        .collect()
}

/// The error of a command for the value of an option, or `None` if the value is valid. Other errors do not count.
fn refusal(command: &Command, flag: &str, value: &str) -> Option<String> {
    let words = [command.get_name(), &format!("--{flag}={value}")].map(str::to_owned);
    let error = command.clone().try_get_matches_from(words).err()?;
    (error.kind() == ErrorKind::ValueValidation || error.kind() == ErrorKind::InvalidValue)
        .then(|| error.to_string())
}

fn value_name(arg: &Arg) -> Option<&str> {
    let names = arg.get_value_names()?;
    names.first().map(clap::builder::Str::as_str)
}

/// Valid and invalid values of the options with one value name.
struct Kind {
    name: &'static str,
    accepted: &'static [&'static str],
    refused: &'static [(&'static str, &'static str)],
}

const KINDS: &[Kind] = &[
    Kind {
        name: "SPAN",
        accepted: &["7ms", "1.5s", "1min", "250us"],
        refused: &[("x", "expected"), ("-1ms", "expected")],
    },
    Kind {
        name: "RATE",
        accepted: &["55Mb/s", "55Mbps", "55mbit", "7MB/s", "1.5Gbit"],
        refused: &[
            ("55", "`55Mb/s`"),
            ("55M", "`55MB/s`"),
            ("-5mbit", "expected"),
        ],
    },
    Kind {
        name: "SHARE",
        accepted: &["1%", "0.01", "100%"],
        refused: &[("1", "`1%`"), ("2", "`2%`"), ("x", "expected")],
    },
    Kind {
        name: "DEPTH",
        accepted: &["60ms", "60kB", "64KiB", "60p"],
        refused: &[("60", "`60ms`"), ("64k", "expected")],
    },
    Kind {
        name: "BYTES",
        accepted: &["4096", "4096B", "4.096kB", "4KiB"],
        refused: &[("x", "expected"), ("-1", "expected"), ("1Mb", "expected")],
    },
    // Options whose minimum is above 4096 bytes.
    Kind {
        name: "SIZE",
        accepted: &["2097152", "2097152B", "2.097152MB", "2MiB"],
        refused: &[("x", "expected"), ("-1", "expected"), ("1Mb", "expected")],
    },
    Kind {
        name: "SEED",
        accepted: &["0", "7", "9007199254740991"],
        refused: &[("9007199254740992", "2^53 - 1"), ("x", "expected")],
    },
];

/// One grammar of units: docs/units.md.
#[test]
fn every_command_parses_figures_the_same_way() {
    let mut checked = [0; KINDS.len()];
    for command in commands() {
        for arg in command.get_arguments() {
            let (Some(flag), Some(name)) = (arg.get_long(), value_name(arg)) else {
                continue;
            };
            let kind = KINDS.iter().zip(&mut checked);
            let Some((kind, checked)) = kind.into_iter().find(|(kind, _)| kind.name == name) else {
                continue;
            };
            *checked += 1;
            let place = format!("{} --{flag}", command.get_name());
            for value in kind.accepted {
                assert_eq!(refusal(&command, flag, value), None, "{place} {value}");
            }
            for (value, expected) in kind.refused {
                let error = refusal(&command, flag, value);
                let error = error.unwrap_or_else(|| panic!("{place} accepts {value}"));
                assert!(error.contains(&format!("--{flag}")), "{place}: {error}");
                assert!(error.contains(expected), "{place}: {error}");
            }
            // Seconds without a unit are curl's alone.
            if kind.name == "SPAN" {
                let is_curl = command.get_name() == "get";
                let error = refusal(&command, flag, "5");
                assert_eq!(error.is_none(), is_curl, "{place}: {error:?}");
                assert!(is_curl || error.is_some_and(|error| error.contains("`5s` or `5ms`")));
            }
            if matches!(kind.name, "BYTES" | "SIZE") {
                let error = refusal(&command, flag, "4k");
                assert!(
                    error.is_some_and(|error| error.contains("`4KiB`")),
                    "{place}"
                );
            }
        }
    }
    for (kind, count) in KINDS.iter().zip(checked) {
        assert!(count > 0, "no flag takes a {}", kind.name);
    }
}

#[test]
fn errors_of_counts_name_the_expected_value() {
    let mut checked = 0;
    // The options of `query` are jrf's.
    for command in commands()
        .iter()
        .filter(|command| command.get_name() != "query")
    {
        for arg in command.get_arguments() {
            let (Some(flag), Some("N")) = (arg.get_long(), value_name(arg)) else {
                continue;
            };
            checked += 1;
            for value in ["x", "1.5"] {
                let error = refusal(command, flag, value).expect(value);
                assert!(error.contains(&format!("--{flag}")), "{error}");
                assert!(
                    error.contains("expected"),
                    "{}: {error}",
                    command.get_name()
                );
            }
        }
    }
    assert!(checked > 10);
}

/// The examples in a command's help.
fn examples(command: &Command, width: usize) -> String {
    let help = command
        .clone()
        .term_width(width)
        .render_long_help()
        .to_string();
    let lines = help
        .lines()
        .skip_while(|line| !line.starts_with("Examples"));
    let block: Vec<&str> = lines.skip(1).take_while(|line| !line.is_empty()).collect();
    assert!(!block.is_empty(), "{} has no examples", command.get_name());
    block.join("\n") + "\n"
}

/// A shell accepts the examples as the help shows them, at every terminal width, and the commands accept the options.
#[test]
fn examples_can_be_pasted() {
    // The shell prints the arguments that the commands would get.
    const PRELUDE: &str = "lastbyte() { printf '%s\\0' \"$@\"; printf '\\n'; }
        sudo() { \"$@\"; }; curl() { :; }; ping() { :; }; tar() { :; }; echo() { :; }\n";
    for command in commands() {
        let name = command.get_name();
        let block = examples(&command, 80);
        for width in [90, 100, 160] {
            assert_eq!(
                examples(&command, width),
                block,
                "{name} at {width} columns"
            );
        }
        for line in block.lines() {
            assert!(line.chars().count() <= 78, "{name}: {line}");
            assert!(line.starts_with("  "), "{name}: {line}");
        }
        let output = process::Command::new("sh")
            .args(["-eu", "-c", &format!("{PRELUDE}{block}")])
            .output()
            .expect("a shell");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && errors.is_empty(),
            "{name}: {errors}"
        );
        let given = String::from_utf8(output.stdout).expect("UTF-8");
        let mut count = 0;
        for words in given.split("\0\n").filter(|words| !words.is_empty()) {
            let words = core::iter::once("lastbyte").chain(words.split('\0'));
            let words: Vec<String> = words.map(str::to_owned).collect();
            count += 1;
            if let Err(error) = crate::Arguments::command().try_get_matches_from(&words) {
                panic!("{words:?}: {error}");
            }
        }
        assert!(count >= 3, "{name}: {count} examples");
    }
}

fn help(command: &Command) -> String {
    let short = help::short(command.clone()).render_help();
    let long = help::layout(command.clone()).render_long_help();
    format!("{short}\n======== --help ========\n\n{long}")
}

/// The whole help of every command.
#[test]
fn help_at_80_columns() {
    for command in commands() {
        let text = help(&command.clone().term_width(80));
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
        }
        insta::assert_snapshot!(format!("help-{}", command.get_name()), text);
    }
}

/// `-h` has at most 40 lines: two examples, the everyday options and the names of the groups.
#[test]
fn short_help_fits_one_screen() {
    for command in commands() {
        let name = command.get_name();
        let text = help::short(command.clone()).render_help().to_string();
        let lines = text.lines().count();
        assert!(lines <= 40, "{name}: {lines} lines\n{text}");
        let examples = text.lines().filter(|line| line.contains("lastbyte "));
        assert!(examples.count() >= 3, "{name}: {text}");
        let options = text
            .lines()
            .filter(|line| line.trim_start().starts_with('-'));
        let all = command.get_opts().filter(|arg| !arg.is_hide_set()).count();
        assert!(options.count() >= all.min(5), "{name}: {text}");
    }
}

/// Options that few people need belong in files, or in other programs.
#[test]
fn commands_have_at_most_this_many_options() {
    for (name, most) in [
        ("get", 45),
        ("serve", 50),
        ("sim", 40),
        ("bench", 35),
        ("emulate", 25),
    ] {
        let all = commands();
        let command = all.iter().find(|command| command.get_name() == name);
        let options = command.expect(name).get_arguments();
        let options = options.filter(|arg| !arg.is_positional() && !arg.is_hide_set());
        let count = options.filter(|arg| arg.get_id() != "help").count();
        assert!(
            count <= most,
            "{name}: {count} options (expected at most {most})"
        );
    }
}

#[test]
fn summaries_of_the_commands() {
    let mut all = crate::Arguments::command().term_width(80);
    insta::assert_snapshot!("help", all.render_help());
}

/// Words that english.md replaces, and their like: a help text with one of them has been translated word by word.
const TRANSLATED: [&str; 14] = [
    "nobody", "somebody", "anybody", "whoever", "whom", "anew", "told", "tells", "begin", "vouch",
    "put away", "at hand", "so many", "so much",
];

/// The help of an option is one line: a phrase in the imperative, or a noun phrase. Details follow in `--help`.
#[test]
fn the_help_of_an_option_is_one_plain_line() {
    for command in commands() {
        let texts = command.get_arguments().filter_map(|arg| {
            let help = arg.get_help()?.to_string();
            Some((arg.get_id().as_str(), help))
        });
        let about = command.get_about().expect("a summary").to_string();
        let texts: Vec<(&str, String)> = texts.chain([("summary", about)]).collect();
        for (id, text) in texts {
            let place = format!("{} {id}: {text}", command.get_name());
            assert!(text.chars().count() <= 100, "{place}");
            assert!(!text.ends_with('.'), "{place}");
            let first = text.chars().next().expect("text");
            assert!(!first.is_ascii_lowercase(), "{place}");
        }
        let long = help(&command).to_lowercase();
        for word in TRANSLATED {
            let found = long
                .match_indices(word)
                .any(|(at, _)| !long[..at].ends_with(|c: char| c.is_ascii_alphanumeric()));
            assert!(!found, "{}: {word}", command.get_name());
        }
    }
}

/// An option has the same name in all commands; earlier names are hidden aliases.
#[test]
fn earlier_names_of_options_still_work() {
    for (command, new, old, value) in [
        ("sim", "--jobs", "--threads", "3"),
        ("query", "--jobs", "--parallel", "3"),
        ("report", "--out", "--output", "x.html"),
    ] {
        let matches = |name: &str| {
            let words = ["lastbyte", command, name, value];
            let mut words: Vec<&str> = words.to_vec();
            if command != "sim" {
                words.push("input");
            }
            let matches = crate::Arguments::command().try_get_matches_from(&words);
            let matches = matches.unwrap_or_else(|error| panic!("{words:?}: {error}"));
            let (_, matches) = matches.subcommand().expect("a command");
            let id = new.trim_start_matches("--");
            let raw = matches.get_raw(id).expect("a value");
            raw.map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(matches(new), [value], "{command} {new}");
        assert_eq!(matches(old), [value], "{command} {old}");
        let all = commands();
        let shown = all.iter().find(|one| one.get_name() == command);
        let shown = help::layout(shown.expect("a command").clone()).render_long_help();
        let shown = shown.to_string();
        assert!(shown.contains(new) && !shown.contains(&format!("{old} ")));
    }
}

/// What the commands share has one name, one short form and one value.
#[test]
fn shared_options_are_alike() {
    for command in commands() {
        for arg in command.get_arguments() {
            let place = format!("{} {}", command.get_name(), arg.get_id());
            match arg.get_long() {
                Some("seed") => assert_eq!(value_name(arg), Some("SEED"), "{place}"),
                Some("jobs") => assert_eq!(value_name(arg), Some("N"), "{place}"),
                // For `get` it is curl's: data to send.
                Some("json") => assert_eq!(
                    arg.get_action().takes_values(),
                    command.get_name() == "get",
                    "{place}"
                ),
                Some("threads" | "parallel-jobs" | "random-seed") => panic!("{place}"),
                _ => {}
            }
        }
    }
}

#[test]
fn an_unknown_key_of_a_file_has_the_expected_ones_and_a_suggestion() {
    let text = |what: &str| match super::with_known_keys(Failure::Usage(what.to_owned())) {
        Failure::Usage(what) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        text(
            "`e.toml`: line 2: `conections`: unknown field `conections`, expected one of `connections`, `arms`"
        ),
        "`e.toml`: line 2: `conections`: unknown key `conections` (expected connections, arms); did you mean `connections`?"
    );
    assert_eq!(
        text("`n.toml`: unknown field `x`, expected `rate` or `rtt`"),
        "`n.toml`: unknown key `x` (expected rate, rtt)"
    );
    assert_eq!(text("cannot read `n.toml`"), "cannot read `n.toml`");
}
