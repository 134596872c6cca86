//! Any head for a proxy: it is refused, or what goes to the upstream cannot be taken for anything else. Shared by the replay of
//! the corpus and the fuzz target.

use lastbyte_http3::{Request, target};
use lastbyte_server::{
    Peer, Version,
    proxy::{Upstream, fields},
};

const UPSTREAMS: [&str; 4] = [
    "http://behind.example",
    "http://[2001:db8::1]:8080/app",
    "https://behind.example/a/b/",
    "h2c://192.0.2.7:8443",
];

/// The first line is flags, method, scheme, authority and path, with blanks between them; then come fields. `None` for other
/// texts.
fn request(text: &str) -> Option<(u8, Request)> {
    let (first, fields) = text.split_once('\n').unwrap_or((text, ""));
    let mut words = first.splitn(5, ' ');
    let flags = *words.next()?.as_bytes().first()?;
    let mut word = || words.next();
    let mut request = Request::new(word()?, word()?, word()?, word()?);
    for line in fields.split('\n') {
        if let Some((name, value)) = line.split_once(": ") {
            request.fields_mut().push(name, value);
        }
    }
    Some((flags, request))
}

/// Where a server that resolves all that it may ends up: `None` above its root.
fn depth(path: &str) -> Option<usize> {
    let path = path.split('?').next()?.to_ascii_lowercase();
    let path = path.replace("%2e", ".").replace("%2f", "/");
    let path = path.replace("%5c", "/").replace('\\', "/");
    let mut depth = 0usize;
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        match segment.replace("%3b", ";").split(';').next() {
            Some("..") => depth = depth.checked_sub(1)?,
            Some(".") => {}
            _ => depth += 1,
        }
    }
    Some(depth)
}

/// Rewrites the head that the bytes say.
pub(crate) fn play(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Some((flags, request)) = request(&text) else {
        return;
    };
    let url = UPSTREAMS[usize::from(flags & 3)];
    let mut upstream: Upstream = url.parse().expect("a server");
    upstream.takes_underscores = flags & 4 != 0;
    let peer = Peer {
        remote: "[2001:db8::9]:443".parse().expect("an address"),
        version: Version::Http3,
        is_early: flags & 8 != 0,
    };
    let Ok(head) = fields::request(&request, &peer, &upstream) else {
        return;
    };
    let path = head.uri.to_string();
    assert!(target::is_path(&path, head.method.as_str()), "{path}");
    if !upstream.base.is_empty() {
        let inside = path.strip_prefix(&upstream.base).expect("the base");
        assert!(inside.starts_with('/'), "{path}");
        assert!(depth(inside).is_some(), "{path}");
    }
    assert_ne!(head.method, "CONNECT");
    let one = |name: &str| {
        let mut values = head.headers.get_all(name).iter();
        let value = values.next().expect(name);
        assert!(values.next().is_none(), "{name}");
        value.to_str().expect("text")
    };
    assert!(target::is_authority(one("host").as_bytes()));
    assert_eq!(one("host"), one("x-forwarded-host"));
    assert_eq!(one("x-forwarded-proto"), "https");
    assert!(one("x-forwarded-for").ends_with("2001:db8::9"));
    assert!(one("via").ends_with("3 lastbyte"));
    let element = format!("for=\"[2001:db8::9]\";host=\"{}\";proto=https", one("host"));
    let before = one("forwarded").strip_suffix(&element).expect("ours");
    // A quote that the client left open would swallow ours.
    let mut is_open = false;
    let mut bytes = before.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_open = !is_open,
            b'\\' if is_open => drop(bytes.next()),
            _ => {}
        }
    }
    assert!(
        !is_open && (before.is_empty() || before.ends_with(", ")),
        "{before}"
    );
    assert!(head.headers.get_all("content-length").iter().count() <= 1);
    // Those of this hop, or none.
    if head.headers.contains_key("te") || head.headers.contains_key("connection") {
        assert_eq!((one("te"), one("connection")), ("trailers", "te"));
    }
    for (name, value) in &head.headers {
        let folded = name.as_str().replace('_', "-");
        assert!(upstream.takes_underscores || folded == name.as_str());
        assert!(
            folded
                .bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_alphanumeric())
        );
        let is_forbidden = matches!(
            folded.as_str(),
            "keep-alive" | "transfer-encoding" | "upgrade" | "expect" | "proxy"
        ) || folded.starts_with("proxy-");
        assert!(!is_forbidden, "{name}");
        let is_ours = matches!(
            folded.as_str(),
            "host" | "via" | "forwarded" | "content-length"
        ) || folded.starts_with("x-forwarded-");
        assert!(!is_ours || folded == name.as_str(), "{name}");
        let value = value.as_bytes();
        assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        assert_eq!(value.trim_ascii(), value, "{name}");
    }
}
