//! Decisions of an experiment whose arm grows in stages.
//!
//! Sums of log lines in, a decision out. The crate reads no file and no clock: time is that of the lines. The same lines give the
//! same decision, so a log recomputes each of them.
//!
//! | module | owns |
//! |---|---|
//! | [`tally`] | sums of lines by epoch, site and arm |
//! | [`ramp`] | looks, the rules of their decisions, and what follows for the shares |
//! | [`standing`] | where a ramp stands: a sentence, and a page |
//! | [`rehearsal`] | a plan over simulated connections, many times |
//!
//! An *epoch* is the time during which shares are constant; epochs count from the second in which the ramp started, so lines of an
//! earlier ramp are of no epoch of a later one. A *look* is one evaluation of all lines so far.
//!
//! ```
//! use lastbyte_scenario::RampPlan;
//! use lastbyte_steer::{
//!     Subject,
//!     ramp::{Action, Ramp},
//!     tally::Tally,
//! };
//!
//! let plan = RampPlan::default();
//! let subject = Subject { name: "new", arms: ["cubic", "rapid-start"], plan: &plan };
//! let mut ramp = Ramp::default();
//! ramp.push(ramp.start(&subject, "hash of the plan", 1_790_000_000_000, 1_790_000_000_000));
//! let look = ramp.look(&subject, &Tally::default(), 1_790_000_000_000).expect("the ramp is not over");
//! assert_eq!((look.action, look.share), (Action::Hold, 0.01));
//! ```

#![forbid(unsafe_code)]

pub mod ramp;
pub mod rehearsal;
pub mod standing;
pub mod tally;

use lastbyte_scenario::RampPlan;

/// What is steered.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The name of the experiment.
    pub name: &'a str,
    /// The names of the baseline and of the arm whose share grows.
    pub arms: [&'a str; 2],
    /// The plan.
    pub plan: &'a RampPlan,
}

/// The time during which shares are constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epoch {
    /// The number: of the first epoch, the second since 1970 in which the ramp started.
    pub number: u32,
    /// The stage of the plan, from 0.
    pub stage: usize,
    /// The arm's share of connections.
    pub share: f64,
    /// The time of the newest line before it, in milliseconds since 1970.
    pub since_ms: u64,
    /// When it was decided, in milliseconds since 1970.
    pub decided_ms: u64,
}
