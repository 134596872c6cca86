use super::*;

/// A second at 100 responses per 10 ms, with a stall and errors in the middle.
fn run() -> Run {
    let intervals = (0..100).map(|index| match index {
        50 => Interval {
            errored: 40,
            ..Interval::default()
        },
        _ => Interval {
            done: 100,
            errored: 0,
            p50_ms: Some(1.5),
            p99_ms: (index % 2 == 0).then_some(4.0),
            max_ms: Some(if index == 51 { 12.0 } else { 5.0 }),
        },
    });
    Run {
        title: "a <run>".to_owned(),
        subtitle: "HTTP/3 & more".to_owned(),
        facts: vec![("rate".to_owned(), "\"fast\"".to_owned())],
        warnings: vec!["the generator was the limit".to_owned()],
        width_ms: 10.0,
        end_ms: 1000.0,
        intervals: intervals.collect(),
        distributions: vec![
            Distribution {
                name: "service time".to_owned(),
                points: vec![
                    (0.0, 0.5),
                    (0.5, 1.5),
                    (0.9, 3.0),
                    (0.99, 4.0),
                    (0.999, 11.0),
                ],
            },
            Distribution {
                name: "latency".to_owned(),
                points: vec![(0.0, 0.5), (0.5, 2.5), (0.9, 5.0)],
            },
        ],
    }
}

#[test]
fn a_page_has_three_charts_for_wide_and_narrow_screens() {
    let page = run().html();
    assert!(page.starts_with("<!doctype html>"));
    assert_eq!(page.matches("<svg ").count(), 6);
    assert!(page.contains("a &lt;run&gt;") && !page.contains("a <run>"));
    assert!(page.contains("HTTP/3 &amp; more") && page.contains("&quot;fast&quot;"));
    assert!(page.contains("the generator was the limit"));
    for text in [
        ">P50<",
        ">P99<",
        ">maximum<",
        ">responses<",
        ">errors<",
        ">P99.9<",
        ">12 ms<",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // 100 responses in 10 ms.
    assert!(page.contains(">10 k/s<"), "no rate");
    // It loads nothing.
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("http:"));
}

/// Percentiles without enough values have no point, and no cell.
#[test]
fn the_table_has_only_known_values() {
    let page = run().html();
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("<tr><th>"))
        .collect();
    let cells = |row: &str| row.matches("<td>–</td>").count();
    assert_eq!(rows.len(), 2);
    assert_eq!((cells(rows[0]), cells(rows[1])), (1, 3), "{rows:?}");
}

/// A gap in a series is a gap in its line; other series go on.
#[test]
fn intervals_without_values_are_gaps() {
    let scene = figure::latency(&run(), Size::Wide).expect("a chart");
    let pieces = |color: u32| {
        let lines = scene.shapes.iter().filter_map(|shape| match shape {
            crate::scene::Shape::Lines { lines, stroke } if stroke.color.rgb == color => {
                Some(lines.len())
            }
            _ => None,
        });
        lines.max()
    };
    assert_eq!(pieces(0x00_5fa8), Some(2));
    assert_eq!(pieces(0xc9_7b00), Some(49));
}

/// A last interval that the end of the run has cut off has the rate of its own time, or none if that is too short.
#[test]
fn the_end_of_a_run_is_no_drop_of_the_rate() {
    let top = |last_ms: f64| {
        let mut run = run();
        run.intervals.push(Interval {
            done: 100,
            ..Interval::default()
        });
        run.end_ms = 1000.0 + last_ms;
        let page = run.html();
        let known = [10_000.0, 20_000.0, 50_000.0];
        let found = known.into_iter().filter(|rate| {
            let text = format!("Up to {}\"", crate::scale::Unit::PerSecond.format(*rate));
            page.contains(&text)
        });
        found.collect::<Vec<f64>>()
    };
    assert_eq!(top(10.0), [10_000.0]);
    assert_eq!(top(5.0), [20_000.0]);
    assert_eq!(top(2.0), [10_000.0]);
}

#[test]
fn any_run_has_a_page() {
    let strange = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300];
    let mut runs = vec![Run::default()];
    for value in strange {
        runs.push(Run {
            width_ms: value,
            intervals: vec![
                Interval {
                    done: u64::MAX,
                    errored: 1,
                    p50_ms: Some(value),
                    p99_ms: Some(value),
                    max_ms: Some(value),
                };
                3
            ],
            distributions: vec![
                Distribution {
                    name: String::new(),
                    points: vec![(value, value), (2.0, 1.0), (1.0, 1.0)],
                };
                3
            ],
            ..Run::default()
        });
    }
    for run in runs {
        let page = run.html();
        assert!(!page.contains("NaN") && !page.contains("inf"), "{run:?}");
    }
}
