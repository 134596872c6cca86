//! Fields that are about one connection and go no further (RFC 9110 §7.6.1).
//!
//! Owns: which they are, of HTTP/1.1 messages that come from clients and from servers behind.

use http::{HeaderMap, header};

/// Whether a field always concerns the connection only. `te` does too: trailers are passed on in any case.
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

/// The fields that the message itself says are about the connection, in lower case.
pub(crate) fn named_by_connection(map: &HeaderMap) -> Vec<String> {
    map.get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect()
}
