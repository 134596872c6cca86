//! Arbitrary values of `Alt-Svc`. Shared by the replay of the corpus and the fuzz target.

use std::time::Duration;

use lastbyte_client::{AltSvc, Url};

const NOW: Duration = Duration::from_secs(1_790_000_000);
const SERVICES_MAX: usize = 8;

/// The input consists of lines. A line that starts with a digit is a field value of one of three origins; the others are
/// those of the first origin.
pub(crate) fn play(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let origins = [
        "https://a.example/",
        "https://b.example:8443/",
        "https://[2001:db8::1]/",
    ]
    .map(|url| url.parse::<Url>().expect("a URL").origin().clone());
    let mut kept = AltSvc::default();
    for line in text.lines() {
        match line.as_bytes() {
            [digit @ b'0'..=b'9', ..] => {
                kept.put(&origins[usize::from(digit % 3)], &line[1..], NOW);
            }
            _ => kept.put(&origins[0], line, NOW),
        }
    }
    for origin in &origins {
        for protocol in ["h3", "h2"] {
            let services: Vec<_> = kept.of(origin, protocol, NOW).collect();
            assert!(services.len() <= SERVICES_MAX);
            assert!(services.iter().all(|service| service.port > 0));
        }
    }
}
