//! Destinations: the output of each URL, and the directory of output files.

use std::path::{Path, PathBuf};

use super::arguments::{Arguments, Output, Rest};

/// The path of an output file: relative to `--output-dir`, if given.
pub(super) fn in_folder(arguments: &Arguments, path: &Path) -> PathBuf {
    match &arguments.shown.output_dir {
        Some(folder) => folder.join(path),
        None => path.to_owned(),
    }
}

/// The output of a URL: standard output unless `-o` or `-O` is given for it, or `--remote-name-all`.
pub(super) fn output_of(arguments: &Arguments, fetch: usize) -> Output {
    let output = arguments.outputs.0.get(fetch);
    output.cloned().unwrap_or(match arguments.outputs.1 {
        Rest::Stdout => Output::Stdout,
        Rest::RemoteName => Output::RemoteName,
    })
}
