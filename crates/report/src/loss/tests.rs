#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use super::*;

fn study() -> LossStudy {
    let times = |base: u64| (0..20).map(|at| Some(base + at * 1000)).collect::<Vec<_>>();
    let mut study = LossStudy {
        title: "Loss & time".to_owned(),
        subtitle: "20 transfers".to_owned(),
        arms: vec!["one".to_owned(), "<two>".to_owned()],
        sizes: vec![400_000, 10_000_000],
        losses: vec![0.0, 0.01, 0.08],
        seed: 7,
        ..LossStudy::default()
    };
    study.times = (0..12).map(|cell| times(100_000 * (cell + 1))).collect();
    study
}

#[test]
fn the_interval_contains_the_median_and_most_of_many_true_medians() {
    let cell = study().median(0, 0, 0);
    assert_eq!((cell.transfers, cell.incomplete), (20, 0));
    let (median, (low, high)) = (cell.median_ms.unwrap(), cell.interval_ms.unwrap());
    assert!((100.0..=119.0).contains(&low), "{low}");
    assert!(low < median && median < high, "{low} {median} {high}");

    // Uniform between 0 and 1 s: the true median is 500 ms.
    let mut random = lastbyte_units::SplitMix64::new(3);
    let mut covered = 0;
    for seed in 0..400 {
        let mut study = study();
        study.seed = seed * 1000;
        study.times[0] = (0..40).map(|_| Some(random.number() % 1_000_000)).collect();
        let (low, high) = study.median(0, 0, 0).interval_ms.unwrap();
        covered += usize::from((low..=high).contains(&500.0));
    }
    assert!((360..=395).contains(&covered), "{covered} of 400");
}

#[test]
fn incomplete_transfers_count_as_the_slowest() {
    let mut study = study();
    study.times[0][..9].fill(None);
    let cell = study.median(0, 0, 0);
    assert_eq!(cell.incomplete, 9);
    assert!(cell.median_ms.is_some());
    assert!(cell.interval_ms.is_none(), "its upper end is incomplete");
    study.times[0][..10].fill(None);
    study.times[0][10] = None;
    assert_eq!(study.median(0, 0, 0).median_ms, None);
    assert_eq!(study.median(0, 0, 0).text(), "–, 11 incomplete");
}

#[test]
fn few_transfers_have_no_interval() {
    let mut study = study();
    study.times[0].truncate(9);
    let cell = study.median(0, 0, 0);
    assert!(cell.median_ms.is_some());
    assert!(cell.interval_ms.is_none());
    assert!(study.has_intervals(0));
    for times in &mut study.times {
        times.truncate(9);
    }
    let html = study.html();
    assert!(!html.contains("95 % interval") && !html.contains("d=\"z\""));
    study.times[0].clear();
    assert_eq!(study.median(0, 0, 0), Median::default());
}

#[test]
fn json_leaves_out_what_is_unknown() {
    let mut study = study();
    study.times[0].clear();
    let json = study.json();
    let cells = json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 12);
    assert_eq!(cells[0]["transfers"], 0);
    assert!(cells[0].get("ttlb_ms_median").is_none());
    assert_eq!(cells[1]["arm"], "<two>");
    assert!(cells[1]["ttlb_ms_ci95"].is_array());
}

#[test]
fn the_page_is_well_formed_and_needs_no_other_file() {
    let study = study();
    let html = study.html();
    assert!(html.contains("Loss &amp; time") && html.contains("&lt;two&gt;"));
    assert!(!html.contains("<two>") && !html.contains("<script"));
    for size in 0..2 {
        roxmltree::Document::parse(&study.svg(size)).unwrap();
    }
    assert!(study.svg(1).contains("10MB"));
    // A study that was interrupted at once still has a page.
    assert!(LossStudy::default().html().contains("<html"));
}

#[test]
fn a_legend_that_is_too_long_has_several_rows() {
    let mut many = study();
    many.arms = (0..8)
        .map(|arm| format!("a long name of arm {arm}"))
        .collect();
    many.times.clear();
    let (one, rows) = (
        study().figure(0).screen(Size::Narrow),
        many.figure(0).screen(Size::Narrow),
    );
    assert!(
        rows.height >= one.height + 40.0,
        "{} {}",
        rows.height,
        one.height
    );
}

#[test]
fn a_unit_is_written_once_unless_it_changes() {
    let median = |interval_ms| Median {
        median_ms: Some(976.0),
        interval_ms: Some(interval_ms),
        transfers: 10,
        incomplete: 0,
    };
    assert_eq!(median((375.0, 990.0)).text(), "976 ms (375–990)");
    let text = median((0.05, 990.0)).text();
    assert_eq!(text, "976 ms (50 µs–990 ms)");
}

/// A line does not go on past a loss at which most transfers are incomplete as if it were known there.
#[test]
fn a_median_that_is_not_known_is_a_gap_of_the_line() {
    let lines = |study: &LossStudy| {
        let scene = study.figure(0).screen(Size::Wide);
        let lines = scene.shapes.iter().filter_map(|shape| match shape {
            crate::scene::Shape::Lines { lines, stroke } if (stroke.width - 1.4).abs() < 1e-6 => {
                Some(lines.iter().map(Vec::len).sum::<usize>())
            }
            _ => None,
        });
        lines.collect::<Vec<usize>>()
    };
    let mut study = study();
    assert_eq!(lines(&study), [3, 3]);
    study.times[1].fill(None);
    // Two points apart, of which each has its mark only, and the other arm.
    assert_eq!(lines(&study), [3]);
}
