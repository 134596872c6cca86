//! What a reload changes on the lines of the logs.

use std::fs;

use super::serving::{self, Serving, folder, lastbyte, stderr};

/// The experiment of a file, whose name is not the file's.
fn experiment(name: &str) -> String {
    format!(
        "name = \"{name}\"\n[[arms]]\nname = \"base\"\nspec = \"cubic\"\n[[arms]]\nname = \"new\"\nspec = \"newreno\"\n"
    )
}

/// In all three directions; a report over both sides is refused.
#[test]
fn a_reload_carries_the_experiment_and_its_absence_to_every_line() {
    let folder = folder("serve-reload-experiment");
    for name in ["a", "b"] {
        fs::write(folder.join(name), experiment(name)).expect("room");
    }
    let (a, b, none) = (
        "experiment = \"a\"",
        "experiment = \"b\"",
        "congestion = \"newreno\"",
    );
    for (first, second, refused) in [
        ((a, Some("a")), (none, None), "(a, none)"),
        ((none, None), (a, Some("a")), "(a, none)"),
        ((a, Some("a")), (b, Some("b")), "(a, b)"),
    ] {
        for log in ["log", "access"] {
            // From the direction before.
            let _ = fs::remove_file(folder.join(log));
        }
        let rest = "self-signed = true\nlog = \"log\"\naccess-log = \"access\"\n";
        let configure = |which: &str| {
            let text = format!("{which}\n{rest}");
            fs::write(folder.join("serve.toml"), text).expect("room");
        };
        configure(first.0);
        let mut serving = Serving::start(&folder, &["--config", "serve.toml"]);
        let get = |serving: &Serving| {
            let got = serving.get(&folder, "/1000", &["-o", "/dev/null"]);
            assert!(got.status.success(), "{}", stderr(&got));
        };
        get(&serving);
        configure(second.0);
        serving.signal("-HUP");
        serving.until("reloaded: arms");
        get(&serving);
        assert_eq!(serving.end().0, 0);
        for log in ["log", "access"] {
            let lines = serving::lines(&folder.join(log));
            let found: Vec<Option<&str>> = lines
                .iter()
                .map(|line| line["experiment"].as_str())
                .collect();
            assert_eq!(found, [first.1, second.1], "{log}: {lines:?}");
            for line in lines {
                let arm = line["arm"].as_str().expect("an arm");
                let is_of_experiment = ["base", "new"].contains(&arm);
                assert_eq!(is_of_experiment, line["experiment"].is_string(), "{line}");
            }
        }
        let report = lastbyte(&folder, &["report", "log", "--min-size", "0"]);
        let error = stderr(&report);
        assert_eq!(report.status.code(), Some(1), "{error}");
        let expected = format!("lines of several experiments {refused}");
        assert!(error.contains(&expected), "{error}");
    }
}
