//! Well-formed messages (RFC 9114 §4.1.2, §4.2, §4.3, §4.4).
//!
//! Owns the rules for headers and trailers, received and outgoing. That a body has the length of its `content-length`
//! is checked where it is counted.

use super::{PseudoHeaders, Request, Response, target, text};
use crate::{Fields, StreamError, fields::RawLine};

/// The kind of a request, which determines the body of its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Any other method.
    #[default]
    Ordinary,
    /// HEAD: the response has no body.
    Head,
    /// CONNECT: a tunnel follows a successful response.
    Connect,
}

impl RequestKind {
    /// The kind of a request with this method.
    pub(crate) fn of(method: &[u8]) -> Self {
        match method {
            b"HEAD" => Self::Head,
            b"CONNECT" => Self::Connect,
            _ => Self::Ordinary,
        }
    }
}

/// What later parts of the message depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) content_length: Option<u64>,
    /// Of the request: CONNECT includes extended CONNECT.
    pub(crate) kind: RequestKind,
}

/// The violated rule.
type Violation = &'static str;

fn malformed(reason: Violation) -> StreamError {
    StreamError::malformed(reason)
}

/// Connection-specific fields, which are not permitted in HTTP/3 (§4.2).
fn is_connection_specific(line: &RawLine<'_>) -> bool {
    match line.name {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
            true
        }
        b"te" => line.value != b"trailers",
        _ => false,
    }
}

/// Checks a field, and records what later parts depend on.
#[inline]
fn field(line: &RawLine<'_>, facts: &mut Facts) -> Result<(), Violation> {
    if !text::is_name(line.name) {
        return Err(if line.name.starts_with(b":") {
            "a pseudo-header behind a field, or in trailers"
        } else {
            "a field name that is not a token in lower case"
        });
    }
    if !text::is_value(line.value) {
        return Err("a field value with control characters");
    }
    if is_connection_specific(line) {
        return Err("a field that is about a connection");
    }
    if line.name == b"content-length" {
        let length = content_length(line.value).ok_or("invalid `content-length`")?;
        if facts
            .content_length
            .replace(length)
            .is_some_and(|other| other != length)
        {
            return Err("two `content-length` that differ");
        }
    }
    Ok(())
}

fn content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 19 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(value).ok()?.parse().ok()
}

