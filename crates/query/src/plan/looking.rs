//! Whether stages only read their rows. A row of which they may have changed a part is not printed unchanged. Calls that are
//! not known to leave a row unchanged count as changes.

use crate::names::M;
use crate::tree::{BlockNode, Builtin, Code, Inner, Node};

/// Whether nothing in a stage changes an object in place, or hands one to what might.
pub(super) fn only_looks(node: &Node) -> bool {
    let looks_itself = match node {
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
        | Node::LoopNext
        | Node::Interpolated(_)
        | Node::InterpolatedSymbol(_)
        | Node::InterpolatedRegexp(_)
        | Node::Array(_)
        | Node::Sequence(_)
        | Node::Hash(_)
        | Node::Not(_)
        | Node::Next(_)
        | Node::Break(_)
        | Node::AssignLocal(..)
        | Node::Range(_)
        | Node::And(_)
        | Node::Or(_)
        | Node::Index(_)
        | Node::Binary(_)
        | Node::If(_)
        | Node::Case(_)
        | Node::Limit(_)
        | Node::Lambda(_) => true,
        Node::Call(call) => looks(call.method),
        Node::Stage(call) => call.builtin == Builtin::Select && !call.arguments.splat,
        _ => false,
    };
    looks_itself
        && node.inner().into_iter().all(|part| match part {
            Inner::Node(node) => only_looks(node),
            Inner::Code(code) => code_only_looks(code),
            Inner::Block(BlockNode::Code(code)) => code_only_looks(code),
            Inner::Block(BlockNode::Symbol(method)) => looks(*method),
            // A Proc from elsewhere.
            Inner::Block(BlockNode::Passed(_)) | Inner::Target(_) => false,
        })
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
