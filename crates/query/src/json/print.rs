//! Values as JSON: compact, or indented by two spaces. Floats are written as Ruby's `to_s` does; what JSON has no form
//! for is written as its `to_s` in quotes.

use crate::class::Class;
use crate::memory::{Bounds, Growth};
use crate::value::Value;
use crate::value::exception::{Eval, Flow, error};
use crate::value::inspect::to_s_within;
use crate::value::number::float_to_s;
use crate::value::text::Text;
use lastbyte_json::print::{is_plain, write_float, write_integer, write_string};
use std::fmt::Write as _;

const DEPTH_MAX: usize = 100;

/// Prints a value on one line.
///
/// # Errors
///
/// Returns an error for what JSON has no form for, and if the text exceeds the bounds.
pub(crate) fn compact(out: &mut String, value: &Value, bounds: &Bounds) -> Eval<()> {
    let growth = Growth::of(bounds, out.len());
    Printer {
        out,
        indent: None,
        growth,
    }
    .write(value, 0)
}

/// Prints a value on several lines, as [`compact`].
pub(crate) fn pretty(out: &mut String, value: &Value, bounds: &Bounds) -> Eval<()> {
    let growth = Growth::of(bounds, out.len());
    Printer {
        out,
        indent: Some("  "),
        growth,
    }
    .write(value, 0)
}

struct Printer<'a> {
    out: &'a mut String,
    indent: Option<&'static str>,
    growth: Growth<'a>,
}

impl Printer<'_> {
    fn write(&mut self, value: &Value, depth: usize) -> Eval<()> {
        let (out, indent) = (&mut *self.out, self.indent);
        match value {
            Value::Nil | Value::Dropped => out.push_str("null"),
            Value::Bool(it) => out.push_str(if *it { "true" } else { "false" }),
            Value::Int(it) => write_integer(out, *it),
            Value::Big(it) => {
                let _ = write!(out, "{it}");
            }
            Value::Float(it) if it.is_finite() => write_float(out, *it),
            Value::Float(it) => return Err(not_in_json(*it)),
            Value::Str(it) => write_string(out, &it.get()),
            Value::Array(list) | Value::Flat(list) => {
                let list = list.borrow();
                enter(depth)?;
                out.push('[');
                for (at, element) in list.iter().enumerate() {
                    separate(self.out, at, indent, depth + 1);
                    self.write(element, depth + 1)?;
                    self.growth.to(self.out.len())?;
                }
                close(self.out, ']', list.is_empty(), indent, depth);
            }
            Value::Hash(table) => {
                enter(depth)?;
                out.push('{');
                let entries = table.borrow();
                for (at, (key, value)) in entries.iter().enumerate() {
                    separate(self.out, at, indent, depth + 1);
                    match key {
                        Value::Str(text) => key_text(self.out, text),
                        other => {
                            let key = to_s_within(other, self.growth.of_another().limit())?;
                            write_string(self.out, &key);
                        }
                    }
                    self.out.push_str(if indent.is_some() { ": " } else { ":" });
                    self.write(value, depth + 1)?;
                    self.growth.to(self.out.len())?;
                }
                close(self.out, '}', table.len() == 0, indent, depth);
            }
            Value::Token(_) => return Err(reducer_in_template()),
            other => write_string(out, &to_s_within(other, self.growth.of_another().limit())?),
        }
        Ok(())
    }
}

/// The error for NaN and infinities.
pub(super) fn not_in_json(it: f64) -> Box<Flow> {
    error(
        Class::JsonGeneratorError,
        format!("{} not allowed in JSON", float_to_s(it)),
    )
}

pub(super) fn reducer_in_template() -> Box<Flow> {
    error(
        Class::TypeError,
        "a reducer's result stands in a place where it cannot be filled in; use `>>` and the next stage",
    )
}

pub(super) fn enter(depth: usize) -> Eval<()> {
    if depth >= DEPTH_MAX {
        return Err(error(
            Class::JsonNestingError,
            format!("nesting of {} is too deep", depth + 1),
        ));
    }
    Ok(())
}

fn separate(out: &mut String, at: usize, indent: Option<&str>, depth: usize) {
    if at > 0 {
        out.push(',');
    }
    line(out, indent, depth);
}

fn line(out: &mut String, indent: Option<&str>, depth: usize) {
    if let Some(indent) = indent {
        out.push('\n');
        for _ in 0..depth {
            out.push_str(indent);
        }
    }
}

fn close(out: &mut String, bracket: char, empty: bool, indent: Option<&str>, depth: usize) {
    if !empty {
        line(out, indent, depth);
    }
    out.push(bracket);
}

fn key_text(out: &mut String, key: &Text) {
    if key.is_plain(is_plain) {
        out.push('"');
        out.push_str(&key.get());
        out.push('"');
    } else {
        write_string(out, &key.get());
    }
}
