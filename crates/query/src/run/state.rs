//! Queries in parts: the state of a query after a part of the input, as a file, and the result of such states. The
//! accumulators are those that threads gather from parts of a file, and they are joined in the same way.

use super::output::{Form, Output};
use super::pipeline::{NotData, Notes, Pipeline};
use super::{ByteSource, Input, Query, on_large_stack};
use crate::error::{CompileError, RunError};
use crate::json::records::Header;
use crate::memory::Bounds;
use crate::plan::parallel::{self, Parallel};
use crate::reducers::encoding::{Bytes, write_all, write_count, write_text};
use crate::reducers::packed::PackedScope;
use crate::reducers::scope::Scope;
use std::io::{self, Read, Write};
use std::rc::Rc;

/// The first line of a state.
const NAME: &[u8] = b"lastbyte-query-state ";
const VERSION: &str = "1";

/// Maximum size of a state that is read, in bytes. A larger one is cut off.
const STATE_BYTES_MAX: u64 = 8 << 30;

/// Number of characters of another query that an error shows.
const SHOWN_MAX: usize = 80;

/// The states of the parts in a file, in order.
type States = Vec<PackedScope>;

impl Query {
    /// Whether states of this query can be merged.
    ///
    /// # Errors
    ///
    /// Returns [`CompileError`] if the query has no reducer, or a stage that needs all rows in order.
    pub fn check_mergeable(&self) -> Result<(), CompileError> {
        on_large_stack(|| self.merging_stage().map(|_| ())).unwrap_or(Ok(()))
    }

    /// The stage whose reducers are merged.
    fn merging_stage(&self) -> Result<usize, CompileError> {
        let program = self.program()?;
        let wrong = match parallel::parallel(&program) {
            Some(Parallel::Merge(at)) => return Ok(at),
            Some(Parallel::Print) => {
                "it has no reducer; run it on each part, and concatenate the outputs".to_owned()
            }
            Some(Parallel::Rows(at)) => {
                format!("stage[{at}] needs all rows in order: {}", program.stages[at].text)
            }
            None => "it keeps values from row to row (`reduce`, `limit`, `sort` with a block, variables)"
                .to_owned(),
        };
        Err(CompileError::whole(
            "query",
            format!("states of this query cannot be merged: {wrong}"),
        ))
    }

    /// Reads the inputs in order, and writes the state of the query to `out`. Errors are printed to `errors`. If there is
    /// one, no state is written. Returns whether there was none.
    ///
    /// The state has the query and the helpers in it, and the values that the reducers have gathered.
    /// [`Query::merge`] computes the result of several states.
    pub fn partial(
        &self,
        inputs: Vec<Input>,
        out: &mut (dyn Write + Send),
        errors: &mut (dyn Write + Send),
    ) -> bool {
        with_errors(errors, |on_error| {
            let (notes, gathered) = self.gather(inputs, on_error);
            let Some((at, states)) = gathered else {
                return notes;
            };
            let bytes = self.encode(&states);
            // The first state is joined to nothing.
            let mut states = states.into_iter();
            match bytes {
                Some(bytes) if states.all(|state| state.unpack().fits(&Scope::default())) => {
                    write_state(out, &bytes, on_error);
                }
                _ => on_error(RunError::NotMergeable { stage: at }),
            }
            notes
        })
    }

    /// Merges states of [`Query::partial`] in order, and prints the result to `out` as [`Query::run`] does for the inputs
    /// of all parts. A state of another query or version, and a damaged one, is an error, after which nothing is
    /// printed. Returns whether there was none.
    pub fn merge(
        &self,
        states: Vec<Input>,
        out: &mut (dyn Write + Send),
        errors: &mut (dyn Write + Send),
    ) -> bool {
        with_errors(errors, |on_error| {
            let output = Output::print_to(out, self.options.format, self.options.write_bytes);
            if let Some(states) = self.read_states(states, on_error) {
                self.finish_states(states, output, on_error);
            }
            Notes::default()
        })
    }

    /// Merges states of [`Query::partial`] into one, without finishing the query. Returns whether there was no error.
    pub fn merge_to_state(
        &self,
        states: Vec<Input>,
        out: &mut (dyn Write + Send),
        errors: &mut (dyn Write + Send),
    ) -> bool {
        with_errors(errors, |on_error| {
            let Some(states) = self.read_states(states, on_error) else {
                return Notes::default();
            };
            let states: States = states.into_iter().flat_map(|(_, states)| states).collect();
            // Each of them was read, so all of them can be written.
            if let Some(bytes) = self.encode(&states) {
                write_state(out, &bytes, on_error);
            }
            Notes::default()
        })
    }

    /// Runs the stages up to the one that reduces. No states after an error.
    fn gather(
        &self,
        inputs: Vec<Input>,
        on_error: &mut dyn FnMut(RunError),
    ) -> (Notes, Option<(usize, States)>) {
        let Ok(at) = self.merging_stage() else {
            return (Notes::default(), None);
        };
        let output = Output::buffered(Form::Values, Header::default());
        let prepared = self.prepare(output.form());
        let mut vm = self.vm(Rc::new(prepared.program));
        vm.chunk = true;
        let mut is_ok = true;
        let mut report = |error| {
            is_ok = false;
            on_error(error);
        };
        let mut pipeline = Pipeline::new(vm, output, &mut report, prepared.projection, None);
        let (notes, scope) = pipeline.gather(inputs, self, at);
        drop(pipeline);
        if is_ok && self.options.is_interrupted() {
            is_ok = false;
            on_error(RunError::Interrupted);
        }
        let states = match scope {
            _ if !is_ok => None,
            Ok(scope) => Some((at, scope.into_iter().collect())),
            Err(NotData) => {
                on_error(RunError::NotMergeable { stage: at });
                None
            }
        };
        (notes, states)
    }

