//! Several threads on the input: they run the part of the query that does not depend on other rows on blocks of lines, and
//! their results are taken in the order of the input. A block with an error runs again in order, on the thread that has the
//! state of all earlier rows, so that errors and the results before them are those of a run on one thread.

use super::input::Input;
use super::lines::{Failure, Lines, trim};
use super::output::{Form, Output};
use super::pipeline::{Pipeline, Stop};
use super::scheduler::{Block, PartResult, Reader, Scheduler, Turn};
use super::work::Work;
use super::{Query, STACK};
use crate::error::RunError;
use crate::json::records::Header;
use crate::plan::{self, parallel::Parallel};
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;

/// Notifies the scheduler if its thread panics.
struct PanicNotifier<'a>(&'a Scheduler);

impl Drop for PanicNotifier<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lose();
        }
    }
}

/// Reads one part and returns the turn.
fn read(query: &Query, scheduler: &Scheduler, turn: Turn, buffer: &mut Vec<u8>) -> usize {
    let Turn { file, part, reader } = turn;
    let opened = match reader {
        Reader::Closed(input) => Lines::open(input, query.options.line_bytes_max)
            .map(|lines| lines.until(query.options.interrupt.clone())),
        Reader::Open(lines) => Ok(lines),
        Reader::Taken | Reader::Ended => return 0,
    };
    let mut lines = match opened {
        Ok(lines) => lines,
        Err(failure) => {
            scheduler.return_turn(file, Reader::Ended, [(part, PartResult::Failed(failure))]);
            return 0;
        }
    };
    let (length, failure) = lines.next(buffer, query.options.chunk_bytes);
    let behind = part + usize::from(length > 0);
    if lines.ended() {
        let last = failure.map_or(PartResult::End, PartResult::Failed);
        scheduler.return_turn(file, Reader::Ended, [(behind, last)]);
    } else {
        scheduler.return_turn(file, Reader::Open(lines), []);
    }
    length
}

impl Query {
    /// Processes parts until none are left.
    fn work(
        &self,
        scheduler: &Scheduler,
        names: &[(String, bool)],
        parallel: Parallel,
        (form, header): &(Form, Header),
    ) {
        let _notifier = PanicNotifier(scheduler);
        let program = self.program().ok().map(Rc::new);
        let projection = program.as_deref().map(plan::projection);
        let mut buffer = Vec::new();
        let mut reader = None;
        loop {
            // A part with an error runs again, and reports it then.
            let mut on_error = |_| {};
            let output = Output::buffered(*form, header.clone());
            let mut pipeline = match (&program, &projection) {
                (Some(program), Some(projection)) => {
                    let mut vm = self.vm(Rc::clone(program));
                    if let Some(spill) = &self.options.spill {
                        vm.part_bytes_max = spill.bytes_max / self.options.threads.max(1) as u64;
                    }
                    let mut pipeline =
                        Pipeline::new(vm, output, &mut on_error, projection.clone(), reader.take());
                    reader = Some(Rc::clone(&pipeline.reader));
                    pipeline.for_parts(parallel).then_some(pipeline)
                }
                _ => None,
            };
            loop {
                let Some(turn) = scheduler.turn() else { return };
                let (file, part) = (turn.file, turn.part);
                if buffer.is_empty() {
                    buffer = scheduler.buffer();
                }
                let length = read(self, scheduler, turn, &mut buffer);
                if length == 0 {
                    continue;
                }
                let result = match &mut pipeline {
                    Some(pipeline) if !scheduler.only_read() => {
                        pipeline.start_file(&names[file].0);
                        pipeline.part(&buffer[..length], parallel)
                    }
                    _ => None,
                };
                let Some((lines, work, results, seen)) = result else {
                    let buffer = std::mem::take(&mut buffer);
                    scheduler.put(file, part, PartResult::Redo(Block { buffer, length }));
                    // The pipeline may be in the middle of a row.
                    break;
                };
                let block = match work {
                    Work::Merge(_) => Some(Block {
                        buffer: std::mem::take(&mut buffer),
                        length,
                    }),
                    _ => None,
                };
                let done = PartResult::Done {
                    lines,
                    work,
                    results,
                    seen,
                    block,
                };
                scheduler.put(file, part, done);
                trim(&mut buffer, self.options.chunk_bytes);
            }
        }
    }

