use super::{panel::ROWS, *};
use crate::scene::Shape;

/// An arm of which every series has `count` points over `ms` milliseconds.
fn full(label: &str, count: u32, ms: f64) -> Arm {
    let line = |scale: f64, shift: f64| {
        (0..count)
            .map(|i| {
                let share = f64::from(i) / f64::from(count.max(2) - 1);
                Point::new(
                    (share * ms + shift).min(ms),
                    (share + f64::from(i % 5) * 0.01) * scale,
                )
            })
            .collect::<Vec<Point>>()
    };
    Arm {
        ended: None,
        label: label.into(),
        note: "300 ms".into(),
        summary: "80 % the window was full, 20 % blocked by flow control".into(),
        sent: line(1e6, 0.0),
        acked: line(1e6, ms / 8.0),
        arrived: line(1e6, ms / 16.0),
        lost: line(1e6, ms / 6.0),
        connection_limit: line(1e6, 0.0),
        stream_limit: line(9e5, 0.0),
        queue: line(3e5, 0.0),
        drops: line(3e5, 0.0),
        marks: line(2e5, 0.0),
        rate: line(5e7, 0.0),
        others: line(3e7, 0.0),
        window: line(6e5, 0.0),
        in_flight: line(5e5, 0.0),
        pacing: line(8e7, 0.0),
        rtt: line(90.0, 0.0),
        rtt_smoothed: line(80.0, 0.0),
        delay_down: Vec::new(),
        delay_up: Vec::new(),
        twin_acked: Vec::new(),
        twin_window: Vec::new(),
        twin_rtt: Vec::new(),
        recovery: vec![(ms * 0.5, ms * 0.7)],
        blocked: vec![(ms * 0.2, ms * 0.3)],
        events: vec![
            (ms * 0.1, "first byte".into()),
            (ms * 0.9, "last byte".into()),
        ],
        packets: Vec::new(),
        phases: Vec::new(),
    }
}

fn picture(arms: Vec<Arm>) -> Picture {
    Picture {
        title: "Title".into(),
        subtitle: "Subtitle".into(),
        origin: String::new(),
        arms,
        guides: Guides {
            rate: Some(55e6),
            queue_limit: Some(343_750.0),
            rtt: Some(39.0),
        },
    }
}

/// The picture in all formats, each checked to be well formed.
fn draw(picture: &Picture) -> (String, String) {
    let (html, svg) = (picture.html(), picture.svg());
    let document = roxmltree::Document::parse(&svg).expect("the SVG is XML");
    assert_eq!(document.root_element().tag_name().name(), "svg");
    for text in [data(&html), &svg] {
        for word in [
            ":NaN", ",NaN", "[NaN", ":inf", ",inf", "-inf", "NaN\"", "inf\"",
        ] {
            assert!(!text.contains(word), "{word}");
        }
    }
    (html, svg)
}

/// The data of a page.
fn data(html: &str) -> &str {
    let (_, rest) = html
        .split_once("id=\"data\">\n")
        .expect("the page has data");
    rest.split_once("\n</script>").expect("the data end").0
}

#[test]
fn snapshot_of_a_small_plot() {
    let arm = Arm {
        sent: vec![Point::new(40.0, 1200.0), Point::new(41.0, 2400.0)],
        acked: vec![Point::new(80.0, 1200.0), Point::new(81.0, 2400.0)],
        queue: vec![Point::new(40.5, 1200.0), Point::new(41.2, 0.0)],
        events: vec![(81.0, "last byte".into())],
        ..Arm::new("slow-start")
    };
    let picture = Picture {
        title: "2.4 kB".into(),
        arms: vec![arm],
        ..Picture::default()
    };
    insta::assert_snapshot!(picture.svg());
}

