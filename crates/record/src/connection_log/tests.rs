use super::*;

/// H2O's own line, of the talk on Rapid Start.
const SAMPLE: &str = include_str!("sample-line.json");

#[test]
fn keys_are_h2os_in_h2os_order() {
    let sample: serde_json::Value = serde_json::from_str(SAMPLE).expect("JSON");
    let theirs: Vec<&str> = sample
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .skip(8)
        // Two keys of that line are in no public source; the others are not measured here, so they are left out.
        .filter(|key| {
            let absent = ["quic.", "token-sent.", "delivery-rate."];
            !absent.iter().any(|prefix| key.starts_with(prefix))
        })
        .collect();
    // Two came after it.
    let ours: Vec<&str> = FIELDS
        .iter()
        .map(|field| field.key)
        .filter(|key| !key.contains("-undone"))
        .collect();
    assert_eq!(ours, theirs);
    assert_eq!(FIELDS.len(), 119);
}

#[test]
fn documentation_and_schema_follow_from_the_table() {
    let markdown = markdown();
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).expect("JSON");
    for field in FIELDS {
        assert!(markdown.contains(&format!("| `{}` |", field.key)));
        assert!(field.meaning.ends_with('.'), "{}", field.key);
        assert_eq!(schema["properties"][field.key]["type"], "integer");
    }
    assert_eq!(schema["required"].as_array().map(Vec::len), Some(119));
}
