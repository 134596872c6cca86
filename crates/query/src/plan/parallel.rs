//! Which stages can run on parts of the input independently: those that keep nothing from row to row except in reducers.
//! All others run in order, on one thread.

use crate::names::M;
use crate::tree::{
    Arguments, Begin, BlockNode, Builtin, Code, Function, Multi, Node, Pair, Parameters, Place,
    Program, StageCall, Target, UpdateKind,
};
use std::collections::BTreeSet;

/// What threads do with a part of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parallel {
    /// Run all stages, and print their results.
    Print,
    /// The stages before this one; it and the others take the rows in order.
    Rows(usize),
    /// The stages up to this one, whose reducers are merged.
    Merge(usize),
}

/// `None`: nothing.
pub(crate) fn parallel(program: &Program) -> Option<Parallel> {
    let mut walk = Walk {
        program,
        helpers: BTreeSet::new(),
        globals: BTreeSet::new(),
        constants: BTreeSet::new(),
        in_order: false,
    };
    for (node, _) in &program.start {
        if !walk.start(node) {
            return None;
        }
    }
    let mut first = None;
    for (at, stage) in program.stages.iter().enumerate() {
        walk.in_order = false;
        walk.helpers.clear();
        if !walk.pure(&stage.body) {
            return None;
        }
        if (stage.reducing || walk.in_order) && first.is_none() {
            first = Some((at, walk.in_order));
        }
    }
    match first {
        None => Some(Parallel::Print),
        Some((0, true)) => None,
        Some((at, true)) => Some(Parallel::Rows(at)),
        Some((at, false)) => Some(Parallel::Merge(at)),
    }
}

struct Walk<'a> {
    program: &'a Program,
    helpers: BTreeSet<usize>,
    /// Globals that are given a value once.
    globals: BTreeSet<usize>,
    /// Constants that are numbers and the like.
    constants: BTreeSet<usize>,
    /// Whether `reduce`, `limit` or `sort` with a block was met, which need the rows in order.
    in_order: bool,
}

