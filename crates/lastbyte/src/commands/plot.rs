//! `lastbyte plot`: draws real connections from their qlog files. The crate `lastbyte-report` does the work.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lastbyte_report::{
    qlog,
    transfer::{Arm, Guides, Picture},
};

use crate::{commands::sim::plot as picture, failure::Failure, files};

const EXAMPLES: &str = "\
Examples:
  # A connection of any QUIC implementation.
  lastbyte plot connection.sqlog
  # An image.
  lastbyte plot connection.sqlog --title 'Berlin, LTE' -o berlin.png
  # Two connections on the same axes, as a page and as an image.
  lastbyte plot cubic.qlog bbr.qlog -o both.html -o both.svg

qlog files are JSON, JSON lines or JSON text sequences, of version 0.3 or of a draft. A server's file shows what it sent, a client's what it received. Files are read as streams: 1 GB takes seconds. docs/plot.md explains the picture.";

/// Draw connections from their qlog files: bytes, window, pacing rate and round-trip time.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Files in qlog's formats; `-` for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Picture to write: .html, .svg or .png; repeatable
    #[arg(short, long, value_name = "FILE", default_value = "plot.html")]
    out: Vec<PathBuf>,
    /// Title of the picture [default: the names of the files]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
}

/// Maximum number of connections in a picture.
const ARMS_MAX: usize = 16;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    picture::check_files("--out", &arguments.out)?;
    let mut arms: Vec<Arm> = Vec::new();
    let (mut rtt, mut events) = (None::<f64>, 0);
    let mut troubles = Vec::new();
    for file in &arguments.files {
        let name = file.display().to_string();
        let input: Box<dyn std::io::Read> = if name == "-" {
            Box::new(std::io::stdin())
        } else {
            files::open(file)
                .map_err(|error| Failure::Usage(format!("cannot read `{name}`: {error}")))?
        };
        let reading = qlog::read(input, &label(file))
            .map_err(|error| Failure::Run(format!("`{name}`: {error}")))?;
        arms.extend(reading.arms);
        events += reading.events;
        rtt = [rtt, reading.rtt_min]
            .into_iter()
            .flatten()
            .reduce(f64::min);
        troubles.extend(reading.trouble.map(|why| format!("`{name}`: {why}")));
    }
    if arms.len() > ARMS_MAX {
        return Err(Failure::Usage(format!(
            "{} connections (expected at most {ARMS_MAX})",
            arms.len()
        )));
    }
    let names: Vec<String> = arguments.files.iter().map(|file| label(file)).collect();
    let drawn = Picture {
        title: arguments.title.clone().unwrap_or_else(|| names.join(", ")),
        subtitle: format!("{events} events of qlog"),
        arms,
        guides: Guides {
            rtt,
            ..Guides::default()
        },
    };
    picture::write(&arguments.out, &drawn)?;
    if troubles.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(Failure::Run(format!(
        "not all could be read, and the picture shows what could: {}",
        troubles.join("; ")
    )))
}

/// The name of a file without its folder and `.qlog` or `.sqlog`.
fn label(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    let name = name.to_string_lossy();
    let stem = name
        .strip_suffix(".sqlog")
        .or_else(|| name.strip_suffix(".qlog"));
    stem.unwrap_or(&name).to_owned()
}
