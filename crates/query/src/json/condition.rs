//! The condition of a first `select`, decided from a line before its row is built: comparisons of fields with numbers and
//! texts, in helpers as well. What may be an error, or anything else than a number or plain text, is left to the evaluator.

use crate::names::M;
use crate::tree::{Arguments, Builtin, HelperCall, Node, Op, Parameters, Program, Target};
use crate::value::number;
use lastbyte_json::parse::Projection;
use std::rc::Rc;

/// Helpers that call helpers are followed to this depth.
const DEPTH_MAX: u32 = 8;

pub(crate) enum Condition {
    Compare(Op, Operand, Operand),
    /// A field is neither null nor false.
    Truthy(usize),
    And(Box<(Condition, Condition)>),
    Or(Box<(Condition, Condition)>),
    Not(Box<Condition>),
}

#[derive(Clone)]
pub(crate) enum Operand {
    /// By its place in the projection.
    Field(usize),
    /// Its `to_i`.
    Integer(usize),
    Nil,
    Int(i64),
    Text(Rc<str>),
}

/// The value of a field or a literal.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Scalar<'a> {
    Nil,
    False,
    Int(i64),
    /// Of a field, ASCII without escapes.
    Text(&'a [u8]),
    Other,
}

impl Condition {
    /// The condition of the first stage, if it is a `select` for which this is possible.
    pub(crate) fn of(program: &Program, read: &Projection) -> Option<Condition> {
        let Projection::Fields(fields) = read else {
            return None;
        };
        let Node::Stage(call) = &program.stages.first()?.body else {
            return None;
        };
        let (Builtin::Select, None) = (call.builtin, &call.block) else {
            return None;
        };
        let [condition] = plain(&call.arguments)? else {
            return None;
        };
        let compiler = Compiler {
            program,
            fields,
            locals: Vec::new(),
            depth: 0,
        };
        compiler.condition(condition)
    }

    /// Whether it holds for these fields; `None` if only the evaluator can tell.
    pub(crate) fn holds<'a>(&'a self, field: &impl Fn(usize) -> Scalar<'a>) -> Option<bool> {
        match self {
            Condition::Compare(op, left, right) => {
                match (op, left.value(field), right.value(field)) {
                    (_, Scalar::Int(left), Scalar::Int(right)) => number::holds(*op, left, right),
                    (_, Scalar::Other, _) | (_, _, Scalar::Other) => None,
                    (Op::Eq, left, right) => Some(left == right),
                    (Op::Ne, left, right) => Some(left != right),
                    _ => None,
                }
            }
            Condition::Truthy(at) => Some(!matches!(field(*at), Scalar::Nil | Scalar::False)),
            Condition::And(pair) => Some(pair.0.holds(field)? && pair.1.holds(field)?),
            Condition::Or(pair) => Some(pair.0.holds(field)? || pair.1.holds(field)?),
            Condition::Not(inner) => Some(!inner.holds(field)?),
        }
    }
}

impl Operand {
    #[inline]
    fn value<'a>(&'a self, field: &impl Fn(usize) -> Scalar<'a>) -> Scalar<'a> {
        match self {
            Operand::Field(at) => field(*at),
            Operand::Integer(at) => match field(*at) {
                Scalar::Nil => Scalar::Int(0),
                Scalar::Int(value) => Scalar::Int(value),
                _ => Scalar::Other,
            },
            Operand::Nil => Scalar::Nil,
            Operand::Int(value) => Scalar::Int(*value),
            Operand::Text(text) => Scalar::Text(text.as_bytes()),
        }
    }
}

/// The arguments of a call, if each is a single value.
fn plain(arguments: &Arguments) -> Option<&[Node]> {
    arguments.is_plain().then_some(&arguments.list)
}

/// The value of a helper's parameter.
#[derive(Clone)]
enum Local {
    Row,
    Operand(Operand),
}

struct Compiler<'a> {
    program: &'a Program,
    fields: &'a [(String, Projection)],
    locals: Vec<(usize, Local)>,
    depth: u32,
}

impl Compiler<'_> {
    fn condition(&self, node: &Node) -> Option<Condition> {
        let both = |pair: &(Node, Node)| {
            let pair = (self.condition(&pair.0)?, self.condition(&pair.1)?);
            Some(Box::new(pair))
        };
        Some(match node {
            Node::And(pair) => Condition::And(both(pair)?),
            Node::Or(pair) => Condition::Or(both(pair)?),
            Node::Not(inner) => Condition::Not(Box::new(self.condition(inner)?)),
            Node::Binary(parts) => {
                Condition::Compare(parts.0, self.operand(&parts.1)?, self.operand(&parts.2)?)
            }
            Node::Helper(call) => {
                let code = &self.program.definitions[call.method].code;
                return self.helper(call, &code.parameters)?.condition(&code.body);
            }
            other => match self.operand(other)? {
                Operand::Field(at) => Condition::Truthy(at),
                _ => return None,
            },
        })
    }

    /// For the body of a helper: its parameters are those that `call` gives.
    fn helper(&self, call: &HelperCall, parameters: &Parameters) -> Option<Compiler<'_>> {
        let given = plain(&call.arguments)?;
        let fits = self.depth < DEPTH_MAX
            && call.receiver.is_none()
            && call.block.is_none()
            && parameters.posts.is_empty()
            && !parameters.takes_keywords()
            && parameters.block.is_none()
            && parameters.most() == Some(given.len());
        let required = parameters.required.iter().map(|target| match target {
            Target::Local(slot) => Some(*slot),
            _ => None,
        });
        let optional = parameters.optional.iter().map(|(slot, _)| Some(*slot));
        let mut locals = Vec::new();
        for (slot, argument) in required.chain(optional).zip(given) {
            let local = match self.local(argument)? {
                // It may be an error although the helper does not use it.
                Local::Operand(Operand::Integer(_)) => return None,
                local => local,
            };
            locals.push((slot?, local));
        }
        fits.then_some(Compiler {
            locals,
            depth: self.depth + 1,
            ..*self
        })
    }

    fn operand(&self, node: &Node) -> Option<Operand> {
        match self.local(node)? {
            Local::Operand(operand) => Some(operand),
            Local::Row => None,
        }
    }

    fn local(&self, node: &Node) -> Option<Local> {
        Some(match node {
            Node::Row => Local::Row,
            Node::Nil => Local::Operand(Operand::Nil),
            Node::Int(value) => Local::Operand(Operand::Int(*value)),
            Node::Str(text) => Local::Operand(Operand::Text(Rc::clone(text))),
            Node::Local(slot) => self.locals.iter().find(|(at, _)| at == slot)?.1.clone(),
            Node::Call(call)
                if call.method == M::ToI
                    && plain(&call.arguments)?.is_empty()
                    && call.block.is_none()
                    && !call.safe =>
            {
                match self.operand(&call.receiver)? {
                    Operand::Field(at) => Local::Operand(Operand::Integer(at)),
                    _ => return None,
                }
            }
            Node::Index(index) => match (self.local(&index.receiver)?, &index.key) {
                (Local::Row, Node::Str(key)) => {
                    let at = self.fields.iter().position(|(name, _)| **name == **key)?;
                    Local::Operand(Operand::Field(at))
                }
                _ => return None,
            },
            _ => return None,
        })
    }
}
