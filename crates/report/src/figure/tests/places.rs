//! Where figures draw values: each kind of mark, the ticks and the data.

use super::*;
use crate::{drawing::FRAME, scene::Anchor};

/// The values of both axes: from 0 to 100 and from 0 to 50.
const ENDS: (f64, f64) = (100.0, 50.0);

fn axis(end: f64) -> Axis {
    Axis {
        scale: Scale::Linear(Unit::Number),
        domain: (0.0, end),
    }
}

fn of(mark: Mark, points: Vec<Point>) -> Figure {
    let series = Series {
        name: "one".to_owned(),
        look: Look::of(0),
        mark,
        points,
    };
    let axes = (axis(ENDS.0), axis(ENDS.1));
    Figure::single("chart", "", ("across", "up"), axes, vec![series])
}

/// A scene, and from places to values by its frame.
struct Drawn {
    scene: Scene,
    frame: Vec<Place>,
}

impl Drawn {
    fn new(figure: &Figure) -> Self {
        let scene = figure.print(width("5in")).expect("it fits on a page").scene;
        let frame = scene.shapes.iter().find_map(|shape| match shape {
            Shape::Lines { lines, stroke } if stroke.color == FRAME => Some(lines[0].clone()),
            _ => None,
        });
        let frame = frame.expect("a frame");
        Self { scene, frame }
    }

    /// The value at a place, rounded to a hundredth.
    fn value(&self, (x, y): Place) -> (f64, f64) {
        let [(left, top), (_, bottom), (right, _)] = self.frame[..] else {
            panic!("a frame of three corners")
        };
        let share = |at: f32, from: f32, to: f32| f64::from((at - from) / (to - from));
        let rounded = |value: f64| (value * 100.0).round() / 100.0 + 0.0;
        (
            rounded(ENDS.0 * share(x, left, right)),
            rounded(ENDS.1 * share(y, bottom, top)),
        )
    }

    fn values(&self, places: &[Place]) -> Vec<(f64, f64)> {
        places.iter().map(|place| self.value(*place)).collect()
    }

    /// The lines in the colour of the series in the plot, with this width.
    fn lines(&self, width: f32) -> Vec<Vec<(f64, f64)>> {
        let found = self.scene.shapes.iter().filter_map(|shape| match shape {
            Shape::Lines { lines, stroke }
                if stroke.color.rgb == COLORS[0] && (stroke.width - width).abs() < 1e-6 =>
            {
                Some(lines)
            }
            _ => None,
        });
        found.flatten().map(|line| self.values(line)).collect()
    }
}

fn bounded(x: f64, y: f64, y_bounds: (f64, f64)) -> Point {
    Point {
        y_bounds: Some(y_bounds),
        ..Point::new(x, y)
    }
}

#[test]
fn steps_hold_each_value_until_the_next() {
    let points = [(10.0, 20.0), (40.0, 30.0), (60.0, 5.0)].map(|(x, y)| Point::new(x, y));
    let drawn = Drawn::new(&of(Mark::Steps, points.to_vec()));
    let expected = [
        (10.0, 20.0),
        (40.0, 20.0),
        (40.0, 30.0),
        (60.0, 30.0),
        (60.0, 5.0),
    ];
    assert_eq!(drawn.lines(1.4), [expected]);
}

#[test]
fn bounds_are_a_line_each_the_lower_first() {
    let points = vec![
        bounded(10.0, 20.0, (15.0, 25.0)),
        bounded(90.0, 30.0, (20.0, 45.0)),
    ];
    let drawn = Drawn::new(&of(Mark::Bounds, points));
    let expected = [[(10.0, 15.0), (90.0, 20.0)], [(10.0, 25.0), (90.0, 45.0)]];
    assert_eq!(drawn.lines(0.7), expected);
}

#[test]
fn a_band_is_between_the_bounds_of_a_line() {
    let points = vec![
        bounded(10.0, 20.0, (15.0, 25.0)),
        bounded(90.0, 30.0, (20.0, 45.0)),
    ];
    let drawn = Drawn::new(&of(Mark::Line, points));
    assert_eq!(drawn.lines(1.6), [[(10.0, 20.0), (90.0, 30.0)]]);
    let bands = drawn.scene.shapes.iter().filter_map(|shape| match shape {
        Shape::Area { outline, fill } => Some((drawn.values(outline), fill.rgb)),
        _ => None,
    });
    let outline = vec![(10.0, 15.0), (90.0, 20.0), (90.0, 45.0), (10.0, 25.0)];
    assert_eq!(bands.collect::<Vec<_>>(), [(outline, COLORS[0])]);
}

