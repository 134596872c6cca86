//! Expected results of simulations: published figures, closed forms, and determinism.

#[path = "suite/algorithm.rs"]
mod algorithm;
#[path = "suite/anatomy.rs"]
mod anatomy;
#[path = "suite/arms.rs"]
mod arms;
#[path = "suite/background.rs"]
mod background;
#[path = "suite/c4.rs"]
mod c4;
#[path = "suite/client_acks.rs"]
mod client_acks;
#[path = "suite/closed_forms.rs"]
mod closed_forms;
#[path = "suite/control.rs"]
mod control;
#[path = "suite/handshakes.rs"]
mod handshakes;
#[path = "suite/history.rs"]
mod history;
#[path = "suite/paths.rs"]
mod paths;
#[path = "suite/prague.rs"]
mod prague;
#[path = "suite/quicly.rs"]
mod quicly;
#[path = "suite/recorder.rs"]
mod recorder;
#[path = "suite/reordering.rs"]
mod reordering;
#[path = "suite/resume.rs"]
mod resume;
#[path = "suite/series.rs"]
mod series;
#[path = "suite/shares.rs"]
mod shares;
#[path = "suite/wifi.rs"]
mod wifi;
#[path = "suite/workloads.rs"]
mod workloads;
