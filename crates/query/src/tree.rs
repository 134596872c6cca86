//! The typed tree of a query: what the parser's tree is lowered to. Names are resolved (locals to slots, globals and
//! constants to numbers, methods to [`M`]), so that the evaluator looks nothing up.

use crate::class::Class;
use crate::names::M;
use crate::regex::Pattern;
use crate::symbol::Symbol;
use num_bigint::BigInt;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// An immutable value.
pub(crate) enum Literal {
    Float(f64),
    /// Outside of the range of `i64`.
    Big(Rc<BigInt>),
    Symbol(Symbol),
    Class(Class),
    Regexp(Rc<Pattern>),
}

/// Arithmetic's operators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
}

const OPERATORS: [(Op, M); 11] = [
    (Op::Add, M::OpAdd),
    (Op::Sub, M::OpSub),
    (Op::Mul, M::OpMul),
    (Op::Div, M::OpDiv),
    (Op::Mod, M::OpMod),
    (Op::Lt, M::OpLt),
    (Op::Le, M::OpLe),
    (Op::Gt, M::OpGt),
    (Op::Ge, M::OpGe),
    (Op::Eq, M::OpEq),
    (Op::Ne, M::OpNe),
];

impl Op {
    /// The operator of a method.
    pub(crate) fn of(method: M) -> Option<Op> {
        let found = OPERATORS.iter().find(|(_, known)| *known == method);
        found.map(|(op, _)| *op)
    }

    pub(crate) fn method(self) -> M {
        OPERATORS[self as usize].1
    }

    pub(crate) fn name(self) -> &'static str {
        self.method().name()
    }
}

