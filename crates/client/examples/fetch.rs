//! Fetches several URLs concurrently and prints the result of each.
//!
//!     cargo run -p lastbyte-client --example fetch -- https://example.com/ https://example.com/robots.txt

#![expect(clippy::disallowed_methods, reason = "an example has arguments")]

use std::{env, io, process::ExitCode};

use lastbyte_client::{Fetch, Head, Listener, Memory, Settings, Url, run};
use lastbyte_driver::Clock;
use lastbyte_quic::connection::Config;

/// Counts the bytes received. A real program would store them.
#[derive(Default)]
struct Counter {
    bytes: u64,
}

impl Listener for Counter {
    fn on_head(&mut self, fetch: usize, head: &Head<'_>) -> io::Result<()> {
        let line = head.status_line();
        io::Write::write_all(&mut io::stdout(), format!("{fetch}: {line}\n").as_bytes())
    }

    fn on_body(&mut self, _: usize, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut fetches = Vec::new();
    for text in env::args().skip(1) {
        let url: Url = text.parse()?;
        let mut fetch = Fetch::get(url);
        fetch.follows_redirects = true;
        fetches.push(fetch);
    }
    let settings = Settings::new(Config::new("cubic".parse()?));
    let mut counter = Counter::default();
    // A later run with the same memory is faster: it resumes sessions and knows alternative services.
    let memory = Memory::default();
    let report = run(&settings, &memory, Clock::new(), fetches, &mut counter)?;
    let mut failed = false;
    for (number, outcome) in report.outcomes.iter().enumerate() {
        let line = match &outcome.failure {
            None => format!("{number}: {} bytes\n", outcome.received),
            Some(failure) => format!("{number}: {failure}\n"),
        };
        failed |= outcome.failure.is_some();
        io::Write::write_all(&mut io::stdout(), line.as_bytes())?;
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
