//! Descriptions of what is simulated, served and measured: arms, networks, populations, workloads and experiments, as text
//! and as data.
//!
//! The simulator, the server, the load generator and the emulated link read the same files. No file is opened here, and
//! nothing is simulated. The crate needs no transport, so that a server that reads an experiment has no simulator in it.
//!
//! ```
//! use lastbyte_scenario::Experiment;
//!
//! let experiment = Experiment::four_arms();
//! let plan = experiment.connection(7, false);
//! assert_eq!(experiment.connection(7, false).seed, plan.seed);
//! let scenario = experiment.scenario(&plan);
//! assert_eq!(scenario.flows[0].requests[0].size, plan.draw.size_bytes);
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`scenario`] | paths, flows, endpoints: the input of a simulation |
//! | [`client_acks`] | how browsers acknowledge |
//! | [`cross`] | cross traffic |
//! | [`moves`] | changes of a client's address |
//! | [`neighbour`] | other users of a path |
//! | [`network`] | named networks, and paths as TOML |
//! | [`http`] | versions of HTTP and TLS, and which hosts have them |
//! | [`population`] | the distribution of paths: sites, access classes, sizes |
//! | [`workload`] | number and direction of the objects that a client transfers |
//! | [`arm`] | arms, and their text in all commands |
//! | [`plan`] | how the share of an arm grows |
//! | [`experiment`] | experiment files, and the assignment of connections to arms |

#![forbid(unsafe_code)]

pub mod arm;
pub mod arrivals;
pub mod client_acks;
pub mod cross;
pub mod experiment;
pub mod http;
pub mod moves;
pub mod neighbour;
pub mod network;
pub mod plan;
pub mod population;
pub mod scenario;
mod setting;
pub mod workload;

pub use arm::{Arm, HttpArm};
pub use client_acks::ClientAcks;
pub use cross::{CrossKind, CrossTraffic, Pages};
pub use experiment::{Experiment, Plan};
pub use http::{HttpVersion, TlsVersion, Upgrade};
pub use lastbyte_units::Direction;
pub use moves::{Move, MoveKind};
pub use neighbour::{Neighbour, Observation};
pub use plan::{Freeze, RampPlan};
pub use population::{CrossFact, Draw, DrawFacts, Population, Sweep};
pub use scenario::{FlowPlan, Handshake, Path, Request, Scenario, Security, Transport};
pub use setting::SettingError;
pub use workload::Workload;
