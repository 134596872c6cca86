use std::task::{Context, Poll, Waker};

use lastbyte_http3::Request;

use super::{
    HINTS_MAX, Hints, fields,
    upstream::{Server, Upstream},
};
use crate::handler::{Peer, Version};

fn upstream(text: &str) -> Upstream {
    text.parse().expect("a server")
}

#[test]
fn upstream_urls_are_parsed_and_validated() {
    let expected = Upstream {
        is_secure: false,
        is_h2c: false,
        servers: vec![tcp("::1", 8080)],
        base: "/app".into(),
        takes_underscores: false,
        checks: None,
    };
    assert_eq!(upstream("http://[::1]:8080/app/"), expected);
    let secure = upstream("https://example.com");
    assert_eq!(
        (secure.is_secure, &secure.servers, secure.base.as_str()),
        (true, &vec![tcp("example.com", 443)], "")
    );
    let clear = upstream("h2c://example.com");
    assert_eq!(
        (clear.is_secure, clear.is_h2c, clear.servers),
        (false, true, vec![tcp("example.com", 80)])
    );
    for (text, what) in [
        ("example.com", "has an unknown scheme"),
        ("ftp://x", "has an unknown scheme"),
        ("http://a:b@x/", "has credentials"),
        ("http://x/?a", "has a query"),
        ("http://", "is not a valid URL"),
        ("unix:app.sock", "has no absolute path"),
        (
            "http://h:99999",
            "has the port `99999` (expected at most 65535)",
        ),
        ("h2c://h:", "has the port ``"),
        (
            format!("unix:/{}", "x".repeat(107)).as_str(),
            "of 108 bytes",
        ),
        ("http://a,", "`` is not a valid URL"),
        ("http://a:1,b:2", "`b:2` has an unknown scheme"),
        ("http://a,https://b", "different schemes"),
        ("http://a,unix:/b,h2c://c", "different schemes"),
        ("http://a/x,http://b/y", "different paths"),
        ("http://a:80/x,http://b/x,http://a/x/", "has a server twice"),
    ] {
        let error = text.parse::<Upstream>().expect_err(text);
        assert!(error.to_string().contains(what), "{error}");
    }
}

fn tcp(host: &str, port: u16) -> Server {
    Server::Tcp {
        host: host.into(),
        port,
    }
}

#[test]
fn several_upstream_urls_are_a_list_with_commas() {
    let all = upstream("http://a:1/app,http://[::1]:2/app/,http://a/app");
    let servers = [tcp("a", 1), tcp("::1", 2), tcp("a", 80)];
    assert_eq!(
        (all.servers.as_slice(), all.base.as_str()),
        (&servers[..], "/app")
    );
    let socket = upstream("unix:/run/app.sock,http://a");
    let servers = [Server::Unix("/run/app.sock".into()), tcp("a", 80)];
    assert_eq!(socket.servers, servers);
    assert_eq!(socket.authority(), "localhost");
    // In metrics, all servers are named.
    let name = all.to_string();
    assert_eq!(name, "http://a:1/app,http://[::1]:2/app,http://a/app");
    assert_eq!(socket.to_string(), "unix:/run/app.sock,http://a");
    let list = |count: u16| {
        let urls = (1..=count).map(|port| format!("http://a:{port}"));
        urls.collect::<Vec<_>>().join(",")
    };
    assert_eq!(upstream(&list(32)).servers.len(), 32);
    let error = list(33).parse::<Upstream>().expect_err("too many");
    assert!(
        error
            .to_string()
            .contains("has 33 servers (expected at most 32)"),
        "{error}"
    );
}

#[test]
fn rfc9110_7_6_hop_by_hop_fields_are_removed_and_forwarding_fields_extended() {
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
}

#[test]
fn rfc9110_10_1_4_te_is_sent_for_this_hop_if_the_client_takes_trailers() {
    for (lines, expected) in [
        (&["trailers"][..], true),
        (&["deflate;q=0.5", "gzip, Trailers"], true),
        (&["deflate"], false),
        (&["xtrailers"], false),
        (&[], false),
    ] {
        let asked = lines
            .iter()
            .fold(get("/"), |asked, line| asked.with("te", line));
        let head = passed(&asked, "http://behind").expect("a head");
        let (te, connection): (&[&str], &[&str]) = if expected {
            (&["trailers"], &["te"])
        } else {
            (&[], &[])
        };
        assert_eq!(all(&head, "te"), te, "{lines:?}");
        assert_eq!(all(&head, "connection"), connection, "{lines:?}");
    }
}

const PEER: &str = "192.0.2.9:5000";

