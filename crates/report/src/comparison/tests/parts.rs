//! Where the time of transfers goes.

use super::*;
use crate::comparison::{parts::BANDS, queries::PARTS};

/// Checks that the query engine's means are those of the page.
pub(super) fn check_query(analysis: &Analysis, text: &str) {
    let Some(parts) = &analysis.parts else {
        return;
    };
    let answer = ask(&parts.query, text);
    for (one, times) in analysis.arms.iter().zip(&parts.means[0]) {
        for (place, time) in times.iter().enumerate() {
            let asked = answer[&one.name][place].as_f64().expect("a mean");
            assert!(
                (time - asked).abs() < 1e-6 * asked.max(1.0),
                "{time} {asked}: {}",
                parts.query
            );
        }
    }
}

/// 300 paths. The new arm is idle for 30 ms less and repairs for 10 ms more; on each tenth path it does not complete.
fn paired() -> String {
    let mut chance = Chance(31);
    let mut text = String::new();
    for path in 0..300 {
        let time = 100.0 + 400.0 * chance.unit();
        for (arm, idle, repair) in [("baseline", time, 0.0), ("new", time - 30.0, 10.0)] {
            let noise = chance.unit();
            let is_complete = arm == "baseline" || path % 10 > 0;
            text += &line(&json!({
                "arm": arm, "seed": path, "content_length": 300_000,
                "ttlb": is_complete.then_some((idle + repair + 40.0 + noise).round()),
                "anatomy.application": 0, "anatomy.flow-control": 0, "anatomy.pacing": 0, "anatomy.window": 0, "anatomy.idle": idle + noise,
                "anatomy.queueing": 0, "anatomy.repair": repair, "anatomy.last-ack": 40,
            }));
        }
    }
    text
}

#[test]
fn differences_of_parts_match_those_of_pairs() {
    let text = paired();
    let comparison = read(&text, quick()).expect("a report");
    let analysis = &comparison.analysis;
    let parts = analysis.parts.as_ref().expect("parts");
    assert_eq!(parts.counts, [300, 270]);
    let of = |name: &str| {
        PARTS
            .iter()
            .position(|(_, part)| *part == name)
            .expect(name)
    };
    let idle = parts.differences[1][of("idle")].expect("an estimate");
    assert!(
        (idle.value + 30.0).abs() < 0.2 && idle.interval.1 - idle.interval.0 < 0.5,
        "{idle:?}"
    );
    assert_eq!(
        text::parts(analysis),
        [format!(
            "new: {}\u{a0}ms idle, +10.0\u{a0}ms repair.",
            crate::comparison::format::signed(idle.value, 1)
        )]
    );
    assert_eq!(check_queries(analysis, &text), 0);
    // Bands ascend, and their means weighted by their widths are the mean of all.
    for arm in 0..2 {
        let totals: Vec<f64> = parts
            .means
            .iter()
            .map(|arms| arms[arm].iter().sum())
            .collect();
        assert!(totals[1..].is_sorted(), "{totals:?}");
        let weighted: f64 = BANDS
            .iter()
            .zip(&totals)
            .skip(1)
            .map(|((from, to, _), total)| (to - from) * total)
            .sum();
        assert!((weighted - totals[0]).abs() < 1e-6, "{weighted} {totals:?}");
    }
    let html = comparison.html();
    assert!(html.contains("id=\"parts\"") && html.contains("Where the time goes"));
    assert!(
        comparison
            .figures()
            .iter()
            .any(|figure| figure.name == "ttlb-parts")
    );
    // The other way round.
    let settings = Settings {
        baseline: Some("new".to_owned()),
        ..quick()
    };
    let reversed = read(&text, settings).expect("a report");
    let back =
        reversed.analysis.parts.expect("parts").differences[1][of("idle")].expect("an estimate");
    assert!((back.value + idle.value).abs() < 1e-9, "{back:?}");
}

#[test]
fn parts_of_connections_that_are_not_paired_have_wider_intervals() {
    let text = paired();
    let apart: String = text
        .lines()
        .enumerate()
        .map(|(number, line)| line.replace("\"seed\":", &format!("\"seed\":{}", number + 1)) + "\n")
        .collect();
    let width = |text: &str| {
        let parts = read(text, quick())
            .expect("a report")
            .analysis
            .parts
            .expect("parts");
        let idle = parts.differences[1][4].expect("an estimate");
        idle.interval.1 - idle.interval.0
    };
    assert!(width(&apart) > 20.0 * width(&text));
}

#[test]
fn logs_without_parts_have_no_section_of_them() {
    let text = paired().replace("anatomy.", "other.");
    let comparison = read(&text, quick()).expect("a report");
    assert!(comparison.analysis.parts.is_none());
    assert!(!comparison.html().contains("id=\"parts\""));
}

/// A log that is older than the key of flow control, and one in which only some lines have it.
#[test]
fn without_the_key_flow_control_is_part_of_the_application_and_the_page_says_so() {
    let blocked = paired()
        .replace("\"anatomy.application\":0", "\"anatomy.application\":5")
        .replace("\"anatomy.flow-control\":0", "\"anatomy.flow-control\":7");
    let of = |name: &str| {
        PARTS
            .iter()
            .position(|(_, part)| *part == name)
            .expect(name)
    };
    let (application, flow_control) = (of("application"), of("flow control"));
    let comparison = read(&blocked, quick()).expect("a report");
    let parts = comparison.analysis.parts.as_ref().expect("parts");
    let means = parts.means[0][0];
    assert!((means[application] - 5.0).abs() < 1e-9 && (means[flow_control] - 7.0).abs() < 1e-9);
    assert_eq!(parts.note(), None);
    // Each second path does not have it; 30 of these did not complete with the new arm.
    let mixed: String = blocked
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let with = line.replace(
                "\"anatomy.application\":5,\"anatomy.flow-control\":7",
                "\"anatomy.application\":12",
            );
            if index % 4 < 2 {
                with + "\n"
            } else {
                line.to_owned() + "\n"
            }
        })
        .collect();
    let old = blocked.replace(
        "\"anatomy.application\":5,\"anatomy.flow-control\":7",
        "\"anatomy.application\":12",
    );
    assert!(!old.contains("flow-control"));
    for (text, unsplit) in [(old, 570), (mixed, 270)] {
        let comparison = read(&text, quick()).expect("a report");
        let parts = comparison.analysis.parts.as_ref().expect("parts");
        assert_eq!(parts.counts, [300, 270]);
        assert_eq!(parts.unsplit, unsplit);
        let means = parts.means[0][0];
        assert!((means[application] - 12.0).abs() < 1e-9 && means[flow_control].abs() < 1e-9);
        let difference = parts.differences[1][application].expect("an estimate");
        assert!(difference.value.abs() < 1e-9 && parts.differences[1][flow_control].is_none());
        let page = comparison.html();
        let note = format!(
            "{unsplit} of these 570 transfers have no `anatomy.flow-control`, so application includes flow control here."
        );
        assert!(page.contains(&crate::document::with_code(&note)), "{note}");
    }
}
