#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test makes a directory"
)]

use std::{fs, time::UNIX_EPOCH};

use super::*;
use crate::site::{Temporary, directory::Directory};

const HOUR: Duration = Duration::from_secs(3600);

/// A file with a date long ago, so that it is cached.
fn settle(directory: &Temporary, name: &str, content: &[u8], seconds: u64) {
    let path = directory.0.join(name);
    fs::write(&path, content).expect("room");
    let file = fs::File::options().write(true).open(path).expect("a file");
    let date = UNIX_EPOCH + Duration::from_secs(seconds);
    file.set_modified(date).expect("a date");
}

fn site(directory: &Temporary, valid_for: Duration, open_files: usize) -> Directory {
    let mut site = Directory::open(&directory.0).expect("a directory");
    site.limit_open_files(open_files);
    site.cache_for(valid_for);
    site
}

fn file(site: &Directory, path: &str) -> Arc<FoundFile> {
    match site.find(path) {
        Found::File(file) => file,
        other => panic!("{path}: {other:?}"),
    }
}

fn text(file: &FoundFile) -> Vec<u8> {
    let mut bytes = vec![0; file.original.len() as usize];
    let source = file.original.source(false);
    source.read_at(0, &mut bytes).expect("it has them");
    bytes
}

#[test]
fn equivalent_paths_share_a_cache_entry() {
    let directory = Temporary::new("cache-once");
    settle(&directory, "a b.js", b"a", 1000);
    settle(&directory, "a b.js.gz", b"gz", 1000);
    settle(&directory, "index.html", b"index", 1000);
    let site = site(&directory, HOUR, 100);
    let first = file(&site, "/a%20b.js");
    assert_eq!(first.compressed.len(), 1);
    assert_eq!(first.descriptors(), 0, "its content is in memory");
    for path in ["/a%20b.js", "/%61%20b.js", "//a%20b.js", "/./a b.js"] {
        assert!(Arc::ptr_eq(&first, &file(&site, path)), "{path}");
    }
    let index = file(&site, "/");
    assert!(Arc::ptr_eq(&index, &file(&site, "//")));
    for (path, is_redirect) in [("/.", true), ("/../", false), ("/a%20b.js/", false)] {
        let found = site.find(path);
        let is_right = if is_redirect {
            matches!(found, Found::Unslashed)
        } else {
            matches!(found, Found::Nothing)
        };
        assert!(is_right, "{path}: {found:?}");
    }
}

#[test]
fn a_file_that_was_changed_is_noticed_after_the_time() {
    let directory = Temporary::new("cache-changed");
    settle(&directory, "f", b"old", 1000);
    let (long, short) = (
        site(&directory, HOUR, 100),
        site(&directory, Duration::from_nanos(1), 100),
    );
    let (old, same) = (file(&long, "/f"), file(&short, "/f"));
    assert!(Arc::ptr_eq(&same, &file(&short, "/f")), "nothing changed");
    settle(&directory, "f", b"new", 2000);
    assert!(Arc::ptr_eq(&old, &file(&long, "/f")));
    assert_eq!(text(&file(&short, "/f")), b"new");
    // A new file with the same name, length and date.
    settle(&directory, "g", b"NEW", 2000);
    fs::rename(directory.0.join("g"), directory.0.join("f")).expect("a file");
    assert_eq!(text(&file(&short, "/f")), b"NEW");
    settle(&directory, "f.gz", b"gz", 2000);
    assert_eq!(file(&short, "/f").compressed.len(), 1);
    fs::remove_file(directory.0.join("f")).expect("a file");
    assert!(matches!(short.find("/f"), Found::Nothing));
    assert_eq!(text(&file(&long, "/f")), b"old");
}

#[test]
fn a_large_file_that_is_changed_in_place_is_noticed_at_once() {
    let directory = Temporary::new("cache-large");
    let content = |byte: u8| vec![byte; BODY_MAX as usize + 1];
    settle(&directory, "f", &content(b'a'), 1000);
    let site = site(&directory, HOUR, 100_000);
    assert_eq!(text(&file(&site, "/f")), content(b'a'));
    settle(&directory, "f", &content(b'b'), 2000);
    assert_eq!(text(&file(&site, "/f")), content(b'b'));
    settle(&directory, "f", b"short", 2000);
    assert_eq!(text(&file(&site, "/f")), b"short");
}

