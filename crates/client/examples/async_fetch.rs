//! The client in a tokio program: the run is a blocking task, which sends the bodies through a channel.
//!
//!     cargo run -p lastbyte-client --example async_fetch -- https://example.com/

#![expect(clippy::disallowed_methods, reason = "an example has arguments")]

use std::{env, io, process::ExitCode};

use lastbyte_client::{Fetch, Listener, Memory, Report, Settings, run};
use lastbyte_driver::Clock;
use lastbyte_quic::connection::Config;
use tokio::{runtime, sync::mpsc, task};

/// Sends bodies to the channel. While the channel is full, flow control holds the server back.
struct Sender(mpsc::Sender<Vec<u8>>);

impl Listener for Sender {
    fn on_body(&mut self, _: usize, bytes: &[u8]) -> io::Result<()> {
        // If the receiver has been dropped, the fetch ends.
        let sent = self.0.blocking_send(bytes.to_vec());
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

async fn fetch(url: &str) -> Result<(u64, Report), AnyError> {
    let fetch = Fetch::get(url.parse()?);
    let settings = Settings::new(Config::new(
        "cubic".parse().map_err(|_| "unknown controller")?,
    ));
    let (sender, mut bodies) = mpsc::channel(64);
    let work = task::spawn_blocking(move || {
        let memory = Memory::default();
        let mut listener = Sender(sender);
        run(&settings, &memory, Clock::new(), vec![fetch], &mut listener)
    });
    let mut bytes = 0;
    while let Some(body) = bodies.recv().await {
        bytes += body.len() as u64;
    }
    Ok((bytes, work.await??))
}

fn main() -> Result<ExitCode, AnyError> {
    let url = env::args().nth(1).ok_or("usage: tokio URL")?;
    let runtime = runtime::Builder::new_current_thread().build()?;
    let (bytes, report) = runtime.block_on(fetch(&url))?;
    let failure = report.outcomes.iter().find_map(|it| it.failure.as_ref());
    let line = match failure {
        None => format!("{bytes} bytes\n"),
        Some(failure) => format!("{failure}\n"),
    };
    io::Write::write_all(&mut io::stdout(), line.as_bytes())?;
    Ok(if failure.is_some() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
