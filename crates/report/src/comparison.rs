//! The report of an experiment: which arm is faster, at which percentiles, by how much, and with which confidence.
//!
//! [`Comparison::read`] reads a connection log in one pass, [`Comparison::html`] returns the page, and [`Comparison::figures`]
//! returns its charts as figures. Logs may be of simulations, emulations or production, ours or H2O's.
//!
//! A transfer that never completed counts as slower than all others in percentiles and tests: if it were left out, an arm that
//! makes its slowest transfers fail would look faster. A table shows the share of completed transfers. Means cover completed
//! transfers only, and the page says so.
//!
//! | file | owns |
//! |---|---|
//! | `comparison/queries.rs` | the text of all queries, and the size bins |
//! | `comparison/gather.rs` | from a log to counts |
//! | `comparison/copies.rs` | lines that were read before |
//! | `comparison/state.rs` | the reading of logs, what their lines must have, and states of parts of a log |
//! | `comparison/analysis.rs` | from counts to changes, intervals and tests |
//! | `comparison/balance.rs` | whether connections are in balance over the arms; the overall change stratified by site |
//! | `comparison/rules.rs` | the lines of production logs that are left out |
//! | `comparison/parts.rs`, `bars.rs` | where the time of transfers goes, and its chart |
//! | `comparison/paths.rs` | the change of each path, of paired connections |
//! | `comparison/neighbours.rs` | what neighbours of the transfers lose or gain |
//! | `comparison/notable.rs` | connections to look at, with the command that runs each again |
//! | `comparison/power.rs` | how many connections an experiment needs |
//! | `comparison/sweep.rs` | the chart of a sweep over networks |
//! | `comparison/text.rs`, `warnings.rs` | results, warnings and notes as sentences |
//! | `comparison/format.rs` | number formats |
//! | `comparison/figure.rs` | the charts |
//! | `comparison/print.rs` | the charts for print |
//! | `comparison/page.rs`, `page/`, `page.css`, `page.js` | the page and its JSON |

use std::io::Write;

use lastbyte_query::{AbsentKey, Input};

mod analysis;
mod balance;
mod bars;
mod copies;
mod error;
mod figure;
mod format;
mod gather;
mod neighbours;
mod notable;
mod page;
mod parts;
mod paths;
mod power;
mod print;
mod queries;
mod rules;
mod settings;
mod state;
mod sweep;
mod tables;
mod text;
mod warnings;

use self::analysis::Analysis;
pub(crate) use self::{
    copies::{Seen, hash_of},
    error::several_experiments,
    settings::expression_of,
    state::among,
};
pub use self::{
    error::Error,
    queries::h2o_arm,
    settings::{BASELINES, Metric, Panel, Settings, Sweep},
    warnings::{PREDICTIONS, UNASSIGNED},
};
use crate::figure::Figure;

/// Key figures of an arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Its name.
    pub arm: String,
    /// The number of connections, with those that have no value of the metric.
    pub connections: u64,
    /// The number of completed transfers, or of connections with a value of a metric other than the time to last byte.
    pub completed: u64,
    /// Time to last byte in milliseconds at P25, P50, P75 and P95. `None` where the percentile falls on a transfer that never
    /// completed.
    pub ttlb_ms: [Option<f64>; 4],
    /// Packets lost of those sent, in percent: the mean over connections, P50, P90 and P99. `None` if no packets were sent.
    pub loss_percent: [Option<f64>; 4],
}

/// An experiment, analysed.
#[derive(Debug)]
pub struct Comparison {
    analysis: Analysis,
    absent: Vec<AbsentKey>,
    repeated: Option<String>,
}

impl Comparison {
    /// Reads a log.
    ///
    /// # Errors
    ///
    /// Returns an [`Error`] if the settings are invalid or the log cannot be compared. A log that cannot be read to its end is
    /// not an error if a part of it was read: see [`Comparison::trouble`]. A state that cannot is an error.
    pub fn read(inputs: Vec<Input>, mut settings: Settings) -> Result<Self, Error> {
        let (mut tally, files) = gather::tally(inputs, &settings)?;
        settings.files = files;
        Ok(Self {
            absent: core::mem::take(&mut tally.absent),
            repeated: tally.repeated.take(),
            analysis: analysis::analysis(tally, settings)?,
        })
    }

