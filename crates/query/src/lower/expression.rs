//! Expressions: one arm for each kind of node of Ruby's tree. Other kinds are refused by name.

use super::{Context, Lower, Lowered, number, parameters::IT, text};
use crate::class::Class;
use crate::symbol::Symbol;
use crate::tree::Literal;
use crate::tree::{MatchPart, Node, UpdateKind};
use ruby_prism as prism;

/// Globals of Ruby's own that have no meaning here.
const FOREIGN_GLOBALS: &[&str] = &[
    "$stdin",
    "$stdout",
    "$stderr",
    "$0",
    "$*",
    "$$",
    "$?",
    "$:",
    "$\"",
    "$PROGRAM_NAME",
    "$;",
    "$,",
    "$/",
    "$\\",
    "$.",
    "$<",
    "$>",
    "$_",
    "$!",
    "$@",
];

impl Lower {
    pub(super) fn expression(&mut self, node: &prism::Node<'_>) -> Lowered {
        if let Some(lowered) = self.value(node)? {
            return Ok(lowered);
        }
        if let Some(lowered) = self.variable(node)? {
            return Ok(lowered);
        }
        if let Some(lowered) = self.updating(node)? {
            return Ok(lowered);
        }
        if let Some(lowered) = self.control(node)? {
            return Ok(lowered);
        }
        if let Some(call) = node.as_call_node() {
            return self.call(&call);
        }
        self.fail(
            &node.location(),
            format!("{} is not supported here", kind_of(node)),
        )
    }

    /// Literals.
    fn value(&mut self, node: &prism::Node<'_>) -> Lowered<Option<Node>> {
        let at = node.location();
        Ok(Some(if node.as_nil_node().is_some() {
            Node::Nil
        } else if node.as_true_node().is_some() {
            Node::True
        } else if node.as_false_node().is_some() {
            Node::False
        } else if node.as_self_node().is_some() {
            Node::SelfRef
        } else if let Some(it) = node.as_integer_node() {
            Self::integer(&it)
        } else if let Some(it) = node.as_float_node() {
            Node::Literal(Literal::Float(it.value()))
        } else if let Some(it) = node.as_string_node() {
            Node::Str(self.utf8(&at, it.unescaped())?.into())
        } else if let Some(it) = node.as_interpolated_string_node() {
            self.interpolated(&it.parts())?
        } else if let Some(it) = node.as_symbol_node() {
            Node::Literal(Literal::Symbol(Symbol::new(
                &self.utf8(&at, it.unescaped())?,
            )))
        } else if let Some(it) = node.as_interpolated_symbol_node() {
            Node::InterpolatedSymbol(self.parts(&it.parts())?)
        } else if let Some(it) = node.as_regular_expression_node() {
            self.regexp(&it)?
        } else if let Some(it) = node.as_interpolated_regular_expression_node() {
            self.interpolated_regexp(&it)?
        } else if let Some(it) = node.as_array_node() {
            self.array(&it)?
        } else if let Some(it) = node.as_hash_node() {
            Node::Hash(self.pairs(&it.elements())?)
        } else if let Some(it) = node.as_keyword_hash_node() {
            Node::Hash(self.pairs(&it.elements())?)
        } else if let Some(it) = node.as_range_node() {
            let (from, to) = (self.optional(it.left())?, self.optional(it.right())?);
            Node::Range(Box::new((from, to, it.is_exclude_end())))
        } else if let Some(it) = node.as_splat_node() {
            let inner = match it.expression() {
                Some(inner) => self.node(&inner)?,
                None => self.local("*", 0),
            };
            Node::Splat(Box::new(inner))
        } else if let Some(it) = node.as_lambda_node() {
            Node::Lambda(self.lambda(&it)?)
        } else if node.as_source_file_node().is_some() {
            Node::Str(self.source.as_str().into())
        } else if node.as_source_line_node().is_some() {
            Node::Int(i64::from(at.start_line()))
        } else {
            return Ok(None);
        }))
    }

