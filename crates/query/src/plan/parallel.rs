//! Which stages can run on parts of the input independently: those that keep nothing from row to row except in reducers.
//! All others run in order, on one thread.

use crate::names::M;
use crate::tree::{
    BlockNode, Builtin, Code, Function, Inner, Node, Parameters, Place, Program, StageCall, Target,
    UpdateKind,
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
    divide(program).0
}

/// The first stage that runs in order although it is no reducer that can be joined, and why.
pub(crate) fn in_order(program: &Program) -> Option<(usize, &'static str)> {
    divide(program).1
}

type InOrder = Option<(usize, &'static str)>;

fn divide(program: &Program) -> (Option<Parallel>, InOrder) {
    let mut walk = Walk {
        program,
        helpers: BTreeSet::new(),
        globals: BTreeSet::new(),
        constants: BTreeSet::new(),
        in_order: false,
        why: "",
    };
    for (node, _) in &program.start {
        if !walk.start(node) {
            return (None, Some((0, "a helper file computes values")));
        }
    }
    let (mut first, mut ordered) = (None, None);
    for (at, stage) in program.stages.iter().enumerate() {
        walk.in_order = false;
        walk.helpers.clear();
        if !walk.pure(&stage.body) {
            return (None, Some((at, walk.why)));
        }
        if walk.in_order && first.is_none() {
            ordered = Some((
                at,
                "`reduce`, `limit` and `sort` with a block take rows in order",
            ));
        }
        if (stage.reducing || walk.in_order) && first.is_none() {
            first = Some((at, walk.in_order));
        }
    }
    let parallel = match first {
        None => Some(Parallel::Print),
        Some((0, true)) => None,
        Some((at, true)) => Some(Parallel::Rows(at)),
        Some((at, false)) => Some(Parallel::Merge(at)),
    };
    (parallel, ordered)
}

const VARIABLE: &str = "a variable that all rows share";
const BY_NAME: &str = "a method that is called by its name";

struct Walk<'a> {
    program: &'a Program,
    helpers: BTreeSet<usize>,
    /// Globals that are given a value once.
    globals: BTreeSet<usize>,
    /// Constants that are numbers and the like.
    constants: BTreeSet<usize>,
    /// Whether `reduce`, `limit` or `sort` with a block was met, which need the rows in order.
    in_order: bool,
    /// Why something is not pure.
    why: &'static str,
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

    fn pure(&mut self, node: &Node) -> bool {
        match node {
            Node::Global(_)
            | Node::Instance(_)
            | Node::DefinedGlobal(_)
            | Node::DefinedInstance(_)
            | Node::DefinedConstant(_) => self.refuse(VARIABLE),
            Node::LastMatch(_) | Node::MatchAssign(_) => self.refuse("the variables of a match"),
            Node::Retry | Node::Redo | Node::Defined(..) => {
                self.refuse("`retry`, `redo` or `defined?`")
            }
            Node::Constant(at) => {
                self.constants.contains(at) || self.refuse("a constant that is computed")
            }
            Node::Call(call) => {
                (is_independent(call.method) || self.refuse(BY_NAME)) && self.inner(node)
            }
            Node::Helper(call) => {
                let program = self.program;
                self.inner(node)
                    && (!self.helpers.insert(call.method)
                        || self.code(&program.definitions[call.method].code))
            }
            Node::Kernel(call) => {
                let by_name = matches!(call.function, Function::Method | Function::Require);
                (!by_name || self.refuse(BY_NAME)) && self.inner(node)
            }
            Node::Stage(call) => self.stage(call),
            Node::Limit(_) => {
                self.in_order = true;
                self.inner(node)
            }
            _ => self.inner(node),
        }
    }

    fn refuse(&mut self, why: &'static str) -> bool {
        self.why = why;
        false
    }

    fn inner(&mut self, node: &Node) -> bool {
        node.inner().into_iter().all(|part| match part {
            Inner::Node(node) => self.pure(node),
            Inner::Target(target) => self.target(target),
            Inner::Block(block) => self.block(Some(block)),
            Inner::Code(code) => self.code(code),
        })
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
            | Target::Attribute(_) => self.refuse(VARIABLE),
            Target::Index(parts) => self.pure(&parts.0) && self.all(&parts.1.list),
            Target::Multi(multi) => multi.targets().all(|target| self.target(target)),
        }
    }

    fn block(&mut self, block: Option<&BlockNode>) -> bool {
        match block {
            None => true,
            Some(BlockNode::Symbol(method)) => is_independent(*method) || self.refuse(BY_NAME),
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
            && parameters.defaults().all(|default| self.pure(default))
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
