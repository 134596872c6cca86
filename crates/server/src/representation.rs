//! What a resource is sent as, and what of it a request wants (RFC 9110 §8, §12 to §14).
//!
//! Owns: the order in which conditions and ranges are looked at, and the answer that follows. Never: opens a file, reads a
//! clock, or knows a version of HTTP. Any handler can use it: a [`Representation`] in, an answer out.
//!
//! | module | owns | RFC 9110 |
//! |---|---|---|
//! | [`validator`] | entity tags and dates, as text and compared | §8.8 |
//! | [`conditional`] | which of the conditions holds, and what then | §13 |
//! | [`range`] | what a `Range` field asks for | §14 |
//! | [`assembly`] | the bytes of one range, or of several with what stands between them | §14.6 |
//! | [`coding`] | which content coding a client likes best | §12.5.3 |

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
    range::{ByteRange, Wanted},
    validator::{EntityTag, http_date},
};
use super::handler::Answer;

/// What a resource is sent as, apart from its bytes.
#[derive(Clone, Debug)]
pub struct Representation {
    /// Its length in bytes.
    pub len: u64,
    /// Its `content-type`.
    pub content_type: &'static str,
    /// Its `content-encoding`, if it has one.
    pub coding: Option<&'static str>,
    /// The validators that identify it among representations of the resource.
    pub etag: Option<EntityTag>,
    /// When it was changed last, since the Unix epoch.
    pub modified: Option<Duration>,
    /// Whether another might have been chosen by `accept-encoding`.
    pub varies: bool,
}

/// The random boundary of multipart bodies. It cannot be guessed, so no body contains it.
pub type Boundary = [u8; 16];

/// A representation with the head of its whole response, for any number of requests.
#[derive(Clone, Debug)]
pub struct Prepared {
    representation: Representation,
    whole: Response,
}

impl Prepared {
    /// The answer to a request for it. `now` is the time since the Unix epoch.
    ///
    /// Only `GET` has ranges (§14.2); requests with methods other than `GET` and `HEAD` get all of it.
    #[must_use]
    pub fn answer(
        &self,
        source: Box<dyn Source>,
        request: &Request,
        now: Duration,
        boundary: impl FnOnce() -> Boundary,
    ) -> Answer {
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
            // §15.4.5: what a cache needs to update what it has, and nothing else.
            Verdict::NotModified => return representation.describe(Answer::bare(304)),
            Verdict::Failed => {
                let answer = Answer::text(412, "Precondition failed\n");
                return head_or_all(answer, is_head);
            }
        }
        let len = representation.len;
        let wanted = if reads && !is_head && representation.range_applies(fields, now) {
            range::wanted(fields, len)
        } else {
            Wanted::All
        };
        let answer = match wanted {
            Wanted::All => self.whole(source),
            Wanted::Nothing => Answer::text(416, "Range not satisfiable\n")
                .with("content-range", format!("bytes */{len}")),
            Wanted::Some(ranges) => representation.partial(source, &ranges, boundary),
        };
        head_or_all(answer, is_head)
    }

    /// The `content-type`.
    #[must_use]
    pub const fn content_type(&self) -> &'static str {
        self.representation.content_type
    }

    fn whole(&self, source: Box<dyn Source>) -> Answer {
        Answer {
            response: self.whole.copy_with_room(),
            body: (!source.is_empty()).then_some(source),
        }
    }
}

impl Representation {
    /// Makes the head of its whole response.
    #[must_use]
    pub fn prepare(self) -> Prepared {
        let head = self.begin(200, self.content_type);
        let mut whole = head.with("content-length", self.len.to_string()).response;
        whole.prepare();
        Prepared {
            whole,
            representation: self,
        }
    }

    /// Whether the condition on `Range` holds (§13.1.5).
    fn range_applies(&self, fields: &Fields, now: Duration) -> bool {
        fields.get("if-range").is_none_or(|condition| {
            conditional::if_range(condition, self.etag.as_ref(), self.modified, now)
        })
    }

    fn describe(&self, mut answer: Answer) -> Answer {
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

    /// What 200 and 206 have in common.
    fn begin(&self, status: u16, content_type: &str) -> Answer {
        let mut answer = Answer {
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
    ) -> Answer {
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

fn head_or_all(answer: Answer, is_head: bool) -> Answer {
    if is_head { answer.head_only() } else { answer }
}

#[cfg(test)]
mod tests;
