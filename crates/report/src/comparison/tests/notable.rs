//! Connections to look at.

use super::*;

fn settings() -> Settings {
    Settings {
        replay: Some("lastbyte ab 'my exp.toml'".to_owned()),
        ..quick()
    }
}

/// 40 paths. Path 7 is the slowest, path 8 never completes in an arm, 9 becomes ten times slower, 10 ten times faster.
fn log_of() -> String {
    let mut text = String::new();
    for path in 0..40u32 {
        let base = match path {
            7 => 90_000.0,
            _ => 100.0 + f64::from(path),
        };
        let ours = match path {
            8 => None,
            9 => Some(base * 10.0),
            10 => Some(base / 10.0),
            _ => Some(base * 1.01),
        };
        for (arm, value) in [("baseline", Some(base)), ("new", ours)] {
            text += &line(&json!({
                "arm": arm, "seed": 1000 + path, "ttlb": value, "content_length": 300_000, "experiment": "x",
            }));
        }
    }
    text
}

#[test]
fn the_page_lists_slow_and_changed_connections_with_their_command() {
    let text = log_of();
    let comparison = read(&text, settings()).expect("a report");
    let lists = comparison.analysis.notable.as_ref().expect("lists");
    let seeds = |list: &[crate::comparison::notable::Notable]| -> Vec<u64> {
        list.iter().map(|one| one.seed).collect()
    };
    // What never completes is slower than all others.
    assert_eq!(seeds(&lists.slowest)[..3], [1008, 1007, 1009]);
    assert_eq!(lists.slowest[0].times, [Some(108_000), None]);
    assert_eq!(
        (seeds(&lists.slower)[0], seeds(&lists.faster)),
        (1009, vec![1010])
    );
    assert_eq!(lists.slower.len(), 5);
    let page = comparison.html();
    assert!(
        page.contains("lastbyte ab 'my exp.toml' --replay 1008 --plot 1008.html")
            || page.contains("lastbyte ab &#39;my exp.toml&#39; --replay 1008 --plot 1008.html")
    );
    let json: Value = serde_json::from_str(&comparison.json()).expect("JSON");
    assert_eq!(json["notable"]["slowest"][0]["seed"], 1008);
    assert!(json["notable"]["slowest"][0]["ttlb_ms"]["new"].is_null());
}

#[test]
fn a_log_that_cannot_be_simulated_again_has_no_list() {
    let comparison = read(&log_of(), quick()).expect("a report");
    assert!(comparison.analysis.notable.is_none());
    assert!(!comparison.html().contains("Connections to look at"));
}
