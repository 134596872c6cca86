//! The results as CSV: a header and one row, for tables of many runs. The columns are the single values of the JSON.

use serde_json::Value;

use super::json;
use crate::{run::Measurement, settings::Settings};

/// A header and a row. Nested keys are joined by dots; lists, objects of free keys and texts of several URLs are left out.
#[must_use]
pub fn csv(settings: &Settings, measurement: &Measurement) -> String {
    let (mut header, mut row) = (Vec::new(), Vec::new());
    flatten("", &json(settings, measurement), &mut header, &mut row);
    format!("{}\n{}\n", header.join(","), row.join(","))
}

fn flatten(prefix: &str, value: &Value, header: &mut Vec<String>, row: &mut Vec<String>) {
    match value {
        Value::Object(fields) if prefix != "errors." => {
            for (name, value) in fields {
                let place = format!("{prefix}{name}");
                match value {
                    Value::Object(_) => flatten(&format!("{place}."), value, header, row),
                    Value::Array(_) => {}
                    Value::Null => {
                        header.push(place);
                        row.push(String::new());
                    }
                    Value::String(text) => {
                        header.push(place);
                        row.push(format!("\"{}\"", text.replace('"', "\"\"")));
                    }
                    other => {
                        header.push(place);
                        row.push(other.to_string());
                    }
                }
            }
        }
        _ => {}
    }
}