#[test]
fn a_file_that_was_just_changed_is_looked_up_each_time() {
    let directory = Temporary::new("cache-young");
    let site = site(&directory, HOUR, 100);
    assert!(matches!(site.find("/f"), Found::Nothing));
    directory.file("f", "one");
    assert_eq!(text(&file(&site, "/f")), b"one");
    directory.file("f", "two");
    assert_eq!(text(&file(&site, "/f")), b"two");
}

#[test]
fn cached_files_leave_descriptors_to_responses() {
    let directory = Temporary::new("cache-descriptors");
    let large = vec![b'x'; BODY_MAX as usize + 1];
    let open_files = 4 * 2 * thread::available_parallelism().map_or(1, usize::from);
    let names: Vec<_> = (0..=open_files).map(|n| format!("/{n}")).collect();
    for name in &names {
        settle(&directory, &name[1..], &large, 1000);
    }
    // A quarter of the limit, divided among the parts: one file.
    let site = site(&directory, HOUR, open_files);
    let first = file(&site, "/0");
    assert!(Arc::ptr_eq(&first, &file(&site, "/0")));
    let second = file(&site, "/1");
    // The second one is cached instead of the first.
    assert!(Arc::ptr_eq(&second, &file(&site, "/1")));
    assert!(!Arc::ptr_eq(&first, &file(&site, "/0")));
    drop((first, second));
    // All that responses may hold; the cached file is released.
    let held: Vec<_> = names[1..].iter().map(|name| file(&site, name)).collect();
    assert_eq!(held.len(), open_files);
    assert!(matches!(site.find("/0"), Found::Exhausted));
    drop(held);
    assert_eq!(text(&file(&site, "/0")).len(), large.len());
}

/// An entry as a flood of requests makes them.
fn insert(part: &mut Part, directory: &Directory, path: &str) {
    let Found::File(file) = directory.find("/f") else {
        panic!("it is there");
    };
    part.keep(path, file, Time::from_nanos(1));
}

#[test]
fn a_flood_of_names_neither_grows_the_cache_nor_evicts_files_in_use() {
    let directory = Temporary::new("cache-flood");
    settle(&directory, "f", &vec![b'x'; 20_000], 1000);
    let site = site(&directory, Duration::ZERO, 100);
    let mut part = Part::new(100);
    let hot: Vec<_> = (0..10).map(|n| format!("/hot/{n}")).collect();
    for path in &hot {
        insert(&mut part, &site, path);
    }
    for n in 0..20_000 {
        insert(&mut part, &site, &format!("/{n}"));
        if n % 100 == 0 {
            for path in &hot {
                part.get(path).expect("it is in use").on_use();
            }
        }
        assert!(part.bytes <= BYTES_MAX && part.entries.len() <= ENTRIES_MAX);
    }
    let bytes: usize = part.entries.iter().map(Entry::bytes).sum();
    assert_eq!(part.bytes, bytes);
    assert_eq!(part.index.len(), part.entries.len());
    for (path, at) in &part.index {
        assert_eq!(*path, part.entries[*at].path);
    }
    assert!(part.entries.len() > 500, "{}", part.entries.len());
    // Those that are not used any more are evicted.
    for n in 0..20_000 {
        insert(&mut part, &site, &format!("/later/{n}"));
    }
    assert!(hot.iter().all(|path| part.get(path).is_none()));
}

#[test]
fn the_number_of_entries_of_small_files_is_bounded() {
    let directory = Temporary::new("cache-small");
    settle(&directory, "f", b"f", 1000);
    let site = site(&directory, Duration::ZERO, 100);
    let mut part = Part::new(100);
    for n in 0..ENTRIES_MAX + 100 {
        insert(&mut part, &site, &format!("/{n}"));
    }
    assert_eq!(part.entries.len(), ENTRIES_MAX);
    assert_eq!(part.index.len(), ENTRIES_MAX);
    assert!(part.bytes < BYTES_MAX, "{}", part.bytes);
}

/// A thread that uses a part must not make others wait.
#[test]
fn a_locked_part_is_skipped() {
    let directory = Temporary::new("cache-busy");
    settle(&directory, "f", b"f", 1000);
    let site = site(&directory, Duration::ZERO, 100);
    let cache = FileCache::new(HOUR, 100);
    let kept = cache.find("/f", || site.find("/f"));
    let held: Vec<_> = cache.parts.iter().filter_map(lock).collect();
    let passed = cache.find("/f", || Found::Nothing);
    assert!(matches!((kept, passed), (Found::File(_), Found::Nothing)));
    drop(held);
    assert!(matches!(
        cache.find("/f", || Found::Nothing),
        Found::File(_)
    ));
}
