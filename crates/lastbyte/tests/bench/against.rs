//! `lastbyte bench --against`: two servers in turn.

use std::{fs, process::Stdio};

use super::{
    Place, VERSIONS, bench, certificate, command, count, folder, free_port, interrupt, json,
    refused, schema::check_against, stderr, stdout, wait_for_requests,
};
use crate::serving::Serving;

const SCHEMA: &str = include_str!("../../../../docs/bench-against.schema.json");

/// One server answers at once, the other after 20 ms: each round shows it.
#[test]
fn a_slower_server_has_significant_ratios() {
    let place = Place::new("bench-against");
    for http in VERSIONS {
        let slow = place.server.url("/delay/20ms/1kB");
        let common = ["--http", http, "-c", "8", "-D", "700ms", "--rounds", "3"];
        let more = ["--json", "--plot", "page.html", "--against", &slow];
        let output = place.bench(&[&common[..], &more].concat(), "/1kB");
        assert!(output.status.success(), "{http}: {}", stderr(&output));
        let json = json(&output);
        let found = check_against(SCHEMA, &json);
        assert!(found.is_empty(), "{http}: {}\n{json:#}", found.join("\n"));
        let ratio = |key: &str| json["ratios"][key]["ratio"].as_f64().expect("a ratio");
        assert!(ratio("requests_per_second") > 1.5, "{http}: {json:#}");
        assert!(ratio("latency_p50") < 0.7, "{http}: {json:#}");
        assert_eq!(
            json["ratios"]["requests_per_second"]["is_significant"], true,
            "{json:#}"
        );
        // 280 responses of the slower server have no P99.
        assert_eq!(
            json["ratios"]["latency_p99"],
            serde_json::Value::Null,
            "{json:#}"
        );
        let rounds = json["rounds"].as_array().expect("rounds");
        let order: Vec<&str> = rounds
            .iter()
            .filter_map(|round| round["first"].as_str())
            .collect();
        assert_eq!(order, ["url", "against", "url"]);
        for side in ["url", "against"] {
            let done = |round: &serde_json::Value| count(round, &format!("/{side}/done"));
            assert!(rounds.iter().all(|round| done(round) > 20), "{json:#}");
        }
        assert!(
            json["notes"][0]
                .as_str()
                .is_some_and(|note| note.contains("latency P99 needs 1000"))
        );
        let page = fs::read_to_string(place.folder.join("page.html")).expect("a page");
        for text in ["latency P50 ratio", "--rounds 3", "round 1, against"] {
            assert!(page.contains(text), "{text}");
        }
    }
}

/// Errors of either side are counted and shown; a server without any successful response is an error.
#[test]
fn errors_of_each_side_are_shown() {
    let place = Place::new("bench-against-errors");
    let missing = place.server.url("/none");
    let all = ["-D", "300ms", "--rounds", "2", "--against", &missing];
    let output = place.bench(&all, "/1kB");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let expected = format!("no successful response from {missing}");
    assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    let text = stdout(&output);
    let failed = text.lines().find(|line| line.starts_with("failed "));
    let failed: Vec<&str> = failed.expect("a line").split_whitespace().collect();
    assert!(failed[1] == "0" && failed[2] != "0", "{text}");
    let nowhere = format!("https://localhost:{}/", free_port());
    let output = place.bench(&["-D", "50ms", "--against", &nowhere], "/1kB");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains(&format!("{nowhere}: no response: ")),
        "{}",
        stderr(&output)
    );
    assert_eq!(stdout(&output), "");
}

/// Ctrl-C ends the run after the round in progress, and the output says so.
#[test]
fn an_interrupted_run_ends_after_its_round() {
    let folder = folder("bench-against-interrupted");
    certificate(&folder, "a");
    let flags = ["--cert", "a.pem", "--key", "a.key"];
    let servers = [
        Serving::start(&folder, &flags),
        Serving::start(&folder, &flags),
    ];
    let [own, other] = [0, 1].map(|place: usize| servers[place].url("/1kB"));
    let all = [
        "bench", "--cacert", "a.pem", "-D", "300ms", "--rounds", "1000",
    ];
    let child = command(&folder, &[&all[..], &["--against", &other, &own]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    servers.iter().for_each(wait_for_requests);
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let text = stdout(&output);
    let line = text
        .lines()
        .find(|line| line.starts_with("warning: interrupted after "));
    let words: Vec<&str> = line.expect("a warning").split_whitespace().collect();
    let done: usize = words[3].parse().expect("a number");
    assert_eq!(words[4..], ["of", "1000", "rounds"], "{text}");
    assert!(
        text.contains(&format!("\n{done} rounds of 2 turns of 300ms")),
        "{text}"
    );
    // Nothing is left of a round that was cut short.
    let plain = bench(&folder, &["-n", "5"], &own);
    assert!(plain.status.success(), "{}", stderr(&plain));
}

#[test]
fn invalid_thresholds_and_rounds_are_usage_errors() {
    let folder = folder("bench-against-usage");
    certificate(&folder, "a");
    let cases: &[(&[&str], &str)] = &[
        (
            &["--max-errors", "2.5"],
            "expected a number, or a share from 0% to 100%",
        ),
        (&["--max-p99", "50"], "`50s`"),
        (&["--against", "https://localhost:2/"], "--duration"),
        (&["--rounds", "2"], "--against"),
        (
            &[
                "--against",
                "https://localhost:2/",
                "-D",
                "1s",
                "--rounds",
                "1",
            ],
            "from 2 to 1000",
        ),
        (
            &[
                "--against",
                "https://localhost:2/",
                "-D",
                "1s",
                "--max-errors",
                "0",
            ],
            "cannot be used with",
        ),
        (
            &[
                "--against",
                "https://localhost:2/",
                "-D",
                "1s",
                "https://localhost:1/a",
            ],
            "--against compares one URL with another: 2 URLs (expected one)",
        ),
    ];
    for (arguments, expected) in cases {
        let (code, error) = refused(&folder, arguments, "https://localhost:1/");
        assert_eq!(code, 2, "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
