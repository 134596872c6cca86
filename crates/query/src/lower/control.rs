//! Control flow: conditions, loops, `case`, `begin`, and what leaves them; definitions and modules.

use super::{Context, Lower, Lowered, text};
use crate::symbol::Symbol;
use crate::tree::Literal;
use crate::tree::{Begin, Case, Definition, Node, Rescue, Target, While};
use ruby_prism as prism;
use std::rc::Rc;

impl Lower {
    pub(super) fn control(&mut self, node: &prism::Node<'_>) -> Lowered<Option<Node>> {
        Ok(Some(if let Some(it) = node.as_statements_node() {
            self.statements(Some(it))?
        } else if let Some(it) = node.as_parentheses_node() {
            self.optional(it.body())?
        } else if let Some(it) = node.as_if_node() {
            self.refuse_assignment(&it.predicate())?;
            let condition = self.node(&it.predicate())?;
            let then = self.statements(it.statements())?;
            let otherwise = self.optional(it.subsequent())?;
            Node::If(Box::new((condition, then, otherwise)))
        } else if let Some(it) = node.as_unless_node() {
            self.refuse_assignment(&it.predicate())?;
            let condition = self.node(&it.predicate())?;
            let then = self.statements(it.statements())?;
            let otherwise = self.otherwise(it.else_clause())?;
            Node::If(Box::new((condition, otherwise, then)))
        } else if let Some(it) = node.as_else_node() {
            self.statements(it.statements())?
        } else if let Some(it) = node.as_and_node() {
            Node::And(Box::new((self.node(&it.left())?, self.node(&it.right())?)))
        } else if let Some(it) = node.as_or_node() {
            Node::Or(Box::new((self.node(&it.left())?, self.node(&it.right())?)))
        } else if let Some(it) = node.as_while_node() {
            self.looping(
                &it.predicate(),
                it.statements(),
                false,
                it.is_begin_modifier(),
            )?
        } else if let Some(it) = node.as_until_node() {
            self.looping(
                &it.predicate(),
                it.statements(),
                true,
                it.is_begin_modifier(),
            )?
        } else if let Some(it) = node.as_for_node() {
            let target = self.target(&it.index())?;
            let list = self.node(&it.collection())?;
            let body = self.within(Context::Loop, |lower| lower.statements(it.statements()))?;
            Node::For(Box::new((target, list, body)))
        } else if let Some(it) = node.as_case_node() {
            self.case(&it)?
        } else if let Some(it) = node.as_begin_node() {
            self.begin(&it)?
        } else if let Some(it) = node.as_rescue_modifier_node() {
            let body = self.node(&it.expression())?;
            let rescue = Rescue {
                classes: Vec::new(),
                target: None,
                body: self.node(&it.rescue_expression())?,
            };
            Node::Begin(Box::new(Begin {
                body,
                rescues: vec![rescue],
                otherwise: None,
                ensure: None,
            }))
        } else {
            return self.jump_or_definition(node);
        }))
    }

    fn jump_or_definition(&mut self, node: &prism::Node<'_>) -> Lowered<Option<Node>> {
        let at = node.location();
        Ok(Some(if let Some(it) = node.as_break_node() {
            let value = self.carried(it.arguments())?;
            if self.in_loop() {
                Node::LoopBreak(Box::new(value))
            } else {
                Node::Break(Box::new(value))
            }
        } else if let Some(it) = node.as_next_node() {
            let value = self.carried(it.arguments())?;
            if self.in_loop() {
                Node::LoopNext
            } else {
                Node::Next(Box::new(value))
            }
        } else if let Some(it) = node.as_return_node() {
            Node::Return(Box::new(self.carried(it.arguments())?))
        } else if node.as_retry_node().is_some() {
            Node::Retry
        } else if node.as_redo_node().is_some() {
            if self.in_loop() {
                return self.fail(&at, "`redo` in a loop is not supported");
            }
            Node::Redo
        } else if let Some(it) = node.as_yield_node() {
            Node::Yield(self.arguments(it.arguments())?)
        } else if let Some(it) = node.as_defined_node() {
            self.defined(&it.value())?
        } else if let Some(it) = node.as_match_write_node() {
            let call = self.node(&it.call().as_node())?;
            let mut targets = Vec::new();
            for target in &it.targets() {
                if let Some(local) = target.as_local_variable_target_node() {
                    let name = text(&local.name());
                    let place = self.target_local(&name, local.depth());
                    targets.push((Rc::from(name.as_str()), place));
                }
            }
            Node::MatchAssign(Box::new((call, targets)))
        } else if let Some(it) = node.as_def_node() {
            self.definition(&it)?
        } else if let Some(it) = node.as_module_node() {
            self.module.push(text(&it.name()));
            self.scopes.push(super::names(&it.locals()));
            let body = self.optional(it.body());
            let locals = self.scopes.pop().map_or(0, |scope| scope.len());
            self.module.pop();
            self.program.start.push((body?, locals));
            Node::Nil
        } else {
            return Ok(None);
        }))
    }

    fn within<T>(
        &mut self,
        context: Context,
        run: impl FnOnce(&mut Lower) -> Lowered<T>,
    ) -> Lowered<T> {
        self.contexts.push(context);
        let result = run(self);
        self.contexts.pop();
        result
    }

    fn otherwise(&mut self, node: Option<prism::ElseNode<'_>>) -> Lowered {
        match node {
            Some(node) => self.statements(node.statements()),
            None => Ok(Node::Nil),
        }
    }

