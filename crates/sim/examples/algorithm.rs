//! A startup of your own over a simulated path, beside CUBIC's: times to last byte.
//! Run with `cargo run -p lastbyte-sim --example algorithm`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use lastbyte_congestion::startup::{Growth, Startup, StartupAck};
use lastbyte_congestion::{Key, Registry, SpecError};
use lastbyte_scenario::{Scenario, network::PathText};
use lastbyte_sim::simulate;

/// Four windows a round trip until a queue shows, then as slow start; ends when the round-trip time has doubled.
#[derive(Debug)]
struct Surge {
    growth: u64,
    patience: f64,
}

impl Startup for Surge {
    fn name(&self) -> &'static str {
        "surge"
    }

    fn on_ack(&mut self, ack: &StartupAck<'_>) -> Growth {
        let rtt = ack.rtt_sample.unwrap_or(ack.rtt.min());
        if rtt > ack.rtt.min().mul_f64(1.0 + self.patience) {
            self.growth = 1;
        }
        let (bytes, limit, done) = (self.growth * ack.bytes, None, rtt >= 2 * ack.rtt.min());
        Growth { bytes, limit, done }
    }

    fn pacing_gain(&self) -> f64 {
        (self.growth + 1) as f64
    }
}

/// The built-in congestion controls, and `surge` with a key of its own.
pub(crate) fn registry() -> Result<Registry, SpecError> {
    let mut registry = Registry::builtin();
    registry.add_key(Key::number("patience", 0.0, 1.0, "queue it accepts"))?;
    registry.add_startup("surge", "4x until a queue shows", |config| {
        let patience = config.settings.number("patience").unwrap_or(0.05);
        let growth = 3;
        Box::new(Surge { growth, patience })
    })?;
    Ok(registry)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for spec in ["cubic", "surge", "surge:patience=0"] {
        let path = PathText::named("vdsl")?.path(&mut |name| Err(name.to_owned()))?;
        let scenario = Scenario::transfer(path, registry()?.parse(spec)?, 400_000);
        let response = simulate(&scenario, &mut ())?.flows[0].responses[0];
        println!("{spec:<16} {:?}", response.last_byte.ok_or("incomplete")?);
    }
    Ok(())
}
