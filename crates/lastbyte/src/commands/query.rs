//! `lastbyte query`: arguments, files and standard input. The crate `lastbyte-query` does the work.

mod chart;
mod follow;
mod memory;
#[cfg(feature = "parquet")]
mod parquet;
mod schema;
mod table;

use crate::failure::Failure;
use crate::jobs::Interrupt;
use crate::terminal::{self, Messages};
use clap::ValueEnum;
use lastbyte_query::{ByteSource, Follow, Format, Input, Memory, Options, Outcome, Query, Value};
use rustix::event::{PollFd, PollFlags};
use std::io::{self, IsTerminal, Read, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = r#"A query consists of stages joined by `>>`. A stage is a Ruby expression; `_` is the row passed to it.

Examples:
  # Without a log.
  echo '{"a":1,"b":[2,3]}' | lastbyte query '_["b"] >> flat >> _ * 10'
  printf '{"k":"x"}\n{"k":"y"}\n' |
    lastbyte query 'group_by(_["k"]) { count() }'
  # A field of each row; some rows; several fields; a table.
  lastbyte query '_["ttlb"]' conns.ndjson
  lastbyte query 'select(_["ttlb"] > 500) >> _["conn_id"]' conns.ndjson
  lastbyte query '{id: _["conn_id"], s: _["ttlb"] / 1000.0}' conns.ndjson
  lastbyte query -o tsv '[[_["arm"], _["ttlb"]]]' conns.ndjson
  # Over all rows: one value; several; by group; sorted; reduced.
  lastbyte query 'min(_["rtt.minimum"])' conns.ndjson
  lastbyte query '[count(), average(_["ttlb"])]' conns.ndjson
  lastbyte query 'group_by(_["arm"]) { percentile(_["ttlb"], [0.5, 0.9]) }' \
    conns.ndjson
  lastbyte query 'sort(-_["ttlb"]) >> _["conn_id"]' conns.ndjson
  lastbyte query 'reduce(0) { |sum, row| sum + row["ttlb"] }' conns.ndjson
  # The greatest rows; the distinct values of a field; a histogram.
  lastbyte query 'top(3, _["ttlb"]) >> flat >> _["conn_id"]' conns.ndjson
  lastbyte query 'distinct(_["arm"])' conns.ndjson
  lastbyte query 'histogram(_["ttlb"], 100)' conns.ndjson
  # For the terminal: a table, a histogram.
  lastbyte query -o table 'limit(20)' conns.ndjson
  lastbyte query -o chart 'histogram(_["ttlb"], 100)' conns.ndjson
  # A table for a spreadsheet; the state of a part of a log, merged elsewhere.
  lastbyte query -o csv '{id: _["conn_id"], ttlb: _["ttlb"]}' conns.ndjson
  lastbyte query --partial 'average(_["ttlb"])' conns.ndjson |
    lastbyte query --merge 'average(_["ttlb"])' -
  # The next stage receives the value of a reducer: `count() >> _ + 1`.
  lastbyte query 'group_by(_["arm"]) { count() } >>
    map_values { |n| n * 100 }' conns.ndjson
  # Helper methods from a Ruby file.
  lastbyte query -r ./helpers.rb 'select(loss(_) > 3) >> count()' conns.ndjson

Stages for rows:  select(p)  limit(n)  flat  map { |x| … }  map_values { |v| … }  apply { |x| … }
Stages for values:  bucket(e, width)  lookup("file.csv", e)
Reducers:  sum count count_if min max average stdev percentile histogram distinct top first last mode corr group group_by sort reduce
The file of a row is `$FILENAME`. `-r h2o` has helpers for logs of connections: base_cond, group_name, loss_ratio.

Input files may be compressed with gzip or zstd. Exit code: 0 on success, 1 if an input or a row failed, 2 if the query or an option is invalid. Language reference: docs/query.md."#;

/// Why an argument is unknown, if it can be the start of a query.
pub(crate) fn refusal(given: &str) -> Option<String> {
    let is_option = given
        .trim_start_matches('-')
        .starts_with(|c: char| c.is_ascii_alphabetic());
    (!is_option).then(|| {
        format!("unexpected argument `{given}`: before a query that starts with `-`, write `--`")
    })
}

/// Query logs of JSON lines with Ruby expressions and reducers.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, version, disable_version_flag = true)]
pub(crate) struct Arguments {
    /// Output format
    #[arg(
        short,
        long,
        value_enum,
        default_value = "json",
        overrides_with = "output"
    )]
    output: Output,
    /// Input format, json or csv [default: csv for files named *.csv, else json]
    ///
    /// A name may end in .csv.gz or .csv.zst as well. Parquet files are recognised by content.
    #[arg(
        short,
        long,
        value_parser = input_format,
        value_name = "FORMAT",
        overrides_with = "input"
    )]
    input: Option<InputFormat>,
    /// Follow the last file as it grows; refresh results each second
    ///
    /// The file may be rotated or truncated. Ctrl-C prints the last results.
    #[arg(short, long, overrides_with = "follow", conflicts_with_all = ["lax", "partial", "merge"])]
    follow: bool,
    /// Write the state of the query, for --merge, instead of its result
    #[arg(long, overrides_with = "partial")]
    partial: bool,
    /// Merge states of --partial in order, and print the result
    ///
    /// The files are states of the same query, as written by --partial for each part of the input. With --partial, the
    /// result is a state again.
    #[arg(long, overrides_with = "merge")]
    merge: bool,
    /// Number of threads; results do not depend on it [default: CPU cores]
    #[arg(short = 'P', long, alias = "parallel", value_name = "N", value_parser = super::values::positive(super::values::THREADS_MAX), overrides_with = "jobs")]
    jobs: Option<NonZeroUsize>,
    /// Allow values that span lines, several per line, and RS delimiters
    ///
    /// RS-delimited streams are those of RFC 7464.
    #[arg(long, overrides_with = "lax")]
    lax: bool,
    /// Skip lines that are not JSON; report their number on stderr
    #[arg(long, overrides_with = "skip_bad_lines", conflicts_with = "lax")]
    skip_bad_lines: bool,
    /// Memory limit; `sort` and `group_by` then use files [default: 3/4 of RAM]
    #[arg(long, value_name = "LIMIT", value_parser = memory::size, overrides_with = "max_memory")]
    max_memory: Option<u64>,
    /// File of Ruby helper methods, or `h2o` (built in); repeatable
    #[arg(short = 'r', long = "require", value_name = "FILE")]
    helpers: Vec<PathBuf>,
    /// Name of standard input, in `$FILENAME` and in errors
    #[arg(
        long,
        value_name = "NAME",
        default_value = "<stdin>",
        overrides_with = "stdin_name"
    )]
    stdin_name: String,
    /// Print the stages, and the fields they read
    #[arg(short, long, overrides_with = "verbose")]
    verbose: bool,
    /// Print the plan of the query, and exit
    ///
    /// It consists of the stages, which of them threads share and why not more, and the fields that are read. With
    /// `--explain=json`, it is an object.
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "text",
        overrides_with = "explain"
    )]
    explain: Option<Explain>,
    /// Print the fields of the rows: types, share of nulls, range, examples
    ///
    /// There is no query: all arguments are files. With `--schema=N`, only the first N rows are read.
    #[arg(
        long,
        value_name = "ROWS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ALL_ROWS,
        value_parser = rows,
        overrides_with = "schema",
        conflicts_with_all = ["follow", "partial", "merge", "explain"]
    )]
    schema: Option<u64>,
    /// Maximum size of a grouped write, in bytes
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4096,
        value_parser = write_bytes,
        overrides_with = "atomic_write_bytes"
    )]
    atomic_write_bytes: usize,
    /// Accepted for compatibility with jrf; no effect
    #[arg(long, hide = true, overrides_with = "no_jit")]
    no_jit: bool,
    /// Print version
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    /// Query, and files to read (none or `-`: stdin)
    #[arg(required_unless_present = "schema", value_name = "QUERY [FILE]…")]
    words: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Output {
    Json,
    Pretty,
    Tsv,
    Csv,
    Parquet,
    Table,
    Chart,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Explain {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum InputFormat {
    Json,
    Csv,
}

/// Of no output format but these, so that no similar name is suggested.
fn input_format(text: &str) -> Result<InputFormat, &'static str> {
    match text {
        "json" => Ok(InputFormat::Json),
        "csv" => Ok(InputFormat::Csv),
        _ => Err("expected json or csv"),
    }
}

/// A number of rows; without one, 0 stands for all.
fn rows(text: &str) -> Result<u64, &'static str> {
    match text.parse() {
        _ if text == ALL_ROWS => Ok(0),
        Ok(rows) if rows > 0 => Ok(rows),
        _ => Err("expected a number of rows above 0"),
    }
}

