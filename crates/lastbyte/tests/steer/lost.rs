//! Decisions that are lost, and files that are not what they should be: no share grows, and the file `stop` takes the arm away.

use std::{fs, process::Command};

use super::{
    FIRST, PLAN, Ramp, WITHOUT_ARM, disk,
    serving::{lastbyte, stderr},
};

/// A ramp that harm ended, and its decisions.
fn harmed(name: &str) -> (Ramp, String) {
    let mut ramp = Ramp::new(name);
    for _ in 0..2 {
        ramp.hour(FIRST, 0.1, 1.5);
    }
    assert_eq!(ramp.look()["action"], "stop-harm");
    let path = ramp.folder.join("state/decisions.ndjson");
    let decisions = fs::read_to_string(path).expect("decisions");
    (ramp, decisions)
}

fn stop(ramp: &Ramp) {
    fs::write(ramp.folder.join("state/stop"), "enough").expect("room");
}

#[test]
fn an_end_that_was_cut_off_does_not_bring_the_arm_back() {
    let (mut ramp, decisions) = harmed("steer-end-cut-off");
    let path = ramp.folder.join("state/decisions.ndjson");
    let (first, _) = decisions.split_once('\n').expect("two");
    fs::write(&path, format!("{first}\n")).expect("room");
    let expected = "`state/experiment.toml` is of epoch 1599996601, and no decision that is there wrote it (expected all decisions";
    for arguments in [&["log"][..], &[]] {
        ramp.refused(arguments, expected);
    }
    let verified = ramp.steer(&["log", "--verify"]);
    assert_eq!(verified.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(printed.contains(expected), "{printed}");
    ramp.has_no_arm();
    // The file is lost, too: servers that had it wrote lines.
    ramp.hour(FIRST + 1, 0.0, 1.0);
    fs::remove_file(ramp.folder.join("state/experiment.toml")).expect("it is there");
    let expected = "the logs have lines of epoch 1599996601, and the last decision is of epoch 1599996600 (expected all decisions";
    ramp.refused(&["log"], expected);
    let verified = ramp.steer(&["log", "--verify"]);
    let printed = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(
        printed.contains("the logs have lines of epoch 1599996601, whose decision is missing"),
        "{printed}"
    );
    let partial = ["steer", "--partial", "log", "--plan", "ramp.toml"];
    let state = lastbyte(&ramp.folder, &partial);
    fs::write(ramp.folder.join("log.state"), state.stdout).expect("room");
    ramp.refused(&["--merge", "log.state"], expected);
    stop(&ramp);
    let output = ramp.steer(&["log"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(ramp.decisions()[1]["action"], "stopped");
    ramp.has_no_arm();
}

/// A stop, with the plan, with another, and without one.
#[test]
fn a_stop_without_readable_decisions_takes_the_arm_away() {
    for (number, (decisions, plan)) in [
        (None, true),
        (Some(""), true),
        (Some("{\"look\":0,"), true),
        (Some("none\n"), true),
        (None, false),
    ]
    .into_iter()
    .enumerate()
    {
        let ramp = Ramp::new(&format!("steer-stop-alone-{number}"));
        let path = ramp.folder.join("state/decisions.ndjson");
        match decisions {
            Some(text) => fs::write(&path, text).expect("room"),
            None => fs::remove_file(&path).expect("it is there"),
        }
        if !plan {
            fs::remove_file(ramp.folder.join("ramp.toml")).expect("it is there");
        }
        stop(&ramp);
        for _ in 0..2 {
            let output = ramp.steer(&["missing"]);
            let error = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{error}");
            assert!(
                error.contains("the arm has no connections in `state/experiment.toml` now, which is not recorded"),
                "{error}"
            );
            let text = ramp.experiment();
            assert!(
                text.contains(WITHOUT_ARM) && text.contains("epoch = 1599996601\n"),
                "{text}"
            );
            assert_eq!(fs::read_to_string(&path).ok().as_deref(), decisions);
        }
        fs::remove_file(ramp.folder.join("state/stop")).expect("it is there");
        if plan {
            let output = ramp.steer(&["log"]);
            assert!(!output.status.success(), "{}", stderr(&output));
            ramp.has_no_arm();
        }
    }
}

/// Of another ramp of this name, whose baseline is the arm of this one.
#[test]
fn a_stop_without_decisions_is_not_by_the_plan() {
    let ramp = Ramp::new("steer-stop-other-plan");
    fs::remove_file(ramp.folder.join("state/decisions.ndjson")).expect("it is there");
    let other = PLAN.replace("baseline = 'old'", "baseline = 'new'");
    fs::write(ramp.folder.join("ramp.toml"), other).expect("room");
    stop(&ramp);
    let output = ramp.steer(&[]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    ramp.has_no_arm();
}

/// A look of another process takes long, or the lock is no file: servers do not wait. The plan is a pipe.
#[test]
fn a_stop_does_not_wait_for_the_lock_or_the_plan() {
    for number in 0..3 {
        let ramp = Ramp::new(&format!("steer-stop-locked-{number}"));
        let path = ramp.folder.join("state/lock");
        let lock = fs::File::open(&path).expect("a lock");
        let plan = ramp.folder.join("ramp.toml");
        match number {
            0 => lock.lock().expect("free"),
            1 => {
                fs::remove_file(&path).expect("it is there");
                fs::create_dir(&path).expect("room");
            }
            _ => {
                fs::remove_file(&plan).expect("it is there");
                let made = Command::new("mkfifo").arg(&plan).status();
                assert!(made.is_ok_and(|status| status.success()));
            }
        }
        stop(&ramp);
        let output = Command::new("timeout")
            .args(["60", env!("CARGO_BIN_EXE_lastbyte"), "steer"])
            .args(["--plan", "ramp.toml", "--state", "state"])
            .current_dir(&ramp.folder)
            .output()
            .expect("`timeout` runs");
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(i32::from(number < 2)), "{error}");
        ramp.has_no_arm();
        let recorded = ramp.decisions().len();
        assert_eq!(recorded, if number < 2 { 1 } else { 2 }, "{error}");
    }
}

/// A decision that was recorded and not published, and a stop that is published and not recorded, are of different epochs.
#[test]
fn a_stop_is_of_an_epoch_after_all_others() {
    let mut ramp = Ramp::new("steer-stop-epoch");
    let before = ramp.experiment();
    for _ in 0..2 {
        ramp.hour(FIRST, 0.1, 0.85);
    }
    assert_eq!(ramp.look()["action"], "ramp");
    let path = ramp.folder.join("state/decisions.ndjson");
    let decisions = fs::read_to_string(&path).expect("decisions");
    fs::write(ramp.folder.join("state/experiment.toml"), before).expect("room");
    stop(&ramp);
    let lock = fs::File::open(ramp.folder.join("state/lock")).expect("a lock");
    lock.lock().expect("free");
    ramp.refused(&["log"], "which is not recorded");
    drop(lock);
    let stopped = ramp.experiment();
    assert!(
        stopped.contains("epoch = 1599996602\n") && stopped.contains(WITHOUT_ARM),
        "{stopped}"
    );
    fs::remove_file(ramp.folder.join("state/stop")).expect("it is there");
    ramp.refused(
        &["log"],
        "is of epoch 1599996602, and no decision that is there wrote it",
    );
    // Cut off: the decision of the second epoch.
    let (first, _) = decisions.split_once('\n').expect("two");
    fs::write(&path, format!("{first}\n")).expect("room");
    stop(&ramp);
    let output = ramp.steer(&["log"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(ramp.decisions()[1]["epoch"], FIRST + 2);
    // The same, where servers may have its shares.
    let published = ramp.experiment().replace("share = 0\n", "share = 0.5\n");
    fs::write(ramp.folder.join("state/experiment.toml"), published).expect("room");
    fs::write(&path, format!("{first}\n")).expect("room");
    let output = ramp.steer(&["log"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(ramp.decisions()[1]["epoch"], FIRST + 3);
}

/// A disk without room for a line, and without room for any file.
#[test]
fn a_stop_on_a_full_disk_takes_the_arm_away() {
    let ramp = Ramp::new("steer-stop-full");
    let path = ramp.folder.join("state/decisions.ndjson");
    stop(&ramp);
    let at_start = ramp.experiment();
    let len = fs::metadata(&path).expect("a file").len();
    for limit in [len, 0] {
        fs::write(ramp.folder.join("state/experiment.toml"), &at_start).expect("room");
        // What is overwritten in place may be as long as it was.
        let in_place = if limit == 0 {
            at_start.len() as u64
        } else {
            limit
        };
        let full = Command::new("prlimit")
            .arg(format!("--fsize={in_place}"))
            .args([
                "env",
                "--ignore-signal=XFSZ",
                env!("CARGO_BIN_EXE_lastbyte"),
            ])
            .args(["steer", "--plan", "ramp.toml", "--state", "state"])
            .current_dir(&ramp.folder)
            .output()
            .expect("`prlimit` runs");
        let error = stderr(&full);
        assert_eq!(full.status.code(), Some(1), "{error}");
        assert!(
            error.contains("cannot write `state/decisions.ndjson`"),
            "{error}"
        );
        assert!(error.contains("which is not recorded"), "{error}");
        ramp.has_no_arm();
        assert_eq!(ramp.decisions().len(), 1);
    }
    // It is not forgotten when its file is gone, and recorded once there is room.
    fs::remove_file(ramp.folder.join("state/stop")).expect("it is there");
    ramp.refused(&["log"], "and no decision that is there wrote it");
    stop(&ramp);
    let output = ramp.steer(&[]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(ramp.decisions()[1]["action"], "stopped");
}

/// Overwriting needs no room on the disk: nothing else has any.
#[test]
fn a_stop_on_a_disk_without_a_free_byte_takes_the_arm_away() {
    let ramp = Ramp::new("steer-stop-no-byte");
    if !disk::can_mount() {
        return;
    }
    let state = ramp.folder.join("state");
    stop(&ramp);
    // The last page of the decisions has no room for another one.
    let path = state.join("decisions.ndjson");
    let missing = 8192 - 100 - fs::metadata(&path).expect("a file").len() as usize;
    ramp.edit(|look| look.replacen("first stage", &"x".repeat(missing), 1));
    fs::rename(&state, ramp.folder.join("outside")).expect("a name");
    fs::create_dir(&state).expect("room");
    let script = "mount -t tmpfs -o size=64k none state && cp outside/* state/ \
        && (cat /dev/zero >state/filler 2>/dev/null; true); \
        \"$0\" steer log --plan ramp.toml --state state; code=$?; \
        rm -rf left; mkdir left; cp state/*.* left/; exit $code";
    let output = disk::with_mounts(&ramp.folder, script, "");
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("No space left on device") && error.contains("which is not recorded"),
        "{error}"
    );
    let left = fs::read_to_string(ramp.folder.join("left/experiment.toml")).expect("a file");
    assert!(left.contains(WITHOUT_ARM), "{left}");
}

/// A server that was killed while it wrote, and others that go on.
#[test]
fn a_torn_line_is_left_out_and_many_hold_the_ramp() {
    let mut ramp = Ramp::new("steer-torn-line");
    for _ in 0..2 {
        ramp.hour(FIRST, 0.1, 0.85);
    }
    let whole = ramp.log.clone();
    let torn = |count: usize| {
        let mut lines: Vec<&str> = whole.lines().collect();
        for line in lines.iter_mut().skip(7).step_by(100).take(count) {
            *line = &line[..line.len() / 2];
        }
        lines.join("\n") + "\n"
    };
    fs::write(ramp.folder.join("log"), torn(10)).expect("room");
    let output = ramp.steer(&["log"]);
    let error = stderr(&output);
    assert!(
        error.contains("skipped 10 lines that are not JSON; the first: log: "),
        "{error}"
    );
    let held = ramp.decisions().pop().expect("a look");
    assert_eq!(held["action"], "hold", "{held}");
    assert!(
        held["rule"].as_str().is_some_and(|rule| rule
            .starts_with("0 lines of the future and 10 that are not JSON objects, else ramp: ")),
        "{held}"
    );
    let verified = ramp.steer(&["log", "--verify"]);
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stdout)
    );
    fs::write(ramp.folder.join("log"), torn(2) + "{\"torn").expect("room");
    let output = ramp.steer(&["log"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(ramp.decisions().pop().expect("a look")["action"], "ramp");
}
