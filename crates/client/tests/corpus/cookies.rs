//! Arbitrary values of `set-cookie` and arbitrary cookie files: no control characters are sent, no cookie is sent to
//! another site, and the jar round-trips through its file. Shared by the replay of the corpus and the fuzz target.

use std::time::Duration;

use lastbyte_client::{CookieJar, Url};

const NOW: Duration = Duration::from_secs(1_790_000_000);
const SENT_LEN_MAX: usize = 8190;

/// The input consists of lines. A line that starts with a digit is a field value of one of these URLs; the others form a
/// file.
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
            // A cookie of one site is not sent to another.
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
    check_round_trip(&jar, &urls);
    jar.read(&file, NOW);
    check_round_trip(&jar, &urls);
    jar.end_session();
    check_round_trip(&jar, &urls);
}

fn check_round_trip(jar: &CookieJar, urls: &[Url]) {
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