/// The rows of `--schema` without a number.
const ALL_ROWS: &str = "all";

fn write_bytes(text: &str) -> Result<usize, &'static str> {
    match text.parse() {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err("--atomic-write-bytes requires a positive integer"),
    }
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let interrupt = Interrupt::listen();
    let started = match (arguments.schema, &arguments.words[..]) {
        (Some(rows), files) => schema(arguments, rows, files, &interrupt),
        (None, [text, files @ ..]) => start(arguments, text, files, &interrupt),
        (None, []) => return ExitCode::from(USAGE),
    };
    match started {
        Err(message) => failed(&message),
        Ok(_) if interrupt.is_pressed() => ExitCode::from(INTERRUPTED),
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
    }
}

/// Prints the fields of the rows.
fn schema(
    arguments: &Arguments,
    rows: u64,
    files: &[String],
    interrupt: &Interrupt,
) -> Result<bool, String> {
    if matches!(arguments.output, Output::Parquet | Output::Chart) {
        return Err(format!(
            "--schema cannot be used with -o {}",
            arguments.output
        ));
    }
    let rows_max = (rows > 0).then_some(rows);
    let options = options(arguments, interrupt, None);
    let inputs = inputs(arguments, files, None, None, interrupt)?;
    let (query, fields, is_ok) = schema::list(inputs, rows_max, options, &mut Messages)?;
    Ok(print_results(&query, vec![fields], arguments.output) && is_ok)
}

