//! Headers and trailers forwarded by a proxy (RFC 9110 §7.6).
//!
//! Owns which requests are forwarded at all, which fields are connection-specific, and what is added about the client.
//! It does not rely on earlier validation of the request; no field that matters to the upstream can be forged here.

use std::{
    fmt::{self, Write as _},
    net::IpAddr,
};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode, header,
    uri::{Authority, PathAndQuery},
};
use lastbyte_http3::{Fields, Request, Response, target};

use super::{forwarded, upstream::Upstream};
use crate::{
    handler::{Peer, Version},
    hop_by_hop::{is_hop_by_hop, named_by_connection},
};

/// Why a request is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(&'static str);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Refused {}

/// Fields set by this proxy, and aliases of them: the client's fields with these names are dropped.
fn is_ours(name: &str) -> bool {
    matches!(
        name,
        "host" | "te" | "via" | "forwarded" | "x-real-ip" | "cookie" | "proxy"
    ) || name.starts_with("x-forwarded-")
        || name.starts_with("proxy-")
}

/// Whether a field of a request is forwarded. As in nginx, names consist of letters, digits and `-`: CGI programs and
/// their successors read `_`, and some any other character, as `-`.
fn is_forwarded(name: &str, upstream: &Upstream) -> bool {
    // Names are in lower case (RFC 9114 §4.2; hyper converts them): another could not be compared, and is dropped.
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.bytes().all(is_plain) {
        return !name.is_empty() && !is_hop_by_hop(name) && !is_ours(name);
    }
    let is_known = |name: &str| {
        is_hop_by_hop(name) || is_ours(name) || matches!(name, "content-length" | "early-data")
    };
    upstream.takes_underscores
        && name.bytes().all(|byte| is_plain(byte) || byte == b'_')
        && !is_known(&name.replace('_', "-"))
}

fn target(
    request: &Request,
    upstream: &Upstream,
    buffer: &mut Buffer,
) -> Result<PathAndQuery, Refused> {
    let path = request.path().unwrap_or_default();
    if request.method() == "CONNECT" || !target::is_path(path, request.method()) {
        return Err(Refused("invalid request target (expected a path)"));
    }
    let base = upstream.base.as_str();
    if !base.is_empty() && (path == "*" || lastbyte_origin::routes::has_dot_segment(path)) {
        return Err(Refused("the request target leaves the base path"));
    }
    let target = buffer.bytes(&[base.as_bytes(), path.as_bytes()]);
    PathAndQuery::from_maybe_shared(target.clone())
        .ok()
        .filter(|parsed| parsed.as_str().as_bytes() == target)
        .ok_or(Refused("invalid character in the request target"))
}

/// One allocation for the target and the values of a header: copies of the header, of which each attempt has one, share it.
///
/// A value that is kept, as in a table of HPACK, keeps the allocation. So it is one only up to [`SHARED_MAX`], and beyond
/// that one for each value.
struct Buffer(BytesMut);

/// The most bytes that a value keeps beside its own.
const SHARED_MAX: usize = 2 << 10;

impl Buffer {
    /// For this many bytes; it grows where that is not enough.
    fn new(len: usize) -> Self {
        Self(BytesMut::with_capacity(if len > SHARED_MAX {
            0
        } else {
            len
        }))
    }

    fn bytes(&mut self, parts: &[&[u8]]) -> Bytes {
        for part in parts {
            self.0.extend_from_slice(part);
        }
        self.0.split().freeze()
    }

    /// What was written to it, as a value. RFC 9110 §5.5: whitespace around a value is not part of it.
    fn written(&mut self) -> Result<HeaderValue, Refused> {
        let bytes = self.0.split().freeze();
        let bytes = bytes.slice_ref(bytes.trim_ascii());
        HeaderValue::from_maybe_shared(bytes)
            .map_err(|_| Refused("control character in a field value"))
    }

    fn value(&mut self, bytes: &[u8]) -> Result<HeaderValue, Refused> {
        self.0.extend_from_slice(bytes);
        self.written()
    }
}

/// A list that grows: its name, what is valid, and what is appended.
type List<'a> = (HeaderName, fn(&str) -> bool, fmt::Arguments<'a>);

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// Room for what is added to the fields of a client.
const ADDED: usize = 256;

/// How many more times a TRACE or OPTIONS request may be forwarded, if that is limited (RFC 9110 §7.6.2).
pub(super) fn forwards_left(request: &Request) -> Result<Option<u64>, Refused> {
    if !matches!(request.method(), "TRACE" | "OPTIONS") {
        return Ok(None);
    }
    let mut values = request.fields().get_all("max-forwards");
    let Some(value) = values.next().map(<[u8]>::trim_ascii) else {
        return Ok(None);
    };
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    if !is_number || values.next().is_some() {
        return Err(Refused("invalid max-forwards"));
    }
    let number = std::str::from_utf8(value).unwrap_or_default();
    // Larger than any that matters.
    Ok(Some(number.parse().unwrap_or(u64::MAX)))
}

