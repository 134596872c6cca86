use super::*;

/// Pages with these times in ms, over the baseline and over the arm, on one network.
fn loads(times: &[(f64, f64)]) -> PageLoads {
    let page = |page: usize| PageFacts {
        name: format!("page {page}"),
        hosts: 2,
        bytes: 1000,
        resources: vec![("document".to_owned(), "www.example".to_owned(), 1000)],
    };
    let load = |page: usize, arm: usize, ms: f64| LoadTimes {
        key: LoadKey {
            page,
            arm,
            ..LoadKey::default()
        },
        load_ms: Some(ms),
        render_ms: Some(ms / 2.0),
    };
    PageLoads {
        title: "HTTP/2 / HTTP/3".to_owned(),
        arms: vec!["HTTP/2".to_owned(), "HTTP/3".to_owned()],
        networks: vec!["lte".to_owned()],
        views: vec!["first".to_owned()],
        pages: (0..times.len()).map(page).collect(),
        loads: times
            .iter()
            .enumerate()
            .flat_map(|(page, (one, other))| [load(page, 0, *one), load(page, 1, *other)])
            .collect(),
        waterfalls: vec![Waterfall {
            key: LoadKey::default(),
            bars: vec![[Some(0.0), Some(80.04), None]],
        }],
        parts: vec![PartTimes {
            part: ("script".to_owned(), "third party".to_owned()),
            responses: 4,
            first_byte_ms: 200.0,
            last_byte_ms: 400.0,
            ..PartTimes::default()
        }],
        ..PageLoads::default()
    }
}

const LOAD: Selection = Selection {
    arm: 1,
    view: 0,
    metric: Metric::Load,
};

#[test]
fn verdicts_count_pages_and_give_the_geometric_mean_with_its_interval() {
    // Speedups 2, 2, 1/2 and 1.
    let loads = loads(&[
        (200.0, 100.0),
        (400.0, 200.0),
        (100.0, 200.0),
        (300.0, 300.0),
    ]);
    let verdict = &loads.verdicts(LOAD)[0];
    assert_eq!(verdict.pages, 4);
    let faster = verdict.faster.expect("there are pages");
    assert!((faster.value - 0.5).abs() < 1e-12);
    let speedup = verdict.speedup.expect("there are pages");
    assert!((speedup.value - 2f64.powf(0.25)).abs() < 1e-12);
    // The standard deviation of the logarithms is ln 2 × sqrt(2.75 / 3), and that of their mean half of it.
    let half = 1.959_963_984_540_054 * 2f64.ln() * (2.75f64 / 3.0).sqrt() / 2.0;
    let high = speedup.value * half.exp();
    assert!(
        (speedup.interval.1 - high).abs() < 1e-9,
        "{speedup:?} {high}"
    );
    assert_eq!(verdict.median, Some(1.0));
    assert_eq!((verdict.p5, verdict.p95), (Some(0.5), Some(2.0)));
    assert_eq!(verdict.losers, Some(0.25));
}

#[test]
fn pages_that_were_not_loaded_in_both_arms_are_left_out_and_repeats_are_averaged() {
    let mut loads = loads(&[(400.0, 200.0), (200.0, 100.0)]);
    loads.loads.truncate(3);
    let more = LoadTimes {
        load_ms: Some(600.0),
        ..loads.loads[1]
    };
    loads.loads.push(more);
    let verdict = &loads.verdicts(LOAD)[0];
    assert_eq!(verdict.pages, 1);
    assert_eq!(
        verdict.median,
        Some(1.0),
        "400 ms, and the mean of 200 and 600 ms"
    );
    assert_eq!(verdict.speedup, None, "one page has no interval");
}

/// Marks loads as not complete, by their place: twice the page, and 1 for the arm.
fn without(mut loads: PageLoads, places: &[usize]) -> PageLoads {
    for place in places {
        loads.loads[*place].load_ms = None;
    }
    loads
}

