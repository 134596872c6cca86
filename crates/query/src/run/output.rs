//! Prints values, grouping short ones into one write.

use crate::json::{print, tsv};
use crate::value::Value;
use crate::value::exception::Eval;
use std::io::{self, Write};

/// How values are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One compact value a line.
    Json,
    /// Indented.
    Pretty,
    /// Tab-separated rows.
    Tsv,
}

/// Where groups go.
enum Out<'a> {
    Writer(&'a mut (dyn Write + Send)),
    /// To be taken.
    Kept(Vec<String>),
}

pub(super) struct Printer<'a> {
    out: Out<'a>,
    format: Format,
    write_bytes: usize,
    /// What waits for the next write.
    waiting: String,
    /// The value being printed.
    line: String,
    failure: Option<io::Error>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(
        out: &'a mut (dyn Write + Send),
        format: Format,
        write_bytes: usize,
    ) -> Printer<'a> {
        Printer::to(Out::Writer(out), format, write_bytes)
    }

    /// One that keeps what it prints, in the groups in which it would be written.
    pub(super) fn keeping(format: Format, write_bytes: usize) -> Printer<'a> {
        Printer::to(Out::Kept(Vec::new()), format, write_bytes)
    }

    fn to(out: Out<'a>, format: Format, write_bytes: usize) -> Printer<'a> {
        Printer {
            out,
            format,
            write_bytes,
            waiting: String::new(),
            line: String::new(),
            failure: None,
        }
    }

    pub(super) fn print(&mut self, value: &Value) -> Eval<()> {
        self.line.clear();
        match self.format {
            Format::Json => print::compact(&mut self.line, value)?,
            Format::Pretty => print::pretty(&mut self.line, value)?,
            // A table is shown whole, or not at all.
            Format::Tsv => return tsv::rows(&mut self.waiting, value),
        }
        self.line.push('\n');
        if self.waiting.len() + self.line.len() > self.write_bytes {
            self.flush();
        }
        self.waiting.push_str(&self.line);
        Ok(())
    }

    /// Whether a value is printed as one compact line.
    pub(super) fn is_compact(&self) -> bool {
        self.format == Format::Json
    }

    /// Forgets what was not written, as jrf does with a table after an error.
    pub(super) fn forget_table(&mut self) {
        if self.format == Format::Tsv {
            self.waiting.clear();
        }
    }

    /// Writes what another printer has grouped.
    pub(super) fn write(&mut self, group: &str) {
        if self.format != Format::Tsv && self.waiting.len() + group.len() > self.write_bytes {
            self.flush();
        }
        self.waiting.push_str(group);
    }

    /// Shows what there is, since what comes next may come late.
    pub(super) fn show(&mut self) {
        if self.format != Format::Tsv {
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        if self.failure.is_none() && !self.waiting.is_empty() {
            match &mut self.out {
                Out::Writer(out) => {
                    let written = out.write_all(self.waiting.as_bytes());
                    self.failure = written.and_then(|()| out.flush()).err();
                }
                Out::Kept(groups) => groups.push(std::mem::take(&mut self.waiting)),
            }
        }
        self.waiting.clear();
    }

    /// The groups that were kept.
    pub(super) fn take(&mut self) -> Vec<String> {
        self.flush();
        match &mut self.out {
            Out::Kept(groups) => std::mem::take(groups),
            Out::Writer(_) => Vec::new(),
        }
    }

    /// Why nothing can be written any more. A reader that has gone away is no failure, but ends the run.
    pub(super) fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }
}
