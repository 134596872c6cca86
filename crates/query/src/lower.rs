//! Parses stages and helper files with Ruby's own grammar (`ruby-prism`) and lowers them to [`crate::tree`]. Only
//! this module uses the parser. Unsupported syntax is refused here, by name and place.

mod assign;
mod call;
mod control;
mod expression;
mod literal;
mod parameters;
mod stages;
mod survey;

use crate::error::CompileError;
use crate::tree::{Builtin, Code, Definition, Node, Parameters, Program, Stage};
use ruby_prism as prism;
use stages::Piece;
use std::rc::Rc;
use survey::Survey;

/// Maximum nesting of an expression.
const DEPTH_MAX: u32 = 200;

/// Text put around a stage, so that `next` and a trailing comment mean the same as in jrf.
const BEFORE: &str = "proc {";
const AFTER: &str = "\n}";

pub(crate) type Lowered<T = Node> = Result<T, CompileError>;

/// A helper file: its name and its text.
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

pub(crate) fn compile(query: &str, helpers: &[Source<'_>]) -> Lowered<Program> {
    let pieces = stages::split(query)?;
    let mut survey = Survey::default();
    for helper in helpers {
        let parsed = prism::parse(helper.text.as_bytes());
        refuse_errors(&parsed, helper.name, helper.text, 0)?;
        survey.look(&parsed.node());
    }
    survey.close();
    let mut lower = Lower {
        survey,
        program: Program {
            stages: Vec::new(),
            definitions: Vec::new(),
            limits: 0,
            tables: Vec::new(),
            start: Vec::new(),
            globals: Vec::new(),
            instances: Vec::new(),
            constants: Vec::new(),
        },
        source: String::new(),
        text: String::new(),
        shift: 0,
        scopes: Vec::new(),
        contexts: Vec::new(),
        module: Vec::new(),
        depth: 0,
    };
    for definition in lower.survey.definitions() {
        let code = Code {
            parameters: Parameters::default(),
            locals: 0,
            body: Node::Nil,
        };
        lower.program.definitions.push(Definition {
            name: definition,
            code: Rc::new(code),
            is_internal: false,
        });
    }
    for helper in helpers {
        lower.helper(helper)?;
    }
    for piece in &pieces {
        lower.stage(query, piece)?;
    }
    keep_first_rows(&mut lower.program.stages);
    Ok(lower.program)
}

/// The most rows that `sort(key) >> limit(n)` keeps in order while it reads.
const FIRST_MAX: i64 = 10_000;

/// `sort(key) >> limit(n)` needs the `n` first rows only.
fn keep_first_rows(stages: &mut [Stage]) {
    for at in 1..stages.len() {
        let (before, after) = stages.split_at_mut(at);
        if let Some(Node::Stage(call)) = before.last_mut().map(|stage| &mut stage.body)
            && let Node::Limit(limit) = &after[0].body
            && let Node::Int(count @ 1..=FIRST_MAX) = &limit.count
            && call.builtin == Builtin::Sort
            && call.block.is_none()
            && call.arguments.is_plain()
        {
            call.builtin = Builtin::Least;
            call.arguments.list.insert(0, Node::Int(*count));
        }
    }
}

/// Returns the first syntax error of a text that begins at `start` of `whole`.
fn refuse_errors(
    parsed: &prism::ParseResult<'_>,
    source: &str,
    whole: &str,
    start: usize,
) -> Lowered<()> {
    let Some(first) = parsed.errors().next() else {
        return Ok(());
    };
    let message = String::from_utf8_lossy(first.message()).into_owned();
    let byte = (start + first.location().start() as usize).min(whole.len());
    let is_sql = whole.to_ascii_lowercase().starts_with("select ");
    let hint = match whole.get(byte..).and_then(field_of_jq) {
        Some(field) => format!("; the field is `_[\"{field}\"]`"),
        None if starts_with_word(whole, byte, "and") => "; write `&&`".to_owned(),
        None if starts_with_word(whole, byte, "or") => "; write `||`".to_owned(),
        None if starts_with_word(whole, byte, "not") => "; write `!`".to_owned(),
        None if is_sql => {
            "; a query is Ruby, as in `select(_[\"ttlb\"] > 100) >> count()`".to_owned()
        }
        None => String::new(),
    };
    let closing = [")", "]", "}"]
        .iter()
        .find(|closing| message.starts_with(&format!("unexpected '{closing}',")));
    let what = match closing {
        Some(closing) => {
            let offset = whole
                .get(..byte)
                .map_or(byte, |before| before.chars().count());
            format!("mismatched delimiter \"{closing}\" at offset {offset}")
        }
        None if message.contains("expected a `}`")
            || message.contains("expected a `)`")
            || message.contains("expected a `]`")
            || message.contains("expected a matching") =>
        {
            format!("unclosed or mismatched delimiter: {message}")
        }
        None => format!("syntax error: {message}"),
    };
    Err(CompileError::at(source, whole, byte, what + &hint))
}

/// Whether a word begins at a byte of a text.
fn starts_with_word(text: &str, byte: usize, word: &str) -> bool {
    let rest = text.get(byte..).and_then(|rest| rest.strip_prefix(word));
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// The name in `.name`, the form of jq.
fn field_of_jq(text: &str) -> Option<&str> {
    let name = text.strip_prefix('.')?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let name = &name[..end.unwrap_or(name.len())];
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        .then_some(name)
}

/// Where an expression stands, which decides what `break` and `next` mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Loop,
    Block,
    Method,
}

struct Lower {
    survey: Survey,
    program: Program,
    /// The text being lowered, its name, and the shift of its offsets.
    source: String,
    text: String,
    shift: isize,
    /// The locals of each scope, innermost last.
    scopes: Vec<Vec<String>>,
    contexts: Vec<Context>,
    module: Vec<String>,
    depth: u32,
}

impl Lower {
    fn fail<T>(&self, at: &prism::Location<'_>, message: impl Into<String>) -> Lowered<T> {
        Err(self.error(at.start() as usize, message))
    }

    fn error(&self, byte: usize, message: impl Into<String>) -> CompileError {
        let byte = usize::try_from(byte.cast_signed() + self.shift).unwrap_or(0);
        CompileError::at(&self.source, &self.text, byte, message)
    }

    fn stage(&mut self, query: &str, piece: &Piece<'_>) -> Lowered<()> {
        let wrapped = [BEFORE, piece.text, AFTER].concat();
        let parsed = prism::parse(wrapped.as_bytes());
        let block = stages::block_of(&parsed);
        if parsed.errors().next().is_some() || block.is_none() {
            // By itself, its errors are in the words of an expression.
            refuse_errors(
                &prism::parse(piece.text.as_bytes()),
                "query",
                query,
                piece.start,
            )?;
            let start = piece.start.saturating_sub(BEFORE.len());
            refuse_errors(&parsed, "query", query, start)?;
        }
        "query".clone_into(&mut self.source);
        query.clone_into(&mut self.text);
        self.shift = piece.start.cast_signed() - BEFORE.len().cast_signed();
        let Some(block) = block else {
            return Err(self.error(BEFORE.len(), "syntax error: not an expression"));
        };
        self.scopes.push(names(&block.locals()));
        self.contexts.push(Context::Block);
        let body = self.optional(block.body())?;
        self.contexts.pop();
        let locals = self.scopes.pop().map_or(0, |scope| scope.len());
        let reducing = block.body().is_some_and(|body| self.survey.reduces(&body));
        self.program.stages.push(Stage {
            text: piece.text.to_owned(),
            body,
            locals,
            reducing,
        });
        Ok(())
    }

    fn helper(&mut self, helper: &Source<'_>) -> Lowered<()> {
        helper.name.clone_into(&mut self.source);
        helper.text.clone_into(&mut self.text);
        self.shift = 0;
        let parsed = prism::parse(helper.text.as_bytes());
        let node = parsed.node();
        let Some(program) = node.as_program_node() else {
            return Ok(());
        };
        self.scopes.push(names(&program.locals()));
        let body = self.statements(Some(program.statements()))?;
        let locals = self.scopes.pop().map_or(0, |scope| scope.len());
        self.program.start.push((body, locals));
        Ok(())
    }

    fn statements(&mut self, statements: Option<prism::StatementsNode<'_>>) -> Lowered {
        let Some(statements) = statements else {
            return Ok(Node::Nil);
        };
        let mut list = Vec::new();
        for node in &statements.body() {
            list.push(self.node(&node)?);
        }
        Ok(match list.len() {
            0 => Node::Nil,
            1 => list.remove(0),
            _ => Node::Sequence(list),
        })
    }

    fn optional(&mut self, node: Option<prism::Node<'_>>) -> Lowered {
        match node {
            Some(node) => self.node(&node),
            None => Ok(Node::Nil),
        }
    }

    fn node(&mut self, node: &prism::Node<'_>) -> Lowered {
        if self.depth >= DEPTH_MAX {
            return self.fail(
                &node.location(),
                format!("nested more than {DEPTH_MAX} levels deep"),
            );
        }
        self.depth += 1;
        let lowered = self.expression(node);
        self.depth -= 1;
        lowered
    }

    /// The slot of a local in the scope `depth` blocks out.
    fn slot(&mut self, name: &str, depth: usize) -> usize {
        let at = self.scopes.len().saturating_sub(1 + depth);
        let scope = &mut self.scopes[at];
        scope
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| {
                scope.push(name.to_owned());
                scope.len() - 1
            })
    }

    fn local(&mut self, name: &str, depth: usize) -> Node {
        let slot = self.slot(name, depth);
        if depth == 0 {
            Node::Local(slot)
        } else {
            Node::Outer(depth, slot)
        }
    }
}

fn number(names: &mut Vec<String>, name: &str) -> usize {
    names
        .iter()
        .position(|known| known == name)
        .unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        })
}

fn text(id: &prism::ConstantId<'_>) -> String {
    String::from_utf8_lossy(id.as_slice()).into_owned()
}

fn names(list: &prism::ConstantList<'_>) -> Vec<String> {
    list.iter().map(|id| text(&id)).collect()
}
