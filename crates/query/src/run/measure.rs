//! What the numbers of a result mean, for a drawing of it.

use super::{Query, on_large_stack};
use crate::builtins::shares;
use crate::reducers::shares::Shares;
use crate::tree::{BlockNode, Builtin, Node, StageCall};
use crate::value::number::float_of;
use crate::vm::Vm;
use std::rc::Rc;

/// The numbers of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The key of the rows that they are of, if it is one.
    pub key: Option<String>,
    /// How they follow one another.
    pub scale: Scale,
}

/// How the numbers of a result follow one another.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Percentiles, as shares of 1.
    Shares(Vec<f64>),
    /// Counts of buckets of this width; without one, from a power of two to the next.
    Buckets(Option<f64>),
    /// Sums, counts, averages and the like.
    Values,
}

impl Query {
    /// What the numbers of the result are, if the last stage is one reducer, or that of each group.
    pub fn measure(&self) -> Option<Measure> {
        on_large_stack(|| self.measure_here()).flatten()
    }

    fn measure_here(&self) -> Option<Measure> {
        let program = Rc::new(self.program().ok()?);
        let mut node = &program.stages.last()?.body;
        if let Node::Stage(call) = node
            && call.builtin == Builtin::GroupBy
            && let Some(BlockNode::Code(code)) = &call.block
        {
            node = &code.body;
        }
        let Node::Stage(call) = node else {
            return None;
        };
        let setting = |vm: &mut Vm| {
            let node = call.arguments.list.get(1).filter(|_| is_positional(call))?;
            vm.eval(node, &Vm::top(program.stages.last()?.locals)).ok()
        };
        let mut vm = self.vm(Rc::clone(&program));
        let scale = match call.builtin {
            Builtin::Percentile => {
                let asked = setting(&mut vm)?;
                match shares(&mut vm, &asked).ok()? {
                    Shares::One(share) => Scale::Shares(vec![share]),
                    Shares::Many(shares) => Scale::Shares(shares),
                }
            }
            Builtin::Histogram => Scale::Buckets(setting(&mut vm).as_ref().and_then(float_of)),
            _ => Scale::Values,
        };
        let key = match call.arguments.list.first() {
            Some(Node::Index(index)) => match &index.key {
                Node::Str(key) => Some((**key).to_owned()),
                _ => None,
            },
            _ => None,
        };
        Some(Measure { key, scale })
    }
}

/// Whether the second argument is none of keywords.
fn is_positional(call: &StageCall) -> bool {
    call.arguments.list.len() > 2 || !call.arguments.keywords
}
