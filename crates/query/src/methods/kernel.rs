//! Functions of every object: conversions, `format`, `raise`, `loop`, `proc`.

use super::convert::{to_float, to_integer};
use super::format::format;
use crate::class::Class;
use crate::memory::Growth;
use crate::names::M;
use crate::tree::Function;
use crate::value::exception::{
    Eval, Exception, Flow, argument_error, arity, brief, error, type_error,
};
use crate::value::inspect::{inspect, to_s, to_s_within};
use crate::value::proc::{Kind, Proc};
use crate::value::table::Table;
use crate::value::{Value, enumerator::Enumerator};
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

impl Vm {
    pub(crate) fn kernel(
        &mut self,
        function: Function,
        args: &[Value],
        keywords: bool,
        block: Option<&Block<'_>>,
    ) -> Eval {
        match function {
            Function::Format => {
                let (pattern, rest) = args
                    .split_first()
                    .ok_or_else(|| argument_error("too few arguments"))?;
                let Value::Str(pattern) = pattern else {
                    return Err(crate::value::exception::no_conversion(pattern, "String"));
                };
                Ok(Value::str(format(self, &pattern.string(), rest)?))
            }
            Function::Integer | Function::Float => {
                let (args, lenient) = without_exception(args, keywords);
                let result = if function == Function::Integer {
                    to_integer(self, args)
                } else {
                    to_float(args)
                };
                match result {
                    Err(flow) if lenient && matches!(*flow, Flow::Raise(_)) => Ok(Value::Nil),
                    other => other,
                }
            }
            Function::String => {
                arity(args, 1, 1)?;
                Ok(Value::str(to_s_within(
                    &args[0],
                    Growth::of(&self.bounds, 0).limit(),
                )?))
            }
            Function::Array => {
                arity(args, 1, 1)?;
                Ok(match &args[0] {
                    list @ Value::Array(_) => list.clone(),
                    other => Value::array(self.splat(other)?),
                })
            }
            Function::Hash => {
                arity(args, 1, 1)?;
                match &args[0] {
                    Value::Nil => Ok(Value::hash(Table::default())),
                    Value::Array(list) if list.borrow().is_empty() => {
                        Ok(Value::hash(Table::default()))
                    }
                    table @ Value::Hash(_) => Ok(table.clone()),
                    other => Err(type_error(format!(
                        "can't convert {} into Hash",
                        brief(other)
                    ))),
                }
            }
            Function::Raise => Err(Self::raise(args)),
            Function::Loop => self.run_loop(block),
            Function::Proc => match Self::block_value(block) {
                Some(proc) => Ok(Value::Proc(proc)),
                None => Err(argument_error(
                    "tried to create Proc object without a block",
                )),
            },
            Function::Lambda => match Self::block_value(block) {
                Some(proc) => {
                    let kind = match &proc.kind {
                        Kind::Code(code, env) => Kind::Code(Rc::clone(code), Rc::clone(env)),
                        _ => return Ok(Value::Proc(proc)),
                    };
                    Ok(Value::Proc(Rc::new(Proc {
                        kind,
                        lambda: true,
                        tag: proc.tag,
                    })))
                }
                None => Err(argument_error(
                    "tried to create Proc object without a block",
                )),
            },
            Function::Require => Ok(Value::Bool(true)),
            Function::Method => {
                arity(args, 1, 1)?;
                self.method_value(&Value::Main, &args[0])
            }
        }
    }

    /// `method(:name)`.
    pub(crate) fn method_value(&mut self, receiver: &Value, name: &Value) -> Eval {
        let name = to_s(name);
        let helper = self
            .program
            .definitions
            .iter()
            .rposition(|it| it.name == name);
        let kind = match (helper, M::find(&name)) {
            (Some(helper), _) if matches!(receiver, Value::Main) => Kind::Helper(helper),
            (_, Some(method)) => Kind::Method(receiver.clone(), method),
            _ => {
                return Err(error(
                    Class::NameError,
                    format!("undefined method '{name}' for {}", inspect(receiver)),
                ));
            }
        };
        Ok(Value::Proc(Rc::new(Proc {
            kind,
            lambda: true,
            tag: 0,
        })))
    }

    fn raise(args: &[Value]) -> Box<Flow> {
        let raised = match args {
            [] => Exception {
                class: Class::RuntimeError,
                message: Value::str("unhandled exception"),
                hint: None,
            },
            [Value::Exception(it), ..] => return Box::new(Flow::Raise(Rc::clone(it))),
            [Value::Class(class), rest @ ..] if class.is(Class::Exception) => Exception {
                class: *class,
                message: rest
                    .first()
                    .cloned()
                    .unwrap_or_else(|| Value::str(class.name())),
                hint: None,
            },
            [message @ Value::Str(_), ..] => Exception {
                class: Class::RuntimeError,
                message: message.clone(),
                hint: None,
            },
            _ => return type_error("exception class/object expected"),
        };
        Box::new(Flow::Raise(Rc::new(raised)))
    }

    fn run_loop(&mut self, block: Option<&Block<'_>>) -> Eval {
        let Some(block) = block else {
            return Ok(Value::Enumerator(Rc::new(Enumerator::new(
                Value::Main,
                M::Call,
                Vec::new(),
            ))));
        };
        loop {
            if let Err(flow) = self.call_block(block, &[]) {
                return match &*flow {
                    Flow::Raise(raised) if raised.class == Class::StopIteration => Ok(Value::Nil),
                    _ => Err(flow),
                };
            }
        }
    }
}

/// `exception: false` among the arguments.
fn without_exception(args: &[Value], keywords: bool) -> (&[Value], bool) {
    match args.split_last() {
        Some((Value::Hash(table), before)) if keywords => {
            let lenient = matches!(
                table.get(&Value::symbol("exception")),
                Some(Value::Bool(false))
            );
            (before, lenient)
        }
        _ => (args, false),
    }
}
