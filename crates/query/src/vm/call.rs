//! Calls of helpers and of `yield`. Methods of values are in [`crate::methods`].

use super::Vm;
use super::block::Block;
use crate::class::Class;
use crate::names::M;
use crate::tree::{Arguments, Code, HelperCall, KernelCall};
use crate::value::Value;
use crate::value::env::{Env, Frame};
use crate::value::exception::{Eval, Flow, argument_error, error, no_method, type_error};
use crate::value::inspect::{inspect, to_s};
use crate::value::proc::Proc;
use std::rc::Rc;

impl Vm {
    /// Calls a method of a value.
    #[inline]
    pub(crate) fn send(
        &mut self,
        receiver: &Value,
        method: M,
        args: &[Value],
        block: Option<&Block<'_>>,
    ) -> Eval {
        (self.library.call)(self, receiver, method, args, block)
    }

    /// Calls a method of a value; with `keywords`, the last argument is a Hash of keywords, which Procs pass on. To all
    /// other methods it is an ordinary Hash.
    pub(crate) fn send_with(
        &mut self,
        receiver: &Value,
        method: M,
        args: &[Value],
        keywords: bool,
        block: Option<&Block<'_>>,
    ) -> Eval {
        match (receiver, method) {
            (Value::Proc(proc), M::Call | M::OpIndex | M::OpCaseEq) if keywords => {
                self.call_proc_with(proc, args, true, Vm::block_value(block))
            }
            (Value::Proc(_), M::Send | M::PublicSend) if keywords => {
                let (method, args) = sent(receiver, args)?;
                self.send_with(receiver, method, args, true, block)
            }
            _ => self.send(receiver, method, args, block),
        }
    }

    pub(super) fn kernel_node(&mut self, call: &KernelCall, env: &Rc<Env>) -> Eval {
        let (args, keywords) = self.arguments(&call.arguments, env)?;
        self.with_block(call.block.as_ref(), env, |vm, block| {
            (vm.library.function)(vm, call.function, &args, keywords, block)
        })
    }

    pub(super) fn helper_node(&mut self, call: &HelperCall, env: &Rc<Env>) -> Eval {
        let receiver = match &call.receiver {
            Some(node) => self.eval(node, env)?,
            None => env.frame.receiver.clone(),
        };
        let program = Rc::clone(&self.program);
        let code = &program.definitions[call.method].code;
        let list = &call.arguments.list;
        if call.block.is_none()
            && call.arguments.is_plain()
            && code.parameters.simple
            && code.parameters.required.len() == list.len()
        {
            // The arguments become the helper's locals at once.
            let own = self.helper_env(code, receiver, None);
            for (slot, argument) in list.iter().enumerate() {
                let value = self.eval(argument, env)?;
                own.set(slot, value);
            }
            return self.run_helper(code, own, |_, _| Ok(()));
        }
        let (args, keywords) = self.arguments(&call.arguments, env)?;
        self.with_block(call.block.as_ref(), env, |vm, block| {
            let block = Vm::block_value(block);
            vm.call_helper(call.method, receiver, &args, keywords, block)
        })
    }

    pub(crate) fn call_helper(
        &mut self,
        helper: usize,
        receiver: Value,
        args: &[Value],
        keywords: bool,
        block: Option<Rc<Proc>>,
    ) -> Eval {
        let code = Rc::clone(&self.program.definitions[helper].code);
        let env = self.helper_env(&code, receiver, block.clone());
        self.run_helper(&code, env, |vm, env| {
            vm.bind(&code.parameters, args, keywords, block, env)
        })
    }

    fn helper_env(&mut self, code: &Code, receiver: Value, block: Option<Rc<Proc>>) -> Rc<Env> {
        let tag = self.tag();
        let frame = Frame {
            block,
            receiver,
            tag,
        };
        self.env_pool.helper(code.locals, frame)
    }

    /// Runs a helper after `bind` has assigned its parameters.
    fn run_helper(
        &mut self,
        code: &Code,
        env: Rc<Env>,
        bind: impl FnOnce(&mut Vm, &Rc<Env>) -> Eval<()>,
    ) -> Eval {
        let tag = env.frame.tag;
        let outer_match = std::mem::take(&mut self.last_match);
        let result = bind(self, &env).and_then(|()| self.deeper(|vm| vm.eval(&code.body, &env)));
        self.last_match = outer_match;
        self.env_pool.recycle_helper(env);
        match result {
            Err(flow) => match *flow {
                Flow::Return(to, value) if to == tag => Ok(value),
                other => Err(Box::new(other)),
            },
            done => done,
        }
    }

    pub(super) fn yield_node(&mut self, arguments: &Arguments, env: &Rc<Env>) -> Eval {
        let Some(block) = env.frame.block.clone() else {
            return Err(error(Class::LocalJumpError, "no block given (yield)"));
        };
        let (args, keywords) = self.arguments(arguments, env)?;
        self.call_block_with(&Block::of(block), &args, keywords)
    }
}

/// A method's name.
pub(crate) fn name_of(name: &Value) -> Eval<String> {
    match name {
        Value::Str(_) | Value::Symbol(_) => Ok(to_s(name)),
        other => Err(type_error(format!(
            "{} is not a symbol nor a string",
            inspect(other)
        ))),
    }
}

/// The method that `send` is asked for, and its arguments.
pub(crate) fn sent<'a>(receiver: &Value, args: &'a [Value]) -> Eval<(M, &'a [Value])> {
    let Some((name, rest)) = args.split_first() else {
        return Err(argument_error("no method name given"));
    };
    let name = name_of(name)?;
    match M::find(&name) {
        Some(method) => Ok((method, rest)),
        None => Err(no_method(&name, receiver)),
    }
}
