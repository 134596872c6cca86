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
            max_ms: Some(if index == 51 { 12.0 } else { 5.0 }),
        },
    });
    let step = |from: usize, to: usize, ms| Step {
        intervals: from..to,
        ms,
    };
    Run {
        title: "a <run>".to_owned(),
        subtitle: "HTTP/3 & more".to_owned(),
        command: "lastbyte bench 'a<b'".to_owned(),
        tiles: vec![Tile {
            name: "P99".to_owned(),
            value: "–".to_owned(),
            note: "needs 1000 responses".to_owned(),
        }],
        notes: vec!["P99.99 needs <100000> responses".to_owned()],
        p50: vec![step(0, 10, 1.5), step(10, 50, 1.6), step(51, 100, 1.5)],
        p99: vec![step(0, 40, 4.0)],
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
    assert!(page.contains("<pre class=\"command\">lastbyte bench &#39;a&lt;b&#39;</pre>"));
    assert!(page.contains("<span>P99</span><strong>–</strong><small>needs 1000 responses</small>"));
    assert!(page.contains("P99.99 needs &lt;100000&gt; responses"));
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
    let scene = figure::latency(&run()).expect("a chart").screen(Size::Wide);
    let pieces = |color: u32| {
        let lines = scene.shapes.iter().filter_map(|shape| match shape {
            crate::scene::Shape::Lines { lines, stroke } if stroke.color.rgb == color => {
                Some(lines.len())
            }
            _ => None,
        });
        lines.max()
    };
    // Two steps that touch are one line.
    assert_eq!(pieces(0x00_5fa8), Some(2));
    assert_eq!(pieces(0xc9_7b00), Some(1));
}

/// The P99 of many intervals is above the maximum of one of them, and a median may be.
#[test]
fn no_percentile_is_above_the_maximum_beside_it() {
    let mut run = run();
    for (index, interval) in run.intervals.iter_mut().enumerate() {
        interval.max_ms = (interval.done > 0).then(|| [1.0, 5.0][index % 2]);
    }
    let figure = figure::latency(&run).expect("a chart");
    let series = &figure.panels[0].series;
    let at = |name: &str, x: f64| {
        let one = series.iter().find(|one| one.name == name);
        let points = &one.expect("a series").points;
        let after = points.partition_point(|point| point.x <= x);
        points[..after].last().map(|point| point.y)
    };
    for index in 0..40 {
        let x = f64::from(index) * 10.0 + 5.0;
        let [most, p99, p50] = ["maximum", "P99", "P50"].map(|name| at(name, x));
        assert!(most >= p99 && most >= p50, "{x}: {most:?} {p99:?} {p50:?}");
    }
}

/// The legend has the series that are drawn.
#[test]
fn a_series_without_values_is_not_in_the_legend() {
    let mut run = run();
    run.p99.clear();
    run.distributions[1].points.clear();
    let charts = |run: &Run| {
        let scenes = [figure::latency(run), figure::percentiles(run)];
        scenes
            .into_iter()
            .flatten()
            .map(|figure| svg::inline(&figure.screen(Size::Wide)))
            .collect::<String>()
    };
    let drawn = charts(&run);
    assert!(
        drawn.contains(">P50<") && drawn.contains(">service time<"),
        "{drawn}"
    );
    assert!(!drawn.contains(">latency<"), "{drawn}");
    // The percentiles have an axis with this name.
    assert_eq!(drawn.matches(">P99<").count(), 1, "{drawn}");
    run.p50.clear();
    assert_eq!(charts(&run).matches(">P50<").count(), 1);
    assert!(charts(&run).contains(">maximum<"));
}

#[test]
fn ratios_are_drawn_around_one() {
    let series = |ratios: &[Option<f64>]| vec![("rate".to_owned(), ratios.to_vec())];
    assert!(figure::ratios(&[]).is_none());
    assert!(figure::ratios(&series(&[None, Some(f64::NAN), Some(0.0)])).is_none());
    let figure = figure::ratios(&series(&[Some(1.3), None, Some(0.8)]));
    let drawn = svg::inline(&figure.expect("a chart").screen(Size::Narrow));
    for text in [">rate<", ">0.8<", ">1.0<", ">1.2<", ">3<"] {
        assert!(drawn.contains(text), "{text}: {drawn}");
    }
    for ratio in [1.0, 1e-300, 1e300, f64::INFINITY] {
        let versus = Versus {
            ratios: series(&[Some(ratio), Some(1.0)]),
            ..Versus::default()
        };
        let page = versus.html();
        assert!(!page.contains("NaN") && !page.contains("inf"), "{ratio}");
    }
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
                    max_ms: Some(value),
                };
                3
            ],
            p50: vec![
                Step {
                    intervals: 2..1_000_000,
                    ms: value,
                },
                Step {
                    intervals: 0..1,
                    ms: value,
                },
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
