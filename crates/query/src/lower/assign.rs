//! Assignments and their targets.

use super::{Lower, Lowered, number, text};
use crate::names::M;
use crate::tree::{Multi, Node, Place, Target, Update, UpdateKind};
use ruby_prism as prism;

impl Lower {
    pub(super) fn target_local(&mut self, name: &str, depth: u32) -> Target {
        let depth = depth as usize;
        let slot = self.slot(name, depth);
        if depth == 0 {
            Target::Local(slot)
        } else {
            Target::Outer(depth, slot)
        }
    }

    pub(super) fn global_target(&mut self, node: &prism::Node<'_>, name: &str) -> Lowered<Target> {
        if name.len() == 2 && name.as_bytes()[1].is_ascii_punctuation() && name != "$_" {
            return self.fail(
                &node.location(),
                format!("`{name}` cannot be assigned here"),
            );
        }
        if name == "$FILENAME" {
            return self.fail(
                &node.location(),
                "$FILENAME is a read-only variable (NameError)",
            );
        }
        Ok(Target::Global(number(&mut self.program.globals, name)))
    }

    /// The constant of this name in the current module.
    pub(super) fn constant_target(&mut self, name: &str) -> Target {
        let path = if self.module.is_empty() {
            name.to_owned()
        } else {
            format!("{}::{name}", self.module.join("::"))
        };
        Target::Constant(number(&mut self.program.constants, &path))
    }

    pub(super) fn target(&mut self, node: &prism::Node<'_>) -> Lowered<Target> {
        use prism::Node as P;
        Ok(match node {
            P::LocalVariableTargetNode { .. } => {
                let it = node.as_local_variable_target_node();
                let (name, depth) =
                    it.map_or_else(Default::default, |it| (text(&it.name()), it.depth()));
                self.target_local(&name, depth)
            }
            P::GlobalVariableTargetNode { .. } => {
                let name = node
                    .as_global_variable_target_node()
                    .map(|it| text(&it.name()))
                    .unwrap_or_default();
                self.global_target(node, &name)?
            }
            P::InstanceVariableTargetNode { .. } => {
                let name = node
                    .as_instance_variable_target_node()
                    .map(|it| text(&it.name()))
                    .unwrap_or_default();
                Target::Instance(number(&mut self.program.instances, &name))
            }
            P::ConstantTargetNode { .. } => {
                let name = node
                    .as_constant_target_node()
                    .map(|it| text(&it.name()))
                    .unwrap_or_default();
                self.constant_target(&name)
            }
            P::IndexTargetNode { .. } => match node.as_index_target_node() {
                Some(it) => {
                    let receiver = self.node(&it.receiver())?;
                    let arguments = self.arguments(it.arguments())?;
                    Target::Index(Box::new((receiver, arguments)))
                }
                None => Target::Nowhere,
            },
            P::MultiTargetNode { .. } => match node.as_multi_target_node() {
                Some(it) => Target::Multi(Box::new(self.multi(
                    &it.lefts(),
                    it.rest(),
                    &it.rights(),
                )?)),
                None => Target::Nowhere,
            },
            P::RequiredParameterNode { .. } => {
                let name = node
                    .as_required_parameter_node()
                    .map(|it| text(&it.name()))
                    .unwrap_or_default();
                self.target_local(&name, 0)
            }
            P::SplatNode { .. } => match node.as_splat_node().and_then(|it| it.expression()) {
                Some(inner) => self.target(&inner)?,
                None => Target::Nowhere,
            },
            P::ImplicitRestNode { .. } => Target::Nowhere,
            _ => return self.fail(&node.location(), "this cannot be assigned to here"),
        })
    }

    pub(super) fn multi(
        &mut self,
        lefts: &prism::NodeList<'_>,
        rest: Option<prism::Node<'_>>,
        rights: &prism::NodeList<'_>,
    ) -> Lowered<Multi> {
        let mut multi = Multi {
            lefts: Vec::new(),
            rest: None,
            rights: Vec::new(),
        };
        for left in lefts {
            multi.lefts.push(self.target(&left)?);
        }
        if let Some(rest) = rest {
            multi.rest = Some(self.target(&rest)?);
        }
        for right in rights {
            multi.rights.push(self.target(&right)?);
        }
        Ok(multi)
    }

    pub(super) fn operator(
        &self,
        at: &prism::Location<'_>,
        id: &prism::ConstantId<'_>,
    ) -> Lowered<UpdateKind> {
        let name = text(id);
        match M::find(&name) {
            Some(method) => Ok(UpdateKind::Operator(method)),
            None => self.fail(at, format!("`{name}=` is not supported")),
        }
    }

    pub(super) fn update(
        &mut self,
        kind: UpdateKind,
        read: Node,
        target: Target,
        value: &prism::Node<'_>,
    ) -> Lowered {
        let value = self.node(value)?;
        Ok(Node::Update(Box::new(Update {
            kind,
            place: Place::Variable(read, target),
            value,
        })))
    }

    pub(super) fn update_index(
        &mut self,
        kind: UpdateKind,
        receiver: Option<prism::Node<'_>>,
        arguments: Option<prism::ArgumentsNode<'_>>,
        value: &prism::Node<'_>,
    ) -> Lowered {
        let receiver = match receiver {
            Some(receiver) => self.node(&receiver)?,
            None => Node::SelfRef,
        };
        let arguments = self.arguments(arguments)?;
        let value = self.node(value)?;
        Ok(Node::Update(Box::new(Update {
            kind,
            place: Place::Index(receiver, arguments),
            value,
        })))
    }

    pub(super) fn update_local(
        &mut self,
        kind: UpdateKind,
        name: &prism::ConstantId<'_>,
        depth: u32,
        value: &prism::Node<'_>,
    ) -> Lowered {
        let name = text(name);
        let read = self.local(&name, depth as usize);
        let target = self.target_local(&name, depth);
        self.update(kind, read, target, value)
    }

    pub(super) fn update_global(
        &mut self,
        node: &prism::Node<'_>,
        kind: UpdateKind,
        name: &prism::ConstantId<'_>,
        value: &prism::Node<'_>,
    ) -> Lowered {
        let name = text(name);
        let target = self.global_target(node, &name)?;
        let read = Node::Global(number(&mut self.program.globals, &name));
        self.update(kind, read, target, value)
    }

    pub(super) fn update_instance(
        &mut self,
        kind: UpdateKind,
        name: &prism::ConstantId<'_>,
        value: &prism::Node<'_>,
    ) -> Lowered {
        let at = number(&mut self.program.instances, &text(name));
        self.update(kind, Node::Instance(at), Target::Instance(at), value)
    }
}
