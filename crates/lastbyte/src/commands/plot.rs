//! `lastbyte plot`: draws real connections from their qlog files. The crate `lastbyte-report` does the work.

mod twin;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgGroup, Args, builder::ArgPredicate};
use lastbyte_congestion::Registry;
use lastbyte_report::{
    qlog::{self, Sender, pair},
    transfer::{Arm, Guides, Picture},
};

use self::twin::Found;
use crate::{
    commands::{
        figure::FigureArguments,
        replay::{NO_ANSWER, bank::BankArguments},
        report::GivenFiles,
        sim::plot as picture,
    },
    failure::Failure,
    files, terminal,
};

const EXAMPLES: &str = "\
Examples:
  # A connection of any QUIC implementation.
  lastbyte plot connection.sqlog
  # An image.
  lastbyte plot connection.sqlog --title 'Berlin, LTE' -o berlin.svg
  # Two connections on the same axes, as a page and as an image.
  lastbyte plot cubic.qlog bbr.qlog -o both.html -o both.svg
  # Both ends of one connection: the delay of each packet.
  lastbyte plot client.sqlog server.sqlog
  # The same as a figure for a column of a paper.
  lastbyte plot cubic.qlog bbr.qlog --figure 3.33in -o both.pdf
  # Where the connection parts from a simulated one over a similar path.
  lastbyte plot connection.sqlog --twin --spec cubic

qlog files are JSON, JSON lines or JSON text sequences, of version 0.3 or of a draft, plain or compressed with gzip or zstd. A directory stands for its qlog files. A server's file shows what it sent, a client's what it received. Files are read as streams: 1 GB takes seconds. docs/plot.md explains the picture.

Simulated paths of --twin are those of `lastbyte replay`. If there is no twin, the reason is printed, and the exit code is 3.";

/// Draw connections from their qlog files.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("of-twin").args(["spec", "bank", "paths", "seed", "jobs"]).multiple(true).requires("twin"),
)]
pub(crate) struct Arguments {
    /// Files in qlog's formats, or directories of them; `-` for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Picture to write: .html or .svg; repeatable
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "plot.html",
        default_value_if("figure", ArgPredicate::IsPresent, "plot.pdf")
    )]
    out: Vec<PathBuf>,
    #[command(flatten)]
    figure: FigureArguments,
    /// Title of the picture [default: the names of the files]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Draw a simulated transfer over the most similar path too, and print where the two part
    #[arg(long)]
    twin: bool,
    /// Congestion control of the connection, for --twin [default: that of the file's title]
    #[arg(long, value_name = "SPEC")]
    spec: Option<String>,
    #[command(flatten)]
    bank: BankArguments,
}

/// Maximum number of connections in a picture.
const ARMS_MAX: usize = 16;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    let is_figure = arguments.figure.check("--out", &arguments.out)?;
    if !is_figure {
        picture::check_files("--out", &arguments.out)?;
    }
    let mut all = All::default();
    for file in &arguments.files {
        if file.is_dir() {
            all.add_folder(file)?;
        } else {
            all.add(file)?;
        }
    }
    all.pair();
    if all.arms.len() > ARMS_MAX {
        return Err(Failure::Usage(format!(
            "{} connections (expected at most {ARMS_MAX})",
            all.arms.len()
        )));
    }
    for note in &all.notes {
        terminal::notice(note);
    }
    let found = if arguments.twin {
        Some(all.twin(arguments, registry)?)
    } else {
        None
    };
    if let Some(Found::Interrupted) = found {
        return Ok(ExitCode::from(130));
    }
    let names: Vec<String> = all.names.iter().map(|file| label(file)).collect();
    let mut subtitle = vec![format!("{} events of qlog", all.events)];
    subtitle.extend(all.notes);
    subtitle.extend(all.troubles.iter().cloned());
    let drawn = Picture {
        title: arguments.title.clone().unwrap_or_else(|| names.join(", ")),
        subtitle: subtitle.join(" · "),
        origin: "the first event".to_owned(),
        arms: all.arms,
        guides: Guides {
            rtt: all.rtt,
            ..Guides::default()
        },
    };
    if is_figure {
        arguments.figure.write(&arguments.out, &[drawn.figure()])?;
    } else {
        picture::write(&arguments.out, &drawn)?;
    }
    if all.troubles.is_empty() {
        return Ok(match found {
            Some(Found::CannotTell(_)) => ExitCode::from(NO_ANSWER),
            _ => ExitCode::SUCCESS,
        });
    }
    Err(Failure::Run(format!(
        "not all could be read, and the picture shows what could: {}",
        all.troubles.join("; ")
    )))
}

/// What was read of all files.
#[derive(Default)]
struct All {
    given: GivenFiles,
    arms: Vec<Arm>,
    senders: Vec<Option<Sender>>,
    ends: Vec<pair::End>,
    title: String,
    names: Vec<PathBuf>,
    rtt: Option<f64>,
    events: u64,
    notes: Vec<String>,
    troubles: Vec<String>,
}

impl All {
    fn add(&mut self, file: &Path) -> Result<(), Failure> {
        self.given.add(file, "file")?;
        let name = file.display().to_string();
        let reading = read(file)?.map_err(|error| Failure::Run(format!("`{name}`: {error}")))?;
        self.names.push(file.to_owned());
        self.arms.extend(reading.arms);
        self.senders.extend(reading.senders);
        self.ends.extend(reading.ends);
        self.title = reading.title;
        self.events += reading.events;
        self.rtt = [self.rtt, reading.rtt_min]
            .into_iter()
            .flatten()
            .reduce(f64::min);
        let notes = reading.notes.into_iter();
        self.notes
            .extend(notes.map(|note| format!("`{name}`: {note}")));
        let trouble = reading.trouble;
        self.troubles
            .extend(trouble.map(|why| format!("`{name}`: {why}")));
        Ok(())
    }

