//! Environments of finished calls, reused by later calls: each row calls the same helpers and blocks.

use crate::value::Value;
use crate::value::env::{Env, Frame};
use std::rc::Rc;

#[derive(Default)]
pub(crate) struct EnvPool {
    helpers: Vec<Rc<Env>>,
    blocks: Vec<Rc<Env>>,
}

/// Maximum number kept of each kind.
const POOL_MAX: usize = 16;

impl EnvPool {
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

    pub(crate) fn recycle_helper(&mut self, env: Rc<Env>) {
        recycle(&mut self.helpers, env);
    }

    pub(crate) fn recycle_block(&mut self, env: Rc<Env>) {
        recycle(&mut self.blocks, env);
    }
}

/// Keeps an environment without other references, and clears it.
fn recycle(pool: &mut Vec<Rc<Env>>, mut env: Rc<Env>) {
    if let Some(own) = Rc::get_mut(&mut env)
        && pool.len() < POOL_MAX
    {
        own.locals.get_mut().clear();
        own.parent = None;
        pool.push(env);
    }
}
