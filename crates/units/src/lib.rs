//! Units of time, data and rate that all crates share, and their text form.
//!
//! | what | see |
//! |---|---|
//! | a point in time on the caller's clock | [`Time`] |
//! | a data rate | [`Rate`] |
//! | dates of the calendar | [`date_of_days`], [`days_of_date`] |
//! | random numbers from a seed | [`SplitMix64`] |
//! | the directions of a path, and the ECN field of its packets | [`Direction`], [`Ecn`] |
//! | a keyed hash | [`SipHash`] |
//! | shares of a limited resource, and whom they belong to | [`FairShare`], [`AddressPrefix`] |
//! | sizes, rates, spans of time, shares, counts and seeds as text | [`bytes`], [`rate`], [`span`], [`probability`], [`count`], [`seed`] |
//!
//! # Example
//!
//! ```
//! use lastbyte_units as units;
//!
//! let rate = units::rate("55Mb/s")?;
//! assert_eq!(rate.bytes_in(units::span("39ms")?), 268_125);
//! let error = units::bytes("64k").unwrap_err();
//! assert_eq!(error.to_string(), "expected a size with its unit: `64kB` (decimal) or `64KiB` (binary)");
//! # Ok::<(), units::UnitError>(())
//! ```

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod address_prefix;
mod calendar;
mod direction;
mod ecn;
mod fair_share;
mod random;
mod rate;
mod siphash;
mod text;
mod time;

pub use address_prefix::AddressPrefix;
pub use calendar::{date_of_days, days_of_date};
pub use direction::Direction;
pub use ecn::Ecn;
pub use fair_share::FairShare;
pub use random::{SplitMix64, mix};
pub use rate::Rate;
pub use siphash::SipHash;
pub use text::{
    SEED_END, UnitError, bytes, count, probability, rate, seed, show_bytes, show_rate, show_share,
    show_signed, show_span, span,
};
pub use time::{Time, nanos};