#[test]
fn an_estimate_is_a_marker_with_lines_to_its_bounds() {
    let point = Point {
        x_bounds: Some((30.0, 60.0)),
        y_bounds: Some((10.0, 40.0)),
        ..Point::new(50.0, 20.0)
    };
    let drawn = Drawn::new(&of(Mark::Estimates, vec![point]));
    let expected = [[(30.0, 20.0), (60.0, 20.0)], [(50.0, 10.0), (50.0, 40.0)]];
    assert_eq!(drawn.lines(1.0), expected);
    let centers = drawn.scene.shapes.iter().filter_map(|shape| match shape {
        Shape::Area { outline, .. } => {
            let ends = |of: fn(&Place) -> f32| {
                let all = outline.iter().map(of);
                let (low, high) = all.fold((f32::MAX, f32::MIN), |(low, high), at| {
                    (low.min(at), high.max(at))
                });
                f32::midpoint(low, high)
            };
            Some(drawn.value((ends(|place| place.0), ends(|place| place.1))))
        }
        _ => None,
    });
    let centers: Vec<(f64, f64)> = centers.collect();
    assert!(centers.contains(&(50.0, 20.0)), "{centers:?}");
}

#[test]
fn a_bar_goes_from_its_lower_to_its_upper_bound() {
    let point = Point {
        x_bounds: Some((20.0, 70.0)),
        ..Point::new(20.0, 25.0)
    };
    let drawn = Drawn::new(&of(Mark::Bars, vec![point]));
    let bars = drawn.scene.shapes.iter().filter_map(|shape| match shape {
        Shape::Rect { at, size, fill } if fill.rgb == COLORS[0] => {
            // A gap of 0.8 pixels follows a bar.
            let end = (at.0 + size.0 + 0.8, at.1 + size.1);
            Some([drawn.value(*at), drawn.value(end)])
        }
        _ => None,
    });
    let bars: Vec<[(f64, f64); 2]> = bars.collect();
    let [(left, top), (right, bottom)] = bars[bars.len() - 1];
    assert_eq!((left, right), (20.0, 70.0));
    assert!((f64::midpoint(top, bottom) - 25.0).abs() < 0.02);
}

/// Labels are at their values: those of the vertical axis left of it, and those of the horizontal one below.
#[test]
fn labels_are_at_their_values() {
    let drawn = Drawn::new(&of(Mark::Dots, vec![Point::new(1.0, 1.0)]));
    let mut seen = [0, 0];
    for shape in &drawn.scene.shapes {
        let Shape::Text {
            at, anchor, text, ..
        } = shape
        else {
            continue;
        };
        let Ok(wanted) = text.parse::<f64>() else {
            continue;
        };
        // The baseline is 4 pixels below the middle.
        let (x, y) = drawn.value((at.0, at.1 - 4.0));
        let (axis, found) = match anchor {
            Anchor::End => (1, y),
            _ => (0, x),
        };
        seen[axis] += 1;
        // The last one of each axis is moved so that it stays within the figure.
        let room = if wanted < [ENDS.0, ENDS.1][axis] {
            0.5
        } else {
            4.0
        };
        assert!((found - wanted).abs() < room, "{text}: {found}");
    }
    assert!(seen[0] >= 4 && seen[1] >= 4, "{seen:?}");
    for caption in ["across", "up"] {
        let has = |shape: &Shape| matches!(shape, Shape::Text { text, .. } if text == caption);
        assert!(drawn.scene.shapes.iter().any(has), "{caption}");
    }
}

