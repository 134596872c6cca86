//! Runs rows through the stages and hands on the results.

use super::Query;
use super::absent::{KeySearch, Seen};
use super::deferred;
use super::input::Input;
use super::output::{Output, Results};
use super::work::Work;
use crate::class::Class;
use crate::error::{AbsentKey, RunError, SkippedLines};
use crate::json::build::{Keys, Parser, parsed};
use crate::json::condition::Condition;
use crate::json::export::export;
use crate::json::rows::Reader;
use crate::memory::Memory;
use crate::plan::{self, parallel::Parallel};
use crate::reducers::groups::Place;
use crate::reducers::packed::PackedScope;
use crate::reducers::portable::PackedRows;
use crate::reducers::scope::{Reducer, Scope};
use crate::reducers::sort::{Next, Sort};
use crate::tree::Program;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::exception::{Eval, Flow, error};
use crate::value::inspect::to_s;
use crate::value::text::Text;
use crate::vm::Vm;
use lastbyte_json::parse::{ParseError, Projection};
use lastbyte_json::scan::{Line, Reprinter};
use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::rc::Rc;

/// Fewest lines of a part whose groups may be too many to be merged.
const MERGED_MIN: usize = 256;

/// A reader, with the plans that it has learned.
pub(super) type SharedReader = Rc<RefCell<Reader>>;

pub(super) struct Pipeline<'a> {
    program: Rc<Program>,
    pub(super) vm: Vm,
    pub(super) stages: Vec<StageState>,
    pub(super) output: Output<'a>,
    on_error: &'a mut (dyn FnMut(RunError) + 'a),
    pub(super) reader: SharedReader,
    /// The first stage, if lines can tell whether it keeps their rows.
    first: Option<Condition>,
    /// The stages only select rows, which are printed unchanged.
    passes_on: bool,
    /// Prints unchanged rows whose lines are not in the output format.
    reprinter: Reprinter,
    /// The last of them.
    reprinted: String,
    /// For the lines that the reader leaves to the parser.
    pub(super) projection: Projection,
    keys: Keys,
    /// Number of stages that run here: all, or the first few on a thread with a part of the input.
    end: usize,
    /// On such a thread, the rows that the next stage will take, with their lines.
    rows: Option<PackedRows>,
    /// The line that is read.
    pub(super) number: usize,
    /// The names of the files so far.
    pub(super) file_names: Vec<Value>,
    /// The stage whose rows may be put off.
    deferring: Option<usize>,
    /// How often the row was put off, and its number among such rows.
    pub(super) again: Option<(u32, i64)>,
    /// The memory limit, at the end of the input.
    pub(super) memory: Option<Memory>,
    /// Skipped lines so far.
    skipped: Option<SkippedLines>,
    skips_bad_lines: bool,
    /// Looks for the constant keys of the query in the rows.
    search: KeySearch,
    /// The reader builds whole rows, and has no fields.
    reads_whole: bool,
    /// An error was reported.
    has_failed: bool,
    /// The results printed last, while an input is followed.
    pub(super) shown: String,
}

/// A stage between two rows.
pub(super) struct StageState {
    env: Rc<Env>,
    pub(super) scope: Scope,
}

/// What a run reports beside its results and errors.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) skipped: Option<SkippedLines>,
    pub(super) absent: Vec<AbsentKey>,
    pub(super) rows: u64,
}

/// The reducers hold more than data, which no other process can have.
pub(super) struct NotData;

/// Why reading ended early.
pub(super) enum Stop {
    /// The rest of this file is not read; the error was reported.
    File,
    /// The run is over.
    Run,
}

