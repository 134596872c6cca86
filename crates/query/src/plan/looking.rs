//! Whether stages only read their rows. A row of which they may have changed a part is not printed unchanged. Calls that are
//! not known to leave a row unchanged count as changes.

use crate::names::M;
use crate::tree::{Arguments, BlockNode, Builtin, Code, Node, Pair};

/// Whether nothing in a stage changes an object in place, or hands one to what might.
pub(super) fn only_looks(node: &Node) -> bool {
    match node {
        Node::Nil
        | Node::True
        | Node::False
        | Node::Row
        | Node::Int(_)
        | Node::Literal(_)
        | Node::Str(_)
        | Node::Local(_)
        | Node::Outer(..)
        | Node::LastMatch(_)
        | Node::LoopNext => true,
        Node::Interpolated(nodes)
        | Node::InterpolatedSymbol(nodes)
        | Node::Array(nodes)
        | Node::Sequence(nodes) => all(nodes),
        Node::InterpolatedRegexp(it) => all(&it.parts),
        Node::Hash(pairs) => pairs.iter().all(|pair| match pair {
            Pair::Entry(key, value) => only_looks(key) && only_looks(value),
            Pair::Splat(inner) => only_looks(inner),
        }),
        Node::Not(inner) | Node::Next(inner) | Node::Break(inner) | Node::AssignLocal(_, inner) => {
            only_looks(inner)
        }
        Node::Range(parts) => only_looks(&parts.0) && only_looks(&parts.1),
        Node::And(pair) | Node::Or(pair) => only_looks(&pair.0) && only_looks(&pair.1),
        Node::Index(index) => only_looks(&index.receiver) && only_looks(&index.key),
        Node::Binary(parts) => only_looks(&parts.1) && only_looks(&parts.2),
        Node::If(parts) => only_looks(&parts.0) && only_looks(&parts.1) && only_looks(&parts.2),
        Node::Case(case) => {
            case.subject.iter().all(only_looks)
                && case
                    .branches
                    .iter()
                    .all(|(patterns, body)| all(patterns) && only_looks(body))
                && only_looks(&case.otherwise)
        }
        Node::Limit(limit) => only_looks(&limit.count),
        Node::Lambda(code) => code_only_looks(code),
        Node::Call(call) => {
            only_looks(&call.receiver)
                && looks(call.method)
                && all(&call.arguments.list)
                && block(call.block.as_ref())
        }
        Node::Stage(call) => {
            call.builtin == Builtin::Select
                && arguments(&call.arguments)
                && block(call.block.as_ref())
        }
        _ => false,
    }
}

fn all(nodes: &[Node]) -> bool {
    nodes.iter().all(only_looks)
}

fn arguments(arguments: &Arguments) -> bool {
    !arguments.splat && all(&arguments.list)
}

fn block(block: Option<&BlockNode>) -> bool {
    match block {
        None => true,
        Some(BlockNode::Code(code)) => code_only_looks(code),
        Some(BlockNode::Symbol(method)) => looks(*method),
        // A Proc from elsewhere.
        Some(BlockNode::Passed(_)) => false,
    }
}

fn code_only_looks(code: &Code) -> bool {
    code.parameters.simple && only_looks(&code.body)
}

/// Methods that change nothing, whatever their receiver and arguments are.
fn looks(method: M) -> bool {
    matches!(
        method,
        M::OpAdd
            | M::OpSub
            | M::OpMul
            | M::OpDiv
            | M::OpMod
            | M::OpPow
            | M::OpEq
            | M::OpNe
            | M::OpLt
            | M::OpLe
            | M::OpGt
            | M::OpGe
            | M::OpCmp
            | M::OpCaseEq
            | M::OpMatch
            | M::OpNotMatch
            | M::OpNot
            | M::OpBitAnd
            | M::OpBitOr
            | M::OpBitXor
            | M::OpIndex
            | M::OpPlus
            | M::OpMinus
            | M::NilQ
            | M::IsAQ
            | M::Class
            | M::Inspect
            | M::ToS
            | M::ToI
            | M::ToF
            | M::ToSym
            | M::BetweenQ
            | M::Clamp
            | M::Abs
            | M::Ceil
            | M::Floor
            | M::Round
            | M::ZeroQ
            | M::PositiveQ
            | M::NegativeQ
            | M::EvenQ
            | M::OddQ
            | M::Size
            | M::Length
            | M::Bytesize
            | M::Match
            | M::MatchQ
            | M::Sub
            | M::Gsub
            | M::Split
            | M::Strip
            | M::Upcase
            | M::Downcase
            | M::StartWithQ
            | M::EndWithQ
            | M::IncludeQ
            | M::EmptyQ
            | M::Count
            | M::Sum
            | M::Dig
            | M::First
            | M::Last
            | M::Min
            | M::Max
            | M::AnyQ
            | M::AllQ
            | M::NoneQ
            | M::Find
    )
}
