//! A scene as PNG, drawn by `tiny-skia`, with text as outlines of the embedded font.

use tiny_skia::{
    FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke as Pen, StrokeDash,
    Transform,
};
use ttf_parser::OutlineBuilder;

use crate::{
    font::Fonts,
    scene::{Color, Place, Scene, Shape, Stroke},
};

/// The longest side of a picture, in pixels. A larger one would take more than a fifth of a gigabyte.
pub(crate) const SIDE_MAX: f32 = 16_384.0;

/// Pixels of the picture per pixel of the scene, unless the result is too large.
const ZOOM: f32 = 2.0;

/// Why there is no PNG.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RasterError {
    TooLarge,
    Encoder,
}

/// The scene at twice its size, or at its own size if that is too large.
pub(crate) fn png(scene: &Scene) -> Result<Vec<u8>, RasterError> {
    let longest = scene.width.max(scene.height);
    let zoom = if longest * ZOOM <= SIDE_MAX {
        ZOOM
    } else {
        1.0
    };
    if longest * zoom > SIDE_MAX {
        return Err(RasterError::TooLarge);
    }
    let (width, height) = (
        (scene.width * zoom).ceil() as u32,
        (scene.height * zoom).ceil() as u32,
    );
    let mut pixmap = Pixmap::new(width, height).ok_or(RasterError::TooLarge)?;
    pixmap.fill(tiny_skia::Color::WHITE);
    let fonts = Fonts::new().ok_or(RasterError::Encoder)?;
    let mut canvas = Canvas {
        pixmap,
        transform: Transform::from_scale(zoom, zoom),
        fonts,
    };
    for shape in &scene.shapes {
        canvas.draw(shape);
    }
    canvas.pixmap.encode_png().map_err(|_| RasterError::Encoder)
}

struct Canvas {
    pixmap: Pixmap,
    transform: Transform,
    fonts: Fonts,
}

impl Canvas {
    fn draw(&mut self, shape: &Shape) {
        let mut builder = PathBuilder::new();
        match shape {
            Shape::Rect { at, size, fill } => {
                if let Some(rect) = Rect::from_xywh(at.0, at.1, size.0, size.1) {
                    builder.push_rect(rect);
                }
                self.fill(builder, *fill);
            }
            Shape::Lines { lines, stroke } => {
                for line in lines {
                    polyline(&mut builder, line);
                }
                self.stroke(builder, *stroke, LineCap::Butt);
            }
            Shape::Area { outline, fill } => {
                polyline(&mut builder, outline);
                builder.close();
                self.fill(builder, *fill);
            }
            Shape::Dots {
                places,
                radius,
                fill,
            } => {
                // One path per dot would be slow.
                for (x, y) in places {
                    builder.push_circle(*x, *y, *radius);
                }
                self.fill(builder, *fill);
            }
            Shape::Crosses {
                places,
                arm,
                stroke,
            } => {
                for (x, y) in places {
                    polyline(&mut builder, &[(x - arm, y - arm), (x + arm, y + arm)]);
                    polyline(&mut builder, &[(x + arm, y - arm), (x - arm, y + arm)]);
                }
                self.stroke(builder, *stroke, LineCap::Round);
            }
            Shape::Text {
                at,
                anchor,
                style,
                text,
            } => {
                let mut outline = Outline(builder);
                self.fonts.outline(text, *at, *anchor, *style, &mut outline);
                self.fill(outline.0, style.fill);
            }
        }
    }

    fn fill(&mut self, builder: PathBuilder, color: Color) {
        if let Some(path) = finished(builder) {
            self.pixmap.fill_path(
                &path,
                &paint(color),
                FillRule::Winding,
                self.transform,
                None,
            );
        }
    }

    fn stroke(&mut self, builder: PathBuilder, stroke: Stroke, line_cap: LineCap) {
        if let Some(path) = finished(builder) {
            let pen = Pen {
                width: stroke.width,
                line_cap,
                line_join: LineJoin::Round,
                dash: StrokeDash::new(stroke.dash.to_vec(), 0.0),
                ..Pen::default()
            };
            self.pixmap
                .stroke_path(&path, &paint(stroke.color), &pen, self.transform, None);
        }
    }
}

fn finished(builder: PathBuilder) -> Option<Path> {
    if builder.is_empty() {
        None
    } else {
        builder.finish()
    }
}

fn polyline(builder: &mut PathBuilder, line: &[Place]) {
    for (index, (x, y)) in line.iter().enumerate() {
        if index == 0 {
            builder.move_to(*x, *y);
        } else {
            builder.line_to(*x, *y);
        }
    }
}

fn paint(color: Color) -> Paint<'static> {
    let [_, red, green, blue] = color.rgb.to_be_bytes();
    let mut paint = Paint {
        anti_alias: true,
        ..Paint::default()
    };
    let opacity = (color.opacity.clamp(0.0, 1.0) * 255.0).round() as u8;
    paint.set_color_rgba8(red, green, blue, opacity);
    paint
}

/// The outlines of glyphs as a path.
struct Outline(PathBuilder);

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.0.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.0.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.0.close();
    }
}
