//! The JSON schema of the results, against real results.

use serde_json::{Value, json};

use super::{Place, VERSIONS, bench, json};
use crate::serving::{certificate, folder, free_port};

const SCHEMA: &str = include_str!("../../../../docs/bench.schema.json");

/// What of the value at `place` is not as the schema says. Knows the keywords that this schema uses, and no others.
fn errors(place: &str, schema: &Value, value: &Value, found: &mut Vec<String>) {
    let mut wrong = |what: String| found.push(format!("{place}: {value} is not {what}"));
    let is_of = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    };
    let len = value.as_array().map(|items| items.len() as u64);
    for (keyword, rule) in schema.as_object().expect("a schema") {
        match keyword.as_str() {
            "type" => {
                let one = rule.as_str().is_some_and(is_of);
                let several = rule.as_array();
                let any =
                    several.is_some_and(|all| all.iter().filter_map(Value::as_str).any(is_of));
                if !one && !any {
                    wrong(format!("of type {rule}"));
                }
            }
            "const" if value != rule => wrong(rule.to_string()),
            "enum" if !rule.as_array().expect("values").contains(value) => wrong(rule.to_string()),
            "minimum" if value.as_f64() < rule.as_f64() && value.is_number() => {
                wrong(format!("{rule} or more"));
            }
            "maximum" if value.as_f64() > rule.as_f64() => wrong(format!("{rule} or less")),
            "minItems" if len < rule.as_u64() => {
                wrong(format!("{rule} or more items"));
            }
            "maxItems" if len > rule.as_u64() => {
                wrong(format!("{rule} or fewer items"));
            }
            // What is inside follows below; the others were fulfilled.
            "const"
            | "enum"
            | "minimum"
            | "maximum"
            | "minItems"
            | "maxItems"
            | "$schema"
            | "title"
            | "description"
            | "properties"
            | "required"
            | "additionalProperties"
            | "items" => {}
            other => panic!("unknown keyword {other}"),
        }
    }
    for item in value.as_array().into_iter().flatten() {
        errors(&format!("{place}[]"), &schema["items"], item, found);
    }
    let Some(fields) = value.as_object() else {
        return;
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(name.as_str().expect("a name")) {
            found.push(format!("{place}: no {name}"));
        }
    }
    for (name, value) in fields {
        let place = format!("{place}.{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Object(_)) => {
                errors(&place, &schema["additionalProperties"], value, found);
            }
            (Value::Null, _) => found.push(format!("{place}: unknown key")),
            (schema, _) => errors(&place, schema, value, found),
        }
    }
}

fn check(value: &Value) -> Vec<String> {
    check_against(SCHEMA, value)
}

/// What of a value is not as a schema says.
pub(super) fn check_against(schema: &str, value: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let mut found = Vec::new();
    errors("", &schema, value, &mut found);
    found
}

/// Runs of a number and of a duration, open and closed, over model paths, and one without any response.
#[test]
fn results_match_the_schema() {
    let place = Place::new("bench-schema");
    let mut all = Vec::new();
    for http in VERSIONS {
        all.push(place.json(&["--http", http, "-n", "20", "-c", "2"], "/1kB"));
        let timed = [
            "--http",
            http,
            "-D",
            "100ms",
            "--warm-up-time",
            "10ms",
            "--rate",
            "500",
        ];
        all.push(place.json(&timed, "/1kB"));
    }
    all.push(place.json(&["-n", "2000", "-c", "2", "-m", "10", "-t", "2"], "/1kB"));
    all.push(place.json(&["--network", "vdsl", "-n", "4", "-c", "2"], "/1kB"));
    let nowhere = folder("bench-schema-nowhere");
    certificate(&nowhere, "a");
    let url = format!("https://localhost:{}/", free_port());
    all.push(json(&bench(&nowhere, &["--json", "-n", "3"], &url)));
    for value in &all {
        let found = check(value);
        assert!(found.is_empty(), "{}\n{value:#}", found.join("\n"));
    }
    // Failures are visible, so the cases above mean something.
    let failed = all.last().expect("a run");
    assert!(
        failed["errors"]
            .as_object()
            .is_some_and(|it| !it.is_empty())
    );
}

#[test]
fn other_values_do_not_match_the_schema() {
    let place = Place::new("bench-schema-other");
    let good = place.json(&["-n", "4"], "/1kB");
    assert!(check(&good).is_empty());
    for (pointer, value, expected) in [
        ("/format", json!(2), ".format: 2 is not 1"),
        ("/requests/done", json!(0.5), "of type \"integer\""),
        ("/requests/done", json!(-1), "0 or more"),
        ("/settings/arrivals", json!("often"), ".settings.arrivals"),
        ("/traffic/header_savings", json!(2), "1 or less"),
        ("/latency_us/p50", json!("fast"), "of type"),
        ("/latency_histogram", json!([[1.0]]), "2 or more items"),
        ("/errors", json!({"reset": 0}), "1 or more"),
        ("/connections", json!({}), "no \"established\""),
        ("/paths", json!({"up": 1}), ".paths.up"),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).expect(pointer) = value;
        let found = check(&bad).join("\n");
        assert!(found.contains(expected), "{pointer}: {found}");
    }
    let mut more = good;
    more["requests"]["other"] = json!(1);
    assert_eq!(check(&more), [".requests.other: unknown key"]);
}
