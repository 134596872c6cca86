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

/// What a resource is sent as.
pub struct Representation {
    /// Its bytes.
    pub source: Box<dyn Source>,
    /// Its `content-type`.
    pub content_type: String,
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

impl Representation {
    /// The answer to a request for it. `now` is the time since the Unix epoch.
    ///
    /// Only `GET` has ranges (§14.2); requests with methods other than `GET` and `HEAD` get all of it.
    #[must_use]
    pub fn answer(self, request: &Request, now: Duration, boundary: Boundary) -> Answer {
        let fields = request.fields();
        let is_head = request.method() == "HEAD";
        let reads = is_head || request.method() == "GET";
        match conditional::evaluate(fields, self.etag.as_ref(), self.modified, reads) {
            Verdict::Proceed => {}
            // §15.4.5: what a cache needs to update what it has, and nothing else.
            Verdict::NotModified => return self.describe(Answer::bare(304)),
            Verdict::Failed => {
                let answer = Answer::text(412, "Precondition failed\n");
                return head_or_all(answer, is_head);
            }
        }
        let len = self.source.len();
        let wanted = if reads && !is_head && self.range_applies(fields, now) {
            range::wanted(fields, len)
        } else {
            Wanted::All
        };
        let answer = match wanted {
            Wanted::All => self.whole(),
            Wanted::Nothing => Answer::text(416, "Range not satisfiable\n")
                .with("content-range", format!("bytes */{len}")),
            Wanted::Some(ranges) => self.partial(&ranges, boundary),
        };
        head_or_all(answer, is_head)
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

    fn whole(self) -> Answer {
        self.begin(200, &self.content_type).with_body(self.source)
    }

    fn partial(self, ranges: &[ByteRange], boundary: Boundary) -> Answer {
        let len = self.source.len();
        if let [range] = ranges {
            return self
                .begin(206, &self.content_type)
                .with("content-range", range.content_range(len))
                .with_body(Box::new(Assembly::slice(self.source, *range)));
        }
        let boundary = format!("{:032x}", u128::from_be_bytes(boundary));
        let content_type = format!("multipart/byteranges; boundary={boundary}");
        let answer = self.begin(206, &content_type);
        let parts = Assembly::parts(self.source, ranges, &self.content_type, &boundary);
        answer.with_body(Box::new(parts))
    }
}

fn head_or_all(answer: Answer, is_head: bool) -> Answer {
    if is_head { answer.head_only() } else { answer }
}

impl std::fmt::Debug for Representation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Representation")
            .field("len", &self.source.len())
            .field("content_type", &self.content_type)
            .field("coding", &self.coding)
            .field("etag", &self.etag)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
