//! Figures of all kinds at any width.

use std::collections::BTreeSet;

use miniz_oxide::inflate::decompress_to_vec_zlib;
use proptest::prelude::*;

use super::*;
use crate::{
    compare,
    drawing::Drawing,
    front, load, loss,
    scale::Unit,
    scene::{Place, Shape},
    statistics::tests_of::Estimate,
    transfer,
};

mod places;

const LONG: &str = "rapid-start:congestion=newreno,startup-beta=0.7,initial-window=30p";

fn arm(label: &str, factor: f64) -> transfer::Arm {
    let line = |scale: f64| {
        let points = (0..400).map(f64::from);
        points
            .map(|i| transfer::Point::new(i * factor, i * scale))
            .collect::<Vec<_>>()
    };
    transfer::Arm {
        sent: line(1210.0),
        acked: line(1200.0),
        lost: line(1300.0),
        queue: line(900.0),
        window: line(3000.0),
        in_flight: line(2000.0),
        pacing: line(2e5),
        rtt: line(0.3),
        rtt_smoothed: line(0.2),
        ..transfer::Arm::new(label)
    }
}

fn picture(labels: &[&str]) -> transfer::Picture {
    transfer::Picture {
        arms: labels
            .iter()
            .zip(1..)
            .map(|(label, place)| arm(label, f64::from(place)))
            .collect(),
        guides: transfer::Guides {
            rate: Some(55e6),
            queue_limit: Some(343_750.0),
            rtt: Some(39.0),
        },
        ..transfer::Picture::default()
    }
}

fn page_loads(networks: usize) -> compare::PageLoads {
    let loads = (0..networks * 40).flat_map(|one| {
        let (network, page) = (one / 40, one % 40);
        let time = 90.0 * (page as f64 / 9.0).exp();
        [
            (0, Some(time)),
            (1, (page != 7).then_some(time * (0.7 + page as f64 / 60.0))),
        ]
        .map(|(arm, ms)| compare::LoadTimes {
            key: compare::LoadKey {
                page,
                network,
                arm,
                view: 0,
            },
            load_ms: ms,
            render_ms: ms,
        })
    });
    let name = |network: usize| match network {
        0 => "10mbit/100ms/2%".to_owned(),
        1 => "a network whose name does not fit into a column".to_owned(),
        _ => format!("network-{network}"),
    };
    compare::PageLoads {
        arms: vec!["HTTP/2".to_owned(), LONG.to_owned()],
        networks: (0..networks).map(name).collect(),
        views: vec!["first".to_owned()],
        pages: (0..40).map(|_| compare::PageFacts::default()).collect(),
        loads: loads.collect(),
        ..compare::PageLoads::default()
    }
}

fn front(count: usize) -> front::Front {
    let candidates = (0..count).map(|place| {
        let value = place as f64 / 7.0;
        front::Candidate {
            name: format!("{place}:{LONG}"),
            ttlb: Estimate {
                value: value - 0.2,
                interval: (value - 0.3, value + 0.1),
            },
            loss: Estimate {
                value: 0.1 - value,
                interval: (-0.4, 0.3),
            },
            is_on_front: place % 3 != 2,
        }
    });
    front::Front {
        baseline: "cubic".to_owned(),
        candidates: candidates.collect(),
    }
}

fn run() -> load::Run {
    load::Run {
        width_ms: 10.0,
        end_ms: 1000.0,
        intervals: (0..100)
            .map(|index| load::Interval {
                done: 100 + index,
                errored: index / 90,
                max_ms: (index != 50).then_some(5.0),
            })
            .collect(),
        p50: vec![load::Step {
            intervals: 0..100,
            ms: 1.5,
        }],
        distributions: vec![load::Distribution {
            name: "service time".to_owned(),
            points: vec![(0.0, 0.5), (0.5, 1.5), (0.99, 4.0), (0.999, 11.0)],
        }],
        ..load::Run::default()
    }
}

fn study() -> loss::LossStudy {
    let times = |base: u64| (0..20).map(|at| Some(base + at * 1000)).collect::<Vec<_>>();
    loss::LossStudy {
        arms: vec!["2".to_owned(), LONG.to_owned()],
        sizes: vec![400_000],
        losses: vec![0.0, 0.005, 0.01, 0.08],
        times: (0..8).map(|cell| times(100_000 * (cell + 1))).collect(),
        ..loss::LossStudy::default()
    }
}