pub(crate) enum Node {
    Nil,
    True,
    False,
    SelfRef,
    /// `_`: the row.
    Row,
    Int(i64),
    Literal(Literal),
    Str(Rc<str>),
    Interpolated(Vec<Node>),
    InterpolatedSymbol(Vec<Node>),
    InterpolatedRegexp(Box<DynamicRegexp>),
    Array(Vec<Node>),
    /// With `*splat`s among the elements.
    ArraySplat(Vec<Node>),
    Splat(Box<Node>),
    Hash(Vec<Pair>),
    Range(Box<(Node, Node, bool)>),
    Local(usize),
    /// `(depth, slot)`: of an enclosing block or method.
    Outer(usize, usize),
    Global(usize),
    Instance(usize),
    Constant(usize),
    /// `$~` and its parts.
    LastMatch(MatchPart),
    Assign(Box<(Target, Node)>),
    AssignLocal(usize, Box<Node>),
    MultiAssign(Box<(Multi, Node)>),
    /// `a ||= b`, `a &&= b`, `a += b`.
    Update(Box<Update>),
    Sequence(Vec<Node>),
    If(Box<(Node, Node, Node)>),
    And(Box<(Node, Node)>),
    Or(Box<(Node, Node)>),
    Not(Box<Node>),
    While(Box<While>),
    Case(Box<Case>),
    Begin(Box<Begin>),
    Binary(Box<(Op, Node, Node)>),
    Index(Box<Index>),
    Call(Box<Call>),
    /// A helper's method.
    Helper(Box<HelperCall>),
    Kernel(Box<KernelCall>),
    Stage(Box<StageCall>),
    Limit(Box<Limit>),
    /// `$FILENAME`.
    FileName,
    Lambda(Rc<Code>),
    Yield(Arguments),
    BlockGiven,
    Return(Box<Node>),
    Break(Box<Node>),
    Next(Box<Node>),
    LoopBreak(Box<Node>),
    LoopNext,
    Retry,
    Redo,
    /// The text of `defined?`, when its inner part does not fail.
    Defined(Box<Node>, &'static str),
    DefinedGlobal(usize),
    DefinedInstance(usize),
    DefinedConstant(usize),
    /// `/(?<name>…)/ =~ text` with the slots its names are assigned to.
    MatchAssign(Box<MatchAssign>),
    /// `value => pattern`, `value in pattern` are refused; this is `for`.
    For(Box<(Target, Node, Node)>),
}

/// A part of a node.
pub(crate) enum Inner<'n> {
    Node(&'n Node),
    Target(&'n Target),
    Block(&'n BlockNode),
    Code(&'n Code),
}

impl Node {
    /// The parts of a node, as written.
    pub(crate) fn inner(&self) -> Vec<Inner<'_>> {
        let mut all = Parts(Vec::new());
        match self {
            Node::Interpolated(nodes)
            | Node::InterpolatedSymbol(nodes)
            | Node::Array(nodes)
            | Node::ArraySplat(nodes)
            | Node::Sequence(nodes) => all.nodes(nodes),
            Node::InterpolatedRegexp(it) => all.nodes(&it.parts),
            Node::Splat(inner)
            | Node::AssignLocal(_, inner)
            | Node::Not(inner)
            | Node::Return(inner)
            | Node::Break(inner)
            | Node::Next(inner)
            | Node::LoopBreak(inner)
            | Node::Defined(inner, _) => all.nodes([&**inner]),
            Node::Hash(pairs) => pairs.iter().for_each(|pair| match pair {
                Pair::Entry(key, value) => all.nodes([key, value]),
                Pair::Splat(inner) => all.nodes([inner]),
            }),
            Node::Range(parts) => all.nodes([&parts.0, &parts.1]),
            Node::And(parts) | Node::Or(parts) => all.nodes([&parts.0, &parts.1]),
            Node::Binary(parts) => all.nodes([&parts.1, &parts.2]),
            Node::If(parts) => all.nodes([&parts.0, &parts.1, &parts.2]),
            Node::Index(it) => all.nodes([&it.receiver, &it.key]),
            Node::While(it) => all.nodes([&it.condition, &it.body]),
            Node::Limit(it) => all.nodes([&it.count]),
            Node::Yield(arguments) => all.nodes(&arguments.list),
            Node::Lambda(code) => all.0.push(Inner::Code(code)),
            Node::Assign(parts) => {
                all.targets([&parts.0]);
                all.nodes([&parts.1]);
            }
            Node::MultiAssign(parts) => {
                all.targets(parts.0.targets());
                all.nodes([&parts.1]);
            }
            Node::For(parts) => {
                all.targets([&parts.0]);
                all.nodes([&parts.1, &parts.2]);
            }
            Node::MatchAssign(parts) => {
                all.nodes([&parts.0]);
                all.targets(parts.1.iter().map(|(_, target)| target));
            }
            Node::Update(update) => {
                match &update.place {
                    Place::Variable(read, target) => {
                        all.nodes([read]);
                        all.targets([target]);
                    }
                    Place::Index(receiver, arguments) => {
                        all.nodes([receiver]);
                        all.nodes(&arguments.list);
                    }
                }
                all.nodes([&update.value]);
            }
            Node::Case(case) => {
                all.nodes(&case.subject);
                for (patterns, body) in &case.branches {
                    all.nodes(patterns);
                    all.nodes([body]);
                }
                all.nodes([&case.otherwise]);
            }
            Node::Begin(begin) => {
                all.nodes([&begin.body]);
                for rescue in &begin.rescues {
                    all.nodes(&rescue.classes);
                    all.targets(&rescue.target);
                    all.nodes([&rescue.body]);
                }
                all.nodes(begin.otherwise.iter().chain(&begin.ensure));
            }
            Node::Call(it) => all.call(Some(&it.receiver), &it.arguments, it.block.as_ref()),
            Node::Helper(it) => all.call(it.receiver.as_ref(), &it.arguments, it.block.as_ref()),
            Node::Kernel(it) => all.call(None, &it.arguments, it.block.as_ref()),
            Node::Stage(it) => all.call(None, &it.arguments, it.block.as_ref()),
            _ => {}
        }
        all.0
    }
}

struct Parts<'n>(Vec<Inner<'n>>);

impl<'n> Parts<'n> {
    fn nodes(&mut self, nodes: impl IntoIterator<Item = &'n Node>) {
        self.0.extend(nodes.into_iter().map(Inner::Node));
    }

    fn targets(&mut self, targets: impl IntoIterator<Item = &'n Target>) {
        self.0.extend(targets.into_iter().map(Inner::Target));
    }

    fn call(
        &mut self,
        receiver: Option<&'n Node>,
        arguments: &'n Arguments,
        block: Option<&'n BlockNode>,
    ) {
        self.nodes(receiver);
        self.nodes(&arguments.list);
        self.0.extend(block.map(Inner::Block));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchPart {
    All,
    Group(usize),
    Pre,
    Post,
    Last,
}

pub(crate) struct DynamicRegexp {
    pub(crate) parts: Vec<Node>,
    pub(crate) options: u8,
    /// The last one built: most are the same each time.
    pub(crate) cache: RefCell<Option<Rc<Pattern>>>,
}

pub(crate) enum Pair {
    Entry(Node, Node),
    /// `**hash`.
    Splat(Node),
}

pub(crate) enum Target {
    Local(usize),
    Outer(usize, usize),
    Global(usize),
    Instance(usize),
    Constant(usize),
    Index(Box<(Node, Arguments)>),
    Attribute(Box<(Node, M)>),
    Multi(Box<Multi>),
    /// `*_` without a name.
    Nowhere,
}

pub(crate) struct Multi {
    pub(crate) lefts: Vec<Target>,
    pub(crate) rest: Option<Target>,
    pub(crate) rights: Vec<Target>,
}

impl Multi {
    pub(crate) fn targets(&self) -> impl Iterator<Item = &Target> {
        self.lefts.iter().chain(&self.rest).chain(&self.rights)
    }
}

pub(crate) enum UpdateKind {
    Or,
    And,
    Operator(M),
}

pub(crate) struct Update {
    pub(crate) kind: UpdateKind,
    pub(crate) place: Place,
    pub(crate) value: Node,
}

/// A match, and where its named groups go.
pub(crate) type MatchAssign = (Node, Vec<(Rc<str>, Target)>);

/// A target that is read and written back.
pub(crate) enum Place {
    Variable(Node, Target),
    Index(Node, Arguments),
}

pub(crate) struct While {
    pub(crate) condition: Node,
    pub(crate) body: Node,
    pub(crate) until: bool,
    /// `begin … end while`: the body first.
    pub(crate) body_first: bool,
}

pub(crate) struct Case {
    pub(crate) subject: Option<Node>,
    pub(crate) branches: Vec<(Vec<Node>, Node)>,
    pub(crate) otherwise: Node,
}

pub(crate) struct Begin {
    pub(crate) body: Node,
    pub(crate) rescues: Vec<Rescue>,
    pub(crate) otherwise: Option<Node>,
    pub(crate) ensure: Option<Node>,
}

pub(crate) struct Rescue {
    /// Empty: `StandardError`.
    pub(crate) classes: Vec<Node>,
    pub(crate) target: Option<Target>,
    pub(crate) body: Node,
}

/// Arguments as written.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) list: Vec<Node>,
    /// A `*splat` is among them.
    pub(crate) splat: bool,
    /// The last one is made of keywords.
    pub(crate) keywords: bool,
}

impl Arguments {
    /// Whether each argument is a single value, without a splat.
    pub(crate) fn is_plain(&self) -> bool {
        !self.splat && !self.keywords
    }
}

/// The block of a call: written out, or passed with `&`.
pub(crate) enum BlockNode {
    Code(Rc<Code>),
    Passed(Node),
    /// `&:name`, which needs no value.
    Symbol(M),
}

pub(crate) struct Call {
    pub(crate) receiver: Node,
    pub(crate) method: M,
    pub(crate) arguments: Arguments,
    pub(crate) block: Option<BlockNode>,
    /// `&.`
    pub(crate) safe: bool,
}

/// `receiver[key]`.
pub(crate) struct Index {
    pub(crate) receiver: Node,
    pub(crate) key: Node,
    /// The index of a text key in the last Hash, which is tried first.
    pub(crate) place: Cell<usize>,
}

pub(crate) struct HelperCall {
    pub(crate) method: usize,
    /// For the methods of a module.
    pub(crate) receiver: Option<Node>,
    pub(crate) arguments: Arguments,
    pub(crate) block: Option<BlockNode>,
}

/// Functions that every object has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Function {
    Format,
    Integer,
    Float,
    String,
    Array,
    Hash,
    Raise,
    Loop,
    Proc,
    Lambda,
    Require,
    Method,
}

pub(crate) struct KernelCall {
    pub(crate) function: Function,
    pub(crate) arguments: Arguments,
    pub(crate) block: Option<BlockNode>,
}

/// The builtins of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Builtin {
    Select,
    Flat,
    Map,
    MapValues,
    Apply,
    GroupBy,
    Group,
    Distinct,
    Top,
    Histogram,
    Sort,
    /// `sort(key) >> limit(n)`, with the number first.
    Least,
    Sum,
    Count,
    CountIf,
    Min,
    Max,
    Average,
    Stdev,
    Percentile,
    First,
    Last,
    Mode,
    Corr,
    Bucket,
    Lookup,
    Reduce,
}

/// The table that a `lookup` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The name of the file.
    pub(crate) file: String,
    /// The column with the keys; by default, the first one.
    pub(crate) column: Option<String>,
}

