//! Page loads over several protocols, compared page by page.
//!
//! There is no single number: each page is a dot with the time of the baseline and that of another arm, and below the midline it
//! loads faster. One chart and one table row per network, with the share of pages below the midline, the speedup with an
//! interval, and which pages lose.
//!
//! | file | owns |
//! |---|---|
//! | `compare/verdict.rs` | shares, speedups and intervals |
//! | `compare/figure.rs` | the charts of all networks |
//! | `compare/page.rs`, `page.js`, `page.css` | the page |

mod figure;
mod page;
#[cfg(test)]
mod tests;
mod verdict;

use serde_json::{Value, json};

pub use self::verdict::{Verdict, show_speedup};
use crate::{figure::Figure, svg};

/// Page loads to compare.
#[derive(Clone, Debug, Default)]
pub struct PageLoads {
    /// The title, a few words.
    pub title: String,
    /// The conditions. May be empty.
    pub subtitle: String,
    /// Names and values for the list at the end of the page.
    pub facts: Vec<(String, String)>,
    /// Warnings about the figures.
    pub warnings: Vec<String>,
    /// The arms, the baseline first.
    pub arms: Vec<String>,
    /// The networks.
    pub networks: Vec<String>,
    /// The views: `first`, `repeat`.
    pub views: Vec<String>,
    /// The pages.
    pub pages: Vec<PageFacts>,
    /// The loads, in any order. Several of the same page are averaged.
    pub loads: Vec<LoadTimes>,
    /// Times of resources, for some loads.
    pub waterfalls: Vec<Waterfall>,
    /// Times of resources by kind and party.
    pub parts: Vec<PartTimes>,
}

/// The data of a page.
#[derive(Clone, Debug, Default)]
pub struct PageFacts {
    /// Its name.
    pub name: String,
    /// Hosts.
    pub hosts: usize,
    /// Bytes of all bodies.
    pub bytes: u64,
    /// For each resource its kind, its host, and the bytes of its body.
    pub resources: Vec<(String, String, u64)>,
}

/// A load, by indices into the lists of [`PageLoads`].
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadKey {
    /// The page.
    pub page: usize,
    /// The network.
    pub network: usize,
    /// The arm.
    pub arm: usize,
    /// The view.
    pub view: usize,
}

/// The times of a load, in ms; `None` if it failed or took too long, which counts as infinitely long.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadTimes {
    /// Which load.
    pub key: LoadKey,
    /// Until `onload`.
    pub load_ms: Option<f64>,
    /// Until the first render.
    pub render_ms: Option<f64>,
}

/// The times of the resources of a load.
#[derive(Clone, Debug, Default)]
pub struct Waterfall {
    /// Which load.
    pub key: LoadKey,
    /// For each resource: when it was requested, when its first byte and when its last byte arrived, in ms.
    pub bars: Vec<[Option<f64>; 3]>,
}

/// The times of resources of a kind and a party, in an arm and a view, over all networks.
#[derive(Clone, Debug, Default)]
pub struct PartTimes {
    /// The kind and the party: `script`, `third`.
    pub part: (String, String),
    /// The arm.
    pub arm: usize,
    /// The view.
    pub view: usize,
    /// Responses.
    pub responses: u64,
    /// From the request to the first byte, in ms, all together.
    pub first_byte_ms: f64,
    /// From the request to the last byte, in ms, all together.
    pub last_byte_ms: f64,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Until `onload`.
    Load,
    /// Until the first render.
    Render,
}

impl Metric {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Load, Self::Render];

    /// Its name in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Render => "first_render",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Load => "page load time",
            Self::Render => "first render",
        }
    }

    const fn of(self, load: &LoadTimes) -> Option<f64> {
        match self {
            Self::Load => load.load_ms,
            Self::Render => load.render_ms,
        }
    }
}

/// A comparison of an arm with the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The arm that is not the baseline.
    pub arm: usize,
    /// The view.
    pub view: usize,
    /// What is compared.
    pub metric: Metric,
}

impl Selection {
    /// The first view, of the first arm that is not the baseline.
    const fn first(metric: Metric) -> Self {
        Self {
            arm: 1,
            view: 0,
            metric,
        }
    }
}

impl PageLoads {
    /// All comparisons, the most important first.
    fn selections(&self) -> Vec<Selection> {
        let mut all = Vec::new();
        for arm in 1..self.arms.len() {
            for metric in Metric::ALL {
                for view in 0..self.views.len() {
                    all.push(Selection { arm, view, metric });
                }
            }
        }
        all
    }

    /// The result on each network.
    pub fn verdicts(&self, selection: Selection) -> Vec<Verdict> {
        let pairs = verdict::pairs(self, selection);
        pairs.iter().map(|pairs| Verdict::of(pairs)).collect()
    }

    /// The page.
    pub fn html(&self) -> String {
        page::document(self)
    }

    /// The charts of all networks: this metric in the first view, in the first arm that is not the baseline.
    pub fn svg(&self, metric: Metric) -> String {
        svg::document(&figure::overview(self, Selection::first(metric)))
    }

    /// The same for print, with this name.
    pub fn figure(&self, name: &str, metric: Metric) -> Figure {
        figure::print(self, name, Selection::first(metric))
    }

    /// The results, for other programs.
    pub fn json(&self) -> Value {
        let results = self.selections().into_iter().flat_map(|selection| {
            let verdicts = self.verdicts(selection).into_iter().enumerate();
            let rows = verdicts.map(move |(network, verdict)| {
                let mut row = verdict.json();
                row["arm"] = json!(self.arms[selection.arm]);
                row["view"] = json!(self.views[selection.view]);
                row["metric"] = json!(selection.metric.key());
                row["network"] = json!(self.networks[network]);
                row
            });
            rows.collect::<Vec<_>>()
        });
        json!({
            "baseline": self.arms.first(),
            "arms": self.arms,
            "pages": self.pages.len(),
            "loads": self.loads.len(),
            "results": results.collect::<Vec<_>>(),
        })
    }
}
