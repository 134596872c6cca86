//! The documents about the connection log's lines over TCP say what the lines say.

use lastbyte_server::tcp::connection_log::{json_schema, markdown};

fn document(name: &str) -> String {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn keys_over_tcp_are_those_of_the_table() {
    let how = "cargo run -p lastbyte-server --example schema";
    assert!(
        document("connection-log.md").contains(&markdown()),
        "docs/connection-log.md: paste what `{how}` prints"
    );
    assert!(
        document("connection-log-tcp.schema.json") == json_schema(),
        "run `{how} json > docs/connection-log-tcp.schema.json`"
    );
}