    /// The keys of [`Settings::filter`] that no line has.
    pub fn absent(&self) -> &[AbsentKey] {
        &self.absent
    }

    /// The first state that begins with the same few rows as an earlier one, with the name of that: they may be of the same part of a log.
    pub fn repeated(&self) -> Option<&str> {
        self.repeated.as_deref()
    }

    /// Reads a part of a log, and writes the state of the report to `out`: what [`Comparison::read`] needs of each line, with
    /// [`Settings::is_merge`]. Returns why there would be no report of this part alone, which other parts may change, and the keys of
    /// [`Settings::filter`] that no line of it has. The settings that select and name values must be the same for all parts. Of
    /// [`Settings::bins`], only whether they are given counts.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if an expression of the settings is invalid, [`Error::Incomplete`] if the log cannot be read
    /// to its end, and [`Error::Write`] if the state cannot be written.
    pub fn partial(
        inputs: Vec<Input>,
        settings: &Settings,
        out: &mut (dyn Write + Send),
    ) -> Result<(Option<Error>, Vec<AbsentKey>), Error> {
        state::write(inputs, settings, out)
    }

    /// The limits of bins of about as many connections each, for [`Settings::bins`]: one more than there are bins, ascending.
    /// There are fewer bins where many connections have the same value.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Expression`] if an expression of the settings is invalid, and [`Error::Bins`] if there are fewer than two
    /// distinct numbers.
    pub fn bins(
        inputs: Vec<Input>,
        settings: &Settings,
        count: core::num::NonZeroUsize,
    ) -> Result<Vec<f64>, Error> {
        gather::bins(inputs, settings, count.get())
    }

    /// Why the log could not be read to its end, if so.
    pub fn trouble(&self) -> Option<&str> {
        self.analysis.trouble.as_deref()
    }

    /// The page: one self-contained file.
    pub fn html(&self) -> String {
        page::document(&self.analysis)
    }

    /// The charts for print, that of all connections first.
    pub fn figures(&self) -> Vec<Figure> {
        print::all(&self.analysis)
    }

    /// The results of the page as JSON.
    pub fn json(&self) -> String {
        page::json(&self.analysis)
    }

    /// Key figures of the arms, the baseline first.
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
                connections: times.total()
                    + analysis.without_value.get(&one.name).copied().unwrap_or(0),
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

    /// What needs action before the results are used, in sentences.
    pub fn warnings(&self) -> Vec<String> {
        warnings::warnings(&self.analysis)
    }

    /// What a reader of the results has to know, in sentences.
    pub fn notes(&self) -> Vec<String> {
        warnings::notes(&self.analysis)
    }

    /// Whether the numbers of connections of the arms cannot be by chance. The results then do not compare the arms, and there are no
    /// verdicts.
    pub fn ratio_fails(&self) -> bool {
        self.analysis.ratio_fails()
    }

    /// Whether some lines were read before, so that connections count twice. A report of many of them is an [`Error::Copies`].
    pub fn has_copies(&self) -> bool {
        self.analysis.copies.is_some()
    }

    /// For how many looks at the experiment the intervals hold, in a sentence.
    pub fn looks(&self) -> String {
        text::looks(&self.analysis)
    }

    /// The overall change stratified by site beside the pooled one, a sentence per arm. None without sites, or of paired connections.
    pub fn stratified(&self) -> Vec<String> {
        text::stratified(&self.analysis)
    }

    /// A sentence per arm: at which percentiles its difference from the baseline is significant.
    pub fn sentences(&self) -> Vec<String> {
        text::verdicts(&self.analysis)
    }

    /// How many connections detect [`Settings::power`], a sentence per arm; none if that is not set.
    pub fn power(&self) -> Vec<String> {
        text::power(&self.analysis)
    }

    /// A sentence per arm: what the neighbours of its transfers lose or gain. None if the log has no neighbours.
    pub fn harm(&self) -> Vec<String> {
        text::harm(&self.analysis)
    }
}

#[cfg(test)]
mod tests;
