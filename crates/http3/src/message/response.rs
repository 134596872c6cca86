//! The header of a response (RFC 9114 §4.3.2).

use core::fmt;

use super::{check, priority_of};
use crate::{Fields, Priority, fields::Prepared, qpack::encode_static};

/// The header of a response: its status and its fields.
///
/// ```
/// use lastbyte_http3::Response;
///
/// let response = Response::new(200).with("content-type", "text/plain");
/// assert_eq!(response.status(), 200);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    fields: Fields,
    status: u16,
}

impl Default for Response {
    fn default() -> Self {
        Self::new(200)
    }
}

impl Response {
    /// A response with this status, 100 to 999.
    #[must_use]
    pub fn new(status: u16) -> Self {
        let mut response = Self {
            fields: Fields::new(),
            status,
        };
        response.renew(status);
        response
    }

    /// Turns this into another response without fields, reusing the memory.
    pub fn renew(&mut self, status: u16) {
        self.fields.clear_all();
        self.status = status;
        let digit = |unit: u16| b'0' + (status / unit % 10) as u8;
        let digits = [digit(100), digit(10), digit(1)];
        self.fields.push_pseudo(":status", &digits);
    }

    /// Checks and encodes the fields now, for all copies to be sent ([`Response::copy_with_room`]). Fields appended
    /// later are checked and encoded when they are sent. Has no effect if a field is invalid.
    pub fn prepare(&mut self) {
        if let Some(facts) = check::outgoing(&self.fields) {
            let count = self.fields.all().size_hint().0;
            let encoded = encode_static(self.fields.all_raw());
            self.fields.set_prepared(Prepared {
                count,
                encoded,
                content_length: facts.content_length,
            });
        }
    }

    /// A copy with room for a few more fields.
    #[must_use]
    pub fn copy_with_room(&self) -> Self {
        Self {
            fields: self.fields.copy_with_room(),
            status: self.status,
        }
    }

    /// A received header that was checked.
    pub(super) const fn received(fields: Fields, status: u16) -> Self {
        Self { fields, status }
    }

    /// The status.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Whether it is an interim response (RFC 9110 §15.2).
    pub const fn is_informational(&self) -> bool {
        matches!(self.status, 100..200)
    }

    /// The priority of the response, given that of its request: parameters of a `priority` field take precedence (RFC 9218
    /// §8).
    pub fn priority(&self, of_request: Priority) -> Priority {
        priority_of(&self.fields, of_request)
    }

    /// The fields.
    pub const fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The fields, mutable.
    pub const fn fields_mut(&mut self) -> &mut Fields {
        &mut self.fields
    }

    /// Appends a field and returns the response.
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

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.fields, f)
    }
}
