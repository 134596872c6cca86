//! `lastbyte compare record` and `lastbyte compare generate`: corpus files.

use core::num::NonZeroUsize;
use std::{
    collections::BTreeMap,
    io::Read as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use lastbyte_page::{generator, har, write_page};
use lastbyte_units as units;

use crate::{
    commands::values,
    failure::Failure,
    files,
    terminal::{notice, print, save},
};

const RECORD_EXAMPLES: &str = "\
Examples:
  # Two recordings of a browser's developer tools (Network, Save all as HAR).
  lastbyte compare record start.har article.har --out site.ndjson
  # Without names of hosts.
  lastbyte compare record --anonymous start.har --out site.ndjson
  lastbyte compare --corpus site.ndjson";

/// Turn HAR files into a corpus: sizes, times and dependencies, no contents.
#[derive(Debug, Args)]
#[command(after_help = RECORD_EXAMPLES)]
pub(super) struct Record {
    /// HAR files: docs/corpus.md lists the programs whose files are known
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Replace names of hosts and pages by numbers
    #[arg(long)]
    anonymous: bool,
    /// Corpus file [default: standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite the corpus file
    #[arg(long)]
    force: bool,
}

const GENERATE_EXAMPLES: &str = "\
Examples:
  lastbyte compare generate --pages 300 --seed 1 --out pages.ndjson
  lastbyte compare --corpus pages.ndjson";

/// Generate a corpus whose marginals follow the HTTP Archive.
#[derive(Debug, Args)]
#[command(after_help = GENERATE_EXAMPLES)]
pub(super) struct Generate {
    /// Number of pages
    #[arg(long, value_name = "N", default_value = "300", value_parser = values::positive(generator::PAGES_MAX as u64))]
    pages: NonZeroUsize,
    /// Random seed
    #[arg(long, default_value = "1", value_parser = units::seed)]
    seed: u64,
    /// Corpus file [default: standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite the corpus file
    #[arg(long)]
    force: bool,
}

impl Record {
    /// Runs the command.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        check(self.out.as_deref(), self.force)?;
        let mut text = String::new();
        let mut pages = 0;
        let mut assumed: BTreeMap<&str, usize> = BTreeMap::new();
        let mut skipped: BTreeMap<&str, usize> = BTreeMap::new();
        for file in &self.files {
            let bytes = read(file).map_err(Failure::Usage)?;
            let recording = har::read(&bytes, self.anonymous)
                .map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?;
            for mut page in recording.pages {
                if self.anonymous {
                    page.name = format!("page{pages}");
                }
                pages += 1;
                text.push_str(&write_page(&page));
            }
            add(&mut assumed, recording.assumed);
            add(&mut skipped, recording.skipped);
        }
        write(self.out.as_deref(), &text)?;
        notice(format!("pages: {pages}"));
        for (what, count) in skipped {
            notice(format!("left out: {count} requests: {what}"));
        }
        for (what, count) in assumed {
            notice(format!("assumed for {count} requests: {what}"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Generate {
    /// Runs the command.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        check(self.out.as_deref(), self.force)?;
        let pages = generator::generate(self.pages.get(), self.seed);
        let text: String = pages.iter().map(write_page).collect();
        write(self.out.as_deref(), &text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn add(sums: &mut BTreeMap<&'static str, usize>, counts: BTreeMap<&'static str, usize>) {
    for (what, count) in counts {
        *sums.entry(what).or_default() += count;
    }
}

fn check(out: Option<&Path>, force: bool) -> Result<(), Failure> {
    match out {
        Some(out) if !force => files::check_absent(out),
        _ => Ok(()),
    }
}

/// Reads a HAR file, at most as much of it as is allowed and one byte more.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let cannot = |error| format!("cannot read `{}`: {error}", path.display());
    let file = files::open(path).map_err(cannot)?;
    let mut bytes = Vec::new();
    let mut file = file.take(har::FILE_MAX as u64 + 1);
    file.read_to_end(&mut bytes).map_err(cannot)?;
    Ok(bytes)
}

fn write(out: Option<&Path>, text: &str) -> Result<(), Failure> {
    let Some(out) = out else { return print(text) };
    save(out, text.as_bytes())
}
