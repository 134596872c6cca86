//! Uploads: the data take the uplink.
//!
//! An uplink with its own rate stays unchanged. Without one, it gets the rate, queue, losses and policer of the downlink. Rates
//! of populations are measured for downloads, which are faster on most lines.

use super::{Draw, DrawFacts, networks};
use lastbyte_units::Direction;

/// Moves the data and the cross traffic of a draw to the uplink.
pub(super) fn draw(mut draw: Draw) -> Draw {
    if draw.path.turn_for_uploads() {
        draw.facts.release = None;
    } else {
        draw.facts = DrawFacts {
            is_poor: draw.facts.is_poor,
            cross: draw.facts.cross.clone(),
            ..networks::facts(&draw.path, Direction::Up, &draw)
        };
        draw.transport.ecn = draw.path.up.marks();
    }
    for cross in &mut draw.cross {
        cross.direction = Direction::Up;
    }
    draw
}
