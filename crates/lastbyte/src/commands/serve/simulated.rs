//! The configuration of a server in the simulator.
//!
//! Decides which keys of a configuration file have a meaning in virtual time. The others are named, never silently ignored.

use std::path::Path;

use lastbyte_congestion::Registry;
use lastbyte_scenario::Arm;
use lastbyte_sim::ServerSettings;

use super::{config, connection_config, http3_config, retry, route::Target, specs};
use crate::failure::Failure;

/// Keys that are simulated. Of `route`, those to `sink` and `generated`.
const SIMULATED: [&str; 16] = [
    "buffer-memory",
    "congestion",
    "experiment",
    "generated",
    "handshake-timeout",
    "head-size",
    "http",
    "initial-mtu",
    "mtu",
    "no-0rtt",
    "quic-version",
    "retry",
    "route",
    "stall-bytes",
    "stall-timeout",
    "upload-window",
];

/// The configuration of a server, as far as it is simulated.
#[derive(Debug)]
pub(crate) struct Simulated {
    /// The congestion controls.
    pub(crate) arms: Vec<Arm>,
    /// The settings.
    pub(crate) server: ServerSettings,
    /// Keys of the file that have no meaning in virtual time.
    pub(crate) ignored: Vec<String>,
}

impl Simulated {
    /// Reads a configuration file of `lastbyte serve`.
    pub(crate) fn read(path: &Path, registry: &Registry) -> Result<Self, Failure> {
        let (arguments, keys) = config::read_file(path)?;
        let in_file = |failure| match failure {
            Failure::Usage(why) => Failure::Usage(format!("`{}`: {why}", path.display())),
            other => other,
        };
        arguments.validate().map_err(in_file)?;
        if !arguments.versions().http3 {
            return Err(in_file(Failure::Usage(
                "`http` has no 3 (expected it: HTTP/3 is simulated)".into(),
            )));
        }
        let (arms, _) = specs(&arguments, registry).map_err(in_file)?;
        let Some(first) = arms.first() else {
            return Err(in_file(Failure::Usage("no arm".into())));
        };
        let server = ServerSettings {
            http3: http3_config(&arguments),
            retry: retry(&arguments),
            handshake_timeout: arguments.quic_limits().handshake_timeout,
            takes_zero_rtt: !arguments.no_0rtt,
            buffers: arguments.budget(),
            window_memory: Some(arguments.buffer_memory),
            connections: connection_config(&arguments, first.spec.clone()),
        };
        let has_others = arguments
            .route
            .iter()
            .any(|route| matches!(route.target, Target::Directory(_) | Target::Upstream(_)));
        let is_simulated = |key: &str| SIMULATED.contains(&key) && (key != "route" || !has_others);
        Ok(Self {
            arms,
            server,
            ignored: keys.into_iter().filter(|key| !is_simulated(key)).collect(),
        })
    }
}
