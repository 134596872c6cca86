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
const LOOKING: &str = "+ - * / % ** == != < <= > >= <=> === =~ !~ ! & | ^ [] +@ -@ nil? is_a? class inspect to_s to_i to_f to_sym \
    between? clamp abs ceil floor round zero? positive? negative? even? odd? size length bytesize match match? sub \
    gsub split strip upcase downcase start_with? end_with? include? empty? count sum dig first last min max any? \
    all? none? find";

fn looks(method: M) -> bool {
    LOOKING.split(' ').any(|name| name == method.name())
}
