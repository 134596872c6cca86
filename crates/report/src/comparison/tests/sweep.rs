//! The chart of a sweep.

use super::*;
use crate::comparison::{Panel, Sweep};

fn svg_of(comparison: &Comparison) -> String {
    let analysis = &comparison.analysis;
    let sweep = analysis.settings.sweep.as_ref().expect("a sweep");
    crate::svg::document(&crate::comparison::sweep::chart(
        analysis,
        sweep,
        crate::comparison::figure::Size::Wide,
    ))
}

#[test]
fn the_chart_has_a_panel_per_combination_and_a_point_per_network() {
    let mut chance = Chance(5);
    let mut text = String::new();
    let networks = ["a, loss 0", "a, loss 1%", "b, loss 0", "b, loss 1%"];
    for path in 0..200 {
        let time = 100.0 * (0.1 * chance.normal()).exp();
        for (arm, gain) in [("baseline", 1.0), ("new", 0.8)] {
            text += &line(&json!({
                "arm": arm, "seed": path, "ttlb": (time * gain * 1000.0).round() / 1000.0, "content_length": 300_000, "site": networks[path % 4],
            }));
        }
    }
    let panel = |title: &str, from: usize| Panel {
        title: title.to_owned(),
        networks: networks[from..from + 2]
            .iter()
            .map(|one| (*one).to_owned())
            .collect(),
    };
    let settings = Settings {
        sweep: Some(Sweep {
            axis: "loss".to_owned(),
            values: vec!["0".to_owned(), "1%".to_owned()],
            panels: vec![panel("a", 0), panel("b", 2)],
        }),
        ..quick()
    };
    let comparison = read(&text, settings).expect("a report");
    let svg = svg_of(&comparison);
    for network in networks {
        assert!(svg.contains(&format!("{network}, new: −2")), "{svg}");
    }
    let page = comparison.html();
    assert!(page.contains("Median change by loss") && page.contains("href=\"#sweep\""));
}

/// Points of equal arms are pale, and those of an arm that differs are not.
#[test]
fn points_are_pale_unless_the_corrected_test_finds_a_difference() {
    let mut chance = Chance(8);
    let mut text = String::new();
    for path in 0..200 {
        let time = 100.0 * (0.3 * chance.normal()).exp();
        let network = ["same", "faster"][path % 2];
        let gain = [1.0, 0.8][path % 2];
        for (arm, gain) in [("baseline", 1.0), ("new", gain)] {
            let ttlb = time * gain * (0.1 * chance.normal()).exp();
            text += &line(&json!({
                "arm": arm, "seed": path, "ttlb": (ttlb * 1000.0).round() / 1000.0, "content_length": 300_000, "site": network,
            }));
        }
    }
    let chart = |network: &str| {
        let settings = Settings {
            sweep: Some(Sweep {
                axis: "loss".to_owned(),
                values: vec!["0".to_owned()],
                panels: vec![Panel {
                    title: String::new(),
                    networks: vec![network.to_owned()],
                }],
            }),
            ..quick()
        };
        let comparison = read(&text, settings).expect("a report");
        svg_of(&comparison)
    };
    let pale = "stroke-opacity=\"0.35\"";
    let (same, faster) = (chart("same"), chart("faster"));
    assert!(
        same.contains(pale) && same.contains(", not significant"),
        "{same}"
    );
    assert!(
        !faster.contains(pale) && !faster.contains("not significant"),
        "{faster}"
    );
}

/// A run that was interrupted may lack networks.
#[test]
fn networks_without_connections_leave_gaps() {
    let text = log(3, 400, &[("baseline", 0.0), ("new", -0.1)], 0.0);
    let settings = Settings {
        sweep: Some(Sweep {
            axis: "loss".to_owned(),
            values: vec!["0".to_owned(), "1%".to_owned()],
            panels: vec![Panel {
                title: String::new(),
                networks: vec!["africa".to_owned(), "nowhere".to_owned()],
            }],
        }),
        ..quick()
    };
    let comparison = read(&text, settings).expect("a report");
    assert!(svg_of(&comparison).contains("nowhere, new: unknown"));
}

#[test]
fn the_axis_of_a_sweep_covers_all_points() {
    let mut text = String::new();
    for path in 0..400 {
        let time = 100.0 + f64::from(path % 97);
        let network = ["same", "slower"][path as usize % 2];
        let factor = [1.0, 30.0][path as usize % 2];
        for (arm, factor) in [("baseline", 1.0), ("new", factor)] {
            text += &line(&json!({
                "arm": arm, "seed": path, "ttlb": time * factor, "content_length": 300_000, "site": network,
            }));
        }
    }
    let settings = Settings {
        sweep: Some(Sweep {
            axis: "loss".to_owned(),
            values: vec!["0".to_owned(), "1%".to_owned()],
            panels: vec![Panel {
                title: "all".to_owned(),
                networks: vec!["same".to_owned(), "slower".to_owned()],
            }],
        }),
        ..quick()
    };
    let comparison = read(&text, settings).expect("a report");
    let svg = svg_of(&comparison);
    assert!(svg.contains(">+900 %<"), "{svg}");
}