/// Runs the query. Returns whether it succeeded, or an error in the arguments.
fn start(
    arguments: &Arguments,
    text: &str,
    files: &[String],
    interrupt: &Interrupt,
) -> Result<bool, String> {
    let follow = arguments
        .follow
        .then(|| follow::settings(io::stdout().is_terminal()));
    let helpers = helpers(&arguments.helpers)?;
    let options = options(arguments, interrupt, follow.clone());
    let query = match Query::compile(text, &helpers, options) {
        Ok(query) => query,
        Err(_) if Path::new(text).is_file() => {
            return Err(format!(
                "no query: `{text}` is a file (expected a query, and then files)"
            ));
        }
        Err(wrong) => return Err(wrong.to_string()),
    };
    if let Some(format) = arguments.explain {
        let plan = query.explain(format == Explain::Json);
        return match io::stdout().write_all(plan.as_bytes()) {
            Err(reason) if reason.kind() != io::ErrorKind::BrokenPipe => {
                terminal::error(format!("error: cannot write to stdout: {reason}"));
                Ok(false)
            }
            _ => Ok(true),
        };
    }
    if arguments.partial || arguments.merge {
        query.check_mergeable().map_err(|wrong| wrong.to_string())?;
    }
    if arguments.partial && io::stdout().is_terminal() {
        return Err(
            "a state is not text: write it to a file (`--partial … > part.state`)".to_owned(),
        );
    }
    check_output(arguments)?;
    let fields = query.fields();
    let inputs = inputs(
        arguments,
        files,
        fields.as_deref(),
        follow.as_ref(),
        interrupt,
    )?;
    let (out, errors) = (&mut io::stdout(), &mut Messages);
    Ok(match (arguments.partial, arguments.merge) {
        (false, false) => print_results(&query, inputs, arguments.output),
        (true, false) => query.partial(inputs, out, errors),
        (false, true) => query.merge(inputs, out, errors),
        (true, true) => query.merge_to_state(inputs, out, errors),
    })
}

