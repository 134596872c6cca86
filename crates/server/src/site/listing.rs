//! Directory listings: names, sizes, dates.
//!
//! Only what the site serves is listed, and all names are escaped.

use std::{fmt::Write as _, io, os::fd::BorrowedFd, time::Duration};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use rustix::fs::{AtFlags, Dir, FileType, statat};

use super::{directory::is_hidden_name, file_identity::Identity};
use crate::representation::validator::http_date;

/// Maximum number of names; if there are more, the page says so.
const NAMES_MAX: usize = 10_000;

/// Characters that must be escaped in a path (RFC 3986 §3.3).
pub(super) const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b'/');

struct Entry {
    name: String,
    is_directory: bool,
    len: u64,
    modified: Duration,
}

/// The page of an open directory. `title` is its decoded path.
pub(super) fn page(
    directory: BorrowedFd<'_>,
    title: &str,
    shows_hidden: bool,
) -> io::Result<String> {
    let (mut entries, is_cut) = read(directory, shows_hidden)?;
    entries.sort_by(|a, b| (!a.is_directory, &a.name).cmp(&(!b.is_directory, &b.name)));
    let title = escaped(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<h1>{title}</h1>\n<table>\n"
    );
    if title != "/" {
        page.push_str("<tr><td><a href=\"../\">../</a></td></tr>\n");
    }
    for entry in &entries {
        let slash = if entry.is_directory { "/" } else { "" };
        let len = if entry.is_directory {
            "-".into()
        } else {
            entry.len.to_string()
        };
        // `./`, so that a colon in a name is not taken for a scheme (RFC 3986 §4.2). Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "<tr><td><a href=\"./{}{slash}\">{}{slash}</a></td><td align=\"right\">{len}</td><td>{}</td></tr>",
            escaped(&utf8_percent_encode(&entry.name, SEGMENT).to_string()),
            escaped(&entry.name),
            http_date(entry.modified),
        );
    }
    page.push_str("</table>\n");
    if is_cut {
        let _ = writeln!(page, "<p>The first {NAMES_MAX} names are shown.</p>");
    }
    page.push_str("</html>\n");
    Ok(page)
}

fn read(directory: BorrowedFd<'_>, shows_hidden: bool) -> io::Result<(Vec<Entry>, bool)> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        // A name that is not valid UTF-8, or contains `\`, cannot be requested either.
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if matches!(name, "." | "..")
            || name.contains('\\')
            || (is_hidden_name(name) && !shows_hidden)
        {
            continue;
        }
        // A link is listed as such, wherever it leads: its target is resolved only on request.
        let Ok(stat) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if !matches!(
            kind,
            FileType::Directory | FileType::RegularFile | FileType::Symlink
        ) {
            continue;
        }
        if entries.len() == NAMES_MAX {
            return Ok((entries, true));
        }
        let identity = Identity::of(&stat);
        entries.push(Entry {
            name: name.to_owned(),
            is_directory: kind == FileType::Directory,
            len: identity.len,
            modified: identity.modified,
        });
    }
    Ok((entries, false))
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "the test makes a directory"
    )]

    use std::{fs, os::fd::AsFd as _};

    use super::*;
    use crate::site::Temporary;

    #[test]
    fn names_that_cannot_be_requested_are_not_listed() {
        use std::os::unix::ffi::OsStrExt as _;

        let directory = Temporary::new("listing-names");
        for name in [&b"a b"[..], b"a\\b", b"a\xe9b", b".hidden"] {
            let name = std::ffi::OsStr::from_bytes(name);
            fs::write(directory.0.join(name), "").expect("room");
        }
        let open = fs::File::open(&directory.0).expect("a directory");
        let page = page(open.as_fd(), "/", false).expect("a page");
        assert_eq!(page.matches("<a href=").count(), 1, "{page}");
        assert!(page.contains("\"./a%20b\""), "{page}");
    }

    #[test]
    fn a_page_of_more_names_than_the_limit_says_so() {
        let directory = Temporary::new("listing-many");
        for number in 0..NAMES_MAX {
            fs::write(directory.0.join(number.to_string()), "").expect("room");
        }
        let made = || {
            let open = fs::File::open(&directory.0).expect("a directory");
            let page = page(open.as_fd(), "/", false).expect("a page");
            let names = page.matches("<a href=").count();
            (names, page.contains("The first 10000 names are shown."))
        };
        assert_eq!(made(), (NAMES_MAX, false));
        // It is not listed.
        fs::write(directory.0.join(".hidden"), "").expect("room");
        assert_eq!(made(), (NAMES_MAX, false));
        fs::write(directory.0.join("more"), "").expect("room");
        assert_eq!(made(), (NAMES_MAX, true));
    }
}
