//! Prints the keys of the connection log: as tables in Markdown or, with `quic` or `tcp`, as a JSON schema.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "an example reads arguments and prints"
)]

use lastbyte_record::connection_log::schema::{json_schema, json_schema_tcp, markdown};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("quic") => print!("{}", json_schema()),
        Some("tcp") => print!("{}", json_schema_tcp()),
        _ => {
            for (title, table) in markdown() {
                println!("## {title}\n\n{table}");
            }
        }
    }
}
