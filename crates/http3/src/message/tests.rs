use proptest::prelude::*;

use super::{check, *};
use crate::qpack::encode_static;

fn decoded(lines: &[(Vec<u8>, Vec<u8>)]) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in lines {
        fields.push_decoded(name, value);
    }
    fields
}

/// What our own constructors create is well-formed, and is decoded as intended.
#[test]
fn constructed_messages_are_well_formed() {
    for request in [
        Request::new("GET", "https", "example.com", "/").with("priority", "u=1, i"),
        Request::connect("example.com:443"),
        Request::extended_connect("websocket", "https", "example.com", "/chat"),
    ] {
        let lines: Vec<_> = request
            .fields()
            .all()
            .map(|line| (line.name.as_bytes().to_vec(), line.value.to_vec()))
            .collect();
        let (seen, facts) = check::request(decoded(&lines), true).expect("well-formed");
        assert_eq!(seen, request);
        assert_eq!(
            facts.kind,
            check::RequestKind::of(request.method().as_bytes())
        );
        assert_eq!(seen.priority(), request.priority());
    }
    let response = Response::new(204).with("server", "lastbyte");
    let lines = [
        (b":status".to_vec(), b"204".to_vec()),
        (b"server".to_vec(), b"lastbyte".to_vec()),
    ];
    let (seen, _) = check::response(decoded(&lines)).expect("well-formed");
    assert_eq!(seen, response);
}

#[test]
fn a_renewed_head_reuses_its_memory() {
    let mut request = Request::new("GET", "https", "example.com", "/").with("x", "y");
    request.renew("HEAD", "https", "example.org", "/other");
    assert_eq!(
        request,
        Request::new("HEAD", "https", "example.org", "/other")
    );
    let mut response = Response::new(200).with("x", "y");
    response.renew(404);
    assert_eq!(response, Response::new(404));
}

proptest! {
    #[test]
    fn arbitrary_field_lines_are_a_message_or_malformed(
        lines in prop::collection::vec(
            (
                prop_oneof![
                    Just(b":method".to_vec()),
                    Just(b":path".to_vec()),
                    Just(b":scheme".to_vec()),
                    Just(b":authority".to_vec()),
                    Just(b":status".to_vec()),
                    Just(b"content-length".to_vec()),
                    prop::collection::vec(any::<u8>(), 0..6),
                ],
                prop_oneof![
                    Just(b"GET".to_vec()),
                    Just(b"https".to_vec()),
                    Just(b"/".to_vec()),
                    Just(b"200".to_vec()),
                    prop::collection::vec(any::<u8>(), 0..6),
                ],
            ),
            0..8,
        ),
    ) {
        if let Ok((request, _)) = check::request(decoded(&lines), true) {
            // An accepted header may be forwarded.
            prop_assert!(check::outgoing(request.fields()).is_some(), "{request:?}");
            prop_assert!(!request.method().is_empty());
        }
        if let Ok((response, _)) = check::response(decoded(&lines)) {
            prop_assert!(check::outgoing(response.fields()).is_some());
        }
        if check::trailers(&decoded(&lines)).is_ok() {
            prop_assert!(lines.iter().all(|(name, _)| !name.starts_with(b":")));
        }
    }
}

#[test]
fn prepared_responses_are_checked_and_encoded_like_others() {
    let head = Response::new(200)
        .with("content-type", "text/html")
        .with("etag", "\"17f-5e\"")
        .with("content-length", "94");
    let mut prepared = head.clone();
    prepared.prepare();
    let more = |response: &Response| {
        response
            .copy_with_room()
            .with("date", "Sun, 06 Nov 1994 08:49:37 GMT")
    };
    let (sent, expected) = (more(&prepared), more(&head));
    assert_eq!(sent, expected);
    assert_eq!(
        check::outgoing(sent.fields()),
        check::outgoing(expected.fields())
    );
    let known = sent.fields().prepared().expect("prepared");
    let rest = encode_static(sent.fields().raw_from(known.count));
    assert_eq!(
        [&known.encoded[..], &rest].concat(),
        encode_static(expected.fields().all_raw())
    );
    // Appended fields are still checked, also against the prepared ones.
    for (name, value) in [("content-length", "95"), ("Date", "x"), ("te", "\r")] {
        let wrong = prepared.copy_with_room().with(name, value);
        assert_eq!(check::outgoing(wrong.fields()), None, "{name}");
    }
    let mut renewed = prepared;
    renewed.renew(404);
    assert!(renewed.fields().prepared().is_none());
    let mut invalid = Response::new(200).with("Upper", "x");
    invalid.prepare();
    assert_eq!(check::outgoing(invalid.fields()), None);
}
