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
        let scene = page.sequences[0].draw(&page, size).expect("values");
        let texts = scene.shapes.iter().filter_map(|shape| match shape {
            Shape::Text { at, text, .. } if text.ends_with("ramp") => Some((at.0, text.clone())),
            _ => None,
        });
        (scene.width, texts.collect::<Vec<_>>())
    };
    for size in [Size::Wide, Size::Narrow] {
        let (width, names) = names(size);
        let texts: Vec<&str> = names.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["0 ramp", "2 ramp", "3 ramp"]);
        // The last line is at the right edge.
        assert!(names[2].0 < width - 40.0, "{names:?}");
    }
}

#[test]
fn a_look_without_a_value_is_a_gap() {
    let page = page();
    let stretches = page.sequences[0].stretches(|point| point.value);
    assert_eq!(stretches, [vec![-4.0], vec![-5.0, -6.0]]);
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
    page.sequences[0].points.clear();
    page.hours = 0.0;
    assert!(page.html().contains("<p>no data</p>"));
}

#[test]
fn times_have_the_unit_that_fits() {
    let last = |hours| times(hours, Size::Narrow).pop().expect("a tick").1;
    assert_eq!(
        [last(0.5), last(30.0), last(240.0)],
        ["30 min", "30 h", "10 d"]
    );
}
