//! Values as JSON: compact, or indented by two spaces. Floats are written as Ruby's `to_s` does; what JSON has no form
//! for is written as its `to_s` in quotes.

use crate::value::Value;
use crate::value::class::Class;
use crate::value::exception::{Eval, Flow, error};
use crate::value::inspect::to_s;
use crate::value::number::{float_to_s, write_float};
use crate::value::text::Text;
use std::fmt::Write as _;

const DEPTH_MAX: usize = 100;

pub(crate) fn compact(out: &mut String, value: &Value) -> Eval<()> {
    write(out, value, None, 0)
}

pub(crate) fn pretty(out: &mut String, value: &Value) -> Eval<()> {
    write(out, value, Some("  "), 0)
}

fn write(out: &mut String, value: &Value, indent: Option<&str>, depth: usize) -> Eval<()> {
    match value {
        Value::Nil => out.push_str("null"),
        Value::Bool(it) => out.push_str(if *it { "true" } else { "false" }),
        Value::Int(it) => integer(out, *it),
        Value::Big(it) => {
            let _ = write!(out, "{it}");
        }
        Value::Float(it) if it.is_finite() => write_float(out, *it),
        Value::Float(it) => return Err(not_in_json(*it)),
        Value::Str(it) => quoted(out, &it.get()),
        Value::Array(list) | Value::Flat(list) => {
            let list = list.borrow();
            enter(depth)?;
            out.push('[');
            for (at, element) in list.iter().enumerate() {
                separate(out, at, indent, depth + 1);
                write(out, element, indent, depth + 1)?;
            }
            close(out, ']', list.is_empty(), indent, depth);
        }
        Value::Hash(table) => {
            enter(depth)?;
            out.push('{');
            let entries = table.borrow();
            for (at, (key, value)) in entries.iter().enumerate() {
                separate(out, at, indent, depth + 1);
                match key {
                    Value::Str(text) => key_text(out, text),
                    other => quoted(out, &to_s(other)),
                }
                out.push_str(if indent.is_some() { ": " } else { ":" });
                write(out, value, indent, depth + 1)?;
            }
            close(out, '}', table.len() == 0, indent, depth);
        }
        Value::Token(_) => return Err(reducer_in_template()),
        Value::Dropped => out.push_str("null"),
        other => quoted(out, &to_s(other)),
    }
    Ok(())
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

/// An Integer, without the machinery of formats: rows have many.
pub(crate) fn integer(out: &mut String, it: i64) {
    if let 0..10 = it {
        out.push(char::from(b'0' + it as u8));
        return;
    }
    // The longest has nineteen.
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = it.unsigned_abs();
    while rest > 0 && first > 0 {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if it < 0 {
        out.push('-');
    }
    out.push_str(std::str::from_utf8(&digits[first..]).unwrap_or_default());
}

fn key_text(out: &mut String, key: &Text) {
    if key.is_plain(|text| plain(text.as_bytes()) == text.len()) {
        out.push('"');
        out.push_str(&key.get());
        out.push('"');
    } else {
        quoted(out, &key.get());
    }
}

/// Escapes `"`, `\` and the controls below a space; everything else stays as it is.
pub(crate) fn quoted(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    loop {
        let plain = plain(rest.as_bytes());
        out.push_str(&rest[..plain]);
        let Some(byte) = rest.as_bytes().get(plain) else {
            break;
        };
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            other => {
                let _ = write!(out, "\\u{other:04x}");
            }
        }
        rest = &rest[plain + 1..];
    }
    out.push('"');
}

/// How many bytes come before the first that is escaped.
fn plain(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let (words, rest) = text.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let special = zero(word ^ (ONES * 0x22)) | zero(word ^ (ONES * 0x5c)) | control;
        if special != 0 {
            // The lowest mark is true; those above it may be a borrow's.
            return at * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    let plain = rest.iter().position(special).unwrap_or(rest.len());
    text.len() - rest.len() + plain
}

#[cfg(test)]
mod tests;