fn helpers(paths: &[PathBuf]) -> Result<Vec<(String, String)>, String> {
    let load = |path: &PathBuf| {
        if path.as_os_str() == H2O {
            return Ok((format!("<{H2O}>"), H2O_HELPERS.to_owned()));
        }
        let name = path.display().to_string();
        match read(path) {
            Ok(text) => Ok((name, text)),
            // With jq, `-r` is another option.
            Err(reason) if path.extension().is_none_or(|it| it != "rb") => Err(format!(
                "cannot read `{name}`: {reason} (-r expects a file of helper methods, or `h2o`; `-o tsv` prints texts without quotes)"
            )),
            Err(reason) => Err(format!("cannot read `{name}`: {reason}")),
        }
    };
    paths.iter().map(load).collect()
}

fn options(arguments: &Arguments, interrupt: &Interrupt, follow: Option<Follow>) -> Options {
    let limit = memory::limit(arguments.max_memory);
    Options {
        format: match arguments.output {
            Output::Json => Format::Json,
            Output::Pretty => Format::Pretty,
            Output::Tsv => Format::Tsv,
            Output::Csv => Format::Csv,
            // They take values.
            Output::Parquet | Output::Table | Output::Chart => Format::default(),
        },
        lax: arguments.lax,
        write_bytes: arguments.atomic_write_bytes,
        verbose: arguments.verbose,
        threads: arguments.jobs.map_or_else(cores, NonZeroUsize::get),
        skip_bad_lines: arguments.skip_bad_lines,
        memory: limit,
        spill: limit.map(memory::spill),
        open_table: Some(open_table),
        interrupt: Some(interrupt.flag()),
        follow,
        sentinels: lastbyte_record::connection_log::keys::SENTINELS,
        ..Options::default()
    }
}

/// The inputs, and of Parquet files these fields, or all.
fn inputs(
    arguments: &Arguments,
    files: &[String],
    fields: Option<&[String]>,
    follow: Option<&Follow>,
    interrupt: &Interrupt,
) -> Result<Vec<Input>, String> {
    let followed = match (files, follow) {
        ([], Some(_)) => return Err("--follow needs a file".to_owned()),
        ([.., last], Some(_)) if last == "-" => {
            return Err("--follow needs a file as the last input, not `-`: standard input is always read as it arrives".to_owned());
        }
        ([.., last], Some(follow)) => Some(follow::input(last, follow, interrupt)),
        (_, None) => None,
    };
    let stdin = ["-".to_owned()];
    let names = if files.is_empty() { &stdin } else { files };
    let plain = &names[..names.len() - usize::from(followed.is_some())];
    let is_csv = |name: &str| match arguments.input {
        _ if arguments.merge => false,
        Some(format) => format == InputFormat::Csv,
        None => is_csv_name(name),
    };
    let memory = memory::limit(arguments.max_memory);
    let opened = plain.iter().map(|name| match name.as_str() {
        "-" => standard_input(&arguments.stdin_name, interrupt),
        name if is_csv(name) => input(name, None),
        name => input(name, Some((fields.map(<[String]>::to_vec), memory))),
    });
    let in_format = |(name, input): (&String, Input)| {
        if is_csv(name) { input.csv() } else { input }
    };
    Ok(names
        .iter()
        .zip(opened.chain(followed))
        .map(in_format)
        .collect())
}