/// `limit(count)`.
pub(crate) struct Limit {
    pub(crate) count: Node,
    /// The number of this limit.
    pub(crate) at: usize,
    /// No stage before it reduces: the run ends with the last row that it keeps.
    pub(crate) ends_run: bool,
}

pub(crate) struct StageCall {
    pub(crate) builtin: Builtin,
    pub(crate) arguments: Arguments,
    pub(crate) block: Option<BlockNode>,
    /// Whether the block calls reducers, as far as its text shows.
    pub(crate) reducing: bool,
}

/// A block, a lambda or a method's body, with its parameters and the number of its locals.
pub(crate) struct Code {
    pub(crate) parameters: Parameters,
    pub(crate) locals: usize,
    pub(crate) body: Node,
}

#[derive(Default)]
pub(crate) struct Parameters {
    pub(crate) required: Vec<Target>,
    pub(crate) optional: Vec<(usize, Node)>,
    /// `*rest`; a bare `*` goes nowhere.
    pub(crate) rest: Option<Target>,
    pub(crate) posts: Vec<Target>,
    pub(crate) keywords: Vec<(Symbol, usize, Option<Node>)>,
    #[expect(clippy::option_option, reason = "`**` may come without a name")]
    pub(crate) keyword_rest: Option<Option<usize>>,
    pub(crate) block: Option<usize>,
    /// `|a,|` takes the first of an Array, as if there were more.
    pub(crate) trailing_comma: bool,
    /// Only required ones, in the first slots.
    pub(crate) simple: bool,
}