    /// Draws the files of both ends of a connection as one, with the one-way delays.
    fn pair(&mut self) {
        let mut drawn = Vec::new();
        let pairs = pair::pairs(&self.arms, &self.ends);
        if pair::are_left(&self.ends, &pairs) {
            let why = "not joined: files with the same connection ID are of several connections (expected the two ends of one)";
            self.notes.push(why.to_owned());
        }
        for (first, second) in pairs {
            let peer = self.arms[second].clone();
            let (arm, ends) = (&mut self.arms[first], &self.ends);
            let names = format!("`{}` and `{}`", arm.label, peer.label);
            let smallest = pair::join(arm, &ends[first], &peer, &ends[second]);
            self.notes.push(match smallest {
                Some(ms) => format!("{names} have the same connection ID: their clocks are set so that the smallest one-way delays of both directions are equal, {ms:.2} ms"),
                None => format!("{names} have the same connection ID, but no packets give the offset of their clocks"),
            });
            if smallest.is_some() {
                drawn.push(second);
            }
        }
        drawn.sort_unstable();
        for index in drawn.into_iter().rev() {
            self.arms.remove(index);
            self.senders.remove(index);
        }
    }

    /// Adds a twin to the only connection, and prints what was found.
    fn twin(&mut self, arguments: &Arguments, registry: &Registry) -> Result<Found, Failure> {
        let ([arm], Some(file)) = (&mut self.arms[..], self.names.first()) else {
            return Err(Failure::Usage(format!(
                "--twin: {} connections (expected one)",
                self.arms.len()
            )));
        };
        let file = file.display().to_string();
        let control = twin::control(arguments.spec.as_deref(), &self.title, &file, registry)?;
        let sender = self.senders.first().and_then(Option::as_ref);
        let found = twin::add(arm, sender, &control, &arguments.bank, registry)?;
        let text = match &found {
            Found::Interrupted => return Ok(found),
            Found::Twin(sentences) => sentences.join("\n"),
            Found::CannotTell(why) => format!("Cannot tell where the twin parts: {why}"),
        };
        terminal::print(format!("{text}\n"))?;
        let summary = [core::mem::take(&mut arm.summary), text.replace('\n', ". ")];
        arm.summary = summary.join(if summary[0].is_empty() { "" } else { ". " });
        Ok(found)
    }

    /// The qlog files of a directory. Those without a connection, such as that of a failed attempt, are left out.
    fn add_folder(&mut self, folder: &Path) -> Result<(), Failure> {
        let mut files = files::list(folder).map_err(Failure::Usage)?;
        files.retain(|file| is_qlog(file));
        if files.is_empty() {
            return Err(Failure::Usage(format!(
                "`{}`: a directory without qlog files (expected names that end in {})",
                folder.display(),
                ENDINGS.join(" or ")
            )));
        }
        let (before, count) = (self.arms.len(), files.len());
        let mut left_out = Vec::new();
        for file in files {
            match self.add(&file) {
                Ok(()) => {}
                Err(Failure::Run(why)) => left_out.push(why),
                Err(failure) => return Err(failure),
            }
        }
        if self.arms.len() == before {
            return Err(Failure::Run(format!(
                "none of the {count} qlog files in `{}` can be drawn: {}",
                folder.display(),
                left_out.join("; ")
            )));
        }
        let left_out = left_out.into_iter();
        self.notes
            .extend(left_out.map(|why| format!("not drawn: {why}")));
        Ok(())
    }
}

/// Reads a file. A header behind its events needs a second time, which a pipe does not allow.
fn read(file: &Path) -> Result<Result<qlog::Reading, qlog::QlogError>, Failure> {
    let is_stdin = file.as_os_str() == "-";
    let is_regular = file.is_file();
    let mut first = if is_stdin {
        None
    } else {
        let opened = files::open(file);
        Some(opened.map_err(|error| {
            Failure::Usage(format!("cannot read `{}`: {error}", file.display()))
        })?)
    };
    let mut is_read = false;
    let open = || {
        if let Some(first) = first.take() {
            is_read = true;
            return Ok(first);
        }
        if is_regular {
            return files::open(file);
        }
        if is_stdin && !core::mem::replace(&mut is_read, true) {
            return Ok(Box::new(std::io::stdin()) as Box<dyn std::io::Read + Send>);
        }
        Err(std::io::Error::other("not a regular file"))
    };
    Ok(qlog::read(open, &label(file)))
}

const ENDINGS: [&str; 2] = [".sqlog", ".qlog"];

/// Whether the name is that of a qlog file, compressed or not.
fn is_qlog(file: &Path) -> bool {
    ENDINGS.iter().any(|ending| stem(file).ends_with(ending))
}

/// The name of a file without its folder and the ending of a compressed file.
fn stem(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    let name = name.to_string_lossy();
    let stem = [".gz", ".zst"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending));
    stem.unwrap_or(&name).to_owned()
}

/// The name of a file without its folder, `.qlog` or `.sqlog`, and the ending of a compressed file.
fn label(file: &Path) -> String {
    let name = stem(file);
    let label = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
    label.unwrap_or(&name).to_owned()
}