impl Walk<'_> {
    /// The top level of a helper file: constants that nothing can change.
    fn start(&mut self, node: &Node) -> bool {
        match node {
            Node::Nil | Node::Literal(_) => true,
            Node::Sequence(nodes) => nodes.iter().all(|node| self.start(node)),
            Node::Assign(parts) => match &parts.0 {
                Target::Constant(at) if immutable(&parts.1) => self.constants.insert(*at),
                _ => false,
            },
            _ => false,
        }
    }

    fn all(&mut self, nodes: &[Node]) -> bool {
        nodes.iter().all(|node| self.pure(node))
    }

    fn arguments(&mut self, arguments: &Arguments) -> bool {
        self.all(&arguments.list)
    }

    fn pure(&mut self, node: &Node) -> bool {
        match node {
            Node::Nil
            | Node::True
            | Node::False
            | Node::SelfRef
            | Node::Row
            | Node::Int(_)
            | Node::Literal(_)
            | Node::Str(_)
            | Node::Local(_)
            | Node::Outer(..)
            | Node::BlockGiven
            | Node::FileName
            | Node::LoopNext => true,
            Node::Constant(at) => self.constants.contains(at),
            Node::Interpolated(nodes)
            | Node::InterpolatedSymbol(nodes)
            | Node::Array(nodes)
            | Node::ArraySplat(nodes)
            | Node::Sequence(nodes) => self.all(nodes),
            Node::InterpolatedRegexp(it) => self.all(&it.parts),
            Node::Splat(inner)
            | Node::Not(inner)
            | Node::Return(inner)
            | Node::Break(inner)
            | Node::Next(inner)
            | Node::LoopBreak(inner) => self.pure(inner),
            Node::Hash(pairs) => pairs.iter().all(|pair| match pair {
                Pair::Entry(key, value) => self.pure(key) && self.pure(value),
                Pair::Splat(inner) => self.pure(inner),
            }),
            Node::Range(parts) => self.pure(&parts.0) && self.pure(&parts.1),
            Node::Assign(parts) => self.target(&parts.0) && self.pure(&parts.1),
            Node::AssignLocal(_, value) => self.pure(value),
            Node::MultiAssign(parts) => self.multi(&parts.0) && self.pure(&parts.1),
            Node::Update(update) => {
                let place = match &update.place {
                    Place::Variable(read, target) => self.pure(read) && self.target(target),
                    Place::Index(receiver, arguments) => {
                        self.pure(receiver) && self.arguments(arguments)
                    }
                };
                place && self.pure(&update.value)
            }
            Node::If(parts) => self.pure(&parts.0) && self.pure(&parts.1) && self.pure(&parts.2),
            Node::And(pair) | Node::Or(pair) => self.pure(&pair.0) && self.pure(&pair.1),
            Node::Index(index) => self.pure(&index.receiver) && self.pure(&index.key),
            Node::Binary(parts) => self.pure(&parts.1) && self.pure(&parts.2),
            Node::While(it) => self.pure(&it.condition) && self.pure(&it.body),
            Node::For(parts) => self.target(&parts.0) && self.pure(&parts.1) && self.pure(&parts.2),
            Node::Case(case) => {
                case.subject.iter().all(|node| self.pure(node))
                    && case
                        .branches
                        .iter()
                        .all(|(patterns, body)| self.all(patterns) && self.pure(body))
                    && self.pure(&case.otherwise)
            }
            Node::Begin(begin) => self.begin(begin),
            Node::Call(call) => {
                is_independent(call.method)
                    && self.pure(&call.receiver)
                    && self.arguments(&call.arguments)
                    && self.block(call.block.as_ref())
            }
            Node::Helper(call) => {
                call.receiver.iter().all(|node| self.pure(node))
                    && self.arguments(&call.arguments)
                    && self.block(call.block.as_ref())
                    && (!self.helpers.insert(call.method) || {
                        let program = self.program;
                        self.code(&program.definitions[call.method].code)
                    })
            }
            Node::Kernel(call) => {
                !matches!(call.function, Function::Method | Function::Require)
                    && self.arguments(&call.arguments)
                    && self.block(call.block.as_ref())
            }
            Node::Stage(call) => self.stage(call),
            Node::Limit(limit) => {
                self.in_order = true;
                self.pure(&limit.count)
            }
            Node::Lambda(code) => self.code(code),
            Node::Yield(arguments) => self.arguments(arguments),
            _ => false,
        }
    }

    fn stage(&mut self, call: &StageCall) -> bool {
        self.in_order |= call.builtin == Builtin::Reduce
            || call.builtin == Builtin::Sort && call.block.is_some();
        let percentile = call.builtin == Builtin::Percentile;
        let mut arguments = call.arguments.list.iter().enumerate();
        // The requested percentiles are only read, so any thread may evaluate them.
        arguments.all(|(at, node)| percentile && at == 1 && self.once(node) || self.pure(node))
            && self.block(call.block.as_ref())
    }

    fn begin(&mut self, begin: &Begin) -> bool {
        self.pure(&begin.body)
            && begin.rescues.iter().all(|rescue| {
                self.all(&rescue.classes)
                    && rescue.target.iter().all(|target| self.target(target))
                    && self.pure(&rescue.body)
            })
            && begin
                .otherwise
                .iter()
                .chain(&begin.ensure)
                .all(|node| self.pure(node))
    }

    /// `$p ||= 0.05.step(0.95, 0.1)`, the only place of its global: the same value on every thread.
    fn once(&mut self, node: &Node) -> bool {
        match node {
            Node::Update(update) if matches!(update.kind, UpdateKind::Or) => match &update.place {
                Place::Variable(_, Target::Global(at)) => {
                    fixed(&update.value) && self.globals.insert(*at)
                }
                _ => false,
            },
            _ => false,
        }
    }

    fn target(&mut self, target: &Target) -> bool {
        match target {
            Target::Local(_) | Target::Outer(..) | Target::Nowhere => true,
            Target::Global(_)
            | Target::Instance(_)
            | Target::Constant(_)
            | Target::Attribute(_) => false,
            Target::Index(parts) => self.pure(&parts.0) && self.arguments(&parts.1),
            Target::Multi(multi) => self.multi(multi),
        }
    }

    fn multi(&mut self, multi: &Multi) -> bool {
        let mut targets = multi.lefts.iter().chain(&multi.rest).chain(&multi.rights);
        targets.all(|target| self.target(target))
    }

    fn block(&mut self, block: Option<&BlockNode>) -> bool {
        match block {
            None => true,
            Some(BlockNode::Symbol(method)) => is_independent(*method),
            Some(BlockNode::Passed(node)) => self.pure(node),
            Some(BlockNode::Code(code)) => self.code(code),
        }
    }

    fn code(&mut self, code: &Code) -> bool {
        self.parameters(&code.parameters) && self.pure(&code.body)
    }

    fn parameters(&mut self, parameters: &Parameters) -> bool {
        let mut targets = parameters
            .required
            .iter()
            .chain(&parameters.rest)
            .chain(&parameters.posts);
        targets.all(|target| self.target(target))
            && parameters
                .optional
                .iter()
                .all(|(_, default)| self.pure(default))
            && parameters
                .keywords
                .iter()
                .all(|(.., default)| default.iter().all(|node| self.pure(node)))
    }
}

/// Methods except those that call others by name.
fn is_independent(method: M) -> bool {
    !matches!(method, M::Send | M::PublicSend)
}

fn immutable(node: &Node) -> bool {
    match node {
        Node::Nil | Node::True | Node::False | Node::Int(_) | Node::Literal(_) => true,
        Node::Range(parts) => immutable(&parts.0) && immutable(&parts.1),
        _ => false,
    }
}

/// A constant value that is only read.
fn fixed(node: &Node) -> bool {
    match node {
        Node::Array(nodes) => nodes.iter().all(immutable),
        Node::Call(call) => {
            call.method == M::Step
                && call.block.is_none()
                && immutable(&call.receiver)
                && call.arguments.list.iter().all(immutable)
        }
        node => immutable(node),
    }
}
