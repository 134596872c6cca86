//! Where a ramp stands, for people: a sentence, and a page of its looks.

use lastbyte_report::ramp::{Page, Point, Sequence, Table, Tile};
use lastbyte_units as units;

use crate::ramp::{Action, Change, Look, Ramp, Setup};

/// Looks that a chart has at the most, besides decisions.
const DRAWN_MAX: usize = 500;
const HOUR_MS: f64 = 3_600_000.0;
/// The name of the TTLB that the upper bound of a winner is below.
const LIMIT: &str = "limit of a win";

/// A ramp with looks, the first of which has its setup.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    looks: &'a [Look],
    setup: &'a Setup,
    last: &'a Look,
}

impl<'a> Standing<'a> {
    /// The standing of a ramp. `None` if it did not start, or its first look has no setup.
    pub fn of(ramp: &'a Ramp) -> Option<Self> {
        let looks = ramp.looks();
        Some(Self {
            looks,
            setup: looks.first()?.setup.as_ref()?,
            last: looks.last()?,
        })
    }

    /// Where the ramp stands, and why.
    pub fn sentence(&self) -> String {
        let Look {
            action,
            stage,
            share,
            rule,
            hours,
            ..
        } = self.last;
        let arm = &self.setup.arms[1];
        let share = units::show_share(*share);
        match action {
            Action::Win => {
                format!("`{arm}` won, and has {share} of new connections: {rule}.")
            }
            action if action.is_end() => {
                format!("The ramp is over ({action}), and `{arm}` has no new connections: {rule}.")
            }
            action => {
                let of = self.setup.stages.len();
                // Hours of a stage that has begun are of the one before.
                let hours = if *action == Action::Hold { *hours } else { 0 };
                format!(
                    "`{arm}` has {share} of new connections, in stage {} of {of} for {hours} h ({action}): {rule}.",
                    stage + 1
                )
            }
        }
    }

