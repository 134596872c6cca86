//! Fields on their way through (RFC 9110 §7.6).
//!
//! Owns: which are about one hop and go no further, what is added about the client, and that a name which matters to
//! whoever is behind cannot be forged where this proxy sets it.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use lastbyte_http3::{Fields, Request, Response};

use super::upstream::Upstream;
use crate::{
    handler::{Peer, Version},
    hop_by_hop::{is_hop_by_hop, named_by_connection},
};

/// What this proxy says itself.
fn is_ours(name: &str) -> bool {
    matches!(
        name,
        "host"
            | "via"
            | "x-forwarded-for"
            | "x-forwarded-proto"
            | "x-forwarded-host"
            | "forwarded"
            | "cookie"
    )
}

/// The head that is passed on; `None` if it is none that hyper could send.
pub(super) fn request(
    request: &Request,
    peer: &Peer,
    upstream: &Upstream,
) -> Option<http::request::Parts> {
    let target = format!("{}{}", upstream.base, request.path()?);
    let authority = request.authority().unwrap_or(&upstream.host);
    let mut head = http::Request::builder()
        .method(request.method())
        .uri(target)
        .body(())
        .ok()?
        .into_parts()
        .0;
    let map = &mut head.headers;
    map.insert(header::HOST, HeaderValue::from_str(authority).ok()?);
    for line in request.fields() {
        if is_hop_by_hop(line.name) || is_ours(line.name) {
            continue;
        }
        let name = HeaderName::from_bytes(line.name.as_bytes()).ok()?;
        map.append(name, HeaderValue::from_bytes(line.value).ok()?);
    }
    // In parts it came for the sake of compression; it is one field (RFC 9114 §4.2.1).
    let mut joined = Vec::new();
    if request.fields().join("cookie", "; ", &mut joined) {
        map.insert(header::COOKIE, HeaderValue::from_bytes(&joined).ok()?);
    }
    let client = peer.remote.ip().to_canonical();
    extend(map, request, "via", via(peer.version))?;
    extend(map, request, "x-forwarded-for", &client.to_string())?;
    extend(map, request, "forwarded", &forwarded(client, authority))?;
    // Here it ends that the connection is secure, and which host was meant: what the client says of that is not passed on.
    map.insert("x-forwarded-proto", HeaderValue::from_static("https"));
    map.insert("x-forwarded-host", HeaderValue::from_str(authority).ok()?);
    if peer.is_early {
        // RFC 8470 §5.1: who is behind may answer 425, which goes back.
        map.insert("early-data", HeaderValue::from_static("1"));
    }
    Some(head)
}

/// Adds to a list that those before may have begun.
fn extend(map: &mut HeaderMap, request: &Request, name: &'static str, value: &str) -> Option<()> {
    let mut list = Vec::new();
    if request.fields().join(name, ", ", &mut list) {
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(value.as_bytes());
    map.insert(name, HeaderValue::from_bytes(&list).ok()?);
    Some(())
}

/// §7.6.3.
const fn via(version: Version) -> &'static str {
    match version {
        Version::Http10 => "1.0 lastbyte",
        Version::Http11 => "1.1 lastbyte",
        Version::Http2 => "2 lastbyte",
        Version::Http3 => "3 lastbyte",
    }
}

/// RFC 7239 §4: an address of IPv6 stands in brackets and quotes.
fn forwarded(client: IpAddr, authority: &str) -> String {
    let client = match client {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("\"[{address}]\""),
    };
    let host: String = authority
        .chars()
        .filter(|c| !matches!(c, '"' | '\\'))
        .collect();
    format!("for={client};host=\"{host}\";proto=https")
}

pub(super) fn content_length(map: &HeaderMap) -> Option<u64> {
    map.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The fields of a response that go further.
pub(super) fn copy_response(map: &HeaderMap, fields: &mut Fields) {
    let named = named_by_connection(map);
    // RFC 9112 §6.3: beside `transfer-encoding` the length does not count.
    let is_chunked = map.contains_key(header::TRANSFER_ENCODING);
    for (name, value) in map {
        let name = name.as_str();
        let is_named = named.iter().any(|known| known == name);
        let is_void = is_chunked && name == "content-length";
        // What is behind does not know of the HTTP/3 that is here.
        if !is_hop_by_hop(name) && !is_named && !is_void && name != "alt-svc" {
            fields.push(name, value.as_bytes());
        }
    }
}

pub(super) fn response(head: &http::response::Parts) -> Response {
    let mut response = Response::new(head.status.as_u16());
    copy_response(&head.headers, response.fields_mut());
    let version = match head.version {
        http::Version::HTTP_10 => Version::Http10,
        http::Version::HTTP_2 => Version::Http2,
        _ => Version::Http11,
    };
    response.fields_mut().push("via", via(version));
    response
}

pub(super) fn trailers(map: &HeaderMap) -> Fields {
    let mut fields = Fields::new();
    copy_response(map, &mut fields);
    fields
}
