//! Files that are not what they should be: pipes, directories and sockets among the logs and in the directory of the decisions. No look
//! waits for one, no share grows by one, and an end is decided all the same.

use std::{
    fs,
    io::Write as _,
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
    process::{Command, Output, Stdio},
};

use super::{
    FIRST, Ramp,
    serving::{command, lastbyte, stderr, stdout},
};

/// Something else than a file, in place of one.
#[derive(Clone, Copy, Debug)]
enum Odd {
    Directory,
    Pipe,
    Socket,
    LinkToDirectory,
}

const ODD: [Odd; 4] = [Odd::Directory, Odd::Pipe, Odd::Socket, Odd::LinkToDirectory];

impl Odd {
    fn make(self, path: &Path) {
        // It may be there.
        let _ = fs::remove_file(path);
        match self {
            Self::Directory => fs::create_dir(path).expect("room"),
            Self::Pipe => {
                let made = Command::new("mkfifo").arg(path).status();
                assert!(made.is_ok_and(|status| status.success()));
            }
            // It stays when it is closed.
            Self::Socket => {
                let folder = path.parent().expect("a folder");
                // Paths of sockets are short.
                let short = std::env::temp_dir().join(format!("lb-{}", std::process::id()));
                let _ = fs::remove_file(&short);
                symlink(folder, &short).expect("a link");
                let name = path.file_name().expect("a name");
                UnixListener::bind(short.join(name)).expect("a socket");
                fs::remove_file(short).expect("it is there");
            }
            Self::LinkToDirectory => symlink("/", path).expect("a link"),
        }
    }
}

/// The command in a folder, which is ended if it waits.
fn within_a_minute(folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new("timeout")
        .args(["60", env!("CARGO_BIN_EXE_lastbyte"), "steer"])
        .args(["--plan", "ramp.toml", "--state", "state"])
        .args(arguments)
        .current_dir(folder)
        .output();
    output.expect("`timeout` runs")
}

