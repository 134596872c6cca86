//! Distributes the input among threads. Threads take turns to read a file: the thread with the turn fills a buffer of its
//! own, returns the turn, and processes the buffer while another thread reads or decompresses the next one. While the turn
//! of one file is taken, the next file is started. Results wait here until all earlier ones were taken.

use super::Input;
use super::absent::Seen;
use super::lines::{Failure, Lines, trim};
use super::output::Results;
use super::work::Work;
use crate::run::Query;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of bytes of waiting results. Above it, only the part that is waited for is started.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// After this number of successive parts that had to run again in order, threads only read.
const REDONE_MAX: usize = 3;

/// Lines, in a buffer that may be longer.
pub(super) struct Block {
    pub(super) buffer: Vec<u8>,
    pub(super) length: usize,
}

impl Block {
    pub(super) fn lines(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

/// The result of a part of the input.
pub(super) enum PartResult {
    /// The number of its lines, the work done, and its results.
    Done {
        lines: usize,
        work: Work,
        results: Results,
        /// The constant keys that its rows have.
        seen: Seen,
        /// The lines, if they may have to run again.
        block: Option<Block>,
    },
    /// The part must run in order.
    Redo(Block),
    Failed(Failure),
    /// The file ended before this part.
    End,
}

impl PartResult {
    fn weight(&self) -> usize {
        match self {
            PartResult::Done {
                work,
                results,
                block,
                ..
            } => {
                let block = block.as_ref().map_or(0, |block| block.buffer.len());
                block + work.weight() + results.weight()
            }
            PartResult::Redo(block) => block.buffer.len(),
            PartResult::Failed(_) | PartResult::End => 0,
        }
    }
}

/// The state of a file's reader.
pub(super) enum Reader {
    Closed(Input),
    Open(Lines),
    /// A thread is reading.
    Taken,
    Ended,
}

struct File {
    reader: Reader,
    /// Number of the next part.
    next: usize,
}

/// The turn to read a part of a file.
pub(super) struct Turn {
    pub(super) file: usize,
    pub(super) part: usize,
    pub(super) reader: Reader,
}

#[derive(Default)]
struct State {
    files: Vec<File>,
    /// The part that is waited for.
    wanted: (usize, usize),
    results: BTreeMap<(usize, usize), PartResult>,
    /// Buffers for reuse.
    buffers: Vec<Vec<u8>>,
    waiting_bytes: usize,
    redone: usize,
    over: bool,
    /// Number of threads that wait for a turn. A notification costs a system call even if no thread waits.
    idle: usize,
    /// A thread panicked: its result will never arrive.
    lost: bool,
}

pub(super) struct Scheduler {
    state: Mutex<State>,
    /// Something can be read.
    turns: Condvar,
    /// Something can be taken.
    results: Condvar,
    /// Number of threads, and the maximum number of open files.
    threads: usize,
    chunk_bytes: usize,
}

impl Scheduler {
    pub(super) fn new(query: &Query) -> Scheduler {
        Scheduler {
            state: Mutex::default(),
            turns: Condvar::new(),
            results: Condvar::new(),
            threads: query.options.threads,
            chunk_bytes: query.options.chunk_bytes,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the files, in order.
    pub(super) fn start(&self, readers: impl Iterator<Item = Reader>) {
        let file = |reader| File { reader, next: 0 };
        self.state().files = readers.map(file).collect();
        self.turns.notify_all();
    }

    /// Waits for the next turn; `None` if nothing is left to read.
    pub(super) fn turn(&self) -> Option<Turn> {
        let mut state = self.state();
        loop {
            if state.over {
                return None;
            }
            if let Some(turn) = state.next_turn(self.threads) {
                return Some(turn);
            }
            let all = !state.files.is_empty()
                && state
                    .files
                    .iter()
                    .all(|file| matches!(file.reader, Reader::Ended));
            if all {
                return None;
            }
            state.idle += 1;
            state = self
                .turns
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Returns the turn. `after` holds the parts that are known to follow the part that was read.
    pub(super) fn return_turn(
        &self,
        file: usize,
        reader: Reader,
        after: impl IntoIterator<Item = (usize, PartResult)>,
    ) {
        let mut state = self.state();
        let given_up = file < state.wanted.0;
        let ended = matches!(reader, Reader::Ended);
        // The run may have ended meanwhile.
        if let Some(file) = state.files.get_mut(file) {
            file.reader = if given_up { Reader::Ended } else { reader };
        }
        for (part, result) in after {
            state.keep(file, part, result);
            if state.wanted == (file, part) {
                self.results.notify_one();
            }
        }
        if state.idle > 0 && (ended || given_up) {
            self.turns.notify_all();
        } else if state.idle > 0 {
            self.turns.notify_one();
        }
    }

    /// Keeps the result of a part.
    pub(super) fn put(&self, file: usize, part: usize, result: PartResult) {
        let mut state = self.state();
        state.keep(file, part, result);
        if state.wanted == (file, part) {
            self.results.notify_one();
        }
    }

    /// Whether threads should only read, because their work is not used.
    pub(super) fn only_read(&self) -> bool {
        self.state().redone >= REDONE_MAX
    }

    /// Waits for the result of a part; `None` if it will never arrive.
    pub(super) fn take(&self, file: usize, part: usize) -> Option<PartResult> {
        let mut state = self.state();
        state.wanted = (file, part);
        if state.idle > 0 {
            self.turns.notify_all();
        }
        loop {
            if let Some(result) = state.results.remove(&(file, part)) {
                state.waiting_bytes -= result.weight();
                return Some(result);
            }
            if state.lost {
                return None;
            }
            state = self
                .results
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A buffer for reuse, or an empty one.
    pub(super) fn buffer(&self) -> Vec<u8> {
        self.state().buffers.pop().unwrap_or_default()
    }

    /// Takes back the buffer of a part that is done.
    pub(super) fn recycle(&self, mut block: Block) {
        trim(&mut block.buffer, self.chunk_bytes);
        let mut state = self.state();
        if state.buffers.len() < self.threads * 2 {
            state.buffers.push(block.buffer);
        }
    }

    /// Notes whether a part without errors had to run again in order.
    pub(super) fn redone(&self, again: bool) {
        let mut state = self.state();
        state.redone = if again { state.redone + 1 } else { 0 };
    }

    /// Drops the rest of a file.
    pub(super) fn give_up(&self, file: usize) {
        let mut state = self.state();
        state.wanted = (file + 1, 0);
        if let Some(file) = state.files.get_mut(file)
            && !matches!(file.reader, Reader::Taken)
        {
            file.reader = Reader::Ended;
        }
        let later = state.results.split_off(&(file + 1, 0));
        state.results = later;
        state.waiting_bytes = state.results.values().map(PartResult::weight).sum();
        self.turns.notify_all();
    }

    /// Ends the run. Drops all readers except those in use.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.over = true;
        state.files.clear();
        state.results.clear();
        self.turns.notify_all();
    }

    /// Called when a thread panics.
    pub(super) fn lose(&self) {
        self.state().lost = true;
        self.results.notify_all();
    }
}

impl State {
    fn next_turn(&mut self, ahead: usize) -> Option<Turn> {
        let wanted = self.wanted;
        let full = self.waiting_bytes >= WAITING_BYTES_MAX;
        let files = self.files.iter_mut().enumerate();
        for (at, file) in files.skip(wanted.0).take(ahead) {
            if matches!(file.reader, Reader::Taken | Reader::Ended)
                || full && (at, file.next) != wanted
            {
                continue;
            }
            let part = file.next;
            file.next += 1;
            return Some(Turn {
                file: at,
                part,
                reader: std::mem::replace(&mut file.reader, Reader::Taken),
            });
        }
        None
    }

    fn keep(&mut self, file: usize, part: usize, result: PartResult) {
        if file >= self.wanted.0 && !self.over {
            self.waiting_bytes += result.weight();
            self.results.insert((file, part), result);
        }
    }
}
