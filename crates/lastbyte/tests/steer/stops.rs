//! The file `stop`, whatever else is wrong.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    process::Command,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
};

use flate2::{Compression, write::GzEncoder};

use super::{
    FIRST, PLAN, Ramp, WITHOUT_ARM,
    serving::{PATIENCE, Serving, folder, stderr},
    write_plan_with_state,
};

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
            ramp.has_no_arm();
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
        ramp.has_no_arm();
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

/// A server ends in spite of a look at a log that has no end within the hour: 64 GiB of empty lines.
#[test]
fn a_shutdown_does_not_wait_for_a_look() {
    let folder = folder("steer-shutdown");
    write_plan_with_state(&folder, "state");
    let mut part = GzEncoder::new(Vec::new(), Compression::best());
    part.write_all(&vec![b'\n'; 16 << 20]).expect("memory");
    let part = part.finish().expect("memory");
    let log = folder.join("log.1.gz");
    fs::write(&log, part.repeat(4096)).expect("room");
    let options = ["--self-signed", "--experiment", "ramp.toml", "--log", "log"];
    let options = [&options[..], &["--drain", "1s"]].concat();
    let serving = Serving::start(&folder, &options);
    let id = serving.process.child.id();
    let (ended, is_ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        if is_ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let _ = Command::new("kill")
                .args(["-KILL", &id.to_string()])
                .status();
        }
    });
    let is_read = || {
        let files = fs::read_dir(format!("/proc/{id}/fd")).expect("it runs");
        let mut files = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
        files.any(|file| file == log)
    };
    while !is_read() {
        thread::yield_now();
    }
    serving.process.signal("-TERM");
    let (code, printed) = serving.process.wait();
    drop(ended);
    assert_eq!(code, Some(0), "{printed}");
}
