//! Predictions of what another congestion control would have done to the connections of a log.
//!
//! A log has each connection under one algorithm. [`predict`] answers what another one, which never ran, would have done to the same
//! connections: it finds the simulated paths that a line may have had, and takes what the other algorithm did on those.
//!
//! ```
//! use lastbyte_replay::{Bank, BankPath, Effort, Line, LogLine, predict};
//!
//! // What the caller simulates: many paths, each under the arm of the log and under the new one. Here, the new one takes 0.8 of the
//! // time on long paths, and all of it on short ones.
//! let rtt = |path: u64| 10.0 + (path * 37 % 90) as f64;
//! let line = |path: u64, factor: f64| {
//!     let ttlb = rtt(path) * 5.0 * factor + (path % 7) as f64;
//!     let mut numbers = vec![f64::NAN; lastbyte_replay::KEYS.len()];
//!     for (key, number) in [("content_length", 3e5), ("ttlb", ttlb), ("num-packets.sent", 200.0), ("num-packets.lost", 0.0), ("rtt.minimum", rtt(path))] {
//!         let at = lastbyte_replay::KEYS.iter().position(|one| *one == key).expect("it is a key");
//!         numbers[at] = number;
//!     }
//!     Line::of_numbers(numbers)
//! };
//! let factor = |path: u64| if rtt(path) > 50.0 { 0.8 } else { 1.0 };
//! let paths = (0..600).map(|seed| BankPath { seed, population: seed as u32 % 8, class: "any".into() });
//! let mut bank = Bank::new(paths.collect());
//! bank.add_arm("old", (0..600).map(|path| Some(line(path, 1.0))).collect());
//! bank.add_arm("new", (0..600).map(|path| Some(line(path, factor(path)))).collect());
//!
//! // A log of long paths only: the whole bank is not like it.
//! let log: Vec<LogLine> = (1000..1600)
//!     .filter(|path| rtt(*path) > 60.0)
//!     .map(|path| LogLine { arm: "old".into(), site: None, line: line(path, 1.0) })
//!     .collect();
//! let prediction = predict(&bank, &log, "old", "new", Effort::default(), 1)?;
//! let change = prediction.groups[0].mean;
//! assert!((change.value + 0.2).abs() < 0.03, "{change:?}");
//! assert!(prediction.unmatched_mean > -0.15);
//! # Ok::<(), lastbyte_replay::Refusal>(())
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`line`](mod@line) | the columns of a line, and the features computed from them |
//! | `bank` | simulated paths, and their lines under each arm |
//! | `forest` | trees: which paths are neighbours |
//! | `kernel` | the features of the bank's lines, their neighbours, and the limit of support |
//! | `linear` | the correction for the distance to the neighbours |
//! | `model` | learning from the bank, its errors on unseen populations, and the match |
//! | `predict` | predictions, checks, and refusals |
//! | `statistics` | percentiles, changes and intervals |
//! | `twin` | the paths that one connection may have had, and where it parts from them |
//!
//! The crate has no clock, file or thread, and all randomness is from a seed: same lines, same bank, same result.
//!
//! # Decisions
//!
//! - A line is not fitted to one path: many paths explain one line, and differ in what another arm does on them. All of them count, with
//!   weights.
//! - What is predicted is the change from the line's own time, not the time: what the match leaves open is mostly in both.
//! - The errors of the match are measured on populations of the bank that it has not seen, after the variance of chance is subtracted. They
//!   are a part of every interval: a bootstrap of lines and draws alone would shrink to nothing with the number of lines.
//! - Lines that resemble no path are counted and left out. Beyond a fifth, nothing is predicted.
//! - An incomplete transfer has no time to predict from. The caller counts such lines.

#![forbid(unsafe_code)]

mod bank;
mod forest;
mod kernel;
pub mod line;
mod linear;
mod model;
mod predict;
mod random;
mod statistics;
mod twin;

/// The prior: the sites, classes and sizes that the paths of a bank are drawn from, as a population file. It is broader than any
/// network: what no log shows, such as whether a queue is managed, is as likely as not.
pub const PRIOR: &str = include_str!("prior.toml");

pub use self::{
    bank::{Bank, BankPath},
    kernel::Effort,
    line::{Column, FEATURES, Feature, KEYS, Line, Selection},
    predict::{
        Check, CheckKind, Group, GroupKind, LEVEL, LINES_MIN, LogLine, Outcome, Prediction,
        Refusal, check, imbalance, predict,
    },
    statistics::{Estimate, SHARES},
    twin::{Parting, Posterior, parting, posteriors},
};
