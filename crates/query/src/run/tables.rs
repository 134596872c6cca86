//! Reads the tables of `lookup` when a query is compiled.

use std::sync::Arc;

use super::Query;
use super::lines::{Failure, Lines};
use crate::error::CompileError;
use crate::json::build::{Keys, Parser};
use crate::lookup::LookupTable;
use crate::tree::Named;
use crate::value::Value;
use crate::value::exception::Flow;
use crate::value::inspect::to_s;
use lastbyte_json::parse::Projection;

/// Size of a read in bytes.
const BLOCK_BYTES: usize = 256 << 10;

impl Query {
    /// Reads the tables that the query names. What they take is not left for the rows of `sort` and `group_by`.
    pub(super) fn read_tables(&mut self) -> Result<(), CompileError> {
        let mut tables = Vec::new();
        for named in self.program()?.tables {
            tables.push(self.read_table(&named)?);
        }
        if let Some(spill) = &mut self.options.spill {
            let bytes: usize = tables.iter().map(LookupTable::bytes).sum();
            spill.bytes_max = spill.bytes_max.saturating_sub(bytes as u64 / 3).max(1);
        }
        self.tables = Arc::from(tables);
        Ok(())
    }

    fn read_table(&self, named: &Named) -> Result<LookupTable, CompileError> {
        let wrong = |message: String| CompileError::whole(&named.file, message);
        let Some(open) = self.options.open_table else {
            return Err(CompileError::whole(
                "query",
                "`lookup` reads a file, and this query may not read files",
            ));
        };
        let failed = |failure| match failure {
            Failure::Unreadable(reason) => wrong(reason.to_string()),
            Failure::LineTooLong(bytes_max) => {
                wrong(format!("a line is longer than {bytes_max} bytes"))
            }
        };
        let input = open(&named.file).map_err(|reason| wrong(reason.to_string()))?;
        let mut lines = Lines::open(input, self.options.line_bytes_max).map_err(failed)?;
        let bounds = self.bounds();
        let mut reading = Reading {
            table: LookupTable::default(),
            column: named.column.clone(),
            keys: Keys::default(),
            line: 0,
        };
        let mut buffer = Vec::new();
        loop {
            let (length, failure) = lines.next(&mut buffer, BLOCK_BYTES);
            reading
                .lines(&buffer[..length])
                .map_err(|message| wrong(format!("line {}: {message}", reading.line)))?;
            if let Some(failure) = failure {
                return Err(failed(failure));
            }
            bounds.check(0).map_err(|flow| wrong(text(&flow)))?;
            let bytes = reading.table.bytes() as u64;
            if let Some(memory) = bounds.memory.filter(|memory| bytes > memory.bytes_max) {
                let most = memory.bytes_max;
                return Err(wrong(format!(
                    "the table takes {bytes} bytes (expected at most {most} of memory)"
                )));
            }
            if length == 0 {
                return Ok(reading.table);
            }
        }
    }
}

/// The message of an error.
fn text(flow: &Flow) -> String {
    match flow {
        Flow::Raise(raised) => to_s(&raised.message),
        _ => String::new(),
    }
}

struct Reading {
    table: LookupTable,
    /// The column with the keys, once it is known.
    column: Option<String>,
    keys: Keys,
    /// The line that is read, from 1.
    line: usize,
}

impl Reading {
    fn lines(&mut self, bytes: &[u8]) -> Result<(), String> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line += 1;
            let line = line.trim_ascii();
            if !line.is_empty() {
                self.row(line)?;
            }
        }
        Ok(())
    }

    fn row(&mut self, line: &[u8]) -> Result<(), String> {
        let row = Parser::new(line, &mut self.keys)
            .only(&Projection::Whole)
            .map_err(|wrong| wrong.message)?;
        let Value::Hash(fields) = &row else {
            return Err("not a row with names (expected a JSON object)".to_owned());
        };
        let names = fields.keys();
        let column = match &self.column {
            Some(column) => column.clone(),
            None => names.first().map(to_s).unwrap_or_default(),
        };
        let key = fields.get_str(&column);
        if key.is_none() && self.table.text().is_empty() {
            let names: Vec<String> = names.iter().map(to_s).collect();
            let names = names.join(", ");
            return Err(format!("no column `{column}` (expected one of: {names})"));
        }
        let key = key.unwrap_or_default();
        let row = str::from_utf8(line).unwrap_or_default();
        let known = self.table.add(row, &key, self.line);
        self.column = Some(column);
        match known.map_err(|flow| text(&flow))? {
            Some(first) => Err(format!(
                "the key `{}` is that of line {first} as well (expected each key once)",
                to_s(&key)
            )),
            None => Ok(()),
        }
    }
}