    fn finish_states<'a>(
        &self,
        states: Vec<(String, States)>,
        output: Output<'a>,
        on_error: &'a mut (dyn FnMut(RunError) + 'a),
    ) {
        let prepared = self.prepare(output.form());
        let output = output.with_sentinels(self.options.sentinels);
        let Ok(at) = self.merging_stage() else { return };
        let mut vm = self.vm(Rc::new(prepared.program));
        // States that were read are in memory already.
        vm.bounds = Bounds::default();
        let mut pipeline = Pipeline::new(vm, output, on_error, prepared.projection, None);
        pipeline.finish_states(states, at);
    }

    /// What the result depends on beside the query and the rows: the texts of helper files, and checksums of tables.
    fn files(&self) -> Vec<String> {
        let helpers = self.helpers.iter().map(|(_, text)| text.clone());
        let tables = self.tables.iter();
        let tables = tables.map(|table| format!("{:016x}", checksum(table.text().as_bytes())));
        helpers.chain(tables).collect()
    }

    /// The bytes of states, if they expand to no more than states may.
    fn encode(&self, states: &[PackedScope]) -> Option<Vec<u8>> {
        let mut out = [NAME, VERSION.as_bytes(), b"\n"].concat();
        write_text(&mut out, &self.text);
        write_all(&mut out, &self.files(), |out, text| write_text(out, text));
        write_count(&mut out, states.len() as u64);
        for state in states {
            let start = out.len();
            state.write(&mut out);
            if !state.is_bounded(out.len() - start) {
                return None;
            }
        }
        let sum = checksum(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        Some(out)
    }

    fn read_states(
        &self,
        inputs: Vec<Input>,
        on_error: &mut dyn FnMut(RunError),
    ) -> Option<Vec<(String, States)>> {
        let mut all = Some(Vec::new());
        for input in inputs {
            let name = input.name.clone();
            let error = match input.open().and_then(read_state) {
                Err(reason) => RunError::Unreadable {
                    input: name,
                    reason,
                },
                Ok(bytes) => match self.decode(&bytes) {
                    Ok(states) => {
                        if let Some(all) = &mut all {
                            all.push((name, states));
                        }
                        continue;
                    }
                    Err(message) => RunError::State {
                        input: name,
                        message,
                    },
                },
            };
            on_error(error);
            all = None;
        }
        all
    }

    /// The states in the bytes of a file, or why they are refused.
    fn decode(&self, bytes: &[u8]) -> Result<States, String> {
        let damaged = || "the state is cut off or was changed".to_owned();
        let not_a_state = || "not a state (expected the output of `--partial`)".to_owned();
        let rest = bytes.strip_prefix(NAME).ok_or_else(not_a_state)?;
        let end = memchr::memchr(b'\n', &rest[..rest.len().min(20)]).ok_or_else(not_a_state)?;
        let version = String::from_utf8_lossy(&rest[..end]);
        if version != VERSION {
            return Err(format!("a state of version {version} (expected {VERSION})"));
        }
        let (content, sum) = bytes.split_last_chunk::<8>().ok_or_else(damaged)?;
        if checksum(content) != u64::from_le_bytes(*sum) {
            return Err(damaged());
        }
        let content = content.get(NAME.len() + end + 1..).ok_or_else(damaged)?;
        let mut bytes = Bytes(content);
        let query = bytes.text().ok_or_else(damaged)?;
        if query != self.text {
            return Err(format!(
                "a state of another query: `{}` (expected `{}`)",
                shown(&query),
                shown(&self.text)
            ));
        }
        let helpers = bytes.helpers().ok_or_else(damaged)?;
        if self.files() != helpers {
            return Err("a state of the same query with other helper files or tables".to_owned());
        }
        let states = bytes.states().ok_or_else(damaged)?;
        Ok(states)
    }
}

fn write_state(out: &mut dyn Write, state: &[u8], on_error: &mut dyn FnMut(RunError)) {
    if let Err(reason) = out.write_all(state).and_then(|()| out.flush()) {
        on_error(RunError::Write(reason));
    }
}

/// Runs a function on a large stack, and prints the errors that it reports. Returns whether there were none.
fn with_errors(
    errors: &mut (dyn Write + Send),
    run: impl FnOnce(&mut dyn FnMut(RunError)) -> Notes + Send,
) -> bool {
    on_large_stack(|| {
        let mut is_ok = true;
        let notes = run(&mut |error| {
            is_ok = false;
            let _ = writeln!(errors, "error: {error}");
        });
        notes.print(errors);
        is_ok
    })
    .unwrap_or(false)
}

impl Bytes<'_> {
    fn helpers(&mut self) -> Option<Vec<String>> {
        self.all(1, Bytes::text)
    }

    /// All states, up to the last byte.
    fn states(&mut self) -> Option<States> {
        let states = self.all(3, PackedScope::read)?;
        self.0.is_empty().then_some(states)
    }
}

/// The beginning of a long query.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The bytes of a state, or the beginning of another file.
fn read_state(mut reader: ByteSource) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let name = NAME.len() as u64;
    reader.by_ref().take(name).read_to_end(&mut bytes)?;
    if bytes == NAME {
        reader.take(STATE_BYTES_MAX).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// FNV-1a of 64 bits, which finds damage but no malice.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;
