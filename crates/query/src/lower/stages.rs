//! Cuts the text of a query into stages.
//!
//! Ruby's own tree does not have them: `_["x"] == 1 >> sum(_)` is a comparison with `1 >> sum(_)`. A `>>` ends a stage if
//! the text before it is a whole expression for Ruby's parser. Inside of brackets, strings, regexes and `do … end` it is not.

use super::{AFTER, BEFORE, Lowered};
use crate::error::CompileError;
use ruby_prism as prism;

/// A stage: its offset in the text, and its text without surrounding blanks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) start: usize,
    pub(super) text: &'a str,
}

/// Maximum number of `>>`, each of which is parsed up to.
const SHIFTS_MAX: usize = 1000;

pub(super) fn split(text: &str) -> Lowered<Vec<Piece<'_>>> {
    let mut pieces = Vec::new();
    let (mut start, mut at, mut shifts) = (0, 0, 0);
    while let Some(found) = text[at..].find(">>") {
        let cut = at + found;
        shifts += 1;
        if shifts > SHIFTS_MAX {
            let message = format!("more than {SHIFTS_MAX} `>>`");
            return Err(CompileError::at("query", text, cut, message));
        }
        // In `?>>>`, the first `>` is a character.
        at = cut + 1;
        if !text[cut + 2..].starts_with('=') && is_whole(&text[start..cut]) {
            pieces.extend(piece(text, start, cut));
            start = cut + 2;
            at = start;
        }
    }
    pieces.extend(piece(text, start, text.len()));
    if pieces.is_empty() {
        return Err(CompileError::whole("query", "empty expression"));
    }
    Ok(pieces)
}

fn piece(text: &str, start: usize, end: usize) -> Option<Piece<'_>> {
    let raw = &text[start..end];
    let text = raw.trim();
    let start = start + (raw.len() - raw.trim_start().len());
    (!text.is_empty()).then_some(Piece { start, text })
}

/// Whether this is the text of a stage, and does not end in a comment.
fn is_whole(text: &str) -> bool {
    let wrapped = [BEFORE, text, AFTER].concat();
    let parsed = prism::parse(wrapped.as_bytes());
    let end = BEFORE.len() + text.len();
    let in_comment = || {
        parsed
            .comments()
            .any(|comment| comment.location().end() as usize >= end)
    };
    parsed.errors().next().is_none() && !in_comment() && block_of(&parsed).is_some()
}

/// The block that holds a stage's text, unless a `}` in the text ends it.
pub(super) fn block_of<'a>(parsed: &'a prism::ParseResult<'a>) -> Option<prism::BlockNode<'a>> {
    let statements = parsed.node().as_program_node()?.statements();
    let mut all = statements.body().iter();
    let (first, None) = (all.next()?, all.next()) else {
        return None;
    };
    first.as_call_node()?.block()?.as_block_node()
}

#[cfg(test)]
mod tests;
