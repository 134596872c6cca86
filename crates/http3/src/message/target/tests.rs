use super::{is_authority, is_authority_with_port, is_path};

#[test]
fn rfc3986_3_2_an_authority_is_a_host_with_an_optional_port() {
    for good in [
        "example.com",
        "example.com:443",
        "EXAMPLE.com:",
        "192.0.2.1:8080",
        "[2001:db8::1]",
        "[::ffff:192.0.2.1]:443",
        "xn--bcher-kva.example",
        "a_b.example",
        "caf%C3%A9.example",
        "a!$&'()*+,;=~b",
    ] {
        assert!(is_authority(good.as_bytes()), "{good}");
    }
    for bad in [
        "",
        ":443",
        "user@example.com",
        "a/b?c#d",
        "a b",
        "a\tb",
        "a\"b",
        "a\\b",
        "a<b",
        "example.com:443:443",
        "example.com:port",
        "example.com:65536",
        "example.com:-1",
        "example.com:+1",
        "a%",
        "a%2",
        "a%zz",
        "2001:db8::1",
        "[2001:db8::1",
        "[::1%25eth0]",
        "[v1.a]",
        "[example.com]",
        "[::1]x",
        "[::1]]",
        "[]",
        "caf\u{e9}",
    ] {
        assert!(!is_authority(bad.as_bytes()), "{bad}");
    }
    assert!(is_authority_with_port(b"example.com:443"));
    for bad in [
        "example.com",
        "example.com:",
        "example.com:0",
        "example.com:00",
        "[2001:db8::1]",
        "a@b:443",
    ] {
        assert!(!is_authority_with_port(bad.as_bytes()), "{bad}");
    }
}

#[test]
fn rfc9114_4_3_1_a_path_starts_with_a_slash_and_has_no_fragment() {
    for good in ["/", "/a/../b?c=/d?e", "//a", "/%2e%2e/{x}"] {
        assert!(is_path(good, "GET"), "{good}");
    }
    for bad in [
        "",
        "*",
        "a",
        "-x",
        "?a",
        "/a#b",
        "/a b",
        "/\u{e9}",
        "http://a/",
    ] {
        assert!(!is_path(bad, "GET"), "{bad}");
    }
    assert!(is_path("*", "OPTIONS") && !is_path("*a", "OPTIONS"));
}