/// An arm that harms is stopped although `lost` is no file. Without it, nothing lets a ramp go on without lines.
#[test]
fn lost_that_is_no_file_counts_for_nothing_and_ends_are_decided() {
    for odd in ODD {
        let mut ramp = Ramp::new(&format!("steer-lost-{odd:?}"));
        odd.make(&ramp.folder.join("state/lost"));
        ramp.hour(FIRST, 0.1, 1.0);
        let expected = "`state/lost`: not a regular file (expected one): it does not count";
        let output = ramp.steer(&["log"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        fs::write(ramp.folder.join("empty"), "").expect("room");
        ramp.refused(&["empty"], "the logs lack lines of `log`, which look 1 had");
        ramp.hour(FIRST, 0.1, 1.5);
        assert_eq!(ramp.look()["action"], "stop-harm");
        ramp.has_no_arm();
    }
}

/// A file that cannot be removed would let each look go on without lines.
#[test]
fn lost_that_cannot_be_removed_lets_no_look_go_on_but_an_end() {
    for (factor, action) in [(1.0, "hold"), (1.5, "stop-harm")] {
        let mut ramp = Ramp::new(&format!("steer-lost-stays-{action}"));
        ramp.hour(FIRST, 0.1, 1.0);
        ramp.look();
        fs::remove_file(ramp.folder.join("log")).expect("it is there");
        ramp.log.clear();
        ramp.hour(FIRST, 0.1, factor);
        ramp.log = ramp.log.replace("\"conn_id\":", "\"conn_id\":1");
        ramp.write();
        // A mount can be removed by no process.
        let mounted = super::disk::can_mount();
        if !mounted {
            return;
        }
        fs::write(ramp.folder.join("state/lost"), "the disk died").expect("room");
        let script = "mount --bind state/lost state/lost && exec \"$0\" steer log --plan ramp.toml --state state";
        let output = super::disk::with_mounts(&ramp.folder, script, "");
        let error = stderr(&output);
        assert!(error.contains("cannot remove `state/lost`: "), "{error}");
        let is_end = action != "hold";
        assert_eq!(output.status.success(), is_end, "{error}");
        assert_eq!(ramp.decisions().len(), 2 + usize::from(is_end), "{error}");
        if is_end {
            let last = ramp.decisions().pop().expect("a look");
            assert_eq!(last["action"], action);
            ramp.has_no_arm();
        }
    }
}

/// Each file of the directory but `lost`: an error without waiting, and a stop acts where its file is anything.
#[test]
fn what_is_no_file_in_the_directory_is_refused_and_a_stop_acts() {
    for odd in ODD {
        for name in ["lock", "decisions.ndjson", "experiment.toml"] {
            let ramp = Ramp::new(&format!("steer-{odd:?}-{name}"));
            odd.make(&ramp.folder.join("state").join(name));
            let expected = format!("`state/{name}`: not a regular file (expected one)");
            for arguments in [&["log"][..], &["log", "--verify"]] {
                let output = within_a_minute(&ramp.folder, arguments);
                let printed = stdout(&output) + &stderr(&output);
                // To verify decisions needs no lock.
                if name != "lock" || arguments.len() == 1 {
                    assert!(printed.contains(&expected), "{odd:?}: {printed}");
                    assert_eq!(output.status.code(), Some(1), "{printed}");
                }
            }
            odd.make(&ramp.folder.join("state/stop"));
            let output = within_a_minute(&ramp.folder, &["log"]);
            assert_ne!(output.status.code(), Some(124), "it waits");
            // A directory stays where the file of servers should be.
            if name != "experiment.toml" || matches!(odd, Odd::Pipe | Odd::Socket) {
                ramp.has_no_arm();
            }
        }
    }
}

/// A look would wait for what is written to a pipe, and another one would not have its lines.
#[test]
fn a_log_that_is_no_file_is_refused_before_the_lock() {
    for odd in ODD {
        let mut ramp = Ramp::new(&format!("steer-log-{odd:?}"));
        ramp.hour(FIRST, 0.1, 1.0);
        odd.make(&ramp.folder.join("odd"));
        let lock = fs::File::open(ramp.folder.join("state/lock")).expect("a lock");
        lock.lock().expect("free");
        let output = within_a_minute(&ramp.folder, &["log", "odd"]);
        let error = stderr(&output);
        let expected = "`odd`: not a regular file (expected one)";
        assert!(error.contains(expected), "{odd:?}: {error}");
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert_eq!(ramp.decisions().len(), 1);
        drop(lock);
        // An end needs no log.
        fs::write(ramp.folder.join("state/stop"), "enough").expect("room");
        let output = within_a_minute(&ramp.folder, &["log", "odd"]);
        assert!(output.status.success(), "{}", stderr(&output));
        ramp.has_no_arm();
    }
}

/// Standard input: of a look, a state alone. It is read before the directory is locked, so that others do not wait for its writer.
#[test]
fn standard_input_is_a_state_and_no_log() {
    let mut ramp = Ramp::new("steer-stdin");
    ramp.hour(FIRST, 0.1, 1.0);
    let steer = ["steer", "--plan", "ramp.toml", "--state", "state"];
    for name in ["-", "/dev/stdin"] {
        let mut look = command(&ramp.folder, &[&steer[..], &[name]].concat());
        let mut look = look.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let look = look.as_mut().expect("it runs");
        // Nothing is written to it.
        let held = look.stdin.take();
        assert_eq!(look.wait().expect("it ends").code(), Some(2), "{name}");
        drop(held);
    }
    let partial = ["steer", "--partial", "log", "--plan", "ramp.toml"];
    let state = lastbyte(&ramp.folder, &partial).stdout;
    let mut merge = command(&ramp.folder, &[&steer[..], &["--merge", "-"]].concat());
    let merge = merge.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut merge = merge.stdout(Stdio::null()).spawn().expect("it runs");
    let mut input = merge.stdin.take().expect("a pipe");
    // The first half is more than the pipe has room for, so it waits for the rest.
    let (first, rest) = state.split_at(state.len() - 10);
    input.write_all(first).expect("it reads");
    let look = ramp.steer(&["log"]);
    assert!(look.status.success(), "{}", stderr(&look));
    input.write_all(rest).expect("it reads");
    drop(input);
    let merged = merge.wait_with_output().expect("it ends");
    assert!(merged.status.success(), "{}", stderr(&merged));
    let looks = ramp.decisions();
    let by_states: Vec<bool> = looks.iter().map(|look| look["by-states"] == true).collect();
    assert_eq!(by_states, [false, false, true]);
}

/// JSON that is no object, as of a file of something else, or of a line whose begin was torn.
#[test]
fn lines_that_are_no_objects_are_left_out_and_many_hold_the_ramp() {
    for line in [
        "[]",
        "3",
        "\"experiment\"",
        "null",
        "true",
        "[{\"arm\":\"new\"}]",
    ] {
        let mut ramp = Ramp::new("steer-no-objects");
        for _ in 0..2 {
            ramp.hour(FIRST, 0.1, 0.85);
        }
        let whole = ramp.log.clone();
        let with = |count: usize| format!("{}{whole}", format!("{line}\n").repeat(count));
        fs::write(ramp.folder.join("log"), with(5)).expect("room");
        let output = ramp.steer(&["log"]);
        let error = stderr(&output);
        assert!(output.status.success(), "{line}: {error}");
        let held = ramp.decisions().pop().expect("a look");
        let rule = "0 lines of the future and 5 that are not JSON objects, else ramp: ";
        let has_rule = held["rule"].as_str().is_some_and(|is| is.starts_with(rule));
        assert!(has_rule, "{line}: {held}");
        assert!(
            error.contains("lines that do not count: 5 that are not JSON objects"),
            "{error}"
        );
        fs::write(ramp.folder.join("log"), with(4)).expect("room");
        let partial = ["steer", "--partial", "log", "--plan", "ramp.toml"];
        let state = lastbyte(&ramp.folder, &partial);
        fs::write(ramp.folder.join("log.state"), state.stdout).expect("room");
        let output = ramp.steer(&["--merge", "log.state"]);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        let look = ramp.decisions().pop().expect("a look");
        assert_eq!(look["action"], "ramp", "{line}: {look}");
        assert_eq!(look["ignored"]["unreadable"], 4, "{line}");
        let verified = ramp.steer(&["log", "--verify"]);
        assert!(verified.status.success(), "{line}: {}", stderr(&verified));
    }
}
