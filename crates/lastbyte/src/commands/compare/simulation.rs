//! Page loads in the simulator.

use core::time::Duration;
use std::sync::Arc;

use lastbyte_page::View;
use lastbyte_scenario::{ClientAcks, Handshake, Path, Transport};
use lastbyte_sim::{PageLoad, load_page};
use serde_json::{Value, json};

use super::{
    arguments::Arguments,
    run::{Job, Loaded, Setting},
};
use crate::failure::Failure;

/// A page load that takes longer is given up.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(300);

/// How the page loads are simulated.
pub(super) struct Simulation<'a> {
    pub(super) setting: &'a Setting<'a>,
    pub(super) arguments: &'a Arguments,
    pub(super) networks: &'a [(String, Path)],
}

impl Simulation<'_> {
    fn input(&self, job: &Job) -> PageLoad {
        let arguments = self.arguments;
        let arm = &self.setting.arms[job.key.arm];
        let view = self.setting.views[job.key.view];
        let mut path = self.networks[job.key.network].1.clone();
        path.overhead = path.overhead.max(HEADERS);
        let acks = path.client_acks.unwrap_or(ClientAcks::Chromium);
        let handshake = arguments.handshake.unwrap_or(match view {
            View::First => Handshake::Full,
            View::Repeat => Handshake::Resumed,
        });
        PageLoad {
            view,
            upgrade: arm.upgrade,
            holds_back: !arguments.no_hold_back,
            congestion: arm.spec.clone(),
            transport: Transport {
                handshake,
                datagram_size: arguments.datagram_size,
                max_ack_delay: acks.max_ack_delay(),
                ack_decimation: acks.decimation(),
                ..Transport::default()
            },
            tls: arguments.tls,
            early_hints: arguments.early_hints,
            dns: arguments.dns,
            seed: job.seed,
            time_limit: TIME_LIMIT,
            ..PageLoad::new(
                Arc::clone(&self.setting.pages[job.key.page]),
                arm.version,
                path,
            )
        }
    }

    /// Simulates a page load.
    pub(super) fn load(&self, job: &Job) -> Result<Loaded, Failure> {
        let outcome = load_page(&self.input(job)).map_err(Failure::usage)?;
        Ok(self.setting.keep(job, &outcome))
    }

    /// A row of loads.ndjson.
    pub(super) fn row(&self, job: &Job, loaded: &Loaded) -> Value {
        let mut row = self.setting.row(job, loaded);
        row["upgrade"] = json!(self.setting.arms[job.key.arm].upgrade.name());
        row["seed"] = json!(job.seed % lastbyte_units::SEED_END);
        row["packets"] = json!(loaded.packets);
        row["bytes_down"] = json!(loaded.bytes[0]);
        row["bytes_up"] = json!(loaded.bytes[1]);
        row["drops_down"] = json!(loaded.drops);
        row
    }
}

/// Headers of IPv4 and UDP, in bytes: the least that a packet has beside its payload.
const HEADERS: u32 = 28;
