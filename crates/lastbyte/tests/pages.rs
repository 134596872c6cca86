//! The reference pages for files and JSON agree with the program: examples run, and every key is documented.

#![expect(
    clippy::disallowed_methods,
    reason = "a test writes the files that the program reads"
)]

use std::{collections::BTreeSet, fs, process::Output};

use serde_json::Value;

#[path = "common/run.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod run;

use run::{folder, lastbyte};

const AB: &str = include_str!("../../../docs/ab.md");
const GET: &str = include_str!("../../../docs/get.md");
const NETWORK: &str = include_str!("../../../docs/network.md");
const REPORT: &str = include_str!("../../../docs/report.md");
const SIM: &str = include_str!("../../../docs/sim.md");

fn stdout(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// The first block of this kind on a page.
fn block<'a>(page: &'a str, kind: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("```{kind}\n")).expect("a block");
    rest.split_once("```").expect("its end").0
}

/// Words in backticks.
fn quoted(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The keys in the first column of a table, between two headings.
fn keys<'a>(page: &'a str, from: &str, to: &str) -> BTreeSet<&'a str> {
    let (_, rest) = page.split_once(from).expect(from);
    let section = rest.split_once(to).map_or(rest, |(section, _)| section);
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.filter_map(|row| row.split('|').nth(1))
        .flat_map(quoted)
        .collect()
}

/// The keys that a file may have, as the error for an unknown one lists them.
fn accepted(errors: &[u8]) -> BTreeSet<String> {
    let errors = String::from_utf8_lossy(errors);
    let (_, list) = errors.split_once("(expected ").expect(&errors);
    let (list, _) = list.split_once(')').expect(&errors);
    list.split(", ").map(str::to_owned).collect()
}

fn owned(keys: &BTreeSet<&str>) -> BTreeSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

#[test]
fn the_example_of_a_network_file_can_be_simulated() {
    let folder = folder("pages-network");
    fs::write(folder.join("cellular.toml"), block(NETWORK, "toml")).expect("a file");
    let arguments = ["sim", "--network", "cellular.toml", "--arm", "cubic"];
    let text = stdout(&lastbyte(&folder, &arguments));
    assert!(text.starts_with("400kB over cellular: "), "{text}");
    fs::write(folder.join("up.trace"), "1\n2\n2\n").expect("a trace");
    let arguments = [
        "sim",
        "--rate-trace",
        "up.trace",
        "--rtt",
        "60ms",
        "--arm",
        "cubic",
    ];
    let text = stdout(&lastbyte(&folder, &arguments));
    assert!(text.contains("rate of a trace"), "{text}");
}

#[test]
fn every_key_of_a_network_file_is_documented() {
    let folder = folder("pages-network-keys");
    for (text, from, to) in [
        (
            "nothing = 1\n",
            "## Keys of the path",
            "## Keys of a direction",
        ),
        (
            "[down]\nnothing = 1\n",
            "## Keys of a direction",
            "## Queue disciplines",
        ),
    ] {
        fs::write(folder.join("wrong.toml"), text).expect("a file");
        let output = lastbyte(&folder, &["sim", "--network", "wrong.toml"]);
        assert_eq!(output.status.code(), Some(2));
        let documented: BTreeSet<String> = keys(NETWORK, from, to)
            .iter()
            .map(|key| key.trim_matches(['[', ']']).to_owned())
            .collect();
        assert_eq!(accepted(&output.stderr), documented);
    }
}

#[test]
fn the_example_of_an_experiment_file_can_be_run() {
    let folder = folder("pages-ab");
    fs::write(folder.join("mine.toml"), block(AB, "toml")).expect("a file");
    let arguments = ["ab", "mine.toml", "--connections", "8", "--json"];
    let text = stdout(&lastbyte(&folder, &arguments));
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["experiment"], "newreno-or-bbr");
    assert_eq!(value["seed"], 7);
    let documented = keys(AB, "## JSON", "\n## ");
    let object = value.as_object().expect("an object");
    for key in object.keys() {
        assert!(documented.contains(key.as_str()), "{key}");
    }
    for key in value["arms"][0].as_object().expect("an object").keys() {
        assert!(
            documented.contains(format!("arms[].{key}").as_str()),
            "{key}"
        );
    }
    let report = lastbyte(&folder, &["report", "ab/conns.ndjson", "--json"]);
    let value: Value = serde_json::from_str(&stdout(&report)).expect("JSON");
    let (_, section) = REPORT.split_once("## JSON").expect("a section");
    let documented = quoted(section);
    let objects = [&value, &value["groups"][0], &value["groups"][0]["arms"][0]];
    let more = [
        &value["loss_percent"][0],
        &value["loss_percent"][0]["arms"][0],
    ];
    for object in objects.into_iter().chain(more) {
        for key in object.as_object().expect("an object").keys() {
            assert!(documented.contains(key.as_str()), "{key}");
        }
    }
}

#[test]
fn every_key_of_an_experiment_file_is_documented() {
    let folder = folder("pages-ab-keys");
    for (text, from, to) in [
        ("nothing = 1\n", "| key | default | |", "| key of an arm"),
        (
            "name = \"x\"\n[[arms]]\nnothing = 1\n",
            "| key of an arm",
            "## JSON",
        ),
    ] {
        fs::write(folder.join("wrong.toml"), text).expect("a file");
        let output = lastbyte(&folder, &["ab", "wrong.toml"]);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(accepted(&output.stderr), owned(&keys(AB, from, to)));
    }
}

#[test]
fn every_json_key_of_sim_is_documented() {
    let folder = folder("pages-sim");
    let arguments = ["sim", "--arm", "cubic", "--size", "20kB", "--requests", "2"];
    let arguments = [&arguments[..], &["--progress", "10kB", "--json"]].concat();
    let text = stdout(&lastbyte(&folder, &arguments));
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let printed = value[0].as_object().expect("an object").keys();
    let mut printed: BTreeSet<&str> = printed.map(String::as_str).collect();
    // Only of connections that fail.
    printed.insert("failure");
    assert_eq!(printed, keys(SIM, "### JSON", "\n## "));
}

/// The keys of `get --timing=json` that need no connection are all keys: the others are `null`.
#[test]
fn every_json_key_of_get_is_documented() {
    let folder = folder("pages-get");
    let url = "https://127.0.0.1:1/";
    let arguments = ["get", "-s", "--timing=json", "--connect-timeout", "1", url];
    let output = lastbyte(&folder, &arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let (_, section) = GET.split_once("\n## Timing").expect("a section");
    let documented = quoted(section.split_once("\n## ").expect("its end").0);
    let printed = value["fetches"][0].as_object().expect("an object");
    assert!(printed.len() > 20, "{text}");
    for key in printed.keys() {
        assert!(documented.contains(key.as_str()), "{key}");
    }
}