#[test]
fn a_load_that_is_not_complete_counts_as_infinitely_long() {
    // Speedups 2, 1.5 and 2 without the incomplete loads.
    let times = [(200.0, 100.0), (300.0, 200.0), (400.0, 200.0)];
    // The arm does not complete the first two pages.
    let loads = without(loads(&times), &[1, 3]);
    let verdict = &loads.verdicts(LOAD)[0];
    assert_eq!((verdict.pages, verdict.incomplete), (3, (0, 2)));
    assert!((verdict.faster.expect("pages").value - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!((verdict.median, verdict.p95), (Some(0.0), Some(2.0)));
    assert_eq!(verdict.losers, Some(2.0 / 3.0));
    // One complete page has no mean.
    assert_eq!((verdict.complete, verdict.speedup), (1, None));
    assert_eq!(show_speedup(verdict.median), "never");
    let page = loads.html();
    assert!(page.contains("<th>not complete: HTTP/2</th><th>HTTP/3</th>"));
    assert!(page.contains("<td>3</td><td>0</td><td>2</td>"));
    assert!(page.contains("[0,200.0,null]"), "the large chart");
    // The baseline does not.
    let verdict = &without(self::loads(&times), &[0, 2]).verdicts(LOAD)[0];
    assert_eq!((verdict.incomplete, verdict.p5), ((2, 0), Some(2.0)));
    assert_eq!(show_speedup(verdict.median), "∞");
    assert_eq!(verdict.losers, Some(0.0));
    // One page of three does not remove the mean of the others.
    let verdict = &without(self::loads(&times), &[3]).verdicts(LOAD)[0];
    assert_eq!(verdict.complete, 2);
    let speedup = verdict.speedup.expect("a mean").value;
    assert!((speedup - 2.0).abs() < 1e-12, "{speedup}");
    let page = without(self::loads(&times), &[3]).html();
    assert!(page.contains("2.00× <small>2.00× to 2.00×</small> <small>of 2 of 3 pages</small>"));
    // Neither does: the page is neither faster nor slower.
    let verdict = &without(self::loads(&times), &[0, 1, 2, 3]).verdicts(LOAD)[0];
    assert_eq!((verdict.pages, verdict.incomplete), (3, (2, 2)));
    assert!((verdict.faster.expect("pages").value - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(verdict.losers, Some(0.0));
    assert_eq!((verdict.median, verdict.p95), (None, Some(2.0)));
    assert_eq!(show_speedup(verdict.median), "–");
}

#[test]
fn pages_that_were_not_complete_are_at_the_edge_of_the_chart() {
    let loads = without(loads(&[(200.0, 100.0), (100.0, 200.0)]), &[3]);
    let places = |loads: &PageLoads| {
        let picture = loads.svg(Metric::Load);
        let document = roxmltree::Document::parse(&picture).expect("it is XML");
        let dots = document.descendants();
        let dots = dots.filter(|node| node.has_tag_name("circle") || node.has_tag_name("path"));
        let text = dots.map(|node| format!("{:?}", node.attribute("d")));
        text.collect::<String>()
    };
    assert!(!places(&loads).contains("inf") && !places(&loads).contains("NaN"));
    let none = without(loads, &[0, 1, 2]);
    assert!(!places(&none).contains("inf") && !places(&none).contains("NaN"));
    assert!(none.html().contains("0 % of 2 pages faster"));
}

#[test]
fn the_page_is_complete_and_loads_nothing() {
    let mut loads = loads(&[(200.0, 100.0), (100.0, 200.0)]);
    loads.pages[0].name = "</script><b>".to_owned();
    loads.networks[0] = "<i>".to_owned();
    let page = loads.html();
    assert!(page.contains("50 % of 2 pages faster"));
    assert!(page.contains("<th>script, third party</th><td>4</td><td>50 ms</td><td>100 ms</td>"));
    assert!(
        page.contains("2 of") || page.contains("1 of 2 pages are slower"),
        "who loses"
    );
    assert!(page.contains("[0.0,80.0,null]"), "the waterfall");
    assert!(
        !page.contains("<b>") && !page.contains("<i>"),
        "names are escaped"
    );
    assert_eq!(page.matches("</script>").count(), 2);
    for outside in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn the_picture_has_a_chart_a_network_with_a_midline() {
    let mut loads = loads(&[(200.0, 100.0), (100.0, 200.0)]);
    loads.networks.push("geo".to_owned());
    let picture = loads.svg(Metric::Load);
    let document = roxmltree::Document::parse(&picture).expect("it is XML");
    let texts: Vec<&str> = document
        .descendants()
        .filter_map(|node| node.text())
        .collect();
    assert!(texts.contains(&"lte") && texts.contains(&"geo"));
    assert!(texts.contains(&"no page"));
    assert_eq!(picture.matches("stroke-dasharray").count(), 2);
}

#[test]
fn the_picture_of_first_render_has_its_times_and_axes_are_named() {
    // First renders of 50 and 100 ms, page loads of 100 and 200 ms.
    let loads = loads(&[(200.0, 100.0), (100.0, 200.0)]);
    let texts = |picture: &str| {
        let document = roxmltree::Document::parse(picture).expect("it is XML");
        let texts = document.descendants().filter(roxmltree::Node::is_text);
        let texts = texts.filter_map(|node| node.text());
        texts.map(str::to_owned).collect::<Vec<_>>()
    };
    let [load, render] = Metric::ALL.map(|metric| texts(&loads.svg(metric)));
    assert!(load.contains(&"200 ms".to_owned()) && !render.contains(&"200 ms".to_owned()));
    assert!(render.contains(&"50 ms".to_owned()) && !load.contains(&"50 ms".to_owned()));
    // Both axes have units.
    assert_eq!(load.iter().filter(|text| *text == "200 ms").count(), 2);
    for texts in [load, render] {
        for name in ["↑ HTTP/3", "HTTP/2 →"] {
            assert!(texts.contains(&name.to_owned()), "{name}: {texts:?}");
        }
    }
}

#[test]
fn a_few_charts_are_large_and_their_text_can_be_read() {
    let widths = [1, 2, 3, 24].map(|count| figure::Layout::of(count).width as u32);
    assert_eq!(widths, [420, 420, 340, 240]);
    let mut loads = loads(&[(200.0, 100.0), (100.0, 200.0)]);
    loads.networks.push("geo".to_owned());
    let page = loads.html();
    // Two charts of at least half a row, and no text below 12 px at their width.
    assert_eq!(page.matches("<svg viewBox=\"0 0 420 ").count(), 4);
    for small in ["font-size=\"9", "font-size=\"10", "font-size=\"11"] {
        assert!(!page.contains(small), "{small}");
    }
}

#[test]
fn two_lists_choose_arm_and_measure() {
    let mut loads = loads(&[(200.0, 100.0), (100.0, 200.0)]);
    let measures = "<label>Measure <select><option value=\"0\">page load time, first view</option>\
                    <option value=\"1\">first render, first view</option></select></label>";
    let page = loads.html();
    assert!(page.contains(measures));
    assert_eq!(page.matches("<select>").count(), 1, "there is one arm");
    loads.arms.push("<i>".to_owned());
    let page = loads.html();
    assert!(page.contains(measures));
    // The comparison of the second arm's first measure is the third of four.
    assert!(page.contains(
        "<label>HTTP/2 compared with <select><option value=\"0\">HTTP/3</option><option value=\"2\">&lt;i&gt;</option></select></label>"
    ));
    assert_eq!(page.matches("data-selection=").count(), 4);
}

#[test]
fn json_has_a_result_per_arm_view_metric_and_network() {
    let loads = loads(&[(200.0, 100.0), (100.0, 200.0)]);
    let json = loads.json();
    let results = json["results"].as_array().expect("a list");
    assert_eq!(results.len(), 2);
    assert_eq!(results[0]["metric"], "load");
    assert_eq!(results[1]["metric"], "first_render");
    assert_eq!(results[0]["pages"], 2);
    assert_eq!(results[0]["incomplete_arm"], 0);
    assert_eq!(results[0]["speedup"][0], 1.0);
}

#[test]
fn anything_can_be_drawn() {
    let empty = PageLoads::default();
    assert!(empty.html().starts_with("<!doctype html>"));
    assert!(empty.svg(Metric::Render).starts_with("<svg "));
    let odd = loads(&[
        (f64::NAN, 1.0),
        (0.0, -5.0),
        (f64::INFINITY, 1e300),
        (1e-9, 1e12),
    ]);
    assert!(odd.svg(Metric::Load).contains("lte"));
    assert!(odd.html().contains("</html>"));
    let mut outside = loads(&[(1.0, 2.0)]);
    outside.loads[0].key.network = 7;
    outside.loads[1].key.page = 9;
    assert!(outside.html().contains("no page"));
}

/// A page that is faster on each network does not lose, and one that was not complete has no speedup of zero.
#[test]
fn only_pages_that_lose_are_listed() {
    let row = |page: &str, name: &str| {
        let (_, section) = page
            .split_once("<h2>Pages that lose</h2>")
            .expect("a section");
        let (section, _) = section.split_once("</section>").expect("its end");
        let row = section
            .lines()
            .find(|line| line.starts_with(&format!("<tr><th>{name}</th>")));
        row.map(str::to_owned)
    };
    let winners = loads(&[(200.0, 100.0), (300.0, 100.0)]);
    let page = winners.html();
    assert_eq!((row(&page, "page 0"), row(&page, "page 1")), (None, None));
    assert!(page.contains("0 of 2 pages are slower on at least one network."));
    assert!(!page.contains("not complete on</th>"));
    // The second page loses on average, the third is complete over the baseline only.
    let page = without(
        loads(&[(200.0, 100.0), (100.0, 300.0), (200.0, 100.0)]),
        &[5],
    )
    .html();
    assert_eq!(row(&page, "page 0"), None);
    let expected = "<tr><th>page 1</th><td>0.33×</td><td>1 of 1 networks</td><td>0</td>";
    assert!(row(&page, "page 1").is_some_and(|row| row.starts_with(expected)));
    let expected = "<tr><th>page 2</th><td>–</td><td>1 of 1 networks</td><td>1</td>";
    assert!(row(&page, "page 2").is_some_and(|row| row.starts_with(expected)));
    assert!(!page.contains("0.00×") && page.contains("<td>never</td>"));
}

/// 2500 bytes, by the rule of the page's program.
#[test]
fn bytes_of_a_page_are_rounded_as_its_waterfall_has_them() {
    let mut loads = loads(&[(100.0, 200.0)]);
    loads.pages[0].bytes = 2500;
    assert!(loads.html().contains("<td>3 kB</td>"));
}
