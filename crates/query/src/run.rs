//! Runs a compiled query over its inputs. An error in a file does not affect the other files; an error in a row ends the
//! run, after the results of the rows before it are printed.

mod absent;
mod csv;
mod deferred;
mod explain;
mod feed;
mod follow;
mod input;
mod lax;
mod lines;
mod measure;
mod output;
mod parallel;
mod pipeline;
mod scheduler;
mod state;
mod tables;
mod work;

use crate::error::{AbsentKey, CompileError, RunError, SkippedLines};
use crate::library::LIBRARY;
use crate::lookup::{LookupTable, Tables};
use crate::lower::{self, Source};
use crate::memory::{Bounds, Memory, Spill};
use crate::plan::{self, parallel::Parallel};
use crate::tree::Program;
use crate::vm::Vm;
pub use follow::Follow;
pub use input::{ByteSource, Input};
use lastbyte_json::Value;
use lastbyte_json::parse::Projection;
pub use measure::{Measure, Scale};
pub use output::Format;
use output::{Form, OnRow, Output};
use pipeline::{Notes, Pipeline};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stack size of a run in bytes: enough for 10 000 nested calls. The system provides only the part that is used.
const STACK: usize = 640 << 20;

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Output format. Default: compact JSON.
    pub format: Format,
    /// Values may span lines. Default: no.
    pub lax: bool,
    /// Maximum size in bytes of a write into which short outputs are grouped. Default: 4096.
    pub write_bytes: usize,
    /// Prints the stages and the plan to the error writer. Default: no.
    pub verbose: bool,
    /// Number of worker threads. Results do not depend on it. Default: 1.
    pub threads: usize,
    /// Size in bytes of the part of a file that one thread processes at a time. Default: 1 MiB.
    pub chunk_bytes: usize,
    /// Maximum size in bytes of a line, or of a value with `lax`; it is held in memory. Default: 256 MiB.
    pub line_bytes_max: usize,
    /// Skip and count lines that are not JSON, instead of ending their file. No effect with `lax`. Default: no.
    pub skip_bad_lines: bool,
    /// Memory limit. Default: none.
    pub memory: Option<Memory>,
    /// Temporary files for the rows of `sort` and of groups beyond a limit; not while results so far are printed, and not with `--partial`.
    /// Default: none.
    pub spill: Option<Spill>,
    /// Opens the table that a `lookup` of the query names. Default: none, and such a query is refused, so that a query of an
    /// untrusted source reads no files.
    pub open_table: Option<fn(&str) -> io::Result<Input>>,
    /// Once set, the run ends as at the end of the input: reducers return the results so far. Default: none.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Prints the results so far when they are due, on one thread. Default: no.
    pub follow: Option<Follow>,
    /// In tables ([`Format::Csv`], [`Query::for_each_record`]), numbers that stand for no value, each with the name of its
    /// field: they become null. Default: none.
    pub sentinels: &'static [(&'static str, u64)],
}

impl Options {
    fn is_interrupted(&self) -> bool {
        let interrupt = self.interrupt.as_ref();
        interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            format: Format::Json,
            lax: false,
            write_bytes: 4096,
            verbose: false,
            threads: 1,
            chunk_bytes: 1 << 20,
            line_bytes_max: 256 << 20,
            skip_bad_lines: false,
            memory: None,
            spill: None,
            open_table: None,
            interrupt: None,
            follow: None,
            sentinels: &[],
        }
    }
}

/// A compiled query.
#[derive(Clone, Debug)]
pub struct Query {
    text: String,
    helpers: Vec<(String, String)>,
    options: Options,
    /// Of `lookup`.
    tables: Arc<[LookupTable]>,
}

impl Query {
    /// Compiles a query and its helper files, each given as name and text. The name of a built-in one starts with `<`: its keys are not
    /// reported one by one if no row has them.
    ///
    /// # Errors
    ///
    /// Returns [`CompileError`] if a text is not Ruby, or uses unsupported syntax or methods. The message names the place
    /// and the nearest supported name. So it does if a table cannot be read (see [`Options::open_table`]).
    pub fn compile(
        text: &str,
        helpers: &[(String, String)],
        options: Options,
    ) -> Result<Query, CompileError> {
        let mut query = Query {
            text: text.to_owned(),
            helpers: helpers.to_vec(),
            options,
            tables: Arc::default(),
        };
        on_large_stack(|| query.read_tables()).unwrap_or_else(|| {
            Err(CompileError::whole(
                "query",
                "the system has no memory for a stack",
            ))
        })?;
        Ok(query)
    }

