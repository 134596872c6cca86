use lastbyte_http3::Request;

use super::*;
use crate::representation::{
    coding::{Accepted, CODINGS},
    range::{RANGES_MAX, requested},
    validator::parse_date,
};

const BODY: &[u8] = b"0123456789";
/// Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110 §5.6.7.
const MODIFIED: u64 = 784_111_777;
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const NOW: Duration = Duration::from_secs(MODIFIED + 1000);

fn representation(etag: EntityTag) -> Representation {
    Representation {
        len: BODY.len() as u64,
        content_type: "text/plain",
        coding: None,
        etag: Some(etag),
        modified: Some(Duration::new(MODIFIED, 5)),
        varies: false,
    }
}

fn answer(representation: &Representation, request: &Request) -> FullResponse {
    let prepared = representation.clone().prepare();
    prepared.answer(Box::new(BODY), request, NOW, || [0xab; 16])
}

fn ask(method: &str, fields: &[(&str, &str)]) -> FullResponse {
    let mut request = Request::new(method, "https", "localhost", "/");
    for (name, value) in fields {
        request = request.with(name, value);
    }
    answer(&representation(EntityTag::strong("a")), &request)
}

fn status(method: &str, fields: &[(&str, &str)]) -> u16 {
    ask(method, fields).response.status()
}

fn field<'a>(answer: &'a FullResponse, name: &str) -> Option<&'a str> {
    std::str::from_utf8(answer.response.fields().get(name)?).ok()
}

fn text(answer: &FullResponse) -> String {
    let mut bytes = vec![0; answer.body_len() as usize];
    if let Some(body) = &answer.body {
        body.read_at(0, &mut bytes).expect("it has them");
    }
    String::from_utf8(bytes).expect("text")
}

#[test]
fn rfc9110_13_1_each_condition_alone() {
    let later = "Sun, 06 Nov 1994 08:49:38 GMT";
    let earlier = "Sun, 06 Nov 1994 08:49:36 GMT";
    let expected = [
        ("if-match", "\"a\"", 200),
        ("if-match", "\"b\", \"a\"", 200),
        ("if-match", "*", 200),
        ("if-match", "\"b\"", 412),
        ("if-match", "W/\"a\"", 412),
        ("if-match", "a", 412),
        ("if-none-match", "\"a\"", 304),
        ("if-none-match", "W/\"a\"", 304),
        ("if-none-match", " * ", 304),
        ("if-none-match", "\"x,\", \"a\"", 304),
        ("if-none-match", "\"b\"", 200),
        ("if-none-match", "a", 200),
        ("if-modified-since", DATE, 304),
        ("if-modified-since", later, 304),
        ("if-modified-since", earlier, 200),
        ("if-modified-since", "yesterday", 200),
        ("if-unmodified-since", DATE, 200),
        ("if-unmodified-since", later, 200),
        ("if-unmodified-since", earlier, 412),
        ("if-unmodified-since", "yesterday", 200),
    ];
    for (name, value, expected) in expected {
        for method in ["GET", "HEAD"] {
            assert_eq!(
                status(method, &[(name, value)]),
                expected,
                "{method} {name}: {value}"
            );
        }
    }
}

#[test]
fn rfc9110_13_2_2_precedence_of_conditions() {
    let earlier = "Sun, 06 Nov 1994 08:49:36 GMT";
    let cases = [
        // The date is ignored beside a tag.
        (
            &[("if-match", "\"a\""), ("if-unmodified-since", earlier)][..],
            200,
        ),
        (
            &[("if-none-match", "\"b\""), ("if-modified-since", DATE)],
            200,
        ),
        (&[("if-match", "\"b\""), ("if-none-match", "\"a\"")], 412),
        (&[("if-match", "\"a\""), ("if-none-match", "\"a\"")], 304),
        // Two lines are one list.
        (
            &[("if-none-match", "\"b\""), ("if-none-match", "\"a\"")],
            304,
        ),
        // Conditions come before ranges.
        (&[("if-none-match", "\"a\""), ("range", "bytes=0-1")], 304),
        (&[("if-match", "\"b\""), ("range", "bytes=50-")], 412),
    ];
    for (fields, expected) in cases {
        assert_eq!(status("GET", fields), expected, "{fields:?}");
    }
    assert_eq!(status("DELETE", &[("if-none-match", "\"a\"")]), 412);
    assert_eq!(status("DELETE", &[("if-modified-since", DATE)]), 200);
}

