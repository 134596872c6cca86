//! Assignment: to variables, elements, several at once, and the `||=` family.

use super::Vm;
use crate::names::M;
use crate::tree::Op;
use crate::tree::{Multi, Node, Place, Target, Update, UpdateKind};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::exception::Eval;
use crate::value::number;
use std::rc::Rc;

impl Vm {
    pub(crate) fn assign(&mut self, target: &Target, value: Value, env: &Rc<Env>) -> Eval<()> {
        match target {
            Target::Local(slot) => env.set(*slot, value),
            Target::Outer(depth, slot) => env.outer(*depth).set(*slot, value),
            Target::Global(at) => self.globals[*at] = value,
            Target::Instance(at) => self.instances[*at] = value,
            Target::Constant(at) => self.constants[*at] = Some(value),
            Target::Index(parts) => {
                let receiver = self.eval(&parts.0, env)?;
                let (mut args, _) = self.arguments(&parts.1, env)?;
                args.push(value);
                self.send(&receiver, M::OpIndexSet, &args, None)?;
            }
            Target::Attribute(parts) => {
                let receiver = self.eval(&parts.0, env)?;
                self.send(&receiver, parts.1, &[value], None)?;
            }
            Target::Multi(multi) => {
                let list = Self::spread_for_assignment(&value);
                self.assign_many(multi, &list, env)?;
            }
            Target::Nowhere => {}
        }
        Ok(())
    }

    /// The values of the right side of `a, b = value`: the elements of an Array, or the value itself.
    pub(crate) fn spread_for_assignment(value: &Value) -> Vec<Value> {
        match value {
            Value::Array(list) => list.borrow().clone(),
            other => vec![other.clone()],
        }
    }

    pub(crate) fn assign_many(&mut self, multi: &Multi, list: &[Value], env: &Rc<Env>) -> Eval<()> {
        let lefts = multi.lefts.len();
        for (at, target) in multi.lefts.iter().enumerate() {
            self.assign(target, list.get(at).cloned().unwrap_or_default(), env)?;
        }
        // The last targets are assigned before the rest.
        let rights = multi.rights.len();
        let end = list.len().saturating_sub(rights).max(lefts.min(list.len()));
        if let Some(rest) = &multi.rest {
            let middle = list.get(lefts..end).unwrap_or_default().to_vec();
            self.assign(rest, Value::array(middle), env)?;
        }
        let start = if multi.rest.is_some() { end } else { lefts };
        for (at, target) in multi.rights.iter().enumerate() {
            self.assign(
                target,
                list.get(start + at).cloned().unwrap_or_default(),
                env,
            )?;
        }
        Ok(())
    }

    pub(crate) fn update(&mut self, update: &Update, env: &Rc<Env>) -> Eval {
        match &update.place {
            Place::Variable(read, target) => {
                let old = match read {
                    // `X ||= 1` defines `X` if it does not exist.
                    Node::Constant(at) => self.constants[*at].clone().unwrap_or_default(),
                    read => self.eval(read, env)?,
                };
                let Some(value) = self.updated(update, &old, env)? else {
                    return Ok(old);
                };
                self.assign(target, value.clone(), env)?;
                Ok(value)
            }
            Place::Index(receiver, arguments) => {
                let receiver = self.eval(receiver, env)?;
                let (mut args, _) = self.arguments(arguments, env)?;
                let old = self.send(&receiver, M::OpIndex, &args, None)?;
                let Some(value) = self.updated(update, &old, env)? else {
                    return Ok(old);
                };
                args.push(value.clone());
                self.send(&receiver, M::OpIndexSet, &args, None)?;
                Ok(value)
            }
        }
    }

    /// The new value; `None` if the old one is kept.
    fn updated(&mut self, update: &Update, old: &Value, env: &Rc<Env>) -> Eval<Option<Value>> {
        match update.kind {
            UpdateKind::Or if old.truthy() => Ok(None),
            UpdateKind::And if !old.truthy() => Ok(None),
            UpdateKind::Or | UpdateKind::And => self.eval(&update.value, env).map(Some),
            UpdateKind::Operator(method) => {
                let value = self.eval(&update.value, env)?;
                let fast = match method {
                    M::OpAdd => number::fast(Op::Add, old, &value),
                    M::OpSub => number::fast(Op::Sub, old, &value),
                    M::OpMul => number::fast(Op::Mul, old, &value),
                    _ => None,
                };
                match fast {
                    Some(value) => Ok(Some(value)),
                    None => self.send(old, method, &[value], None).map(Some),
                }
            }
        }
    }
}