    /// The constant keys that the query reads of its rows, as paths: `["a", "b"]` for `_["a"]["b"]`.
    pub fn keys(&self) -> Vec<Vec<String>> {
        let keys = || {
            let program = self.program().ok()?;
            let groups = plan::constant_keys(&program).groups();
            Some(groups.into_iter().flat_map(|group| group.paths).collect())
        };
        on_large_stack(keys).flatten().unwrap_or_default()
    }

    /// The fields of rows that the query reads; `None` if it may read any.
    pub fn fields(&self) -> Option<Vec<String>> {
        let fields = || match plan::projection(&self.program().ok()?) {
            Projection::Whole => None,
            Projection::Fields(fields) => Some(fields.into_iter().map(|(name, _)| name).collect()),
        };
        on_large_stack(fields).flatten()
    }

    /// What the query does beside computing a value of each row, in words, such as `an assignment`; `None` if nothing. A query
    /// without an effect can be a part of another one.
    pub fn effect(&self) -> Option<&'static str> {
        let effect = || plan::effect(&self.program().ok()?);
        on_large_stack(effect).flatten()
    }

    /// Values do not cross threads, so each thread lowers the text again.
    fn program(&self) -> Result<Program, CompileError> {
        let helpers: Vec<Source<'_>> = self
            .helpers
            .iter()
            .map(|(name, text)| Source { name, text })
            .collect();
        lower::compile(&self.text, &helpers)
    }

    /// Reads the inputs in order and hands each result to `on_row`: an array as its elements, any other value as a row
    /// of one. Results are the same and in the same order for any number of threads. The run ends early when `on_row`
    /// returns [`ControlFlow::Break`].
    ///
    /// [`Options::format`], [`Options::write_bytes`] and [`Options::verbose`] have no effect.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use lastbyte_query::{Input, Options, Query, Value};
    ///
    /// let query = Query::compile(r#"group_by(_["arm"]) { count() } >> _.to_a >> flat"#, &[], Options::default())?;
    /// let log = b"{\"arm\":\"cubic\"}\n{\"arm\":\"bbr\"}\n{\"arm\":\"cubic\"}\n";
    /// let mut counts = Vec::new();
    /// let outcome = query.for_each(vec![Input::from_bytes("log", log.to_vec())], |row| {
    ///     if let [Value::String(arm), Value::Integer(count)] = row {
    ///         counts.push((arm.clone(), *count));
    ///     }
    ///     ControlFlow::Continue(())
    /// });
    /// outcome.into_result()?;
    /// assert_eq!(counts, [("cubic".to_owned(), 2), ("bbr".to_owned(), 1)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_each(
        &self,
        inputs: Vec<Input>,
        mut on_row: impl FnMut(&[Value]) -> ControlFlow<()> + Send,
    ) -> Outcome {
        self.run_with(inputs, Form::Values, &mut |value| on_row(value.columns()))
    }

    /// Reads the inputs in order and hands the records of each result to `on_record`: the names of the columns, and as many
    /// fields. A hash is a record; so is an array, with columns named `column1` and so on, and any other value, in the
    /// column `value`. An array of hashes or arrays gives a record for each, and so does a hash of them, with its keys in
    /// the column `key`. The first record determines the columns. A later one may lack some; then they are null.
    ///
    /// [`Options::format`], [`Options::write_bytes`] and [`Options::verbose`] have no effect.
    pub fn for_each_record(
        &self,
        inputs: Vec<Input>,
        mut on_record: impl FnMut(&[String], Vec<Value>) -> ControlFlow<()> + Send,
    ) -> Outcome {
        let mut names: Option<Vec<String>> = None;
        let mut on_row = |row: Value| {
            let Value::Array(row) = row else {
                return ControlFlow::Continue(());
            };
            if let Some(names) = &names {
                return on_record(names, row);
            }
            let texts = row.iter().filter_map(Value::as_str);
            names = Some(texts.map(str::to_owned).collect());
            ControlFlow::Continue(())
        };
        self.run_with(inputs, Form::Records, &mut on_row)
    }

    fn run_with<'a>(&self, inputs: Vec<Input>, form: Form, on_row: &'a mut OnRow<'a>) -> Outcome {
        let outcome = on_large_stack(|| {
            let mut errors = Vec::new();
            let notes = self.run_here(inputs, Output::hand_to(on_row, form), &mut |error| {
                errors.push(error);
            });
            Outcome {
                errors,
                skipped: notes.skipped,
                absent: notes.absent,
                rows: notes.rows,
            }
        });
        outcome.unwrap_or_else(|| Outcome {
            errors: vec![RunError::Stack],
            ..Outcome::default()
        })
    }

    /// Reads the inputs in order and prints each result to `out`, in [`Options::format`]. Errors are printed to `errors`
    /// as they occur, and at the end the lines that were skipped and the keys that no row has. Returns whether there were
    /// no errors.
    pub fn run(
        &self,
        inputs: Vec<Input>,
        out: &mut (dyn Write + Send),
        errors: &mut (dyn Write + Send),
    ) -> bool {
        on_large_stack(|| {
            let output = Output::print_to(out, self.options.format, self.options.write_bytes);
            if self.options.verbose {
                let _ = write!(errors, "{}", self.explain_in(output.form(), false));
            }
            let mut is_ok = true;
            let notes = self.run_here(inputs, output, &mut |error| {
                is_ok = false;
                if !matches!(error, RunError::Interrupted) {
                    let _ = writeln!(errors, "error: {error}");
                }
            });
            notes.print(errors);
            is_ok
        })
        .unwrap_or(false)
    }

    fn run_here<'a>(
        &self,
        inputs: Vec<Input>,
        output: Output<'a>,
        on_error: &'a mut (dyn FnMut(RunError) + 'a),
    ) -> Notes {
        let Prepared {
            program,
            projection,
            parallel,
        } = self.prepare(output.form());
        let output = output.with_sentinels(self.options.sentinels);
        let mut vm = self.vm(Rc::new(program));
        if self.options.follow.is_none() {
            vm.spill.clone_from(&self.options.spill);
        }
        let mut pipeline = Pipeline::new(vm, output, on_error, projection, None);
        pipeline.run(inputs, self, parallel.filter(|_| self.options.threads > 1))
    }

    /// An evaluator with the tables and the limits of the query.
    fn vm(&self, program: Rc<Program>) -> Vm {
        let mut vm = Vm::new(program, &LIBRARY);
        vm.tables = Tables::new(&self.tables);
        vm.bounds = self.bounds();
        vm
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            memory: self.options.memory,
            interrupt: self.options.interrupt.clone(),
        }
    }

    fn prepare(&self, form: Form) -> Prepared {
        let program = self
            .program()
            .expect("a query that compiled compiles again");
        let parallel = match plan::parallel::parallel(&program) {
            _ if self.options.lax || self.options.follow.is_some() => None,
            // The header is that of the first row, which one thread knows.
            Some(Parallel::Print) if form.has_header() => {
                Some(Parallel::Rows(program.stages.len()))
            }
            parallel => parallel,
        };
        Prepared {
            projection: plan::projection(&program),
            parallel,
            program,
        }
    }
}

