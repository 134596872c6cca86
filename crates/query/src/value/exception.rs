//! Exceptions, the other ways out of an expression, and Ruby's wording of the common errors.

#![expect(
    clippy::unnecessary_box_returns,
    reason = "a boxed error keeps the `Result` of a value as small as the value"
)]

use super::Value;
use super::inspect::inspect;
use crate::class::Class;
use crate::regex::PatternError;
use crate::tree::{Literal, Node};
use std::rc::Rc;

/// What `raise` raises.
pub(crate) struct Exception {
    pub(crate) class: Class,
    pub(crate) message: Value,
    /// What is missing in Ruby's message: the constant key whose value is nil, or that the row is no object.
    pub(crate) hint: Option<String>,
}

/// A way out of an expression that is not its value.
pub(crate) enum Flow {
    Raise(Rc<Exception>),
    /// `break` out of the call that was given the block of this tag.
    Break(u64, Value),
    /// `next` out of the block, or of the stage.
    Next(Value),
    /// `return` out of the method or lambda of this tag.
    Return(u64, Value),
    LoopBreak(Value),
    LoopNext,
    Retry,
    Redo,
    /// The walker of a sequence has seen enough; never leaves the method that walks.
    Enough,
}

impl From<PatternError> for Box<Flow> {
    fn from(wrong: PatternError) -> Box<Flow> {
        match wrong {
            PatternError::Invalid(reason) => error(Class::RegexpError, reason),
            PatternError::GaveUp(reason) => {
                argument_error(format!("the regular expression gave up: {reason}"))
            }
        }
    }
}

pub(crate) type Eval<T = Value> = Result<T, Box<Flow>>;

#[cold]
pub(crate) fn error(class: Class, message: impl Into<String>) -> Box<Flow> {
    Box::new(Flow::Raise(Rc::new(Exception {
        class,
        message: Value::str(message),
        hint: None,
    })))
}

/// Adds the key of the first operand that is nil and was read by a constant key, or that an operand is the row, and is an Array.
#[cold]
pub(crate) fn with_hint(mut flow: Box<Flow>, operands: &[(&Node, &Value)]) -> Box<Flow> {
    if let Flow::Raise(raised) = &mut *flow
        // One that was raised before is shared.
        && let Some(raised) = Rc::get_mut(raised)
        && raised.hint.is_none()
    {
        raised.hint = operands.iter().find_map(|operand| match operand {
            (Node::Index(index), Value::Nil) => match &index.key {
                Node::Str(key) => Some(format!("`{key}` is nil")),
                Node::Literal(Literal::Symbol(key)) => Some(format!("`:{}` is nil", key.name())),
                _ => None,
            },
            (Node::Row, Value::Array(_)) => {
                Some("`_` is an Array (`flat >> …` takes its elements as rows)".to_owned())
            }
            _ => None,
        });
    }
    flow
}

#[cold]
pub(crate) fn type_error(message: impl Into<String>) -> Box<Flow> {
    error(Class::TypeError, message)
}

#[cold]
pub(crate) fn argument_error(message: impl Into<String>) -> Box<Flow> {
    error(Class::ArgumentError, message)
}

#[cold]
pub(crate) fn no_method(name: &str, receiver: &Value) -> Box<Flow> {
    if let Value::Token(_) = receiver {
        return error(
            Class::TypeError,
            format!(
                "a reducer has no value before the end of input: write `… >> _.{name}` in the next stage"
            ),
        );
    }
    error(
        Class::NoMethodError,
        format!("undefined method '{name}' for {}", described(receiver)),
    )
}

#[cold]
pub(crate) fn divided_by_zero() -> Box<Flow> {
    error(Class::ZeroDivisionError, "divided by 0")
}

/// `nil`, `true`, or the class: as Ruby words a value in a conversion error.
pub(crate) fn brief(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Bool(it) => it.to_string(),
        other => Class::of(other).name().to_owned(),
    }
}

#[cold]
pub(crate) fn no_conversion(value: &Value, into: &str) -> Box<Flow> {
    match value {
        Value::Nil | Value::Bool(_) if into == "Integer" => type_error(format!(
            "no implicit conversion from {} to integer",
            brief(value)
        )),
        _ => type_error(format!(
            "no implicit conversion of {} into {into}",
            brief(value)
        )),
    }
}

#[cold]
pub(crate) fn not_comparable(a: &Value, b: &Value) -> Box<Flow> {
    let b = match b {
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Big(_) => inspect(b),
        other => Class::of(other).name().to_owned(),
    };
    argument_error(format!(
        "comparison of {} with {b} failed",
        Class::of(a).name()
    ))
}

#[cold]
pub(crate) fn wrong_arguments(given: usize, least: usize, most: Option<usize>) -> Box<Flow> {
    let expected = match most {
        Some(most) if most == least => format!("{least}"),
        Some(most) => format!("{least}..{most}"),
        None => format!("{least}+"),
    };
    argument_error(format!(
        "wrong number of arguments (given {given}, expected {expected})"
    ))
}

#[cold]
pub(crate) fn frozen(value: &Value) -> Box<Flow> {
    error(
        Class::FrozenError,
        format!(
            "can't modify frozen {}: {}",
            Class::of(value).name(),
            inspect(value)
        ),
    )
}

/// Checks the number of arguments.
pub(crate) fn arity(args: &[Value], least: usize, most: usize) -> Eval<()> {
    if args.len() < least || args.len() > most {
        return Err(wrong_arguments(args.len(), least, Some(most)));
    }
    Ok(())
}

/// `an instance of Hash`, `nil`, `class Integer`: how Ruby 3.4 words a receiver.
fn described(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Bool(it) => it.to_string(),
        Value::Main => "main:Object".to_owned(),
        Value::Class(it) if it.is_module() => format!("module {}", it.name()),
        Value::Class(it) => format!("class {}", it.name()),
        other => format!("an instance of {}", Class::of(other).name()),
    }
}
