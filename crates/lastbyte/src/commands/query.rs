//! `lastbyte query`: arguments, files, standard input; all else is the crate `lastbyte-query`.

use clap::ValueEnum;
use lastbyte_query::{Format, Input, Options, Query, ByteSource};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = r#"A query is made of stages, joined by `>>`. Each is a Ruby expression; `_` is the row.

  lastbyte query '_["ttlb"]' conns.ndjson                      a field of each row
  lastbyte query 'select(_["ttlb"] > 500) >> _["conn_id"]'     some rows
  lastbyte query 'min(_["rtt.minimum"])' conns.ndjson          one value for all rows
  lastbyte query '[count(), average(_["ttlb"])]'               several at once
  lastbyte query 'group_by(_["method"]) { percentile(_["ttlb"], [0.5, 0.9]) }'
  lastbyte query 'group_by(_["arm"]) { count() } >> map_values { |n| n * 100 }'
  lastbyte query -r ./helpers.rb 'select(slow?(_)) >> count()' helpers are Ruby `def`s in a file

Stages for rows:  select(p)  flat  map { |x| … }  map_values { |v| … }  apply { |x| … }
Reducers:         sum count count_if min max average stdev percentile group group_by sort reduce
A reducer's value is there at the end of input: `count() >> _ + 1`, not `count() + 1`.
The reference of the language is docs/query.md."#;

/// Queries rows of JSON: stages of Ruby expressions joined by `>>`, with reducers.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, version, disable_version_flag = true)]
pub(crate) struct Arguments {
    /// How values are printed.
    #[arg(
        short,
        long,
        value_enum,
        default_value = "json",
        overrides_with = "output"
    )]
    output: Output,
    /// How many threads work. Default: one. With more, an array that stands twice in a value is two for later stages that
    /// change it in place.
    #[arg(short = 'P', long, value_name = "N", overrides_with = "parallel")]
    parallel: Option<usize>,
    /// Values may span lines; RS-delimited streams (RFC 7464) are read, too.
    #[arg(long, overrides_with = "lax")]
    lax: bool,
    /// A file of helper methods in Ruby; may be given several times.
    #[arg(short = 'r', long = "require", value_name = "FILE")]
    helpers: Vec<PathBuf>,
    /// Prints the stages and what is read of the rows.
    #[arg(short, long, overrides_with = "verbose")]
    verbose: bool,
    /// Short outputs are grouped into writes of up to N bytes.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4096,
        overrides_with = "atomic_write_bytes"
    )]
    atomic_write_bytes: usize,
    /// Accepted for jrf's sake, and ignored.
    #[arg(long, hide = true, overrides_with = "no_jit")]
    no_jit: bool,
    /// Prints the version.
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    /// The query, and the files to read; none, or `-`: standard input.
    #[arg(required = true, value_name = "QUERY [FILE]…", trailing_var_arg = true)]
    words: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Json,
    Pretty,
    Tsv,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let mut helpers = Vec::new();
    for path in &arguments.helpers {
        match read(path) {
            Ok(text) => helpers.push((path.display().to_string(), text)),
            Err(reason) => {
                return failed(&format!(
                    "cannot load such file -- {}: {reason}",
                    path.display()
                ));
            }
        }
    }
    let options = Options {
        format: match arguments.output {
            Output::Json => Format::Json,
            Output::Pretty => Format::Pretty,
            Output::Tsv => Format::Tsv,
        },
        lax: arguments.lax,
        write_bytes: arguments.atomic_write_bytes,
        verbose: arguments.verbose,
        threads: arguments.parallel.unwrap_or(1),
        ..Options::default()
    };
    let Some((text, files)) = arguments.words.split_first() else {
        return ExitCode::FAILURE;
    };
    let query = match Query::compile(text, &helpers, options) {
        Ok(query) => query,
        Err(wrong) => return failed(&wrong.to_string()),
    };
    let inputs = if files.is_empty() {
        vec![standard_input()]
    } else {
        files.iter().map(|name| input(name)).collect()
    };
    if query.run(inputs, &mut io::stdout(), &mut io::stderr()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[expect(clippy::print_stderr, reason = "this is where the command talks")]
fn failed(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::FAILURE
}

#[expect(
    clippy::disallowed_methods,
    reason = "the binary is the edge where files are read"
)]
fn read(path: &PathBuf) -> io::Result<String> {
    std::fs::read_to_string(path)
}

fn standard_input() -> Input {
    Input::new("<stdin>", || Ok(Box::new(io::stdin()) as ByteSource)).live()
}

#[expect(
    clippy::disallowed_types,
    reason = "the binary is the edge where files are opened"
)]
fn input(name: &str) -> Input {
    if name == "-" {
        return standard_input();
    }
    let path = name.to_owned();
    Input::new(name, move || {
        Ok(Box::new(std::fs::File::open(path)?) as ByteSource)
    })
}
