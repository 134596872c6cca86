use super::*;
use crate::scene::Shape;

fn page() -> Page {
    let point = |hours: f64, value: Option<f64>| Point {
        hours,
        value,
        low: value.map(|value| value - 3.0),
        high: value.map(|value| value + 3.0),
        second: value.map(|value| value - 2.0),
    };
    Page {
        title: "a <ramp>".to_owned(),
        standing: "It stands.".to_owned(),
        sequences: vec![Sequence {
            title: "TTLB".to_owned(),
            text: "A & B.".to_owned(),
            is_percent: true,
            points: vec![
                point(1.0, Some(-4.0)),
                point(2.0, None),
                point(3.0, Some(-5.0)),
                point(4.0, Some(-6.0)),
            ],
            boundaries: vec![(-5.0, "−5 %".to_owned())],
            ..Sequence::default()
        }],
        decisions: vec![(2.0, "ramp".to_owned())],
        hours: 4.0,
        tables: vec![Table {
            title: "Decisions".to_owned(),
            header: vec!["look".to_owned()],
            rows: vec![vec!["<1>".to_owned()]],
        }],
        ..Page::default()
    }
}

#[test]
fn a_page_has_its_standing_first_and_texts_are_escaped() {
    let html = page().html();
    let (standing, chart) = (html.find("It stands."), html.find("<svg"));
    assert!(standing.is_some() && standing < chart, "{html}");
    assert!(html.contains("a &lt;ramp&gt;") && html.contains("&lt;1&gt;"));
    assert_eq!(html.matches("<svg").count(), 2, "for screens and phones");
}

#[test]
fn decisions_have_names_that_do_not_touch() {
    let mut page = page();
    page.decisions = [0.0, 0.01, 2.0, 4.0]
        .iter()
        .enumerate()
        .map(|(number, at)| (*at, format!("{number} ramp")))
        .collect();
    let names = |size| {
        let figure = page.sequences[0].figure(&page).expect("values");
        let scene = figure.screen(size);
        let texts = scene.shapes.iter().filter_map(|shape| match shape {
            Shape::Text { at, text, .. } if text.ends_with("ramp") => Some((at.0, text.clone())),
            _ => None,
        });
        (scene.width, texts.collect::<Vec<_>>())
    };
    for size in [figure::Size::Wide, figure::Size::Narrow] {
        let (width, names) = names(size);
        let texts: Vec<&str> = names.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["0 ramp", "2 ramp", "3 ramp"]);
        // The last line is at the right edge.
        assert!(names[2].0 < width - 40.0, "{names:?}");
    }
}

/// The line of what was seen has gaps, and its band is between the bounds that there are.
#[test]
fn a_look_without_a_value_is_a_gap() {
    let mut page = page();
    page.sequences[0].points[3].low = None;
    let figure = page.sequences[0].figure(&page).expect("values");
    let seen = figure.panels[0].series.last().expect("a line");
    assert_eq!(seen.name, "seen, with bounds at all looks");
    let values: Vec<f64> = seen.points.iter().map(|point| point.y).collect();
    assert_eq!((values[0], values[2], values[3]), (-4.0, -5.0, -6.0));
    assert!(values[1].is_nan());
    let bounds: Vec<_> = seen.points.iter().map(|point| point.y_bounds).collect();
    let expected = [
        Some((-7.0, -1.0)),
        None,
        Some((-8.0, -2.0)),
        Some((f64::NEG_INFINITY, -3.0)),
    ];
    assert_eq!(bounds, expected);
}

#[test]
fn a_share_is_drawn_in_steps_and_boundaries_have_dashes_of_their_own() {
    let mut page = page();
    page.sequences[0].is_stepped = true;
    page.sequences[0]
        .boundaries
        .push((0.0, "no change".to_owned()));
    let figure = page.sequences[0].figure(&page).expect("values");
    let series = &figure.panels[0].series;
    assert_eq!(series.last().map(|one| one.mark), Some(Mark::Steps));
    assert_ne!(series[0].look.dash, series[1].look.dash);
    figure::tests::assert_readable(&figure);
}

#[test]
fn what_cannot_be_drawn_is_left_out() {
    let mut page = page();
    let sequence = &mut page.sequences[0];
    sequence.points[0].low = Some(f64::NEG_INFINITY);
    sequence.points[2].high = Some(1e300);
    sequence.points[3].high = None;
    let html = page.html();
    assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
    // Bounds do not decide how far an axis goes.
    let domain = page.sequences[0].domain().expect("values");
    assert!(domain.1 < 10.0, "{domain:?}");
    // Before the second look there is nothing to draw.
    page.sequences[0].points.truncate(1);
    page.hours = 0.0;
    page.standing = "`arm` has 1 % of <new> connections.".to_owned();
    let html = page.html();
    assert!(
        !html.contains("<svg") && !html.contains("no data"),
        "{html}"
    );
    assert!(html.contains("fewer than two looks have a value: TTLB."));
    // What texts quote is code, as in a terminal.
    assert!(html.contains("<p><code>arm</code> has 1 % of &lt;new&gt; connections.</p>"));
}

#[test]
fn times_have_the_unit_that_fits() {
    let mut page = page();
    for (hours, caption, end) in [
        (0.5, "minutes since the first look", 30.0),
        (30.0, "hours since the first look", 30.0),
        (240.0, "days since the first look", 10.0),
    ] {
        page.hours = hours;
        let figure = page.sequences[0].figure(&page).expect("values");
        assert_eq!(figure.captions.0, caption);
        assert!((figure.panels[0].x.domain.1 - end).abs() < 1e-9, "{hours}");
        // A decision is where it was.
        assert!((figure.panels[0].marks[0].0 / end - 2.0 / hours).abs() < 1e-9);
    }
}
