//! `lastbyte report`: writes the page of an experiment from its log. The crate `lastbyte-report` does the work.

mod ramp;
mod requests;

use core::{fmt::Write as _, num::NonZeroUsize};
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
};

use anstyle::{AnsiColor, Style};
use clap::{Args, builder::ArgPredicate};
use lastbyte_query::{AbsentKey, Input};
use lastbyte_report::comparison::{Comparison, Error, Metric, Settings};
use lastbyte_units as units;

use super::{figure::FigureArguments, summary::table, values};
use crate::{
    failure::Failure,
    files,
    terminal::{notice, print, print_styled, styled_notice, wrote},
};

const EXAMPLES: &str = "\
Examples:
  # Compare the arms of a run of `lastbyte ab`.
  lastbyte report ab/conns.ndjson
  # H2O's logs, whose flags name the arm.
  lastbyte report h2o-*.ndjson.gz -o h2o.html
  # Its charts for a column of a paper, and their points.
  lastbyte report h2o-*.ndjson.gz --figure 3.33in -o charts --data c.csv
  # Another value than the TTLB, by the path's round-trip time in four bins.
  lastbyte report ab/conns.ndjson --metric client.ttfb --by link.rtt --bins 4
  # The requests of an access log: latency and success ratio, by arm.
  lastbyte report --metric ms access.ndjson
  # The state of a part of a log, merged elsewhere with those of others.
  lastbyte report --partial ab/conns.ndjson | lastbyte report --merge -
  # Where a ramp of `lastbyte steer` or `serve` stands, and why.
  lastbyte report --plan steer -o ramp.html
  # Any log of one JSON object per line: name the fields of arm and site.
  lastbyte report log.ndjson --arm-by '_[\"group\"]' --site '_[\"pop\"]' \\
    --baseline control --shares control=9,treatment=1

Warnings and notes are on stderr. Exit code 3: the numbers of connections by arm, site, size or hour cannot be by chance (sample ratio), so there are no verdicts; or some lines are in the logs twice.

Required key: `ttlb` in milliseconds (null or absent for an incomplete transfer). Optional keys: `content_length`, `site`, `num-packets.sent` and `num-packets.lost`. docs/report.md explains the page and the statistics.";

