//! Values as comma-separated rows (RFC 4180). A Hash is a record with named fields; an Array is a record without names.
//! An Array of Hashes or Arrays gives a record for each, and so does a Hash of them, with its keys in the column `key`.

use super::print::compact;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error};
use crate::value::inspect::to_s;
use lastbyte_json::print::write_float;

/// The header of the output, once it is known.
#[derive(Default)]
pub(crate) struct Header {
    names: Option<Vec<String>>,
}

impl Header {
    /// Prints the records of a value, and the header before the first that has names.
    pub(crate) fn rows(&mut self, out: &mut String, value: &Value) -> Eval<()> {
        let is_known = self.names.is_some();
        let printed = self.records(out, value);
        if printed.is_err() && !is_known {
            // It is dropped with the record.
            self.names = None;
        }
        printed
    }

    fn records(&mut self, out: &mut String, value: &Value) -> Eval<()> {
        match value {
            Value::Hash(table) => {
                let pairs = table.pairs();
                if !are_records(pairs.iter().map(|(_, value)| value)) {
                    return self.record(out, None, value);
                }
                for (key, value) in &pairs {
                    self.record(out, Some(key), value)?;
                }
            }
            Value::Array(list) if are_records(list.borrow().iter()) => {
                for value in list.borrow().iter() {
                    self.record(out, None, value)?;
                }
            }
            other => self.record(out, None, other)?,
        }
        Ok(())
    }

    fn record(&mut self, out: &mut String, key: Option<&Value>, value: &Value) -> Eval<()> {
        let mut fields: Vec<Value> = key.cloned().into_iter().collect();
        match value {
            Value::Hash(table) => {
                let mut names: Vec<String> = key.map(|_| "key".to_owned()).into_iter().collect();
                for (name, value) in table.pairs() {
                    names.push(to_s(&name));
                    fields.push(value);
                }
                self.arrange(out, names, &mut fields)?;
            }
            Value::Array(list) => fields.extend(list.borrow().iter().cloned()),
            other => fields.push(other.clone()),
        }
        for (at, field) in fields.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            write_field(out, field)?;
        }
        out.push('\n');
        Ok(())
    }

    /// Puts fields into the order of the header. The first record makes the header.
    fn arrange(
        &mut self,
        out: &mut String,
        names: Vec<String>,
        fields: &mut Vec<Value>,
    ) -> Eval<()> {
        let Some(header) = &self.names else {
            for (at, name) in names.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(out, name, false);
            }
            out.push('\n');
            self.names = Some(names);
            return Ok(());
        };
        if *header == names {
            return Ok(());
        }
        if let Some(new) = names.iter().find(|name| !header.contains(name)) {
            return Err(argument_error(format!(
                "csv: the field `{new}` is not in the header ({}); name the fields, as in `{{{new}: _[{new:?}]}}`",
                header.join(",")
            )));
        }
        let place = |wanted: &String| names.iter().position(|name| name == wanted);
        *fields = header
            .iter()
            .map(|name| place(name).map_or(Value::Nil, |at| fields[at].clone()))
            .collect();
        Ok(())
    }
}

/// Whether these are all Hashes, or all Arrays.
fn are_records<'a>(values: impl Iterator<Item = &'a Value> + Clone) -> bool {
    let mut hashes = values.clone();
    let mut arrays = values.clone();
    values.count() > 0
        && (hashes.all(|value| matches!(value, Value::Hash(_)))
            || arrays.all(|value| matches!(value, Value::Array(_))))
}

/// Null is an empty field; an empty text, and a text that looks like a number, is quoted.
fn write_field(out: &mut String, value: &Value) -> Eval<()> {
    match value {
        Value::Nil => {}
        Value::Float(it) => write_float(out, *it),
        Value::Str(text) => write_text(out, &text.get(), true),
        Value::Array(_) | Value::Hash(_) | Value::Token(_) | Value::Flat(_) => {
            let mut json = String::new();
            compact(&mut json, value)?;
            write_text(out, &json, false);
        }
        other => write_text(out, &to_s(other), false),
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
