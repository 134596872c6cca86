//! Where locals live: one [`Env`] a stage, method call or block call, chained to the one around it. A loop reuses its
//! block's when nobody kept it.

use crate::value::Value;
use crate::value::proc::Proc;
use std::cell::RefCell;
use std::rc::Rc;

pub(crate) struct Env {
    pub(crate) locals: RefCell<Vec<Value>>,
    pub(crate) parent: Option<Rc<Env>>,
    pub(crate) frame: Rc<Frame>,
}

/// What the blocks of a method have in common.
pub(crate) struct Frame {
    pub(crate) block: Option<Rc<Proc>>,
    pub(crate) receiver: Value,
    /// What `return` leaves: a method's call, a lambda's, or 0 in a stage.
    pub(crate) tag: u64,
}

impl Env {
    pub(crate) fn new(locals: usize, parent: Option<Rc<Env>>, frame: Rc<Frame>) -> Rc<Env> {
        Rc::new(Env {
            locals: RefCell::new(vec![Value::Nil; locals]),
            parent,
            frame,
        })
    }

    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Value {
        self.locals.borrow()[slot].clone()
    }

    #[inline]
    pub(crate) fn set(&self, slot: usize, value: Value) {
        self.locals.borrow_mut()[slot] = value;
    }

    /// The environment `depth` blocks further out.
    pub(crate) fn outer(&self, depth: usize) -> &Env {
        let mut env = self;
        for _ in 0..depth {
            match &env.parent {
                Some(parent) => env = parent,
                None => break,
            }
        }
        env
    }

    /// As for a new call: the first local is this, the others nothing.
    pub(crate) fn begin(&self, value: &Value) {
        let mut locals = self.locals.borrow_mut();
        if let Some((first, others)) = locals.split_first_mut() {
            first.clone_from(value);
            others.fill(Value::Nil);
        }
    }

    pub(crate) fn clear(&self) {
        for local in self.locals.borrow_mut().iter_mut() {
            *local = Value::Nil;
        }
    }
}

/// Environments of calls that are over, for the next: rows call the same helpers and blocks again and again.
#[derive(Default)]
pub(crate) struct Spare {
    helpers: Vec<Rc<Env>>,
    blocks: Vec<Rc<Env>>,
}

/// So many are kept of each.
const SPARE_MAX: usize = 16;

impl Spare {
    /// For a helper's call.
    pub(crate) fn helper(&mut self, locals: usize, frame: Frame) -> Rc<Env> {
        if let Some(mut env) = self.helpers.pop()
            && let Some(own) = Rc::get_mut(&mut env)
        {
            own.locals.get_mut().resize(locals, Value::Nil);
            match Rc::get_mut(&mut own.frame) {
                Some(over) => *over = frame,
                None => own.frame = Rc::new(frame),
            }
            return env;
        }
        Env::new(locals, None, Rc::new(frame))
    }

    /// For a block's call.
    pub(crate) fn block(&mut self, locals: usize, outer: &Rc<Env>) -> Rc<Env> {
        let parent = Some(Rc::clone(outer));
        let frame = Rc::clone(&outer.frame);
        if let Some(mut env) = self.blocks.pop()
            && let Some(own) = Rc::get_mut(&mut env)
        {
            own.locals.get_mut().resize(locals, Value::Nil);
            own.parent = parent;
            own.frame = frame;
            return env;
        }
        Env::new(locals, parent, frame)
    }

    pub(crate) fn helper_over(&mut self, env: Rc<Env>) {
        keep(&mut self.helpers, env);
    }

    pub(crate) fn block_over(&mut self, env: Rc<Env>) {
        keep(&mut self.blocks, env);
    }
}

/// Keeps an environment that nothing has kept, without what it held.
fn keep(spare: &mut Vec<Rc<Env>>, mut env: Rc<Env>) {
    if let Some(own) = Rc::get_mut(&mut env)
        && spare.len() < SPARE_MAX
    {
        own.locals.get_mut().clear();
        own.parent = None;
        spare.push(env);
    }
}
