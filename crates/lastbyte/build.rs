//! Passes the version to the program, with the commit if it is built in a clone of the repository.

use std::{path::Path, process::Command};

/// The output of a Git command; `None` without Git or outside of a clone.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

fn main() {
    let version = env!("CARGO_PKG_VERSION");
    // In a package from a registry, a repository around it would be another one.
    let is_clone = git(&["ls-files", "--error-unmatch", "build.rs"]).is_some();
    let commit = git(&["log", "-1", "--format=%h %cs", "--abbrev=9"]).filter(|_| is_clone);
    let version = commit.map_or_else(
        || version.to_owned(),
        |commit| format!("{version} ({commit})"),
    );
    println!("cargo::rustc-env=LASTBYTE_VERSION={version}");
    println!("cargo::rerun-if-changed=build.rs");
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists());
    if is_clone && let Some(log) = log {
        println!("cargo::rerun-if-changed={log}");
    }
}