/// A program, the fields that it reads, and the part of it that threads may run.
struct Prepared {
    program: Program,
    projection: Projection,
    parallel: Option<Parallel>,
}

impl Notes {
    fn print(&self, out: &mut dyn Write) {
        if let Some(skipped) = &self.skipped {
            let _ = writeln!(out, "{skipped}");
        }
        for absent in &self.absent {
            let _ = writeln!(out, "{absent}");
        }
    }
}

/// The outcome of a run.
#[derive(Debug, Default)]
#[must_use]
pub struct Outcome {
    /// Errors in the order in which they occurred. An input with an error leaves the others alone; an error in a stage
    /// ends the run.
    pub errors: Vec<RunError>,
    /// Lines left out because of [`Options::skip_bad_lines`].
    pub skipped: Option<SkippedLines>,
    /// Constant keys of the query that no row has; of a built-in helper, one key stands for all.
    pub absent: Vec<AbsentKey>,
    /// Number of rows that were read.
    pub rows: u64,
}

impl Outcome {
    /// # Errors
    ///
    /// Returns the first of [`Outcome::errors`], if there are any.
    pub fn into_result(self) -> Result<(), RunError> {
        self.errors.into_iter().next().map_or(Ok(()), Err)
    }
}

/// Runs a function on a thread with a stack for deep recursion; `None` if the thread cannot be created.
fn on_large_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("query".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, run)
            .ok()?;
        let result = thread.join();
        Some(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