impl<'a> Pipeline<'a> {
    pub(super) fn new(
        vm: Vm,
        output: Output<'a>,
        on_error: &'a mut (dyn FnMut(RunError) + 'a),
        projection: Projection,
        reader: Option<SharedReader>,
    ) -> Pipeline<'a> {
        let passed_on = plan::passed_on(&vm.program).filter(|_| output.is_compact());
        let read = passed_on.as_ref().unwrap_or(&projection);
        let reader = reader.unwrap_or_else(|| Rc::new(RefCell::new(Reader::new(read))));
        let first = Condition::of(&vm.program, read);
        let reads_whole = *read == Projection::Whole;
        let search = KeySearch::new(plan::constant_keys(&vm.program).groups(), read);
        let deferring = deferred::deferring(&vm.program).filter(|_| vm.spill.is_some());
        let stages = vm
            .program
            .stages
            .iter()
            .map(|stage| StageState {
                env: Vm::top(stage.locals),
                scope: Scope::default(),
            })
            .collect();
        Pipeline {
            program: Rc::clone(&vm.program),
            vm,
            stages,
            output,
            on_error,
            reader,
            first,
            passes_on: passed_on.is_some(),
            reprinter: Reprinter::default(),
            reprinted: String::new(),
            projection,
            keys: Keys::default(),
            end: usize::MAX,
            rows: None,
            number: 0,
            file_names: Vec::new(),
            deferring,
            again: None,
            memory: None,
            skipped: None,
            skips_bad_lines: false,
            search,
            reads_whole,
            has_failed: false,
            shown: String::new(),
        }
    }

    pub(super) fn run(
        &mut self,
        inputs: Vec<Input>,
        query: &Query,
        parallel: Option<Parallel>,
    ) -> Notes {
        self.skips_bad_lines = query.options.skip_bad_lines;
        let mut is_whole = false;
        if self.start_helpers() {
            // What stops the run was reported.
            is_whole = self.feed(inputs, query, parallel).is_ok() && !self.has_failed;
            // Reducers return their results.
            self.memory = self.vm.bounds.memory.take();
            self.vm.bounds.interrupt = None;
            if self.stages.iter().any(|stage| !stage.scope.is_empty()) {
                self.show_before(&query.options);
            }
            self.finish();
        }
        self.close_output();
        self.notes(is_whole, query)
    }

    fn notes(&mut self, is_whole: bool, query: &Query) -> Notes {
        let is_whole = is_whole && !query.options.is_interrupted();
        let mut absent = self.search.absent(is_whole);
        if self.search.rows > 0 {
            absent.extend(plan::later_keys::absent(&self.program));
        }
        Notes {
            skipped: self.skipped.take(),
            absent,
            rows: self.search.rows,
        }
    }

    fn close_output(&mut self) {
        self.output.flush();
        if let Some(failure) = self.output.take_failure()
            && failure.kind() != ErrorKind::BrokenPipe
        {
            self.fail(RunError::Write(failure));
        }
    }

    /// Gathers the rows of all inputs in the reducers of a stage, as a thread does for its part.
    pub(super) fn gather(
        &mut self,
        inputs: Vec<Input>,
        query: &Query,
        at: usize,
    ) -> (Notes, Result<Option<PackedScope>, NotData>) {
        self.skips_bad_lines = query.options.skip_bad_lines;
        let mut is_whole = false;
        if self.start_helpers() {
            // What stops the run was reported.
            is_whole = self.feed(inputs, query, None).is_ok() && !self.has_failed;
        }
        let own = std::mem::take(&mut self.stages[at].scope);
        let others = self.stages.iter().any(|stage| !stage.scope.is_empty());
        let packed = if own.is_empty() {
            Ok(None)
        } else {
            PackedScope::pack(&own).map(Some).ok_or(NotData)
        };
        let packed = packed.and_then(|own| if others { Err(NotData) } else { Ok(own) });
        (self.notes(is_whole, query), packed)
    }

    /// Joins states to the reducers of a stage, and finishes the run.
    pub(super) fn finish_states(&mut self, states: Vec<(String, Vec<PackedScope>)>, at: usize) {
        if !self.start_helpers() {
            return;
        }
        for (name, states) in states {
            for state in states {
                let mut part = state.unpack();
                let scope = &mut self.stages[at].scope;
                let misfit = if !part.fits(&Scope::default()) {
                    "the state is cut off or was changed"
                } else if !part.fits(scope) {
                    "its values cannot be joined to those of the states before it"
                } else {
                    ""
                };
                if !misfit.is_empty() {
                    self.fail(RunError::State {
                        input: name,
                        message: misfit.to_owned(),
                    });
                    return;
                }
                if let Err(flow) = part.join(&mut self.vm, scope) {
                    self.report(&flow, &name, None);
                    return;
                }
            }
        }
        self.finish();
        self.close_output();
    }

    pub(super) fn fail(&mut self, error: RunError) {
        self.has_failed = true;
        (self.on_error)(error);
    }

    /// Top-level code of the helper files.
    pub(super) fn start_helpers(&mut self) -> bool {
        let program = Rc::clone(&self.program);
        for (body, locals) in &program.start {
            if let Err(flow) = self.vm.eval(body, &Vm::top(*locals)) {
                self.report(&flow, "helper file", None);
                return false;
            }
        }
        true
    }

    /// Sets `$FILENAME`.
    pub(super) fn start_file(&mut self, name: &str) {
        self.vm.file_name = Value::Str(Rc::new(Text::frozen(name.to_owned())));
        self.file_names.push(self.vm.file_name.clone());
    }

    pub(super) fn unreadable(&mut self, name: &str, reason: io::Error) -> Stop {
        let input = name.to_owned();
        self.fail(RunError::Unreadable { input, reason });
        Stop::File
    }

    /// Whole lines, of which the last may lack its end.
    pub(super) fn block(
        &mut self,
        name: &str,
        number: &mut usize,
        bytes: &[u8],
    ) -> Result<(), Stop> {
        let mut at = 0;
        while at < bytes.len() {
            *number += 1;
            let line = self.reader.borrow_mut().line(bytes, at);
            let end = match line {
                Line::Row(end) => {
                    let is_done = self.scanned(name, *number, bytes, at..end)?;
                    self.search.rows += u64::from(is_done);
                    is_done.then_some(end)
                }
                Line::Blank(end) => Some(end),
                Line::Odd => None,
            };
            at = if let Some(end) = end {
                end
            } else {
                let rest = &bytes[at..];
                let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                self.line(name, *number, &rest[..length])?;
                at + length + 1
            };
        }
        Ok(())
    }

    /// Runs the row that the reader has found in a line; `false` if only the parser can tell what it is.
    fn scanned(
        &mut self,
        name: &str,
        number: usize,
        bytes: &[u8],
        line: Range<usize>,
    ) -> Result<bool, Stop> {
        if !self.reads_whole && self.search.is_open() {
            let reader = self.reader.borrow();
            self.search.scanned(reader.found(), bytes, line.clone());
        }
        let first = self.first.as_ref();
        let kept = first.and_then(|first| self.reader.borrow().holds(first, bytes));
        if kept == Some(false) {
            return Ok(true);
        }
        let at = usize::from(kept == Some(true));
        // Without other references, the last row is reused for this one.
        self.vm.row = Value::Nil;
        self.vm.target = Value::Nil;
        // No stage takes a row that is printed from its line.
        let row = if self.passes_on && at == self.stages.len() {
            Some(Value::Nil)
        } else {
            self.reader.borrow_mut().row(bytes)
        };
        let Some(row) = row else {
            return Ok(false);
        };
        if self.reads_whole {
            self.look_for_keys(&row, &bytes[line.clone()]);
        }
        if self.passes_on {
            self.pass_on(name, number, at, &row, &bytes[line])?;
        } else {
            self.row(name, number, at, row)?;
        }
        Ok(true)
    }

    /// Makes this the pipeline of a thread that has parts of the input.
    pub(super) fn for_parts(&mut self, parallel: Parallel) -> bool {
        self.search.without_names();
        match parallel {
            Parallel::Print => {}
            Parallel::Rows(at) => {
                self.end = at;
                self.rows = Some(PackedRows::default());
            }
            Parallel::Merge(_) => self.vm.chunk = true,
        }
        self.start_helpers()
    }

    /// Runs a part of the input; `None` if it must run in order, with the state of the earlier parts.
    pub(super) fn part(
        &mut self,
        bytes: &[u8],
        parallel: Parallel,
    ) -> Option<(usize, Work, Results, Seen)> {
        let mut lines = 0;
        let has_header = self.output.header.is_known();
        self.search.restart();
        let done = self.block("", &mut lines, bytes);
        let results = self.output.take();
        let mut scopes: Vec<Scope> = self
            .stages
            .iter_mut()
            .map(|stage| std::mem::take(&mut stage.scope))
            .collect();
        let rows = self.rows.as_mut().map(std::mem::take);
        // The first record with names makes the header of all parts.
        if done.is_err() || self.output.header.is_known() != has_header {
            return None;
        }
        let mut own = match parallel {
            Parallel::Merge(at) => std::mem::take(scopes.get_mut(at)?),
            _ => Scope::default(),
        };
        // With about as many groups as lines, merging takes longer than the lines do, and the groups are in memory twice.
        let groups = own.groups().map_or(0, |groups| groups.len());
        if lines >= MERGED_MIN && groups * 2 > lines {
            return None;
        }
        // Reducers that the text did not show.
        if scopes.iter().any(|scope| !scope.is_empty()) {
            return None;
        }
        let work = match parallel {
            Parallel::Print => Work::Printed,
            Parallel::Rows(_) => Work::Rows(rows?.into_rows()),
            Parallel::Merge(_) => Work::Merge(PackedScope::pack(&own)?),
        };
        Some((lines, work, results, self.search.seen()))
    }

    /// The keys that a thread has seen in a part whose result is taken.
    pub(super) fn add_seen(&mut self, seen: &Seen) {
        self.search.add(seen);
    }

    /// Takes the result of a thread for the next part of a file; `false` if the part must run here.
    pub(super) fn take(
        &mut self,
        name: &str,
        number: usize,
        work: Work,
        parallel: Parallel,
    ) -> Result<bool, Stop> {
        match (work, parallel) {
            (Work::Rows(rows), Parallel::Rows(at)) => {
                for (line, row) in rows {
                    let pushed = self.push(at, row.unpack());
                    self.pushed(name, number + line, pushed)?;
                }
            }
            (Work::Merge(part), Parallel::Merge(at)) => {
                let mut part = part.unpack();
                let scope = &mut self.stages[at].scope;
                if !part.fits(scope) {
                    return Ok(false);
                }
                let joined = part.join(&mut self.vm, scope);
                // What grew here was not a row of this thread.
                if let Err(flow) = joined.and_then(|()| self.vm.bounds.check(0)) {
                    return self.pushed(name, number, Err((at, flow))).map(|()| true);
                }
                if let (Some(spill), Some(groups)) = (&self.vm.spill, scope.groups())
                    && self.deferring == Some(at)
                {
                    groups.limit(spill);
                }
            }
            _ => {}
        }
        Ok(true)
    }

    /// Flushes the output if the next row may arrive late.
    pub(super) fn show(&mut self) -> Result<(), Stop> {
        self.output.show();
        match self.output.failure() {
            Some(_) => Err(Stop::Run),
            None => Ok(()),
        }
    }

    /// Writes the results of a thread.
    pub(super) fn write(&mut self, results: Results) -> Result<(), Stop> {
        self.output.write(results);
        if self.output.failure().is_some() {
            return Err(Stop::Run);
        }
        Ok(())
    }

    fn line(&mut self, name: &str, number: usize, line: &[u8]) -> Result<(), Stop> {
        if line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            return Ok(());
        }
        match Parser::new(line, &mut self.keys).only(&self.projection) {
            Ok(row) => {
                self.search_row(&row, line);
                self.row(name, number, 0, row)
            }
            Err(mut wrong) => {
                if let Some(what) = self.lax_form(number, line, &wrong) {
                    wrong.message = format!("{} (`query --lax` reads {what})", wrong.message);
                }
                self.bad_line(name, number, column(line, wrong.at), &wrong)
            }
        }
    }

    /// What a line is by its error, if only the reader of `--lax` accepts it.
    fn lax_form(&mut self, number: usize, line: &[u8], wrong: &ParseError) -> Option<&'static str> {
        let (before, rest) = line.split_at(wrong.at.min(line.len()));
        let begins_value = |byte: &u8| b"{[\"-0123456789tfn".contains(byte);
        let mut is_value = |text| {
            Parser::new(text, &mut self.keys)
                .only(&self.projection)
                .is_ok()
        };
        match rest.first() {
            // The first line is not the last one of a file that was cut off.
            None if number == 1 => Some("values of several lines"),
            Some(0x1e) => Some("values with RS before them"),
            Some(_) if before.ends_with(b"\r") => Some("lines that end with a carriage return"),
            Some(byte) if begins_value(byte) && is_value(before) => {
                Some("several values in a line")
            }
            None | Some(_) => None,
        }
    }

    /// Counts a row that was built from its text, and looks for keys in it.
    pub(super) fn search_row(&mut self, row: &Value, text: &[u8]) {
        self.search.rows += 1;
        self.look_for_keys(row, text);
    }

    #[inline]
    fn look_for_keys(&mut self, row: &Value, text: &[u8]) {
        if self.search.is_open() {
            self.search.row(row, text);
        }
    }

    /// A line that is not JSON ends its file, or is left out.
    fn bad_line(
        &mut self,
        name: &str,
        line: usize,
        column: usize,
        wrong: &ParseError,
    ) -> Result<(), Stop> {
        let error = not_json(name, line, column, wrong);
        if !self.skips_bad_lines {
            self.fail(error);
            return Err(Stop::File);
        }
        match &mut self.skipped {
            Some(skipped) => skipped.count += 1,
            None => {
                self.skipped = Some(SkippedLines {
                    count: 1,
                    first: error,
                });
            }
        }
        Ok(())
    }

    /// Runs a row from a stage on.
    pub(super) fn row(
        &mut self,
        name: &str,
        number: usize,
        at: usize,
        row: Value,
    ) -> Result<(), Stop> {
        self.number = number;
        let pushed = match self.vm.tick() {
            Ok(()) => self.push(at, row),
            Err(flow) => Err((0, flow)),
        };
        self.pushed(name, number, pushed)
    }

    /// Prints a row if all stages from this one on keep it: unchanged, if that is its printed form.
    fn pass_on(
        &mut self,
        name: &str,
        number: usize,
        at: usize,
        row: &Value,
        line: &[u8],
    ) -> Result<(), Stop> {
        self.number = number;
        let is_verbatim = self.reader.borrow().is_verbatim();
        for at in at..self.stages.len() {
            match self.evaluate(at, row.clone()) {
                Ok(None | Some(Value::Dropped)) => return Ok(()),
                Ok(Some(value)) if value.same(row) => {}
                // `next` gave another value.
                Ok(value) => {
                    let handed = self.pass_to_next(at, value);
                    return self.pushed(name, number, handed);
                }
                Err(flow) => return self.pushed(name, number, Err((at, flow))),
            }
        }
        if is_verbatim && let Ok(text) = std::str::from_utf8(line) {
            self.output.write_text(text);
            return self.pushed(name, number, Ok(()));
        }
        self.reprinted.clear();
        if self.reprinter.print(line, &mut self.reprinted) {
            self.output.write_text(&self.reprinted);
            return self.pushed(name, number, Ok(()));
        }
        let printed = match Parser::new(line, &mut self.keys).only(&self.projection) {
            Ok(row) => self.output.put(&row, &self.vm.bounds),
            // The reader took it for JSON. Should they ever disagree, the line is reported and not lost.
            Err(wrong) => {
                return self.bad_line(name, number, column(line, wrong.at), &wrong);
            }
        };
        let last = self.stages.len().saturating_sub(1);
        self.pushed(name, number, printed.map_err(|flow| (last, flow)))
    }

    /// Handles the error of a row.
    fn pushed(
        &mut self,
        name: &str,
        number: usize,
        pushed: Result<(), (usize, Box<Flow>)>,
    ) -> Result<(), Stop> {
        if let Err((stage, flow)) = pushed {
            // As in jrf, an error of this kind is the file's, even when a stage raised it.
            if let Flow::Raise(raised) = &*flow
                && (raised.class.is(Class::JsonParserError) || raised.class.is(Class::IOError))
            {
                self.fail(RunError::RaisedForInput {
                    input: name.to_owned(),
                    class: raised.class.name(),
                    message: to_s(&raised.message),
                });
                return Err(Stop::File);
            }
            self.output.forget_table();
            let row = export(&self.vm.row).ok();
            self.report(&flow, &format!("{name}:{number}, stage {stage}"), row);
            return Err(Stop::Run);
        }
        if self.output.failure().is_some() || self.vm.has_enough {
            return Err(Stop::Run);
        }
        Ok(())
    }

    /// Passes a row to a stage, and the result to the next; an error names its stage.
    pub(super) fn push(&mut self, at: usize, row: Value) -> Result<(), (usize, Box<Flow>)> {
        if at == self.end
            && let Some(rows) = &mut self.rows
        {
            return rows
                .push(self.number, &row)
                .ok_or_else(|| (at, error(Class::TypeError, "only data crosses threads")));
        }
        if at == self.stages.len() {
            let put = self.output.put(&row, &self.vm.bounds);
            return put.map_err(|flow| (at - 1, flow));
        }
        let value = self.evaluate(at, row).map_err(|flow| (at, flow))?;
        self.pass_to_next(at, value)
    }

    /// Hands a stage's value to the next.
    fn pass_to_next(&mut self, at: usize, value: Option<Value>) -> Result<(), (usize, Box<Flow>)> {
        match value {
            None | Some(Value::Dropped) => Ok(()),
            Some(Value::Flat(list)) => {
                let list = list.borrow().clone();
                list.into_iter().try_for_each(|row| self.push(at + 1, row))
            }
            Some(value) => self.push(at + 1, value),
        }
    }

    /// A stage's value for a row; `None` when it is a reducing stage.
    pub(super) fn evaluate(&mut self, at: usize, row: Value) -> Eval<Option<Value>> {
        let stage = &self.program.stages[at];
        let StageState { env, scope } = &mut self.stages[at];
        if Rc::strong_count(env) == 1 {
            env.clear();
        } else {
            *env = Vm::top(stage.locals);
        }
        scope.rewind();
        std::mem::swap(&mut self.vm.scope, scope);
        self.vm.deferrable = (self.deferring == Some(at)).then(|| Place {
            file: self.file_names.len().saturating_sub(1),
            line: self.number,
            again: self.again,
        });
        self.vm.target = row.clone();
        self.vm.row = row;
        let result = self.vm.eval(&stage.body, env);
        std::mem::swap(&mut self.vm.scope, scope);
        let value = match result {
            Ok(value) => value,
            Err(flow) => match *flow {
                Flow::Next(value) => value,
                other => return Err(Box::new(other)),
            },
        };
        if scope.is_empty() {
            return Ok(if stage.reducing { None } else { Some(value) });
        }
        if scope.cursor > 0 || !stage.reducing {
            scope.note(&value);
        }
        Ok(None)
    }

    /// The end of input: each reducing stage gives its value to the next.
    pub(super) fn finish(&mut self) {
        self.vm.file_name = Value::Nil;
        for at in 0..self.stages.len() {
            let mut scope = std::mem::take(&mut self.stages[at].scope);
            if scope.is_empty() {
                continue;
            }
            let sort = scope.take_only(|reducer| match reducer {
                Reducer::Sort(sort) => Ok(sort),
                other => Err(other),
            });
            let result = if let Some(sort) = sort {
                self.finish_sort(at, *sort).map_err(Some)
            } else if let Some(groups) = scope.take_only(deferred::deferred) {
                self.finish_groups(at, groups)
            } else {
                let rows = scope.finish(&mut self.vm).map_err(|flow| (at, flow));
                rows.and_then(|rows| rows.into_iter().try_for_each(|row| self.push(at + 1, row)))
                    .map_err(Some)
            };
            if let Err(failed) = result {
                self.output.forget_table();
                if let Some((stage, flow)) = failed {
                    self.report(&flow, &format!("end of input, stage {stage}"), None);
                }
            }
        }
    }

    /// Passes sorted rows to the next stage, one by one.
    fn finish_sort(&mut self, at: usize, sort: Sort) -> Result<(), (usize, Box<Flow>)> {
        let mut sorted = sort.finish(&mut self.vm).map_err(|flow| (at, flow))?;
        let is_printed = at + 1 == self.stages.len() && self.output.is_compact();
        let mut keys = Keys::default();
        let (output, bounds) = (&mut self.output, &self.vm.bounds);
        while is_printed && output.failure().is_none() {
            let row = sorted.next(|row| match row {
                Next::Text(text) => {
                    output.write_line(text);
                    Ok(())
                }
                Next::Value(value) => output.put(&value, bounds),
            });
            match row.map_err(|flow| (at, flow))? {
                None => return Ok(()),
                Some(put) => put.map_err(|flow| (at, flow))?,
            }
        }
        while self.output.failure().is_none() {
            let row = sorted.next(|row| match row {
                Next::Text(text) => parsed(text, &mut keys),
                Next::Value(value) => value,
            });
            match row.map_err(|flow| (at, flow))? {
                None => return Ok(()),
                Some(row) => self.push(at + 1, row)?,
            }
        }
        Ok(())
    }

    pub(super) fn report(&mut self, flow: &Flow, place: &str, row: Option<lastbyte_json::Value>) {
        let stray = |what: &str| error(Class::LocalJumpError, what);
        let jump = match flow {
            Flow::Raise(_) => None,
            Flow::Return(..) => Some(stray("unexpected return")),
            Flow::Break(..) | Flow::LoopBreak(_) => Some(stray("break from proc-closure")),
            _ => Some(stray("unexpected jump")),
        };
        if let Flow::Raise(raised) = jump.as_deref().unwrap_or(flow) {
            self.fail(match raised.class {
                Class::Interrupt => RunError::Interrupted,
                class => RunError::Raised {
                    class: class.name(),
                    message: to_s(&raised.message),
                    place: place.to_owned(),
                    hint: raised.hint.clone(),
                    row,
                },
            });
        }
    }
}

pub(super) fn not_json(name: &str, line: usize, column: usize, wrong: &ParseError) -> RunError {
    RunError::NotJson {
        input: name.to_owned(),
        line,
        column,
        message: wrong.message.clone(),
        is_too_deep: wrong.is_too_deep,
    }
}

/// A byte's column, in characters from 1.
pub(super) fn column(line: &[u8], at: usize) -> usize {
    String::from_utf8_lossy(&line[..at.min(line.len())])
        .chars()
        .count()
        + 1
}