    /// Variables and constants, read and written.
    fn variable(&mut self, node: &prism::Node<'_>) -> Lowered<Option<Node>> {
        let at = node.location();
        Ok(Some(if let Some(it) = node.as_local_variable_read_node() {
            self.local(&text(&it.name()), it.depth() as usize)
        } else if node.as_it_local_variable_read_node().is_some() {
            self.local(IT, 0)
        } else if let Some(it) = node.as_local_variable_write_node() {
            let target = self.target_local(&text(&it.name()), it.depth());
            let value = self.node(&it.value())?;
            match target {
                crate::tree::Target::Local(slot) => Node::AssignLocal(slot, Box::new(value)),
                target => Node::Assign(Box::new((target, value))),
            }
        } else if let Some(it) = node.as_global_variable_read_node() {
            let name = text(&it.name());
            match name.as_str() {
                "$~" => Node::LastMatch(MatchPart::All),
                "$FILENAME" => Node::FileName,
                name if FOREIGN_GLOBALS.contains(&name) => {
                    return self.fail(&at, format!("`{name}` is not supported"));
                }
                name => Node::Global(number(&mut self.program.globals, name)),
            }
        } else if let Some(it) = node.as_global_variable_write_node() {
            let target = self.global_target(node, &text(&it.name()))?;
            Node::Assign(Box::new((target, self.node(&it.value())?)))
        } else if let Some(it) = node.as_numbered_reference_read_node() {
            Node::LastMatch(MatchPart::Group(it.number() as usize))
        } else if let Some(it) = node.as_back_reference_read_node() {
            match text(&it.name()).as_str() {
                "$&" => Node::LastMatch(MatchPart::Group(0)),
                "$`" => Node::LastMatch(MatchPart::Pre),
                "$'" => Node::LastMatch(MatchPart::Post),
                _ => Node::LastMatch(MatchPart::Last),
            }
        } else if let Some(it) = node.as_instance_variable_read_node() {
            Node::Instance(number(&mut self.program.instances, &text(&it.name())))
        } else if let Some(it) = node.as_instance_variable_write_node() {
            let target = crate::tree::Target::Instance(number(
                &mut self.program.instances,
                &text(&it.name()),
            ));
            Node::Assign(Box::new((target, self.node(&it.value())?)))
        } else if let Some(it) = node.as_constant_read_node() {
            self.constant(&at, &text(&it.name()))?
        } else if let Some(it) = node.as_constant_path_node() {
            self.constant(
                &at,
                &String::from_utf8_lossy(at.as_slice()).replace(' ', ""),
            )
            .or_else(|error| {
                if it.name().is_some() {
                    Err(error)
                } else {
                    self.fail(&at, "not a constant")
                }
            })?
        } else if let Some(it) = node.as_constant_write_node() {
            let target = self.constant_target(&text(&it.name()));
            Node::Assign(Box::new((target, self.node(&it.value())?)))
        } else if let Some(it) = node.as_multi_write_node() {
            let value = self.node(&it.value())?;
            let multi = self.multi(&it.lefts(), it.rest(), &it.rights())?;
            Node::MultiAssign(Box::new((multi, value)))
        } else {
            return Ok(None);
        }))
    }

