//! Prints the counts on the connection log's lines over TCP: as a table in Markdown, or with `json` as a JSON schema of the
//! lines.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "an example speaks with whoever runs it"
)]

use lastbyte_server::tcp::connection_log::{json_schema, markdown};

fn main() {
    let wants_json = std::env::args().nth(1).is_some_and(|word| word == "json");
    print!(
        "{}",
        if wants_json {
            json_schema()
        } else {
            markdown()
        }
    );
}
