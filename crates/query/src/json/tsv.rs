//! Values as tab-separated rows: a Hash gives a row a key, an Array a row an element, anything else a row.

use super::print::compact;
use crate::memory::{Bounds, Growth};
use crate::value::Value;
use crate::value::exception::Eval;
use lastbyte_json::print::write_float;

pub(crate) fn rows(out: &mut String, value: &Value, bounds: &Bounds) -> Eval<()> {
    let mut growth = Growth::of(bounds, out.len());
    match value {
        Value::Hash(table) => {
            for (key, value) in table.pairs() {
                cell(out, &key, bounds)?;
                match &value {
                    Value::Array(list) => {
                        for element in list.borrow().iter() {
                            out.push('\t');
                            cell(out, element, bounds)?;
                        }
                    }
                    other => {
                        out.push('\t');
                        cell(out, other, bounds)?;
                    }
                }
                out.push('\n');
                growth.to(out.len())?;
            }
        }
        Value::Array(list) => {
            for row in list.borrow().iter() {
                match row {
                    Value::Array(cells) => {
                        for (at, value) in cells.borrow().iter().enumerate() {
                            if at > 0 {
                                out.push('\t');
                            }
                            cell(out, value, bounds)?;
                        }
                    }
                    other => cell(out, other, bounds)?,
                }
                out.push('\n');
                growth.to(out.len())?;
            }
        }
        other => {
            cell(out, other, bounds)?;
            out.push('\n');
        }
    }
    Ok(())
}

fn cell(out: &mut String, value: &Value, bounds: &Bounds) -> Eval<()> {
    match value {
        Value::Str(text) => out.push_str(&text.get()),
        Value::Float(it) => write_float(out, *it),
        other => compact(out, other, bounds)?,
    }
    Ok(())
}
