//! The documents about the log say what the log says.
#![expect(clippy::disallowed_methods, reason = "documents are files")]

use lastbyte_record::connection_log::{json_schema, markdown};

fn document(name: &str) -> String {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_table_of_statistics_is_that_of_the_schema() {
    let page = document("connection-log.md");
    let how = "cargo run -p lastbyte-record --example schema";
    assert!(
        page.contains(&markdown()),
        "docs/connection-log.md: paste what `{how}` prints"
    );
}

#[test]
fn the_json_schema_is_that_of_the_schema() {
    let how =
        "cargo run -p lastbyte-record --example schema json > docs/connection-log.schema.json";
    assert!(
        document("connection-log.schema.json") == json_schema(),
        "run `{how}`"
    );
}
