//! A scene as self-contained SVG: an element per shape, coordinates with a tenth of a pixel.

use core::fmt::Write;

use ttf_parser::OutlineBuilder;

use crate::{
    font::Fonts,
    scene::{Anchor, Color, PIXELS_PER_INCH, Place, Scene, Shape, Stroke},
};

#[cfg(test)]
mod tests;

const FONTS: &str =
    "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans Condensed', sans-serif";

/// The document.
pub(crate) fn document(scene: &Scene) -> String {
    let mut out = String::new();
    let (width, height) = (number(scene.width), number(scene.height));
    // Writing to a `String` cannot fail.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" font-family=\"{FONTS}\">"
    );
    let _ = writeln!(out, "<title>{}</title>", escaped(&scene.title));
    let _ = writeln!(out, "<desc>{}</desc>", escaped(&scene.description));
    let _ = writeln!(
        out,
        "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"
    );
    for shape in &scene.shapes {
        element(&mut out, shape);
        out.push('\n');
    }
    out.push_str("</svg>\n");
    out
}

/// The document for print: it has a size in inches, and text is outlines.
pub(crate) fn print(scene: &Scene) -> String {
    let fonts = Fonts::new();
    let (width, height) = (number(scene.width), number(scene.height));
    let [wide, high] = [scene.width, scene.height].map(|pixels| pixels / PIXELS_PER_INCH);
    // Writing to a `String` cannot fail.
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide:.4}in\" height=\"{high:.4}in\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\">\n<title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escaped(&scene.title)
    );
    for shape in &scene.shapes {
        match (shape, &fonts) {
            (
                Shape::Text {
                    at,
                    anchor,
                    style,
                    text,
                },
                Some(fonts),
            ) => {
                let mut outline = Outline(String::new());
                fonts.outline(text, *at, *anchor, *style, &mut outline);
                let _ = write!(out, "<path d=\"{}\"{}/>", outline.0, fill_of(style.fill));
            }
            _ => element(&mut out, shape),
        }
        out.push('\n');
    }
    out.push_str("</svg>\n");
    out
}

/// The outlines of glyphs as path data, with a hundredth of a pixel.
struct Outline(String);

impl Outline {
    fn push(&mut self, command: char, places: &[f32]) {
        self.0.push(command);
        for (index, value) in places.iter().enumerate() {
            let separator = if index > 0 { " " } else { "" };
            let _ = write!(self.0, "{separator}{}", (value * 100.0).round() / 100.0);
        }
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.push('M', &[x, y]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.push('L', &[x, y]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.push('Q', &[x1, y1, x, y]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.push('C', &[x1, y1, x2, y2, x, y]);
    }

    fn close(&mut self) {
        self.push('Z', &[]);
    }
}

/// The document for a page: it scales, and its colours are variables of the page's style (`--c` and the colour on white), so
/// that there is a dark theme.
pub(crate) fn inline(scene: &Scene) -> String {
    let (width, height) = (number(scene.width), number(scene.height));
    let mut shapes = String::new();
    for shape in &scene.shapes {
        element(&mut shapes, shape);
        shapes.push('\n');
    }
    // Quotes in texts are escaped, so `="#` occurs only in attributes.
    let mut out = format!(
        "<svg viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\" role=\"img\" aria-label=\"{}. {}\">\n",
        escaped(&scene.title),
        escaped(&scene.description)
    );
    let mut rest = shapes.as_str();
    while let Some(at) = rest.find("=\"#") {
        let (before, color) = rest.split_at(at + 2);
        let (color, after) = color.split_at(7);
        let _ = write!(out, "{before}var(--c{},{color})", &color[1..]);
        rest = after;
    }
    out.push_str(rest);
    out.push_str("</svg>");
    out
}

fn element(out: &mut String, shape: &Shape) {
    match shape {
        Shape::Rect { at, size, fill } => {
            let _ = write!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}/>",
                number(at.0),
                number(at.1),
                number(size.0),
                number(size.1),
                fill_of(*fill)
            );
        }
        Shape::Lines { lines, stroke } => {
            out.push_str("<path d=\"");
            for line in lines {
                polyline(out, line);
            }
            let _ = write!(out, "\"{} stroke-linejoin=\"round\"/>", stroke_of(*stroke));
        }
        Shape::Area { outline, fill } => {
            out.push_str("<path d=\"");
            polyline(out, outline);
            let _ = write!(out, "z\"{}/>", fill_of(*fill));
        }
        Shape::Dots {
            places,
            radius,
            fill,
        } => {
            // A line of no length with round ends is a dot; all of them are one element.
            out.push_str("<path d=\"");
            // From one to the next by their difference, which is shorter; in tenths, so that nothing adds up.
            let mut last = (0, 0);
            for (x, y) in places {
                let (x, y) = (tenths(*x), tenths(*y));
                let _ = write!(out, "m{} {}h0", decimal(x - last.0), decimal(y - last.1));
                last = (x, y);
            }
            let stroke = Stroke::solid(*fill, radius * 2.0);
            let _ = write!(out, "\"{} stroke-linecap=\"round\"/>", stroke_of(stroke));
        }
        Shape::Crosses {
            places,
            arm,
            stroke,
        } => {
            out.push_str("<path d=\"");
            let (side, back) = (number(arm * 2.0), number(-arm * 2.0));
            for place in places {
                let (x, y) = (number(place.0 - arm), number(place.1 - arm));
                let _ = write!(out, "M{x} {y}l{side} {side}m0 {back}l{back} {side}");
            }
            let _ = write!(out, "\"{} stroke-linecap=\"round\"/>", stroke_of(*stroke));
        }
        Shape::Text {
            at,
            anchor,
            style,
            text,
        } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let weight = if style.bold {
                " font-weight=\"bold\""
            } else {
                ""
            };
            let _ = write!(
                out,
                "<text x=\"{}\" y=\"{}\" font-size=\"{}\"{anchor}{weight}{}>{}</text>",
                number(at.0),
                number(at.1),
                number(style.size),
                fill_of(style.fill),
                escaped(text)
            );
        }
    }
}