fn passed(request: &Request, url: &str) -> Result<http::request::Parts, fields::Refused> {
    let peer = Peer {
        remote: PEER.parse().expect("an address"),
        version: Version::Http3,
        is_early: false,
    };
    fields::request(request, &peer, &upstream(url))
}

fn get(path: &str) -> Request {
    Request::new("GET", "https", "example.com", path)
}

fn all(head: &http::request::Parts, name: &str) -> Vec<String> {
    let values = head.headers.get_all(name).iter();
    values
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect()
}

#[test]
fn rfc7239_8_1_malformed_forwarding_fields_of_a_client_are_replaced() {
    let asked = get("/")
        .with("forwarded", "for=\"1.2.3.4")
        .with("x-forwarded-for", "127.0.0.1\"")
        .with("via", "1.1 a (");
    let head = passed(&asked, "http://behind").expect("a head");
    let expected = "for=192.0.2.9;host=\"example.com\";proto=https";
    assert_eq!(all(&head, "forwarded"), [expected]);
    assert_eq!(all(&head, "x-forwarded-for"), ["192.0.2.9"]);
    assert_eq!(all(&head, "via"), ["3 lastbyte"]);
    // Valid lists are extended; one invalid line invalidates them all.
    let asked = get("/")
        .with("forwarded", "for=1.2.3.4;by=\"a, b\"")
        .with("x-forwarded-for", "1.2.3.4")
        .with("x-forwarded-for", "oops");
    let head = passed(&asked, "http://behind").expect("a head");
    let grown = format!("for=1.2.3.4;by=\"a, b\", {expected}");
    assert_eq!(all(&head, "forwarded"), [grown]);
    assert_eq!(all(&head, "x-forwarded-for"), ["192.0.2.9"]);
}

#[test]
fn ambiguous_field_names_are_not_forwarded() {
    let names = [
        "x_forwarded_for",
        "content_length",
        "transfer_encoding",
        "x.forwarded.for",
        "x-real-ip",
        "x-forwarded-port",
        "x-forwarded-prefix",
        "proxy",
        "x_mine",
    ];
    let mut asked = get("/").with("x-mine", "1");
    for name in names {
        asked = asked.with(name, "1");
    }
    let head = passed(&asked, "http://behind").expect("a head");
    for name in names {
        assert!(!head.headers.contains_key(name), "{name}");
    }
    assert_eq!(all(&head, "x-mine"), ["1"]);
    // With `_` permitted, only fields that are no alias of another pass.
    let peer = Peer {
        remote: PEER.parse().expect("an address"),
        version: Version::Http2,
        is_early: false,
    };
    let takes = Upstream {
        takes_underscores: true,
        ..upstream("http://behind")
    };
    let head = fields::request(&asked, &peer, &takes).expect("a head");
    assert_eq!(all(&head, "x_mine"), ["1"]);
    for name in &names[..names.len() - 1] {
        assert!(!head.headers.contains_key(*name), "{name}");
    }
}

#[test]
fn rfc9110_8_6_one_content_length_and_5_5_no_blanks_around_a_value() {
    let asked = get("/")
        .with("content-length", "3")
        .with("content-length", " 3 ")
        .with("x-mine", " a b\t")
        .with("cookie", " a=1 ");
    let head = passed(&asked, "http://behind").expect("a head");
    assert_eq!(all(&head, "content-length"), ["3"]);
    assert_eq!(all(&head, "x-mine"), ["a b"]);
    assert_eq!(all(&head, "cookie"), ["a=1"]);
    for wrong in ["4", "", "3, 3", "+3", "0x3"] {
        let asked = get("/")
            .with("content-length", "3")
            .with("content-length", wrong);
        assert!(passed(&asked, "http://behind").is_err(), "{wrong}");
    }
}

#[test]
fn rfc9110_8_6_a_response_without_content_has_no_length() {
    for (status, expected) in [
        (200, Some(&b"5"[..])),
        (304, Some(b"5")),
        (204, None),
        (205, Some(b"0")),
    ] {
        let response = http::Response::builder()
            .status(status)
            .header("content-length", "5")
            .body(());
        let (head, ()) = response.expect("a response").into_parts();
        let passed = fields::response(&head).expect("a valid length");
        assert_eq!(passed.fields().get("content-length"), expected, "{status}");
    }
}

