//! Any values of `Alt-Svc`, and any file of them: what is kept comes back from the file that it is written to. Shared by the
//! replay of the corpus and the fuzz target.

use std::time::Duration;

use lastbyte_client::{AltSvc, Url};

const NOW: Duration = Duration::from_secs(1_790_000_000);
const SERVICES_MAX: usize = 8;

/// Lines: those that begin with a digit are values that one of three origins sent, the others are of a file.
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
    is_kept(&kept, &origins);
    let (read, _) = AltSvc::from_text(&file);
    is_kept(&read, &origins);
}

/// What has not expired comes back from the file.
fn is_kept(services: &AltSvc, origins: &[lastbyte_client::Origin]) {
    let text = services.to_text(NOW);
    let (again, wrong) = AltSvc::from_text(&text);
    assert_eq!(wrong, 0, "{text}");
    assert_eq!(again.to_text(NOW), text);
    for origin in origins {
        let of = |services: &AltSvc| services.of(origin, "h3", NOW).count();
        assert!(of(&again) <= of(services), "{text}");
        assert_eq!(of(&again) == 0, of(services) == 0, "{text}");
    }
}
