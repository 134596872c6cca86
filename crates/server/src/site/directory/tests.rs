#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test makes a directory"
)]

use std::{fs, os::unix::fs::symlink};

use lastbyte_quic::stream::Source;

use super::*;
use crate::site::file::INTERNAL_ERROR;

/// A temporary directory, removed after the test.
pub(crate) struct Temporary(pub(crate) PathBuf);

impl Temporary {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lastbyte-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("room");
        Self(path)
    }

    pub(crate) fn file(&self, name: &str, content: &str) {
        fs::write(self.0.join(name), content).expect("room");
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn content(found: Found) -> Option<(String, String)> {
    match found {
        Found::File(found) => {
            let mut bytes = vec![0; found.original.len() as usize];
            let source = found.original.source(false);
            source.read_at(0, &mut bytes).expect("it has them");
            let content_type = found.original.prepared.content_type().to_owned();
            Some((String::from_utf8(bytes).expect("text"), content_type))
        }
        _ => None,
    }
}

#[test]
fn nothing_outside_the_directory_is_found() {
    let outer = Temporary::new("escape");
    outer.file("secret", "secret");
    let root = outer.0.join("root");
    fs::create_dir(&root).expect("room");
    fs::write(root.join("open"), "open").expect("room");
    symlink(outer.0.join("secret"), root.join("out")).expect("a link");
    symlink(&outer.0, root.join("above")).expect("a link");
    symlink("open", root.join("in")).expect("a link");
    symlink(root.join("open"), root.join("absolute")).expect("a link");
    symlink("circle", root.join("circle")).expect("a link");
    let site = Directory::open(&root).expect("a directory");
    let of = |path| content(site.find(path)).map(|(text, _)| text);
    assert_eq!(of("/open").as_deref(), Some("open"));
    assert_eq!(
        of("/in").as_deref(),
        Some("open"),
        "a link that stays inside"
    );
    assert_eq!(
        of("/absolute").as_deref(),
        Some("open"),
        "one that names its whole path"
    );
    for path in [
        "/out",
        "/circle",
        "/above/secret",
        "/../secret",
        "/%2e%2e/secret",
        "/..%2fsecret",
        "/./../secret",
        "/open/../../secret",
        "/..\\secret",
        "/open%00",
        "//../secret",
        "secret",
        "",
        "/open/",
        "/%ff",
    ] {
        assert!(matches!(site.find(path), Found::Nothing), "{path}");
    }
}

#[test]
fn a_directory_is_its_index_and_types_follow_names() {
    let directory = Temporary::new("index");
    directory.file("index.html", "<p>");
    directory.file("a b.css", "p {}");
    directory.file("plain", "?");
    fs::create_dir(directory.0.join("empty")).expect("room");
    let site = Directory::open(&directory.0).expect("a directory");
    let of = |path| content(site.find(path));
    assert_eq!(of("/"), Some(("<p>".into(), "text/html".into())));
    assert_eq!(of("/a%20b.css"), Some(("p {}".into(), "text/css".into())));
    assert_eq!(
        of("/plain"),
        Some(("?".into(), "application/octet-stream".into()))
    );
    assert!(matches!(site.find("/empty"), Found::Unslashed));
    assert!(matches!(site.find("/empty/"), Found::Directory(_)));
    assert!(matches!(site.find("/nowhere"), Found::Nothing));
}

fn source(site: &Directory, path: &str, in_parts: bool) -> Box<dyn Source> {
    match site.find(path) {
        Found::File(found) => found.original.source(in_parts),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_truncated_while_it_is_sent_fails_its_stream() {
    let directory = Temporary::new("cut");
    directory.file("f", "0123456789");
    let site = Directory::open(&directory.0).expect("a directory");
    let source = source(&site, "/f", false);
    directory.file("f", "01");
    let mut bytes = [0; 10];
    let error = source.read_at(0, &mut bytes).expect_err("they are gone");
    assert_eq!(error.code, INTERNAL_ERROR);
}

#[test]
fn a_file_changed_in_place_is_never_delivered_as_complete() {
    let directory = Temporary::new("changed");
    directory.file("f", "0123456789");
    let site = Directory::open(&directory.0).expect("a directory");
    let path = directory.0.join("f");
    let (whole, part) = (source(&site, "/f", false), source(&site, "/f", true));
    let mut bytes = [0; 5];
    whole.read_at(0, &mut bytes).expect("as it was");
    part.read_at(0, &mut bytes).expect("as it was");
    // Of the same length, with another date.
    directory.file("f", "abcdefghij");
    let file = fs::File::options().write(true).open(&path).expect("a file");
    let other = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_modified(other).expect("a date");
    assert!(whole.read_at(5, &mut bytes).is_err(), "the last bytes");
    assert!(part.read_at(1, &mut bytes).is_err(), "any bytes");

    // A new file with the same name does not change the one being sent.
    let before = source(&site, "/f", false);
    directory.file("new", "0123456789");
    fs::rename(directory.0.join("new"), path).expect("a file");
    let mut bytes = [0; 10];
    before.read_at(0, &mut bytes).expect("as it was");
    assert_eq!(&bytes, b"abcdefghij");
}

#[test]
fn neither_pipes_nor_hidden_names_are_found() {
    let directory = Temporary::new("hidden");
    directory.file(".secret", "secret");
    fs::create_dir(directory.0.join(".git")).expect("room");
    directory.file(".git/config", "secret");
    fs::create_dir(directory.0.join(".well-known")).expect("room");
    directory.file(".well-known/x", "x");
    let pipe = directory.0.join("pipe");
    rustix::fs::mkfifoat(CWD, &pipe, Mode::RUSR).expect("a pipe");
    let mut site = Directory::open(&directory.0).expect("a directory");
    for path in ["/.secret", "/.git/config", "/%2egit/config", "/pipe"] {
        assert!(matches!(site.find(path), Found::Nothing), "{path}");
    }
    assert!(content(site.find("/.well-known/x")).is_some());
    site.show_hidden(true);
    assert!(content(site.find("/.git/config")).is_some());
    assert!(matches!(site.find("/pipe"), Found::Nothing));
}

#[test]
fn siblings_that_are_older_than_their_file_are_not_used() {
    let directory = Temporary::new("siblings");
    for name in ["f.js.gz", "f.js.br", "f.js"] {
        directory.file(name, name);
    }
    let date = |name: &str, seconds| {
        let path = directory.0.join(name);
        let file = fs::File::options().write(true).open(path).expect("a file");
        let date = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
        file.set_modified(date).expect("a date");
    };
    date("f.js", 1000);
    date("f.js.gz", 1000);
    date("f.js.br", 999);
    let site = Directory::open(&directory.0).expect("a directory");
    let Found::File(found) = site.find("/f.js") else {
        panic!("it is there");
    };
    let names = found
        .compressed
        .iter()
        .filter_map(|variant| Some(variant.coding?.name));
    let names: Vec<_> = names.collect();
    assert_eq!(names, ["gzip"]);
}

#[test]
fn only_a_directory_can_be_served() {
    assert!(Directory::open(Path::new("/dev/null")).is_err());
    assert!(Directory::open(Path::new("/nowhere")).is_err());
}
