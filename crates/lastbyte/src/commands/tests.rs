//! What holds for the flags and the help of every command.

use std::process;

use clap::{Arg, Command, CommandFactory, error::ErrorKind};

fn commands() -> Vec<Command> {
    let mut all = crate::Arguments::command();
    all.build();
    let commands: Vec<Command> = all.get_subcommands().cloned().collect();
    assert!(commands.len() >= 7);
    commands
        .into_iter()
        .filter(|command| command.get_name() != "help")
        .collect()
}

/// What the command says of a value of one of its flags; nothing if it accepts it. What is missing beside it is no matter.
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

/// Values that mean something, and values that mean nothing or several things, by what a flag takes.
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
    // The same for flags whose least value is above 4096 bytes.
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
fn figures_are_read_alike_by_every_command() {
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
            // Seconds without a unit are curl's alone, and so are its sizes: k is 1024.
            let is_curl = command.get_name() == "get";
            if kind.name == "SPAN" {
                let error = refusal(&command, flag, "5");
                assert_eq!(error.is_none(), is_curl, "{place}: {error:?}");
                assert!(is_curl || error.is_some_and(|error| error.contains("`5s` or `5ms`")));
            }
            if matches!(kind.name, "BYTES" | "SIZE") {
                let error = refusal(&command, flag, "4k");
                assert_eq!(error.is_none(), is_curl, "{place}: {error:?}");
                assert!(is_curl || error.is_some_and(|error| error.contains("`4KiB`")));
            }
        }
    }
    for (kind, count) in KINDS.iter().zip(checked) {
        assert!(count > 0, "no flag takes a {}", kind.name);
    }
}

#[test]
fn counts_say_what_is_expected() {
    let mut checked = 0;
    // The flags of `query` are jrf's.
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

/// The part of a command's help that shows how to use it.
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

/// A shell runs the examples as the help shows them, however wide the terminal is, and the commands know the flags.
#[test]
fn examples_can_be_pasted() {
    // The shell itself says what the commands would have been given.
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