    /// `||=`, `&&=`, `+=` and so on.
    fn updating(&mut self, node: &prism::Node<'_>) -> Lowered<Option<Node>> {
        use UpdateKind::{And, Or};
        let at = node.location();
        Ok(Some(
            if let Some(it) = node.as_local_variable_or_write_node() {
                self.update_local(Or, &it.name(), it.depth(), &it.value())?
            } else if let Some(it) = node.as_local_variable_and_write_node() {
                self.update_local(And, &it.name(), it.depth(), &it.value())?
            } else if let Some(it) = node.as_local_variable_operator_write_node() {
                let kind = self.operator(&at, &it.binary_operator())?;
                self.update_local(kind, &it.name(), it.depth(), &it.value())?
            } else if let Some(it) = node.as_global_variable_or_write_node() {
                self.update_global(node, Or, &it.name(), &it.value())?
            } else if let Some(it) = node.as_global_variable_and_write_node() {
                self.update_global(node, And, &it.name(), &it.value())?
            } else if let Some(it) = node.as_global_variable_operator_write_node() {
                let kind = self.operator(&at, &it.binary_operator())?;
                self.update_global(node, kind, &it.name(), &it.value())?
            } else if let Some(it) = node.as_instance_variable_or_write_node() {
                self.update_instance(Or, &it.name(), &it.value())?
            } else if let Some(it) = node.as_instance_variable_and_write_node() {
                self.update_instance(And, &it.name(), &it.value())?
            } else if let Some(it) = node.as_instance_variable_operator_write_node() {
                let kind = self.operator(&at, &it.binary_operator())?;
                self.update_instance(kind, &it.name(), &it.value())?
            } else if let Some(it) = node.as_constant_or_write_node() {
                let target = self.constant_target(&text(&it.name()));
                let crate::tree::Target::Constant(place) = target else {
                    return Ok(None);
                };
                self.update(
                    Or,
                    Node::Constant(place),
                    crate::tree::Target::Constant(place),
                    &it.value(),
                )?
            } else if let Some(it) = node.as_index_or_write_node() {
                self.update_index(Or, it.receiver(), it.arguments(), &it.value())?
            } else if let Some(it) = node.as_index_and_write_node() {
                self.update_index(And, it.receiver(), it.arguments(), &it.value())?
            } else if let Some(it) = node.as_index_operator_write_node() {
                let kind = self.operator(&at, &it.binary_operator())?;
                self.update_index(kind, it.receiver(), it.arguments(), &it.value())?
            } else {
                return Ok(None);
            },
        ))
    }

    /// A constant: of a helper file, of Ruby's, or a class.
    pub(super) fn constant(&mut self, at: &prism::Location<'_>, name: &str) -> Lowered {
        let name = name.trim_start_matches("::");
        for depth in (0..=self.module.len()).rev() {
            let mut path = self.module[..depth].to_vec();
            path.push(name.to_owned());
            let path = path.join("::");
            if self.survey.constants.contains(&path) {
                return Ok(Node::Constant(number(&mut self.program.constants, &path)));
            }
            if let Some(module) = self.survey.modules.iter().position(|known| *known == path) {
                return Ok(Node::Literal(Literal::Class(Class::Module(module as u16))));
            }
        }
        if name == "Random" {
            let what = "`Random` is not supported: a query's result does not depend on chance";
            return self.fail(at, what);
        }
        if name == "Set" {
            return self.fail(
                at,
                "`Set` is not supported: use an Array (`uniq`, `|`, `&`, `-`, `include?`), or a Hash",
            );
        }
        if let Some(node) = builtin_constant(name) {
            return Ok(node);
        }
        let literal = match name {
            "None" | "Null" | "NULL" => Some("nil"),
            "True" | "TRUE" => Some("true"),
            "False" | "FALSE" => Some("false"),
            _ => None,
        };
        let hint = literal
            .or_else(|| Class::nearest(name))
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        self.fail(at, format!("uninitialized constant {name}{hint}"))
    }

