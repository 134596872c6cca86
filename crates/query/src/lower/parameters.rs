//! Parameters of blocks, lambdas and methods, and their bodies.

use super::{Context, Lower, Lowered, names, text};
use crate::symbol::Symbol;
use crate::tree::{Code, Multi, Parameters, Target};
use ruby_prism as prism;
use std::rc::Rc;

/// The name of a block's `it`, which no local can have.
pub(super) const IT: &str = "it ";

impl Lower {
    pub(super) fn block(&mut self, node: &prism::BlockNode<'_>) -> Lowered<Rc<Code>> {
        self.code(
            &node.locals(),
            node.parameters(),
            node.body(),
            Context::Block,
        )
    }

    pub(super) fn lambda(&mut self, node: &prism::LambdaNode<'_>) -> Lowered<Rc<Code>> {
        self.code(
            &node.locals(),
            node.parameters(),
            node.body(),
            Context::Block,
        )
    }

    pub(super) fn method(&mut self, node: &prism::DefNode<'_>) -> Lowered<Rc<Code>> {
        // A method sees none of the locals around it.
        let scopes = std::mem::take(&mut self.scopes);
        let contexts = std::mem::take(&mut self.contexts);
        let parameters = node.parameters().map(|it| it.as_node());
        let code = self.code(&node.locals(), parameters, node.body(), Context::Method);
        self.scopes = scopes;
        self.contexts = contexts;
        code
    }

    fn code(
        &mut self,
        locals: &prism::ConstantList<'_>,
        parameters: Option<prism::Node<'_>>,
        body: Option<prism::Node<'_>>,
        context: Context,
    ) -> Lowered<Rc<Code>> {
        self.scopes.push(names(locals));
        self.contexts.push(context);
        let parameters = match parameters {
            Some(node) => self.parameters(&node)?,
            None => Parameters {
                simple: true,
                ..Parameters::default()
            },
        };
        let body = self.optional(body)?;
        self.contexts.pop();
        let locals = self.scopes.pop().map_or(0, |scope| scope.len());
        Ok(Rc::new(Code {
            parameters,
            locals,
            body,
        }))
    }

    fn parameters(&mut self, node: &prism::Node<'_>) -> Lowered<Parameters> {
        let mut all = Parameters::default();
        if let Some(numbered) = node.as_numbered_parameters_node() {
            for number in 1..=numbered.maximum() {
                let slot = self.slot(&format!("_{number}"), 0);
                all.required.push(Target::Local(slot));
            }
        } else if node.as_it_parameters_node().is_some() {
            let slot = self.slot(IT, 0);
            all.required.push(Target::Local(slot));
        } else {
            let list = match node.as_block_parameters_node() {
                Some(block) => block.parameters(),
                None => node.as_parameters_node(),
            };
            if let Some(list) = list {
                self.parameter_list(&list, &mut all)?;
            }
        }
        all.simple = all.optional.is_empty()
            && all.rest.is_none()
            && all.posts.is_empty()
            && all.keywords.is_empty()
            && all.keyword_rest.is_none()
            && all.block.is_none()
            && all
                .required
                .iter()
                .enumerate()
                .all(|(at, target)| matches!(target, Target::Local(slot) if *slot == at));
        Ok(all)
    }

    fn parameter_list(
        &mut self,
        list: &prism::ParametersNode<'_>,
        all: &mut Parameters,
    ) -> Lowered<()> {
        for required in &list.requireds() {
            all.required.push(self.parameter(&required)?);
        }
        for optional in &list.optionals() {
            let Some(optional) = optional.as_optional_parameter_node() else {
                return self.fail(&optional.location(), "this parameter is not supported");
            };
            let slot = self.slot(&text(&optional.name()), 0);
            let default = self.node(&optional.value())?;
            all.optional.push((slot, default));
        }
        match list.rest() {
            None => {}
            Some(rest) if rest.as_implicit_rest_node().is_some() => all.trailing_comma = true,
            Some(rest) => match rest.as_rest_parameter_node() {
                Some(rest) => {
                    // A bare `*` can be passed on, and needs a place.
                    let name = rest
                        .name()
                        .map_or_else(|| "*".to_owned(), |name| text(&name));
                    all.rest = Some(Target::Local(self.slot(&name, 0)));
                }
                None => return self.fail(&rest.location(), "this parameter is not supported"),
            },
        }
        for post in &list.posts() {
            all.posts.push(self.parameter(&post)?);
        }
        for keyword in &list.keywords() {
            if let Some(required) = keyword.as_required_keyword_parameter_node() {
                let name = text(&required.name());
                all.keywords
                    .push((Symbol::new(&name), self.slot(&name, 0), None));
            } else if let Some(optional) = keyword.as_optional_keyword_parameter_node() {
                let name = text(&optional.name());
                let slot = self.slot(&name, 0);
                let default = self.node(&optional.value())?;
                all.keywords.push((Symbol::new(&name), slot, Some(default)));
            }
        }
        match list.keyword_rest() {
            None => {}
            Some(rest) => match rest.as_keyword_rest_parameter_node() {
                Some(rest) => {
                    let name = rest
                        .name()
                        .map_or_else(|| "**".to_owned(), |name| text(&name));
                    all.keyword_rest = Some(Some(self.slot(&name, 0)));
                }
                None => {
                    return self.fail(
                        &rest.location(),
                        "`...` and `**nil` are not supported; write `*args, **options, &block`",
                    );
                }
            },
        }
        if let Some(block) = list.block().and_then(|it| it.as_block_parameter_node()) {
            let name = block
                .name()
                .map_or_else(|| "&".to_owned(), |name| text(&name));
            all.block = Some(self.slot(&name, 0));
        }
        Ok(())
    }

    /// A required parameter: a name, or a pattern in parentheses.
    fn parameter(&mut self, node: &prism::Node<'_>) -> Lowered<Target> {
        if let Some(plain) = node.as_required_parameter_node() {
            return Ok(Target::Local(self.slot(&text(&plain.name()), 0)));
        }
        let Some(multi) = node.as_multi_target_node() else {
            return self.fail(&node.location(), "this parameter is not supported");
        };
        let mut lefts = Vec::new();
        for left in &multi.lefts() {
            lefts.push(self.parameter(&left)?);
        }
        let rest = match multi.rest() {
            None => None,
            Some(rest) => Some(
                match rest.as_splat_node().and_then(|splat| splat.expression()) {
                    Some(inner) => self.parameter(&inner)?,
                    None => Target::Nowhere,
                },
            ),
        };
        let mut rights = Vec::new();
        for right in &multi.rights() {
            rights.push(self.parameter(&right)?);
        }
        Ok(Target::Multi(Box::new(Multi {
            lefts,
            rest,
            rights,
        })))
    }
}
