//! Blocks: the functions that methods call, and how values are assigned to their parameters.

use super::Vm;
use crate::class::Class;
use crate::names::M;
use crate::tree::{BlockNode, Code, Parameters};
use crate::value::Value;
use crate::value::env::{Env, Frame};
use crate::value::exception::{Eval, Flow, argument_error, error, type_error, wrong_arguments};
use crate::value::inspect::inspect;
use crate::value::proc::{Kind, Proc};
use crate::value::table::Table;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// A block in Rust, called for each element.
pub(crate) type Native<'a> = &'a mut dyn FnMut(&mut Vm, &[Value]) -> Eval;

/// The block of a call.
pub(crate) enum Block<'a> {
    /// Written at the call.
    Written(Closure<'a>, OnceCell<Rc<Proc>>, LastEnv),
    Proc(Rc<Proc>, LastEnv),
    Native(RefCell<Native<'a>>),
}

/// The code of a block, with the variables that it sees and the target of a `break` in it.
#[derive(Clone, Copy)]
pub(crate) struct Closure<'a> {
    code: &'a Rc<Code>,
    outer: &'a Rc<Env>,
    tag: u64,
}

/// The environment of a block's last call.
type LastEnv = RefCell<Option<Rc<Env>>>;

impl<'a> Block<'a> {
    pub(crate) fn of(proc: Rc<Proc>) -> Block<'a> {
        Block::Proc(proc, RefCell::new(None))
    }

    pub(crate) fn native(run: Native<'a>) -> Block<'a> {
        Block::Native(RefCell::new(run))
    }

    /// The number of its parameters, as far as it decides which values it receives.
    pub(crate) fn parameters(&self) -> Option<&Parameters> {
        match self {
            Block::Written(closure, ..) => Some(&closure.code.parameters),
            Block::Proc(proc, _) => match &proc.kind {
                Kind::Code(code, _) => Some(&code.parameters),
                _ => None,
            },
            Block::Native(_) => None,
        }
    }

    /// Its code, unless it is a lambda's.
    fn closure(&self) -> Option<(Closure<'_>, &LastEnv)> {
        match self {
            Block::Written(closure, _, last) => Some((*closure, last)),
            Block::Proc(proc, last) => match &proc.kind {
                Kind::Code(code, outer) if !proc.lambda => {
                    let tag = proc.tag;
                    Some((Closure { code, outer, tag }, last))
                }
                _ => None,
            },
            Block::Native(_) => None,
        }
    }
}

