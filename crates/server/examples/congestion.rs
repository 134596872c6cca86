//! A congestion control of one's own in a server: its growth is written here, a connection is served with it, and the
//! line that the connection log has of that is printed.
//!
//!     cargo run -p lastbyte-server --example congestion

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "an example prints its results"
)]

use std::{error::Error, fs, io, sync::Arc, time::Duration};

use lastbyte_client::{Fetch, Head, Listener, Memory, Trust, run};
use lastbyte_congestion::{
    Config as WindowConfig, Registry, Time,
    avoidance::{Avoidance, AvoidanceAck, Cause, Reduction},
};
use lastbyte_driver::Clock;
use lastbyte_quic::connection::Config;
use lastbyte_server::{
    Arm, Arms, Identity, Server, Settings, Site,
    log::{self, LogSettings},
};

/// Grows by two datagrams a window, and gives back a fifth at congestion.
#[derive(Debug, Default)]
struct Patient {
    /// Bytes acknowledged since the window last grew.
    credit: u64,
}

impl Patient {
    const BETA: f64 = 0.8;

    fn make(_: &WindowConfig) -> Box<dyn Avoidance> {
        Box::new(Self::default())
    }
}

impl Avoidance for Patient {
    fn name(&self) -> &'static str {
        "patient"
    }

    fn beta(&self, _: Cause) -> f64 {
        Self::BETA
    }

    fn on_congestion(&mut self, _: &Reduction<'_>) {
        self.credit = 0;
    }

    fn on_slow_start_exit(&mut self, _: u64) {
        self.credit = 0;
    }

    fn on_ack(&mut self, ack: &AvoidanceAck<'_>) -> u64 {
        self.credit = self.credit.saturating_add(ack.bytes);
        if self.credit < ack.window {
            return ack.window;
        }
        self.credit = 0;
        ack.window
            .saturating_add(ack.max_datagram_size.saturating_mul(2))
    }

    fn on_app_limited(&mut self, _: Time) {}

    fn on_persistent_congestion(&mut self) {
        self.credit = 0;
    }

    fn undo(&mut self, _: usize) {}
}

/// What is fetched is not wanted.
struct Nobody;

impl Listener for Nobody {
    fn on_head(&mut self, _: usize, _: &Head<'_>) -> io::Result<()> {
        Ok(())
    }

    fn on_body(&mut self, _: usize, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut registry = Registry::builtin();
    registry.add_avoidance("patient", "two datagrams a window, beta 0.8", Patient::make)?;
    // It goes with any startup, and takes all keys of specs.
    let text = "rapid-start:congestion=patient";
    let arm = Arm {
        name: text.into(),
        share: 1.0,
        config: Arc::new(Config::new(registry.parse(text)?)),
    };
    let arms = Arms::new(vec![arm]).ok_or("no arm")?;
    let days = Clock::since_epoch().as_secs() / 86_400;
    let identity = Identity::self_signed(&["localhost".into()], days.cast_signed())?;
    let path = std::env::temp_dir().join(format!("lastbyte-{}.ndjson", std::process::id()));
    let (writer, thread) = log::start(&path, &LogSettings::default())?;
    let address = "127.0.0.1:0".parse()?;
    let mut settings = Settings::new(address, identity, arms, Arc::new(Site::generated()));
    settings.log = Some(writer);
    let server = Server::start(settings)?;

    let url = format!("https://127.0.0.1:{}/1m", server.address().port());
    let mut client = lastbyte_client::Settings::new(Config::new("cubic".parse()?));
    client.trust = Trust::DangerouslyAcceptAny;
    let fetches = vec![Fetch::get(url.parse()?)];
    let report = run(
        &client,
        &Memory::default(),
        Clock::new(),
        fetches,
        &mut Nobody,
    )?;
    for outcome in &report.outcomes {
        println!("{} bytes", outcome.received);
    }
    drop(server.shut_down(Duration::from_secs(5)));
    drop(thread.finish());
    print!("{}", fs::read_to_string(&path)?);
    fs::remove_file(&path)?;
    Ok(())
}