#[test]
fn rfc9110_15_4_5_not_modified_has_the_fields_that_caches_need() {
    let answer = ask("GET", &[("if-none-match", "\"a\"")]);
    assert_eq!(field(&answer, "etag"), Some("\"a\""));
    assert_eq!(field(&answer, "last-modified"), Some(DATE));
    assert_eq!(field(&answer, "content-length"), None);
    assert_eq!(field(&answer, "content-type"), None);
    assert!(answer.body.is_none());
}

#[test]
fn rfc9110_14_1_2_ranges_select_their_bytes() {
    let expected = [
        ("bytes=0-0", "0", "bytes 0-0/10"),
        ("bytes=2-4", "234", "bytes 2-4/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=7-99999999999999999999999", "789", "bytes 7-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=-30", "0123456789", "bytes 0-9/10"),
        ("BYTES = 9-9", "9", "bytes 9-9/10"),
        ("bytes=,5-5,", "5", "bytes 5-5/10"),
        ("bytes=5-5,20-30", "5", "bytes 5-5/10"),
    ];
    for (range, body, content_range) in expected {
        let answer = ask("GET", &[("range", range)]);
        assert_eq!(answer.response.status(), 206, "{range}");
        assert_eq!(text(&answer), body);
        assert_eq!(field(&answer, "content-range"), Some(content_range));
        assert_eq!(
            field(&answer, "content-length"),
            Some(body.len().to_string().as_str())
        );
    }
    for range in ["bytes=10-", "bytes=10-20,30-", "bytes=-0"] {
        let answer = ask("GET", &[("range", range)]);
        assert_eq!(answer.response.status(), 416, "{range}");
        assert_eq!(field(&answer, "content-range"), Some("bytes */10"));
        assert_eq!(field(&answer, "etag"), None, "of an error there is none");
    }
    // Invalid fields are ignored.
    for range in [
        "bytes=4-2",
        "bytes=a-",
        "bytes=",
        "bytes",
        "lines=1-2",
        "bytes=1-2-3",
        "bytes=-",
        "bytes=+1-2",
        "bytes=0-5,3-9,1-8",
    ] {
        let answer = ask("GET", &[("range", range)]);
        assert_eq!(
            (answer.response.status(), answer.body_len()),
            (200, 10),
            "{range}"
        );
        assert_eq!(field(&answer, "accept-ranges"), Some("bytes"));
    }
    // §14.2: only for GET.
    assert_eq!(status("HEAD", &[("range", "bytes=0-0")]), 200);
    assert_eq!(
        status("GET", &[("range", "bytes=0-0"), ("range", "bytes=1-1")]),
        200
    );
}

#[test]
fn rfc9110_14_6_several_ranges_are_a_multipart_body() {
    let answer = ask("GET", &[("range", "bytes=0-1,-2")]);
    let boundary = "ab".repeat(16);
    let content_type = format!("multipart/byteranges; boundary={boundary}");
    assert_eq!(field(&answer, "content-type"), Some(content_type.as_str()));
    assert_eq!(field(&answer, "content-range"), None);
    let expected = format!(
        "--{boundary}\r\ncontent-type: text/plain\r\ncontent-range: bytes 0-1/10\r\n\r\n01\r\n\
         --{boundary}\r\ncontent-type: text/plain\r\ncontent-range: bytes 8-9/10\r\n\r\n89\r\n\
         --{boundary}--\r\n"
    );
    assert_eq!(text(&answer), expected);
    assert_eq!(
        field(&answer, "content-length"),
        Some(expected.len().to_string().as_str())
    );
    // Reading it in pieces of any size gives the same.
    let body = answer.body.expect("a body");
    for size in 1..20 {
        let mut pieces = Vec::new();
        while pieces.len() < expected.len() {
            let mut piece = vec![0; size.min(expected.len() - pieces.len())];
            body.read_at(pieces.len() as u64, &mut piece)
                .expect("it has them");
            pieces.extend(piece);
        }
        assert_eq!(pieces, expected.as_bytes(), "{size}");
    }
}

