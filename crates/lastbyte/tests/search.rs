//! `lastbyte search` as people use it, and as they misuse it.

use std::process::{Command, Output};

use serde_json::Value;

fn search(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lastbyte"))
        .arg("search")
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn stdout(arguments: &[&str]) -> String {
    let output = search(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// An initial window of 2 packets is far slower than one of 30 on nearly every path.
#[test]
fn a_search_finds_what_is_faster_and_checks_it_on_other_paths() {
    let arguments = [
        "cubic",
        "--key",
        "initial-window=2p,30p",
        "--paths",
        "100",
        "--neighbour",
        "cbr:1mbit",
        "--json",
    ];
    let json: Value = serde_json::from_str(&stdout(&arguments)).expect("JSON");
    let [slow, fast] = json["candidates"]
        .as_array()
        .expect("candidates")
        .as_slice()
    else {
        panic!("two candidates");
    };
    assert_eq!(slow["keys"], "initial-window=2p");
    let change = |one: &Value, what: &str| one[what]["ttlb_change"][0].as_f64();
    assert!(change(slow, "result") > Some(0.2), "{json:#}");
    assert_eq!(fast["front"], true);
    // It is the baseline, whatever the paths.
    assert_eq!(
        (change(fast, "result"), change(fast, "held_out")),
        (Some(0.0), Some(0.0))
    );
    assert_eq!(fast["held_out_paths"], 100);
    assert!(fast["result"]["neighbour_rate_change"].is_array());
}

#[test]
fn the_same_seed_gives_the_same_output_on_any_number_of_threads() {
    let of = |jobs: &str, seed: &str| {
        stdout(&[
            "rapid-start",
            "--key",
            "initial-window=10p,40p",
            "--key",
            "startup-beta=0.5,0.7",
            "--paths",
            "20",
            "--jobs",
            jobs,
            "--seed",
            seed,
            "--max-loss",
            "2%",
        ])
    };
    let one = of("1", "1");
    assert_eq!(one, of("3", "1"));
    assert_ne!(one, of("3", "2"));
    assert!(
        one.contains("4 candidates against rapid-start") && one.contains("Held out"),
        "{one}"
    );
}

#[test]
fn a_name_is_not_part_of_the_spec() {
    for (spec, name) in [
        ("ten=cubic:beta=0.7", "ten"),
        (" cubic:beta=0.7", "cubic:beta=0.7"),
    ] {
        let words = [
            spec,
            "--paths",
            "2",
            "--key",
            " initial-window=10p",
            "--json",
        ];
        let json: Value = serde_json::from_str(&stdout(&words)).expect("JSON");
        assert_eq!(json["spec"], "cubic:beta=0.7");
        assert_eq!(json["baseline"], name);
        assert_eq!(json["candidates"][0]["keys"], "initial-window=10p");
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let wrong = |arguments: &[&str], text: &str| {
        let output = search(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(text), "{errors}");
    };
    wrong(
        &["cubic", "--key", "initial-window"],
        "expected KEY=VALUE,…",
    );
    wrong(
        &["cubic", "--key", "beta=0.7,0.7"],
        "`beta=0.7` is given twice",
    );
    wrong(
        &["cubic", "--key", "beta=0.7", "--key", "beta=0.8"],
        "`beta` is given twice",
    );
    wrong(
        &["cubic", "--key", "beta=0.7", "--key", " beta=0.8"],
        "`beta` is given twice",
    );
    wrong(&["cubic", "--key", "gamma=1"], "gamma");
    wrong(
        &["cubic bbr", "--key", "beta=0.7"],
        "SPEC: unknown congestion control `cubic bbr` (expected ",
    );
    wrong(
        &["cubic", "--key", "beta=0.7", "--max-harm", "2%"],
        "--neighbour",
    );
    wrong(
        &["cubic", "--key", "beta=0.7", "--population", "no.toml"],
        "no.toml",
    );
    let values: Vec<String> = (1..=257).map(|packets| format!("{packets}p")).collect();
    let output = search(&[
        "cubic",
        "--key",
        &format!("initial-window={}", values.join(",")),
    ]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("257 combinations (expected at most 256)"),
        "{errors}"
    );
}