/// Whether a file of this name is expected to have comma-separated values, maybe compressed.
fn is_csv_name(name: &str) -> bool {
    let has = |path: &Path, wanted: &str| {
        let extension = path.extension();
        extension.is_some_and(|it| it.eq_ignore_ascii_case(wanted))
    };
    let mut path = PathBuf::from(name);
    if has(&path, "gz") || has(&path, "zst") {
        path.set_extension("");
    }
    has(&path, "csv")
}

/// Checks options that an output format of whole results does not have.
fn check_output(arguments: &Arguments) -> Result<(), String> {
    let output = arguments.output;
    if !matches!(output, Output::Parquet | Output::Table | Output::Chart) {
        return Ok(());
    }
    let is_parquet = output == Output::Parquet;
    if is_parquet && !cfg!(feature = "parquet") {
        return Err("this build cannot write Parquet (compile it with `--features parquet`, as in `cargo build --release --features parquet`)".to_owned());
    }
    let other = [
        (arguments.follow, "--follow"),
        (arguments.partial, "--partial"),
        (arguments.merge, "--merge"),
        (arguments.verbose, "--verbose"),
    ];
    if let Some((_, option)) = other.iter().find(|(given, _)| *given) {
        return Err(format!("{option} cannot be used with -o {output}"));
    }
    if is_parquet && io::stdout().is_terminal() {
        return Err(
            "Parquet is not text: write it to a file (`-o parquet … > log.parquet`)".to_owned(),
        );
    }
    Ok(())
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.to_possible_value();
        f.write_str(
            value
                .as_ref()
                .map_or("", clap::builder::PossibleValue::get_name),
        )
    }
}

/// Prints the results of a query. Returns whether there was no error.
fn print_results(query: &Query, inputs: Vec<Input>, output: Output) -> bool {
    match output {
        #[cfg(feature = "parquet")]
        Output::Parquet => write_parquet(query, inputs),
        Output::Table => print_table(query, inputs),
        Output::Chart => print_chart(query, inputs),
        _ => query.run(inputs, &mut io::stdout(), &mut Messages),
    }
}

/// Prints the messages of a run. Returns whether there was no error.
fn report(outcome: &Outcome) -> bool {
    for error in &outcome.errors {
        terminal::error(format!("error: {error}"));
    }
    if let Some(skipped) = &outcome.skipped {
        terminal::notice(skipped.to_string());
    }
    for absent in &outcome.absent {
        terminal::notice(absent.to_string());
    }
    outcome.errors.is_empty()
}

/// Prints why results were not printed. Returns whether they were, or their reader has what it needs.
fn is_printed(printed: Result<(), Failure>) -> bool {
    match printed {
        Ok(()) | Err(Failure::BrokenPipe | Failure::Interrupted) => true,
        Err(Failure::Usage(message) | Failure::Run(message)) => {
            terminal::error(format!("error: {message}"));
            false
        }
    }
}

/// Columns of a drawing, and of the widest cell of a table, where stdout is no terminal.
const WIDTH: usize = 80;

fn print_table(query: &Query, inputs: Vec<Input>) -> bool {
    let mut records = table::Records::new(terminal::width().unwrap_or(WIDTH));
    let outcome = query.for_each_record(inputs, |names, fields| records.push(names, &fields));
    let is_cut = records.is_cut;
    let table = records.table();
    let printed = table.map_or(Ok(()), |table| terminal::print(table.text() + "\n"));
    if is_cut {
        terminal::notice("only the first records are shown; `-o csv` prints all");
    }
    let is_ok = report(&outcome);
    is_printed(printed) && is_ok
}