/// Compare the arms of an experiment by its connection log.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Connection logs, or access logs (NDJSON; .gz, .zst); `-` for stdin
    #[arg(value_name = "LOG", required_unless_present = "plan")]
    logs: Vec<PathBuf>,
    /// Page to write
    #[arg(
        short,
        long,
        alias = "output",
        value_name = "FILE.html",
        default_value = "report.html",
        default_value_if("figure", ArgPredicate::IsPresent, "figures")
    )]
    out: PathBuf,
    /// Arm to compare with [default: `baseline`, else the first in the log]
    #[arg(long, value_name = "ARM")]
    baseline: Option<String>,
    /// Expected shares of the arms: baseline=9,new=1; or none [default: equal]
    ///
    /// The page tests the number of connections in each arm against them (sample ratio mismatch). `none`: arms were not assigned at
    /// random, such as versions of HTTP, or days before and after a change; there is no test, and a warning says so.
    #[arg(long, value_name = "ARM=N,…", value_delimiter = ',', value_parser = share)]
    shares: Vec<Option<(String, f64)>>,
    /// Lines to include: an expression of the query language
    #[arg(long = "where", value_name = "EXPR")]
    filter: Option<String>,
    /// Expression for a line's arm [default: key `arm`, else H2O's flags]
    #[arg(long = "arm-by", alias = "arm", value_name = "EXPR")]
    arm: Option<String>,
    /// Expression for a line's site [default: key `site`]
    #[arg(long, value_name = "EXPR")]
    site: Option<String>,
    /// Key or expression to compare in place of the TTLB: client.ttfb, num-ptos
    #[arg(long, value_name = "KEY|EXPR")]
    metric: Option<String>,
    /// Key or expression to group by in place of the site: class, link.cross
    #[arg(long, value_name = "KEY|EXPR", conflicts_with = "site")]
    by: Option<String>,
    /// Number of bins of equal count, of --by if given, else of object sizes
    #[arg(long, value_name = "N", value_parser = values::count::<u32>(2..=32))]
    bins: Option<u32>,
    /// Minimum object size [default: 200kB for production logs, else 0]
    ///
    /// Production logs are H2O's and those of `lastbyte serve --log`.
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    min_size: Option<u64>,
    /// Include H2O's connections that started at the rate of an earlier one
    #[arg(long)]
    resumed: bool,
    /// Number of planned looks, to correct significance levels for
    ///
    /// Intervals and p of the page hold for one look, at a number of connections that was chosen before. With N looks, each has 1/N of
    /// the error (Bonferroni).
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count::<u32>(1..=LOOKS_MAX))]
    looks: u32,
    /// Print the number of connections that detect this change: 5%
    #[arg(long, value_name = "SHARE", value_parser = values::change)]
    power: Option<f64>,
    /// Random seed of the bootstrap
    #[arg(long, default_value = "1", value_parser = units::seed)]
    seed: u64,
    /// Number of bootstrap resamples
    #[arg(long, value_name = "N", default_value = "2000", value_parser = values::count::<u32>(100..=100_000))]
    resamples: u32,
    /// Show a ramp by its decisions, in the directory of `steer` (docs/plan.md)
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "logs", "arm", "baseline", "bins", "by", "figure", "filter", "looks", "merge", "metric", "min_size", "partial",
        "power", "resamples", "resumed", "seed", "shares", "site",
    ])]
    plan: Option<PathBuf>,
    /// Title of the page [default: the experiment's name]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Write the state of the report, for --merge, to stdout instead of a page
    #[arg(long, conflicts_with_all = ["merge", "json", "figure"])]
    partial: bool,
    /// Read states of --partial, in order, in place of logs
    ///
    /// They need the same --arm-by, --bins, --by, --metric, --min-size, --resumed, --site and --where.
    #[arg(long)]
    merge: bool,
    /// Threads that read the log [default: CPU cores]
    #[arg(long, value_name = "N", value_parser = values::positive(values::THREADS_MAX))]
    jobs: Option<NonZeroUsize>,
    /// Print the numbers as JSON (docs/report.md)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    figure: FigureArguments,
}

/// More looks than this are a mistake.
const LOOKS_MAX: u64 = 100;
/// The exit code if the sample ratio fails.
pub(crate) const RATIO_FAILS: u8 = 3;

fn share(text: &str) -> Result<Option<(String, f64)>, String> {
    if text == "none" {
        return Ok(None);
    }
    let (name, share) = text
        .rsplit_once('=')
        .ok_or("expected ARM=N, such as baseline=9, or none")?;
    let share: f64 = share
        .parse()
        .map_err(|_| format!("invalid share `{share}` (expected a number above 0)"))?;
    if share.is_finite() && share > 0.0 {
        Ok(Some((name.to_owned(), share)))
    } else {
        Err(format!(
            "invalid share `{share}` (expected a number above 0)"
        ))
    }
}

/// The shares of the arms; `None` for those that were not assigned at random.
fn shares(given: &[Option<(String, f64)>]) -> Result<Option<Vec<(String, f64)>>, Failure> {
    match given {
        [None] => Ok(None),
        _ if given.contains(&None) => Err(Failure::Usage(
            "--shares: none beside another (expected none alone, or ARM=N,…)".to_owned(),
        )),
        _ => Ok(Some(given.iter().flatten().cloned().collect())),
    }
}

