//! A disk that fills in the middle of a decision, and a process that is killed there.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use super::{FIRST, Ramp, serving::stderr};

/// Bytes of a disk come in pages.
const PAGE: u64 = 4096;

/// Whether a small disk can be mounted. Otherwise the test is skipped.
pub(super) fn can_mount() -> bool {
    let mounted = Command::new("unshare")
        .args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"])
        .output();
    let can = mounted.is_ok_and(|output| output.status.success());
    if !can {
        lastbyte_testkit::skip("no file system can be mounted");
    }
    can
}

/// Runs a script in the folder, in a namespace where it can mount. `$0` is the program, and `$1` a word.
pub(super) fn with_mounts(folder: &Path, script: &str, word: &str) -> Output {
    Command::new("unshare")
        .args([
            "-rm",
            "sh",
            "-c",
            script,
            env!("CARGO_BIN_EXE_lastbyte"),
            word,
        ])
        .current_dir(folder)
        .output()
        .expect("`unshare` runs")
}

/// The names and contents of the directory of decisions.
fn contents(state: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(state).expect("a directory");
    let read = |name: String| {
        let bytes = fs::read(state.join(&name)).expect("a file");
        (name, bytes)
    };
    let names = files.map(|file| file.expect("a file").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut contents: Vec<_> = names.map(read).collect();
    contents.sort();
    contents
}

fn put(state: &Path, contents: &[(String, Vec<u8>)]) {
    fs::remove_dir_all(state).expect("it is there");
    fs::create_dir(state).expect("room");
    for (name, bytes) in contents {
        fs::write(state.join(name), bytes).expect("room");
    }
}

/// The last look without the time at which it was made, and the sum, which depends on it.
fn decided(ramp: &Ramp) -> serde_json::Value {
    let mut look = ramp.decisions().pop().expect("a look");
    for key in ["at", "sum"] {
        look.as_object_mut().expect("an object").remove(key);
    }
    look
}

/// A ramp whose next look starts the second stage, and does not fit in the last page of its decisions.
fn before_the_second_stage(name: &str) -> Ramp {
    let mut ramp = Ramp::new(name);
    ramp.hour(FIRST, 0.1, 0.85);
    let decisions = ramp.folder.join("state/decisions.ndjson");
    while fs::metadata(&decisions).expect("looks").len() % PAGE < PAGE - 500 {
        assert_eq!(ramp.look()["action"], "hold");
    }
    ramp.hour(FIRST, 0.1, 0.85);
    ramp
}

/// A look where no file can be longer than `limit` bytes. A process that does not ignore the signal is killed when it writes more.
fn look_within(ramp: &Ramp, limit: usize, is_killed: bool) -> Output {
    let signal = if is_killed {
        "--default-signal=XFSZ"
    } else {
        "--ignore-signal=XFSZ"
    };
    let mut command = Command::new("prlimit");
    command.arg(format!("--fsize={limit}"));
    command.args(["env", signal, env!("CARGO_BIN_EXE_lastbyte")]);
    command.args(["steer", "log", "--plan", "ramp.toml", "--state", "state"]);
    command
        .current_dir(&ramp.folder)
        .output()
        .expect("`prlimit` runs")
}

#[test]
fn a_decision_that_is_cut_off_at_any_byte_does_not_count() {
    let ramp = before_the_second_stage("steer-cut-off");
    let state = ramp.folder.join("state");
    let before = contents(&state);
    let published = ramp.experiment();
    assert_eq!(ramp.look()["action"], "ramp");
    let (after, expected) = (ramp.shares(), decided(&ramp));
    let size = |path: &str| fs::metadata(state.join(path)).expect("a file").len() as usize;
    let whole = size("decisions.ndjson");
    let (_, earlier) = before
        .iter()
        .find(|(name, _)| name == "decisions.ndjson")
        .expect("looks");
    let steps = (earlier.len()..whole).step_by(131).chain([whole - 1]);
    for (number, limit) in steps.enumerate() {
        put(&state, &before);
        let is_killed = number % 2 == 0;
        let output = look_within(&ramp, limit, is_killed);
        assert!(!output.status.success(), "{limit}: {}", stderr(&output));
        if !is_killed {
            let error = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{error}");
            assert!(
                error.contains("cannot write `state/decisions.ndjson`"),
                "{error}"
            );
        }
        assert_eq!(
            size("decisions.ndjson"),
            limit,
            "the limit is where it was cut off"
        );
        assert_eq!(ramp.experiment(), published, "{limit}: the shares changed");
        assert_eq!(ramp.look()["action"], "ramp");
        assert_eq!(
            (decided(&ramp), ramp.shares()),
            (expected.clone(), after.clone())
        );
    }
}

#[test]
fn a_full_disk_leaves_the_decision_or_the_file_for_the_next_look() {
    let ramp = before_the_second_stage("steer-full-disk");
    let state = ramp.folder.join("state");
    if !can_mount() {
        return;
    }
    fs::rename(&state, ramp.folder.join("outside")).expect("a name");
    fs::create_dir(&state).expect("room");
    // A page is for each small file. What is left on the disk is copied to where the test sees it.
    let script = "mount -t tmpfs -o size=64k none state && cp outside/* state/ \
        && (cat /dev/zero >state/filler 2>/dev/null; truncate -s -\"$1\" state/filler); \
        \"$0\" steer log --plan ramp.toml --state state; code=$?; \
        rm state/filler; rm -rf left; mkdir left; cp state/* left/; exit $code";
    let mut failures = Vec::new();
    for pages in 0..6 {
        let output = with_mounts(&ramp.folder, script, &(pages * PAGE).to_string());
        let error = stderr(&output);
        let left = contents(&ramp.folder.join("left"));
        put(&state, &left);
        if output.status.success() {
            assert_eq!(decided(&ramp)["action"], "ramp", "{error}");
        } else {
            assert_eq!(output.status.code(), Some(1), "{error}");
            assert!(error.contains("No space left on device"), "{error}");
            failures.push(if error.contains("decisions.ndjson") {
                "decision"
            } else {
                "file"
            });
            assert!(
                ramp.experiment().contains("epoch = 1599996600\n"),
                "{}",
                ramp.experiment()
            );
        }
        ramp.look();
        let ramps = ramp.decisions();
        let ramps = ramps.iter().filter(|look| look["action"] == "ramp");
        assert_eq!(ramps.count(), 1);
        assert!(
            ramp.experiment().contains("epoch = 1599996601\n"),
            "{}",
            ramp.experiment()
        );
    }
    failures.dedup();
    assert_eq!(failures, ["decision", "file"]);
}
