//! `--schema`: the fields of the rows, with their types, how many rows lack a value, ranges and examples.

use lastbyte_query::{Input, Options, Outcome, Query, Value};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;

/// Maximum number of fields: more are data in the place of keys.
const FIELDS_MAX: usize = 10_000;

/// Maximum number of examples of a field, and of characters of each.
const EXAMPLES_MAX: usize = 3;
const TEXT_MAX: usize = 40;

#[derive(Default)]
struct Schema {
    rows: u64,
    /// By path; the number is the place in order of appearance.
    fields: BTreeMap<String, (usize, Field)>,
}

#[derive(Default)]
struct Field {
    /// Rows that have a value.
    known: u64,
    types: Vec<&'static str>,
    numbers: Option<(Value, Value)>,
    texts: Option<(String, String)>,
    examples: Vec<Value>,
}

/// Lists the fields of the rows, or of the first `rows_max` ones: a query that prints them in the output format of the
/// options, its input, and whether there were no errors.
pub(super) fn list(
    inputs: Vec<Input>,
    rows_max: Option<u64>,
    options: Options,
    errors: &mut dyn Write,
) -> Result<(Query, Input, bool), String> {
    let query = |options| Query::compile("_", &[], options).map_err(|wrong| wrong.to_string());
    let mut schema = Schema::default();
    let Outcome {
        errors: found,
        skipped,
        ..
    } = query(options.clone())?.for_each(inputs, |row| {
        schema.add(row);
        let is_over = Some(schema.rows) == rows_max || schema.fields.len() > FIELDS_MAX;
        if is_over {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    for error in &found {
        let _ = writeln!(errors, "{error}");
    }
    if let Some(skipped) = skipped {
        let _ = writeln!(errors, "{skipped}");
    }
    if schema.fields.len() > FIELDS_MAX {
        return Err(format!(
            "more than {FIELDS_MAX} fields in {} rows: their keys are data",
            schema.rows
        ));
    }
    let lines = Input::from_bytes("schema", schema.lines().into_bytes());
    let options = Options {
        sentinels: &[],
        threads: 1,
        ..options
    };
    Ok((query(options)?, lines, found.is_empty()))
}

impl Schema {
    fn add(&mut self, row: &[Value]) {
        self.rows += 1;
        match row {
            [value] => self.value("_", value),
            elements => self.value("_", &Value::Array(elements.to_vec())),
        }
    }

    fn value(&mut self, path: &str, value: &Value) {
        let members = value.as_object().unwrap_or_default();
        if members.is_empty() || path != "_" {
            if self.fields.len() > FIELDS_MAX {
                return;
            }
            let next = self.fields.len();
            if let Some((_, field)) = self.fields.get_mut(path) {
                field.add(value);
            } else {
                let mut field = Field::default();
                field.add(value);
                self.fields.insert(path.to_owned(), (next, field));
            }
        }
        for (name, value) in members {
            self.value(&format!("{path}[{name:?}]"), value);
        }
    }

    /// A line of JSON for each field.
    fn lines(self) -> String {
        let rows = self.rows as f64;
        let mut fields: Vec<(String, (usize, Field))> = self.fields.into_iter().collect();
        fields.sort_by_key(|(_, (place, _))| *place);
        let line = |(path, (_, field)): (String, (usize, Field))| {
            let share = (1.0 - field.known as f64 / rows) * 10_000.0;
            let (least, most) = field.range();
            let members = [
                ("path", Value::String(path)),
                ("types", Value::String(field.types.join(", "))),
                ("null", Value::Float(share.round() / 10_000.0)),
                ("min", least),
                ("max", most),
                ("examples", Value::Array(field.examples)),
            ];
            let members = members.map(|(name, value)| (name.to_owned(), value));
            format!("{}\n", Value::Object(members.into()))
        };
        fields.into_iter().map(line).collect()
    }
}

impl Field {
    fn add(&mut self, value: &Value) {
        let name = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Integer(_) | Value::BigInteger(_) => "integer",
            Value::Float(_) => "float",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        if !self.types.contains(&name) {
            self.types.push(name);
        }
        self.known += u64::from(!value.is_null());
        if let Some(number) = value.as_f64() {
            let (least, most) = self
                .numbers
                .get_or_insert_with(|| (value.clone(), value.clone()));
            if least.as_f64().is_some_and(|least| number < least) {
                *least = value.clone();
            }
            if most.as_f64().is_some_and(|most| number > most) {
                *most = value.clone();
            }
        }
        if let Some(text) = value.as_str() {
            let (least, most) = self
                .texts
                .get_or_insert_with(|| (text.to_owned(), text.to_owned()));
            if text < least.as_str() {
                text.clone_into(least);
            }
            if text > most.as_str() {
                text.clone_into(most);
            }
        }
        let is_plain = !matches!(value, Value::Null | Value::Array(_) | Value::Object(_));
        if is_plain && self.examples.len() < EXAMPLES_MAX {
            let example = shown(value);
            if !self.examples.contains(&example) {
                self.examples.push(example);
            }
        }
    }

    /// The least and greatest number; of a field without numbers, text.
    fn range(&self) -> (Value, Value) {
        let text = |text: &String| shown(&Value::String(text.clone()));
        match (&self.numbers, &self.texts) {
            (Some((least, most)), _) => (least.clone(), most.clone()),
            (None, Some((least, most))) => (text(least), text(most)),
            (None, None) => (Value::Null, Value::Null),
        }
    }
}

/// A value, of which a long text is cut.
fn shown(value: &Value) -> Value {
    let text = value.as_str().unwrap_or_default();
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => Value::String(format!("{}…", &text[..end])),
        None => value.clone(),
    }
}