/// Why an option is refused that is no more.
pub(super) fn refusal(option: &str) -> Option<String> {
    let name = option.split('=').next()?;
    (name == "--svg").then(|| {
        "`--svg` is not an option (expected --figure WIDTH -o DIR: charts as PDF and SVG at a width such as 7in)".to_owned()
    })
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(folder) = &arguments.plan {
        return ramp::run(arguments, folder);
    }
    let logs = &arguments.logs;
    if arguments.bins.is_some() && !arguments.partial {
        check_read_twice(logs)?;
    }
    let mut first = None;
    if !arguments.merge {
        let kind;
        (kind, first) = requests::is_access_log(logs.first())?;
        let is_access_log = requests::check_kind(logs, kind)?;
        if is_access_log {
            return requests::run(arguments, inputs_after(logs, first)?);
        }
    }
    let mut settings = Settings {
        baseline: arguments.baseline.clone(),
        shares: shares(&arguments.shares)?,
        filter: arguments.filter.clone(),
        arm: arguments.arm.clone(),
        site: arguments.site.clone(),
        metric: arguments
            .metric
            .as_deref()
            .map_or_else(Metric::default, Metric::of),
        by: arguments.by.clone(),
        bins: None,
        min_size: arguments.min_size,
        has_resumed: arguments.resumed,
        looks: arguments.looks,
        may_lack_arms: false,
        power: arguments.power,
        replay: None,
        sweep: None,
        seed: arguments.seed,
        replicates: arguments.resamples as usize,
        threads: threads(arguments.jobs),
        title: arguments.title.clone(),
        commands: vec![again()],
        facts: vec![
            ("version".to_owned(), version()),
            ("seed of the bands".to_owned(), arguments.seed.to_string()),
        ],
        is_merge: arguments.merge,
        files: Vec::new(),
    };
    if arguments.partial {
        return partial(logs, first, settings, arguments.bins.is_some());
    }
    let out = core::slice::from_ref(&arguments.out);
    if !arguments.figure.check("--out", out)? {
        files::check_page_name("--out", &arguments.out, "; for charts: --figure WIDTH")?;
        files::check_is_page(&arguments.out)?;
    }
    if let Some(count) = arguments
        .bins
        .and_then(|bins| NonZeroUsize::new(bins as usize))
    {
        settings.bins = Some(bins(logs, &settings, count)?);
    }
    let metric = settings.metric.clone();
    let comparison = compare_after(logs, first, settings)?;
    warn_absent(comparison.absent());
    if let Some(repeated) = comparison.repeated() {
        notice(format!("warning: {repeated}"));
    }
    if arguments.figure.is_given() {
        arguments.figure.write(out, &comparison.figures())?;
    } else {
        files::write(&arguments.out, comparison.html().as_bytes())?;
    }
    warn(&comparison);
    if arguments.json {
        print(comparison.json())?;
    } else {
        let mut text = table(&comparison.summary(), 0, &metric);
        let _ = write!(
            text,
            "\n{}{}, and its change against the first arm; loss is of the packets sent.\n\n",
            metric.name,
            metric.in_unit()
        );
        let mut texts = vec![(Style::new(), text)];
        texts.extend(verdicts(&comparison));
        print_styled(&texts)?;
    }
    if !arguments.figure.is_given() {
        wrote(&arguments.out);
    }
    match comparison.trouble() {
        None => Ok(exit_code(&comparison)),
        Some(trouble) => Err(Failure::Run(format!(
            "not all of the log could be read, and the report is of what could: {trouble}"
        ))),
    }
}

pub(crate) fn threads(jobs: Option<NonZeroUsize>) -> usize {
    jobs.or_else(|| thread::available_parallelism().ok())
        .map_or(1, NonZeroUsize::get)
}

pub(crate) fn version() -> String {
    format!("lastbyte {}", env!("CARGO_PKG_VERSION"))
}