/// Figures of all kinds but those of an experiment, whose tests are in `comparison`.
fn all() -> Vec<Figure> {
    let versus = load::Versus {
        ratios: vec![("rate".to_owned(), vec![Some(1.3), None, Some(0.8)])],
        ..load::Versus::default()
    };
    let mut all = vec![
        picture(&["one"]).figure(),
        picture(&["slow-start", "jumpstart", "rapid-no-jump", LONG]).figure(),
        page_loads(1).figure("few", compare::Metric::Load),
        page_loads(24).figure("many", compare::Metric::Render),
        front(3).figure(),
        front(9).figure(),
        study().figure(0),
    ];
    all.extend(run().figures());
    all.extend(versus.figures());
    all
}

fn width(text: &str) -> Width {
    text.parse().expect("a width")
}

/// The left, upper, right and lower edge of each text, and the text.
fn texts(scene: &Scene) -> Vec<([f32; 4], String)> {
    let drawing = Drawing::new();
    let texts = scene.shapes.iter().filter_map(|shape| match shape {
        Shape::Text {
            at,
            anchor,
            style,
            text,
        } => {
            let width = drawing.width(text, *style);
            let left = anchor.left(*at, width);
            let edges = [
                left,
                at.1 - 0.76 * style.size,
                left + width,
                at.1 + 0.24 * style.size,
            ];
            Some((edges, text.clone()))
        }
        _ => None,
    });
    texts.collect()
}

/// What a reader needs of a figure of this width in inches: text of 7 pt or more, within the page, and none over another.
fn check(figure: &Figure, inches: f64) -> Result<(), String> {
    let print = figure
        .print(width(&format!("{inches}in")))
        .map_err(|error| error.to_string())?;
    let scene = &print.scene;
    let name = format!("{} at {inches} in", figure.name);
    if (f64::from(scene.width) / 118.0 - inches).abs() > 1e-3 {
        return Err(format!("{name}: {} wide", scene.width));
    }
    let sizes = scene.shapes.iter().filter_map(|shape| match shape {
        Shape::Text { style, .. } => Some(style.size),
        _ => None,
    });
    let least = sizes.fold(f32::INFINITY, f32::min) * 72.0 / 118.0;
    if least < 7.0 {
        return Err(format!("{name}: text of {least} pt"));
    }
    let texts = texts(scene);
    for (place, ([left, top, right, bottom], text)) in texts.iter().enumerate() {
        if *left < 0.0 || *top < 0.0 || *right > scene.width || *bottom > scene.height {
            return Err(format!("{name}: `{text}` is beyond the page"));
        }
        if text.contains('…') {
            return Err(format!("{name}: `{text}` is cut"));
        }
        let over = texts[..place].iter().find(
            |([other_left, other_top, other_right, other_bottom], _)| {
                left + 0.5 < *other_right
                    && other_left + 0.5 < *right
                    && top + 2.0 < *other_bottom
                    && other_top + 2.0 < *bottom
            },
        );
        if let Some((_, other)) = over {
            return Err(format!("{name}: `{text}` is over `{other}`"));
        }
    }
    Ok(())
}

pub(crate) fn assert_readable(figure: &Figure) {
    for inches in [1.5, 2.0, 3.33, 7.0, 12.0] {
        let checked = check(figure, inches);
        assert!(checked.is_ok(), "{checked:?}");
    }
    let svg = figure.print(width("7in")).expect("it fits on a page").svg();
    roxmltree::Document::parse(&svg).expect("XML");
}

