//! The header of a request (RFC 9114 §4.3.1, §4.4; RFC 9220).

use core::fmt;

use super::{PseudoHeaders, priority_of};
use crate::{Fields, Priority};

/// The header of a request: its pseudo-headers by name, and its fields.
///
/// ```
/// use lastbyte_http3::Request;
///
/// let request = Request::new("GET", "https", "example.com", "/").with("accept", "*/*");
/// assert_eq!((request.method(), request.path()), ("GET", Some("/")));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Request {
    fields: Fields,
    pseudo: PseudoHeaders,
}

impl Request {
    /// A request for a resource.
    #[must_use]
    pub fn new(method: &str, scheme: &str, authority: &str, path: &str) -> Self {
        let mut request = Self::default();
        request.renew(method, scheme, authority, path);
        request
    }

    /// Turns this into another request without fields, reusing the memory.
    pub fn renew(&mut self, method: &str, scheme: &str, authority: &str, path: &str) {
        self.fields.clear_all();
        self.pseudo = PseudoHeaders::default();
        self.put(":method", method);
        self.put(":scheme", scheme);
        self.put(":authority", authority);
        self.put(":path", path);
    }

    /// A CONNECT request to `authority`, a host and a port (RFC 9114 §4.4).
    #[must_use]
    pub fn connect(authority: &str) -> Self {
        let mut request = Self::default();
        request.put(":method", "CONNECT");
        request.put(":authority", authority);
        request
    }

    /// An extended CONNECT request for another protocol, such as `websocket` (RFC 9220).
    #[must_use]
    pub fn extended_connect(protocol: &str, scheme: &str, authority: &str, path: &str) -> Self {
        let mut request = Self::new("CONNECT", scheme, authority, path);
        request.put(":protocol", protocol);
        request
    }

    fn put(&mut self, name: &'static str, value: &str) {
        // Must precede the fields: only constructors call it.
        self.fields.push_pseudo(name, value.as_bytes());
        self.pseudo.note(name.as_bytes());
    }

    /// A received header that was checked.
    pub(super) fn received(fields: Fields, pseudo: PseudoHeaders) -> Self {
        Self { fields, pseudo }
    }

    /// The method; case-sensitive.
    pub fn method(&self) -> &str {
        self.pseudo.method(&self.fields).unwrap_or("")
    }

    /// The scheme; `None` with CONNECT.
    pub fn scheme(&self) -> Option<&str> {
        self.pseudo.scheme(&self.fields)
    }

    /// The authority of the request: `:authority`, or the `host` field if that is missing (RFC 9114 §4.3.1).
    pub fn authority(&self) -> Option<&str> {
        self.pseudo.authority(&self.fields).or_else(|| {
            let host = self.fields.get("host")?;
            core::str::from_utf8(host).ok()
        })
    }

    /// Path and query; `None` with CONNECT.
    pub fn path(&self) -> Option<&str> {
        self.pseudo.path(&self.fields)
    }

    /// The protocol of an extended CONNECT.
    pub fn protocol(&self) -> Option<&str> {
        self.pseudo.protocol(&self.fields)
    }

    /// The priority in its `priority` field (RFC 9218 §5). Invalid parameters are ignored.
    pub fn priority(&self) -> Priority {
        priority_of(&self.fields, Priority::default())
    }

    /// The fields.
    pub const fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The fields, mutable.
    pub const fn fields_mut(&mut self) -> &mut Fields {
        &mut self.fields
    }

    /// Appends a field and returns the request.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.fields.push(name, value);
        self
    }

    /// Returns the fields for reuse: [`Connection::recycle`](crate::Connection::recycle).
    pub fn into_fields(self) -> Fields {
        self.fields
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.fields, f)
    }
}
