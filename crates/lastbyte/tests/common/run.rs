//! The binary, run in a folder, and what it prints.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// A folder that is empty.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// The binary, in a folder.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastbyte"));
    command
        .args(arguments)
        .current_dir(folder)
        .env_remove("SSLKEYLOGFILE")
        .stdin(Stdio::null());
    command
}

pub(crate) fn lastbyte(folder: &Path, arguments: &[&str]) -> Output {
    let output = command(folder, arguments).output();
    output.expect("the binary runs")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Checks the exit code, and that stderr has this text.
pub(crate) fn check_failure(output: &Output, code: i32, text: &str) {
    let errors = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{errors}");
    assert!(errors.contains(text), "`{text}` in {errors}");
}

/// The words of a command line.
pub(crate) fn command_line(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}
