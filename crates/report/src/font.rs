//! The embedded font of the pictures, `DejaVu` Sans Condensed, so that no system font is needed.
//!
//! Widths measured with it also fit Helvetica and Arial, which an SVG prefers: these are slightly narrower.

use ttf_parser::{Face, GlyphId, OutlineBuilder};

use crate::scene::{Anchor, Place, Style};

/// The two faces. A glyph that the font does not have is drawn as its empty box.
pub(crate) struct Fonts {
    regular: Face<'static>,
    bold: Face<'static>,
}

impl Fonts {
    /// The faces. `None` if the font is invalid, which a test excludes (`the_font_can_be_read`).
    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            regular: Face::parse(dejavu::sans_condensed::regular(), 0).ok()?,
            bold: Face::parse(dejavu::sans_condensed::bold(), 0).ok()?,
        })
    }

    fn face(&self, bold: bool) -> &Face<'static> {
        if bold { &self.bold } else { &self.regular }
    }

    /// The width of `text` at a font size, both in pixels.
    pub(crate) fn width(&self, text: &str, size: f32, bold: bool) -> f32 {
        let face = self.face(bold);
        let units: u32 = text.chars().map(|c| advance(face, glyph(face, c))).sum();
        units as f32 * scale(face, size)
    }

    /// Draws the outlines of a text.
    pub(crate) fn outline(
        &self,
        text: &str,
        at: Place,
        anchor: Anchor,
        style: Style,
        pen: &mut dyn OutlineBuilder,
    ) {
        let face = self.face(style.bold);
        let scale = scale(face, style.size);
        let width = self.width(text, style.size, style.bold);
        let mut outline = Outline {
            pen,
            x: anchor.left(at, width),
            y: at.1,
            scale,
        };
        for c in text.chars() {
            let glyph = glyph(face, c);
            face.outline_glyph(glyph, &mut outline);
            outline.x += advance(face, glyph) as f32 * scale;
        }
    }

    /// `text`, shortened with an ellipsis if it is wider than `width`.
    pub(crate) fn fitted(&self, text: &str, size: f32, bold: bool, width: f32) -> String {
        if self.width(text, size, bold) <= width {
            return text.to_owned();
        }
        let ellipsis = self.width("…", size, bold);
        let mut used = 0.0;
        let mut fitted = String::new();
        for c in text.chars() {
            used += self.width(c.encode_utf8(&mut [0; 4]), size, bold);
            if used + ellipsis > width {
                break;
            }
            fitted.push(c);
        }
        fitted.truncate(fitted.trim_end().len());
        fitted.push('…');
        fitted
    }
}

/// The glyph of a character, the empty box if there is none.
fn glyph(face: &Face<'_>, c: char) -> GlyphId {
    face.glyph_index(c).unwrap_or(GlyphId(0))
}

/// The advance of a glyph, in font units.
fn advance(face: &Face<'_>, glyph: GlyphId) -> u32 {
    u32::from(face.glyph_hor_advance(glyph).unwrap_or(0))
}

/// Pixels per font unit.
fn scale(face: &Face<'_>, size: f32) -> f32 {
    size / f32::from(face.units_per_em().max(1))
}

/// Receives the outline of a glyph and sets it at the pen.
struct Outline<'a> {
    pen: &'a mut dyn OutlineBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Outline<'_> {
    fn place(&self, x: f32, y: f32) -> Place {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Outline<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.pen.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.pen.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (x1, y1) = self.place(x1, y1);
        let (x, y) = self.place(x, y);
        self.pen.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let (x1, y1) = self.place(x1, y1);
        let (x2, y2) = self.place(x2, y2);
        let (x, y) = self.place(x, y);
        self.pen.curve_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.pen.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_can_be_read() {
        let fonts = Fonts::new().expect("the font is there");
        let narrow = fonts.width("ill", 12.0, false);
        let wide = fonts.width("MWM", 12.0, false);
        assert!(narrow > 5.0 && wide > 2.0 * narrow, "{narrow} {wide}");
        assert!(fonts.width("µs × … → ≥", 12.0, true) > 40.0);
    }

    #[test]
    fn long_texts_are_cut() {
        let fonts = Fonts::new().expect("the font is there");
        assert_eq!(
            fonts.fitted("rapid-start", 12.0, true, 200.0),
            "rapid-start"
        );
        let cut = fonts.fitted("rapid-start with everything", 12.0, true, 80.0);
        assert!(cut.ends_with('…') && cut.starts_with("rapid"), "{cut}");
        assert!(fonts.width(&cut, 12.0, true) <= 80.0);
        assert_eq!(fonts.fitted("x", 12.0, true, 0.0), "…");
    }
}
