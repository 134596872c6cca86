//! Populations with one neighbour on each path instead of cross traffic, drawn from a list with equal probability.

use core::time::Duration;

use super::{
    CrossFact, Draw, Population, microseconds,
    random::{Field, Stream},
};
use crate::{
    cross::{CrossKind, CrossTraffic},
    neighbour::Observation,
};

/// Adds a neighbour to a draw.
pub(super) fn draw(population: &Population, mut draw: Draw, seed: u64) -> Draw {
    let stream = Stream::new(seed, Field::Neighbour);
    let neighbours = &population.neighbours;
    let Some(one) = neighbours.get(stream.choose(0, neighbours.iter().map(|_| 1.0))) else {
        return draw;
    };
    let facts = &draw.facts;
    let lead = facts
        .rtt
        .saturating_mul(LEAD_ROUND_TRIPS)
        .clamp(LEAD_MIN, LEAD_MAX);
    draw.start += match facts.handover {
        // Keep the phase of handovers.
        Some(interval) if !interval.is_zero() => {
            let intervals = lead.as_nanos().div_ceil(interval.as_nanos());
            interval.saturating_mul(u32::try_from(intervals).unwrap_or(u32::MAX))
        }
        _ => lead,
    };
    // Pages start at any phase.
    let phase = match &one.kind {
        CrossKind::Pages(_, pages) => pages.every.min(lead).mul_f64(stream.unit(1)),
        _ => Duration::ZERO,
    };
    let horizon = population.horizon.unwrap_or_else(|| {
        let rate = facts.long_term_rate();
        let transfer = rate.time_for(draw.size_bytes.saturating_mul(HORIZON_TRANSFERS));
        (facts.rtt.saturating_mul(HORIZON_ROUND_TRIPS) + transfer).min(HORIZON_MAX)
    });
    draw.cross = vec![CrossTraffic {
        start: draw.start.saturating_sub(lead) + phase,
        ..one.kind.clone().into()
    }];
    draw.facts.cross = CrossFact::None;
    draw.neighbour = Some(Observation {
        name: one.name.clone(),
        from: draw.start,
        until: draw.start + microseconds(horizon.as_nanos() as f64),
    });
    draw
}

/// Lead of a neighbour before the transfer starts, in round trips without queues.
const LEAD_ROUND_TRIPS: u32 = 30;
const LEAD_MIN: Duration = Duration::from_millis(500);
const LEAD_MAX: Duration = Duration::from_secs(5);
/// The horizon: this number of round trips, and of transmission times of the transfer.
const HORIZON_ROUND_TRIPS: u32 = 20;
const HORIZON_TRANSFERS: u64 = 4;
const HORIZON_MAX: Duration = Duration::from_secs(60);
