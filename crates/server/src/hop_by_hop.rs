//! Connection-specific fields, which are not forwarded (RFC 9110 §7.6.1).
//!
//! Owns the list of them, for HTTP/1.1 messages of clients and of upstream servers.

use http::{HeaderMap, header};

/// Whether a field is always connection-specific, and of no use to a handler. `te` is not among them: it tells whether
/// the client takes trailers.
pub(crate) fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "transfer-encoding"
            | "upgrade"
            | "expect"
            | "http2-settings"
    )
}

/// The fields that the message itself declares connection-specific, in lower case; without `te`, which always is
/// (RFC 9110 §10.1.4).
pub(crate) fn named_by_connection(map: &HeaderMap) -> Vec<String> {
    map.get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| name != "te")
        .collect()
}

/// Whether the body has a transfer coding besides `chunked`, which is not decoded (RFC 9112 §7). hyper takes those of a request
/// whose last one is `chunked`, and those of any response.
pub(crate) fn has_unknown_coding(map: &HeaderMap) -> bool {
    let mut values = map.get_all(header::TRANSFER_ENCODING).iter();
    values.any(|value| !value.as_bytes().eq_ignore_ascii_case(b"chunked"))
}
