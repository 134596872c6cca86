//! The chart of parts: where the time of transfers goes, a bar per arm and band of percentiles.

use core::fmt::Write;

use super::{
    analysis::Analysis,
    figure::{Drawing, INK, MUTED, Size},
    format,
    parts::{BANDS, Parts},
    queries::PARTS,
};
use crate::scene::{Anchor, Color, Scene, Shape};

/// The colours of the parts, which the page has for dark screens as well.
const COLORS: [u32; PARTS.len()] = [
    0xb9_bdc4, 0x2b_8cc4, 0x00_5fa8, 0xc9_7b00, 0x7b_4fa3, 0xc8_102e, 0x00_8a65,
];
const ROW: f32 = 20.0;
const BAR: f32 = 14.0;

/// A bar per arm and band. In a band, the longest bar takes the width.
pub(super) fn chart(analysis: &Analysis, parts: &Parts, size: Size) -> Scene {
    let (width, left, right) = match size {
        Size::Wide => (1000.0, 150.0, 86.0),
        Size::Narrow | Size::Small => (390.0, 100.0, 74.0),
    };
    let font = size.font();
    let mut drawing = Drawing::new();
    let mut top = legend(&mut drawing, width, font);
    for ((_, _, title), arms) in BANDS.iter().zip(&parts.means) {
        let totals: Vec<f64> = arms.iter().map(|times| times.iter().sum()).collect();
        let longest = totals.iter().copied().fold(0.0, f64::max);
        drawing.text((4.0, top + 13.0), Anchor::Start, font, true, INK, *title);
        top += ROW;
        for ((arm, times), total) in analysis.arms.iter().zip(arms).zip(&totals) {
            let name = drawing.fitted(&arm.name, font, false, left - 14.0);
            drawing.text(
                (left - 8.0, top + 11.5),
                Anchor::End,
                font,
                false,
                INK,
                name,
            );
            let scale = if longest > 0.0 {
                f64::from(width - left - right) / longest
            } else {
                0.0
            };
            let mut at = left;
            for (time, rgb) in times.iter().zip(COLORS) {
                let length = (time.max(0.0) * scale) as f32;
                if length > 0.0 {
                    drawing.shapes.push(Shape::Rect {
                        at: (at, top),
                        size: (length, BAR),
                        fill: Color::solid(rgb),
                    });
                }
                at += length;
            }
            let total = format::mean_value(Some(total * 1000.0), "ms");
            drawing.text(
                (at + 6.0, top + 11.5),
                Anchor::Start,
                font,
                false,
                MUTED,
                total,
            );
            top += ROW;
        }
        top += 8.0;
    }
    Scene {
        width,
        height: top,
        title: "Where the time goes".to_owned(),
        description: described(analysis, parts),
        shapes: drawing.shapes,
    }
}

/// The names of the parts, in lines as wide as the chart. Returns where they end.
fn legend(drawing: &mut Drawing, width: f32, font: f32) -> f32 {
    let (mut left, mut top) = (4.0, 8.0);
    for ((_, name), rgb) in PARTS.iter().zip(COLORS) {
        let length = drawing.width(name, font, false) + 34.0;
        if left + length > width && left > 4.0 {
            (left, top) = (4.0, top + ROW);
        }
        drawing.shapes.push(Shape::Rect {
            at: (left, top),
            size: (12.0, 12.0),
            fill: Color::solid(rgb),
        });
        drawing.text(
            (left + 18.0, top + 10.5),
            Anchor::Start,
            font,
            false,
            INK,
            *name,
        );
        left += length;
    }
    top + ROW + 10.0
}

/// For screen readers: the mean parts of each arm.
fn described(analysis: &Analysis, parts: &Parts) -> String {
    let mut text = "Mean parts of the time to last byte, by arm.".to_owned();
    let all = parts.means.first().into_iter().flatten();
    for (arm, times) in analysis.arms.iter().zip(all) {
        let _ = write!(text, " {}:", arm.name);
        for ((_, name), time) in PARTS.iter().zip(times) {
            // Writing to a `String` cannot fail.
            let _ = write!(text, " {name} {time:.0} ms,");
        }
    }
    text
}
