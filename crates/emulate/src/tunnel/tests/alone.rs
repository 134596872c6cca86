//! Runs a test in its own network namespace, in which it may create devices and use any address.

use std::{
    env,
    process::Command,
    sync::{Mutex, PoisonError},
};

/// Set in the process that runs in its own namespace.
const OWN: &str = "LASTBYTE_OWN_NETWORK";

/// Only one test at a time may use the host's network.
static HOST: Mutex<()> = Mutex::new(());

/// Runs a test in its own network namespace, by starting this program again. Falls back to the host's network if
/// namespaces are not available. `test` is the test's full name with modules.
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
    assert!(out.contains("1 passed"), "no test is called {test}: {out}");
    err.lines()
        .filter_map(|line| line.strip_prefix("skipped: "))
        .for_each(lastbyte_testkit::skip);
}