/// The pseudo-headers first, by `note`; then fields.
fn lines(
    fields: &mut Fields,
    facts: &mut Facts,
    mut note: impl FnMut(&RawLine<'_>) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let mut pseudo = 0u8;
    let mut all = fields.all_raw();
    let mut next = all.next();
    while let Some(line) = next.filter(|line| line.name.starts_with(b":")) {
        note(&line)?;
        pseudo = pseudo.saturating_add(1);
        next = all.next();
    }
    for line in next.into_iter().chain(all) {
        field(&line, facts)?;
    }
    fields.set_pseudo(pseudo);
    Ok(())
}

/// A received request header (§4.3.1).
pub(crate) fn request(
    mut fields: Fields,
    takes_extended_connect: bool,
) -> Result<(Request, Facts), StreamError> {
    let mut facts = Facts::default();
    let mut pseudo = PseudoHeaders::default();
    lines(&mut fields, &mut facts, |line| {
        if !pseudo.note(line.name) {
            return Err("a pseudo-header that is not one of a request, or comes twice");
        }
        // An empty authority is not the same as a missing one below.
        let is_no_authority = line.name == b":authority" && line.value.is_empty();
        if !text::is_visible(line.value) && !is_no_authority {
            return Err("a pseudo-header that is empty, or not ASCII");
        }
        Ok(())
    })
    .map_err(malformed)?;
    request_pseudo(&fields, pseudo, takes_extended_connect, &mut facts).map_err(malformed)?;
    Ok((Request::received(fields, pseudo), facts))
}

fn request_pseudo(
    fields: &Fields,
    pseudo: PseudoHeaders,
    takes_extended_connect: bool,
    facts: &mut Facts,
) -> Result<(), Violation> {
    debug_assert!(pseudo.count() <= 5);
    let [method, scheme, authority, path, protocol] =
        core::array::from_fn(|which| pseudo.value(which, fields));
    let method = method.ok_or("no `:method`")?;
    if !text::is_token(method) {
        return Err("invalid `:method`");
    }
    facts.kind = RequestKind::of(method);
    let is_connect = facts.kind == RequestKind::Connect;
    if protocol.is_some() && !(is_connect && takes_extended_connect) {
        return Err("a `:protocol` where none may be");
    }
    if is_connect && protocol.is_none() {
        // §4.4.
        return match (scheme, path, authority) {
            (None, None, Some(authority)) if target::is_authority_with_port(authority) => Ok(()),
            _ => Err("a CONNECT with other than `:authority`, a host and a port"),
        };
    }
    let scheme = scheme.ok_or("no `:scheme`")?;
    let path = path.ok_or("no `:path`")?;
    // §4.3.1, RFC 9110 §7.4: a server rejects schemes for which it is not authoritative; that includes any other
    // scheme.
    if !scheme.eq_ignore_ascii_case(b"https") && !scheme.eq_ignore_ascii_case(b"http") {
        return Err("a `:scheme` other than `https` and `http`");
    }
    if !target::is_visible_path(path, method) {
        return Err("invalid `:path`: no leading `/`, or a fragment");
    }
    let mut hosts = fields.get_all("host");
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err("two `host`");
    }
    if let (Some(authority), Some(host)) = (authority, host)
        && authority != host
    {
        return Err("`:authority` and `host` differ");
    }
    match authority.or(host) {
        None => Err("neither `:authority` nor `host`"),
        Some(b"") => Err("an authority that is empty"),
        Some(authority) if !target::is_authority(authority) => {
            Err("an authority that is not a host with a port or without")
        }
        Some(_) => Ok(()),
    }
}

/// A received response header (§4.3.2).
pub(crate) fn response(mut fields: Fields) -> Result<(Response, Facts), StreamError> {
    let mut facts = Facts::default();
    let mut status = None;
    lines(&mut fields, &mut facts, |line| {
        if line.name != b":status" || status.is_some() {
            return Err("a pseudo-header that is not one of a response, or comes twice");
        }
        status = status_of(line.value);
        status.map(|_| ()).ok_or("invalid `:status`")
    })
    .map_err(malformed)?;
    let status = status.ok_or(malformed("no `:status`"))?;
    // §4.5: 101 is not supported, as there is nothing to switch to.
    if status == 101 {
        return Err(malformed("101 Switching Protocols"));
    }
    Ok((Response::received(fields, status), facts))
}

fn status_of(value: &[u8]) -> Option<u16> {
    let &[hundreds, tens, units] = value else {
        return None;
    };
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
    let status = digit(hundreds)? * 100 + digit(tens)? * 10 + digit(units)?;
    (status >= 100).then_some(status)
}

/// Received trailers (§4.3).
pub(crate) fn trailers(fields: &Fields) -> Result<(), StreamError> {
    let mut facts = Facts::default();
    fields
        .all_raw()
        .try_for_each(|line| field(&line, &mut facts))
        .map_err(malformed)
}

/// Checks an outgoing section: whether names and values are valid, and the announced body. Pseudo-headers were
/// created by this crate, but from text that may be invalid.
pub(crate) fn outgoing(fields: &Fields) -> Option<Facts> {
    let prepared = fields.prepared();
    let done = prepared.map_or(0, |prepared| prepared.count);
    let mut facts = Facts {
        content_length: prepared.and_then(|prepared| prepared.content_length),
        ..Facts::default()
    };
    let pseudo = fields.all().size_hint().0 - fields.len();
    for (index, line) in fields.all_raw().enumerate().skip(done) {
        if index >= pseudo {
            field(&line, &mut facts).ok()?;
        } else if !text::is_visible(line.value) {
            return None;
        }
    }
    Some(facts)
}
