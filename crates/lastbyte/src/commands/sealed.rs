//! States of parts of logs: lines of text, of which the last one has a checksum of the others.

use core::fmt::Write as _;
use std::{
    io::{self, IsTerminal as _, Read},
    path::Path,
};

use lastbyte_units::SipHash;
use serde_json::{Value, json};

use crate::{failure::Failure, files, terminal::print};

const DAMAGED: &str = "the state was cut off or changed (expected a line with its checksum at the end): write it again";

/// The state of these lines.
pub(super) fn sealed(mut lines: String) -> String {
    let end = end(&lines);
    // Writing to a string cannot fail.
    let _ = writeln!(lines, "{end}");
    lines
}

fn end(lines: &str) -> Value {
    let sum = SipHash::from_bytes(&[0; 16]).hash_2_4(lines.as_bytes());
    json!(["end", format!("{sum:016x}")])
}

/// The lines of a state. The error says what is wrong with it.
pub(super) fn opened(text: &str) -> Result<&str, String> {
    let text = text.trim_end_matches('\n');
    let lines = text
        .rfind('\n')
        .and_then(|end| text.split_at_checked(end + 1));
    let is_whole = |(lines, last): &(&str, &str)| {
        serde_json::from_str::<Value>(last).is_ok_and(|last| last == end(lines))
    };
    let (lines, _) = lines.filter(is_whole).ok_or(DAMAGED)?;
    Ok(lines)
}

/// The longest state, in bytes: that of a sample has 210 a line.
const SIZE_MAX: u64 = 1 << 30;

/// Reads a state. `-` is standard input.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let from: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        files::open(path)?
    };
    let text = io::read_to_string(from.take(SIZE_MAX))?;
    if text.len() as u64 == SIZE_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

/// Prints the state of the lines that this returns, unless standard output is a terminal.
pub(super) fn write(lines: impl FnOnce() -> Result<String, Failure>) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "a state is not for a terminal: write it to a file (`--partial … > part.state`)"
                .to_owned(),
        ));
    }
    print(sealed(lines()?))
}
