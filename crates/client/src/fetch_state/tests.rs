use super::*;

const VERSIONS: [Version; 3] = [Version::Http11, Version::Http2, Version::Http3];

fn upload(len: usize) -> Fetch {
    let mut fetch = Fetch::get("http://user:secret@localhost/".parse().expect("a URL"));
    fetch.is_decoded = true;
    fetch.upload = (len > 0).then(|| Upload::source(vec![0; len]));
    fetch
}

/// The values of a field in the requests of all versions.
fn sent(fetch: &Fetch, name: &str) -> [Option<String>; 3] {
    let state = FetchState::new(fetch.clone());
    VERSIONS.map(|version| {
        let request = state.http_request(version);
        let value = request.fields().get(name)?;
        Some(String::from_utf8_lossy(value).into_owned())
    })
}

/// Over HTTP/2 and 3 a body does not wait for a response, so that nothing is added there.
#[test]
fn rfc9110_10_1_1_long_uploads_are_announced_over_http1_unless_the_field_is_omitted() {
    let asks = Some("100-continue".to_owned());
    let (short, long) = (EXPECT_LEN as usize, EXPECT_LEN as usize + 1);
    assert_eq!(sent(&upload(short), "expect"), [None, None, None]);
    assert_eq!(sent(&upload(long), "expect"), [asks.clone(), None, None]);
    let mut stream = upload(0);
    stream.upload = Some(Upload::stream(std::io::empty()));
    assert_eq!(sent(&stream, "expect"), [asks.clone(), None, None]);
    for mut fetch in [upload(long), stream] {
        fetch.omitted = vec!["expect".to_owned()];
        assert_eq!(sent(&fetch, "expect"), [None, None, None]);
    }
}

#[test]
fn a_given_expectation_is_sent_in_all_versions() {
    for (len, value, is_sent) in [
        (1, "100-Continue", true),
        (1, "other", true),
        (0, "other", true),
        // RFC 9110 §10.1.1: not without content.
        (0, "100-Continue", false),
    ] {
        let mut fetch = upload(len);
        fetch.fields.push("expect", value);
        let value = is_sent.then(|| value.to_owned());
        assert_eq!(sent(&fetch, "expect"), [(); 3].map(|()| value.clone()));
    }
}

#[test]
fn omitted_fields_are_not_derived_in_any_version() {
    let mut fetch = upload(1);
    for name in ["accept-encoding", "authorization"] {
        assert!(sent(&fetch, name).iter().all(Option::is_some), "{name}");
        fetch.omitted.push(name.to_owned());
        assert_eq!(sent(&fetch, name), [None, None, None], "{name}");
    }
    // HTTP/1.1 needs it.
    fetch.omitted.push("content-length".to_owned());
    let len = Some("1".to_owned());
    assert_eq!(
        sent(&fetch, "content-length"),
        [(); 3].map(|()| len.clone())
    );
}

#[test]
fn rfc9114_4_2_fields_of_a_connection_are_sent_over_http1_only() {
    let mut fetch = upload(0);
    for name in ["connection", "keep-alive", "proxy-connection", "upgrade"] {
        fetch.fields.push(name, "x");
        let value = Some("x".to_owned());
        assert_eq!(sent(&fetch, name), [value, None, None], "{name}");
    }
}
