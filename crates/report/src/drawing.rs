//! Shapes that are being drawn, and the fonts that measure their texts.

use crate::{
    font::Fonts,
    scene::{Anchor, Color, Place, Shape, Stroke, Style},
};

pub(crate) const INK: Color = Color::solid(0x1a_1a1a);
pub(crate) const MUTED: Color = Color::solid(0x5c_6068);
pub(crate) const GRID: Color = Color::solid(0xe8_e9ec);
pub(crate) const FRAME: Color = Color::solid(0xb9_bdc4);

/// Shapes in drawing order.
pub(crate) struct Drawing {
    fonts: Option<Fonts>,
    pub(crate) shapes: Vec<Shape>,
}

impl Drawing {
    pub(crate) fn new() -> Self {
        Self {
            fonts: Fonts::new(),
            shapes: Vec::new(),
        }
    }

    /// The width of a text.
    pub(crate) fn width(&self, text: &str, style: Style) -> f32 {
        let fonts = self.fonts.as_ref();
        fonts.map_or(0.0, |fonts| fonts.width(text, style.size, style.bold))
    }

    /// A text, shortened with an ellipsis if it is wider than `width`.
    pub(crate) fn fitted(&self, text: &str, style: Style, width: f32) -> String {
        let fonts = self.fonts.as_ref();
        fonts.map_or_else(
            || text.to_owned(),
            |fonts| fonts.fitted(text, style.size, style.bold, width),
        )
    }

    /// The lines of a text that are at most this wide. A word that is wider is broken.
    pub(crate) fn wrapped(&self, text: &str, style: Style, width: f32) -> Vec<String> {
        let fits = |line: &str| self.width(line, style) <= width;
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            match lines.last_mut() {
                Some(line) if fits(&format!("{line} {word}")) => {
                    line.push(' ');
                    line.push_str(word);
                    continue;
                }
                _ => lines.push(String::new()),
            }
            for c in word.chars() {
                match lines.last_mut() {
                    Some(line) if line.is_empty() || fits(&format!("{line}{c}")) => line.push(c),
                    _ => lines.push(c.to_string()),
                }
            }
        }
        lines
    }

    pub(crate) fn text(
        &mut self,
        at: Place,
        anchor: Anchor,
        style: Style,
        text: impl Into<String>,
    ) {
        self.shapes.push(Shape::Text {
            at,
            anchor,
            style,
            text: text.into(),
        });
    }

    pub(crate) fn rect(&mut self, at: Place, size: Place, fill: Color) {
        self.shapes.push(Shape::Rect { at, size, fill });
    }

    pub(crate) fn line(&mut self, from: Place, to: Place, stroke: Stroke) {
        self.lines(vec![vec![from, to]], stroke);
    }

    pub(crate) fn lines(&mut self, lines: Vec<Vec<Place>>, stroke: Stroke) {
        self.shapes.push(Shape::Lines { lines, stroke });
    }

    pub(crate) fn area(&mut self, outline: Vec<Place>, fill: Color) {
        self.shapes.push(Shape::Area { outline, fill });
    }

    pub(crate) fn dots(&mut self, places: Vec<Place>, radius: f32, fill: Color) {
        self.shapes.push(Shape::Dots {
            places,
            radius,
            fill,
        });
    }
}