/// The header of a request to the upstream.
///
/// # Errors
///
/// Returns [`Refused`] if the request must not be forwarded: its target or authority is not valid, leads out of the
/// upstream's base path, or a field cannot be sent.
pub fn request(
    request: &Request,
    peer: &Peer,
    upstream: &Upstream,
) -> Result<http::request::Parts, Refused> {
    let own;
    let named = request.authority().filter(|name| !name.is_empty());
    let authority = if let Some(authority) = named {
        authority
    } else {
        own = upstream.authority();
        &own
    };
    let values = request.fields().into_iter().map(|line| line.value.len());
    let len = values.sum::<usize>() + upstream.base.len() + 2 * authority.len() + ADDED;
    let mut buffer = Buffer::new(len);
    let target = target(request, upstream, &mut buffer)?;
    let invalid = Refused("invalid authority (expected a host with an optional port)");
    let name = buffer.bytes(&[authority.as_bytes()]);
    if !target::is_authority(authority.as_bytes())
        || Authority::from_maybe_shared(name.clone()).is_err()
    {
        return Err(invalid);
    }
    let host = HeaderValue::from_maybe_shared(name).map_err(|_| invalid)?;
    let mut head = http::Request::builder()
        .method(request.method())
        .uri(target)
        .body(())
        .map_err(|_| Refused("invalid method"))?
        .into_parts()
        .0;
    let map = &mut head.headers;
    // Beside those that are added.
    map.try_reserve(request.fields().into_iter().count() + 8)
        .map_err(|_| Refused("too many fields"))?;
    map.insert(header::HOST, host.clone());
    for line in request.fields() {
        if is_forwarded(line.name, upstream) {
            copy(map, line.name, line.value, &mut buffer)?;
        }
    }
    // It may have been split for better compression; it is one field (RFC 9114 §4.2.1).
    let mut cookie = Vec::new();
    if request.fields().join("cookie", "; ", &mut cookie) {
        map.insert(header::COOKIE, buffer.value(&cookie)?);
    }
    if takes_trailers(request.fields()) {
        // Of this hop (RFC 9110 §10.1.4).
        map.insert(header::TE, HeaderValue::from_static("trailers"));
        map.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
    if let Some(left) = forwards_left(request)? {
        map.insert(header::MAX_FORWARDS, left.saturating_sub(1).into());
    }
    let client = peer.remote.ip().to_canonical();
    let lists: [List<'_>; 3] = [
        (
            header::VIA,
            forwarded::is_via,
            format_args!("{}", via(peer.version)),
        ),
        (
            X_FORWARDED_FOR,
            forwarded::is_addresses,
            format_args!("{client}"),
        ),
        (
            header::FORWARDED,
            forwarded::is_forwarded,
            format_args!("{}", Element(client, authority)),
        ),
    ];
    for (name, is_valid, own) in lists {
        let list = extended(request.fields(), &name, is_valid, own, &mut buffer)?;
        map.insert(name, list);
    }
    // TLS ends here: the client's own values of these fields are dropped.
    map.insert(X_FORWARDED_PROTO, HeaderValue::from_static("https"));
    map.insert(X_FORWARDED_HOST, host);
    if peer.is_early {
        // RFC 8470 §5.1: the upstream may respond with 425, which is passed back.
        map.insert("early-data", HeaderValue::from_static("1"));
    }
    Ok(head)
}

/// Whether a client accepts trailers.
fn takes_trailers(fields: &Fields) -> bool {
    let members = fields
        .get_all("te")
        .flat_map(|line| line.split(|it| *it == b','));
    let mut members = members.map(<[u8]>::trim_ascii);
    members.any(|member| member.eq_ignore_ascii_case(b"trailers"))
}

fn copy(map: &mut HeaderMap, name: &str, bytes: &[u8], buffer: &mut Buffer) -> Result<(), Refused> {
    let name =
        HeaderName::from_bytes(name.as_bytes()).map_err(|_| Refused("invalid field name"))?;
    let value = buffer.value(bytes)?;
    if name == header::CONTENT_LENGTH {
        // RFC 9110 §8.6: one, or equal ones as one.
        let differs = map.get(&name).is_some_and(|other| *other != value);
        if differs || value.is_empty() || !value.as_bytes().iter().all(u8::is_ascii_digit) {
            return Err(Refused("invalid content-length"));
        }
        map.insert(name, value);
        return Ok(());
    }
    map.try_append(name, value)
        .map(|_| ())
        .map_err(|_| Refused("too many fields"))
}

/// Appends to the client's list if that is valid; otherwise starts a new list, so that nothing of the client's can hide
/// what is appended.
fn extended(
    fields: &Fields,
    name: &HeaderName,
    is_valid: fn(&str) -> bool,
    own: fmt::Arguments<'_>,
    buffer: &mut Buffer,
) -> Result<HeaderValue, Refused> {
    let lines = || fields.get_all(name.as_str()).map(<[u8]>::trim_ascii);
    if lines().all(|line| std::str::from_utf8(line).is_ok_and(is_valid)) {
        for line in lines() {
            buffer.0.extend_from_slice(line);
            buffer.0.extend_from_slice(b", ");
        }
    }
    // Never fails: it grows.
    let _ = buffer.0.write_fmt(own);
    buffer.written()
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

/// An element of `Forwarded` for a client and an authority. RFC 7239 §4: an IPv6 address is in brackets and quotes. A valid
/// authority contains neither quote nor backslash.
struct Element<'a>(IpAddr, &'a str);

impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(client, authority) = self;
        match client {
            IpAddr::V4(address) => write!(f, "for={address}")?,
            IpAddr::V6(address) => write!(f, "for=\"[{address}]\"")?,
        }
        write!(f, ";host=\"{authority}\";proto=https")
    }
}

