//! The constant keys that a stage reads of the result of the stage before it, where the query writes that result as a hash with constant
//! keys: no row of such a stage has any other key. `{a: 1} >> _["a"]` reads a text where the key is a symbol.

use super::{Walk, constant_keys::KeyPath, looking};
use crate::error::AbsentKey;
use crate::names::nearest;
use crate::tree::{BlockNode, Builtin, Code, Literal, Node, Pair, Program, StageCall};

/// A result whose keys are known.
enum Shape<'a> {
    /// A hash: its keys as those of a [`KeyPath`], with their values.
    Hash(Vec<(String, &'a Node)>),
    /// A hash of any keys, all of whose values are this one.
    Groups(&'a Node),
}

/// The keys that no row of a stage after the first one has.
pub(crate) fn absent(program: &Program) -> Vec<AbsentKey> {
    let (mut rows, mut absent) = (None, Vec::new());
    for stage in &program.stages {
        if let Some(shape) = &rows {
            read(program, &stage.body, shape, &mut absent);
        }
        if !passes(&stage.body) {
            rows = Shape::of(&stage.body);
        }
    }
    absent
}

/// Whether the rows of the next stage are those of this one.
fn passes(body: &Node) -> bool {
    match body {
        Node::Row | Node::Limit(_) => true,
        Node::Stage(call) if call.builtin == Builtin::Sort => {
            call.block.is_none() && call.arguments.list.iter().all(looking::only_looks)
        }
        Node::Stage(call) => call.builtin == Builtin::Select && looking::only_looks(body),
        _ => false,
    }
}

impl<'a> Shape<'a> {
    fn of(node: &'a Node) -> Option<Self> {
        match node {
            Node::Sequence(nodes) => Self::of(nodes.last()?),
            Node::Hash(pairs) => {
                let entries = pairs.iter().map(|pair| match pair {
                    Pair::Entry(Node::Str(key), value) => Some(((**key).to_owned(), value)),
                    Pair::Entry(Node::Literal(Literal::Symbol(key)), value) => {
                        Some((format!(":{}", key.name()), value))
                    }
                    _ => None,
                });
                entries.collect::<Option<_>>().map(Self::Hash)
            }
            Node::Stage(call) if matches!(call.builtin, Builtin::GroupBy | Builtin::MapValues) => {
                block(call).map(|code| Self::Groups(&code.body))
            }
            _ => None,
        }
    }

    /// The part of a path that the result does not have, and the key that may be meant.
    fn lacks(&self, path: &[String]) -> Option<(KeyPath, Option<KeyPath>)> {
        let (Self::Hash(entries), Some((first, rest))) = (self, path.split_first()) else {
            return None;
        };
        if let Some((_, value)) = entries.iter().find(|(name, _)| name == first) {
            let with_first = |rest: KeyPath| [std::slice::from_ref(first), &rest[..]].concat();
            let (rest, nearest) = Shape::of(value)?.lacks(rest)?;
            return Some((with_first(rest), nearest.map(with_first)));
        }
        // A symbol for a text, and the reverse.
        let plain = first.strip_prefix(':');
        let other = plain.map_or_else(|| format!(":{first}"), str::to_owned);
        let names = || entries.iter().map(|(name, _)| name.as_str());
        let nearest = names()
            .find(|name| *name == other)
            .or_else(|| nearest(first, names()));
        Some((
            vec![first.clone()],
            nearest.map(|name| vec![name.to_owned()]),
        ))
    }
}

/// The block of a stage's function, if it has one parameter at most.
fn block(call: &StageCall) -> Option<&Code> {
    match &call.block {
        Some(BlockNode::Code(code)) => {
            let parameters = &code.parameters;
            (parameters.takes_one() || parameters.is_empty()).then_some(&**code)
        }
        _ => None,
    }
}

/// Adds the keys that a stage reads and its rows do not have.
fn read(program: &Program, body: &Node, shape: &Shape<'_>, absent: &mut Vec<AbsentKey>) {
    let mut walk = Walk::new(program);
    walk.is_target_row = true;
    let values;
    let shape = match (shape, body) {
        (Shape::Hash(_), body) => {
            walk.stage(body);
            shape
        }
        (Shape::Groups(value), Node::Stage(call))
            if call.builtin == Builtin::MapValues && call.arguments.list.is_empty() =>
        {
            let (Some(code), Some(of_values)) = (block(call), Shape::of(value)) else {
                return;
            };
            walk.code(code, code.parameters.takes_one().then_some(0));
            values = of_values;
            &values
        }
        _ => return,
    };
    for group in walk.keys.groups() {
        let lacking: Option<Vec<_>> = group.paths.iter().map(|path| shape.lacks(path)).collect();
        let shown = group.helper.as_ref().map_or(usize::MAX, |_| 1);
        for (path, nearest) in lacking.unwrap_or_default().into_iter().take(shown) {
            let key = AbsentKey {
                path,
                nearest: nearest.filter(|_| group.helper.is_none()),
                helper: group.helper.clone(),
                is_whole: true,
            };
            if !absent.contains(&key) {
                absent.push(key);
            }
        }
    }
}
