//! Charts and pages of transfers and experiments.
//!
//! Data in, text or bytes out. The crate reads no file, clock or environment and uses no system fonts, so the same data give
//! the same bytes everywhere. Input may be anything that a simulation can produce: nothing, one point, a million points,
//! infinities and NaN. Nothing panics, and values that cannot be drawn are left out.
//!
//! | to | see |
//! |---|---|
//! | draw one or more transfers over time | [`transfer::Picture`] |
//! | compare the arms of an experiment, from its log | [`comparison::Comparison`] |
//! | compare the requests of an access log by arm | [`requests::Requests`] |
//! | compare page loads over several protocols | [`compare::PageLoads`] |
//! | draw times against packet loss | [`loss::LossStudy`] |
//! | draw a real connection, from its qlog file | [`qlog::read`] |
//! | draw a run of a load generator | [`load::Run`] |
//! | show what another algorithm would have done to the connections of a log | [`replay::Page`] |
//! | show where a ramp of an experiment stands, and its looks | [`ramp::Page`] |
//! | show the candidates of a search and their Pareto front | [`front::Front`] |
//! | print any of these in a paper, as PDF, SVG and CSV | [`figure::Figure`] |
//! | compute percentiles, intervals and tests | [`statistics`] |
//!
//! # Example
//!
//! ```
//! use lastbyte_report::transfer::{Arm, Picture, Point};
//!
//! let mut arm = Arm::new("slow-start");
//! for packet in 0..30 {
//!     let (ms, bytes) = (78.0 + f64::from(packet) * 0.65, f64::from(packet + 1) * 1200.0);
//!     arm.sent.push(Point::new(ms, bytes));
//!     arm.acked.push(Point::new(ms + 39.0, bytes));
//! }
//! let picture = Picture { title: "36 kB over 39 ms".into(), arms: vec![arm], ..Picture::default() };
//! assert!(picture.html().starts_with("<!doctype html>"));
//! assert!(picture.svg().starts_with("<svg "));
//! ```
//!
//! # Decisions
//!
//! - The page has its own script (33 kB) instead of a chart library of several megabytes; it thins points to what the
//!   screen can show.
//! - There are no images of pixels: browsers and `rsvg-convert` make them from the SVG.
//! - PDF files hold paths only, which takes fewer lines than a crate for PDF needs to be called; text is outlines.
//! - The crate `dejavu` brings a font, so that text is measured and the same data give the same pixels everywhere.
//! - Text in markup is escaped; data for the script is JSON without `<`, `>` and `&`. The page's policy forbids loading
//!   anything.

#![forbid(unsafe_code)]

pub mod compare;
pub mod comparison;
mod document;
mod drawing;
pub mod figure;
mod font;
pub mod front;
pub mod load;
pub mod loss;
mod pdf;
pub mod qlog;
pub mod ramp;
pub mod replay;
pub mod requests;
mod scale;
mod scene;
pub mod statistics;
mod svg;
pub mod transfer;
