//! Where locals live: one [`Env`] a stage, method call or block call, chained to the one around it. A loop reuses its
//! block's environment if no closure kept it.

use super::Value;
use super::proc::Proc;
use std::cell::RefCell;
use std::rc::Rc;

pub(crate) struct Env {
    pub(crate) locals: RefCell<Vec<Value>>,
    pub(crate) parent: Option<Rc<Env>>,
    pub(crate) frame: Rc<Frame>,
}

/// State shared by the blocks of a method.
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
    pub(crate) fn reset(&self, value: &Value) {
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
