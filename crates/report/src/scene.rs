//! A scene: shapes and their places. SVG and PDF are both written from it, so both show the same.

/// A colour with its opacity.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Color {
    pub(crate) rgb: u32,
    pub(crate) opacity: f32,
}

impl Color {
    pub(crate) const fn solid(rgb: u32) -> Self {
        Self { rgb, opacity: 1.0 }
    }

    pub(crate) const fn with_opacity(self, opacity: f32) -> Self {
        Self { opacity, ..self }
    }

    /// The colour in CSS, `#rrggbb`.
    pub(crate) fn hex(self) -> String {
        format!("#{:06x}", self.rgb)
    }
}

/// Pixels per inch, and points per pixel, of what is printed.
pub(crate) const PIXELS_PER_INCH: f32 = 118.0;
pub(crate) const POINTS_PER_PIXEL: f32 = 72.0 / PIXELS_PER_INCH;

/// A place, in pixels from the left and from the top.
pub(crate) type Place = (f32, f32);

/// The part of a text that is at its place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    /// The left edge of a text of this width.
    pub(crate) fn left(self, at: Place, width: f32) -> f32 {
        match self {
            Self::Start => at.0,
            Self::Middle => at.0 - width / 2.0,
            Self::End => at.0 - width,
        }
    }
}

/// The style of a text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Style {
    pub(crate) size: f32,
    pub(crate) bold: bool,
    pub(crate) fill: Color,
}

impl Style {
    pub(crate) const fn plain(size: f32, fill: Color) -> Self {
        let bold = false;
        Self { size, bold, fill }
    }

    pub(crate) const fn bold(size: f32, fill: Color) -> Self {
        let bold = true;
        Self { size, bold, fill }
    }
}

/// The strokes and gaps of a line in turn, in pixels; none of a solid one.
pub(crate) type Dash = &'static [f32];

/// The style of a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Stroke {
    pub(crate) color: Color,
    pub(crate) width: f32,
    pub(crate) dash: Dash,
}

impl Stroke {
    pub(crate) const fn solid(color: Color, width: f32) -> Self {
        let dash = &[];
        Self { color, width, dash }
    }

    pub(crate) const fn dashed(color: Color, width: f32) -> Self {
        let dash = &[4.0, 3.0];
        Self { color, width, dash }
    }
}

/// A shape.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Shape {
    Rect {
        at: Place,
        size: Place,
        fill: Color,
    },
    Lines {
        lines: Vec<Vec<Place>>,
        stroke: Stroke,
    },
    Area {
        outline: Vec<Place>,
        fill: Color,
    },
    Dots {
        places: Vec<Place>,
        radius: f32,
        fill: Color,
    },
    Crosses {
        places: Vec<Place>,
        arm: f32,
        stroke: Stroke,
    },
    Text {
        at: Place,
        anchor: Anchor,
        style: Style,
        text: String,
    },
}

/// Shapes in drawing order, on a white background.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Scene {
    pub(crate) width: f32,
    pub(crate) height: f32,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) shapes: Vec<Shape>,
}
