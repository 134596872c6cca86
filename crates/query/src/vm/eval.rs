//! Evaluates each kind of node.

use super::Vm;
use crate::class::Class;
use crate::forms::Form;
use crate::memory::Growth;
use crate::names::M;
use crate::regex::Pattern;
use crate::symbol::Symbol;
use crate::tree::Op;
use crate::tree::{
    Arguments, Begin, Call, Case, DynamicRegexp, Index, Limit, MatchPart, Multi, Node, Pair,
    Rescue, StageCall, Target, While,
};
use crate::value::env::Env;
use crate::value::exception::{
    Eval, Exception, Flow, error, no_method, type_error, with_hint, wrong_arguments,
};
use crate::value::inspect::write_to_s;
use crate::value::number;
use crate::value::table::Table;
use crate::value::{Value, compare};
use std::cell::Cell;
use std::rc::Rc;

impl Vm {
    /// Evaluates the smallest nodes here, and the rest in functions of their own: whatever this one needs on the stack is
    /// prepared for every node.
    pub(crate) fn eval(&mut self, node: &Node, env: &Rc<Env>) -> Eval {
        match node {
            Node::Int(it) => Ok(Value::Int(*it)),
            Node::Local(slot) => Ok(env.get(*slot)),
            Node::Row => Ok(self.row.clone()),
            Node::Index(index) => self.index(index, env),
            Node::Binary(parts) => self.binary_node(parts, env),
            Node::And(pair) => self.and(pair, env),
            Node::If(parts) => self.branch(parts, env),
            Node::Call(call) => self.call_node(call, env),
            Node::Helper(call) => self.helper_node(call, env),
            Node::Stage(call) => self.stage_node(call, env),
            _ => self.eval_other(node, env),
        }
    }

    #[inline(never)]
    fn binary_node(&mut self, parts: &(Op, Node, Node), env: &Rc<Env>) -> Eval {
        if let Some((left, right)) = self.integers(parts, env)
            && let Some(value) = number::fast_int(parts.0, left, right)
        {
            return Ok(value);
        }
        let (left, right) = (self.eval(&parts.1, env)?, self.eval(&parts.2, env)?);
        self.binary(parts.0, &left, &right)
            .map_err(|flow| with_hint(flow, &[(&parts.1, &left), (&parts.2, &right)]))
    }

    #[inline(never)]
    fn and(&mut self, (left, right): &(Node, Node), env: &Rc<Env>) -> Eval {
        let left = self.eval(left, env)?;
        if left.truthy() {
            return self.eval(right, env);
        }
        Ok(left)
    }

    #[inline(never)]
    fn branch(&mut self, (condition, then, otherwise): &(Node, Node, Node), env: &Rc<Env>) -> Eval {
        let branch = if self.test(condition, env)? {
            then
        } else {
            otherwise
        };
        self.eval(branch, env)
    }