#[test]
fn rfc9110_17_15_too_many_ranges_are_answered_with_the_whole_body() {
    let ranges = |count: usize| {
        let specs: Vec<String> = (0..count).map(|index| format!("{index}-{index}")).collect();
        let fields = [("range", format!("bytes={}", specs.join(",")))]
            .into_iter()
            .collect();
        requested(&fields, 1000)
    };
    assert!(matches!(ranges(RANGES_MAX), RequestedRange::Some(all) if all.len() == RANGES_MAX));
    assert_eq!(ranges(RANGES_MAX + 1), RequestedRange::All);
    let of_nothing = |text: &str| requested(&[("range", text)].into_iter().collect(), 0);
    assert_eq!(of_nothing("bytes=0-"), RequestedRange::Nothing);
    assert_eq!(
        of_nothing("bytes=-5"),
        RequestedRange::All,
        "all five of none"
    );
}

#[test]
fn rfc9110_13_1_5_if_range_of_another_version_returns_the_whole_body() {
    let range = ("range", "bytes=0-0");
    for (condition, expected) in [
        ("\"a\"", 206),
        ("\"b\"", 200),
        ("W/\"a\"", 200),
        ("\"a\", \"b\"", 200),
        (DATE, 206),
        ("Sun, 06 Nov 1994 08:49:38 GMT", 200),
        ("never", 200),
    ] {
        assert_eq!(
            status("GET", &[range, ("if-range", condition)]),
            expected,
            "{condition}"
        );
    }
    // A date in the current second may be that of the next change, too.
    let request = Request::new("GET", "https", "localhost", "/")
        .with(range.0, range.1)
        .with("if-range", DATE);
    let answer = representation(EntityTag::weak("a")).prepare().answer(
        Box::new(BODY),
        &request,
        Duration::from_secs(MODIFIED),
        || [0; 16],
    );
    assert_eq!(answer.response.status(), 200);
}

#[test]
fn rfc9110_12_5_3_codings_are_chosen_by_weight_then_by_length() {
    let all = [
        (CODINGS[0], 20, "br"),
        (CODINGS[1], 10, "zstd"),
        (CODINGS[2], 30, "gzip"),
    ];
    for (accepted, expected) in [
        (None, None),
        (Some(""), None),
        (Some("br"), Some("br")),
        (Some("gzip, deflate, br, zstd"), Some("zstd")),
        (Some("gzip;q=1, br;q=0.9"), Some("gzip")),
        (Some("x-gzip"), Some("gzip")),
        (Some("GZIP; Q=0.001"), Some("gzip")),
        (Some("*"), Some("zstd")),
        (Some("*;q=0.5, zstd;q=0"), Some("br")),
        (Some("br;q=0, *;q=0"), None),
        (Some("br;q=0.5, identity"), None),
        (Some("br;q=0.5, identity;q=0.5"), Some("br")),
        (Some("br;q=2, gzip;q=x"), None),
        (Some("br;q=1.000"), Some("br")),
        (Some("br;q=0.0001"), None),
    ] {
        let mut request = Request::new("GET", "https", "localhost", "/");
        if let Some(accepted) = accepted {
            request = request.with("accept-encoding", accepted);
        }
        let best = Accepted::of(request.fields()).best(&all);
        assert_eq!(best, expected, "{accepted:?}");
    }
}

#[test]
fn rfc9110_5_6_7_dates_are_parsed_in_all_three_formats() {
    for text in [
        DATE,
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ] {
        assert_eq!(parse_date(text.as_bytes()), Some(MODIFIED), "{text}");
    }
    assert_eq!(http_date(Duration::from_secs(MODIFIED)), DATE);
    assert_eq!(http_date(Duration::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
}

/// Over HTTP/2 and 3, long lists cost the client almost nothing.
#[test]
fn a_list_of_more_than_100_tags_matches_nothing() {
    let list = |count: usize| format!("{}\"a\"", "\"b\", ".repeat(count - 1));
    assert_eq!(status("GET", &[("if-none-match", &list(100))]), 304);
    assert_eq!(status("GET", &[("if-none-match", &list(101))]), 200);
    assert_eq!(status("GET", &[("if-match", &list(100))]), 200);
    assert_eq!(status("GET", &[("if-match", &list(101))]), 412);
}
