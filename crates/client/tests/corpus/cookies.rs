//! Any values of `set-cookie`, and any file of cookies: nothing but visible text is sent, no cookie goes to a foreign host,
//! and what is kept comes back from the file that it is written to. Shared by the replay of the corpus and the fuzz target.

use std::time::Duration;

use lastbyte_client::{CookieJar, Url};

const NOW: Duration = Duration::from_secs(1_790_000_000);
const SENT_LEN_MAX: usize = 8190;

/// Lines: those that begin with a digit are values that one of these set, the others are of a file.
pub(crate) fn play(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let urls = [
        "https://www.example.com/a/b",
        "http://www.example.com/a/b",
        "https://example.com/",
        "https://other.example/a",
        "https://192.0.2.1/",
    ]
    .map(|url| url.parse::<Url>().expect("a URL"));
    let mut jar = CookieJar::default();
    let mut file = String::new();
    for line in text.split('\n') {
        if let [digit @ b'0'..=b'9', ..] = line.as_bytes() {
            let url = &urls[usize::from(digit % 5)];
            jar.put(url, &line[1..], NOW);
            // Nothing that one site sets goes to another.
            if digit % 5 < 3 {
                let mut alone = CookieJar::default();
                alone.put(url, &line[1..], NOW);
                assert_eq!(alone.header(&urls[3], NOW), None, "{line}");
                assert_eq!(alone.header(&urls[4], NOW), None, "{line}");
            }
        } else {
            file += line;
            file.push('\n');
        }
    }
    is_kept(&jar, &urls);
    jar.read(&file, NOW);
    is_kept(&jar, &urls);
    jar.end_session();
    is_kept(&jar, &urls);
}

fn is_kept(jar: &CookieJar, urls: &[Url]) {
    let text = jar.to_text(NOW);
    let mut again = CookieJar::default();
    assert_eq!(again.read(&text, NOW), 0, "{text}");
    for url in urls {
        let header = jar.header(url, NOW);
        assert_eq!(again.header(url, NOW), header, "{text}");
        if let Some(header) = header {
            assert!(header.len() <= SENT_LEN_MAX);
            assert!(!header.chars().any(char::is_control), "{header:?}");
        }
    }
}
