use super::*;

fn fetch(method: &str) -> Fetch {
    let mut fetch = Fetch::get("https://me:secret@a.example/x/y?q".parse().expect("a URL"));
    method.clone_into(&mut fetch.method);
    if method != "GET" && method != "HEAD" {
        fetch.upload = Some(Upload::source(b"content".to_vec()));
    }
    fetch.fields = Fields::new()
        .with("authorization", "Bearer 1")
        .with("content-type", "text/plain")
        .with("x-mine", "2");
    fetch.follows_redirects = true;
    fetch
}

fn redirected(fetch: &Fetch, status: u16, location: &str) -> Fetch {
    let first = fetch.url.origin().clone();
    let next = next(fetch, &first, status, Some(location.as_bytes()), 0);
    next.expect("a good redirect").expect("a redirect")
}

#[test]
fn redirects_change_the_method_as_in_curl() {
    for (method, status, expected) in [
        ("GET", 301, "GET"),
        ("HEAD", 303, "HEAD"),
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("POST", 303, "GET"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
        ("PUT", 301, "PUT"),
        ("PUT", 302, "PUT"),
        ("PUT", 303, "GET"),
        ("PUT", 308, "PUT"),
    ] {
        let next = redirected(&fetch(method), status, "/z");
        assert_eq!(next.method, expected, "{method} {status}");
        let keeps = expected == method && !matches!(method, "GET" | "HEAD");
        assert_eq!(next.upload.is_some(), keeps, "{method} {status}");
        let has_type = next.fields.get("content-type").is_some();
        assert_eq!(has_type, keeps || matches!(method, "GET" | "HEAD"));
    }
    let mut fixed = fetch("DELETE");
    fixed.is_method_fixed = true;
    let next = redirected(&fixed, 302, "/z");
    assert_eq!((&*next.method, next.upload.is_some()), ("DELETE", false));
}

#[test]
fn credentials_are_not_sent_to_another_origin() {
    for (location, stays) in [
        ("/elsewhere", true),
        ("https://a.example/z", true),
        ("https://b.example/z", false),
        ("https://a.example:8443/z", false),
        ("http://a.example/z", false),
        ("//b.example/z", false),
    ] {
        let next = redirected(&fetch("GET"), 302, location);
        assert_eq!(
            next.fields.get("authorization").is_some(),
            stays,
            "{location}"
        );
        assert_eq!(next.url.credentials().is_some(), stays, "{location}");
        assert!(next.fields.get("x-mine").is_some());
    }
}

#[test]
fn responses_other_than_valid_redirects_are_not_followed() {
    let get = fetch("GET");
    let first = get.url.origin().clone();
    let to = |fetch: &Fetch, status, location: Option<&str>, count| {
        next(fetch, &first, status, location.map(str::as_bytes), count)
    };
    assert!(matches!(to(&get, 200, Some("/z"), 0), Ok(None)));
    assert!(matches!(to(&get, 304, Some("/z"), 0), Ok(None)));
    assert!(matches!(to(&get, 302, None, 0), Ok(None)));
    assert!(matches!(to(&get, 302, Some(""), 0), Ok(None)));
    assert!(matches!(to(&get, 302, Some(" "), 0), Ok(None)));
    assert!(matches!(to(&get, 302, Some("/z"), 49), Ok(Some(_))));
    assert!(matches!(
        to(&get, 302, Some("/z"), 50),
        Err(Failure::Redirects(50))
    ));
    assert!(matches!(
        to(&get, 302, Some("ftp://a/"), 0),
        Err(Failure::Scheme(_))
    ));
    assert!(matches!(
        to(&get, 302, Some("mailto:a"), 0),
        Err(Failure::Scheme(_))
    ));
    assert!(matches!(
        to(&get, 302, Some("https://"), 0),
        Err(Failure::Url(_))
    ));
    let mut streaming = fetch("PUT");
    streaming.upload = Some(Upload::stream(&b"once"[..]));
    assert!(matches!(
        to(&streaming, 307, Some("/z"), 0),
        Err(Failure::Rewind)
    ));
    assert!(matches!(to(&streaming, 303, Some("/z"), 0), Ok(Some(_))));
    let mut unfollowed = fetch("GET");
    unfollowed.follows_redirects = false;
    assert!(matches!(to(&unfollowed, 302, Some("/z"), 0), Ok(None)));
}

#[test]
fn rfc3986_2_1_octets_of_other_encodings_are_percent_encoded() {
    let get = fetch("GET");
    for (location, expected) in [
        (&b"/caf\xe9?\xfc"[..], "https://a.example/caf%E9?%FC"),
        ("/café".as_bytes(), "https://a.example/caf%C3%A9"),
        (b"https://b.example/\xe9 x", "https://b.example/%E9%20x"),
    ] {
        let next = next(&get, get.url.origin(), 302, Some(location), 0);
        let next = next.expect("a good redirect").expect("a redirect");
        assert_eq!(next.url.to_string(), expected);
    }
}
