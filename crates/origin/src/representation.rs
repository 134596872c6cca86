//! Representations, conditional requests and ranges (RFC 9110 §8, §12 to §14).
//!
//! Owns the order in which conditions and ranges are evaluated, and the resulting response. It opens no files, reads no
//! clock and is independent of the HTTP version, so any handler can use it: it converts a [`Representation`] into an
//! answer.
//!
//! | module | owns | RFC 9110 |
//! |---|---|---|
//! | [`validator`] | entity tags and dates, as text and compared | §8.8 |
//! | [`conditional`] | evaluation of conditions | §13 |
//! | [`range`] | parsing of `Range` | §14 |
//! | [`assembly`] | bodies of one or several ranges | §14.6 |
//! | [`coding`] | selection of a content coding | §12.5.3 |

pub mod assembly;
pub mod coding;
pub mod conditional;
pub mod range;
pub mod validator;

use std::time::Duration;

use lastbyte_http3::{Fields, Request, Response};
use lastbyte_quic::stream::Source;

use self::{
    assembly::Assembly,
    conditional::Verdict,
    range::{ByteRange, RequestedRange},
    validator::{EntityTag, http_date},
};
use super::handler::FullResponse;

/// The metadata of a representation.
#[derive(Clone, Debug)]
pub struct Representation {
    /// Its length in bytes.
    pub len: u64,
    /// Its `content-type`.
    pub content_type: &'static str,
    /// Its `content-encoding`, if it has one.
    pub coding: Option<&'static str>,
    /// Its entity tag.
    pub etag: Option<EntityTag>,
    /// The time of its last change, since the Unix epoch.
    pub modified: Option<Duration>,
    /// Whether it was selected by `accept-encoding`.
    pub varies: bool,
}

/// The random boundary of multipart bodies. It is unpredictable, so no body contains it.
pub type Boundary = [u8; 16];

/// A representation with the header of its complete response, for any number of requests.
#[derive(Clone, Debug)]
pub struct Prepared {
    representation: Representation,
    whole: Response,
}

impl Prepared {
    /// The response to a request for it. `now` is the time since the Unix epoch.
    ///
    /// Only `GET` supports ranges (§14.2); requests with other methods receive the whole representation.
    pub fn answer(
        &self,
        source: Box<dyn Source>,
        request: &Request,
        now: Duration,
        boundary: impl FnOnce() -> Boundary,
    ) -> FullResponse {
        let representation = &self.representation;
        let fields = request.fields();
        let is_head = request.method() == "HEAD";
        let reads = is_head || request.method() == "GET";
        match conditional::evaluate(
            fields,
            representation.etag.as_ref(),
            representation.modified,
            reads,
        ) {
            Verdict::Proceed => {}
            // §15.4.5: only the fields that a cache needs to update its entry.
            Verdict::NotModified => return representation.describe(FullResponse::bare(304)),
            Verdict::Failed => {
                let answer = FullResponse::text(412, "Precondition failed\n");
                return head_or_all(answer, is_head);
            }
        }
        let len = representation.len;
        let requested = if reads && !is_head && representation.range_applies(fields, now) {
            range::requested(fields, len)
        } else {
            RequestedRange::All
        };
        let answer = match requested {
            RequestedRange::All => self.whole(source),
            RequestedRange::Nothing => FullResponse::text(416, "Range not satisfiable\n")
                .with("content-range", format!("bytes */{len}")),
            RequestedRange::Some(ranges) => representation.partial(source, &ranges, boundary),
        };
        head_or_all(answer, is_head)
    }

    /// The `content-type`.
    pub const fn content_type(&self) -> &'static str {
        self.representation.content_type
    }

    fn whole(&self, source: Box<dyn Source>) -> FullResponse {
        FullResponse {
            response: self.whole.copy_with_room(),
            body: (!source.is_empty()).then_some(source),
        }
    }
}

impl Representation {
    /// Creates the header of its complete response.
    pub fn prepare(self) -> Prepared {
        let head = self.begin(200, self.content_type);
        let mut whole = head.with("content-length", self.len.to_string()).response;
        whole.prepare();
        Prepared {
            whole,
            representation: self,
        }
    }

    /// Whether the condition `If-Range` is true (§13.1.5).
    fn range_applies(&self, fields: &Fields, now: Duration) -> bool {
        fields.get("if-range").is_none_or(|condition| {
            conditional::if_range(condition, self.etag.as_ref(), self.modified, now)
        })
    }

    fn describe(&self, mut answer: FullResponse) -> FullResponse {
        if let Some(etag) = &self.etag {
            answer = answer.with("etag", etag.to_string());
        }
        if let Some(modified) = self.modified {
            answer = answer.with("last-modified", http_date(modified));
        }
        if self.varies {
            answer = answer.with("vary", "accept-encoding");
        }
        answer
    }

    /// The common fields of 200 and 206.
    fn begin(&self, status: u16, content_type: &str) -> FullResponse {
        let mut answer = FullResponse {
            response: Response::new(status).with("content-type", content_type),
            body: None,
        };
        if let Some(coding) = self.coding {
            answer = answer.with("content-encoding", coding);
        }
        self.describe(answer.with("accept-ranges", "bytes"))
    }

    fn partial(
        &self,
        source: Box<dyn Source>,
        ranges: &[ByteRange],
        boundary: impl FnOnce() -> Boundary,
    ) -> FullResponse {
        let len = self.len;
        if let [range] = ranges {
            return self
                .begin(206, self.content_type)
                .with("content-range", range.content_range(len))
                .with_body(Box::new(Assembly::slice(source, *range)));
        }
        let boundary = format!("{:032x}", u128::from_be_bytes(boundary()));
        let content_type = format!("multipart/byteranges; boundary={boundary}");
        let answer = self.begin(206, &content_type);
        let parts = Assembly::parts(source, ranges, self.content_type, &boundary);
        answer.with_body(Box::new(parts))
    }
}

fn head_or_all(answer: FullResponse, is_head: bool) -> FullResponse {
    if is_head { answer.head_only() } else { answer }
}

#[cfg(test)]
mod tests;
