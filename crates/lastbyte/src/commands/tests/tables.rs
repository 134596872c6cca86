//! The tables of options in the reference pages, generated from the definitions of the commands.
//!
//! `INSTA_UPDATE=always cargo test -p lastbyte --lib tables` writes them.

#![expect(
    clippy::disallowed_methods,
    reason = "the reference pages are files, and a variable selects whether they are written"
)]

use std::{env, fs, path::Path};

use clap::{Arg, Command};

use super::commands;

const END: &str = "<!-- end of options -->";

/// The options of a command, a table for each group; the keys that only a configuration file has are the last one.
fn tables(command: &Command) -> String {
    let mut groups: Vec<(&str, String)> = Vec::new();
    let options = command
        .get_arguments()
        .filter(|arg| arg.get_long().is_some());
    let options: Vec<&Arg> = options.filter(|arg| arg.get_id() != "help").collect();
    for arg in &options {
        let group = match arg.get_help_heading() {
            _ if arg.is_hide_set() => continue,
            Some(heading) => heading.split(" (").next().unwrap_or(heading),
            None => "Option",
        };
        push(&mut groups, group, row(arg, &names(arg)));
    }
    let is_server = command.get_name() == "serve";
    for arg in options.iter().filter(|arg| is_server && arg.is_hide_set()) {
        let name = arg.get_long().expect("a name");
        push(
            &mut groups,
            "Key of the file only",
            row(arg, &format!("`{name}`")),
        );
    }
    let tables = groups.iter().map(|(heading, rows)| {
        format!(
            "| {} | default | |\n|---|---|---|\n{rows}",
            heading.to_lowercase()
        )
    });
    tables.collect::<Vec<_>>().join("\n")
}

fn push<'a>(groups: &mut Vec<(&'a str, String)>, heading: &'a str, row: String) {
    match groups.iter_mut().find(|(name, _)| *name == heading) {
        Some((_, rows)) => rows.push_str(&row),
        None => groups.push((heading, row)),
    }
}

/// `-o`, `--output FILE`
fn names(arg: &Arg) -> String {
    let mut names = String::new();
    if let Some(short) = arg.get_short() {
        names.extend(["`-", &short.to_string(), "`, "]);
    }
    names.extend(["`--", arg.get_long().expect("a name")]);
    let is_switch = arg.get_num_args().is_some_and(|num| num.max_values() == 0);
    if arg.get_action().takes_values() && !is_switch {
        let values = arg.get_value_names().unwrap_or_default();
        let values: Vec<&str> = values.iter().map(clap::builder::Str::as_str).collect();
        let is_optional = arg.get_num_args().is_some_and(|num| num.min_values() == 0);
        let values = values.join(" ");
        let suffix = if is_optional && arg.is_require_equals_set() {
            format!("[={values}]")
        } else if is_optional {
            format!(" [{values}]")
        } else {
            format!(" {values}")
        };
        names.push_str(&suffix);
    }
    names.replace('|', "\\|") + "`"
}

fn row(arg: &Arg, names: &str) -> String {
    let takes_values = arg.get_action().takes_values();
    let defaults = arg.get_default_values().iter();
    let defaults = defaults.map(|value| value.to_string_lossy().into_owned());
    let defaults: Vec<String> = defaults
        .filter(|_| takes_values && !arg.is_hide_default_value_set())
        .collect();
    let default = match &defaults[..] {
        [] => " ".to_owned(),
        values => format!(" `{}` ", values.join(",")),
    };
    let help = arg
        .get_long_help()
        .or(arg.get_help())
        .expect("help")
        .to_string();
    let paragraphs: Vec<&str> = help
        .split("\n\n")
        .map(|text| text.trim().trim_end_matches('.'))
        .collect();
    let mut text = with_code(&paragraphs.join(". ").replace('\n', " "));
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|_| takes_values)
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() {
        text.extend([": ", &values.join(", ")]);
    }
    format!("| {names} |{default}| {} |\n", text.replace('|', "\\|"))
}

/// Options in a text, as code, unless they are part of code.
fn with_code(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    let pieces = pieces.map(|(index, piece)| match index % 2 {
        0 => with_code_in(piece),
        _ => piece.to_owned(),
    });
    pieces.collect::<Vec<_>>().join("`")
}

fn with_code_in(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let core = word.trim_matches(['(', ')', ',', '.', ':', ';', '\'', '"']);
        let letter = core.trim_start_matches('-').chars().next();
        let is_option = core.starts_with('-') && letter.is_some_and(|c| c.is_ascii_alphabetic());
        if is_option {
            word.replacen(core, &format!("`{core}`"), 1)
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_reference_pages_have_the_options_of_the_commands() {
    let is_update = env::var("INSTA_UPDATE").is_ok_and(|value| value == "always");
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    for command in commands() {
        let name = command.get_name();
        let path = folder.join(format!("{name}.md"));
        let Ok(page) = fs::read_to_string(&path) else {
            continue;
        };
        let start = format!("<!-- options of {name} -->\n");
        let Some((before, rest)) = page.split_once(&start) else {
            // `query` has the options of jrf, and the others several commands or few options.
            assert!(
                matches!(name, "compare" | "query" | "report" | "sim" | "specs"),
                "{name}"
            );
            continue;
        };
        let (_, after) = rest.split_once(END).expect("the end of the options");
        let expected = format!("{before}{start}\n{}\n{END}{after}", tables(&command));
        if is_update {
            fs::write(&path, &expected).expect("a writable page");
        }
        assert!(
            is_update || page == expected,
            "{}: run the test with INSTA_UPDATE=always",
            path.display()
        );
    }
}

#[test]
fn code_in_help_stays_as_it_is() {
    assert_eq!(
        with_code("with --log, as `sim --cross` (not --x)"),
        "with `--log`, as `sim --cross` (not `--x`)"
    );
}