#[test]
fn arbitrary_data_can_be_plotted() {
    let odd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1.0,
        0.0,
        1e-300,
        1e300,
        5.0,
    ];
    let mut points = Vec::new();
    for ms in odd {
        for value in odd {
            points.push(Point::new(ms, value));
        }
    }
    let mut strange = full("strange", 3, 100.0);
    for series in panel::all_series() {
        *(series.of_mut)(&mut strange) = points.clone();
    }
    strange.recovery = odd.iter().flat_map(|a| odd.map(|b| (*a, b))).collect();
    strange.events = odd.iter().map(|ms| (*ms, "same place".into())).collect();
    let mut once = Arm::new("");
    once.sent.push(Point::new(0.0, 0.0));
    let mut same = full("same", 100, 0.0);
    same.recovery.clear();
    for arms in [
        vec![],
        vec![Arm::default()],
        vec![once],
        vec![same],
        vec![strange.clone()],
        vec![full("one", 1, 10.0), strange, Arm::new("none")],
    ] {
        let mut picture = picture(arms);
        draw(&picture);
        for odd in odd {
            picture.guides = Guides {
                rate: Some(odd),
                queue_limit: Some(odd),
                rtt: Some(odd),
            };
            assert!(picture.svg().len() + picture.html().len() > 1000);
        }
        draw(&picture);
    }
}

#[test]
fn titles_and_labels_are_escaped() {
    let attack = "</script><script>alert(1)</script><!-- & ]]> \"'\u{0}\u{2028}\n";
    let mut arm = full(attack, 10, 100.0);
    arm.note = attack.into();
    arm.events.push((50.0, attack.into()));
    let mut picture = picture(vec![arm]);
    picture.title = attack.into();
    picture.subtitle = attack.into();
    let (html, svg) = draw(&picture);
    assert_eq!(html.matches("<script").count(), 2);
    assert_eq!(html.matches("</script").count(), 2);
    assert!(!html.contains("<!--"));
    assert!(!svg.contains("<script"));
    assert!(data(&html).contains("\\u003c/script\\u003e"));
    assert!(!data(&html).contains(['<', '>', '&', '\0', '\u{2028}']));
}

#[test]
fn pages_and_figures_load_nothing() {
    let (html, svg) = draw(&picture(vec![full("a", 100, 300.0), full("b", 100, 300.0)]));
    for text in [&html, &svg] {
        // The only address is the namespace of SVG.
        let addresses = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for load in [
            "http:", "https:", "//cdn", "src=", "href=", "url(", "@import", "import(", "fetch(",
        ] {
            assert!(!addresses.contains(load), "{load}");
        }
    }
}

#[test]
fn sizes_are_bounded_for_any_number_of_points() {
    let empty = picture(vec![Arm::default()]).html().len();
    assert!(empty < 100_000, "{empty}");
    let many = picture(vec![full("a", 200_000, 2000.0), full("b", 200_000, 2000.0)]);
    let (html, svg) = draw(&many);
    let points = 2 * 14 * 200_000;
    assert!(svg.len() < 600_000, "{}", svg.len());
    assert!(
        html.len() < svg.len() + empty + points * 8,
        "{}",
        html.len()
    );
    // Twice as many points do not make the page larger, but for crosses, of which each counts.
    let size = |points| {
        let mut arm = full("a", points, 2000.0);
        for series in [&mut arm.lost, &mut arm.drops, &mut arm.marks] {
            series.clear();
        }
        picture(vec![arm]).html().len()
    };
    let (one, two) = (size(200_000), size(400_000));
    assert!(two < one + one / 20 && two < 2_000_000, "{one} {two}");
}

#[test]
fn every_series_is_in_the_image() {
    let (_, svg) = draw(&picture(vec![full("a", 1000, 300.0)]));
    for row in ROWS {
        for series in row.series {
            let is_drawn = svg.contains(&format!("\"{}\"", series.color.hex()));
            assert!(is_drawn, "no {} to be seen", series.key);
        }
    }
    let many = picture(vec![full("a", 2, 300.0); 120]);
    assert!(many.svg().len() < 3_000_000);
}

#[test]
fn rows_without_data_are_left_out() {
    let mut arm = Arm::new("a");
    arm.sent.push(Point::new(1.0, 1200.0));
    let small = picture(vec![arm.clone()]).svg();
    assert!(small.contains("Bytes so far") && !small.contains("Pacing rate"));
    assert!(!small.contains("acknowledged"));
    arm.pacing.push(Point::new(1.0, 1e6));
    let large = picture(vec![arm, Arm::new("b")]).svg();
    assert!(large.contains("Pacing rate") && !large.contains("Congestion window"));
}

