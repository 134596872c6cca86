//! `inspect` and `to_s`: values as text.

use super::Value;
use super::enumerator::Enumerator;
use crate::class::Class;
use crate::value::exception::{Eval, error};
use lastbyte_json::print::write_float;
use std::fmt::Write as _;
use std::sync::LazyLock;

/// Maximum depth. A deeper value contains itself, and is cut like in Ruby.
const DEPTH_MAX: u32 = 1000;

/// Called with the length of a text while it grows; an error ends it.
type Limit<'a> = dyn FnMut(usize) -> Eval<()> + 'a;

/// The length at which the text of a message is cut.
const MESSAGE_MAX: usize = 1 << 20;

/// As text of a message, which is cut if it is very long.
pub(crate) fn inspect(value: &Value) -> String {
    cut(|out, limit| write_inspect(out, value, 0, limit))
}

/// As [`inspect`], by `to_s`.
pub(crate) fn to_s(value: &Value) -> String {
    cut(|out, limit| write_to_s(out, value, limit))
}

fn cut(write: impl FnOnce(&mut String, &mut Limit<'_>) -> Eval<()>) -> String {
    let mut out = String::new();
    let mut limit = |len| match len {
        ..MESSAGE_MAX => Ok(()),
        _ => Err(error(Class::NoMemoryError, "the message is too long")),
    };
    if write(&mut out, &mut limit).is_err() {
        out.push_str("...");
    }
    out
}

/// The whole text, if the limit permits it.
pub(crate) fn inspect_within(
    value: &Value,
    mut limit: impl FnMut(usize) -> Eval<()>,
) -> Eval<String> {
    let mut out = String::new();
    write_inspect(&mut out, value, 0, &mut limit)?;
    Ok(out)
}

/// As [`inspect_within`], by `to_s`.
pub(crate) fn to_s_within(value: &Value, mut limit: impl FnMut(usize) -> Eval<()>) -> Eval<String> {
    let mut out = String::new();
    write_to_s(&mut out, value, &mut limit)?;
    Ok(out)
}

pub(crate) fn write_to_s(out: &mut String, value: &Value, limit: &mut Limit<'_>) -> Eval<()> {
    match value {
        Value::Nil => {}
        Value::Str(text) => out.push_str(&text.get()),
        Value::Symbol(symbol) => out.push_str(&symbol.name()),
        Value::Range(range) => {
            write_to_s(out, &range.from, limit)?;
            out.push_str(if range.exclusive { "..." } else { ".." });
            write_to_s(out, &range.to, limit)?;
            limit(out.len())?;
        }
        Value::Regexp(it) => out.push_str(&it.to_s()),
        Value::Match(it) => out.push_str(it.group(0).unwrap_or_default()),
        Value::Exception(it) => write_to_s(out, &it.message, limit)?,
        Value::Time(it) => out.push_str(&it.to_s()),
        other => write_inspect(out, other, 0, limit)?,
    }
    Ok(())
}

fn write_inspect(out: &mut String, value: &Value, depth: u32, limit: &mut Limit<'_>) -> Eval<()> {
    if depth > DEPTH_MAX {
        out.push_str("[...]");
        return limit(out.len());
    }
    match value {
        Value::Nil => out.push_str("nil"),
        Value::Bool(it) => out.push_str(if *it { "true" } else { "false" }),
        Value::Int(it) => {
            let _ = write!(out, "{it}");
        }
        Value::Float(it) => write_float(out, *it),
        Value::Big(it) => {
            let _ = write!(out, "{it}");
        }
        Value::Symbol(it) => write_symbol(out, &it.name()),
        Value::Str(it) => write_quoted(out, &it.get()),
        Value::Array(it) | Value::Flat(it) => {
            out.push('[');
            for (at, element) in it.borrow().iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write_inspect(out, element, depth + 1, limit)?;
                limit(out.len())?;
            }
            out.push(']');
        }
        Value::Hash(it) => {
            out.push('{');
            for (at, (key, value)) in it.borrow().iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write_key(out, key, depth + 1, limit)?;
                write_inspect(out, value, depth + 1, limit)?;
                limit(out.len())?;
            }
            out.push('}');
        }
        Value::Range(it) => {
            if !it.from.is_nil() || it.to.is_nil() {
                write_inspect(out, &it.from, depth + 1, limit)?;
            }
            out.push_str(if it.exclusive { "..." } else { ".." });
            if it.from.is_nil() || !it.to.is_nil() {
                write_inspect(out, &it.to, depth + 1, limit)?;
            }
            limit(out.len())?;
        }
        Value::Regexp(it) => out.push_str(&it.inspect()),
        Value::Match(it) => {
            out.push_str("#<MatchData");
            for group in 0..it.len() {
                out.push(' ');
                if group > 0 {
                    let _ = write!(
                        out,
                        "{}:",
                        it.name(group)
                            .map_or_else(|| group.to_string(), str::to_owned)
                    );
                }
                match it.group(group) {
                    Some(text) => write_quoted(out, text),
                    None => out.push_str("nil"),
                }
            }
            out.push('>');
        }
        Value::Time(it) => out.push_str(&it.inspect()),
        Value::Enumerator(it) => write_enumerator(out, it, depth, limit)?,
        Value::Class(it) => out.push_str(it.name()),
        Value::Exception(it) => {
            let message = to_s(&it.message);
            if message.is_empty() {
                out.push_str(it.class.name());
            } else {
                let _ = write!(out, "#<{}: {message}>", it.class.name());
            }
        }
        Value::Main => out.push_str("main"),
        Value::Token(_) => out.push_str("#<reducer>"),
        Value::Dropped => out.push_str("#<dropped>"),
        Value::Proc(_) => {
            let _ = write!(out, "#<{}>", Class::of(value).name());
        }
    }
    Ok(())
}

