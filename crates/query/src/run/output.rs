//! Where results go: printed, with short ones grouped into one write, or handed over as values.

use std::io::{self, ErrorKind, Write};
use std::ops::ControlFlow;

use crate::json::export::{export_field, export_within};
use crate::json::records::{Header, Row};
use crate::json::{csv, print, tsv};
use crate::memory::Bounds;
use crate::value::Value;
use crate::value::exception::Eval;
use lastbyte_json::Value as Plain;

/// How values are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One compact value a line.
    #[default]
    Json,
    /// Indented.
    Pretty,
    /// Tab-separated rows.
    Tsv,
    /// Comma-separated rows with a header (RFC 4180).
    Csv,
}

/// The caller's function for results.
pub(super) type OnRow<'a> = dyn FnMut(Plain) -> ControlFlow<()> + Send + 'a;

/// The form of results.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Text, in writes of up to this many bytes.
    Text {
        format: Format,
        write_bytes: usize,
    },
    Values,
    /// Records of a table, as values; the names of the columns come first.
    Records,
}

impl Form {
    /// Whether the first result determines the columns of the others.
    pub(super) fn has_header(self) -> bool {
        let is_csv = matches!(
            self,
            Form::Text {
                format: Format::Csv,
                ..
            }
        );
        is_csv || matches!(self, Form::Records)
    }
}

/// Results of a part of the input, kept until it is their turn.
pub(super) enum Results {
    /// In the groups in which it is to be written.
    Text(Vec<String>),
    Values(Vec<Plain>),
}

impl Results {
    /// Approximate size in bytes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Results::Text(groups) => groups.iter().map(String::len).sum(),
            Results::Values(values) => values.iter().map(Plain::weight).sum(),
        }
    }
}

enum Target<'a> {
    Writer(&'a mut (dyn Write + Send)),
    OnRow(&'a mut OnRow<'a>),
    Buffer(Results),
}

pub(super) struct Output<'a> {
    target: Target<'a>,
    form: Form,
    /// Text for the next write.
    pending: String,
    /// The value being printed.
    line: String,
    pub(super) header: Header,
    /// Why the run ends.
    failure: Option<io::Error>,
}