    #[inline(never)]
    fn eval_other(&mut self, node: &Node, env: &Rc<Env>) -> Eval {
        Ok(match node {
            Node::Nil => Value::Nil,
            Node::True => Value::Bool(true),
            Node::False => Value::Bool(false),
            Node::Outer(depth, slot) => env.outer(*depth).get(*slot),
            Node::Literal(value) => value.into(),
            Node::Constant(at) => return self.constant(*at),
            Node::Str(text) => Value::str(&**text),
            Node::Interpolated(parts) => Value::str(self.interpolate(parts, env)?),
            Node::InterpolatedSymbol(parts) => {
                Value::Symbol(Symbol::new(&self.interpolate(parts, env)?))
            }
            Node::InterpolatedRegexp(regexp) => return self.dynamic_regexp(regexp, env),
            Node::Array(elements) => return self.array(elements, env),
            Node::ArraySplat(elements) => Value::array(self.spread(elements, env)?),
            Node::Splat(inner) => {
                let value = self.eval(inner, env)?;
                Value::array(self.splat(&value)?)
            }
            Node::Hash(pairs) => self.hash(pairs, env)?,
            Node::Range(parts) => return self.range(parts, env),
            Node::SelfRef => env.frame.receiver.clone(),
            Node::Global(at) => self.globals[*at].clone(),
            Node::Instance(at) => self.instances[*at].clone(),
            Node::LastMatch(part) => self.match_part(*part),
            Node::AssignLocal(slot, value) => {
                let value = self.eval(value, env)?;
                env.set(*slot, value.clone());
                value
            }
            Node::Assign(parts) => {
                let value = self.eval(&parts.1, env)?;
                self.assign(&parts.0, value.clone(), env)?;
                value
            }
            Node::MultiAssign(parts) => return self.multi_assign(parts, env),
            Node::Update(update) => return self.update(update, env),
            Node::Sequence(nodes) => return self.sequence(nodes, env),
            Node::Or(pair) => {
                let left = self.eval(&pair.0, env)?;
                if !left.truthy() {
                    return self.eval(&pair.1, env);
                }
                left
            }
            Node::Not(inner) => Value::Bool(!self.test(inner, env)?),
            Node::While(it) => return self.run_while(it, env),
            Node::For(parts) => return self.run_for(&parts.0, &parts.1, &parts.2, env),
            Node::Case(case) => return self.case(case, env),
            Node::Begin(begin) => return self.begin(begin, env),
            Node::Int(_)
            | Node::Local(_)
            | Node::Row
            | Node::Index(_)
            | Node::Binary(_)
            | Node::And(_)
            | Node::If(_)
            | Node::Call(_)
            | Node::Helper(_)
            | Node::Stage(_) => return self.eval(node, env),
            Node::Kernel(call) => return self.kernel_node(call, env),
            Node::Limit(limit) => return self.limit(limit, env),
            Node::FileName => self.file_name.clone(),
            Node::Lambda(code) => self.make_lambda(code, env),
            Node::Yield(arguments) => return self.yield_node(arguments, env),
            Node::BlockGiven => Value::Bool(env.frame.block.is_some()),
            Node::Return(value) => {
                let value = self.eval(value, env)?;
                return Err(Box::new(Flow::Return(env.frame.tag, value)));
            }
            Node::Break(value) => {
                let value = self.eval(value, env)?;
                return Err(Box::new(Flow::Break(0, value)));
            }
            Node::Next(value) => {
                let value = self.eval(value, env)?;
                return Err(Box::new(Flow::Next(value)));
            }
            Node::LoopBreak(value) => {
                let value = self.eval(value, env)?;
                return Err(Box::new(Flow::LoopBreak(value)));
            }
            Node::LoopNext => return Err(Box::new(Flow::LoopNext)),
            Node::Retry => return Err(Box::new(Flow::Retry)),
            Node::Redo => return Err(Box::new(Flow::Redo)),
            Node::Defined(inner, word) => match self.eval(inner, env) {
                Ok(_) => Value::str(*word),
                Err(flow) if matches!(*flow, Flow::Raise(_)) => Value::Nil,
                Err(flow) => return Err(flow),
            },
            Node::DefinedGlobal(at) if self.globals[*at].is_nil() => Value::Nil,
            Node::DefinedGlobal(_) => Value::str("global-variable"),
            Node::DefinedInstance(at) if self.instances[*at].is_nil() => Value::Nil,
            Node::DefinedInstance(_) => Value::str("instance-variable"),
            Node::DefinedConstant(at) if self.constants[*at].is_none() => Value::Nil,
            Node::DefinedConstant(_) => Value::str("constant"),
            Node::MatchAssign(parts) => return self.match_assign(parts, env),
        })
    }

    fn constant(&self, at: usize) -> Eval {
        self.constants[at].clone().ok_or_else(|| {
            let name = &self.program.constants[at];
            error(Class::NameError, format!("uninitialized constant {name}"))
        })
    }

    fn limit(&mut self, limit: &Limit, env: &Rc<Env>) -> Eval {
        let count = match self.eval(&limit.count, env)? {
            Value::Int(count @ 0..) => count.cast_unsigned(),
            other => {
                return Err(crate::value::exception::argument_error(format!(
                    "limit expects a number of rows: {}",
                    crate::value::inspect::inspect(&other)
                )));
            }
        };
        let kept = &mut self.limits[limit.at];
        let keeps = *kept < count;
        *kept += u64::from(keeps);
        self.has_enough |= limit.ends_run && *kept >= count;
        Ok(if keeps {
            self.target.clone()
        } else {
            Value::Dropped
        })
    }