    /// Refuses a literal that is assigned in a condition, which is then true or false for all rows: `==` is meant. Ruby warns
    /// about variables (`if x = 1`), and not about elements (`if _["a"] = 1`).
    pub(super) fn refuse_assignment(&self, condition: &prism::Node<'_>) -> Lowered<()> {
        if let Some(it) = condition.as_and_node() {
            self.refuse_assignment(&it.left())?;
            return self.refuse_assignment(&it.right());
        }
        if let Some(it) = condition.as_or_node() {
            self.refuse_assignment(&it.left())?;
            return self.refuse_assignment(&it.right());
        }
        if let Some(it) = condition.as_parentheses_node() {
            let body = it.body();
            let last = body.as_ref().and_then(prism::Node::as_statements_node);
            let last = last.and_then(|statements| statements.body().last());
            return last.map_or(Ok(()), |last| self.refuse_assignment(&last));
        }
        let assigned = if let Some(it) = condition.as_local_variable_write_node() {
            Some(it.value())
        } else if let Some(it) = condition.as_global_variable_write_node() {
            Some(it.value())
        } else if let Some(it) = condition.as_call_node() {
            let arguments = it.arguments().filter(|_| it.is_attribute_write());
            arguments.and_then(|arguments| arguments.arguments().last())
        } else {
            None
        };
        let is_literal = |value: &prism::Node<'_>| {
            value.as_string_node().is_some()
                || value.as_symbol_node().is_some()
                || value.as_integer_node().is_some()
                || value.as_float_node().is_some()
                || value.as_true_node().is_some()
                || value.as_false_node().is_some()
                || value.as_nil_node().is_some()
        };
        match assigned.filter(is_literal) {
            Some(value) => self.fail(
                &value.location(),
                "`= literal` in a condition, which has the same result for all rows (expected `==`)",
            ),
            None => Ok(()),
        }
    }

    fn looping(
        &mut self,
        condition: &prism::Node<'_>,
        body: Option<prism::StatementsNode<'_>>,
        until: bool,
        body_first: bool,
    ) -> Lowered {
        self.refuse_assignment(condition)?;
        let condition = self.node(condition)?;
        let body = self.within(Context::Loop, |lower| lower.statements(body))?;
        Ok(Node::While(Box::new(While {
            condition,
            body,
            until,
            body_first,
        })))
    }

    /// The value of `break`, `next` and `return`.
    fn carried(&mut self, arguments: Option<prism::ArgumentsNode<'_>>) -> Lowered {
        let mut arguments = self.arguments(arguments)?;
        Ok(match arguments.list.len() {
            0 => Node::Nil,
            1 if !arguments.splat => arguments.list.remove(0),
            _ if arguments.splat => Node::ArraySplat(arguments.list),
            _ => Node::Array(arguments.list),
        })
    }

    fn case(&mut self, node: &prism::CaseNode<'_>) -> Lowered {
        let subject = match node.predicate() {
            Some(predicate) => Some(self.node(&predicate)?),
            None => None,
        };
        let mut branches = Vec::new();
        for condition in &node.conditions() {
            let Some(when) = condition.as_when_node() else {
                return self.fail(
                    &condition.location(),
                    "`case … in` is not supported; use `when`",
                );
            };
            let mut patterns = Vec::new();
            for pattern in &when.conditions() {
                patterns.push(self.node(&pattern)?);
            }
            branches.push((patterns, self.statements(when.statements())?));
        }
        let otherwise = self.otherwise(node.else_clause())?;
        Ok(Node::Case(Box::new(Case {
            subject,
            branches,
            otherwise,
        })))
    }

    fn begin(&mut self, node: &prism::BeginNode<'_>) -> Lowered {
        let body = self.statements(node.statements())?;
        let mut rescues = Vec::new();
        let mut clause = node.rescue_clause();
        while let Some(rescue) = clause {
            let mut classes = Vec::new();
            for class in &rescue.exceptions() {
                classes.push(self.node(&class)?);
            }
            let target: Option<Target> = match rescue.reference() {
                Some(reference) => Some(self.target(&reference)?),
                None => None,
            };
            rescues.push(Rescue {
                classes,
                target,
                body: self.statements(rescue.statements())?,
            });
            clause = rescue.subsequent();
        }
        let otherwise = match node.else_clause() {
            Some(clause) => Some(self.statements(clause.statements())?),
            None => None,
        };
        let ensure = match node.ensure_clause() {
            Some(clause) => Some(self.statements(clause.statements())?),
            None => None,
        };
        if rescues.is_empty() && ensure.is_none() && otherwise.is_none() {
            return Ok(body);
        }
        Ok(Node::Begin(Box::new(Begin {
            body,
            rescues,
            otherwise,
            ensure,
        })))
    }

    /// A method of a helper file. Its value is its name, as in Ruby.
    fn definition(&mut self, node: &prism::DefNode<'_>) -> Lowered {
        let name = text(&node.name());
        let path = if self.module.is_empty() {
            name.clone()
        } else {
            format!("{}.{name}", self.module.join("::"))
        };
        let Some(at) = self.survey.definition(&path) else {
            return self.fail(
                &node.location(),
                "`def` stands in a helper file (`-r FILE`), not in a stage",
            );
        };
        let code = self.method(node)?;
        self.program.definitions[at] = Definition {
            name: path,
            code,
            is_internal: self.source.starts_with('<'),
        };
        Ok(Node::Literal(Literal::Symbol(Symbol::new(&name))))
    }
}
