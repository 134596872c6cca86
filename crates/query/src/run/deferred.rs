//! The end of a `group_by` whose groups exceed the memory limit: the files of rows that were put off become tables, one after
//! the other, and the groups of all tables are joined in the order of their first rows.

use super::pipeline::Pipeline;
use crate::json::export::export;
use crate::json::print::compact;
use crate::memory::Bounds;
use crate::plan::parallel::{self, Parallel};
use crate::reducers::groups::{Groups, Keyed};
use crate::reducers::scope::{Reducer, Scope};
use crate::reducers::sort::{Row, Run};
use crate::tree::{Builtin, Node, Program};
use crate::value::Value;
use crate::value::compare::hash_of;
use crate::value::exception::{Eval, Flow};
use crate::value::inspect::to_s;
use crate::value::table::Table;

/// An error with its stage; `None` if it was reported.
pub(super) type Failed = Option<(usize, Box<Flow>)>;

/// The stage that is one `group_by`, if it may take its rows later: nothing but the row decides on what it does.
pub(super) fn deferring(program: &Program) -> Option<usize> {
    let Parallel::Merge(at) = parallel::parallel(program)? else {
        return None;
    };
    let body = &program.stages[at].body;
    matches!(body, Node::Stage(call) if call.builtin == Builtin::GroupBy).then_some(at)
}

/// The table of a stage, if rows of it were put off.
pub(super) fn deferred(reducer: Reducer) -> Result<Groups, Reducer> {
    match reducer {
        Reducer::Keyed(groups) if groups.has_deferred() => Ok(*groups),
        other => Err(other),
    }
}

impl Pipeline<'_> {
    /// Passes the groups of all tables on, as one value.
    pub(super) fn finish_groups(&mut self, at: usize, groups: Groups) -> Result<(), Failed> {
        let is_printed = at + 1 == self.stages.len() && self.output.is_compact();
        let mut groups = self.drain(at, groups, 0, is_printed)?;
        let mut table = Table::default();
        let mut separator = "{";
        // What the next stage takes must be in memory.
        self.vm.bounds.memory = self.memory;
        while let Some(row) = groups.read().map_err(|flow| (at, flow))? {
            match row.row {
                Ok(text) => {
                    self.output.write_text(separator);
                    self.output.write_text(&text);
                    separator = ",";
                    if self.output.failure().is_some() {
                        return Ok(());
                    }
                }
                Err(Value::Array(pair)) => {
                    self.vm.tick().map_err(|flow| (at, flow))?;
                    if let [key, value] = &pair.borrow()[..] {
                        table.push_known(hash_of(key), key.clone(), value.clone());
                    }
                }
                Err(_) => {}
            }
        }
        self.vm.bounds.memory = None;
        if is_printed {
            self.output.write_text("}\n");
            return Ok(());
        }
        Ok(self.push(at + 1, Value::hash(table))?)
    }

    /// Writes the groups of a table and its files to a file: as pairs, or as they are printed.
    fn drain(
        &mut self,
        at: usize,
        groups: Groups,
        level: u32,
        is_printed: bool,
    ) -> Result<Run, Failed> {
        let Some(spill) = self.vm.spill.clone() else {
            return Err(None);
        };
        let failed = |flow| Some((at, flow));
        let mut out = Run::create(&spill).map_err(failed)?;
        let mut write = |number, key, value| {
            let row = if is_printed {
                Ok(member(key, value)?)
            } else {
                Err(Value::pair(key, value))
            };
            let key = Value::Int(number);
            out.write(&Row { key, row })
        };
        let files = groups.finish_in_memory(&mut self.vm, &mut write);
        let mut runs = Vec::new();
        for rows in files.map_err(failed)? {
            let groups = self.again(at, rows, level + 1)?;
            runs.push(self.drain(at, groups, level + 1, is_printed)?);
        }
        out.merged(runs).map_err(failed)
    }

    /// Runs the rows of a file. An error in a row ends the run without a result, since rows after it were run.
    fn again(&mut self, at: usize, mut rows: Run, level: u32) -> Result<Groups, Failed> {
        self.stages[at].scope = Scope::default();
        while let Some(Row { key, row }) = rows.read().map_err(|flow| Some((at, flow)))? {
            let (Value::Int(number), Err(Value::Array(parts))) = (key, row) else {
                continue;
            };
            let parts = parts.borrow().clone();
            let [Value::Int(file), Value::Int(line), row] = &parts[..] else {
                continue;
            };
            self.vm.file_name = self.file_names[*file as usize].clone();
            self.number = *line as usize;
            self.again = Some((level, number));
            if let Err(flow) = self.evaluate(at, row.clone()) {
                let place = format!("{}:{line}, stage {at}", to_s(&self.vm.file_name));
                self.report(&flow, &place, export(row).ok());
                return Err(None);
            }
        }
        self.vm.file_name = Value::Nil;
        let mut scope = std::mem::take(&mut self.stages[at].scope);
        let groups = scope.take_only(|reducer| match reducer {
            Reducer::Keyed(groups) => Ok(*groups),
            other => Err(other),
        });
        Ok(groups.unwrap_or_else(|| Groups::new(Keyed::Hash)))
    }
}

/// A key and its value as a Hash of them prints them.
fn member(key: Value, value: Value) -> Eval<String> {
    let mut text = String::new();
    let table = Value::hash(Table::from_pairs([(key, value)]));
    compact(&mut text, &table, &Bounds::default())?;
    text.pop();
    text.remove(0);
    Ok(text)
}
