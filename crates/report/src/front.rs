//! The candidates of a search for parameters: how much faster each is and how much more it loses, and which form the Pareto front.

use crate::{
    figure::{Axis, Figure, Look, Mark, Point, Scale, Series},
    scale::{Extent, Unit},
    statistics::tests_of::Estimate,
};

#[cfg(test)]
mod tests;

/// The candidates of a search, compared with its baseline on the same paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Front {
    /// The name of the baseline.
    pub baseline: String,
    /// The candidates, those on the front first.
    pub candidates: Vec<Candidate>,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its keys and values.
    pub name: String,
    /// The change of the time to last byte, as a share.
    pub ttlb: Estimate,
    /// The difference of packet loss, in percentage points.
    pub loss: Estimate,
    /// Whether it is on the Pareto front.
    pub is_on_front: bool,
}

impl Front {
    /// Loss over time: a mark per candidate with its intervals. Candidates on the front have names.
    pub fn figure(&self) -> Figure {
        let point = |one: &Candidate| Point {
            x_bounds: Some((one.ttlb.interval.0 * 100.0, one.ttlb.interval.1 * 100.0)),
            y_bounds: Some(one.loss.interval),
            ..Point::new(one.ttlb.value * 100.0, one.loss.value)
        };
        let (front, others): (Vec<&Candidate>, Vec<&Candidate>) =
            self.candidates.iter().partition(|one| one.is_on_front);
        let mut series = Vec::new();
        if !others.is_empty() {
            series.push(Series {
                name: "not on the front".to_owned(),
                look: Look::solid(OTHERS),
                mark: Mark::Dots,
                points: others
                    .into_iter()
                    .map(|one| Point::new(one.ttlb.value * 100.0, one.loss.value))
                    .collect(),
            });
        }
        let named = front.into_iter().enumerate();
        series.extend(named.map(|(place, one)| Series {
            name: one.name.clone(),
            look: Look::of(place),
            mark: Mark::Estimates,
            points: vec![point(one)],
        }));
        let mut extent = Extent::new();
        let mut losses = (0.0_f64, 0.0_f64);
        for one in &self.candidates {
            let (low, high) = one.ttlb.interval;
            extent.add(
                Some(one.ttlb.value),
                one.is_on_front.then_some([low, high]).into_iter().flatten(),
            );
            let (low, high) = if one.is_on_front {
                one.loss.interval
            } else {
                (one.loss.value, one.loss.value)
            };
            losses = (losses.0.min(low), losses.1.max(high));
        }
        let room = ((losses.1 - losses.0) * 0.08).max(0.05);
        let y = Axis {
            scale: Scale::Linear(Unit::Number),
            domain: (losses.0 - room, losses.1 + room),
        };
        let x = Axis {
            scale: Scale::Changes,
            domain: extent.domain(),
        };
        let guides = vec![
            [(0.0, y.domain.0), (0.0, y.domain.1)],
            [(x.domain.0, 0.0), (x.domain.1, 0.0)],
        ];
        let captions = (
            format!(
                "change of the time to last byte relative to {}",
                self.baseline
            ),
            "difference of packet loss, in percentage points".to_owned(),
        );
        let captions = (captions.0.as_str(), captions.1.as_str());
        let mut figure = Figure::single("front", "Pareto front", captions, (x, y), series);
        figure.panels[0].guides = guides;
        figure
    }
}

/// The colour of candidates that are not on the front.
const OTHERS: u32 = 0x9a_9ea6;