fn print_chart(query: &Query, inputs: Vec<Input>) -> bool {
    let mut results: Vec<Vec<Value>> = Vec::new();
    let outcome = query.for_each(inputs, |row| {
        results.push(row.to_vec());
        if results.len() > 1 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    let is_ok = report(&outcome);
    let width = terminal::width().unwrap_or(WIDTH);
    let drawn = match &results[..] {
        [] if !is_ok => return false,
        [] => Err(chart::refused("no result")),
        [result] => chart::draw(result, query.measure().as_ref(), width),
        _ => Err(chart::refused("several results")),
    };
    let printed = drawn.map_err(Failure::Run).and_then(terminal::print);
    is_printed(printed) && is_ok
}

/// Writes the records of the results as a Parquet file to stdout. Returns whether there was no error.
#[cfg(feature = "parquet")]
fn write_parquet(query: &Query, inputs: Vec<Input>) -> bool {
    let mut table = parquet::Table::new(io::stdout());
    let mut failure = None;
    let outcome = query.for_each_record(inputs, |names, fields| match table.push(names, fields) {
        Ok(()) => ControlFlow::Continue(()),
        Err(reason) => {
            failure = Some(reason);
            ControlFlow::Break(())
        }
    });
    let is_ok = report(&outcome);
    let finished = match failure {
        Some(reason) => Err(reason),
        None => table.finish(),
    };
    if matches!(finished, Ok(false)) {
        terminal::notice("no records: no Parquet file is written, since its columns are unknown");
        return false;
    }
    is_printed(finished.map(|_| ())) && is_ok
}

/// The name of the built-in helpers.
const H2O: &str = "h2o";

const H2O_HELPERS: &str = include_str!("query/h2o.rb");

/// Exit code for a usage error.
const USAGE: u8 = 2;

/// Exit code after SIGINT, as in shells.
const INTERRUPTED: u8 = 130;

fn failed(message: &str) -> ExitCode {
    terminal::error(format!("error: {message}"));
    ExitCode::from(USAGE)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the binary is the edge where files are read"
)]
fn read(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn standard_input(name: &str, interrupt: &Interrupt) -> Input {
    let interrupt = interrupt.clone();
    Input::new(name, || {
        Ok(Box::new(StandardInput { interrupt }) as ByteSource)
    })
    .live()
}

/// Standard input, which ends at Ctrl-C even while a read would block.
struct StandardInput {
    interrupt: Interrupt,
}

/// Interval at which Ctrl-C is checked.
const WAIT: rustix::event::Timespec = rustix::event::Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

impl Read for StandardInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let stdin = io::stdin();
        while !self.interrupt.is_pressed() {
            let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
            if rustix::event::poll(&mut polled, Some(&WAIT))? > 0 {
                // Not through the buffer of `Stdin`: `poll` does not see buffered bytes.
                return Ok(rustix::io::read(&stdin, buffer)?);
            }
        }
        Ok(0)
    }
}

/// Opens a table of `lookup`: a file, since a pipe or a device may have no end.
#[expect(
    clippy::disallowed_types,
    reason = "the binary is the edge where files are opened"
)]
fn open_table(name: &str) -> io::Result<Input> {
    if !std::fs::metadata(name)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let file = std::fs::File::open(name)?;
    let input = Input::new(name, || Ok(Box::new(file) as ByteSource));
    Ok(if is_csv_name(name) {
        input.csv()
    } else {
        input
    })
}

/// The fields that are read of a file which has columns, or all, and the memory that it may take.
type Columnar = (Option<Vec<String>>, Option<Memory>);

#[expect(
    clippy::disallowed_types,
    reason = "the binary is the edge where files are opened"
)]
fn input(name: &str, columnar: Option<Columnar>) -> Input {
    let path = name.to_owned();
    Input::new(name, move || {
        let file = std::fs::File::open(path)?;
        #[cfg(feature = "parquet")]
        if let Some((fields, memory)) = columnar
            && let Some(rows) = parquet::Rows::open(&file, fields.as_deref(), memory)?
        {
            return Ok(Box::new(rows) as ByteSource);
        }
        #[cfg(not(feature = "parquet"))]
        drop(columnar);
        Ok(Box::new(file) as ByteSource)
    })
}
