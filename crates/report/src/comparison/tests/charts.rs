//! What charts show of curves that are far from zero.

use super::*;
use crate::comparison::figure::{Size, Subject, chart};

/// Connections of two arms at these percentiles of the change: arm `new` has `factor` times the value of the baseline.
fn apart(connections: usize, factor: impl Fn(f64) -> f64) -> String {
    let mut text = String::new();
    for number in 0..connections {
        let share = (number as f64 + 0.5) / connections as f64;
        let ttlb = 100.0 + 100.0 * share;
        for (arm, ttlb) in [("baseline", ttlb), ("new", ttlb * factor(share))] {
            text += &line(&json!({ "arm": arm, "ttlb": ttlb, "content_length": 300_000 }));
        }
    }
    text
}

fn all(comparison: &Comparison) -> Subject<'_> {
    Subject::Group(&comparison.analysis.groups[0])
}

fn svg_of(comparison: &Comparison, subject: Subject<'_>) -> String {
    crate::svg::document(&chart(&comparison.analysis, subject, Size::Wide).scene)
}

#[test]
fn the_axis_covers_a_curve_that_is_far_beyond_twice_the_baseline() {
    for factor in [0.02, 0.5, 1.9, 2.5, 9.0, 3000.0, 1e7] {
        let text = apart(800, |share| 1.0 + (factor - 1.0) * share);
        let comparison = read(&text, quick()).expect("a report");
        let analysis = &comparison.analysis;
        let subject = Subject::Group(&analysis.groups[0]);
        let domain = chart(analysis, subject, Size::Wide).plot.domain;
        for cell in &subject.curves()[1][4..95] {
            let change = cell.estimate.expect("a change") * 100.0;
            assert!(
                domain.0 <= change && change <= domain.1,
                "{change} in {domain:?}"
            );
        }
        for size in [Size::Wide, Size::Narrow] {
            let drawn = chart(analysis, subject, size);
            let labels = drawn.scene.shapes.iter().filter_map(|shape| match shape {
                crate::scene::Shape::Text { text, .. } if text.contains(['%', '×']) => {
                    Some(text.as_str())
                }
                _ => None,
            });
            let labels = labels.collect::<Vec<_>>();
            assert!((2..=11).contains(&labels.len()), "{factor}: {labels:?}");
        }
        // The scale is that of the page's script.
        let is_logarithmic = factor > 2.0;
        assert_eq!(
            svg_of(&comparison, subject).contains("(logarithmic)"),
            is_logarithmic
        );
        assert_eq!(comparison.html().contains(",true]"), is_logarithmic);
    }
}

#[test]
fn what_is_beyond_the_axis_is_marked_and_named() {
    // Of few connections the tails do not count for the axis.
    let text = apart(100, |share| if share > 0.9 { 40.0 } else { 1.1 });
    let comparison = read(&text, quick()).expect("a report");
    let svg = svg_of(&comparison, all(&comparison));
    assert!(svg.contains("beyond the axis: new at P91–P99"), "{svg}");
    // A curve within the axis has no sentence.
    let text = apart(2000, |_| 1.1);
    let comparison = read(&text, quick()).expect("a report");
    assert!(!svg_of(&comparison, all(&comparison)).contains("beyond the axis"));
    // A value of zero has no place on a logarithmic axis.
    let text: String =
        (0..2000)
            .flat_map(|seed| {
                [("baseline", (seed > 999).then_some(100)), ("new", Some(600))].map(|(arm, ttlb)| {
            line(&json!({ "arm": arm, "seed": seed, "ttlb": ttlb, "content_length": 300_000 }))
        })
            })
            .collect();
    let comparison = read(&text, quick()).expect("a report");
    let paths = comparison.analysis.paths.as_ref().expect("paths");
    let svg = svg_of(&comparison, Subject::Paths(paths));
    assert!(svg.contains("beyond the axis: new at P1–P50"), "{svg}");
}

/// That no percentile has an interval is no sign that arms are alike.
#[test]
fn too_few_connections_for_intervals_have_no_verdict() {
    let sentences = |connections: usize| {
        let comparison = read(&apart(connections, |_| 1.5), quick()).expect("a report");
        let notes = comparison.notes();
        let said = "Fewer than 200 connections are of each of baseline and new: too few to show small differences.";
        assert!(notes.iter().any(|note| note == said), "{notes:?}");
        comparison.sentences()[0].clone()
    };
    assert_eq!(
        sentences(2),
        "new: no verdict, because there are too few connections for an interval at any percentile from P5 to P95."
    );
    let some = sentences(50);
    assert!(
        some.ends_with(
            " 11 of the 91 percentiles have too few connections beyond them for an interval."
        ),
        "{some}"
    );
}

/// The values of the page's charts, rounded by its program, are those of its texts and tables.
#[test]
fn the_program_of_the_page_writes_the_numbers_of_the_page() {
    let text = log(5, 3000, &ARMS, 0.01);
    let comparison = read(&text, quick()).expect("a report");
    let html = comparison.html();
    let (_, data) = html.split_once("id=\"data\">").expect("data");
    let (data, _) = data.split_once("</script>").expect("an end");
    let data: Value = serde_json::from_str(data).expect("JSON");
    let shown = |value: &Value| -> Option<String> {
        let value = value.as_f64()?;
        // `toFixed` of a number that has no more decimals.
        let decimals = usize::from(value.abs() < 99.95);
        let text = crate::comparison::format::signed(value, decimals);
        assert_eq!(format!("{value:.decimals$}").parse(), Ok(value));
        Some(format!("{text}\u{a0}%"))
    };
    let mut compared = 0;
    let group = &comparison.analysis.groups[0];
    for (arm, curve) in group.curves.iter().enumerate().skip(1) {
        let columns = &data["charts"][0]["arms"][arm - 1];
        for (place, cell) in curve.iter().enumerate() {
            for (name, change) in [
                ("e", cell.estimate),
                ("l", cell.alone.map(|(low, _)| low)),
                (
                    "h",
                    cell.alone.map(|(_, high)| high).filter(|it| it.is_finite()),
                ),
            ] {
                let expected = change.map(crate::comparison::format::percent);
                assert_eq!(shown(&columns[name][place]), expected, "{name} {place}");
                compared += usize::from(expected.is_some());
            }
        }
    }
    assert!(compared > 500, "{compared}");
}