    /// Starts the threads. Returns how many could be started.
    fn start(
        &self,
        scheduler: &Arc<Scheduler>,
        names: &Arc<[(String, bool)]>,
        parallel: Parallel,
        table: &(Form, Header),
    ) -> usize {
        (0..self.options.threads)
            .map_while(|_| {
                let (query, scheduler, names) =
                    (self.clone(), Arc::clone(scheduler), Arc::clone(names));
                let table = table.clone();
                // The thread is not joined: a reader without data may block it after the end of the run.
                std::thread::Builder::new()
                    .name("query-part".to_owned())
                    .stack_size(STACK)
                    .spawn(move || query.work(&scheduler, &names, parallel, &table))
                    .ok()
            })
            .count()
    }
}

impl Pipeline<'_> {
    /// Runs the rest of the inputs on several threads: `lines` of the first, after the `number` lines that were run.
    pub(super) fn share(
        &mut self,
        lines: Lines,
        name: &str,
        number: usize,
        inputs: Vec<Input>,
        query: &Query,
        parallel: Parallel,
    ) -> Result<(), Stop> {
        let scheduler = Arc::new(Scheduler::new(query));
        let names: Arc<[(String, bool)]> = std::iter::once((name.to_owned(), lines.live()))
            .chain(inputs.iter().map(|input| (input.name.clone(), input.live)))
            .collect();
        // Once there is a header, or there are records without one, the threads print records.
        let parallel = match parallel {
            Parallel::Rows(at) if at == self.stages.len() && self.output.header.is_started => {
                Parallel::Print
            }
            other => other,
        };
        let table = (self.output.form(), self.output.header.clone());
        if query.start(&scheduler, &names, parallel, &table) == 0 {
            self.rest(lines, name, number, &query.options)?;
            return self.in_order(inputs, query);
        }
        scheduler.start(
            std::iter::once(Reader::Open(lines)).chain(inputs.into_iter().map(Reader::Closed)),
        );
        let mut number = number;
        let mut result = Ok(());
        for (file, (name, live)) in names.iter().enumerate() {
            match self.take_file(&scheduler, file, name, *live, number, parallel) {
                Ok(()) => {}
                Err(Stop::File) => scheduler.give_up(file),
                stop => {
                    result = stop;
                    break;
                }
            }
            number = 0;
        }
        scheduler.close();
        result
    }

    fn take_file(
        &mut self,
        scheduler: &Scheduler,
        file: usize,
        name: &str,
        live: bool,
        mut number: usize,
        parallel: Parallel,
    ) -> Result<(), Stop> {
        self.start_file(name);
        for part in 0.. {
            if live && part > 0 {
                self.show()?;
            }
            match scheduler.take(file, part) {
                Some(PartResult::Done {
                    lines,
                    work,
                    results,
                    seen,
                    block,
                }) => {
                    let taken = self.take(name, number, work, parallel);
                    if !matches!(taken, Ok(false)) {
                        self.add_seen(&seen);
                    }
                    let taken = taken?;
                    if taken {
                        self.write(results)?;
                        number += lines;
                    } else if let Some(block) = &block {
                        self.block(name, &mut number, block.lines())?;
                    }
                    scheduler.redone(!taken);
                    if let Some(block) = block {
                        scheduler.recycle(block);
                    }
                }
                Some(PartResult::Redo(block)) => {
                    self.block(name, &mut number, block.lines())?;
                    scheduler.redone(true);
                    scheduler.recycle(block);
                }
                Some(PartResult::Failed(failure)) => {
                    return Err(self.given_up(name, number, failure));
                }
                Some(PartResult::End) => break,
                None => {
                    self.unreadable(name, ErrorKind::OutOfMemory.into());
                    return Err(Stop::Run);
                }
            }
        }
        Ok(())
    }

    /// Reports why an input is not read further.
    pub(super) fn given_up(&mut self, name: &str, number: usize, failure: Failure) -> Stop {
        match failure {
            Failure::Unreadable(reason) => self.unreadable(name, reason),
            Failure::LineTooLong(bytes_max) => {
                self.fail(RunError::LineTooLong {
                    input: name.to_owned(),
                    line: number + 1,
                    bytes_max,
                });
                Stop::File
            }
        }
    }
}