impl<'a> Output<'a> {
    /// Prints to a writer.
    pub(super) fn print_to(
        writer: &'a mut (dyn Write + Send),
        format: Format,
        write_bytes: usize,
    ) -> Output<'a> {
        let form = Form::Text {
            format,
            write_bytes,
        };
        Output::new(Target::Writer(writer), form)
    }

    /// Hands rows of values to a function.
    pub(super) fn hand_to(on_row: &'a mut OnRow<'a>, form: Form) -> Output<'a> {
        Output::new(Target::OnRow(on_row), form)
    }

    /// In tables, these numbers stand for no value, each in the field of a name.
    pub(super) fn with_sentinels(
        mut self,
        sentinels: &'static [(&'static str, u64)],
    ) -> Output<'a> {
        self.header = Header::new(matches!(self.form, Form::Records), sentinels);
        self
    }

    /// Keeps results in the form in which [`Output::write`] takes them, as the rest of a table with this header.
    pub(super) fn buffered(form: Form, header: Header) -> Output<'a> {
        let results = match form {
            Form::Text { .. } => Results::Text(Vec::new()),
            Form::Values | Form::Records => Results::Values(Vec::new()),
        };
        Output {
            header,
            ..Output::new(Target::Buffer(results), form)
        }
    }

    fn new(target: Target<'a>, form: Form) -> Output<'a> {
        Output {
            target,
            form,
            pending: String::new(),
            line: String::new(),
            header: Header::default(),
            failure: None,
        }
    }

    pub(super) fn form(&self) -> Form {
        self.form
    }

    pub(super) fn put(&mut self, value: &Value, bounds: &Bounds) -> Eval<()> {
        let (format, write_bytes) = match self.form {
            Form::Text {
                format,
                write_bytes,
            } => (format, write_bytes),
            Form::Values => {
                let value = export_within(value, bounds)?;
                self.emit(value);
                return Ok(());
            }
            Form::Records => return self.put_records(value, bounds),
        };
        self.line.clear();
        match format {
            Format::Json => print::compact(&mut self.line, value, bounds)?,
            Format::Pretty => print::pretty(&mut self.line, value, bounds)?,
            Format::Csv => csv::rows(&mut self.header, &mut self.line, value, bounds)?,
            // A table is printed whole, or not at all.
            Format::Tsv => return tsv::rows(&mut self.pending, value, bounds),
        }
        if format != Format::Csv {
            self.line.push('\n');
        }
        if self.pending.len() + self.line.len() > write_bytes {
            self.flush();
        }
        self.pending.push_str(&self.line);
        Ok(())
    }

    fn put_records(&mut self, value: &Value, bounds: &Bounds) -> Eval<()> {
        let mut rows = Vec::new();
        self.header.rows(value, &mut |row| {
            rows.push(match row {
                Row::Header(names) => names.iter().cloned().map(Plain::String).collect(),
                Row::Record(fields) => {
                    let fields = fields.iter().map(|field| export_field(field, bounds));
                    fields.collect::<Eval<_>>()?
                }
            });
            Ok(())
        })?;
        for row in rows {
            self.emit(Plain::Array(row));
        }
        Ok(())
    }

    fn emit(&mut self, value: Plain) {
        match &mut self.target {
            Target::OnRow(on_row) => {
                if self.failure.is_none() && on_row(value).is_break() {
                    self.failure = Some(ErrorKind::BrokenPipe.into());
                }
            }
            Target::Buffer(Results::Values(values)) => values.push(value),
            Target::Buffer(Results::Text(_)) | Target::Writer(_) => {}
        }
    }

    /// Whether a value is printed as one compact line.
    pub(super) fn is_compact(&self) -> bool {
        matches!(
            self.form,
            Form::Text {
                format: Format::Json,
                ..
            }
        )
    }

    fn is_table(&self) -> bool {
        matches!(
            self.form,
            Form::Text {
                format: Format::Tsv,
                ..
            }
        )
    }

    /// Drops unwritten output, as jrf does with a table after an error.
    pub(super) fn forget_table(&mut self) {
        if self.is_table() {
            self.pending.clear();
        }
    }

    /// Writes a group of text.
    pub(super) fn write_text(&mut self, group: &str) {
        if let Form::Text {
            format: Format::Json | Format::Pretty | Format::Csv,
            write_bytes,
        } = self.form
            && self.pending.len() + group.len() > write_bytes
        {
            self.flush();
        }
        self.pending.push_str(group);
    }

    /// Writes a value that is printed as one compact line.
    pub(super) fn write_line(&mut self, text: &str) {
        if let Form::Text { write_bytes, .. } = self.form
            && self.pending.len() + text.len() + 1 > write_bytes
        {
            self.flush();
        }
        self.pending.push_str(text);
        self.pending.push('\n');
    }

    /// Writes what another output has kept.
    pub(super) fn write(&mut self, results: Results) {
        match results {
            Results::Text(groups) => groups.iter().for_each(|group| self.write_text(group)),
            Results::Values(values) => values.into_iter().for_each(|value| self.emit(value)),
        }
    }

    /// Writes pending results, since the next row may come late.
    pub(super) fn show(&mut self) {
        if !self.is_table() {
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        if self.failure.is_none() && !self.pending.is_empty() {
            match &mut self.target {
                Target::Writer(writer) => {
                    let written = writer.write_all(self.pending.as_bytes());
                    self.failure = written.and_then(|()| writer.flush()).err();
                }
                Target::Buffer(Results::Text(groups)) => {
                    groups.push(std::mem::take(&mut self.pending));
                }
                Target::Buffer(Results::Values(_)) | Target::OnRow(_) => {}
            }
        }
        self.pending.clear();
    }

    /// Takes the results kept so far.
    pub(super) fn take(&mut self) -> Results {
        self.flush();
        match (&mut self.target, self.form) {
            (Target::Buffer(Results::Values(values)), _) => Results::Values(std::mem::take(values)),
            (Target::Buffer(Results::Text(groups)), _) => Results::Text(std::mem::take(groups)),
            (_, Form::Values | Form::Records) => Results::Values(Vec::new()),
            (_, Form::Text { .. }) => Results::Text(Vec::new()),
        }
    }

    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Why no more results are taken. A closed pipe, or a caller that wants no more rows, is not an error but ends the run.
    pub(super) fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }
}
