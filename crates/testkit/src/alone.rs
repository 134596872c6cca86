//! Runs a test in its own network namespace, in which it may create devices and use any address.

#![expect(clippy::disallowed_methods, reason = "a test asks how it is run")]

use std::{
    env,
    process::Command,
    sync::{Mutex, PoisonError},
};

/// Set in the process that runs in its own namespace.
const OWN: &str = "LASTBYTE_OWN_NETWORK";

/// Only one test at a time may use the host's network.
static HOST: Mutex<()> = Mutex::new(());

fn has_namespaces() -> bool {
    let tried = Command::new("unshare").args(["-rn", "true"]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// Runs a test in its own network namespace, by starting this program again. Falls back to the host's network if
/// namespaces are not available. `test` is the test's full name with modules.
///
/// # Panics
///
/// The test fails.
pub fn alone(test: &str, body: impl FnOnce()) {
    if env::var_os(OWN).is_some() || !has_namespaces() {
        let _turn = HOST.lock().unwrap_or_else(PoisonError::into_inner);
        return body();
    }
    in_namespace(test);
}

/// The same for a test that changes addresses and routes: without namespaces, it is [skipped](crate::skip).
///
/// # Panics
///
/// The test fails.
pub fn alone_or_skipped(test: &str, body: impl FnOnce()) {
    if env::var_os(OWN).is_some() {
        body();
    } else if has_namespaces() {
        in_namespace(test);
    } else {
        crate::skip("no network namespaces (`unshare -rn`)");
    }
}

fn in_namespace(test: &str) {
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
        .for_each(crate::skip);
}
