//! Several threads on one input: files are cut into parts at line ends, threads run the part of the query that needs
//! nothing of other rows, and what they made is taken in the order of the input. A part in which anything goes wrong is
//! run again in its turn by the one that has what came before: so errors, and what was printed before them, are those
//! of one thread.

use super::input::Input;
use super::output::Printer;
use super::pipeline::{Pipeline, Stop};
use super::{Query, STACK};
use crate::plan::{self, parallel::Parallel};
use crate::reducers::portable::{PackedScope, Portable};
use crate::vm::Vm;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};

/// What a thread made of a part.
pub(super) enum Work {
    /// Nothing but what it printed.
    Printed,
    /// Rows for the next stage, with their lines within the part.
    Rows(Vec<(usize, Portable)>),
    Merge(PackedScope),
}

/// A part of an input, and where the answer goes.
struct Task {
    bytes: Vec<u8>,
    answer: Sender<Answer>,
}

struct Answer {
    bytes: Vec<u8>,
    /// Lines, what was made, what was printed; `None`: to be run in order.
    made: Option<(usize, Work, Vec<String>)>,
}

/// What comes next, in the order of the input.
enum Next {
    Part(Receiver<Answer>),
    /// The input cannot be read, or not further.
    Unreadable(io::Error),
}

/// What a thread prints, in the groups in which it would be written.
#[derive(Default)]
struct Groups(Vec<String>);

impl Write for Groups {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Cuts an input at line ends.
struct Parts {
    reader: Box<dyn Read>,
    rest: Vec<u8>,
    size: usize,
}

impl Parts {
    /// The next lines, of at least a part's size if there are so many; what is left at the end; then nothing.
    fn next(&mut self) -> (Option<Vec<u8>>, Option<io::Error>) {
        let mut bytes = std::mem::take(&mut self.rest);
        let mut searched = 0;
        loop {
            let before = bytes.len();
            let wanted = self.size.saturating_sub(before).max(self.size / 8 + 1);
            let read = self
                .reader
                .by_ref()
                .take(wanted as u64)
                .read_to_end(&mut bytes);
            let end = memchr::memrchr(b'\n', &bytes[searched..]).map(|at| searched + at + 1);
            match read {
                Err(reason) => {
                    bytes.truncate(end.unwrap_or(0));
                    return ((!bytes.is_empty()).then_some(bytes), Some(reason));
                }
                Ok(0) => return ((!bytes.is_empty()).then_some(bytes), None),
                Ok(_) => {}
            }
            if bytes.len() >= self.size
                && let Some(end) = end
            {
                self.rest = bytes.split_off(end);
                return (Some(bytes), None);
            }
            if end.is_none() {
                searched = bytes.len();
            }
        }
    }
}

impl Query {
    /// A thread: parts in, what it makes of them out.
    fn work(&self, tasks: &Mutex<Receiver<Task>>, parallel: Parallel) {
        let Ok(program) = self.program() else { return };
        let projection = plan::projection(&program);
        let program = Rc::new(program);
        let mut ready = true;
        let mut pipeline_of = |task: &[u8]| {
            let (mut groups, mut errors) = (Groups::default(), io::sink());
            let printer = Printer::new(&mut groups, self.options.format, self.options.write_bytes);
            let vm = Vm::new(Rc::clone(&program));
            let mut pipeline = Pipeline::new(vm, printer, &mut errors, projection.clone());
            ready = ready && pipeline.for_parts(parallel);
            let made = if ready {
                pipeline.part(task, parallel)
            } else {
                None
            };
            drop(pipeline);
            made.map(|(lines, work)| (lines, work, groups.0))
        };
        loop {
            let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Task { bytes, answer }) = task else {
                return;
            };
            let made = pipeline_of(&bytes);
            // Nobody waits any more when the run is over.
            let _ = answer.send(Answer { bytes, made });
        }
    }
}

impl Pipeline<'_> {
    /// Runs the inputs with the help of threads.
    pub(super) fn share(&mut self, inputs: Vec<Input>, query: &Query, parallel: Parallel) {
        let (tasks, taken) = mpsc::channel();
        let taken = Mutex::new(taken);
        std::thread::scope(|scope| {
            let taken = &taken;
            let mut threads = 0;
            let mut hand_out = |bytes: Vec<u8>| -> Next {
                let (answer, answered) = mpsc::channel();
                if threads < query.options.threads {
                    let thread = std::thread::Builder::new()
                        .name("query-part".to_owned())
                        .stack_size(STACK)
                        .spawn_scoped(scope, move || query.work(taken, parallel));
                    threads += usize::from(thread.is_ok());
                }
                let task = Task { bytes, answer };
                if threads == 0 {
                    let Task { bytes, answer } = task;
                    let _ = answer.send(Answer { bytes, made: None });
                } else {
                    let _ = tasks.send(task);
                }
                Next::Part(answered)
            };
            for input in inputs {
                let shared = if input.live {
                    self.input(input, false)
                } else {
                    self.share_one(input, query, parallel, &mut hand_out)
                };
                if let Err(Stop::Run) = shared {
                    break;
                }
            }
            // The threads end when there is nothing to come.
            drop(tasks);
        });
    }

    fn share_one(
        &mut self,
        input: Input,
        query: &Query,
        parallel: Parallel,
        hand_out: &mut dyn FnMut(Vec<u8>) -> Next,
    ) -> Result<(), Stop> {
        let name = input.name.clone();
        let reader = match input.open() {
            Ok(reader) => reader,
            Err(reason) => {
                self.unreadable(&name, &reason);
                return Ok(());
            }
        };
        let size = query.options.chunk_bytes.max(1);
        let mut parts = Parts {
            reader,
            rest: Vec::new(),
            // The first is run here, so that small inputs need no threads, and is short.
            size: size.min(128 * 1024),
        };
        let mut number = 0;
        let mut waiting = VecDeque::new();
        let mut more = true;
        let mut first = true;
        while more || !waiting.is_empty() {
            if more && waiting.len() < query.options.threads * 2 {
                let (part, failure) = parts.next();
                more = part.is_some() && failure.is_none();
                match part {
                    Some(bytes) if first => self.block(&name, &mut number, &bytes)?,
                    Some(bytes) => waiting.push_back(hand_out(bytes)),
                    None => {}
                }
                if let Some(reason) = failure {
                    waiting.push_back(Next::Unreadable(reason));
                }
                first = false;
                parts.size = size;
                continue;
            }
            match waiting.pop_front() {
                Some(Next::Part(answered)) => {
                    let Ok(answer) = answered.recv() else {
                        self.unreadable(&name, &io::Error::from(ErrorKind::OutOfMemory));
                        return Err(Stop::Run);
                    };
                    let taken = match answer.made {
                        Some((lines, work, groups)) => {
                            let taken = self.take(&name, number, work, parallel)?;
                            if taken {
                                self.write(&groups)?;
                                number += lines;
                            }
                            taken
                        }
                        None => false,
                    };
                    if !taken {
                        self.block(&name, &mut number, &answer.bytes)?;
                    }
                }
                Some(Next::Unreadable(reason)) => {
                    self.unreadable(&name, &reason);
                }
                None => {}
            }
        }
        Ok(())
    }
}
