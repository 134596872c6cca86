//! The evaluator: walks the tree of a [`Program`]. It owns all state of a run: globals, constants, the row, the scope
//! of the reducers. It reads no file and no clock.

mod assign;
pub(crate) mod block;
pub(crate) mod call;
mod env_pool;
mod eval;
mod library;

use crate::class::Class;
use crate::lookup::Tables;
use crate::memory::{Bounds, Spill};
use crate::names::M;
use crate::reducers::Evaluator;
use crate::reducers::groups::Place;
use crate::reducers::scope::Scope;
use crate::tree::Op;
use crate::tree::Program;
use crate::value::Value;
use crate::value::env::{Env, Frame};
use crate::value::exception::{Eval, error};
use crate::value::proc::Proc;
use block::Block;
use env_pool::EnvPool;
pub(crate) use library::{Library, Step};
use std::rc::Rc;

/// Maximum nesting of calls. Each takes some kilobytes of the stack, which [`crate::run`] provides.
const DEPTH_MAX: u32 = 10_000;

pub(crate) struct Vm {
    pub(crate) program: Rc<Program>,
    library: &'static Library,
    pub(crate) globals: Vec<Value>,
    pub(crate) instances: Vec<Value>,
    pub(crate) constants: Vec<Option<Value>>,
    /// `_`.
    pub(crate) row: Value,
    /// `$FILENAME`.
    pub(crate) file_name: Value,
    /// The number of rows that each `limit` has kept.
    limits: Vec<u64>,
    /// A `limit` that ends the run has kept its last row.
    pub(crate) has_enough: bool,
    /// The receiver of a builtin without an argument: the row, or a block's element.
    pub(crate) target: Value,
    /// The reducers of the stage or block that runs.
    pub(crate) scope: Scope,
    /// Reducers gather a part that is joined to others later.
    pub(crate) chunk: bool,
    /// `$~`.
    pub(crate) last_match: Value,
    /// Enumerators that walk endless sequences stop here.
    depth: u32,
    tags: u64,
    env_pool: EnvPool,
    pub(crate) bounds: Bounds,
    /// Temporary files for rows, unless results so far are printed.
    pub(crate) spill: Option<Spill>,
    /// The most bytes of groups of a part of the input. A part with more runs again in order, where files take the rest.
    pub(crate) part_bytes_max: u64,
    /// Where the row stands, if the stage is one `group_by` that may put it off.
    pub(crate) deferrable: Option<Place>,
    /// What `lookup` finds rows in.
    pub(crate) tables: Tables,
    ticks: u32,
    made_bytes: usize,
}

/// Number of calls between two checks of the limits.
const TICKS: u32 = 1024;

/// The limits are also checked after methods have made this number of bytes, not counting small values.
const LARGE_BYTES: usize = 1 << 20;
const SMALL_BYTES: usize = 4 << 10;

impl Vm {
    pub(crate) fn new(program: Rc<Program>, library: &'static Library) -> Vm {
        Vm {
            globals: vec![Value::Nil; program.globals.len()],
            instances: vec![Value::Nil; program.instances.len()],
            constants: vec![None; program.constants.len()],
            limits: vec![0; program.limits],
            has_enough: false,
            file_name: Value::Nil,
            program,
            library,
            row: Value::Nil,
            target: Value::Nil,
            scope: Scope::default(),
            chunk: false,
            last_match: Value::Nil,
            depth: 0,
            tags: 0,
            env_pool: EnvPool::default(),
            bounds: Bounds::default(),
            spill: None,
            part_bytes_max: u64::MAX,
            deferrable: None,
            tables: Tables::default(),
            ticks: 0,
            made_bytes: 0,
        }
    }

    /// Called for each row, block and element; checks the limits from time to time.
    #[inline]
    pub(crate) fn tick(&mut self) -> Eval<()> {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(TICKS) {
            return self.bounds.check(0);
        }
        Ok(())
    }

    /// Called before a method makes this number of bytes.
    #[inline]
    pub(crate) fn will_make(&self, bytes: usize) -> Eval<()> {
        if bytes > LARGE_BYTES {
            return self.bounds.check(bytes);
        }
        Ok(())
    }

    /// Called for the result of a method of this receiver.
    #[inline]
    pub(crate) fn made(&mut self, receiver: &Value, value: &Value) -> Eval<()> {
        let bytes = match value {
            Value::Str(text) => text.get().len(),
            Value::Array(list) => list.borrow().len() * size_of::<Value>(),
            _ => return Ok(()),
        };
        if bytes > SMALL_BYTES && !value.same(receiver) {
            self.made_bytes += bytes;
            if self.made_bytes > LARGE_BYTES {
                self.made_bytes = 0;
                return self.bounds.check(0);
            }
        }
        Ok(())
    }

    /// The environment of a stage, or of a helper file's top level.
    pub(crate) fn top(locals: usize) -> Rc<Env> {
        let frame = Frame {
            block: None,
            receiver: Value::Main,
            tag: 0,
        };
        Env::new(locals, None, Rc::new(frame))
    }

    /// A new number.
    pub(crate) fn tag(&mut self) -> u64 {
        self.tags += 1;
        self.tags
    }

    /// Runs something one level deeper.
    pub(crate) fn deeper<T>(&mut self, run: impl FnOnce(&mut Vm) -> Eval<T>) -> Eval<T> {
        if self.depth >= DEPTH_MAX {
            return Err(error(Class::SystemStackError, "stack level too deep"));
        }
        self.tick()?;
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }
}

impl Evaluator for Vm {
    fn operate(&mut self, op: Op, left: &Value, right: &Value) -> Eval {
        (self.library.operate)(self, op, left, right)
    }

    fn send_one(&mut self, receiver: &Value, method: M, argument: Value) -> Eval {
        self.send(receiver, method, &[argument], None)
    }

    fn call_two(&mut self, block: &Rc<Proc>, first: &Value, second: &Value) -> Eval {
        let block = Block::of(Rc::clone(block));
        self.call_block(&block, &[first.clone(), second.clone()])
    }

    fn spill(&self) -> Option<&Spill> {
        self.spill.as_ref()
    }
}