    /// `defined?(…)`.
    pub(super) fn defined(&mut self, node: &prism::Node<'_>) -> Lowered {
        if let Some(inner) = node.as_parentheses_node()
            && let Some(body) = inner.body()
            && let Some(statements) = body.as_statements_node()
            && let Some(first) = statements.body().first()
        {
            return self.defined(&first);
        }
        let word = if let Some(it) = node.as_global_variable_read_node() {
            return Ok(Node::DefinedGlobal(number(
                &mut self.program.globals,
                &text(&it.name()),
            )));
        } else if node.as_local_variable_read_node().is_some() {
            "local-variable"
        } else if let Some(it) = node.as_instance_variable_read_node() {
            let name = text(&it.name());
            let at = number(&mut self.program.instances, &name);
            return Ok(Node::DefinedInstance(at));
        } else if node.as_yield_node().is_some() {
            let word = Node::Str("yield".into());
            return Ok(Node::If(Box::new((Node::BlockGiven, word, Node::Nil))));
        } else if node.as_self_node().is_some() {
            "self"
        } else if node.as_nil_node().is_some() {
            "expression"
        } else if let Some(it) = node.as_constant_read_node() {
            return Ok(match self.constant(&node.location(), &text(&it.name())) {
                Ok(Node::Constant(at)) => Node::DefinedConstant(at),
                Ok(_) => Node::Str("constant".into()),
                Err(_) => Node::Nil,
            });
        } else if let Some(it) = node.as_call_node() {
            if it.receiver().is_none()
                && crate::names::PRINTING.contains(&text(&it.name()).as_str())
            {
                return Ok(Node::Str("method".into()));
            }
            "method"
        } else if node.as_local_variable_write_node().is_some() {
            "assignment"
        } else {
            "expression"
        };
        Ok(match self.node(node) {
            Ok(inner) => Node::Defined(Box::new(inner), word),
            Err(_) => Node::Nil,
        })
    }

    pub(super) fn in_loop(&self) -> bool {
        self.contexts.last() == Some(&Context::Loop)
    }
}

fn builtin_constant(name: &str) -> Option<Node> {
    let float = |value| Node::Literal(Literal::Float(value));
    Some(match name {
        "Math::PI" => float(std::f64::consts::PI),
        "Math::E" => float(std::f64::consts::E),
        "Float::INFINITY" => float(f64::INFINITY),
        "Float::NAN" => float(f64::NAN),
        "Float::MAX" => float(f64::MAX),
        "Float::MIN" => float(f64::MIN_POSITIVE),
        "Float::EPSILON" => float(f64::EPSILON),
        "Float::DIG" => Node::Int(15),
        "Float::MANT_DIG" => Node::Int(53),
        "Regexp::IGNORECASE" => Node::Int(1),
        "Regexp::EXTENDED" => Node::Int(2),
        "Regexp::MULTILINE" => Node::Int(4),
        other => return Class::find(other).map(|class| Node::Literal(Literal::Class(class))),
    })
}

/// The kind of a node, in words.
fn kind_of(node: &prism::Node<'_>) -> &'static str {
    use prism::Node as P;
    match node {
        P::CaseMatchNode { .. } | P::MatchPredicateNode { .. } | P::MatchRequiredNode { .. } => {
            "pattern matching (`case … in`, `=>`, `in`; use `case … when`, `is_a?` or `dig`)"
        }
        P::ClassNode { .. } | P::SingletonClassNode { .. } => {
            "a class definition (use `def`s, or a `module` with `def self.`)"
        }
        P::XStringNode { .. } | P::InterpolatedXStringNode { .. } => "running a command",
        P::RationalNode { .. } | P::ImaginaryNode { .. } => "a rational or imaginary literal",
        P::FlipFlopNode { .. } => "a flip-flop",
        P::SuperNode { .. } | P::ForwardingSuperNode { .. } => "`super`",
        P::AliasMethodNode { .. } | P::AliasGlobalVariableNode { .. } => "`alias`",
        P::ClassVariableReadNode { .. } | P::ClassVariableWriteNode { .. } => {
            "a class variable (use a global, `$x`)"
        }
        P::DefNode { .. } => "`def` in this place (put it in a helper file, `-r FILE`)",
        P::UndefNode { .. } => "`undef`",
        P::PreExecutionNode { .. } | P::PostExecutionNode { .. } => "`BEGIN` or `END`",
        _ => "this expression",
    }
}
