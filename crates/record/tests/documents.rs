//! The documentation of the log matches the table of keys.
#![expect(clippy::disallowed_methods, reason = "documents are files")]

use lastbyte_record::connection_log::schema::{json_schema, json_schema_tcp, markdown};

fn document(name: &str) -> String {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

const EXAMPLE: &str = "cargo run -p lastbyte-record --example schema";

#[test]
fn the_page_has_the_generated_tables() {
    let page = document("connection-log.md");
    for (title, table) in markdown() {
        assert!(
            page.contains(&table),
            "docs/connection-log.md: paste the table `{title}` that `{EXAMPLE}` prints"
        );
    }
}

#[test]
fn the_schema_files_are_the_generated_schemas() {
    for (name, argument, schema) in [
        ("connection-log.schema.json", "quic", json_schema()),
        ("connection-log-tcp.schema.json", "tcp", json_schema_tcp()),
    ] {
        assert!(
            document(name) == schema,
            "run `{EXAMPLE} {argument} > docs/{name}`"
        );
    }
}