/// Points joined by straight lines. Horizontal and vertical lines, which steps consist of, have a short form.
fn polyline(out: &mut String, line: &[Place]) {
    let mut last: Option<(String, String)> = None;
    for place in line {
        let (x, y) = (number(place.0), number(place.1));
        match &last {
            None => _ = write!(out, "M{x} {y}"),
            Some((old_x, old_y)) if *old_x == x && *old_y == y => continue,
            Some((old_x, _)) if *old_x == x => _ = write!(out, "V{y}"),
            Some((_, old_y)) if *old_y == y => _ = write!(out, "H{x}"),
            Some(_) => _ = write!(out, "L{x} {y}"),
        }
        last = Some((x, y));
    }
}

fn fill_of(color: Color) -> String {
    if color.opacity < 1.0 {
        format!(
            " fill=\"{}\" fill-opacity=\"{:.2}\"",
            color.hex(),
            color.opacity
        )
    } else {
        format!(" fill=\"{}\"", color.hex())
    }
}

fn stroke_of(stroke: Stroke) -> String {
    let mut text = format!(
        " fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"",
        stroke.color.hex(),
        number(stroke.width)
    );
    if stroke.color.opacity < 1.0 {
        let _ = write!(text, " stroke-opacity=\"{:.2}\"", stroke.color.opacity);
    }
    if !stroke.dash.is_empty() {
        let dash: Vec<String> = stroke.dash.iter().map(|length| number(*length)).collect();
        let _ = write!(text, " stroke-dasharray=\"{}\"", dash.join(" "));
    }
    text
}

/// A coordinate rounded to a tenth, without trailing zeros.
fn number(value: f32) -> String {
    decimal(tenths(value))
}

fn tenths(value: f32) -> i64 {
    // NaN becomes zero.
    (f64::from(value) * 10.0).round() as i64
}

fn decimal(tenths: i64) -> String {
    if tenths % 10 == 0 {
        (tenths / 10).to_string()
    } else {
        let sign = if tenths < 0 { "-" } else { "" };
        format!("{sign}{}.{}", tenths.abs() / 10, tenths.abs() % 10)
    }
}

/// Escapes text for XML and HTML, and drops characters that XML 1.0 (§2.2) does not allow.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

/// Escaped texts on a line each.
pub(crate) fn lines(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| escaped(text)).collect();
    texts.join("\n")
}

/// JSON that cannot end a `script` element.
pub(crate) fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}