pub(super) fn content_length(map: &HeaderMap) -> Option<u64> {
    map.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The trailers of a request that are forwarded: none that routes, frames, authenticates or modifies a request (RFC
/// 9110 §6.5.1).
pub(super) fn request_trailers(fields: &Fields, upstream: &Upstream) -> HeaderMap {
    let is_of_head = |name: &str| {
        name.starts_with("content-")
            || name.starts_with("if-")
            || matches!(
                name,
                "authorization" | "cache-control" | "early-data" | "max-forwards" | "range"
            )
    };
    let mut map = HeaderMap::new();
    let mut buffer = Buffer::new(0);
    for line in fields {
        if is_forwarded(line.name, upstream) && !is_of_head(line.name) {
            // A trailer that cannot be sent is omitted: the body is complete without it.
            let _ = copy(&mut map, line.name, line.value, &mut buffer);
        }
    }
    map
}

/// A response whose `content-length` is malformed or contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidLength;

/// The length that a response announces, for whatever method and status (RFC 9110 §8.6): one, or equal ones in a list
/// or on several lines.
fn response_length(map: &HeaderMap) -> Result<Option<u64>, InvalidLength> {
    let lines = map.get_all(header::CONTENT_LENGTH).iter();
    let mut members = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    members.try_fold(None, |known, member| {
        let digits = std::str::from_utf8(member.trim_ascii()).ok();
        let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let len: Option<u64> = digits.and_then(|text| text.parse().ok());
        match (len, known) {
            (Some(len), Some(other)) if len != other => Err(InvalidLength),
            (Some(len), _) => Ok(Some(len)),
            (None, _) => Err(InvalidLength),
        }
    })
}

/// The fields that are forwarded, but for `content-length`.
pub(super) fn copy_response(map: &HeaderMap, fields: &mut Fields) {
    let named = named_by_connection(map);
    for (name, value) in map {
        let name = name.as_str();
        let is_named = named.iter().any(|known| known == name);
        // `Alt-Svc` of the upstream does not apply to this server.
        if !is_hop_by_hop(name) && !is_named && !matches!(name, "content-length" | "te" | "alt-svc")
        {
            fields.push(name, value.as_bytes());
        }
    }
}

/// The header of a response to the client.
///
/// # Errors
///
/// Returns [`InvalidLength`] if there is no valid `content-length` to forward.
pub(super) fn response(head: &http::response::Parts) -> Result<Response, InvalidLength> {
    let mut response = Response::new(head.status.as_u16());
    let map = &head.headers;
    let fields = response.fields_mut();
    copy_response(map, fields);
    // RFC 9112 §6.3: `transfer-encoding` overrides the length.
    if head.status == StatusCode::RESET_CONTENT {
        // RFC 9110 §15.3.6: it has no content, whatever the upstream sends.
        fields.push("content-length", "0");
    } else if !map.contains_key(header::TRANSFER_ENCODING)
        && let Some(len) = response_length(map)?
        // RFC 9110 §8.6: neither 204 nor interim responses have one.
        && head.status != StatusCode::NO_CONTENT
    {
        fields.push("content-length", len.to_string());
    }
    let version = match head.version {
        http::Version::HTTP_10 => Version::Http10,
        http::Version::HTTP_2 => Version::Http2,
        _ => Version::Http11,
    };
    fields.push("via", via(version));
    Ok(response)
}

pub(super) fn trailers(map: &HeaderMap) -> Fields {
    let mut fields = Fields::new();
    copy_response(map, &mut fields);
    fields
}
