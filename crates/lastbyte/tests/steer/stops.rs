//! The file `stop`, whatever else is wrong.

use std::{fs, os::unix::fs::symlink};

use super::{FIRST, PLAN, Ramp, serving::stderr};

const WITHOUT_ARM: &str = "name = \"new\"\nspec = \"rapid-start\"\nshare = 0\n\n[[arms]]\nname = \"old\"\nspec = \"cubic:initial-window=10p\"\nshare = 1\n";

#[test]
fn a_stop_needs_no_plan() {
    for (number, plan) in [
        // The other arm is the baseline now.
        PLAN.replace("baseline = 'old'", "baseline = 'new'"),
        PLAN.replace("name = 'new'", "name = 'newer'"),
        PLAN.replace("[plan]", "[plan"),
        String::new(),
    ]
    .iter()
    .enumerate()
    {
        let ramp = Ramp::new(&format!("steer-stop-{number}"));
        fs::write(ramp.folder.join("ramp.toml"), plan).expect("room");
        if plan.is_empty() {
            fs::remove_file(ramp.folder.join("ramp.toml")).expect("it is there");
        }
        fs::write(ramp.folder.join("state/stop"), "enough").expect("room");
        for _ in 0..2 {
            let output = ramp.steer(&["missing"]);
            assert!(output.status.success(), "{plan}: {}", stderr(&output));
            assert_eq!(ramp.decisions().len(), 2, "{plan}");
            assert_eq!(ramp.decisions()[1]["action"], "stopped");
            assert!(
                ramp.experiment().contains(WITHOUT_ARM),
                "{}",
                ramp.experiment()
            );
        }
    }
}

/// With the plan of the ramp, a stop does not depend on the file that servers read; without both, it says that they do not have it.
#[test]
fn a_stop_is_by_the_plan_whatever_the_experiment_file_is() {
    let baseline = |text: &str| text.replace("baseline = \"old\"", "baseline = \"new\"");
    for (number, edited) in [Some("new"), Some(""), Some("[["), None].iter().enumerate() {
        let ramp = Ramp::new(&format!("steer-stop-file-{number}"));
        let file = ramp.folder.join("state/experiment.toml");
        match edited {
            Some("new") => fs::write(&file, baseline(&ramp.experiment())).expect("room"),
            Some(text) => fs::write(&file, text).expect("room"),
            None => fs::remove_file(&file).expect("it is there"),
        }
        fs::write(ramp.folder.join("state/stop"), "enough").expect("room");
        let output = ramp.steer(&[]);
        assert!(output.status.success(), "{edited:?}: {}", stderr(&output));
        assert_eq!(ramp.decisions()[1]["action"], "stopped");
        let text = ramp.experiment();
        assert!(text.contains(WITHOUT_ARM), "{edited:?}: {text}");
        assert!(
            !baseline(&text).eq(&text),
            "the baseline is that of the plan: {text}"
        );
    }
    let ramp = Ramp::new("steer-stop-no-file");
    fs::remove_file(ramp.folder.join("state/experiment.toml")).expect("it is there");
    fs::remove_file(ramp.folder.join("ramp.toml")).expect("it is there");
    fs::write(ramp.folder.join("state/stop"), "enough").expect("room");
    let output = ramp.steer(&[]);
    assert_eq!(output.status.code(), Some(1));
    let errors = stderr(&output);
    assert!(
        errors.contains("the stop is recorded, but servers do not have it"),
        "{errors}"
    );
    assert_eq!(ramp.decisions()[1]["action"], "stopped");
}

/// A name that cannot be removed does not keep a look from its decision.
#[test]
fn a_directory_in_place_of_lost_blocks_no_decision() {
    let ramp = Ramp::new("steer-lost-directory");
    fs::create_dir(ramp.folder.join("state/lost")).expect("room");
    fs::write(ramp.folder.join("a.ndjson"), "").expect("room");
    ramp.steer(&["a.ndjson"]);
    assert_eq!(ramp.decisions().len(), 2);
}

#[test]
fn a_link_is_a_stop_and_is_not_read() {
    for (name, target) in [("steer-link", "/etc/passwd"), ("steer-dangling", "nothing")] {
        let ramp = Ramp::new(name);
        symlink(target, ramp.folder.join("state/stop")).expect("a link");
        let output = ramp.steer(&[]);
        assert!(output.status.success(), "{}", stderr(&output));
        let last = ramp.decisions().pop().expect("a look");
        let rule = last["rule"].as_str().expect("a rule");
        assert!(
            rule.starts_with("the file `stop` of user ") && rule.ends_with(" is there"),
            "{rule}"
        );
        assert!(
            ramp.experiment().contains(WITHOUT_ARM),
            "{}",
            ramp.experiment()
        );
    }
}

/// Copies among many lines that do not count.
#[test]
fn copies_of_the_lines_that_count_are_refused() {
    let mut ramp = Ramp::new("steer-few-copies");
    ramp.hour(FIRST, 0.1, 1.0);
    let lines: Vec<&str> = ramp.log.lines().collect();
    let earlier: String = (0..100)
        .flat_map(|round| {
            lines.iter().map(move |line| {
                let line = line.replace(&format!("-{FIRST}"), "-77");
                line.replace("\"conn_id\":", &format!("\"conn_id\":{}", round + 10)) + "\n"
            })
        })
        .collect();
    fs::write(ramp.folder.join("earlier"), earlier).expect("room");
    fs::write(ramp.folder.join("copy"), &ramp.log).expect("room");
    ramp.refused(
        &["earlier", "log", "copy"],
        "about 50 % of the lines are copies of others",
    );
    let output = ramp.steer(&["earlier", "log"]);
    assert!(output.status.success(), "{}", stderr(&output));
}
