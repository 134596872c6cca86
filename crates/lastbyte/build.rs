//! Passes the version to the program, with the commit if it is known: in a clone of the repository, in an archive of `git
//! archive`, and in a package of a registry.

#![expect(
    clippy::disallowed_methods,
    reason = "the build script reads files beside it"
)]

use std::{fs, path::Path, process::Command};

/// Length of an abbreviated commit.
const COMMIT_LEN: usize = 9;

/// The output of a Git command; `None` without Git or outside of a clone.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// Commit and date from `commit.txt`, in which `git archive` replaces a placeholder.
fn archived() -> Option<String> {
    let text = fs::read_to_string("commit.txt").ok()?;
    let (commit, date) = text.trim().split_once(' ')?;
    let is_commit = commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| format!("{} {date}", commit.get(..COMMIT_LEN).unwrap_or(commit)))
}

/// The commit in the file that `cargo package` writes.
fn packaged() -> Option<String> {
    let text = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    let commit = rest.split('"').nth(1)?;
    commit.get(..COMMIT_LEN).map(str::to_owned)
}

fn main() {
    let version = env!("CARGO_PKG_VERSION");
    // In sources from elsewhere, a repository around them would be another one.
    let is_clone = git(&["ls-files", "--error-unmatch", "build.rs"]).is_some();
    let commit = if is_clone {
        git(&["log", "-1", "--format=%h %cs", "--abbrev=9"])
    } else {
        archived().or_else(packaged)
    };
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
