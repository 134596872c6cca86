//! Values as comma-separated rows (RFC 4180).

use super::print::compact;
use super::records::{Header, Row};
use crate::memory::{Bounds, Growth};
use crate::value::Value;
use crate::value::exception::Eval;
use crate::value::inspect::to_s_within;
use lastbyte_json::print::write_float;

/// Prints the records of a value, and the header before the first that has names.
pub(crate) fn rows(
    header: &mut Header,
    out: &mut String,
    value: &Value,
    bounds: &Bounds,
) -> Eval<()> {
    let mut growth = Growth::of(bounds, out.len());
    header.rows(value, &mut |row| {
        match row {
            Row::Header(names) => line(out, names, |out, name| {
                write_text(out, name, false);
                Ok(())
            }),
            Row::Record(fields) => line(out, fields, |out, value| write_field(out, value, bounds)),
        }?;
        growth.to(out.len())
    })
}

fn line<T>(out: &mut String, cells: &[T], write: impl Fn(&mut String, &T) -> Eval<()>) -> Eval<()> {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(out, cell)?;
    }
    out.push('\n');
    Ok(())
}

/// Null is an empty field; an empty text, and a text that looks like a number, is quoted.
fn write_field(out: &mut String, value: &Value, bounds: &Bounds) -> Eval<()> {
    match value {
        Value::Nil => {}
        Value::Float(it) => write_float(out, *it),
        Value::Str(text) => write_text(out, &text.get(), true),
        Value::Array(_) | Value::Hash(_) | Value::Token(_) | Value::Flat(_) => {
            let mut json = String::new();
            compact(&mut json, value, bounds)?;
            write_text(out, &json, false);
        }
        other => {
            let text = to_s_within(other, Growth::of(bounds, 0).limit())?;
            write_text(out, &text, false);
        }
    }
    Ok(())
}

fn write_text(out: &mut String, text: &str, is_string: bool) {
    let special = |c: char| matches!(c, ',' | '"' | '\n' | '\r');
    if text.is_empty() || text.contains(special) || is_string && is_number(text.as_bytes()) {
        out.push('"');
        out.push_str(&text.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(text);
    }
}

/// Whether a text is a number of JSON (RFC 8259 §6) that is finite.
pub(crate) fn is_number(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"-").unwrap_or(text);
    let digits = |rest: &[u8]| rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(rest);
    if whole == 0 || whole > 1 && rest[0] == b'0' {
        return false;
    }
    let mut rest = &rest[whole..];
    let is_integer = rest.is_empty();
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let Some(exponent) = rest.strip_prefix(b"e").or(rest.strip_prefix(b"E")) {
        let exponent = exponent
            .strip_prefix(b"+")
            .or(exponent.strip_prefix(b"-"))
            .unwrap_or(exponent);
        let count = digits(exponent);
        if count == 0 {
            return false;
        }
        rest = &exponent[count..];
    }
    let text = std::str::from_utf8(text).unwrap_or_default();
    rest.is_empty() && (is_integer || text.parse().is_ok_and(f64::is_finite))
}
