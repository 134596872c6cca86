//! Literals: numbers, strings with interpolation, symbols, regexes, arrays and hashes.

use super::{Lower, Lowered};
use crate::regex::{EXTENDED, IGNORE_CASE, MULTI_LINE, Pattern};
use crate::tree::Literal;
use crate::tree::{DynamicRegexp, Node, Pair};
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::ToPrimitive;
use ruby_prism as prism;
use std::cell::RefCell;
use std::rc::Rc;

impl Lower {
    pub(super) fn integer(node: &prism::IntegerNode<'_>) -> Node {
        let value = node.value();
        let (negative, digits) = value.to_u32_digits();
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        let value = BigInt::from_biguint(sign, BigUint::from_slice(digits));
        match value.to_i64() {
            Some(it) => Node::Int(it),
            None => Node::Literal(Literal::Big(Rc::new(value))),
        }
    }

    /// The bytes of a string literal, which must be UTF-8.
    pub(super) fn utf8(&self, at: &prism::Location<'_>, bytes: &[u8]) -> Lowered<String> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => self.fail(
                at,
                "a String that is not UTF-8 cannot be printed as JSON; it is not supported",
            ),
        }
    }

    /// The parts of an interpolated literal.
    pub(super) fn parts(&mut self, parts: &prism::NodeList<'_>) -> Lowered<Vec<Node>> {
        let mut list = Vec::new();
        for part in parts {
            if let Some(string) = part.as_string_node() {
                list.push(Node::Str(
                    self.utf8(&part.location(), string.unescaped())?.into(),
                ));
            } else if let Some(embedded) = part.as_embedded_statements_node() {
                list.push(self.statements(embedded.statements())?);
            } else if let Some(variable) = part.as_embedded_variable_node() {
                list.push(self.node(&variable.variable())?);
            } else {
                list.push(self.node(&part)?);
            }
        }
        Ok(list)
    }

    pub(super) fn interpolated(&mut self, parts: &prism::NodeList<'_>) -> Lowered {
        let parts = self.parts(parts)?;
        if let Some(plain) = plain(&parts) {
            return Ok(Node::Str(plain.into()));
        }
        Ok(Node::Interpolated(parts))
    }

    pub(super) fn regexp(&self, node: &prism::RegularExpressionNode<'_>) -> Lowered {
        let options = options(
            node.is_ignore_case(),
            node.is_extended(),
            node.is_multi_line(),
        );
        let at = node.location();
        let source = self.utf8(&at, node.unescaped())?;
        let pattern = Pattern::new(&source, options)
            .or_else(|reason| self.fail(&at, format!("{reason} (RegexpError)")))?;
        Ok(Node::Literal(Literal::Regexp(Rc::new(pattern))))
    }

    pub(super) fn interpolated_regexp(
        &mut self,
        node: &prism::InterpolatedRegularExpressionNode<'_>,
    ) -> Lowered {
        let options = options(
            node.is_ignore_case(),
            node.is_extended(),
            node.is_multi_line(),
        );
        let parts = self.parts(&node.parts())?;
        Ok(Node::InterpolatedRegexp(Box::new(DynamicRegexp {
            parts,
            options,
            cache: RefCell::new(None),
        })))
    }

    pub(super) fn array(&mut self, node: &prism::ArrayNode<'_>) -> Lowered {
        let mut list = Vec::new();
        let mut splat = false;
        for element in &node.elements() {
            if let Some(hash) = element.as_keyword_hash_node() {
                list.push(Node::Hash(self.pairs(&hash.elements())?));
                continue;
            }
            let lowered = self.node(&element)?;
            splat |= matches!(lowered, Node::Splat(_));
            list.push(lowered);
        }
        Ok(if splat {
            Node::ArraySplat(list)
        } else {
            Node::Array(list)
        })
    }

    pub(super) fn pairs(&mut self, elements: &prism::NodeList<'_>) -> Lowered<Vec<Pair>> {
        let mut list = Vec::new();
        for element in elements {
            if let Some(assoc) = element.as_assoc_node() {
                let key = self.node(&assoc.key())?;
                let value = assoc.value();
                let value = match value.as_implicit_node() {
                    Some(implicit) => self.node(&implicit.value())?,
                    None => self.node(&value)?,
                };
                list.push(Pair::Entry(key, value));
            } else if let Some(splat) = element.as_assoc_splat_node() {
                list.push(Pair::Splat(self.optional(splat.value())?));
            } else {
                return self.fail(&element.location(), "this is not supported in a Hash");
            }
        }
        Ok(list)
    }
}

fn options(ignore_case: bool, extended: bool, multi_line: bool) -> u8 {
    u8::from(ignore_case) * IGNORE_CASE
        + u8::from(extended) * EXTENDED
        + u8::from(multi_line) * MULTI_LINE
}

/// The text, when nothing is interpolated.
fn plain(parts: &[Node]) -> Option<String> {
    parts
        .iter()
        .map(|part| match part {
            Node::Str(text) => Some(&**text),
            _ => None,
        })
        .collect()
}