    /// The looks that changed the shares, and the last one.
    pub fn decisions(&self) -> impl Iterator<Item = &'a Look> {
        let last = self.last.look;
        let looks = self.looks.iter();
        looks.filter(move |look| look.action != Action::Hold || look.look == last)
    }

    /// The page, but for what the caller knows.
    pub fn page(&self) -> Page {
        let setup = self.setup;
        let marks = self.decisions().filter(|look| look.action != Action::Hold);
        let marks = marks.map(|look| (self.hours(look), named(look)));
        Page {
            title: format!("Ramp of {} in {}", setup.arms[1], setup.experiment),
            standing: self.sentence(),
            tiles: self.tiles(),
            sequences: self.sequences(),
            decisions: marks.collect(),
            hours: self.hours(self.last),
            tables: vec![self.table(), self.sites()],
            notes: vec![
                "Bounds hold at all looks together. Those of TTLB, loss and incomplete transfers are of the whole ramp; percentiles begin with each stage. Vertical lines are decisions."
                    .to_owned(),
            ],
            facts: vec![
                ("looks".to_owned(), self.looks.len().to_string()),
                ("hash of the plan".to_owned(), self.last.plan.clone()),
                ("epoch".to_owned(), self.last.epoch.to_string()),
                ("sum of the last look".to_owned(), self.last.sum.clone()),
            ],
            command: String::new(),
        }
    }

    fn hours(&self, look: &Look) -> f64 {
        let start = self.looks.first().map_or(0, |first| first.until);
        look.until.saturating_sub(start) as f64 / HOUR_MS
    }

    fn tiles(&self) -> Vec<Tile> {
        let last = self.last;
        let tile = |name: &str, value: String, note: String| Tile {
            name: name.to_owned(),
            value,
            note,
        };
        let signed = |share: f64| units::show_signed(share * 100.0, 2);
        let mut tiles = vec![tile(
            "share of new connections",
            units::show_share(last.share),
            format!("stage {} of {}", last.stage + 1, self.setup.stages.len()),
        )];
        for (name, unit, change) in [
            ("TTLB", "%", last.ttlb),
            ("loss", "pp", last.loss),
            ("incomplete transfers", "pp", last.incomplete),
            ("RTT beside its minimum", "%", last.rtt),
        ] {
            let Some(Change { value, low, high }) = change else {
                continue;
            };
            let bound = |bound: Option<f64>| bound.map_or("–".to_owned(), signed);
            tiles.push(tile(
                name,
                format!("{} {unit}", signed(value)),
                format!("{} to {}", bound(low), bound(high)),
            ));
        }
        let counts = last.connections.values();
        let counts = counts.fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
        tiles.push(tile(
            "connections",
            counts[1].to_string(),
            format!("and {} of {}", counts[0], self.setup.arms[0]),
        ));
        tiles
    }

    fn sequences(&self) -> Vec<Sequence> {
        let setup = self.setup;
        let limit = |value: f64, name: &str| vec![(percent(value), name.to_owned())];
        let change =
            |title: &str, text: &str, of, boundaries| self.change(title, text, of, boundaries);
        let shares = Sequence {
            title: "Share of the arm".to_owned(),
            text: "The share of new connections that the arm has after each look.".to_owned(),
            is_percent: true,
            is_stepped: true,
            points: self.points(|look| Point {
                value: Some(percent(look.share)),
                ..Point::default()
            }),
            boundaries: Vec::new(),
        };
        let (win, text, effects) = of_ttlb(setup);
        let mut ttlb = change("Change of TTLB", text, |look| look.ttlb, effects);
        let futility = self.points(|look| Point {
            second: look.ttlb_low.map(percent),
            ..Point::default()
        });
        for (point, of) in ttlb.points.iter_mut().zip(futility) {
            point.second = of.second;
        }
        let none = || vec![(0.0, "no change".to_owned())];
        let quantile = |name: &str, of| {
            let text = "Bounds of 5 % over the stages. No decision follows from them.";
            self.by_stage(change(
                &format!("Change of the {name} of TTLB, by stage"),
                text,
                of,
                none(),
            ))
        };
        vec![
            shares,
            ttlb,
            self.by_stage(change(
                "Change of TTLB in the stage alone",
                &format!(
                    "A win, in the last stage: the upper bound is below {}.",
                    if setup.win == 0.0 {
                        "no change"
                    } else {
                        "the limit of a win"
                    }
                ),
                |look| look.stage_ttlb,
                vec![win],
            )),
            quantile("P50", |look| look.p50),
            quantile("P75", |look| look.p75),
            quantile("P95", |look| look.p95),
            change(
                "Rise of packet loss",
                "In points of the packets sent. Harm: the lower bound is above the limit.",
                |look| look.loss,
                limit(setup.loss, "limit"),
            ),
            change(
                "Rise of incomplete transfers",
                "In points of the transfers. Harm: the lower bound is above the limit.",
                |look| look.incomplete,
                limit(setup.completion, "limit"),
            ),
            change(
                "Rise of the RTT beside its minimum",
                "The smoothed round-trip time as a multiple of the minimum, a proxy of harm to other traffic. Harm: the lower bound is above the limit, if the plan has one.",
                |look| look.rtt,
                setup.rtt.map_or_else(none, |rtt| limit(rtt, "limit")),
            ),
            Sequence {
                title: "Sample ratio".to_owned(),
                text: "Logarithm of the Bayes factor against the shares, less its limit."
                    .to_owned(),
                points: self.points(|look| Point {
                    value: look.ratio,
                    ..Point::default()
                }),
                boundaries: vec![(0.0, "alarm".to_owned())],
                ..Sequence::default()
            },
        ]
    }

    /// A change in percent, with its bounds.
    fn change(
        &self,
        title: &str,
        text: &str,
        of: fn(&Look) -> Option<Change>,
        boundaries: Vec<(f64, String)>,
    ) -> Sequence {
        Sequence {
            title: title.to_owned(),
            text: text.to_owned(),
            is_percent: true,
            points: self.points(|look| {
                let of = of(look);
                Point {
                    value: of.map(|of| percent(of.value)),
                    low: of.and_then(|of| of.low).map(percent),
                    high: of.and_then(|of| of.high).map(percent),
                    ..Point::default()
                }
            }),
            boundaries,
            ..Sequence::default()
        }
    }

    /// The points of the looks that are drawn: decisions, and others evenly.
    fn points(&self, of: impl Fn(&Look) -> Point) -> Vec<Point> {
        let step = self.looks.len().div_ceil(DRAWN_MAX).max(1);
        let looks = self.looks.iter().enumerate().filter(|(place, look)| {
            place % step == 0 || look.action != Action::Hold || look.look == self.last.look
        });
        let points = looks.map(|(_, look)| Point {
            hours: self.hours(look),
            ..of(look)
        });
        points.collect()
    }

    /// A sequence of values that begin with each stage: a gap follows a look that ends one.
    fn by_stage(&self, mut sequence: Sequence) -> Sequence {
        let ends = self.decisions().filter(|look| look.action != Action::Hold);
        let ends: Vec<f64> = ends.map(|look| self.hours(look)).collect();
        let points = sequence.points.into_iter().flat_map(|point| {
            let gap = ends.contains(&point.hours).then(|| Point {
                hours: point.hours,
                ..Point::default()
            });
            core::iter::once(point).chain(gap)
        });
        sequence.points = points.collect();
        sequence
    }

    fn table(&self) -> Table {
        let rows = self.decisions().map(|look| {
            vec![
                named(look),
                format!("{:.1} h", self.hours(look)),
                units::show_share(look.share),
                look.rule.clone(),
            ]
        });
        let header = ["look", "after", "share", "why"];
        Table {
            title: "Decisions".to_owned(),
            header: header.map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }
    }

    fn sites(&self) -> Table {
        let rows = self.last.connections.iter().map(|(site, [baseline, arm])| {
            let site = if site.is_empty() { "(none)" } else { site };
            vec![site.to_owned(), baseline.to_string(), arm.to_string()]
        });
        let [baseline, arm] = &self.setup.arms;
        Table {
            title: "Connections".to_owned(),
            header: vec!["site".to_owned(), baseline.clone(), arm.clone()],
            rows: rows.collect(),
        }
    }
}

fn percent(value: f64) -> f64 {
    value * 100.0
}

/// What decides by TTLB: the limit of a win, and for the whole ramp a text with its boundaries.
fn of_ttlb(setup: &Setup) -> ((f64, String), &'static str, Vec<(f64, String)>) {
    let none = (0.0, "no change".to_owned());
    if setup.win < 0.0 {
        let win = (percent(-setup.win), LIMIT.to_owned());
        let text = "Harm: the lower bound is above the limit of a win. Futile: the bound for futility is above it.";
        return (win.clone(), text, vec![win]);
    }
    let win = if setup.win > 0.0 {
        (percent(-setup.win), LIMIT.to_owned())
    } else {
        none.clone()
    };
    let planned = (percent(-setup.detect), "planned effect".to_owned());
    let text = "Harm: the lower bound is above no change. Futile: the bound for futility is above the planned effect.";
    (win, text, vec![planned, none])
}

/// The name of a decision in charts and tables.
fn named(look: &Look) -> String {
    format!("{} {}", look.look, look.action)
}
