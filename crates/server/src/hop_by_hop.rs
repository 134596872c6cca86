//! Connection-specific fields, which are not forwarded (RFC 9110 §7.6.1).
//!
//! Owns the list of them, for HTTP/1.1 messages of clients and of upstream servers.

use http::{HeaderMap, header};

/// Whether a field is always connection-specific. `te` is too: trailers are forwarded in any case.
pub(crate) fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "expect"
            | "http2-settings"
    )
}

/// The fields that the message itself declares connection-specific, in lower case.
pub(crate) fn named_by_connection(map: &HeaderMap) -> Vec<String> {
    map.get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect()
}

/// Whether the body has a transfer coding besides `chunked`, which is not decoded (RFC 9112 §7). hyper takes those of a request
/// whose last one is `chunked`, and those of any response.
pub(crate) fn has_unknown_coding(map: &HeaderMap) -> bool {
    let mut values = map.get_all(header::TRANSFER_ENCODING).iter();
    values.any(|value| !value.as_bytes().eq_ignore_ascii_case(b"chunked"))
}
