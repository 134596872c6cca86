//! Arbitrary values of `Alt-Svc` and arbitrary cache files: the cache round-trips through its file. Shared by the replay of
//! the corpus and the fuzz target.

use std::time::Duration;

use lastbyte_client::{AltSvc, Url};

const NOW: Duration = Duration::from_secs(1_790_000_000);
const SERVICES_MAX: usize = 8;

/// The input consists of lines. A line that starts with a digit is a field value of one of three origins; the others form a
/// file.
pub(crate) fn play(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let origins = [
        "https://a.example/",
        "https://b.example:8443/",
        "https://[2001:db8::1]/",
    ]
    .map(|url| url.parse::<Url>().expect("a URL").origin().clone());
    let mut kept = AltSvc::default();
    let mut file = String::new();
    for line in text.lines() {
        if let [digit @ b'0'..=b'9', ..] = line.as_bytes() {
            kept.put(&origins[usize::from(digit % 3)], &line[1..], NOW);
        } else {
            file += line;
            file.push('\n');
        }
    }
    for origin in &origins {
        for protocol in ["h3", "h2"] {
            let services: Vec<_> = kept.of(origin, protocol, NOW).collect();
            assert!(services.len() <= SERVICES_MAX);
            assert!(services.iter().all(|service| service.port > 0));
        }
    }
    check_round_trip(&kept, &origins);
    let (read, _) = AltSvc::from_text(&file);
    check_round_trip(&read, &origins);
}

/// Checks that services which have not expired round-trip through the file.
fn check_round_trip(services: &AltSvc, origins: &[lastbyte_client::Origin]) {
    let text = services.to_text(NOW);
    let (again, invalid) = AltSvc::from_text(&text);
    assert_eq!(invalid, 0, "{text}");
    assert_eq!(again.to_text(NOW), text);
    for origin in origins {
        let of = |services: &AltSvc| services.of(origin, "h3", NOW).count();
        assert!(of(&again) <= of(services), "{text}");
        assert_eq!(of(&again) == 0, of(services) == 0, "{text}");
    }
}