/// Names are in the order of their lines, to the right of each, or to the left at the edge; one that does not fit is left out.
#[test]
fn marks_are_lines_with_names() {
    let mut figure = of(Mark::Dots, Vec::new());
    let marks = [
        (10.0, "first"),
        (11.0, "second"),
        (50.0, "third"),
        (99.0, "last"),
    ];
    figure.panels[0].marks = marks.map(|(at, name)| (at, name.to_owned())).to_vec();
    let drawn = Drawn::new(&figure);
    let names = drawn.scene.shapes.iter().filter_map(|shape| match shape {
        Shape::Text { at, text, .. } if marks.iter().any(|(_, name)| name == text) => {
            Some((text.as_str(), drawn.value(*at).0))
        }
        _ => None,
    });
    let names: Vec<(&str, f64)> = names.collect();
    let [("first", first), ("third", third), ("last", last)] = names[..] else {
        panic!("{names:?}")
    };
    assert!(first > 10.0 && first < 12.0 && third > 50.0 && third < 52.0 && last < 95.0);
    let lines = drawn.scene.shapes.iter().filter_map(|shape| match shape {
        Shape::Lines { lines, .. } => Some(drawn.values(&lines[0])),
        _ => None,
    });
    let lines: Vec<_> = lines.collect();
    for (at, name) in marks {
        assert!(lines.contains(&vec![(at, 50.0), (at, 0.0)]), "{name}");
    }
}

/// The same distance stands for the same ratio on a logarithmic axis, for the same part of a tail on one of nines, and for the
/// same ratio of changes where one more than doubles.
#[test]
fn scales_place_values_as_they_are_named() {
    let share = |scale: Scale, domain, value| {
        let share = Axis { scale, domain }.share(value);
        (share * 1e6).round() / 1e6
    };
    for (scale, domain, value, expected) in [
        (Scale::Linear(Unit::Bytes), (100.0, 300.0), 150.0, 0.25),
        (Scale::Counts, (0.0, 8.0), 2.0, 0.25),
        (Scale::Logarithmic(Unit::Bytes), (1.0, 1e4), 10.0, 0.25),
        (Scale::Nines, (0.0, 0.9999), 0.9, 0.25),
        (Scale::Changes, (-50.0, 50.0), -25.0, 0.25),
        (Scale::Changes, (-50.0, 300.0), 0.0, 1.0 / 3.0),
        (Scale::Percentiles, (0.0, 100.0), 25.0, 0.25),
        (
            Scale::Names(vec!["a".to_owned(); 2]),
            (-0.5, 1.5),
            0.0,
            0.25,
        ),
    ] {
        for (value, expected) in [(value, expected), (domain.0, 0.0), (domain.1, 1.0)] {
            let found = share(scale.clone(), domain, value);
            assert!((found - expected).abs() < 1e-5, "{scale:?}: {found}");
        }
    }
    let end = Axis::from_zero(Unit::Bytes, [3.0, 50.0, f64::INFINITY].into_iter()).domain;
    assert_eq!(end, (0.0, 53.0));
}

/// Each column of the data, whose names and numbers can be read by programs.
#[test]
fn the_data_have_names_values_and_bounds() {
    let axes = (
        axis(ENDS.0),
        Axis::names(vec!["a, b".to_owned(), "c".to_owned()]),
    );
    let points = vec![
        Point {
            x_bounds: Some((1.5, 2.25)),
            ..Point::new(2.0, 0.0)
        },
        Point::GAP,
        Point {
            y_bounds: Some((0.0, 1.0)),
            ..Point::new(1.0 / 3.0, 1.0)
        },
        Point::new(-0.000_000_01, 1.0),
        Point::new(200.0, 1.0),
    ];
    let series = Series {
        name: "x".to_owned(),
        look: Look::of(0),
        mark: Mark::Bars,
        points,
    };
    let mut figure = Figure::single("chart", "", ("", ""), axes, vec![series]);
    figure.panels[0].title = "a \"panel\"".to_owned();
    assert_eq!(
        csv(&[figure]),
        "chart,panel,series,x,y,x_low,x_high,y_low,y_high\n\
         chart,\"a \"\"panel\"\"\",x,2,\"a, b\",1.5,2.25,,\n\
         chart,\"a \"\"panel\"\"\",x,0.333333,c,,,\"a, b\",c\n\
         chart,\"a \"\"panel\"\"\",x,0,c,,,,\n"
    );
}

#[test]
fn screens_and_phones_have_widths_of_their_own() {
    let figure = of(Mark::Dots, Vec::new());
    for (size, expected) in [(Size::Wide, 1000.0), (Size::Narrow, 350.0)] {
        let found = figure.screen(size).width;
        assert!((found - expected).abs() < 1e-3, "{found}");
    }
}
