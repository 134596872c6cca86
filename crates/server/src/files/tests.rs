#![expect(clippy::disallowed_methods, reason = "the test makes a directory")]

use std::os::unix::fs::symlink;

use super::*;

/// A directory of its own for a test, gone when the test is over.
pub(crate) struct Temporary(pub(crate) PathBuf);

impl Temporary {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lastbyte-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("room");
        Self(path)
    }

    fn file(&self, name: &str, content: &str) {
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
        Found::File(source, content_type) => {
            let mut bytes = vec![0; source.len as usize];
            source.read_at(0, &mut bytes).expect("it has them");
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
    let site = Directory::open(&root).expect("a directory");
    let of = |path| content(site.find(path)).map(|(text, _)| text);
    assert_eq!(of("/open").as_deref(), Some("open"));
    assert_eq!(
        of("/in").as_deref(),
        Some("open"),
        "a link that stays inside"
    );
    for path in [
        "/out",
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
    assert!(matches!(site.find("/empty"), Found::Directory));
    assert!(matches!(site.find("/empty/"), Found::Nothing));
    assert!(matches!(site.find("/nowhere"), Found::Nothing));
}

#[test]
fn a_file_that_is_cut_short_while_it_is_sent_fails_its_stream() {
    let directory = Temporary::new("cut");
    directory.file("f", "0123456789");
    let site = Directory::open(&directory.0).expect("a directory");
    let Found::File(source, _) = site.find("/f") else {
        panic!("it is there");
    };
    directory.file("f", "01");
    let mut bytes = [0; 10];
    let error = source.read_at(0, &mut bytes).expect_err("they are gone");
    assert_eq!(error.code, INTERNAL_ERROR);
}

#[test]
fn only_a_directory_can_be_served() {
    assert!(Directory::open(Path::new("/dev/null")).is_err());
    assert!(Directory::open(Path::new("/nowhere")).is_err());
}