#[test]
fn figures_are_readable_at_the_widths_of_columns_and_pages() {
    for figure in all() {
        assert_readable(&figure);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn figures_are_readable_at_any_width(inches in 1.5..24.0_f64) {
        for figure in all() {
            let checked = check(&figure, (inches * 100.0).round() / 100.0);
            prop_assert!(checked.is_ok(), "{checked:?}");
        }
    }

    #[test]
    fn any_values_can_be_drawn(values in prop::collection::vec((any::<f64>(), any::<f64>(), any::<f64>()), 0..30)) {
        let points: Vec<Point> = values
            .iter()
            .map(|(x, y, bound)| Point { y_bounds: Some((*y, *bound)), ..Point::new(*x, *y) })
            .collect();
        for mark in [Mark::Line, Mark::Bounds, Mark::Steps, Mark::Dots, Mark::Crosses, Mark::Estimates, Mark::Bars] {
            let axis = Axis { scale: Scale::Linear(Unit::Bytes), domain: (0.0, 1e6) };
            let series = Series { name: "x".to_owned(), look: Look::of(0), mark, points: points.clone() };
            let figure = Figure::single("x", "", ("", ""), (axis.clone(), axis), vec![series]);
            let print = figure.print(width("3in")).expect("it fits on a page");
            let svg = print.svg();
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            let content = content(&print.pdf());
            prop_assert!(!content.contains("NaN") && !content.contains("inf"), "{content}");
        }
    }
}

#[test]
fn lines_of_eight_arms_have_dashes_of_their_own() {
    let names: Vec<String> = (0..8).map(|arm| format!("arm-{arm}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let print = picture(&names)
        .figure()
        .print(width("3.33in"))
        .expect("it fits on a page");
    let mut dashes = BTreeSet::new();
    let mut by_color: BTreeSet<(u32, String)> = BTreeSet::new();
    for shape in &print.scene.shapes {
        if let Shape::Lines { stroke, .. } = shape
            && COLORS.contains(&stroke.color.rgb)
            && stroke.width > 1.3
        {
            dashes.insert(format!("{:?}", stroke.dash));
            by_color.insert((stroke.color.rgb, format!("{:?}", stroke.dash)));
        }
    }
    assert_eq!((dashes.len(), by_color.len()), (8, 8));
    let svg = print.svg();
    assert_eq!(
        svg.matches("stroke-dasharray=\"7 3\"").count(),
        5 + 1,
        "four rows besides the first, and the legend"
    );
}

/// The content of the page of a PDF, whose structure is checked.
fn content(pdf: &[u8]) -> String {
    let text = String::from_utf8_lossy(pdf);
    assert!(text.starts_with("%PDF-1.4\n") && text.ends_with("%%EOF\n"));
    let tail = text.rsplit_once("startxref\n").expect("a start").1;
    let start: usize = tail
        .lines()
        .next()
        .and_then(|line| line.parse().ok())
        .expect("a number");
    let table = String::from_utf8_lossy(&pdf[start..]).into_owned();
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("xref"));
    let count = lines
        .next()
        .and_then(|line| line.strip_prefix("0 "))
        .and_then(|count| count.parse().ok());
    let count: usize = count.expect("a number of objects");
    assert_eq!(lines.next(), Some("0000000000 65535 f "));
    for number in 1..count {
        // ISO 32000-1 §7.5.4: 20 bytes with the end of the line.
        let line = lines.next().expect("an entry");
        assert_eq!((line.len(), &line[10..]), (19, " 00000 n "));
        let at: usize = line[..10].parse().expect("an offset");
        assert!(
            pdf[at..].starts_with(format!("{number} 0 obj\n").as_bytes()),
            "{number}"
        );
    }
    assert!(table.contains(&format!("<< /Size {count} /Root 1 0 R >>")));
    for word in ["CreationDate", "/Info", "/Font", "/ID"] {
        assert!(!text.contains(word), "{word}");
    }
    let find = |needle: &[u8]| {
        pdf.windows(needle.len())
            .position(|window| window == needle)
    };
    let from = find(b"stream\n").expect("a stream") + 7;
    let length = text.split_once("/Length ").expect("a length").1;
    let length: usize = length
        .split(' ')
        .next()
        .and_then(|it| it.parse().ok())
        .expect("a number");
    assert!(pdf[from + length..].starts_with(b"\nendstream\nendobj\n"));
    let content = decompress_to_vec_zlib(&pdf[from..from + length]).expect("a stream of zlib");
    String::from_utf8(content).expect("text")
}

#[test]
fn a_pdf_is_well_formed_and_as_large_as_the_figure() {
    for figure in all() {
        let print = figure.print(width("3.33in")).expect("it fits on a page");
        let pdf = print.pdf();
        assert_eq!(
            pdf,
            figure
                .print(width("3.33in"))
                .expect("it fits on a page")
                .pdf()
        );
        let text = String::from_utf8_lossy(&pdf).into_owned();
        // 3.33 in are 239.76 pt.
        assert!(text.contains("/MediaBox [0 0 239.76 "), "{}", &text[..300]);
        let content = content(&pdf);
        let mut operands = 0;
        let mut states = BTreeSet::new();
        for word in content.split_whitespace() {
            let wanted = match word {
                "f" | "S" | "h" => 0,
                "w" | "J" | "j" => 1,
                "gs" | "m" | "l" => {
                    if word == "gs" {
                        1
                    } else {
                        2
                    }
                }
                "rg" | "RG" => 3,
                "re" => 4,
                "c" | "cm" => 6,
                // A dash has an array.
                "d" => operands,
                _ => {
                    let number = word.trim_matches(['[', ']']);
                    if let Some(state) = word.strip_prefix('/') {
                        states.insert(state.to_owned());
                    } else {
                        assert!(
                            number.is_empty() || number.parse::<f32>().is_ok_and(f32::is_finite),
                            "{word}"
                        );
                    }
                    operands += 1;
                    continue;
                }
            };
            assert_eq!(operands, wanted, "{word}");
            operands = 0;
        }
        for state in states {
            assert!(text.contains(&format!("/{state} << /ca ")), "{state}");
        }
    }
}

#[test]
fn an_svg_is_well_formed_and_has_outlines_in_place_of_text() {
    for figure in all() {
        let svg = figure
            .print(width("85mm"))
            .expect("it fits on a page")
            .svg();
        let document = roxmltree::Document::parse(&svg).expect("XML");
        assert_eq!(document.root_element().attribute("width"), Some("3.3465in"));
        assert!(
            document
                .descendants()
                .all(|node| !node.has_tag_name("text"))
        );
    }
}

fn csv_rows(figure: &Figure) -> Vec<Vec<String>> {
    let text = csv(core::slice::from_ref(figure));
    let rows = text.lines().skip(1);
    rows.map(|row| row.split(',').map(str::to_owned).collect())
        .collect()
}

/// The scene has the points of the data, and no other, each where its values are.
#[test]
fn the_data_are_the_points_drawn() {
    let axis = || Axis {
        scale: Scale::Linear(Unit::Bytes),
        domain: (0.0, 100.0),
    };
    let line = [
        (0.0, 10.0),
        (20.0, 30.0),
        (f64::NAN, 0.0),
        (60.0, 20.0),
        (100.0, 90.0),
    ];
    let dots = [
        (10.0, 10.0),
        (130.0, 50.0),
        (50.0, -1.0),
        (50.0, 100.0),
        (30.0, f64::INFINITY),
    ];
    let series = |name: &str, mark, points: &[(f64, f64)]| Series {
        name: name.to_owned(),
        look: Look::of(0),
        mark,
        points: points.iter().map(|(x, y)| Point::new(*x, *y)).collect(),
    };
    let all = vec![
        series("a \"line\"", Mark::Line, &line),
        series("dots", Mark::Dots, &dots),
    ];
    let figure = Figure::single("chart", "", ("", ""), (axis(), axis()), all);
    let rows = csv_rows(&figure);
    let of = |name: &str| -> Vec<(f64, f64)> {
        let rows = rows.iter().filter(|row| row[2] == name);
        rows.map(|row| {
            (
                row[3].parse().expect("a number"),
                row[4].parse().expect("a number"),
            )
        })
        .collect()
    };
    assert_eq!(
        of("\"a \"\"line\"\"\""),
        [(0.0, 10.0), (20.0, 30.0), (60.0, 20.0), (100.0, 90.0)]
    );
    assert_eq!(
        of("dots"),
        [(10.0, 10.0), (50.0, 100.0), (30.0, f64::INFINITY)]
    );
    let scene = figure.print(width("3in")).expect("it fits on a page").scene;
    let mut drawn: Vec<Vec<Place>> = Vec::new();
    for shape in &scene.shapes {
        match shape {
            Shape::Lines { lines, stroke } if (stroke.width - 1.6).abs() < 1e-6 => {
                drawn.extend(lines.clone());
            }
            Shape::Dots { places, radius, .. } if *radius < 2.0 => drawn.push(places.clone()),
            _ => {}
        }
    }
    assert_eq!(drawn.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 3]);
    let ((left, bottom), (right, top)) = (drawn[0][0], drawn[2][1]);
    let unit = (top - bottom) / 90.0;
    let value = |(x, y): Place| {
        let x = 100.0 * (x - left) / (drawn[1][1].0 - left);
        (x.round(), (10.0 + (y - bottom) / unit).round())
    };
    assert!(right > left);
    let places: Vec<(f32, f32)> = drawn.iter().flatten().map(|place| value(*place)).collect();
    let expected = [
        (0.0, 10.0),
        (20.0, 30.0),
        (60.0, 20.0),
        (100.0, 90.0),
        (10.0, 10.0),
        (50.0, 100.0),
        (30.0, 100.0),
    ];
    assert_eq!(places, expected);
}

/// Rows of each figure are as many as marks, lines' corners aside.
#[test]
fn dots_and_markers_are_as_many_as_rows() {
    let figure = page_loads(24).figure("pages", compare::Metric::Load);
    let scene = figure.print(width("7in")).expect("it fits on a page").scene;
    let dots = scene.shapes.iter().map(|shape| match shape {
        Shape::Dots { places, radius, .. } if *radius < 2.0 => places.len(),
        _ => 0,
    });
    assert_eq!(dots.sum::<usize>(), 24 * 40);
    assert_eq!(csv_rows(&figure).len(), 24 * 40);
    // A page that was not complete is at the edge.
    assert_eq!(
        csv_rows(&figure)
            .iter()
            .filter(|row| row[4] == "inf")
            .count(),
        24
    );
}

#[test]
fn a_line_beyond_the_axes_ends_at_their_edge_and_bounds_stay_inside() {
    let axis = || Axis {
        scale: Scale::Linear(Unit::Bytes),
        domain: (0.0, 10.0),
    };
    let points = [(0.0, 5.0), (5.0, 15.0), (10.0, 5.0)].map(|(x, y)| Point {
        y_bounds: Some((y - 40.0, f64::INFINITY)),
        ..Point::new(x, y)
    });
    let series = Series {
        name: "x".to_owned(),
        look: Look::of(1),
        mark: Mark::Line,
        points: points.to_vec(),
    };
    let figure = Figure::single("x", "", ("", ""), (axis(), axis()), vec![series]);
    let scene = figure.print(width("3in")).expect("it fits on a page").scene;
    let lines = scene.shapes.iter().find_map(|shape| match shape {
        Shape::Lines { lines, stroke } if (stroke.width - 1.6).abs() < 1e-6 => Some(lines.clone()),
        _ => None,
    });
    let lines = lines.expect("a line");
    assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    let band = scene.shapes.iter().find_map(|shape| match shape {
        Shape::Area { outline, .. } => Some(outline.clone()),
        _ => None,
    });
    let band = band.expect("a band");
    let top = band
        .iter()
        .map(|place| place.1)
        .fold(f32::INFINITY, f32::min);
    assert!((lines[0][1].1 - top).abs() < 1e-3 && top >= 0.0);
    assert!(
        band.iter()
            .all(|(x, y)| (0.0..=scene.width).contains(x) && *y <= scene.height)
    );
    assert_eq!(csv_rows(&figure).len(), 2);
}

#[test]
fn a_width_has_a_unit_and_fits_on_a_page() {
    let points = |text: &str| {
        text.parse::<Width>()
            .map(|width| (width.inches() * 72.0 * 1000.0).round() / 1000.0)
    };
    assert_eq!(points("3.33in"), Ok(239.76));
    assert_eq!(points("84.582mm"), Ok(239.76));
    assert_eq!(points("8.4582 cm"), Ok(239.76));
    assert_eq!(points("239.76pt"), Ok(239.76));
    for text in ["", "in", "3.33", "3.33 inches", "x7in", "3,33in", "7em"] {
        assert_eq!(points(text), Err(WidthError::Unit), "{text}");
    }
    for text in [
        "0in", "-3in", "1.49in", "400in", "24.1in", "infin", "NaNin", "1e300cm",
    ] {
        assert_eq!(points(text), Err(WidthError::Range), "{text}");
    }
}

#[test]
fn a_figure_that_no_page_holds_is_an_error() {
    let figure = page_loads(400).figure("pages", compare::Metric::Load);
    let error = figure
        .print(width("1.5in"))
        .expect_err("it is too high")
        .to_string();
    assert!(
        error.contains("inches high (expected at most 200"),
        "{error}"
    );
    assert!(figure.print(width("7in")).is_ok());
}