    fn array(&mut self, elements: &[Node], env: &Rc<Env>) -> Eval {
        let mut list = Vec::with_capacity(elements.len());
        for element in elements {
            list.push(self.eval(element, env)?);
        }
        Ok(Value::array(list))
    }

    fn multi_assign(&mut self, (targets, value): &(Multi, Node), env: &Rc<Env>) -> Eval {
        let value = self.eval(value, env)?;
        let list = Self::spread_for_assignment(&value);
        self.assign_many(targets, &list, env)?;
        Ok(value)
    }

    fn match_assign(
        &mut self,
        (call, targets): &(Node, Vec<(Rc<str>, Target)>),
        env: &Rc<Env>,
    ) -> Eval {
        let value = self.eval(call, env)?;
        for (name, target) in targets {
            let group = match &self.last_match {
                Value::Match(found) => Value::option(found.named(name).flatten()),
                _ => Value::Nil,
            };
            self.assign(target, group, env)?;
        }
        Ok(value)
    }

    fn sequence(&mut self, nodes: &[Node], env: &Rc<Env>) -> Eval {
        let Some((last, before)) = nodes.split_last() else {
            return Ok(Value::Nil);
        };
        for node in before {
            self.eval(node, env)?;
        }
        self.eval(last, env)
    }

    fn range(&mut self, (from, to, exclusive): &(Node, Node, bool), env: &Rc<Env>) -> Eval {
        let (from, to) = (self.eval(from, env)?, self.eval(to, env)?);
        if !from.is_nil() && !to.is_nil() && compare::compare(&from, &to).is_none() {
            return Err(crate::value::exception::argument_error(
                "bad value for range",
            ));
        }
        Ok(Value::range(from, to, *exclusive))
    }

    fn dynamic_regexp(&mut self, regexp: &DynamicRegexp, env: &Rc<Env>) -> Eval {
        let source = self.interpolate(&regexp.parts, env)?;
        if let Some(cached) = &*regexp.cache.borrow()
            && cached.source() == source
        {
            return Ok(Value::Regexp(Rc::clone(cached)));
        }
        let pattern = Pattern::compile(&source, regexp.options)?;
        *regexp.cache.borrow_mut() = Some(Rc::clone(&pattern));
        Ok(Value::Regexp(pattern))
    }

    /// Whether a condition holds. Comparisons of Integers, the common case, create no value.
    pub(crate) fn test(&mut self, node: &Node, env: &Rc<Env>) -> Eval<bool> {
        match node {
            Node::Binary(parts) => {
                if let Some((left, right)) = self.integers(parts, env)
                    && let Some(holds) = number::holds(parts.0, left, right)
                {
                    return Ok(holds);
                }
                Ok(self.binary_node(parts, env)?.truthy())
            }
            Node::And(pair) => Ok(self.test(&pair.0, env)? && self.test(&pair.1, env)?),
            Node::Or(pair) => Ok(self.test(&pair.0, env)? || self.test(&pair.1, env)?),
            Node::Not(inner) => Ok(!self.test(inner, env)?),
            _ => Ok(self.eval(node, env)?.truthy()),
        }
    }

    /// The operands, if both are Integers that can be read without an evaluation.
    #[inline]
    fn integers(&self, parts: &(Op, Node, Node), env: &Env) -> Option<(i64, i64)> {
        Some((self.integer(&parts.1, env)?, self.integer(&parts.2, env)?))
    }

    #[inline]
    fn integer(&self, node: &Node, env: &Env) -> Option<i64> {
        let of = |value: &Value| match value {
            Value::Int(it) => Some(*it),
            _ => None,
        };
        match node {
            Node::Int(it) => Some(*it),
            Node::Local(slot) => of(&env.locals.borrow()[*slot]),
            Node::Index(index) => self.read(index, env, of)?,
            _ => None,
        }
    }

