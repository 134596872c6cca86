use lastbyte_http3::Request;

use super::{fields, upstream::Upstream};
use crate::handler::{Peer, Version};

fn upstream(text: &str) -> Upstream {
    text.parse().expect("a server")
}

#[test]
fn a_server_is_a_url_without_anything_else() {
    let expected = Upstream {
        is_secure: false,
        is_h2c: false,
        host: "::1".into(),
        port: 8080,
        base: "/app".into(),
    };
    assert_eq!(upstream("http://[::1]:8080/app/"), expected);
    let secure = upstream("https://example.com");
    assert_eq!(
        (secure.is_secure, secure.port, secure.base.as_str()),
        (true, 443, "")
    );
    let clear = upstream("h2c://example.com");
    assert_eq!(
        (clear.is_secure, clear.is_h2c, clear.port),
        (false, true, 80)
    );
    for (text, what) in [
        ("example.com", "has to begin with"),
        ("ftp://x", "has to begin with"),
        ("http://a:b@x/", "a name and a password"),
        ("http://x/?a", "has a query"),
        ("http://", "is no URL"),
    ] {
        let error = text.parse::<Upstream>().expect_err(text);
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn rfc9110_7_6_fields_of_one_hop_end_here_and_those_of_the_way_grow() {
    let asked = Request::new("GET", "https", "example.com", "/a?b")
        .with("te", "trailers")
        .with("cookie", "a=1")
        .with("cookie", "b=2")
        .with("via", "1.1 before")
        .with("x-forwarded-for", "192.0.2.1")
        .with("x-forwarded-proto", "http")
        .with("x-mine", "1");
    let peer = Peer {
        remote: "[2001:db8::1]:5000".parse().expect("an address"),
        version: Version::Http3,
        is_early: true,
    };
    let head = fields::request(&asked, &peer, &upstream("http://behind:80/base")).expect("a head");
    assert_eq!(head.uri.to_string(), "/base/a?b");
    for (name, expected) in [
        ("host", "example.com"),
        ("cookie", "a=1; b=2"),
        ("via", "1.1 before, 3 lastbyte"),
        ("x-forwarded-for", "192.0.2.1, 2001:db8::1"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "example.com"),
        (
            "forwarded",
            "for=\"[2001:db8::1]\";host=\"example.com\";proto=https",
        ),
        ("early-data", "1"),
        ("x-mine", "1"),
    ] {
        let values: Vec<_> = head.headers.get_all(name).iter().collect();
        assert_eq!(values, [expected], "{name}");
    }
    assert!(!head.headers.contains_key("te"));
}
