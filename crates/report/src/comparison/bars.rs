//! The chart of parts: where the time of transfers goes, a bar per arm and band of percentiles.

use core::fmt::Write;

use super::{
    analysis::Analysis,
    figure::Size,
    parts::{BANDS, Parts},
    queries::PARTS,
};
use crate::{
    drawing::{Drawing, INK, MUTED},
    scene::{Anchor, Color, Scene, Style},
};

/// The colours of the parts. They are pale, as those of the arms on the same page are not.
const COLORS: [u32; PARTS.len()] = [
    0xb9_bdc4, 0xd8_b89a, 0x9f_c6e0, 0x6f_86b5, 0xe8_c468, 0xb9_a3d6, 0xe0_8c95, 0x8f_cab4,
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
        let bold = Style::bold(font, INK);
        drawing.text((4.0, top + 13.0), Anchor::Start, bold, *title);
        top += ROW;
        for ((arm, times), total) in analysis.arms.iter().zip(arms).zip(&totals) {
            let plain = Style::plain(font, INK);
            let name = drawing.fitted(&arm.name, plain, left - 14.0);
            drawing.text((left - 8.0, top + 11.5), Anchor::End, plain, name);
            let scale = if longest > 0.0 {
                f64::from(width - left - right) / longest
            } else {
                0.0
            };
            let mut at = left;
            for (time, rgb) in times.iter().zip(COLORS) {
                let length = (time.max(0.0) * scale) as f32;
                if length > 0.0 {
                    drawing.rect((at, top), (length, BAR), Color::solid(rgb));
                }
                at += length;
            }
            let total = shown(*total, longest);
            let muted = Style::plain(font, MUTED);
            drawing.text((at + 6.0, top + 11.5), Anchor::Start, muted, total);
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

/// A time in ms, with the unit and the decimals of the longest one beside it.
fn shown(time: f64, longest: f64) -> String {
    let (factor, unit) = if longest >= 10_000.0 {
        (1000.0, "s")
    } else {
        (1.0, "ms")
    };
    let decimals = match longest / factor {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{:.decimals$} {unit}", time / factor)
}

/// The names of the parts, in lines as wide as the chart. Returns where they end.
fn legend(drawing: &mut Drawing, width: f32, font: f32) -> f32 {
    let (mut left, mut top) = (4.0, 8.0);
    let style = Style::plain(font, INK);
    for ((_, name), rgb) in PARTS.iter().zip(COLORS) {
        let length = drawing.width(name, style) + 34.0;
        if left + length > width && left > 4.0 {
            (left, top) = (4.0, top + ROW);
        }
        drawing.rect((left, top), (12.0, 12.0), Color::solid(rgb));
        drawing.text((left + 18.0, top + 10.5), Anchor::Start, style, *name);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::figure;

    #[test]
    fn times_of_a_group_have_the_same_precision() {
        let shown = |times: [f64; 3]| {
            let longest = times.into_iter().fold(0.0, f64::max);
            times.map(|time| shown(time, longest))
        };
        assert_eq!(shown([105.0, 94.66, 88.8]), ["105 ms", "95 ms", "89 ms"]);
        assert_eq!(shown([9.5, 20.0, 1.25]), ["9.5 ms", "20.0 ms", "1.2 ms"]);
        assert_eq!(
            shown([12_000.0, 500.0, 9_876.0]),
            ["12.0 s", "0.5 s", "9.9 s"]
        );
    }

    #[test]
    fn parts_have_other_colours_than_arms() {
        for arm in 0..8 {
            assert!(!COLORS.contains(&figure::color(arm).rgb), "arm {arm}");
        }
    }
}
