//! A test in a network of its own, in which it may make devices and take whatever address it likes.

use std::{
    env,
    process::Command,
    sync::{Mutex, PoisonError},
};

/// Whether this process has one.
const OWN: &str = "LASTBYTE_OWN_NETWORK";

/// The host's network is for one test at a time.
static HOST: Mutex<()> = Mutex::new(());

/// Runs one test in a network namespace of its own: as this very program once more. Where there can be none, in the host's
/// network. The name is the test's, with its modules.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    let may = || {
        let tried = Command::new("unshare").args(["-rn", "true"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    if env::var_os(OWN).is_some() || !may() {
        let _turn = HOST.lock().unwrap_or_else(PoisonError::into_inner);
        return body();
    }
    let output = Command::new("unshare")
        .arg("-rn")
        .arg(env::current_exe().expect("a program"))
        .args(["--exact", test, "--nocapture"])
        .env(OWN, "1")
        .output()
        .expect("started");
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("1 passed"), "{test} is not its name: {out}");
    err.lines()
        .filter_map(|line| line.strip_prefix("skipped: "))
        .for_each(lastbyte_testkit::skip);
}