impl Parameters {
    /// The values of parameters that are not given.
    pub(crate) fn defaults(&self) -> impl Iterator<Item = &Node> {
        let optional = self.optional.iter().map(|(_, default)| default);
        let keywords = self.keywords.iter();
        optional.chain(keywords.filter_map(|(.., default)| default.as_ref()))
    }

    /// Whether it is one plain parameter.
    pub(crate) fn takes_one(&self) -> bool {
        self.simple && self.required.len() == 1 && !self.trailing_comma
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.simple && self.required.is_empty()
    }

    pub(crate) fn takes_keywords(&self) -> bool {
        !self.keywords.is_empty() || self.keyword_rest.is_some()
    }

    /// Whether an Array given alone is spread over them.
    pub(crate) fn spreads(&self) -> bool {
        let places = self.required.len() + self.optional.len() + self.posts.len();
        places > 1
            || self.trailing_comma
            || places == 1
                && (self.rest.is_some() || !self.keywords.is_empty() && self.required.is_empty())
    }

    pub(crate) fn least(&self) -> usize {
        self.required.len() + self.posts.len()
    }

    pub(crate) fn most(&self) -> Option<usize> {
        self.rest
            .is_none()
            .then(|| self.least() + self.optional.len())
    }
}

/// A helper's method.
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) code: Rc<Code>,
    /// It is built in: no file of the user has it.
    pub(crate) is_internal: bool,
}

/// A stage of the query.
pub(crate) struct Stage {
    pub(crate) text: String,
    pub(crate) body: Node,
    pub(crate) locals: usize,
    /// Whether it calls reducers, as far as its text shows.
    pub(crate) reducing: bool,
}

/// All that was compiled.
pub(crate) struct Program {
    pub(crate) stages: Vec<Stage>,
    pub(crate) definitions: Vec<Definition>,
    /// Number of `limit` calls.
    pub(crate) limits: usize,
    /// The tables of `lookup` calls.
    pub(crate) tables: Vec<Named>,
    /// Top-level code of the helper files, with its number of locals.
    pub(crate) start: Vec<(Node, usize)>,
    pub(crate) globals: Vec<String>,
    pub(crate) instances: Vec<String>,
    pub(crate) constants: Vec<String>,
}
