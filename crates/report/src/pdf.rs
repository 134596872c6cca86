//! A scene as a PDF of one page (ISO 32000-1), which has paths only: text is outlines of the embedded font.

use core::fmt::Write as _;

use miniz_oxide::deflate::{CompressionLevel, compress_to_vec_zlib};
use ttf_parser::OutlineBuilder;

use crate::{
    font::Fonts,
    scene::{Color, POINTS_PER_PIXEL, Place, Scene, Shape, Stroke},
};

#[cfg(test)]
mod tests;

/// The document.
pub(crate) fn document(scene: &Scene) -> Vec<u8> {
    let mut page = Page::default();
    let size = [scene.width, scene.height].map(|pixels| number(pixels * POINTS_PER_PIXEL));
    // Pixels from the top in place of points from the bottom.
    let _ = writeln!(
        page.content,
        "{POINTS_PER_PIXEL} 0 0 -{POINTS_PER_PIXEL} 0 {} cm 1 j",
        size[1]
    );
    let fonts = Fonts::new();
    for shape in &scene.shapes {
        page.draw(shape, fonts.as_ref());
    }
    let content = compress_to_vec_zlib(
        page.content.as_bytes(),
        CompressionLevel::DefaultLevel as u8,
    );
    let states = page.opacities.iter().map(|percent| {
        let share = f64::from(*percent) / 100.0;
        format!("/G{percent} << /ca {share} /CA {share} >> ")
    });
    let states: String = states.collect();
    let [width, height] = size;
    let objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R /Resources << /ExtGState << {states}>> >> >>"
        )
        .into_bytes(),
        [
            format!("<< /Length {} /Filter /FlateDecode >>\nstream\n", content.len()).as_bytes(),
            &content,
            b"\nendstream",
        ]
        .concat(),
    ];
    file(&objects)
}

/// A file of these objects, the first of which is the catalog.
fn file(objects: &[Vec<u8>]) -> Vec<u8> {
    // The bytes of the comment say that the file is binary.
    let mut out = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (number, object) in (1..).zip(objects) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(table, "{:010} 00000 n ", out.len());
        out.extend_from_slice(format!("{number} 0 obj\n").as_bytes());
        out.extend_from_slice(object);
        out.extend_from_slice(b"\nendobj\n");
    }
    let start = out.len();
    out.extend_from_slice(table.as_bytes());
    let size = objects.len() + 1;
    let trailer = format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    out.extend_from_slice(trailer.as_bytes());
    out
}

/// The content of a page: operators of ISO 32000-1 §8.
#[derive(Default)]
struct Page {
    content: String,
    /// In percent, each with a graphics state of its name.
    opacities: Vec<u8>,
    /// The current point, of which a quadratic curve needs to know.
    at: Place,
}

impl Page {
    fn draw(&mut self, shape: &Shape, fonts: Option<&Fonts>) {
        match shape {
            Shape::Rect { at, size, fill } => {
                self.fill(*fill);
                self.operator(&[at.0, at.1, size.0, size.1], "re f\n");
            }
            Shape::Lines { lines, stroke } => {
                self.stroke(*stroke, 0);
                for line in lines {
                    self.polyline(line);
                }
                self.content.push_str("S\n");
            }
            Shape::Area { outline, fill } => {
                self.fill(*fill);
                self.polyline(outline);
                self.content.push_str("f\n");
            }
            Shape::Dots {
                places,
                radius,
                fill,
            } => {
                // A line of no length with round ends is a dot.
                self.stroke(Stroke::solid(*fill, radius * 2.0), 1);
                for place in places {
                    self.polyline(&[*place, *place]);
                }
                self.content.push_str("S\n");
            }
            Shape::Crosses {
                places,
                arm,
                stroke,
            } => {
                self.stroke(*stroke, 1);
                for (x, y) in places {
                    self.polyline(&[(x - arm, y - arm), (x + arm, y + arm)]);
                    self.polyline(&[(x + arm, y - arm), (x - arm, y + arm)]);
                }
                self.content.push_str("S\n");
            }
            Shape::Text {
                at,
                anchor,
                style,
                text,
            } => {
                self.fill(style.fill);
                if let Some(fonts) = fonts {
                    fonts.outline(text, *at, *anchor, *style, self);
                }
                self.content.push_str("f\n");
            }
        }
    }

    fn polyline(&mut self, line: &[Place]) {
        for (index, (x, y)) in line.iter().enumerate() {
            self.operator(&[*x, *y], if index == 0 { "m " } else { "l " });
        }
    }

    fn operator(&mut self, operands: &[f32], name: &str) {
        for operand in operands {
            self.content.push_str(&number(*operand));
            self.content.push(' ');
        }
        self.content.push_str(name);
    }

    fn fill(&mut self, color: Color) {
        self.color(color, "rg ");
    }

    /// The colour, width and dashes of a stroke, and the ends of its lines: 0 for butt, 1 for round.
    fn stroke(&mut self, stroke: Stroke, ends: u8) {
        self.color(stroke.color, "RG ");
        let dash: Vec<String> = stroke.dash.iter().map(|length| number(*length)).collect();
        let (dash, width) = (dash.join(" "), number(stroke.width));
        let _ = write!(self.content, "{width} w {ends} J [{dash}] 0 d ");
    }

    fn color(&mut self, color: Color, operator: &str) {
        let percent = (color.opacity.clamp(0.0, 1.0) * 100.0).round() as u8;
        if !self.opacities.contains(&percent) {
            self.opacities.push(percent);
        }
        let _ = write!(self.content, "/G{percent} gs ");
        let [_, red, green, blue] = color.rgb.to_be_bytes();
        let shares = [red, green, blue].map(|part| f32::from(part) / 255.0);
        for share in shares {
            let _ = write!(self.content, "{} ", (share * 1e4).round() / 1e4);
        }
        self.content.push_str(operator);
    }
}

impl OutlineBuilder for Page {
    fn move_to(&mut self, x: f32, y: f32) {
        self.operator(&[x, y], "m ");
        self.at = (x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.operator(&[x, y], "l ");
        self.at = (x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let third = |end: f32, control: f32| end + (control - end) * 2.0 / 3.0;
        let first = (third(self.at.0, x1), third(self.at.1, y1));
        self.curve_to(first.0, first.1, third(x, x1), third(y, y1), x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.operator(&[x1, y1, x2, y2, x, y], "c ");
        self.at = (x, y);
    }

    fn close(&mut self) {
        self.content.push_str("h ");
    }
}

/// A number rounded to a hundredth; PDF has no exponents.
fn number(value: f32) -> String {
    let rounded = (f64::from(value) * 100.0).round() / 100.0;
    if rounded.is_finite() {
        (rounded + 0.0).to_string()
    } else {
        "0".to_owned()
    }
}