fn write_key(out: &mut String, key: &Value, depth: u32, limit: &mut Limit<'_>) -> Eval<()> {
    if let Value::Symbol(symbol) = key {
        let name = symbol.name();
        if is_plain_symbol(&name)
            && !name.ends_with('=')
            && name.starts_with(|c: char| c == '_' || c.is_alphabetic())
        {
            out.push_str(&name);
        } else {
            write_quoted(out, &name);
        }
        out.push_str(": ");
    } else {
        write_inspect(out, key, depth, limit)?;
        out.push_str(" => ");
    }
    Ok(())
}

fn write_enumerator(
    out: &mut String,
    it: &Enumerator,
    depth: u32,
    limit: &mut Limit<'_>,
) -> Eval<()> {
    let (before, after) = match it.class() {
        Class::ArithmeticSequence if matches!(it.receiver, Value::Range(_)) => ("((", ")."),
        Class::ArithmeticSequence => ("(", "."),
        Class::Lazy => ("#<Enumerator::Lazy: ", ""),
        _ => ("#<Enumerator: ", ":"),
    };
    out.push_str(before);
    write_inspect(out, &it.receiver, depth + 1, limit)?;
    out.push_str(after);
    if it.class() != Class::Lazy {
        out.push_str(it.method.name());
        for (at, argument) in it.args.iter().enumerate() {
            out.push_str(if at == 0 { "(" } else { ", " });
            write_inspect(out, argument, depth + 1, limit)?;
        }
        if !it.args.is_empty() {
            out.push(')');
        }
    }
    out.push(if it.class() == Class::ArithmeticSequence {
        ')'
    } else {
        '>'
    });
    Ok(())
}

fn write_symbol(out: &mut String, name: &str) {
    out.push(':');
    if is_plain_symbol(name) {
        out.push_str(name);
    } else {
        write_quoted(out, name);
    }
}

/// Whether a symbol needs no quotes.
fn is_plain_symbol(name: &str) -> bool {
    const OPERATORS: &[&str] = &[
        "+", "-", "*", "/", "%", "**", "==", "!=", "<", "<=", ">", ">=", "<=>", "===", "=~", "!~",
        "!", "&", "|", "^", "~", "<<", ">>", "[]", "[]=", "+@", "-@",
    ];
    if OPERATORS.contains(&name) {
        return true;
    }
    let bare = name.trim_start_matches('$').trim_start_matches('@');
    let bare = bare.strip_suffix(['?', '!', '=']).unwrap_or(bare);
    bare.starts_with(|c: char| c == '_' || c.is_alphabetic() || !c.is_ascii())
        && bare
            .chars()
            .all(|c| c == '_' || c.is_alphanumeric() || !c.is_ascii())
}

fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\u{1b}' => out.push_str("\\e"),
            '#' if matches!(chars.peek(), Some('{' | '$' | '@')) => out.push_str("\\#"),
            c if is_printable(c) => out.push(c),
            c if c <= '\u{ffff}' => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => {
                let _ = write!(out, "\\u{{{:X}}}", c as u32);
            }
        }
    }
    out.push('"');
}

/// What Ruby does not escape: all but control characters, line and paragraph separators, and what Unicode leaves
/// unassigned. U+0085 is printable to Ruby.
fn is_printable(c: char) -> bool {
    static HIDDEN: LazyLock<Option<fancy_regex::Regex>> =
        LazyLock::new(|| fancy_regex::Regex::new(r"[\p{Cn}\p{Zl}\p{Zp}]").ok());
    match c {
        '\u{85}' => true,
        _ if c.is_control() => false,
        // Most texts need no table.
        ..'\u{378}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{4e00}'..='\u{9ffc}'
        | '\u{ac00}'..='\u{d7a3}' => true,
        _ => {
            let mut bytes = [0; 4];
            let text: &str = c.encode_utf8(&mut bytes);
            !HIDDEN
                .as_ref()
                .is_some_and(|hidden| hidden.is_match(text).unwrap_or(false))
        }
    }
}