/// Lines of events count as data: a label is where none crosses it.
#[test]
fn labels_of_levels_are_beside_the_lines_of_events() {
    let mut arm = full("a", 20, 100.0);
    arm.queue = [(0.0, 0.0), (1.0, 3e5), (2.0, 0.0), (100.0, 0.0)]
        .map(|(ms, bytes)| Point::new(ms, bytes))
        .into();
    (arm.drops, arm.marks) = (Vec::new(), Vec::new());
    arm.events = [4.0, 10.0, 50.0, 94.0]
        .map(|ms| (ms, "x".to_owned()))
        .into();
    let shapes = figure::scene(&picture(vec![arm])).shapes;
    let is_label =
        |shape: &Shape| matches!(shape, Shape::Text { text, .. } if text.starts_with("limit "));
    let label = shapes.iter().position(is_label).expect("a label");
    // Its background is before it.
    let Shape::Rect { at, size, .. } = shapes[label - 1] else {
        panic!("a background");
    };
    let mut crossing = 0;
    for shape in &shapes {
        let Shape::Lines { lines, stroke } = shape else {
            continue;
        };
        let is_vertical =
            |line: &&Vec<(f32, f32)>| line.len() == 2 && line[0].0.total_cmp(&line[1].0).is_eq();
        let crosses = |line: &&Vec<(f32, f32)>| {
            let [(x, top), (_, bottom)] = line[..] else {
                return false;
            };
            at.0 <= x && x <= at.0 + size.0 && top <= at.1 && at.1 + size.1 <= bottom
        };
        if !stroke.dash.is_empty() {
            crossing += lines.iter().filter(is_vertical).filter(crosses).count();
        }
    }
    assert_eq!(crossing, 0);
}

/// The file of a client beside that of its server.
#[test]
fn a_panel_without_data_says_so() {
    let server = full("server", 20, 100.0);
    let client = Arm {
        label: "client".to_owned(),
        arrived: server.acked.clone(),
        ..Arm::default()
    };
    let none = |arms: Vec<Arm>| picture(arms).svg().matches(">no data<").count();
    assert_eq!(none(vec![server.clone()]), 0);
    let all = panel::rows(&picture(vec![server.clone()])).len();
    assert_eq!(none(vec![server, client]), all - 1);
}

#[test]
fn guides_are_named_with_their_values() {
    let (html, svg) = draw(&picture(vec![full("a", 100, 300.0)]));
    for name in [
        "limit 344 kB = 50 ms",
        "BDP 268 kB",
        "bottleneck 55 Mb/s",
        "empty path 39 ms",
    ] {
        assert!(svg.contains(name), "{name}");
        assert!(data(&html).contains(name), "{name}");
    }
}

#[test]
fn page_and_figure_have_the_same_colours() {
    let style = include_str!("page.css");
    let (light, dark) = style
        .split_once("@media (prefers-color-scheme: dark)")
        .expect("the style sheet has two themes");
    for row in ROWS {
        for series in row.series {
            let rule = format!("--{}: {};", series.key, series.color.hex());
            assert!(light.contains(&rule), "no `{rule}`");
            assert!(
                dark.contains(&format!("--{}: ", series.key)),
                "{}",
                series.key
            );
        }
    }
}

#[test]
fn the_same_data_give_the_same_bytes() {
    let picture = picture(vec![full("a", 500, 300.0), full("b", 300, 200.0)]);
    assert_eq!(draw(&picture), draw(&picture.clone()));
}

/// A moment of a high rate, such as the first of BBR, does not flatten the rest, and stays within its row.
#[test]
fn pacing_rates_far_above_the_bottleneck_are_cut_off() {
    let mut arm = full("bbr", 50, 500.0);
    arm.pacing = vec![Point::new(0.0, 850e6), Point::new(10.0, 50e6)];
    let picture = picture(vec![arm]);
    let row = ROWS.iter().find(|row| row.key == "pacing").expect("a row");
    let series: Vec<_> = row.series.iter().collect();
    let (_, hi) = panel::extent(&picture, row, &series);
    assert!((440e6..480e6).contains(&hi), "{hi}");
}
