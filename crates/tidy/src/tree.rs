//! The files of the repository.

#![expect(
    clippy::disallowed_methods,
    reason = "these tests read the source tree"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A text file of the repository.
#[derive(Debug)]
pub(crate) struct File {
    /// The path relative to the root, with slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/tidy is two levels below the root")
        .to_owned()
}

/// Whether there is a file or folder at `path`, relative to the root.
pub(crate) fn exists(path: &str) -> bool {
    root().join(path).exists()
}

/// Reads the file at `path`, relative to the root.
pub(crate) fn read(path: &str) -> File {
    let text =
        fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    File {
        path: path.to_owned(),
        text,
    }
}

/// All files below `folder` whose name has one of these endings, in order.
pub(crate) fn files(folder: &str, endings: &[&str]) -> Vec<File> {
    let mut found = Vec::new();
    visit(&root().join(folder), endings, &mut found);
    found.sort();
    let from_root = |path: &PathBuf| {
        let path = path.strip_prefix(root()).expect("below the root");
        path.to_string_lossy().replace('\\', "/")
    };
    found.iter().map(|path| read(&from_root(path))).collect()
}

/// How many files there are in `folder`, of whatever kind.
pub(crate) fn count_files(folder: &str) -> usize {
    fs::read_dir(root().join(folder)).map_or(0, Iterator::count)
}

fn visit(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a readable directory").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_ours =
            name != "target" && (name == ".ci" || name == ".config" || !name.starts_with('.'));
        if path.is_dir() {
            if is_ours {
                visit(&path, endings, found);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

/// The names of the directories in `crates/`, in order.
pub(crate) fn crates() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("crates"))
        .expect("crates/ exists")
        .map(|entry| {
            entry
                .expect("a readable directory")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}
