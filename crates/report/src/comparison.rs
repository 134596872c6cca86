//! The report of an experiment: which arm is faster, at which percentiles, by how much, and how sure that is.
//!
//! [`Comparison::read`] goes through a connection log once, [`Comparison::html`] is the page, [`Comparison::figures`] are
//! its charts for papers. Logs may be simulated, emulated or of production, ours or H2O's.
//!
//! What is a connection's time if it never ended? Leaving it out would make an arm look better that loses its slowest: so
//! it counts as slower than all that ended, in percentiles and in tests, and as unfinished in a table of its own. Means are
//! of what ended, and say so.
//!
//! | file | owns |
//! |---|---|
//! | `comparison/queries.rs` | the text of all queries, and the bins |
//! | `comparison/gather.rs` | from a log to counts |
//! | `comparison/analysis.rs` | from counts to changes, intervals and tests |
//! | `comparison/text.rs` | sentences about them |
//! | `comparison/format.rs` | how numbers are written |
//! | `comparison/figure.rs` | the charts |
//! | `comparison/page.rs`, `page.css`, `page.js` | the page |

use lastbyte_query::Input;

mod analysis;
mod error;
mod figure;
mod format;
mod gather;
mod page;
mod queries;
mod settings;
mod tables;
mod text;

use self::analysis::Analysis;
pub use self::{error::Error, settings::Settings};
use crate::{raster, scene::Scene, svg};

/// An arm in short.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// What it is called.
    pub arm: String,
    /// How many connections it has.
    pub connections: u64,
    /// How many of them have a time to last byte.
    pub completed: u64,
    /// Time to last byte in milliseconds at P25, P50, P75 and P95. `None` where it never came.
    pub ttlb_ms: [Option<f64>; 4],
    /// Packets lost of those sent, in percent: the mean over connections, P50, P90 and P99. `None` where none was sent.
    pub loss_percent: [Option<f64>; 4],
}

/// An experiment, analysed.
#[derive(Debug)]
pub struct Comparison {
    analysis: Analysis,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What to call its file.
    pub name: String,
    scene: Scene,
}

impl Figure {
    /// As XML.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::document(&self.scene)
    }

    /// As pixels, at twice the size, on white. `None` if the encoder has no memory.
    #[must_use]
    pub fn png(&self) -> Option<Vec<u8>> {
        raster::png(&self.scene).ok()
    }
}

impl Comparison {
    /// Reads a log.
    ///
    /// # Errors
    ///
    /// See [`Error`]. A log that cannot be read to its end is no error if something could be read: see
    /// [`Comparison::trouble`].
    pub fn read(inputs: Vec<Input>, settings: Settings) -> Result<Self, Error> {
        let tally = gather::tally(inputs, &settings)?;
        Ok(Self {
            analysis: analysis::analysis(tally, settings)?,
        })
    }

    /// Why not all of the log could be read, if so.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.analysis.trouble.as_deref()
    }

    /// The page: one file that loads nothing.
    #[must_use]
    pub fn html(&self) -> String {
        page::document(&self.analysis)
    }

    /// The charts.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        let figures = figure::all(&self.analysis);
        figures
            .into_iter()
            .map(|(name, scene)| Figure { name, scene })
            .collect()
    }

    /// The numbers, as JSON: what the page shows, for other programs.
    #[must_use]
    pub fn json(&self) -> String {
        page::json(&self.analysis)
    }

    /// The arms in short, the baseline first.
    #[must_use]
    pub fn summary(&self) -> Vec<Summary> {
        let analysis = &self.analysis;
        let arms = analysis.arms.iter().enumerate().map(|(arm, one)| {
            let times = &analysis.groups[0].times[arm];
            let loss = analysis.loss.first().map(|group| &group.loss[arm]);
            let loss_at = |share: f64| {
                let value = loss?.percentile(share)?;
                Some(value as f64 / 100.0)
            };
            Summary {
                arm: one.name.clone(),
                connections: times.total(),
                completed: times.finished(),
                ttlb_ms: [0.25, 0.5, 0.75, 0.95]
                    .map(|share| times.percentile(share).map(|micros| micros as f64 / 1000.0)),
                loss_percent: [
                    loss.and_then(crate::statistics::Counts::mean)
                        .map(|mean| mean / 100.0),
                    loss_at(0.5),
                    loss_at(0.9),
                    loss_at(0.99),
                ],
            }
        });
        arms.collect()
    }

    /// What is significant and what is not, a sentence each.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        text::verdicts(&self.analysis)
    }
}

#[cfg(test)]
mod tests;
