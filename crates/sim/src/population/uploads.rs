//! Uploads: the data are on the link up.
//!
//! A link up with a rate of its own stays what it is. One without has the limits of the link down, as nothing better is known of it:
//! its rate, queue, losses and policer. Rates of populations are those of downloads, which are faster on most lines.

use super::{Draw, DrawFacts, networks};
use crate::listener::Way;

/// The draw with its data on the link up, and its cross traffic as well.
pub(super) fn draw(mut draw: Draw) -> Draw {
    if draw.path.turn_for_uploads() {
        draw.facts.release = None;
    } else {
        draw.facts = DrawFacts {
            is_poor: draw.facts.is_poor,
            cross: draw.facts.cross.clone(),
            ..networks::facts(&draw.path, Way::Up, &draw)
        };
        draw.transport.ecn = networks::marks(&draw.path.up.queue);
    }
    for cross in &mut draw.cross {
        cross.way = Way::Up;
    }
    draw
}