impl Vm {
    /// Runs a call with its block; a `break` in the block ends the call.
    pub(crate) fn with_block(
        &mut self,
        block: Option<&BlockNode>,
        env: &Rc<Env>,
        run: impl FnOnce(&mut Vm, Option<&Block<'_>>) -> Eval,
    ) -> Eval {
        let proc = match block {
            None => return run(self, None),
            Some(BlockNode::Code(code)) => {
                let tag = self.tag();
                let closure = Closure {
                    code,
                    outer: env,
                    tag,
                };
                let block = Block::Written(closure, OnceCell::new(), LastEnv::default());
                let result = run(self, Some(&block));
                if let Block::Written(_, _, last) = block
                    && let Some(env) = last.into_inner()
                {
                    self.env_pool.recycle_block(env);
                }
                return match result {
                    Err(flow) => match *flow {
                        Flow::Break(to, value) if to == tag => Ok(value),
                        other => Err(Box::new(other)),
                    },
                    done => done,
                };
            }
            Some(BlockNode::Symbol(method)) => Rc::new(Proc {
                kind: Kind::Symbol(*method),
                lambda: true,
                tag: 0,
            }),
            Some(BlockNode::Passed(node)) => {
                let value = self.eval(node, env)?;
                match Self::proc_of(&value)? {
                    Some(proc) => proc,
                    None => return run(self, None),
                }
            }
        };
        let block = Block::of(proc);
        run(self, Some(&block))
    }

    /// `&value`; nil is no block.
    pub(crate) fn proc_of(value: &Value) -> Eval<Option<Rc<Proc>>> {
        Ok(Some(match value {
            Value::Nil => return Ok(None),
            Value::Proc(proc) => Rc::clone(proc),
            Value::Symbol(name) => {
                let method = M::find(&name.name()).ok_or_else(|| {
                    error(
                        Class::NoMethodError,
                        format!("undefined method '{}'", name.name()),
                    )
                })?;
                Rc::new(Proc {
                    kind: Kind::Symbol(method),
                    lambda: true,
                    tag: 0,
                })
            }
            Value::Hash(_) => Rc::new(Proc {
                kind: Kind::Lookup(value.clone()),
                lambda: true,
                tag: 0,
            }),
            other => {
                return Err(type_error(format!(
                    "wrong argument type {} (expected Proc)",
                    Class::of(other).name()
                )));
            }
        }))
    }

    pub(crate) fn make_lambda(&mut self, code: &Rc<Code>, env: &Rc<Env>) -> Value {
        let tag = self.tag();
        Value::Proc(Rc::new(Proc {
            kind: Kind::Code(Rc::clone(code), Rc::clone(env)),
            lambda: true,
            tag,
        }))
    }

    /// A block as a value, for `&block` parameters and `proc { }`.
    pub(crate) fn block_value(block: Option<&Block<'_>>) -> Option<Rc<Proc>> {
        match block {
            Some(Block::Proc(proc, _)) => Some(Rc::clone(proc)),
            Some(Block::Written(closure, proc, _)) => {
                let Closure { code, outer, tag } = *closure;
                let proc = proc.get_or_init(|| {
                    let kind = Kind::Code(Rc::clone(code), Rc::clone(outer));
                    let lambda = false;
                    Rc::new(Proc { kind, lambda, tag })
                });
                Some(Rc::clone(proc))
            }
            _ => None,
        }
    }

    /// Calls a block with one value.
    #[inline]
    pub(crate) fn call1(&mut self, block: &Block<'_>, value: Value) -> Eval {
        self.call_block(block, &[value])
    }

    /// Calls a block with a pair, which is made an Array only if the block wants it as one.
    pub(crate) fn call_pair(&mut self, block: &Block<'_>, a: Value, b: Value) -> Eval {
        match block.parameters() {
            Some(parameters) if parameters.simple && parameters.required.len() >= 2 => {
                self.call_block(block, &[a, b])
            }
            _ => self.call_block(block, &[Value::pair(a, b)]),
        }
    }

    pub(crate) fn call_block(&mut self, block: &Block<'_>, args: &[Value]) -> Eval {
        self.call_block_with(block, args, false)
    }

    /// Calls a block; with `keywords`, the last argument is a Hash of keywords.
    pub(crate) fn call_block_with(
        &mut self,
        block: &Block<'_>,
        args: &[Value],
        keywords: bool,
    ) -> Eval {
        if let Some((Closure { code, outer, tag }, last)) = block.closure() {
            // The environment of the last call, if there is no other reference.
            let env = match last.borrow_mut().take() {
                Some(env) if Rc::strong_count(&env) == 1 => {
                    env.clear();
                    env
                }
                _ => self.env_pool.block(code.locals, outer),
            };
            let result = self.run_block(code, &env, args, keywords, None, tag);
            *last.borrow_mut() = Some(env);
            return result;
        }
        match block {
            Block::Native(run) => (run.borrow_mut())(self, args),
            Block::Proc(proc, _) => self.call_proc_with(proc, args, keywords, None),
            // It has a closure.
            Block::Written(..) => Ok(Value::Nil),
        }
    }

    /// Calls a block with the value of each item, which is the target meanwhile (and after the last item). `each` receives
    /// the item and the block's result.
    pub(crate) fn call_each<T>(
        &mut self,
        block: &Block<'_>,
        things: impl IntoIterator<Item = T>,
        value: impl Fn(&T) -> &Value,
        mut each: impl FnMut(T, Value) -> Eval<()>,
    ) -> Eval<()> {
        let closure = block.closure();
        let Some((Closure { code, outer, tag }, last)) =
            closure.filter(|(closure, _)| closure.code.parameters.takes_one())
        else {
            for thing in things {
                self.target.clone_from(value(&thing));
                let result = self.call_block(block, std::slice::from_ref(value(&thing)))?;
                each(thing, result)?;
            }
            return Ok(());
        };
        let mut env = last.borrow_mut().take();
        for thing in things {
            let given = value(&thing);
            self.target.clone_from(given);
            let env = match &mut env {
                Some(env) if Rc::strong_count(env) == 1 => env,
                place => place.insert(self.env_pool.block(code.locals, outer)),
            };
            env.reset(given);
            let result = self.run_body(code, env, tag)?;
            each(thing, result)?;
        }
        *last.borrow_mut() = env;
        Ok(())
    }

    fn run_block(
        &mut self,
        code: &Rc<Code>,
        env: &Rc<Env>,
        args: &[Value],
        keywords: bool,
        block: Option<Rc<Proc>>,
        tag: u64,
    ) -> Eval {
        if code.parameters.simple
            && code.parameters.required.len() == args.len()
            && (args.len() != 1 || !code.parameters.trailing_comma)
        {
            let mut locals = env.locals.borrow_mut();
            for (local, value) in locals.iter_mut().zip(args) {
                *local = value.clone();
            }
        } else if !code.parameters.is_empty() {
            self.bind_block(&code.parameters, args, keywords, block, env)?;
        }
        self.run_body(code, env, tag)
    }

    #[inline]
    fn run_body(&mut self, code: &Code, env: &Rc<Env>, tag: u64) -> Eval {
        loop {
            return match self.deeper(|vm| vm.eval(&code.body, env)) {
                Err(flow) => match *flow {
                    Flow::Next(value) => Ok(value),
                    Flow::Break(0, value) => Err(Box::new(Flow::Break(tag, value))),
                    Flow::Redo => continue,
                    other => Err(Box::new(other)),
                },
                done => done,
            };
        }
    }

    /// Calls a proc or lambda as a value.
    pub(crate) fn call_proc(&mut self, proc: &Rc<Proc>, args: &[Value]) -> Eval {
        self.call_proc_with(proc, args, false, None)
    }

    /// Calls a proc or lambda with a block; with `keywords`, the last argument is a Hash of keywords.
    pub(crate) fn call_proc_with(
        &mut self,
        proc: &Rc<Proc>,
        args: &[Value],
        keywords: bool,
        block: Option<Rc<Proc>>,
    ) -> Eval {
        match &proc.kind {
            Kind::Code(code, outer) if proc.lambda => {
                let tag = self.tag();
                let frame = Frame {
                    block: outer.frame.block.clone(),
                    receiver: outer.frame.receiver.clone(),
                    tag,
                };
                let env = Env::new(code.locals, Some(Rc::clone(outer)), Rc::new(frame));
                self.bind(&code.parameters, args, keywords, block, &env)?;
                match self.deeper(|vm| vm.eval(&code.body, &env)) {
                    Err(flow) => match *flow {
                        Flow::Return(to, value) if to == tag => Ok(value),
                        Flow::Next(value) | Flow::Break(0, value) => Ok(value),
                        other => Err(Box::new(other)),
                    },
                    done => done,
                }
            }
            Kind::Code(code, outer) => {
                let env = Env::new(code.locals, Some(Rc::clone(outer)), Rc::clone(&outer.frame));
                self.run_block(code, &env, args, keywords, block, proc.tag)
            }
            Kind::Symbol(method) => {
                let (receiver, rest) = args
                    .split_first()
                    .ok_or_else(|| argument_error("no receiver given"))?;
                let block = block.map(Block::of);
                self.send_with(receiver, *method, rest, keywords, block.as_ref())
            }
            Kind::Method(receiver, method) => {
                let block = block.map(Block::of);
                self.send_with(receiver, *method, args, keywords, block.as_ref())
            }
            Kind::Helper(helper) => self.call_helper(*helper, Value::Main, args, keywords, block),
            Kind::Lookup(table) => self.send(table, M::OpIndex, args, None),
        }
    }

    /// Assigns a block's parameters: missing values are nil, surplus ones are dropped, a single Array is spread.
    fn bind_block(
        &mut self,
        parameters: &Parameters,
        args: &[Value],
        keywords_given: bool,
        block: Option<Rc<Proc>>,
        env: &Rc<Env>,
    ) -> Eval<()> {
        let mut args = args;
        let mut keywords = None;
        if let Some((Value::Hash(table), before)) = args.split_last()
            && keywords_given
            && parameters.takes_keywords()
        {
            keywords = Some(Rc::clone(table));
            args = before;
        }
        let spread;
        if let [Value::Array(list)] = args
            && keywords.is_none()
            && parameters.spreads()
        {
            spread = list.borrow().clone();
            args = &spread;
        }
        let mut args = args.to_vec();
        if let Some(most) = parameters.most() {
            args.truncate(most);
        }
        while args.len() < parameters.least() {
            args.push(Value::Nil);
        }
        self.bind_all(parameters, &args, keywords, block, env)
    }

    /// Assigns the parameters of a method or lambda; the number of values must be right.
    pub(crate) fn bind(
        &mut self,
        parameters: &Parameters,
        args: &[Value],
        keywords_given: bool,
        block: Option<Rc<Proc>>,
        env: &Rc<Env>,
    ) -> Eval<()> {
        if parameters.simple && !keywords_given && args.len() == parameters.required.len() {
            let mut locals = env.locals.borrow_mut();
            for (local, value) in locals.iter_mut().zip(args) {
                *local = value.clone();
            }
            return Ok(());
        }
        let mut args = args;
        let mut keywords = None;
        if let Some((Value::Hash(table), before)) = args.split_last()
            && keywords_given
        {
            if parameters.takes_keywords() {
                keywords = Some(Rc::clone(table));
                args = before;
            } else if table.len() == 0 {
                args = before;
            }
        }
        let most = parameters.most();
        if args.len() < parameters.least() || most.is_some_and(|most| args.len() > most) {
            return Err(wrong_arguments(args.len(), parameters.least(), most));
        }
        self.bind_all(parameters, args, keywords, block, env)
    }

    fn bind_all(
        &mut self,
        parameters: &Parameters,
        args: &[Value],
        keywords: Option<Rc<Table>>,
        block: Option<Rc<Proc>>,
        env: &Rc<Env>,
    ) -> Eval<()> {
        self.bind_positional(parameters, args, env)?;
        self.bind_keywords(parameters, keywords, env)?;
        if let Some(slot) = parameters.block {
            env.set(slot, block.map_or(Value::Nil, Value::Proc));
        }
        Ok(())
    }

    /// There are at least as many values as required parameters.
    fn bind_positional(
        &mut self,
        parameters: &Parameters,
        args: &[Value],
        env: &Rc<Env>,
    ) -> Eval<()> {
        let mut args = args.iter().cloned();
        let mut spare = args.len().saturating_sub(parameters.least());
        for target in &parameters.required {
            self.assign(target, args.next().unwrap_or_default(), env)?;
        }
        for (slot, default) in &parameters.optional {
            let value = if spare > 0 {
                spare -= 1;
                args.next().unwrap_or_default()
            } else {
                self.eval(default, env)?
            };
            env.set(*slot, value);
        }
        if let Some(rest) = &parameters.rest {
            let list: Vec<Value> = args.by_ref().take(spare).collect();
            self.assign(rest, Value::array(list), env)?;
        }
        for target in &parameters.posts {
            self.assign(target, args.next().unwrap_or_default(), env)?;
        }
        Ok(())
    }

    fn bind_keywords(
        &mut self,
        parameters: &Parameters,
        given: Option<Rc<Table>>,
        env: &Rc<Env>,
    ) -> Eval<()> {
        let given = given.map(|table| table.copy()).unwrap_or_default();
        let mut missing = Vec::new();
        for (name, slot, default) in &parameters.keywords {
            let value = match (given.remove(&Value::Symbol(*name)), default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.eval(default, env)?,
                (None, None) => {
                    missing.push(format!(":{}", name.name()));
                    Value::Nil
                }
            };
            env.set(*slot, value);
        }
        let many = |count: usize| if count > 1 { "s" } else { "" };
        if !missing.is_empty() {
            return Err(argument_error(format!(
                "missing keyword{}: {}",
                many(missing.len()),
                missing.join(", ")
            )));
        }
        match parameters.keyword_rest {
            Some(Some(slot)) => env.set(slot, Value::hash(given)),
            None if given.len() > 0 => {
                let names: Vec<String> = given.keys().iter().map(inspect).collect();
                return Err(argument_error(format!(
                    "unknown keyword{}: {}",
                    many(names.len()),
                    names.join(", ")
                )));
            }
            Some(None) | None => {}
        }
        Ok(())
    }
}
