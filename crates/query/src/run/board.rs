//! Who reads and works on what, next. A file is read by turns: whoever has the turn fills a buffer of its own, gives the
//! turn back, and works on the buffer while another one reads (or unpacks) on. When the turn of a file is taken, the next
//! file is begun. What was made waits here until what stands before it was taken.

use super::Input;
use super::lines::{Failure, Lines, trim};
use super::output::Kept;
use super::work::Work;
use crate::run::Query;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// So many bytes may wait to be taken before only the part that is waited for is begun.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// After so many parts that could have been run here as well, threads only read.
const REDONE_MAX: usize = 3;

/// Lines, and what is left of the buffer behind them.
pub(super) struct Block {
    pub(super) buffer: Vec<u8>,
    pub(super) length: usize,
}

impl Block {
    pub(super) fn lines(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

/// What came of a part of the input.
pub(super) enum Made {
    /// The number of its lines, what was made of it, and its results.
    Done {
        lines: usize,
        work: Work,
        results: Kept,
        /// What it was made of, when that may have to be run again.
        block: Option<Block>,
    },
    /// To be run in order.
    Redo(Block),
    Failed(Failure),
    /// The file ended before.
    End,
}

impl Made {
    fn weight(&self) -> usize {
        match self {
            Made::Done {
                work,
                results,
                block,
                ..
            } => {
                let block = block.as_ref().map_or(0, |block| block.buffer.len());
                block + work.weight() + results.weight()
            }
            Made::Redo(block) => block.buffer.len(),
            Made::Failed(_) | Made::End => 0,
        }
    }
}

/// Where a file's reader is.
pub(super) enum Reader {
    Closed(Input),
    Open(Lines),
    /// Somebody reads.
    Taken,
    Ended,
}

struct File {
    reader: Reader,
    /// The part that will be read next.
    next: usize,
}

/// A turn: a file, its part's number, and the reader.
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
    made: BTreeMap<(usize, usize), Made>,
    /// Buffers that are used again.
    buffers: Vec<Vec<u8>>,
    waiting_bytes: usize,
    redone: usize,
    over: bool,
    /// How many wait for a turn: waking nobody costs a system call as well.
    idle: usize,
    /// A thread fell: what it had will never come.
    lost: bool,
}

pub(super) struct Board {
    state: Mutex<State>,
    /// Something can be read.
    turns: Condvar,
    /// Something can be taken.
    results: Condvar,
    /// So many files are open at once.
    threads: usize,
    chunk_bytes: usize,
}

impl Board {
    pub(super) fn new(query: &Query) -> Board {
        Board {
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

    /// These are the files, in order.
    pub(super) fn begin(&self, readers: impl Iterator<Item = Reader>) {
        let file = |reader| File { reader, next: 0 };
        self.state().files = readers.map(file).collect();
        self.turns.notify_all();
    }

    /// The next turn, when there is one; `None` when nothing is left to read.
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

    /// Gives the turn back. `after` is what is known to stand behind the part that was read.
    pub(super) fn give_back(
        &self,
        file: usize,
        reader: Reader,
        after: impl IntoIterator<Item = (usize, Made)>,
    ) {
        let mut state = self.state();
        let given_up = file < state.wanted.0;
        let ended = matches!(reader, Reader::Ended);
        // All may be over meanwhile.
        if let Some(file) = state.files.get_mut(file) {
            file.reader = if given_up { Reader::Ended } else { reader };
        }
        for (part, made) in after {
            state.keep(file, part, made);
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

    /// Keeps what was made of a part.
    pub(super) fn put(&self, file: usize, part: usize, made: Made) {
        let mut state = self.state();
        state.keep(file, part, made);
        if state.wanted == (file, part) {
            self.results.notify_one();
        }
    }

    /// Whether it is of no use that threads do more than read.
    pub(super) fn only_read(&self) -> bool {
        self.state().redone >= REDONE_MAX
    }

    /// What was made of a part, when it is there; `None` when it never will be.
    pub(super) fn take(&self, file: usize, part: usize) -> Option<Made> {
        let mut state = self.state();
        state.wanted = (file, part);
        if state.idle > 0 {
            self.turns.notify_all();
        }
        loop {
            if let Some(made) = state.made.remove(&(file, part)) {
                state.waiting_bytes -= made.weight();
                return Some(made);
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

    /// A buffer that was used before, or will be made.
    pub(super) fn buffer(&self) -> Vec<u8> {
        self.state().buffers.pop().unwrap_or_default()
    }

    /// Takes back a buffer that has been run.
    pub(super) fn recycle(&self, mut block: Block) {
        trim(&mut block.buffer, self.chunk_bytes);
        let mut state = self.state();
        if state.buffers.len() < self.threads * 2 {
            state.buffers.push(block.buffer);
        }
    }

    /// A part had to be run in order, though nothing was wrong in it; or it had not.
    pub(super) fn redone(&self, again: bool) {
        let mut state = self.state();
        state.redone = if again { state.redone + 1 } else { 0 };
    }

    /// The rest of a file is not wanted.
    pub(super) fn give_up(&self, file: usize) {
        let mut state = self.state();
        state.wanted = (file + 1, 0);
        if let Some(file) = state.files.get_mut(file)
            && !matches!(file.reader, Reader::Taken)
        {
            file.reader = Reader::Ended;
        }
        let later = state.made.split_off(&(file + 1, 0));
        state.made = later;
        state.waiting_bytes = state.made.values().map(Made::weight).sum();
        self.turns.notify_all();
    }

    /// Nothing more is wanted. Readers are dropped, but for one that somebody waits for.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.over = true;
        state.files.clear();
        state.made.clear();
        self.turns.notify_all();
    }

    /// Called by a thread that falls.
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

    fn keep(&mut self, file: usize, part: usize, made: Made) {
        if file >= self.wanted.0 && !self.over {
            self.waiting_bytes += made.weight();
            self.made.insert((file, part), made);
        }
    }
}