#[test]
fn request_paths_do_not_escape_the_base_of_the_upstream() {
    for path in [
        "/../secret",
        "/a/..",
        "/./a",
        "/a/.",
        "/%2e%2e/secret",
        "/.%2E/secret",
        "/a/..%2fsecret",
        "/a\\..\\secret",
        "/a/..%5Csecret",
        "/..;x=1/secret",
        "/%2e%2e%3bx/secret",
    ] {
        assert!(passed(&get(path), "http://behind/app").is_err(), "{path}");
        // Without a base there is nothing to leave.
        let head = passed(&get(path), "http://behind").expect(path);
        assert_eq!(head.uri, path);
    }
    for path in ["/...", "/a..b/.c", "/a?/../b", "/%252e%252e/x", "//a"] {
        let head = passed(&get(path), "http://behind/app").expect(path);
        assert_eq!(head.uri.to_string(), format!("/app{path}"));
    }
    let options = Request::new("OPTIONS", "https", "example.com", "*");
    assert!(passed(&options, "http://behind/app").is_err());
    let head = passed(&options, "http://behind").expect("a head");
    assert_eq!(head.uri, "*");
}

#[test]
fn rfc9112_3_2_invalid_paths_and_hosts_are_not_forwarded() {
    for path in [
        "http://internal.example/admin",
        "-sibling/secret",
        "*",
        "",
        "/a#b",
        "/a b",
        "/a\r\nx: y",
    ] {
        assert!(passed(&get(path), "http://behind").is_err(), "{path:?}");
        assert!(passed(&get(path), "http://behind/app").is_err(), "{path:?}");
    }
    for authority in ["a/b?c#d", "a b", "user@a", "a\r\nx: y", "a:b", "a\"b"] {
        let asked = Request::new("GET", "https", authority, "/");
        assert!(passed(&asked, "http://behind").is_err(), "{authority:?}");
    }
    // An HTTP/1.0 client need not send a host.
    let asked = Request::new("GET", "https", "", "/");
    for (url, host) in [
        ("http://behind", "behind"),
        ("http://behind:8080", "behind:8080"),
        ("https://[::1]", "[::1]"),
        ("http://[::1]:443", "[::1]:443"),
    ] {
        let head = passed(&asked, url).expect(url);
        assert_eq!(all(&head, "host"), [host]);
        assert_eq!(all(&head, "x-forwarded-host"), [host]);
    }
}

#[test]
fn rfc9110_7_6_2_max_forwards_of_trace_and_options_counts_down() {
    let limited = |method: &str, value: &str| {
        Request::new(method, "https", "example.com", "/").with("max-forwards", value)
    };
    for (method, value, expected) in [
        ("OPTIONS", "10", "9"),
        ("TRACE", " 1 ", "0"),
        ("TRACE", "18446744073709551616", "18446744073709551614"),
        ("GET", "10", "10"),
        ("GET", "0", "0"),
        ("GET", "many", "many"),
    ] {
        let head = passed(&limited(method, value), "http://behind").expect(value);
        assert_eq!(all(&head, "max-forwards"), [expected], "{method} {value}");
    }
    for value in ["", "-1", "+1", "1, 1", "many"] {
        let refused = passed(&limited("TRACE", value), "http://behind");
        assert!(refused.is_err(), "{value}");
    }
    let twice = limited("OPTIONS", "1").with("max-forwards", "1");
    assert!(passed(&twice, "http://behind").is_err());
}

#[test]
fn rfc9110_6_5_1_trailers_do_not_route_frame_or_authenticate() {
    let trailers = lastbyte_http3::Fields::new()
        .with("x-sum", " 1 ")
        .with("host", "a")
        .with("content-length", "1")
        .with("transfer-encoding", "chunked")
        .with("authorization", "a")
        .with("x-forwarded-for", "127.0.0.1")
        .with("if-match", "*")
        .with("x_y", "1");
    let map = fields::request_trailers(&trailers, &upstream("h2c://behind"));
    assert_eq!(map.len(), 1);
    assert_eq!(map["x-sum"], "1");
}

#[test]
fn interim_responses_of_an_upstream_keep_their_order() {
    let hints = Hints::default();
    for number in 0..HINTS_MAX + 2 {
        let mut fields = http::HeaderMap::new();
        fields.insert("link", number.into());
        hints.push(103, &fields);
        // It concerns one hop (RFC 9110 §15.2.1).
        hints.push(100, &fields);
    }
    let context = Context::from_waker(Waker::noop());
    for number in 0..HINTS_MAX {
        let Poll::Ready(Ok(hint)) = hints.poll_next(&context) else {
            panic!("no hint {number}");
        };
        let link = number.to_string();
        assert_eq!(hint.fields().get("link"), Some(link.as_bytes()));
    }
    assert!(hints.poll_next(&context).is_pending());
}
