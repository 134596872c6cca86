//! What a reload changes on the lines of the logs.

use std::{fs, process::Command};

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

/// Nothing would come, and a server that waits for it could not be stopped.
#[test]
fn a_reload_does_not_wait_for_a_pipe() {
    let folder = folder("serve-reload-pipe");
    for file in ["a", "serve.toml"] {
        fs::write(folder.join("a"), experiment("a")).expect("room");
        let text = "experiment = \"a\"\nself-signed = true\n";
        fs::write(folder.join("serve.toml"), text).expect("room");
        let mut serving = Serving::start(&folder, &["--config", "serve.toml"]);
        let path = folder.join(file);
        fs::remove_file(&path).expect("a file");
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo runs").success());
        serving.signal("-HUP");
        serving.until(&format!("error: `{file}`: not a regular file"));
        assert_eq!(serving.end().0, 0, "{file}");
        fs::remove_file(&path).expect("a pipe");
    }
}

/// What a check refuses, a reload refuses; what a reload cannot apply is named, and does not change the hash.
#[test]
fn a_reload_refuses_what_a_check_refuses_and_names_what_needs_a_restart() {
    let folder = folder("serve-reload-restart");
    fs::create_dir_all(folder.join("public")).expect("room");
    fs::write(folder.join("public/a"), "a").expect("room");
    let rest = "self-signed = true\nlog = \"log\"\n";
    let configure = |text: &str| {
        fs::write(folder.join("serve.toml"), format!("{text}{rest}")).expect("room");
    };
    let first = "directory = \"public\"\nheader = [\"x: old\"]\n";
    configure(first);
    let mut serving = Serving::start(&folder, &["--config", "serve.toml"]);
    let header = |serving: &Serving| {
        let got = serving.get(&folder, "/a", &["-i"]);
        let text = String::from_utf8_lossy(&got.stdout).into_owned();
        assert!(got.status.success(), "{}", stderr(&got));
        text.contains("x: old")
    };
    assert!(header(&serving));
    for wrong in [
        "directory = \"pulic\"\n",
        "header = [\"x\"]\n",
        "proxy-ca = \"none\"\n",
        "tcp-congestion = \"nosuch\"\n",
    ] {
        configure(wrong);
        let check = lastbyte(&folder, &["serve", "--config", "serve.toml", "--check"]);
        assert_eq!(check.status.code(), Some(2), "{}", stderr(&check));
        let expected = stderr(&check);
        serving.signal("-HUP");
        let line = serving.until("error: ");
        assert_eq!(line, expected, "{wrong}");
        serving.until("reload failed; keeping the current configuration");
    }
    configure(
        "directory = \"public\"\nheader = [\"x: new\"]\nalt-svc = \"60s\"\ntcp-congestion = \"reno\"\n",
    );
    serving.signal("-HUP");
    let line = serving.until("reloaded: ");
    assert!(
        line.ends_with("; needs a restart: header, alt-svc, tcp-congestion\n"),
        "{line}"
    );
    assert!(header(&serving));
    configure(&format!("congestion = \"cubic\"\n{first}"));
    serving.signal("-HUP");
    let line = serving.until("reloaded: ");
    assert!(!line.contains("restart"), "{line}");
    assert!(header(&serving));
    assert_eq!(serving.end().0, 0);
    let lines = serving::lines(&folder.join("log"));
    let hashes: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["config"].as_str())
        .collect();
    assert_eq!(hashes.len(), 3);
    assert_eq!(hashes[0], hashes[1]);
    assert!(hashes[1] != hashes[2] && line.contains(hashes[2]), "{line}");
}