/// This command line, to be run again.
pub(crate) fn again() -> String {
    let words = std::env::args_os().skip(1).map(|word| shell(&word));
    core::iter::once("lastbyte".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word for a shell; what is not UTF-8 as Bash, Zsh and POSIX.1-2024 write it: `$'\xff'`.
pub(crate) fn shell(word: &OsStr) -> String {
    let Some(text) = word.to_str() else {
        let bytes = word.as_encoded_bytes().iter();
        let escaped: String = bytes
            .map(|byte| match byte {
                b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                _ => format!("\\x{byte:02x}"),
            })
            .collect();
        return format!("$'{escaped}'");
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Returns an error if a log cannot be read twice.
fn check_read_twice(logs: &[PathBuf]) -> Result<(), Failure> {
    let is_once = |log: &&PathBuf| log.as_os_str() == "-" || files::is_read_once(log);
    if let Some(log) = logs.iter().find(is_once) {
        let name = match log.to_str() {
            Some("-") => "stdin".to_owned(),
            _ => format!("`{}`", log.display()),
        };
        return Err(Failure::Usage(format!(
            "--bins reads the log twice, and {name} can be read once (expected files)"
        )));
    }
    Ok(())
}

/// The limits of bins, from a pass over the logs of its own.
fn bins(logs: &[PathBuf], settings: &Settings, count: NonZeroUsize) -> Result<Vec<f64>, Failure> {
    Comparison::bins(inputs(logs)?, settings, count).map_err(|error| failure(settings, &error))
}

/// Writes the state of a part to standard output.
fn partial(
    logs: &[PathBuf],
    first: Option<Source>,
    mut settings: Settings,
    has_bins: bool,
) -> Result<ExitCode, Failure> {
    settings.bins = has_bins.then(Vec::new);
    settings.files = names(logs);
    let mut out = io::BufWriter::new(io::stdout());
    let (refused, absent) = Comparison::partial(inputs_after(logs, first)?, &settings, &mut out)
        .map_err(|error| failure(&settings, &error))?;
    warn_absent(&absent);
    let refused = refused.map(|error| failure(&settings, &error));
    if let Some(Failure::Usage(text) | Failure::Run(text)) = refused {
        notice(format!(
            "note: of this part alone there would be no report: {text}"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn warn_absent(absent: &[AbsentKey]) {
    for absent in absent {
        notice(format!("--where: {absent}"));
    }
}

fn names(logs: &[PathBuf]) -> Vec<String> {
    logs.iter().map(|log| log.display().to_string()).collect()
}

/// Reads logs.
pub(crate) fn compare(logs: &[PathBuf], settings: Settings) -> Result<Comparison, Failure> {
    compare_after(logs, None, settings)
}

fn compare_after(
    logs: &[PathBuf],
    first: Option<Source>,
    mut settings: Settings,
) -> Result<Comparison, Failure> {
    settings.files = names(logs);
    let of_errors = settings.clone();
    Comparison::read(inputs_after(logs, first)?, settings)
        .map_err(|error| failure(&of_errors, &error))
}

/// What a file is, by whatever path.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum FileId {
    /// Device and inode.
    Inode(u64, u64),
    Path(PathBuf),
}

impl FileId {
    fn of(path: &Path) -> Self {
        match std::fs::metadata(path) {
            Ok(data) => Self::Inode(data.dev(), data.ino()),
            Err(_) => Self::Path(path.to_owned()),
        }
    }
}

/// Files that were given, each once.
#[derive(Default)]
pub(crate) struct GivenFiles(BTreeMap<FileId, PathBuf>);

impl GivenFiles {
    /// Adds a file.
    ///
    /// # Errors
    ///
    /// Returns [`Failure::Usage`] if it was given before. `what` it is called there.
    pub(crate) fn add(&mut self, file: &Path, what: &str) -> Result<(), Failure> {
        let Some(earlier) = self.0.insert(FileId::of(file), file.to_owned()) else {
            return Ok(());
        };
        let name = file.display();
        Err(Failure::Usage(if earlier == file {
            format!("`{name}` is given twice (expected each {what} once)")
        } else {
            format!(
                "`{}` and `{name}` are the same file (expected each {what} once)",
                earlier.display()
            )
        }))
    }
}

/// An open log.
type Source = Box<dyn io::Read + Send>;

pub(super) fn inputs(logs: &[PathBuf]) -> Result<Vec<Input>, Failure> {
    inputs_after(logs, None)
}

/// The inputs; `first` is the first log if it is open already, since it can be read once.
fn inputs_after(logs: &[PathBuf], mut first: Option<Source>) -> Result<Vec<Input>, Failure> {
    let mut inputs = Vec::new();
    let mut known = GivenFiles::default();
    for log in logs {
        let name = log.display().to_string();
        known.add(log, "log")?;
        if name == "-" {
            inputs.push(Input::new("<stdin>", || {
                Ok(Box::new(io::stdin()) as Box<dyn io::Read + Send>)
            }));
            continue;
        }
        if let Some(open) = first.take() {
            inputs.push(Input::new(name, move || Ok(open)));
            continue;
        }
        // A missing file is reported before hours are spent on the others.
        files::check_readable(log).map_err(Failure::Usage)?;
        let path = log.clone();
        inputs.push(Input::new(name, move || files::open(&path)));
    }
    Ok(inputs)
}

/// The failure for an error, with the option that it is about.
fn failure(settings: &Settings, error: &Error) -> Failure {
    match error {
        // The arms are those of an experiment, and the log is short.
        Error::UnknownArm { wanted, .. } if settings.may_lack_arms => Failure::Run(format!(
            "no connection is of the baseline `{wanted}` (expected more --connections)"
        )),
        Error::UnknownArm { wanted, .. } if Some(wanted) != settings.baseline.as_ref() => {
            Failure::Usage(format!("--shares: {error}"))
        }
        Error::UnknownArm { .. } => Failure::Usage(format!("--baseline: {error}")),
        Error::Expression { setting, .. } => {
            let options = [
                ("--arm-by", "arm", settings.arm.is_some()),
                ("--by", "by", settings.by.is_some()),
                ("--metric", "metric", settings.metric != Metric::default()),
                ("--site", "site", settings.site.is_some()),
                ("--where", "filter", settings.filter.is_some()),
            ];
            let at_fault = options.iter().filter(|(_, name, is_given)| {
                setting.map_or(*is_given, |setting| setting == *name)
            });
            let given: Vec<&str> = at_fault.map(|(option, ..)| *option).collect();
            Failure::Usage(format!("{}: {error}", given.join(" or ")))
        }
        Error::Bins(_) => Failure::Usage(format!("--bins: {error}")),
        Error::NotATime { .. } if settings.metric != Metric::default() => {
            Failure::Usage(format!("--metric: {error}"))
        }
        Error::NoValues { setting, .. } => {
            let option = match *setting {
                "arm" => "arm-by",
                option => option,
            };
            Failure::Usage(format!("--{option}: {error}"))
        }
        _ => Failure::run(error),
    }
}

/// Warnings and notes of a page, on stderr: they precede the results on stdout.
pub(crate) fn warn(comparison: &Comparison) {
    for sentence in comparison.warnings() {
        let style = AnsiColor::Yellow.on_default();
        styled_notice(style, format!("warning: {}", plain(&sentence)));
    }
    for sentence in comparison.notes() {
        notice(format!("note: {}", plain(&sentence)));
    }
}

pub(crate) fn exit_code(comparison: &Comparison) -> ExitCode {
    if comparison.ratio_fails() || comparison.has_copies() {
        ExitCode::from(RATIO_FAILS)
    } else {
        ExitCode::SUCCESS
    }
}

/// A sentence with the spaces of a keyboard.
fn plain(sentence: &str) -> String {
    sentence.replace(['\u{a0}', '\u{202f}'], " ")
}

/// The colour of a verdict: green for faster, red for slower, yellow for both, and dimmed where nothing is significant.
fn style(verdict: &str) -> Style {
    let colored = |color: AnsiColor| color.on_default();
    if verdict.contains("no significant difference") || verdict.contains(": no verdict") {
        return Style::new().dimmed();
    }
    match (verdict.contains("faster"), verdict.contains("slower")) {
        (true, true) => colored(AnsiColor::Yellow),
        (true, false) => colored(AnsiColor::Green),
        (false, true) => colored(AnsiColor::Red),
        (false, false) => Style::new(),
    }
}

/// The significant changes in colour, for [`print_styled`].
pub(crate) fn verdicts(comparison: &Comparison) -> Vec<(Style, String)> {
    let mut texts = Vec::new();
    let harm = comparison.harm().into_iter();
    let harm = harm.map(|sentence| format!("neighbours of {sentence}"));
    let sentences = comparison.sentences().into_iter();
    let sentences = sentences.chain(comparison.stratified()).chain(harm);
    for sentence in sentences
        .chain(comparison.power())
        .chain([comparison.looks()])
    {
        let sentence = plain(&sentence);
        let style = if comparison.ratio_fails() {
            Style::new().dimmed()
        } else {
            style(&sentence)
        };
        texts.push((style, sentence));
        texts.push((Style::new(), "\n".to_owned()));
    }
    texts
}
