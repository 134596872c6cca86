//! Feeds the inputs to the pipeline: in order on this thread, or the start on this thread and the rest on several.

use super::input::Input;
use super::lines::{Lines, trim};
use super::pipeline::{Pipeline, Stop};
use super::{Options, Query};
use crate::plan::parallel::Parallel;

/// Size of a block on one thread, in bytes: small enough to stay in the cache.
const BLOCK_BYTES: usize = 256 << 10;

/// Smaller inputs run on one thread.
const SMALL_BYTES: usize = 128 << 10;

impl Pipeline<'_> {
    pub(super) fn feed(
        &mut self,
        inputs: Vec<Input>,
        query: &Query,
        parallel: Option<Parallel>,
    ) -> Result<(), Stop> {
        if query.options.lax {
            for input in inputs {
                self.lax(input, query)?;
            }
            return Ok(());
        }
        let Some(parallel) = parallel else {
            return self.in_order(inputs, query);
        };
        let mut inputs = inputs.into_iter();
        let (mut buffer, mut small) = (Vec::new(), SMALL_BYTES);
        let size = query.options.chunk_bytes.min(SMALL_BYTES);
        while let Some(input) = inputs.next() {
            let name = input.name.clone();
            let Some(mut lines) = self.open(input, query) else {
                continue;
            };
            let mut number = 0;
            loop {
                let more = self.some(&mut lines, &name, &mut number, &mut buffer, size);
                let Some(length) = go_on(&more)? else { break };
                small = small.saturating_sub(length);
                // Parts so small are for tests.
                if small == 0 || size < SMALL_BYTES {
                    let inputs: Vec<Input> = inputs.by_ref().collect();
                    if inputs.is_empty() && lines.ended() {
                        return Ok(());
                    }
                    return self.share(lines, &name, number, inputs, query, parallel);
                }
            }
        }
        Ok(())
    }

    /// Runs all inputs on this thread.
    pub(super) fn in_order(&mut self, inputs: Vec<Input>, query: &Query) -> Result<(), Stop> {
        for input in inputs {
            let name = input.name.clone();
            if let Some(lines) = self.open(input, query) {
                self.rest(lines, &name, 0, &query.options)?;
            }
        }
        Ok(())
    }

    /// Runs the rest of a file on this thread, after `number` lines.
    pub(super) fn rest(
        &mut self,
        mut lines: Lines,
        name: &str,
        mut number: usize,
        options: &Options,
    ) -> Result<(), Stop> {
        let mut buffer = Vec::new();
        loop {
            let more = self.some(&mut lines, name, &mut number, &mut buffer, BLOCK_BYTES);
            self.refresh(options);
            if matches!(more, Ok(0)) && !lines.ended() {
                continue;
            }
            if go_on(&more)?.is_none() {
                return Ok(());
            }
            trim(&mut buffer, BLOCK_BYTES);
        }
    }

    fn open(&mut self, input: Input, query: &Query) -> Option<Lines> {
        let name = input.name.clone();
        self.start_file(&name);
        match Lines::open(input, query.options.line_bytes_max) {
            Ok(lines) => Some(lines.until(query.options.interrupt.clone())),
            Err(failure) => {
                self.given_up(&name, 0, failure);
                None
            }
        }
    }

    /// Runs some lines. Returns their size in bytes.
    fn some(
        &mut self,
        lines: &mut Lines,
        name: &str,
        number: &mut usize,
        buffer: &mut Vec<u8>,
        size: usize,
    ) -> Result<usize, Stop> {
        let (length, failure) = lines.next(buffer, size);
        self.block(name, number, &buffer[..length])?;
        if lines.live() {
            self.show()?;
        }
        match failure {
            Some(failure) => Err(self.given_up(name, *number, failure)),
            None => Ok(length),
        }
    }
}

/// The number of bytes; `None` at the end of a file or after an error in it; an error at the end of the run.
fn go_on(more: &Result<usize, Stop>) -> Result<Option<usize>, Stop> {
    match more {
        Ok(0) | Err(Stop::File) => Ok(None),
        Ok(length) => Ok(Some(*length)),
        Err(Stop::Run) => Err(Stop::Run),
    }
}