    /// Hands a field or an element of the row, or of a local's value, to `read`, without an evaluation; `None` if it needs
    /// one.
    #[inline]
    fn read<T>(&self, index: &Index, env: &Env, read: impl FnOnce(&Value) -> T) -> Option<T> {
        let locals;
        let receiver = match &index.receiver {
            Node::Row => &self.row,
            Node::Local(slot) => {
                locals = env.locals.borrow();
                &locals[*slot]
            }
            _ => return None,
        };
        match &index.key {
            Node::Str(key) => field(receiver, key, &index.place, read),
            Node::Int(at) => element(receiver, *at, read),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn binary(&mut self, op: Op, left: &Value, right: &Value) -> Eval {
        if let Some(value) = number::fast(op, left, right) {
            return Ok(value);
        }
        (self.library.operate)(self, op, left, right)
    }

    #[inline(never)]
    fn index(&mut self, index: &Index, env: &Rc<Env>) -> Eval {
        if let Some(value) = self.read(index, env, Value::clone) {
            return Ok(value);
        }
        let receiver = self.eval(&index.receiver, env)?;
        // A String literal as a key needs no String.
        if let Node::Str(key) = &index.key
            && let Some(value) = field(&receiver, key, &index.place, Value::clone)
        {
            return Ok(value);
        }
        let key = self.eval(&index.key, env)?;
        if let Value::Int(at) = &key
            && let Some(value) = element(&receiver, *at, Value::clone)
        {
            return Ok(value);
        }
        self.send(&receiver, M::OpIndex, &[key], None)
            .map_err(|flow| with_hint(flow, &[(&index.receiver, &receiver)]))
    }

    fn interpolate(&mut self, parts: &[Node], env: &Rc<Env>) -> Eval<String> {
        let mut text = String::new();
        for part in parts {
            match part {
                Node::Str(plain) => text.push_str(plain),
                other => {
                    let value = self.eval(other, env)?;
                    if let Value::Token(_) = value {
                        return Err(no_method("to_s", &value));
                    }
                    let mut growth = Growth::of(&self.bounds, text.len());
                    write_to_s(&mut text, &value, &mut |len| growth.to(len))?;
                }
            }
        }
        Ok(text)
    }

    /// Elements or arguments with `*splat`s among them.
    pub(crate) fn spread(&mut self, nodes: &[Node], env: &Rc<Env>) -> Eval<Vec<Value>> {
        let mut list = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node {
                Node::Splat(inner) => {
                    let value = self.eval(inner, env)?;
                    list.extend(self.splat(&value)?);
                }
                other => list.push(self.eval(other, env)?),
            }
        }
        Ok(list)
    }

    /// `*value`.
    pub(crate) fn splat(&mut self, value: &Value) -> Eval<Vec<Value>> {
        Ok(match value {
            Value::Nil => Vec::new(),
            Value::Array(list) => list.borrow().clone(),
            Value::Hash(_) | Value::Range(_) | Value::Enumerator(_) => {
                (self.library.to_vec)(self, value)?
            }
            time @ Value::Time(_) => {
                let list = (self.library.call)(self, time, M::ToA, &[], None)?;
                return self.splat(&list);
            }
            other => vec![other.clone()],
        })
    }

    fn hash(&mut self, pairs: &[Pair], env: &Rc<Env>) -> Eval {
        let table = Table::with_capacity(pairs.len());
        for pair in pairs {
            match pair {
                Pair::Entry(key, value) => {
                    let key = self.eval(key, env)?;
                    let value = self.eval(value, env)?;
                    table.insert(key, value);
                }
                Pair::Splat(node) => match self.eval(node, env)? {
                    Value::Hash(other) => {
                        for (key, value) in other.pairs() {
                            table.insert(key, value);
                        }
                    }
                    Value::Nil => {}
                    other => return Err(crate::value::exception::no_conversion(&other, "Hash")),
                },
            }
        }
        Ok(Value::hash(table))
    }

    fn match_part(&self, part: MatchPart) -> Value {
        let Value::Match(found) = &self.last_match else {
            return Value::Nil;
        };
        match part {
            MatchPart::All => self.last_match.clone(),
            MatchPart::Group(group) => Value::option(found.group(group)),
            MatchPart::Pre => Value::str(found.pre()),
            MatchPart::Post => Value::str(found.post()),
            MatchPart::Last => {
                Value::option((1..found.len()).rev().find_map(|group| found.group(group)))
            }
        }
    }

    fn run_while(&mut self, it: &While, env: &Rc<Env>) -> Eval {
        let mut first = it.body_first;
        loop {
            self.tick()?;
            if !first && self.test(&it.condition, env)? == it.until {
                return Ok(Value::Nil);
            }
            first = false;
            match self.eval(&it.body, env) {
                Ok(_) => {}
                Err(flow) => match *flow {
                    Flow::LoopBreak(value) => return Ok(value),
                    Flow::LoopNext => {}
                    other => return Err(Box::new(other)),
                },
            }
        }
    }

    fn run_for(&mut self, target: &Target, list: &Node, body: &Node, env: &Rc<Env>) -> Eval {
        let list = self.eval(list, env)?;
        let mut left = None;
        (self.library.each)(self, &list, &mut |vm, element| {
            vm.assign(target, element, env)?;
            match vm.eval(body, env) {
                Ok(_) => Ok(()),
                Err(flow) => match *flow {
                    Flow::LoopNext => Ok(()),
                    Flow::LoopBreak(value) => {
                        left = Some(value);
                        Err(Box::new(Flow::Enough))
                    }
                    other => Err(Box::new(other)),
                },
            }
        })?;
        Ok(left.unwrap_or(list))
    }

    fn case(&mut self, case: &Case, env: &Rc<Env>) -> Eval {
        let subject = match &case.subject {
            Some(node) => Some(self.eval(node, env)?),
            None => None,
        };
        for (patterns, body) in &case.branches {
            for pattern in patterns {
                let candidates = match pattern {
                    Node::Splat(inner) => {
                        let value = self.eval(inner, env)?;
                        self.splat(&value)?
                    }
                    other => vec![self.eval(other, env)?],
                };
                for candidate in candidates {
                    let hit = match &subject {
                        Some(subject) => self.case_equal(&candidate, subject)?,
                        None => candidate.truthy(),
                    };
                    if hit {
                        return self.eval(body, env);
                    }
                }
            }
        }
        self.eval(&case.otherwise, env)
    }

    /// `pattern === value`.
    pub(crate) fn case_equal(&mut self, pattern: &Value, value: &Value) -> Eval<bool> {
        match compare::case_equal(pattern, value) {
            Some(known) => Ok(known),
            None => Ok(self
                .send(pattern, M::OpCaseEq, std::slice::from_ref(value), None)?
                .truthy()),
        }
    }

    fn begin(&mut self, begin: &Begin, env: &Rc<Env>) -> Eval {
        let result = self.begin_body(begin, env);
        if let Some(ensure) = &begin.ensure {
            self.eval(ensure, env)?;
        }
        result
    }

    fn begin_body(&mut self, begin: &Begin, env: &Rc<Env>) -> Eval {
        loop {
            let flow = match self.eval(&begin.body, env) {
                Ok(value) => {
                    return match &begin.otherwise {
                        Some(otherwise) => self.eval(otherwise, env),
                        None => Ok(value),
                    };
                }
                Err(flow) => flow,
            };
            let Flow::Raise(raised) = &*flow else {
                return Err(flow);
            };
            let raised = Rc::clone(raised);
            let Some(rescue) = self.rescue_for(begin, &raised, env)? else {
                return Err(flow);
            };
            if let Some(target) = &rescue.target {
                self.assign(target, Value::Exception(Rc::clone(&raised)), env)?;
            }
            match self.eval(&rescue.body, env) {
                Err(flow) if matches!(*flow, Flow::Retry) => {}
                other => return other,
            }
        }
    }

    fn rescue_for<'a>(
        &mut self,
        begin: &'a Begin,
        raised: &Exception,
        env: &Rc<Env>,
    ) -> Eval<Option<&'a Rescue>> {
        for rescue in &begin.rescues {
            if rescue.classes.is_empty() && raised.class.is(Class::StandardError) {
                return Ok(Some(rescue));
            }
            for class in self.spread(&rescue.classes, env)? {
                match class {
                    Value::Class(class) if raised.class.is(class) => return Ok(Some(rescue)),
                    Value::Class(_) => {}
                    _ => return Err(type_error("class or module required for rescue clause")),
                }
            }
        }
        Ok(None)
    }

    fn call_node(&mut self, call: &Call, env: &Rc<Env>) -> Eval {
        let receiver = self.eval(&call.receiver, env)?;
        if call.safe && receiver.is_nil() {
            return Ok(Value::Nil);
        }
        let simple = call.arguments.is_plain() && call.block.is_none();
        let result = match (simple, &*call.arguments.list) {
            (true, []) => self.send(&receiver, call.method, &[], None),
            (true, [one]) => {
                let one = self.eval(one, env)?;
                self.send(&receiver, call.method, &[one], None)
            }
            _ => {
                let (args, keywords) = self.arguments(&call.arguments, env)?;
                self.with_block(call.block.as_ref(), env, |vm, block| {
                    vm.send_with(&receiver, call.method, &args, keywords, block)
                })
            }
        };
        result.map_err(|flow| with_hint(flow, &[(&call.receiver, &receiver)]))
    }

    /// The arguments, and whether the last one is a Hash of keywords. `**` of nothing is no argument.
    pub(crate) fn arguments(
        &mut self,
        arguments: &Arguments,
        env: &Rc<Env>,
    ) -> Eval<(Vec<Value>, bool)> {
        let mut list = if arguments.splat {
            self.spread(&arguments.list, env)?
        } else {
            let mut list = Vec::with_capacity(arguments.list.len());
            for node in &arguments.list {
                list.push(self.eval(node, env)?);
            }
            list
        };
        if arguments.keywords
            && let Some(Value::Hash(table)) = list.last()
            && table.len() == 0
        {
            list.pop();
            return Ok((list, false));
        }
        Ok((list, arguments.keywords))
    }

    fn stage_node(&mut self, call: &StageCall, env: &Rc<Env>) -> Eval {
        // These are called for each row, mostly with one value, which needs no list.
        match (call.arguments.is_plain(), &*call.arguments.list) {
            (true, []) => self.stage_call(call, &[], env),
            (true, [one]) => {
                let one = self.eval(one, env)?;
                self.stage_call(call, &[one], env)
            }
            (true, [one, two]) => {
                let both = [self.eval(one, env)?, self.eval(two, env)?];
                self.stage_call(call, &both, env)
            }
            _ => {
                let (args, keywords) = self.arguments(&call.arguments, env)?;
                let form = Form::of(call.builtin);
                let counted = args.len() - usize::from(keywords && !form.takes_pairs);
                if !form.counts.contains(&counted) {
                    let (least, most) = (*form.counts.start(), *form.counts.end());
                    return Err(wrong_arguments(counted, least, Some(most)));
                }
                self.stage_call(call, &args, env)
            }
        }
    }

    fn stage_call(&mut self, call: &StageCall, args: &[Value], env: &Rc<Env>) -> Eval {
        match &call.block {
            Some(block) => self.with_block(Some(block), env, |vm, block| {
                (vm.library.builtin)(vm, call.builtin, args, block, call.reducing)
            }),
            None => (self.library.builtin)(self, call.builtin, args, None, false),
        }
    }
}

/// Hands a Hash's value for a String key to `read`; `None` if the Hash has a default or the value is not a Hash.
#[inline]
fn field<T>(
    receiver: &Value,
    key: &str,
    place: &Cell<usize>,
    read: impl FnOnce(&Value) -> T,
) -> Option<T> {
    let Value::Hash(table) = receiver else {
        return None;
    };
    let mut read = Some(read);
    let mut read = |value: &Value| read.take().map(|read| read(value));
    match table.read_str(key, place, &mut read) {
        Some(value) => value,
        None if table.has_fallback() => None,
        None => read(&Value::Nil),
    }
}

/// Hands an element to `read`; `None` if the value is not an Array.
#[inline]
fn element<T>(receiver: &Value, at: i64, read: impl FnOnce(&Value) -> T) -> Option<T> {
    let Value::Array(list) = receiver else {
        return None;
    };
    let list = list.borrow();
    let at = if at < 0 {
        at + list.len().cast_signed() as i64
    } else {
        at
    };
    let found = usize::try_from(at).ok().and_then(|at| list.get(at));
    Some(read(found.unwrap_or(&Value::Nil)))
}
